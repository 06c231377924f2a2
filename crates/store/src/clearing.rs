//! Which pages are cleared after a purge, in one life of the object.
//!
//! A purge is committed before its pages are cleared, and the object may die between the
//! two. The caller then sends the same request again, which finds nothing to erase. So a
//! purge that erased nothing clears the pages of all tables.
//!
//! That rewrites rows of everybody, so it happens once in a life: this is memory of the
//! object, which a death takes along. While all pages are known to be clear, a purge that
//! found nothing has nothing to clear.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use super::erased::LeftPages;
use super::erasing::{ENTRY_INDEX, EVENT_INDEX, all_tables};
use super::schema::free_space::{FILLED_AFTER_DEATH_BYTES, FILLED_BYTES};

/// The state of pages, as one life of an object knows it.
#[derive(Default)]
pub struct PageClearing {
    /// How many purges this life committed that wrote something.
    purges: Cell<u64>,
    /// How many it committed in all.
    ended: Cell<u64>,
    /// How many of them had been committed when all pages were last known to be clear.
    /// `None`: an earlier life may have left texts.
    clear_at: Cell<Option<u64>>,
    /// Whether the pages of all tables are being cleared now.
    is_clearing_all: Cell<bool>,
    /// The tables of purges that are cleared after the work which made them.
    left: RefCell<BTreeSet<&'static str>>,
}

impl PageClearing {
    /// Notes a purge that was committed. Called before anything after it can fail.
    pub fn note(&self, left: &LeftPages) {
        if left.is_written {
            self.purges.set(self.purges.get().saturating_add(1));
        }
        if left.is_written || left.may_repeat {
            self.ended.set(self.ended.get().saturating_add(1));
        }
    }

    /// Notes a purge that a model's tool committed. Its pages are cleared after the turn, or after
    /// the request that called the tool ([`Self::take_left`]). A tool gives no receipt, so one
    /// that found nothing repeats no purge.
    pub fn leave(&self, left: &LeftPages) {
        self.note(left);
        if left.is_written {
            self.leave_again(left);
        }
    }

    /// Has pages wait once more that were taken and not cleared.
    pub fn leave_again(&self, left: &LeftPages) {
        self.left.borrow_mut().extend(&left.tables);
    }

    /// The pages that wait to be cleared.
    pub fn take_left(&self) -> LeftPages {
        LeftPages::in_tables(self.left.take().into_iter().collect())
    }

    /// How many purges this life has committed. Code that keeps texts while it waits for somebody
    /// asks before and after: if the number has changed, a text may be one that was erased.
    pub fn purges(&self) -> u64 {
        self.purges.get()
    }

    /// As [`Self::purges`], for whoever waits for a home elsewhere: those that found nothing here
    /// count, too, because the home may have erased the text.
    pub fn all_purges(&self) -> u64 {
        self.ended.get()
    }

    /// Whether this purge needs the pages of all tables cleared.
    fn needs_all(&self, left: &LeftPages) -> bool {
        let is_clear = self.clear_at.get().is_some_and(|clear_at| {
            // A purge that wrote something without erasing a text was noted itself.
            self.purges.get() == clear_at.saturating_add(u64::from(left.is_written))
        });
        left.may_repeat && !is_clear
    }

    /// Whether the pages that this purge needs cleared are being cleared by another one.
    pub fn must_wait(&self, left: &LeftPages) -> bool {
        self.is_clearing_all.get() && self.needs_all(left)
    }

    /// The pages to clear after a purge that was noted. `None`: nothing.
    pub fn begin(&self, left: &LeftPages) -> Option<Clearing<'_>> {
        let clears_all = self.needs_all(left);
        if !clears_all && !left.is_written {
            return None;
        }
        let mut tables: BTreeSet<&'static str> = left.tables.iter().copied().collect();
        if clears_all {
            tables.extend(all_tables().chain([EVENT_INDEX, ENTRY_INDEX]));
            self.is_clearing_all.set(true);
        }
        Some(Clearing {
            of: self,
            tables: tables.into_iter().collect(),
            clears_all,
            purges: self.purges.get(),
        })
    }
}

/// Pages that are being cleared.
pub struct Clearing<'a> {
    of: &'a PageClearing,
    /// The tables and indexes that are written anew.
    pub tables: Vec<&'static str>,
    clears_all: bool,
    /// How many purges were committed when this began.
    purges: u64,
}

