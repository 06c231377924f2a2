//! Applies one change to memory. Must run in the transaction that stores the change's
//! outcome.

use super::{ChangeAction, ChangeStatus, CurrentText, MemoryChange, ProposalOrigin, ProposalScope};
use crate::block::newest_of;
use crate::definition::Definition;
use crate::definitions::get_definition;
use crate::entries::{self, check_searchable, is_stored_here};
use crate::entry_text::EntryText;
use crate::label::Label;
use crate::numbered_entries::find_with_version;
use crate::origin::Origin;
use crate::write::{NewContent, Placement, write_in_object};
use crate::writer::MemoryWriter;
use crate::{BlockScope, Memory};
use base::error::{Code, Error, Result};
use base::ids::Id;

/// The reason that is stored with the versions of a profile.
const WRITE_REASON: &str = "Rewritten by `consolidate`.";

/// The block that a change is about. Its content must be stored in this object, so that the
/// change and its record are written in one transaction.
pub fn block_of(memory: &Memory<'_>, scope: BlockScope<'_>, label: &str) -> Result<Definition> {
    let label = Label::parse(label)
        .map_err(|problem| Error::invalid("label", format!("`label` {problem}.")))?;
    let block = get_definition(memory, scope, &label)?;
    if !is_stored_here(&block) {
        return Err(Error::invalid(
            "label",
            format!(
                "Block `{label}` is stored elsewhere. Learning requires a block that is stored in \
                 this agent."
            ),
        ));
    }
    Ok(block)
}

/// The block of entries that facts go to.
pub fn entries_of(memory: &Memory<'_>, scope: BlockScope<'_>, label: &str) -> Result<Definition> {
    let block = block_of(memory, scope, label)?;
    check_searchable(&block)?;
    Ok(block)
}

/// The current text that a change is about. `None`: there is none.
pub fn find_current(
    memory: &Memory<'_>,
    origin: &ProposalOrigin,
    change: &MemoryChange,
) -> Result<Option<CurrentText>> {
    let block = match block_of(memory, origin.block_scope(), &change.label) {
        Ok(block) => block,
        // The block was removed since.
        Err(error) if error.code == Code::BlockNotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let Some(key) = &change.key else {
        let newest = newest_of(memory, &block)?;
        return Ok(Some(CurrentText {
            version: newest.version,
            title: None,
            content: newest.content,
        }));
    };
    let found = find_with_version(memory.db, &block, key)?;
    Ok(found.map(|(entry, version)| CurrentText {
        version,
        title: entry.title,
        content: entry.content,
    }))
}

/// The current version. 0: there is none.
pub fn current_version(
    memory: &Memory<'_>,
    origin: &ProposalOrigin,
    change: &MemoryChange,
) -> Result<i64> {
    Ok(find_current(memory, origin, change)?.map_or(0, |current| current.version))
}

/// Applies a change, and stores the version that it wrote.
pub fn apply(
    memory: &Memory<'_>,
    origin: &ProposalOrigin,
    change: &mut MemoryChange,
) -> Result<()> {
    let version = current_version(memory, origin, change)?;
    if change.outdated || version != change.made_for {
        return Err(written_since(change, version));
    }
    let block = block_of(memory, origin.block_scope(), &change.label)?;
    let events = ids_of(change)?;
    let writer = MemoryWriter {
        session_id: origin.session_id.as_ref(),
        // An approval with a different text is attributed to the approver.
        is_narrowed: origin.scope == ProposalScope::Narrowed && change.source != Origin::Operator,
        source: Some(change.source),
        events: &events,
        is_proposed: true,
        ..MemoryWriter::default()
    };
    let content = change.content.as_deref().unwrap_or_default();
    let key = change.key.as_deref().unwrap_or_default();
    match change.action {
        ChangeAction::Add | ChangeAction::Replace => {
            let supersedes = Some(change.supersedes.as_slice()).filter(|keys| !keys.is_empty());
            let text = EntryText {
                supersedes,
                ..EntryText::valid_from_now(key, change.title.as_deref(), content)
            };
            entries::write_here(memory, &block, &text, writer)?;
        }
        ChangeAction::Retire => retire(memory, &block, key, writer)?,
        ChangeAction::Forget => {
            entries::delete_here(memory, &block, key, writer)?;
        }
        ChangeAction::Write => {
            let text = NewContent {
                content,
                placement: Placement::Whole,
                expected_version: None,
                reason: Some(WRITE_REASON),
                writer,
            };
            write_in_object(memory, &block, &text)?;
        }
    }
    change.version = Some(match change.action {
        ChangeAction::Forget => change.made_for + 1,
        _ => current_version(memory, origin, change)?,
    });
    change.status = ChangeStatus::Applied;
    change.reason = None;
    Ok(())
}

/// Ends the validity of an entry.
fn retire(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
    writer: MemoryWriter<'_>,
) -> Result<()> {
    let Some((entry, _)) = find_with_version(memory.db, block, key)? else {
        return Ok(());
    };
    // A fact whose validity has not started yet ends when it starts.
    let begins = entry.validity.valid_from.map_or(0, |from| from + 1);
    let text = EntryText {
        valid_from: entry.validity.valid_from,
        valid_until: Some(memory.host.now_ms().max(begins)),
        ..EntryText::valid_from_now(key, entry.title.as_deref(), &entry.content)
    };
    entries::write_here(memory, block, &text, writer)?;
    Ok(())
}

/// The events that a change comes from.
fn ids_of(change: &MemoryChange) -> Result<Vec<Id>> {
    let ids = change.events.iter().map(|event| event.id.clone());
    ids.map(|id| Id::parse(id).map_err(Error::storage))
        .collect()
}

fn written_since(change: &MemoryChange, version: i64) -> Error {
    let what = match &change.key {
        Some(key) => format!("`{key}` of block `{}`", change.label),
        None => format!("Block `{}`", change.label),
    };
    let error = Error::new(
        Code::VersionConflict,
        format!(
            "{what} has changed since this was proposed. Reject the change, or omit it from \
             `changes`."
        ),
    );
    error
        .with("label", change.label.as_str())
        .with("expectedVersion", change.made_for)
        .with("version", version)
}
