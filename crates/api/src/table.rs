//! The table of operations: the single list from which dispatch, openapi.json and token
//! scopes are derived.

use std::fmt;

use super::operation::{OperationEntry, at_once, names_one, waiting};
use super::operations::agent::{Destroy, GetConfig};
use super::operations::append_messages::AppendMessages;
use super::operations::backups::{Backup, ListBackups};
use super::operations::bookmarks::{GetBookmark, RestoreBookmark};
use super::operations::chat::CancelTurn;
use super::operations::chat_tools::{DefineTool, ListTools, RemoveTool};
use super::operations::compaction::{
    AddCompaction, Compact, ConfigureCompaction, DeleteCompaction, EstimateTokens, GetCompactions,
};
use super::operations::directory::{ListAgents, SearchAgents};
use super::operations::erase_agents::EraseAgents;
use super::operations::events::{AppendEvents, DeleteEvents, LoadEvents};
use super::operations::foreign::LoadForeignRows;
use super::operations::learning::{
    Consolidate, DecideProposal, GetProposals, Learn, RevertProposal,
};
use super::operations::memory_blocks::{
    AppendToBlock, ClearBlocks, GetBlock, GetBlockVersions, GetBlocks, RemoveBlock, RevertBlock,
    SetBlock,
};
use super::operations::memory_entries::{
    DeleteEntry, GetEntry, ListEntries, SearchContext, SetEntry,
};
use super::operations::memory_prompt::{
    FreezePrompt, GetReminder, RefreshPrompt, RefreshPrompts, RenderPrompt,
};
use super::operations::memory_skills::{DeleteSkill, ListSkills, LoadSkill, PutSkill, UnloadSkill};
use super::operations::memory_tools::{CallTool, GetTools};
use super::operations::mentions::{Erase, FindMentions};
use super::operations::message_reads::{
    GetBranches, GetHistory, GetLatestLeaf, GetMessage, GetPathLength,
};
use super::operations::message_writes::{
    AppendMessage, ClearMessages, DeleteMessages, UpdateMessage, UpsertMessage,
};
use super::operations::receipts::VerifyReceipt;
use super::operations::restore_backup::RestoreBackup;
use super::operations::retention::ApplyRetention;
use super::operations::run_turn::RunTurn;
use super::operations::search::Search;
use super::operations::sessions::{
    AddUsage, CreateSession, DeleteSession, GetSession, ListSessions, UpdateSession,
};
use super::operations::stats::GetStats;
use super::operations::tokens::MintToken;
use super::operations::tree::{ForkSession, GetChanges, SetLeaf};
use super::operations::turns::{GetTurn, GetTurns};
use super::operations::usage::GetUsage;
use super::operations::verify::Verify;
use super::operations::working_context::{BuildWorkingContext, PersistWorkingContext};
use access::AccessRule;
use base::error::{Code, Error, Result};
use base::json;
use memory::definition::DefineBlock;
use store::config::ConfigureAgent;

