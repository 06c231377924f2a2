//! Tracks the running learning pass. Eviction may lose the lease at any time. Two passes
//! over the same events cost tokens, but the second one stores nothing, because the
//! position has advanced.

use std::cell::Cell;

#[derive(Default)]
pub struct LearningTracker {
    is_looking: Cell<bool>,
}

/// Marks a learning pass as running until it is dropped.
pub struct LookLease<'a>(&'a LearningTracker);

impl LearningTracker {
    /// `None`: another pass is running.
    pub fn take(&self) -> Option<LookLease<'_>> {
        (!self.is_looking.replace(true)).then_some(LookLease(self))
    }
}

impl Drop for LookLease<'_> {
    fn drop(&mut self) {
        self.0.is_looking.set(false);
    }
}
