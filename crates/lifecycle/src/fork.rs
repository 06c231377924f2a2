//! Forks a session: creates a session with the path up to an event, with the same ids and times. A
//! client can continue from there without changing the original.

use crate::pending_import;
use base::database::{Database, SqlText, atomically};
use base::error::Result;
use base::host::Host;
use base::ids::Id;
use base::json::JsonObject;
use base::tags::Tags;
use conversation::index::build::add_session;
use conversation::log::copy::{Stretch, copy_retention, copy_settings, mark_copied};
use conversation::log::media;
use conversation::log::sessions::{NewSession, create_session, get_session};
use conversation::log::slices::has_slices;
use conversation::log::tip::get_tip;
use conversation::messages::tree::leaf::resolve_leaf;
use conversation::messages::tree::overlay_writes;
use conversation::messages::tree::path::load_segments;
use conversation::session::activity;
use conversation::session::changes::{self, ChangeType};
use memory::copy::copy_session;

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
            pending_import::forget,
        )?;
        let mut copied = 0;
        let has_slices = has_slices(db, fork.session_id)?;
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
        // allow them twice. Learning, too, covers the same events in the original.
        mark_copied(db, &id, copied)?;
        let overlays = overlay_writes::copy(db, fork.session_id, &segments, &id)?;
        let ids: Vec<Option<&str>> = overlays.iter().map(|id| Some(id.as_str())).collect();
        changes::record(db, host, &id, copied, ChangeType::Compaction, &ids)?;
        copy_session(db, fork.session_id, &id)?;
        copy_settings(db, fork.session_id, &id)?;
        copy_retention(db, fork.session_id, &id)?;
        media::copy(db, fork.session_id, &id)?;
        add_session(db, id.as_str())?;
        activity::record(db, &id)?;
        get_session(db, &id)
    })
}
