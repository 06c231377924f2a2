//! A lease that one piece of work has at a time, in this activation of the object. An eviction
//! loses it: the work must be safe to run twice.

use std::cell::Cell;

#[derive(Default)]
pub struct Exclusive {
    is_taken: Cell<bool>,
}

/// Is returned when it is dropped.
pub struct Lease<'a>(&'a Exclusive);

impl Exclusive {
    /// `None`: other work has the lease.
    pub fn take(&self) -> Option<Lease<'_>> {
        (!self.is_taken.replace(true)).then_some(Lease(self))
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        self.0.is_taken.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_has_the_lease_until_it_is_dropped() {
        let only = Exclusive::default();
        let lease = only.take();
        assert!(lease.is_some() && only.take().is_none());
        drop(lease);
        assert!(only.take().is_some());
    }
}
