//! The rows of the messages that wait for the end of their session's turn. What they contain, and
//! when one starts, is decided in `chat/request/queued_requests.rs`.

use super::slices::cut;
use crate::session::last_turns::load_without_turn;
use crate::tables::WAITING;
use base::columns::{find, find_value, load, load_values};
use base::database::{Database, Delete};
use base::error::Result;
use base::ids::Id;
use base::json;
use base::{row, sql};

row! {
    /// How much waits in a session's line.
    #[derive(Default)]
    pub struct QueueLength {
        pub waiting: i64 = "count(DISTINCT number)",
        pub bytes: i64 = "coalesce(sum(octet_length(text)), 0)",
        /// The numbers at both ends of the line; 0: nothing waits.
        first: i64 = "coalesce(min(number), 0)",
        last: i64 = "coalesce(max(number), 0)",
    }
}

impl QueueLength {
    pub fn find(db: &dyn Database, session_id: &Id) -> Result<Self> {
        let sql = sql!(
            "SELECT ",
            QueueLength::COLUMNS,
            " FROM cf_agents_waiting
              WHERE session_id = ?1"
        );
        let line: Option<Self> = find(db, sql, &[session_id.as_str().into()])?;
        Ok(line.unwrap_or_default())
    }
}

/// A queued request, without its content.
#[derive(Debug)]
pub struct QueuePosition {
    number: i64,
    pub turn_id: String,
    /// The ids of the request's messages, as far as the client gave them.
    pub message_ids: Vec<String>,
}

impl QueuePosition {
    /// Whether the request is queued because it replaces a turn: such a request goes before all
    /// others.
    pub fn is_first(&self) -> bool {
        self.number <= 0
    }
}

row! {
    /// The columns of a request's first part.
    for QueuePosition {
        number: i64 = "number",
        turn_id: String = "turn_id",
        message_ids: &str = "message_ids",
    }
    Ok(Self {
        number,
        turn_id,
        // A list that can't be read names no message.
        message_ids: json::decode(message_ids).unwrap_or_default(),
    })
}

/// A request to store.
pub struct NewWaiting<'a> {
    pub session_id: &'a Id,
    pub turn_id: &'a str,
    /// The ids of the request's messages, as JSON.
    pub message_ids: &'a str,
    pub text: &'a str,
    /// Whether it goes to the head of the queue, and not to its end.
    pub is_first: bool,
}

impl NewWaiting<'_> {
    /// Part of the transaction that has found this length.
    pub fn insert(&self, db: &dyn Database, line: &QueueLength) -> Result<()> {
        let number = if self.is_first {
            line.first.min(1) - 1
        } else {
            line.last.max(0) + 1
        };
        for (part, piece) in cut(self.text).into_iter().enumerate() {
            let ids = if part == 0 { self.message_ids } else { "" };
            db.run(
                "INSERT INTO cf_agents_waiting (session_id, number, part, turn_id, message_ids, text)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                &[
                    self.session_id.as_str().into(),
                    number.into(),
                    (part as i64 + 1).into(),
                    self.turn_id.into(),
                    ids.into(),
                    piece.into(),
                ],
            )?;
        }
        Ok(())
    }
}

/// The queued requests, in the order in which they are answered, at most `limit`.
pub fn load_first(db: &dyn Database, session_id: &Id, limit: i64) -> Result<Vec<QueuePosition>> {
    let sql = sql!(
        "SELECT ",
        QueuePosition::COLUMNS,
        " FROM cf_agents_waiting
          WHERE session_id = ?1
            AND part = 1
          ORDER BY number
          LIMIT ?2 + 0"
    );
    load(db, sql, &[session_id.as_str().into(), limit.into()])
}

/// Whether a request waits in this session.
pub fn has_any(db: &dyn Database, session_id: &Id) -> Result<bool> {
    let sql = "SELECT 1 FROM cf_agents_waiting WHERE session_id = ?1 LIMIT 1";
    Ok(find_value::<i64>(db, sql, &[session_id.as_str().into()])?.is_some())
}

/// The content of a request.
pub fn load_text(db: &dyn Database, session_id: &Id, position: &QueuePosition) -> Result<String> {
    let parts: Vec<String> = load_values(
        db,
        "SELECT text
           FROM cf_agents_waiting
          WHERE session_id = ?1
            AND number = ?2
          ORDER BY part",
        &[session_id.as_str().into(), position.number.into()],
    )?;
    Ok(parts.concat())
}

/// Deletes a request. Part of the transaction that accepts it.
pub fn forget(db: &dyn Database, session_id: &Id, position: &QueuePosition) -> Result<()> {
    let row = [session_id.as_str().into(), position.number.into()];
    Delete::from(WAITING, "session_id = ?1 AND number = ?2", &row).run(db)?;
    Ok(())
}

/// Sessions with queued messages though no turn is open: the object was evicted between two turns,
/// or there was no memory for the next turn.
pub fn load_sessions_left(db: &dyn Database) -> Result<Vec<Id>> {
    load_without_turn(db, "cf_agents_waiting")
}
