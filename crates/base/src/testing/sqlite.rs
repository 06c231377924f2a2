//! The real SQLite, natively, configured like a Durable Object's: with the same limits and
//! refusals, and with every number bound as a double.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, Statement, StatementStatus, ToSql, params_from_iter};

use super::guard::{Guard, GuardedTable};
use crate::database::{Database, EngineText, Row, SqlText, SqlValue, TextAndRow, Writes};
use crate::database::{Delete, DeletedRows};
use crate::error::{Error, Result};
use crate::read_cache::ReadCache;

/// The limits of workerd's SQLite, as measured in workerd.
const LIMITS: &[(Limit, i32)] = &[
    (Limit::SQLITE_LIMIT_LENGTH, 2_200_000),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 5),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 32),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 100),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 10),
];

/// The size of the cache of prepared statements: about as many as an agent has.
const PREPARED_STATEMENTS: usize = 1_000;

pub struct Sqlite {
    connection: Connection,
    depth: Cell<usize>,
    /// How many bytes of text have been read from the database.
    text_bytes: Cell<usize>,
    /// How many steps of SQLite's virtual machine the statements took.
    steps: Cell<i32>,
    /// How many rows the statements returned, and how many they wrote.
    costs: Cell<(usize, u64)>,
    /// The statements that SQLite had to prepare again when they ran.
    reprepared: RefCell<BTreeSet<String>>,
    /// The statements that wrote, and the largest size of the database after one of them.
    written: RefCell<BTreeSet<String>>,
    peak_bytes: Cell<i64>,
    /// Set while this type starts or ends a transaction. No other code may do so.
    in_control: Arc<AtomicBool>,
    guard: Arc<Guard>,
    read_cache: ReadCache,
}

