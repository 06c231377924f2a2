//! Overlays: stored summaries. Readers of a path see a summary instead of a range of the
//! path. An overlay hides rows and never changes one. This file reads overlays;
//! `overlay_writes.rs` writes them.
//!
//! A walk up a path encounters an overlay at the newest event that the overlay covers. A
//! branch that leaves the range in its middle therefore doesn't encounter the overlay. If
//! two overlays overlap, the reader sees the one that ends later. If both end at the same
//! event, the reader sees the wider one.

use super::path::{is_on_path, load_segments};
use base::action::Action;
use base::budget::{AnswerCapacity, MAX_ANSWER_BYTES};
use base::columns::{find, load};
use base::database::{Database, SqlText};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::MAX_INTEGER;
use base::row;

/// The most overlays of a session.
pub const MAX_OVERLAYS: i64 = 200;

/// The most bytes of one summary. All summaries of a session have at most 12.5 MiB.
pub const MAX_SUMMARY_BYTES: usize = 64 << 10;

row! {
    #[derive(Clone, Debug)]
    pub struct Overlay {
        pub id: String = "id",
        pub range: EventRange = EventRange::COLUMNS,
        pub from_id: String = "from_id",
        pub to_id: String = "to_id",
        pub summary: String = "summary",
        pub tokens_before: Option<i64> = "tokens_before",
        pub tokens_after: Option<i64> = "tokens_after",
        pub created_at: i64 = "created_at",
    }
}

/// SQL: whether a session `s` has overlays.
pub const HAS_OVERLAYS: &str = "EXISTS (SELECT 1
                                         FROM cf_agents_compactions
                                        WHERE session_id = s.id)";

row! {
    /// A range of adjacent events on a path, both ends included.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct EventRange {
        pub from_seq: i64 = "from_seq",
        pub to_seq: i64 = "to_seq",
        /// The event that the range's first event follows; 0: none.
        pub above_seq: i64 = "above_seq",
    }
}

/// The overlays of a session, in the order in which a walk up a path may encounter them.
/// Reads one row at the start, and one row per overlay that the walk passes.
pub struct Overlays<'a> {
    db: &'a dyn Database,
    session_id: &'a Id,
    next: Option<Overlay>,
}

impl<'a> Overlays<'a> {
    /// The overlays that end at `from_seq` or above it.
    pub fn below(db: &'a dyn Database, session_id: &'a Id, from_seq: i64) -> Result<Self> {
        let mut overlays = Self {
            db,
            session_id,
            next: None,
        };
        overlays.advance(from_seq)?;
        Ok(overlays)
    }

    fn advance(&mut self, seq: i64) -> Result<()> {
        let sql = format!(
            "SELECT {}
               FROM cf_agents_compactions
              WHERE session_id = +?1
                AND to_seq <= +?2
              ORDER BY to_seq DESC, from_seq, number DESC
              LIMIT 1",
            Overlay::COLUMNS
        );
        self.next = find(
            self.db,
            &sql,
            &[self.session_id.as_str().into(), seq.into()],
        )?;
        Ok(())
    }

    /// Passes the next overlay, which doesn't end on the path.
    pub fn skip(&mut self) -> Result<()> {
        self.advance(self.next_to_seq() - 1)
    }

    /// The newest event that the next overlay covers; 0: there is no next overlay.
    pub fn next_to_seq(&self) -> i64 {
        self.next.as_ref().map_or(0, |overlay| overlay.range.to_seq)
    }

    /// The overlay that ends at this event of the path. The walk then continues above the
    /// overlay.
    pub fn take_ending_at(&mut self, seq: i64) -> Result<Option<Overlay>> {
        if self.next_to_seq() > seq {
            self.advance(seq)?;
        }
        if self.next_to_seq() != seq {
            return Ok(None);
        }
        let overlay = self.next.take();
        if let Some(overlay) = &overlay {
            self.advance(overlay.range.above_seq)?;
        }
        Ok(overlay)
    }
}

