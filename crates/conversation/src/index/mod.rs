//! The index of the events' words, and searches in it. An agent's first search starts to build the
//! index, which is exact from then on. It returns candidates, and the ranking of the crate `search`
//! decides which are best.
//!
//! This file writes and removes the index's rows. The cost of either doesn't grow with the index.
//! Nothing is done for an agent that never searched.

pub mod agent_candidates;
pub mod build;
pub mod candidates;
pub mod find;
pub mod indexed;
pub mod order;
mod phrases;
pub mod prefix_words;
pub mod progress;
mod read;
pub mod request;
mod session_candidates;
mod session_scan;
pub mod term_counts;
mod texts;

use crate::json_schema::JsonSchema;
use serde::Serialize;

use crate::index::progress::{StoredProgress, find_state};
use crate::tables::{EVENT_VECTORS, EVENTS_SEARCH};
use base::columns::{find, find_value};
use base::database::{Database, Delete, MAX_LIST_BYTES, SqlValue};
use base::error::{Error, Result};
use base::json::{self, json};
use base::numbers::{self, MAX_SEQ, ROW_NUMBERS_END, fits_row_number};
use base::sql;
use search::document::{EventText, MAX_TEXT_BYTES, about_column, read_text};
use search::row_words::{KnownStems, RowWords};
use search::words::WordSplitter;
use store::stored::{SEARCH, VALUE_OF_2};

/// The lowest rowid of a row with a further part of a long text.
pub const FIRST_PART: i64 = ROW_NUMBERS_END;

/// From here on, each session's parts have a range of their own. Parts that an earlier build wrote
/// are below, those of all sessions in one range.
pub const OWN_PARTS: i64 = FIRST_PART + MAX_SEQ + 1;

/// The completeness of the search index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IndexState {
    /// There was no search yet, so there is no index.
    None,
    /// Some events are not in the index yet.
    Building,
    /// The index contains every event.
    Complete,
}

pub fn find_index_state(db: &dyn Database) -> Result<IndexState> {
    Ok(match find_state(db)? {
        None => IndexState::None,
        Some(progress::WHOLE) => IndexState::Complete,
        Some(_) => IndexState::Building,
    })
}

/// How much of a session is in the index.
#[derive(Clone, Copy)]
pub struct SessionIndex {
    pub number: i64,
    state: StoredProgress,
    /// The session's events from this `seq` on are in the index.
    from: i64,
}

impl SessionIndex {
    /// Whether the index covers this event. An event that is not in the index yet is read later,
    /// with the text that it has by then.
    pub fn covers(&self, seq: i64) -> bool {
        seq >= self.from
    }

    /// Whether new events, of which `seq` is the first, must be indexed. If so, stores that the
    /// session is indexed from `seq` on. Must run in the transaction that indexes the events.
    pub fn admit(&self, db: &dyn Database, seq: i64) -> Result<bool> {
        if self.covers(seq) {
            return Ok(true);
        }
        self.state.keep(db, self.number, seq)?;
        Ok(true)
    }
}

/// `None`: this session was not searched, or does not exist.
pub fn find_index(db: &dyn Database, session_id: &str) -> Result<Option<SessionIndex>> {
    // One statement and one row, whoever has searched: the rows that a caller reads reveal nothing
    // about other sessions.
    let sql = sql!(
        "SELECT s.number, ",
        VALUE_OF_2,
        " FROM cf_agents_sessions AS s
          WHERE s.id = ?1"
    );
    let found: Option<(i64, Option<String>)> = find(db, sql, &[session_id.into(), SEARCH.into()])?;
    match found {
        Some((number, stored)) => index_of(db, number, stored.as_deref()),
        None => Ok(None),
    }
}

/// As [`find_index`], for the session with this number. `stored`: the index's state, as
/// it is stored under [`SEARCH`](store::stored::SEARCH).
pub fn index_of(
    db: &dyn Database,
    number: i64,
    stored: Option<&str>,
) -> Result<Option<SessionIndex>> {
    let Some(state) = progress::parse_state(stored)? else {
        return Ok(None);
    };
    let from = state.find_from(db, number)?;
    // Other sessions were searched, each by callers who see only that session.
    if state == progress::SEARCHED_SESSIONS && from == progress::NOTHING {
        return Ok(None);
    }
    Ok(Some(SessionIndex {
        number,
        state,
        from,
    }))
}

/// Collects rows for the index and writes them, one statement per full list.
pub struct IndexWriter<'a> {
    db: &'a dyn Database,
    rows: Vec<serde_json::Value>,
    bytes: usize,
    known: KnownStems,
}

impl<'a> IndexWriter<'a> {
    pub fn new(db: &'a dyn Database) -> Self {
        Self {
            db,
            rows: Vec::new(),
            bytes: 0,
            known: KnownStems::default(),
        }
    }

