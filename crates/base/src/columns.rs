//! Converts a row's columns into values, in the order of the SELECT.
//!
//! A row type reads the rows of a table; its list of columns and its `from_row` stand
//! side by side. Columns that belong to no table (a count, a pair of numbers) are read
//! into a tuple, which is destructured at once. No other code uses a column's number.

use crate::database::{Database, Row, SqlValue};
use crate::error::Result;

/// A value that is read from one column.
pub trait FromColumn<'r>: Sized {
    fn from_column(row: &'r Row, column: usize) -> Result<Self>;
}

/// A value that is read from a whole row.
pub trait FromRow<'r>: Sized {
    fn from_row(row: &'r Row) -> Result<Self>;
}

impl<'r> FromColumn<'r> for i64 {
    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        row.integer(column)
    }
}

impl<'r> FromColumn<'r> for Option<i64> {
    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        Ok(row.find_integer(column))
    }
}

impl<'r> FromColumn<'r> for bool {
    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        Ok(row.integer(column)? == 1)
    }
}

/// `None` if the value is not a floating-point number.
impl<'r> FromColumn<'r> for Option<f64> {
    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        Ok(match row.0.get(column) {
            Some(SqlValue::Real(value)) => Some(*value),
            _ => None,
        })
    }
}

impl<'r> FromColumn<'r> for &'r str {
    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        row.text(column)
    }
}

impl<'r> FromColumn<'r> for Option<&'r str> {
    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        Ok(row.find_text(column))
    }
}

impl<'r> FromColumn<'r> for String {
    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        row.text(column).map(str::to_owned)
    }
}

impl<'r> FromColumn<'r> for Option<String> {
    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        Ok(row.find_text(column).map(str::to_owned))
    }
}

impl<'r, A: FromColumn<'r>> FromRow<'r> for (A,) {
    fn from_row(row: &'r Row) -> Result<Self> {
        Ok((A::from_column(row, 0)?,))
    }
}

impl<'r, A: FromColumn<'r>, B: FromColumn<'r>> FromRow<'r> for (A, B) {
    fn from_row(row: &'r Row) -> Result<Self> {
        Ok((A::from_column(row, 0)?, B::from_column(row, 1)?))
    }
}

impl<'r, A: FromColumn<'r>, B: FromColumn<'r>, C: FromColumn<'r>> FromRow<'r> for (A, B, C) {
    fn from_row(row: &'r Row) -> Result<Self> {
        Ok((
            A::from_column(row, 0)?,
            B::from_column(row, 1)?,
            C::from_column(row, 2)?,
        ))
    }
}

impl Row {
    /// Reads the row as `T`, a row type or a tuple of its columns.
    pub fn read<'r, T: FromRow<'r>>(&'r self) -> Result<T> {
        T::from_row(self)
    }

    /// Reads the first column of a row that has only one.
    pub fn value<'r, T: FromColumn<'r>>(&'r self) -> Result<T> {
        T::from_column(self, 0)
    }
}

/// All rows of a bounded statement.
pub fn load<T>(db: &dyn Database, sql: &str, params: &[SqlValue]) -> Result<Vec<T>>
where
    T: for<'r> FromRow<'r>,
{
    db.rows(sql, params)?.iter().map(Row::read).collect()
}

/// The first row of a statement that returns at most one row.
pub fn find<T>(db: &dyn Database, sql: &str, params: &[SqlValue]) -> Result<Option<T>>
where
    T: for<'r> FromRow<'r>,
{
    db.rows(sql, params)?.first().map(Row::read).transpose()
}

/// The first column of all rows of a bounded statement.
pub fn load_values<T>(db: &dyn Database, sql: &str, params: &[SqlValue]) -> Result<Vec<T>>
where
    T: for<'r> FromColumn<'r>,
{
    db.rows(sql, params)?.iter().map(Row::value).collect()
}

/// The first column of the first row. `None`: there is no row.
pub fn find_value<T>(db: &dyn Database, sql: &str, params: &[SqlValue]) -> Result<Option<T>>
where
    T: for<'r> FromColumn<'r>,
{
    db.rows(sql, params)?.first().map(Row::value).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_in_the_order_of_its_columns() {
        let row = Row(vec![
            SqlValue::Integer(1),
            SqlValue::Text("a".into()),
            SqlValue::Null,
        ]);
        let (number, text, nothing): (i64, &str, Option<&str>) = row.read().unwrap();
        assert_eq!((number, text, nothing), (1, "a", None));
        assert!(row.value::<bool>().unwrap());
    }

    #[test]
    fn a_column_of_another_type_is_an_error_unless_it_may_be_missing() {
        let row = Row(vec![SqlValue::Null, SqlValue::Integer(2)]);
        assert!(row.read::<(i64, i64)>().is_err());
        assert!(row.read::<(Option<i64>, String)>().is_err());
        assert_eq!(row.read::<(Option<i64>, i64)>().unwrap(), (None, 2));
        assert!(row.read::<(Option<i64>, i64, i64)>().is_err());
    }
}
