//! Messages of the AI SDK.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Object, UiMessage};

/// A message that is sent.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
pub struct NewMessage {
    /// With an id of the caller's own, a repeated message is stored once, so a failed call may be
    /// retried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    pub role: String,
    /// Texts, files, tools' calls, as the AI SDK has them.
    pub parts: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
    /// The fields that have no member here.
    #[serde(flatten)]
    pub more: Object,
}

impl NewMessage {
    #[must_use]
    pub fn new(role: impl Into<String>, parts: Vec<Value>) -> Self {
        Self {
            id: None,
            role: role.into(),
            parts,
            metadata: None,
            more: Object::new(),
        }
    }

    /// A user's message.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::new("user", vec![json!({"type": "text", "text": text.into()})])
    }

    /// A message of the agent.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(
            "assistant",
            vec![json!({"type": "text", "text": text.into()})],
        )
    }
}

setters! {
    NewMessage:
    id: impl Into<String>;
    metadata: Value;
}

/// Converts a message that was read, to send it again.
impl From<UiMessage> for NewMessage {
    fn from(message: UiMessage) -> Self {
        let mut more = message.more;
        more.insert("createdAt".to_owned(), message.created_at);
        Self {
            id: Some(message.id),
            role: message.role.to_string(),
            parts: message.parts.into_iter().map(Value::Object).collect(),
            metadata: message.metadata,
            more,
        }
    }
}

impl UiMessage {
    /// The texts of the message, each on lines of its own.
    #[must_use]
    pub fn text(&self) -> String {
        let is_text = |part: &&Object| part.get("type").is_some_and(|of| of == "text");
        let parts = self.parts.iter().filter(is_text);
        let texts = parts.filter_map(|part| part.get("text")?.as_str());
        texts.collect::<Vec<_>>().join("\n")
    }
}
