//! A semaphore with fair queueing: limits how many holders run at once, and queues the
//! others. The next slot goes to the owner whose last slot is longest ago, so an owner with
//! many requests delays nobody. A waiter that gives up leaves the queue.
//!
//! The mutex of `futures-util` supports neither this order, nor kinds of holders, nor a
//! bound on queued bytes.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::owner::Owner;

/// The most queued waiters and bytes.
#[derive(Clone, Copy, Debug)]
pub struct QueueBounds {
    pub waiting: usize,
    /// The most bytes of all waiters together.
    pub bytes: usize,
    /// The same for the waiters of one owner. An owner's first waiter may have more bytes.
    pub waiting_each: usize,
    pub bytes_each: usize,
}

/// For how many owners the time of their last slot is stored.
const MAX_SERVED: usize = 64;

/// The queue has reached its bounds.
#[derive(Debug, PartialEq)]
pub struct QueueFull;

/// The kind of a holder.
pub trait HolderKind: Copy + PartialEq {
    fn owner(self) -> Owner;
}

/// Slots for holders of the kinds `K`.
pub struct Slots<K> {
    /// Whether a holder of this kind may start while these holders are active.
    may_start: fn(&[K], K) -> bool,
    bounds: QueueBounds,
    /// The kinds of the active holders.
    out: RefCell<Vec<K>>,
    /// The queue, in the order of arrival.
    line: RefCell<Vec<Rc<Waiter<K>>>>,
    /// The owners that were last served from the queue, with the time; oldest first.
    served: RefCell<Vec<(Owner, u64)>>,
    /// A logical clock, which counts arrivals and served slots.
    now: Cell<u64>,
}

struct Waiter<K> {
    kind: K,
    bytes: usize,
    arrived: u64,
    /// Whether a slot is reserved for this waiter.
    is_called: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// A slot, which is released when this value is dropped.
pub struct Slot<'a, K: HolderKind> {
    slots: &'a Slots<K>,
    kind: K,
}

/// A waiter's entry in the queue. Dropping it leaves the queue.
struct QueueEntry<'a, K: HolderKind> {
    slots: &'a Slots<K>,
    waiter: Rc<Waiter<K>>,
}

impl<K: HolderKind> Slots<K> {
    /// `may_start` must accept every kind while there is no holder, and no kind that it
    /// refused while there were fewer holders.
    pub fn new(may_start: fn(&[K], K) -> bool, bounds: QueueBounds) -> Self {
        Self {
            may_start,
            bounds,
            out: RefCell::default(),
            line: RefCell::default(),
            served: RefCell::default(),
            now: Cell::new(0),
        }
    }

    /// Waits for a slot. `bytes` is the memory that the waiter uses in the meantime.
    pub async fn acquire(&self, kind: K, bytes: usize) -> Result<Slot<'_, K>, QueueFull> {
        // If this kind may start, no waiter of this kind is queued, so nobody is overtaken.
        if (self.may_start)(&self.out.borrow(), kind) {
            self.out.borrow_mut().push(kind);
            return Ok(Slot { slots: self, kind });
        }
        let entry = self.enqueue(kind, bytes)?;
        poll_fn(|context| {
            if entry.waiter.is_called.get() {
                return Poll::Ready(());
            }
            entry.waiter.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
        // The slot is transferred from the queue entry to the `Slot`.
        entry.waiter.is_called.set(false);
        Ok(Slot { slots: self, kind })
    }

    fn enqueue(&self, kind: K, bytes: usize) -> Result<QueueEntry<'_, K>, QueueFull> {
        let mut line = self.line.borrow_mut();
        let sum = |waiters: &[&Rc<Waiter<K>>]| -> usize {
            waiters.iter().map(|waiter| waiter.bytes).sum()
        };
        let all: Vec<&Rc<Waiter<K>>> = line.iter().collect();
        let own: Vec<&Rc<Waiter<K>>> = line
            .iter()
            .filter(|waiter| waiter.kind.owner() == kind.owner())
            .collect();
        // The first waiter may have any number of bytes.
        let is_too_heavy = !all.is_empty() && sum(&all) + bytes > self.bounds.bytes
            || !own.is_empty() && sum(&own) + bytes > self.bounds.bytes_each;
        let is_too_long = all.len() >= self.bounds.waiting || own.len() >= self.bounds.waiting_each;
        if is_too_heavy || is_too_long {
            return Err(QueueFull);
        }
        let waiter = Rc::new(Waiter {
            kind,
            bytes,
            arrived: self.count_up(),
            is_called: Cell::new(false),
            waker: RefCell::default(),
        });
        line.push(Rc::clone(&waiter));
        Ok(QueueEntry {
            slots: self,
            waiter,
        })
    }

