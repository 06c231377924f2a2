//! Entries of a searchable block: a key, a title, a text. The same transaction
//! writes an entry and its place in the search index.

use crate::base::budget::AnswerRoom;
use crate::base::json::json;
use crate::memory::entry::{Entry, find_by_key, find_written_at};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::content::Version;
use super::counts::{CountChange, count_block};
use super::definition::Definition;
use super::entry_number::take_number;
use super::entry_search::{index_entry, unindex_entry};
use super::entry_text::EntryText;
use super::homes::agent::{self, RemoteBlock};
use super::homes::{nowhere, service};
use super::origin::texts_of;
use super::past::{
    self, ItemDeleted, ItemDeletion, ItemNote, ItemPlace, MAX_ENTRY_VERSIONS, PastVersion,
    insert_deletion, insert_past, next_version, place,
};
use super::replacing::{forget_replacement, give_back, note_replacement, replace};
use super::source::BlockHome;
use super::validity::Validity;
use super::{Memory, MemoryWriter};
use crate::base::columns::{FromRow, find, load, load_values};
use crate::base::database::{Database, Row, SqlValue, atomically};
use crate::base::error::{Error, Result};
use crate::base::filter::{Filter, FilteredColumns};
use crate::base::host::Host;
use crate::memory::kind::BlockKind;

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
    text: &EntryText<'_>,
    writer: MemoryWriter<'_>,
) -> Result<Entry> {
    check_searchable(block)?;
    text.check()?;
    match block.home() {
        BlockHome::Agent { name, label } => {
            let home = RemoteBlock { name, label };
            let mut input = Map::new();
            for (name, value) in text.fields().into_iter().chain(writer.fields()) {
                input.insert(name.to_owned(), value);
            }
            agent::call(memory, block, home, "setEntry", input.into()).await
        }
        BlockHome::Service { binding } => {
            let fields = [text.fields(), writer.fields()].concat();
            service::set(memory, block, binding, &fields).await?;
            let now_ms = memory.host.now_ms();
            let marks = text.marks.apply(None);
            Ok(Entry {
                key: text.key.to_owned(),
                title: text.title.map(str::to_owned),
                content: text.content.to_owned(),
                created_at: now_ms,
                updated_at: now_ms,
                metadata: marks.metadata,
                tags: marks.tags,
                source: writer.origin(),
                events: texts_of(writer.events),
                validity: Validity {
                    valid_from: text.valid_from,
                    valid_until: text.valid_until,
                    supersedes: text.supersedes.unwrap_or_default().to_vec(),
                    ..Validity::default()
                },
            })
        }
        BlockHome::Nowhere { reason } => Err(nowhere(reason)),
        BlockHome::Object | BlockHome::Bucket { .. } | BlockHome::BucketPrefix { .. } => {
            write(memory.db, memory.host, block, text, writer)
        }
    }
}

