//! The work limits of one retention step, and what it has done.

use std::collections::{BTreeSet, HashMap};

use base::ids::Id;
use conversation::messages::tree::path::surviving;
use store::retention_progress::RetentionCounts;

/// The most rows that a step deletes, in addition to those of the last session or item. An
/// event and its related rows are about four rows: some milliseconds of work for a hundred
/// of them.
pub const MAX_STEP_DELETED: i64 = 500;

/// The most rows that a step reads.
pub const MAX_STEP_SCANNED: i64 = 2_000;

/// The most bytes of the events that a step deletes. Only the last one may exceed it, which
/// has at most 4 MiB.
pub const MAX_STEP_BYTES: i64 = 4 << 20;

/// The most rows that a dry run reads. It deletes nothing, so it may continue for longer.
pub const MAX_DRY_RUN_SCANNED: i64 = 20_000;

/// The limits of a page of old events.
pub struct PageBounds {
    pub events: i64,
    /// Only the last event may exceed it.
    pub bytes: i64,
}

/// The remaining work of one step. A Worker's clock doesn't advance while it computes, so
/// rows and bytes bound the time.
pub struct StepWork {
    /// Only counts, and deletes nothing.
    pub is_dry: bool,
    pub preview: SessionPreview,
    scans_left: i64,
    deleted_left: i64,
    bytes_left: i64,
    pub counts: RetentionCounts,
    /// The sessions whose conversations changed.
    pub changed: Vec<Id>,
}

impl StepWork {
    pub fn new(is_dry: bool) -> Self {
        Self {
            is_dry,
            preview: SessionPreview::default(),
            scans_left: if is_dry {
                MAX_DRY_RUN_SCANNED
            } else {
                MAX_STEP_SCANNED
            },
            deleted_left: MAX_STEP_DELETED,
            bytes_left: MAX_STEP_BYTES,
            counts: RetentionCounts::default(),
            changed: Vec::new(),
        }
    }

    pub fn has_capacity(&self) -> bool {
        let may_delete = self.is_dry || (self.deleted_left > 0 && self.bytes_left > 0);
        self.scans_left > 0 && may_delete
    }

    /// The most rows that one statement may return. At least one, so that a step makes
    /// progress.
    pub fn page(&self) -> i64 {
        let capacity = if self.is_dry {
            self.scans_left
        } else {
            self.scans_left.min(self.deleted_left)
        };
        capacity.clamp(1, MAX_STEP_DELETED)
    }

    /// The events that this step may still delete. `None`: there is no limit, because
    /// nothing was deleted yet or this is a dry run.
    pub fn event_capacity(&self) -> Option<PageBounds> {
        let is_new = self.page() == MAX_STEP_DELETED && self.bytes_left == MAX_STEP_BYTES;
        (!self.is_dry && !is_new).then(|| self.capacity())
    }

    /// The events that this step may still delete: at least one.
    pub fn capacity(&self) -> PageBounds {
        PageBounds {
            events: self.page(),
            bytes: self.bytes_left.max(0),
        }
    }

    pub fn count_scanned(&mut self, rows: usize) {
        self.scans_left -= rows as i64;
    }

    pub fn delete(&mut self, rows: i64, bytes: i64) {
        if !self.is_dry {
            self.deleted_left -= rows;
            self.bytes_left -= bytes;
        }
    }

    /// Ends the step after the current session.
    pub fn end(&mut self) {
        self.scans_left = 0;
    }

    pub fn change(&mut self, session_id: &Id) {
        if self.changed.last() != Some(session_id) {
            self.changed.push(session_id.clone());
        }
    }
}

/// What a dry run would have deleted of the current session. It reads at most
/// [`MAX_DRY_RUN_SCANNED`] rows.
#[derive(Default)]
pub struct SessionPreview {
    number: i64,
    /// The deleted events, each with its parent at the time of deletion.
    parents: HashMap<i64, i64>,
    summaries: BTreeSet<Id>,
}

impl SessionPreview {
    /// Resets the preview when another session starts.
    pub fn enter(&mut self, number: i64) {
        if self.number != number {
            *self = Self {
                number,
                ..Self::default()
            };
        }
    }

    pub fn delete(&mut self, parents: impl Iterator<Item = (i64, i64)>) {
        self.parents.extend(parents);
    }

    /// The deleted events after `seq`, in order.
    pub fn deleted_after(&self, seq: i64) -> BTreeSet<i64> {
        let deleted = self.parents.keys().copied();
        deleted.filter(|deleted| *deleted > seq).collect()
    }

    /// The nearest surviving event, starting at `seq`.
    pub fn parent(&self, seq: i64) -> i64 {
        surviving(&self.parents, seq)
    }

    /// Whether the summary had not been deleted yet.
    pub fn record_deleted_summary(&mut self, id: Id) -> bool {
        self.summaries.insert(id)
    }
}
