//! Entries of a searchable block: a key, a title, a text. The same transaction
//! writes an entry and its place in the search index.

use crate::memory::entry::Entry;
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::Memory;
use super::definition::{Definition, check_description};
use super::entry_search::{index_entry, unindex_entry};
use super::homes::agent::{self, RemoteBlock};
use super::homes::{nowhere, service};
use super::source::{BlockHome, check_key};
use crate::base::columns::{FromRow, find, find_value};
use crate::base::database::{Database, Row, SqlValue, atomically};
use crate::base::error::{Error, Result};
use crate::base::host::Host;
use crate::memory::kind::BlockKind;

/// The most bytes of an entry's text: a chunk of knowledge, not a file.
pub const MAX_ENTRY_BYTES: usize = 64 << 10;

/// The most bytes of a page of entries: 64 of the longest entries fit.
const MAX_PAGE_BYTES: usize = 4 << 20;

/// The most entries of one block.
pub const MAX_ENTRIES: i64 = 10_000;

#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EntryPage {
    pub entries: Vec<Entry>,
    /// Where the page ended. `null` on the last page.
    pub cursor: Option<String>,
}

pub fn check_searchable(block: &Definition) -> Result<()> {
    if block.kind == BlockKind::Searchable {
        return Ok(());
    }
    Err(Error::invalid(
        "label",
        format!(
            "Block `{}` is {}; only a searchable block has entries.",
            block.label,
            block.kind.name()
        ),
    ))
}

pub fn check_entry(key: &str, title: Option<&str>, content: &str) -> Result<()> {
    check_key(key).map_err(|reason| Error::invalid("key", format!("`key` {reason}.")))?;
    if let Some(title) = title {
        check_description("title", title)?;
    }
    if content.len() > MAX_ENTRY_BYTES {
        let error = Error::payload_too_large("`content`", MAX_ENTRY_BYTES, content.len());
        return Err(error.with("field", "content"));
    }
    Ok(())
}

/// Whether this object holds the block's entries.
pub fn lives_here(block: &Definition) -> bool {
    match block.home() {
        BlockHome::Agent { .. } | BlockHome::Service { .. } | BlockHome::Nowhere { .. } => false,
        BlockHome::Object | BlockHome::Bucket { .. } | BlockHome::BucketPrefix { .. } => true,
    }
}

/// Writes an entry. It replaces an entry of the same key.
pub async fn set(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
    title: Option<&str>,
    content: &str,
) -> Result<Entry> {
    check_searchable(block)?;
    check_entry(key, title, content)?;
    match block.home() {
        BlockHome::Agent { name, label } => {
            let home = RemoteBlock { name, label };
            let input = json!({"key": key, "title": title, "content": content});
            agent::call(memory, block, home, "setEntry", input).await
        }
        BlockHome::Service { binding } => {
            let fields: [(&str, Json); 3] = [
                ("key", key.into()),
                ("title", title.into()),
                ("content", content.into()),
            ];
            service::set(memory, block, binding, &fields).await?;
            let now_ms = memory.host.now_ms();
            Ok(Entry {
                key: key.to_owned(),
                title: title.map(str::to_owned),
                content: content.to_owned(),
                created_at: now_ms,
                updated_at: now_ms,
            })
        }
        BlockHome::Nowhere { reason } => Err(nowhere(reason)),
        BlockHome::Object | BlockHome::Bucket { .. } | BlockHome::BucketPrefix { .. } => {
            write(memory.db, memory.host, block, key, title, content)
        }
    }
}

fn write(
    db: &dyn Database,
    host: &dyn Host,
    block: &Definition,
    key: &str,
    title: Option<&str>,
    content: &str,
) -> Result<Entry> {
    atomically(db, || {
        let before = find_numbered(db, block, key)?;
        let now_ms = host.now_ms();
        let mut entry = Entry {
            key: key.to_owned(),
            title: title.map(str::to_owned),
            content: content.to_owned(),
            created_at: now_ms,
            updated_at: now_ms,
        };
        let number = match before {
            Some((_, before)) if before.title == entry.title && before.content == entry.content => {
                return Ok(before);
            }
            Some((number, before)) => {
                entry.created_at = before.created_at;
                db.run(
                    "UPDATE cf_agents_entries
                        SET title = ?2,
                            content = ?3,
                            updated_at = ?4
                      WHERE number = ?1",
                    &[number.into(), title.into(), content.into(), now_ms.into()],
                )?;
                unindex_entry(db, number)?;
                number
            }
            None => insert(db, block, &entry)?,
        };
        index_entry(db, number, &entry)?;
        Ok(entry)
    })
}

fn insert(db: &dyn Database, block: &Definition, entry: &Entry) -> Result<i64> {
    let number = next_number(db)?;
    // While numbers are below the limit, entries are too: counting isn't needed.
    if number > MAX_ENTRIES && count(db, block)? >= MAX_ENTRIES {
        return Err(Error::invalid(
            "key",
            format!(
                "Block `{}` holds {MAX_ENTRIES} entries already. Delete some first.",
                block.label
            ),
        ));
    }
    insert_row(db, number, &block.scope, &block.content_key(), entry)?;
    Ok(number)
}

