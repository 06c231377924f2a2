//! The record of a deleted entry is eventually deleted, with its version numbers: a later entry with
//! the key begins at 1 again. Changes that refer to an earlier number were made for other texts, so they
//! are marked.

use super::rows::{get, update};
use super::{ChangeStatus, MemoryChange};
use crate::tables::PROPOSALS;
use base::columns::load_values;
use base::database::{Database, SqlValue};
use base::error::Result;
use base::json;
use store::erasing::Overwrite;

/// Marks changes of these entries. `items`: an entry's key, and the highest version that is outdated.
/// `label`: the block's label in lower case. `scope`: the column's value for the block's owner. Must run
/// in a transaction.
pub fn outdate(db: &dyn Database, scope: &str, label: &str, items: &[(&str, i64)]) -> Result<()> {
    let sql = "SELECT number
                 FROM cf_agents_proposals
                WHERE EXISTS (SELECT 1
                                FROM json_each(changes) AS change
                               WHERE change.value ->> '$.key' IN (SELECT value FROM json_each(?1)))
                ORDER BY number";
    let keys: Vec<&str> = items.iter().map(|(key, _)| *key).collect();
    let keys = SqlValue::Text(json::encode(&keys)?);
    let numbers: Vec<i64> = load_values(db, sql, &[keys])?;
    let is_eligible = |change: &MemoryChange| {
        change.label.to_lowercase() == label
            && items.iter().any(|(key, version)| {
                change.key.as_deref() == Some(key) && names_up_to(change, *version)
            })
    };
    // One proposal at a time, because all together may be long.
    for number in numbers {
        let mut proposal = get(db, &number.to_string())?;
        if !proposal.is_of(scope) {
            continue;
        }
        let changes = proposal.changes.iter_mut();
        let eligible: Vec<&mut MemoryChange> =
            changes.filter(|change| is_eligible(change)).collect();
        if eligible.is_empty() {
            continue;
        }
        for change in eligible {
            change.outdated = true;
        }
        // Retention, too, overwrites a text before it replaces it.
        let texts = Overwrite {
            table: PROPOSALS,
            columns: &["changes"],
            condition: "number = ?1",
            params: &[number.into()],
        };
        texts.run(db)?;
        update(db, &proposal)?;
    }
    Ok(())
}

/// Whether the change could still be applied or reverted, and refers to a version up to this one. A
/// change for a new entry refers to none.
fn names_up_to(change: &MemoryChange, version: i64) -> bool {
    let wrote = change.version.unwrap_or(0);
    match change.status {
        ChangeStatus::Pending => (1..=version).contains(&change.made_for),
        ChangeStatus::Applied => (1..=version).contains(&wrote),
        ChangeStatus::Rejected | ChangeStatus::Reverted | ChangeStatus::Erased => false,
    }
}
