//! The frozen prompt: every call of a conversation sends the same bytes until the prompt is
//! refreshed, so that a provider's prefix cache stays warm. A reminder can report changes made in
//! the meantime.

use crate::json_schema::JsonSchema;
use std::collections::BTreeMap;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::block::Block;
use super::definition::WhenChanged;
use super::prompt::{PromptFormat, render, render_section};
use super::view::{load_view, read_blocks, read_for_prompt};
use super::{BlockScope, Memory};
use crate::tables::PROMPTS;
use base::columns;
use base::database::{Database, Delete, atomically};
use base::error::Result;
use base::host::Host;
use base::json;
use base::{row, sql};

#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FrozenPrompt {
    pub prompt: String,
    /// SHA-256 of the prompt, in hex.
    pub hash: String,
    pub frozen_at: i64,
}

/// The frozen prompt. The first call renders and stores it.
pub async fn freeze(memory: &Memory<'_>, scope: BlockScope<'_>) -> Result<FrozenPrompt> {
    if let Some((frozen, _)) = find(memory.db, scope)? {
        return Ok(frozen);
    }
    let blocks = read_for_prompt(memory, scope).await?;
    atomically(memory.db, || {
        // Another call may have frozen the prompt while this call read other backends.
        match find(memory.db, scope)? {
            Some((frozen, _)) => Ok(frozen),
            None => {
                let prompt = render(&blocks, PromptFormat::Text);
                let sections = hash_sections(&blocks);
                write(memory.db, scope, prompt, &sections, memory.host.now_ms())
            }
        }
    })
}

/// The frozen prompt, if there is one.
pub fn find_frozen(db: &dyn Database, scope: BlockScope<'_>) -> Result<Option<FrozenPrompt>> {
    Ok(find(db, scope)?.map(|(frozen, _)| frozen))
}

/// Renders the prompt again and stores it. An unchanged prompt keeps its row.
pub async fn refresh(memory: &Memory<'_>, scope: BlockScope<'_>) -> Result<FrozenPrompt> {
    let blocks = read_for_prompt(memory, scope).await?;
    atomically(memory.db, || {
        refreeze(memory.db, memory.host, scope, &blocks)
    })
}

/// Renders the prompt of these blocks and stores it, unless it is unchanged. Part of a transaction.
pub fn refreeze(
    db: &dyn Database,
    host: &dyn Host,
    scope: BlockScope<'_>,
    blocks: &[Block],
) -> Result<FrozenPrompt> {
    let prompt = render(blocks, PromptFormat::Text);
    let sections = hash_sections(blocks);
    match find(db, scope)? {
        Some((frozen, before)) if frozen.prompt == prompt && before == sections => Ok(frozen),
        _ => write(db, scope, prompt, &sections, host.now_ms()),
    }
}

/// The most prompts that one call of [`forget_all`] deletes.
pub const MAX_FORGOTTEN: i64 = 5_000;

/// Deletes frozen prompts, the agent's and its sessions': each is rendered again on its next use.
/// Rendering all of them now would read every backend for conversations that may be over. Returns
/// how many were deleted. Part of a transaction.
pub fn forget_all(db: &dyn Database) -> Result<i64> {
    Delete::from(
        PROMPTS,
        "scope IN (SELECT scope
                     FROM cf_agents_prompts
                    LIMIT ?1)",
        &[MAX_FORGOTTEN.into()],
    )
    .run(db)
}

/// Deletes a scope's frozen prompt. `scope`: the column's value. `false`: there is none. Part of a
/// transaction.
pub fn forget(db: &dyn Database, scope: &str) -> Result<bool> {
    Ok(Delete::from(PROMPTS, "scope = ?1", &[scope.into()]).run(db)? > 0)
}

/// Deletes a scope's frozen prompt if it was frozen up to this time. Part of a transaction.
pub fn forget_until(db: &dyn Database, scope: &str, time_ms: i64) -> Result<()> {
    let params = [scope.into(), time_ms.into()];
    Delete::from(PROMPTS, "scope = ?1 AND frozen_at <= ?2", &params).run(db)?;
    Ok(())
}

