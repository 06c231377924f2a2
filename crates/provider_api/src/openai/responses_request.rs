//! Reads a request of OpenAI's Responses API. If the model is called through Responses, all fields
//! pass through. Otherwise the request is translated to Chat Completions, which every compatible
//! server has.

use std::collections::BTreeMap;

use serde_json::Value;

use super::referred_items::StoredItems;
use super::request::{ANY_OBJECT, check_is_function};
use super::responses_input::parse_input;
use super::responses_items::parse_items;
use super::responses_tools::{ToolList, parse_tool_list};
use crate::numbers::object;
use crate::request::{
    ParsedRequest, RequestFields, flag_in, id_in, parse_definition, parse_tools, text_in, tree,
    values,
};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, JsonObject, RawValue, json};
use models::ToolDefinition;

/// Fields that don't affect the model, and that the answer repeats.
const ECHOED: &[&str] = &[
    "metadata",
    "user",
    "safety_identifier",
    "prompt_cache_key",
    "service_tier",
    "truncation",
    "max_tool_calls",
    "top_logprobs",
];

/// The name of a field in Chat Completions.
const SAME: &[(&str, &str)] = &[
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("parallel_tool_calls", "parallel_tool_calls"),
    ("max_output_tokens", "max_completion_tokens"),
    ("metadata", "metadata"),
    ("user", "user"),
    ("safety_identifier", "safety_identifier"),
    ("prompt_cache_key", "prompt_cache_key"),
    ("service_tier", "service_tier"),
];

/// Unsupported fields, and why.
const REFUSED: &[(&str, &str)] = &[(
    "context_management",
    "The agent compacts its sessions itself.",
)];

/// The most values of `include`: there are some ten.
const MAX_INCLUDED: usize = 100;

/// A parsed turn, and the other fields of the request.
#[derive(Debug)]
pub struct ResponsesTurn {
    parsed: ParsedRequest,
    pub conversation: Option<Id>,
    other: OtherFields,
}

#[derive(Debug)]
pub struct OtherFields {
    pub previous: Option<Id>,
    /// Whether the answer can be fetched by its id later.
    pub is_stored: bool,
    /// The fields that the answer repeats.
    pub echo: JsonObject,
    /// Whether the model is called through Responses.
    pub in_responses: bool,
    /// Whether the answer includes the encrypted form of the reasoning.
    pub wants_encrypted: bool,
}

impl ResponsesTurn {
    pub fn split(self) -> (ParsedRequest, OtherFields) {
        (self.parsed, self.other)
    }
}

/// `stored`: the items that the request may refer to by id. `uses_responses`: whether the model
/// of this name is called through Responses.
pub fn parse(
    body: &[u8],
    stored: &StoredItems<'_>,
    uses_responses: &dyn Fn(&str) -> Result<bool>,
) -> Result<ResponsesTurn> {
    let body: JsonObject = json::parse(body)?;
    let mut fields = RequestFields::of("body", body.as_str())?;
    let model = fields.take_model()?;
    let is_streamed = flag_in("stream", fields.take("stream"))?;
    let previous = fields.take("previous_response_id");
    let previous = previous
        .map(|id| id_in("previous_response_id", Some(id)))
        .transpose()?;
    let conversation = fields.take("conversation").map(|given| {
        let id = if given.get().starts_with('{') {
            RequestFields::of("conversation", given.get())?.find("id")
        } else {
            Some(given)
        };
        id_in("conversation", id)
    });
    let conversation = conversation.transpose()?;
    if previous.is_some() && conversation.is_some() {
        return Err(Error::invalid(
            "conversation",
            "Send `conversation` or `previous_response_id`, not both.",
        ));
    }
    let is_stored = fields
        .find("store")
        .is_none_or(|store| store.get() != "false");
    for (name, instead) in REFUSED {
        if fields.take(name).is_some() {
            let message = format!("`{name}` is not supported. {instead}");
            return Err(Error::invalid(name, message));
        }
    }
    if flag_in("background", fields.take("background"))? {
        return Err(Error::invalid(
            "background",
            "`background` is not supported, and not needed: the answer is completed even if the client disconnects.",
        ));
    }
    let instructions = fields.take("instructions");
    let instructions = instructions
        .map(|text| text_in("instructions", text))
        .transpose()?;
    let system: Vec<String> = instructions.iter().cloned().collect();
    let mut echo = object(json!({
        "instructions": instructions,
        "previous_response_id": previous.as_ref().map(Id::as_str),
        "store": is_stored
    }));
    if let Some(conversation) = &conversation {
        let named = json!({"id": conversation.as_str()});
        echo.insert("conversation".to_owned(), named);
    }
    let head = CommonFields {
        model,
        is_streamed,
        conversation,
        previous,
        is_stored,
    };
    if uses_responses(&head.model)? {
        parse_as_given(fields, head, (system, echo), stored)
    } else {
        parse_in_chat(fields, head, (system, echo), stored)
    }
}

