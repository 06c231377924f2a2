//! The queue of entries that were written in this activation of the object and whose
//! vectors may be missing.
//!
//! No write waits for an embedding model: the entries' numbers are queued here, and vectors
//! are computed after the answer (`recall/entries.rs`). If the object is evicted before
//! that, the next search computes them. Each entry is queued with the principal that pays
//! for its vector: the one whose request wrote it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use store::limits::PrincipalLimits;

/// The most queued entries. A search computes the vectors of the others.
const MAX_PENDING: usize = 1_000;

#[derive(Default)]
pub struct PendingVectors {
    numbers: RefCell<BTreeMap<i64, Option<PrincipalLimits>>>,
    is_busy: Cell<bool>,
}

/// Entries whose vectors one principal pays for.
#[derive(Debug, Default, PartialEq)]
pub struct PendingBatch {
    pub payer: Option<PrincipalLimits>,
    pub numbers: Vec<i64>,
}

impl PendingVectors {
    pub fn add(&self, number: i64, payer: Option<&PrincipalLimits>) {
        let mut numbers = self.numbers.borrow_mut();
        if numbers.len() < MAX_PENDING {
            numbers.insert(number, payer.cloned());
        }
    }

    pub fn is_empty(&self) -> bool {
        self.numbers.borrow().is_empty()
    }

    /// Removes and returns up to `most` entries of one payer, lowest number first.
    pub fn take(&self, most: usize) -> PendingBatch {
        let mut numbers = self.numbers.borrow_mut();
        let Some(payer) = numbers.values().next().cloned() else {
            return PendingBatch::default();
        };
        let batch = numbers.iter().filter(|(_, other)| **other == payer);
        let batch: Vec<i64> = batch.map(|(number, _)| *number).take(most).collect();
        for number in &batch {
            numbers.remove(number);
        }
        PendingBatch {
            payer,
            numbers: batch,
        }
    }

    pub fn forget(&self) {
        self.numbers.borrow_mut().clear();
    }

    /// Drops the entries that this principal pays for. A search computes their vectors.
    pub fn forget_of(&self, payer: Option<&PrincipalLimits>) {
        let mut numbers = self.numbers.borrow_mut();
        numbers.retain(|_, other| other.as_ref() != payer);
    }

    /// `None`: vectors are already being computed, and the queued entries will be included.
    pub fn begin(&self) -> Option<VectorLease<'_>> {
        (!self.is_busy.replace(true)).then_some(VectorLease(self))
    }
}

/// Marks the computation of vectors as running until it is dropped.
pub struct VectorLease<'a>(&'a PendingVectors);

impl Drop for VectorLease<'_> {
    fn drop(&mut self) {
        self.0.is_busy.set(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use store::limits::Limits;

    #[test]
    fn a_batch_contains_one_payers_entries_and_others_stay_queued() {
        let holder = |name: &str| PrincipalLimits {
            holder: name.to_owned(),
            most: Limits::default(),
        };
        let (alice, bob) = (holder("alice"), holder("bob"));
        let pending = PendingVectors::default();
        for (number, payer) in [
            (1, Some(&alice)),
            (2, None),
            (3, Some(&alice)),
            (4, Some(&bob)),
        ] {
            pending.add(number, payer);
        }
        let first = pending.take(1);
        assert_eq!(
            (first.payer.as_ref(), first.numbers),
            (Some(&alice), vec![1])
        );
        pending.forget_of(Some(&bob));
        let second = pending.take(9);
        assert_eq!((second.payer, second.numbers), (None, vec![2]));
        let third = pending.take(9);
        assert_eq!(
            (third.payer.as_ref(), third.numbers),
            (Some(&alice), vec![3])
        );
        assert!(pending.is_empty());
        assert_eq!(pending.take(9), PendingBatch::default());
    }
}
