//! The body of a chat request, over HTTP or in a socket's frame.
//!
//! The stock clients send their whole history each time, and any other fields that the page
//! adds. So unknown fields are ignored, unless they look like a misspelled field of ours.
//! [`crate::request::plan`] decides which messages are written to the log.

pub mod answers;
pub mod api_turn;
pub mod client_tools;
pub mod delivery;
pub mod known_messages;
pub mod open_calls;
pub mod path_digest;
pub mod plan;
pub mod queued_requests;

use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer as _};

use crate::request::answers::{CallAnswer, answers_in};
use crate::request::client_tools::parse_client_tools;
use base::action::Role;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, JsonObject, RawValue, list, optional_list};
use base::part::{Part, PartKind};
use conversation::log::slices::MAX_EVENT_BYTES;
use models::ToolDefinition;
use store::config::{MAX_INSTRUCTIONS, check_instructions};
use store::when_busy::WhenBusy;

/// The longest body: the longest message, plus the history that a client also sends.
pub const MAX_CHAT_BODY_BYTES: usize = MAX_EVENT_BYTES + (1 << 20);

/// The most messages in one body: a client sends all that it shows.
pub const MAX_MESSAGES: usize = 10_000;

/// Fields whose near misses are reported as misspelled. Shorter names are too similar to a
/// page's own fields: `mode` is not a misspelled `model`.
const SPELL_CHECKED_FIELDS: &[&str] = &[
    "messages",
    "message",
    "trigger",
    "messageId",
    "systemInstructions",
    "clientTools",
    "whenBusy",
    "deliveryId",
];

#[derive(Debug)]
pub struct ChatRequest {
    /// The session; if absent, the one that the URL or the socket names.
    pub session_id: Option<Id>,
    pub trigger: Trigger,
    pub messages: Vec<ClientMessage>,
    pub client_tools: Vec<ToolDefinition>,
    /// The name of the field with the client's tools.
    pub tools_field: &'static str,
    pub model: Option<Id>,
    pub system_instructions: Vec<String>,
    /// What to do if a turn of the session is running. If absent, the agent's configuration
    /// decides.
    pub when_busy: Option<WhenBusy>,
    /// Whether the request comes from `runTurn`: its message then records where its answer
    /// will be.
    pub is_run: bool,
    /// Whether the messages are those that a page shows. The page may have shown another
    /// session before.
    pub is_shown: bool,
    /// The callback of `onTurnEnd` or `onMemoryChange` that the request claims to answer.
    /// The id is untrusted until [`super::delivery`] has checked it.
    pub delivery_id: Option<Id>,
    /// Whether the end of the request's turn triggers no callback.
    pub skips_callbacks: bool,
}

/// Why a turn is requested. `message_id` is the message that the client named: one that was
/// edited or answered by a tool, or the answer to regenerate.
#[derive(Clone, Debug, PartialEq)]
pub enum Trigger {
    Submit { message_id: Option<Id> },
    Regenerate { message_id: Option<Id> },
}

/// A message as the client sent it.
#[derive(Debug)]
pub struct ClientMessage {
    /// `None`: the message has no id, or an invalid one, which is an error for a user's
    /// message.
    pub id: Option<Id>,
    /// `None`: an unknown role.
    pub role: Option<Role>,
    /// The whole message as the client sent it.
    pub text: JsonObject,
}

impl ClientMessage {
    pub fn check_has_content(&self) -> Result<()> {
        check_has_content(&self.text)
    }

    /// The message's answers to calls that may have been left to the client.
    pub fn answers(&self) -> Vec<CallAnswer> {
        #[derive(Deserialize)]
        struct Parts<'a> {
            #[serde(borrow)]
            parts: Option<&'a RawValue>,
        }
        if self.role != Some(Role::Assistant) {
            return Vec::new();
        }
        let message: Option<Parts<'_>> = json::decode(self.text.as_str()).ok();
        message
            .and_then(|message| message.parts)
            .map(answers_in)
            .unwrap_or_default()
    }
}