/// Writes an entry here. It holds from now on, also if another one had replaced it. So of
/// entries that replace each other in a circle, the newest holds.
fn write(
    db: &dyn Database,
    host: &dyn Host,
    block: &Definition,
    text: &EntryText<'_>,
    writer: MemoryWriter<'_>,
) -> Result<Entry> {
    atomically(db, || {
        let content_key = block.content_key();
        let item = place(block, &content_key, text.key);
        let before = find_row(db, block, text.key)?;
        let replaced = before.as_ref().map(|before| &before.entry.validity);
        let replaced = replaced.map_or_else(Vec::new, |validity| validity.supersedes.clone());
        let supersedes = match text.supersedes {
            Some(given) => given.to_vec(),
            None => replaced.clone(),
        };
        // A clock that went back makes no text older than the one that it takes the place of.
        let mut now_ms = host.now_ms();
        let replacing = before
            .as_ref()
            .and_then(|before| before.entry.validity.superseded_by.as_ref());
        for key in text.supersedes.unwrap_or_default().iter().chain(replacing) {
            now_ms = now_ms.max(find_written_at(db, block, key)?);
        }
        let next = match &before {
            Some(before) => (before.note.version + 1, before.entry.updated_at),
            None => next_version(db, &item)?,
        };
        let (version, last_written_at) = next;
        let now_ms = now_ms.max(last_written_at);
        let marks_before = before.as_ref().map(|before| before.note.marks());
        let marks = text.marks.apply(marks_before.as_ref());
        let validity = Validity {
            valid_from: text.valid_from,
            valid_until: text.valid_until,
            supersedes,
            ..Validity::default()
        };
        let note = ItemNote::new(version, writer, validity, marks);
        let mut entry = Entry {
            key: text.key.to_owned(),
            title: text.title.map(str::to_owned),
            content: text.content.to_owned(),
            created_at: now_ms,
            updated_at: now_ms,
            metadata: note.metadata.clone(),
            tags: note.tags.clone(),
            source: note.origin(),
            events: note.source_events(),
            validity: note.validity.clone(),
        };
        match before {
            Some(before) if is_same(&before.entry, &entry, writer) => return Ok(before.entry),
            Some(before) => {
                entry.created_at = before.entry.created_at;
                let is_indexed =
                    before.entry.title == entry.title && before.entry.content == entry.content;
                insert_past(
                    db,
                    &item,
                    MAX_ENTRY_VERSIONS,
                    &before.entry.into_past(before.note),
                )?;
                update_row(db, before.number, &entry, &note)?;
                if !is_indexed {
                    unindex_entry(db, before.number)?;
                    index_entry(db, before.number, &entry)?;
                }
            }
            None => {
                let number = insert(db, block, &entry, &note)?;
                index_entry(db, number, &entry)?;
            }
        }
        let at_ms = text.valid_from.unwrap_or(now_ms);
        for key in replaced
            .iter()
            .filter(|key| !entry.validity.supersedes.contains(key))
        {
            forget_replacement(db, &item, key)?;
            give_back(db, &item, key)?;
        }
        for key in text.supersedes.unwrap_or_default() {
            replace(db, block, key, text.key, at_ms)?;
            note_replacement(db, &item, key)?;
        }
        Ok(entry)
    })
}

/// Whether the write changes nothing. Where the text comes from is compared only if the writer
/// says it: to say the same again is no news.
fn is_same(before: &Entry, entry: &Entry, writer: MemoryWriter<'_>) -> bool {
    before.title == entry.title
        && before.content == entry.content
        && before.metadata == entry.metadata
        && before.tags == entry.tags
        && before.validity == entry.validity
        && (writer.source.is_none() || before.source == entry.source)
        && (writer.events.is_empty() || before.events == entry.events)
}

impl Entry {
    fn into_past(self, note: ItemNote) -> PastVersion {
        PastVersion {
            version: note.version,
            title: self.title,
            content: Some(self.content),
            note,
            written_at: self.updated_at,
        }
    }
}

