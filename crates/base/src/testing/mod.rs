//! Native stand-ins for the runtime of a Durable Object: SQLite with workerd's limits, a
//! database that fails on demand, a clock that a test sets, and a scripted outside: the
//! answers of models, tools and services.

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
pub use outbound::{Said, Script, Trickle, cut_off};
pub use sqlite::{NativeText, Sqlite};

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Runs a future that never waits.
pub fn wait_for<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    match future.as_mut().poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("a test waits for nothing"),
    }
}

/// Rolls that a seed decides.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % sides
    }
}
