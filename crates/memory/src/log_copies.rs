//! Copies of documents in conversations: what sessions have loaded, and the answers of
//! `load_context` in their logs. A purge of a document takes both, and what was made of such an
//! answer. The log keeps the answer's event, with a sentence in the place of the text.

use std::collections::BTreeSet;

use super::label::Label;
use super::proposals::erase::erase_of_events;
use base::action::Action;
use base::columns::{load, load_values};
use base::database::{Database, SqlValue};
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json;
use log::slices::delete_slices;
use log::tip::get_tip;
use messages::delete::tell_updated;
use messages::runs::{RunCache, RunPosition};
use messages::taken_back::take_back;
use search::index;
use store::erasing::{ErasingDatabase, overwritten};
use store::last_turns;

/// The tool whose answers are documents.
const TOOL: &str = "load_context";

/// The text that stands in the place of a document.
const ERASED: &str = "[This document was erased.]";

/// A document, or all documents of a block.
pub struct CopiedDocument<'a> {
    /// The block's scope: a session's id, or empty.
    pub scope: &'a str,
    pub label: &'a Label,
    /// `None`: all documents of the block.
    pub key: Option<&'a str>,
}

/// Erases the copies of a document in all sessions that ever loaded it. Part of a
/// transaction.
pub fn erase_copies(
    db: &ErasingDatabase<'_>,
    host: &dyn Host,
    copied: &CopiedDocument<'_>,
) -> Result<()> {
    let params: [SqlValue; 3] = [
        copied.label.key().into(),
        copied.key.into(),
        copied.scope.into(),
    ];
    // A session's own block hides the agent's block of the same label.
    let sessions: BTreeSet<String> = load_values(
        db,
        "SELECT l.session_id
           FROM cf_agents_loaded_skills AS l
          WHERE l.block = ?1
            AND (?2 IS NULL OR l.key = ?2)
            AND (l.session_id = ?3
                 OR ?3 = '' AND NOT EXISTS (SELECT 1
                                              FROM cf_agents_blocks AS own
                                             WHERE own.scope = l.session_id
                                               AND own.key = ?1))",
        &params,
    )?
    .into_iter()
    .collect();
    for session in sessions {
        let id = Id::parse(session).map_err(Error::storage)?;
        db.run(
            "DELETE FROM cf_agents_loaded_skills
              WHERE session_id = ?1
                AND block = ?2
                AND (?3 IS NULL OR key = ?3)",
            &[
                id.as_str().into(),
                copied.label.key().into(),
                copied.key.into(),
            ],
        )?;
        let seqs = find_answers(db, &id, copied)?;
        if !seqs.is_empty() {
            let held: BTreeSet<i64> = seqs.iter().copied().collect();
            take_back(db, host, &id, &held)?;
            erase_of_events(db, &id, &held)?;
            replace(db, host, &id, &seqs)?;
        }
    }
    Ok(())
}

/// The answers of `load_context` that hold the document.
fn find_answers(
    db: &dyn Database,
    session_id: &Id,
    copied: &CopiedDocument<'_>,
) -> Result<Vec<i64>> {
    let calls: Vec<(String, Option<String>, Option<String>)> = load(
        db,
        "SELECT call.value ->> '$.id',
                coalesce(call.value ->> '$.arguments.label', call.value ->> '$.arguments.block'),
                call.value ->> '$.arguments.key'
           FROM cf_agents_events AS e,
                json_each(iif(json_valid(e.tool), e.tool, '{}'), '$.toolCalls') AS call
          WHERE e.session_id = ?1
            AND e.action = ?3
            AND call.value ->> '$.name' = ?2",
        &[
            session_id.as_str().into(),
            TOOL.into(),
            Action::ToolCallRequest.name().into(),
        ],
    )?;
    let names = |label: Option<String>, key: Option<String>| {
        let label = label.unwrap_or_default().trim().to_lowercase();
        label == copied.label.key()
            && copied
                .key
                .is_none_or(|wanted| key.as_deref() == Some(wanted))
    };
    let ids: BTreeSet<String> = calls
        .into_iter()
        .filter_map(|(id, label, key)| names(label, key).then_some(id))
        .collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    load_values(
        db,
        "SELECT e.seq
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.action = ?3
            AND iif(json_valid(e.tool), e.tool, '{}') ->> '$.toolCallId'
                IN (SELECT value FROM json_each(?2))",
        &[
            session_id.as_str().into(),
            SqlValue::Text(json::encode(&ids)?),
            Action::ToolResult.name().into(),
        ],
    )
}

/// Puts a sentence in the place of these events' texts, and tells the feed.
fn replace(db: &ErasingDatabase<'_>, host: &dyn Host, session_id: &Id, seqs: &[i64]) -> Result<()> {
    let [session, list] = [
        SqlValue::from(session_id.as_str()),
        SqlValue::Text(json::encode(&seqs)?),
    ];
    let sql = format!(
        "UPDATE cf_agents_events
            SET {}
          WHERE session_id = ?1
            AND seq IN (SELECT value FROM json_each(?2))",
        overwritten("content")
    );
    db.run(&sql, &[session.clone(), list.clone()])?;
    db.touch("cf_agents_events");
    delete_slices(db, session_id, seqs)?;
    db.run(
        "UPDATE cf_agents_events
            SET content = ?3,
                sliced_bytes = 0,
                note = iif(json_valid(note), json_remove(note, '$.isJson'), note)
          WHERE session_id = ?1
            AND seq IN (SELECT value FROM json_each(?2))",
        &[session, list, ERASED.into()],
    )?;
    // The record of the session's last turn holds what its tools answered.
    let turns = last_turns::overwrite_over(db, session_id)?;
    last_turns::settle(db, session_id)?;
    db.touch("cf_agents_last_turns");
    db.count(|erased| erased.turns += turns);
    if let Some(place) = index::find_place(db, session_id.as_str())? {
        index::remove(db, &place, seqs)?;
    }
    db.count(|erased| erased.loaded_documents += seqs.len() as i64);
    let last_seq = get_tip(db, session_id)?.last_seq();
    let mut runs = RunCache::of(db, session_id);
    let mut changed = BTreeSet::new();
    for seq in seqs {
        if let RunPosition::Run(start) = runs.find(*seq)? {
            changed.insert(start.id);
        }
    }
    let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
    tell_updated(db, host, session_id, last_seq, &changed)
}
