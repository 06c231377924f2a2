//! Purges what proposals contain of a purged entry, block or event. A proposal keeps its other
//! changes; one without other changes is deleted.

use std::collections::BTreeSet;

use super::rows::{StoredProposal, delete, update};
use super::{ChangeStatus, MemoryChange};
use crate::tables::PROPOSALS;
use base::columns::{find, load_values};
use base::database::SqlValue;
use base::error::Result;
use base::ids::Id;
use base::json;
use store::erasing::{ErasingDatabase, Overwrite};

const TABLE: &str = "cf_agents_proposals";

/// Erases what proposals contain of an entry of the block with this label in lower case. `scope`:
/// the column's value for the block's owner. Without `key`: of the whole block. Part of a
/// transaction.
pub fn erase_of_block(
    db: &ErasingDatabase<'_>,
    scope: &str,
    label: &str,
    key: Option<&str>,
) -> Result<()> {
    let is_eligible = |proposal: &StoredProposal, change: &MemoryChange| {
        let is_key = |wanted: &str| {
            change.key.as_deref() == Some(wanted)
                || change.supersedes.iter().any(|other| other == wanted)
        };
        proposal.is_of(scope) && change.label.to_lowercase() == label && key.is_none_or(is_key)
    };
    let condition = "(?1 IS NULL
                      OR EXISTS (SELECT 1
                                   FROM json_each(changes) AS change
                                  WHERE change.value ->> '$.key' = ?1
                                     OR EXISTS (SELECT 1
                                                  FROM json_each(change.value, '$.supersedes') AS other
                                                 WHERE other.value = ?1)))";
    erase_where(db, condition, &[key.into()], &is_eligible)
}

/// Erases what proposals contain that comes from these events of a session. Part of a transaction.
pub fn erase_of_events(
    db: &ErasingDatabase<'_>,
    session_id: &Id,
    seqs: &BTreeSet<i64>,
) -> Result<()> {
    let is_eligible = |_: &StoredProposal, change: &MemoryChange| {
        let mut events = change.events.iter();
        events.any(|event| event.session_id == session_id.as_str() && seqs.contains(&event.seq))
    };
    let condition = "EXISTS (SELECT 1
                               FROM json_each(changes) AS change,
                                    json_each(change.value, '$.events') AS event
                              WHERE event.value ->> '$.sessionId' = ?1
                                AND event.value ->> '$.seq' IN (SELECT value FROM json_each(?2)))";
    let params = [
        session_id.as_str().into(),
        SqlValue::Text(json::encode(seqs)?),
    ];
    erase_where(db, condition, &params, &is_eligible)
}

/// One proposal at a time, because all together may be long. There are 1,500 at most.
fn erase_where(
    db: &ErasingDatabase<'_>,
    condition: &str,
    params: &[SqlValue],
    is_eligible: &dyn Fn(&StoredProposal, &MemoryChange) -> bool,
) -> Result<()> {
    let sql = format!("SELECT number FROM {TABLE} WHERE {condition} ORDER BY number");
    let numbers: Vec<i64> = load_values(db, &sql, params)?;
    for number in numbers {
        let sql = format!(
            "SELECT {}
               FROM {TABLE}
              WHERE number = ?1",
            StoredProposal::COLUMNS
        );
        let Some(mut proposal): Option<StoredProposal> = find(db, &sql, &[number.into()])? else {
            continue;
        };
        let mut is_changed = false;
        let mut changes = std::mem::take(&mut proposal.changes);
        for change in &mut changes {
            if is_eligible(&proposal, change) {
                blank(change);
                is_changed = true;
            }
        }
        proposal.changes = changes;
        let is_empty = |change: &MemoryChange| change.status == ChangeStatus::Erased;
        if proposal.changes.iter().all(is_empty) {
            delete(db, number)?;
        } else if is_changed {
            db.count(|erased| erased.proposals += 1);
            db.overwrite(&Overwrite {
                table: PROPOSALS,
                columns: &["changes"],
                condition: "number = ?1",
                params: &[number.into()],
            })?;
            update(db, &proposal)?;
        }
    }
    Ok(())
}

fn blank(change: &mut MemoryChange) {
    change.key = None;
    change.title = None;
    change.content = None;
    change.supersedes.clear();
    change.events.clear();
    change.reason = None;
    change.status = ChangeStatus::Erased;
}
