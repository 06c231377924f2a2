//! Bodies longer than a row. A column that doesn't fit is stored in slices, cut
//! between characters, and is NULL in its row; `sliced_bytes` says that it is
//! elsewhere. Read back byte for byte.
//!
//! A message's text is also in the message, so where the two together are too
//! long for a row the text is left out, and made from the message when it is read.

use std::collections::HashMap;

use serde_json::json;

use super::message_text::text_of_fields;
use crate::base::database::{Database, SqlValue};
use crate::base::error::Result;
use crate::base::ids::Id;

/// The largest event or message that is taken, in bytes of its bodies together.
/// Updating one takes the runtime's process some 21 times its length above idle, the
/// engine's pages and uncollected strings included: 88 MB of the 100 that there are.
/// One from before that is longer is still read, alone.
pub const MAX_EVENT_BYTES: usize = 4 << 20;

/// Bytes of one slice: a statement that writes one stays far below the engine's
/// value limit, and 4 MiB are 5 of them.
const SLICE_BYTES: usize = 1_000_000;

/// One column's text, on its way into slices.
pub struct Sliced<'a> {
    pub field: &'static str,
    pub text: &'a str,
}

/// Cuts a text into pieces that each fit a row.
pub fn cut(text: &str) -> Vec<&str> {
    cut_at(text, SLICE_BYTES)
}

/// Into pieces of at most `bytes`, between characters.
fn cut_at(text: &str, bytes: usize) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while rest.len() > bytes {
        let mut end = bytes;
        while !rest.is_char_boundary(end) {
            end -= 1;
        }
        let (piece, tail) = rest.split_at(end);
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
    db.run(
        "DELETE FROM cf_agents_slices
          WHERE session_id = ?1
            AND seq IN (SELECT value FROM json_each(?2))",
        &[
            session_id.as_str().into(),
            SqlValue::Text(json!(seqs).to_string()),
        ],
    )
}

/// An event's columns that are not in its row, put together again. `message` is
/// the row's own, should it be there.
pub fn load_slices(
    db: &dyn Database,
    session_id: &str,
    seq: i64,
    message: Option<&str>,
) -> Result<HashMap<String, String>> {
    let rows = db.rows(
        "SELECT field, text
           FROM cf_agents_slices
          WHERE session_id = ?1
            AND seq = ?2
          ORDER BY field, part",
        &[session_id.into(), seq.into()],
    )?;
    let mut lengths: HashMap<&str, usize> = HashMap::new();
    for row in &rows {
        let (field, text): (&str, &str) = row.read()?;
        *lengths.entry(field).or_default() += text.len();
    }
    // Room at once: what grows by doubling is three times its length meanwhile.
    let mut fields: HashMap<String, String> = lengths
        .into_iter()
        .map(|(field, length)| (field.to_owned(), String::with_capacity(length)))
        .collect();
    for row in rows {
        let (field, text): (&str, &str) = row.read()?;
        if let Some(field) = fields.get_mut(field) {
            field.push_str(text);
        }
    }
    let message = fields.get("message").map(String::as_str).or(message);
    if let Some(content) = message.and_then(text_of_fields) {
        fields.entry("content".to_owned()).or_insert(content);
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_fall_between_characters_and_lose_nothing() {
        for text in ["", "abc", "aé😀é😀b", "😀😀😀😀😀"] {
            for bytes in 4..9 {
                let pieces = cut_at(text, bytes);
                assert_eq!(pieces.concat(), text);
                assert!(pieces.iter().all(|piece| piece.len() <= bytes));
            }
        }
    }
}
