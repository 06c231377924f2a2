//! The documents that are stored in this object, and the last listing of the bucket.

use super::SkillDocument;
use crate::Memory;
use crate::change_events::ChangeEvent;
use crate::content::Version;
use crate::counts::CountChange;
use crate::definition::Definition;
use crate::item_note::ItemNote;
use crate::origin::{Marks, MarksChange, texts_of};
use crate::past::{
    self, ItemDeleted, ItemDeletion, MAX_SKILL_VERSIONS, PastVersion, insert_deletion, insert_past,
    next_version,
};
use crate::skills::skill::Skill;
use crate::tables::{SKILL_LISTINGS, SKILLS};
use crate::validity::Validity;
use crate::writer::MemoryWriter;
use base::columns::{find, find_value, load};
use base::database::{Database, Delete, MAX_VALUE_BYTES, SqlValue, atomically};
use base::error::{Error, Result};
use base::filter::{Filter, FilteredColumns};
use base::json;
use base::row;

/// The most documents of one block.
pub const MAX_SKILLS: usize = 1_000;

fn row_key(block: &Definition) -> [SqlValue; 2] {
    [block.scope.as_str().into(), block.content_key().into()]
}

/// All documents, or those that pass a filter.
pub fn load_skills(
    db: &dyn Database,
    block: &Definition,
    filter: Option<&Filter>,
) -> Result<Vec<Skill>> {
    let [scope, key] = row_key(block);
    let passes = filter.map_or_else(String::new, |filter| {
        let columns = FilteredColumns::of_note("note");
        format!("AND {}", filter.condition(&columns, "?4"))
    });
    let sql = format!(
        "SELECT {}
           FROM cf_agents_skills
          WHERE scope = +?1
            AND block = +?2
            {passes}
          ORDER BY key
          LIMIT ?3 + 0",
        Skill::COLUMNS
    );
    let mut params = vec![scope, key, (MAX_SKILLS as i64).into()];
    params.extend(filter.map(|filter| SqlValue::from(filter.param())));
    load(db, &sql, &params)
}

row! {
    for Skill {
        key: &str = "key",
        description: Option<String> = "description",
        bytes: Option<i64> = "octet_length(content)",
        updated_at: Option<i64> = "updated_at",
        note: Option<&str> = "note",
    }
    {
        let skill = Self {
            key: key.to_owned(),
            description,
            bytes,
            updated_at,
            ..Self::default()
        };
        Ok(skill.with_note(&ItemNote::read(note, key)?))
    }
}

/// The current version of a document, with its source.
pub fn find_skill(
    db: &dyn Database,
    block: &Definition,
    key: &str,
) -> Result<Option<SkillDocument>> {
    let row = find_skill_row(db, block, key)?;
    Ok(row.map(|row| SkillDocument {
        key: key.to_owned(),
        source: Some(row.note.origin()),
        updated_at: Some(row.updated_at),
        description: row.description,
        content: row.content,
    }))
}

const INSERT: &str = "
    INSERT INTO cf_agents_skills (scope, block, key, description, content, updated_at, note)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// A document's row.
struct SkillRow {
    description: Option<String>,
    content: String,
    updated_at: i64,
    note: ItemNote,
}

impl SkillRow {
    /// Whether a write changes nothing. The source of the text is compared only if the writer names
    /// one.
    fn is_same(
        &self,
        skill: &Skill,
        content: &str,
        marks: &Marks,
        writer: MemoryWriter<'_>,
    ) -> bool {
        let events = texts_of(writer.events);
        self.content == content
            && self.description == skill.description
            && self.note.marks() == *marks
            && writer
                .source
                .is_none_or(|source| source == self.note.origin())
            && (events.is_empty() || events == self.note.source_events())
    }

    fn into_past(self) -> PastVersion {
        PastVersion {
            version: self.note.version,
            title: self.description,
            content: Some(self.content),
            note: self.note,
            written_at: self.updated_at,
        }
    }
}

row! {
    for SkillRow {
        description: Option<String> = "description",
        content: String = "content",
        updated_at: i64 = "updated_at",
        note: Option<&str> = "note",
        key: &str = "key",
    }
    Ok(Self {
        description,
        content,
        updated_at,
        note: ItemNote::read(note, key)?,
    })
}

fn find_skill_row(db: &dyn Database, block: &Definition, key: &str) -> Result<Option<SkillRow>> {
    let [scope, label] = row_key(block);
    let sql = format!(
        "SELECT {}
           FROM cf_agents_skills
          WHERE scope = ?1
            AND block = ?2
            AND key = ?3",
        SkillRow::COLUMNS
    );
    find(db, &sql, &[scope, label, key.into()])
}

/// Writes a document. Returns it with its current metadata and tags.
pub fn write_skill(
    memory: &Memory<'_>,
    block: &Definition,
    skill: Skill,
    content: &str,
    marks: &MarksChange,
    writer: MemoryWriter<'_>,
) -> Result<Skill> {
    let db = memory.db;
    atomically(db, || {
        let content_key = block.content_key();
        let item = past::item_ref(block, &content_key, &skill.key);
        let before = find_skill_row(db, block, &skill.key)?;
        let marks_before = before.as_ref().map(|row| row.note.marks());
        let marks = marks.apply(marks_before.as_ref());
        let (version, last_written_at) = match before {
            Some(row) if row.is_same(&skill, content, &marks, writer) => {
                return Ok(skill.with_note(&row.note));
            }
            Some(row) => {
                let next = (row.note.version + 1, row.updated_at);
                insert_past(db, &item, MAX_SKILL_VERSIONS, &row.into_past())?;
                next
            }
            None => {
                check_capacity(db, block)?;
                next_version(db, &item)?
            }
        };
        let note = ItemNote::new(version, writer, Validity::default(), marks);
        let [scope, label] = row_key(block);
        db.run(
            &format!(
                "{INSERT}
                     ON CONFLICT (scope, block, key) DO UPDATE
                    SET description = excluded.description,
                        content = excluded.content,
                        updated_at = excluded.updated_at,
                        note = excluded.note"
            ),
            &[
                scope,
                label,
                skill.key.as_str().into(),
                skill.description.as_deref().into(),
                content.into(),
                skill.updated_at.max(Some(last_written_at)).into(),
                note.to_column()?.into(),
            ],
        )?;
        ChangeEvent::of_item(block, &skill.key, Some(version)).notify(memory, writer)?;
        Ok(skill.with_note(&note))
    })
}

