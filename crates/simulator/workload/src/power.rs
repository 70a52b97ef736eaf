//! Powers without the library's, which may differ from machine to machine.

/// `base` to a power of zero or more, from products and square roots alone, which are the same on every machine. The fraction of the
/// exponent is cut to 32 bits.
pub(crate) fn power(base: f64, exponent: f64) -> f64 {
    let whole = exponent as u32;
    let mut result = (0..whole).fold(1.0, |product, _| product * base);
    let mut fraction = exponent - f64::from(whole);
    let mut root = base;
    for _ in 0..32 {
        root = root.sqrt();
        fraction *= 2.0;
        if fraction >= 1.0 {
            fraction -= 1.0;
            result *= root;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_exact_where_roots_are() {
        assert_eq!(power(7.0, 0.0), 1.0);
        assert_eq!(power(7.0, 3.0), 343.0);
        assert_eq!(power(16.0, 1.25), 32.0);
        assert_eq!(power(9.0, 2.5), 243.0);
        // 3^1.1, from tables.
        assert!((power(3.0, 1.1) - 3.348_369_522_1).abs() < 1e-8);
    }
}
