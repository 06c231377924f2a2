//! The totals of a path and of its beginnings: see `log/totals.rs`. Reads the session's branches,
//! the corrections on the path, and few events.

use super::overlays::{Overlay, Overlays};
use super::path::{PathSegment, is_on_path, load_segments};
use crate::log::totals::PathTotals;
use base::columns::find;
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::json;

pub struct PathSums<'a> {
    db: &'a dyn Database,
    session_id: &'a Id,
    leaf_seq: i64,
    /// Oldest first.
    segments: Vec<PathSegment>,
}

/// An event's `seq` and its stored totals.
type StoredTotals = (i64, Option<i64>, Option<i64>);

impl<'a> PathSums<'a> {
    /// The sums of the path that ends at `leaf_seq`; 0: a path without events.
    pub fn of(db: &'a dyn Database, session_id: &'a Id, leaf_seq: i64) -> Result<Self> {
        let segments = load_segments(db, session_id, leaf_seq)?;
        Ok(Self {
            db,
            session_id,
            leaf_seq,
            segments,
        })
    }

    pub fn segments(&self) -> &[PathSegment] {
        &self.segments
    }

    /// The totals of the whole path.
    pub fn whole(&self) -> Result<PathTotals> {
        self.up_to(self.leaf_seq)
    }

    /// The totals up to an event of the path; 0: of no event.
    pub fn up_to(&self, seq: i64) -> Result<PathTotals> {
        if seq == 0 {
            return Ok(PathTotals {
                messages: Some(0),
                tokens: Some(0),
            });
        }
        let sql = "SELECT seq, path_messages, path_tokens
                     FROM cf_agents_events
                    WHERE session_id = +?1
                      AND seq = +?2";
        let stored = find(self.db, sql, &[self.session_id.as_str().into(), seq.into()])?;
        stored.map_or(Ok(PathTotals::default()), |stored| self.corrected(stored))
    }

    fn corrected(&self, (seq, messages, tokens): StoredTotals) -> Result<PathTotals> {
        if messages.is_none() && tokens.is_none() {
            return Ok(PathTotals::default());
        }
        let parts = self.segments.iter().filter(|part| part.from_seq <= seq);
        let parts: Vec<[i64; 2]> = parts
            .map(|part| [part.from_seq, part.to_seq.min(seq)])
            .collect();
        let sql = "SELECT coalesce(sum(c.more_messages), 0), coalesce(sum(c.more_tokens), 0)
                     FROM json_each(?2) AS part
                    CROSS JOIN cf_agents_events AS c INDEXED BY cf_agents_events_by_correction
                       ON c.session_id = +?1
                      AND c.seq BETWEEN part.value ->> 0 AND part.value ->> 1
                    WHERE (c.more_messages <> 0 OR c.more_tokens <> 0)";
        let list = SqlValue::Text(json::encode(&parts)?);
        let more: Option<(i64, i64)> =
            find(self.db, sql, &[self.session_id.as_str().into(), list])?;
        let (more_messages, more_tokens) = more.unwrap_or_default();
        Ok(PathTotals {
            messages: messages.map(|sum| sum + more_messages),
            tokens: tokens.map(|sum| sum + more_tokens),
        })
    }

    /// The first event of the path whose totals are enough. `None`: the whole path's are not, or
    /// they are not stored. More events must never make less. Reads few events, by halving the
    /// path.
    pub fn find_first(&self, is_enough: &dyn Fn(PathTotals) -> bool) -> Result<Option<i64>> {
        let lengths = self
            .segments
            .iter()
            .map(|part| part.to_seq - part.from_seq + 1);
        let end: i64 = lengths.sum();
        let (mut low, mut high) = (0, end);
        while low < high {
            let middle = low + (high - low) / 2;
            if is_enough(self.totals_at(middle)?) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(self.find_segment(low).map(|(_, seq)| seq))
    }

    /// The index of a segment, and a number in it: the path's numbers are counted from 0, including
    /// those whose events were deleted.
    fn find_segment(&self, mut offset: i64) -> Option<(usize, i64)> {
        for (index, part) in self.segments.iter().enumerate() {
            let length = part.to_seq - part.from_seq + 1;
            if offset < length {
                return Some((index, part.from_seq + offset));
            }
            offset -= length;
        }
        None
    }

    /// The totals up to an offset, whose event may have been deleted.
    fn totals_at(&self, offset: i64) -> Result<PathTotals> {
        let Some((index, seq)) = self.find_segment(offset) else {
            return Ok(PathTotals::default());
        };
        let from_seq = self.segments.get(index).map_or(0, |part| part.from_seq);
        let sql = "SELECT seq, path_messages, path_tokens
                     FROM cf_agents_events
                    WHERE session_id = +?1
                      AND seq <= +?2
                      AND seq >= +?3
                    ORDER BY seq DESC
                    LIMIT 1";
        let params = [self.session_id.as_str().into(), seq.into(), from_seq.into()];
        if let Some(stored) = find::<StoredTotals>(self.db, sql, &params)? {
            return self.corrected(stored);
        }
        let before = index
            .checked_sub(1)
            .and_then(|before| self.segments.get(before));
        self.up_to(before.map_or(0, |part| part.to_seq))
    }

    /// The summaries that a reader of the path sees, newest first.
    pub fn load_overlays(&self) -> Result<Vec<Overlay>> {
        let mut overlays = Overlays::below(self.db, self.session_id, self.leaf_seq)?;
        let mut seen = Vec::new();
        while overlays.next_to_seq() > 0 {
            let to_seq = overlays.next_to_seq();
            if is_on_path(&self.segments, to_seq) {
                seen.extend(overlays.take_ending_at(to_seq)?);
            } else {
                overlays.skip()?;
            }
        }
        Ok(seen)
    }
}
