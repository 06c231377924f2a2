//! When the pages of the database are cleared after purges, and which.
//!
//! SQLite leaves the bytes of a row in place: in the free bytes of pages, in free pages, and in the
//! write-ahead log. This applies to every deletion and every update, also long before a purge: if a
//! text was deleted before it is purged, there is no row that the purge could overwrite. So a
//! clearing follows each purge, whatever it found: every table that was written to since it was
//! last cleared is rewritten (`schema/free_space.rs`). The rule this file protects: a receipt is
//! issued after a completed clearing that began when its purge had been committed.
//!
//! A clearing writes rows of everybody. Concurrent purges share one, and the next one is delayed by
//! what the last one wrote. Purges in between wait for it.
//!
//! All this is in the memory of the object, and is lost if the object is evicted. So the first
//! clearing of an activation rewrites all tables.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use super::erased::LeftPages;
use super::schema::zeros::PAGE_BYTES;
use base::database::Writes;
use base::error::{Code, Error, Result};

/// After a clearing that writes more rows, there is none for a minute.
const SMALL_ROWS: i64 = 1_000;
pub const MINUTE_MS: i64 = 60_000;

/// A smaller one counts by what it writes: 100 rows, or 8 MiB, are a second. A minute of them may
/// run at once.
const MS_PER_ROW: i64 = 10;
const BYTES_PER_MS: i64 = (8 << 20) / 1_000;

/// How long a clearing waits for concurrent purges.
pub const GATHER_MS: i64 = 20;

/// How long a purge that waits for a clearing sleeps between two checks.
const POLL_MS: i64 = 25;

/// A clearing that takes longer was interrupted, and another begins.
const MAX_CLEARING_MS: i64 = 30_000;

/// The most requests that wait for a clearing. Each keeps its answer in memory, which is short.
const MAX_WAITING: usize = 256;

/// What may contain bytes of deleted texts, as one activation of the object knows it.
struct DirtyPages {
    /// An earlier activation, or a clearing that failed, may have left texts in any table.
    is_everywhere: bool,
    /// The tables that were written to, and other names of statements.
    tables: BTreeSet<String>,
    /// Whether anything but new rows was written.
    has_freed: bool,
    /// The most bytes that the database had.
    peak_bytes: i64,
}

/// The state of pages, as one activation of an object knows it.
pub struct PageClearing {
    /// How many purges this activation committed that wrote something.
    purges: Cell<u64>,
    /// How many it committed in all.
    ended: Cell<u64>,
    /// How many of all had been committed when the last completed clearing began.
    cleared: Cell<u64>,
    /// When the clearing in progress began.
    clearing_since_ms: Cell<Option<i64>>,
    /// When the cost of the clearings so far, in time, is paid off.
    paid_at_ms: Cell<i64>,
    waiting: Cell<usize>,
    /// Whether a model's tool purged, so that no request waits for the clearing.
    is_left: Cell<bool>,
    dirty: RefCell<DirtyPages>,
    /// How many pages the file had after the last clearing; 0: unknown.
    file_pages: Cell<i64>,
}

impl Default for PageClearing {
    fn default() -> Self {
        Self {
            purges: Cell::default(),
            ended: Cell::default(),
            cleared: Cell::default(),
            clearing_since_ms: Cell::default(),
            paid_at_ms: Cell::default(),
            waiting: Cell::default(),
            is_left: Cell::default(),
            dirty: RefCell::new(DirtyPages {
                is_everywhere: true,
                tables: BTreeSet::new(),
                has_freed: false,
                peak_bytes: 0,
            }),
            file_pages: Cell::default(),
        }
    }
}

/// The next step of a purge that needs clear pages.
pub enum NextStep<'a> {
    /// Pages were cleared after it.
    Done,
    /// It waits for so long, and checks again.
    Wait(i64),
    Clear(Clearing<'a>),
}

impl PageClearing {
    /// Records a purge that was committed. Called before anything after it can fail.
    pub fn add(&self, left: &LeftPages) {
        if left.is_written {
            self.purges.set(self.purges.get().saturating_add(1));
        }
        if left.needs_clearing() {
            self.ended.set(self.ended.get().saturating_add(1));
        }
    }

    /// Records a purge that a model's tool committed. Its pages are cleared after the turn, or
    /// after the request that called the tool ([`Self::take_left`]). A tool issues no receipt, so a
    /// purge that found nothing needs no clearing.
    pub fn leave(&self, left: &LeftPages) {
        self.add(left);
        if left.is_written {
            self.mark_left(left);
        }
    }

