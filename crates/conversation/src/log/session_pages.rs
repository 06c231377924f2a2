//! Pages of sessions, newest activity first, in the order of `conversation/session/activity.rs`.

use super::sessions::{ACTIVE_AT, HEAD_JSON, METADATA_JSON, USAGE_JSON, shown_sessions};
use crate::session::activity::{SessionPosition, load_positions};
use base::columns::{find_value, load};
use base::database::{Database, Row, SqlValue};
use base::error::Result;
use base::filter::{Filter, FilteredColumns};
use base::ids::Id;
use base::json;
use base::{row, sql};

/// Metadata up to this length is part of a page: 500 sessions with this much are 4 MiB,
/// the longest page. Of sessions with longer metadata, fewer fit.
const SHORT_METADATA_BYTES: usize = 8 << 10;
const MAX_PAGE_BYTES: usize = 4 << 20;

/// The most bytes at the end of a cursor of an earlier build.
const MAX_EARLIER_BYTES: usize = 4_000;

/// How many sessions a page with a filter scans.
const MAX_FILTERED: i64 = 500;

/// The end of a page of sessions: the next page has sessions with earlier activity.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionCursor(SessionPosition);

impl SessionCursor {
    /// Reads `ACTIVE-NUMBER`. An earlier build wrote more after it.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '-');
        let position = SessionPosition {
            active_at: parts.next()?.parse().ok()?,
            number: parts.next()?.parse().ok()?,
        };
        parts
            .next()
            .is_none_or(is_of_earlier_build)
            .then_some(Self(position))
    }

    fn render(&self) -> String {
        let SessionPosition { active_at, number } = self.0;
        format!("{active_at}-{number}")
    }
}

/// Whether this follows the position in a cursor of an earlier build: three numbers, and numbers of
/// sessions in base64.
fn is_of_earlier_build(rest: &str) -> bool {
    let mut parts = rest.splitn(4, '-');
    let are_numbers = (0..3).all(|_| parts.next().is_some_and(|part| part.parse::<i64>().is_ok()));
    let is_base64 = |part: &str| {
        let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        part.len() <= MAX_EARLIER_BYTES && part.bytes().all(is_letter)
    };
    are_numbers && parts.next().is_some_and(is_base64)
}

/// The content of a page of sessions.
#[derive(Clone, Copy)]
pub struct WantedSessions<'a> {
    pub limit: i64,
    pub before: Option<&'a SessionCursor>,
    pub only: Option<&'a Id>,
    /// The filter that a session must pass.
    pub filter: Option<&'a Filter>,
}