    fn release(&self, kind: K) {
        let mut out = self.out.borrow_mut();
        if let Some(index) = out.iter().position(|reserved| *reserved == kind) {
            out.swap_remove(index);
        }
        drop(out);
        self.call();
    }

    fn count_up(&self) -> u64 {
        self.now.set(self.now.get() + 1);
        self.now.get()
    }

    /// When the waiter's owner was last served from the queue, if known.
    fn waits_since(&self, waiter: &Waiter<K>) -> u64 {
        let served = self.served.borrow();
        let owner = waiter.kind.owner();
        let found = served.iter().find(|(served, _)| *served == owner);
        found.map_or(waiter.arrived, |(_, at)| *at)
    }

    /// Removes the next waiter who may start from the queue. A waiter that may not start
    /// yet blocks nobody.
    fn find_next(&self) -> Option<Rc<Waiter<K>>> {
        let mut line = self.line.borrow_mut();
        let out = self.out.borrow();
        let (index, _) = line
            .iter()
            .enumerate()
            .filter(|(_, waiter)| (self.may_start)(&out, waiter.kind))
            .min_by_key(|(_, waiter)| (self.waits_since(waiter), waiter.arrived))?;
        Some(line.remove(index))
    }

    /// Reserves slots for all waiters who may start now.
    fn call(&self) {
        let mut wakers = Vec::new();
        while let Some(waiter) = self.find_next() {
            let owner = waiter.kind.owner();
            let mut served = self.served.borrow_mut();
            served.retain(|(other, _)| *other != owner);
            let surplus = (served.len() + 1).saturating_sub(MAX_SERVED);
            served.drain(..surplus);
            served.push((owner, self.count_up()));
            drop(served);
            self.out.borrow_mut().push(waiter.kind);
            waiter.is_called.set(true);
            wakers.extend(waiter.waker.take());
        }
        // A woken task may use these slots again.
        for waker in wakers {
            waker.wake();
        }
    }
}

impl<K: HolderKind> Drop for Slot<'_, K> {
    fn drop(&mut self) {
        self.slots.release(self.kind);
    }
}