/// The fields that a request has whichever API the model is called through.
struct CommonFields {
    model: String,
    is_streamed: bool,
    conversation: Option<Id>,
    previous: Option<Id>,
    is_stored: bool,
}

/// The instructions so far, and the fields that the answer repeats.
type ReadSoFar = (Vec<String>, serde_json::Map<String, Value>);

/// Reads the rest of a request whose model is called through Responses: all fields pass through.
fn parse_as_given(
    mut fields: RequestFields<'_>,
    head: CommonFields,
    (mut system, echo): ReadSoFar,
    stored: &StoredItems<'_>,
) -> Result<ResponsesTurn> {
    let include = fields.find("include").map(|include| {
        let wanted = values::<MAX_INCLUDED>("include", include)?.into_iter();
        let wanted = wanted.enumerate();
        wanted
            .map(|(index, name)| text_in(&format!("include[{index}]"), name))
            .collect::<Result<Vec<String>>>()
    });
    let include = include.transpose()?.unwrap_or_default();
    let tools = match fields.take("tools") {
        Some(tools) => parse_tool_list(tools)?,
        None => ToolList::default(),
    };
    let choice = fields.find("tool_choice");
    let number = |name: &str| fields.find(name).map(RawValue::get);
    let max_tokens = number("max_output_tokens").and_then(|text| json::decode(text).ok());
    let temperature = number("temperature").and_then(|text| json::decode(text).ok());
    let input = fields
        .take("input")
        .ok_or_else(|| Error::invalid("input", "`input` is missing."))?;
    let items = parse_items(input, &mut system, stored)?;
    Ok(ResponsesTurn {
        parsed: ParsedRequest {
            model: head.model,
            is_streamed: head.is_streamed,
            wants_usage: true,
            system,
            system_blocks: Vec::new(),
            cache_marks: 0,
            items,
            tools: tools.functions,
            given_tools: tools.given,
            tool_list: tools.list,
            is_choice_free: choice.is_none_or(|choice| choice.get() == r#""auto""#),
            fields: fields.into_object()?,
            max_tokens,
            temperature,
        },
        conversation: head.conversation,
        other: OtherFields {
            previous: head.previous,
            is_stored: head.is_stored,
            echo: decoded(&Value::Object(echo))?,
            in_responses: true,
            wants_encrypted: include.iter().any(|name| name == ENCRYPTED),
        },
    })
}

const ENCRYPTED: &str = "reasoning.encrypted_content";

fn decoded(object: &Value) -> Result<JsonObject> {
    let json = json::text(object);
    json::decode(&json).map_err(|error| Error::storage(error.to_string()))
}

/// Reads the rest of a request whose model is called through Chat Completions.
fn parse_in_chat(
    mut fields: RequestFields<'_>,
    head: CommonFields,
    (mut system, mut echo): ReadSoFar,
    stored: &StoredItems<'_>,
) -> Result<ResponsesTurn> {
    fields.take("store");
    let wants_logprobs = match fields.take("include") {
        Some(include) => parse_include(include)?,
        None => false,
    };
    fields.take("stream_options");
    // What Codex reports about itself.
    fields.take("client_metadata");
    let (tools, given_tools) = match fields.take("tools") {
        Some(tools) => {
            put(&mut echo, "tools", tools);
            parse_tools(tools, parse_tool)?
        }
        None => (Vec::new(), BTreeMap::new()),
    };
    let mut in_chat_format = serde_json::Map::new();
    let choice = fields.take("tool_choice");
    let is_choice_free = choice.is_none_or(|choice| choice.get() == r#""auto""#);
    if let Some(choice) = choice {
        put(&mut echo, "tool_choice", choice);
        in_chat_format.insert("tool_choice".to_owned(), choice_in_chat(choice)?);
    }
    if let Some(reasoning) = fields.take("reasoning") {
        put(&mut echo, "reasoning", reasoning);
        let reasoning = RequestFields::of("reasoning", reasoning.get())?;
        if let Some(effort) = reasoning.find("effort") {
            in_chat_format.insert("reasoning_effort".to_owned(), tree(effort)?);
        }
    }
    if let Some(text) = fields.take("text") {
        put(&mut echo, "text", text);
        let text = RequestFields::of("text", text.get())?;
        let format = text.within("text", "format")?;
        in_chat_format
            .extend(format_in_chat(&format)?.map(|it| ("response_format".to_owned(), it)));
        if let Some(verbosity) = text.find("verbosity") {
            in_chat_format.insert("verbosity".to_owned(), tree(verbosity)?);
        }
    }
    let limit = fields.find("max_output_tokens").map(RawValue::get);
    let max_tokens = limit.and_then(|text| json::decode(text).ok());
    let temperature = fields.find("temperature").map(RawValue::get);
    let temperature = temperature.and_then(|text| json::decode(text).ok());
    for (name, in_chat) in SAME {
        if let Some(value) = fields.take(name) {
            put(&mut echo, name, value);
            in_chat_format.insert((*in_chat).to_owned(), tree(value)?);
        }
    }
    let top = fields.find("top_logprobs").filter(|top| top.get() != "0");
    if wants_logprobs || top.is_some() {
        in_chat_format.insert("logprobs".to_owned(), Value::Bool(true));
    }
    if let Some(top) = top {
        in_chat_format.insert("top_logprobs".to_owned(), tree(top)?);
    }
    for name in ECHOED {
        if let Some(value) = fields.take(name) {
            put(&mut echo, name, value);
        }
    }
    let input = fields
        .take("input")
        .ok_or_else(|| Error::invalid("input", "`input` is missing."))?;
    let items = parse_input(input, &mut system, stored)?;
    if let Some((name, _)) = fields.0.first() {
        return Err(Error::invalid(
            name,
            format!(
                "`{name}` is not supported: the model is called through the Chat Completions API, which has no such field."
            ),
        ));
    }
    Ok(ResponsesTurn {
        parsed: ParsedRequest {
            model: head.model,
            is_streamed: head.is_streamed,
            wants_usage: true,
            system,
            system_blocks: Vec::new(),
            cache_marks: 0,
            items,
            tools,
            given_tools,
            tool_list: Vec::new(),
            is_choice_free,
            fields: decoded(&Value::Object(in_chat_format))?,
            max_tokens,
            temperature,
        },
        conversation: head.conversation,
        other: OtherFields {
            previous: head.previous,
            is_stored: head.is_stored,
            echo: decoded(&Value::Object(echo))?,
            in_responses: false,
            wants_encrypted: false,
        },
    })
}

/// Values of `include` that are accepted without effect: no answer here has these fields, of calls
/// of other tools and of reasoning.
const OF_OTHER_ITEMS: &[&str] = &[
    "reasoning.encrypted_content",
    "web_search_call.",
    "file_search_call.",
    "code_interpreter_call.",
    "computer_call_output.",
];

/// Whether the answer must include the probabilities of tokens.
fn parse_include(include: &RawValue) -> Result<bool> {
    let mut wants_logprobs = false;
    let wanted = values::<MAX_INCLUDED>("include", include)?;
    for (index, wanted) in wanted.into_iter().enumerate() {
        let field = format!("include[{index}]");
        let name = text_in(&field, wanted)?;
        if name == "message.output_text.logprobs" {
            wants_logprobs = true;
        } else if !OF_OTHER_ITEMS.iter().any(|known| name.starts_with(known)) {
            let message = format!("`{field}` is not supported: `{name}` can't be included here.");
            return Err(Error::invalid(&field, message));
        }
    }
    Ok(wants_logprobs)
}

fn put(echo: &mut serde_json::Map<String, Value>, name: &str, value: &RawValue) {
    if let Ok(value) = json::decode_tree(value.get()) {
        echo.insert(name.to_owned(), value);
    }
}

fn choice_in_chat(choice: &RawValue) -> Result<Value> {
    if choice.get().starts_with('"') {
        return tree(choice);
    }
    let choice = RequestFields::of("tool_choice", choice.get())?;
    match choice.text("type").as_str() {
        "function" => Ok(json!({
            "type": "function",
            "function": {"name": choice.text("name")}
        })),
        _ => Err(Error::invalid(
            "tool_choice",
            "`tool_choice` must be `auto`, `none`, `required` or a function.",
        )),
    }
}

fn format_in_chat(format: &RequestFields<'_>) -> Result<Option<Value>> {
    match format.text("type").as_str() {
        "json_schema" => {
            let mut schema = serde_json::Map::new();
            for name in ["name", "schema", "strict", "description"] {
                if let Some(value) = format.find(name) {
                    schema.insert(name.to_owned(), tree(value)?);
                }
            }
            Ok(Some(
                json!({"type": "json_schema", "json_schema": Value::Object(schema)}),
            ))
        }
        "json_object" => Ok(Some(json!({"type": "json_object"}))),
        "" | "text" => Ok(None),
        _ => Err(Error::invalid(
            "text.format.type",
            "`text.format.type` must be `text`, `json_object` or `json_schema`.",
        )),
    }
}

/// The fields of a tool that Chat Completions have, too.
const TOOL_FIELDS: &[&str] = &["name", "description", "parameters", "strict"];

/// Rejects a field that would not reach the model.
fn check_tool_fields(field: &str, tool: &RequestFields<'_>) -> Result<()> {
    let reaches_model = |name: &str, value: &RawValue| {
        name == "type" || TOOL_FIELDS.contains(&name) || matches!(value.get(), "null" | "false")
    };
    match tool
        .0
        .iter()
        .find(|(name, value)| !reaches_model(name, value))
    {
        None => Ok(()),
        Some((name, _)) => {
            let field = format!("{field}.{name}");
            let message =
                format!("`{field}` is not supported: Chat Completions have no such field.");
            Err(Error::invalid(&field, message))
        }
    }
}

fn parse_tool(
    field: &str,
    tool: &RequestFields<'_>,
    _given: &RawValue,
) -> Result<(ToolDefinition, Box<RawValue>)> {
    check_is_function(field, tool)?;
    let definition = parse_definition(field, tool, ("parameters", ANY_OBJECT))?;
    check_tool_fields(field, tool)?;
    let mut function = serde_json::Map::new();
    for name in TOOL_FIELDS {
        if let Some(value) = tool.find(name) {
            function.insert((*name).to_owned(), tree(value)?);
        }
    }
    let in_chat = json!({"type": "function", "function": Value::Object(function)});
    Ok((definition, json::raw(json::text(&in_chat))?))
}
