//! Native stand-ins for what the runtime gives a Durable Object: SQLite with workerd's
//! limits, a database that fails on demand, a clock that a test sets, and a scripted
//! outside.

mod failing;
mod host;
mod outbound;
mod sqlite;

pub use failing::Failing;
pub use host::FixedHost;
pub use outbound::{Onlookers, Said, Script, Trickle, cut_off, wait_for};
pub use sqlite::{NativeText, Sqlite};

use crate::store::schema;

/// A database with this build's tables, as an object has it at its first request.
pub fn migrated() -> Sqlite {
    let db = Sqlite::new();
    schema::migrate(&db, &FixedHost::default()).unwrap();
    db
}