/// The overlay that hides the event at `seq` from a reader of the path to `leaf_seq`: a
/// page may start inside a range. A walk from the leaf would have encountered this overlay.
pub fn find_covering(
    db: &dyn Database,
    session_id: &Id,
    seq: i64,
    leaf_seq: i64,
) -> Result<Option<Overlay>> {
    let mut overlays = Overlays::below(db, session_id, leaf_seq)?;
    if overlays.next_to_seq() < seq {
        return Ok(None);
    }
    let path = load_segments(db, session_id, leaf_seq)?;
    if !is_on_path(&path, seq) {
        return Ok(None);
    }
    while overlays.next_to_seq() >= seq {
        let to_seq = overlays.next_to_seq();
        if !is_on_path(&path, to_seq) {
            overlays.skip()?;
            continue;
        }
        let covering = overlays.take_ending_at(to_seq)?;
        if let Some(overlay) = covering.filter(|overlay| overlay.range.above_seq < seq) {
            return Ok(Some(overlay));
        }
    }
    Ok(None)
}

/// SQL: the JSON of an overlay.
const JSON: &str = r#"
    '{"id":' || json_quote(id)
    || ',"summary":' || json_quote(summary)
    || ',"fromId":' || json_quote(from_id)
    || ',"toId":' || json_quote(to_id)
    || ',"tokensBefore":' || coalesce(tokens_before, 'null')
    || ',"tokensAfter":' || coalesce(tokens_after, 'null')
    || ',"createdAt":' || created_at
    || '}'"#;

pub fn get_json(db: &dyn Database, session_id: &Id, id: &Id) -> Result<SqlText> {
    let sql = format!("SELECT {JSON} FROM cf_agents_compactions WHERE session_id = ?1 AND id = ?2");
    db.find_text(&sql, &[session_id.as_str().into(), id.as_str().into()])?
        .ok_or_else(|| Error::storage("a compaction that was just written is missing"))
}

/// The newest overlays of a session that fit in an answer, oldest first, as a JSON array.
pub fn load_json(db: &dyn Database, session_id: &Id) -> Result<String> {
    let sql = format!(
        "SELECT number, {JSON}
           FROM cf_agents_compactions
          WHERE session_id = ?1
            AND number < ?2
          ORDER BY number DESC
          LIMIT 1"
    );
    let mut newest: Vec<String> = Vec::new();
    let mut capacity = AnswerCapacity::of(MAX_ANSWER_BYTES);
    let mut below = MAX_INTEGER;
    for _ in 0..MAX_OVERLAYS {
        let params = [session_id.as_str().into(), below.into()];
        let Some((number, overlay)) = find::<(i64, String)>(db, &sql, &params)? else {
            break;
        };
        if !capacity.takes(overlay.len()) {
            break;
        }
        below = number;
        newest.push(overlay);
    }
    newest.reverse();
    Ok(format!("[{}]", newest.join(",")))
}

/// All overlays of a session, oldest first.
pub fn load_overlays(db: &dyn Database, session_id: &Id) -> Result<Vec<Overlay>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_compactions
          WHERE session_id = ?1
          ORDER BY number
          LIMIT {MAX_OVERLAYS}",
        Overlay::COLUMNS
    );
    load(db, &sql, &[session_id.as_str().into()])
}

/// Whether a summary of the session covers a tool result. Bounded: if all summaries
/// together cover more events than [`MAX_SEARCHED`], returns `true`.
pub fn covers_results(db: &dyn Database, session_id: &Id) -> Result<bool> {
    let sql = "SELECT total(to_seq - from_seq + 1) > ?2
                 FROM cf_agents_compactions
                WHERE session_id = ?1";
    let params = [session_id.as_str().into(), MAX_SEARCHED.into()];
    let is_large: Option<i64> = base::columns::find_value(db, sql, &params)?;
    if is_large == Some(1) {
        return Ok(true);
    }
    let sql = "SELECT 1
                 FROM cf_agents_compactions AS c
                 JOIN cf_agents_events AS e
                   ON e.session_id = c.session_id
                  AND e.seq BETWEEN c.from_seq AND c.to_seq
                WHERE c.session_id = ?1
                  AND e.action = ?2
                LIMIT 1";
    let params = [session_id.as_str().into(), Action::ToolResult.name().into()];
    let found: Option<i64> = base::columns::find_value(db, sql, &params)?;
    Ok(found.is_some())
}

/// The most covered events that are searched for tool results.
const MAX_SEARCHED: i64 = 5_000;
