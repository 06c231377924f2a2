//! Messages and tools in the format of OpenAI's Chat Completions. Workers AI uses the same format,
//! with small differences.

use serde::{Deserialize, Serialize};

use super::attachment::{FileSource, PdfSupport, RenderedAttachment, show};
use super::caller_fields::{CallerFields, find_given};
use super::{ModelRequest, ToolDefinition};
use crate::message::ContextMessage;
use base::action::Role;
use base::json::{self, JsonObject, RawValue};

/// The dialects of the format.
#[derive(Clone, Copy, PartialEq)]
pub enum CompletionDialect {
    OpenAi,
    /// The same, for a model that reads PDFs.
    OpenAiWithPdfs,
    /// Rejects `content: null`, and requires a result to name its tool.
    WorkersAi,
    /// Accepts all there is: PDFs, and a result's tool.
    Own,
}

/// A message of a request.
#[derive(Serialize)]
#[serde(untagged)]
pub enum SentMessage<'a> {
    /// As the caller wrote it in this format.
    Given(&'a RawValue),
    Rendered(CompletionMessage<'a>),
}

#[derive(Serialize)]
pub struct CompletionMessage<'a> {
    role: &'static str,
    content: Content,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    /// The data that the model of a class returned with the message, unchanged.
    #[serde(rename = "kept", skip_serializing_if = "Option::is_none")]
    provider_data: Option<&'a JsonObject>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<ContentPart>),
    Nothing,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentPart {
    Text { text: String },
    ImageUrl { image_url: ImageUrl },
    File { file: FilePart },
}

#[derive(Serialize)]
struct FilePart {
    filename: String,
    file_data: String,
}

#[derive(Serialize)]
struct ImageUrl {
    url: String,
}

#[derive(Serialize)]
struct ChatCall<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: CalledFunction<'a>,
    /// The data that the provider returned with the call: see [`super::chat_answer`].
    #[serde(skip_serializing_if = "Option::is_none")]
    extra_content: Option<&'a RawValue>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    /// The JSON object, as a string.
    arguments: &'a str,
}

#[derive(Serialize)]
#[serde(untagged)]
pub enum ChatTool<'a> {
    /// As the caller wrote it in this format.
    Given(&'a RawValue),
    Defined {
        #[serde(rename = "type")]
        kind: &'static str,
        function: DefinedFunction<'a>,
    },
}

#[derive(Serialize)]
pub struct DefinedFunction<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a RawValue,
}

/// The system prompt as one message, then the conversation. The templates of many models reject a
/// second system message.
pub fn messages<'a>(
    request: &ModelRequest<'a>,
    dialect: CompletionDialect,
) -> Vec<SentMessage<'a>> {
    let system = request.system.join("\n\n");
    let system = (!system.trim().is_empty()).then(|| message_of("system", Content::Text(system)));
    let newest_user = request.newest_user();
    let messages = request.messages.iter().enumerate();
    let messages = messages.flat_map(|(index, message)| {
        let reminder = request.reminder.filter(|_| newest_user == Some(index));
        if let Some(given) = given(message, dialect) {
            let reminder = reminder.map(|text| message_of("user", Content::Text(text.to_owned())));
            return [
                Some(SentMessage::Given(given)),
                reminder.map(SentMessage::Rendered),
            ];
        }
        let sent = match message.role {
            Role::System => text_of(message).map(|content| message_of("system", content)),
            Role::User => {
                user(message, reminder, dialect).map(|content| message_of("user", content))
            }
            Role::Assistant => assistant(message, dialect),
            Role::Tool => Some(result(message, dialect)),
        };
        [sent.map(SentMessage::Rendered), None]
    });
    let alone = request.reminder.filter(|_| newest_user.is_none());
    let alone = alone.map(|text| message_of("user", Content::Text(text.to_owned())));
    let system = system.map(SentMessage::Rendered);
    let alone = alone.map(SentMessage::Rendered);
    system
        .into_iter()
        .chain(messages.flatten())
        .chain(alone)
        .collect()
}

/// The message as its caller wrote it, if it was in this format and its call has its own id.
fn given(message: &ContextMessage, dialect: CompletionDialect) -> Option<&RawValue> {
    match dialect {
        CompletionDialect::OpenAi | CompletionDialect::OpenAiWithPdfs => {}
        CompletionDialect::WorkersAi | CompletionDialect::Own => return None,
    }
    let provider_data = message.provider_data.as_deref();
    provider_data.and_then(|provider_data| find_given(&provider_data.parts))
}

fn message_of<'a>(role: &'static str, content: Content) -> CompletionMessage<'a> {
    CompletionMessage {
        role,
        content,
        tool_calls: Vec::new(),
        tool_call_id: None,
        name: None,
        provider_data: None,
    }
}

/// `None` for an empty message, which some servers reject.
fn text_of(message: &ContextMessage) -> Option<Content> {
    let is_empty = message.content.trim().is_empty();
    (!is_empty).then(|| Content::Text(message.content.clone()))
}

