//! Deletes the old checkpoints of a LangGraph thread, as its saver
//! (`packages/session-agent/src/langgraph.ts`) stores them.
//!
//! A namespace of a thread is a session. A checkpoint is a user's message there, preceded by the
//! values that it changed, as system instructions. A later checkpoint uses the values that it did
//! not change, so an old value stays while a remaining checkpoint names it. Pending writes are in a
//! session of the thread: below a marker for each checkpoint.
//!
//! Unreadable data stays: checkpoints of another serializer, and threads whose channels store only
//! what changed (`DeltaChannel`), because they need the checkpoints above.

use std::collections::{BTreeSet, HashMap};

use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::events::trim;
use super::sessions::{RetainedSession, Thread};
use super::work::StepWork;
use base::action::Action;
use base::database::Database;
use base::error::Result;
use base::host::Host;
use base::ids::Id;
use base::json::{self, Tree};
use conversation::log::event_facts::{has_before, load_newest_seqs};
use conversation::log::find::find_seqs;
use conversation::log::old_events::load_between;
use conversation::log::row::get_event_text;
use conversation::log::sessions::session_exists;
use conversation::messages::tree::children::load_children;
use store::erasing::ErasingDatabase;
use store::retention_progress::RetentionPosition;

/// The action of a checkpoint.
const CHECKPOINT: Action = Action::UserMessage;

/// Ids longer than this are hashed, in UTF-16 units.
const LONGEST_ID: usize = 200;

/// The most bytes of the remaining checkpoints' own texts that a step reads. A thread with more is
/// skipped.
const MAX_REMAINING_BYTES: usize = 8 << 20;

/// A checkpoint as its message contains it. Its parts are texts: a type, a colon, the data.
#[derive(Deserialize)]
struct StoredCheckpoint {
    checkpoint: String,
    metadata: String,
    channels: Vec<String>,
}

impl StoredCheckpoint {
    /// The ids of the values that the checkpoint uses. `None`: it can't be read.
    fn values(text: &str) -> Option<Vec<String>> {
        let stored: Self = json::decode(text).ok()?;
        if stored.metadata.contains("counters_since_delta_snapshot") {
            return None;
        }
        let metadata: Option<&str> = stored.metadata.strip_prefix("json:");
        metadata?;
        let Tree(checkpoint) = json::decode(stored.checkpoint.strip_prefix("json:")?).ok()?;
        let versions = checkpoint.get("channel_versions")?.as_object()?;
        let value = |channel: String| {
            let version = versions.get(&channel).cloned().unwrap_or(Value::Null);
            id_of(&[Value::from("value"), Value::from(channel), version])
        };
        Some(stored.channels.into_iter().map(value).collect())
    }
}

