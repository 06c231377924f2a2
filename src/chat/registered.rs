//! Tools that the operator registered: a service binding or a URL. A tool is called
//! with a POST, and the model reads its answer, whatever that is.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::origin::origin_of;
use super::tool_headers::{ResolvedHeaders, ToolHeaders};
use super::turn::CallState;
use crate::base::columns::{FromRow, load};
use crate::base::database::{Database, Row, atomically};
use crate::base::deployed::Deployed;
use crate::base::error::{Code, Error, Result};
use crate::base::host::Host;
use crate::base::ids::Id;
use crate::base::json::{self, JsonObject};
use crate::base::order::sort_by;
use crate::base::outbound::{
    CallFailure, CallLimits, CallPurpose, Endpoint, Outbound, OutboundRequest, read_all,
};
use crate::base::settings::Setting;
use crate::models::ToolDefinition;
use crate::store::stored::{find_stored, write_stored};

/// The most tools per agent: each model call sends all of them.
pub const MAX_TOOLS: i64 = 128;

/// The limits of a tool's answer and of its silence. A call waits to be sent for 5
/// minutes at most, and its answer takes 5 minutes at most.
pub const LIMITS: CallLimits = CallLimits {
    wait_ms: 5 * 60_000,
    silence_ms: 30_000,
    total_ms: Some(5 * 60_000),
    max_bytes: 256 << 10,
};

/// The longest time that a tool's definition may give its calls.
pub const MAX_TIMEOUT_MS: i64 = 5 * 60_000;

/// The most bytes that a tool's definition may allow its answers: half of what all
/// outputs of a turn may have.
pub const MAX_TOOL_OUTPUT_BYTES: i64 = 512 << 10;

/// A header with an id that is unique per call of a tool. We send each call only once,
/// but a gateway between us and the tool may repeat it.
const IDEMPOTENCY_HEADER: &str = "idempotency-key";

/// Bytes of the hash that tells one tool's address from another's.
const FINGERPRINT_BYTES: usize = 16;

/// The setting that lists the allowed origins of `url` tools, separated by commas or
/// spaces.
pub const ORIGINS_SETTING: &str = Setting::ToolOrigins.name();

/// The address of a tool.
#[derive(Clone, Debug, PartialEq)]
pub enum ToolAddress {
    Service(String),
    Url(String),
}

#[derive(Clone, Debug)]
pub struct RegisteredTool {
    pub definition: ToolDefinition,
    pub at: ToolAddress,
    pub needs_approval: bool,
    pub headers: ToolHeaders,
    pub limits: ToolLimits,
}

/// The limits that a tool's definition sets. `None`: those of [`LIMITS`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ToolLimits {
    /// How long a call may take, from its departure to its answer's end.
    pub timeout_ms: Option<i64>,
    /// The most bytes of an answer.
    pub max_output_bytes: Option<i64>,
}

impl ToolLimits {
    pub fn of_call(self) -> CallLimits {
        let mut limits = LIMITS;
        if let Some(ms) = self.timeout_ms {
            // A tool that was given time may be silent for all of it.
            limits.silence_ms = ms;
            limits.total_ms = Some(ms);
        }
        if let Some(bytes) = self.max_output_bytes {
            limits.max_bytes = usize::try_from(bytes).unwrap_or(limits.max_bytes);
        }
        limits
    }
}

/// A registered tool, as `listTools` returns it.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ShownTool {
    pub name: String,
    pub description: String,
    /// The tool's arguments, as a JSON Schema.
    #[cfg_attr(test, schemars(with = "JsonObject"))]
    pub parameters: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    pub needs_approval: bool,
    /// The headers of each call. A secret is shown by its name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_bytes: Option<i64>,
}

