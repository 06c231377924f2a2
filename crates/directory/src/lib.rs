//! The directory: the list of all agents, for a Worker that binds `DIRECTORY`.
//!
//! An agent registers when its tables are created, and unregisters when it is destroyed. The list
//! is divided into parts, each in its own object: all agents whose names have the same beginning,
//! up to the first colon, are in one part. One more part, the root, has the agents without a colon
//! in their names, and the beginnings of all other parts.
//!
//! If an object dies between an agent and the directory, the list becomes correct again by itself.
//! An unregistered agent has an alarm, and tries again (`membership.rs`). A part that the root does
//! not know has rejected its first agent, which tries again, too (`part.rs`).

mod ask;
pub mod joining;
pub mod json_schema;
pub mod list;
pub mod membership;
pub mod part;

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

/// The name of the root's object. No other part has it.
const ROOT: &str = "parts";

/// The most agents of one page.
pub const MAX_PAGE: usize = 1_000;

/// The longest call to a part, in bytes: two names and a lifetime id.
pub const MAX_CALL_BYTES: usize = 8 << 10;

/// A call to a part of the directory.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase")]
pub enum DirectoryCall {
    /// Registers an agent.
    Join(DirectoryEntry),
    /// Unregisters an agent, unless it was created again since.
    Leave(DirectoryEntry),
    /// The next names with this prefix, in the order of their bytes.
    List {
        prefix: String,
        after: String,
        limit: usize,
    },
}

/// An agent, or in the root a part of the directory.
#[derive(Debug, Serialize, Deserialize)]
pub struct DirectoryEntry {
    name: String,
    /// Differs each time that an agent of this name is created, so that a late call about a
    /// destroyed agent does not affect the next one.
    #[serde(rename = "life")]
    lifetime: String,
}

/// An agent of the list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedAgent {
    pub name: String,
    /// The time when the agent first registered in the directory.
    pub created_at: i64,
}

/// One page of agents, in the order of their names. `more`: whether others follow.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct DirectoryPage {
    agents: Vec<ListedAgent>,
    more: bool,
}

/// The beginning of an agent's name that determines its part: up to and including the first colon.
fn beginning(name: &str) -> Option<&str> {
    let colon = name.find(':')?;
    name.get(..=colon)
}

/// The object that has the names with this beginning.
fn part_of(beginning: Option<&str>) -> String {
    match beginning {
        Some(beginning) => format!("part:{beginning}"),
        None => ROOT.to_owned(),
    }
}
