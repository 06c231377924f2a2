//! A piece of a path: consecutive events up from one, read by one statement in which SQLite renders
//! their messages.
//!
//! An event is plain if its message can be rendered from only its row: the event is in no run,
//! short, and has neither slices nor media. If all events of a piece are plain, its messages are
//! one text that Rust only checks. Otherwise the text has the rows of the other events between the
//! messages, so that no row is read twice.
//!
//! A piece ends above an event that an overlay covers. A session with branches has none.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::log::row::{EventRow, INLINE_BYTES, ShortRow};
use crate::log::tip::IS_NEWEST_LEAF;
use crate::messages::page::{HistoryCursor, PageQuery, tail_sql};
use crate::messages::read::read_path_row;
use crate::messages::tree::path::WalkStep;
use base::action::{Action, Role};
use base::database::{Database, MAX_VALUE_BYTES, SqlText};
use base::error::{Error, Result, StorageFailure};
use base::ids::Id;
use base::json::{self, RawValue};
use base::row;
use base::rows::parse_row;

/// Events of a first piece, at most.
const FIRST_EVENTS: usize = 64;

/// The most bytes of a further piece, if its messages are as long as those before.
const PIECE_BYTES: usize = 1 << 20;

/// Events of at most this many bytes may be plain, however many events a piece has.
const SHORT_BYTES: usize = 8 << 10;

/// The JSON of most messages: these parts with a string between each two of them, and then a time.
const COMMON: [&str; 4] = [
    r#"{"id":"#,
    r#","role":"#,
    r#","parts":[{"type":"text","text":"#,
    r#"}],"createdAt":"#,
];

/// The message of an event `e` if the event is plain, as `crate::messages::view` makes it.
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
        columns = ShortRow::columns(&"?4"),
        users = Action::UserMessage.name(),
        systems = Action::SystemInstruction.name(),
        user = Role::User.name(),
        system = Role::System.name(),
    )
});

/// The statement of a piece. `range`: which numbers its events have. ?3: how many numbers
/// the piece spans, at most; all are events, unless some were deleted. ?6: bytes of the
/// messages of a whole page, at most. ?7: a page's head. ?8: how many messages a page has.
///
/// If the messages are a whole page, the text is that page, so that nothing has to assemble it.
/// `+?1` and `+?2` are ?1 and ?2: see [`Database::rows`].
fn sql_of(range: &str) -> String {
    format!(
        "
    SELECT CAST(iif(sum(shown < '{{') = 0
                    AND octet_length(group_concat(shown, ',')) + 1 - count(*) <= ?6
                    AND (count(*) >= ?8 OR min(parent_seq) = 0),
                    concat(?7, group_concat(shown, ','), {tail}),
                    group_concat(shown, ',')) AS BLOB),
           {columns}
      FROM (SELECT e.seq AS seq, e.parent_seq AS parent_seq, {shown} AS shown
              FROM cf_agents_events AS e
             WHERE e.session_id = +?1
               AND {range}
             ORDER BY e.seq)",
        tail = tail_sql("?7"),
        columns = PieceRow::COLUMNS,
        shown = *SHOWN
    )
}

/// The piece up from the event ?2.
static SQL: LazyLock<String> = LazyLock::new(|| {
    sql_of(
        "e.seq <= +?2
               AND e.seq > iif(EXISTS (SELECT 1
                                         FROM cf_agents_events
                                        WHERE session_id = +?1
                                          AND is_branch = 1),
                               ?2,
                               max(?2 - ?3,
                                   coalesce((SELECT max(to_seq)
                                               FROM cf_agents_compactions
                                              WHERE session_id = +?1
                                                AND to_seq <= +?2), 0)))",
    )
});

