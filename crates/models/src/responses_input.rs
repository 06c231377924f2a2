//! Converts a conversation into the input of OpenAI's Responses. The provider gets its own
//! items back unchanged: a reasoning item belongs to the item after it, and is refused
//! without it. If a message no longer matches its items because it was truncated, the
//! message is written again without ids.

use serde::Serialize;
use serde_json::Value;

use super::ModelRequest;
use super::attachment::{FileSource, PdfSupport, RenderedAttachment, show};
use super::caller_fields::{find_given, find_item, find_items};
use super::reasoning::reads_pdfs;
use super::responses_reader::{FUNCTION_CALL, kind_of, texts_of};
use crate::message::ContextMessage;
use base::action::Role;
use base::json::{self, RawValue, json};

#[derive(Serialize)]
#[serde(untagged)]
pub enum InputItem<'a> {
    /// As the caller wrote it.
    Given(&'a RawValue),
    /// As the provider sent it, with the ids of its calls in the log.
    Stored(Value),
    Message {
        role: &'static str,
        content: InputContent,
    },
    Call {
        #[serde(rename = "type")]
        kind: &'static str,
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    Result {
        #[serde(rename = "type")]
        kind: &'static str,
        call_id: &'a str,
        output: String,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum InputContent {
    Text(String),
    Parts(Vec<Value>),
}

/// `is_stored`: whether the provider can find an item of an earlier answer by its id.
pub fn input<'a>(request: &ModelRequest<'a>, model: &str, is_stored: bool) -> Vec<InputItem<'a>> {
    let newest_user = request.newest_user();
    let reminder = |text: &str| InputItem::Message {
        role: Role::User.name(),
        content: InputContent::Text(text.to_owned()),
    };
    let mut items = Vec::new();
    for (index, message) in request.messages.iter().enumerate() {
        match message.role {
            Role::System => items.extend(text_of(message, "system")),
            Role::User => items.extend(user(message, model)),
            Role::Assistant => assistant(message, is_stored, &mut items),
            Role::Tool => items.push(result(message)),
        }
        if newest_user == Some(index) {
            items.extend(request.reminder.map(reminder));
        }
    }
    if newest_user.is_none() {
        items.extend(request.reminder.map(reminder));
    }
    items
}

fn text_of<'a>(message: &ContextMessage, role: &'static str) -> Option<InputItem<'a>> {
    let content = InputContent::Text(message.content.clone());
    (!message.content.trim().is_empty()).then_some(InputItem::Message { role, content })
}

fn user<'a>(message: &'a ContextMessage, model: &str) -> Option<InputItem<'a>> {
    let role = Role::User.name();
    let provider_data = message
        .provider_data
        .as_deref()
        .map(|provider_data| &provider_data.parts);
    if let Some(given) = provider_data.and_then(find_item) {
        return Some(InputItem::Given(given));
    }
    if let Some(parts) = provider_data.and_then(find_given).and_then(parts_of_chat) {
        let content = InputContent::Parts(parts);
        return Some(InputItem::Message { role, content });
    }
    if message.files.is_empty() {
        return text_of(message, role);
    }
    let pdfs = if reads_pdfs(model) {
        PdfSupport::BytesOrAddress
    } else {
        PdfSupport::Nothing
    };
    let text = (!message.content.trim().is_empty()).then(|| text_part(&message.content));
    let files = message.files.iter().map(|file| match show(file, pdfs) {
        RenderedAttachment::Text(text) => text_part(&text),
        RenderedAttachment::Image { media_type, source } => json!({
            "type": "input_image",
            "image_url": address_of(media_type, &source),
            "detail": "auto"
        }),
        RenderedAttachment::Pdf { name, source } => match source {
            FileSource::Url(url) => json!({"type": "input_file", "file_url": url}),
            FileSource::Base64(_) => json!({
                "type": "input_file",
                "filename": name,
                "file_data": address_of("application/pdf", &source)
            }),
        },
    });
    let content = InputContent::Parts(text.into_iter().chain(files).collect());
    Some(InputItem::Message { role, content })
}