    /// Records that pages are left to clear.
    pub fn mark_left(&self, left: &LeftPages) {
        if left.needs_clearing() {
            self.is_left.set(true);
        }
    }

    /// Takes the pages that must be cleared.
    pub fn take_left(&self) -> LeftPages {
        LeftPages {
            is_written: self.is_left.take(),
            may_repeat: false,
        }
    }

    /// How many purges this activation has committed. Code that has texts in memory during an await
    /// compares the number before and after: if it has changed, a text may be one that was erased.
    pub fn purges(&self) -> u64 {
        self.purges.get()
    }

    /// How many it has committed, including those that found nothing. Code that awaits an external
    /// backend compares these, because the backend may have erased the text. So does code that
    /// waits for pages: those of all these purges are clear after the next clearing.
    pub fn all_purges(&self) -> u64 {
        self.ended.get()
    }

    /// Rejects a purge if too many wait. Called before anything is deleted.
    pub fn check_capacity(&self, now_ms: i64) -> Result<()> {
        if self.waiting.get() < MAX_WAITING {
            return Ok(());
        }
        let wait_ms = self.due_in_ms(now_ms).max(1_000);
        let message = format!(
            "{MAX_WAITING} purges are waiting until pages are cleared, which is the limit. Nothing \
             was erased: try again later."
        );
        Err(Error::new(Code::RateLimited, message).with_retry_after((wait_ms + 999) / 1_000))
    }

    /// Counts a waiting request until this value is dropped.
    pub fn wait(&self) -> Waiting<'_> {
        self.waiting.set(self.waiting.get().saturating_add(1));
        Waiting(self)
    }

    fn due_in_ms(&self, now_ms: i64) -> i64 {
        self.paid_at_ms
            .get()
            .saturating_sub(now_ms)
            .saturating_sub(MINUTE_MS)
    }

    /// The next step of the purge that was the `number`th ([`Self::all_purges`]).
    pub fn next_step(&self, number: u64, now_ms: i64) -> NextStep<'_> {
        if self.cleared.get() >= number {
            return NextStep::Done;
        }
        let since_ms = self.clearing_since_ms.get();
        if since_ms.is_some_and(|since_ms| (since_ms..since_ms + MAX_CLEARING_MS).contains(&now_ms))
        {
            return NextStep::Wait(POLL_MS);
        }
        // A clock that was set back delays nobody for longer.
        let due_in_ms = self.due_in_ms(now_ms).min(MINUTE_MS);
        if due_in_ms > 0 {
            return NextStep::Wait(due_in_ms);
        }
        self.clearing_since_ms.set(Some(now_ms));
        NextStep::Clear(Clearing {
            of: self,
            since_ms: now_ms,
            until: 0,
            is_done: false,
        })
    }
}

/// A request that waits for a clearing.
pub struct Waiting<'a>(&'a PageClearing);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get().saturating_sub(1));
    }
}

/// A clearing in progress. If it is dropped before it succeeds, nobody waits for it, and the next
/// one clears everything.
pub struct Clearing<'a> {
    of: &'a PageClearing,
    since_ms: i64,
    /// How many purges had been committed when it began.
    until: u64,
    is_done: bool,
}

/// What a clearing rewrites.
#[derive(Debug, PartialEq, Eq)]
pub struct ToClear {
    pub tables: Vec<&'static str>,
    /// Whether an earlier activation may have been evicted before its pages were cleared. This one
    /// writes behind the frames that the log had then.
    pub is_first: bool,
    /// The most bytes that the database had since the last clearing.
    pub peak_bytes: i64,
    /// How many pages the file had then; 0: unknown.
    pub file_pages: i64,
}

