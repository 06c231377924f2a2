//! Context memory: labelled blocks that become the system prompt. A definition
//! describes each block. The block's content lives in one of four homes: this
//! object, the bucket, another agent or a service. Code that reads or writes a
//! block need not know its home.
//!
//! Two rules hold. When a home is unavailable, the prompt lacks that block's content, but
//! the prompt is still made. A text that a model or a stranger writes into a block stays
//! inside that block's section of the prompt.

pub mod block;
pub mod budget;
pub mod content;
pub mod copy;
pub mod counts;
pub mod definition;
pub mod definitions;
pub mod deployed;
pub mod entries;
pub mod entry;
pub mod entry_matches;
pub mod entry_number;
pub mod entry_search;
pub mod entry_text;
pub mod frozen;
pub mod homes;
pub mod kind;
pub mod label;
pub mod log_copies;
pub mod number_range;
pub mod numbered_entries;
pub mod origin;
pub mod past;
pub mod prompt;
pub mod proposals;
pub mod purge;
pub mod replacing;
pub mod skills;
pub mod source;
pub mod template;
pub mod told;
pub mod validity;
pub mod view;
pub mod write;

use crate::access::Caller;
use crate::base::database::Database;
use crate::base::error::{Error, Result};
use crate::base::host::Host;
use crate::base::ids::Id;
use crate::base::outbound::Outbound;
use crate::log::sessions::session_exists;
use crate::memory::deployed::DeployedMemory;
use crate::memory::origin::Origin;
use crate::store::callbacks::NewCallbacks;

/// An agent's memory, and the parts that are needed to reach every home.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    /// The agent's name.
    pub agent: &'a str,
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub outbound: &'a dyn Outbound,
    pub deployed: &'a DeployedMemory,
    /// Notes that a change has written a call (`onMemoryChange`).
    pub new_callbacks: &'a NewCallbacks,
    /// The agents that this request came through, in order. Each has a block that
    /// the next agent keeps.
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

/// The writer to the memory, with its session and turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryWriter<'a> {
    /// Whether a model writes, through a tool.
    pub is_tool: bool,
    /// The session in which the write happens.
    pub session_id: Option<&'a Id>,
    pub turn_id: Option<&'a str>,
    /// The first event of the answer in which a model writes.
    pub event_id: Option<&'a str>,
    /// Whether a caller with a minted token writes.
    pub is_scoped: bool,
    /// Who the text comes from, where the writer says so.
    pub source: Option<Origin>,
    /// The events that the text comes from, where the writer says so.
    pub events: &'a [Id],
    /// Whether it writes because it was told of a change: a callback starts no callback.
    pub tells_nobody: bool,
}

impl<'a> MemoryWriter<'a> {
    /// A caller of an operation on a block of this session, or of the agent.
    pub fn of_operation(session_id: Option<&'a Id>) -> Self {
        Self {
            session_id,
            ..Self::default()
        }
    }

    /// As [`Self::of_operation`], for a write that says who the text comes from.
    pub fn of_caller(caller: &Caller, session_id: Option<&'a Id>) -> Self {
        Self {
            is_scoped: *caller != Caller::Owner,
            ..Self::of_operation(session_id)
        }
    }

    /// The fields of a request to another home that say where the text comes from. Of the
    /// operator's own text, there are none.
    pub fn fields(&self) -> Vec<(&'static str, serde_json::Value)> {
        let mut fields = Vec::new();
        if self.origin() != Origin::Operator {
            fields.push(("source", self.origin().name().into()));
        }
        let events: Vec<&str> = match (self.events, self.event_id) {
            ([], answer) => answer.into_iter().collect(),
            (events, _) => events.iter().map(Id::as_str).collect(),
        };
        if !events.is_empty() {
            fields.push(("events", events.into()));
        }
        fields
    }

    /// Who the text comes from.
    pub fn origin(&self) -> Origin {
        match (self.source, self.is_tool, self.is_scoped) {
            (Some(source), ..) => source,
            (None, true, _) => Origin::Agent,
            (None, false, true) => Origin::User,
            (None, false, false) => Origin::Operator,
        }
    }
}
