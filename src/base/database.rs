//! The seam to SQLite. Two engines stand behind it: a Durable Object's own
//! storage (`edge/storage.rs`) and a native one set to the same limits
//! (`testing/sqlite.rs`).
//!
//! It protects one rule: bytes that nobody has to decide about do not travel
//! through Rust. A hot read is JSON text made by SQLite; [`SqlText`] carries it
//! from the cursor to the response without turning it into a `String`.

use crate::base::error::{Error, Result};

/// The largest string SQLite takes or gives here, in bytes: a Durable Object
/// refuses a value or a row above 2 MB. Under it we keep room for the row's
/// other columns and for the record's own header.
pub const MAX_VALUE_BYTES: usize = 1_900_000;

/// How many bytes of rows one JSON parameter carries; a longer list goes in
/// several statements. Half the value limit, so that escaping inside the
/// engine can't push it over.
pub const MAX_LIST_BYTES: usize = 1_000_000;

#[derive(Clone, Debug, PartialEq)]
pub enum SqlValue {
    Null,
    /// Binds as a double, as in workerd: exact to 2^53.
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
            .ok_or_else(|| Error::storage(format!("column {column} holds no integer")))
    }

    /// `None` for NULL.
    pub fn find_integer(&self, column: usize) -> Option<i64> {
        match self.0.get(column)? {
            SqlValue::Integer(value) => Some(*value),
            SqlValue::Real(value) => Some(*value as i64),
            SqlValue::Null | SqlValue::Text(_) => None,
        }
    }

    pub fn text(&self, column: usize) -> Result<&str> {
        self.find_text(column)
            .ok_or_else(|| Error::storage(format!("column {column} holds no text")))
    }

    /// `None` for NULL.
    pub fn find_text(&self, column: usize) -> Option<&str> {
        match self.0.get(column)? {
            SqlValue::Text(value) => Some(value),
            _ => None,
        }
    }
}

/// Text as the engine made it: a JavaScript string in workerd, never copied
/// into wasm on its way out.
#[cfg(target_arch = "wasm32")]
#[derive(Clone, Debug)]
pub enum SqlText {
    /// As the engine made it.
    Js(js_sys::JsString),
    /// Made here, and too long to be copied once more: it is sent piece by piece.
    Long(std::rc::Rc<String>),
}

/// From here on a text that was made here stays here.
#[cfg(target_arch = "wasm32")]
const LONG_BYTES: usize = 256 << 10;

#[cfg(not(target_arch = "wasm32"))]
#[derive(Clone, Debug)]
pub struct SqlText(pub String);

impl SqlText {
    /// Copies the text into Rust. For what has to be looked at; never on a hot path.
    pub fn into_string(self) -> String {
        #[cfg(target_arch = "wasm32")]
        return match self {
            Self::Js(text) => text.into(),
            Self::Long(text) => std::rc::Rc::unwrap_or_clone(text),
        };
        #[cfg(not(target_arch = "wasm32"))]
        self.0
    }
}

impl From<String> for SqlText {
    #[cfg(target_arch = "wasm32")]
    fn from(text: String) -> Self {
        match text.len() <= LONG_BYTES {
            true => Self::Js(text.into()),
            false => Self::Long(std::rc::Rc::new(text)),
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn from(text: String) -> Self {
        Self(text)
    }
}

pub trait Database {
    /// A statement whose rows, if any, nobody wants.
    fn run(&self, sql: &str, params: &[SqlValue]) -> Result<()>;

    /// All rows of a bounded statement.
    fn rows(&self, sql: &str, params: &[SqlValue]) -> Result<Vec<Row>>;

    /// The first column of the first row, untouched. `None`: no row, or NULL.
    fn find_text(&self, sql: &str, params: &[SqlValue]) -> Result<Option<SqlText>>;

    /// How large the database is, free pages included.
    fn size_bytes(&self) -> Result<i64>;

    /// Runs `work` in one transaction: committed when it succeeds, undone when
    /// it fails. Inside another, it is part of that one's fate. Prefer
    /// [`atomically`], which carries a result out.
    fn transaction(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()>;
}

/// All or nothing: what `work` wrote is kept when it returns `Ok`, undone when
/// it returns an error or when the object dies in between.
pub fn atomically<T>(db: &dyn Database, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let mut work = Some(work);
    let mut outcome = None;
    db.transaction(&mut || {
        // The engine calls this once; a second call finds nothing left to do.
        let Some(work) = work.take() else {
            return Ok(());
        };
        outcome = Some(work()?);
        Ok(())
    })?;
    outcome.ok_or_else(|| Error::storage("the transaction never ran its work"))
}

/// The first row of a statement that gives at most one.
pub fn find_row(db: &dyn Database, sql: &str, params: &[SqlValue]) -> Result<Option<Row>> {
    Ok(db.rows(sql, params)?.into_iter().next())
}
