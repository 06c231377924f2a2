//! Reads a request of OpenAI's Responses. What it asks of the model is said as Chat Completions
//! say it, since every model of OpenAI's and every compatible server is asked so.

use std::collections::BTreeMap;

use serde_json::Value;

use super::referred_items::StoredItems;
use super::request::{ANY_OBJECT, IN_OWN_FORM, arguments_of, check_is_function};
use crate::numbers::{object, set};
use crate::request::{
    Item, ItemCall, MAX_ITEMS, MAX_PARTS, ParsedRequest, RequestFields, check_given, file_part,
    flag_in, id_in, keep_given, parse_definition, parse_tools, text_in, text_part, values,
};
use base::action::Role;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, JsonObject, RawValue, json};
use models::ToolDefinition;

/// Fields that say nothing to the model, and come back in the answer.
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

/// The most values of `include`: there are some ten.
const MAX_INCLUDED: usize = 100;

/// A request, and what it says beside the turn.
#[derive(Debug)]
pub struct ResponsesAsk {
    parsed: ParsedRequest,
    pub conversation: Option<Id>,
    beside: BesideTurn,
}

#[derive(Debug)]
pub struct BesideTurn {
    pub previous: Option<Id>,
    /// Whether the answer can be asked for by its id.
    pub is_stored: bool,
    /// The fields that the answer repeats.
    pub echo: JsonObject,
}

impl ResponsesAsk {
    pub fn split(self) -> (ParsedRequest, BesideTurn) {
        (self.parsed, self.beside)
    }
}

