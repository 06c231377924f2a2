//! A deletion as a value. Each deletion of rows that contain user text is one, so a purge does
//! not have to recognize a deletion by the text of its statement (`store/erasing.rs`).

use crate::columns::FromRow;
use crate::database::{Database, Row, SqlValue};
use crate::error::Result;

/// A table that rows are deleted from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table(&'static str);

impl Table {
    pub const fn named(name: &'static str) -> Self {
        Self(name)
    }

    pub const fn name(self) -> &'static str {
        self.0
    }
}

/// A deletion of rows of one table.
#[derive(Clone, Copy, Debug)]
pub struct Delete<'a> {
    pub table: Table,
    /// SQL: which rows. Empty: all.
    pub condition: &'a str,
    pub params: &'a [SqlValue],
    /// SQL: the columns that are returned of each deleted row. Empty: none.
    pub returning: &'a str,
}

/// The result of a deletion.
#[derive(Debug, Default)]
pub struct Deleted {
    /// How many rows were deleted.
    pub count: i64,
    /// What the deletion returns of each row.
    pub rows: Vec<Row>,
}

impl<'a> Delete<'a> {
    /// Deletes all rows of a table.
    pub const fn all(table: Table) -> Self {
        Self {
            table,
            condition: "",
            params: &[],
            returning: "",
        }
    }

    /// Deletes the rows of a table that meet a condition.
    pub const fn from(table: Table, condition: &'a str, params: &'a [SqlValue]) -> Self {
        Self {
            table,
            condition,
            params,
            returning: "",
        }
    }

    /// The clause that names the rows.
    pub fn where_clause(&self) -> String {
        match self.condition.is_empty() {
            true => String::new(),
            false => ["WHERE ", self.condition].concat(),
        }
    }

    /// The statement, for an engine.
    pub fn sql(&self) -> String {
        let returning = match self.returning.is_empty() {
            true => "",
            false => " RETURNING ",
        };
        [
            "DELETE FROM ",
            self.table.name(),
            " ",
            &self.where_clause(),
            returning,
            self.returning,
        ]
        .concat()
    }

    /// Deletes the rows, and returns how many there were.
    pub fn run(&self, db: &dyn Database) -> Result<i64> {
        Ok(db.delete(self)?.count)
    }

    /// Deletes the rows, and reads these columns of each.
    pub fn load<T>(self, db: &dyn Database, returning: &'a str) -> Result<Vec<T>>
    where
        T: for<'r> FromRow<'r>,
    {
        let deleted = db.delete(&Self { returning, ..self })?;
        deleted.rows.iter().map(Row::read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTES: Table = Table::named("notes");

    #[test]
    fn a_deletion_is_one_statement() {
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
