//! Encodes numbers as a short text for cursors: each number is stored as its difference
//! from the previous one, in digits of five bits. Adjacent numbers take one character each.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._";

/// The bit of a digit that means: another digit of the same number follows.
const CONTINUES: u64 = 1 << 5;

/// The largest number. A difference has one more bit, for its sign.
const MAX_NUMBER: u64 = 1 << 53;

pub fn pack(numbers: &[i64]) -> String {
    let mut text = String::new();
    let mut before = 0_i64;
    for number in numbers {
        let distance = number.wrapping_sub(before);
        before = *number;
        let mut left = (distance.wrapping_shl(1) ^ (distance >> 63)) as u64;
        loop {
            let continues = if left > 31 { CONTINUES } else { 0 };
            let digit = DIGITS.get((left & 31 | continues) as usize);
            text.push(char::from(digit.copied().unwrap_or(b'A')));
            left >>= 5;
            if continues == 0 {
                break;
            }
        }
    }
    text
}

/// The numbers of a text from [`pack`]. `None`: the text is not from `pack`, or contains
/// more than `most` numbers.
pub fn unpack(text: &str, most: usize) -> Option<Vec<i64>> {
    let mut numbers = Vec::new();
    let (mut before, mut distance, mut bits) = (0_i64, 0_u64, 0);
    for byte in text.bytes() {
        let digit = DIGITS.iter().position(|digit| *digit == byte)? as u64;
        distance |= (digit & 31) << bits;
        bits += 5;
        if distance > 2 * MAX_NUMBER || bits > 60 {
            return None;
        }
        if digit & CONTINUES == 0 {
            let half = (distance >> 1) as i64;
            before = before.checked_add(if distance & 1 == 0 { half } else { -half - 1 })?;
            numbers.push(before);
            (distance, bits) = (0, 0);
        }
        if numbers.len() > most {
            return None;
        }
    }
    (bits == 0).then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_numbers_round_trip() {
        let mut seed = 11_u64;
        for length in 0..200 {
            let numbers: Vec<i64> = (0..length)
                .map(|index| {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    match index % 3 {
                        0 => (seed >> 12) as i64 % (1 << 52),
                        1 => (seed >> 40) as i64 % 1_000,
                        _ => index,
                    }
                })
                .collect();
            assert_eq!(unpack(&pack(&numbers), 200), Some(numbers));
        }
        let falling: Vec<i64> = (1..=4_000).rev().collect();
        assert!(pack(&falling).len() < 4_004);
    }

    #[test]
    fn malformed_packed_text_is_refused() {
        assert_eq!(unpack("", 9), Some(Vec::new()));
        for text in ["-", "\u{e9}", "g", "________________", "AA!"] {
            assert_eq!(unpack(text, 9), None, "{text}");
        }
        assert_eq!(unpack(&"A".repeat(10), 9), None);
    }
}
