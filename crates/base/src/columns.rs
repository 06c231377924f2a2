//! Converts a row's columns into values, in the order of the SELECT.
//!
//! [`row!`](crate::row) pairs each field of a row type with its SQL, so the list of columns and
//! the reader cannot differ. The compiler knows each position. A few values (a count, a pair of
//! numbers) are read into a tuple, which is destructured at once. No other code uses a column's
//! number.

use std::borrow::Cow;

use crate::action::StoredAction;
use crate::database::{Database, Delete, Row, SqlValue};
use crate::error::{Error, Result};
use crate::ids::Id;

/// A value that is read from one column, or a row type that is read from several.
pub trait FromColumn<'r>: Sized {
    /// How many columns the value takes.
    const WIDTH: usize = 1;

    /// Reads the value from this column on.
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

impl<'r> FromColumn<'r> for f64 {
    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        row.number(column)
    }
}

/// A value as it is.
impl<'r> FromColumn<'r> for SqlValue {
    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        let value = row.0.get(column).cloned();
        value.ok_or_else(|| Error::storage(format!("there is no column {column}")))
    }
}

/// All columns that are left. No field follows it.
impl<'r> FromColumn<'r> for Vec<SqlValue> {
    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        Ok(row.0.iter().skip(column).cloned().collect())
    }
}

/// A row that a LEFT JOIN may not have found. Then the column before it is NULL.
pub struct Joined<T>(pub Option<T>);

impl<'r, T: FromColumn<'r>> FromColumn<'r> for Joined<T> {
    const WIDTH: usize = 1 + T::WIDTH;

    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        Ok(Self(match row.0.get(column) {
            None | Some(SqlValue::Null) => None,
            Some(_) => Some(T::from_column(row, column + 1)?),
        }))
    }
}

/// A row that a LEFT JOIN may not have found. Then its own first column is NULL. In a row that exists,
/// this column is never NULL.
pub struct Found<T>(pub Option<T>);

impl<'r, T: FromColumn<'r>> FromColumn<'r> for Found<T> {
    const WIDTH: usize = T::WIDTH;

    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        Ok(Self(match row.0.get(column) {
            None | Some(SqlValue::Null) => None,
            Some(_) => Some(T::from_column(row, column)?),
        }))
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

impl<'r> FromColumn<'r> for Cow<'r, str> {
    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        row.text(column).map(Cow::Borrowed)
    }
}

impl<'r> FromColumn<'r> for Option<Cow<'r, str>> {
    fn from_column(row: &'r Row, column: usize) -> Result<Self> {
        Ok(row.find_text(column).map(Cow::Borrowed))
    }
}

impl FromColumn<'_> for Id {
    fn from_column(row: &Row, column: usize) -> Result<Self> {
        Self::parse(row.text(column)?.to_owned()).map_err(Error::storage)
    }
}

impl FromColumn<'_> for StoredAction {
    fn from_column(row: &Row, column: usize) -> Result<Self> {
        row.text(column).map(Self::parse)
    }
}

impl<'r, A: FromColumn<'r>> FromRow<'r> for (A,) {
    fn from_row(row: &'r Row) -> Result<Self> {
        Ok((A::from_column(row, 0)?,))
    }
}

impl<'r, A: FromColumn<'r>, B: FromColumn<'r>> FromRow<'r> for (A, B) {
    fn from_row(row: &'r Row) -> Result<Self> {
        Ok((A::from_column(row, 0)?, B::from_column(row, A::WIDTH)?))
    }
}

