//! A database wrapper whose deletions leave no text behind. Each deleted row is counted,
//! and its text is overwritten before the row is deleted. SQLite frees the space of a
//! deleted row without clearing it, and a Durable Object doesn't allow `PRAGMA
//! secure_delete`. An UPDATE to a text of the same length overwrites the bytes in place,
//! including overflow pages.
//!
//! Invariant: a purge uses the same calls as any deletion. Each is a [`Delete`], which
//! names its table, whose description defines which columns contain text (`base/tables.rs`). In native
//! tests, SQLite refuses a statement that deletes text in another way, or that replaces a
//! text which a purge has not overwritten (`base/testing/guard.rs`).

use std::cell::RefCell;

use super::erased::{Erased, Erasure, LeftPages};
use base::columns::find_value;
use base::database::{Database, Delete, DeletedRows, Row, SqlValue, TextAndRow, Writes};
use base::error::{Error, Result};
use base::read_cache::ReadCache;
use base::tables::{PurgeRule, Table};

pub struct ErasingDatabase<'a> {
    db: &'a dyn Database,
    erased: RefCell<Erased>,
    /// How many rows the connection had written before. `None`: not measured.
    written_before: Option<i64>,
    #[cfg(feature = "testing")]
    _mark: base::testing::ErasingMark,
}

/// How many rows this connection has written.
fn count_written(db: &dyn Database) -> Result<Option<i64>> {
    find_value(db, "SELECT total_changes()", &[])
}

impl<'a> ErasingDatabase<'a> {
    pub fn new(db: &'a dyn Database) -> Self {
        Self {
            db,
            erased: RefCell::default(),
            written_before: None,
            #[cfg(feature = "testing")]
            _mark: base::testing::ErasingMark::new(),
        }
    }

    /// For a purge that ends with [`Self::finish`], which reports whether the purge wrote
    /// anything.
    pub fn of_purge(db: &'a dyn Database) -> Result<Self> {
        Ok(Self {
            written_before: count_written(db)?,
            ..Self::new(db)
        })
    }

    /// Adds to the counts.
    pub fn count(&self, add: impl FnOnce(&mut Erased)) {
        add(&mut self.erased.borrow_mut());
    }

    /// Whether anything that is counted has been erased so far.
    pub fn has_erased(&self) -> bool {
        *self.erased.borrow() != Erased::default()
    }

    /// The counts of what was erased. The words of deleted rows remain in the indexes until
    /// these are merged (`store/schema/free_space.rs`). Merging is not part of the purge's
    /// transaction, because its cost would reveal to a caller of one session how much text
    /// others have.
    ///
    /// A purge that erased nothing may repeat one whose object was evicted before pages
    /// were cleared.
    pub fn finish(&self) -> Result<Erasure> {
        let written = count_written(self.db)?;
        let erased = self.erased.take();
        Ok(Erasure {
            left: LeftPages {
                is_written: written != self.written_before,
                may_repeat: erased == Erased::default(),
            },
            erased,
        })
    }

    /// Overwrites texts of rows that are kept. Returns the number of these rows.
    pub fn overwrite(&self, texts: &Overwrite<'_>) -> Result<i64> {
        texts.run(self.db)
    }

    /// Overwrites and counts the rows that this deletion will delete. `None`: the rows
    /// contain no text.
    fn prepare(&self, delete: &Delete<'_>) -> Result<Option<i64>> {
        let table = delete.table;
        let (counted, first, texts) = match table.purge {
            PurgeRule::Overwritten { counted, texts } => (counted, None, texts),
            PurgeRule::Parts {
                counted,
                first,
                texts,
            } => (Some(counted), Some(first), texts),
            // The index is merged when its pages are cleared.
            PurgeRule::Merged | PurgeRule::Nothing(_) => return Ok(None),
        };
        let firsts = match first {
            Some(first) => {
                let rows = delete.where_clause();
                let sql = format!(
                    "SELECT coalesce(sum(part = {first}), 0) FROM {} {rows}",
                    table.name
                );
                find_value(self.db, &sql, delete.params)?
            }
            None => None,
        };
        let overwritten = self.overwrite(&Overwrite {
            table: delete.table,
            columns: texts,
            condition: delete.condition,
            params: delete.params,
        })?;
        let mut erased = self.erased.borrow_mut();
        if let Some(sum) = counted.and_then(|name| erased.count_of(name)) {
            *sum += firsts.unwrap_or(overwritten);
        }
        Ok(Some(overwritten))
    }
}

/// Texts of rows that are kept. A purge overwrites them before it writes another text, or
/// none.
pub struct Overwrite<'a> {
    pub table: &'static Table,
    pub columns: &'a [&'a str],
    /// SQL: which rows. Empty: all.
    pub condition: &'a str,
    pub params: &'a [SqlValue],
}

impl Overwrite<'_> {
    /// Overwrites the texts. Returns the number of rows. A purge uses
    /// [`ErasingDatabase::overwrite`] instead.
    pub fn run(&self, db: &dyn Database) -> Result<i64> {
        db.change(&self.sql(), self.params)
    }

    fn sql(&self) -> String {
        let columns: Vec<String> = self.columns.iter().copied().map(overwritten).collect();
        let rows = Delete::from(self.table, self.condition, &[]).where_clause();
        format!(
            "UPDATE {} SET {} {rows}",
            self.table.name,
            columns.join(", ")
        )
    }
}

/// SQL: sets the column to a meaningless text of the same length.
fn overwritten(column: &str) -> String {
    format!(
        "{column} = substr(hex(zeroblob((octet_length({column}) + 1) / 2)), 1, octet_length({column}))"
    )
}

impl Database for ErasingDatabase<'_> {
    fn run(&self, sql: &str, params: &[SqlValue]) -> Result<()> {
        self.db.run(sql, params)
    }

    fn change(&self, sql: &str, params: &[SqlValue]) -> Result<i64> {
        self.db.change(sql, params)
    }

    fn delete(&self, delete: &Delete<'_>) -> Result<DeletedRows> {
        let overwritten = self.prepare(delete)?;
        let deleted = self.db.delete(delete)?;
        // An overwritten row no longer matches a condition on its text, and would not be
        // deleted.
        match overwritten {
            Some(count) if count != deleted.count => {
                Err(Error::storage("a deletion by a text that it overwrites"))
            }
            _ => Ok(deleted),
        }
    }

    fn rows(&self, sql: &str, params: &[SqlValue]) -> Result<Vec<Row>> {
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

    fn read_cache(&self) -> Option<&ReadCache> {
        self.db.read_cache()
    }

    fn size_bytes(&self) -> Result<i64> {
        self.db.size_bytes()
    }

    fn take_writes(&self) -> Result<Writes> {
        self.db.take_writes()
    }

    fn transaction(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.db.transaction(work)
    }
}