/// The piece up from a session's newest event, if that is the leaf. The piece spans as many
/// events as would have ?5 bytes if all were as long as the newest. If others are much
/// longer, the text may be too long for SQLite, and smaller pieces are read.
static NEWEST_SQL: LazyLock<String> = LazyLock::new(|| {
    sql_of(&format!(
        "e.seq > (SELECT max(newest.seq - min(?3, 1 + ?5 / (1 + coalesce(octet_length(newest.message), octet_length(json_quote(newest.content))))),
                             coalesce((SELECT max(to_seq)
                                         FROM cf_agents_compactions
                                        WHERE session_id = +?1), 0))
                     FROM cf_agents_sessions AS s
                    CROSS JOIN cf_agents_events AS newest
                       ON newest.session_id = s.id
                      AND newest.seq = (SELECT max(seq) FROM cf_agents_events WHERE session_id = +?1)
                    WHERE s.id = +?1
                      AND {IS_NEWEST_LEAF}
                      AND NOT EXISTS (SELECT 1
                                        FROM cf_agents_events
                                       WHERE session_id = +?1
                                         AND is_branch = 1))"
    ))
});

/// Consecutive events of a path.
pub struct Piece {
    /// The events' messages, oldest first, with commas between them. The text of a whole
    /// page has the text around the messages, too.
    pub text: SqlText,
    /// Whether `text` is a whole page.
    pub is_page: bool,
    /// The contents of `text`, if an event is not plain: its row is at its message's index.
    mixed: Option<String>,
    text_bytes: usize,
    /// The events' numbers, newest first.
    seqs: Vec<i64>,
    /// The event above the oldest; 0: none.
    pub above_seq: i64,
}

/// How a session's newest events can be read.
pub enum NewestPiece {
    Piece(Piece),
    /// Too long for one text.
    TooLong,
    /// No piece: the path must be walked.
    Scattered,
}

row! {
    /// The results of the piece's statement in addition to the text.
    struct PieceRow {
        events: i64 = "count(*)",
        last_seq: i64 = "max(seq)",
        first_seq: i64 = "min(seq)",
        above_seq: i64 = "min(parent_seq)",
        /// The events that don't directly follow their parents, each with its parent.
        jumps: Option<String> =
            "group_concat(iif(seq - parent_seq = 1, NULL, concat(seq, ' ', parent_seq)))",
        text_bytes: i64 = "octet_length(group_concat(shown, ','))",
        is_plain: bool = "sum(shown < '{') = 0",
    }
}

/// An event of a piece.
pub enum PieceEvent {
    /// A plain event's message as JSON.
    Plain(String),
    Other(Box<EventRow>),
}

impl Piece {
    /// The piece up from a session's newest event, of at most `ask.limit` events.
    pub fn find_newest(db: &dyn Database, session_id: &Id, ask: PageQuery) -> Result<NewestPiece> {
        let plain_bytes = plain_bytes(ask.limit.min(FIRST_EVENTS));
        Self::read(
            db,
            session_id,
            &NEWEST_SQL,
            (0, ask.limit, plain_bytes),
            ask,
        )
    }

    /// The piece up from the event at `from_seq`. `below`: the pieces below, newest first. `None`:
    /// from here on the path must be walked.
    pub fn find(
        db: &dyn Database,
        session_id: &Id,
        from_seq: i64,
        ask: PageQuery,
        below: &[Piece],
    ) -> Result<Option<Self>> {
        let used_bytes: usize = below.iter().map(Piece::bytes).sum();
        let left_bytes = ask.max_bytes.saturating_sub(used_bytes);
        let left = ask.limit - below.iter().map(Piece::length).sum::<usize>();
        let mut events = below
            .last()
            .map_or(FIRST_EVENTS, |piece| piece.length_of_next(left_bytes))
            .min(left);
        let ask = PageQuery {
            // Only a first piece can be a page.
            max_bytes: if below.is_empty() { ask.max_bytes } else { 0 },
            ..ask
        };
        loop {
            let size = (from_seq, events, plain_bytes(events));
            match Self::read(db, session_id, &SQL, size, ask)? {
                NewestPiece::Piece(piece) if piece.last_seq() == from_seq => {
                    return Ok(Some(piece));
                }
                NewestPiece::TooLong if events > 1 => events = events.div_ceil(4),
                _ => return Ok(None),
            }
        }
    }

