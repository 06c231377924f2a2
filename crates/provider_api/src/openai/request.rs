//! Reads a request of Chat Completions.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::request::{
    Item, ItemCall, MAX_ITEMS, MAX_PARTS, ParsedRequest, RequestFields, check_given,
    digest_of_part, file_part, find_in, find_text, flag_in, has_others, id_in, keep_given,
    parse_definition, parse_tools, text_in, text_part, values,
};
use base::error::{Error, Result};
use base::json::{self, JsonObject, RawValue};
use models::ToolDefinition;

/// Fields that a turn has no place for, and what to do instead.
const REFUSED: &[(&str, &str)] = &[
    ("functions", "Send `tools`."),
    ("function_call", "Send `tool_choice`."),
    ("models", "Name one model in `model`."),
    ("fallbacks", "Name one model in `model`."),
    ("route", "Name one model in `model`."),
];

/// Parameters of a tool that has none.
pub const ANY_OBJECT: &str = r#"{"type":"object","properties":{}}"#;

/// The text that stands for a message in the provider's own form.
const IN_OWN_FORM: &str =
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
    let options = fields.take("stream_options");
    let usage = options.and_then(|options| find_in(options, "include_usage"));
    let wants_usage = is_streamed && usage.is_some_and(|usage| usage.get() == "true");
    let choice = fields.find("tool_choice").map(RawValue::get);
    let is_choice_free = matches!(choice, None | Some("null" | r#""auto""#));
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
        is_choice_free,
        max_tokens: max_tokens.and_then(|text| json::decode(text).ok()),
        temperature: number("temperature").and_then(|text| json::decode(text).ok()),
        fields: fields.into_object()?,
    })
}

fn parse_tool(field: &str, tool: &RawValue) -> Result<(ToolDefinition, Box<RawValue>)> {
    check_is_function(field, tool)?;
    let field = format!("{field}.function");
    let function = find_in(tool, "function")
        .ok_or_else(|| Error::invalid(&field, format!("`{field}` is missing.")))?;
    RequestFields::of(&field, function.get())?;
    let definition = parse_definition(&field, function, ("parameters", ANY_OBJECT))?;
    Ok((definition, tool.to_owned()))
}

pub fn check_is_function(field: &str, tool: &RawValue) -> Result<()> {
    if find_text(tool, "type") == "function" {
        return Ok(());
    }
    let field = format!("{field}.type");
    let message = format!("`{field}` must be `function`: other types of tools are not supported.");
    Err(Error::invalid(&field, message))
}

fn parse_messages(messages: &RawValue) -> Result<(Vec<String>, Vec<Item>)> {
    let mut system = Vec::new();
    let mut items = Vec::new();
    for (index, message) in values::<MAX_ITEMS>("messages", messages)?
        .into_iter()
        .enumerate()
    {
        let field = format!("messages[{index}]");
        let parts = RequestFields::of(&field, message.get())?;
        let content = parts
            .find("content")
            .filter(|content| content.get() != "null");
        match find_text(message, "role").as_str() {
            "system" | "developer" => system.push(text_of(&field, content)?),
            "user" => items.push(parse_user(&field, message, content)?),
            "assistant" => items.push(parse_assistant(&field, message, content)?),
            "tool" => items.push(parse_result(&field, message, content)?),
            _ => {
                let field = format!("{field}.role");
                let message = format!(
                    "`{field}` must be `system`, `developer`, `user`, `assistant` or `tool`."
                );
                return Err(Error::invalid(&field, message));
            }
        }
    }
    Ok((system, items))
}

/// The text of a content that is a string or a list of texts.
fn text_of(field: &str, content: Option<&RawValue>) -> Result<String> {
    let Some(content) = content else {
        return Ok(String::new());
    };
    let field = format!("{field}.content");
    if content.get().starts_with('"') {
        return text_in(&field, content);
    }
    let parts = values::<MAX_PARTS>(&field, content)?;
    let texts: Vec<String> = parts
        .into_iter()
        .map(|part| match find_text(part, "type").as_str() {
            "refusal" => find_text(part, "refusal"),
            _ => find_text(part, "text"),
        })
        .collect();
    Ok(texts.join("\n"))
}