/// `stored`: the items that the request may name by their ids.
pub fn parse(body: &[u8], stored: &StoredItems<'_>) -> Result<ResponsesAsk> {
    let body: JsonObject = json::parse(body)?;
    let mut fields = RequestFields::of("body", body.as_str())?;
    let model = fields.take_model()?;
    let is_streamed = flag_in("stream", fields.take("stream"))?;
    let previous = fields.take("previous_response_id");
    let previous = previous
        .map(|id| id_in("previous_response_id", Some(id)))
        .transpose()?;
    let conversation = fields.take("conversation").map(|given| {
        let id = match given.get().starts_with('{') {
            true => RequestFields::of("conversation", given.get())?.find("id"),
            false => Some(given),
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
        .take("store")
        .is_none_or(|store| store.get() != "false");
    if flag_in("background", fields.take("background"))? {
        return Err(Error::invalid(
            "background",
            "`background` is not supported, and not needed: the answer is completed even if the client disconnects.",
        ));
    }
    let wants_logprobs = match fields.take("include") {
        Some(include) => parse_include(include)?,
        None => false,
    };
    fields.take("stream_options");
    // What Codex reports about itself.
    fields.take("client_metadata");
    let instructions = fields.take("instructions");
    let instructions = instructions
        .map(|text| text_in("instructions", text))
        .transpose()?;
    let mut system: Vec<String> = instructions.iter().cloned().collect();
    let mut echo = object(json!({
        "instructions": instructions,
        "previous_response_id": previous.as_ref().map(Id::as_str),
        "store": is_stored
    }));
    let (tools, given_tools) = match fields.take("tools") {
        Some(tools) => {
            put(&mut echo, "tools", tools);
            parse_tools(tools, parse_tool)?
        }
        None => (Vec::new(), BTreeMap::new()),
    };
    let mut said = serde_json::Map::new();
    let choice = fields.take("tool_choice");
    let is_choice_free = choice.is_none_or(|choice| choice.get() == r#""auto""#);
    if let Some(choice) = choice {
        put(&mut echo, "tool_choice", choice);
        said.insert("tool_choice".to_owned(), choice_in_chat(choice)?);
    }
    if let Some(reasoning) = fields.take("reasoning") {
        put(&mut echo, "reasoning", reasoning);
        let reasoning = RequestFields::of("reasoning", reasoning.get())?;
        if let Some(effort) = reasoning.find("effort") {
            said.insert("reasoning_effort".to_owned(), tree(effort)?);
        }
    }
    if let Some(text) = fields.take("text") {
        put(&mut echo, "text", text);
        let text = RequestFields::of("text", text.get())?;
        let format = text.within("text", "format")?;
        said.extend(format_in_chat(&format)?.map(|it| ("response_format".to_owned(), it)));
        if let Some(verbosity) = text.find("verbosity") {
            said.insert("verbosity".to_owned(), tree(verbosity)?);
        }
    }
    let limit = fields.find("max_output_tokens").map(RawValue::get);
    let max_tokens = limit.and_then(|text| json::decode(text).ok());
    let temperature = fields.find("temperature").map(RawValue::get);
    let temperature = temperature.and_then(|text| json::decode(text).ok());
    for (name, in_chat) in SAME {
        if let Some(value) = fields.take(name) {
            put(&mut echo, name, value);
            said.insert((*in_chat).to_owned(), tree(value)?);
        }
    }
    let top = fields.find("top_logprobs").filter(|top| top.get() != "0");
    if wants_logprobs || top.is_some() {
        said.insert("logprobs".to_owned(), Value::Bool(true));
    }
    if let Some(top) = top {
        said.insert("top_logprobs".to_owned(), tree(top)?);
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
    let decoded = |object: &Value| -> Result<JsonObject> {
        let json = json::text(object);
        json::decode(&json).map_err(|error| Error::storage(error.to_string()))
    };
    Ok(ResponsesAsk {
        parsed: ParsedRequest {
            model,
            is_streamed,
            wants_usage: true,
            system,
            system_blocks: Vec::new(),
            cache_marks: 0,
            items,
            tools,
            given_tools,
            is_choice_free,
            fields: decoded(&Value::Object(said))?,
            max_tokens,
            temperature,
        },
        conversation,
        beside: BesideTurn {
            previous,
            is_stored,
            echo: decoded(&Value::Object(echo))?,
        },
    })
}

/// Fields of items that no answer here has: of calls of other tools, and of thoughts.
const OF_OTHER_ITEMS: &[&str] = &[
    "reasoning.encrypted_content",
    "web_search_call.",
    "file_search_call.",
    "code_interpreter_call.",
    "computer_call_output.",
];

/// Whether the answer is to have the probabilities of tokens.
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

fn tree(value: &RawValue) -> Result<Value> {
    json::decode_tree(value.get()).map_err(|error| Error::storage(error.to_string()))
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

/// Refuses a field that the model would not hear of.
fn check_tool_fields(field: &str, tool: &RequestFields<'_>) -> Result<()> {
    let is_said = |name: &str, value: &RawValue| {
        name == "type" || TOOL_FIELDS.contains(&name) || matches!(value.get(), "null" | "false")
    };
    match tool.0.iter().find(|(name, value)| !is_said(name, value)) {
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

fn parse_input(
    input: &RawValue,
    system: &mut Vec<String>,
    stored: &StoredItems<'_>,
) -> Result<Vec<Item>> {
    if input.get().starts_with('"') {
        let said = SaidContent::of_text(text_in("input", input)?);
        return Ok(vec![said.into_user()?]);
    }
    let mut items: Vec<Item> = Vec::new();
    for (index, item) in values::<MAX_ITEMS>("input", input)?.into_iter().enumerate() {
        let field = format!("input[{index}]");
        let mut item = RequestFields::of(&field, item.get())?;
        let referred = match item.text("type").as_str() {
            "item_reference" => Some(stored.get(&field, &item.text("id"))?),
            _ => None,
        };
        if let Some(referred) = &referred {
            item = RequestFields::of(&field, referred.get())?;
        }
        match item.text("type").as_str() {
            "" | "message" => parse_message(&field, &item, system, &mut items)?,
            "function_call" => {
                let call = ItemCall {
                    id: id_in(&format!("{field}.call_id"), item.find("call_id"))?,
                    name: id_in(&format!("{field}.name"), item.find("name"))?,
                    arguments: arguments_of(&item.text("arguments"))?,
                };
                // A text and the calls after it are one message of the assistant's.
                match items.last_mut() {
                    Some(Item::Assistant { calls, .. }) => calls.push(call),
                    _ => items.push(Item::Assistant {
                        text: String::new(),
                        calls: vec![call],
                    }),
                }
            }
            "function_call_output" => items.push(Item::Result {
                call_id: id_in(&format!("{field}.call_id"), item.find("call_id"))?,
                text: output_of(&field, &item)?,
                is_error: false,
                given: None,
            }),
            // The log has the thoughts that are the agent's own.
            "reasoning" => {}
            kind => {
                return Err(Error::invalid(
                    &field,
                    format!("`{field}` has the type `{kind}`, which is not supported."),
                ));
            }
        }
    }
    Ok(items)
}

fn output_of(field: &str, item: &RequestFields<'_>) -> Result<String> {
    match item.find("output") {
        Some(output) if output.get().starts_with('[') => {
            let field = format!("{field}.output");
            let parts = values::<MAX_PARTS>(&field, output)?.into_iter().enumerate();
            let texts = parts.map(|(index, part)| {
                let field = format!("{field}[{index}]");
                let part = RequestFields::of(&field, part.get())?;
                match part.text("type").as_str() {
                    "input_text" | "output_text" | "text" => Ok(part.text("text")),
                    kind => Err(Error::invalid(
                        &field,
                        format!(
                            "`{field}` is of the type `{kind}`: a result can only be text here."
                        ),
                    )),
                }
            });
            Ok(texts.collect::<Result<Vec<String>>>()?.join("\n"))
        }
        Some(output) => text_in(&format!("{field}.output"), output),
        None => Ok(String::new()),
    }
}

fn parse_message(
    field: &str,
    item: &RequestFields<'_>,
    system: &mut Vec<String>,
    items: &mut Vec<Item>,
) -> Result<()> {
    let content = item.find("content").ok_or_else(|| {
        let field = format!("{field}.content");
        Error::invalid(&field, format!("`{field}` is missing."))
    })?;
    let field_of_content = format!("{field}.content");
    let said = match content.get().starts_with('"') {
        true => SaidContent::of_text(text_in(&field_of_content, content)?),
        false => parse_content(&field_of_content, content)?,
    };
    match item.text("role").as_str() {
        "system" | "developer" => system.push(said.text()),
        "user" => items.push(said.into_user()?),
        "assistant" => match items.last_mut() {
            // Several texts of one answer.
            Some(Item::Assistant {
                text: so_far,
                calls,
            }) if calls.is_empty() => {
                so_far.push('\n');
                so_far.push_str(&said.text());
            }
            _ => items.push(Item::Assistant {
                text: said.text(),
                calls: Vec::new(),
            }),
        },
        _ => {
            let field = format!("{field}.role");
            let message =
                format!("`{field}` must be `system`, `developer`, `user` or `assistant`.");
            return Err(Error::invalid(&field, message));
        }
    }
    Ok(())
}

/// What a message says: its parts as the AI SDK writes them, and as Chat Completions write them if
/// those don't say all.
#[derive(Default)]
struct SaidContent {
    texts: Vec<String>,
    parts: Vec<Value>,
    others: Vec<String>,
    in_chat: Vec<Value>,
    is_unplain: bool,
    /// A part that only its provider reads.
    lost: Option<String>,
}

impl SaidContent {
    fn of_text(text: String) -> Self {
        Self {
            parts: vec![text_part(&text)],
            texts: vec![text],
            ..Self::default()
        }
    }

    fn text(&self) -> String {
        self.texts.join("\n")
    }

    fn into_user(self) -> Result<Item> {
        let text = self.text();
        let given = match self.is_unplain {
            true => {
                let message =
                    json!({"role": Role::User.name(), "content": Value::Array(self.in_chat)});
                keep_given(&json::text(&message))
            }
            false => None,
        };
        check_given(self.lost, given.as_ref())?;
        Ok(Item::User {
            text,
            parts: self.parts,
            others: self.others,
            given,
        })
    }

    fn add(&mut self, field: String, part: &RequestFields<'_>) -> Result<()> {
        let kind = part.text("type");
        match kind.as_str() {
            "input_text" | "output_text" | "text" => self.add_text(part.text("text")),
            "refusal" => self.add_text(part.text("refusal")),
            "input_image" if part.find("image_url").is_some() => {
                let url = part.text("image_url");
                let mut image = json!({"url": url.as_str()});
                if let Some(detail) = part.find_text("detail").filter(|it| it != "auto") {
                    self.is_unplain = true;
                    set(&mut image, "detail", detail.into());
                }
                let in_chat = json!({"type": "image_url", "image_url": image});
                self.add_file(part, file_part("image/*", &url, None), in_chat);
            }
            "input_file" if part.text("file_data").starts_with("data:application/pdf") => {
                let (name, data) = (part.find_text("filename"), part.text("file_data"));
                let in_chat = in_chat_file(part)?;
                let file = file_part("application/pdf", &data, name.as_deref());
                self.add_file(part, file, in_chat);
            }
            "input_file" if part.find("file_url").is_none() => {
                let in_chat = in_chat_file(part)?;
                self.add_lost(field, part, in_chat);
            }
            "input_audio" => {
                let audio = part.find("input_audio").map(tree).transpose()?;
                self.add_lost(field, part, json!({"type": kind, "input_audio": audio}));
            }
            _ => {
                return Err(Error::invalid(
                    &field,
                    format!(
                        "`{field}` has the type `{kind}`, which is not supported in a message."
                    ),
                ));
            }
        }
        Ok(())
    }

    fn add_text(&mut self, text: String) {
        self.parts.push(text_part(&text));
        self.in_chat
            .push(json!({"type": "text", "text": text.as_str()}));
        self.texts.push(text);
    }

    fn add_file(&mut self, part: &RequestFields<'_>, file: Value, in_chat: Value) {
        self.others.push(part.digest());
        self.parts.push(file);
        self.in_chat.push(in_chat);
    }

    fn add_lost(&mut self, field: String, part: &RequestFields<'_>, in_chat: Value) {
        self.add_file(part, text_part(IN_OWN_FORM), in_chat);
        self.is_unplain = true;
        self.lost = Some(field);
    }
}

/// A file as Chat Completions write it.
fn in_chat_file(part: &RequestFields<'_>) -> Result<Value> {
    let mut file = serde_json::Map::new();
    for name in ["filename", "file_data", "file_id"] {
        if let Some(value) = part.find(name) {
            file.insert(name.to_owned(), tree(value)?);
        }
    }
    Ok(json!({"type": "file", "file": Value::Object(file)}))
}

fn parse_content(field: &str, content: &RawValue) -> Result<SaidContent> {
    let mut said = SaidContent::default();
    for (index, part) in values::<MAX_PARTS>(field, content)?.into_iter().enumerate() {
        let field = format!("{field}[{index}]");
        let part = RequestFields::of(&field, part.get())?;
        said.add(field, &part)?;
    }
    Ok(said)
}
