//! Finds the end of the plain text in a JSON string, many bytes at a time.

/// The number of bytes before the first one that ends the string, starts an escape, or is
/// not allowed in a string.
pub fn count_unescaped(bytes: &[u8]) -> usize {
    #[cfg(target_arch = "wasm32")]
    let start = match simd::count_unescaped(bytes) {
        Ok(count) => return count,
        Err(start) => start,
    };
    #[cfg(not(target_arch = "wasm32"))]
    let start = 0;
    start + count_unescaped_by_eight(bytes.get(start..).unwrap_or_default())
}

/// The end of an object in a fixed layout that starts at `at`: the given `words` with a string
/// between each two of them, then a number and the closing brace. `None`: the object has another
/// layout, or is not JSON.
pub fn skip_common(bytes: &[u8], at: usize, words: &[&str]) -> Option<usize> {
    let (first, others) = words.split_first()?;
    let mut rest = bytes.get(at..)?.strip_prefix(first.as_bytes())?;
    for word in others {
        rest = skip_string(rest)?.strip_prefix(word.as_bytes())?;
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = rest.split_at_checked(digits)?;
    let rest = rest.strip_prefix(b"}")?;
    // `01` is not a number.
    let is_number = matches!(number, [_] | [b'1'..=b'9', ..]);
    is_number.then(|| bytes.len() - rest.len())
}

/// The bytes after a string. `None`: there is no string, or it contains `\u`.
fn skip_string(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes.strip_prefix(b"\"")?;
    loop {
        rest = rest.get(count_unescaped(rest)..)?;
        rest = match rest {
            [b'"', rest @ ..] => return Some(rest),
            [
                b'\\',
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't',
                rest @ ..,
            ] => rest,
            _ => return None,
        };
    }
}

/// Like [`count_unescaped`], eight bytes at a time.
fn count_unescaped_by_eight(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES * 0x80;
    let holds_zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let control = word.wrapping_sub(ONES * 0x20) & !word;
        let quote = holds_zero(word ^ (ONES * u64::from(b'"')));
        let escape = holds_zero(word ^ (ONES * u64::from(b'\\')));
        let found = (control | quote | escape) & HIGHS;
        if found != 0 {
            return index * 8 + found.trailing_zeros() as usize / 8;
        }
    }
    let ends = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    words.len() * 8 + rest.iter().position(ends).unwrap_or(rest.len())
}

/// Compares sixteen bytes at a time. Written by hand, because a build for size vectorizes
/// no loops. The function enables the feature itself, so no build flag is needed.
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "no safe function loads a vector")]
mod simd {
    use core::arch::wasm32::{
        u8x16_bitmask, u8x16_eq, u8x16_lt, u8x16_splat, v128_any_true, v128_load, v128_or,
    };

    /// Like [`super::count_unescaped`]. `Err(n)`: the first `n` bytes are plain, and fewer than
    /// sixteen are left.
    #[target_feature(enable = "simd128")]
    pub fn count_unescaped(bytes: &[u8]) -> Result<usize, usize> {
        let (chunks, _) = bytes.as_chunks::<16>();
        for (index, chunk) in chunks.iter().enumerate() {
            // SAFETY: a load reads 16 bytes and needs no alignment. A chunk has 16 bytes.
            let bytes = unsafe { v128_load(chunk.as_ptr().cast()) };
            let ends = v128_or(
                u8x16_lt(bytes, u8x16_splat(0x20)),
                v128_or(
                    u8x16_eq(bytes, u8x16_splat(b'"')),
                    u8x16_eq(bytes, u8x16_splat(b'\\')),
                ),
            );
            if v128_any_true(ends) {
                return Ok(index * 16 + u8x16_bitmask(ends).trailing_zeros() as usize);
            }
        }
        Err(chunks.len() * 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_run_stops_at_each_special_byte() {
        for end in [b'"', b'\\', b'\n', 0, 0x1f] {
            for length in 0..20 {
                for filler in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xc3, 0xff] {
                    let mut bytes = vec![filler; length];
                    assert_eq!(count_unescaped(&bytes), length);
                    bytes.push(end);
                    bytes.extend([filler; 9]);
                    assert_eq!(count_unescaped(&bytes), length, "{filler} {end}");
                }
            }
        }
    }
}
