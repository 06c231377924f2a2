//! Native stand-ins for what a Durable Object gives: SQLite with workerd's
//! limits, the same engine failing on demand, a clock that a test sets, and an
//! outside that says what a test wrote.

mod failing;
mod host;
mod outbound;
mod sqlite;

pub use failing::Failing;
pub use host::FixedHost;
pub use outbound::{Onlookers, Said, Script, cut_off, wait_for};
pub use sqlite::Sqlite;

use crate::store::schema;

/// An engine with this build's tables, as an object has them at its first request.
pub fn migrated() -> Sqlite {
    let db = Sqlite::new();
    schema::migrate(&db, &FixedHost::default()).unwrap();
    db
}
