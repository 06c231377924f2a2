//! Purges entries, documents and blocks: removes their texts, earlier versions and copies from this
//! object. A text in an external backend is deleted there first. So if the object is evicted in
//! between, the caller has no receipt, and repeating the request finishes the work.
//!
//! The text of conversations stays: `findMentions` finds it there. The exception is a document that
//! `load_context` copied into a log.

use super::backends::agent::RemoteBlock;
use super::backends::receipt::{BackendKind, BackendReceipt, ask_agent, ask_service};
use super::backends::{bucket, source_error};
use super::change_events::{Selection, delete_callbacks};
use super::counts::CountChange;
use super::definition::Definition;
use super::definitions::remove;
use super::entries::check_searchable;
use super::entry_index::unindex_entry;
use super::entry_rows;
use super::frozen;
use super::item_note::ItemNote;
use super::label::Label;
use super::log_copies::{CopiedDocument, erase_copies};
use super::proposals::erase::erase_of_block;
use super::replacing::{forget_replacement, restore_replaced_in_purge};
use super::skills::{check_loadable, check_skill_key};
use super::source::BlockBackend;
use super::{BlockScope, Memory};
use crate::past::ItemRef;
use crate::tables::{
    BLOCKS, ENTRIES, ENTRIES_SEARCH, ITEM_VERSIONS, PROMPTS, SKILL_LISTINGS, SKILLS,
};
use base::columns::{find, find_value, load};
use base::database::{Database, Delete, Row, SqlValue, atomically};
use base::error::Result;
use base::json;
use base::tables::Table;
use base::{row, sql};
use conversation::index::build;
use store::erased::Erasure;
use store::erasing::{ErasingDatabase, Overwrite};
use store::schema::free_space::{Rewritten, renew};

/// The texts that a purge found and erased.
pub struct Purged {
    /// Whether the entry, the document or the block was there.
    pub existed: bool,
    pub erasure: Erasure,
    pub home: Option<BackendReceipt>,
}

/// Erases an entry, its earlier versions, and the frozen prompts that may show it.
pub async fn purge_entry(memory: &Memory<'_>, block: &Definition, key: &str) -> Result<Purged> {
    check_searchable(block)?;
    let home = match block.backend() {
        BlockBackend::Agent { name, label } => {
            let home = RemoteBlock { name, label };
            Some(ask_agent(memory, block, home, "deleteEntry", key).await?)
        }
        BlockBackend::Service { binding } => Some(ask_service(memory, block, binding, key).await?),
        BlockBackend::Unresolved { reason } => return Err(source_error(reason)),
        BlockBackend::Object | BlockBackend::Bucket { .. } | BlockBackend::BucketPrefix { .. } => {
            None
        }
    };
    let is_elsewhere = home.is_some();
    erase(memory, home, |db| {
        let existed = erase_entry_at(db, &ItemKeys::of(block, key))?;
        // A key that no entry has, such as a model's mistake, costs no conversation its prompt:
        // prompts contain the number of entries, and nothing of an entry.
        if existed || is_elsewhere || db.has_erased() {
            forget_prompts(db, &block.scope)?;
        }
        Ok(existed)
    })
}

/// Erases a document, its earlier versions, and its copies in contexts and logs.
pub async fn purge_document(memory: &Memory<'_>, block: &Definition, key: &str) -> Result<Purged> {
    check_loadable(block)?;
    check_skill_key(key)?;
    let home = match block.backend() {
        BlockBackend::BucketPrefix { prefix } => {
            let found = bucket::find_document(memory, prefix, key).await?;
            if let Some(found) = &found {
                bucket::delete_document(memory, &found.object_key).await?;
            }
            let name = format!("{prefix}{key}");
            Some(BackendReceipt::of(
                BackendKind::Bucket,
                &name,
                found.is_some(),
            ))
        }
        BlockBackend::Agent { name, label } => {
            let home = RemoteBlock { name, label };
            Some(ask_agent(memory, block, home, "deleteSkill", key).await?)
        }
        BlockBackend::Service { binding } => Some(ask_service(memory, block, binding, key).await?),
        BlockBackend::Unresolved { reason } => return Err(source_error(reason)),
        BlockBackend::Object | BlockBackend::Bucket { .. } => None,
    };
    erase(memory, home, |db| {
        let existed = erase_document_at(db, &ItemKeys::of(block, key))?;
        let copied = CopiedDocument {
            scope: &block.scope,
            label: &block.label,
            key: Some(key),
        };
        erase_copies(db, memory.host, &copied)?;
        forget_prompts(db, &block.scope)?;
        Ok(existed)
    })
}

