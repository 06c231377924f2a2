//! The look that is under way. The lease may be lost at any time: two looks at the same
//! events cost tokens, and the second one finds the mark moved.

use std::cell::Cell;

#[derive(Default)]
pub struct LearningTracker {
    is_looking: Cell<bool>,
}

/// Held while the agent looks.
pub struct LookLease<'a>(&'a LearningTracker);

impl LearningTracker {
    /// `None`: another look is under way.
    pub fn take(&self) -> Option<LookLease<'_>> {
        (!self.is_looking.replace(true)).then_some(LookLease(self))
    }
}

impl Drop for LookLease<'_> {
    fn drop(&mut self) {
        self.0.is_looking.set(false);
    }
}
