//! A database with this build's tables, for tests.

use std::sync::OnceLock;

use base::testing::{FixedHost, Sqlite};

use crate::schema;

/// A database with this build's tables, as an object has it at its first request.
pub fn migrated() -> Sqlite {
    /// Thousands of tests' agents begin with the same bytes.
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    Sqlite::from_file(FILE.get_or_init(|| {
        let mut db = Sqlite::new();
        schema::migrate(&db, &FixedHost::default()).unwrap();
        db.bytes()
    }))
}