impl Sqlite {
    #[expect(
        clippy::new_without_default,
        reason = "a database is opened, and there is no usual one"
    )]
    pub fn new() -> Self {
        Self::on(Connection::open_in_memory().unwrap())
    }

    /// A database in a file, with a write-ahead log, like a Durable Object's.
    pub fn at(path: &std::path::Path) -> Self {
        let connection = Connection::open(path).unwrap();
        connection
            .pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))
            .unwrap();
        Self::on(connection)
    }

    /// A database from the bytes of a file.
    pub fn from_file(bytes: &[u8]) -> Self {
        let mut connection = Connection::open_in_memory().unwrap();
        let length = bytes.len();
        connection
            .deserialize_read_exact("main", bytes, length, false)
            .unwrap();
        Self::on(connection)
    }

    /// The bytes of the database.
    pub fn bytes(&mut self) -> Vec<u8> {
        self.in_control.store(true, Ordering::Relaxed);
        let bytes = self.connection.serialize("main").unwrap().to_vec();
        self.in_control.store(false, Ordering::Relaxed);
        bytes
    }

    /// The bytes of the database's file, with small pages and vacuumed.
    pub fn into_file(mut self) -> Vec<u8> {
        let nobody_asks = None::<fn(AuthContext<'_>) -> Authorization>;
        self.connection.authorizer(nobody_asks).unwrap();
        let bytes = self.connection.serialize("main").unwrap().to_vec();
        // Tests of one process run in parallel.
        let (process, thread) = (std::process::id(), std::thread::current().id());
        let path = std::env::temp_dir().join(format!("session-agent-{process}-{thread:?}.db"));
        std::fs::write(&path, bytes).unwrap();
        let copy = Connection::open(&path).unwrap();
        copy.execute_batch("PRAGMA page_size = 1024; VACUUM")
            .unwrap();
        copy.close().unwrap();
        let file = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        file
    }

    /// The names of a table's columns.
    pub fn columns(&self, table: &str) -> Vec<String> {
        let sql = format!("SELECT * FROM \"{table}\" LIMIT 0");
        let statement = self.connection.prepare(&sql).unwrap();
        let names = statement.column_names();
        names.into_iter().map(str::to_owned).collect()
    }

    fn on(mut connection: Connection) -> Self {
        for (limit, value) in LIMITS {
            connection.set_limit(*limit, *value).unwrap();
        }
        connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS);
        connection
            .execute_batch("PRAGMA foreign_keys = ON")
            .unwrap();
        let in_control = Arc::new(AtomicBool::new(false));
        let may_control = in_control.clone();
        let guard = Arc::<Guard>::default();
        let guarding = guard.clone();
        connection
            .authorizer(Some(move |context: AuthContext<'_>| {
                match guarding.authorize(&context) {
                    Authorization::Allow => authorize(context, may_control.load(Ordering::Relaxed)),
                    refused => refused,
                }
            }))
            .unwrap();
        Self {
            connection,
            depth: Cell::new(0),
            steps: Cell::new(0),
            costs: Cell::default(),
            reprepared: RefCell::default(),
            written: RefCell::default(),
            peak_bytes: Cell::new(0),
            text_bytes: Cell::new(0),
            in_control,
            guard,
            read_cache: ReadCache::default(),
        }
    }

    /// From now on, user text in these tables may only be deleted with
    /// `base::database::Delete`, and a purge overwrites it first.
    pub fn guard(&self, tables: &'static [GuardedTable]) {
        self.in_control.store(true, Ordering::Relaxed);
        self.connection
            .execute_batch("PRAGMA recursive_triggers = ON")
            .unwrap();
        self.in_control.store(false, Ordering::Relaxed);
        self.guard.install(&self.connection, tables).unwrap();
    }

    /// Runs `work`, which may delete user text in ways that production code may not: a test
    /// damages tables.
    pub fn unguarded<T>(&self, work: impl FnOnce() -> T) -> T {
        self.guard.allow(work)
    }

    /// Lets the database grow by at most this many pages, like an object that is almost
    /// full.
    pub fn leave_room(&self, pages: i64) {
        self.in_control.store(true, Ordering::Relaxed);
        let pages_used: i64 = self
            .connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .unwrap();
        self.connection
            .pragma_update_and_check(None, "max_page_count", pages_used + pages, |_| Ok(()))
            .unwrap();
        self.in_control.store(false, Ordering::Relaxed);
    }

    /// How many bytes of text have been read so far.
    pub fn text_bytes(&self) -> usize {
        self.text_bytes.get()
    }

    /// How many steps the statements that returned rows have taken since the last call.
    pub fn take_steps(&self) -> i32 {
        self.steps.take()
    }

    /// How many rows the statements have returned and written since the last call. A
    /// virtual table's own rows don't count, as in workerd.
    pub fn take_costs(&self) -> (usize, u64) {
        self.costs.take()
    }

    fn record_written(&self, sql: &str) -> Result<()> {
        if !self.written.borrow().contains(sql) {
            self.written.borrow_mut().insert(sql.to_owned());
        }
        self.peak_bytes
            .set(self.peak_bytes.get().max(self.size_bytes()?));
        Ok(())
    }

    fn count(&self, returned: usize, written: u64) {
        let (rows, writes) = self.costs.get();
        self.costs.set((rows + returned, writes + written));
    }

    /// The statements that SQLite had to prepare again since the last call.
    pub fn take_reprepared(&self) -> BTreeSet<String> {
        self.reprepared.take()
    }

    fn control(&self, sql: &str) -> Result<()> {
        self.in_control.store(true, Ordering::Relaxed);
        let outcome = self.connection.execute_batch(sql);
        self.in_control.store(false, Ordering::Relaxed);
        outcome.map_err(failed)
    }

    fn read(
        &self,
        statement: &mut Statement<'_>,
        sql: &str,
        params: &[SqlValue],
    ) -> Result<Vec<Row>> {
        let width = statement.column_count();
        let mut cursor = statement
            .query(params_from_iter(params.iter().map(Bound)))
            .map_err(failed)?;
        let mut rows = Vec::new();
        while let Some(row) = cursor.next().map_err(failed)? {
            let columns = (0..width).map(|column| {
                Ok(match row.get_ref(column)? {
                    ValueRef::Null => SqlValue::Null,
                    ValueRef::Integer(value) => SqlValue::Integer(value),
                    ValueRef::Real(value) => SqlValue::Real(value),
                    ValueRef::Text(value) | ValueRef::Blob(value) => {
                        self.text_bytes.set(self.text_bytes.get() + value.len());
                        SqlValue::Text(String::from_utf8_lossy(value).into_owned())
                    }
                })
            });
            rows.push(Row(columns
                .collect::<rusqlite::Result<_>>()
                .map_err(failed)?));
        }
        drop(cursor);
        let is_write = !statement.readonly();
        if is_write {
            self.record_written(sql)?;
        }
        self.count(
            rows.len(),
            if is_write {
                self.connection.changes()
            } else {
                0
            },
        );
        let steps = statement.reset_status(StatementStatus::VmStep);
        self.steps.set(self.steps.get().saturating_add(steps));
        if statement.reset_status(StatementStatus::RePrepare) > 0 {
            self.reprepared.borrow_mut().insert(sql.to_owned());
        }
        Ok(rows)
    }

    /// Every row of every table as text, so that a test can compare two states of the
    /// database.
    pub fn dump(&self) -> String {
        let tables = self
            .rows(
                "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name",
                &[],
            )
            .unwrap();
        let mut dump = String::new();
        for table in &tables {
            let name = table.text(0).unwrap();
            // A cached statement would lack the columns that a migration adds.
            let sql = format!("SELECT * FROM \"{name}\"");
            let mut statement = self.connection.prepare(&sql).unwrap();
            for row in self.read(&mut statement, &sql, &[]).unwrap() {
                dump.push_str(&format!("{name} {:?}\n", row.0));
            }
        }
        dump
    }
}

