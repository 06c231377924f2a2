//! Entries of a searchable block: a key, a title, a text. An entry and its rows in the
//! search index are written in the same transaction.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Map;

use super::Memory;
use super::backends::agent::{self, RemoteBlock};
use super::backends::{service, source_error};
use super::change_events::ChangeEvent;
use super::counts::CountChange;
use super::definition::Definition;
use super::entry::{Entry, find_written_at};
use super::entry_index::{index_entry, unindex_entry};
use super::entry_rows::{EntryRow, find_row, insert, update_row};
use super::entry_text::EntryText;
use super::item_note::ItemNote;
use super::kind::BlockKind;
use super::origin::texts_of;
use super::past::{
    self, ItemDeleted, ItemDeletion, MAX_ENTRY_VERSIONS, insert_deletion, insert_past, item_ref,
    next_version,
};
use super::replacing::{forget_replacement, record_replacement, replace, restore_replaced};
use super::source::BlockBackend;
use super::validity::Validity;
use super::writer::MemoryWriter;
use crate::tables::ENTRIES;
use base::database::{Delete, atomically};
use base::error::{Error, Result};
use base::json::json;

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

/// Whether this object stores the block's entries.
pub fn is_stored_here(block: &Definition) -> bool {
    match block.backend() {
        BlockBackend::Agent { .. }
        | BlockBackend::Service { .. }
        | BlockBackend::Unresolved { .. } => false,
        BlockBackend::Object | BlockBackend::Bucket { .. } | BlockBackend::BucketPrefix { .. } => {
            true
        }
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
    match block.backend() {
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
            let mut input = Map::new();
            for (name, value) in text.fields().into_iter().chain(writer.fields()) {
                input.insert(name.to_owned(), value);
            }
            agent::call(memory, block, backend, "setEntry", input.into()).await
        }
        BlockBackend::Service { binding } => {
            let fields = [text.fields(), writer.fields()].concat();
            service::set(memory, block, binding, &fields).await?;
            ChangeEvent::of_item(block, text.key, None).notify(memory, writer)?;
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
        BlockBackend::Unresolved { reason } => Err(source_error(reason)),
        BlockBackend::Object | BlockBackend::Bucket { .. } | BlockBackend::BucketPrefix { .. } => {
            write_here(memory, block, text, writer)
        }
    }
}

/// Writes an entry here. It is valid from now on, even if another entry had replaced it. So
/// of entries that replace each other in a cycle, the newest is valid.
pub fn write_here(
    memory: &Memory<'_>,
    block: &Definition,
    text: &EntryText<'_>,
    writer: MemoryWriter<'_>,
) -> Result<Entry> {
    let (db, host) = (memory.db, memory.host);
    atomically(db, || {
        let content_key = block.content_key();
        let item = item_ref(block, &content_key, text.key);
        let before = find_row(db, block, text.key)?;
        let replaced = before.as_ref().map(|before| &before.entry.validity);
        let replaced = replaced.map_or_else(Vec::new, |validity| validity.supersedes.clone());
        let supersedes = match text.supersedes {
            Some(given) => given.to_vec(),
            None => replaced.clone(),
        };
        // If the clock was set back, the text must not become older than the one that it
        // replaces.
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
            Some(before) if is_same(&before.entry, &entry, writer) => {
                memory.pending_vectors.add(before.number, memory.payer);
                return Ok(before.entry);
            }
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
                memory.pending_vectors.add(before.number, memory.payer);
                if !is_indexed {
                    unindex_entry(db, before.number)?;
                    index_entry(db, before.number, &entry)?;
                }
            }
            None => {
                let number = insert(db, block, &entry, &note)?;
                index_entry(db, number, &entry)?;
                memory.pending_vectors.add(number, memory.payer);
            }
        }
        let at_ms = text.valid_from.unwrap_or(now_ms);
        for key in replaced
            .iter()
            .filter(|key| !entry.validity.supersedes.contains(key))
        {
            forget_replacement(db, &item, key)?;
            restore_replaced(db, &item, key)?;
        }
        for key in text.supersedes.unwrap_or_default() {
            replace(db, block, key, text.key, at_ms)?;
            record_replacement(db, &item, key)?;
        }
        ChangeEvent::of_item(block, text.key, Some(version)).notify(memory, writer)?;
        Ok(entry)
    })
}

