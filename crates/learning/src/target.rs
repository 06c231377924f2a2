//! Where the facts of a learning pass are written, and which entries the pass may see. Both
//! depend on the authority of the caller who wrote the messages.
//!
//! Invariant: what is learned from a caller's messages is written only where that caller
//! could write by an operation, and reveals nothing that the caller could not read. Facts
//! from a caller narrowed to a session go to that session's own block, or need review. In
//! the agent's block, they change, and their model sees, only what the same session
//! contributed.

use access::Authority;
use base::error::{Code, Error, Result};
use base::ids::Id;
use memory::BlockScope;
use memory::Memory;
use memory::definition::Definition;
use memory::definitions::find_definition;
use memory::entries::is_stored_here;
use memory::entry::Entry;
use memory::kind::BlockKind;
use memory::label::Label;
use memory::numbered_entries::{find_of_session, find_with_version};
use memory::proposals::apply::entries_of;
use memory::proposals::{ProposalOrigin, ProposalScope};
use store::config::{Config, load_config};
use store::learn_settings::LearnSettings;

/// The agent's learning settings. An error: the agent does not learn.
pub fn get_settings(memory: &Memory<'_>) -> Result<(Config, LearnSettings)> {
    let config = load_config(memory.db, &memory.deployed.config)?;
    match config.learn.clone() {
        Some(settings) => Ok((config, settings)),
        None => Err(learns_nothing()),
    }
}

/// The block that learning writes to.
pub fn into_block(memory: &Memory<'_>, settings: &LearnSettings) -> Result<Definition> {
    let into = settings.into.as_ref().ok_or_else(learns_nothing)?;
    entries_of(memory, BlockScope::Agent, into.as_str())
}

fn learns_nothing() -> Error {
    Error::new(
        Code::NotConfigured,
        "This agent does not learn. Set `learn` with `configureAgent`: at least `{\"into\": \"facts\"}`, the label of a searchable block.",
    )
    .with("binding", "learn")
}

/// The block that the facts of a pass go to.
#[derive(Clone, Debug)]
pub struct PassTarget {
    pub block: Definition,
    pub origin: ProposalOrigin,
}

impl PassTarget {
    pub fn find(
        memory: &Memory<'_>,
        settings: &LearnSettings,
        session_id: &Id,
        authority: &Authority,
    ) -> Result<Self> {
        let origin_of = |scope| ProposalOrigin {
            session_id: Some(session_id.clone()),
            scope,
        };
        if authority.memory_scope.writes_agent() {
            return Ok(Self {
                block: into_block(memory, settings)?,
                origin: origin_of(ProposalScope::Agent),
            });
        }
        if let Some(block) = find_own(memory, settings, session_id)? {
            return Ok(Self {
                block,
                origin: origin_of(ProposalScope::Session),
            });
        }
        Ok(Self {
            block: into_block(memory, settings)?,
            origin: origin_of(ProposalScope::Narrowed),
        })
    }

    /// Whether every change needs review, because the caller may not write the block.
    pub fn is_narrowed(&self) -> bool {
        self.origin.scope == ProposalScope::Narrowed
    }

    /// The entry of this key and its version, if the pass may see it.
    pub fn find_entry(&self, memory: &Memory<'_>, key: &str) -> Result<Option<(Entry, i64)>> {
        match (&self.origin.session_id, self.is_narrowed()) {
            (Some(id), true) => find_of_session(memory.db, &self.block, key, id),
            _ => find_with_version(memory.db, &self.block, key),
        }
    }
}

/// The session's own block of facts.
fn find_own(
    memory: &Memory<'_>,
    settings: &LearnSettings,
    session_id: &Id,
) -> Result<Option<Definition>> {
    let into = settings.into.as_ref().map(Id::as_str);
    let Some(label) = into.and_then(|into| Label::parse(into).ok()) else {
        return Ok(None);
    };
    let own = find_definition(memory, BlockScope::Session(session_id), &label)?;
    Ok(own.filter(|block| block.kind == BlockKind::Searchable && is_stored_here(block)))
}
