//! Clears database pages after purges, and makes requests wait until the pages of their
//! purges are clear. It works in steps, each of which is committed before the next one
//! starts. `store/clearing.rs` decides when and which pages, and
//! `store/schema/free_space.rs` how.

use crate::tables::clearable_tables;
use base::database::{Database, Writes};
use base::error::Result;
use base::host::Host;
use base::outbound::Outbound;
use memory::purge::renew_tables;
use store::clearing::{Clearing, GATHER_MS, NextStep, PageClearing, RewrittenPages};
use store::erased::LeftPages;
use store::schema::free_space::{fill_beginning, fill_free_pages, fill_log, pages_of_earlier_log};
use store::schema::zeros::{PAGE_BYTES, empty_free_pages};

/// The object whose pages are cleared.
pub struct ClearedObject<'a> {
    pub pages: &'a PageClearing,
    /// Counts the rows written by a clearing that this request runs.
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub outbound: &'a dyn Outbound,
    /// Whether the tables exist: the storage may be emptied in the meantime.
    pub has_tables: &'a dyn Fn() -> bool,
}

impl ClearedObject<'_> {
    /// Waits until pages were cleared after all recorded purges, or clears them.
    pub async fn clear_after(&self, left: &LeftPages) -> Result<()> {
        if !left.needs_clearing() {
            return Ok(());
        }
        let number = self.pages.all_purges();
        let _waiting = self.pages.wait();
        while (self.has_tables)() {
            match self.pages.next_step(number, self.host.now_ms()) {
                NextStep::Done => return Ok(()),
                NextStep::Wait(ms) => self.outbound.sleep(ms).await,
                NextStep::Clear(clearing) => return self.clear(clearing).await,
            }
        }
        Ok(())
    }

    async fn clear(&self, mut clearing: Clearing<'_>) -> Result<()> {
        self.outbound.sleep(GATHER_MS).await;
        if !(self.has_tables)() {
            return Ok(());
        }
        let db = self.db;
        let Some(to_clear) =
            clearing.begin(clearable_tables(), &db.take_writes()?, db.size_bytes()?)
        else {
            clearing.skip();
            return Ok(());
        };
        let step = |clearing: &Clearing<'_>| -> Result<()> {
            clearing.record_writes(&db.take_writes()?);
            Ok(())
        };
        let file_pages = match to_clear.file_pages {
            0 => 0,
            known => known.max(to_clear.peak_bytes / PAGE_BYTES),
        };
        let filled = fill_free_pages(db, &to_clear.tables, file_pages)?;
        db.take_writes()?;
        if !self.commit().await {
            return Ok(());
        }
        // Purges that arrived in the meantime are included.
        let Some(to_clear) =
            clearing.begin(clearable_tables(), &without_peak(db.take_writes()?), 0)
        else {
            return Ok(());
        };
        let renewed = renew_tables(db, &to_clear.tables, filled.file_pages)?;
        // Discard the writes of the clearing itself.
        db.take_writes()?;
        clearing.mark_all_dirty();
        if !self.commit().await {
            return Ok(());
        }
        step(&clearing)?;
        let mut peak_pages = (to_clear.peak_bytes / PAGE_BYTES).max(renewed.pages);
        if to_clear.is_first {
            // An earlier activation may have had as many pages as the file has.
            peak_pages = peak_pages.max(pages_of_earlier_log(filled.file_pages));
        }
        let log_pages = fill_log(db, peak_pages)?;
        let grown_pages = db.size_bytes()? / PAGE_BYTES;
        db.take_writes()?;
        if !self.commit().await {
            return Ok(());
        }
        step(&clearing)?;
        let head_pages = fill_beginning(db, renewed.pages)?;
        db.take_writes()?;
        if !self.commit().await {
            return Ok(());
        }
        step(&clearing)?;
        empty_free_pages(db)?;
        db.take_writes()?;
        self.commit().await;
        let written = RewrittenPages {
            rows: renewed.rows,
            pages: 2 * (filled.pages + renewed.pages + log_pages + head_pages),
            file_pages: renewed.file_pages.max(grown_pages),
        };
        clearing.succeed(&written, self.host.now_ms());
        Ok(())
    }

    /// Commits the writes. `false`: the storage was emptied in the meantime.
    async fn commit(&self) -> bool {
        self.outbound.sleep(0).await;
        (self.has_tables)()
    }
}

/// Drops the peak size: the zeros that a clearing writes are not a transaction's pages.
fn without_peak(writes: Writes) -> Writes {
    Writes {
        peak_bytes: 0,
        ..writes
    }
}
