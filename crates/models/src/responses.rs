//! Encodes a request in OpenAI's Responses API. It is used if both the caller and the provider
//! use Responses. The caller's fields and tools are passed through as the caller wrote them.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::caller_fields::{CallerFields, fields_of};
use super::reasoning::is_openai_reasoning;
use super::responses_input::{InputItem, input};
use super::{ModelRequest, to_json};
use base::json::{self, RawValue};
use store::model_settings::ReasoningEffort;

pub const PATH: &str = "responses";

const INCLUDE: &str = "include";

/// Makes the provider add to each thought all that it needs to accept the thought again, so that no
/// thought depends on what the provider stores.
const ENCRYPTED: &str = "reasoning.encrypted_content";

#[derive(Serialize)]
struct ResponsesRequest<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
    input: Vec<InputItem<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<ResponsesTool<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Reasoning>,
    stream: bool,
}

#[derive(Serialize)]
struct Reasoning {
    effort: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResponsesTool<'a> {
    /// As the caller wrote it.
    Given(&'a RawValue),
    Defined {
        #[serde(rename = "type")]
        kind: &'static str,
        name: &'a str,
        description: &'a str,
        parameters: &'a RawValue,
        /// `false`: otherwise the provider rejects schemas with optional fields.
        strict: bool,
    },
}

pub fn encode(request: &ModelRequest<'_>, model: &str, caller: &CallerFields) -> String {
    let reasons = is_openai_reasoning(model);
    let instructions = request.system.join("\n\n");
    let body = to_json(&ResponsesRequest {
        model,
        instructions: Some(instructions).filter(|text| !text.trim().is_empty()),
        input: input(request, model, is_stored(caller)),
        tools: tools(request, caller),
        include: included(caller, reasons),
        max_output_tokens: request.max_output_tokens,
        temperature: request.temperature.filter(|_| !reasons),
        reasoning: request
            .reasoning_effort
            .filter(|_| reasons)
            .map(|effort| Reasoning {
                effort: ReasoningEffort::name(effort),
            }),
        stream: caller.is_streamed,
    });
    caller.merge_into(&body, &[INCLUDE])
}

/// Whether the provider stores the answer, and so can resolve the ids of its items.
fn is_stored(caller: &CallerFields) -> bool {
    let fields = fields_of(caller.fields.as_str());
    let store = fields.iter().find(|(name, _)| name == "store");
    store.is_none_or(|(_, store)| store.get() != "false")
}

/// What the caller wants included; for a model that reasons, also its encrypted thoughts.
fn included(caller: &CallerFields, reasons: bool) -> Vec<String> {
    let fields = fields_of(caller.fields.as_str());
    let given = fields.iter().find(|(name, _)| name == INCLUDE);
    let given = given.and_then(|(_, list)| json::decode::<Vec<String>>(list.get()).ok());
    let mut included = given.unwrap_or_default();
    if reasons && !included.iter().any(|name| name == ENCRYPTED) {
        included.push(ENCRYPTED.to_owned());
    }
    included
}

/// The tools that run here, then the caller's.
fn tools<'a>(request: &ModelRequest<'a>, caller: &'a CallerFields) -> Vec<ResponsesTool<'a>> {
    let given: Vec<(Option<String>, &RawValue)> = caller
        .tool_list
        .iter()
        .map(|tool| (find_function(tool), tool.as_ref()))
        .collect();
    let clients: HashSet<&str> = given
        .iter()
        .filter_map(|(name, _)| name.as_deref())
        .collect();
    let offered: HashSet<&str> = request
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    let own = request
        .tools
        .iter()
        .filter(|tool| !clients.contains(tool.name.as_str()))
        .map(|tool| ResponsesTool::Defined {
            kind: "function",
            name: &tool.name,
            description: &tool.description,
            parameters: &tool.parameters,
            strict: false,
        });
    let is_offered =
        |name: &Option<String>| name.as_deref().is_none_or(|name| offered.contains(name));
    let given = given
        .iter()
        .filter(|(name, _)| is_offered(name))
        .map(|(_, tool)| ResponsesTool::Given(tool));
    own.chain(given).collect()
}

/// The name of a tool that is a function.
fn find_function(tool: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        #[serde(rename = "type")]
        kind: String,
        name: String,
    }
    let named: Named = json::decode(tool.get()).ok()?;
    (named.kind == "function").then_some(named.name)
}