    fn read(
        db: &dyn Database,
        session_id: &Id,
        sql: &str,
        (from_seq, events, plain_bytes): (i64, usize, usize),
        ask: PageQuery,
    ) -> Result<NewestPiece> {
        let params = [
            session_id.as_str().into(),
            from_seq.into(),
            (events.max(1) as i64).into(),
            (plain_bytes as i64).into(),
            (PIECE_BYTES.min(ask.max_bytes) as i64).into(),
            (ask.max_bytes as i64).into(),
            ask.form.head().into(),
            (ask.limit as i64).into(),
        ];
        let piece = match db.find_text_and_row(sql, &params) {
            Ok(Some((Some(text), row))) => Self::of(text, &row.read()?, ask),
            Ok(_) => None,
            Err(error) => match error.storage_failure() {
                Some(StorageFailure::TextTooLong) => return Ok(NewestPiece::TooLong),
                // A walk reports the row.
                Some(StorageFailure::DamagedJson) => None,
                _ => return Err(error),
            },
        };
        Ok(piece.map_or(NewestPiece::Scattered, NewestPiece::Piece))
    }

    /// `None`: a row is damaged or missing, which a walk reports.
    fn of(text: SqlText, row: &PieceRow, ask: PageQuery) -> Option<Self> {
        let jumps = row.jumps.as_deref().map(parse_jumps).unwrap_or_default();
        let mut seqs = Vec::new();
        let mut above_seq = row.last_seq;
        for _ in 0..row.events {
            seqs.push(above_seq);
            above_seq = jumps.get(&above_seq).copied().unwrap_or(above_seq - 1);
        }
        if seqs.last() != Some(&row.first_seq) || above_seq != row.above_seq {
            return None;
        }
        let mut piece = Self {
            text,
            is_page: false,
            mixed: None,
            text_bytes: usize::try_from(row.text_bytes).unwrap_or(usize::MAX),
            seqs,
            above_seq,
        };
        piece.is_page = row.is_plain
            && piece.bytes() <= ask.max_bytes
            && (piece.length() >= ask.limit || above_seq == 0);
        // The text is JSON only if no row is damaged.
        let json = piece.text.copy_bytes();
        let messages = if piece.is_page {
            json.strip_prefix(ask.form.head().as_bytes())?
                .strip_suffix(ask.form.tail(piece.cursor()).as_bytes())?
        } else {
            &json
        };
        if json::count_values(messages, &COMMON) != Some(piece.length()) {
            return None;
        }
        if !row.is_plain {
            piece.mixed = Some(String::from_utf8(json).ok()?);
        }
        Some(piece)
    }

    /// Whether `text` fits unchanged into the rest of a page, which is `left`.
    pub fn fits(&self, left: PageQuery) -> bool {
        self.mixed.is_none() && self.bytes() <= left.max_bytes && self.length() <= left.limit
    }

    /// The cursor of the page above.
    pub fn cursor(&self) -> Option<HistoryCursor> {
        HistoryCursor::above(self.first_seq(), self.above_seq)
    }

    /// How many events the next piece has, if `left_bytes` are left of the page and its
    /// messages are as long as this piece's.
    fn length_of_next(&self, left_bytes: usize) -> usize {
        let average = self.text_bytes / self.seqs.len().max(1);
        PIECE_BYTES.min(left_bytes) / average.max(1) + 1
    }

    /// How many events the piece has: at least one.
    pub fn length(&self) -> usize {
        self.seqs.len()
    }

    fn last_seq(&self) -> i64 {
        self.seqs.first().copied().unwrap_or(0)
    }

    fn first_seq(&self) -> i64 {
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
        let messages = self.mixed.unwrap_or_else(|| self.text.copy());
        let json = ["[", &messages, "]"].concat();
        drop(messages);
        let events: Vec<&RawValue> =
            json::decode(&json).map_err(|_| Error::storage("messages that are not JSON"))?;
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

/// Bytes of a plain event, at most: its share of the longest text.
fn plain_bytes(events: usize) -> usize {
    (MAX_VALUE_BYTES / events.max(1)).clamp(SHORT_BYTES, INLINE_BYTES)
}

/// Reads `seq parent_seq,seq parent_seq`.
fn parse_jumps(jumps: &str) -> HashMap<i64, i64> {
    let pairs = jumps.split(',').filter_map(|jump| {
        let (seq, parent_seq) = jump.split_once(' ')?;
        Some((seq.parse().ok()?, parent_seq.parse().ok()?))
    });
    pairs.collect()
}
