//! The bytes that deleted rows leave in the database's file. SQLite frees the place of a row
//! as it is, and moves rows between pages without clearing where they stood. So after a
//! purge, free pages are filled with zeros, small tables are written anew into such pages,
//! and free pages are filled again.
//!
//! A Durable Object refuses `PRAGMA secure_delete` and `VACUUM`, which would do the same.

use base::columns::{find_value, load};
use base::database::{Database, atomically, find_row};
use base::error::{Error, Result};

/// A table is written anew after a purge if it has no more rows, and the database no more
/// bytes: a second copy stands beside the first for a moment, and each row is billed.
const MAX_ROWS: i64 = 2_000;
const MAX_BYTES: i64 = 24 << 20;

/// How much is filled: as much as a purge of a small database frees, and the 1,022 pages
/// that SQLite's list of free pages may hold before them, since it takes the oldest of them
/// first. The write-ahead log is copied into the file after 1,000 pages, too.
pub const FILLED_BYTES: i64 = 8 << 20;

/// How much is filled where an object may have died while it cleared pages. Its next life
/// writes behind the frames that the log held, so the log is twice as long.
pub const FILLED_AFTER_DEATH_BYTES: i64 = 3 * FILLED_BYTES;

/// The most pages of an index of words that one purge merges at once. A
/// page has 4 KB.
const MAX_MERGED_PAGES: i64 = 4_096;

/// The bytes of one row of zeros. A value has 2 MB at most.
const ROW_BYTES: i64 = 1_900_000;

/// The table of zeros. It is there between two steps of filling.
const ZEROS: &str = "cf_agents_zeros";

/// Whether the table is small enough to be written anew.
fn is_small(db: &dyn Database, table: &str) -> Result<bool> {
    if db.size_bytes()? > MAX_BYTES {
        return Ok(false);
    }
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT {})",
        MAX_ROWS + 1
    );
    let rows: i64 = find_value(db, &sql, &[])?.unwrap_or(0);
    Ok(rows <= MAX_ROWS)
}

/// Writes those of these tables anew that are small, and merges a longer index of words: the
/// words of deleted rows are in an index until then. `fill_index` writes the rows of an
/// index of words, which is empty then.
///
/// The old tables go last. SQLite clears a page that it takes from the free ones, unless
/// the same transaction freed the page.
pub fn renew(
    db: &dyn Database,
    tables: &[&'static str],
    fill_index: &dyn Fn(&str) -> Result<()>,
) -> Result<()> {
    atomically(db, || {
        let mut old = Vec::new();
        for table in tables {
            let is_index = is_index(db, table)?;
            // An index that was never used has two rows of its own.
            if is_index && count_pages(db, table, 3)? < 3 {
                continue;
            }
            if is_small(db, table)? {
                old.push(write_anew(db, table, fill_index)?);
            } else if is_index {
                merge(db, table)?;
            }
        }
        for old in old {
            db.run(&format!("DROP TABLE {old}"), &[])?;
        }
        Ok(())
    })
}

fn is_index(db: &dyn Database, table: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM sqlite_master WHERE name = ?1 AND sql LIKE 'CREATE VIRTUAL TABLE%'";
    Ok(find_row(db, sql, &[table.into()])?.is_some())
}

/// How many rows the index keeps its words in; up to `most` are counted.
fn count_pages(db: &dyn Database, index: &str, most: i64) -> Result<i64> {
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {index}_data LIMIT {most})");
    Ok(find_value(db, &sql, &[])?.unwrap_or(0))
}

/// Merges an index of words into one segment: only then are the words of deleted rows gone
/// from it.
fn merge(db: &dyn Database, index: &str) -> Result<()> {
    if count_pages(db, index, MAX_MERGED_PAGES + 1)? <= MAX_MERGED_PAGES {
        let sql = format!("INSERT INTO {index} ({index}) VALUES ('optimize')");
        return db.run(&sql, &[]);
    }
    // A longer index is merged by so many pages now, and goes on with later writes.
    let sql = format!("INSERT INTO {index} ({index}, rank) VALUES ('merge', -{MAX_MERGED_PAGES})");
    db.run(&sql, &[])
}

