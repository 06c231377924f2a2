//! Reads the texts for the ranking. The texts of a page are returned from the database as
//! the bytes of one value: an engine string would be copied and validated several times.

use std::borrow::Cow;

use crate::index::request::{FILTERS, SearchRequest};
use base::action::StoredAction;
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::json;
use base::row;
use base::rows::parse_rows;
use search::document::EventText;

/// Events whose texts are in memory at once: 32 × 48 KiB, if each character takes four bytes. They
/// are one value, so they must stay below the engine's limit for values.
pub const PAGE: usize = 32;

/// The data of an event that the ranking reads in addition to its bodies.
struct CandidateRow {
    /// The number of the event's session, and the event's `seq`.
    position: (i64, i64),
    action: StoredAction,
    created_at: i64,
    session_name: Option<String>,
    /// Bytes of the content, the tool, the metadata and the message. `None`: there is none,
    /// or it is not read.
    lengths: [Option<usize>; 4],
}

row! {
    /// Columns of a page's row, whose bodies are [`BODIES`].
    for CandidateRow {
        number: i64 = "number",
        seq: i64 = "seq",
        action: StoredAction = "action",
        created_at: i64 = "created_at",
        session_name: Option<String> = "name",
        content: Option<i64> = "octet_length(content)",
        tool: Option<i64> = "octet_length(tool)",
        metadata: Option<i64> = "octet_length(metadata)",
        message: Option<i64> = "octet_length(message)",
    }
    {
        let lengths = [content, tool, metadata, message];
        Ok(Self {
            position: (number, seq),
            action,
            created_at,
            session_name,
            lengths: lengths.map(|length| usize::try_from(length?).ok()),
        })
    }
}

/// The bodies of an event `e`: 8,192 characters of its content, unless its message contains
/// them, and each other body if it has at most 8 KiB.
const BODIES: &str = "CASE WHEN octet_length(e.message) <= 8192 THEN NULL
                            WHEN octet_length(e.content) <= 8192 THEN e.content
                            ELSE substr(e.content, 1, 8192) END AS content,
                       iif(octet_length(e.tool) <= 8192, e.tool, NULL) AS tool,
                       iif(octet_length(e.metadata) <= 8192, e.metadata, NULL) AS metadata,
                       iif(octet_length(e.message) <= 8192, e.message, NULL) AS message";

/// Reads those of the `wanted` events that the search may return, at most [`PAGE`] at once.
pub fn read_texts(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    wanted: &[(i64, i64)],
    take: &mut dyn FnMut((i64, i64), &EventText<'_>),
) -> Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    let (events, params) = wanted_events_sql(search, wanted)?;
    let sql = format!(
        "SELECT CAST(group_concat(coalesce(content, '') || coalesce(tool, '')
                                  || coalesce(metadata, '') || coalesce(message, ''), '') AS BLOB),
                json_group_array(json_array({}))
           FROM (SELECT s.number, e.seq, e.action, e.created_at, s.name, {BODIES}
                   {events})",
        CandidateRow::COLUMNS,
    );
    let Some((bodies, rows)) = db.find_bytes_and_text(&sql, &params)? else {
        return Ok(());
    };
    let mut left = bodies.as_slice();
    for row in &parse_rows(&rows)? {
        let row: CandidateRow = row.read()?;
        let [content, tool, metadata, message] = row.lengths.map(|length| {
            let (body, rest) = left.split_at_checked(length?)?;
            left = rest;
            Some(str::from_utf8(body).map_or_else(|_| String::from_utf8_lossy(body), Cow::Borrowed))
        });
        let event = EventText {
            role: row.action.role(),
            created_at: row.created_at,
            session_name: row.session_name.as_deref(),
            content: content.as_deref().unwrap_or_default(),
            tool: tool.as_deref(),
            metadata: metadata.as_deref(),
            message: message.as_deref(),
        };
        take(row.position, &event);
    }
    Ok(())
}

/// Adjacent events of a session: the session's number, the first and the last `seq`, and a
/// bit for each `seq` from the first on, set if the event is wanted.
type EventStretch = (i64, i64, i64, i64);

/// The maximum number of events in a stretch: its bits are one number.
const MAX_STRETCH: i64 = 32;

/// The maximum distance between wanted events at which SQLite steps from one to the next.
/// Finding an event again takes as many rows and more time: SQLite reads whole rows to
/// compare their keys, and rows may be long.
const STEPS: i64 = 3;

fn stretches(wanted: &[(i64, i64)]) -> Vec<EventStretch> {
    let mut wanted = wanted.to_vec();
    wanted.sort();
    let mut stretches: Vec<EventStretch> = Vec::new();
    for (number, seq) in wanted {
        match stretches.last_mut() {
            Some((same, first, last, bits))
                if *same == number && seq - *last <= STEPS && seq - *first < MAX_STRETCH =>
            {
                *last = seq;
                *bits |= 1 << (seq - *first);
            }
            _ => stretches.push((number, seq, seq, 1)),
        }
    }
    stretches
}

/// SQL for the wanted events `e`, with their sessions `s`, and its parameters. Uses
/// stretches if they read no more rows: each reads a row of the list, a row of the
/// sessions, and the row after its end.
pub fn wanted_events_sql(
    search: &SearchRequest<'_>,
    wanted: &[(i64, i64)],
) -> Result<(String, Vec<SqlValue>)> {
    let stretches = stretches(wanted);
    let spans = stretches.iter().map(|(_, first, last, _)| last - first + 4);
    let is_dense = spans.sum::<i64>() <= 3 * wanted.len() as i64;
    let (list, seqs, is_wanted) = if is_dense {
        (
            json::encode(&stretches)?,
            "BETWEEN wanted.value ->> 1 AND wanted.value ->> 2",
            "(wanted.value ->> 3) >> (e.seq - (wanted.value ->> 1)) & 1",
        )
    } else {
        (json::encode(&wanted)?, "= wanted.value ->> 1", "true")
    };
    let sql = format!(
        "FROM json_each(?1) AS wanted
          CROSS JOIN cf_agents_sessions AS s
             ON s.number = wanted.value ->> 0
          CROSS JOIN cf_agents_events AS e
             ON e.session_id = s.id
            AND e.seq {seqs}
          WHERE {is_wanted}
            AND {FILTERS}
            AND (?5 IS NULL OR s.id = ?5)"
    );
    let mut params = search.filters();
    params.insert(0, SqlValue::Text(list));
    params.push(search.session_id.map(Id::as_str).into());
    Ok((sql, params))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearby_events_of_a_session_are_read_as_one_range() {
        let wanted = [(1, 9), (1, 3), (2, 10), (1, 4), (1, 7), (1, 13), (2, 13)];
        assert_eq!(
            stretches(&wanted),
            [(1, 3, 9, 0b101_0011), (1, 13, 13, 1), (2, 10, 13, 0b1001)]
        );
        assert_eq!(stretches(&[]), []);
        // A range is not longer than its bit mask.
        let many: Vec<(i64, i64)> = (0..100).map(|seq| (1, seq)).collect();
        let found = stretches(&many);
        assert_eq!(found.len(), 4);
        assert_eq!(found[0], (1, 0, 31, (1 << 32) - 1));
        assert_eq!(found[3], (1, 96, 99, 0b1111));
    }
}
