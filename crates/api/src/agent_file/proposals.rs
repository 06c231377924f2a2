//! Exports and imports proposals as lines. An imported proposal grants nothing: pending
//! changes still need a decision, and applied changes are in the lines of the entries.

use serde::{Deserialize, Serialize};

use super::lines::AgentLineKind;
use base::database::Database;
use base::error::{Error, Result};
use base::json::{self, Count};
use lifecycle::transfer::add_rows;
use lifecycle::transfer::lines::{count, render};
use memory::entry_text::check_entry;
use memory::proposals::rows::{StoredProposal, load_after, restore};
use memory::proposals::{MAX_CHANGES, MemoryChange, ProposalKind, ProposalNote};

/// Proposals per statement, of at most 64 KiB each.
const PROPOSALS_BATCH: i64 = 8;

/// The most proposals of a file: an export writes no more.
pub const MAX_PROPOSALS: usize = 2_000;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ProposalLine {
    #[serde(rename = "type")]
    kind: AgentLineKind,
    number: Count,
    session_id: String,
    of: ProposalKind,
    label: String,
    note: ProposalNote,
    changes: Vec<MemoryChange>,
}

/// Adds proposals. Returns the number to continue after, or `None` after the last proposal.
pub fn add_proposals(db: &dyn Database, after: i64, page: &mut String) -> Result<Option<i64>> {
    let proposals = load_after(db, after, PROPOSALS_BATCH)?;
    add_rows(proposals, PROPOSALS_BATCH, page, |proposal, page| {
        page.push_str(&render(&ProposalLine {
            kind: AgentLineKind::Proposal,
            number: count(proposal.number),
            session_id: proposal.session_id,
            of: proposal.kind,
            label: proposal.label,
            note: proposal.note,
            changes: proposal.changes,
        })?);
        Ok(proposal.number)
    })
}

/// Writes the proposal of a line. Must run in a transaction.
pub fn write_proposal(db: &dyn Database, line: &[u8]) -> Result<()> {
    let line: ProposalLine = json::parse(line)?;
    if line.changes.len() > MAX_CHANGES {
        let message = format!("`changes` must have at most {MAX_CHANGES} changes.");
        return Err(Error::invalid("changes", message));
    }
    for change in &line.changes {
        let content = change.content.as_deref().unwrap_or_default();
        let key = change.key.as_deref().unwrap_or("-");
        check_entry(key, change.title.as_deref(), content)?;
    }
    restore(
        db,
        &StoredProposal {
            number: line.number.0,
            session_id: line.session_id,
            kind: line.of,
            label: line.label,
            note: line.note,
            changes: line.changes,
        },
    )
}
