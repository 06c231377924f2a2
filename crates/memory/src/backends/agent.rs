//! Another agent as a backend. This agent calls the other agent's operations with the
//! Worker's secret. Every call lists the agents that it came through, so that a cycle of
//! agents that use each other as backends is detected.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::{ask, limits_of, mark_unavailable, unavailable};
use crate::Memory;
use crate::definition::Definition;
use crate::label::Label;
use crate::past::ItemDeleted;
use base::error::{Code, Error, Result};
use base::json::{self, json};
use base::outbound::{Endpoint, Outbound};
use base::settings::Setting;

/// The names of the agents that a call came through: a JSON array, in base64url.
pub const VIA_HEADER: &str = "x-session-agent-via";

/// The maximum number of agents that a call may come through.
const MAX_VIA: usize = 4;

/// Parses [`VIA_HEADER`]. An unreadable header counts as empty: the header protects against
/// cycles, not against callers. Whether the header is used depends on its sender
/// (`api/admission.rs`).
pub fn parse_via(header: Option<&str>) -> Vec<String> {
    header
        .and_then(|header| URL_SAFE_NO_PAD.decode(header).ok())
        .and_then(|json| json::decode_bytes(&json).ok())
        .unwrap_or_default()
}

/// The header that authenticates this object to another object of this Worker, if there is
/// a secret.
pub fn secret_header(outbound: &dyn Outbound) -> Option<(String, String)> {
    let secret = outbound.find_setting(Setting::SessionAgentToken)?;
    Some(("authorization".to_owned(), format!("Bearer {secret}")))
}

/// Another agent, and its block that stores the content of this agent's block.
#[derive(Clone, Copy)]
pub struct RemoteBlock<'a> {
    pub name: &'a str,
    pub label: Option<&'a Label>,
}

/// Runs an operation of the other agent on its block. If the operation fails because the
/// block is missing, defines it like this agent's block and retries.
pub async fn call<T: DeserializeOwned>(
    memory: &Memory<'_>,
    block: &Definition,
    backend: RemoteBlock<'_>,
    operation: &str,
    input: Value,
) -> Result<T> {
    let outcome = send(memory, block, backend, operation, &input).await;
    let answer = match outcome {
        Err(error) if error.code == Code::BlockNotFound => {
            let definition = json!({
                "kind": block.kind,
                "description": block.description,
                "maxTokens": block.max_tokens,
                "defaultContent": block.default_content,
            });
            send(memory, block, backend, "defineBlock", &definition).await?;
            send(memory, block, backend, operation, &input).await?
        }
        outcome => outcome?,
    };
    json::from_value(&answer)
        .map_err(|_| unavailable(&name_of(backend), "its answer is not from an agent"))
}

/// Deletes an entry or a document in the other agent's block. `false`: it did not exist.
pub async fn delete(
    memory: &Memory<'_>,
    block: &Definition,
    backend: RemoteBlock<'_>,
    operation: &str,
    key: &str,
) -> Result<ItemDeleted> {
    call(memory, block, backend, operation, json!({"key": key})).await
}

fn name_of(backend: RemoteBlock<'_>) -> String {
    format!("Agent `{}`", backend.name)
}

async fn send(
    memory: &Memory<'_>,
    block: &Definition,
    backend: RemoteBlock<'_>,
    operation: &str,
    input: &Value,
) -> Result<Value> {
    let who = name_of(backend);
    let mut via = memory.via.to_vec();
    via.push(memory.agent.to_owned());
    check_via(&via, backend.name)?;
    let mut body = input.as_object().cloned().unwrap_or_else(Map::new);
    let label = backend.label.unwrap_or(&block.label);
    body.insert("label".to_owned(), label.as_str().into());
    let mut headers = vec![(
        VIA_HEADER.to_owned(),
        URL_SAFE_NO_PAD.encode(json::encode(&via)?),
    )];
    headers.extend(secret_header(memory.outbound));
    let endpoint = Endpoint::Agent {
        name: backend.name.to_owned(),
        operation: operation.to_owned(),
    };
    let body = json::text(&Value::from(body));
    let received = ask(memory, &who, endpoint, headers, body, limits_of(input)).await?;
    let answer = json::decode_tree(&received.body)
        .map_err(|_| unavailable(&who, "its answer is not JSON"))?;
    if received.status == 200 {
        return Ok(answer);
    }
    Err(read_error(&who, &answer))
}

fn check_via(via: &[String], next: &str) -> Result<()> {
    let way = || {
        let mut names: Vec<&str> = via.iter().map(String::as_str).collect();
        names.push(next);
        names.join(" → ")
    };
    let message = if via.iter().any(|name| name == next) {
        format!(
            "The sources of this block form a cycle: {}. Define one of these blocks without a \
             `source`.",
            way()
        )
    } else if via.len() > MAX_VIA {
        format!(
            "The source of this block is more than {MAX_VIA} agents away: {}. Use the last one as \
             its source.",
            way()
        )
    } else {
        return Ok(());
    };
    // A prompt treats this error like an unavailable backend.
    Err(mark_unavailable(
        Error::invalid("source", message.clone()),
        message,
    ))
}

/// Returns an error of the other agent that the caller can fix. Any other error means that
/// the backend is unavailable.
fn read_error(who: &str, answer: &Value) -> Error {
    let error = answer.get("error");
    let text = |name: &str| {
        error
            .and_then(|error| error.get(name))
            .and_then(Value::as_str)
    };
    let code = match text("code") {
        Some("invalid_request") => Code::InvalidRequest,
        Some("block_read_only") => Code::BlockReadOnly,
        Some("block_not_found") => Code::BlockNotFound,
        Some("skill_not_found") => Code::SkillNotFound,
        Some("version_conflict") => Code::VersionConflict,
        Some("block_over_budget") => Code::BlockOverBudget,
        Some("payload_too_large") => Code::PayloadTooLarge,
        Some("unauthorized") => {
            return unavailable(who, "it refused this agent");
        }
        _ => return unavailable(who, "it returned an error"),
    };
    let details = error.and_then(|error| error.get("details"));
    let details = details.and_then(Value::as_object).cloned();
    Error::new(code, text("message").unwrap_or_default()).with_details(details.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cyclic_or_too_long_call_path_is_refused() {
        let via = |names: &[&str]| {
            names
                .iter()
                .map(|name| (*name).to_owned())
                .collect::<Vec<_>>()
        };
        assert!(check_via(&via(&["alice"]), "bob").is_ok());
        let error = check_via(&via(&["alice", "bob"]), "alice").unwrap_err();
        assert!(
            error.message.contains("alice → bob → alice"),
            "{}",
            error.message
        );
        assert!(check_via(&via(&["a", "b", "c", "d"]), "e").is_ok());
        assert!(check_via(&via(&["a", "b", "c", "d", "e"]), "f").is_err());
    }

    #[test]
    fn the_header_is_parsed_and_invalid_values_are_ignored() {
        let header = URL_SAFE_NO_PAD.encode(r#"["alice","b ö"]"#);
        assert_eq!(parse_via(Some(&header)), ["alice", "b ö"]);
        assert!(parse_via(Some("%%%")).is_empty());
        assert!(parse_via(None).is_empty());
    }
}
