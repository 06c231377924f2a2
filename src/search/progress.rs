//! How far the index has come. It is built from the newest event of the newest
//! session backwards, in bites, each a transaction; between any two of them the
//! object may die, and everything may be written. So of each session one number
//! says which of its events are in: those from it on, to its newest.
//!
//! Three places say that number. The cursor: sessions above its own are whole, its
//! own is in from so far on, and nothing is in of those below. A row of a session,
//! before the cursor: of one that is ahead, since it was written to or searched by
//! itself, or behind, since it is new and long. And the newest writes, which tell
//! the index themselves.

use serde::{Deserialize, Serialize};

use crate::base::columns::find_value;
use crate::base::database::{Database, SqlValue};
use crate::base::error::{Error, Result};
use crate::store::stored::{find_stored, write_stored};

const KEY: &str = "search";

/// Above any `seq`: nothing of a session is in.
pub const NOTHING: i64 = 1 << 32;

/// What the configuration says under [`KEY`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum StoredProgress {
    /// `true`: every event is in.
    Whole(bool),
    /// Everything is on its way in.
    Building(IndexCursor),
    /// Only sessions that were searched by callers who may see no other: nobody
    /// has asked for the rest.
    Asked { asked: bool },
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexCursor {
    pub number: i64,
    pub from: i64,
}

pub const WHOLE: StoredProgress = StoredProgress::Whole(true);
pub const ASKED: StoredProgress = StoredProgress::Asked { asked: true };

/// `None`: the agent has never searched, and pays nothing. One row read.
pub fn find_state(db: &dyn Database) -> Result<Option<StoredProgress>> {
    find_stored(db, KEY)?
        .map(|state| {
            serde_json::from_str(&state)
                .map_err(|_| Error::storage("the index's state can't be read"))
        })
        .transpose()
}

pub fn set_state(db: &dyn Database, state: StoredProgress) -> Result<()> {
    write_stored(db, KEY, &state)
}

impl StoredProgress {
    /// Where a session without a row of its own is in from.
    pub fn usual_from(self, number: i64) -> i64 {
        match self {
            StoredProgress::Whole(_) => 0,
            StoredProgress::Asked { .. } => NOTHING,
            StoredProgress::Building(cursor) if number > cursor.number => 0,
            StoredProgress::Building(cursor) if number == cursor.number => cursor.from,
            StoredProgress::Building(_) => NOTHING,
        }
    }

    /// From where on a session is in.
    pub fn find_from(self, db: &dyn Database, number: i64) -> Result<i64> {
        if self == WHOLE {
            return Ok(0);
        }
        let own = find_own(db, number)?;
        Ok(own.unwrap_or_else(|| self.usual_from(number)))
    }

    /// Keeps where a session is in from. Part of the transaction that puts it there.
    pub fn keep(self, db: &dyn Database, number: i64, from: i64) -> Result<()> {
        if from == self.usual_from(number) {
            return match self {
                StoredProgress::Whole(_) => Ok(()),
                _ => forget(db, number),
            };
        }
        if self == WHOLE {
            // Whole but for this session.
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

/// The number of a session; `None`: there is no such session.
pub fn find_number(db: &dyn Database, session_id: &str) -> Result<Option<i64>> {
    let sql = "SELECT number FROM cf_agents_sessions WHERE id = ?1";
    find_value(db, sql, &[session_id.into()])
}

/// What a session's own row says.
pub fn find_own(db: &dyn Database, number: i64) -> Result<Option<i64>> {
    let sql = "SELECT indexed_from FROM cf_agents_search_progress WHERE number = ?1";
    find_value(db, sql, &[number.into()])
}

/// Forgets a session's own row.
pub fn forget(db: &dyn Database, number: i64) -> Result<()> {
    db.run(
        "DELETE FROM cf_agents_search_progress WHERE number = ?1",
        &[SqlValue::from(number)],
    )
}
