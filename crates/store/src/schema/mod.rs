//! The tables, and how an object creates them. A new object runs `newest.sql`, which creates all of
//! them at once. An object of an earlier build runs the numbered SQL files that it lacks, all in
//! one transaction, before it handles its first request. Both ways create the same tables: a test
//! compares them.
//!
//! Only this module creates or drops tables.

use base::columns::{find_value, load_values};
use base::database::{Database, SqlValue, atomically, find_row};
use base::error::{Code, Error, Result};
use base::host::Host;

pub mod blank;
pub mod free_space;
pub mod zeros;

struct Migration {
    number: i64,
    name: &'static str,
    sql: &'static str,
}

/// build.rs creates this list from `migrations/`: in order, without gaps.
const MIGRATIONS: &[Migration] = include!(concat!(env!("OUT_DIR"), "/migrations.rs"));

/// All tables as the numbered files create them. A test writes it.
const NEWEST_TABLES: &str = include_str!("newest.sql");

#[cfg(feature = "testing")]
const CREATE_MIGRATIONS_TABLE: &str = "
    CREATE TABLE cf_agents_migrations (
      number     INTEGER PRIMARY KEY NOT NULL,
      name       TEXT NOT NULL,
      applied_at INTEGER NOT NULL
    )";

/// Creates the table of a part of the directory of agents, unless it exists. Such an object has no
/// other table; see `directory/part.rs`.
pub fn make_directory(db: &dyn Database) -> Result<()> {
    db.run(include_str!("directory.sql"), &[])
}

/// The number of the newest migration.
#[cfg(feature = "testing")]
pub fn newest() -> i64 {
    MIGRATIONS.last().map_or(0, |migration| migration.number)
}

/// Migrates the object's tables to this build. Costs one row read if there is nothing to do.
#[cfg(feature = "testing")]
pub fn migrate(db: &dyn Database, host: &dyn Host) -> Result<()> {
    if open(db, host)? {
        Ok(())
    } else {
        atomically(db, || create(db, host))
    }
}

/// Migrates the existing tables to this build; `false`: there are no tables. Costs one row read if
/// there is nothing to do.
pub fn open(db: &dyn Database, host: &dyn Host) -> Result<bool> {
    let latest = MIGRATIONS.last().map_or(0, |migration| migration.number);
    match find_version(db) {
        Ok(version) if version == latest => Ok(true),
        Ok(version) if version > latest => Err(written_by_newer(version, latest)),
        Ok(version) => atomically(db, || apply_after(db, host, version)).map(|()| true),
        // Either there is no such table, or the storage fails: the catalogue shows which.
        Err(_) if !table_exists(db, "cf_agents_migrations")? => {
            let is_used = has_tables(db)?;
            if is_used {
                atomically(db, || create(db, host))?;
            }
            Ok(is_used)
        }
        Err(error) => Err(error),
    }
}

/// Whether there is any table. An object that had another class before has tables that the agent
/// may have to migrate. `wrangler dev` stores the name of each object in a table of its own, which
/// does not count.
fn has_tables(db: &dyn Database) -> Result<bool> {
    let sql = "SELECT 1
                 FROM sqlite_master
                WHERE type = 'table'
                  AND name NOT GLOB '_cf_*'
                  AND name NOT GLOB 'sqlite_*'
                  AND name NOT GLOB '__miniflare_*'
                LIMIT 1";
    Ok(find_row(db, sql, &[])?.is_some())
}

fn has_documents_tables(db: &dyn Database) -> Result<bool> {
    Ok(table_exists(db, "cf_agents_sessions")? || table_exists(db, "cf_agents_events")?)
}

/// Rows that a newer build stored may have a meaning that this build does not know, so
/// nothing is read or written.
fn written_by_newer(version: i64, latest: i64) -> Error {
    Error::new(
        Code::StorageFailed,
        format!(
            "This agent's data was written by a newer version of Session Agent: its tables have version \
                 {version}, and this build supports versions up to {latest}. Nothing was read or \
                 written. Deploy the newer version again."
        ),
    )
    .with("stored", version)
    .with("known", latest)
}

fn find_version(db: &dyn Database) -> Result<i64> {
    let sql = "SELECT max(number) FROM cf_agents_migrations";
    Ok(find_value::<Option<i64>>(db, sql, &[])?
        .flatten()
        .unwrap_or(0))
}

fn create(db: &dyn Database, host: &dyn Host) -> Result<()> {
    let has_documents_tables = has_documents_tables(db)?;
    if has_documents_tables {
        db.run(include_str!("documents_set_aside.sql"), &[])?;
    }
    // Takes a sixth of the time of all files in sequence, and writes fewer rows.
    db.run(NEWEST_TABLES, &[])?;
    if let Some(latest) = MIGRATIONS.last() {
        record_applied(db, host, latest)?;
    }
    if has_documents_tables {
        db.run(include_str!("documents_carried_over.sql"), &[])?;
    }
    Ok(())
}

/// Creates the tables with all numbered files, as in an object of the first build.
#[cfg(feature = "testing")]
pub fn create_by_migrations(db: &dyn Database, host: &dyn Host) -> Result<()> {
    db.run(CREATE_MIGRATIONS_TABLE, &[])?;
    apply_after(db, host, 0)
}

fn apply_after(db: &dyn Database, host: &dyn Host, version: i64) -> Result<()> {
    for migration in MIGRATIONS
        .iter()
        .filter(|migration| migration.number > version)
    {
        db.run(migration.sql, &[])?;
        record_applied(db, host, migration)?;
    }
    Ok(())
}

fn record_applied(db: &dyn Database, host: &dyn Host, migration: &Migration) -> Result<()> {
    db.run(
        "INSERT INTO cf_agents_migrations (number, name, applied_at) VALUES (?1, ?2, ?3)",
        &[
            migration.number.into(),
            migration.name.into(),
            host.now_ms().into(),
        ],
    )
}

/// Drops every table of ours and of the documents'; the object is like new.
pub fn drop_all(db: &dyn Database) -> Result<()> {
    atomically(db, || {
        // Virtual tables first: dropping one drops its shadow tables.
        let sql = "SELECT name
                     FROM sqlite_master
                    WHERE type = 'table'
                      AND name GLOB 'cf_agents_*'
                    ORDER BY sql LIKE 'CREATE VIRTUAL TABLE%' DESC, name";
        for name in load_values::<String>(db, sql, &[])? {
            let name = name.replace('"', "\"\"");
            db.run(&format!("DROP TABLE IF EXISTS \"{name}\""), &[])?;
        }
        Ok(())
    })
}

fn table_exists(db: &dyn Database, name: &str) -> Result<bool> {
    let sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1";
    Ok(find_row(db, sql, &[SqlValue::from(name)])?.is_some())
}
