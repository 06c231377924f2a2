//! The value of a number's text.

/// The largest power of ten that a float holds exactly.
const EXACT_POWER: u32 = 22;

/// Keeps the steps of [`scaled`] away from the ends of what a float can hold.
const ROOM: f64 = f64::from_bits((1023 + 600) << 52);

/// A float near the number, which is spelt as JSON spells it. A number of up to 19 digits is
/// read exactly, but for the tiniest, below 1e-307, and for rare ones that lie all but in the
/// middle between two floats. Reading those too takes a table of 10 KiB. `None`: no float is
/// large enough.
pub fn near(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (significand, power) = significand(digits);
    let number = match exponent.parse::<i32>() {
        Ok(exponent) => scaled(significand, power.saturating_add(exponent)),
        Err(_) if exponent.starts_with('-') => 0.0,
        Err(_) => scaled(significand, i32::MAX),
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

/// The number times ten to the power. A second float holds what the first has no bits for:
/// rounded at each step, every other number would be missed.
fn scaled(number: u64, power: i32) -> f64 {
    let is_division = power < 0;
    let room = if is_division { ROOM } else { 1.0 / ROOM };
    let first = number as f64;
    let rest = number.wrapping_sub(first as u64).cast_signed() as f64;
    let (mut high, mut low) = (first * room, rest * room);
    let mut left = power.unsigned_abs();
    while left > 0 && high != 0.0 && high.is_finite() {
        let step = left.min(EXACT_POWER);
        let factor = (0..step).fold(1.0, |factor, _| factor * 10.0);
        (high, low) = if is_division {
            let quotient = high / factor;
            let (product, missed) = multiplied(quotient, factor);
            joined(quotient, (high - product - missed + low) / factor)
        } else {
            let (product, missed) = multiplied(high, factor);
            joined(product, missed + low * factor)
        };
        left -= step;
    }
    high / room
}

/// The product, and by how much it is rounded.
fn multiplied(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    let ((a_high, a_low), (b_high, b_low)) = (halves(a), halves(b));
    let rest = a_high * b_high - product + a_high * b_low + a_low * b_high + a_low * b_low;
    (product, rest)
}

/// The upper and the lower half of a float's digits.
fn halves(number: f64) -> (f64, f64) {
    let shifted = number * f64::from((1 << 27) + 1);
    let high = shifted - (shifted - number);
    (high, number - high)
}

/// The sum, and by how much it is rounded. The second is much smaller.
fn joined(large: f64, small: f64) -> (f64, f64) {
    let sum = large + small;
    (sum, small - (sum - large))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_exactly() {
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
            "-7.2345678901234567",
            "0.1000000000000000055511",
            "12345678901234567890123",
            "18446744073709551615",
            "18446744073709551616",
            "6.62607015e-34",
            "9.1093837015e-31",
            "1e-45",
            "1e100",
            "1.7976931348623157e308",
            "2.2250738585072014e-308",
            "5e-324",
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
    fn what_is_written_is_read_exactly() {
        let mut bits = 7_u64;
        for _ in 0..100_000 {
            bits = bits
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let number = f64::from_bits(bits ^ (bits >> 29));
            if number.is_normal() && number.abs() > 1e-307 {
                let text = serde_json::to_string(&number).unwrap();
                let read = near(&text).map(f64::to_bits);
                assert_eq!(read, Some(number.to_bits()), "{text}");
            }
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