fn check_capacity(db: &dyn Database, block: &Definition) -> Result<()> {
    let sql = "SELECT count(*)
                 FROM cf_agents_skills
                WHERE scope = ?1
                  AND block = ?2";
    let count: i64 = find_value(db, sql, &row_key(block))?.unwrap_or(0);
    if count >= MAX_SKILLS as i64 {
        return Err(Error::invalid(
            "key",
            format!(
                "Block `{}` already has {MAX_SKILLS} documents. Delete one first.",
                block.label
            ),
        ));
    }
    Ok(())
}

/// The newest version of a document and the earlier ones, newest first.
pub fn load_versions(
    db: &dyn Database,
    block: &Definition,
    key: &str,
    limit: i64,
) -> Result<Vec<Version>> {
    let content_key = block.content_key();
    let newest = find_skill_row(db, block, key)?.map(SkillRow::into_past);
    past::load_all(db, &past::item_ref(block, &content_key, key), newest, limit)
}

/// One version of a document, if it is stored.
pub fn find_version(
    db: &dyn Database,
    block: &Definition,
    key: &str,
    version: i64,
) -> Result<Option<Version>> {
    let content_key = block.content_key();
    let newest = find_skill_row(db, block, key)?.map(SkillRow::into_past);
    past::find_version(
        db,
        &past::item_ref(block, &content_key, key),
        newest,
        version,
    )
}

/// Writes an exported document. `block` is the key of its block, which must not have
/// a document of this key. Part of a transaction.
pub fn restore(
    db: &dyn Database,
    [scope, block]: [&str; 2],
    document: &SkillDocument,
    updated_at: i64,
    note: &ItemNote,
) -> Result<()> {
    db.run(
        INSERT,
        &[
            scope.into(),
            block.into(),
            document.key.as_str().into(),
            document.description.as_deref().into(),
            document.content.as_str().into(),
            updated_at.into(),
            note.to_column()?.into(),
        ],
    )
}

pub fn delete_skill(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
    writer: MemoryWriter<'_>,
) -> Result<ItemDeleted> {
    let db = memory.db;
    atomically(db, || {
        let Some(row) = find_skill_row(db, block, key)? else {
            return Ok(ItemDeleted::default());
        };
        let content_key = block.content_key();
        let item = past::item_ref(block, &content_key, key);
        let deletion = ItemDeletion {
            now_ms: memory.host.now_ms().max(row.updated_at),
            last: row.into_past(),
            writer,
            counts: CountChange::default(),
        };
        let version = deletion.last.version + 1;
        insert_deletion(db, &item, MAX_SKILL_VERSIONS, deletion)?;
        ChangeEvent::of_deletion(block, key, Some(version)).notify(memory, writer)?;
        let [scope, label] = row_key(block);
        Delete::from(
            SKILLS,
            "scope = ?1
             AND block = ?2
             AND key = ?3",
            &[scope, label, key.into()],
        )
        .run(db)?;
        ItemDeleted::with_versions(db, &item)
    })
}

/// The stored listing of this prefix, if it is newer than `since_ms`.
pub fn find_listing(
    db: &dyn Database,
    block: &Definition,
    prefix: &str,
    since_ms: i64,
) -> Result<Option<Vec<Skill>>> {
    let [scope, label] = row_key(block);
    let skills: Option<String> = find_value(
        db,
        "SELECT skills
           FROM cf_agents_skill_listings
          WHERE scope = ?1
            AND block = ?2
            AND source = ?3
            AND listed_at > ?4",
        &[scope, label, prefix.into(), since_ms.into()],
    )?;
    // An unreadable listing counts as missing, so the bucket is listed again.
    Ok(skills.and_then(|skills| json::decode(&skills).ok()))
}

pub fn write_listing(
    db: &dyn Database,
    block: &Definition,
    prefix: &str,
    skills: &[Skill],
    listed_at: i64,
) -> Result<()> {
    let json = json::encode(skills)?;
    if json.len() > MAX_VALUE_BYTES {
        return Ok(());
    }
    atomically(db, || {
        let [scope, label] = row_key(block);
        db.run(
            "INSERT INTO cf_agents_skill_listings (scope, block, source, skills, listed_at)
             VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (scope, block) DO UPDATE
                SET source = excluded.source,
                    skills = excluded.skills,
                    listed_at = excluded.listed_at",
            &[scope, label, prefix.into(), json.into(), listed_at.into()],
        )
    })
}

pub fn forget_listing(db: &dyn Database, block: &Definition) -> Result<()> {
    let [scope, label] = row_key(block);
    Delete::from(
        SKILL_LISTINGS,
        "scope = ?1
         AND block = ?2",
        &[scope, label],
    )
    .run(db)?;
    Ok(())
}
