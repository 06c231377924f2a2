//! Native test doubles for the runtime of a Durable Object: SQLite with workerd's limits, a
//! database that fails on demand, a clock that a test sets, and scripted answers of models,
//! tools and services.

pub mod archive;
mod failing;
mod guard;
mod host;
mod outbound;
pub mod recovery;
mod sqlite;

pub use failing::Failing;
pub use guard::{ErasingMark, GuardedTable};
pub use host::FixedHost;
pub use outbound::{Script, ScriptedAnswer, Trickle, cut_off};
pub use sqlite::{NativeText, Sqlite};

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Runs a future that is ready immediately.
pub fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    match future.as_mut().poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a test waits for nothing"),
    }
}

/// A deterministic random generator with a seed.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % sides
    }
}
