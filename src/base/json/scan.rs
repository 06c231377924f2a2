//! What serde_json lets pass in text that is kept as text, and SQLite would
//! choke on: depth, and halves of surrogate pairs.

use crate::base::error::{Error, Result};

/// Objects and arrays within each other. serde_json stops at 128, SQLite at
/// 1,000; nobody's data needs more than this.
pub const MAX_DEPTH: usize = 100;

/// Depth and surrogates, in one pass over text that may still be broken JSON
/// otherwise. The error names the top-level field that it found them in.
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
                        format!("`{field}` holds half of a surrogate pair, which is no text."),
                    ));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Objects and arrays of one message, or of one event's metadata. As a tree of
/// values each takes some 450 bytes: 22 MiB.
pub const MAX_CONTAINERS: usize = 50_000;

/// Values of the same. Each takes some 40 bytes there: 10 MiB.
pub const MAX_VALUES: usize = 250_000;

/// Holds valid JSON against what it would take if it were read as a tree.
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

/// How many characters of a caller's own field name an error repeats.
pub const MAX_QUOTED_CHARS: usize = 64;
