use std::cell::Cell;

use crate::database::{Database, Row, SqlValue, TextAndRow, Writes};
use crate::database::{Delete, DeletedRows};
use crate::error::{Error, Result};
use crate::read_cache::ReadCache;

/// A database that refuses its nth statement, as a real database does when the disk is
/// full or the network is lost.
pub struct Failing<'a> {
    inner: &'a dyn Database,
    /// How many statements still succeed before one fails.
    left: Cell<usize>,
    failed: Cell<bool>,
    /// If set, only statements that bind this text fail.
    needle: Option<&'a str>,
}

impl<'a> Failing<'a> {
    /// The first `passing` statements succeed; the next one fails.
    pub fn after(inner: &'a dyn Database, passing: usize) -> Self {
        Self {
            inner,
            left: Cell::new(passing),
            failed: Cell::new(false),
            needle: None,
        }
    }

    /// Statements that bind the text `needle` fail.
    pub fn with(inner: &'a dyn Database, needle: &'a str) -> Self {
        Self {
            needle: Some(needle),
            ..Self::after(inner, usize::MAX)
        }
    }

    /// Whether a statement has failed.
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

    fn change(&self, sql: &str, params: &[SqlValue]) -> Result<i64> {
        self.count(params)?;
        self.inner.change(sql, params)
    }

    fn delete(&self, delete: &Delete<'_>) -> Result<DeletedRows> {
        self.count(delete.params)?;
        self.inner.delete(delete)
    }

    fn find_text_and_row(&self, sql: &str, params: &[SqlValue]) -> Result<Option<TextAndRow>> {
        self.count(params)?;
        self.inner.find_text_and_row(sql, params)
    }

    fn find_bytes_and_text(
        &self,
        sql: &str,
        params: &[SqlValue],
    ) -> Result<Option<(Vec<u8>, String)>> {
        self.count(params)?;
        self.inner.find_bytes_and_text(sql, params)
    }

    fn read_cache(&self) -> Option<&ReadCache> {
        self.inner.read_cache()
    }

    fn size_bytes(&self) -> Result<i64> {
        self.inner.size_bytes()
    }

    fn take_writes(&self) -> Result<Writes> {
        self.inner.take_writes()
    }

    fn transaction(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        self.inner.transaction(work)
    }
}
