//! The history of entries and documents: the writer and the text of each version, and the
//! time when a fact was valid.
//!
//! The newest version is the item's own row, with a note. It moves to the table of past
//! versions when another one replaces it, or when the item is deleted.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::Version;
use super::counts::{CountChange, count_deleted, find_oldest_deleted};
use super::definition::Definition;
use super::item_note::ItemNote;
use super::origin::Marks;
use super::proposals::outdated::outdate;
use super::validity::Validity;
use super::writer::MemoryWriter;
use crate::tables::ITEM_VERSIONS;
use base::columns::{find, find_value, load_values};
use base::database::{Database, Delete, SqlValue};
use base::error::Result;
use base::row;
use base::tokens;

/// How many earlier versions of an entry and of a document are stored. An entry has at most
/// 64 KiB and a document 1 MiB, so a key's history has at most 1.25 MiB or 10 MiB.
pub const MAX_ENTRY_VERSIONS: i64 = 20;
pub const MAX_SKILL_VERSIONS: i64 = 10;

/// How many deleted items of a block can be restored.
pub const MAX_DELETED: i64 = 1_000;

/// Identifies an entry or a document.
pub struct ItemRef<'a> {
    pub scope: &'a str,
    /// The key of its block.
    pub block: &'a str,
    pub key: &'a str,
}

impl ItemRef<'_> {
    pub fn params(&self) -> [SqlValue; 3] {
        [self.scope.into(), self.block.into(), self.key.into()]
    }
}

/// An earlier version, in its stored form.
pub struct PastVersion {
    pub version: i64,
    pub title: Option<String>,
    /// `None`: the item was deleted.
    pub content: Option<String>,
    pub note: ItemNote,
    pub written_at: i64,
}

impl PastVersion {
    pub fn show(self) -> Version {
        let deleted = self.content.is_none();
        let content = self.content.unwrap_or_default();
        Version {
            version: self.version,
            tokens: tokens::estimate(&content),
            content,
            title: self.title,
            deleted,
            written_by: self.note.written_by.name().to_owned(),
            is_narrowed: self.note.narrowed,
            source: (!deleted).then(|| self.note.origin()),
            events: self.note.source_events(),
            metadata: self.note.metadata,
            tags: self.note.tags,
            session_id: self.note.session_id,
            turn_id: self.note.turn_id,
            event_id: self.note.event_id,
            written_at: self.written_at,
            validity: self.note.validity,
            ..Version::default()
        }
    }
}

row! {
    pub for PastVersion {
        version: i64 = "version",
        title: Option<String> = "title",
        content: Option<String> = "content",
        note: Option<&str> = "note",
        written_at: i64 = "written_at",
    }
    Ok(Self {
        version,
        title,
        content,
        note: ItemNote::read(note, "version")?,
        written_at,
    })
}

/// Writes a version's row, which replaces the oldest if `most` versions are stored. Must
/// run in a transaction.
pub fn insert_past(
    db: &dyn Database,
    item: &ItemRef<'_>,
    most: i64,
    past: &PastVersion,
) -> Result<()> {
    insert_row(db, item, most, past)?.write(db, item.scope, item.block)
}