fn update_row(db: &dyn Database, number: i64, entry: &Entry, note: &ItemNote) -> Result<()> {
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

fn insert(db: &dyn Database, block: &Definition, entry: &Entry, note: &ItemNote) -> Result<i64> {
    let content_key = block.content_key();
    let counts = count_block(db, &block.scope, &content_key)?;
    if counts.entries >= MAX_ENTRIES {
        return Err(Error::invalid(
            "key",
            format!(
                "Block `{}` holds {MAX_ENTRIES} entries already. Delete some first.",
                block.label
            ),
        ));
    }
    let names = [block.scope.as_str(), &content_key];
    let number = take_number(db, names, &counts)?;
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
    let number = take_number(db, names, &count_block(db, scope, block)?)?;
    insert_row(db, number, names, entry, note)?;
    Ok(number)
}

/// Writes an exported entry, and indexes it. `block` is the key of its block, which
/// must not have an entry of this key. Part of a transaction.
pub fn restore(
    db: &dyn Database,
    scope: &str,
    block: &str,
    entry: &Entry,
    note: &ItemNote,
) -> Result<()> {
    let number = insert_next(db, [scope, block], entry, note)?;
    let item = ItemPlace {
        scope,
        block,
        key: &entry.key,
    };
    for replaced in &note.validity.supersedes {
        note_replacement(db, &item, replaced)?;
    }
    index_entry(db, number, entry)
}

struct EntryRow {
    number: i64,
    entry: Entry,
    note: ItemNote,
}

impl EntryRow {
    const COLUMNS: &str = "number, key, title, content, created_at, updated_at, note";

    fn into_past(self) -> PastVersion {
        self.entry.into_past(self.note)
    }
}

impl FromRow<'_> for EntryRow {
    fn from_row(row: &Row) -> Result<Self> {
        let key = row.text(1)?;
        let note = ItemNote::read(row.find_text(6), key)?;
        Ok(Self {
            number: row.integer(0)?,
            entry: Entry {
                key: key.to_owned(),
                title: row.find_text(2).map(str::to_owned),
                content: row.text(3)?.to_owned(),
                created_at: row.integer(4)?,
                updated_at: row.integer(5)?,
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

fn find_row(db: &dyn Database, block: &Definition, key: &str) -> Result<Option<EntryRow>> {
    find_by_key(db, EntryRow::COLUMNS, block, key)
}

/// Writes all entries into the index, which is empty. One entry at a time, because all
/// texts together may be long. Part of a transaction.
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

/// Copies the entries of a session's blocks to another session. One entry at a time,
/// because all texts together may be long. Part of a transaction.
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

/// The entry, if it lives in this object.
pub fn find_entry(db: &dyn Database, block: &Definition, key: &str) -> Result<Option<Entry>> {
    Ok(find_row(db, block, key)?.map(|row| row.entry))
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
    past::load_all(db, &place(block, &content_key, key), newest, limit)
}

/// One version of an entry, if it is kept.
pub fn find_version(
    db: &dyn Database,
    block: &Definition,
    key: &str,
    version: i64,
) -> Result<Option<Version>> {
    let content_key = block.content_key();
    let newest = find_row(db, block, key)?.map(EntryRow::into_past);
    past::find_version(db, &place(block, &content_key, key), newest, version)
}

/// Deletes an entry. The entries that it replaced count again.
pub async fn delete(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
    writer: MemoryWriter<'_>,
) -> Result<ItemDeleted> {
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
                let Some(EntryRow {
                    number,
                    entry,
                    note,
                }) = find_row(db, block, key)?
                else {
                    return Ok(ItemDeleted::default());
                };
                let content_key = block.content_key();
                let item = place(block, &content_key, key);
                let deletion = ItemDeletion {
                    now_ms: memory.host.now_ms().max(entry.updated_at),
                    last: entry.into_past(note.clone()),
                    writer,
                    counts: CountChange::without(db, &block.scope, &content_key, number)?,
                };
                insert_deletion(db, &item, MAX_ENTRY_VERSIONS, deletion)?;
                unindex_entry(db, number)?;
                db.run(
                    "DELETE FROM cf_agents_entries WHERE number = ?1",
                    &[number.into()],
                )?;
                for replaced in &note.validity.supersedes {
                    forget_replacement(db, &item, replaced)?;
                    give_back(db, &item, replaced)?;
                }
                ItemDeleted::with_versions(db, &item)
            })
        }
    }
}

fn kept_by(block: &Definition, binding: &str) -> Error {
    Error::invalid(
        "label",
        format!(
            "The service `{binding}` keeps the entries of `{}`. This agent can search and set them, but not list, read or delete them.",
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
    filter: Option<&Filter>,
) -> Result<EntryPage> {
    check_searchable(block)?;
    match block.home() {
        BlockHome::Agent { name, label } => {
            let home = RemoteBlock { name, label };
            let mut input = json!({"limit": limit, "cursor": cursor});
            if let (Some(input), Some(filter)) = (input.as_object_mut(), filter) {
                input.insert("where".to_owned(), filter.to_json());
            }
            agent::call(memory, block, home, "listEntries", input).await
        }
        BlockHome::Service { binding } => Err(kept_by(block, binding)),
        BlockHome::Nowhere { reason } => Err(nowhere(reason)),
        BlockHome::Object | BlockHome::Bucket { .. } | BlockHome::BucketPrefix { .. } => {
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
    let mut room = AnswerRoom::of(MAX_PAGE_BYTES);
    for row in rows.iter().take(usize::try_from(limit).unwrap_or(0)) {
        let entry = row.read::<EntryRow>()?.entry;
        if !room.takes(entry.written_bytes()) {
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

/// How many entries a page with a filter looks at, and how many bytes of their texts lie
/// before the notes that it reads.
const MAX_FILTERED: i64 = 1_000;
const MAX_FILTERED_BYTES: i64 = 8 << 20;

/// An entry that a filter looked at.
struct LookedAt {
    key: String,
    passes: bool,
}

impl FromRow<'_> for LookedAt {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            key: row.text(0)?.to_owned(),
            passes: row.integer(1)? == 1,
        })
    }
}

/// A page of the entries that pass a filter. It may show fewer than `limit`, or none, and
/// have a cursor, because it looks at a bounded number of rows.
fn load_filtered(
    db: &dyn Database,
    block: &Definition,
    limit: i64,
    after: Option<&str>,
    filter: &Filter,
) -> Result<EntryPage> {
    let sql = format!(
        "SELECT e.key, {}
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
        filter.condition(&FilteredColumns::of_note("e.note"), "?5")
    );
    let params: [SqlValue; 5] = [
        block.scope.as_str().into(),
        block.content_key().into(),
        after.unwrap_or_default().into(),
        MAX_FILTERED.into(),
        filter.param().into(),
    ];
    let mut looked_at: Vec<LookedAt> = load(db, &sql, &params)?;
    let is_last = is_last_page(db, block, looked_at.last())?;
    let most = usize::try_from(limit).unwrap_or(0);
    let full = looked_at
        .iter()
        .enumerate()
        .filter(|(_, one)| one.passes)
        .nth(most.saturating_sub(1))
        .map(|(index, _)| index + 1);
    let has_more = !is_last || full.is_some_and(|end| end < looked_at.len());
    looked_at.truncate(full.unwrap_or(looked_at.len()));
    let mut end = looked_at.last().map(|last| last.key.clone());
    let mut entries = Vec::new();
    let mut room = AnswerRoom::of(MAX_PAGE_BYTES);
    let mut is_cut = false;
    for one in looked_at.iter().filter(|one| one.passes) {
        let Some(EntryRow { entry, .. }) = find_row(db, block, &one.key)? else {
            continue;
        };
        if !room.takes(entry.written_bytes()) {
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
fn is_last_page(db: &dyn Database, block: &Definition, last: Option<&LookedAt>) -> Result<bool> {
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

/// An entry, and how much of its past is kept.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EntryDetails {
    #[serde(flatten)]
    pub entry: Entry,
    /// Counts the entry's texts, the first being 1.
    pub version: i64,
    /// How many of its earlier texts `getBlockVersions` shows.
    pub versions_kept: i64,
}

/// An entry by its key, wherever its block lives.
pub async fn get(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
) -> Result<Option<EntryDetails>> {
    check_searchable(block)?;
    match block.home() {
        BlockHome::Agent { name, label } => {
            let home = RemoteBlock { name, label };
            agent::call(memory, block, home, "getEntry", json!({"key": key})).await
        }
        BlockHome::Service { binding } => Err(kept_by(block, binding)),
        BlockHome::Nowhere { reason } => Err(nowhere(reason)),
        BlockHome::Object | BlockHome::Bucket { .. } | BlockHome::BucketPrefix { .. } => {
            let Some(EntryRow { entry, note, .. }) = find_row(memory.db, block, key)? else {
                return Ok(None);
            };
            let content_key = block.content_key();
            let item = place(block, &content_key, key);
            Ok(Some(EntryDetails {
                entry,
                version: note.version,
                versions_kept: past::count_kept(memory.db, &item)?,
            }))
        }
    }
}
