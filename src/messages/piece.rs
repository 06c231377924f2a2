//! A piece of a path: neighbouring events up from one, read by one statement in which
//! SQLite makes their messages.
//!
//! An event is plain if its row alone says its message: the event is in no run, short,
//! and has neither slices nor media. If all events of a piece are plain, its messages are
//! one text that Rust never copies. Otherwise the text has the rows of the other events
//! between the messages, so that no row is read twice.
//!
//! A piece ends above an event that an overlay covers. A session with branches has none.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::value::RawValue;

use crate::base::action::{Action, Role};
use crate::base::columns::FromRow;
use crate::base::database::{Database, MAX_VALUE_BYTES, Row, SqlText};
use crate::base::error::{Code, Error, Result};
use crate::base::ids::Id;
use crate::base::rows::parse_row;
use crate::log::row::{EventRow, INLINE_BYTES, ShortRow};
use crate::messages::read::read_path_row;
use crate::messages::tree::path::WalkStep;

/// Events of a first piece, at most.
const FIRST_EVENTS: usize = 64;

/// Bytes that a further piece is to have, if its messages are as long as those before.
const PIECE_BYTES: usize = 1 << 20;

/// Events of at most this many bytes may be plain, however many events a piece has.
const SHORT_BYTES: usize = 8 << 10;

/// The message of an event `e` if the event is plain, as `messages::view` makes it.
/// Otherwise an array: the columns of [`ShortRow`]. ?4: bytes of a plain event, at most.
/// The actions are compared one by one: an `IN` reads a row of a table that SQLite makes.
static SHOWN: LazyLock<String> = LazyLock::new(|| {
    format!(
        r#"
    CASE
      WHEN e.sliced_bytes = 0
       AND e.media IS NULL
       AND octet_length(e.message) <= ?4
      THEN concat('{{"id":', json_quote(e.id), ',', e.message,
                  iif(e.message_dated = 1, '', concat(',"createdAt":', e.created_at)), '}}')
      WHEN e.sliced_bytes = 0
       AND e.message IS NULL
       AND e.metadata IS NULL
       AND octet_length(e.content) <= ?4
       AND (e.action = '{users}' OR e.action = '{systems}')
      THEN concat('{{"id":', json_quote(e.id),
                  ',"role":', iif(e.action = '{users}', '"{user}"', '"{system}"'),
                  ',"parts":[{{"type":"text","text":', json_quote(e.content), '}}]',
                  ',"createdAt":', e.created_at, '}}')
      ELSE json_array({columns})
    END"#,
        columns = ShortRow::columns_within("?4"),
        users = Action::UserMessage.name(),
        systems = Action::SystemInstruction.name(),
        user = Role::User.name(),
        system = Role::System.name(),
    )
});

/// The statement of a piece. ?2: the newest event. ?3: how many numbers of events the
/// piece spans; all are events, unless some were deleted.
///
/// `+?1` and `+?2` are ?1 and ?2: see [`Database::rows`].
static SQL: LazyLock<String> = LazyLock::new(|| {
    format!(
        r#"
    SELECT text, events, first_seq, jumps, octet_length(text), others = 0,
           json_valid(concat('[', text, ']')) AND json_array_length(concat('[', text, ']')) = events
      FROM (SELECT group_concat(shown, ',') AS text,
                   count(*) AS events,
                   min(seq) AS first_seq,
                   sum(shown < '{{') AS others,
                   group_concat(iif(seq - parent_seq = 1, NULL, concat(seq, ' ', parent_seq))) AS jumps
              FROM (SELECT e.seq AS seq, e.parent_seq AS parent_seq, {} AS shown
                      FROM cf_agents_events AS e
                     WHERE e.session_id = +?1
                       AND e.seq <= +?2
                       AND e.seq > iif(EXISTS (SELECT 1
                                                 FROM cf_agents_events
                                                WHERE session_id = +?1
                                                  AND is_branch = 1),
                                       ?2,
                                       max(?2 - ?3,
                                           coalesce((SELECT max(to_seq)
                                                       FROM cf_agents_compactions
                                                      WHERE session_id = +?1
                                                        AND to_seq <= +?2), 0)))
                     ORDER BY e.seq))"#,
        *SHOWN
    )
});

/// Neighbouring events of a path.
pub struct Piece {
    /// The events' messages, or their rows, oldest first, with commas between them.
    pub text: SqlText,
    /// Whether all events are plain, so that `text` is their messages.
    pub is_plain: bool,
    text_bytes: usize,
    /// The events' numbers, newest first.
    seqs: Vec<i64>,
    /// The event above the oldest; 0: none.
    pub above_seq: i64,
}

