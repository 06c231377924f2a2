//! Lists of a block's entries, page by page.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Memory;
use super::backends::agent::{self, RemoteBlock};
use super::backends::source_error;
use super::definition::Definition;
use super::entries::{check_searchable, stored_elsewhere};
use super::entry::Entry;
use super::entry_rows::{EntryRow, find_row};
use super::source::BlockBackend;
use base::budget::AnswerCapacity;
use base::columns::load;
use base::database::{Database, SqlValue};
use base::error::Result;
use base::filter::{Filter, FilteredColumns};
use base::json::json;
use base::row;

/// The most bytes of a page of entries: 64 of the longest entries fit.
const MAX_PAGE_BYTES: usize = 4 << 20;

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct EntryPage {
    pub entries: Vec<Entry>,
    /// Where the page ended. `null` on the last page.
    pub cursor: Option<String>,
}

/// A page of entries, in the order of their keys.
pub async fn list(
    memory: &Memory<'_>,
    block: &Definition,
    limit: i64,
    cursor: Option<&str>,
    filter: Option<&Filter>,
) -> Result<EntryPage> {
    check_searchable(block)?;
    match block.backend() {
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
            let mut input = json!({"limit": limit, "cursor": cursor});
            if let (Some(input), Some(filter)) = (input.as_object_mut(), filter) {
                input.insert("where".to_owned(), filter.to_json());
            }
            agent::call(memory, block, backend, "listEntries", input).await
        }
        BlockBackend::Service { binding } => Err(stored_elsewhere(block, binding)),
        BlockBackend::Unresolved { reason } => Err(source_error(reason)),
        BlockBackend::Object | BlockBackend::Bucket { .. } | BlockBackend::BucketPrefix { .. } => {
            match filter {
                Some(filter) => load_filtered(memory.db, block, limit, cursor, filter),
                None => load_page(memory.db, block, limit, cursor),
            }
        }
    }
}

fn load_page(
    db: &dyn Database,
    block: &Definition,
    limit: i64,
    after: Option<&str>,
) -> Result<EntryPage> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_entries
          WHERE scope = ?1
            AND block = ?2
            AND key > ?3
          ORDER BY key
          LIMIT ?4",
        EntryRow::COLUMNS
    );
    let params: [SqlValue; 4] = [
        block.scope.as_str().into(),
        block.content_key().into(),
        after.unwrap_or_default().into(),
        (limit + 1).into(),
    ];
    let rows = db.rows(&sql, &params)?;
    let mut entries = Vec::new();
    let mut capacity = AnswerCapacity::of(MAX_PAGE_BYTES);
    for row in rows.iter().take(usize::try_from(limit).unwrap_or(0)) {
        let entry = row.read::<EntryRow>()?.entry;
        if !capacity.takes(entry.written_bytes()) {
            break;
        }
        entries.push(entry);
    }
    let has_more = rows.len() > entries.len();
    let cursor = entries
        .last()
        .filter(|_| has_more)
        .map(|last| last.key.clone());
    Ok(EntryPage { entries, cursor })
}

/// How many entries a page with a filter scans, and how many bytes of their texts lie before the
/// notes that it reads.
const MAX_FILTERED: i64 = 1_000;
const MAX_FILTERED_BYTES: i64 = 8 << 20;

row! {
    /// An entry `e` that a filter scanned. `passes`: SQL.
    struct ScannedEntry(passes: &str) {
        key: String = "e.key",
        passes: bool = passes,
    }
}

/// A page of the entries that pass a filter. It may have fewer than `limit`, or none, and a cursor,
/// because it scans a bounded number of rows.
fn load_filtered(
    db: &dyn Database,
    block: &Definition,
    limit: i64,
    after: Option<&str>,
    filter: &Filter,
) -> Result<EntryPage> {
    let sql = format!(
        "SELECT {}
           FROM (SELECT number, key, sum(bytes) OVER (ORDER BY key) - bytes AS before
                   FROM (SELECT number, key, octet_length(content) AS bytes
                           FROM cf_agents_entries
                          WHERE scope = ?1
                            AND block = ?2
                            AND key > ?3
                          ORDER BY key
                          LIMIT ?4)) AS near
          CROSS JOIN cf_agents_entries AS e
             ON e.number = near.number
          WHERE near.before < {MAX_FILTERED_BYTES}
          ORDER BY near.key",
        ScannedEntry::columns(&filter.condition(&FilteredColumns::of_note("e.note"), "?5"))
    );
    let params: [SqlValue; 5] = [
        block.scope.as_str().into(),
        block.content_key().into(),
        after.unwrap_or_default().into(),
        MAX_FILTERED.into(),
        filter.param().into(),
    ];
    let mut scanned: Vec<ScannedEntry> = load(db, &sql, &params)?;
    let is_last = is_last_page(db, block, scanned.last())?;
    let most = usize::try_from(limit).unwrap_or(0);
    let full = scanned
        .iter()
        .enumerate()
        .filter(|(_, one)| one.passes)
        .nth(most.saturating_sub(1))
        .map(|(index, _)| index + 1);
    let has_more = !is_last || full.is_some_and(|end| end < scanned.len());
    scanned.truncate(full.unwrap_or(scanned.len()));
    let mut end = scanned.last().map(|last| last.key.clone());
    let mut entries = Vec::new();
    let mut capacity = AnswerCapacity::of(MAX_PAGE_BYTES);
    let mut is_cut = false;
    for one in scanned.iter().filter(|one| one.passes) {
        let Some(EntryRow { entry, .. }) = find_row(db, block, &one.key)? else {
            continue;
        };
        if !capacity.takes(entry.written_bytes()) {
            end = entries.last().map(|last: &Entry| last.key.clone());
            is_cut = true;
            break;
        }
        entries.push(entry);
    }
    let cursor = end.filter(|_| has_more || is_cut);
    Ok(EntryPage { entries, cursor })
}

/// Whether no entry of the block comes after this one.
fn is_last_page(
    db: &dyn Database,
    block: &Definition,
    last: Option<&ScannedEntry>,
) -> Result<bool> {
    let Some(last) = last else {
        return Ok(true);
    };
    let sql = "SELECT 1
                 FROM cf_agents_entries
                WHERE scope = ?1
                  AND block = ?2
                  AND key > ?3
                LIMIT 1";
    let params = [
        block.scope.as_str().into(),
        block.content_key().into(),
        last.key.as_str().into(),
    ];
    Ok(db.rows(sql, &params)?.is_empty())
}
