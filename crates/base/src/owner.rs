//! The owner of a task: an agent, and one of its sessions. Capacity is shared fairly among
//! owners: the sessions of an object share slots (`base/slots.rs`), and the agents of an
//! isolate share bytes (`base/budget.rs`).
//!
//! The owner is a property of the task, not a parameter of calls: a turn calls models,
//! tools and backends from many places, and none of them can forget to pass it.

use std::cell::Cell;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Names, hashed to numbers. Owners with equal numbers have one share together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Owner {
    pub agent: u64,
    pub session: u64,
}

thread_local! {
    static CURRENT: Cell<Owner> = const { Cell::new(Owner { agent: 0, session: 0 }) };
}

impl Owner {
    /// A session of the agent that owns the running task.
    pub fn named(session: &str) -> Self {
        Self {
            session: number_of(session),
            ..Self::current()
        }
    }

    /// An agent, without a session.
    pub fn agent(name: &str) -> Self {
        Self {
            agent: number_of(name),
            session: 0,
        }
    }

    /// The owner of the running task; by default, nobody.
    pub fn current() -> Self {
        CURRENT.get()
    }

    /// Runs a future for this owner. Everything that the future polls has the same owner.
    pub fn run<F: Future>(self, task: F) -> OwnedTask<F> {
        OwnedTask {
            owner: self,
            task: Box::pin(task),
        }
    }
}

/// FNV-1a, which needs no tables.
fn number_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// A task with an owner.
pub struct OwnedTask<F> {
    owner: Owner,
    task: Pin<Box<F>>,
}

/// Runs a future for a session of the running task's agent.
pub fn work_for<F: Future>(session: &str, task: F) -> OwnedTask<F> {
    Owner::named(session).run(task)
}

impl<F: Future> Future for OwnedTask<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let before = CURRENT.replace(self.owner);
        let outcome = self.task.as_mut().poll(context);
        CURRENT.set(before);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Waker;

    use super::*;

    #[test]
    fn the_owner_is_current_whenever_its_task_is_polled() {
        let mut polls = 0;
        let ask = poll_fn(|_| {
            polls += 1;
            match polls {
                1 => Poll::Pending,
                _ => Poll::Ready(Owner::current()),
            }
        });
        let within = async {
            let inner = work_for("inner", ask).await;
            (inner, Owner::current())
        };
        let mut outer = pin!(work_for("outer", within));
        let mut context = Context::from_waker(Waker::noop());
        assert!(outer.as_mut().poll(&mut context).is_pending());
        assert_eq!(Owner::current(), Owner::default());
        let owners = (Owner::named("inner"), Owner::named("outer"));
        assert_eq!(outer.poll(&mut context), Poll::Ready(owners));
        assert_eq!(Owner::current(), Owner::default());
        assert_ne!(owners.0, owners.1);
    }
}
