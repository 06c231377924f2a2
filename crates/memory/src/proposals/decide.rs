//! Approves or rejects the pending changes of a proposal: all selected ones, or none.

use super::apply::apply;
use super::rows::{StoredProposal, get, update};
use super::{ChangeAction, ChangeStatus, DecidedBy, MemoryChange, ProposalKind, ProposalScope};
use crate::Memory;
use crate::budget::check_content;
use crate::entry_text::check_entry;
use crate::origin::Origin;
use base::database::atomically;
use base::error::{Error, Result};
use store::config::load_config;
use store::consolidation::ask_when_idle;
use store::learn_settings::LearnSettings;

/// The decision of a caller about a proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Approve,
    Reject,
}

/// A selected change, and optionally a different text for it.
pub struct ChosenChange {
    pub index: i64,
    pub title: Option<String>,
    pub content: Option<String>,
}

/// Decides on these changes, or on all pending ones, in one transaction. `editor`: the
/// origin of a different text.
pub fn decide(
    memory: &Memory<'_>,
    id: &str,
    decision: Decision,
    chosen: Option<&[ChosenChange]>,
    editor: Origin,
) -> Result<StoredProposal> {
    atomically(memory.db, || {
        let mut proposal = get(memory.db, id)?;
        let origin = proposal.origin()?;
        let indexes = find_indexes(&proposal, chosen)?;
        for index in indexes {
            let Some(change) = proposal.changes.get_mut(index) else {
                continue;
            };
            let edit = chosen
                .into_iter()
                .flatten()
                .find(|chosen| chosen.index == change.index);
            match decision {
                Decision::Reject => {
                    change.status = ChangeStatus::Rejected;
                    change.reason = None;
                }
                Decision::Approve => {
                    if let Some(edit) = edit {
                        edit_change(change, edit, editor)?;
                    }
                    apply(memory, &origin, change)
                        .map_err(|error| error.with("index", change.index))?;
                }
            }
        }
        proposal.note.decided_at = Some(memory.host.now_ms());
        proposal.note.decided_by = Some(DecidedBy::Operator);
        update(memory.db, &proposal)?;
        proposal.notify(memory)?;
        let is_agents = proposal.note.scope != ProposalScope::Session;
        if decision == Decision::Approve && proposal.kind == ProposalKind::Learn && is_agents {
            let config = load_config(memory.db, &memory.deployed.config)?;
            let now_ms = memory.host.now_ms();
            // Only the block that learning writes to is consolidated automatically.
            let is_into = |learn: &&LearnSettings| learn.is_into(&proposal.label);
            if let Some(learn) = config.learn.as_ref().filter(is_into)
                && ask_when_idle(memory.db, learn, now_ms)?
            {
                memory.new_callbacks.mark();
            }
        }
        Ok(proposal)
    })
}

/// The indexes of the selected changes. An error: one of them is not pending.
fn find_indexes(proposal: &StoredProposal, chosen: Option<&[ChosenChange]>) -> Result<Vec<usize>> {
    let waits = |change: &MemoryChange| change.status == ChangeStatus::Pending;
    let changes = proposal.changes.iter().enumerate();
    let Some(chosen) = chosen else {
        let indexes: Vec<usize> = changes
            .filter(|(_, change)| waits(change))
            .map(|(index, _)| index)
            .collect();
        return if indexes.is_empty() {
            Err(Error::invalid(
                "id",
                "No change of this proposal is pending. To revert the applied changes, use \
             `revertProposal`.",
            ))
        } else {
            Ok(indexes)
        };
    };
    let mut indexes = Vec::new();
    for (at, one) in chosen.iter().enumerate() {
        let found = changes
            .clone()
            .find(|(_, change)| change.index == one.index && waits(change));
        let Some((index, _)) = found.filter(|(index, _)| !indexes.contains(index)) else {
            let field = format!("changes[{at}].index");
            let message =
                format!("`{field}` must name a pending change that is not already in the list.");
            return Err(Error::invalid(&field, message));
        };
        indexes.push(index);
    }
    Ok(indexes)
}

/// Replaces a change's text with the caller's: its source is then the caller.
fn edit_change(change: &mut MemoryChange, edit: &ChosenChange, editor: Origin) -> Result<()> {
    if edit.title.is_none() && edit.content.is_none() {
        return Ok(());
    }
    match change.action {
        ChangeAction::Add | ChangeAction::Replace => {}
        ChangeAction::Write if edit.title.is_none() => {}
        ChangeAction::Write | ChangeAction::Retire | ChangeAction::Forget => {
            let message = "You can approve only a change that writes a text with a different text.";
            return Err(Error::invalid("changes", message));
        }
    }
    if let Some(title) = &edit.title {
        change.title = Some(title.clone()).filter(|title| !title.is_empty());
    }
    if let Some(content) = &edit.content {
        change.content = Some(content.clone());
    }
    let content = change.content.as_deref().unwrap_or_default();
    match &change.key {
        Some(key) => check_entry(key, change.title.as_deref(), content)?,
        None => check_content("content", content)?,
    }
    change.source = editor;
    Ok(())
}