/// The reminder is part of the message: the templates of many models reject two user messages in a
/// row.
fn user(
    message: &ContextMessage,
    reminder: Option<&str>,
    dialect: CompletionDialect,
) -> Option<Content> {
    let pdfs = match dialect {
        CompletionDialect::OpenAiWithPdfs | CompletionDialect::Own => PdfSupport::Bytes,
        CompletionDialect::OpenAi | CompletionDialect::WorkersAi => PdfSupport::Nothing,
    };
    if message.files.is_empty() && reminder.is_none() {
        return text_of(message);
    }
    let text = Some(message.content.clone()).filter(|text| !text.trim().is_empty());
    let mut blocks: Vec<ContentPart> = text
        .into_iter()
        .map(|text| ContentPart::Text { text })
        .collect();
    blocks.extend(message.files.iter().map(|file| match show(file, pdfs) {
        RenderedAttachment::Text(text) => ContentPart::Text { text },
        RenderedAttachment::Image { media_type, source } => ContentPart::ImageUrl {
            image_url: ImageUrl {
                url: match source {
                    FileSource::Url(url) => url.to_owned(),
                    FileSource::Base64(data) => format!("data:{media_type};base64,{data}"),
                },
            },
        },
        RenderedAttachment::Pdf { name, source } => ContentPart::File {
            file: FilePart {
                filename: name,
                file_data: match source {
                    FileSource::Url(url) => url.to_owned(),
                    FileSource::Base64(data) => format!("data:application/pdf;base64,{data}"),
                },
            },
        },
    }));
    blocks.extend(reminder.map(|text| ContentPart::Text {
        text: text.to_owned(),
    }));
    let texts: Vec<&str> = blocks
        .iter()
        .map_while(|block| match block {
            ContentPart::Text { text } => Some(text.as_str()),
            ContentPart::ImageUrl { .. } | ContentPart::File { .. } => None,
        })
        .collect();
    // Models without vision accept a string and no list.
    if texts.len() == blocks.len() {
        return Some(Content::Text(texts.join("\n\n")));
    }
    Some(Content::Blocks(blocks))
}

fn assistant(
    message: &ContextMessage,
    dialect: CompletionDialect,
) -> Option<CompletionMessage<'_>> {
    let extras = match dialect {
        CompletionDialect::Own => Vec::new(),
        _ => extras_of(message),
    };
    let extras = extras.into_iter().chain(std::iter::repeat(None));
    let calls = message.calls().iter().zip(extras);
    let calls = calls.map(|(call, extra_content)| ChatCall {
        id: call.id.as_str(),
        kind: "function",
        function: CalledFunction {
            name: call.name.as_str(),
            arguments: call.arguments.as_str(),
        },
        extra_content,
    });
    let tool_calls: Vec<ChatCall<'_>> = calls.collect();
    let content = match (text_of(message), dialect) {
        (Some(content), _) => content,
        (None, _) if tool_calls.is_empty() => return None,
        (None, CompletionDialect::OpenAi | CompletionDialect::OpenAiWithPdfs) => Content::Nothing,
        (None, CompletionDialect::WorkersAi | CompletionDialect::Own) => {
            Content::Text(String::new())
        }
    };
    let provider_data = message
        .provider_data
        .as_deref()
        .map(|provider_data| &provider_data.parts);
    Some(CompletionMessage {
        tool_calls,
        provider_data: provider_data.filter(|_| dialect == CompletionDialect::Own),
        ..message_of("assistant", content)
    })
}

/// The data that the provider returned with each call.
fn extras_of(message: &ContextMessage) -> Vec<Option<&RawValue>> {
    #[derive(Deserialize)]
    struct ReturnedCallData<'a> {
        #[serde(borrow)]
        calls: Vec<Option<&'a RawValue>>,
    }
    let provider_data = message.provider_data.as_deref();
    let provider_data = provider_data.and_then(|provider_data| {
        json::decode::<ReturnedCallData<'_>>(provider_data.parts.as_str()).ok()
    });
    provider_data
        .map(|provider_data| provider_data.calls)
        .unwrap_or_default()
}

fn result(message: &ContextMessage, dialect: CompletionDialect) -> CompletionMessage<'_> {
    // The format has no field for a failure, so the text reports it.
    let content = match message.is_error {
        Some(true) => format!("Error: {}", message.content),
        _ => message.content.clone(),
    };
    let name = message.tool_name.as_ref().map(|name| name.as_str());
    CompletionMessage {
        tool_call_id: message.tool_call_id.as_ref().map(|id| id.as_str()),
        name: name.filter(|_| {
            matches!(
                dialect,
                CompletionDialect::WorkersAi | CompletionDialect::Own
            )
        }),
        ..message_of("tool", Content::Text(content))
    }
}

pub fn tools<'a>(
    tools: &'a [ToolDefinition],
    caller: Option<&'a CallerFields>,
) -> Vec<ChatTool<'a>> {
    let given = |tool: &ToolDefinition| caller.and_then(|caller| caller.find_tool(&tool.name));
    tools
        .iter()
        .map(|tool| match given(tool) {
            Some(given) => ChatTool::Given(given),
            None => ChatTool::Defined {
                kind: "function",
                function: DefinedFunction {
                    name: &tool.name,
                    description: &tool.description,
                    parameters: &tool.parameters,
                },
            },
        })
        .collect()
}