impl RegisteredTool {
    pub fn show(self) -> ShownTool {
        let (service, url) = match self.at {
            ToolAddress::Service(binding) => (Some(binding), None),
            ToolAddress::Url(url) => (None, Some(url)),
        };
        ShownTool {
            name: self.definition.name,
            description: self.definition.description,
            parameters: self.definition.parameters,
            service,
            url,
            needs_approval: self.needs_approval,
            headers: self.headers.into_shown(),
            timeout_ms: self.limits.timeout_ms,
            max_output_bytes: self.limits.max_output_bytes,
        }
    }

    /// Checks that this tool may be where it is, and may have its secrets.
    pub fn check_reach(&self, outbound: &dyn Outbound) -> Result<ResolvedHeaders> {
        match &self.at {
            ToolAddress::Service(binding) => {
                if !outbound.is_bound(binding) {
                    return Err(CallFailure::not_configured(binding));
                }
                self.headers.resolve(outbound, None)
            }
            ToolAddress::Url(url) => {
                check_url(outbound, url)?;
                self.headers.resolve(outbound, Some(url))
            }
        }
    }

    /// A hash of the tool's address and headers, which tells them from others but
    /// doesn't reveal them.
    pub fn fingerprint(&self) -> String {
        let (kind, place) = match &self.at {
            ToolAddress::Service(binding) => ("service", binding),
            ToolAddress::Url(url) => ("url", url),
        };
        let headers = self.headers.to_json();
        let headers = headers.map(|json| format!(" {json}")).unwrap_or_default();
        let asked_of = format!("{kind} {place}{headers}");
        let mut digits = format!("{:x}", Sha256::digest(asked_of));
        digits.truncate(2 * FINGERPRINT_BYTES);
        digits
    }

    /// Calls the tool. The model reads any failure. `key` is unique to this call.
    pub async fn call(
        &self,
        outbound: &dyn Outbound,
        agent_name: &str,
        session_id: Option<&Id>,
        arguments: &JsonObject,
        key: &str,
    ) -> CallState {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Asked<'a> {
            name: &'a str,
            arguments: &'a JsonObject,
            agent: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            session_id: Option<&'a str>,
        }
        let name = &self.definition.name;
        // The settings may have changed since the tool was defined.
        let resolved = match self.check_reach(outbound) {
            Ok(resolved) => resolved,
            Err(error) => return CallState::failed(error.into_message()),
        };
        let place = match &self.at {
            ToolAddress::Service(binding) => Endpoint::Service {
                binding: binding.clone(),
                path: String::new(),
            },
            ToolAddress::Url(url) => Endpoint::Url(url.clone()),
        };
        let asked = Asked {
            name,
            arguments,
            agent: agent_name,
            session_id: session_id.map(Id::as_str),
        };
        let Ok(body) = serde_json::to_string(&asked) else {
            return CallState::failed(format!("The call of `{name}` could not be written."));
        };
        let mut headers = vec![(IDEMPOTENCY_HEADER.to_owned(), key.to_owned())];
        headers.extend(resolved.headers.iter().cloned());
        let call = OutboundRequest {
            purpose: CallPurpose::Work,
            place,
            headers,
            body,
            limits: self.limits.of_call(),
        };
        let answer = async {
            let mut answer = outbound.send(call).await?;
            let bytes = read_all(answer.body.as_mut()).await?;
            Ok::<_, CallFailure>((answer.status, answer.content_type, bytes))
        };
        match answer.await {
            Ok((status, content_type, bytes)) => {
                read_answer(name, status, &content_type, bytes, &resolved)
            }
            Err(failure) => {
                CallState::failed(format!("`{name}` did not answer: {}.", failure.reason()))
            }
        }
    }
}

fn read_answer(
    name: &str,
    status: u16,
    content_type: &str,
    bytes: Vec<u8>,
    sent: &ResolvedHeaders,
) -> CallState {
    let Ok(text) = String::from_utf8(bytes) else {
        return CallState::failed(format!("`{name}` answered with bytes that are no text."));
    };
    let text = sent.strip(text);
    if !(200..300).contains(&status) {
        let said = text.trim();
        let said = said
            .get(..said.floor_char_boundary(2_000))
            .unwrap_or_default();
        return CallState::failed(format!("`{name}` failed with status {status}: {said}"));
    }
    let is_json = content_type == "application/json" || content_type.ends_with("+json");
    if is_json && json::decode::<&RawValue>(&text).is_ok() {
        // A JSON string is read as its text.
        return match json::decode::<String>(&text) {
            Ok(output) => done(output, false),
            Err(_) => done(text, true),
        };
    }
    done(text, false)
}