/// Removes a block, and erases all that this object stores of it. Content elsewhere stays: others
/// may share it.
pub fn purge_block(
    memory: &Memory<'_>,
    scope: BlockScope<'_>,
    label: &Label,
    may_call_outside: bool,
) -> Result<Purged> {
    erase(memory, None, |db| {
        let memory = Memory { db, ..*memory };
        let existed = remove(&memory, scope, label, true, may_call_outside)?;
        // A row that hides a deployed block still exists.
        erase_definition(db, scope.column(), label)?;
        let copied = CopiedDocument {
            scope: scope.column(),
            label,
            key: None,
        };
        erase_copies(db, memory.host, &copied)?;
        erase_of_block(db, scope.column(), &label.key(), None)?;
        delete_callbacks(db, scope.column(), &label.key(), None, Selection::All)?;
        if existed || db.has_erased() {
            forget_prompts(db, scope.column())?;
        } else {
            forget_prompts_of(db, scope.column(), label)?;
        }
        Ok(existed)
    })
}

/// Erases a definition's description and default text. The block stays.
pub fn erase_definition(db: &ErasingDatabase<'_>, scope: &str, label: &Label) -> Result<bool> {
    let block_key = [SqlValue::from(scope), label.key().into()];
    let texts = Overwrite {
        table: BLOCKS,
        columns: &["description", "default_content", "metadata", "tags"],
        condition: "scope = ?1
                    AND key = ?2",
        params: &block_key,
    };
    if db.overwrite(&texts)? == 0 {
        return Ok(false);
    }
    db.run(
        "UPDATE cf_agents_blocks
            SET description = NULL,
                default_content = NULL,
                metadata = NULL,
                tags = NULL
          WHERE scope = ?1
            AND key = ?2",
        &block_key,
    )?;
    Ok(true)
}

/// Runs deletions in one transaction that leaves no text behind.
fn erase(
    memory: &Memory<'_>,
    home: Option<BackendReceipt>,
    delete: impl FnOnce(&ErasingDatabase<'_>) -> Result<bool>,
) -> Result<Purged> {
    atomically(memory.db, || {
        let db = ErasingDatabase::of_purge(memory.db)?;
        let deleted = delete(&db)?;
        Ok(Purged {
            existed: deleted || home.as_ref().is_some_and(|home| home.deleted),
            erasure: db.finish()?,
            home,
        })
    })
}

/// Rewrites tables, if they are small, so that nothing of a deleted text is left in their pages.
/// Returns how many rows that wrote.
pub fn renew_tables(
    db: &dyn Database,
    tables: &[&'static str],
    file_pages: i64,
) -> Result<Rewritten> {
    let fill_index = |index: &str| match index {
        name if name == ENTRIES_SEARCH.name => entry_rows::index_all(db),
        _ => build::refill(db),
    };
    renew(db, tables, &fill_index, file_pages)
}

/// Deletes the frozen prompts of a scope, since they contain its blocks. The agent's blocks may be
/// in the prompts of all sessions.
pub fn forget_prompts(db: &dyn Database, scope: &str) -> Result<()> {
    match scope {
        "" => {
            Delete::all(PROMPTS).run(db)?;
        }
        session => {
            frozen::forget(db, session)?;
        }
    }
    Ok(())
}

/// How many prompts one statement deletes.
const PROMPTS_AT_ONCE: i64 = 1_000;

/// Deletes the frozen prompts of a scope that name a block which does not exist: it may have been
/// removed after they were frozen. They are found first: a purge overwrites texts before it deletes
/// their rows, and no condition on a text would match then.
fn forget_prompts_of(db: &dyn Database, scope: &str, label: &Label) -> Result<()> {
    let heading = label.as_str().to_uppercase();
    loop {
        let found = db.rows(
            "SELECT scope
               FROM cf_agents_prompts
              WHERE ?1 IN ('', scope)
                AND instr(prompt, ?2)
              LIMIT ?3",
            &[
                scope.into(),
                heading.as_str().into(),
                PROMPTS_AT_ONCE.into(),
            ],
        )?;
        let scopes: Vec<String> = found.iter().map(Row::value).collect::<Result<_>>()?;
        if scopes.is_empty() {
            return Ok(());
        }
        Delete::from(
            PROMPTS,
            "scope IN (SELECT value FROM json_each(?1))",
            &[SqlValue::Text(json::encode(&scopes)?)],
        )
        .run(db)?;
    }
}

/// The fields of an entry that are read before it is erased.
struct PurgedEntry {
    number: i64,
    note: ItemNote,
}

row! {
    for PurgedEntry {
        number: i64 = "number",
        note: Option<&str> = "note",
    }
    Ok(Self {
        number,
        // A damaged note must not prevent erasing its entry.
        note: ItemNote::read(note, "").unwrap_or_default(),
    })
}

/// An entry or a document, by its keys as rows store them.
pub struct ItemKeys<'a> {
    scope: &'a str,
    block: String,
    key: &'a str,
}

impl<'a> ItemKeys<'a> {
    pub fn new(scope: &'a str, label: &Label, key: &'a str) -> Self {
        Self {
            scope,
            block: label.key(),
            key,
        }
    }

    fn of(block: &'a Definition, key: &'a str) -> Self {
        Self {
            scope: &block.scope,
            block: block.content_key(),
            key,
        }
    }

    fn item_ref(&self) -> ItemRef<'_> {
        ItemRef {
            scope: self.scope,
            block: &self.block,
            key: self.key,
        }
    }
}

