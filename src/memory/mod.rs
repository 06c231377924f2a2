//! Context memory: labelled blocks that become the system prompt. A block is
//! what its definition says; its content lives in one of four homes (this
//! object, the bucket, another agent, a service), and whoever reads or writes
//! it need not know which.
//!
//! The rule it protects: a home that is away costs its block's content in the
//! prompt, never the prompt; and what a model or a stranger writes can't become
//! more of the prompt than its block.

pub mod block;
pub mod budget;
pub mod configured;
pub mod content;
pub mod copy;
pub mod definition;
pub mod definitions;
pub mod entries;
pub mod entry;
pub mod entry_search;
pub mod frozen;
pub mod homes;
pub mod kind;
pub mod label;
pub mod prompt;
pub mod skills;
pub mod source;
pub mod view;
pub mod write;

use crate::base::database::Database;
use crate::base::error::{Error, Result};
use crate::base::host::Host;
use crate::base::ids::Id;
use crate::base::outbound::Outbound;
use crate::log::sessions::session_exists;

/// An agent's memory, and what it takes to reach all of it.
#[derive(Clone, Copy)]
pub struct Memory<'a> {
    /// The agent's name.
    pub agent: &'a str,
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub outbound: &'a dyn Outbound,
    /// The agents that this request came through, the first first: a block of
    /// theirs lives here.
    pub via: &'a [String],
}

/// Whose a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockScope<'a> {
    Agent,
    Session(&'a Id),
}

impl<'a> BlockScope<'a> {
    /// The session's, which must exist; the agent's where none is named.
    pub fn get(db: &dyn Database, session_id: Option<&'a Id>) -> Result<Self> {
        match session_id {
            None => Ok(BlockScope::Agent),
            Some(id) if session_exists(db, id)? => Ok(BlockScope::Session(id)),
            Some(id) => Err(Error::session_not_found(id.as_str())),
        }
    }

    /// As it stands in a row.
    pub fn column(self) -> &'a str {
        match self {
            BlockScope::Agent => "",
            BlockScope::Session(id) => id.as_str(),
        }
    }
}

/// On whose account something is written.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryWriter<'a> {
    /// A model wrote it, through a tool.
    pub is_tool: bool,
    /// In which session.
    pub session_id: Option<&'a Id>,
    pub turn_id: Option<&'a str>,
}
