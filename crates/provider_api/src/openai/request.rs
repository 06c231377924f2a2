//! Reads a request of Chat Completions.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::request::{
    Item, ItemCall, MAX_ITEMS, MAX_PARTS, ParsedRequest, RequestFields, check_given,
    check_not_empty, file_part, flag_in, id_in, parse_definition, parse_tools, stored_message,
    text_in, text_part, values,
};
use base::error::{Error, Result};
use base::json::{self, JsonObject, RawValue};
use models::ToolDefinition;
use models::caller_fields::fields_of;

/// Fields that a turn does not support, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("functions", "Send `tools`."),
    ("function_call", "Send `tool_choice`."),
    ("models", "Name one model in `model`."),
    ("fallbacks", "Name one model in `model`."),
    ("route", "Name one model in `model`."),
];

/// Parameters of a tool that has none.
pub const ANY_OBJECT: &str = r#"{"type":"object","properties":{}}"#;

/// The text that replaces a message in the provider's own format.
pub const PROVIDER_FORMAT_NOTE: &str =
    "(A part of this message is in a format that only its provider can read.)";

pub fn parse(body: &[u8]) -> Result<ParsedRequest> {
    let body: JsonObject = json::parse(body)?;
    let mut fields = RequestFields::of("body", body.as_str())?;
    for (name, instead) in REFUSED {
        if fields.take(name).is_some() {
            let message = format!("`{name}` is not supported. {instead}");
            return Err(Error::invalid(name, message));
        }
    }
    let model = fields.take_model()?;
    if fields.take("n").is_some_and(|n| n.get() != "1") {
        return Err(Error::invalid(
            "n",
            "`n` must be 1: only one answer per request is supported.",
        ));
    }
    let is_streamed = flag_in("stream", fields.take("stream"))?;
    let wants_usage = match fields.take("stream_options") {
        Some(options) if is_streamed => {
            let options = RequestFields(fields_of(options.get()));
            options.find("include_usage").map(RawValue::get) == Some("true")
        }
        _ => false,
    };
    let choice = fields.find("tool_choice").map(RawValue::get);
    let is_choice_free = matches!(choice, None | Some(r#""auto""#));
    let (tools, given_tools) = match fields.take("tools") {
        Some(tools) => parse_tools(tools, parse_tool)?,
        None => (Vec::new(), BTreeMap::new()),
    };
    let messages = fields
        .take("messages")
        .ok_or_else(|| Error::invalid("messages", "`messages` is missing."))?;
    let (system, items) = parse_messages(messages)?;
    let number = |name: &str| fields.find(name).map(RawValue::get);
    let max_tokens = number("max_completion_tokens").or(number("max_tokens"));
    Ok(ParsedRequest {
        model,
        is_streamed,
        wants_usage,
        system,
        system_blocks: Vec::new(),
        cache_marks: 0,
        items,
        tools,
        given_tools,
        tool_list: Vec::new(),
        is_choice_free,
        max_tokens: max_tokens.and_then(|text| json::decode(text).ok()),
        temperature: number("temperature").and_then(|text| json::decode(text).ok()),
        fields: fields.into_object()?,
    })
}

fn parse_tool(
    field: &str,
    tool: &RequestFields<'_>,
    given: &RawValue,
) -> Result<(ToolDefinition, Box<RawValue>)> {
    check_is_function(field, tool)?;
    let function = tool.within(field, "function")?;
    let field = format!("{field}.function");
    if function.0.is_empty() {
        return Err(Error::invalid(&field, format!("`{field}` is missing.")));
    }
    let definition = parse_definition(&field, &function, ("parameters", ANY_OBJECT))?;
    Ok((definition, given.to_owned()))
}

pub fn check_is_function(field: &str, tool: &RequestFields<'_>) -> Result<()> {
    if tool.text("type") == "function" {
        return Ok(());
    }
    let field = format!("{field}.type");
    let message = format!("`{field}` must be `function`: other types of tools are not supported.");
    Err(Error::invalid(&field, message))
}

fn parse_messages(messages: &RawValue) -> Result<(Vec<String>, Vec<Item>)> {
    let mut system = Vec::new();
    let mut items = Vec::new();
    let mut newest_field = String::new();
    let given = values::<MAX_ITEMS>("messages", messages)?;
    for (index, given) in given.into_iter().enumerate() {
        let message = ReadMessage::read(format!("messages[{index}]"), given)?;
        match message.fields.text("role").as_str() {
            "system" | "developer" => system.push(message.text()?),
            "user" => {
                newest_field = format!("{}.content", message.field);
                items.push(message.into_user()?);
            }
            "assistant" => items.push(message.into_assistant()?),
            "tool" => items.push(message.into_result()?),
            _ => {
                let field = format!("{}.role", message.field);
                let message = format!(
                    "`{field}` must be `system`, `developer`, `user`, `assistant` or `tool`."
                );
                return Err(Error::invalid(&field, message));
            }
        }
    }
    check_not_empty(&newest_field, &items)?;
    Ok((system, items))
}

/// A message, once it is read.
struct ReadMessage<'a> {
    field: String,
    given: &'a RawValue,
    fields: RequestFields<'a>,
    content: ReadContent<'a>,
}

enum ReadContent<'a> {
    Nothing,
    Text(String),
    Parts(Vec<RequestFields<'a>>),
}

impl<'a> ReadMessage<'a> {
    fn read(field: String, given: &'a RawValue) -> Result<Self> {
        let fields = RequestFields::of(&field, given.get())?;
        let content = match fields.find("content") {
            None => ReadContent::Nothing,
            Some(content) => ReadContent::read(&format!("{field}.content"), content)?,
        };
        Ok(Self {
            field,
            given,
            fields,
            content,
        })
    }

    /// The text of a message that may have no other parts.
    fn text(&self) -> Result<String> {
        let ReadContent::Parts(parts) = &self.content else {
            return Ok(self.content.text());
        };
        let is_text = |part: &RequestFields<'_>| TEXTS.contains(&part.text("type").as_str());
        match parts.iter().position(|part| !is_text(part)) {
            None => Ok(self.content.text()),
            Some(index) => {
                let field = format!("{}.content[{index}]", self.field);
                let message = format!("`{field}` must be a text: no other part is allowed here.");
                Err(Error::invalid(&field, message))
            }
        }
    }

    fn into_user(self) -> Result<Item> {
        let text = self.content.text();
        let mut parts = Vec::new();
        let mut others = Vec::new();
        let mut is_plain = !self.fields.has_others(&["role", "content"]);
        let mut lost = None;
        match &self.content {
            ReadContent::Nothing | ReadContent::Text(_) => parts.push(text_part(&text)),
            ReadContent::Parts(given) => {
                for (index, part) in given.iter().enumerate() {
                    let field = format!("{}.content[{index}]", self.field);
                    let kind = part.text("type");
                    if kind == "text" {
                        is_plain &= !part.has_others(&["type", "text"]);
                        parts.push(text_part(&part.text("text")));
                        continue;
                    }
                    others.push(part.digest());
                    match file_of(&field, &kind, part)? {
                        Some((file, is_whole)) => {
                            is_plain &= is_whole;
                            parts.push(file);
                        }
                        None => {
                            is_plain = false;
                            lost = Some(field);
                            parts.push(text_part(PROVIDER_FORMAT_NOTE));
                        }
                    }
                }
            }
        }
        let given = if is_plain {
            None
        } else {
            stored_message(self.given.get())
        };
        check_given(lost, given.as_ref())?;
        Ok(Item::User {
            text,
            parts,
            others,
            given,
        })
    }

    fn into_assistant(self) -> Result<Item> {
        let mut text = self.content.text();
        text.push_str(&self.fields.text("refusal"));
        let mut calls = Vec::new();
        if let Some(given) = self.fields.find("tool_calls") {
            let field = format!("{}.tool_calls", self.field);
            for (index, call) in values::<MAX_PARTS>(&field, given)?.into_iter().enumerate() {
                let field = format!("{field}[{index}]");
                let call = RequestFields::of(&field, call.get())?;
                let function = call.within(&field, "function")?;
                calls.push(ItemCall {
                    id: id_in(&format!("{field}.id"), call.find("id"))?,
                    name: id_in(&format!("{field}.function.name"), function.find("name"))?,
                    arguments: arguments_of(&function.text("arguments"))?,
                });
            }
        }
        Ok(Item::Assistant {
            text,
            calls,
            items: None,
        })
    }

    fn into_result(self) -> Result<Item> {
        let is_text = !matches!(self.content, ReadContent::Parts(_));
        let has_others = self.fields.has_others(&["role", "content", "tool_call_id"]);
        Ok(Item::Result {
            call_id: id_in(
                &format!("{}.tool_call_id", self.field),
                self.fields.find("tool_call_id"),
            )?,
            text: self.content.text(),
            is_error: false,
            given: if is_text && !has_others {
                None
            } else {
                stored_message(self.given.get())
            },
        })
    }
}

/// The kinds of parts that are text.
const TEXTS: &[&str] = &["text", "refusal"];

impl<'a> ReadContent<'a> {
    fn read(field: &str, content: &'a RawValue) -> Result<Self> {
        if content.get().starts_with('"') {
            return text_in(field, content).map(Self::Text);
        }
        let parts = values::<MAX_PARTS>(field, content)?.into_iter().enumerate();
        let read =
            parts.map(|(index, part)| RequestFields::of(&format!("{field}[{index}]"), part.get()));
        read.collect::<Result<_>>().map(Self::Parts)
    }

    fn text(&self) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => {
                let texts: Vec<String> = parts
                    .iter()
                    .map(|part| match part.text("type").as_str() {
                        "refusal" => part.text("refusal"),
                        _ => part.text("text"),
                    })
                    .collect();
                texts.join("\n")
            }
        }
    }
}

/// An image or a file in the format of the AI SDK, and whether that has all of the part.
fn file_of(field: &str, kind: &str, part: &RequestFields<'_>) -> Result<Option<(Value, bool)>> {
    // Some servers accept the URL by itself, which only they read.
    let is_object = part.find(kind).is_some_and(|it| it.get().starts_with('{'));
    if !is_object || !matches!(kind, "image_url" | "file") {
        return Ok(None);
    }
    let holder = part.within(field, kind)?;
    if kind == "image_url" {
        let is_whole = !holder.has_others(&["url"]) && !part.has_others(&["type", kind]);
        let url = holder.find_text("url");
        return Ok(url.map(|url| (file_part("image/*", &url, None), is_whole)));
    }
    let data = holder.text("file_data");
    let name = holder.find_text("filename");
    let is_pdf = data.starts_with("data:application/pdf");
    Ok(is_pdf.then(|| (file_part("application/pdf", &data, name.as_deref()), true)))
}

/// A call's arguments. Anything but an object becomes an empty object.
pub fn arguments_of(text: &str) -> Result<JsonObject> {
    let parsed = json::parse::<JsonObject>(text.as_bytes());
    parsed.or_else(|_| json::parse(b"{}"))
}
