//! The ages of a scope's memory, as retention reads them, block by block. `lifecycle/retention/memory.rs`
//! decides what is too old.

use crate::tables::ITEM_VERSIONS;
use base::columns::{find_value, load};
use base::database::{Database, Delete, SqlValue};
use base::error::Result;
use base::json;
use base::{row, sql};

/// A block of a scope: the scope and the block's key.
pub type BlockOf<'a> = (&'a str, &'a str);

/// The rows that retention reads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgedRows {
    BlockVersions,
    ItemVersions,
    Entries,
}

/// The next block of the scope that has such rows.
pub fn find_next_block(
    db: &dyn Database,
    rows: AgedRows,
    (scope, after): BlockOf<'_>,
) -> Result<Option<String>> {
    let (table, block) = match rows {
        AgedRows::BlockVersions => ("cf_agents_block_versions", "key"),
        AgedRows::ItemVersions => ("cf_agents_item_versions", "block"),
        AgedRows::Entries => ("cf_agents_entries", "block"),
    };
    let sql = format!(
        "SELECT {block}
           FROM {table}
          WHERE scope = +?1
            AND {block} > +?2
          ORDER BY {block}
          LIMIT 1"
    );
    find_value(db, &sql, &[scope.into(), after.into()])
}

row! {
    /// An earlier version of an entry or a document, without its text.
    pub struct AgedVersion {
        pub key: String = "key",
        pub version: i64 = "version",
        pub written_at: i64 = "written_at",
        /// Whether the version records that the item was deleted.
        pub is_deletion: bool = "content IS NULL",
    }
}

/// The versions of the items after this key, item by item.
pub fn load_versions(
    db: &dyn Database,
    (scope, block): BlockOf<'_>,
    after: &str,
    limit: i64,
) -> Result<Vec<AgedVersion>> {
    let sql = sql!(
        "SELECT ",
        AgedVersion::COLUMNS,
        " FROM cf_agents_item_versions
          WHERE scope = +?1
            AND block = +?2
            AND key > +?3
          ORDER BY key, slot
          LIMIT ?4 + 0"
    );
    let params: [SqlValue; 4] = [scope.into(), block.into(), after.into(), limit.into()];
    load(db, sql, &params)
}

/// Deletes versions of an item. Part of a transaction.
pub fn delete_versions(
    db: &dyn Database,
    (scope, block): BlockOf<'_>,
    key: &str,
    versions: &[i64],
) -> Result<()> {
    Delete::from(
        ITEM_VERSIONS,
        "scope = ?1
         AND block = ?2
         AND key = ?3
         AND version IN (SELECT value FROM json_each(?4))",
        &[
            scope.into(),
            block.into(),
            key.into(),
            json::encode(&versions)?.into(),
        ],
    )
    .run(db)?;
    Ok(())
}

/// When the current text of an entry or a document was written.
pub fn find_written_at(
    db: &dyn Database,
    (scope, block): BlockOf<'_>,
    key: &str,
) -> Result<Option<i64>> {
    let sql = "SELECT coalesce((SELECT updated_at
                                  FROM cf_agents_entries
                                 WHERE scope = ?1
                                   AND block = ?2
                                   AND key = ?3),
                               (SELECT updated_at
                                  FROM cf_agents_skills
                                 WHERE scope = ?1
                                   AND block = ?2
                                   AND key = ?3))";
    let params: [SqlValue; 3] = [scope.into(), block.into(), key.into()];
    Ok(find_value::<Option<i64>>(db, sql, &params)?.flatten())
}

/// The deletions of items until `cutoff`, oldest first, from an index. `but_versions`: omits deletions
/// that were followed by a version until then.
pub fn load_deletions(
    db: &dyn Database,
    (scope, block): BlockOf<'_>,
    cutoff: i64,
    but_versions: Option<i64>,
    limit: i64,
) -> Result<Vec<AgedVersion>> {
    let sql = sql!(
        "SELECT ",
        AgedVersion::COLUMNS,
        " FROM cf_agents_item_versions AS t INDEXED BY cf_agents_deleted_items
          WHERE scope = +?1
            AND block = +?2
            AND content IS NULL
            AND written_at <= +?3
            AND (?5 IS NULL
                 OR NOT EXISTS (SELECT 1
                                  FROM cf_agents_item_versions AS newer
                                 WHERE newer.scope = t.scope
                                   AND newer.block = t.block
                                   AND newer.key = t.key
                                   AND newer.version > t.version
                                   AND newer.written_at <= ?5))
          ORDER BY written_at
          LIMIT ?4 + 0"
    );
    let params: [SqlValue; 5] = [
        scope.into(),
        block.into(),
        cutoff.into(),
        limit.into(),
        but_versions.into(),
    ];
    load(db, sql, &params)
}

/// The entries after this key, and when each was written.
pub fn load_entries(
    db: &dyn Database,
    (scope, block): BlockOf<'_>,
    after: &str,
    limit: i64,
) -> Result<Vec<(String, i64)>> {
    let sql = "SELECT key, updated_at
                 FROM cf_agents_entries
                WHERE scope = +?1
                  AND block = +?2
                  AND key > +?3
                ORDER BY key
                LIMIT ?4 + 0";
    let params: [SqlValue; 4] = [scope.into(), block.into(), after.into(), limit.into()];
    load(db, sql, &params)
}
