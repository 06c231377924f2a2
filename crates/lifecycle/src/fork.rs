//! Forking: a new session that holds the path up to an event, with the same ids and
//! times. A client can go on from there without changing the original.

use base::database::{Database, SqlText, atomically, find_row};
use base::error::Result;
use base::host::Host;
use base::ids::Id;
use base::json::JsonObject;
use base::tags::Tags;
use conversation::log::copy::Stretch;
use conversation::log::media;
use conversation::log::sessions::{NewSession, create_session, get_session};
use conversation::log::tip::get_tip;
use conversation::messages::tree::leaf::resolve_leaf;
use conversation::messages::tree::overlay_writes;
use conversation::messages::tree::path::load_segments;
use memory::copy::copy_session;
use search::build::add_session;
use store::activity;
use store::changes::{self, ChangeType};

pub struct Fork<'a> {
    pub session_id: &'a Id,
    pub at_id: Option<&'a Id>,
    pub name: Option<String>,
    pub metadata: Option<JsonObject>,
    pub tags: Tags,
}

pub fn fork_session(
    db: &dyn Database,
    host: &dyn Host,
    agent: &str,
    fork: Fork<'_>,
) -> Result<SqlText> {
    atomically(db, || {
        let leaf = resolve_leaf(db, fork.session_id, "atId", fork.at_id)?;
        let id = Id::mint_session(host);
        create_session(
            db,
            host,
            agent,
            &NewSession {
                id: Some(id.clone()),
                name: fork.name,
                metadata: fork.metadata,
                tags: fork.tags,
                parent_session_id: Some(fork.session_id.clone()),
                ..NewSession::default()
            },
        )?;
        let mut copied = 0;
        let sql = "SELECT 1 FROM cf_agents_slices WHERE session_id = ?1 LIMIT 1";
        let has_slices = find_row(db, sql, &[fork.session_id.as_str().into()])?.is_some();
        let segments = load_segments(db, fork.session_id, leaf.unwrap_or(0))?;
        for segment in &segments {
            let stretch = Stretch {
                original_id: fork.session_id,
                from_seq: segment.from_seq,
                to_seq: segment.to_seq,
                id: &id,
                after_seq: copied,
            };
            stretch.copy_rows(db)?;
            if has_slices {
                stretch.copy_slices(db)?;
            }
            copied = get_tip(db, &id)?.newest_seq;
        }
        // The open calls belong to the original. If both sessions ran them, one approval would
        // allow them twice. The same events are learnt from in the original, too.
        db.run(
            "UPDATE cf_agents_sessions
                SET copied_seq = ?2,
                    learned_seq = ?2
              WHERE id = ?1",
            &[id.as_str().into(), copied.into()],
        )?;
        let overlays = overlay_writes::copy(db, fork.session_id, &segments, &id)?;
        let told: Vec<Option<&str>> = overlays.iter().map(|id| Some(id.as_str())).collect();
        changes::record(db, host, &id, copied, ChangeType::Compaction, &told)?;
        copy_session(db, fork.session_id, &id)?;
        copy_settings(db, fork.session_id, &id)?;
        copy_retention(db, fork.session_id, &id)?;
        media::copy(db, fork.session_id, &id)?;
        add_session(db, id.as_str())?;
        activity::note(db, &id)?;
        get_session(db, &id)
    })
}

/// Copies the original's compaction settings. Its past attempts and its usage stay with
/// the original.
fn copy_settings(db: &dyn Database, original_id: &Id, id: &Id) -> Result<()> {
    db.run(
        "UPDATE cf_agents_sessions
            SET compaction = original.settings
           FROM (SELECT json_object('settings', compaction -> '$.settings') AS settings
                   FROM cf_agents_sessions
                  WHERE id = ?1
                    AND json_valid(compaction)
                    AND compaction ->> '$.settings' <> '{}') AS original
          WHERE id = ?2",
        &[original_id.as_str().into(), id.as_str().into()],
    )
}

/// A fork's texts are kept as long as the original's. A pin exempts one session, and is not
/// copied.
fn copy_retention(db: &dyn Database, original_id: &Id, id: &Id) -> Result<()> {
    db.run(
        "UPDATE cf_agents_sessions
            SET retention = original.retention
           FROM (SELECT retention
                   FROM cf_agents_sessions
                  WHERE id = ?1
                    AND retention IS NOT NULL) AS original
          WHERE id = ?2",
        &[original_id.as_str().into(), id.as_str().into()],
    )
}
