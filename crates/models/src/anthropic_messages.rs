//! A conversation in Anthropic's format, which is strict: user and assistant alternate, and the
//! user begins. Results come first in the message after their calls. No text block is empty, and
//! ids use few characters.
//!
//! A mark on a block makes the provider cache everything up to the block. Two blocks of the
//! messages are marked: the newest user message, which is the same in the next turn, and the last
//! block, which is the same in the turn's next step. Tools and system have the other two of the
//! four marks that a request may have.

use std::borrow::Cow;

use serde::Serialize;

use super::ModelRequest;
use super::anthropic_thoughts as thoughts;
use super::attachment::{FileSource, PdfSupport, RenderedAttachment, show};
use super::call_ids::write_ids;
use super::caller_fields::find_given;
use crate::message::ContextMessage;
use base::action::Role;
use base::json::{self, RawValue};

/// The user message that comes first if the conversation begins with an answer.
const EARLIER: &str = "(The conversation began earlier.)";

/// The text of a failed result that has none of its own.
const FAILED: &str = "The tool failed without a message.";

#[derive(Serialize)]
pub struct AnthropicMessage<'a> {
    role: &'static str,
    content: Vec<MarkedBlock<'a>>,
}

/// Makes the provider cache the request up to this block, for five minutes after the last use.
#[derive(Clone, Copy, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum CacheControl {
    Ephemeral,
}

#[derive(Serialize)]
#[serde(untagged)]
enum MarkedBlock<'a> {
    /// As the provider sent it, or the caller wrote it. Can't be marked.
    Thought(&'a RawValue),
    Rendered {
        #[serde(flatten)]
        block: ContentBlock<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        cache_control: Option<CacheControl>,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentBlock<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: ContentSource<'a>,
    },
    Document {
        source: ContentSource<'a>,
        title: String,
    },
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: &'a RawValue,
    },
    ToolResult {
        tool_use_id: Cow<'a, str>,
        content: &'a str,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum ContentSource<'a> {
    Base64 {
        media_type: &'static str,
        data: &'a str,
    },
    Url {
        url: &'a str,
    },
}

/// The system text: the prompt, then the system messages, which the conversation itself can't
/// contain. May be empty.
pub fn system(prompt: &[String], messages: &[ContextMessage]) -> String {
    let later = messages
        .iter()
        .filter(|message| message.role == Role::System)
        .map(|message| message.content.as_str());
    prompt
        .iter()
        .map(String::as_str)
        .chain(later)
        .filter(|text| !text.trim().is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// The messages. With `cache`, blocks are marked.
pub fn messages<'a>(
    request: &ModelRequest<'a>,
    cache: Option<CacheControl>,
) -> Vec<AnthropicMessage<'a>> {
    let mut turns: Vec<AnthropicMessage<'a>> = Vec::new();
    let newest_user = request.newest_user();
    let reminder = request.reminder.and_then(text);
    let mut reminder = unmarked(reminder);
    let ids = write_ids(request.messages, allowed_name);
    for ((index, message), ids) in request.messages.iter().enumerate().zip(ids) {
        let given = given(message);
        let (role, blocks) = match message.role {
            Role::System => continue,
            Role::User | Role::Tool if !given.is_empty() => ("user", given),
            Role::Assistant if !given.is_empty() => ("assistant", given),
            Role::User => ("user", unmarked(user(message))),
            Role::Assistant => ("assistant", assistant(message, ids)),
            Role::Tool => ("user", unmarked([result(message, ids)])),
        };
        if turns.is_empty() && role == "assistant" && !blocks.is_empty() {
            add(&mut turns, "user", unmarked(text(EARLIER)));
        }
        add(&mut turns, role, blocks);
        if newest_user == Some(index) {
            mark_last(&mut turns, cache);
            add(&mut turns, "user", std::mem::take(&mut reminder));
        }
    }
    // The reminder is not in the next turn's request, so nothing is cached up to it.
    let ends_with_reminder =
        request.reminder.is_some() && newest_user.is_none_or(|at| at + 1 == request.messages.len());
    if !ends_with_reminder {
        mark_last(&mut turns, cache);
    }
    add(&mut turns, "user", reminder);
    turns
}

/// The blocks as the caller wrote them, if it used this format.
fn given(message: &ContextMessage) -> Vec<MarkedBlock<'_>> {
    let provider_data = message.provider_data.as_deref();
    let given = provider_data.and_then(|provider_data| find_given(&provider_data.parts));
    let blocks = given.and_then(|given| json::decode::<Vec<&RawValue>>(given.get()).ok());
    let blocks = blocks.unwrap_or_default().into_iter();
    blocks.map(MarkedBlock::Thought).collect()
}

fn add<'a>(
    turns: &mut Vec<AnthropicMessage<'a>>,
    role: &'static str,
    blocks: Vec<MarkedBlock<'a>>,
) {
    if blocks.is_empty() {
        return;
    }
    match turns.last_mut() {
        Some(last) if last.role == role => last.content.extend(blocks),
        _ => turns.push(AnthropicMessage {
            role,
            content: blocks,
        }),
    }
}

