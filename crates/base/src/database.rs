//! The interface to SQLite. Two engines implement it: a Durable Object's own storage
//! (`edge/storage.rs`) and a native engine with the same limits (`testing/sqlite.rs`).

use crate::error::{Error, Result};
use crate::read_cache::ReadCache;
use crate::tables::Table;
pub use crate::text::{EngineText, SqlText};

/// The longest string, in bytes, that SQLite takes or returns here. A Durable Object rejects a
/// value or a row above 2 MB; the difference is for the row's other columns and the record's
/// header.
pub const MAX_VALUE_BYTES: usize = 1_900_000;

/// The most bytes of rows in one JSON parameter; a longer list takes several
/// statements. This is half the value limit, so that escaping inside the engine can't
/// exceed that limit.
pub const MAX_LIST_BYTES: usize = 1_000_000;

#[derive(Clone, Debug, PartialEq)]
pub enum SqlValue {
    Null,
    /// Bound as a double, as in workerd: exact up to 2^53.
    Integer(i64),
    Real(f64),
    Text(String),
}

impl From<i64> for SqlValue {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<u32> for SqlValue {
    fn from(value: u32) -> Self {
        Self::Integer(i64::from(value))
    }
}

impl From<bool> for SqlValue {
    fn from(value: bool) -> Self {
        Self::Integer(i64::from(value))
    }
}

impl From<f64> for SqlValue {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<&str> for SqlValue {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for SqlValue {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<SqlValue>> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// One row, its columns in the order of the SELECT.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row(pub Vec<SqlValue>);

impl Row {
    pub fn integer(&self, column: usize) -> Result<i64> {
        self.find_integer(column)
            .ok_or_else(|| Error::storage(format!("column {column} is not an integer")))
    }

    /// `None` for NULL.
    pub fn find_integer(&self, column: usize) -> Option<i64> {
        match self.0.get(column)? {
            SqlValue::Integer(value) => Some(*value),
            SqlValue::Real(value) => Some(*value as i64),
            SqlValue::Null | SqlValue::Text(_) => None,
        }
    }

    pub fn number(&self, column: usize) -> Result<f64> {
        match self.0.get(column) {
            Some(SqlValue::Real(value)) => Ok(*value),
            Some(SqlValue::Integer(value)) => Ok(*value as f64),
            _ => Err(Error::storage(format!("column {column} is not a number"))),
        }
    }

    pub fn text(&self, column: usize) -> Result<&str> {
        self.find_text(column)
            .ok_or_else(|| Error::storage(format!("column {column} is not text")))
    }

    /// `None` for NULL.
    pub fn find_text(&self, column: usize) -> Option<&str> {
        match self.0.get(column)? {
            SqlValue::Text(value) => Some(value),
            _ => None,
        }
    }
}

/// A deletion of rows of one table.
#[derive(Clone, Copy, Debug)]
pub struct Delete<'a> {
    pub table: &'static Table,
    /// SQL: which rows. Empty: all.
    pub condition: &'a str,
    pub params: &'a [SqlValue],
    /// SQL: the columns that are returned of each deleted row. Empty: none.
    pub returning: &'a str,
}

/// The result of a deletion.
#[derive(Debug, Default)]
pub struct DeletedRows {
    /// How many rows were deleted.
    pub count: i64,
    /// What the deletion returns of each row.
    pub rows: Vec<Row>,
}

impl<'a> Delete<'a> {
    /// Deletes all rows of a table.
    pub const fn all(table: &'static Table) -> Self {
        Self {
            table,
            condition: "",
            params: &[],
            returning: "",
        }
    }

    /// Deletes the rows of a table that meet a condition.
    pub const fn from(table: &'static Table, condition: &'a str, params: &'a [SqlValue]) -> Self {
        Self {
            table,
            condition,
            params,
            returning: "",
        }
    }

    /// The clause that names the rows.
    pub fn where_clause(&self) -> String {
        if self.condition.is_empty() {
            String::new()
        } else {
            ["WHERE ", self.condition].concat()
        }
    }

    /// The statement, for an engine.
    pub fn sql(&self) -> String {
        let returning = if self.returning.is_empty() {
            ""
        } else {
            " RETURNING "
        };
        [
            "DELETE FROM ",
            self.table.name,
            " ",
            &self.where_clause(),
            returning,
            self.returning,
        ]
        .concat()
    }
}

/// What was written to a database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// The statements that wrote, each once.
    pub statements: Vec<String>,
    /// More different statements wrote than are recorded.
    pub is_incomplete: bool,
    /// The largest measured size of the database after a statement that wrote much.
    pub peak_bytes: i64,
}

/// The most different writing statements that are recorded. An agent has some 600.
pub const MAX_WRITING_STATEMENTS: usize = 2_000;

/// A row whose first column is a text that is not copied into Rust, and the row's other columns.
pub type TextAndRow = (Option<SqlText>, Row);

pub trait Database {
    /// Runs a statement and ignores its rows.
    fn run(&self, sql: &str, params: &[SqlValue]) -> Result<()>;