/// A page of sessions as JSON. `only` narrows the page to one session, for a caller who
/// may see no other session; the rows of others are not read.
pub fn list_sessions(db: &dyn Database, wanted: &WantedSessions<'_>) -> Result<String> {
    let WantedSessions {
        limit: most,
        before,
        only,
        filter,
    } = *wanted;
    // With a filter, more sessions are scanned than the page shows.
    let limit = match filter {
        Some(_) => MAX_FILTERED,
        None => most,
    };
    let last = before.map(|cursor| cursor.0);
    // One more shows whether the page is the last.
    let found = match only {
        Some(id) => find_only(db, id, last)?,
        None => load_positions(db, limit + 1, last)?,
    };
    let limit = usize::try_from(limit).unwrap_or(0);
    let page = found.get(..limit).unwrap_or(&found);
    let scanned = page.len();
    let passing: Vec<(usize, SessionPosition)> = match filter {
        Some(filter) => load_passing(db, page, filter, most)?,
        None => page.iter().copied().enumerate().collect(),
    };
    let positions: Vec<SessionPosition> = passing.iter().map(|(_, position)| *position).collect();
    let rows = load_shown(db, &positions)?;
    let mut rows: Vec<ListedSession> = rows.iter().map(Row::read).collect::<Result<_>>()?;
    // To sort the rows, SQLite would read each again.
    rows.sort_by_key(|row| row.index);
    let mut sessions = String::new();
    let mut shown = 0_usize;
    for row in &rows {
        let session = session_of(db, row)?;
        if shown > 0 && sessions.len() + session.len() > MAX_PAGE_BYTES {
            break;
        }
        if shown > 0 {
            sessions.push(',');
        }
        sessions.push_str(&session);
        shown += 1;
    }
    // The page ends with the last session that it shows, or, if the filter let no more through,
    // with the last one that was scanned.
    let is_whole = shown == rows.len() && (filter.is_none() || (shown as i64) < most);
    let end = match (is_whole, shown.checked_sub(1)) {
        (false, Some(last)) => passing.get(last).map_or(0, |(index, _)| index + 1),
        _ => scanned,
    };
    let cursor = match end.checked_sub(1).and_then(|last| page.get(last)) {
        Some(last) if end < found.len() => format!("\"{}\"", SessionCursor(*last).render()),
        Some(_) | None => "null".to_owned(),
    };
    Ok(format!(r#"{{"sessions":[{sessions}],"cursor":{cursor}}}"#))
}

/// Which of these sessions pass the filter: the first `most`, each with its index.
fn load_passing(
    db: &dyn Database,
    page: &[SessionPosition],
    filter: &Filter,
    most: i64,
) -> Result<Vec<(usize, SessionPosition)>> {
    let sql = format!(
        "SELECT wanted.key, s.number
           FROM json_each(?1) AS wanted
          CROSS JOIN cf_agents_sessions AS s
             ON s.number = wanted.value
          WHERE {}
          ORDER BY wanted.key
          LIMIT ?3 + 0",
        filter.condition(&FilteredColumns::of_session(), "?2")
    );
    let numbers: Vec<i64> = page.iter().map(|position| position.number).collect();
    let params: [SqlValue; 3] = [
        json::encode(&numbers)?.into(),
        filter.param().into(),
        most.into(),
    ];
    let passing: Vec<(i64, i64)> = load(db, &sql, &params)?;
    let positions = passing.into_iter().filter_map(|(index, _)| {
        let index = usize::try_from(index).ok()?;
        Some((index, *page.get(index)?))
    });
    Ok(positions.collect())
}

/// The one session that the caller may see, if its position is after `last`.
fn find_only(
    db: &dyn Database,
    id: &Id,
    last: Option<SessionPosition>,
) -> Result<Vec<SessionPosition>> {
    let sql = format!(
        "SELECT {ACTIVE_AT}, s.number
           FROM cf_agents_sessions AS s
          WHERE s.id = +?1"
    );
    let mut positions: Vec<SessionPosition> = load(db, &sql, &[id.as_str().into()])?;
    // The number in a cursor depends on all sessions, so it is ignored for this caller.
    positions.retain(|position| last.is_none_or(|last| position.active_at < last.active_at));
    Ok(positions)
}

row! {
    /// A session `s` of a page: the three parts of its JSON.
    struct ListedSession<'r>() {
        number: i64 = "s.number",
        head: &'r str = sql!(HEAD_JSON, r#" || ',"metadata":'"#),
        /// `None`: the metadata is long, and a separate statement reads it, if the page still has
        /// space for it.
        metadata: Option<&'r str> = format!(
            "iif(octet_length(s.metadata) > {SHORT_METADATA_BYTES}, NULL, {METADATA_JSON})"
        ),
        usage: &'r str = sql!(
            USAGE_JSON,
            r#" || iif(json_valid(coalesce(s.metadata, 'null')), '', ',"corrupt":true') || '}'"#
        ),
        /// Its index in the list of wanted sessions.
        index: i64 = "s.wanted_index",
    }
}

/// The sessions at these positions, in any order: rows to read as [`ListedSession`].
fn load_shown(db: &dyn Database, positions: &[SessionPosition]) -> Result<Vec<Row>> {
    let shown = shown_sessions(
        "wanted.key AS wanted_index, wanted.value ->> 0",
        "json_each(?1) AS wanted
          CROSS JOIN cf_agents_sessions AS s
             ON s.number = wanted.value ->> 1",
    );
    let sql = format!("SELECT {} FROM ({shown}) AS s", ListedSession::columns());
    let positions = positions
        .iter()
        .map(|position| [position.active_at, position.number]);
    let positions: Vec<[i64; 2]> = positions.collect();
    db.rows(&sql, &[json::encode(&positions)?.into()])
}

/// A session's JSON, made from its row of a page.
fn session_of(db: &dyn Database, row: &ListedSession<'_>) -> Result<String> {
    let (head, usage) = (row.head, row.usage);
    if let Some(metadata) = row.metadata {
        return Ok(format!("{head}{metadata}{usage}"));
    }
    let sql = format!("SELECT {METADATA_JSON} FROM cf_agents_sessions AS s WHERE s.number = ?1");
    let metadata: Option<Option<String>> = find_value(db, &sql, &[row.number.into()])?;
    let metadata = metadata.flatten();
    Ok(format!(
        "{head}{}{usage}",
        metadata.as_deref().unwrap_or("null")
    ))
}
