//! Finds the messages of all sessions' logs for a search by meaning. An event's row number is
//! its number among all events of the agent (`base/numbers.rs`).

use crate::index::request::{FILTERS, SearchRequest};
use base::action::MESSAGE_ACTIONS;
use base::columns::{find, load};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::json;
use base::numbers::{self, MAX_SEQ, split_row_number};
use base::row;
use search::document::find_speaker;

/// The result of scanning events from the newest on.
#[derive(Default)]
pub struct VectorScan {
    /// The row number of the last event that was scanned.
    pub end: Option<i64>,
    /// How many events were scanned.
    pub checked: i64,
    /// The row numbers of the messages that the search may return, separated by commas.
    pub row_numbers: Option<String>,
}

/// Scans up to `most` events below a row number for messages of people or the agent.
pub fn scan_vector_texts(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    below: i64,
    most: i64,
) -> Result<VectorScan> {
    let (number, seq) = split_row_number(below);
    let only = match search.session_id {
        Some(_) => "s.id = ?1",
        None => "?1 IS NULL",
    };
    let sql = format!(
        "SELECT min(row_number), count(*), group_concat(row_number) FILTER (WHERE is_wanted)
           FROM (SELECT {row_number} AS row_number,
                        e.action IN {MESSAGE_ACTIONS}
                        AND octet_length(e.content) > 0
                        AND {FILTERS} {session} AS is_wanted
                   FROM cf_agents_sessions AS s
                  CROSS JOIN cf_agents_events AS e
                     ON e.session_id = s.id
                    AND e.seq < iif(s.number = ?5, ?6, {MAX_SEQ} + 1)
                  WHERE s.number <= ?5
                    AND {only}
                  ORDER BY s.number DESC, e.seq DESC
                  LIMIT {most})",
        row_number = numbers::row_number_sql("s.number", "e.seq"),
        session = search.session_condition("?7"),
    );
    let mut params: Vec<SqlValue> = vec![search.session_id.map(Id::as_str).into()];
    params.extend(search.filters());
    params.extend([number.into(), seq.into()]);
    params.extend(search.session_param());
    let found: Option<(Option<i64>, i64, Option<String>)> = find(db, &sql, &params)?;
    let (end, checked, row_numbers) = found.unwrap_or_default();
    Ok(VectorScan {
        end,
        checked,
        row_numbers,
    })
}

/// SQL: whether the search may return the event with `row_number`, an SQL expression. `param` is
/// where [`SearchRequest::session_param`] is bound.
pub fn is_wanted_sql(search: &SearchRequest<'_>, row_number: &str, param: &str) -> String {
    format!(
        "EXISTS (SELECT 1
                   {from_event}
                    AND {FILTERS} {session})",
        from_event = from_event_sql(
            &numbers::session_number_sql(row_number),
            &numbers::seq_sql(row_number)
        ),
        session = search.session_condition(param),
    )
}

/// SQL: FROM and WHERE for the event with these numbers, if the first `chars` characters of its
/// text equal `text`.
pub fn with_text_sql(number: &str, seq: &str, chars: i64, text: &str) -> String {
    let from_event = from_event_sql(number, seq);
    format!("{from_event} AND substr(e.content, 1, {chars}) = {text}")
}

/// SQL: FROM and WHERE for the event `e` of the session `s` with these numbers.
fn from_event_sql(number: &str, seq: &str) -> String {
    format!(
        "FROM cf_agents_sessions AS s
                  CROSS JOIN cf_agents_events AS e
                     ON e.session_id = s.id
                    AND e.seq = {seq}
                  WHERE s.number = {number}"
    )
}

/// The text of an event, from which its vector is computed.
pub struct VectorText {
    pub row_number: i64,
    /// The first characters of the stored text.
    pub text: String,
    pub speaker: Option<String>,
}

row! {
    /// Columns of an event `e` in a session `s`.
    for VectorText(chars: i64) {
        session: i64 = "s.number",
        seq: i64 = "e.seq",
        text: String = format!("substr(e.content, 1, {chars})"),
        metadata: Option<&str> = "iif(octet_length(e.metadata) <= 8192, e.metadata, NULL)",
        message: Option<&str> = "iif(octet_length(e.message) <= 8192, e.message, NULL)",
    }
    Ok(Self {
        row_number: numbers::row_number(session, seq),
        text,
        speaker: find_speaker(metadata, message),
    })
}

/// The first `chars` characters of the events with these row numbers.
pub fn load_texts(db: &dyn Database, row_numbers: &[i64], chars: i64) -> Result<Vec<VectorText>> {
    let sql = format!(
        "SELECT {columns}
           FROM json_each(?1) AS wanted
          CROSS JOIN cf_agents_sessions AS s
             ON s.number = {number}
          CROSS JOIN cf_agents_events AS e
             ON e.session_id = s.id
            AND e.seq = {seq}
          WHERE e.content IS NOT NULL",
        columns = VectorText::columns(chars),
        number = numbers::session_number_sql("wanted.value"),
        seq = numbers::seq_sql("wanted.value")
    );
    load(db, &sql, &[json::encode(&row_numbers)?.into()])
}