/// What the piece's statement says beside the text.
struct PieceRow {
    events: i64,
    first_seq: i64,
    jumps: Option<String>,
    text_bytes: i64,
    is_plain: bool,
    is_valid: bool,
}

impl FromRow<'_> for PieceRow {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            events: row.integer(0)?,
            first_seq: row.integer(1)?,
            jumps: row.find_text(2).map(str::to_owned),
            text_bytes: row.integer(3)?,
            is_plain: row.integer(4)? == 1,
            is_valid: row.integer(5)? == 1,
        })
    }
}

/// An event of a piece.
pub enum PieceEvent {
    /// A plain event's message as JSON.
    Plain(String),
    Other(Box<EventRow>),
}

impl Piece {
    /// The piece up from the event at `from_seq`, of at most `limit` events. `below`: the
    /// piece below. `None`: from here on the path has to be walked.
    pub fn find(
        db: &dyn Database,
        session_id: &Id,
        from_seq: i64,
        limit: usize,
        below: Option<&Piece>,
    ) -> Result<Option<Self>> {
        let events = below.map_or(FIRST_EVENTS, Piece::length_of_next);
        let events = events.min(limit).max(1);
        let max_bytes = (MAX_VALUE_BYTES / events).clamp(SHORT_BYTES, INLINE_BYTES);
        let params = [
            session_id.as_str().into(),
            from_seq.into(),
            (events as i64).into(),
            (max_bytes as i64).into(),
        ];
        let found = match db.find_text_and_row(&SQL, &params) {
            Ok(found) => found,
            // The text is longer than SQLite makes one, or a row is damaged.
            Err(error) if error.code == Code::StorageFailed => return Ok(None),
            Err(error) => return Err(error),
        };
        match found {
            Some((Some(text), row)) => Ok(Self::of(text, &row.read()?, from_seq)),
            _ => Ok(None),
        }
    }

    /// `None`: a row is damaged or missing, which a walk reports.
    fn of(text: SqlText, row: &PieceRow, from_seq: i64) -> Option<Self> {
        let jumps = row.jumps.as_deref().map(parse_jumps).unwrap_or_default();
        let mut seqs = Vec::new();
        let mut above_seq = from_seq;
        for _ in 0..row.events {
            seqs.push(above_seq);
            above_seq = jumps.get(&above_seq).copied().unwrap_or(above_seq - 1);
        }
        (row.is_valid && seqs.last() == Some(&row.first_seq)).then_some(Self {
            text,
            is_plain: row.is_plain,
            text_bytes: usize::try_from(row.text_bytes).unwrap_or(usize::MAX),
            seqs,
            above_seq,
        })
    }

    fn length_of_next(&self) -> usize {
        let average = self.text_bytes / self.seqs.len().max(1);
        (PIECE_BYTES / average.max(1)).max(FIRST_EVENTS)
    }

    /// How many events the piece has: at least one.
    pub fn length(&self) -> usize {
        self.seqs.len()
    }

    /// The oldest event.
    pub fn first_seq(&self) -> i64 {
        self.seqs.last().copied().unwrap_or(0)
    }

    /// Bytes of the messages of a plain piece, without the commas between them.
    pub fn bytes(&self) -> usize {
        self.text_bytes + 1 - self.seqs.len()
    }

    /// Visits the events, newest first, each with its number and its parent's.
    pub fn walk(
        self,
        db: &dyn Database,
        session_id: &Id,
        visit: &mut dyn FnMut(i64, i64, PieceEvent) -> Result<WalkStep>,
    ) -> Result<()> {
        let json = ["[", &self.text.into_string(), "]"].concat();
        let events: Vec<&RawValue> =
            serde_json::from_str(&json).map_err(|error| Error::storage(error.to_string()))?;
        let parents = self.seqs.iter().skip(1).chain([&self.above_seq]);
        for ((seq, parent_seq), event) in self.seqs.iter().zip(parents).zip(events.iter().rev()) {
            let event = match event.get() {
                message if message.starts_with('{') => PieceEvent::Plain(message.to_owned()),
                row => {
                    let row = read_path_row(db, session_id, &parse_row(row)?)?;
                    PieceEvent::Other(Box::new(row))
                }
            };
            if matches!(visit(*seq, *parent_seq, event)?, WalkStep::Stop) {
                break;
            }
        }
        Ok(())
    }
}

/// Reads `seq parent_seq,seq parent_seq`.
fn parse_jumps(jumps: &str) -> HashMap<i64, i64> {
    let pairs = jumps.split(',').filter_map(|jump| {
        let (seq, parent_seq) = jump.split_once(' ')?;
        Some((seq.parse().ok()?, parent_seq.parse().ok()?))
    });
    pairs.collect()
}
