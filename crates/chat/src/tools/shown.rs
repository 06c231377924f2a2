//! Registered tools and servers of tools, as operations return them.

use crate::json_schema::JsonSchema;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::address::tool_address::ToolAddress;
use crate::tools::mcp::ServerSource;
use crate::tools::mcp::listing::OmittedTool;
use crate::tools::mcp::oauth::settings::OAuthClient;
use crate::tools::mcp::server::ToolServer;
use crate::tools::registered::RegisteredTool;
use base::json::RawValue;
use base::outbound::redact_url;

/// A registered tool, as returned by `listTools`.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    pub name: String,
    pub description: String,
    /// The tool's arguments, as a JSON Schema.
    #[schemars(with = "base::json::JsonObject")]
    pub parameters: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The server that the tool comes from, by the name given to `defineTool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    pub needs_approval: bool,
    /// Set if the tool is deployed: by the class's code, or by the defaults for every
    /// agent. `removeTool` hides it from this agent only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_deployed: bool,
    /// Set if the server added or changed the tool after `defineTool`: calls need approval until
    /// `defineTool` is called again.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_changed: bool,
    /// The headers of each call. A secret is shown by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<i64>,
}

impl RegisteredTool {
    pub fn show(self) -> ToolInfo {
        let definition = self.definition;
        let shown = ToolInfo {
            name: definition.name,
            description: definition.description,
            parameters: definition.parameters,
            service: None,
            url: None,
            server: None,
            needs_approval: self.needs_approval,
            is_deployed: false,
            is_changed: false,
            headers: BTreeMap::default(),
            timeout_ms: None,
            max_output_bytes: None,
        };
        if let Some(tool) = self.of_server {
            return ToolInfo {
                server: Some(tool.server),
                is_changed: tool.is_changed,
                ..shown
            };
        }
        let (service, url) = match self.at {
            ToolAddress::Service { binding, .. } => (Some(binding), None),
            ToolAddress::Url(url) => (None, Some(url)),
        };
        ToolInfo {
            service,
            url,
            headers: self.headers.into_shown(),
            timeout_ms: self.limits.timeout_ms,
            max_output_bytes: self.limits.max_output_bytes,
            ..shown
        }
    }
}

/// A server, as `defineTool` and `listTools` return it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerInfo {
    pub name: String,
    pub mcp: ServerSource,
    /// Whether the user must approve each call of its tools.
    pub needs_approval: bool,
    /// The headers of each request. A secret is shown by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<i64>,
    /// The revision of the protocol that the server speaks.
    pub revision: String,
    /// The time of the last request for the server's list, in milliseconds since the epoch.
    pub asked_at: i64,
    /// The reason why the server returned no list on the last request. Its tools are those
    /// of the previous list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The client that you registered for the server. Its secret is shown by its name.
    #[serde(skip_serializing_if = "OAuthClient::is_empty")]
    pub oauth: OAuthClient,
    /// Whether a person must authorize the agent before it can use the server, or some of its
    /// tools: `defineTool` with the same definition returns the address to open.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub needs_authorization: bool,
    /// The address that a person has to open, in the answer of `defineTool`. It is valid for ten
    /// minutes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authorization_url: Option<String>,
    /// The server's tools, in the answer of `defineTool`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolInfo>>,
    /// The server's tools that models do not get.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<OmittedTool>,
}

/// The text that is shown instead of a header's value.
const SET: &str = "set";

fn redact_headers(headers: &mut BTreeMap<String, String>) {
    let names = std::mem::take(headers).into_keys();
    *headers = names.map(|name| (name, SET.to_owned())).collect();
}

impl ToolInfo {
    /// Hides what a caller without the secret must not see.
    pub fn redact(&mut self) {
        redact_headers(&mut self.headers);
        if let Some(url) = &mut self.url {
            *url = redact_url(url);
        }
    }
}

impl ServerInfo {
    /// Hides what a caller without the secret must not see.
    pub fn redact(&mut self) {
        redact_headers(&mut self.headers);
        self.mcp.redact();
        self.oauth = OAuthClient::default();
    }
}

impl ToolServer {
    /// `tools`: the server's tools, where they are shown with their server.
    pub fn show(self, tools: Option<Vec<ToolInfo>>) -> ServerInfo {
        ServerInfo {
            mcp: ServerSource::of(&self.at),
            name: self.name,
            needs_approval: self.needs_approval,
            headers: self.headers.into_shown(),
            timeout_ms: self.limits.timeout_ms,
            max_output_bytes: self.limits.max_output_bytes,
            revision: self.state.link.revision,
            asked_at: self.asked_at,
            problem: self.state.problem,
            oauth: self.state.oauth,
            needs_authorization: self.state.needs_authorization.is_some(),
            authorization_url: None,
            tools,
            left_out: self.state.left_out,
        }
    }
}
