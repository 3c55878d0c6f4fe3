use super::*;

fn rates(schedule: &Schedule, steps: impl IntoIterator<Item = u64>) -> Vec<f64> {
    steps.into_iter().map(|step| schedule.lr(step)).collect()
}

#[test]
fn warm_up_is_linear_and_arrives_at_its_last_step() {
    let schedule = Schedule::constant(0.8).unwrap_or_else(|e| panic!("{e}"));
    let schedule = schedule.with_warm_up(4, 0.0).expect("valid");
    assert_eq!(rates(&schedule, 1..=6), [0.2, 0.4, 0.8 * 0.75, 0.8, 0.8, 0.8]);
}

#[test]
fn polynomial_decay_holds_then_falls_then_stays() {
    let decay = PolynomialDecay { start: 2, steps: 4, power: 2.0, end: 0.1 };
    let schedule = Schedule::polynomial(1.7, decay).expect("valid");
    let expected = [1.7, 1.7, 0.1 + 1.6 * 0.5625, 0.1 + 1.6 * 0.25, 0.1 + 1.6 * 0.0625, 0.1, 0.1];
    for (got, expected) in rates(&schedule, 1..=7).iter().zip(expected) {
        assert!((got - expected).abs() < 1e-12, "{got} {expected}");
    }
    assert_eq!(schedule.lr(u64::MAX), 0.1);
}

#[test]
fn step_decay_counts_whole_periods() {
    let schedule = Schedule::step_decay(1.0, StepDecay { every: 3, factor: 0.5 }).expect("valid");
    assert_eq!(rates(&schedule, 1..=7), [1.0, 1.0, 1.0, 0.5, 0.5, 0.5, 0.25]);
    assert_eq!(schedule.lr(u64::MAX), 0.0);
}

#[test]
fn warm_up_runs_into_whatever_the_decay_says_there() {
    let decay = StepDecay { every: 2, factor: 0.5 };
    let schedule = Schedule::step_decay(1.0, decay).expect("valid").with_warm_up(4, 0.1);
    let schedule = schedule.expect("valid");
    assert_eq!(schedule.lr(4), 0.5);
    assert!((schedule.lr(2) - 0.3).abs() < 1e-12);
    assert_eq!(schedule.lr(5), 0.25);
}

#[test]
fn text_form_round_trips_and_can_be_short() {
    for text in [
        "constant lr=0.1",
        "polynomial lr=24 start=6000 steps=4000 power=2 end=0.0001 warm-up=2000 warm-up-from=0.5",
        "step lr=0.30000000000000004 every=10 factor=0.1",
        "piecewise lr=0.1 2=0.2 3=0.4",
    ] {
        let schedule: Schedule = text.parse().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(schedule.to_string(), text);
    }
    let short: Schedule = "polynomial lr=2 steps=10 warm-up=5".parse().expect("valid");
    assert_eq!(
        short.to_string(),
        "polynomial lr=2 start=5 steps=10 power=1 end=0 warm-up=5 warm-up-from=0"
    );
}

#[test]
fn bad_schedules_are_refused_by_name() {
    for (text, message) in [
        ("", r#"unknown schedule "", known: constant, polynomial, step, piecewise"#),
        (
            "cosine lr=1",
            r#"unknown schedule "cosine", known: constant, polynomial, step, piecewise"#,
        ),
        ("constant", r#"schedule "constant": lr= is missing"#),
        ("constant lr=x", r#"schedule "constant lr=x": lr=x is not a number of its kind"#),
        ("constant lr=1 lr=2", r#"schedule "constant lr=1 lr=2": lr is given twice"#),
        ("constant lr=1 end=0", r#"schedule "constant lr=1 end=0": constant does not take end"#),
        ("constant 1", r#"schedule "constant 1": "1" is not key=value"#),
        ("constant lr=NaN", "schedule lr is NaN, valid: 0 or more, finite in f32"),
        ("constant lr=-1", "schedule lr is -1, valid: 0 or more, finite in f32"),
        ("constant lr=1e39", &format!("schedule lr is {}, valid: 0 or more, finite in f32", 1e39)),
        ("constant lr=1 warm-up=0", "schedule warm-up is 0, valid: 1 or more"),
        (
            "constant lr=1 warm-up-from=0",
            "warm-up-from cannot stand without warm-up: say how many steps it takes",
        ),
        ("polynomial lr=1 steps=0", "schedule steps is 0, valid: 1 or more"),
        ("polynomial lr=1 steps=4 power=0", "schedule power is 0, valid: above 0, finite"),
        ("polynomial lr=1 steps=4 end=2", "schedule end is 2, valid: at most lr"),
        (
            "polynomial lr=1 start=3 steps=4 warm-up=5",
            "schedule start is 3, valid: the last step of the warm-up or later",
        ),
        ("step lr=1 every=0 factor=0.5", "schedule every is 0, valid: 1 or more"),
        ("step lr=1 every=2 factor=2", "schedule factor is 2, valid: above 0, at most 1"),
        ("piecewise lr=1 3=2 2=1", "schedule step is 2, valid: 2 or more and ascending"),
        ("piecewise lr=1 1=2", "schedule step is 1, valid: 2 or more and ascending"),
        (
            "piecewise lr=1 x=2",
            r#"schedule "piecewise lr=1 x=2": x=2 is not a step and a learning rate"#,
        ),
    ] {
        let error = text.parse::<Schedule>().expect_err(text);
        assert_eq!(error.to_string(), message, "{text}");
    }
    let twice = Schedule::constant(1.0).and_then(|s| s.with_warm_up(2, 0.0)?.with_warm_up(3, 0.0));
    assert!(matches!(twice, Err(Error::Contradiction { option: "warm-up", .. })));
}
