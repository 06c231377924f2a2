//! A database whose deletions leave no text behind. Each deleted row is counted, and its
//! text is overwritten before the row goes: SQLite frees the space of a deleted row as it
//! is, and a Durable Object does not allow `PRAGMA secure_delete`. An UPDATE to a text of
//! the same length writes over the bytes where they stand, overflow pages included.
//!
//! The rule this file protects: a purge deletes by the same calls as any deletion. Each is a
//! [`Delete`], which names its table, and the list of tables says which columns hold text. In
//! native tests, SQLite refuses a statement that deletes text in another way, or that replaces
//! a text which a purge has not overwritten (`base/testing/guard.rs`).

use std::cell::RefCell;
use std::collections::BTreeSet;

use super::erased::{Erased, Erasure, InPurge, LeftPages};
use super::table_fates::SessionTable;
use super::tables::TABLES;
use base::columns::find_value;
use base::database::{Database, Delete, DeletedRows, Row, SqlValue, TableName, TextAndRow, Writes};
use base::error::{Error, Result};

/// The most rows of a table that the receipt of a destroyed agent counts.
const MAX_COUNTED: i64 = 1_000_000;

/// The counts of what there is to erase in the whole agent.
pub fn count_all(db: &dyn Database) -> Result<Erased> {
    let mut erased = Erased::default();
    for table in TABLES {
        let (counted, only) = match table.purge {
            InPurge::Overwritten {
                counted: Some(counted),
                ..
            } => (counted, String::new()),
            InPurge::Parts { counted, first, .. } => (counted, format!(" WHERE part = {first}")),
            InPurge::Overwritten { counted: None, .. } | InPurge::Merged | InPurge::Nothing(_) => {
                continue;
            }
        };
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM {}{only} LIMIT {MAX_COUNTED})",
            table.name
        );
        let count: Option<i64> = find_value(db, &sql, &[])?;
        if let Some(sum) = erased.count_of(counted) {
            *sum += count.unwrap_or(0);
        }
    }
    // These rows hold no text, and are of interest to the person whose they are.
    let sql = "SELECT count(*) FROM cf_agents_tool_authorizations";
    erased.authorizations = find_value(db, sql, &[])?.unwrap_or(0);
    Ok(erased)
}

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
    /// How many rows the connection had written before. `None`: nobody asked.
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
            tables: RefCell::default(),
            indexes: RefCell::default(),
            written_before: None,
            #[cfg(feature = "testing")]
            _mark: base::testing::ErasingMark::new(),
        }
    }

    /// One that [`Self::finish`] ends, which says whether the purge wrote anything.
    pub fn of_purge(db: &'a dyn Database) -> Result<Self> {
        Ok(Self {
            written_before: count_written(db)?,
            ..Self::new(db)
        })
    }

    /// Has this index merged after the purge, also if it loses no row now: earlier
    /// deletions left words in it.
    pub fn merge_index(&self, index: &'static str) {
        self.indexes.borrow_mut().insert(index);
    }

    /// Notes that texts of this table were overwritten.
    pub fn touch(&self, table: &'static str) {
        self.tables.borrow_mut().insert(table);
    }

    /// Adds to the counts.
    pub fn count(&self, add: impl FnOnce(&mut Erased)) {
        add(&mut self.erased.borrow_mut());
    }

    /// Whether anything that is counted was erased so far.
    pub fn has_erased(&self) -> bool {
        *self.erased.borrow() != Erased::default()
    }

    /// The counts of what was erased. The words of deleted rows are in the indexes until these are
    /// merged (`store/schema/free_space.rs`): its cost would tell a caller of one session how much
    /// others say, so it is not part of the purge's transaction.
    ///
    /// A purge that erased nothing may repeat one whose object died before pages were
    /// cleared.
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

    /// The tables and indexes that texts were erased from.
    pub fn take_tables(&self) -> Vec<&'static str> {
        let mut tables = self.tables.take();
        tables.append(&mut self.indexes.borrow_mut());
        tables.into_iter().collect()
    }

    /// Overwrites texts of rows that stay. Returns how many rows these are.
    pub fn overwrite(&self, texts: &Overwrite<'_>) -> Result<i64> {
        self.touch(texts.table.name());
        texts.run(self.db)
    }

    /// Overwrites and counts the rows that this deletion deletes. `None`: the rows contain no
    /// text.
    fn prepare(&self, delete: &Delete<'_>) -> Result<Option<i64>> {
        let name = delete.table.name();
        let table = TABLES.iter().find(|table| table.name == name);
        let table =
            table.ok_or_else(|| Error::storage("a deletion from a table without a line"))?;
        let (counted, first, texts) = match table.purge {
            InPurge::Overwritten { counted, texts } => (counted, None, texts),
            InPurge::Parts {
                counted,
                first,
                texts,
            } => (Some(counted), Some(first), texts),
            InPurge::Merged => {
                self.merge_index(table.name);
                return Ok(None);
            }
            InPurge::Nothing(_) => return Ok(None),
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

/// Texts of rows that stay. A purge overwrites them before it writes another text, or none.
pub struct Overwrite<'a> {
    pub table: TableName,
    pub columns: &'a [&'a str],
    /// SQL: which rows. Empty: all.
    pub condition: &'a str,
    pub params: &'a [SqlValue],
}

impl Overwrite<'_> {
    /// Overwrites the texts. Returns how many rows these are. A purge has
    /// [`ErasingDatabase::overwrite`].
    pub fn run(&self, db: &dyn Database) -> Result<i64> {
        db.change(&self.sql(), self.params)
    }

    fn sql(&self) -> String {
        let columns: Vec<String> = self.columns.iter().copied().map(overwritten).collect();
        let rows = Delete::from(self.table, self.condition, &[]).where_clause();
        format!(
            "UPDATE {} SET {} {rows}",
            self.table.name(),
            columns.join(", ")
        )
    }
}

/// The tables whose pages a purge may leave texts in: those with texts, and those that a
/// purge writes to itself.
pub fn all_tables() -> impl Iterator<Item = &'static str> {
    let holds_texts = |table: &&SessionTable| !matches!(table.purge, InPurge::Nothing(_));
    let texts = TABLES.iter().filter(holds_texts).map(|table| table.name);
    texts.chain(["cf_agents_changes", "cf_agents_item_counts"])
}

/// SQL: the column with a text of the same length that says nothing.
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
        // An overwritten row no longer meets a condition on its text, and would stay.
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
