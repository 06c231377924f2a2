//! Rejects statements that delete or replace user text in any other way than by
//! `base::database::Delete`.
//!
//! SQLite itself determines what a statement does. It calls its authorizer for each table that a
//! statement deletes from, also for a virtual one. It runs temporary triggers for each deleted row,
//! also for one that `INSERT OR REPLACE` removes, with the texts of a row before and after an
//! update.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::functions::FunctionFlags;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{CachedStatement, Connection, Error};

/// A table whose rows contain user text.
#[derive(Clone, Copy, Debug)]
pub struct GuardedTable {
    pub name: &'static str,
    /// The columns with the text.
    pub texts: &'static [&'static str],
    /// A virtual table has no triggers.
    pub is_virtual: bool,
}

thread_local! {
    static ERASING: Cell<usize> = const { Cell::new(0) };
}

/// While this exists, this thread erases: each text must be overwritten before its row is deleted
/// or gets another text.
pub struct ErasingMark(());

impl ErasingMark {
    #[expect(
        clippy::new_without_default,
        reason = "making one has an effect until it is dropped"
    )]
    pub fn new() -> Self {
        ERASING.set(ERASING.get() + 1);
        Self(())
    }
}

impl Drop for ErasingMark {
    fn drop(&mut self) {
        ERASING.set(ERASING.get() - 1);
    }
}

/// The state that the hooks of one connection share.
///
/// A table gets its triggers before the first statement that writes to it: creating them all takes
/// longer than most tests.
#[derive(Default)]
pub struct Guard {
    /// Set while an allowed deletion runs.
    may_delete: AtomicBool,
    /// Set when tables were created, dropped or renamed, or a transaction was rolled back: triggers
    /// may be gone.
    is_stale: AtomicBool,
    tables: Mutex<&'static [GuardedTable]>,
    /// The tables that have triggers, and those that a prepared statement writes to without them.
    watched: Mutex<BTreeSet<&'static str>>,
    missing: Mutex<BTreeSet<&'static str>>,
    dropped: Mutex<String>,
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Guard {
    fn find(&self, name: &str) -> Option<&'static GuardedTable> {
        lock(&self.tables).iter().find(|table| table.name == name)
    }

    /// Runs `work`, which may delete user text.
    pub fn allow<T>(&self, work: impl FnOnce() -> T) -> T {
        let was_allowed = self.may_delete.swap(true, Ordering::Relaxed);
        let outcome = work();
        self.may_delete.store(was_allowed, Ordering::Relaxed);
        outcome
    }

    /// Whether a statement may perform this action.
    pub fn authorize(&self, context: &AuthContext<'_>) -> Authorization {
        match context.action {
            AuthAction::DropTable { table_name } | AuthAction::DropVtable { table_name, .. } => {
                table_name.clone_into(&mut lock(&self.dropped));
                self.mark_stale();
            }
            AuthAction::CreateTable { .. } | AuthAction::AlterTable { .. } => self.mark_stale(),
            AuthAction::Delete { table_name } => {
                if let Some(table) = self.find(table_name) {
                    let is_allowed = self.may_delete.load(Ordering::Relaxed);
                    if !is_allowed && *lock(&self.dropped) != table_name {
                        return Authorization::Deny;
                    }
                    self.watch(table);
                }
            }
            AuthAction::Insert { table_name } | AuthAction::Update { table_name, .. } => {
                if let Some(table) = self.find(table_name) {
                    self.watch(table);
                }
            }
            _ => {}
        }
        Authorization::Allow
    }

    /// Triggers may be gone: for example, a transaction was rolled back in which they were created.
    pub fn mark_stale(&self) {
        self.is_stale.store(true, Ordering::Relaxed);
    }

    fn watch(&self, table: &GuardedTable) {
        if !table.is_virtual && !lock(&self.watched).contains(table.name) {
            lock(&self.missing).insert(table.name);
        }
    }