fn unmarked<'a>(blocks: impl IntoIterator<Item = ContentBlock<'a>>) -> Vec<MarkedBlock<'a>> {
    let blocks = blocks.into_iter().map(|block| MarkedBlock::Rendered {
        block,
        cache_control: None,
    });
    blocks.collect()
}

fn mark_last(turns: &mut [AnthropicMessage<'_>], cache: Option<CacheControl>) {
    let last = turns.last_mut().and_then(|turn| turn.content.last_mut());
    if let Some(MarkedBlock::Rendered { cache_control, .. }) = last {
        *cache_control = cache;
    }
}

fn text(text: &str) -> Option<ContentBlock<'_>> {
    (!text.trim().is_empty()).then_some(ContentBlock::Text { text: text.into() })
}

fn user(message: &ContextMessage) -> Vec<ContentBlock<'_>> {
    let from = |media_type: &'static str, source| match source {
        FileSource::Base64(data) => ContentSource::Base64 { media_type, data },
        FileSource::Url(url) => ContentSource::Url { url },
    };
    let files = message.files.iter();
    let files = files.map(|file| match show(file, PdfSupport::BytesOrAddress) {
        RenderedAttachment::Text(text) => ContentBlock::Text { text: text.into() },
        RenderedAttachment::Image { media_type, source } => ContentBlock::Image {
            source: from(media_type, source),
        },
        RenderedAttachment::Pdf { name, source } => ContentBlock::Document {
            source: from("application/pdf", source),
            title: name,
        },
    });
    // Images come before the text about them, as the provider asks.
    files.chain(text(&message.content)).collect()
}

/// `ids`: those of the message's calls.
fn assistant<'a>(message: &'a ContextMessage, ids: Vec<Cow<'a, str>>) -> Vec<MarkedBlock<'a>> {
    let calls = message.calls().iter().zip(ids).map(|(call, id)| {
        Some(ContentBlock::ToolUse {
            id,
            name: allowed_name(call.name.as_str()),
            input: json::decode(call.arguments.as_str()).ok()?,
        })
    });
    let content = std::iter::once(text(&message.content)).chain(calls);
    let content: Vec<Option<ContentBlock<'a>>> = content.collect();
    // An answer needs more than thoughts.
    if content.iter().all(Option::is_none) {
        return Vec::new();
    }
    let thoughts = thoughts::of(message);
    let mut blocks = Vec::new();
    for (at, block) in content.into_iter().enumerate() {
        let at_position = thoughts.iter().filter(|thought| thought.at == at);
        blocks.extend(at_position.map(|thought| MarkedBlock::Thought(thought.block)));
        blocks.extend(unmarked(block));
    }
    blocks
}

/// `ids`: that of the call.
fn result<'a>(message: &'a ContextMessage, ids: Vec<Cow<'a, str>>) -> ContentBlock<'a> {
    let is_error = message.is_error == Some(true);
    let id = ids.into_iter().next();
    ContentBlock::ToolResult {
        tool_use_id: id.unwrap_or_else(|| allowed_name("")),
        content: match message.content.as_str() {
            "" if is_error => FAILED,
            content => content,
        },
        is_error,
    }
}

