//! The tables of an object, as the crates that own them describe them, and what is done to a session's
//! rows in all of them.
//!
//! Invariant: no table is forgotten. A test compares the list with the tables that the migrations
//! create. Other tests run each of these operations on sessions that have rows in every table
//! (`tests/native/store/tables.rs`).
//!
//! When an agent is emptied, `schema::drop_all` drops every table by its prefix.

use base::columns::find_value;
use base::database::{Database, Delete};
use base::error::Result;
use base::ids::Id;
use base::tables::{
    AgentFileRule, Deletion, ExportRule, ForkRule, InMentions, PurgeRule, RowOwner, Table,
};
use chat::tools::mcp::oauth::stored::count_authorizations;
use conversation::tables::SESSIONS;
use store::erased::Erased;
use store::tables::MIGRATIONS;

/// All tables, in the order in which rows are deleted and searched: a table whose rows are found
/// through another table precedes that table.
pub fn tables() -> impl Iterator<Item = &'static Table> {
    [
        conversation::tables::TABLES,
        memory::tables::TABLES,
        store::tables::TABLES,
        &[IMPORTS],
        chat::tables::TABLES,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// The table of this crate.
pub const IMPORTS: &Table = &Table {
    name: "cf_agents_imports",
    purge: PurgeRule::Nothing("tokens of imports"),
    owner: RowOwner::Session("session_id"),
    deletion: Deletion::Never("only a session that doesn't exist yet has such a row"),
    block: None,
    fork: ForkRule::Nothing("only a session that doesn't exist yet has such a row"),
    file: ExportRule::Nothing("only a session that doesn't exist yet has such a row"),
    agent_file: AgentFileRule::AsInSessions,
    mentions: InMentions::Nothing("tokens of imports"),
};

/// Whether an import writes rows of this table before the session's own row.
fn is_pending_import(table: &Table) -> bool {
    // The session's own row ends the pending import.
    table != SESSIONS && !matches!(table.file, ExportRule::Nothing(_))
}

/// Deletes the session's log. Must run in a transaction, after `conversation/index/mod.rs`
/// has removed the events from the index.
pub fn delete_log(db: &dyn Database, session_id: &Id) -> Result<()> {
    delete(db, session_id.as_str(), |table| {
        table.deletion == Deletion::WithLog
    })
}

/// Deletes the session's context. `false`: the context was empty. Must run in a
/// transaction.
pub fn delete_context(db: &dyn Database, session_id: &Id) -> Result<bool> {
    let mut has_deleted = false;
    for table in tables() {
        if let (Deletion::WithContext, Some(condition)) = (table.deletion, table.condition("?1")) {
            let params = [session_id.as_str().into()];
            has_deleted |= Delete::from(table, &condition, &params).run(db)? > 0;
        }
    }
    Ok(has_deleted)
}

/// Deletes the session's row and all rows of the session. Must run in a transaction, after
/// `conversation/index/mod.rs` has removed the events from the index.
pub fn delete_session(db: &dyn Database, session_id: &Id) -> Result<()> {
    delete(db, session_id.as_str(), |table| match table.deletion {
        Deletion::WithLog | Deletion::WithContext | Deletion::WithSession => true,
        Deletion::Never(_) => false,
    })
}

/// Deletes the rows of an import that never wrote the session's own row. Must run in a
/// transaction.
pub fn delete_pending_import(db: &dyn Database, session_id: &str) -> Result<()> {
    delete(db, session_id, is_pending_import)
}

fn delete(db: &dyn Database, session_id: &str, is_deleted: impl Fn(&Table) -> bool) -> Result<()> {
    for table in tables().filter(|table| is_deleted(table)) {
        if let Some(condition) = table.condition("?1") {
            Delete::from(table, &condition, &[session_id.into()]).run(db)?;
        }
    }
    Ok(())
}

/// The operations that a caller must be allowed to use before exporting this session, in
/// addition to those that every export requires. Each shows something that the file would
/// contain.
pub fn find_readers(db: &dyn Database, session_id: &Id) -> Result<Vec<&'static str>> {
    let mut readers = Vec::new();
    for table in tables() {
        if let (ExportRule::ShownBy(reader), Some(condition)) = (table.file, table.condition("?1"))
        {
            let sql = format!("SELECT 1 FROM {} WHERE {condition} LIMIT 1", table.name);
            if !db.rows(&sql, &[session_id.as_str().into()])?.is_empty() {
                readers.push(reader);
            }
        }
    }
    Ok(readers)
}

/// The highest count per table in the receipt of a destroyed agent.
const MAX_COUNTED: i64 = 1_000_000;

/// Counts what there is to erase in the whole agent.
pub fn count_all(db: &dyn Database) -> Result<Erased> {
    let mut erased = Erased::default();
    for table in tables() {
        let (counted, only) = match table.purge {
            PurgeRule::Overwritten {
                counted: Some(counted),
                ..
            } => (counted, String::new()),
            PurgeRule::Parts { counted, first, .. } => (counted, format!(" WHERE part = {first}")),
            PurgeRule::Overwritten { counted: None, .. }
            | PurgeRule::Merged
            | PurgeRule::Nothing(_) => {
                continue;
            }
        };
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM {}{only} LIMIT {MAX_COUNTED})",
            table.name
        );
        let count: Option<i64> = find_value(db, &sql, &[])?;
        if let Some(sum) = erased.count_of(counted) {
            *sum += count.unwrap_or(0);
        }
    }
    // These rows contain no text, but matter to the person whose authorizations they are.
    erased.authorizations = count_authorizations(db)?;
    Ok(erased)
}

/// The tables that may contain bytes of deleted texts: also a table without texts takes a page that
/// the same transaction freed, and SQLite does not clear such a page.
pub fn clearable_tables() -> impl Iterator<Item = &'static str> {
    tables()
        .filter(|table| table.owner != RowOwner::View && *table != MIGRATIONS)
        .map(|table| table.name)
}
