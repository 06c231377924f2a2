//! MCP resources and prompts that a class extending the agent provides in its method `mcp`.
//! The class is called as a service is; no other caller reaches it. Every answer is
//! validated for shape and size, and errors that the class throws appear only in the
//! Worker's log.
//!
//! Resources and prompts belong to the agent: a caller needs the right to `getBlock` or
//! `renderPrompt` on the whole agent. A token for one session sees none of them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::approval::{CallRound, RequestedCall};
use super::clients::caller_text;
use super::content::is_content;
use super::exchange::{Ended, Exchange, Step, read_questions};
use super::message::{INTERNAL_ERROR, Request, RpcError};
use super::outcome::Outcome;
use super::scope::Scope;
use super::uri::MEMORY;
use base::action::Role;
use base::hash::hash_names;
use base::ids::Id;
use base::json::{self, json};
use base::outbound::{
    CallLimits, CallPurpose, Endpoint, OWN_CLASS, OutboundRequest, send_and_read,
};
use chat::tools::exchange::INPUT_REQUIRED;

/// The path under which the class is called.
const PATH: &str = "mcp";

/// The operations whose rights the resources and the prompts need.
const RESOURCE_RIGHT: &str = "getBlock";
const PROMPT_RIGHT: &str = "renderPrompt";

/// The longest answer of the class, and its timeout. A list is expected to come from
/// memory.
const MAX_LIST_BYTES: usize = 1 << 20;
const MAX_ANSWER_BYTES: usize = 4 << 20;
const LIST_MS: i64 = 10_000;
const ANSWER_MS: i64 = 30_000;

/// The most items of a list, contents of a resource, and messages of a prompt.
const MAX_ITEMS: usize = 500;
const MAX_CONTENTS: usize = 100;

/// The longest URI.
pub const MAX_URI_BYTES: usize = 1_000;

const MAX_DESCRIPTION_BYTES: usize = 4 << 10;

/// The resources, templates and prompts that the class provides.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Offered {
    pub resources: Vec<OfferedResource>,
    pub templates: Vec<OfferedTemplate>,
    pub prompts: Vec<OfferedPrompt>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferedResource {
    pub uri: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<i64>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferedTemplate {
    pub uri_template: String,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

#[derive(Deserialize, Serialize)]
pub struct OfferedPrompt {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<OfferedArgument>,
}

#[derive(Deserialize, Serialize)]
pub struct OfferedArgument {
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default)]
    pub required: bool,
}

/// The class's answer to a call.
enum ClassReply {
    /// The body as text.
    Text(String),
    /// There is no such resource, or prompt.
    Nothing,
    /// An argument is missing or has the wrong type.
    BadArgument(String),
    Failed,
}

fn may_use(scope: &Scope<'_>, operation: &str) -> bool {
    scope.agent.outbound.is_bound(OWN_CLASS) && scope.permit_one_in(&[operation], None).is_ok()
}

/// The resources that the caller may read, and the templates.
pub async fn list_resources(
    scope: &Scope<'_>,
) -> Result<(Vec<OfferedResource>, Vec<OfferedTemplate>), RpcError> {
    if !may_use(scope, RESOURCE_RIGHT) {
        return Ok(Default::default());
    }
    let Offered {
        resources,
        templates,
        ..
    } = list(scope).await?;
    Ok((resources, templates))
}

pub async fn list_prompts(scope: &Scope<'_>) -> Result<Vec<OfferedPrompt>, RpcError> {
    if !may_use(scope, PROMPT_RIGHT) {
        return Ok(Vec::new());
    }
    Ok(list(scope).await?.prompts)
}

async fn list(scope: &Scope<'_>) -> Result<Offered, RpcError> {
    let answer = ask(scope, json!({"ask": "list"}), MAX_LIST_BYTES, LIST_MS).await;
    let text = match answer {
        ClassReply::Nothing => return Ok(Offered::default()),
        ClassReply::Text(text) => text,
        ClassReply::BadArgument(_) | ClassReply::Failed => {
            return Err(failed("list what it offers"));
        }
    };
    let offered: Offered = read_as(&text, "the lists of `mcp`")?;
    let items = offered.resources.len() + offered.templates.len() + offered.prompts.len();
    if items > MAX_ITEMS {
        return Err(malformed("the lists of `mcp`", "they are too long"));
    }
    Ok(offered)
}

/// Reads a resource. `None`: the class has no resource with this URI for this caller.
pub async fn read(
    scope: &Scope<'_>,
    exchange: &Exchange<'_>,
    request: &Request,
    uri: &str,
) -> Result<Option<Outcome>, RpcError> {
    if !may_use(scope, RESOURCE_RIGHT) || uri.starts_with(MEMORY) || uri.len() > MAX_URI_BYTES {
        return Ok(None);
    }
    let what = json!({"ask": "read", "uri": uri});
    let shape = |text: &str| read_contents(text, uri);
    converse(scope, exchange, request, (uri, what), &shape).await
}

