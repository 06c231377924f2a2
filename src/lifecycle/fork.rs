//! Forking: a new session that holds the path up to an event, ids and times
//! kept, so that a client can go on from there without touching the original.

use crate::base::database::{Database, Text, Value, atomically, find_row};
use crate::base::error::Result;
use crate::base::host::Host;
use crate::base::ids::Id;
use crate::base::json::JsonObject;
use crate::log::media;
use crate::log::sessions::{NewSession, create_session, get_session};
use crate::log::tip::get_tip;
use crate::memory::copy::copy_session;
use crate::messages::tree::leaf::resolve_leaf;
use crate::messages::tree::overlays;
use crate::messages::tree::path::{Segment, load_segments};
use crate::search::build::add_session;
use crate::store::changes::{self, ChangeType};

pub struct Fork<'a> {
    pub session_id: &'a Id,
    pub at_id: Option<&'a Id>,
    pub name: Option<String>,
    pub metadata: Option<JsonObject>,
}

pub fn fork_session(
    db: &dyn Database,
    host: &dyn Host,
    agent: &str,
    fork: Fork<'_>,
) -> Result<Text> {
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
                parent_session_id: Some(fork.session_id.clone()),
            },
        )?;
        let mut copied = 0;
        let sql = "SELECT 1 FROM cf_agents_slices WHERE session_id = ?1 LIMIT 1";
        let has_slices = find_row(db, sql, &[fork.session_id.as_str().into()])?.is_some();
        let segments = load_segments(db, fork.session_id, leaf.unwrap_or(0))?;
        for segment in &segments {
            // Numbered anew from 1, each after the one before. An id that led to
            // its row by its number and doesn't any more goes into the index.
            db.run(
                "INSERT INTO cf_agents_events
                        (session_id, seq, id, id_indexed, parent_seq, parent_id, is_branch,
                         action, content, tool, metadata, message, message_dated, sliced_bytes, media, note, created_at, written_at)
                 SELECT ?2, place, id,
                        NOT (substr(id, 1, length(place) + 2) = 'e' || place || '-'
                             AND octet_length(id) = length(place) + 18),
                        place - 1,
                        parent_id,
                        0, action, content, tool, metadata, message, message_dated, sliced_bytes, media, note, created_at, ?6
                   FROM (SELECT e.*, CAST(?5 AS INTEGER) + row_number() OVER (ORDER BY e.seq) AS place
                           FROM cf_agents_events AS e
                          WHERE e.session_id = ?1
                            AND e.seq BETWEEN ?3 AND ?4)",
                &[
                    fork.session_id.as_str().into(),
                    id.as_str().into(),
                    segment.from_seq.into(),
                    segment.to_seq.into(),
                    copied.into(),
                    host.now_ms().into(),
                ],
            )?;
            if has_slices {
                copy_slices(db, fork.session_id, &id, segment, copied)?;
            }
            copied = get_tip(db, &id)?.newest_seq;
        }
        // The calls that it left open are the original's to answer: made in both,
        // what one approval allows would be done twice.
        db.run(
            "UPDATE cf_agents_sessions SET copied_seq = ?2 WHERE id = ?1",
            &[id.as_str().into(), copied.into()],
        )?;
        let overlays = overlays::copy(db, fork.session_id, &segments, &id)?;
        let told: Vec<Option<&str>> = overlays.iter().map(|id| Some(id.as_str())).collect();
        changes::record(db, host, &id, copied, ChangeType::Compaction, &told)?;
        copy_session(db, fork.session_id, &id)?;
        copy_settings(db, fork.session_id, &id)?;
        media::copy(db, fork.session_id, &id)?;
        add_session(db, id.as_str())?;
        get_session(db, &id)
    })
}

/// When and how far the original is compacted holds for the copy too. How its
/// attempts went, and what it has used, is the original's.
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

/// Slices follow their rows, whose places in the copy are counted the same way.
fn copy_slices(
    db: &dyn Database,
    original_id: &Id,
    id: &Id,
    segment: &Segment,
    copied: i64,
) -> Result<()> {
    let params: [Value; 5] = [
        original_id.as_str().into(),
        id.as_str().into(),
        segment.from_seq.into(),
        segment.to_seq.into(),
        copied.into(),
    ];
    db.run(
        "INSERT INTO cf_agents_slices (session_id, seq, field, part, text)
         SELECT ?2, placed.place, slice.field, slice.part, slice.text
           FROM (SELECT e.seq, e.sliced_bytes,
                        CAST(?5 AS INTEGER) + row_number() OVER (ORDER BY e.seq) AS place
                   FROM cf_agents_events AS e
                  WHERE e.session_id = ?1
                    AND e.seq BETWEEN ?3 AND ?4) AS placed
          CROSS JOIN cf_agents_slices AS slice
             ON slice.session_id = ?1
            AND slice.seq = placed.seq
          WHERE placed.sliced_bytes > 0",
        &params,
    )
}
