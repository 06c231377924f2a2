//! Removes the bytes that deleted rows leave in the database's file. SQLite frees the space of a
//! row without clearing it, and moves rows between pages without clearing their old places. So
//! after a purge, small tables are rewritten, and free pages are filled with zeros.
//!
//! A Durable Object rejects `PRAGMA secure_delete` and `VACUUM`, which would do the same, and every
//! query about free pages. But a table's root page has a number, which reveals the page that SQLite
//! took (`zeros.rs`).
//!
//! SQLite clears a page that it takes from the free ones, but not if the same transaction freed the
//! page, and not the pages that list the free ones. So whatever is rewritten goes to pages that
//! contained zeros, or that the file did not have before.
//!
//! The write-ahead log contains pages as they were. SQLite copies the log into the file after 1,000
//! pages, and then overwrites it from its beginning.

use super::zeros::{
    FEW_PAGES, FREED_ROOTS, LOG_PAGES, MAX_FILLED_PAGES, MAX_LOG_PAGES, MAX_MERGED_PAGES,
    MAX_ROW_PAGES, MAX_ROWS_OF_ZEROS, MORE_PAGES, PAGE_BYTES, STEP_PAGES, Zeros,
};
use base::columns::{find_value, load, load_values};
use base::database::{Database, atomically, find_row};
use base::error::{Error, Result};

/// A table is rewritten after a purge if it has no more rows, and the database no more bytes: two
/// copies exist for a moment, and each row is billed.
const MAX_ROWS: i64 = 2_000;
const MAX_BYTES: i64 = 24 << 20;

/// A row takes so many bytes more than its values, and as many again in each index.
const ROW_BYTES: i64 = 32;

/// About how many pages those of the tables take that are small enough to be rewritten: twice the
/// size of their rows. If this is too few, the file grows by the others.
fn estimate_pages(db: &dyn Database, tables: &[&'static str]) -> Result<i64> {
    let mut pages = 0;
    for &table in tables {
        let Some(rows) = count_if_small(db, table)? else {
            continue;
        };
        let bytes = if is_index(db, table)? {
            bytes_of(db, &format!("{table}_data"))?
        } else {
            bytes_of(db, table)?
        };
        pages += FEW_PAGES + 2 * (bytes + rows * ROW_BYTES) / PAGE_BYTES;
    }
    Ok(pages)
}

/// The bytes of all values of a table.
fn bytes_of(db: &dyn Database, table: &str) -> Result<i64> {
    let columns: Vec<String> = load_values(
        db,
        "SELECT 'coalesce(octet_length(\"' || name || '\"), 0)' FROM pragma_table_info(?1)",
        &[table.into()],
    )?;
    let sql = format!("SELECT sum({}) FROM {table}", columns.join(" + "));
    let bytes: Option<i64> = find_value::<Option<i64>>(db, &sql, &[])?.flatten();
    Ok(bytes.unwrap_or(0))
}

/// How many rows the table has, if it is small enough to be rewritten.
fn count_if_small(db: &dyn Database, table: &str) -> Result<Option<i64>> {
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT {})",
        MAX_ROWS + 1
    );
    let rows: i64 = find_value(db, &sql, &[])?.unwrap_or(0);
    Ok((rows <= MAX_ROWS).then_some(rows))
}

/// What was rewritten.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rewritten {
    pub rows: i64,
    /// The most pages that this wrote, which is the length of its part of the log.
    pub pages: i64,
    /// How many pages the file has; 0: unknown.
    pub file_pages: i64,
}