fn authorize(context: AuthContext<'_>, in_control: bool) -> Authorization {
    match context.action {
        AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. }
        | AuthAction::Pragma { .. }
            if in_control =>
        {
            Authorization::Allow
        }
        // FTS5 itself runs this pragma.
        AuthAction::Pragma {
            pragma_name: "data_version",
            ..
        } => Authorization::Allow,
        // A Durable Object may read a table's columns.
        AuthAction::Pragma {
            pragma_name: "table_info",
            ..
        } => Authorization::Allow,
        AuthAction::Attach { .. }
        | AuthAction::Detach { .. }
        | AuthAction::Transaction { .. }
        | AuthAction::Savepoint { .. }
        | AuthAction::Pragma { .. } => Authorization::Deny,
        AuthAction::Function { function_name }
            if function_name.eq_ignore_ascii_case("sqlite_version") =>
        {
            Authorization::Deny
        }
        AuthAction::CreateTable { table_name }
        | AuthAction::Read { table_name, .. }
        | AuthAction::Insert { table_name }
            if table_name.starts_with("_cf_") =>
        {
            Authorization::Deny
        }
        _ => Authorization::Allow,
    }
}

fn failed(error: rusqlite::Error) -> Error {
    Error::storage(error.to_string())
}

/// Binds a value as workerd does: every number is a double.
struct Bound<'a>(&'a SqlValue);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            SqlValue::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            SqlValue::Integer(value) => ToSqlOutput::Borrowed(ValueRef::Real(*value as f64)),
            SqlValue::Real(value) => ToSqlOutput::Borrowed(ValueRef::Real(*value)),
            SqlValue::Text(value) => ToSqlOutput::Borrowed(ValueRef::Text(value.as_bytes())),
        })
    }
}

/// A text that the native engine built.
#[derive(Debug)]
pub struct NativeText(pub String);

impl EngineText for NativeText {
    fn copy(&self) -> String {
        self.0.clone()
    }

