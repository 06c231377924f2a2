//! The value of a number's text.

/// The largest power of ten that a float holds exactly.
const EXACT_POWER: u32 = 22;

/// A float near the number, which is spelt as JSON spells it. A number of up to 15 digits
/// without a large exponent is read exactly; any other may be off by its last bits. Exact
/// reading takes a table of 10 KiB. `None`: no float is large enough.
pub fn near(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (significand, power) = significand(digits);
    let number = match exponent.parse::<i32>() {
        Ok(exponent) => scaled(significand as f64, power.saturating_add(exponent)),
        Err(_) if exponent.starts_with('-') => 0.0,
        Err(_) => scaled(significand as f64, i32::MAX),
    };
    number.is_finite().then_some(if text.starts_with('-') {
        -number
    } else {
        number
    })
}

/// The digits as one integer, and the power of ten that it is multiplied by. Digits that the
/// integer has no room for are left out.
fn significand(digits: &str) -> (u64, i32) {
    let (mut value, mut power) = (0_u64, 0_i32);
    let (mut is_full, mut is_fraction) = (false, false);
    for byte in digits.bytes() {
        if byte == b'.' {
            is_fraction = true;
        }
        if !byte.is_ascii_digit() {
            continue;
        }
        let longer = value
            .checked_mul(10)
            .and_then(|tens| tens.checked_add(u64::from(byte - b'0')));
        match longer {
            Some(longer) if !is_full => {
                value = longer;
                power = power.saturating_sub(i32::from(is_fraction));
            }
            _ => {
                is_full = true;
                power = power.saturating_add(i32::from(!is_fraction));
            }
        }
    }
    (value, power)
}

/// The number times ten to the power.
fn scaled(mut number: f64, power: i32) -> f64 {
    let mut left = power.unsigned_abs();
    while left > 0 && number != 0.0 && number.is_finite() {
        let step = left.min(EXACT_POWER);
        let factor = (0..step).fold(1.0, |factor, _| factor * 10.0);
        number = if power < 0 {
            number / factor
        } else {
            number * factor
        };
        left -= step;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_numbers_are_read_exactly() {
        for text in [
            "0.0",
            "-0.0",
            "0.1",
            "-2.5",
            "1e2",
            "1E+2",
            "1.5e-7",
            "123456789.012345",
            "1e22",
            "100000e-5",
            "0.000001",
            "999999999999999e22",
        ] {
            let exact: f64 = text.parse().unwrap();
            assert_eq!(
                near(text).map(f64::to_bits),
                Some(exact.to_bits()),
                "{text}"
            );
        }
    }

    #[test]
    fn others_are_read_as_serde_json_reads_them_or_nearer() {
        for text in [
            "-7.2345678901234567",
            "0.1000000000000000055511",
            "12345678901234567890123",
            "18446744073709551616",
            "1.7976931348623157e308",
            "2.2250738585072014e-308",
            "5e-324",
        ] {
            let (read, exact): (f64, f64) = (near(text).unwrap(), text.parse().unwrap());
            let theirs: f64 = serde_json::from_str(text).unwrap();
            let miss = |number: f64| number.to_bits().abs_diff(exact.to_bits());
            assert!(miss(read) <= miss(theirs).max(8), "{text}: {read}");
        }
    }

    #[test]
    fn what_is_too_small_is_zero_and_what_is_too_large_is_none() {
        for text in ["1e-400", "0e999999999999", "1e-999999999999", "0.0e5"] {
            assert_eq!(near(text), Some(0.0), "{text}");
        }
        for text in ["1e309", "-1e400", "1e999999999999", "2e308"] {
            assert_eq!(near(text), None, "{text}");
        }
        let zeros = "0".repeat(400);
        assert_eq!(near(&format!("0.{zeros}1e401")), Some(1.0));
        assert_eq!(near(&format!("1{zeros}e-400")), Some(1.0));
    }
}
