//! The counts of a receipt.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use base::json::is_zero;

/// The number of erased items of each kind. Counts, never content.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Erased {
    /// Events of logs.
    pub events: i64,
    /// Summaries that covered erased events, or that the request listed.
    pub summaries: i64,
    /// Media that no other event of its session used.
    pub media: i64,
    pub sessions: i64,
    /// Definitions of blocks.
    pub blocks: i64,
    pub entries: i64,
    /// Documents of loadable blocks.
    pub documents: i64,
    /// Versions of blocks, entries and documents.
    pub versions: i64,
    /// Copies of documents in sessions' contexts and logs.
    pub loaded_documents: i64,
    /// Frozen prompts. The next use renders them again.
    pub prompts: i64,
    pub vectors: i64,
    /// The records of turns outside their events.
    pub turns: i64,
    /// Queued messages and answers.
    pub waiting_messages: i64,
    /// Reports to `onTurnEnd` and `onMemoryChange` that were not delivered.
    pub callbacks: i64,
    /// Proposals that were erased, in whole or in part.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub proposals: i64,
    /// Sessions whose name, metadata and tags were emptied, and blocks whose description and
    /// default text were. They stay.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub descriptions: i64,
    /// Authorizations to use servers of tools, with their tokens.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub authorizations: i64,
}

impl Erased {
    /// The count with this name. `None`: a table names a count that doesn't exist.
    pub fn count_of(&mut self, name: &str) -> Option<&mut i64> {
        Some(match name {
            "events" => &mut self.events,
            "summaries" => &mut self.summaries,
            "media" => &mut self.media,
            "sessions" => &mut self.sessions,
            "blocks" => &mut self.blocks,
            "entries" => &mut self.entries,
            "documents" => &mut self.documents,
            "versions" => &mut self.versions,
            "loadedDocuments" => &mut self.loaded_documents,
            "prompts" => &mut self.prompts,
            "vectors" => &mut self.vectors,
            "turns" => &mut self.turns,
            "waitingMessages" => &mut self.waiting_messages,
            "callbacks" => &mut self.callbacks,
            "proposals" => &mut self.proposals,
            _ => return None,
        })
    }
}

impl Erased {
    /// Adds the counts of another purge.
    pub fn join(&mut self, other: &Self) {
        self.events += other.events;
        self.summaries += other.summaries;
        self.media += other.media;
        self.sessions += other.sessions;
        self.blocks += other.blocks;
        self.entries += other.entries;
        self.documents += other.documents;
        self.versions += other.versions;
        self.loaded_documents += other.loaded_documents;
        self.prompts += other.prompts;
        self.vectors += other.vectors;
        self.turns += other.turns;
        self.waiting_messages += other.waiting_messages;
        self.callbacks += other.callbacks;
        self.proposals += other.proposals;
        self.descriptions += other.descriptions;
        self.authorizations += other.authorizations;
    }
}

/// The counts of what a purge erased, and where.
#[derive(Debug, Default)]
pub struct Erasure {
    pub erased: Erased,
    pub left: LeftPages,
}

/// Whether a purge may have left text in pages. They are cleared after the purge's
/// transaction (`store/clearing.rs`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftPages {
    /// Whether the purge wrote anything.
    pub is_written: bool,
    /// Whether the purge erased nothing. It may repeat one whose object was evicted before
    /// it had cleared pages, or follow a deletion that left the text in them.
    pub may_repeat: bool,
}

impl LeftPages {
    /// `false`: this was no purge.
    pub fn needs_clearing(&self) -> bool {
        self.is_written || self.may_repeat
    }
}