/// Refuses a user's message without content that a model could read: providers refuse it,
/// and its session would get no further answer.
pub fn check_has_content(message: &JsonObject) -> Result<()> {
    #[derive(Deserialize)]
    struct Parts<'a> {
        #[serde(borrow, default)]
        parts: Vec<&'a RawValue>,
    }
    // A malformed message is refused when it is written.
    let Ok(Parts { parts }) = json::decode(message.as_str()) else {
        return Ok(());
    };
    let has_content = |part: &RawValue| match Part::parse(part) {
        Some(part) if matches!(part.kind(), PartKind::Text) => {
            part.text().is_some_and(|text| !text.trim().is_empty())
        }
        Some(part) => !matches!(part.kind(), PartKind::StepStart),
        None => false,
    };
    if parts.into_iter().any(has_content) {
        return Ok(());
    }
    Err(Error::invalid(
        "message.parts",
        "The message is empty. Add a part with text, or a file.",
    ))
}

impl ChatRequest {
    /// The bytes of the message that its turn keeps in memory.
    pub fn retained_bytes(&self) -> usize {
        let instructions = self.system_instructions.iter().map(String::len);
        let tools = self
            .client_tools
            .iter()
            .map(|tool| tool.description.len() + tool.parameters.get().len());
        instructions.chain(tools).sum()
    }

    /// The messages' ids, by which they are looked up in the log.
    pub fn message_ids(&self) -> impl Iterator<Item = &Id> {
        let named = match &self.trigger {
            Trigger::Submit { message_id } | Trigger::Regenerate { message_id } => message_id,
        };
        let sent = self
            .messages
            .iter()
            .filter_map(|message| message.id.as_ref());
        sent.chain(named)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ChatRequestBody {
    id: Option<Id>,
    #[serde(default, deserialize_with = "optional_list::<_, _, 0, MAX_MESSAGES>")]
    messages: Option<Vec<JsonObject>>,
    message: Option<JsonObject>,
    trigger: Option<TriggerName>,
    message_id: Option<Id>,
    model: Option<Id>,
    system_instructions: Option<Box<RawValue>>,
    tools: Option<Box<RawValue>>,
    client_tools: Option<Box<RawValue>>,
    when_busy: Option<WhenBusy>,
    delivery_id: Option<Id>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum TriggerName {
    SubmitMessage,
    RegenerateMessage,
}

/// Parses a body; an error names the field.
pub fn parse_chat_request(body: &[u8]) -> Result<ChatRequest> {
    if body.len() > MAX_CHAT_BODY_BYTES {
        return Err(Error::payload_too_large(
            "The body",
            MAX_CHAT_BODY_BYTES,
            body.len(),
        ));
    }
    let parsed: ChatRequestBody = json::parse(body)?;
    refuse_near_misses(body)?;
    let trigger = match parsed.trigger {
        None | Some(TriggerName::SubmitMessage) => Trigger::Submit {
            message_id: parsed.message_id,
        },
        Some(TriggerName::RegenerateMessage) => Trigger::Regenerate {
            message_id: parsed.message_id,
        },
    };
    let mut client_tools = Vec::new();
    let mut tools_field = "tools";
    for (field, tools) in [
        ("tools", &parsed.tools),
        ("clientTools", &parsed.client_tools),
    ] {
        if let Some(tools) = tools {
            let definitions = parse_client_tools(field, tools)?;
            if !definitions.is_empty() {
                tools_field = field;
            }
            client_tools.extend(definitions);
        }
    }
    let messages = match (parsed.messages, parsed.message) {
        (Some(_), Some(_)) => {
            return Err(Error::invalid(
                "message",
                "Send `messages` or `message`, not both: `message` is only the newest one.",
            ));
        }
        (Some(messages), None) => parse_messages(messages)?,
        (None, Some(message)) => vec![parse_message("message", message)?],
        (None, None) if matches!(trigger, Trigger::Regenerate { .. }) => Vec::new(),
        (None, None) => {
            return Err(Error::invalid(
                "messages",
                "`messages` is missing. Send the conversation's messages, or only the newest one \
                 as `message`.",
            ));
        }
    };
    Ok(ChatRequest {
        session_id: parsed.id,
        trigger,
        messages,
        client_tools,
        tools_field,
        model: parsed.model,
        system_instructions: parsed
            .system_instructions
            .map_or(Ok(Vec::new()), |text| parse_instructions(&text))?,
        when_busy: parsed.when_busy,
        is_run: false,
        is_shown: false,
        delivery_id: parsed.delivery_id,
        skips_callbacks: false,
    })
}

/// Reads one name at a time, because a body may consist only of names.
fn refuse_near_misses(body: &[u8]) -> Result<()> {
    struct Names<'a>(&'a mut Option<String>);
    impl<'de> Visitor<'de> for Names<'_> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while let Some((name, _)) = map.next_entry::<String, IgnoredAny>()? {
                let is_ours = SPELL_CHECKED_FIELDS.contains(&name.as_str());
                if !is_ours
                    && json::find_nearest(&name, SPELL_CHECKED_FIELDS.iter().copied()).is_some()
                {
                    *self.0 = Some(name);
                    return Err(de::Error::custom("a near miss"));
                }
            }
            Ok(())
        }
    }
    let mut mistaken = None;
    // The body was parsed before, so an invalid one was refused there.
    let text = std::str::from_utf8(body).unwrap_or_default();
    let _ = json::Reader::new(text).deserialize_map(Names(&mut mistaken));
    let Some(name) = mistaken else {
        return Ok(());
    };
    let near = json::find_nearest(&name, SPELL_CHECKED_FIELDS.iter().copied()).unwrap_or_default();
    Err(Error::invalid(
        &name,
        format!("`{name}` is not a field here. Did you mean `{near}`?"),
    ))
}

