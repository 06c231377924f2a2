//! The table of operations: the one list that dispatch, openapi.json and the
//! tokens' scopes are made from.

use super::agent::{ConfigureAgent, Destroy, GetConfig, MintToken};
use super::events::{AppendEvents, DeleteEvents, LoadEvents};
use super::operation::{Entry, entry};
use super::sessions::{
    AddUsage, CreateSession, DeleteSession, GetSession, ListSessions, UpdateSession,
};

pub const OPERATIONS: &[Entry] = &[
    entry::<CreateSession>(),
    entry::<GetSession>(),
    entry::<ListSessions>(),
    entry::<UpdateSession>(),
    entry::<DeleteSession>(),
    entry::<AddUsage>(),
    entry::<AppendEvents>(),
    entry::<LoadEvents>(),
    entry::<DeleteEvents>(),
    entry::<ConfigureAgent>(),
    entry::<GetConfig>(),
    entry::<MintToken>(),
    entry::<Destroy>(),
];