/// Erases an entry. `false`: it did not exist. Its earlier versions are erased in any case.
pub fn erase_entry_at(db: &ErasingDatabase<'_>, keys: &ItemKeys<'_>) -> Result<bool> {
    let item = keys.item_ref();
    erase_of_block(db, item.scope, item.block, Some(item.key))?;
    let sql = sql!(
        "SELECT ",
        PurgedEntry::COLUMNS,
        " FROM cf_agents_entries
          WHERE scope = ?1
            AND block = ?2
            AND key = ?3"
    );
    let entry: Option<PurgedEntry> = find(db, sql, &params_of(&item))?;
    let mut counts = CountChange::default();
    if let Some(entry) = &entry {
        counts = CountChange::without(db, item.scope, item.block, entry.number)?;
        unindex_entry(db, entry.number)?;
        Delete::from(ENTRIES, "number = ?1", &[entry.number.into()]).run(db)?;
    }
    erase_versions(db, &item, counts)?;
    for replaced in entry
        .iter()
        .flat_map(|entry| &entry.note.validity.supersedes)
    {
        forget_replacement(db, &item, replaced)?;
        restore_replaced_in_purge(db, &item, replaced)?;
    }
    forget_key(db, &item)?;
    Ok(entry.is_some())
}

/// As [`erase_entry_at`], for a document.
pub fn erase_document_at(db: &ErasingDatabase<'_>, keys: &ItemKeys<'_>) -> Result<bool> {
    let item = keys.item_ref();
    let deleted = Delete::from(
        SKILLS,
        "scope = ?1
         AND block = ?2
         AND key = ?3",
        &params_of(&item),
    )
    .run(db)?;
    Delete::from(
        SKILL_LISTINGS,
        "scope = ?1
         AND block = ?2",
        &[item.scope.into(), item.block.into()],
    )
    .run(db)?;
    erase_versions(db, &item, CountChange::default())?;
    Ok(deleted > 0)
}