/// Parses a list of messages from a body or a frame.
pub fn parse_messages(messages: Vec<JsonObject>) -> Result<Vec<ClientMessage>> {
    messages
        .into_iter()
        .enumerate()
        .map(|(index, message)| parse_message(&format!("messages[{index}]"), message))
        .collect()
}

/// Parses one message; `field` is the field with the message.
pub fn parse_message(field: &str, text: JsonObject) -> Result<ClientMessage> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow)]
        id: Option<&'a RawValue>,
        #[serde(borrow)]
        role: Option<&'a RawValue>,
    }
    let wrong = |name: &str, how: &str| {
        let field = format!("{field}.{name}");
        Error::invalid(&field, format!("`{field}` {how}."))
    };
    let head: Head<'_> = json::decode(text.as_str())
        .map_err(|_| wrong("id", "is given twice, or the message's `role` is"))?;
    let role = match head.role.map(RawValue::get) {
        Some(role) if role.starts_with('"') => Role::find_in_json(role),
        Some(_) => return Err(wrong("role", "must be a string")),
        None => return Err(wrong("role", "is missing")),
    };
    let id = match head.id.filter(|id| id.get() != "null") {
        None => None,
        Some(id) => match json::decode::<Id>(id.get()) {
            Ok(id) => Some(id),
            // The log assigns the ids of such messages, so no stored message has an invalid
            // id.
            Err(_) if role != Some(Role::User) => None,
            Err(_) => return Err(wrong("id", "must be a string of 1 to 200 characters")),
        },
    };
    Ok(ClientMessage { id, role, text })
}

fn parse_instructions(text: &RawValue) -> Result<Vec<String>> {
    const FIELD: &str = "systemInstructions";
    if text.get() == "null" {
        return Ok(Vec::new());
    }
    let instructions = match json::decode::<String>(text.get()) {
        Ok(one) => vec![one],
        Err(_) => list::<_, String, 0, MAX_INSTRUCTIONS>(&mut json::Reader::new(
            text.get(),
        ))
        .map_err(|_| {
            Error::invalid(
                FIELD,
                format!(
                    "`{FIELD}` must be a string or an array of at most {MAX_INSTRUCTIONS} strings."
                ),
            )
        })?,
    };
    check_instructions(&instructions)?;
    Ok(instructions)
}

#[cfg(test)]
mod tests;
