//! Copies of documents in conversations: the documents that sessions have loaded, and the answers
//! of `load_context` in their logs. A purge of a document deletes both, and what was derived from
//! such an answer. The log keeps the answer's event, with a sentence instead of the text.

use std::collections::BTreeSet;

use super::label::Label;
use super::log_answers::{ERASED, FoundAnswers, TargetDocument, find_answers};
use super::proposals::erase::erase_of_events;
use crate::tables::LOADED_SKILLS;
use base::columns::{load, load_values};
use base::database::{Database, Delete, SqlValue};
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json;
use conversation::log::rewrite::erase_texts;
use conversation::log::tip::get_tip;
use conversation::messages::delete::record_updated;
use conversation::messages::derived::delete_derived;
use conversation::messages::erased_results::replace_results;
use conversation::messages::runs::{RunCache, RunPosition};
use conversation::session::last_turns::{self, find_open_turn};
use store::erasing::{ErasingDatabase, Overwrite};

/// A document, or all documents of a block.
pub struct CopiedDocument<'a> {
    /// The block's scope: a session's id, or empty.
    pub scope: &'a str,
    pub label: &'a Label,
    /// `None`: all documents of the block.
    pub key: Option<&'a str>,
}

/// Erases the copies of a document in all sessions that ever loaded it. Must run in a
/// transaction.
///
/// No row records which block a copy came from. A session's own block hides the agent's
/// block of the same label, so copies that were requested after the session's block was
/// first defined are the session's own, and stay when the agent's document is deleted. A
/// copy with the same text as the session's own document also stays, even if the block was
/// removed. Older copies may be from either block and are deleted: erasing too much is the
/// safer error.
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
    let sessions: Vec<(String, Option<i64>)> = load(
        db,
        "SELECT DISTINCT l.session_id, own.defined_at
           FROM cf_agents_loaded_skills AS l
           LEFT JOIN cf_agents_blocks AS own
             ON ?3 = ''
            AND own.scope = l.session_id
            AND own.key = ?1
            AND own.is_removed = 0
          WHERE l.block = ?1
            AND (?2 IS NULL OR l.key = ?2)
            AND ?3 IN ('', l.session_id)
          ORDER BY l.session_id",
        &params,
    )?;
    for (session, until_ms) in sessions {
        let id = Id::parse(session).map_err(Error::storage)?;
        let sought = TargetDocument {
            label: copied.label,
            key: copied.key,
            until_ms,
            is_agents: copied.scope.is_empty(),
        };
        erase_in_session(db, host, &id, &sought)?;
    }
    Ok(())
}

/// Erases the copies in a session, of this session's document and of the agent's. `false`:
/// there are none. Must run in a transaction.
pub fn erase_in_session(
    db: &ErasingDatabase<'_>,
    host: &dyn Host,
    session_id: &Id,
    sought: &TargetDocument<'_>,
) -> Result<bool> {
    let was_loaded = forget_loaded(db, session_id, sought)?;
    let found = find_answers(db, session_id, sought)?;
    let seqs = found.seqs();
    if seqs.is_empty() {
        return Ok(was_loaded);
    }
    delete_derived(db, host, session_id, &seqs)?;
    erase_of_events(db, session_id, &seqs)?;
    replace(db, host, session_id, &found)?;
    Ok(true)
}

/// Erases the document that the session has stored for its context. `false`: there is none.
///
/// The row records that the log may contain the document. A running turn may still log it,
/// so the row stays for the next purge, without the text.
fn forget_loaded(
    db: &ErasingDatabase<'_>,
    session_id: &Id,
    sought: &TargetDocument<'_>,
) -> Result<bool> {
    let own = if sought.is_agents {
        find_own_copies(db, session_id, sought.label)?
    } else {
        Vec::new()
    };
    let params: [SqlValue; 5] = [
        session_id.as_str().into(),
        sought.label.key().into(),
        sought.key.into(),
        sought.until_ms.into(),
        SqlValue::Text(json::encode(&own)?),
    ];
    const IS_SOUGHT: &str = "session_id = ?1
            AND block = ?2
            AND (?3 IS NULL OR key = ?3)
            AND (?4 IS NULL OR loaded_at <= ?4)
            AND key NOT IN (SELECT value FROM json_each(?5))";
    if find_open_turn(db, session_id)?.is_none() {
        let deleted = Delete::from(LOADED_SKILLS, IS_SOUGHT, &params).run(db)?;
        return Ok(deleted > 0);
    }
    let erased = db.overwrite(&Overwrite {
        table: LOADED_SKILLS,
        columns: &["content"],
        condition: &format!("{IS_SOUGHT} AND content IS NOT NULL"),
        params: &params,
    })?;
    let sql = format!("UPDATE cf_agents_loaded_skills SET content = NULL WHERE {IS_SOUGHT}");
    db.run(&sql, &params)?;
    db.count(|counts| counts.loaded_documents += erased);
    Ok(erased > 0)
}

/// The keys of loaded documents that have the same text as the session's own documents.
fn find_own_copies(db: &dyn Database, session_id: &Id, label: &Label) -> Result<Vec<String>> {
    load_values(
        db,
        "SELECT own.key
           FROM cf_agents_skills AS own
           JOIN cf_agents_loaded_skills AS l
             ON l.session_id = own.scope
            AND l.block = own.block
            AND l.key = own.key
            AND l.content = own.content
          WHERE own.scope = ?1
            AND own.block = ?2
          ORDER BY own.key",
        &[session_id.as_str().into(), label.key().into()],
    )
}

/// Replaces the document by a sentence, and records this in the feed.
fn replace(
    db: &ErasingDatabase<'_>,
    host: &dyn Host,
    session_id: &Id,
    found: &FoundAnswers,
) -> Result<()> {
    let results: Vec<i64> = found.results.iter().copied().collect();
    erase_texts(db, session_id, &results, ERASED)?;
    let mut changed = BTreeSet::new();
    for (seq, parts) in &found.parts {
        changed.insert(replace_results(db, session_id, *seq, parts, ERASED)?);
    }
    // The record of the session's last turn contains the results of its tools.
    let turns = last_turns::overwrite_over(db, session_id)?;
    last_turns::fold_ended(db, session_id)?;
    db.count(|erased| {
        erased.turns += turns;
        erased.loaded_documents += found.count();
    });
    let mut runs = RunCache::of(db, session_id);
    for seq in &results {
        if let RunPosition::Run(start) = runs.find(*seq)? {
            changed.insert(start.id);
        }
    }
    let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
    let last_seq = get_tip(db, session_id)?.last_seq();
    record_updated(db, host, session_id, last_seq, &changed)
}
