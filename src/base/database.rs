//! The interface to SQLite. Two engines implement it: a Durable Object's own storage
//! (`edge/storage.rs`) and a native engine with the same limits (`testing/sqlite.rs`).
//!
//! The rule this file protects: bytes that no code has to look at do not travel through
//! Rust. A hot read is JSON text made by SQLite; [`SqlText`] carries the text from the
//! cursor to the response without turning it into a `String`.

use crate::base::error::{Error, Result};

/// The longest string, in bytes, that SQLite takes or returns here. A Durable Object
/// refuses a value or a row above 2 MB; the difference is for the row's other columns
/// and the record's header.
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

    pub fn number(&self, column: usize) -> Result<f64> {
        match self.0.get(column) {
            Some(SqlValue::Real(value)) => Ok(*value),
            Some(SqlValue::Integer(value)) => Ok(*value as f64),
            _ => Err(Error::storage(format!("column {column} holds no number"))),
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

/// A row whose first column is a text that stays outside, and the row's other columns.
pub type TextAndRow = (Option<SqlText>, Row);

/// Text as the engine made it, which is never copied into wasm on its way out. A page is
/// made as a BLOB: its bytes are sent as they are. A string would be decoded and encoded
/// again, which takes as long as the page itself where not all of it is ASCII.
#[cfg(target_arch = "wasm32")]
#[derive(Clone, Debug)]
pub enum SqlText {
    /// A string of the engine's.
    Js(js_sys::JsString),
    /// A BLOB of the engine's: UTF-8.
    Bytes(js_sys::Uint8Array),
    /// A string made in Rust, too long for another copy: it is sent in pieces.
    Long(std::rc::Rc<String>),
}

/// A string made in Rust of this length or more becomes [`SqlText::Long`].
#[cfg(target_arch = "wasm32")]
const LONG_BYTES: usize = 256 << 10;

#[cfg(not(target_arch = "wasm32"))]
#[derive(Clone, Debug)]
pub struct SqlText(pub String);

impl SqlText {
    /// Copies the text into Rust. For text that Rust must look at; never on a hot path.
    pub fn into_string(self) -> String {
        #[cfg(target_arch = "wasm32")]
        return match self {
            Self::Js(text) => text.into(),
            Self::Bytes(bytes) => from_utf8(bytes.to_vec()),
            Self::Long(text) => std::rc::Rc::unwrap_or_clone(text),
        };
        #[cfg(not(target_arch = "wasm32"))]
        self.0
    }
}

impl SqlText {
    /// Texts one after the other. Bytes of the engine's are joined outside, and not copied
    /// into Rust.
    pub fn concat(texts: Vec<SqlText>) -> Self {
        #[cfg(target_arch = "wasm32")]
        if let Some(joined) = texts
            .iter()
            .map(Self::find_bytes)
            .collect::<Option<Vec<_>>>()
        {
            return Self::Bytes(join(&joined));
        }
        let texts: Vec<String> = texts.into_iter().map(Self::into_string).collect();
        texts.concat().into()
    }

    /// The text between two short ones.
    pub fn enclose(self, head: &str, tail: &str) -> Self {
        match self {
            #[cfg(target_arch = "wasm32")]
            Self::Bytes(bytes) => Self::Bytes(join(&[
                head.as_bytes().into(),
                bytes,
                tail.as_bytes().into(),
            ])),
            text => Self::concat(vec![head.into(), text, tail.into()]),
        }
    }
}

#[cfg(target_arch = "wasm32")]
impl SqlText {
    /// `None`: the text is long, and not outside.
    fn find_bytes(&self) -> Option<js_sys::Uint8Array> {
        match self {
            Self::Js(text) => Some(String::from(text).as_bytes().into()),
            Self::Bytes(bytes) => Some(bytes.clone()),
            Self::Long(_) => None,
        }
    }
}

#[cfg(target_arch = "wasm32")]
fn join(parts: &[js_sys::Uint8Array]) -> js_sys::Uint8Array {
    let joined = js_sys::Uint8Array::new_with_length(parts.iter().map(|part| part.length()).sum());
    let mut at = 0;
    for part in parts {
        joined.set(part, at);
        at += part.length();
    }
    joined
}

/// The engine's bytes as text. What is no UTF-8 is replaced, as the engine does it where it
/// makes a string.
#[cfg(target_arch = "wasm32")]
fn from_utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

impl From<&str> for SqlText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
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
    /// Runs a statement and ignores its rows.
    fn run(&self, sql: &str, params: &[SqlValue]) -> Result<()>;

    /// All rows of a bounded statement.
    ///
    /// SQLite prepares a statement anew each time it runs if a column that is compared
    /// with `?1` decides an order, or if `?1` is a LIMIT: it then plans for the value. The
    /// statements of usual requests say `+?1` and `LIMIT ?1 + 0`, which keeps one plan.
    fn rows(&self, sql: &str, params: &[SqlValue]) -> Result<Vec<Row>>;

    /// The first row: its first column unchanged (`None`: NULL), and its other columns.
    fn find_text_and_row(&self, sql: &str, params: &[SqlValue]) -> Result<Option<TextAndRow>>;

    /// The first column of the first row, unchanged. `None`: there is no row, or NULL.
    fn find_text(&self, sql: &str, params: &[SqlValue]) -> Result<Option<SqlText>> {
        let found = self.find_text_and_row(sql, params)?;
        Ok(found.and_then(|(text, _)| text))
    }

    /// The first row of a statement whose first column is a BLOB, and its second a text:
    /// much that Rust has to look at. Bytes take the shortest way from the engine. `None`:
    /// there is no row, or one of the two is NULL.
    fn find_bytes_and_text(
        &self,
        sql: &str,
        params: &[SqlValue],
    ) -> Result<Option<(Vec<u8>, String)>>;

    /// Copies a text of the engine's into Rust, for code that has to look at it.
    fn copy_text(&self, text: &SqlText) -> String {
        text.clone().into_string()
    }

    /// As [`Self::copy_text`], without a look at whether the bytes are UTF-8.
    fn copy_bytes(&self, text: &SqlText) -> Vec<u8> {
        match text {
            #[cfg(target_arch = "wasm32")]
            SqlText::Bytes(bytes) => bytes.to_vec(),
            text => self.copy_text(text).into_bytes(),
        }
    }

    /// The size of the database, free pages included.
    fn size_bytes(&self) -> Result<i64>;

    /// Runs `work` in one transaction: committed if `work` succeeds, undone if it
    /// fails. Inside another transaction, `work` is committed or undone with the outer
    /// one. Prefer [`atomically`], which returns the result of `work`.
    fn transaction(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()>;
}

/// Runs `work` in a transaction. What `work` wrote is kept if it returns `Ok`, and
/// undone if it returns an error or if the object dies in between.
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
