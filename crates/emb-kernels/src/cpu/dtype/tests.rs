use super::*;

fn same_f32(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

#[test]
fn every_16_bit_pattern_loads_as_the_half_crate_says() {
    for bits in 0..=u16::MAX {
        assert!(
            same_f32(Element::load(f16::from_bits(bits)), f16::from_bits(bits).to_f32()),
            "{bits:#x}"
        );
        assert!(
            same_f32(Element::load(bf16::from_bits(bits)), bf16::from_bits(bits).to_f32()),
            "{bits:#x}"
        );
    }
}

/// Every f32 exponent with fractions around every rounding boundary.
fn samples() -> impl Iterator<Item = f32> {
    let fractions =
        [0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x2000, 0x3000, 0x7fff, 0x8000, 0x8001, 0xffff];
    (0..=0x1ff_u32).flat_map(move |sign_exponent| {
        fractions.into_iter().flat_map(move |low| {
            [0, 0x5_0000, 0x7e_0000, 0x7f_0000]
                .map(|high| f32::from_bits(sign_exponent << 23 | high | low))
        })
    })
}

#[test]
fn nearest_agrees_with_the_half_crate() {
    for x in samples() {
        let (ours, theirs) = (<f16 as Element>::nearest(x), f16::from_f32(x));
        assert!(ours == theirs || (ours.is_nan() && theirs.is_nan()), "{x:e}: {ours:?} {theirs:?}");
        assert!(theirs.is_nan() || ours.to_bits() == theirs.to_bits(), "{x:e}");
        let (ours, theirs) = (<bf16 as Element>::nearest(x), bf16::from_f32(x));
        assert!(ours.to_bits() == theirs.to_bits() || (ours.is_nan() && theirs.is_nan()), "{x:e}");
    }
}

fn brackets<E: Element>(x: f32) {
    let low = E::stochastic(x, u16::MAX).load();
    let high = E::stochastic(x, 0).load();
    if x.is_nan() {
        assert!(low.is_nan() && high.is_nan());
        return;
    }
    let near = E::nearest(x).load();
    if near == x {
        assert!(same_f32(low, high), "{x:e} is representable: {low:e} {high:e}");
    }
    assert!(near.to_bits() == low.to_bits() || near.to_bits() == high.to_bits(), "{x:e}");
}

#[test]
fn stochastic_rounding_gives_one_of_the_neighbours_and_keeps_what_is_representable() {
    for x in samples() {
        brackets::<f16>(x);
        brackets::<bf16>(x);
    }
    for bits in 0..=u16::MAX {
        let (half, brain) = (f16::from_bits(bits), bf16::from_bits(bits));
        for random in [0, 1, 0x7fff, 0xffff] {
            let again = f16::stochastic(Element::load(half), random);
            assert!(again.to_bits() == bits || half.is_nan() && again.is_nan());
            let again = bf16::stochastic(Element::load(brain), random);
            assert!(again.to_bits() == bits || brain.is_nan() && again.is_nan());
        }
    }
}

#[test]
fn the_fraction_rounded_up_is_the_distance_to_the_lower_neighbour() {
    let cases = [
        1.0 + 0.25 / 1024.0,
        0.75 * 2.0_f32.powi(-24),
        3.0 * 2.0_f32.powi(-14) * (1.0 + 1.0 / 8192.0),
    ];
    for (x, expected) in cases.into_iter().zip([0.25, 0.75, 3.0 / 8192.0 * 1024.0 / 2.0]) {
        let exact = f16::stochastic(x, u16::MAX).load();
        let ups =
            (0..=u16::MAX).filter(|&random| f16::stochastic(x, random).load() > exact).count();
        let fraction = ups as f64 / 65_536.0;
        assert!((fraction - expected).abs() < 1e-3, "{x:e}: {fraction} {expected}");
    }
}
