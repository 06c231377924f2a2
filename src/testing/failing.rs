use std::cell::Cell;

use crate::base::database::{Database, Row, SqlText, SqlValue};
use crate::base::error::{Error, Result};

/// Another engine, refusing its nth statement: what a full disk or a lost
/// network does to a real one.
pub struct Failing<'a> {
    inner: &'a dyn Database,
    /// Statements left before the one that fails.
    left: Cell<usize>,
    failed: Cell<bool>,
    /// Instead: statements that are given this text fail, and no others.
    needle: Option<&'a str>,
}

impl<'a> Failing<'a> {
    /// Lets `passing` statements through and fails the one after them.
    pub fn after(inner: &'a dyn Database, passing: usize) -> Self {
        Self {
            inner,
            left: Cell::new(passing),
            failed: Cell::new(false),
            needle: None,
        }
    }

    /// Fails the statements that have `needle` among their values.
    pub fn with(inner: &'a dyn Database, needle: &'a str) -> Self {
        Self {
            needle: Some(needle),
            ..Self::after(inner, usize::MAX)
        }
    }

    /// Whether the failure was reached at all.
    pub fn has_failed(&self) -> bool {
        self.failed.get()
    }

    fn count(&self, params: &[SqlValue]) -> Result<()> {
        if let Some(needle) = self.needle
            && params.contains(&SqlValue::Text(needle.to_owned()))
        {
            self.failed.set(true);
            return Err(Error::storage("injected failure"));
        }
        match self.left.get() {
            0 => {
                self.failed.set(true);
                Err(Error::storage("injected failure"))
            }
            left => {
                self.left.set(left - 1);
                Ok(())
            }
        }
    }
}

impl Database for Failing<'_> {
    fn run(&self, sql: &str, params: &[SqlValue]) -> Result<()> {
        self.count(params)?;
        self.inner.run(sql, params)
    }

    fn rows(&self, sql: &str, params: &[SqlValue]) -> Result<Vec<Row>> {
        self.count(params)?;
        self.inner.rows(sql, params)
    }

    fn find_text(&self, sql: &str, params: &[SqlValue]) -> Result<Option<SqlText>> {
        self.count(params)?;
        self.inner.find_text(sql, params)
    }

    fn size_bytes(&self) -> Result<i64> {
        self.inner.size_bytes()
    }

    fn transaction(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.inner.transaction(work)
    }
}