/// Like [`insert_past`], but leaves the block's counts to the caller.
fn insert_row(
    db: &dyn Database,
    item: &ItemRef<'_>,
    most: i64,
    past: &PastVersion,
) -> Result<CountChange> {
    let [scope, block, key] = item.params();
    let slot = past.version % most;
    let overwritten: Option<bool> = find_value(
        db,
        "SELECT content IS NULL
           FROM cf_agents_item_versions
          WHERE scope = ?1
            AND block = ?2
            AND key = ?3
            AND slot = ?4",
        &[scope.clone(), block.clone(), key.clone(), slot.into()],
    )?;
    db.run(
        "INSERT INTO cf_agents_item_versions
                (scope, block, key, slot, version, title, content, note, written_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT (scope, block, key, slot) DO UPDATE
            SET version = excluded.version,
                title = excluded.title,
                content = excluded.content,
                note = excluded.note,
                written_at = excluded.written_at",
        &[
            scope,
            block,
            key,
            slot.into(),
            past.version.into(),
            past.title.as_deref().into(),
            past.content.as_deref().into(),
            past.note.to_json()?.into(),
            past.written_at.into(),
        ],
    )?;
    let was_deletion = overwritten.unwrap_or(false);
    Ok(CountChange {
        deleted: i64::from(past.content.is_none()) - i64::from(was_deletion),
        ..CountChange::default()
    })
}

/// The outcome for an entry or a document that was to be deleted.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ItemDeleted {
    /// `false`: there was none.
    pub deleted: bool,
    /// The number of its earlier texts that `getBlockVersions` still shows, so that it can be
    /// brought back. The same deletion with `purge` erases them. Absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions_kept: Option<i64>,
    /// The time when `retention` deletes them, in milliseconds since the epoch. Absent: no
    /// rule applies, and they stay until a purge.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub versions_until: Option<i64>,
}

impl ItemDeleted {
    /// A deleted item without stored versions.
    pub const WITHOUT_TRACE: Self = Self {
        deleted: true,
        versions_kept: None,
        versions_until: None,
    };

    /// A deleted item whose versions are still stored.
    pub fn with_versions(db: &dyn Database, item: &ItemRef<'_>) -> Result<Self> {
        let versions = count_stored(db, item)?;
        Ok(Self {
            deleted: true,
            versions_kept: Some(versions).filter(|count| *count > 0),
            versions_until: None,
        })
    }
}

/// How many earlier texts of an item are stored.
pub fn count_stored(db: &dyn Database, item: &ItemRef<'_>) -> Result<i64> {
    let sql = "SELECT count(*)
                 FROM cf_agents_item_versions
                WHERE scope = ?1
                  AND block = ?2
                  AND key = ?3
                  AND content IS NOT NULL";
    Ok(find_value(db, sql, &item.params())?.unwrap_or(0))
}

/// The deletion of an item.
pub struct ItemDeletion<'a> {
    pub last: PastVersion,
    pub writer: MemoryWriter<'a>,
    pub now_ms: i64,
    /// Other changes of the block's counts that the deletion causes.
    pub counts: CountChange,
}

/// Stores the last version of an item and its deletion, and deletes the oldest deleted item
/// beyond the limit. Must run in a transaction.
pub fn insert_deletion(
    db: &dyn Database,
    item: &ItemRef<'_>,
    most: i64,
    deletion: ItemDeletion<'_>,
) -> Result<()> {
    let mut counts = deletion.counts;
    // The newest deletion must be dropped last, even if the clock was set back.
    let newest: Option<Option<i64>> = find_value(
        db,
        "SELECT max(written_at)
           FROM cf_agents_item_versions
          WHERE scope = ?1
            AND block = ?2
            AND content IS NULL",
        &[item.scope.into(), item.block.into()],
    )?;
    let written_at = deletion.now_ms.max(newest.flatten().unwrap_or(0));
    let version = deletion.last.version + 1;
    let note = ItemNote::new(
        version,
        deletion.writer,
        Validity::default(),
        Marks::default(),
    );
    let deleted = PastVersion {
        version,
        title: None,
        content: None,
        note,
        written_at,
    };
    for past in [&deletion.last, &deleted] {
        counts.deleted += insert_row(db, item, most, past)?.deleted;
    }
    if count_deleted(db, item.scope, item.block)? + counts.deleted > MAX_DELETED
        && let Some(oldest) = find_oldest_deleted(db, item.scope, item.block)?
    {
        let oldest = (oldest.key.as_str(), oldest.version);
        counts.deleted -= forget_up_to(db, (item.scope, item.block), &[oldest])?.deletions;
    }
    counts.write(db, item.scope, item.block)
}

/// The number of rows that were deleted with the remains of deleted items.
pub struct Forgotten {
    pub rows: i64,
    /// How many of them record a deletion.
    pub deletions: i64,
}