/// Erases one earlier version of an entry or a document, or the record of its deletion, which has a
/// key and no text. `false`: there is no such version.
pub fn erase_version(db: &ErasingDatabase<'_>, keys: &ItemKeys<'_>, version: i64) -> Result<bool> {
    let item = keys.item_ref();
    let [scope, block, key] = params_of(&item);
    let deleted: Vec<(bool,)> = Delete::from(
        ITEM_VERSIONS,
        "scope = ?1
         AND block = ?2
         AND key = ?3
         AND version = ?4",
        &[scope, block, key, version.into()],
    )
    .load(db, "content IS NULL")?;
    let was_deletion = deleted.first().map(|(is_deletion,)| *is_deletion);
    let counts = CountChange {
        deleted: -i64::from(was_deletion.unwrap_or(false)),
        ..CountChange::default()
    };
    counts.write(db, item.scope, item.block)?;
    let is_left: Option<i64> = find_value(
        db,
        "SELECT 1
          WHERE EXISTS (SELECT 1 FROM cf_agents_item_versions
                         WHERE scope = ?1 AND block = ?2 AND key = ?3)
             OR EXISTS (SELECT 1 FROM cf_agents_entries
                         WHERE scope = ?1 AND block = ?2 AND key = ?3)",
        &params_of(&item),
    )?;
    if is_left.is_none() {
        forget_key(db, &item)?;
    }
    Ok(was_deletion.is_some())
}

/// The tables with notes that may name an entry, and SQL for the number of a row.
const WITH_NOTES: [(&Table, &str); 2] = [(ENTRIES, "number"), (ITEM_VERSIONS, "slot")];

/// A note that may name an entry.
struct NamingNote {
    key: String,
    number: i64,
    note: ItemNote,
}

row! {
    for NamingNote(number: &str) {
        key: String = "key",
        number: i64 = number,
        note: Option<&str> = "note",
    }
    Ok(Self {
        key,
        number,
        // A damaged note must not prevent erasing an entry.
        note: ItemNote::read(note, "").unwrap_or_default(),
    })
}

/// Erases an entry's key from the notes of the entries that replaced it or that it replaced, and of
/// their earlier versions. Part of a transaction.
fn forget_key(db: &ErasingDatabase<'_>, item: &ItemRef<'_>) -> Result<()> {
    let [scope, block, key] = params_of(item);
    let quoted = json::quoted(item.key);
    for (table, number) in WITH_NOTES {
        let naming: Vec<NamingNote> = load(
            db,
            &format!(
                "SELECT {}
                   FROM {name}
                  WHERE scope = ?1
                    AND block = ?2
                    AND instr(note, ?3)",
                NamingNote::columns(number),
                name = table.name
            ),
            &[scope.clone(), block.clone(), quoted.as_str().into()],
        )?;
        for NamingNote {
            key: name,
            number: at,
            mut note,
        } in naming
        {
            let before = note.validity.clone();
            note.validity.supersedes.retain(|other| other != item.key);
            note.validity.superseded_by = note
                .validity
                .superseded_by
                .filter(|other| other != item.key);
            if note.validity == before {
                continue;
            }
            let row = [scope.clone(), block.clone(), name.into(), at.into()];
            let condition = format!("scope = ?1 AND block = ?2 AND key = ?3 AND {number} = ?4");
            db.overwrite(&Overwrite {
                table,
                columns: &["note"],
                condition: &condition,
                params: &row,
            })?;
            let [scope, block, name, at] = row;
            db.run(
                &format!("UPDATE {} SET note = ?5 WHERE {condition}", table.name),
                &[scope, block, name, at, note.to_json()?.into()],
            )?;
        }
    }
    db.run(
        "DELETE FROM cf_agents_replacements
          WHERE scope = ?1
            AND block = ?2
            AND (key = ?3 OR replacer = ?3)",
        &[scope, block, key],
    )
}

fn erase_versions(
    db: &ErasingDatabase<'_>,
    item: &ItemRef<'_>,
    mut counts: CountChange,
) -> Result<()> {
    let deletions: Option<i64> = find_value(
        db,
        "SELECT count(*)
           FROM cf_agents_item_versions
          WHERE scope = ?1
            AND block = ?2
            AND key = ?3
            AND content IS NULL",
        &params_of(item),
    )?;
    Delete::from(
        ITEM_VERSIONS,
        "scope = ?1
         AND block = ?2
         AND key = ?3",
        &params_of(item),
    )
    .run(db)?;
    delete_callbacks(db, item.scope, item.block, Some(item.key), Selection::All)?;
    counts.deleted -= deletions.unwrap_or(0);
    counts.write(db, item.scope, item.block)
}

fn params_of(item: &ItemRef<'_>) -> [SqlValue; 3] {
    [item.scope.into(), item.block.into(), item.key.into()]
}
