//! The progress of the search index. The index is built backward in batches, from the newest event
//! of the newest session. Each batch is one transaction. Between two batches the object may be
//! evicted, and anything may be written. So one number per session records which of its events are
//! indexed: those from this `seq` on, up to the newest.
//!
//! The number is in the session's own row, if there is one, and otherwise follows from the
//! cursor. A session has its own row if it is ahead of the cursor, because it was written
//! to or searched alone, or behind it, because it is new and long. According to the cursor,
//! sessions with a higher number are complete, the cursor's own session is indexed from the
//! cursor's `seq` on, and lower sessions are not indexed. Writes of new events update the
//! index themselves.

use serde::{Deserialize, Serialize};

use base::columns::find_value;
use base::database::{Database, SqlValue};
use base::error::{Error, Result};
use base::json::{self};
use base::sql;
use store::stored::{SEARCH, VALUE_OF_1, write_stored};

/// Greater than any `seq`: no event of the session is indexed.
pub const NOTHING: i64 = 1 << 32;

/// The value that is stored under [`SEARCH`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StoredProgress {
    /// `true`: every event is indexed.
    Whole(bool),
    /// All sessions are being indexed; the cursor is the progress.
    Building(IndexCursor),
    /// Only sessions are indexed that were searched by callers limited to them. There was
    /// no search in the others.
    OfSessions {
        #[serde(rename = "asked")]
        searched: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexCursor {
    pub number: i64,
    pub from: i64,
}

pub const WHOLE: StoredProgress = StoredProgress::Whole(true);
pub const SEARCHED_SESSIONS: StoredProgress = StoredProgress::OfSessions { searched: true };

/// `None`: the agent was never searched. The statement returns one row even then, so that
/// no caller's row count reveals this.
pub fn find_state(db: &dyn Database) -> Result<Option<StoredProgress>> {
    let sql = sql!("SELECT ", VALUE_OF_1);
    let stored: Option<Option<String>> = find_value(db, sql, &[SEARCH.into()])?;
    parse_state(stored.flatten().as_deref())
}

/// Parses the stored value, if there is one.
pub fn parse_state(stored: Option<&str>) -> Result<Option<StoredProgress>> {
    stored
        .map(|state| {
            json::decode(state).map_err(|_| Error::storage("the index's state can't be read"))
        })
        .transpose()
}

pub fn set_state(db: &dyn Database, state: StoredProgress) -> Result<()> {
    write_stored(db, SEARCH, &state)
}

impl StoredProgress {
    /// The `seq` from which a session without its own row is indexed.
    pub fn default_from(self, number: i64) -> i64 {
        match self {
            StoredProgress::Whole(_) => 0,
            StoredProgress::OfSessions { .. } => NOTHING,
            StoredProgress::Building(cursor) if number > cursor.number => 0,
            StoredProgress::Building(cursor) if number == cursor.number => cursor.from,
            StoredProgress::Building(_) => NOTHING,
        }
    }

    /// The `seq` from which a session is indexed.
    pub fn find_from(self, db: &dyn Database, number: i64) -> Result<i64> {
        if self == WHOLE {
            return Ok(0);
        }
        let own = find_own(db, number)?;
        Ok(own.unwrap_or_else(|| self.default_from(number)))
    }

    /// Stores the `seq` from which a session is indexed. Must run in the transaction that
    /// indexes the events.
    pub fn keep(self, db: &dyn Database, number: i64, from: i64) -> Result<()> {
        if from == self.default_from(number) {
            return match self {
                StoredProgress::Whole(_) => Ok(()),
                _ => forget(db, number),
            };
        }
        if self == WHOLE {
            // Every session except this one is complete.
            set_state(
                db,
                StoredProgress::Building(IndexCursor { number: 0, from: 0 }),
            )?;
        }
        db.run(
            "INSERT INTO cf_agents_search_progress (number, indexed_from)
             VALUES (?1, ?2)
                 ON CONFLICT (number) DO UPDATE
                SET indexed_from = excluded.indexed_from",
            &[number.into(), from.into()],
        )
    }
}

/// The number of a session; `None`: the session doesn't exist.
pub fn find_number(db: &dyn Database, session_id: &str) -> Result<Option<i64>> {
    let sql = "SELECT number FROM cf_agents_sessions WHERE id = ?1";
    find_value(db, sql, &[session_id.into()])
}

/// The `seq` in a session's own row.
pub fn find_own(db: &dyn Database, number: i64) -> Result<Option<i64>> {
    let sql = "SELECT indexed_from FROM cf_agents_search_progress WHERE number = ?1";
    find_value(db, sql, &[number.into()])
}

/// Deletes a session's own row.
pub fn forget(db: &dyn Database, number: i64) -> Result<()> {
    db.run(
        "DELETE FROM cf_agents_search_progress WHERE number = ?1",
        &[SqlValue::from(number)],
    )
}