    /// Indexes an event: one row, and further rows that lead to the event if its text is long.
    /// Words are split and written as they arrive: a text of any length needs one row's memory.
    pub fn add(&mut self, number: i64, seq: i64, event: &EventText<'_>) -> Result<()> {
        if !fits_row_number(number, seq) {
            return Ok(());
        }
        let about = about_column(event);
        let mut part = RowWords::default();
        let mut parts = 0;
        let mut outcome = Ok(());
        let mut known = std::mem::take(&mut self.known);
        {
            let known = &mut known;
            let mut take = |word: &str| {
                if outcome.is_err() {
                    return;
                }
                if part.is_full() {
                    let full = std::mem::take(&mut part);
                    outcome = self.push_part(number, seq, parts, full, &about);
                    parts += 1;
                }
                part.add(word, known);
            };
            let mut cutter = WordSplitter::default();
            read_text(event, MAX_TEXT_BYTES, &mut |piece| {
                cutter.read(piece, &mut take);
            });
            cutter.end(&mut take);
        }
        self.known = known;
        outcome?;
        self.push_part(number, seq, parts, part, &about)
    }

    fn push_part(
        &mut self,
        number: i64,
        seq: i64,
        parts_before: usize,
        part: RowWords,
        about: &str,
    ) -> Result<()> {
        let id = match parts_before {
            0 => numbers::row_number(number, seq),
            _ => self.new_part(number, seq)?,
        };
        self.push(id, &part.stems, &part.words, about)
    }

    fn new_part(&self, number: i64, seq: i64) -> Result<i64> {
        let sql = "INSERT INTO cf_agents_search_parts (rowid_, number, seq)
                   SELECT coalesce(max(rowid_) + 1, ?1), ?3, ?4
                     FROM cf_agents_search_parts
                    WHERE rowid_ BETWEEN ?1 AND ?2
                RETURNING rowid_";
        let params = [
            numbers::part_row_number(number, 0).into(),
            numbers::part_row_number(number, MAX_SEQ).into(),
            number.into(),
            seq.into(),
        ];
        find_value(self.db, sql, &params)?.ok_or_else(|| Error::storage("a part without a number"))
    }

    fn push(&mut self, rowid: i64, stems: &str, words: &str, about: &str) -> Result<()> {
        let bytes = stems.len() + words.len() + about.len() + 64;
        if self.bytes + bytes > MAX_LIST_BYTES {
            self.flush()?;
        }
        self.bytes += bytes;
        self.rows.push(json!([rowid, stems, words, about]));
        Ok(())
    }

    pub fn flush(&mut self) -> Result<()> {
        if self.rows.is_empty() {
            return Ok(());
        }
        self.bytes = 0;
        let rows = SqlValue::Text(json::encode(&std::mem::take(&mut self.rows))?);
        self.db.run(
            "INSERT INTO cf_agents_search (rowid, stems, words, about)
             SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3
               FROM json_each(?1)",
            &[rows],
        )
    }
}

/// Removes events of one session, and their vectors. Only searches make vectors, so
/// without an index there are none. Must run in the transaction that deletes or changes
/// the events.
pub fn remove(db: &dyn Database, index: &SessionIndex, seqs: &[i64]) -> Result<()> {
    let numbered = seqs
        .iter()
        .filter(|seq| fits_row_number(index.number, **seq));
    let rowids: Vec<i64> = numbered
        .map(|seq| numbers::row_number(index.number, *seq))
        .collect();
    let rowids = [SqlValue::Text(json::encode(&rowids)?)];
    Delete::from(
        EVENTS_SEARCH,
        "rowid IN (SELECT value FROM json_each(?1))",
        &rowids,
    )
    .run(db)?;
    Delete::from(
        EVENT_VECTORS,
        "place IN (SELECT value FROM json_each(?1))",
        &rowids,
    )
    .run(db)?;
    let params: [SqlValue; 2] = [index.number.into(), SqlValue::Text(json::encode(&seqs)?)];
    Delete::from(
        EVENTS_SEARCH,
        "rowid IN (SELECT rowid_
                     FROM cf_agents_search_parts
                    WHERE number = ?1
                      AND seq IN (SELECT value FROM json_each(?2)))",
        &params,
    )
    .run(db)?;
    db.run(
        "DELETE FROM cf_agents_search_parts
          WHERE number = ?1
            AND seq IN (SELECT value FROM json_each(?2))",
        &params,
    )
}

/// Removes a whole session. Must run while the session's events still exist.
pub fn remove_session(db: &dyn Database, session_id: &str) -> Result<()> {
    let Some(index) = find_index(db, session_id)? else {
        return Ok(());
    };
    if !fits_row_number(index.number, 0) {
        return Ok(());
    }
    Delete::from(
        EVENT_VECTORS,
        "place BETWEEN ?1 AND ?2",
        &[
            numbers::row_number(index.number, 0).into(),
            numbers::row_number(index.number, MAX_SEQ).into(),
        ],
    )
    .run(db)?;
    let of_session = format!(
        "rowid IN (SELECT {row_number}
                     FROM cf_agents_sessions AS s
                     JOIN cf_agents_events AS e ON e.session_id = s.id
                    WHERE s.id = ?1
                      AND e.seq <= {MAX_SEQ})",
        row_number = numbers::row_number_sql("s.number", "e.seq")
    );
    Delete::from(EVENTS_SEARCH, &of_session, &[session_id.into()]).run(db)?;
    Delete::from(
        EVENTS_SEARCH,
        "rowid IN (SELECT rowid_ FROM cf_agents_search_parts WHERE number = ?1)",
        &[index.number.into()],
    )
    .run(db)?;
    db.run(
        "DELETE FROM cf_agents_search_parts WHERE number = ?1",
        &[index.number.into()],
    )?;
    // A later session may get this number.
    progress::forget(db, index.number)
}
