//! Checks on text that is stored as text: JSON may hold depths and halves of surrogate
//! pairs that SQLite can't handle.

use crate::base::error::{Error, Result};

/// The most levels of nested objects and arrays. The reader of JSON stops at 127, SQLite at
/// 1,000; real data needs fewer than this.
pub const MAX_DEPTH: usize = 100;

/// Checks depth and surrogates in one pass. The text may still be invalid JSON in other
/// ways. The error names the top-level field that has the fault.
pub fn check_text(text: &str) -> Result<()> {
    let mut depth = 0_usize;
    let mut field = "body";
    let mut bytes = text.bytes().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(Error::invalid(
                        field,
                        format!("`{field}` nests more than {MAX_DEPTH} objects and arrays."),
                    ));
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let mut half = None;
                let mut end = text.len();
                while let Some((at, byte)) = bytes.next() {
                    if byte == b'"' {
                        end = at;
                        break;
                    }
                    if byte != b'\\' {
                        if half.is_some() {
                            break;
                        }
                        continue;
                    }
                    let escape = bytes.next().map(|(_, byte)| byte);
                    let unit = if escape == Some(b'u') {
                        let unit = text
                            .get(at + 2..at + 6)
                            .and_then(|hex| u16::from_str_radix(hex, 16).ok());
                        if unit.is_some() {
                            for _ in 0..4 {
                                bytes.next();
                            }
                        }
                        unit
                    } else {
                        None
                    };
                    half = match (half, unit) {
                        (None, Some(0xD800..=0xDBFF)) => Some(()),
                        (Some(()), Some(0xDC00..=0xDFFF)) => None,
                        (None, Some(0xDC00..=0xDFFF)) | (Some(()), _) => {
                            half = Some(());
                            break;
                        }
                        (None, _) => None,
                    };
                }
                let names_field = depth == 1 && is_key(text, end);
                if names_field && half.is_none() {
                    field = text
                        .get(at + 1..end)
                        .filter(|name| name.len() <= MAX_QUOTED_CHARS && name.is_ascii())
                        .unwrap_or("body");
                }
                if half.is_some() {
                    return Err(Error::invalid(
                        field,
                        format!(
                            "`{field}` holds half of a surrogate pair, so it is not valid text."
                        ),
                    ));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The most objects and arrays in one message, or in one event's metadata. In a tree of
/// values, each takes about 450 bytes: 22 MiB in all.
pub const MAX_CONTAINERS: usize = 50_000;

/// The most values in the same. In a tree, each takes about 40 bytes: 10 MiB in all.
pub const MAX_VALUES: usize = 250_000;

/// Checks that valid JSON would not take too much memory as a tree of values.
pub fn check_values(field: &str, json: &str) -> Result<()> {
    let mut containers = 0_usize;
    let mut values = 1_usize;
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => containers += 1,
            b',' | b':' => values += 1,
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => drop(bytes.next()),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    if containers <= MAX_CONTAINERS && values <= MAX_VALUES {
        return Ok(());
    }
    Err(Error::invalid(
        field,
        format!(
            "`{field}` must hold at most {MAX_CONTAINERS} objects and arrays, and {MAX_VALUES} values and names."
        ),
    ))
}

/// Whether the string that ends at `quote` is followed by a colon.
fn is_key(text: &str, quote: usize) -> bool {
    text.get(quote + 1..)
        .is_some_and(|rest| rest.trim_ascii_start().starts_with(':'))
}

/// How many bytes come before the first that ends a string, begins an escape, or may not
/// stand in a string.
pub fn count_plain(bytes: &[u8]) -> usize {
    #[cfg(target_arch = "wasm32")]
    let start = match simd::count_plain(bytes) {
        Ok(count) => return count,
        Err(start) => start,
    };
    #[cfg(not(target_arch = "wasm32"))]
    let start = 0;
    start + count_plain_by_eight(bytes.get(start..).unwrap_or_default())
}

/// The end of a usual object that begins at `at`: these words with a string between each
/// two of them, and then a number and the brace. `None`: the object is another one, or no JSON.
pub fn skip_usual(bytes: &[u8], at: usize, words: &[&str]) -> Option<usize> {
    let (first, others) = words.split_first()?;
    let mut rest = bytes.get(at..)?.strip_prefix(first.as_bytes())?;
    for word in others {
        rest = skip_string(rest)?.strip_prefix(word.as_bytes())?;
    }
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = rest.split_at_checked(digits)?;
    let rest = rest.strip_prefix(b"}")?;
    // `01` is no number.
    let is_number = matches!(number, [_] | [b'1'..=b'9', ..]);
    is_number.then(|| bytes.len() - rest.len())
}

/// What follows a string. `None`: there is no string, or one with `\u`.
fn skip_string(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes.strip_prefix(b"\"")?;
    loop {
        rest = rest.get(count_plain(rest)..)?;
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

/// As [`count_plain`]. Eight bytes are looked at together.
fn count_plain_by_eight(bytes: &[u8]) -> usize {
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

/// Looks at sixteen bytes together. Written by hand, because a build for size vectorises no
/// loops. The function enables the feature itself, so no build flag is needed.
#[cfg(target_arch = "wasm32")]
#[expect(unsafe_code, reason = "no safe function loads a vector")]
mod simd {
    use core::arch::wasm32::{
        u8x16_bitmask, u8x16_eq, u8x16_lt, u8x16_splat, v128_any_true, v128_load, v128_or,
    };

    /// As [`super::count_plain`]. `Err`: the first bytes, so many, are plain, and too few
    /// are left for this function.
    #[target_feature(enable = "simd128")]
    pub fn count_plain(bytes: &[u8]) -> Result<usize, usize> {
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

/// A string's text without its escapes, which are well-formed. `None`: half of a
/// surrogate pair.
pub fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((head, escape)) = rest.split_once('\\') {
        plain.push_str(head);
        let (name, tail) = escape.split_at_checked(1)?;
        rest = tail;
        plain.push(match name {
            "b" => '\u{8}',
            "f" => '\u{c}',
            "n" => '\n',
            "r" => '\r',
            "t" => '\t',
            "u" => {
                let (unit, tail) = code_unit(rest)?;
                rest = tail;
                match unit {
                    0xD800..=0xDBFF => {
                        let (low, tail) = code_unit(rest.strip_prefix("\\u")?)?;
                        rest = tail;
                        let low = low.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
                        char::from_u32(0x10000 + ((unit - 0xD800) << 10) + low)?
                    }
                    unit => char::from_u32(unit)?,
                }
            }
            // `"`, `\\` or `/`
            name => name.chars().next()?,
        });
    }
    plain.push_str(rest);
    Some(plain)
}

fn code_unit(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}

/// The most characters of a caller's own field name that an error repeats.
pub const MAX_QUOTED_CHARS: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_run_ends_at_each_byte_that_ends_one() {
        for end in [b'"', b'\\', b'\n', 0, 0x1f] {
            for length in 0..20 {
                for filler in [b' ', b'!', b'#', b'[', b']', 0x7f, 0x80, 0xc3, 0xff] {
                    let mut bytes = vec![filler; length];
                    assert_eq!(count_plain(&bytes), length);
                    bytes.push(end);
                    bytes.extend([filler; 9]);
                    assert_eq!(count_plain(&bytes), length, "{filler} {end}");
                }
            }
        }
    }
}