fn done(output: String, is_json: bool) -> CallState {
    CallState::Done { output, is_json }
}

/// Whether the operator of this Worker allows tools at this URL.
pub fn check_url(outbound: &dyn Outbound, url: &str) -> Result<()> {
    let refused = |message: String| Error::new(Code::Forbidden, message).with("field", "url");
    let Some(origin) = origin_of(url) else {
        return Err(Error::invalid(
            "url",
            "`url` must be an `https:` address without user or fragment; `http:` only of this machine.",
        ));
    };
    let allowed = outbound
        .find_setting(Setting::ToolOrigins)
        .unwrap_or_default();
    let is_allowed = allowed
        .split([',', ' '])
        .filter_map(origin_of)
        .any(|allowed| allowed == origin);
    if is_allowed {
        return Ok(());
    }
    Err(refused(format!(
        "Tools may not be at {origin}. Its origin has to be in the variable `{ORIGINS_SETTING}`."
    )))
}

impl RegisteredTool {
    const COLUMNS: &str = "name, description, parameters, service, url, needs_approval, headers, timeout_ms, max_output_bytes";
}

impl FromRow<'_> for RegisteredTool {
    fn from_row(row: &Row) -> Result<Self> {
        let name = row.text(0)?;
        let damaged = || Error::corrupt_row(name, "tool");
        let at = match (row.find_text(3), row.find_text(4)) {
            (Some(binding), _) => ToolAddress::Service(binding.to_owned()),
            (None, Some(url)) => ToolAddress::Url(url.to_owned()),
            (None, None) => return Err(damaged()),
        };
        Ok(Self {
            definition: ToolDefinition {
                name: name.to_owned(),
                description: row.text(1)?.to_owned(),
                parameters: RawValue::from_string(row.text(2)?.to_owned())
                    .map_err(|_| damaged())?,
            },
            at,
            needs_approval: row.integer(5)? == 1,
            headers: ToolHeaders::from_json(row.find_text(6)).ok_or_else(damaged)?,
            limits: ToolLimits {
                timeout_ms: row.find_integer(7),
                max_output_bytes: row.find_integer(8),
            },
        })
    }
}

/// The tools that are deployed for every agent.
#[derive(Default)]
pub struct DeployedTools(pub Vec<RegisteredTool>);

/// The key of the deployed tools that the agent removed: a JSON list of names.
const REMOVED: &str = "removedTools";

/// The agent's tools, by name: its own, and the deployed ones that it neither defined anew
/// nor removed.
pub fn load_tools(db: &dyn Database, deployed: &Deployed) -> Result<Vec<RegisteredTool>> {
    let columns = RegisteredTool::COLUMNS;
    let sql = format!("SELECT {columns} FROM cf_agents_tools ORDER BY name LIMIT {MAX_TOOLS}");
    let mut tools: Vec<RegisteredTool> = load(db, &sql, &[])?;
    let deployed = deployed_tools(deployed);
    if deployed.is_empty() {
        return Ok(tools);
    }
    let removed = load_removed(db)?;
    for tool in deployed {
        let name = &tool.definition.name;
        let is_own = tools.iter().any(|own| own.definition.name == *name);
        if !is_own && !removed.contains(name) && (tools.len() as i64) < MAX_TOOLS {
            tools.push(tool.clone());
        }
    }
    sort_by(&mut tools, |one, other| {
        one.definition.name.cmp(&other.definition.name)
    });
    Ok(tools)
}

fn deployed_tools(deployed: &Deployed) -> &[RegisteredTool] {
    deployed
        .find::<DeployedTools>()
        .map_or(&[], |tools| &tools.0)
}