impl Clearing<'_> {
    /// Begins it. `tables`: those that may contain bytes of deleted texts. Returns the tables to
    /// rewrite; `None`: nothing was deleted since the last clearing.
    pub fn begin(
        &mut self,
        tables: impl Iterator<Item = &'static str>,
        writes: &Writes,
        size_bytes: i64,
    ) -> Option<ToClear> {
        self.until = self.of.ended.get();
        let mut dirty = self.of.dirty.borrow_mut();
        dirty.add(writes, size_bytes);
        if !dirty.is_everywhere && !dirty.has_freed {
            return None;
        }
        Some(ToClear {
            tables: tables
                .filter(|name| dirty.is_everywhere || dirty.tables.contains(*name))
                .collect(),
            is_first: dirty.is_everywhere,
            peak_bytes: dirty.peak_bytes,
            file_pages: self.of.file_pages.get(),
        })
    }

    /// Records what requests wrote while the clearing waited.
    pub fn record_writes(&self, writes: &Writes) {
        // The zeros don't count for the peak.
        self.of.dirty.borrow_mut().add(
            &Writes {
                peak_bytes: 0,
                ..writes.clone()
            },
            0,
        );
    }

    /// Records that nothing had to be cleared.
    pub fn skip(mut self) {
        self.is_done = true;
        self.of.record_cleared(self.until);
    }

    /// Marks all tables as dirty until the clearing succeeds: if it fails from here on, the next one
    /// rewrites all of them.
    pub fn mark_all_dirty(&self) {
        let mut dirty = self.of.dirty.borrow_mut();
        dirty.is_everywhere = true;
        dirty.tables.clear();
        dirty.has_freed = false;
        dirty.peak_bytes = 0;
    }

    /// Records that the pages are clear, and what was written for that.
    pub fn succeed(mut self, written: &RewrittenPages, now_ms: i64) {
        self.is_done = true;
        self.of.record_cleared(self.until);
        self.of.dirty.borrow_mut().is_everywhere = false;
        self.of.file_pages.set(written.file_pages);
        self.of.pay(written, now_ms);
    }
}

impl Drop for Clearing<'_> {
    fn drop(&mut self) {
        if self.of.clearing_since_ms.get() == Some(self.since_ms) {
            self.of.clearing_since_ms.set(None);
        }
        if !self.is_done {
            self.of.dirty.borrow_mut().is_everywhere = true;
        }
    }
}

/// What a clearing wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RewrittenPages {
    /// Rows of tables.
    pub rows: i64,
    pub pages: i64,
    /// How many pages the database's file has now; 0: unknown.
    pub file_pages: i64,
}

impl PageClearing {
    fn record_cleared(&self, until: u64) {
        self.cleared.set(self.cleared.get().max(until));
    }

    fn pay(&self, written: &RewrittenPages, now_ms: i64) {
        let cost_ms = if written.rows > SMALL_ROWS {
            2 * MINUTE_MS
        } else {
            written.rows * MS_PER_ROW + written.pages * PAGE_BYTES / BYTES_PER_MS
        };
        let from_ms = self
            .paid_at_ms
            .get()
            .clamp(now_ms, now_ms.saturating_add(MINUTE_MS));
        self.paid_at_ms
            .set(from_ms.saturating_add(cost_ms).min(now_ms + 2 * MINUTE_MS));
    }
}

impl DirtyPages {
    fn add(&mut self, writes: &Writes, size_bytes: i64) {
        self.is_everywhere |= writes.is_incomplete;
        self.peak_bytes = self.peak_bytes.max(writes.peak_bytes).max(size_bytes);
        for statement in &writes.statements {
            self.has_freed |= !only_adds(statement);
            let named = statement.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            let tables = named.filter(|word| word.starts_with("cf_agents_"));
            self.tables.extend(tables.map(str::to_owned));
        }
    }
}

