//! A database with this build's tables, for tests. SQLite refuses a statement that deletes a text in
//! another way than [`Delete`](base::database::Delete).

use std::path::Path;
use std::sync::OnceLock;

use base::tables::PurgeRule;
use base::testing::{GuardedTable, Sqlite};

use crate::tables::tables;

/// As [`migrated`], in a file with a write-ahead log.
pub fn migrated_at(path: &Path) -> Sqlite {
    guarded(store::testing::migrated_at(path))
}

/// A database with this build's tables, like an object's at its first request.
pub fn migrated() -> Sqlite {
    guarded(store::testing::migrated())
}

fn guarded(db: Sqlite) -> Sqlite {
    db.guard(guarded_tables());
    db
}

/// The tables whose rows contain user text.
pub fn guarded_tables() -> &'static [GuardedTable] {
    static GUARDED: OnceLock<Vec<GuardedTable>> = OnceLock::new();
    GUARDED.get_or_init(|| {
        let guarded = tables().filter_map(|table| {
            let texts = match table.purge {
                PurgeRule::Overwritten { texts, .. } | PurgeRule::Parts { texts, .. } => texts,
                PurgeRule::Merged => &[],
                PurgeRule::Nothing(_) => return None,
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