impl Clearing<'_> {
    /// How much the last fillings write.
    pub fn filled_bytes(&self) -> i64 {
        match self.clears_all {
            true => FILLED_AFTER_DEATH_BYTES,
            false => FILLED_BYTES,
        }
    }

    /// Notes that the pages are clear. If this is not called, a later purge that finds
    /// nothing clears them.
    pub fn succeed(self) {
        // All pages are clear now only if each purge before this one is known to have cleared its
        // own.
        let was_clear = self.of.clear_at.get() == self.purges.checked_sub(1);
        if self.clears_all || (was_clear && self.purges > 0) {
            self.of.clear_at.set(Some(self.purges));
        }
    }
}

impl Drop for Clearing<'_> {
    fn drop(&mut self) {
        if self.clears_all {
            self.of.is_clearing_all.set(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn erased() -> LeftPages {
        LeftPages::in_tables(vec!["cf_agents_events"])
    }

    fn nothing() -> LeftPages {
        LeftPages {
            tables: vec![EVENT_INDEX],
            is_written: false,
            may_repeat: true,
        }
    }

    /// Whether the purge clears all tables, some or none.
    fn purge(pages: &PageClearing, left: &LeftPages, succeeds: bool) -> &'static str {
        pages.note(left);
        let Some(clearing) = pages.begin(left) else {
            return "none";
        };
        let clears_all = clearing.clears_all;
        assert_eq!(
            clears_all,
            all_tables().all(|table| clearing.tables.contains(&table))
        );
        assert_eq!(clearing.filled_bytes() > FILLED_BYTES, clears_all);
        if succeeds {
            clearing.succeed();
        }
        match clears_all {
            true => "all",
            false => "some",
        }
    }

    #[test]
    fn a_purge_that_finds_nothing_clears_all_once_in_a_life() {
        let pages = PageClearing::default();
        assert_eq!(purge(&pages, &nothing(), true), "all");
        for _ in 0..3 {
            assert_eq!(purge(&pages, &nothing(), true), "none");
        }
        // One that erased clears what it erased, and nothing is left after it.
        assert_eq!(purge(&pages, &erased(), true), "some");
        assert_eq!(purge(&pages, &nothing(), true), "none");
        // The next life knows nothing of it.
        assert_eq!(purge(&PageClearing::default(), &nothing(), true), "all");
    }

    #[test]
    fn a_purge_that_cleared_its_own_says_nothing_of_an_earlier_life() {
        let pages = PageClearing::default();
        assert_eq!(purge(&pages, &erased(), true), "some");
        assert_eq!(purge(&pages, &nothing(), true), "all");
        assert_eq!(purge(&pages, &nothing(), true), "none");
    }

    #[test]
    fn what_was_not_cleared_is_cleared_by_the_next_purge_that_finds_nothing() {
        let pages = PageClearing::default();
        assert_eq!(purge(&pages, &nothing(), false), "all");
        assert_eq!(purge(&pages, &nothing(), true), "all");
        assert_eq!(purge(&pages, &erased(), false), "some");
        // A later purge that clears its own does not hide it.
        assert_eq!(purge(&pages, &erased(), true), "some");
        assert_eq!(purge(&pages, &nothing(), true), "all");
        // A purge whose answer failed behind its transaction was noted, and cleared nothing.
        pages.note(&erased());
        assert_eq!(purge(&pages, &nothing(), true), "all");
        assert_eq!(purge(&pages, &nothing(), true), "none");
    }

    #[test]
    fn a_purge_that_wrote_without_erasing_clears_its_own_tables() {
        let pages = PageClearing::default();
        let wrote = LeftPages {
            may_repeat: true,
            ..erased()
        };
        assert_eq!(purge(&pages, &wrote, true), "all");
        assert_eq!(purge(&pages, &wrote, true), "some");
        assert_eq!(purge(&pages, &nothing(), true), "none");
    }

    #[test]
    fn a_purge_that_comes_meanwhile_waits_and_one_that_erases_is_not_hidden() {
        let pages = PageClearing::default();
        let first = pages.begin(&nothing()).unwrap();
        assert!(pages.must_wait(&nothing()));
        assert!(!pages.must_wait(&erased()));
        pages.note(&erased());
        first.succeed();
        assert!(!pages.must_wait(&nothing()));
        assert_eq!(purge(&pages, &nothing(), true), "all");
        // One that ends without success makes nobody wait.
        pages.note(&erased());
        drop(pages.begin(&nothing()));
        assert!(!pages.must_wait(&nothing()));
    }

    #[test]
    fn purges_whose_clearings_overlap_are_cleared_again() {
        let pages = PageClearing::default();
        assert_eq!(purge(&pages, &nothing(), true), "all");
        pages.note(&erased());
        let one = pages.begin(&erased()).unwrap();
        pages.note(&erased());
        let two = pages.begin(&erased()).unwrap();
        two.succeed();
        one.succeed();
        assert_eq!(purge(&pages, &nothing(), true), "all");
    }
}