fn next_number(db: &dyn Database) -> Result<i64> {
    let newest: Option<Option<i64>> =
        find_value(db, "SELECT max(number) FROM cf_agents_entries", &[])?;
    Ok(newest.flatten().unwrap_or(0) + 1)
}

fn insert_row(
    db: &dyn Database,
    number: i64,
    scope: &str,
    block: &str,
    entry: &Entry,
) -> Result<()> {
    db.run(
        "INSERT INTO cf_agents_entries
                (number, scope, block, key, title, content, created_at, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        &[
            number.into(),
            scope.into(),
            block.into(),
            entry.key.as_str().into(),
            entry.title.as_deref().into(),
            entry.content.as_str().into(),
            entry.created_at.into(),
            entry.updated_at.into(),
        ],
    )
}

/// Writes an exported entry, and indexes it. `block` is the key of its block, which
/// must not have an entry of this key. Part of a transaction.
pub fn restore(db: &dyn Database, scope: &str, block: &str, entry: &Entry) -> Result<()> {
    let number = next_number(db)?;
    insert_row(db, number, scope, block, entry)?;
    index_entry(db, number, entry)
}

pub fn count(db: &dyn Database, block: &Definition) -> Result<i64> {
    let count = find_value(
        db,
        "SELECT count(*)
           FROM cf_agents_entries
          WHERE scope = ?1
            AND block = ?2",
        &[block.scope.as_str().into(), block.content_key().into()],
    )?;
    Ok(count.unwrap_or(0))
}

struct EntryRow {
    number: i64,
    entry: Entry,
}

impl EntryRow {
    const COLUMNS: &str = "number, key, title, content, created_at, updated_at";
}

impl FromRow<'_> for EntryRow {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            number: row.integer(0)?,
            entry: Entry {
                key: row.text(1)?.to_owned(),
                title: row.find_text(2).map(str::to_owned),
                content: row.text(3)?.to_owned(),
                created_at: row.integer(4)?,
                updated_at: row.integer(5)?,
            },
        })
    }
}

fn find_numbered(db: &dyn Database, block: &Definition, key: &str) -> Result<Option<(i64, Entry)>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_entries
          WHERE scope = ?1
            AND block = ?2
            AND key = ?3",
        EntryRow::COLUMNS
    );
    let params = [
        block.scope.as_str().into(),
        block.content_key().into(),
        key.into(),
    ];
    let row = find(db, &sql, &params)?;
    Ok(row.map(|EntryRow { number, entry }| (number, entry)))
}

pub fn find_by_number(db: &dyn Database, number: i64) -> Result<Option<Entry>> {
    let columns = EntryRow::COLUMNS;
    let sql = format!("SELECT {columns} FROM cf_agents_entries WHERE number = ?1");
    let row = find(db, &sql, &[number.into()])?;
    Ok(row.map(|row: EntryRow| row.entry))
}

/// The entry, if it lives in this object.
pub fn find_entry(db: &dyn Database, block: &Definition, key: &str) -> Result<Option<Entry>> {
    Ok(find_numbered(db, block, key)?.map(|(_, entry)| entry))
}

/// Deletes an entry; `false`: there was no such entry.
pub async fn delete(memory: &Memory<'_>, block: &Definition, key: &str) -> Result<bool> {
    check_searchable(block)?;
    match block.home() {
        BlockHome::Agent { name, label } => {
            let home = RemoteBlock { name, label };
            agent::delete(memory, block, home, "deleteEntry", key).await
        }
        BlockHome::Service { binding } => Err(kept_by(block, binding)),
        BlockHome::Nowhere { reason } => Err(nowhere(reason)),
        BlockHome::Object | BlockHome::Bucket { .. } | BlockHome::BucketPrefix { .. } => {
            let db = memory.db;
            atomically(db, || {
                let Some((number, _)) = find_numbered(db, block, key)? else {
                    return Ok(false);
                };
                unindex_entry(db, number)?;
                db.run(
                    "DELETE FROM cf_agents_entries WHERE number = ?1",
                    &[number.into()],
                )?;
                Ok(true)
            })
        }
    }
}

fn kept_by(block: &Definition, binding: &str) -> Error {
    Error::invalid(
        "label",
        format!(
            "The service `{binding}` keeps the entries of `{}`. This agent can search and set them, but not list or delete them.",
            block.label
        ),
    )
}

/// A page of entries, in the order of their keys.
pub async fn list(
    memory: &Memory<'_>,
    block: &Definition,
    limit: i64,
    cursor: Option<&str>,
) -> Result<EntryPage> {
    check_searchable(block)?;
    match block.home() {
        BlockHome::Agent { name, label } => {
            let home = RemoteBlock { name, label };
            let input = json!({"limit": limit, "cursor": cursor});
            agent::call(memory, block, home, "listEntries", input).await
        }
        BlockHome::Service { binding } => Err(kept_by(block, binding)),
        BlockHome::Nowhere { reason } => Err(nowhere(reason)),
        BlockHome::Object | BlockHome::Bucket { .. } | BlockHome::BucketPrefix { .. } => {
            load_page(memory.db, block, limit, cursor)
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
    let mut bytes = 0;
    for row in rows.iter().take(usize::try_from(limit).unwrap_or(0)) {
        let entry = row.read::<EntryRow>()?.entry;
        bytes += entry.content.len();
        if bytes > MAX_PAGE_BYTES {
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
