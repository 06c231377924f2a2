//! A session's memory, copied for a fork of it: the conversation goes on with
//! what it knew. Part of the fork's transaction.

use super::entries::find_by_number;
use super::entry_search::index_entry;
use crate::base::database::Database;
use crate::base::error::Result;
use crate::base::ids::Id;

/// Tables by scope, and what of a row is copied besides it.
const SCOPED: &[(&str, &str)] = &[
    (
        "cf_agents_blocks",
        "key, label, kind, description, max_tokens, default_content, source, when_changed, model_writes, is_removed, defined_at",
    ),
    (
        "cf_agents_block_versions",
        "key, version, content, written_by, session_id, turn_id, reason, written_at",
    ),
    (
        "cf_agents_skills",
        "block, key, description, content, updated_at",
    ),
    ("cf_agents_prompts", "prompt, hash, sections, frozen_at"),
    (
        "cf_agents_entries",
        "block, key, title, content, created_at, updated_at",
    ),
];

pub fn copy_session(db: &dyn Database, from: &Id, to: &Id) -> Result<()> {
    let params = [from.as_str().into(), to.as_str().into()];
    for (table, columns) in SCOPED {
        let order = match *table {
            "cf_agents_blocks" | "cf_agents_entries" => " ORDER BY number",
            _ => "",
        };
        let sql = format!(
            "INSERT INTO {table} (scope, {columns})
             SELECT ?2, {columns} FROM {table} WHERE scope = ?1{order}"
        );
        db.run(&sql, &params)?;
    }
    db.run(
        "INSERT INTO cf_agents_loaded_skills (session_id, block, key, label, content, loaded_at)
         SELECT ?2, block, key, label, content, loaded_at
           FROM cf_agents_loaded_skills
          WHERE session_id = ?1",
        &params,
    )?;
    index_copies(db, to)
}

/// An entry at a time: their texts together may be long.
fn index_copies(db: &dyn Database, session_id: &Id) -> Result<()> {
    let numbers = db.rows(
        "SELECT number
           FROM cf_agents_entries
          WHERE scope = ?1
          ORDER BY block, key",
        &[session_id.as_str().into()],
    )?;
    for row in &numbers {
        let number = row.integer(0)?;
        if let Some(entry) = find_by_number(db, number)? {
            index_entry(db, number, &entry)?;
        }
    }
    Ok(())
}