    /// Runs a statement that writes, and returns how many rows it wrote. Rows of other tables
    /// that a trigger or a foreign key writes do not count.
    fn change(&self, sql: &str, params: &[SqlValue]) -> Result<i64>;

    /// Inserts one row by an `INSERT … ON CONFLICT … DO NOTHING`. Returns whether it was written.
    fn insert_unless_known(&self, sql: &str, params: &[SqlValue]) -> Result<bool> {
        Ok(self.change(sql, params)? > 0)
    }

    /// Deletes rows of one table. Rows that contain user text must be deleted only in this way
    /// ([`Delete`]).
    fn delete(&self, delete: &Delete<'_>) -> Result<DeletedRows> {
        let sql = delete.sql();
        if delete.returning.is_empty() {
            return Ok(DeletedRows {
                count: self.change(&sql, delete.params)?,
                rows: Vec::new(),
            });
        }
        let rows = self.rows(&sql, delete.params)?;
        Ok(DeletedRows {
            count: rows.len() as i64,
            rows,
        })
    }

    /// All rows of a bounded statement.
    ///
    /// SQLite prepares a statement again each time it runs if a column that is compared with `?1`
    /// decides an order, or if `?1` is a LIMIT. It then plans for the value. The statements of
    /// frequent requests use `+?1` and `LIMIT ?1 + 0`, which keeps one plan.
    fn rows(&self, sql: &str, params: &[SqlValue]) -> Result<Vec<Row>>;

    /// The first row: its first column unchanged (`None`: NULL), and its other columns.
    fn find_text_and_row(&self, sql: &str, params: &[SqlValue]) -> Result<Option<TextAndRow>>;

    /// The first column of the first row, unchanged. `None`: there is no row, or NULL.
    fn find_text(&self, sql: &str, params: &[SqlValue]) -> Result<Option<SqlText>> {
        let found = self.find_text_and_row(sql, params)?;
        Ok(found.and_then(|(text, _)| text))
    }

    /// The first row of a statement whose first column is a BLOB, and its second a text: for large
    /// data that Rust has to read. Bytes are the cheapest to copy from the engine. `None`: there is
    /// no row, or one of the two is NULL.
    fn find_bytes_and_text(
        &self,
        sql: &str,
        params: &[SqlValue],
    ) -> Result<Option<(Vec<u8>, String)>>;

    /// Values that were read and are still valid. `None`: this request must read everything itself.
    fn read_cache(&self) -> Option<&ReadCache>;

    /// The size of the database without its free pages.
    fn size_bytes(&self) -> Result<i64>;

    /// What was written since the last call, by all requests of the object together.
    fn take_writes(&self) -> Result<Writes>;

    /// Runs `work` in one transaction: committed if `work` succeeds, undone if it
    /// fails. Inside another transaction, `work` is committed or undone with the outer
    /// one. Prefer [`atomically`], which returns the result of `work`.
    fn transaction(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()>;
}

/// Runs `work` in a transaction. The writes of `work` are kept if it returns `Ok`. They
/// are undone if it returns an error or if the object is evicted in between.
pub fn atomically<T>(db: &dyn Database, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut work = Some(work);
    let mut outcome = None;
    db.transaction(&mut || {
        // The engine calls this closure once. A second call would do nothing.
        let Some(work) = work.take() else {
            return Ok(());
        };
        outcome = Some(work()?);
        Ok(())
    })?;
    outcome.ok_or_else(|| Error::storage("the transaction never ran its work"))
}

/// The first row of a statement that returns at most one row.
pub fn find_row(db: &dyn Database, sql: &str, params: &[SqlValue]) -> Result<Option<Row>> {
    Ok(db.rows(sql, params)?.into_iter().next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::view;

    const NOTES: &Table = &view("notes");

    #[test]
    fn a_delete_must_be_one_statement() {
        assert_eq!(Delete::all(NOTES).sql(), "DELETE FROM notes ");
        let some = Delete::from(NOTES, "id = ?1", &[]);
        assert_eq!(some.sql(), "DELETE FROM notes WHERE id = ?1");
        let returned = Delete {
            returning: "id",
            ..some
        };
        assert_eq!(
            returned.sql(),
            "DELETE FROM notes WHERE id = ?1 RETURNING id"
        );
    }
}