/// Whether the write changes nothing. The text's source is only compared if the writer
/// specifies it: repeating a fact doesn't make it new.
fn is_same(before: &Entry, entry: &Entry, writer: MemoryWriter<'_>) -> bool {
    before.title == entry.title
        && before.content == entry.content
        && before.metadata == entry.metadata
        && before.tags == entry.tags
        && before.validity == entry.validity
        && (writer.source.is_none() || before.source == entry.source)
        && (writer.events.is_empty() || before.events == entry.events)
}

/// Deletes an entry. The entries that it replaced count again.
pub async fn delete(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
    writer: MemoryWriter<'_>,
) -> Result<ItemDeleted> {
    check_searchable(block)?;
    match block.backend() {
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
            agent::delete(memory, block, backend, "deleteEntry", key).await
        }
        BlockBackend::Service { binding } => Err(stored_elsewhere(block, binding)),
        BlockBackend::Unresolved { reason } => Err(source_error(reason)),
        BlockBackend::Object | BlockBackend::Bucket { .. } | BlockBackend::BucketPrefix { .. } => {
            delete_here(memory, block, key, writer)
        }
    }
}

/// Deletes an entry that is stored in this object.
pub fn delete_here(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
    writer: MemoryWriter<'_>,
) -> Result<ItemDeleted> {
    let (db, host) = (memory.db, memory.host);
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
        let item = item_ref(block, &content_key, key);
        let deletion = ItemDeletion {
            now_ms: host.now_ms().max(entry.updated_at),
            last: entry.into_past(note.clone()),
            writer,
            counts: CountChange::without(db, &block.scope, &content_key, number)?,
        };
        insert_deletion(db, &item, MAX_ENTRY_VERSIONS, deletion)?;
        ChangeEvent::of_deletion(block, key, Some(note.version + 1)).notify(memory, writer)?;
        unindex_entry(db, number)?;
        Delete::from(ENTRIES, "number = ?1", &[number.into()]).run(db)?;
        for replaced in &note.validity.supersedes {
            forget_replacement(db, &item, replaced)?;
            restore_replaced(db, &item, replaced)?;
        }
        ItemDeleted::with_versions(db, &item)
    })
}

pub(super) fn stored_elsewhere(block: &Definition, binding: &str) -> Error {
    Error::invalid(
        "label",
        format!(
            "The service `{binding}` stores the entries of `{}`. This agent can search and set \
             them, but not list, read or delete them.",
            block.label
        ),
    )
}

/// An entry, and how much of its past is stored.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryDetails {
    #[serde(flatten)]
    pub entry: Entry,
    /// Counts the entry's texts, the first being 1.
    pub version: i64,
    /// The number of its earlier texts that `getBlockVersions` shows.
    pub versions_kept: i64,
}

/// An entry by its key, wherever its block is stored.
pub async fn get(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
) -> Result<Option<EntryDetails>> {
    check_searchable(block)?;
    match block.backend() {
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
            agent::call(memory, block, backend, "getEntry", json!({"key": key})).await
        }
        BlockBackend::Service { binding } => Err(stored_elsewhere(block, binding)),
        BlockBackend::Unresolved { reason } => Err(source_error(reason)),
        BlockBackend::Object | BlockBackend::Bucket { .. } | BlockBackend::BucketPrefix { .. } => {
            let Some(EntryRow { entry, note, .. }) = find_row(memory.db, block, key)? else {
                return Ok(None);
            };
            let content_key = block.content_key();
            let item = item_ref(block, &content_key, key);
            Ok(Some(EntryDetails {
                entry,
                version: note.version,
                versions_kept: past::count_stored(memory.db, &item)?,
            }))
        }
    }
}
