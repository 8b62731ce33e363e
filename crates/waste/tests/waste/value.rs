//! When values are the same.

use borescope_waste::{Access, Element, Kind, Place, Tolerance};
use proptest::prelude::*;

fn one_percent(a: f64, b: f64) -> bool {
    Tolerance::default().same_number(a, b)
}

#[test]
fn special_numbers() {
    let (nan, inf) = (f64::NAN, f64::INFINITY);
    let other_nan = f64::from_bits(0xFFF8_0000_0000_1234);
    let tiny = f64::from_bits(1);
    for tolerance in [Tolerance::default(), Tolerance::EXACT] {
        let same = |a, b| {
            assert_eq!(tolerance.same_number(a, b), tolerance.same_number(b, a));
            tolerance.same_number(a, b)
        };
        assert!(same(nan, nan) && same(nan, other_nan));
        assert!(!same(nan, 0.0) && !same(nan, inf));
        assert!(same(inf, inf) && same(-inf, -inf) && !same(inf, -inf));
        assert!(!same(inf, f64::MAX) && !same(-inf, f64::MIN));
        assert!(same(0.0, -0.0));
        assert!(!same(0.0, tiny) && !same(tiny, -tiny) && same(tiny, tiny));
        assert!(!same(1.0, -1.0) && !same(f64::MAX, f64::MIN));
    }
}

#[test]
fn one_percent_of_the_larger() {
    assert!(one_percent(100.0, 99.0) && one_percent(99.0, 100.0));
    assert!(!one_percent(100.0, 98.9) && one_percent(-100.0, -99.5));
    // Denormals are numbers like others.
    let tiny = f64::from_bits(1000);
    assert!(one_percent(tiny, f64::from_bits(995)) && !one_percent(tiny, f64::from_bits(980)));
    assert!(
        Tolerance::EXACT.same_number(1.5, 1.5)
            && !Tolerance::EXACT.same_number(1.0, 1.0 + f64::EPSILON)
    );
    for wrong in [-0.1, 1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(Tolerance::new(wrong), None);
    }
    assert_eq!(Tolerance::new(0.01), Some(Tolerance::default()));
}

proptest! {
    #[test]
    fn the_order_and_the_scale_do_not_matter(a in any::<f64>(), b in any::<f64>(), near in -0.02f64..0.02, tolerance in 0.0f64..0.99, scale in -20i32..20) {
        let tolerance = Tolerance::new(tolerance).unwrap();
        for (a, b) in [(a, b), (a, a * (1.0 + near))] {
            prop_assert!(tolerance.same_number(a, a));
            prop_assert_eq!(tolerance.same_number(a, b), tolerance.same_number(b, a));
            prop_assert_eq!(tolerance.same_number(a, b), tolerance.same_number(-a, -b));
            // Powers of two scale exactly, away from the ends of the range.
            let fits = |x: f64| x.is_normal() && (1e-200..1e200).contains(&x.abs());
            if fits(a) && fits(b) && a != b && fits(a - b) {
                let s = 2f64.powi(scale);
                prop_assert_eq!(tolerance.same_number(a, b), tolerance.same_number(a * s, b * s));
            }
            // What is the same exactly is the same within any tolerance.
            prop_assert!(!Tolerance::EXACT.same_number(a, b) || tolerance.same_number(a, b));
        }
    }

    /// Integers: all bytes that both touched, and no others.
    #[test]
    fn bits_compare_exactly(a in any::<u64>(), change in any::<u64>(), mask in any::<u8>(), len in 0u32..4) {
        let place = Place::new(64, 1 << len).unwrap();
        let access = Access::new(64, 8, Kind::Load, Element::Bits).unwrap();
        let b = a ^ change & 0x0100_0001_0000_0100;
        let expected = (0..place.len())
            .filter(|n| mask >> n & 1 != 0)
            .all(|n| (a >> (8 * n)) as u8 == (b >> (8 * n)) as u8);
        let same = Tolerance::default().same(&place, mask, (a, &access), (b, &access));
        prop_assert_eq!(same, expected);
    }

    /// Two floats side by side: each compares as a number if it is wholly there, else by its bits.
    #[test]
    fn floats_compare_one_by_one(values in prop::array::uniform2(0.5f32..2.0), factors in prop::array::uniform2(prop_oneof![Just(1.0f32), Just(1.005), Just(1.05)]), mask in prop_oneof![Just(0xFFu8), any::<u8>()]) {
        let place = Place::new(64, 8).unwrap();
        let access = Access::new(64, 16, Kind::Store, Element::F32).unwrap();
        let bits = |v: [f32; 2]| u64::from(v[0].to_bits()) | u64::from(v[1].to_bits()) << 32;
        let changed = [values[0] * factors[0], values[1] * factors[1]];
        let expected = (0..2).all(|n| {
            let whole = mask >> (4 * n) & 0xF;
            let near = one_percent(values[n as usize].into(), changed[n as usize].into());
            let differ = (bits(values) ^ bits(changed)).to_le_bytes();
            let equal = (4 * n..4 * n + 4).all(|b| mask >> b & 1 == 0 || differ[b as usize] == 0);
            if whole == 0xF { near } else { equal }
        });
        let same = Tolerance::default().same(&place, mask, (bits(values), &access), (bits(changed), &access));
        prop_assert_eq!(same, expected);
    }
}

#[test]
fn both_must_mean_numbers_at_the_same_bytes() {
    let place = Place::new(64, 8).unwrap();
    let (a, b) = (1.0f64.to_bits(), 1.001f64.to_bits());
    let access =
        |address, width, element| Access::new(address, width, Kind::Load, element).unwrap();
    let same = |first: Access, second: Access| {
        Tolerance::default().same(&place, place.overlap(&second), (a, &first), (b, &second))
    };
    let double = access(64, 8, Element::F64);
    assert!(same(double, double));
    assert!(
        same(access(56, 32, Element::F64), double),
        "a vector's element"
    );
    assert!(!same(double, access(64, 8, Element::Bits)));
    assert!(!same(access(64, 8, Element::Bits), double));
    assert!(!same(double, access(64, 8, Element::F32)));
    assert!(
        !same(access(60, 16, Element::F64), access(60, 16, Element::F64)),
        "elements across the place's ends"
    );
    assert!(
        !same(access(60, 16, Element::F64), double),
        "elements begin elsewhere"
    );
    // A part of the place: an element at its end.
    let small = Place::new(64, 4).unwrap();
    let float = access(64, 4, Element::F32);
    let (x, y) = (u64::from(1.0f32.to_bits()), u64::from(1.001f32.to_bits()));
    assert!(Tolerance::default().same(&small, 0xF, (x, &float), (y, &float)));
}
