//! Erases results of calls in stored messages: a sentence replaces each result, and the rest of the
//! message stays as it was written.

use std::collections::{BTreeMap, BTreeSet};

use crate::log::media;
use crate::log::rewrite::rewrite_bodies;
use crate::log::row::{EventRow, get_event_row};
use crate::log::row_draft::RowDraft;
use crate::log::tokens;
use crate::tables::EVENTS;
use base::action::StoredAction;
use base::database::Database;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, RawValue};
use base::part::{Part, PartOfCall};
use serde::Deserialize;
use store::erasing::{ErasingDatabase, Overwrite};

#[derive(Deserialize)]
struct MessageParts<'a> {
    #[serde(borrow)]
    parts: Vec<&'a RawValue>,
}

/// The calls in the parts of a message, each with its part's index. `message` is a JSON object.
pub fn calls_in(message: &str) -> Vec<(usize, PartOfCall<'_>)> {
    let parts = json::decode::<MessageParts<'_>>(message).map_or(Vec::new(), |read| read.parts);
    let calls = parts.into_iter().map(|part| Part::parse(part)?.call());
    let calls = calls.enumerate();
    calls
        .filter_map(|(index, call)| Some((index, call?)))
        .collect()
}

/// Replaces the results of these parts with a sentence. Returns the message's id. Part of a
/// transaction. The caller updates the feed.
pub fn replace_results(
    db: &ErasingDatabase<'_>,
    session_id: &Id,
    seq: i64,
    parts: &BTreeSet<usize>,
    sentence: &str,
) -> Result<String> {
    let row = get_event_row(db, session_id, seq)?;
    let unread = || Error::corrupt_row(&row.id, "message");
    let fields = row.message.as_deref().ok_or_else(unread)?;
    let fields = with_sentence(fields, parts, sentence).ok_or_else(unread)?;
    db.overwrite(&Overwrite {
        table: EVENTS,
        // All columns that `rewrite` writes.
        columns: &["content", "tool", "metadata", "message", "media", "note"],
        condition: "session_id = ?1
                    AND seq = ?2",
        params: &[session_id.as_str().into(), seq.into()],
    })?;
    rewrite(db, session_id, &row, &fields)?;
    Ok(row.id)
}

/// The fields of a message, with the sentence instead of the results of these parts.
fn with_sentence(fields: &str, parts: &BTreeSet<usize>, sentence: &str) -> Option<String> {
    let message = ["{", fields, "}"].concat();
    let calls = calls_in(&message).into_iter();
    let mut results = BTreeMap::new();
    for (_, call) in calls.filter(|(index, _)| parts.contains(index)) {
        for result in call.results {
            // Each result is a slice of the message.
            let start = result.get().as_ptr() as usize - message.as_ptr() as usize;
            results.insert(start, result.get().len());
        }
    }
    let mut written = String::with_capacity(message.len());
    let mut copied = 1;
    for (start, length) in results {
        written.push_str(message.get(copied..start)?);
        json::push_quoted(&mut written, sentence);
        copied = start + length;
    }
    written.push_str(message.get(copied..message.len() - 1)?);
    Some(written)
}

/// Rewrites the message, also in the index. `row` is the event as it was.
fn rewrite(db: &dyn Database, session_id: &Id, row: &EventRow, fields: &str) -> Result<()> {
    let StoredAction::Known(action) = row.action else {
        return Err(Error::corrupt_row(&row.id, "action"));
    };
    let cut = media::cut(fields);
    let tokens = tokens::of_message(action, &row.content, fields);
    let draft = RowDraft {
        content: Some(&row.content),
        tool: row.tool.as_deref(),
        metadata: row.metadata.as_deref(),
        message_dated: u8::from(row.is_dated),
        created_at: row.created_at,
        note: row.note.as_deref(),
        ..RowDraft::of_message(row.seq, &row.id, action, &cut, tokens)
    };
    rewrite_bodies(db, session_id, &draft.in_slices(), row.media.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_results_of_the_given_parts_are_replaced() {
        let fields = r#""parts":[{"type":"text","text":"a"}, {"output" : {"n":1.0},"type":"tool-x","errorText":"no"},{"type":"dynamic-tool","toolName":"x","output":"b"}],"n":1.0"#;
        let replaced = |parts: &[usize]| {
            let parts = parts.iter().copied().collect();
            with_sentence(fields, &parts, "\"gone\"").unwrap()
        };
        assert_eq!(replaced(&[]), fields);
        assert_eq!(replaced(&[0]), fields);
        assert_eq!(
            replaced(&[1]),
            r#""parts":[{"type":"text","text":"a"}, {"output" : "\"gone\"","type":"tool-x","errorText":"\"gone\""},{"type":"dynamic-tool","toolName":"x","output":"b"}],"n":1.0"#
        );
        assert_eq!(replaced(&[2]), fields.replace(r#""b""#, r#""\"gone\"""#));
    }
}
