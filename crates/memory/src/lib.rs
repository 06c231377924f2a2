//! Context memory: labeled blocks that become the system prompt. A definition describes each block.
//! The block's content is stored in one of four backends: this object, the bucket, another agent or
//! a service. Code that reads or writes a block does not depend on its backend.
//!
//! Two invariants: if a backend is unavailable, the prompt lacks that block's content but is still
//! built. A text that a model or an untrusted person writes into a block stays inside that block's
//! section of the prompt.

pub mod ages;
pub mod backends;
pub mod block;
pub mod budget;
pub mod change_events;
pub mod checks;
pub mod content;
pub mod copy;
pub mod counts;
pub mod definition;
pub mod definitions;
pub mod deployed;
pub mod entries;
pub mod entry;
pub mod entry_index;
pub mod entry_matches;
pub mod entry_number;
pub mod entry_pages;
mod entry_prefixes;
pub mod entry_query;
pub mod entry_rows;
pub mod entry_search;
pub mod entry_text;
pub mod entry_vectors;
pub mod erase_text;
pub mod found_entry;
pub mod frozen;
pub mod item_note;
pub mod json_schema;
pub mod kind;
pub mod label;
pub mod log_answers;
pub mod log_copies;
pub mod number_range;
pub mod numbered_entries;
pub mod origin;
pub mod past;
pub mod past_search;
pub mod pending_vectors;
pub mod prompt;
pub mod proposals;
pub mod purge;
pub mod remote_entry_search;
pub mod replacing;
pub mod skills;
pub mod source;
pub mod tables;
pub mod template;
pub mod validity;
pub mod view;
pub mod whole_rows;
pub mod write;
pub mod writer;

use crate::deployed::DeployedMemory;
use crate::pending_vectors::PendingVectors;
use base::database::Database;
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::outbound::Outbound;
use conversation::log::sessions::session_exists;
use store::callbacks::NewCallbacks;
use store::clearing::PageClearing;
use store::limits::PrincipalLimits;

/// An agent's memory, and what is needed to reach every backend.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    /// The agent's name.
    pub agent: &'a str,
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub outbound: &'a dyn Outbound,
    pub deployed: &'a DeployedMemory,
    /// Records that a change has written a callback (`onMemoryChange`).
    pub new_callbacks: &'a NewCallbacks,
    /// Records the entries that were written.
    pub pending_vectors: &'a PendingVectors,
    /// The purges during this activation of the object.
    pub pages: &'a PageClearing,
    /// The limits of the principal that pays for the current model requests.
    pub payer: Option<&'a PrincipalLimits>,
    /// The session whose model calls a tool. It is passed only to a class's own functions.
    pub asking: Option<&'a Id>,
    /// The agents that this request came through, in order. Each has a block that is stored
    /// by the next agent.
    pub via: &'a [String],
}

/// The owner of a block: the agent or one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockScope<'a> {
    Agent,
    Session(&'a Id),
}

impl<'a> BlockScope<'a> {
    /// The scope of this session, which must exist. `None`: the agent's scope.
    pub fn get(db: &dyn Database, session_id: Option<&'a Id>) -> Result<Self> {
        match session_id {
            None => Ok(BlockScope::Agent),
            Some(id) if session_exists(db, id)? => Ok(BlockScope::Session(id)),
            Some(id) => Err(Error::session_not_found(id.as_str())),
        }
    }

    /// The scope as rows store it.
    pub fn column(self) -> &'a str {
        match self {
            BlockScope::Agent => "",
            BlockScope::Session(id) => id.as_str(),
        }
    }
}