/// Rewrites those of these tables that are small, and merges a longer index of words: until then,
/// it contains the words of deleted rows. `fill_index` writes the rows of an index of words, which
/// is empty before. Begins where [`fill_free_pages`] has ended, and leaves no free page: all are
/// filled with zeros.
pub fn renew(
    db: &dyn Database,
    tables: &[&'static str],
    fill_index: &dyn Fn(&str) -> Result<()>,
    file_pages: i64,
) -> Result<Rewritten> {
    atomically(db, || {
        let mut zeros = Zeros::resume(db, file_pages)?;
        let data_pages = zeros.used_pages()? - zeros.count_filled()?;
        let expected_pages = estimate_pages(db, tables)?.min(data_pages);
        // Requests in between may have freed pages.
        zeros.give(FREED_ROOTS + 1)?;
        zeros.fill_all()?;
        let is_small = data_pages * PAGE_BYTES <= MAX_BYTES;
        // The pages of the list of tables, of spare tables, and of the lists of free pages.
        let (mut old_tables, mut written, mut pages) = (Vec::new(), 0, MORE_PAGES);
        let mut longer = Vec::new();
        // Pages for the new tables, which contain nothing but zeros.
        zeros.give(expected_pages + FEW_PAGES)?;
        let pages_before = zeros.used_pages()?;
        for &table in tables {
            let rows = if is_small {
                count_if_small(db, table)?
            } else {
                None
            };
            if let Some(rows) = rows {
                old_tables.push(OldTable::rename(db, table)?);
                written += rows;
            } else if is_index(db, table)? {
                longer.push(table);
            }
        }
        // From here on, the list of tables needs no page of its own while pages with texts are
        // free.
        zeros.make_spare(2 * (data_pages / (MAX_ROWS_OF_ZEROS * MAX_ROW_PAGES) + 1))?;
        zeros.takes_new_pages()?;
        for old in old_tables.iter().filter(|old| !old.is_index) {
            let OldTable { table, name, .. } = old;
            db.run(&format!("INSERT INTO {table} SELECT * FROM {name}"), &[])?;
        }
        for old in old_tables.iter().filter(|old| old.is_index) {
            fill_index(old.table)?;
            // An index frees pages while it is filled.
            zeros.fill_all()?;
        }
        // The indexes keep their names, so the old ones are dropped first.
        let used_pages = zeros.used_pages()?;
        for (name, _) in old_tables.iter().flat_map(|old| &old.indexes) {
            db.run(&format!("DROP INDEX {name}"), &[])?;
        }
        let freed_pages = used_pages - zeros.used_pages()?;
        zeros.fill_known()?;
        pages += used_pages - pages_before;
        zeros.give(freed_pages + FEW_PAGES)?;
        pages += freed_pages;
        for (_, create) in old_tables.iter().flat_map(|old| &old.indexes) {
            db.run(create, &[])?;
        }
        zeros.update_file_pages()?;
        for table in longer {
            pages += MERGED_PAGES * count_pages(db, table, MAX_MERGED_PAGES)?;
            merge(db, table)?;
            zeros.update_file_pages()?;
        }
        for old in &old_tables {
            db.run(&format!("DROP TABLE {}", old.name), &[])?;
        }
        zeros.fill_known()?;
        zeros.keep_last_page()?;
        zeros.close()?;
        Ok(Rewritten {
            rows: written,
            pages: pages + zeros.pages,
            file_pages: zeros.file_pages,
        })
    })
}

fn is_index(db: &dyn Database, table: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM sqlite_master WHERE name = ?1 AND sql LIKE 'CREATE VIRTUAL TABLE%'";
    Ok(find_row(db, sql, &[table.into()])?.is_some())
}

/// The pages that a merge writes for each page of the index: the new one, the old one that is
/// emptied, and the pages above them.
const MERGED_PAGES: i64 = 3;

/// How many rows the index uses for its words, counted up to `most`.
fn count_pages(db: &dyn Database, index: &str, most: i64) -> Result<i64> {
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {index}_data LIMIT {most})");
    Ok(find_value(db, &sql, &[])?.unwrap_or(0))
}

/// Merges an index of words into one segment: only this removes the words of deleted rows.
fn merge(db: &dyn Database, index: &str) -> Result<()> {
    if count_pages(db, index, MAX_MERGED_PAGES + 1)? <= MAX_MERGED_PAGES {
        let sql = format!("INSERT INTO {index} ({index}) VALUES ('optimize')");
        return db.run(&sql, &[]);
    }
    // A longer index is merged by so many pages now, and further by later writes.
    let sql = format!("INSERT INTO {index} ({index}, rank) VALUES ('merge', -{MAX_MERGED_PAGES})");
    db.run(&sql, &[])
}

/// A table to be dropped, beside the new one of its name.
struct OldTable {
    table: &'static str,
    /// Its own name until it is dropped.
    name: String,
    /// Whether it is an index of words.
    is_index: bool,
    /// The names and statements of its indexes.
    indexes: Vec<(String, String)>,
}

impl OldTable {
    /// Renames the table, and creates the new one.
    fn rename(db: &dyn Database, table: &'static str) -> Result<Self> {
        let name = format!("{table}_old");
        let sql = "SELECT sql FROM sqlite_master WHERE name = ?1";
        let create: Option<String> = find_value(db, sql, &[table.into()])?;
        let create = create.ok_or_else(|| Error::storage("a table without a statement"))?;
        let indexes = load(
            db,
            "SELECT name, sql
               FROM sqlite_master
              WHERE type = 'index'
                AND tbl_name = ?1
                AND sql IS NOT NULL
              ORDER BY name",
            &[table.into()],
        )?;
        db.run(&format!("ALTER TABLE {table} RENAME TO {name}"), &[])?;
        db.run(&create, &[])?;
        Ok(Self {
            table,
            name,
            is_index: create.starts_with("CREATE VIRTUAL TABLE"),
            indexes,
        })
    }
}

