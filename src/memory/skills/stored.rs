//! The documents that live in this object, and the last listing of the bucket.

use super::SkillDocument;
use crate::base::columns::{FromRow, find, find_value, load};
use crate::base::database::{Database, MAX_VALUE_BYTES, Row, SqlValue, atomically};
use crate::base::error::{Error, Result};
use crate::base::json;
use crate::memory::definition::Definition;
use crate::memory::skills::skill::Skill;

/// The most documents of one block.
pub const MAX_SKILLS: usize = 1_000;

fn place(block: &Definition) -> [SqlValue; 2] {
    [block.scope.as_str().into(), block.content_key().into()]
}

pub fn load_skills(db: &dyn Database, block: &Definition) -> Result<Vec<Skill>> {
    let [scope, key] = place(block);
    let sql = format!(
        "SELECT {}
           FROM cf_agents_skills
          WHERE scope = ?1
            AND block = ?2
          ORDER BY key
          LIMIT ?3",
        Skill::COLUMNS
    );
    load(db, &sql, &[scope, key, (MAX_SKILLS as i64).into()])
}

impl Skill {
    const COLUMNS: &str = "key, description, octet_length(content), updated_at";
}

impl FromRow<'_> for Skill {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            key: row.text(0)?.to_owned(),
            description: row.find_text(1).map(str::to_owned),
            bytes: row.find_integer(2),
            updated_at: row.find_integer(3),
        })
    }
}

/// A document's content and description.
pub fn find_skill(
    db: &dyn Database,
    block: &Definition,
    key: &str,
) -> Result<Option<(String, Option<String>)>> {
    let [scope, label] = place(block);
    find(
        db,
        "SELECT content, description
           FROM cf_agents_skills
          WHERE scope = ?1
            AND block = ?2
            AND key = ?3",
        &[scope, label, key.into()],
    )
}

const INSERT: &str = "
    INSERT INTO cf_agents_skills (scope, block, key, description, content, updated_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)";

pub fn write_skill(
    db: &dyn Database,
    block: &Definition,
    skill: &Skill,
    content: &str,
) -> Result<()> {
    atomically(db, || {
        let [scope, label] = place(block);
        let counts: Option<(i64, Option<i64>, Option<i64>)> = find(
            db,
            "SELECT count(*),
                    sum(key = ?3 AND content = ?4 AND description IS ?5),
                    sum(key = ?3)
               FROM cf_agents_skills
              WHERE scope = ?1
                AND block = ?2",
            &[
                scope,
                label,
                skill.key.as_str().into(),
                content.into(),
                skill.description.as_deref().into(),
            ],
        )?;
        let (count, same, of_key) = counts.unwrap_or_default();
        if same > Some(0) {
            return Ok(());
        }
        if of_key.unwrap_or(0) == 0 && count >= MAX_SKILLS as i64 {
            return Err(Error::invalid(
                "key",
                format!(
                    "Block `{}` holds {MAX_SKILLS} documents already. Delete one first.",
                    block.label
                ),
            ));
        }
        let [scope, label] = place(block);
        db.run(
            &format!(
                "{INSERT}
                     ON CONFLICT (scope, block, key) DO UPDATE
                    SET description = excluded.description,
                        content = excluded.content,
                        updated_at = excluded.updated_at"
            ),
            &[
                scope,
                label,
                skill.key.as_str().into(),
                skill.description.as_deref().into(),
                content.into(),
                skill.updated_at.into(),
            ],
        )
    })
}

/// Writes an exported document. `block` is the key of its block, which must not have
/// a document of this key. Part of a transaction.
pub fn restore(
    db: &dyn Database,
    scope: &str,
    block: &str,
    document: &SkillDocument,
    updated_at: i64,
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
        ],
    )
}

pub fn delete_skill(db: &dyn Database, block: &Definition, key: &str) -> Result<bool> {
    atomically(db, || {
        let [scope, label] = place(block);
        let deleted = db.rows(
            "DELETE FROM cf_agents_skills
              WHERE scope = ?1
                AND block = ?2
                AND key = ?3
          RETURNING 1",
            &[scope, label, key.into()],
        )?;
        Ok(!deleted.is_empty())
    })
}

/// The stored listing of this prefix, if it is newer than `since_ms`.
pub fn find_listing(
    db: &dyn Database,
    block: &Definition,
    prefix: &str,
    since_ms: i64,
) -> Result<Option<Vec<Skill>>> {
    let [scope, label] = place(block);
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
    let json = serde_json::to_string(skills).map_err(|error| Error::storage(error.to_string()))?;
    if json.len() > MAX_VALUE_BYTES {
        return Ok(());
    }
    atomically(db, || {
        let [scope, label] = place(block);
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
    let [scope, label] = place(block);
    db.run(
        "DELETE FROM cf_agents_skill_listings
          WHERE scope = ?1
            AND block = ?2",
        &[scope, label],
    )
}
