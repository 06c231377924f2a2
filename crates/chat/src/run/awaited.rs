//! Turns that have not started yet, and that callers wait for. `R` is a running turn.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use base::error::Error;
use base::ids::Id;

/// A turn that has not started yet, shared with the callers that wait for it.
pub struct Awaited<R> {
    session_id: Id,
    turn_id: String,
    start: RefCell<Option<TurnStart<R>>>,
    wakers: RefCell<Vec<Waker>>,
}

/// The result of waiting for a turn.
pub enum TurnStart<R> {
    Running(Rc<R>),
    /// The turn will not start. `None`: its message was withdrawn.
    Never(Option<Error>),
}

impl<R> Clone for TurnStart<R> {
    fn clone(&self) -> Self {
        match self {
            Self::Running(running) => Self::Running(Rc::clone(running)),
            Self::Never(error) => Self::Never(error.clone()),
        }
    }
}

impl<R> Awaited<R> {
    pub fn new(session_id: &Id, turn_id: &str) -> Self {
        Self {
            session_id: session_id.clone(),
            turn_id: turn_id.to_owned(),
            start: RefCell::default(),
            wakers: RefCell::default(),
        }
    }

    pub fn is_in(&self, session_id: &Id) -> bool {
        self.session_id == *session_id
    }

    pub fn is_of(&self, session_id: &Id, turn_id: &str) -> bool {
        self.session_id == *session_id && self.turn_id == turn_id
    }

    pub fn resolve(&self, start: TurnStart<R>) {
        self.start.replace(Some(start));
        for waker in self.wakers.take() {
            waker.wake();
        }
    }

    /// Waits until the turn starts or is canceled.
    pub async fn wait_for_start(&self) -> TurnStart<R> {
        poll_fn(|context| {
            if let Some(start) = &*self.start.borrow() {
                return Poll::Ready(start.clone());
            }
            self.wakers.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}
