//! Checks JSON that is stored as text: SQLite can't handle deep nesting or unpaired
//! surrogates.

use super::pieces::{JsonPiece, pieces};
use super::string::{Letters, letters};
use crate::error::{BODY, Error, Result};

/// The longest caller-defined field name that an error repeats.
pub const MAX_QUOTED_CHARS: usize = 64;

/// The most levels of nested objects and arrays. The JSON reader stops at 127, SQLite at
/// 1,000; real data needs fewer levels.
pub const MAX_DEPTH: usize = 100;

/// Checks depth and surrogates in one pass. The text may still be invalid JSON in other
/// ways. The error names the top-level field with the fault.
pub fn check_text(text: &str) -> Result<()> {
    let mut depth = 0_usize;
    let mut field = BODY;
    let mut last = BODY;
    for piece in pieces(text) {
        match piece {
            JsonPiece::Open => {
                depth += 1;
                if depth > MAX_DEPTH {
                    return Err(Error::invalid(
                        field,
                        format!(
                            "`{field}` has more than {MAX_DEPTH} levels of objects and arrays."
                        ),
                    ));
                }
            }
            JsonPiece::Close => depth = depth.saturating_sub(1),
            JsonPiece::String { inside, .. } => {
                if letters(inside).any(|piece| piece == Letters::Half) {
                    return Err(Error::invalid(
                        field,
                        format!(
                            "`{field}` contains an unpaired surrogate, so it is not valid text."
                        ),
                    ));
                }
                last = inside;
            }
            // A string before a colon is a field name.
            JsonPiece::Colon if depth == 1 => {
                let is_short = last.len() <= MAX_QUOTED_CHARS && last.is_ascii();
                field = if is_short { last } else { BODY };
            }
            JsonPiece::Colon | JsonPiece::Comma | JsonPiece::Scalar(_) => {}
        }
    }
    Ok(())
}

/// The most objects and arrays in one message, or in one event's metadata. In a tree of
/// values, each takes about 450 bytes: 22 MiB in total.
pub const MAX_CONTAINERS: usize = 50_000;

/// The most values in one of these. In a tree, each takes about 40 bytes: 10 MiB in total.
pub const MAX_VALUES: usize = 250_000;

/// Checks that valid JSON would not take too much memory as a tree of values.
pub fn check_values(field: &str, json: &str) -> Result<()> {
    let mut containers = 0_usize;
    let mut values = 1_usize;
    for piece in pieces(json) {
        match piece {
            JsonPiece::Open => containers += 1,
            JsonPiece::Comma | JsonPiece::Colon => values += 1,
            JsonPiece::Close | JsonPiece::String { .. } | JsonPiece::Scalar(_) => {}
        }
    }
    if containers <= MAX_CONTAINERS && values <= MAX_VALUES {
        return Ok(());
    }
    Err(Error::invalid(
        field,
        format!(
            "`{field}` can have at most {MAX_CONTAINERS} objects and arrays, and {MAX_VALUES} \
             values and names."
        ),
    ))
}
