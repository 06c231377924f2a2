//! The table of operations: the one list that dispatch, openapi.json and the
//! tokens' scopes are made from.

use super::agent::{ConfigureAgent, Destroy, GetConfig, MintToken};
use super::compaction::{
    AddCompaction, Compact, ConfigureCompaction, DeleteCompaction, EstimateTokens, GetCompactions,
};
use super::events::{AppendEvents, DeleteEvents, LoadEvents};
use super::messages::{
    AppendMessage, ClearMessages, DeleteMessages, GetBranches, GetHistory, GetLatestLeaf,
    GetMessage, GetPathLength, UpdateMessage, UpsertMessage,
};
use super::operation::{Entry, entry, waiting_entry};
use super::search::Search;
use super::sessions::{
    AddUsage, CreateSession, DeleteSession, GetSession, ListSessions, UpdateSession,
};
use super::tree::{ForkSession, GetChanges, SetLeaf};
use super::working_context::{BuildWorkingContext, PersistWorkingContext};

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
    entry::<Search>(),
    entry::<ConfigureCompaction>(),
    waiting_entry::<Compact>(),
    entry::<AddCompaction>(),
    entry::<GetCompactions>(),
    entry::<DeleteCompaction>(),
    entry::<EstimateTokens>(),
    entry::<ConfigureAgent>(),
    entry::<GetConfig>(),
    entry::<MintToken>(),
    entry::<Destroy>(),
];