fn load_removed(db: &dyn Database) -> Result<Vec<String>> {
    match find_stored(db, REMOVED)? {
        Some(json) => json::decode(&json).map_err(|_| Error::corrupt_row(REMOVED, "configuration")),
        None => Ok(Vec::new()),
    }
}

/// Defines a tool, or replaces its definition.
pub fn define_tool(
    db: &dyn Database,
    host: &dyn Host,
    deployed: &Deployed,
    tool: &RegisteredTool,
) -> Result<()> {
    let (service, url) = match &tool.at {
        ToolAddress::Service(binding) => (Some(binding.as_str()), None),
        ToolAddress::Url(url) => (None, Some(url.as_str())),
    };
    atomically(db, || {
        let others = load_tools(db, deployed)?;
        let others = others
            .iter()
            .filter(|other| other.definition.name != tool.definition.name);
        if others.count() as i64 >= MAX_TOOLS {
            return Err(Error::invalid(
                "name",
                format!("An agent has at most {MAX_TOOLS} tools. `removeTool` removes one."),
            ));
        }
        db.run(
            "INSERT INTO cf_agents_tools (name, description, parameters, service, url, needs_approval, defined_at, headers, timeout_ms, max_output_bytes)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
                 ON CONFLICT (name) DO UPDATE
                SET description = excluded.description,
                    parameters = excluded.parameters,
                    service = excluded.service,
                    url = excluded.url,
                    needs_approval = excluded.needs_approval,
                    defined_at = excluded.defined_at,
                    headers = excluded.headers,
                    timeout_ms = excluded.timeout_ms,
                    max_output_bytes = excluded.max_output_bytes",
            &[
                tool.definition.name.as_str().into(),
                tool.definition.description.as_str().into(),
                tool.definition.parameters.get().into(),
                service.into(),
                url.into(),
                tool.needs_approval.into(),
                host.now_ms().into(),
                tool.headers.to_json().as_deref().into(),
                tool.limits.timeout_ms.into(),
                tool.limits.max_output_bytes.into(),
            ],
        )
    })
}

/// Removes a tool; `false`: there was none. A deployed tool stays away from this agent
/// until the agent defines a tool of this name.
pub fn remove_tool(db: &dyn Database, deployed: &Deployed, name: &str) -> Result<bool> {
    atomically(db, || {
        let rows = db.rows(
            "DELETE FROM cf_agents_tools WHERE name = ?1 RETURNING name",
            &[name.into()],
        )?;
        let deployed = deployed_tools(deployed);
        let is_deployed = |name: &str| deployed.iter().any(|tool| tool.definition.name == name);
        if !is_deployed(name) {
            return Ok(!rows.is_empty());
        }
        let mut removed = load_removed(db)?;
        if removed.iter().any(|removed| removed == name) {
            return Ok(!rows.is_empty());
        }
        removed.retain(|name| is_deployed(name));
        removed.push(name.to_owned());
        write_stored(db, REMOVED, &removed)?;
        Ok(true)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_text_or_json_and_a_failure_is_told() {
        let sent = ResolvedHeaders::default();
        let read = |status, kind, body: &str| read_answer("t", status, kind, body.into(), &sent);
        assert_eq!(read(200, "text/plain", "{}"), done("{}".to_owned(), false));
        assert_eq!(
            read(200, "application/json", "{\"a\":1.0}"),
            done("{\"a\":1.0}".to_owned(), true)
        );
        assert_eq!(
            read(200, "application/json", "\"a\\n\""),
            done("a\n".to_owned(), false)
        );
        assert_eq!(
            read(200, "application/json", "{"),
            done("{".to_owned(), false)
        );
        assert_eq!(
            read(500, "text/plain", " no \n"),
            CallState::failed("`t` failed with status 500: no")
        );
        assert!(matches!(
            read_answer("t", 200, "", vec![0xFF], &sent),
            CallState::Failed { .. }
        ));
    }
}
