//! A tool server as its row stores it: how to communicate with it, the tools that it
//! listed, and the definitions that the operator has accepted.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::address::tool_address::{ToolAddress, ToolLimits};
use crate::address::tool_headers::ToolHeaders;
use crate::tools::mcp::client::ServerLink;
use crate::tools::mcp::listing::{OmittedTool, ServerDefinition};
use crate::tools::mcp::oauth::challenge::Challenge;
use crate::tools::mcp::oauth::settings::OAuthClient;
use base::columns::find_value;
use base::database::{Database, atomically};
use base::error::{Error, Result};
use base::json::{self};

/// The most servers of an agent: the start of a turn may request the list of each.
pub const MAX_SERVERS: usize = 16;

/// The age at which a list of tools is refreshed at the start of a turn.
pub const REFRESH_EVERY_MS: i64 = 10 * 60_000;

/// The age at which it is refreshed if the server has reported a change. A server may report one
/// with every call.
pub const REFRESH_CHANGED_MS: i64 = 60_000;

/// A tool server.
#[derive(Clone, Debug)]
pub struct ToolServer {
    /// The name that `defineTool` gave the server: the prefix of its tools' names.
    pub name: String,
    pub at: ToolAddress,
    pub needs_approval: bool,
    pub headers: ToolHeaders,
    pub limits: ToolLimits,
    /// When `defineTool` was called, in milliseconds since the epoch.
    pub defined_at: i64,
    /// When the server's list was last requested.
    pub asked_at: i64,
    pub state: ServerState,
}

/// What is known of a server from its own answers.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerState {
    pub link: ServerLink,
    /// The path of a service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    pub tools: Vec<ServerDefinition>,
    /// The digests of the definitions that were listed when `defineTool` was called. Other
    /// definitions need approval.
    pub accepted: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<OmittedTool>,
    /// Why the last request for the list failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The client that the operator registered for the server.
    #[serde(default, skip_serializing_if = "OAuthClient::is_empty")]
    pub oauth: OAuthClient,
    /// The authorization that the server requires of a person. `None`: nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_authorization: Option<Challenge>,
    /// Whether the server has reported a change of its list since the last request for it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_changed: bool,
}

/// What a registered tool stores of its server.
#[derive(Clone, Debug)]
pub struct ServerTool {
    pub server: String,
    defined_at: i64,
    /// The tool's name at its server.
    pub name: String,
    /// The arguments that are repeated in headers, by header.
    pub headers: BTreeMap<String, String>,
    pub digest: String,
    pub is_changed: bool,
    pub link: ServerLink,
}

impl ToolServer {
    pub fn is_stale(&self, now_ms: i64) -> bool {
        let most_ms = if self.state.has_changed {
            REFRESH_CHANGED_MS
        } else {
            REFRESH_EVERY_MS
        };
        // A clock that is set back makes no list stale.
        now_ms.saturating_sub(self.asked_at) >= most_ms
    }

    /// What the tool with this definition stores of the server.
    pub fn tool_of(&self, definition: &ServerDefinition) -> ServerTool {
        let is_accepted = self.state.accepted.contains(&definition.digest);
        ServerTool {
            server: self.name.clone(),
            defined_at: self.defined_at,
            name: definition.name.clone(),
            headers: definition.headers.clone(),
            digest: definition.digest.clone(),
            is_changed: !is_accepted,
            link: self.state.link.clone(),
        }
    }

    pub fn to_json(&self) -> Result<String> {
        self.state.to_json()
    }
}

impl ServerState {
    fn to_json(&self) -> Result<String> {
        json::encode(self)
    }

    pub fn from_json(text: &str) -> Option<Self> {
        json::decode(text).ok()
    }
}

/// Changes the stored state of a server, if it still has the same definition. `asked_at`:
/// when the server's list was requested; `None`: it was not.
pub fn change_state(
    db: &dyn Database,
    (name, defined_at): (&str, i64),
    asked_at: Option<i64>,
    change: impl FnOnce(&mut ServerState) -> Result<()>,
) -> Result<()> {
    atomically(db, || {
        let sql = "SELECT server FROM cf_agents_tools WHERE name = ?1 AND defined_at = ?2";
        let stored: Option<Option<String>> =
            find_value(db, sql, &[name.into(), defined_at.into()])?;
        let Some(stored) = stored.flatten() else {
            return Ok(());
        };
        let damaged = || Error::corrupt_row(name, "tool");
        let mut state = ServerState::from_json(&stored).ok_or_else(damaged)?;
        change(&mut state)?;
        let json = state.to_json()?;
        // A server may report the same with every call.
        if json == stored && asked_at.is_none() {
            return Ok(());
        }
        let sql = "
            UPDATE cf_agents_tools
               SET server = ?3,
                   asked_at = IFNULL(?4, asked_at)
             WHERE name = ?1
               AND defined_at = ?2";
        db.run(
            sql,
            &[name.into(), defined_at.into(), json.into(), asked_at.into()],
        )
    })
}

/// Stores how to communicate with the tool's server from now on.
pub fn store_link(db: &dyn Database, tool: &ServerTool, link: &ServerLink) -> Result<()> {
    change_state(db, (&tool.server, tool.defined_at), None, |state| {
        state.link = link.clone();
        Ok(())
    })
}

/// Records that the tool's server requires a person's authorization.
pub fn record_needed_authorization(
    db: &dyn Database,
    tool: &ServerTool,
    challenge: Challenge,
) -> Result<()> {
    change_state(db, (&tool.server, tool.defined_at), None, |state| {
        state.needs_authorization = Some(challenge);
        Ok(())
    })
}

/// Records that the tool's server has reported a change of its list.
pub fn record_changed_list(db: &dyn Database, tool: &ServerTool) -> Result<()> {
    change_state(db, (&tool.server, tool.defined_at), None, |state| {
        state.has_changed = true;
        Ok(())
    })
}
