//! The rows of entries. An entry and its rows in the search index are written in the same
//! transaction.

use super::content::Version;
use super::counts::count_block;
use super::definition::Definition;
use super::entry::{Entry, find_by_key};
use super::entry_index::index_entry;
use super::entry_number::reserve_number;
use super::item_note::ItemNote;
use super::past::{self, ItemRef, PastVersion, item_ref};
use super::replacing::record_replacement;
use base::columns::{find, load, load_values};
use base::database::Database;
use base::error::{Error, Result};
use base::row;

/// The most entries of one block.
pub const MAX_ENTRIES: i64 = 10_000;

pub(super) struct EntryRow {
    pub number: i64,
    pub entry: Entry,
    pub note: ItemNote,
}

impl EntryRow {
    pub(super) fn into_past(self) -> PastVersion {
        self.entry.into_past(self.note)
    }
}

row! {
    pub for EntryRow {
        number: i64 = "number",
        key: &str = "key",
        title: Option<String> = "title",
        content: String = "content",
        created_at: i64 = "created_at",
        updated_at: i64 = "updated_at",
        note: Option<&str> = "note",
    }
    {
        let note = ItemNote::read(note, key)?;
        Ok(Self {
            number,
            entry: Entry {
                key: key.to_owned(),
                title,
                content,
                created_at,
                updated_at,
                metadata: note.metadata.clone(),
                tags: note.tags.clone(),
                source: note.origin(),
                events: note.source_events(),
                validity: note.validity.clone(),
            },
            note,
        })
    }
}

impl Entry {
    pub(super) fn into_past(self, note: ItemNote) -> PastVersion {
        PastVersion {
            version: note.version,
            title: self.title,
            content: Some(self.content),
            note,
            written_at: self.updated_at,
        }
    }
}

pub(super) fn find_row(
    db: &dyn Database,
    block: &Definition,
    key: &str,
) -> Result<Option<EntryRow>> {
    find_by_key(db, EntryRow::COLUMNS, block, key)
}

/// The entry, if it is stored in this object.
pub fn find_entry(db: &dyn Database, block: &Definition, key: &str) -> Result<Option<Entry>> {
    Ok(find_row(db, block, key)?.map(|row| row.entry))
}

pub(super) fn update_row(
    db: &dyn Database,
    number: i64,
    entry: &Entry,
    note: &ItemNote,
) -> Result<()> {
    db.run(
        "UPDATE cf_agents_entries
            SET title = ?2,
                content = ?3,
                updated_at = ?4,
                note = ?5
          WHERE number = ?1",
        &[
            number.into(),
            entry.title.as_deref().into(),
            entry.content.as_str().into(),
            entry.updated_at.into(),
            note.to_column()?.into(),
        ],
    )
}

pub(super) fn insert(
    db: &dyn Database,
    block: &Definition,
    entry: &Entry,
    note: &ItemNote,
) -> Result<i64> {
    let content_key = block.content_key();
    let counts = count_block(db, &block.scope, &content_key)?;
    if counts.entries >= MAX_ENTRIES {
        return Err(Error::invalid(
            "key",
            format!(
                "Block `{}` already has {MAX_ENTRIES} entries. Delete some first.",
                block.label
            ),
        ));
    }
    let names = [block.scope.as_str(), &content_key];
    let number = reserve_number(db, names, &counts)?;
    insert_row(db, number, names, entry, note)?;
    Ok(number)
}

fn insert_row(
    db: &dyn Database,
    number: i64,
    [scope, block]: [&str; 2],
    entry: &Entry,
    note: &ItemNote,
) -> Result<()> {
    db.run(
        "INSERT INTO cf_agents_entries
                (number, scope, block, key, title, content, created_at, updated_at, note)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        &[
            number.into(),
            scope.into(),
            block.into(),
            entry.key.as_str().into(),
            entry.title.as_deref().into(),
            entry.content.as_str().into(),
            entry.created_at.into(),
            entry.updated_at.into(),
            note.to_column()?.into(),
        ],
    )
}

fn insert_next(db: &dyn Database, names: [&str; 2], entry: &Entry, note: &ItemNote) -> Result<i64> {
    let [scope, block] = names;
    let number = reserve_number(db, names, &count_block(db, scope, block)?)?;
    insert_row(db, number, names, entry, note)?;
    Ok(number)
}

/// Inserts and indexes an exported entry. `block` is the key of its block, which must not
/// have an entry of this key. Must run in a transaction.
pub fn restore(
    db: &dyn Database,
    scope: &str,
    block: &str,
    entry: &Entry,
    note: &ItemNote,
) -> Result<()> {
    let number = insert_next(db, [scope, block], entry, note)?;
    let item = ItemRef {
        scope,
        block,
        key: &entry.key,
    };
    for replaced in &note.validity.supersedes {
        record_replacement(db, &item, replaced)?;
    }
    index_entry(db, number, entry)
}

/// Indexes all entries into the empty index. Reads one entry at a time, because all texts
/// together may be long. Must run in a transaction.
pub fn index_all(db: &dyn Database) -> Result<()> {
    let sql = "SELECT number FROM cf_agents_entries ORDER BY number";
    let columns = EntryRow::COLUMNS;
    let one = format!("SELECT {columns} FROM cf_agents_entries WHERE number = ?1");
    for number in load_values::<i64>(db, sql, &[])? {
        if let Some(EntryRow { entry, .. }) = find(db, &one, &[number.into()])? {
            index_entry(db, number, &entry)?;
        }
    }
    Ok(())
}

/// Copies the entries of a session's blocks to another session. Reads one entry at a time,
/// because all texts together may be long. Must run in a transaction.
pub fn copy_session(db: &dyn Database, from: &str, to: &str) -> Result<()> {
    let sql = "SELECT number, block
                 FROM cf_agents_entries
                WHERE scope = ?1
                ORDER BY number";
    let numbers: Vec<(i64, String)> = load(db, sql, &[from.into()])?;
    let columns = EntryRow::COLUMNS;
    let sql = format!("SELECT {columns} FROM cf_agents_entries WHERE number = ?1");
    for (number, block) in numbers {
        if let Some(EntryRow { entry, note, .. }) = find(db, &sql, &[number.into()])? {
            let number = insert_next(db, [to, &block], &entry, &note)?;
            index_entry(db, number, &entry)?;
        }
    }
    Ok(())
}

/// The newest version of an entry and the earlier ones, newest first.
pub fn load_versions(
    db: &dyn Database,
    block: &Definition,
    key: &str,
    limit: i64,
) -> Result<Vec<Version>> {
    let content_key = block.content_key();
    let newest = find_row(db, block, key)?.map(EntryRow::into_past);
    past::load_all(db, &item_ref(block, &content_key, key), newest, limit)
}

/// One version of an entry, if it is still stored.
pub fn find_version(
    db: &dyn Database,
    block: &Definition,
    key: &str,
    version: i64,
) -> Result<Option<Version>> {
    let content_key = block.content_key();
    let newest = find_row(db, block, key)?.map(EntryRow::into_past);
    past::find_version(db, &item_ref(block, &content_key, key), newest, version)
}
