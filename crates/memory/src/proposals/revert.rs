//! Reverts what a proposal wrote, in one transaction. A text that was changed since then is
//! kept, and the change reports that.

use super::apply::{block_of, current_version};
use super::rows::{StoredProposal, get, update};
use super::{ChangeAction, ChangeStatus, DecidedBy, MemoryChange, ProposalOrigin};
use crate::Memory;
use crate::content::{self, Version};
use crate::definition::Definition;
use crate::entries;
use crate::entry_rows;
use crate::entry_text::EntryText;
use crate::origin::{Marks, MarksChange};
use crate::write::{NewContent, Placement, write_in_object};
use crate::writer::MemoryWriter;
use base::database::atomically;
use base::error::{Code, Error, Result};
use base::ids::Id;

/// The reason that the reverted versions of a profile record.
const REVERT_REASON: &str = "Reverted by `revertProposal`.";

const WRITTEN_SINCE: &str = "The text has changed since then, so it was not reverted.";
const NOT_STORED: &str = "The version before it is no longer stored.";
const BLOCK_DELETED: &str = "Its block no longer exists.";

/// Reverts all applied changes of a proposal.
pub fn revert(memory: &Memory<'_>, id: &str) -> Result<StoredProposal> {
    atomically(memory.db, || {
        let mut proposal = get(memory.db, id)?;
        let origin = proposal.origin()?;
        let is_applied = |change: &MemoryChange| change.status == ChangeStatus::Applied;
        if !proposal.changes.iter().any(is_applied) {
            return Err(Error::invalid(
                "id",
                "Nothing of this proposal was applied, so there is nothing to revert.",
            ));
        }
        // The last change first, because a change may depend on those before it.
        for change in proposal.changes.iter_mut().rev() {
            if !is_applied(change) {
                continue;
            }
            match revert_change(memory, &origin, change)? {
                None => {
                    change.status = ChangeStatus::Reverted;
                    change.reason = None;
                }
                Some(reason) => change.reason = Some(reason.to_owned()),
            }
        }
        proposal.note.decided_at = Some(memory.host.now_ms());
        proposal.note.decided_by = Some(DecidedBy::Operator);
        update(memory.db, &proposal)?;
        proposal.notify(memory)?;
        Ok(proposal)
    })
}

/// Reverts one change, or returns why that is impossible.
fn revert_change(
    memory: &Memory<'_>,
    origin: &ProposalOrigin,
    change: &MemoryChange,
) -> Result<Option<&'static str>> {
    let session_id = origin.session_id.as_ref();
    let block = match block_of(memory, origin.block_scope(), &change.label) {
        Ok(block) => block,
        Err(error) if error.code == Code::BlockNotFound => return Ok(Some(BLOCK_DELETED)),
        Err(error) => return Err(error),
    };
    let wrote = match change.action {
        ChangeAction::Forget => 0,
        _ => change.version.unwrap_or(0),
    };
    if change.outdated || current_version(memory, origin, change)? != wrote {
        return Ok(Some(WRITTEN_SINCE));
    }
    let db = memory.db;
    let Some(key) = change.key.as_deref() else {
        let before = match change.made_for {
            0 => block.default_content().to_owned(),
            version => match content::find_version(db, &block, version)? {
                Some(before) => before.content,
                None => return Ok(Some(NOT_STORED)),
            },
        };
        let text = NewContent {
            content: &before,
            placement: Placement::Whole,
            expected_version: None,
            reason: Some(REVERT_REASON),
            writer: MemoryWriter::of_operation(session_id),
        };
        write_in_object(memory, &block, &text)?;
        return Ok(None);
    };
    if change.made_for == 0 {
        let writer = MemoryWriter::of_operation(session_id);
        entries::delete_here(memory, &block, key, writer)?;
        return Ok(None);
    }
    match entry_rows::find_version(db, &block, key, change.made_for)? {
        Some(before) if !before.deleted => {
            put_back(memory, &block, key, before, session_id)?;
            Ok(None)
        }
        Some(_) | None => Ok(Some(NOT_STORED)),
    }
}

/// Writes an earlier version of an entry again, with everything attached to it.
fn put_back(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
    before: Version,
    session_id: Option<&Id>,
) -> Result<()> {
    let mut supersedes = Vec::new();
    for replaced in before.validity.supersedes {
        // The entries that the version replaced may have been deleted.
        if entry_rows::find_entry(memory.db, block, &replaced)?.is_some() {
            supersedes.push(replaced);
        }
    }
    let events: Vec<Id> = before
        .events
        .into_iter()
        .filter_map(|id| Id::parse(id).ok())
        .collect();
    let text = EntryText {
        key,
        title: before.title.as_deref(),
        content: &before.content,
        valid_from: before.validity.valid_from,
        valid_until: before.validity.valid_until,
        supersedes: Some(&supersedes),
        marks: MarksChange::to(Marks {
            metadata: before.metadata,
            tags: before.tags,
        }),
    };
    let writer = MemoryWriter {
        source: before.source,
        events: &events,
        is_proposed: true,
        is_narrowed: before.is_narrowed,
        ..MemoryWriter::of_operation(session_id)
    };
    entries::write_here(memory, block, &text, writer)?;
    Ok(())
}
