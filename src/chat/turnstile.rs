//! One at a time, for work that waits: whoever holds the pass goes, the others
//! wait for it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

#[derive(Default)]
pub struct Turnstile {
    is_taken: Cell<bool>,
    wakers: RefCell<Vec<Waker>>,
}

/// Given back when it is dropped.
pub struct Pass<'a>(&'a Turnstile);

impl Turnstile {
    pub async fn pass(&self) -> Pass<'_> {
        poll_fn(|context| {
            if self.is_taken.replace(true) {
                self.wakers.borrow_mut().push(context.waker().clone());
                return Poll::Pending;
            }
            Poll::Ready(())
        })
        .await;
        Pass(self)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.is_taken.set(false);
        for waker in self.0.wakers.take() {
            waker.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::Future as _;
    use std::pin::pin;
    use std::task::Context;

    use super::*;

    #[test]
    fn the_second_waits_for_the_first() {
        let turnstile = Turnstile::default();
        let mut context = Context::from_waker(Waker::noop());
        let first = match pin!(turnstile.pass()).poll(&mut context) {
            Poll::Ready(pass) => pass,
            Poll::Pending => panic!("nobody is before the first"),
        };
        let mut second = pin!(turnstile.pass());
        assert!(second.as_mut().poll(&mut context).is_pending());
        drop(first);
        assert!(second.as_mut().poll(&mut context).is_ready());
    }
}