/// Gets a prompt. `None`: the class has no prompt with this name for this caller.
pub async fn get(
    scope: &Scope<'_>,
    exchange: &Exchange<'_>,
    request: &Request,
    name: &str,
) -> Result<Option<Outcome>, RpcError> {
    if !may_use(scope, PROMPT_RIGHT) {
        return Ok(None);
    }
    let given = json::decode_tree(request.arguments()?.as_str()).unwrap_or_default();
    let is_text = |fields: &Map<String, Value>| fields.values().all(Value::is_string);
    if !given.as_object().is_some_and(is_text) {
        let message = "The arguments of a prompt must be strings.";
        return Err(RpcError::params("arguments", message));
    }
    let what = json!({"ask": "prompt", "name": name, "arguments": given});
    let shape = |text: &str| read_messages(text, name);
    converse(scope, exchange, request, (name, what), &shape).await
}

/// Calls the class repeatedly until it returns the result. In between, the client answers
/// the class's questions.
async fn converse(
    scope: &Scope<'_>,
    exchange: &Exchange<'_>,
    request: &Request,
    (name, what): (&str, Value),
    shape: &dyn Fn(&str) -> Result<Value, RpcError>,
) -> Result<Option<Outcome>, RpcError> {
    let session = scope.session_id().map_or("", Id::as_str);
    let caller = caller_text(scope.agent);
    let call = RequestedCall {
        name,
        binding: json::text(&json!([scope.agent.name, caller, session, "mcp", what])),
        accepts_early_answers: true,
    };
    let mut is_found = true;
    let step = async |round: &mut CallRound| {
        let mut what = what.clone();
        if let Some(fields) = what.as_object_mut() {
            if let Some(answers) = round.responses() {
                fields.insert("inputResponses".to_owned(), answers.clone());
            }
            if let Some(state) = &round.state {
                fields.insert("requestState".to_owned(), state.as_str().into());
            }
        }
        let text = match ask(scope, what, MAX_ANSWER_BYTES, ANSWER_MS).await {
            ClassReply::Text(text) => text,
            ClassReply::Nothing => {
                is_found = false;
                return Outcome::new(&json!({})).map(Step::Done);
            }
            ClassReply::BadArgument(argument) => {
                let argument: String = argument.chars().take(100).collect();
                let message = format!("The argument `{argument}` is missing or not valid.");
                return Err(RpcError::params("arguments", message));
            }
            ClassReply::Failed => return Err(failed(&format!("give `{name}`"))),
        };
        if asks_for_input(&text) {
            return read_questions(name, &text).map(Step::Asks);
        }
        Outcome::new(&shape(&text)?).map(Step::Done)
    };
    match exchange.converse(scope, request, &call, step).await? {
        Ended::With(outcome) => Ok(is_found.then_some(outcome)),
        Ended::Without(text) => Err(RpcError::new(INTERNAL_ERROR, text)),
    }
}

fn asks_for_input(text: &str) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed {
        result_type: String,
    }
    text.contains(INPUT_REQUIRED)
        && json::decode::<Typed>(text).is_ok_and(|typed| typed.result_type == INPUT_REQUIRED)
}

/// The values of an argument of a prompt, or of a variable of a template.
pub async fn complete(
    scope: &Scope<'_>,
    of: &Value,
    argument: &str,
    typed: &str,
    context: &Value,
) -> Result<Vec<String>, RpcError> {
    let right = match of["type"].as_str() {
        Some("ref/prompt") => PROMPT_RIGHT,
        _ => RESOURCE_RIGHT,
    };
    if !may_use(scope, right) {
        return Ok(Vec::new());
    }
    let others = context.get("arguments").filter(|others| others.is_object());
    let what = json!({
        "ask": "complete",
        "of": of.get("name").or_else(|| of.get("uri")),
        "isPrompt": right == PROMPT_RIGHT,
        "argument": argument,
        "value": typed,
        "arguments": others.cloned().unwrap_or_else(|| json!({})),
    });
    match ask(scope, what, MAX_LIST_BYTES, LIST_MS).await {
        ClassReply::Text(text) => read_as(&text, "the completions"),
        ClassReply::Nothing | ClassReply::BadArgument(_) => Ok(Vec::new()),
        ClassReply::Failed => Err(failed("complete the argument")),
    }
}

/// A fingerprint that changes when the resource changes. `Ok(None)`: there is no such
/// resource.
pub async fn find_fingerprint(scope: &Scope<'_>, uri: &str) -> Result<Option<String>, RpcError> {
    if !may_use(scope, RESOURCE_RIGHT) || uri.len() > MAX_URI_BYTES {
        return Ok(None);
    }
    let what = json!({"ask": "version", "uri": uri});
    match ask(scope, what, MAX_ANSWER_BYTES, ANSWER_MS).await {
        ClassReply::Text(text) => Ok(Some(fingerprint_of(&text))),
        ClassReply::Nothing => Ok(None),
        ClassReply::BadArgument(_) | ClassReply::Failed => Err(failed(&format!("give `{uri}`"))),
    }
}

