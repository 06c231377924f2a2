//! The table of operations: the one list that dispatch, openapi.json and the
//! tokens' scopes are made from.

use super::agent::{ConfigureAgent, Destroy, GetConfig};
use super::chat::CancelTurn;
use super::chat_tools::{DefineTool, ListTools, RemoveTool};
use super::compaction::{
    AddCompaction, Compact, ConfigureCompaction, DeleteCompaction, EstimateTokens, GetCompactions,
};
use super::events::{AppendEvents, DeleteEvents, LoadEvents};
use super::memory_blocks::{
    AppendToBlock, ClearBlocks, GetBlock, GetBlockVersions, GetBlocks, RemoveBlock, RevertBlock,
    SetBlock,
};
use super::memory_entries::{DeleteEntry, ListEntries, SearchContext, SetEntry};
use super::memory_prompt::{FreezePrompt, GetReminder, RefreshPrompt, RenderPrompt};
use super::memory_skills::{DeleteSkill, ListSkills, LoadSkill, PutSkill, UnloadSkill};
use super::memory_tools::{CallTool, GetTools};
use super::messages::{
    AppendMessage, ClearMessages, DeleteMessages, GetBranches, GetHistory, GetLatestLeaf,
    GetMessage, GetPathLength, UpdateMessage, UpsertMessage,
};
use super::operation::{Entry, entry, waiting_entry};
use super::search::Search;
use super::sessions::{
    AddUsage, CreateSession, DeleteSession, GetSession, ListSessions, UpdateSession,
};
use super::stats::GetStats;
use super::tokens::MintToken;
use super::tree::{ForkSession, GetChanges, SetLeaf};
use super::working_context::{BuildWorkingContext, PersistWorkingContext};
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
