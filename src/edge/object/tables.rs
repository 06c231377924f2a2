//! When the object's tables are created and migrated to this build.

use super::Object;
use crate::edge::host::Runtime;
use crate::edge::storage::Sqlite;
use base::database::Database;
use base::error::Result;
use store::schema::{
    self,
    blank::{BlankDatabase, MadeListener},
};

impl MadeListener for Object {
    fn tables_made(&self) {
        self.handle_tables_created();
    }
}

impl Object {
    /// Migrates the tables, once per instance. This happens right before the first statement, not
    /// in the constructor, so that a rejected request costs no row.
    pub(super) fn get_ready(&self, db: &Sqlite<'_>) -> Result<()> {
        self.open_tables(db)?;
        self.blank(db).make()?;
        self.name.keep(db)
    }

    /// As [`Self::get_ready`], but creates no tables in an object that nobody has used.
    pub(super) fn open_tables(&self, db: &Sqlite<'_>) -> Result<()> {
        if !self.is_migrated.get() && schema::open(db, &Runtime)? {
            self.is_migrated.set(true);
            self.turns.checks.set_recovery_due(true);
            self.handle_tables_opened();
        }
        self.store_name(db)
    }

    /// Stores the agent's name, if it is not stored yet and the tables exist: a first write may
    /// have just created them.
    pub(super) fn store_name(&self, db: &Sqlite<'_>) -> Result<()> {
        if self.is_migrated.get() && !self.name.is_stored() {
            self.name.keep(db)?;
        }
        Ok(())
    }

    /// The storage as an operation sees it, once [`Self::open_tables`] has run.
    pub(super) fn readable<'a>(
        &self,
        db: &'a Sqlite<'_>,
        blank: &'a BlankDatabase<'_>,
    ) -> &'a dyn Database {
        if self.is_migrated.get() { db } else { blank }
    }

    /// The storage for a request that may only read: its first write creates the tables.
    pub(super) fn blank<'a>(&'a self, db: &'a Sqlite<'_>) -> BlankDatabase<'a> {
        BlankDatabase {
            db,
            host: &Runtime,
            are_made: &self.is_migrated,
            on_made: self,
        }
    }
}