/// A short hash of the text.
pub fn fingerprint_of(text: &str) -> String {
    format!("{:016x}", hash_names(&[text]))
}

async fn ask(scope: &Scope<'_>, mut what: Value, max_bytes: usize, ms: i64) -> ClassReply {
    if let Some(fields) = what.as_object_mut() {
        fields.insert("agent".to_owned(), scope.agent.name.into());
        if let Some(id) = scope.session_id() {
            fields.insert("sessionId".to_owned(), id.as_str().into());
        }
    }
    let call = OutboundRequest {
        purpose: CallPurpose::Tool,
        endpoint: Endpoint::Service {
            binding: OWN_CLASS.to_owned(),
            path: PATH.to_owned(),
        },
        headers: Vec::new(),
        body: json::text(&what),
        limits: CallLimits {
            wait_ms: ms,
            silence_ms: ms,
            no_content_ms: None,
            total_ms: ms,
            max_bytes,
        },
    };
    let Ok(answer) = send_and_read(scope.agent.outbound, call).await else {
        return ClassReply::Failed;
    };
    let Ok(text) = String::from_utf8(answer.body) else {
        return ClassReply::Failed;
    };
    match answer.status {
        200 => ClassReply::Text(text),
        404 => ClassReply::Nothing,
        400 => ClassReply::BadArgument(text),
        _ => ClassReply::Failed,
    }
}

/// The contents of a resource.
fn read_contents(text: &str, uri: &str) -> Result<Value, RpcError> {
    let wrong = |why: &str| Err(malformed(&format!("`{uri}`"), why));
    let answer = &read_tree(text, uri)?;
    let Some(contents) = answer["contents"].as_array() else {
        return wrong("it has no list `contents`");
    };
    if contents.len() > MAX_CONTENTS {
        return wrong("it has too many `contents`");
    }
    let mut passed_on = Vec::with_capacity(contents.len());
    for content in contents {
        let Some(address) = content["uri"].as_str() else {
            return wrong("a content has no `uri`");
        };
        let mut item = json!({"uri": address});
        let (name, value) = match (content["text"].as_str(), content["blob"].as_str()) {
            (Some(text), None) => ("text", text),
            (None, Some(blob)) if is_base64(blob) => ("blob", blob),
            _ => return wrong("a content needs `text`, or `blob` in base64"),
        };
        if let Some(fields) = item.as_object_mut() {
            if let Some(kind) = content["mimeType"].as_str() {
                fields.insert("mimeType".to_owned(), kind.into());
            }
            fields.insert(name.to_owned(), value.into());
        }
        passed_on.push(item);
    }
    Ok(json!({"contents": passed_on}))
}

/// The messages of a prompt.
fn read_messages(text: &str, name: &str) -> Result<Value, RpcError> {
    let wrong = |why: &str| Err(malformed(&format!("`{name}`"), why));
    let prompt = &read_tree(text, name)?;
    let Some(messages) = prompt["messages"].as_array() else {
        return wrong("it has no list `messages`");
    };
    if messages.len() > MAX_CONTENTS {
        return wrong("it has too many `messages`");
    }
    let roles = [Role::User.name(), Role::Assistant.name()];
    let mut passed_on = Vec::with_capacity(messages.len());
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        if !roles.contains(&role) {
            return wrong("the `role` of a message must be `user` or `assistant`");
        }
        if !is_content(&message["content"]) {
            return wrong("the `content` of a message is none of the protocol's");
        }
        passed_on.push(json!({"role": role, "content": message["content"]}));
    }
    let mut answer = json!({"messages": passed_on});
    let description = prompt["description"].as_str();
    let description = description.filter(|text| text.len() <= MAX_DESCRIPTION_BYTES);
    if let (Some(description), Some(fields)) = (description, answer.as_object_mut()) {
        fields.insert("description".to_owned(), description.into());
    }
    Ok(answer)
}

fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let is_digit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4) && text.len() - body.len() <= 2 && body.bytes().all(is_digit)
}

fn read_tree(text: &str, what: &str) -> Result<Value, RpcError> {
    json::decode_tree(text).map_err(|_| malformed(&format!("`{what}`"), "it is not JSON"))
}

fn read_as<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, RpcError> {
    json::decode(text).map_err(|_| malformed(what, "the shape is another one"))
}

/// An error of the class itself. It reveals nothing of what the class threw.
fn failed(what: &str) -> RpcError {
    let message =
        format!("The agent's class could not {what}. The Worker's log contains the error.");
    RpcError::new(INTERNAL_ERROR, message)
}

fn malformed(what: &str, why: &str) -> RpcError {
    let message =
        format!("The agent's class gave {what} in a form that can't be passed on: {why}.");
    RpcError::new(INTERNAL_ERROR, message)
}
