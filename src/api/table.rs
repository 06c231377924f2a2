//! The table of operations: the one list that dispatch, openapi.json and the
//! tokens' scopes are made from.

use super::operation::{Entry, entry, names_one, waiting_entry};
use super::operations::agent::{ConfigureAgent, Destroy, GetConfig};
use super::operations::chat::CancelTurn;
use super::operations::chat_tools::{DefineTool, ListTools, RemoveTool};
use super::operations::compaction::{
    AddCompaction, Compact, ConfigureCompaction, DeleteCompaction, EstimateTokens, GetCompactions,
};
use super::operations::events::{AppendEvents, DeleteEvents, LoadEvents};
use super::operations::memory_blocks::{
    AppendToBlock, ClearBlocks, GetBlock, GetBlockVersions, GetBlocks, RemoveBlock, RevertBlock,
    SetBlock,
};
use super::operations::memory_entries::{DeleteEntry, ListEntries, SearchContext, SetEntry};
use super::operations::memory_prompt::{FreezePrompt, GetReminder, RefreshPrompt, RenderPrompt};
use super::operations::memory_skills::{DeleteSkill, ListSkills, LoadSkill, PutSkill, UnloadSkill};
use super::operations::memory_tools::{CallTool, GetTools};
use super::operations::messages::{
    AppendMessage, ClearMessages, DeleteMessages, GetBranches, GetHistory, GetLatestLeaf,
    GetMessage, GetPathLength, UpdateMessage, UpsertMessage,
};
use super::operations::search::Search;
use super::operations::sessions::{
    AddUsage, CreateSession, DeleteSession, GetSession, ListSessions, UpdateSession,
};
use super::operations::stats::GetStats;
use super::operations::tokens::MintToken;
use super::operations::tree::{ForkSession, GetChanges, SetLeaf};
use super::operations::working_context::{BuildWorkingContext, PersistWorkingContext};
use crate::base::error::{Code, Error, Result};
use crate::base::json;
use crate::memory::definition::DefineBlock;

pub const OPERATIONS: &[Entry] = &[
    entry::<CreateSession>(),
    entry::<GetSession>(),
    entry::<ListSessions>(),
    entry::<UpdateSession>(),
    entry::<DeleteSession>(),
    entry::<AddUsage>(),
    entry::<ForkSession>(),
    entry::<SetLeaf>(),
    entry::<AppendEvents>(),
    entry::<LoadEvents>(),
    entry::<DeleteEvents>(),
    entry::<BuildWorkingContext>(),
    entry::<PersistWorkingContext>(),
    entry::<AppendMessage>(),
    entry::<UpdateMessage>(),
    entry::<UpsertMessage>(),
    entry::<GetMessage>(),
    entry::<GetHistory>(),
    entry::<GetBranches>(),
    entry::<GetLatestLeaf>(),
    entry::<GetPathLength>(),
    entry::<DeleteMessages>(),
    entry::<ClearMessages>(),
    entry::<GetChanges>(),
    waiting_entry::<Search>(),
    entry::<ConfigureCompaction>(),
    waiting_entry::<Compact>(),
    entry::<AddCompaction>(),
    entry::<GetCompactions>(),
    entry::<DeleteCompaction>(),
    waiting_entry::<EstimateTokens>(),
    waiting_entry::<DefineBlock>(),
    entry::<RemoveBlock>(),
    waiting_entry::<GetBlock>(),
    waiting_entry::<GetBlocks>(),
    waiting_entry::<SetBlock>(),
    waiting_entry::<AppendToBlock>(),
    waiting_entry::<GetBlockVersions>(),
    waiting_entry::<RevertBlock>(),
    entry::<ClearBlocks>(),
    waiting_entry::<SetEntry>(),
    waiting_entry::<DeleteEntry>(),
    waiting_entry::<ListEntries>(),
    waiting_entry::<SearchContext>(),
    waiting_entry::<PutSkill>(),
    waiting_entry::<DeleteSkill>(),
    waiting_entry::<ListSkills>(),
    waiting_entry::<LoadSkill>(),
    entry::<UnloadSkill>(),
    waiting_entry::<RenderPrompt>(),
    waiting_entry::<FreezePrompt>(),
    waiting_entry::<RefreshPrompt>(),
    waiting_entry::<GetReminder>(),
    entry::<GetTools>(),
    waiting_entry::<CallTool>(),
    entry::<CancelTurn>(),
    entry::<DefineTool>(),
    entry::<RemoveTool>(),
    entry::<ListTools>(),
    entry::<ConfigureAgent>(),
    entry::<GetConfig>(),
    entry::<GetStats>(),
    entry::<MintToken>(),
    entry::<Destroy>(),
];

pub fn find_entry(operation: &str) -> Result<&'static Entry> {
    OPERATIONS
        .iter()
        .find(|entry| entry.name == operation)
        .ok_or_else(|| unknown_operation(operation))
}

/// Whether a token may be minted for what goes by this name.
pub fn is_operation(name: &str) -> bool {
    names_one(OPERATIONS, name)
}

pub fn unknown_operation(name: &str) -> Error {
    let names = OPERATIONS.iter().map(|entry| entry.name);
    let message = match json::find_nearest(name, names) {
        Some(near) => format!("There is no such operation. Did you mean `{near}`?"),
        None => "There is no such operation. `GET /openapi.json` lists those there are.".to_owned(),
    };
    Error::new(Code::UnknownOperation, message)
}