impl<K: HolderKind> Drop for QueueEntry<'_, K> {
    fn drop(&mut self) {
        if self.waiter.is_called.get() {
            // The waiter gave up after its slot was reserved.
            self.slots.release(self.waiter.kind);
        } else {
            let mut line = self.slots.line.borrow_mut();
            line.retain(|other| !Rc::ptr_eq(other, &self.waiter));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::pin::Pin;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::{Context, Wake};

    use super::*;
    use crate::testing::Dice;

    const BOUNDS: QueueBounds = QueueBounds {
        waiting: 4,
        bytes: 100,
        waiting_each: 4,
        bytes_each: 100,
    };

    impl HolderKind for u8 {
        fn owner(self) -> Owner {
            Owner::named(&self.to_string())
        }
    }

    type Taking<'a> = Pin<Box<dyn Future<Output = Result<Slot<'a, u8>, QueueFull>> + 'a>>;

    fn two() -> Slots<u8> {
        Slots::new(|out, _| out.len() < 2, BOUNDS)
    }

    fn poll<'a>(taking: &mut Taking<'a>) -> Option<Result<Slot<'a, u8>, QueueFull>> {
        let mut context = Context::from_waker(Waker::noop());
        match taking.as_mut().poll(&mut context) {
            Poll::Ready(outcome) => Some(outcome),
            Poll::Pending => None,
        }
    }

    fn take(slots: &Slots<u8>) -> Slot<'_, u8> {
        let mut taking: Taking<'_> = Box::pin(slots.acquire(0, 0));
        poll(&mut taking).unwrap().unwrap()
    }

    fn is_idle(slots: &Slots<u8>) -> bool {
        slots.out.borrow().is_empty() && slots.line.borrow().is_empty()
    }

    fn wait<'a>(slots: &'a Slots<u8>, kind: u8, bytes: usize) -> Taking<'a> {
        let mut taking: Taking<'_> = Box::pin(slots.acquire(kind, bytes));
        assert!(poll(&mut taking).is_none());
        taking
    }

    #[test]
    fn slots_are_granted_in_arrival_order() {
        let slots = two();
        let (first, _second) = (take(&slots), take(&slots));
        let (mut third, mut fourth) = (wait(&slots, 0, 0), wait(&slots, 0, 0));
        drop(first);
        // The third call arrived first, even if others arrive now or are polled first.
        let mut fifth = wait(&slots, 0, 0);
        assert!(poll(&mut fourth).is_none());
        let third = poll(&mut third).unwrap().unwrap();
        drop(third);
        assert!(poll(&mut fifth).is_none());
        let fourth = poll(&mut fourth).unwrap().unwrap();
        drop(fourth);
        assert!(poll(&mut fifth).unwrap().is_ok());
    }

    #[test]
    fn a_dropped_waiter_leaves_the_queue() {
        let slots = two();
        let (first, second) = (take(&slots), take(&slots));
        let (third, mut fourth) = (wait(&slots, 0, 0), wait(&slots, 0, 0));
        drop(third);
        drop(first);
        drop(poll(&mut fourth).unwrap().unwrap());
        drop(fourth);
        drop(second);
        assert!(is_idle(&slots));
    }

    #[test]
    fn a_waiter_dropped_after_its_grant_passes_the_slot_on() {
        let slots = two();
        let (first, second) = (take(&slots), take(&slots));
        let (third, mut fourth) = (wait(&slots, 0, 0), wait(&slots, 0, 0));
        drop(first);
        drop(third);
        drop(poll(&mut fourth).unwrap().unwrap());
        drop(fourth);
        drop(second);
        assert!(is_idle(&slots));
    }

    #[test]
    fn a_queue_is_bounded_in_number_and_in_bytes() {
        let slots = two();
        let _out = (take(&slots), take(&slots));
        let heavy = wait(&slots, 0, 1_000);
        let mut next: Taking<'_> = Box::pin(slots.acquire(0, 1));
        assert_eq!(poll(&mut next).unwrap().err(), Some(QueueFull));
        drop(heavy);
        let _exactly = (wait(&slots, 0, 60), wait(&slots, 0, 40));
        let mut next: Taking<'_> = Box::pin(slots.acquire(0, 1));
        assert_eq!(poll(&mut next).unwrap().err(), Some(QueueFull));
        let _four = (wait(&slots, 0, 0), wait(&slots, 0, 0));
        let mut next: Taking<'_> = Box::pin(slots.acquire(0, 0));
        assert_eq!(poll(&mut next).unwrap().err(), Some(QueueFull));
    }

    #[test]
    fn owners_alternate_however_many_calls_one_queues() {
        let bounds = QueueBounds {
            waiting: 64,
            ..BOUNDS
        };
        let slots = Slots::new(
            |out: &[u8], _| out.len() < 2,
            QueueBounds {
                waiting_each: 40,
                ..bounds
            },
        );
        let mut slots_taken = vec![take(&slots), take(&slots)];
        let mut line: Vec<(u8, Taking<'_>)> = (0..30).map(|_| (0, wait(&slots, 0, 0))).collect();
        line.extend((0..3).map(|_| (1, wait(&slots, 1, 0))));
        line.push((2, wait(&slots, 2, 0)));
        let mut order = Vec::new();
        while let Some(slot) = slots_taken.pop() {
            drop(slot);
            line.retain_mut(|(owner, taking)| match poll(taking) {
                Some(slot) => {
                    order.push(*owner);
                    slots_taken.push(slot.unwrap());
                    false
                }
                None => true,
            });
        }
        assert_eq!(order[..8], [0, 1, 2, 0, 1, 0, 1, 0]);
        assert_eq!(order.len(), 34);
        assert!(is_idle(&slots));
    }

    #[test]
    fn one_owner_cannot_fill_the_queue() {
        let bounds = QueueBounds {
            waiting_each: 2,
            bytes_each: 50,
            ..BOUNDS
        };
        let slots = Slots::new(|out: &[u8], _| out.len() < 2, bounds);
        let _out = (take(&slots), take(&slots));
        let refused = |kind, bytes| {
            let mut next: Taking<'_> = Box::pin(slots.acquire(kind, bytes));
            poll(&mut next).unwrap().err() == Some(QueueFull)
        };
        let heavy = wait(&slots, 0, 90);
        assert!(refused(0, 1));
        drop(heavy);
        let _two = (wait(&slots, 0, 25), wait(&slots, 0, 25));
        assert!(refused(0, 0));
        let _other = wait(&slots, 1, 50);
        assert!(refused(2, 1), "the line is full");
    }

    /// For random actions of owners, no slot is lost, and an owner with one request waits at most one
    /// round of all owners.
    #[test]
    fn random_play_gives_each_owner_its_turn() {
        for seed in 1..=200_u64 {
            let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let slots = Slots::new(
                |out: &[u8], kind| {
                    out.len() < 3
                        && out
                            .iter()
                            .filter(|slots_taken| **slots_taken == kind)
                            .count()
                            < 2
                },
                QueueBounds {
                    waiting: 1_000,
                    waiting_each: 1_000,
                    ..BOUNDS
                },
            );
            let mut slots_taken: Vec<Slot<'_, u8>> = Vec::new();
            // Each waiter with the number of slots that others got since it arrived.
            let mut line: Vec<(u8, usize, Taking<'_>)> = Vec::new();
            for step in 0..300 {
                let case = format!("seed {seed}, step {step}");
                match dice.roll(4) {
                    0 | 1 => {
                        // Owner 0 sends most of the requests.
                        let owner = [0, 0, 0, 1, 2][dice.roll(5)];
                        line.push((owner, 0, Box::pin(slots.acquire(owner, 0))));
                    }
                    2 if !slots_taken.is_empty() => {
                        drop(slots_taken.swap_remove(dice.roll(slots_taken.len())));
                    }
                    3 if !line.is_empty() => drop(line.remove(dice.roll(line.len()))),
                    _ => {}
                }
                let mut given = 0;
                line.retain_mut(|(_, _, taking)| match poll(taking) {
                    Some(slot) => {
                        given += 1;
                        slots_taken.push(slot.unwrap());
                        false
                    }
                    None => true,
                });
                let mut first = [true; 3];
                for (owner, waited, _) in &mut line {
                    let is_first = std::mem::replace(&mut first[usize::from(*owner)], false);
                    let holds = slots_taken.iter().any(|slot| slot.kind == *owner);
                    *waited = if is_first && !holds {
                        *waited + given
                    } else {
                        0
                    };
                    assert!(*waited <= 3, "{case}: {owner} waits for {waited} others");
                }
                assert!(slots_taken.len() <= 3, "{case}");
            }
            drop(line);
            drop(slots_taken);
            assert!(is_idle(&slots), "seed {seed}");
        }
    }

    #[test]
    fn an_admissible_kind_does_not_wait_for_a_blocked_one() {
        // Kind 1 runs alone, kind 2 at any time.
        let slots = Slots::new(|out: &[u8], kind| kind == 2 || out.is_empty(), BOUNDS);
        let first = take(&slots);
        let mut one = wait(&slots, 1, 0);
        let mut two: Taking<'_> = Box::pin(slots.acquire(2, 0));
        let two = poll(&mut two).unwrap().unwrap();
        drop(first);
        assert!(poll(&mut one).is_none());
        drop(two);
        assert!(poll(&mut one).unwrap().is_ok());
    }

    #[test]
    fn a_granted_waiter_is_woken_once() {
        struct Count(AtomicUsize);
        impl Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let count = Arc::new(Count(AtomicUsize::new(0)));
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let slots = two();
        let (first, second) = (take(&slots), take(&slots));
        let mut third: Taking<'_> = Box::pin(slots.acquire(0, 0));
        assert!(third.as_mut().poll(&mut context).is_pending());
        drop(first);
        drop(second);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }
}
