//! Reads a number so that it is written as it was read.
//!
//! The standard library reads every number exactly, with a table of 10 KiB that nothing
//! else in the wasm needs. `json::decode` reads without the table, and may miss a tiny or a
//! rare number by a few steps. `json::encode` writes exactly, so its texts lead back to the
//! number.

use crate::base::json::{decode, encode};

/// How many numbers on each side of the one that `json::decode` reads are looked at.
const MAX_STEPS: usize = 16;

/// The number that a JSON text holds. A text that `json::encode` wrote is read exactly; any
/// other may be off by its last bits. `None`: no number, or none that a float can hold.
pub fn read_real(text: &str) -> Option<f64> {
    let near: f64 = decode(text).ok()?;
    let is_it = |number: &f64| encode(number).is_ok_and(|written| written == text);
    let (mut above, mut below) = (near, near);
    for _ in 0..=MAX_STEPS {
        if let Some(found) = [above, below].into_iter().find(is_it) {
            return Some(found);
        }
        (above, below) = (above.next_up(), below.next_down());
    }
    Some(near)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits that look thrown.
    fn bits(count: u64) -> impl Iterator<Item = u64> {
        let mut state = 7_u64;
        (0..count).map(move |_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        })
    }

    #[test]
    fn what_was_written_reads_back_to_the_bit() {
        let any = bits(100_000).map(f64::from_bits);
        let costs = bits(100_000).map(|bits| bits as f64 / u64::MAX as f64 * 1e-3);
        let edges = [
            0.0,
            -0.0,
            0.1,
            0.3,
            5e-324,
            2.225_073_858_507_201e-308,
            f64::MAX,
        ];
        for number in any.chain(costs).chain(edges) {
            let Ok(text) = serde_json::to_string(&number) else {
                continue;
            };
            if number.is_finite() {
                let read = read_real(&text).map(f64::to_bits);
                assert_eq!(read, Some(number.to_bits()), "{text}");
            }
        }
    }

    #[test]
    fn other_spellings_are_read_nearly() {
        for text in [
            "1",
            "0.10",
            "1e2",
            "12345678901234567890123",
            "0.1000000000000000055511",
        ] {
            let (read, exact) = (read_real(text).unwrap(), text.parse::<f64>().unwrap());
            assert!((read / exact - 1.0).abs() < 1e-15, "{text}: {read}");
        }
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", "null", "\"1\"", "[1]", "1e999", "inf", "NaN", "1 2"] {
            assert_eq!(read_real(text), None, "{text}");
        }
    }
}
