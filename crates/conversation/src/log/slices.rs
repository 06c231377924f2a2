//! Bodies that are too long for a row. Such a column is cut between characters and
//! stored in slices. Its row then has NULL for the column, and `sliced_bytes` counts
//! the bytes in slices. The column is read back byte for byte.
//!
//! A message's text is also in the message. If the two together are too long for a row, the text is
//! omitted, and derived from the message when it is read.

use std::collections::HashMap;

use super::message_text::text_of_fields;
use crate::tables::SLICES;
use base::columns::{find_value, load};
use base::database::{Database, Delete, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::json;

/// The largest event or message that is accepted, in bytes of its bodies together.
/// Updating an event takes the runtime's process about 21 times its length above idle,
/// the engine's pages and uncollected strings included: 88 MB of the 100 MB limit.
/// Longer events from before this limit can still be read, one at a time.
pub const MAX_EVENT_BYTES: usize = 4 << 20;

/// Bytes of one slice. A statement that writes a slice stays far below the engine's
/// value limit, and 4 MiB take 5 slices.
const SLICE_BYTES: usize = 1_000_000;

/// One column's text, to be stored in slices.
pub struct Sliced<'a> {
    pub field: &'static str,
    pub text: &'a str,
}

/// Cuts a text into slices.
pub fn cut(text: &str) -> Vec<&str> {
    cut_at(text, SLICE_BYTES)
}

/// Cuts a text between characters, into pieces of at most `bytes`.
fn cut_at(text: &str, bytes: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > bytes
        && let Some((piece, tail)) = rest.split_at_checked(rest.floor_char_boundary(bytes))
    {
        pieces.push(piece);
        rest = tail;
    }
    pieces.push(rest);
    pieces
}

pub(super) const INSERT: &str = "INSERT INTO cf_agents_slices (session_id, seq, field, part, text)";

/// Part of the transaction that writes the row.
pub fn write_slices(
    db: &dyn Database,
    session_id: &Id,
    seq: i64,
    sliced: &[Sliced<'_>],
) -> Result<()> {
    for Sliced { field, text } in sliced {
        for (part, piece) in cut(text).into_iter().enumerate() {
            db.run(
                &format!("{INSERT} VALUES (?1, ?2, ?3, ?4, ?5)"),
                &[
                    session_id.as_str().into(),
                    seq.into(),
                    (*field).into(),
                    (part as i64).into(),
                    piece.into(),
                ],
            )?;
        }
    }
    Ok(())
}

/// Part of the transaction that deletes or rewrites the rows.
pub fn delete_slices(db: &dyn Database, session_id: &Id, seqs: &[i64]) -> Result<()> {
    Delete::from(
        SLICES,
        "session_id = ?1
         AND seq IN (SELECT value FROM json_each(?2))",
        &[
            session_id.as_str().into(),
            SqlValue::Text(json::encode(&seqs)?),
        ],
    )
    .run(db)?;
    Ok(())
}

/// Joins the slices of an event's columns. `message` is the message in the row, if
/// the row has it.
pub fn load_slices(
    db: &dyn Database,
    session_id: &str,
    seq: i64,
    message: Option<&str>,
) -> Result<HashMap<String, String>> {
    let cut: Vec<(String, i64, i64)> = load(
        db,
        "SELECT field, max(part), sum(octet_length(text))
           FROM cf_agents_slices
          WHERE session_id = ?1
            AND seq = ?2
          GROUP BY field",
        &[session_id.into(), seq.into()],
    )?;
    let mut fields = HashMap::with_capacity(cut.len());
    for (field, last_part, length) in cut {
        // Reserve the length first: growing by doubling takes three times the length.
        let mut joined = String::with_capacity(usize::try_from(length).unwrap_or(0));
        // Read one slice at a time: all of them at once would be in memory twice.
        for part in 0..=last_part {
            let sql = "SELECT text
                         FROM cf_agents_slices
                        WHERE session_id = ?1
                          AND seq = ?2
                          AND field = ?3
                          AND part = ?4";
            let params: [SqlValue; 4] = [
                session_id.into(),
                seq.into(),
                field.as_str().into(),
                part.into(),
            ];
            let slice: Option<String> = find_value(db, sql, &params)?;
            joined.push_str(slice.as_deref().unwrap_or_default());
        }
        fields.insert(field, joined);
    }
    let message = fields.get("message").map(String::as_str).or(message);
    if let Some(content) = message.and_then(text_of_fields) {
        fields.entry("content".to_owned()).or_insert(content);
    }
    Ok(fields)
}

/// Whether an event of the session has slices.
pub fn has_slices(db: &dyn Database, session_id: &Id) -> Result<bool> {
    let sql = "SELECT 1 FROM cf_agents_slices WHERE session_id = ?1 LIMIT 1";
    let found: Option<i64> = find_value(db, sql, &[session_id.as_str().into()])?;
    Ok(found.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_split_between_characters_and_lose_nothing() {
        for text in ["", "abc", "aé😀é😀b", "😀😀😀😀😀"] {
            for bytes in 4..9 {
                let pieces = cut_at(text, bytes);
                assert_eq!(pieces.concat(), text);
                assert!(pieces.iter().all(|piece| piece.len() <= bytes));
            }
        }
    }
}
