//! A guard that one piece of work has at a time, in this activation of the object. An eviction
//! loses it: the work must be safe to run twice.

use std::cell::Cell;

#[derive(Default)]
pub struct Exclusive {
    is_taken: Cell<bool>,
}

/// Is returned when it is dropped.
pub struct ExclusiveGuard<'a>(&'a Exclusive);

impl Exclusive {
    /// `None`: other work has the guard.
    pub fn take(&self) -> Option<ExclusiveGuard<'_>> {
        (!self.is_taken.replace(true)).then_some(ExclusiveGuard(self))
    }
}

impl Drop for ExclusiveGuard<'_> {
    fn drop(&mut self) {
        self.0.is_taken.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_exclusive_until_its_guard_is_dropped() {
        let only = Exclusive::default();
        let guard = only.take();
        assert!(guard.is_some() && only.take().is_none());
        drop(guard);
        assert!(only.take().is_some());
    }
}
