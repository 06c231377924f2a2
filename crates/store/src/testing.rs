//! A database with this build's tables, for tests. `lifecycle/testing.rs` guards its texts.

use std::path::Path;
use std::sync::OnceLock;

use base::testing::{FixedHost, Sqlite};

use crate::schema;

/// As [`migrated`], in a file with a write-ahead log.
pub fn migrated_at(path: &Path) -> Sqlite {
    let db = Sqlite::at(path);
    schema::migrate(&db, &FixedHost::default()).unwrap();
    db
}

/// A database with this build's tables, like an object's at its first request.
pub fn migrated() -> Sqlite {
    /// Thousands of tests' agents begin with the same bytes.
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    Sqlite::from_file(FILE.get_or_init(|| {
        let mut db = Sqlite::new();
        schema::migrate(&db, &FixedHost::default()).unwrap();
        db.bytes()
    }))
}
