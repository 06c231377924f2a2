//! A limit on how many holders run at once; the others wait in line. Waiters get their
//! slots in the order of arrival. A waiter that gives up leaves the line.
//!
//! The mutex of `futures-util` knows neither that order nor kinds of holders, and no
//! bound on the bytes that wait.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// The most waiters and bytes in a line.
#[derive(Clone, Copy, Debug)]
pub struct QueueBounds {
    pub waiting: usize,
    /// The most bytes that all waiters carry together.
    pub bytes: usize,
}

/// The line has reached its bounds.
#[derive(Debug, PartialEq)]
pub struct QueueFull;

/// Slots for holders of the kinds `K`.
pub struct Slots<K> {
    /// Whether a holder of this kind may start while these holders are out.
    may_go: fn(&[K], K) -> bool,
    bounds: QueueBounds,
    /// The kinds of the present holders.
    out: RefCell<Vec<K>>,
    line: RefCell<VecDeque<Rc<Waiter<K>>>>,
}

struct Waiter<K> {
    kind: K,
    bytes: usize,
    /// Whether a slot is reserved for this waiter.
    is_called: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

/// A slot, which is given back when this value is dropped.
pub struct Slot<'a, K: Copy + PartialEq> {
    slots: &'a Slots<K>,
    kind: K,
}

/// A waiter's entry in the line. Dropping the entry leaves the line.
struct QueueEntry<'a, K: Copy + PartialEq> {
    slots: &'a Slots<K>,
    waiter: Rc<Waiter<K>>,
}

impl<K: Copy + PartialEq> Slots<K> {
    /// `may_go` must accept every kind while there is no holder.
    pub fn new(may_go: fn(&[K], K) -> bool, bounds: QueueBounds) -> Self {
        Self {
            may_go,
            bounds,
            out: RefCell::default(),
            line: RefCell::default(),
        }
    }

    /// Waits for a slot. `bytes` is what the waiter holds in memory meanwhile.
    pub async fn take(&self, kind: K, bytes: usize) -> Result<Slot<'_, K>, QueueFull> {
        // A waiter of this kind would not be in line if this kind could go: nobody is
        // overtaken.
        if (self.may_go)(&self.out.borrow(), kind) {
            self.out.borrow_mut().push(kind);
            return Ok(Slot { slots: self, kind });
        }
        let place = self.stand_in_line(kind, bytes)?;
        poll_fn(|context| {
            if place.waiter.is_called.get() {
                return Poll::Ready(());
            }
            place.waiter.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await;
        // The slot passes from the queue entry to the `Slot`.
        place.waiter.is_called.set(false);
        Ok(Slot { slots: self, kind })
    }

    fn stand_in_line(&self, kind: K, bytes: usize) -> Result<QueueEntry<'_, K>, QueueFull> {
        let mut line = self.line.borrow_mut();
        let carried: usize = line.iter().map(|waiter| waiter.bytes).sum();
        // The first waiter of an empty line may carry any number of bytes.
        let is_too_heavy = !line.is_empty() && carried + bytes > self.bounds.bytes;
        if line.len() >= self.bounds.waiting || is_too_heavy {
            return Err(QueueFull);
        }
        let waiter = Rc::new(Waiter {
            kind,
            bytes,
            is_called: Cell::new(false),
            waker: RefCell::default(),
        });
        line.push_back(Rc::clone(&waiter));
        Ok(QueueEntry {
            slots: self,
            waiter,
        })
    }

    fn give_back(&self, kind: K) {
        let mut out = self.out.borrow_mut();
        if let Some(index) = out.iter().position(|held| *held == kind) {
            out.swap_remove(index);
        }
        drop(out);
        self.call();
    }

    /// Reserves slots for all waiters who may go now, in the order of the line.
    fn call(&self) {
        let mut wakers = Vec::new();
        self.line.borrow_mut().retain(|waiter| {
            let mut out = self.out.borrow_mut();
            let may_go = (self.may_go)(&out, waiter.kind);
            if may_go {
                out.push(waiter.kind);
                waiter.is_called.set(true);
                wakers.extend(waiter.waker.take());
            }
            !may_go
        });
        // A woken task may call these slots again.
        for waker in wakers {
            waker.wake();
        }
    }
}

impl<K: Copy + PartialEq> Drop for Slot<'_, K> {
    fn drop(&mut self) {
        self.slots.give_back(self.kind);
    }
}

impl<K: Copy + PartialEq> Drop for QueueEntry<'_, K> {
    fn drop(&mut self) {
        if self.waiter.is_called.get() {
            // The waiter gave up after its slot was reserved.
            self.slots.give_back(self.waiter.kind);
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

    const BOUNDS: QueueBounds = QueueBounds {
        waiting: 4,
        bytes: 100,
    };

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
        let mut taking: Taking<'_> = Box::pin(slots.take(0, 0));
        poll(&mut taking).unwrap().unwrap()
    }

    fn is_idle(slots: &Slots<u8>) -> bool {
        slots.out.borrow().is_empty() && slots.line.borrow().is_empty()
    }

    fn wait<'a>(slots: &'a Slots<u8>, kind: u8, bytes: usize) -> Taking<'a> {
        let mut taking: Taking<'_> = Box::pin(slots.take(kind, bytes));
        assert!(poll(&mut taking).is_none());
        taking
    }

    #[test]
    fn as_many_go_as_may_and_the_others_in_their_order() {
        let slots = two();
        let (first, _second) = (take(&slots), take(&slots));
        let (mut third, mut fourth) = (wait(&slots, 0, 0), wait(&slots, 0, 0));
        drop(first);
        // Whoever comes now, and whoever asks first, the third was there before.
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
    fn who_gives_up_leaves_the_line() {
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
    fn who_gives_up_when_called_leaves_the_slot_to_the_next() {
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
    fn a_line_is_bounded_in_number_and_in_bytes() {
        let slots = two();
        let _out = (take(&slots), take(&slots));
        let heavy = wait(&slots, 0, 1_000);
        let mut next: Taking<'_> = Box::pin(slots.take(0, 1));
        assert_eq!(poll(&mut next).unwrap().err(), Some(QueueFull));
        drop(heavy);
        let _exactly = (wait(&slots, 0, 60), wait(&slots, 0, 40));
        let mut next: Taking<'_> = Box::pin(slots.take(0, 1));
        assert_eq!(poll(&mut next).unwrap().err(), Some(QueueFull));
        let _four = (wait(&slots, 0, 0), wait(&slots, 0, 0));
        let mut next: Taking<'_> = Box::pin(slots.take(0, 0));
        assert_eq!(poll(&mut next).unwrap().err(), Some(QueueFull));
    }

    #[test]
    fn a_kind_that_may_go_does_not_wait_for_one_that_may_not() {
        // Ones go alone, twos whenever.
        let slots = Slots::new(|out: &[u8], kind| kind == 2 || out.is_empty(), BOUNDS);
        let first = take(&slots);
        let mut one = wait(&slots, 1, 0);
        let mut two: Taking<'_> = Box::pin(slots.take(2, 0));
        let two = poll(&mut two).unwrap().unwrap();
        drop(first);
        assert!(poll(&mut one).is_none());
        drop(two);
        assert!(poll(&mut one).unwrap().is_ok());
    }

    #[test]
    fn who_is_called_is_woken_once() {
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
        let mut third: Taking<'_> = Box::pin(slots.take(0, 0));
        assert!(third.as_mut().poll(&mut context).is_pending());
        drop(first);
        drop(second);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }
}
