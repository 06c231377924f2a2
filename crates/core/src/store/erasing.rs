//! A database whose deletions leave no text behind. Each deleted row is counted, and its
//! text is overwritten before the row goes: SQLite frees the space of a deleted row as it
//! is, and a Durable Object does not allow `PRAGMA secure_delete`. An UPDATE to a text of
//! the same length writes over the bytes where they stand, overflow pages included.
//!
//! The rule this file protects: a purge deletes by the same statements as any deletion. So
//! nothing that a deletion takes can be forgotten here. The list of tables says which
//! columns hold text.

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::erased::{Erased, Erasure, InPurge};
use super::tables::TABLES;
use crate::base::columns::find_value;
use crate::base::database::{Database, Row, SqlValue, TextAndRow};
use crate::base::error::{Error, Result};

/// The most pages of an index of words that one purge merges in its own transaction. A
/// page has 4 KB.
const MAX_MERGED_PAGES: i64 = 4_096;

/// The indexes of words.
pub const EVENT_INDEX: &str = "cf_agents_search";
pub const ENTRY_INDEX: &str = "cf_agents_entries_search";

pub struct ErasingDatabase<'a> {
    db: &'a dyn Database,
    erased: RefCell<Erased>,
    /// The tables with rows that were overwritten.
    tables: RefCell<BTreeSet<&'static str>>,
    /// The indexes that lost rows.
    indexes: RefCell<BTreeSet<&'static str>>,
}

impl<'a> ErasingDatabase<'a> {
    pub fn new(db: &'a dyn Database) -> Self {
        Self {
            db,
            erased: RefCell::default(),
            tables: RefCell::default(),
            indexes: RefCell::default(),
        }
    }

    /// Has [`finish`](Self::finish) merge this index, also if it loses no row now: earlier
    /// deletions left words in it.
    pub fn merge_index(&self, index: &'static str) {
        self.indexes.borrow_mut().insert(index);
    }

    /// Notes that texts of this table were overwritten, and that their rows stay.
    pub fn touch(&self, table: &'static str) {
        self.tables.borrow_mut().insert(table);
    }

    /// Adds to the counts.
    pub fn count(&self, add: impl FnOnce(&mut Erased)) {
        add(&mut self.erased.borrow_mut());
    }

    /// Merges the indexes, so that no word of a deleted row is left in them. Part of the
    /// transaction of the deletions, after them.
    pub fn finish(&self) -> Result<Erasure> {
        let mut tables = self.tables.take();
        for index in self.indexes.take() {
            // An index that was never used has two rows of its own.
            if count_pages(self.db, index, 3)? == 3 {
                merge(self.db, index)?;
                tables.insert(index);
            }
        }
        Ok(Erasure {
            erased: self.erased.take(),
            tables: tables.into_iter().collect(),
        })
    }

    /// Overwrites and counts the rows that this statement deletes.
    fn overwrite(&self, sql: &str, params: &[SqlValue]) -> Result<()> {
        let Some(deletion) = DeleteStatement::read(sql) else {
            return Ok(());
        };
        let table = TABLES.iter().find(|table| table.name == deletion.table);
        let table =
            table.ok_or_else(|| Error::storage("a deletion from a table without a line"))?;
        let rows = deletion.condition;
        if !matches!(table.purge, InPurge::Merged | InPurge::Nothing(_)) {
            self.tables.borrow_mut().insert(table.name);
        }
        let (counted, texts) = match table.purge {
            InPurge::Overwritten { counted, texts } => (counted.map(|name| (name, None)), texts),
            InPurge::Parts {
                counted,
                first,
                texts,
            } => (Some((counted, Some(first))), texts),
            InPurge::Merged => {
                self.merge_index(table.name);
                return Ok(());
            }
            InPurge::Nothing(_) => return Ok(()),
        };
        if let Some((name, first)) = counted {
            let what = first.map_or("count(*)".to_owned(), |first| {
                format!("coalesce(sum(part = {first}), 0)")
            });
            let sql = format!("SELECT {what} FROM {} {rows}", table.name);
            let count: Option<i64> = find_value(self.db, &sql, params)?;
            if let Some(sum) = self.erased.borrow_mut().count_of(name) {
                *sum += count.unwrap_or(0);
            }
        }
        let overwritten: Vec<String> = texts.iter().copied().map(overwritten).collect();
        let sql = format!(
            "UPDATE {} SET {} {rows}",
            table.name,
            overwritten.join(", ")
        );
        self.db.run(&sql, params)
    }
}

/// SQL: the column with a text of the same length that says nothing.
pub fn overwritten(column: &str) -> String {
    format!(
        "{column} = substr(hex(zeroblob((octet_length({column}) + 1) / 2)), 1, octet_length({column}))"
    )
}

/// A statement that deletes rows.
struct DeleteStatement<'s> {
    table: &'s str,
    /// From `WHERE` on, without `RETURNING`; empty: all rows.
    condition: &'s str,
}

impl<'s> DeleteStatement<'s> {
    fn read(sql: &'s str) -> Option<Self> {
        let rest = sql.trim_start().strip_prefix("DELETE FROM ")?;
        let (table, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let condition = rest.split("RETURNING").next().unwrap_or_default();
        Some(Self {
            table,
            condition: condition.trim(),
        })
    }
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

impl Database for ErasingDatabase<'_> {
    fn run(&self, sql: &str, params: &[SqlValue]) -> Result<()> {
        self.overwrite(sql, params)?;
        self.db.run(sql, params)
    }

    fn rows(&self, sql: &str, params: &[SqlValue]) -> Result<Vec<Row>> {
        self.overwrite(sql, params)?;
        self.db.rows(sql, params)
    }

    fn find_text_and_row(&self, sql: &str, params: &[SqlValue]) -> Result<Option<TextAndRow>> {
        self.db.find_text_and_row(sql, params)
    }

    fn find_bytes_and_text(
        &self,
        sql: &str,
        params: &[SqlValue],
    ) -> Result<Option<(Vec<u8>, String)>> {
        self.db.find_bytes_and_text(sql, params)
    }

    fn size_bytes(&self) -> Result<i64> {
        self.db.size_bytes()
    }

    fn transaction(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.db.transaction(work)
    }
}
