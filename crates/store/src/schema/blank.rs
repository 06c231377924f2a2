//! A database without tables. Reading an agent that nobody has used writes nothing: reads behave as
//! if the tables existed and were empty. The first write creates the tables.
//!
//! A statement that returns one row for an empty table, such as `SELECT count(*)`, returns none
//! here. So operations must not rely on such a row. `tests/native/store/unused_agent.rs` compares each
//! read-only operation with its result on empty tables.

use std::cell::Cell;

use super::create;
use base::columns::find_value;
use base::database::{
    Database, Delete, DeletedRows, Row, SqlText, SqlValue, TextAndRow, Writes, atomically,
};
use base::error::Result;
use base::host::Host;
use base::read_cache::{ReadCache, only_reads};

pub struct BlankDatabase<'a> {
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    /// Whether the tables exist. Requests of one object share it.
    pub are_made: &'a Cell<bool>,
    pub on_made: &'a dyn MadeListener,
}

/// Is called when the tables have been created, before anything else happens.
pub trait MadeListener {
    fn tables_made(&self);
}

impl BlankDatabase<'_> {
    /// Creates the tables, unless they exist.
    pub fn make(&self) -> Result<()> {
        if !self.are_made.get() {
            atomically(self.db, || create(self.db, self.host))?;
            self.are_made.set(true);
            self.on_made.tables_made();
        }
        Ok(())
    }

    /// Whether the statement finds nothing, since there are no tables. Creates them for a statement
    /// that may write.
    fn finds_nothing(&self, sql: &str) -> Result<bool> {
        if !self.are_made.get() && only_reads(sql) {
            return Ok(true);
        }
        self.make()?;
        Ok(false)
    }
}

/// Whether nobody has written to the agent. A statement without a table returns a row in every
/// other database, and reads no stored rows.
pub fn is_blank(db: &dyn Database) -> Result<bool> {
    Ok(find_value::<i64>(db, "SELECT 1", &[])?.is_none())
}

impl Database for BlankDatabase<'_> {
    fn run(&self, sql: &str, params: &[SqlValue]) -> Result<()> {
        self.make()?;
        self.db.run(sql, params)
    }

    fn rows(&self, sql: &str, params: &[SqlValue]) -> Result<Vec<Row>> {
        if self.finds_nothing(sql)? {
            Ok(Vec::new())
        } else {
            self.db.rows(sql, params)
        }
    }

    fn change(&self, sql: &str, params: &[SqlValue]) -> Result<i64> {
        self.make()?;
        self.db.change(sql, params)
    }

    fn delete(&self, delete: &Delete<'_>) -> Result<DeletedRows> {
        self.make()?;
        self.db.delete(delete)
    }

    fn find_text_and_row(&self, sql: &str, params: &[SqlValue]) -> Result<Option<TextAndRow>> {
        if self.finds_nothing(sql)? {
            Ok(None)
        } else {
            self.db.find_text_and_row(sql, params)
        }
    }

    fn find_text(&self, sql: &str, params: &[SqlValue]) -> Result<Option<SqlText>> {
        if self.finds_nothing(sql)? {
            Ok(None)
        } else {
            self.db.find_text(sql, params)
        }
    }

    fn find_bytes_and_text(
        &self,
        sql: &str,
        params: &[SqlValue],
    ) -> Result<Option<(Vec<u8>, String)>> {
        if self.finds_nothing(sql)? {
            Ok(None)
        } else {
            self.db.find_bytes_and_text(sql, params)
        }
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
        self.make()?;
        self.db.transaction(work)
    }
}
