//! A database with this build's tables, for tests.

use std::path::Path;
use std::sync::OnceLock;

use base::testing::{FixedHost, GuardedTable, Sqlite};

use crate::erased::InPurge;
use crate::schema;
use crate::tables::TABLES;

/// As [`migrated`], in a file with a write-ahead log.
pub fn migrated_at(path: &Path) -> Sqlite {
    let db = Sqlite::at(path);
    schema::migrate(&db, &FixedHost::default()).unwrap();
    db.guard(guarded_tables());
    db
}

/// The tables whose rows contain user text.
pub fn guarded_tables() -> &'static [GuardedTable] {
    static GUARDED: OnceLock<Vec<GuardedTable>> = OnceLock::new();
    GUARDED.get_or_init(|| {
        let guarded = TABLES.iter().filter_map(|table| {
            let texts = match table.purge {
                InPurge::Overwritten { texts, .. } | InPurge::Parts { texts, .. } => texts,
                InPurge::Merged => &[],
                InPurge::Nothing(_) => return None,
            };
            Some(GuardedTable {
                name: table.name,
                texts,
                is_virtual: texts.is_empty(),
            })
        });
        guarded.collect()
    })
}

/// A database with this build's tables, as an object has it at its first request.
pub fn migrated() -> Sqlite {
    /// Thousands of tests' agents begin with the same bytes.
    static FILE: OnceLock<Vec<u8>> = OnceLock::new();
    let db = Sqlite::from_file(FILE.get_or_init(|| {
        let mut db = Sqlite::new();
        schema::migrate(&db, &FixedHost::default()).unwrap();
        db.bytes()
    }));
    db.guard(guarded_tables());
    db
}