    fn copy_bytes(&self) -> Vec<u8> {
        self.0.clone().into_bytes()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Database for Sqlite {
    fn run(&self, sql: &str, params: &[SqlValue]) -> Result<()> {
        self.read_cache.before_statement(sql);
        if params.is_empty() {
            self.guard.run(&self.connection, sql).map_err(failed)?;
            return self.record_written(sql);
        }
        self.rows(sql, params).map(drop)
    }

    fn change(&self, sql: &str, params: &[SqlValue]) -> Result<i64> {
        self.rows(sql, params)?;
        Ok(self.connection.changes() as i64)
    }

    fn delete(&self, delete: &Delete<'_>) -> Result<DeletedRows> {
        self.guard.allow(|| {
            let rows = self.rows(&delete.sql(), delete.params)?;
            let count = self.connection.changes() as i64;
            Ok(DeletedRows { count, rows })
        })
    }

    fn rows(&self, sql: &str, params: &[SqlValue]) -> Result<Vec<Row>> {
        self.read_cache.before_statement(sql);
        let mut statement = self.guard.prepare(&self.connection, sql).map_err(failed)?;
        self.read(&mut statement, sql, params)
    }

    fn find_text_and_row(&self, sql: &str, params: &[SqlValue]) -> Result<Option<TextAndRow>> {
        let Some(row) = self.rows(sql, params)?.into_iter().next() else {
            return Ok(None);
        };
        let mut columns = row.0.into_iter();
        let text = match columns.next() {
            Some(SqlValue::Text(text)) => Some(SqlText::outside(NativeText(text))),
            _ => None,
        };
        Ok(Some((text, Row(columns.collect()))))
    }

    fn find_bytes_and_text(
        &self,
        sql: &str,
        params: &[SqlValue],
    ) -> Result<Option<(Vec<u8>, String)>> {
        self.read_cache.before_statement(sql);
        let mut statement = self.connection.prepare_cached(sql).map_err(failed)?;
        let mut cursor = statement
            .query(params_from_iter(params.iter().map(Bound)))
            .map_err(failed)?;
        let Some(row) = cursor.next().map_err(failed)? else {
            return Ok(None);
        };
        let columns = (row.get_ref(0), row.get_ref(1));
        let (Ok(ValueRef::Blob(bytes)), Ok(ValueRef::Text(text))) = columns else {
            return Ok(None);
        };
        self.text_bytes
            .set(self.text_bytes.get() + bytes.len() + text.len());
        let text = String::from_utf8_lossy(text).into_owned();
        Ok(Some((bytes.to_vec(), text)))
    }

    fn read_cache(&self) -> Option<&ReadCache> {
        Some(&self.read_cache)
    }

    fn size_bytes(&self) -> Result<i64> {
        self.in_control.store(true, Ordering::Relaxed);
        let sql = "SELECT (page_count - freelist_count) * page_size
                     FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()";
        let size = self.connection.query_row(sql, [], |row| row.get(0));
        self.in_control.store(false, Ordering::Relaxed);
        size.map_err(failed)
    }

    fn take_writes(&self) -> Result<Writes> {
        Ok(Writes {
            statements: self.written.take().into_iter().collect(),
            is_incomplete: false,
            peak_bytes: self.peak_bytes.take(),
        })
    }

    fn transaction(&self, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
        let depth = self.depth.get();
        self.control(&format!("SAVEPOINT level_{depth}"))?;
        self.depth.set(depth + 1);
        let outcome = self.read_cache.during_transaction(work);
        self.depth.set(depth);
        if outcome.is_err() {
            self.guard.mark_stale();
        }
        // If the storage is full, SQLite has already rolled everything back.
        if self.connection.is_autocommit() {
            return outcome;
        }
        if outcome.is_err() {
            self.control(&format!("ROLLBACK TO level_{depth}"))?;
        }
        self.control(&format!("RELEASE level_{depth}"))?;
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::atomically;

    #[test]
    fn it_rejects_statements_that_workerd_rejects() {
        let db = Sqlite::new();
        for sql in [
            "BEGIN",
            "SAVEPOINT a",
            "COMMIT",
            "SELECT sqlite_version()",
            "PRAGMA user_version",
            "ATTACH ':memory:' AS other",
            "CREATE TABLE _cf_mine (a)",
            "SELECT 1 UNION SELECT 2 UNION SELECT 3 UNION SELECT 4 UNION SELECT 5 UNION SELECT 6",
        ] {
            assert!(db.run(sql, &[]).is_err(), "{sql}");
        }
        let long = "x".repeat(3_000_000);
        assert!(db.rows("SELECT length(?1)", &[long.into()]).is_err());
    }

    #[test]
    fn it_binds_numbers_as_workerd_does() {
        let db = Sqlite::new();
        let row = &db
            .rows("SELECT json_array(?1), typeof(?1)", &[5_i64.into()])
            .unwrap()[0];
        assert_eq!(row.text(0).unwrap(), "[5.0]");
        assert_eq!(row.text(1).unwrap(), "real");
    }

    #[test]
    fn a_table_stays_guarded_after_a_rollback() {
        let db = Sqlite::new();
        db.run("CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)", &[])
            .unwrap();
        db.guard(&[GuardedTable {
            name: "t",
            texts: &["text"],
            is_virtual: false,
        }]);
        let replace = "INSERT OR REPLACE INTO t VALUES (1, ?1)";
        let rolled_back: Result<()> = atomically(&db, || {
            db.run(replace, &["a".into()])?;
            Err(Error::storage("no"))
        });
        assert!(rolled_back.is_err());
        db.run(replace, &["a".into()]).unwrap();
        assert!(db.run(replace, &["b".into()]).is_err());
        let text = "SELECT text FROM t";
        assert_eq!(db.rows(text, &[]).unwrap()[0].text(0).unwrap(), "a");
    }

    #[test]
    fn a_failed_transaction_rolls_back_even_when_nested() {
        let db = Sqlite::new();
        db.run("CREATE TABLE t (a)", &[]).unwrap();
        let outer = atomically(&db, || {
            db.run("INSERT INTO t VALUES (1)", &[])?;
            let inner: Result<()> = atomically(&db, || {
                db.run("INSERT INTO t VALUES (2)", &[])?;
                Err(Error::storage("no"))
            });
            assert!(inner.is_err());
            Ok(())
        });
        outer.unwrap();
        assert_eq!(db.rows("SELECT a FROM t", &[]).unwrap().len(), 1);
    }
}