/// The pages that a filling wrote, and those of the file afterwards; 0: free pages remain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Filled {
    pub pages: i64,
    pub file_pages: i64,
}

/// Fills all free pages with zeros, and enough pages that the log is copied into the file. `tables`
/// will be rewritten. `file_pages`: how many pages the file had; 0: unknown. The zeros must be
/// committed before [`empty_free_pages`] frees the pages again.
pub fn fill_free_pages(
    db: &dyn Database,
    tables: &[&'static str],
    file_pages: i64,
) -> Result<Filled> {
    atomically(db, || {
        let mut zeros = Zeros::begin(db, file_pages)?;
        let used_pages = zeros.used_pages()?;
        let expected_pages = estimate_pages(db, tables)?.min(used_pages);
        // A very small one, which `renew` frees to find out whether other pages are free.
        zeros.add(2 * FREED_ROOTS)?;
        zeros.close()?;
        // Small tables, so that `renew` can take as many pages as it needs.
        while zeros.pages < 2 * expected_pages + MAX_ROW_PAGES && zeros.pages < MAX_FILLED_PAGES {
            zeros.add(MAX_ROW_PAGES / 2)?;
            zeros.close()?;
        }
        zeros.add(LOG_PAGES + STEP_PAGES - zeros.pages)?;
        // The file has at least so many pages.
        let last_page = zeros.find_last_page()?.unwrap_or(0);
        if zeros.file_pages == 0 {
            zeros.file_pages = last_page;
            zeros.is_known = false;
        }
        zeros.fill_all()?;
        zeros.close()?;
        Ok(Filled {
            pages: zeros.pages,
            file_pages: zeros.file_pages,
        })
    })
}

/// Fills enough pages to overwrite the whole log and to have it copied into the file. The text in
/// the log reaches as far as the longest transaction: `peak_pages`.
pub fn fill_log(db: &dyn Database, peak_pages: i64) -> Result<i64> {
    fill(db, LOG_PAGES + STEP_PAGES + peak_pages)
}

/// Fills enough pages to overwrite the beginning of the log, where [`renew`] wrote this many pages.
pub fn fill_beginning(db: &dyn Database, pages: i64) -> Result<i64> {
    fill(db, STEP_PAGES + pages)
}

fn fill(db: &dyn Database, pages: i64) -> Result<i64> {
    atomically(db, || {
        let mut zeros = Zeros::begin(db, 0)?;
        zeros.add(pages.min(MAX_FILLED_PAGES))?;
        zeros.close()?;
        Ok(zeros.pages)
    })
}

/// How much of the log an earlier activation may have written, if the file has so many pages.
pub fn pages_of_earlier_log(file_pages: i64) -> i64 {
    file_pages.min(MAX_LOG_PAGES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::zeros::{LAST_PAGE, empty_free_pages};
    use crate::testing::migrated;
    use base::database::Delete;
    use base::tables::{Table, view};

    const ENTRIES: &Table = &view("cf_agents_entries");

    #[test]
    fn a_rewritten_table_keeps_its_rows_keys_and_indexes() {
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
            renew(&db, &tables, &|_| Ok(()), 0).unwrap();
            empty_free_pages(&db).unwrap();
        }
        db.run(&format!("DROP TABLE {LAST_PAGE}"), &[]).unwrap();
        assert_eq!(schema(&db), before);
        assert_eq!(db.dump(), rows);
        let again =
            "INSERT INTO cf_agents_entries (scope, block, key, content, created_at, updated_at)
                     VALUES ('', 'kb', 'k', 'c', 1, 2)";
        assert!(db.run(again, &[]).is_err());
    }

    #[test]
    fn filling_leaves_no_table_and_finds_the_end_of_the_file() {
        let db = migrated();
        let used = || db.size_bytes().unwrap() / PAGE_BYTES;
        // SQLite's schema table keeps a page that one more table needed.
        db.run("CREATE TABLE gone (text)", &[]).unwrap();
        db.run("DROP TABLE gone", &[]).unwrap();
        let small = used();
        let mut file_pages = 0;
        for round in 0..5 {
            // Deleted rows leave free pages.
            db.run("CREATE TABLE gone (text)", &[]).unwrap();
            for _ in 0..round {
                db.run("INSERT INTO gone VALUES (zeroblob(400000))", &[])
                    .unwrap();
            }
            db.run("DROP TABLE gone", &[]).unwrap();
            let filled = fill_free_pages(&db, &[], file_pages).unwrap();
            // All pages are in use, and the file grew by no more than a step of filling.
            assert!(
                (used()..=used() + 2).contains(&filled.file_pages),
                "round {round}"
            );
            assert!(filled.pages >= LOG_PAGES);
            assert!(
                file_pages == 0 || filled.file_pages <= file_pages + 40,
                "round {round}"
            );
            file_pages = filled.file_pages;
            assert!(fill_log(&db, 7).unwrap() >= LOG_PAGES + STEP_PAGES + 7);
            empty_free_pages(&db).unwrap();
            assert_eq!(used(), small);
        }
    }

    /// Runs all steps of a clearing, each committed. Returns how many pages the file has, and how
    /// many rows the steps wrote.
    fn clear(db: &File, file_pages: i64) -> (i64, u64) {
        let db = &db.db;
        db.take_costs();
        let tables = ["cf_agents_entries"];
        let filled = fill_free_pages(db, &tables, file_pages).unwrap();
        let renewed = renew(db, &tables, &|_| Ok(()), filled.file_pages).unwrap();
        fill_log(db, renewed.pages.max(filled.file_pages / 4)).unwrap();
        fill_beginning(db, renewed.pages).unwrap();
        empty_free_pages(db).unwrap();
        (renewed.file_pages, db.take_costs().1)
    }

    struct File {
        db: base::testing::Sqlite,
        folder: std::path::PathBuf,
    }

    impl File {
        fn new() -> Self {
            let name = format!("session-agent-pages-{}", std::process::id());
            let folder = std::env::temp_dir().join(name);
            std::fs::create_dir_all(&folder).unwrap();
            let db = crate::testing::migrated_at(&folder.join("a.sqlite"));
            Self { db, folder }
        }

        /// How many deleted keys the files contain.
        fn count(&self, text: &[u8]) -> usize {
            let files = ["a.sqlite", "a.sqlite-wal"].map(|name| self.folder.join(name));
            let count = |path: &std::path::PathBuf| {
                let bytes = std::fs::read(path).unwrap();
                let found = bytes.windows(text.len()).filter(|bytes| *bytes == text);
                found.count()
            };
            files.iter().map(count).sum()
        }
    }

    impl Drop for File {
        fn drop(&mut self) {
            std::fs::remove_dir_all(&self.folder).unwrap();
        }
    }

    #[test]
    fn no_deleted_key_remains_in_the_file() {
        let file = File::new();
        let db = &file.db;
        let (mut file_pages, mut number) = (0, 0_i64);
        let mut sizes = Vec::new();
        for round in 0..24_i64 {
            for _ in 0..(round * 37 % 90) + 5 {
                number += 1;
                let key = format!("key-{}-zanzibar", number * 7_919 % 10_007);
                let content = format!("zanzibar {}", "of it ".repeat((number % 13 * 90) as usize));
                db.run(
                    "INSERT INTO cf_agents_entries (scope, block, key, content, created_at, updated_at)
                     VALUES (?1, 'kb', ?2, ?3, 1, 2)",
                    &[
                        ["", "s"][(number % 2) as usize].into(),
                        key.as_str().into(),
                        content.as_str().into(),
                    ],
                )
                .unwrap();
                let other = format!("other-{number}");
                db.run(
                    "INSERT INTO cf_agents_entries (scope, block, key, content, created_at, updated_at)
                     VALUES ('', 'kb', ?1, ?2, 1, 2)",
                    &[other.as_str().into(), "x".repeat((number % 50) as usize).as_str().into()],
                )
                .unwrap();
            }
            assert!(file.count(b"zanzibar") > 0);
            Delete::from(ENTRIES, "key GLOB 'key*'", &[])
                .run(db)
                .unwrap();
            if round % 3 == 0 {
                Delete::from(ENTRIES, "number % 3 = 0", &[])
                    .run(db)
                    .unwrap();
            }
            // Every fifth time in another activation.
            if round % 5 == 0 {
                file_pages = 0;
            }
            let (pages, rows) = clear(&file, file_pages);
            file_pages = pages;
            sizes.push((pages, rows));
            assert_eq!(file.count(b"zanzibar"), 0, "round {round}");
        }
        println!("pages of the file, and rows written: {sizes:?}");
        let pages = |at: usize| sizes[at].0;
        assert!(pages(23) < pages(8) + 200, "{sizes:?}");
    }
}
