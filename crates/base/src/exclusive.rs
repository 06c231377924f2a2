//! A guard that one piece of work has at a time, in this activation of the object. An eviction
//! loses it: the work must be safe to run twice.

use std::cell::Cell;

#[derive(Default)]
pub struct Exclusive {
    is_locked: Cell<bool>,
}

/// Is returned when it is dropped.
pub struct ExclusiveGuard<'a>(&'a Exclusive);

impl Exclusive {
    /// `None`: other work has the guard.
    pub fn try_lock(&self) -> Option<ExclusiveGuard<'_>> {
        (!self.is_locked.replace(true)).then_some(ExclusiveGuard(self))
    }
}

impl Drop for ExclusiveGuard<'_> {
    fn drop(&mut self) {
        self.0.is_locked.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_is_exclusive_until_its_guard_is_dropped() {
        let only = Exclusive::default();
        let guard = only.try_lock();
        assert!(guard.is_some() && only.try_lock().is_none());
        drop(guard);
        assert!(only.try_lock().is_some());
    }
}
