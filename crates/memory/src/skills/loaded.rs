//! The documents loaded into a session's context. The session stores a copy from the time
//! of loading, so a later change of the document doesn't change existing conversations.

use crate::label::Label;
use base::columns;
use base::database::{Database, SqlValue, atomically};
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json;

/// The most documents that a session may have loaded at once.
pub const MAX_LOADED: i64 = 32;

/// The most rows read per session, including unloaded documents.
const MAX_KNOWN: i64 = 1_000;

/// The most bytes of all loaded documents, as rendered: every model call sends them.
pub const MAX_LOADED_BYTES: i64 = 4 << 20;

/// A document that a session has loaded, now or earlier.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedSkill {
    pub label: String,
    pub key: String,
    /// `None`: the document was unloaded.
    pub content: Option<String>,
}

fn row_key(session_id: &Id, label: &Label, key: &str) -> [SqlValue; 3] {
    [session_id.as_str().into(), label.key().into(), key.into()]
}

/// All documents that a session has loaded or unloaded, oldest first. Documents beyond
/// [`MAX_LOADED_BYTES`] count as unloaded.
pub fn load_context_documents(db: &dyn Database, session_id: &Id) -> Result<Vec<LoadedSkill>> {
    let skills = columns::load(
        db,
        "SELECT skill.label, skill.key, iif(size.total <= ?2, skill.content, NULL)
           FROM (SELECT block, key, loaded_at,
                        sum(iif(content IS NULL, 0, octet_length(json_quote(content)) - 2)) OVER (ORDER BY loaded_at, block, key) AS total
                   FROM cf_agents_loaded_skills
                  WHERE session_id = +?1) AS size
          CROSS JOIN cf_agents_loaded_skills AS skill
             ON skill.session_id = +?1
            AND skill.block = size.block
            AND skill.key = size.key
          ORDER BY size.loaded_at, size.block, size.key
          LIMIT ?3 + 0",
        &[
            session_id.as_str().into(),
            MAX_LOADED_BYTES.into(),
            MAX_KNOWN.into(),
        ],
    )?;
    Ok(skills
        .into_iter()
        .map(|(label, key, content)| LoadedSkill {
            label,
            key,
            content,
        })
        .collect())
}

/// The start of the statement that writes a document's row.
const INSERT: &str =
    "INSERT INTO cf_agents_loaded_skills (session_id, block, key, label, content, loaded_at)";

/// SQL: whether the session `?1` has loaded a document.
pub const HAS_LOADED: &str =
    "EXISTS (SELECT 1 FROM cf_agents_loaded_skills WHERE session_id = +?1)";

/// Loads a document into a session's context. `false`: it is already loaded, unchanged.
pub fn load(
    db: &dyn Database,
    host: &dyn Host,
    session_id: &Id,
    label: &Label,
    key: &str,
    content: &str,
) -> Result<bool> {
    atomically(db, || {
        let [session, block, skill] = row_key(session_id, label, key);
        // The session's own block, if it has one, was there before the copy.
        let own_since: Option<i64> = columns::find_value(
            db,
            "SELECT defined_at
               FROM cf_agents_blocks
              WHERE scope = ?1
                AND key = ?2
                AND is_removed = 0",
            &[session.clone(), block.clone()],
        )?;
        let own_since = own_since.unwrap_or(-1);
        let counts: Option<(i64, Option<i64>, Option<i64>)> = columns::find(
            db,
            "SELECT count(content),
                    sum(block = ?2 AND key = ?3 AND content = ?4 AND loaded_at > ?5),
                    sum(iif(content IS NULL OR (block = ?2 AND key = ?3), 0, octet_length(json_quote(content)) - 2))
               FROM cf_agents_loaded_skills
              WHERE session_id = ?1",
            &[session, block, skill, content.into(), own_since.into()],
        )?;
        let (count, same, others_bytes) = counts.unwrap_or_default();
        if same > Some(0) {
            return Ok(false);
        }
        if count >= MAX_LOADED {
            return Err(Error::invalid(
                "key",
                format!(
                    "This session has {MAX_LOADED} loaded documents, which is the limit. First unload one that you no longer need."
                ),
            ));
        }
        let bytes = others_bytes.unwrap_or(0) + json::written_bytes(content) as i64;
        if bytes > MAX_LOADED_BYTES {
            return Err(Error::invalid(
                "key",
                format!(
                    "With this document the session would have {bytes} bytes of documents loaded; the limit is {MAX_LOADED_BYTES}. First unload one that you no longer need."
                ),
            ));
        }
        let [session, block, skill] = row_key(session_id, label, key);
        db.run(
            &format!(
                "{INSERT}
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                     ON CONFLICT (session_id, block, key) DO UPDATE
                    SET label = excluded.label,
                        content = excluded.content,
                        loaded_at = excluded.loaded_at"
            ),
            &[
                session,
                block,
                skill,
                label.as_str().into(),
                content.into(),
                host.now_ms().max(own_since + 1).into(),
            ],
        )?;
        Ok(true)
    })
}

/// Restores an exported document in a session's context. Must run in a transaction.
pub fn restore(
    db: &dyn Database,
    session_id: &Id,
    skill: &LoadedSkill,
    loaded_at: i64,
) -> Result<()> {
    db.run(
        &format!("{INSERT} VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
        &[
            session_id.as_str().into(),
            skill.label.to_lowercase().into(),
            skill.key.as_str().into(),
            skill.label.as_str().into(),
            skill.content.as_deref().into(),
            loaded_at.into(),
        ],
    )
}

/// Removes a document from a session's context; `false`: it wasn't loaded.
pub fn unload(db: &dyn Database, session_id: &Id, label: &Label, key: &str) -> Result<bool> {
    atomically(db, || {
        let unloaded = db.rows(
            "UPDATE cf_agents_loaded_skills
                SET content = NULL
              WHERE session_id = ?1
                AND block = ?2
                AND key = ?3
                AND content IS NOT NULL
          RETURNING 1",
            &row_key(session_id, label, key),
        )?;
        Ok(!unloaded.is_empty())
    })
}