/// Deletes the versions of deleted items of a block, each up to the version of its
/// deletion. A later item with the same key may reuse their numbers, so the proposals that
/// name one are marked. Must run in a transaction.
pub fn forget_up_to(
    db: &dyn Database,
    (scope, block): (&str, &str),
    items: &[(&str, i64)],
) -> Result<Forgotten> {
    let mut rows: Vec<(bool,)> = Vec::new();
    for (key, version) in items {
        let params = [scope.into(), block.into(), (*key).into(), (*version).into()];
        let deletion = Delete::from(
            ITEM_VERSIONS,
            "scope = ?1
             AND block = ?2
             AND key = ?3
             AND version <= ?4",
            &params,
        );
        rows.append(&mut deletion.load(db, "content IS NULL")?);
    }
    outdate(db, scope, block, items)?;
    let deletions = rows.iter().filter(|(is_deletion,)| *is_deletion);
    Ok(Forgotten {
        rows: rows.len() as i64,
        deletions: deletions.count() as i64,
    })
}

/// The next version number of an item that doesn't exist, and the time when its last
/// version was written (0: it had none). Numbering continues after the deleted item's
/// versions.
pub fn next_version(db: &dyn Database, item: &ItemRef<'_>) -> Result<(i64, i64)> {
    let sql = "SELECT coalesce(max(version), 0) + 1, coalesce(max(written_at), 0)
                 FROM cf_agents_item_versions
                WHERE scope = ?1
                  AND block = ?2
                  AND key = ?3";
    Ok(find(db, sql, &item.params())?.unwrap_or((1, 0)))
}

/// Up to `limit` earlier versions, newest first. Each statement reads one text, because
/// texts read together would be in memory twice, in JavaScript and in Rust.
fn load_past(db: &dyn Database, item: &ItemRef<'_>, limit: i64) -> Result<Vec<PastVersion>> {
    let [scope, block, key] = item.params();
    let versions: Vec<i64> = load_values(
        db,
        "SELECT version
           FROM cf_agents_item_versions
          WHERE scope = ?1
            AND block = ?2
            AND key = ?3
          ORDER BY version DESC
          LIMIT ?4",
        &[scope.clone(), block.clone(), key.clone(), limit.into()],
    )?;
    let mut past = Vec::with_capacity(versions.len());
    for version in versions {
        past.extend(find_past(db, item, version)?);
    }
    Ok(past)
}

/// An earlier version, if it is stored.
fn find_past(db: &dyn Database, item: &ItemRef<'_>, version: i64) -> Result<Option<PastVersion>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_item_versions
          WHERE scope = ?1
            AND block = ?2
            AND key = ?3
            AND version = ?4",
        PastVersion::COLUMNS
    );
    let [scope, block, key] = item.params();
    find(db, &sql, &[scope, block, key, version.into()])
}

/// One version of an item: the newest one, if the item exists, or an earlier one.
pub fn find_version(
    db: &dyn Database,
    item: &ItemRef<'_>,
    newest: Option<PastVersion>,
    version: i64,
) -> Result<Option<Version>> {
    let found = match newest {
        Some(newest) if newest.version == version => Some(newest),
        Some(_) | None => find_past(db, item, version)?,
    };
    Ok(found.map(PastVersion::show))
}

/// The newest version of an item, if it exists, and the earlier ones, newest first.
pub fn load_all(
    db: &dyn Database,
    item: &ItemRef<'_>,
    newest: Option<PastVersion>,
    limit: i64,
) -> Result<Vec<Version>> {
    let past = load_past(db, item, limit)?;
    let limit = usize::try_from(limit).unwrap_or(0);
    let versions = newest.into_iter().chain(past).take(limit);
    Ok(versions.map(PastVersion::show).collect())
}

/// Identifies an item of a block that is stored in this object.
pub fn item_ref<'a>(block: &'a Definition, content_key: &'a str, key: &'a str) -> ItemRef<'a> {
    ItemRef {
        scope: &block.scope,
        block: content_key,
        key,
    }
}