/// Whether a statement leaves all existing rows unchanged.
fn only_adds(statement: &str) -> bool {
    let statement = statement.trim_start();
    statement.starts_with("INSERT INTO") && !statement.contains("DO UPDATE")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERASED: LeftPages = LeftPages {
        is_written: true,
        may_repeat: false,
    };
    const NOTHING: LeftPages = LeftPages {
        is_written: false,
        may_repeat: true,
    };

    fn writes(statements: &[&str]) -> Writes {
        Writes {
            statements: statements.iter().map(|&sql| sql.to_owned()).collect(),
            ..Writes::default()
        }
    }

    fn deleted() -> Writes {
        writes(&["DELETE FROM cf_agents_events WHERE session_id = ?1"])
    }

    /// The tables cleared by the latest purge.
    fn cleared(pages: &PageClearing, writes: &Writes) -> Option<Vec<&'static str>> {
        let NextStep::Clear(mut clearing) = pages.next_step(pages.all_purges(), 0) else {
            panic!("it has to wait");
        };
        let Some(to_clear) = clearing.begin(all(), writes, 0) else {
            clearing.skip();
            return None;
        };
        clearing.mark_all_dirty();
        clearing.succeed(&RewrittenPages::default(), 0);
        Some(to_clear.tables)
    }

    fn all() -> impl Iterator<Item = &'static str> {
        ["cf_agents_changes", "cf_agents_entries", "cf_agents_events"].into_iter()
    }

    #[test]
    fn the_first_clearing_rewrites_all_tables_and_later_ones_the_changed() {
        let pages = PageClearing::default();
        pages.add(&NOTHING);
        assert_eq!(cleared(&pages, &Writes::default()), Some(all().collect()));
        // Nothing was written since then.
        pages.add(&NOTHING);
        assert_eq!(cleared(&pages, &Writes::default()), None);
        // An added row replaced no other row.
        let added = writes(&["INSERT INTO cf_agents_entries (key) VALUES (?1)"]);
        pages.add(&NOTHING);
        assert_eq!(cleared(&pages, &added), None);
        // A plain deletion, and then a purge that finds nothing.
        pages.add(&NOTHING);
        let tables = cleared(&pages, &deleted());
        assert_eq!(tables, Some(vec!["cf_agents_entries", "cf_agents_events"]));
        pages.add(&NOTHING);
        assert_eq!(cleared(&pages, &Writes::default()), None);
    }

    #[test]
    fn uncleared_tables_are_cleared_next_time() {
        let pages = PageClearing::default();
        pages.add(&ERASED);
        cleared(&pages, &deleted());
        pages.add(&ERASED);
        let NextStep::Clear(mut clearing) = pages.next_step(2, 0) else {
            panic!("it has to wait");
        };
        clearing.begin(all(), &deleted(), 0).unwrap();
        drop(clearing);
        assert_eq!(cleared(&pages, &Writes::default()), Some(all().collect()));
    }

    #[test]
    fn a_purge_during_a_clearing_waits_for_the_next_one() {
        let pages = PageClearing::default();
        pages.add(&ERASED);
        let NextStep::Clear(mut clearing) = pages.next_step(1, 0) else {
            panic!("it has to wait");
        };
        // This purge arrives before the clearing begins.
        pages.add(&ERASED);
        clearing.begin(all(), &deleted(), 0).unwrap();
        pages.add(&ERASED);
        assert!(matches!(pages.next_step(2, 0), NextStep::Wait(POLL_MS)));
        clearing.mark_all_dirty();
        clearing.succeed(&RewrittenPages::default(), 0);
        assert!(matches!(pages.next_step(2, 0), NextStep::Done));
        assert!(matches!(pages.next_step(3, 0), NextStep::Clear(_)));
    }

    #[test]
    fn a_large_clearing_is_followed_by_a_minutes_pause() {
        let pages = PageClearing::default();
        let mut clearings = Vec::new();
        for now_ms in (0..300_000).step_by(500) {
            pages.add(&ERASED);
            if let NextStep::Clear(mut clearing) = pages.next_step(pages.all_purges(), now_ms) {
                clearing.begin(all(), &deleted(), 0).unwrap();
                clearing.mark_all_dirty();
                let written = RewrittenPages {
                    rows: SMALL_ROWS + 1,
                    ..RewrittenPages::default()
                };
                clearing.succeed(&written, now_ms);
                clearings.push(now_ms);
            }
        }
        assert_eq!(clearings, [0, 60_000, 120_000, 180_000, 240_000]);
    }

    #[test]
    fn small_clearings_are_spaced_by_their_size() {
        let pages = PageClearing::default();
        let (mut rows, mut clearings) = (0, 0);
        let minutes = 10;
        for now_ms in (0..minutes * MINUTE_MS).step_by(500) {
            pages.add(&ERASED);
            if let NextStep::Clear(mut clearing) = pages.next_step(pages.all_purges(), now_ms) {
                clearing.begin(all(), &deleted(), 0).unwrap();
                clearing.mark_all_dirty();
                let written = RewrittenPages {
                    rows: 200,
                    pages: 2_048,
                    ..RewrittenPages::default()
                };
                clearing.succeed(&written, now_ms);
                (rows, clearings) = (rows + written.rows, clearings + 1);
            }
        }
        // Three seconds each, and twenty of them at once.
        assert_eq!(clearings, minutes * 20 + 20);
        assert!(rows / minutes <= 4_400);
    }

    #[test]
    fn too_many_waiting_purges_are_refused_before_any_deletion() {
        let pages = PageClearing::default();
        let waiting: Vec<_> = (0..MAX_WAITING).map(|_| pages.wait()).collect();
        let refused = pages.check_capacity(0).unwrap_err();
        assert_eq!(refused.code, Code::RateLimited);
        drop(waiting);
        assert!(pages.check_capacity(0).is_ok());
    }
}