/// An id or a name in the characters that Anthropic allows. Other providers' ids have dots and
/// colons (`functions.search:0`). These are written as hex code points, so that different ids stay
/// different.
fn allowed_name(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into();
    }
    let mut written = String::new();
    for c in text.chars() {
        if is_plain(c) {
            written.push(c);
        } else {
            written.push_str(&format!("_{:x}_", u32::from(c)));
        }
    }
    if written.is_empty() {
        written.push('_');
    }
    written.into()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn encoded(list: Value) -> Value {
        let list: Vec<ContextMessage> = serde_json::from_value(list).unwrap();
        let request = ModelRequest {
            messages: &list,
            ..ModelRequest::default()
        };
        serde_json::to_value(messages(&request, None)).unwrap()
    }

    fn text_block(text: &str) -> Value {
        json!({"type": "text", "text": text})
    }

    #[test]
    fn roles_alternate() {
        assert_eq!(
            encoded(json!([
                {"role": "user", "content": "a"}, {"role": "user", "content": "b"},
                {"role": "assistant", "content": "c"}, {"role": "assistant", "content": "d"},
                {"role": "user", "content": "e"}
            ])),
            json!([
                {"role": "user", "content": [text_block("a"), text_block("b")]},
                {"role": "assistant", "content": [text_block("c"), text_block("d")]},
                {"role": "user", "content": [text_block("e")]}
            ])
        );
    }

    #[test]
    fn the_first_message_is_the_users() {
        let list = encoded(json!([{"role": "assistant", "content": "a"}]));
        assert_eq!(
            list[0],
            json!({"role": "user", "content": [text_block(EARLIER)]})
        );
        assert_eq!(list[1]["role"], "assistant");
    }

    #[test]
    fn results_come_first_in_the_message_after_their_calls() {
        assert_eq!(
            encoded(json!([
                {"role": "user", "content": "go"},
                {"role": "assistant", "content": " ", "toolCalls": [
                    {"id": "a", "name": "t", "arguments": {"x": 1}}, {"id": "b", "name": "u", "arguments": {}}]},
                {"role": "tool", "toolCallId": "a", "content": "one"},
                {"role": "tool", "toolCallId": "b", "content": "", "isError": true},
                {"role": "user", "content": "and?"}
            ])),
            json!([
                {"role": "user", "content": [text_block("go")]},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "a", "name": "t", "input": {"x": 1}},
                    {"type": "tool_use", "id": "b", "name": "u", "input": {}}]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "a", "content": "one"},
                    {"type": "tool_result", "tool_use_id": "b", "content": FAILED, "is_error": true},
                    text_block("and?")]}
            ])
        );
    }

    #[test]
    fn empty_messages_are_left_out() {
        assert_eq!(
            encoded(json!([
                {"role": "user", "content": "a"}, {"role": "assistant", "content": "\n"},
                {"role": "user", "content": ""}, {"role": "user", "content": "b"}
            ])),
            json!([{"role": "user", "content": [text_block("a"), text_block("b")]}])
        );
        assert_eq!(encoded(json!([])), json!([]));
    }

    #[test]
    fn ids_of_other_providers_are_encoded_and_stay_unique() {
        assert_eq!(allowed_name("toolu_01-A"), "toolu_01-A");
        assert_eq!(
            allowed_name("functions.search:0"),
            "functions_2e_search_3a_0"
        );
        assert_ne!(allowed_name("a.b"), allowed_name("a:b"));
        assert_eq!(allowed_name(""), "_");
        let list = encoded(json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "toolCalls": [{"id": "a:0", "name": "t", "arguments": {}}]},
            {"role": "tool", "toolCallId": "a:0", "content": "r"}
        ]));
        assert_eq!(
            list[1]["content"][0]["id"],
            list[2]["content"][0]["tool_use_id"]
        );
    }

    #[test]
    fn images_are_sent_as_data_or_url() {
        let list = encoded(json!([{"role": "user", "content": "What is it?", "files": [
            {"mediaType": "image/png", "url": "data:image/png;base64,AAAA"},
            {"mediaType": "image/jpeg", "url": "https://example.com/a.jpg"},
            {"mediaType": "application/zip", "url": "data:application/zip;base64,AAAA", "filename": "a.zip"}
        ]}]));
        assert_eq!(
            list[0]["content"],
            json!([
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
                {"type": "image", "source": {"type": "url", "url": "https://example.com/a.jpg"}},
                text_block("[Attachment: a.zip, application/zip]"),
                text_block("What is it?")
            ])
        );
    }

    #[test]
    fn later_system_messages_are_appended_to_the_prompt() {
        let later: Vec<ContextMessage> = serde_json::from_value(
            json!([{"role": "user", "content": "a"}, {"role": "system", "content": "Be kind."}]),
        )
        .unwrap();
        let prompt = ["Be brief.".to_owned(), " ".to_owned()];
        assert_eq!(system(&prompt, &later), "Be brief.\n\nBe kind.");
        assert_eq!(system(&[], &[]), "");
    }

    /// Every conversation of up to five messages of these kinds.
    #[test]
    fn any_conversation_becomes_a_valid_request() {
        let kinds = [
            json!([{"role": "user", "content": "u"}]),
            json!([{"role": "user", "content": " "}]),
            json!([{"role": "assistant", "content": "a"}]),
            json!([{"role": "assistant", "content": ""}]),
            json!([{"role": "system", "content": "s"}]),
            json!([
                {"role": "assistant", "content": "", "toolCalls": [{"id": "c", "name": "t", "arguments": {}}]},
                {"role": "tool", "toolCallId": "c", "content": ""}
            ]),
        ];
        for number in 0..kinds.len().pow(5) {
            let picks = (0..5).map(|index| number / kinds.len().pow(index) % kinds.len());
            let list: Vec<Value> = picks
                .flat_map(|kind| kinds[kind].as_array().unwrap().clone())
                .collect();
            let encoded = encoded(Value::from(list));
            for (turn, message) in encoded.as_array().unwrap().iter().enumerate() {
                let speaker = ["user", "assistant"][turn % 2];
                assert_eq!(message["role"], speaker, "{encoded}");
                let blocks = message["content"].as_array().unwrap();
                assert!(!blocks.is_empty(), "{encoded}");
                let is_blank = |block: &Value| {
                    block["text"]
                        .as_str()
                        .is_some_and(|text| text.trim().is_empty())
                };
                assert!(!blocks.iter().any(is_blank), "{encoded}");
                let kinds: Vec<_> = blocks
                    .iter()
                    .map(|block| block["type"] == "tool_result")
                    .collect();
                assert!(
                    kinds.is_sorted_by(|a, b| a >= b),
                    "results first: {encoded}"
                );
            }
        }
    }
}