    /// Guards these tables from now on.
    pub fn install(
        self: &Arc<Self>,
        connection: &Connection,
        tables: &'static [GuardedTable],
    ) -> Result<(), Error> {
        let guard = self.clone();
        let flags = FunctionFlags::SQLITE_UTF8;
        connection.create_scalar_function("may_delete_text", 0, flags, move |_| {
            Ok(guard.may_delete.load(Ordering::Relaxed))
        })?;
        connection.create_scalar_function("is_erasing", 0, flags, |_| Ok(ERASING.get() > 0))?;
        *lock(&self.tables) = tables;
        self.mark_stale();
        Ok(())
    }

    /// Prepares a statement, with the triggers of the tables that it writes to.
    pub fn prepare<'a>(
        &self,
        connection: &'a Connection,
        sql: &str,
    ) -> Result<CachedStatement<'a>, Error> {
        self.refresh(connection);
        let statement = connection.prepare_cached(sql)?;
        if lock(&self.missing).is_empty() {
            return Ok(statement);
        }
        // A statement runs only the triggers that existed when it was prepared.
        drop(statement);
        self.create_missing(connection)?;
        connection.prepare_cached(sql)
    }

    /// Runs statements without parameters. Before several statements, all tables get triggers.
    pub fn run(&self, connection: &Connection, statements: &str) -> Result<(), Error> {
        if statements.trim_end().trim_end_matches(';').contains(';') {
            self.refresh(connection);
            let tables = *lock(&self.tables);
            tables.iter().for_each(|table| self.watch(table));
            self.create_missing(connection)?;
        } else {
            drop(self.prepare(connection, statements)?);
        }
        connection.execute_batch(statements)
    }

    /// If triggers may be gone, all statements are prepared again, and each finds out which exist.
    fn refresh(&self, connection: &Connection) {
        if !self.is_stale.swap(false, Ordering::Relaxed) {
            return;
        }
        connection.flush_prepared_statement_cache();
        lock(&self.watched).clear();
        lock(&self.missing).clear();
    }

    fn create_missing(&self, connection: &Connection) -> Result<(), Error> {
        let missing = std::mem::take(&mut *lock(&self.missing));
        if missing.is_empty() {
            return Ok(());
        }
        let mut known = connection.prepare("SELECT 1 FROM main.sqlite_master WHERE name = ?1")?;
        let (mut statements, mut created) = (String::new(), Vec::new());
        for name in missing {
            if let Some(table) = self.find(name)
                && known.exists([name])?
            {
                statements.push_str(&triggers_of(table));
                created.push(name);
            }
        }
        connection.execute_batch(&statements)?;
        lock(&self.watched).extend(created);
        connection.flush_prepared_statement_cache();
        Ok(())
    }
}

fn triggers_of(table: &GuardedTable) -> String {
    let GuardedTable { name, texts, .. } = table;
    // An overwritten text consists of zeros (`overwritten` in store/erasing.rs).
    let each = |rule: &dyn Fn(&str) -> String| {
        let rules: Vec<String> = texts.iter().copied().map(rule).collect();
        rules.concat()
    };
    let deleted = each(&|text| {
        format!(
            "SELECT RAISE(ABORT, '{name}.{text}: a purge overwrites a text before it deletes the row')
              WHERE is_erasing() AND trim(OLD.{text}, '0') <> '';
"
        )
    });
    let replaced = each(&|text| {
        format!(
            "SELECT RAISE(ABORT, '{name}.{text}: a purge overwrites a text before it writes another')
              WHERE is_erasing()
                AND OLD.{text} IS NOT NEW.{text}
                AND trim(OLD.{text}, '0') <> ''
                AND (NEW.{text} IS NULL
                     OR trim(NEW.{text}, '0') <> ''
                     OR octet_length(NEW.{text}) <> octet_length(OLD.{text}));
"
        )
    });
    let columns = texts.join(", ");
    format!(
        "CREATE TEMP TRIGGER IF NOT EXISTS {name}_deleted BEFORE DELETE ON main.{name}
         BEGIN
           SELECT RAISE(ABORT, '{name}: text is deleted by `Delete` alone')
            WHERE NOT may_delete_text();
           {deleted}
         END;
         CREATE TEMP TRIGGER IF NOT EXISTS {name}_replaced
                BEFORE UPDATE OF {columns} ON main.{name}
         BEGIN
           {replaced}
         END;
"
    )
}