fn text_part(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

fn address_of(media_type: &str, source: &FileSource<'_>) -> String {
    match source {
        FileSource::Url(url) => (*url).to_owned(),
        FileSource::Base64(data) => format!("data:{media_type};base64,{data}"),
    }
}

/// The parts of a user's message that was written in the format of Chat Completions.
fn parts_of_chat(given: &RawValue) -> Option<Vec<Value>> {
    let mut given = json::decode_tree(given.get()).ok()?;
    let Some(Value::Array(parts)) = given.get_mut("content").map(Value::take) else {
        return None;
    };
    let parts = parts.into_iter().map(|mut part| {
        let inner = |part: &mut Value, name: &str| part.get_mut(name).map(Value::take);
        match kind_of(&part) {
            "text" => Some(text_part(part.get("text")?.as_str()?)),
            "image_url" => {
                let image = inner(&mut part, "image_url")?;
                let detail = image.get("detail").cloned();
                Some(json!({
                    "type": "input_image",
                    "image_url": image.get("url")?,
                    "detail": detail.unwrap_or_else(|| "auto".into())
                }))
            }
            "file" => {
                let mut file = inner(&mut part, "file")?;
                file.as_object_mut()?
                    .insert("type".to_owned(), "input_file".into());
                Some(file)
            }
            "input_audio" => Some(part),
            _ => None,
        }
    });
    parts.collect()
}

fn assistant<'a>(message: &'a ContextMessage, is_stored: bool, items: &mut Vec<InputItem<'a>>) {
    if let Some(provider_data) = stored_items(message, is_stored) {
        items.extend(provider_data.into_iter().map(InputItem::Stored));
        return;
    }
    items.extend(text_of(message, Role::Assistant.name()));
    items.extend(message.calls().iter().map(|call| InputItem::Call {
        kind: FUNCTION_CALL,
        call_id: call.id.as_str(),
        name: call.name.as_str(),
        arguments: call.arguments.as_str(),
    }));
}

/// The items that the provider sent, if they match the message and the provider can accept
/// them again.
fn stored_items(message: &ContextMessage, is_stored: bool) -> Option<Vec<Value>> {
    let provider_data = message.provider_data.as_deref()?;
    let items = find_items(&provider_data.parts)?;
    let mut items = items
        .iter()
        .map(|item| json::decode_tree(item.get()).ok())
        .collect::<Option<Vec<Value>>>()?;
    let text = items
        .iter()
        .flat_map(texts_of)
        .collect::<Vec<_>>()
        .join("\n");
    if !text
        .split_whitespace()
        .eq(message.content.split_whitespace())
    {
        return None;
    }
    let mut calls = message.calls().iter();
    for item in items
        .iter_mut()
        .filter(|item| kind_of(item) == FUNCTION_CALL)
    {
        let call = calls.next()?;
        if item.get("name").and_then(Value::as_str) != Some(call.name.as_str()) {
            return None;
        }
        item.as_object_mut()?
            .insert("call_id".to_owned(), call.id.as_str().into());
    }
    let is_lost = |item: &Value| {
        kind_of(item) == "reasoning" && item.get("encrypted_content").is_none_or(Value::is_null)
    };
    if calls.next().is_some() || (!is_stored && items.iter().any(is_lost)) {
        return None;
    }
    // The provider finds an image that was too long to store by its id.
    items.retain(|item| {
        is_stored || kind_of(item) != "image_generation_call" || item.get("result").is_some()
    });
    Some(items)
}

fn result(message: &ContextMessage) -> InputItem<'_> {
    let provider_data = message
        .provider_data
        .as_deref()
        .map(|provider_data| &provider_data.parts);
    if let Some(given) = provider_data.and_then(find_item) {
        return InputItem::Given(given);
    }
    let call_id = message.tool_call_id.as_ref().map(|id| id.as_str());
    InputItem::Result {
        kind: "function_call_output",
        call_id: call_id.unwrap_or_default(),
        // The item has no field for a failure, so the text reports it.
        output: match message.is_error {
            Some(true) => format!("Error: {}", message.content),
            _ => message.content.clone(),
        },
    }
}