/// Renames a table and writes its rows into a new one. Returns the old table's new name.
fn write_anew(
    db: &dyn Database,
    table: &str,
    fill_index: &dyn Fn(&str) -> Result<()>,
) -> Result<String> {
    let old = format!("{table}_old");
    let sql = "SELECT sql FROM sqlite_master WHERE name = ?1";
    let create: Option<String> = find_value(db, sql, &[table.into()])?;
    let create = create.ok_or_else(|| Error::storage("a table without a statement"))?;
    let indexes: Vec<(String, String)> = load(
        db,
        "SELECT name, sql
           FROM sqlite_master
          WHERE type = 'index'
            AND tbl_name = ?1
            AND sql IS NOT NULL
          ORDER BY name",
        &[table.into()],
    )?;
    db.run(&format!("ALTER TABLE {table} RENAME TO {old}"), &[])?;
    db.run(&create, &[])?;
    if create.starts_with("CREATE VIRTUAL TABLE") {
        fill_index(table)?;
        return Ok(old);
    }
    db.run(&format!("INSERT INTO {table} SELECT * FROM {old}"), &[])?;
    for (name, create) in indexes {
        db.run(&format!("DROP INDEX {name}"), &[])?;
        db.run(&create, &[])?;
    }
    Ok(old)
}

/// Fills free pages with zeros. The zeros have to be committed before
/// [`empty_free_pages`] frees the pages again: SQLite does not write a page that one
/// transaction both fills and frees.
pub fn fill_free_pages(db: &dyn Database, bytes: i64) -> Result<()> {
    atomically(db, || {
        // A step before this one may have died.
        db.run(&format!("DROP TABLE IF EXISTS {ZEROS}"), &[])?;
        db.run(&format!("CREATE TABLE {ZEROS} (zeros BLOB NOT NULL)"), &[])?;
        let mut left = bytes;
        while left > 0 {
            let sql = format!("INSERT INTO {ZEROS} (zeros) VALUES (zeroblob(?1))");
            db.run(&sql, &[left.min(ROW_BYTES).into()])?;
            left -= ROW_BYTES;
        }
        Ok(())
    })
}

pub fn empty_free_pages(db: &dyn Database) -> Result<()> {
    db.run(&format!("DROP TABLE IF EXISTS {ZEROS}"), &[])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::migrated;

    #[test]
    fn a_table_that_is_written_anew_has_its_rows_its_keys_and_its_indexes() {
        let db = migrated();
        db.run(
            "INSERT INTO cf_agents_entries (number, scope, block, key, content, created_at, updated_at)
             VALUES (7, '', 'kb', 'k', 'c', 1, 2), (9, 's', 'kb', 'k', 'd', 1, 2)",
            &[],
        )
        .unwrap();
        let schema = |db: &dyn Database| -> Vec<(String, String)> {
            load(
                db,
                "SELECT type, name FROM sqlite_master ORDER BY type, name",
                &[],
            )
            .unwrap()
        };
        let (before, rows) = (schema(&db), db.dump());
        for _ in 0..2 {
            let tables = [
                "cf_agents_entries",
                "cf_agents_events",
                "cf_agents_item_versions",
            ];
            renew(&db, &tables, &|_| Ok(())).unwrap();
        }
        assert_eq!(schema(&db), before);
        assert_eq!(db.dump(), rows);
        let again =
            "INSERT INTO cf_agents_entries (scope, block, key, content, created_at, updated_at)
                     VALUES ('', 'kb', 'k', 'c', 1, 2)";
        assert!(db.run(again, &[]).is_err());
    }

    #[test]
    fn filling_leaves_no_table_behind() {
        let db = migrated();
        let before = db.dump();
        fill_free_pages(&db, FILLED_BYTES).unwrap();
        fill_free_pages(&db, FILLED_BYTES).unwrap();
        empty_free_pages(&db).unwrap();
        empty_free_pages(&db).unwrap();
        assert_eq!(db.dump(), before);
    }
}
