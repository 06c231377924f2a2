//! Entries with their numbers and versions, for later changes: a change applies to exactly
//! one version.

use super::definition::Definition;
use super::entry::{Entry, find_by_key};
use super::entry_rows::EntryRow;
use base::columns::load;
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;

/// The entry and its version, if it is stored in this object.
pub fn find_with_version(
    db: &dyn Database,
    block: &Definition,
    key: &str,
) -> Result<Option<(Entry, i64)>> {
    let row: Option<EntryRow> = find_by_key(db, EntryRow::COLUMNS, block, key)?;
    Ok(row.map(|row| (row.entry, row.note.version)))
}

/// Like [`find_with_version`], if the newest text was written in this session.
pub fn find_of_session(
    db: &dyn Database,
    block: &Definition,
    key: &str,
    session_id: &Id,
) -> Result<Option<(Entry, i64)>> {
    let row: Option<EntryRow> = find_by_key(db, EntryRow::COLUMNS, block, key)?;
    let own = row.filter(|row| row.note.session_id.as_deref() == Some(session_id.as_str()));
    Ok(own.map(|row| (row.entry, row.note.version)))
}

/// An entry with its number and its version.
#[derive(Clone, Debug)]
pub struct NumberedEntry {
    pub number: i64,
    pub version: i64,
    /// Whether its text comes from a caller whose scope is limited to a session.
    pub is_narrowed: bool,
    pub entry: Entry,
}

/// Up to `limit` entries with numbers below this one, the newest number first.
pub fn load_below(
    db: &dyn Database,
    block: &Definition,
    below: Option<i64>,
    limit: i64,
) -> Result<Vec<NumberedEntry>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_entries
          WHERE scope = ?1
            AND block = ?2
            AND (?3 IS NULL OR number < ?3)
          ORDER BY number DESC
          LIMIT ?4",
        EntryRow::COLUMNS
    );
    let params: [SqlValue; 4] = [
        block.scope.as_str().into(),
        block.content_key().into(),
        below.into(),
        limit.into(),
    ];
    let rows: Vec<EntryRow> = load(db, &sql, &params)?;
    let numbered = rows.into_iter().map(|row| NumberedEntry {
        number: row.number,
        version: row.note.version,
        is_narrowed: row.note.narrowed,
        entry: row.entry,
    });
    Ok(numbered.collect())
}
