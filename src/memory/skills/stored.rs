//! The documents that live in this object, and what the bucket was last seen to
//! hold.

use super::Document;
use crate::base::database::{Database, MAX_VALUE_BYTES, Row, Value, atomically, find_row};
use crate::base::error::{Error, Result};
use crate::memory::definition::Definition;
use crate::memory::skills::skill::Skill;

/// Documents of one block.
pub const MAX_SKILLS: usize = 1_000;

fn place(block: &Definition) -> [Value; 2] {
    [block.scope.as_str().into(), block.label.key().into()]
}

pub fn load_skills(db: &dyn Database, block: &Definition) -> Result<Vec<Skill>> {
    let [scope, key] = place(block);
    let rows = db.rows(
        "SELECT key, description, octet_length(content), updated_at
           FROM cf_agents_skills
          WHERE scope = ?1
            AND block = ?2
          ORDER BY key
          LIMIT ?3",
        &[scope, key, (MAX_SKILLS as i64).into()],
    )?;
    let to_skill = |row: &Row| {
        Ok(Skill {
            key: row.text(0)?.to_owned(),
            description: row.find_text(1).map(str::to_owned),
            bytes: row.find_integer(2),
            updated_at: row.find_integer(3),
        })
    };
    rows.iter().map(to_skill).collect()
}

/// Content and description.
pub fn find_skill(
    db: &dyn Database,
    block: &Definition,
    key: &str,
) -> Result<Option<(String, Option<String>)>> {
    let [scope, label] = place(block);
    let row = find_row(
        db,
        "SELECT content, description
           FROM cf_agents_skills
          WHERE scope = ?1
            AND block = ?2
            AND key = ?3",
        &[scope, label, key.into()],
    )?;
    row.map(|row| Ok((row.text(0)?.to_owned(), row.find_text(1).map(str::to_owned))))
        .transpose()
}

pub fn write_skill(
    db: &dyn Database,
    block: &Definition,
    skill: &Skill,
    content: &str,
) -> Result<()> {
    atomically(db, || {
        let [scope, label] = place(block);
        let row = find_row(
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
        let count = |column| {
            row.as_ref()
                .and_then(|row| row.find_integer(column))
                .unwrap_or(0)
        };
        if count(1) > 0 {
            return Ok(());
        }
        if count(2) == 0 && count(0) >= MAX_SKILLS as i64 {
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
            "INSERT INTO cf_agents_skills (scope, block, key, description, content, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (scope, block, key) DO UPDATE
                SET description = excluded.description,
                    content = excluded.content,
                    updated_at = excluded.updated_at",
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

/// Writes a document that was exported. `block` is its block's key, under which
/// there is no document of this key. Part of a transaction.
pub fn restore(
    db: &dyn Database,
    scope: &str,
    block: &str,
    document: &Document,
    updated_at: i64,
) -> Result<()> {
    db.run(
        "INSERT INTO cf_agents_skills (scope, block, key, description, content, updated_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
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

/// What was listed under this prefix after `since_ms`.
pub fn find_listing(
    db: &dyn Database,
    block: &Definition,
    prefix: &str,
    since_ms: i64,
) -> Result<Option<Vec<Skill>>> {
    let [scope, label] = place(block);
    let row = find_row(
        db,
        "SELECT skills
           FROM cf_agents_skill_listings
          WHERE scope = ?1
            AND block = ?2
            AND source = ?3
            AND listed_at > ?4",
        &[scope, label, prefix.into(), since_ms.into()],
    )?;
    // One that can't be read is listed again.
    Ok(row.and_then(|row| serde_json::from_str(row.find_text(0)?).ok()))
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
