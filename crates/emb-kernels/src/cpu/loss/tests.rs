use super::bce_with_logits;
use crate::cpu::testing::values;
use crate::{Error, reference::dense as reference};

fn one(logit: f32, label: f32) -> (f64, f32) {
    let mut gradient = [f32::NAN];
    let loss = bce_with_logits(&[logit], &[label], 1.0, &mut gradient).expect("one of each");
    (loss, gradient[0])
}

#[test]
fn extreme_logits_give_exact_finite_losses() {
    assert_eq!(one(-1000.0, 1.0), (1000.0, -1.0));
    assert_eq!(one(1000.0, 0.0), (1000.0, 1.0));
    assert_eq!(one(1000.0, 1.0), (0.0, 0.0));
    assert_eq!(one(-1000.0, 0.0), (0.0, 0.0));
    assert_eq!(one(f32::MAX, 0.0), (f64::from(f32::MAX), 1.0));
    assert_eq!(one(0.0, 0.5), (std::f64::consts::LN_2, 0.0));
}

#[test]
fn soft_labels_are_taken_as_probabilities() {
    assert!((one(1.0, 0.3).0 - 1.013262).abs() < 1e-6);
}

#[test]
fn a_nan_logit_shows_in_loss_and_gradient() {
    let (loss, gradient) = one(f32::NAN, 0.0);
    assert!(loss.is_nan() && gradient.is_nan());
}

#[test]
fn sum_and_gradient_equal_the_reference() {
    let logits: Vec<f32> = values(1000, 1).iter().map(|z| z * 20.0).collect();
    let labels: Vec<f32> = values(1000, 2).iter().map(|y| f32::from(*y > 0.0)).collect();
    let mut gradient = vec![0.0; 1000];
    let loss = bce_with_logits(&logits, &labels, 0.25, &mut gradient).expect("same lengths");
    let pairs = || logits.iter().zip(&labels).map(|(&z, &y)| (f64::from(z), f64::from(y)));
    let want: f64 = pairs().map(|(z, y)| reference::bce(z, y)).sum();
    assert!((loss - want).abs() < 1e-9 * want, "{loss} vs {want}");
    for ((z, y), &g) in pairs().zip(&gradient) {
        let want = reference::bce_gradient(z, y) * 0.25;
        assert!((f64::from(g) - want).abs() < 1e-7, "{z} {y}: {g} vs {want}");
    }
}

#[test]
fn a_wrong_length_is_refused_and_nothing_written() {
    let mut gradient = [7.0f32; 2];
    let error = bce_with_logits(&[0.0; 2], &[0.0; 3], 1.0, &mut gradient).expect_err("labels");
    let Error::Shape { what: "labels", expected: 2, got: 3, .. } = error else { panic!("{error}") };
    assert_eq!(gradient, [7.0; 2]);
}