/// One id of several names, as the saver makes it.
fn id_of(names: &[Value]) -> String {
    let id = Value::from(names).to_string();
    if id.encode_utf16().count() <= LONGEST_ID {
        return id;
    }
    let digest = Sha256::digest(id.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Deletes some of the checkpoints before the newest `most`. Returns whether none is left.
pub fn delete_old(
    db: &ErasingDatabase<'_>,
    host: &dyn Host,
    session: &RetainedSession,
    thread: &Thread,
    most: i64,
    position: &mut RetentionPosition,
    work: &mut StepWork,
) -> Result<bool> {
    let Some(needed) = find_needed(db, &session.id, most, work)? else {
        return Ok(true);
    };
    let limit = work.page();
    let seqs = (position.after_seq, needed.from_seq);
    let page = load_between(db, &session.id, seqs, CHECKPOINT, limit)?;
    work.count_scanned(page.len());
    let is_last = (page.len() as i64) < limit;
    position.after_seq = page.last().map_or(position.after_seq, |last| last.seq);
    let mut deleted = page;
    deleted.retain(|event| !needed.seqs.contains(&event.seq));
    for checkpoint in deleted.iter().filter(|event| event.has_action) {
        work.counts.runs.add(checkpoint.written_at);
    }
    if work.is_dry || deleted.is_empty() {
        return Ok(is_last);
    }
    work.delete(
        deleted.len() as i64,
        deleted.iter().map(|event| event.bytes).sum(),
    );
    let seqs: Vec<i64> = deleted.iter().map(|event| event.seq).collect();
    trim(db, host, &session.id, &seqs, work)?;
    let checkpoints = deleted.iter().filter(|event| event.has_action);
    let ids: Vec<&str> = checkpoints.map(|event| event.id.as_str()).collect();
    delete_writes(db, host, thread, &ids, work)?;
    Ok(is_last)
}

/// The events before the remaining checkpoints that these need.
struct Needed {
    /// The oldest checkpoint that stays.
    from_seq: i64,
    seqs: BTreeSet<i64>,
}

/// `None`: nothing is to be deleted.
fn find_needed(
    db: &dyn Database,
    session_id: &Id,
    most: i64,
    work: &mut StepWork,
) -> Result<Option<Needed>> {
    let newest = load_newest_seqs(db, session_id, CHECKPOINT, most)?;
    // About two values precede each.
    work.count_scanned(3 * newest.len());
    let Some(from_seq) = newest
        .last()
        .copied()
        .filter(|_| newest.len() as i64 == most)
    else {
        return Ok(None);
    };
    if !has_before(db, session_id, from_seq, CHECKPOINT)? {
        return Ok(None);
    }
    let mut values = BTreeSet::new();
    let mut bytes = 0;
    for seq in newest {
        let event = get_event_text(db, session_id, seq)?;
        bytes += event.content.len();
        let Some(ids) = StoredCheckpoint::values(&event.content) else {
            return Ok(None);
        };
        if bytes > MAX_REMAINING_BYTES {
            return Ok(None);
        }
        values.extend(ids);
    }
    let ids: Vec<Id> = values
        .into_iter()
        .filter_map(|id| Id::parse(id).ok())
        .collect();
    let found: HashMap<String, i64> = find_seqs(db, session_id, ids.iter())?;
    Ok(Some(Needed {
        from_seq,
        seqs: found.into_values().collect(),
    }))
}

/// Deletes the pending writes of these checkpoints.
fn delete_writes(
    db: &ErasingDatabase<'_>,
    host: &dyn Host,
    thread: &Thread,
    checkpoints: &[&str],
    work: &mut StepWork,
) -> Result<()> {
    let Ok(writes) = Id::parse(id_of(&[
        Value::from("writes"),
        Value::from(thread.id.as_str()),
    ])) else {
        return Ok(());
    };
    if !session_exists(db, &writes)? {
        return Ok(());
    }
    let marker = |checkpoint: &&str| {
        // A checkpoint's message has the id `["ID"]`. A longer one is hashed, and its writes stay.
        let [id]: [String; 1] = json::decode(checkpoint).ok()?;
        let names = [
            Value::from("at"),
            Value::from(thread.namespace.as_str()),
            Value::from(id),
        ];
        Id::parse(id_of(&names)).ok()
    };
    let markers: Vec<Id> = checkpoints.iter().filter_map(marker).collect();
    let markers = find_seqs(db, &writes, markers.iter())?;
    let mut seqs = BTreeSet::new();
    for marker in markers.into_values() {
        seqs.insert(marker);
        seqs.extend(load_children(db, &writes, marker)?);
    }
    let seqs: Vec<i64> = seqs.into_iter().collect();
    work.delete(seqs.len() as i64, 0);
    trim(db, host, &writes, &seqs, work)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn ids_match_those_of_the_checkpoint_saver() {
        // The id that `JSON.stringify` and SHA-256 give in JavaScript.
        let id = |names: Value| id_of(names.as_array().unwrap());
        assert_eq!(
            id(json!(["value", "a\"\u{2028}b", "1.x"])),
            "[\"value\",\"a\\\"\u{2028}b\",\"1.x\"]"
        );
        assert_eq!(id(json!(["value", "c", 3])), r#"["value","c",3]"#);
        assert_eq!(id(json!(["x".repeat(300)])).len(), 64);
    }

    #[test]
    fn an_unreadable_checkpoint_deletes_nothing() {
        let stored = |checkpoint: &str, metadata: &str| {
            let text = json!({"id": "1", "checkpoint": checkpoint, "metadata": metadata, "channels": ["a", "b"]});
            StoredCheckpoint::values(&text.to_string())
        };
        let checkpoint = r#"json:{"v":4,"channel_versions":{"a":"1.x","b":2}}"#;
        assert_eq!(
            stored(checkpoint, "json:{}"),
            Some(vec![
                r#"["value","a","1.x"]"#.to_owned(),
                r#"["value","b",2]"#.to_owned()
            ])
        );
        assert_eq!(stored("bytes:AAAA", "json:{}"), None);
        assert_eq!(
            stored(
                checkpoint,
                r#"json:{"counters_since_delta_snapshot":{"a":[1,2]}}"#
            ),
            None
        );
        assert_eq!(StoredCheckpoint::values("hello"), None);
    }
}