/// The row of a scope's prompt. `scope`: the column's value.
pub fn find_row(db: &dyn Database, scope: &str) -> Result<Option<PromptRow>> {
    let sql = sql!(
        "SELECT ",
        PromptRow::COLUMNS,
        " FROM cf_agents_prompts
          WHERE scope = ?1"
    );
    columns::find(db, sql, &[scope.into()])
}

fn find(
    db: &dyn Database,
    scope: BlockScope<'_>,
) -> Result<Option<(FrozenPrompt, BTreeMap<String, String>)>> {
    let row = find_row(db, scope.column())?;
    Ok(row.map(|PromptRow { frozen, sections }| {
        (frozen, json::decode(&sections).unwrap_or_default())
    }))
}

/// A frozen prompt as it is stored.
pub struct PromptRow {
    pub frozen: FrozenPrompt,
    /// The result of [`hash_sections`], as JSON.
    pub sections: String,
}

row! {
    for PromptRow {
        prompt: String = "prompt",
        hash: String = "hash",
        sections: String = "sections",
        frozen_at: i64 = "frozen_at",
    }
    Ok(Self {
        frozen: FrozenPrompt {
            prompt,
            hash,
            frozen_at,
        },
        sections,
    })
}

/// Writes a prompt's row, replacing an existing row. Part of a transaction.
pub fn write(
    db: &dyn Database,
    scope: BlockScope<'_>,
    prompt: String,
    sections: &BTreeMap<String, String>,
    frozen_at: i64,
) -> Result<FrozenPrompt> {
    let hash = hash(&prompt);
    let sections = json::encode(sections)?;
    let stored_at = columns::find_value(
        db,
        "INSERT INTO cf_agents_prompts (scope, prompt, hash, sections, frozen_at)
         VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (scope) DO UPDATE
            SET prompt = excluded.prompt,
                hash = excluded.hash,
                sections = excluded.sections,
                frozen_at = max(frozen_at, excluded.frozen_at)
      RETURNING frozen_at",
        &[
            scope.column().into(),
            prompt.as_str().into(),
            hash.as_str().into(),
            sections.into(),
            frozen_at.into(),
        ],
    )?;
    Ok(FrozenPrompt {
        prompt,
        hash,
        frozen_at: stored_at.unwrap_or(frozen_at),
    })
}

fn hash(text: &str) -> String {
    format!("{:x}", Sha256::digest(text.as_bytes()))
}

/// A hash of each block with [`WhenChanged::Remind`], by its label in lower case.
fn hash_sections(blocks: &[Block]) -> BTreeMap<String, String> {
    blocks
        .iter()
        .filter(|block| block.when_changed == WhenChanged::Remind)
        .map(|block| (block.label.to_lowercase(), hash(&section_of(block))))
        .collect()
}

fn section_of(block: &Block) -> String {
    render_section(block, PromptFormat::Text).unwrap_or_default()
}

/// The new content of blocks with [`WhenChanged::Remind`] that differ from the
/// frozen prompt. `None`: nothing changed, or no prompt is frozen yet.
pub async fn find_reminder(memory: &Memory<'_>, scope: BlockScope<'_>) -> Result<Option<String>> {
    let Some((_, frozen)) = find(memory.db, scope)? else {
        return Ok(None);
    };
    let mut reminding = load_view(memory, scope)?;
    reminding.retain(|block| block.when_changed == WhenChanged::Remind);
    let mut changed = Vec::new();
    for block in read_blocks(memory, &reminding).await? {
        let section = section_of(&block);
        let was = frozen.get(&block.label.to_lowercase());
        // An unavailable backend doesn't mean that the block changed.
        if block.unavailable.is_some() || was == Some(&hash(&section)) {
            continue;
        }
        changed.push(match section.as_str() {
            "" => format!("{} is empty now.", block.label.to_uppercase()),
            section => section.to_owned(),
        });
    }
    if changed.is_empty() {
        return Ok(None);
    }
    Ok(Some(format!(
        "These blocks have changed since your instructions were written. Use the current contents \
         below.\n\n\
         {}",
        changed.join("\n\n")
    )))
}