pub const OPERATIONS: &[OperationEntry] = &[
    at_once::<CreateSession>(),
    at_once::<GetSession>(),
    at_once::<ListSessions>(),
    at_once::<UpdateSession>(),
    at_once::<DeleteSession>(),
    at_once::<AddUsage>(),
    at_once::<GetUsage>(),
    at_once::<GetTurns>(),
    at_once::<GetTurn>(),
    at_once::<ForkSession>(),
    at_once::<SetLeaf>(),
    at_once::<AppendEvents>(),
    at_once::<LoadEvents>(),
    at_once::<DeleteEvents>(),
    waiting::<BuildWorkingContext>(),
    at_once::<PersistWorkingContext>(),
    at_once::<AppendMessage>(),
    at_once::<AppendMessages>(),
    at_once::<UpdateMessage>(),
    at_once::<UpsertMessage>(),
    at_once::<GetMessage>(),
    at_once::<GetHistory>(),
    at_once::<GetBranches>(),
    at_once::<GetLatestLeaf>(),
    at_once::<GetPathLength>(),
    at_once::<DeleteMessages>(),
    at_once::<ClearMessages>(),
    at_once::<GetChanges>(),
    waiting::<Search>(),
    at_once::<ConfigureCompaction>(),
    waiting::<Compact>(),
    at_once::<AddCompaction>(),
    at_once::<GetCompactions>(),
    at_once::<DeleteCompaction>(),
    waiting::<EstimateTokens>(),
    waiting::<DefineBlock>(),
    at_once::<RemoveBlock>(),
    waiting::<GetBlock>(),
    waiting::<GetBlocks>(),
    waiting::<SetBlock>(),
    waiting::<AppendToBlock>(),
    waiting::<GetBlockVersions>(),
    waiting::<RevertBlock>(),
    at_once::<ClearBlocks>(),
    waiting::<SetEntry>(),
    waiting::<DeleteEntry>(),
    waiting::<ListEntries>(),
    waiting::<GetEntry>(),
    waiting::<SearchContext>(),
    waiting::<PutSkill>(),
    waiting::<DeleteSkill>(),
    waiting::<ListSkills>(),
    waiting::<LoadSkill>(),
    at_once::<UnloadSkill>(),
    waiting::<RenderPrompt>(),
    waiting::<FreezePrompt>(),
    waiting::<RefreshPrompt>(),
    at_once::<RefreshPrompts>(),
    waiting::<GetReminder>(),
    waiting::<Learn>(),
    waiting::<Consolidate>(),
    at_once::<GetProposals>(),
    at_once::<DecideProposal>(),
    at_once::<RevertProposal>(),
    at_once::<GetTools>(),
    waiting::<CallTool>(),
    waiting::<RunTurn>(),
    at_once::<CancelTurn>(),
    waiting::<DefineTool>(),
    at_once::<RemoveTool>(),
    at_once::<ListTools>(),
    at_once::<ConfigureAgent>(),
    at_once::<GetConfig>(),
    at_once::<ApplyRetention>(),
    at_once::<GetStats>(),
    at_once::<Verify>(),
    at_once::<LoadForeignRows>(),
    at_once::<FindMentions>(),
    at_once::<Erase>(),
    at_once::<VerifyReceipt>(),
    waiting::<Backup>(),
    waiting::<ListBackups>(),
    waiting::<RestoreBackup>(),
    waiting::<GetBookmark>(),
    waiting::<RestoreBookmark>(),
    at_once::<MintToken>(),
    waiting::<Destroy>(),
    waiting::<ListAgents>(),
    waiting::<SearchAgents>(),
    waiting::<EraseAgents>(),
];

/// The rights that each operation requires.
pub const RULES: &[AccessRule] = &rules();

#[expect(
    clippy::indexing_slicing,
    reason = "evaluated at compile time, where a wrong index is an error"
)]
const fn rules() -> [AccessRule; OPERATIONS.len()] {
    let mut rules = [OPERATIONS[0].rule; OPERATIONS.len()];
    let mut index = 0;
    while index < rules.len() {
        rules[index] = OPERATIONS[index].rule;
        index += 1;
    }
    rules
}

pub fn find_entry(operation: &str) -> Result<&'static OperationEntry> {
    OPERATIONS
        .iter()
        .find(|entry| entry.name == operation)
        .ok_or_else(|| unknown_operation(operation))
}

/// The operation that a request names, found once in the table.
#[derive(Clone)]
pub enum NamedOperation {
    Known(&'static OperationEntry),
    /// There is no such operation.
    Unknown(String),
}

impl NamedOperation {
    pub fn find(name: String) -> Self {
        let known = OPERATIONS.iter().find(|entry| entry.name == name);
        known.map_or(Self::Unknown(name), Self::Known)
    }

    pub fn name(&self) -> &str {
        match self {
            Self::Known(entry) => entry.name,
            Self::Unknown(name) => name,
        }
    }

    /// The name in the Worker's log, which contains nothing that a caller invented.
    pub fn listed_name(&self) -> &'static str {
        match self {
            Self::Known(entry) => entry.name,
            Self::Unknown(_) => "unknown",
        }
    }

    pub fn get(&self) -> Result<&'static OperationEntry> {
        match self {
            Self::Known(entry) => Ok(entry),
            Self::Unknown(name) => Err(unknown_operation(name)),
        }
    }
}

impl PartialEq for NamedOperation {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl fmt::Debug for NamedOperation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name().fmt(formatter)
    }
}

/// Whether a token's scope may list this operation.
pub fn is_operation(name: &str) -> bool {
    names_one(RULES, name)
}

pub fn unknown_operation(name: &str) -> Error {
    let names = OPERATIONS.iter().map(|entry| entry.name);
    let message = match json::find_nearest(name, names) {
        Some(near) => format!("There is no such operation. Did you mean `{near}`?"),
        None => "There is no such operation. `GET /openapi.json` lists all operations.".to_owned(),
    };
    Error::new(Code::UnknownOperation, message)
}