impl<'r, A: FromColumn<'r>, B: FromColumn<'r>, C: FromColumn<'r>> FromRow<'r> for (A, B, C) {
    fn from_row(row: &'r Row) -> Result<Self> {
        Ok((
            A::from_column(row, 0)?,
            B::from_column(row, A::WIDTH)?,
            C::from_column(row, A::WIDTH + B::WIDTH)?,
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

impl<'a> Delete<'a> {
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

/// The length of these texts together.
#[doc(hidden)]
pub const fn length_of(parts: &[&str]) -> usize {
    let (mut length, mut left) = (0, parts);
    while let [first, rest @ ..] = left {
        length += first.len();
        left = rest;
    }
    length
}

/// The bytes of these texts together. `LENGTH` is how many.
#[doc(hidden)]
#[expect(
    clippy::indexing_slicing,
    reason = "it runs while the code is compiled"
)]
pub const fn join<const LENGTH: usize>(parts: &[&str]) -> [u8; LENGTH] {
    let (mut joined, mut at, mut left) = ([0; LENGTH], 0, parts);
    while let [first, rest @ ..] = left {
        let mut bytes = first.as_bytes();
        while let [byte, others @ ..] = bytes {
            joined[at] = *byte;
            at += 1;
            bytes = others;
        }
        left = rest;
    }
    joined
}

/// The text of bytes that [`join`] joined.
#[doc(hidden)]
pub const fn text_of(joined: &[u8]) -> &str {
    match std::str::from_utf8(joined) {
        Ok(text) => text,
        Err(_) => "",
    }
}

/// Joins constant texts into one, while the code is compiled.
#[macro_export]
macro_rules! sql {
    ($($part:expr),+ $(,)?) => {{
        const PARTS: &[&str] = &[$($part),+];
        const JOINED: [u8; $crate::columns::length_of(PARTS)] = $crate::columns::join(PARTS);
        const TEXT: &str = $crate::columns::text_of(&JOINED);
        TEXT
    }};
}

/// Defines a row type: its list of columns and its reader, from one list.
///
/// Each field has its type and the SQL of its column. The list of columns is `COLUMNS`. The
/// type of a field may be another row type, whose SQL is that type's list of columns.
///
/// ```ignore
/// row! {
///     struct Note {
///         id: String = "n.id",
///         bytes: i64 = "octet_length(n.text)",
///     }
/// }
/// let sql = sql!("SELECT ", Note::COLUMNS, " FROM notes AS n WHERE n.id = ?1");
/// ```
///
/// `for` creates another type from the columns, which are variables in the block. If the name is
/// followed by arguments, the SQL depends on them, and `columns` renders the list.
#[macro_export]
macro_rules! row {
    (
        $(#[$meta:meta])*
        $vis:vis struct $name:ident $(<$life:lifetime>)? $(($($arg:ident: $arg_type:ty),*))? {
            $(
                $(#[$field_meta:meta])*
                $field_vis:vis $field:ident: $type:ty = $sql:expr
            ),+ $(,)?
        }
    ) => {
        $(#[$meta])*
        $vis struct $name $(<$life>)? {
            $($(#[$field_meta])* $field_vis $field: $type,)+
        }
        $crate::row! {
            $vis for $name $(<$life>)? $(($($arg: $arg_type),*))? {
                $($field: $type = $sql),+
            }
            Ok(Self { $($field),+ })
        }
    };
    (
        $(#[$meta:meta])*
        $vis:vis for $name:ident $(<$life:lifetime>)? {
            $($field:ident: $type:ty = $sql:expr),+ $(,)?
        }
        $value:expr
    ) => {
        impl $(<$life>)? $name $(<$life>)? {
            $(#[$meta])*
            $vis const COLUMNS: &'static str = $crate::row!(@list $($sql),+);
        }
        $crate::row!(@reader [$($life)?] $name $(<$life>)? { $($field: $type),+ } $value);
    };
    (
        $(#[$meta:meta])*
        $vis:vis for $name:ident $(<$life:lifetime>)? ($($arg:ident: $arg_type:ty),*) {
            $($field:ident: $type:ty = $sql:expr),+ $(,)?
        }
        $value:expr
    ) => {
        impl $(<$life>)? $name $(<$life>)? {
            $(#[$meta])*
            $vis fn columns($($arg: $arg_type),*) -> String {
                let columns: Vec<String> = vec![$($sql.to_string()),+];
                columns.join(", ")
            }
        }
        $crate::row!(@reader [$($life)?] $name $(<$life>)? { $($field: $type),+ } $value);
    };
    (@list $first:expr $(, $sql:expr)*) => { $crate::sql!($first $(, ", ", $sql)*) };
    (@reader [] $name:ident { $($field:ident: $type:ty),+ } $value:expr) => {
        impl<'row> $crate::columns::FromColumn<'row> for $name {
            const WIDTH: usize = {
                const fn width() -> usize {
                    0 $(+ <$type as $crate::columns::FromColumn<'_>>::WIDTH)+
                }
                width()
            };

            $crate::row!(@from_column 'row { $($field: $type),+ } $value);
        }
        impl $crate::columns::FromRow<'_> for $name {
            fn from_row(row: &$crate::database::Row) -> $crate::error::Result<Self> {
                $crate::columns::FromColumn::from_column(row, 0)
            }
        }
    };
    (@reader [$life:lifetime] $name:ident <$own:lifetime> { $($field:ident: $type:ty),+ } $value:expr) => {
        impl<$life> $crate::columns::FromColumn<$life> for $name<$life> {
            const WIDTH: usize = 0 $(+ <$type as $crate::columns::FromColumn<$life>>::WIDTH)+;

            $crate::row!(@from_column $life { $($field: $type),+ } $value);
        }
        impl<$life> $crate::columns::FromRow<$life> for $name<$life> {
            fn from_row(row: &$life $crate::database::Row) -> $crate::error::Result<Self> {
                $crate::columns::FromColumn::from_column(row, 0)
            }
        }
    };
    (@from_column $life:lifetime { $($field:ident: $type:ty),+ } $value:expr) => {
        #[inline]
        fn from_column(
            row: &$life $crate::database::Row,
            column: usize,
        ) -> $crate::error::Result<Self> {
            $(
                let $field: $type = $crate::columns::FromColumn::from_column(row, column)?;
                let column = column + <$type as $crate::columns::FromColumn<'_>>::WIDTH;
            )+
            let _ = column;
            $value
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_in_column_order() {
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
    fn a_wrong_type_is_an_error_unless_the_column_is_optional() {
        let row = Row(vec![SqlValue::Null, SqlValue::Integer(2)]);
        assert!(row.read::<(i64, i64)>().is_err());
        assert!(row.read::<(Option<i64>, String)>().is_err());
        assert_eq!(row.read::<(Option<i64>, i64)>().unwrap(), (None, 2));
        assert!(row.read::<(Option<i64>, i64, i64)>().is_err());
    }

    mod rows {
        use crate::columns::Result;

        row! {
            /// A note.
            #[derive(Debug, PartialEq)]
            pub struct Note {
                /// Its number.
                pub number: i64 = "n.number",
                pub text: Option<String> = "n.text",
            }
        }

        row! {
            #[derive(Debug, PartialEq)]
            pub struct Borrowed<'r> {
                pub name: &'r str = "b.name",
                pub note: Note = Note::COLUMNS,
                pub is_last: bool = "b.number = 7",
            }
        }

        #[derive(Debug, PartialEq)]
        pub struct Sum(pub i64, pub usize);

        row! {
            pub for Sum(most: i64) {
                first: i64 = "a",
                other: &str = format!("iif(b <= {most}, b, '')"),
            }
            {
                let length = other.len();
                Ok(Self(first + 1, length))
            }
        }

        pub fn read(row: &crate::database::Row) -> Result<(Sum, Borrowed<'_>)> {
            Ok((row.read()?, row.read()?))
        }
    }

    #[test]
    fn a_row_type_reads_its_listed_columns() {
        use rows::{Borrowed, Note, Sum};
        assert_eq!(Note::COLUMNS, "n.number, n.text");
        assert_eq!(Borrowed::COLUMNS, "b.name, n.number, n.text, b.number = 7");
        assert_eq!(Sum::columns(9), "a, iif(b <= 9, b, '')");
        assert_eq!(<Borrowed<'_> as FromColumn<'_>>::WIDTH, 4);
        let row = Row(vec![
            SqlValue::Text("a".into()),
            SqlValue::Integer(3),
            SqlValue::Null,
            SqlValue::Integer(1),
        ]);
        let note = Note {
            number: 3,
            text: None,
        };
        let expected = Borrowed {
            name: "a",
            note,
            is_last: true,
        };
        assert_eq!(row.read::<Borrowed<'_>>().unwrap(), expected);
        assert!(rows::read(&row).is_err());
        let row = Row(vec![SqlValue::Integer(1), SqlValue::Text("abc".into())]);
        assert_eq!(row.read::<Sum>().unwrap(), Sum(2, 3));
        assert!(row.read::<Note>().is_ok());
        assert!(Row(vec![SqlValue::Null]).read::<Note>().is_err());
    }

    #[test]
    fn an_unmatched_joined_row_is_none() {
        use rows::Note;
        let row = Row(vec![
            SqlValue::Null,
            SqlValue::Null,
            SqlValue::Integer(3),
            SqlValue::Null,
            SqlValue::Integer(4),
        ]);
        let (missing, found, last): (Found<Note>, Found<Note>, i64) = row.read().unwrap();
        assert!(missing.0.is_none());
        assert_eq!(found.0.map(|note| note.number), Some(3));
        assert_eq!(last, 4, "what follows a row type is read after its columns");
    }

    #[test]
    fn ids_and_actions_are_read_from_text() {
        let row = Row(vec![
            SqlValue::Text("e1".into()),
            SqlValue::Text("user_message".into()),
            SqlValue::Text("".into()),
        ]);
        let (id, action, text): (Id, StoredAction, Cow<'_, str>) = row.read().unwrap();
        assert_eq!((id.as_str(), text.as_ref()), ("e1", ""));
        assert_eq!(action, crate::action::Action::UserMessage);
        assert!(row.read::<(Id, Id, Id)>().is_err(), "no id is empty");
    }

    #[test]
    fn constant_texts_are_joined_at_compile_time() {
        const NAME: &str = "notes";
        const SQL: &str = sql!("SELECT 1 FROM ", NAME, "");
        assert_eq!(SQL, "SELECT 1 FROM notes");
    }
}