fn parse_user(field: &str, message: &RawValue, content: Option<&RawValue>) -> Result<Item> {
    let text = text_of(field, content)?;
    let mut parts = Vec::new();
    let mut others = Vec::new();
    let mut is_plain = !has_others(message, &["role", "content"]);
    let mut lost = None;
    match content {
        Some(content) if !content.get().starts_with('"') => {
            let field = format!("{field}.content");
            for (index, part) in values::<MAX_PARTS>(&field, content)?
                .into_iter()
                .enumerate()
            {
                let kind = find_text(part, "type");
                if kind == "text" {
                    is_plain &= !has_others(part, &["type", "text"]);
                    parts.push(text_part(&find_text(part, "text")));
                    continue;
                }
                others.push(digest_of_part(part));
                match file_of(&kind, part) {
                    Some((file, is_whole)) => {
                        is_plain &= is_whole;
                        parts.push(file);
                    }
                    None => {
                        is_plain = false;
                        lost = Some(format!("{field}[{index}]"));
                        parts.push(text_part(IN_OWN_FORM));
                    }
                }
            }
        }
        _ => parts.push(text_part(&text)),
    }
    let given = match is_plain {
        true => None,
        false => keep_given(message.get()),
    };
    check_given(lost, given.as_ref())?;
    Ok(Item::User {
        text,
        parts,
        others,
        given,
    })
}

/// An image or a file as the AI SDK writes it, and whether that says all of the part.
fn file_of(kind: &str, part: &RawValue) -> Option<(Value, bool)> {
    let holder = find_in(part, kind)?;
    match kind {
        "image_url" => {
            let url = find_text(holder, "url");
            let is_whole = !has_others(holder, &["url"]) && !has_others(part, &["type", kind]);
            (!url.is_empty()).then(|| (file_part("image/*", &url, None), is_whole))
        }
        "file" => {
            let data = find_text(holder, "file_data");
            let name = find_text(holder, "filename");
            let is_pdf = data.starts_with("data:application/pdf");
            let name = (!name.is_empty()).then_some(name);
            is_pdf.then(|| (file_part("application/pdf", &data, name.as_deref()), true))
        }
        _ => None,
    }
}

fn parse_assistant(field: &str, message: &RawValue, content: Option<&RawValue>) -> Result<Item> {
    let mut text = text_of(field, content)?;
    text.push_str(&find_text(message, "refusal"));
    let mut calls = Vec::new();
    if let Some(asked) = find_in(message, "tool_calls") {
        let field = format!("{field}.tool_calls");
        for (index, call) in values::<MAX_PARTS>(&field, asked)?.into_iter().enumerate() {
            let field = format!("{field}[{index}]");
            let function = find_in(call, "function");
            let name = function.and_then(|function| find_in(function, "name"));
            let arguments = function.map(|function| find_text(function, "arguments"));
            calls.push(ItemCall {
                id: id_in(&format!("{field}.id"), find_in(call, "id"))?,
                name: id_in(&format!("{field}.function.name"), name)?,
                arguments: arguments_of(&arguments.unwrap_or_default())?,
            });
        }
    }
    Ok(Item::Assistant { text, calls })
}

/// A call's arguments. What is no object is none.
pub fn arguments_of(text: &str) -> Result<JsonObject> {
    let parsed = json::parse::<JsonObject>(text.as_bytes());
    parsed.or_else(|_| json::parse(b"{}"))
}

fn parse_result(field: &str, message: &RawValue, content: Option<&RawValue>) -> Result<Item> {
    let is_text = content.is_none_or(|content| content.get().starts_with('"'));
    Ok(Item::Result {
        call_id: id_in(
            &format!("{field}.tool_call_id"),
            find_in(message, "tool_call_id"),
        )?,
        text: text_of(field, content)?,
        is_error: false,
        given: match is_text && !has_others(message, &["role", "content", "tool_call_id"]) {
            true => None,
            false => keep_given(message.get()),
        },
    })
}
