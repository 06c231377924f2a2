//! How many entries a block has, and how many of its deleted items are remembered, without
//! reading them.
//!
//! A count that is written with each entry would cost a row more per entry. So entries up to
//! some number are counted in a row per block, and the few above it are counted when
//! somebody asks. Numbers only rise, and the counts follow once too many are uncounted.

use crate::base::columns::{FromRow, find, find_value};
use crate::base::database::{Database, Row, SqlValue};
use crate::base::error::Result;
use crate::base::ids::Id;
use crate::store::stored::{COUNTED_ENTRIES, write_stored};

/// How many entries may be uncounted. Asking reads so many rows at most, and one entry in so
/// many writes its block's count.
const MAX_UNCOUNTED: i64 = 32;

/// SQL: up to which number entries are counted.
fn counted_to() -> String {
    format!("coalesce((SELECT value + 0 FROM cf_agents_config WHERE key = '{COUNTED_ENTRIES}'), 0)")
}

/// The start of the statements that count. What they count is added to a block's row.
const INSERT_COUNTS: &str = "INSERT INTO cf_agents_item_counts (scope, block, entries, deleted)";
const ADD_TO_COUNTS: &str = "
         ON CONFLICT (scope, block) DO UPDATE
        SET entries = entries + excluded.entries,
            deleted = deleted + excluded.deleted";

/// How many entries the block has.
pub fn count_entries(db: &dyn Database, scope: &str, block: &str) -> Result<i64> {
    let sql = format!(
        "SELECT coalesce((SELECT entries
                            FROM cf_agents_item_counts
                           WHERE scope = ?1
                             AND block = ?2), 0)
                + (SELECT count(*)
                     FROM cf_agents_entries NOT INDEXED
                    WHERE number > {}
                      AND scope = ?1
                      AND block = ?2)",
        counted_to()
    );
    let count = find_value(db, &sql, &[scope.into(), block.into()])?;
    Ok(count.unwrap_or(0))
}

/// The number of the next entry.
pub fn next_number(db: &dyn Database) -> Result<i64> {
    let sql = format!(
        "SELECT max(coalesce((SELECT max(number) FROM cf_agents_entries), 0), {}) + 1",
        counted_to()
    );
    Ok(find_value(db, &sql, &[])?.unwrap_or(1))
}

/// Counts the entries if this one, the newest, makes too many uncounted ones. Part of the
/// transaction that writes the entry.
pub fn note_entry(db: &dyn Database, number: i64) -> Result<()> {
    match number - find_counted(db)? >= MAX_UNCOUNTED {
        true => count_new(db, number),
        false => Ok(()),
    }
}

fn find_counted(db: &dyn Database) -> Result<i64> {
    let counted = find_value(db, &format!("SELECT {}", counted_to()), &[])?;
    Ok(counted.unwrap_or(0))
}

/// Counts all entries up to this number.
fn count_new(db: &dyn Database, number: i64) -> Result<()> {
    let sql = format!(
        "{INSERT_COUNTS}
         SELECT scope, block, count(*), 0
           FROM cf_agents_entries NOT INDEXED
          WHERE number > {}
          GROUP BY scope, block {ADD_TO_COUNTS}",
        counted_to()
    );
    db.run(&sql, &[])?;
    write_stored(db, COUNTED_ENTRIES, &number)
}

/// Counts the entries of a session that were copied with new numbers, and the deleted items
/// that were copied with them. Part of the fork's transaction.
pub fn count_copies(db: &dyn Database, session_id: &Id) -> Result<()> {
    let sql = format!(
        "{INSERT_COUNTS}
         SELECT ?1, block, sum(entries), sum(deleted)
           FROM (SELECT block, count(*) AS entries, 0 AS deleted
                   FROM cf_agents_entries
                  WHERE scope = ?1
                    AND number <= {}
                  GROUP BY block
                 UNION ALL
                 SELECT block, 0, count(*)
                   FROM cf_agents_item_versions
                  WHERE scope = ?1
                    AND content IS NULL
                  GROUP BY block)
          GROUP BY block",
        counted_to()
    );
    db.run(&sql, &[session_id.as_str().into()])?;
    let newest: Option<Option<i64>> =
        find_value(db, "SELECT max(number) FROM cf_agents_entries", &[])?;
    match newest.flatten() {
        Some(newest) if newest > find_counted(db)? => count_new(db, newest),
        Some(_) | None => Ok(()),
    }
}

/// What a write does to a block's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CountChange {
    pub entries: i64,
    /// Of deleted items that are remembered.
    pub deleted: i64,
}

impl CountChange {
    /// The change when the entry of this number goes. An uncounted one goes by itself.
    pub fn without(db: &dyn Database, number: i64) -> Result<Self> {
        let is_counted = number <= find_counted(db)?;
        Ok(Self {
            entries: -i64::from(is_counted),
            deleted: 0,
        })
    }

    /// Writes the block's row, if anything changes. Part of a transaction.
    pub fn write(self, db: &dyn Database, scope: &str, block: &str) -> Result<()> {
        if self == Self::default() {
            return Ok(());
        }
        let sql = format!("{INSERT_COUNTS} VALUES (?1, ?2, ?3, ?4) {ADD_TO_COUNTS}");
        let params: [SqlValue; 4] = [
            scope.into(),
            block.into(),
            self.entries.into(),
            self.deleted.into(),
        ];
        db.run(&sql, &params)
    }
}

/// A deleted item that is remembered.
pub struct DeletedItem {
    pub key: String,
    pub version: i64,
}

impl FromRow<'_> for DeletedItem {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            key: row.text(0)?.to_owned(),
            version: row.integer(1)?,
        })
    }
}

/// How many deleted items of the block are remembered.
pub fn count_deleted(db: &dyn Database, scope: &str, block: &str) -> Result<i64> {
    let sql = "SELECT deleted
                 FROM cf_agents_item_counts
                WHERE scope = ?1
                  AND block = ?2";
    let count = find_value(db, sql, &[scope.into(), block.into()])?;
    Ok(count.unwrap_or(0))
}

/// The deleted item that is remembered longest. The index holds the deleted items alone.
pub fn find_oldest_deleted(
    db: &dyn Database,
    scope: &str,
    block: &str,
) -> Result<Option<DeletedItem>> {
    find(
        db,
        "SELECT key, version
           FROM cf_agents_item_versions
          WHERE scope = ?1
            AND block = ?2
            AND content IS NULL
          ORDER BY written_at
          LIMIT 1",
        &[scope.into(), block.into()],
    )
}
