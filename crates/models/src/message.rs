//! Messages, as models receive them.

use crate::caller_fields::{find_given, find_item};
use crate::file::{File, MAX_FILES, check_files};
use crate::json_schema::JsonSchema;
use base::action::{Action, Role};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, list, optional_list};
use base::part::{field, kind};
use conversation::log::MAX_CALLS;
use conversation::log::event::{MessageText, NewEvent};
use conversation::log::note::ProviderData;
use conversation::log::tool::ToolCall;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A message as a model receives it.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContextMessage {
    pub role: Role,
    #[serde(default)]
    pub content: String,
    /// Only with role `assistant`.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "optional_list::<_, _, 0, MAX_CALLS>"
    )]
    #[schemars(length(max = MAX_CALLS))]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Only with role `tool`: the id of the call that the message answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<Id>,
    /// Only with role `tool`: whether the tool failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// Only with role `user`.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, 0, MAX_FILES>"
    )]
    #[schemars(length(max = MAX_FILES))]
    pub files: Vec<File>,
    /// Only in a chat turn: what the provider expects back, or the message as a caller wrote it in
    /// a provider's shape. No request contains it, and no answer shows it.
    #[serde(skip)]
    pub provider_data: Option<Box<ProviderData>>,
    /// Only with role `assistant`: the source of what the model had read that nobody here vouches
    /// for. No request contains it, and no answer shows it.
    #[serde(skip)]
    pub untrusted: Option<String>,
}

impl ContextMessage {
    pub fn of_text(role: Role, content: String) -> Self {
        Self {
            role,
            content,
            tool_calls: None,
            tool_call_id: None,
            tool_name: None,
            is_error: None,
            files: Vec::new(),
            provider_data: None,
            untrusted: None,
        }
    }

    /// Drops the format in which a caller wrote the message: its content was changed.
    pub fn forget_given(&mut self) {
        let is_given = |provider_data: &ProviderData| {
            find_given(&provider_data.parts).is_some() || find_item(&provider_data.parts).is_some()
        };
        if self.provider_data.as_deref().is_some_and(is_given) {
            self.provider_data = None;
        }
    }

    pub fn calls(&self) -> &[ToolCall] {
        self.tool_calls.as_deref().unwrap_or_default()
    }

    /// The bytes of the message as it is sent to a model. A provider may require arguments as text
    /// within text.
    pub fn bytes(&self) -> usize {
        let calls = self.calls().iter();
        let calls = calls.map(|call| json::written_bytes(call.arguments.as_str()));
        let files = self.files.iter().map(|file| file.url.len());
        let provider_data = self
            .provider_data
            .iter()
            .map(|provider_data| provider_data.parts.as_str().len());
        json::written_bytes(&self.content) + calls.chain(files).chain(provider_data).sum::<usize>()
    }

    /// The event that records the message. `field` is the message's path in the request,
    /// for errors. `names` finds a tool's name by the id of its call.
    pub fn into_event(self, field: &str, names: &dyn Fn(&Id) -> Option<Id>) -> Result<NewEvent> {
        let has_calls = !self.calls().is_empty();
        let action = match self.role {
            Role::Assistant if has_calls => Action::ToolCallRequest,
            role => Action::of(role),
        };
        let tool_name = match (&self.tool_name, &self.tool_call_id) {
            (None, Some(id)) => names(id),
            (name, _) => name.clone(),
        };
        check_files(field, &self.files)?;
        if !self.files.is_empty() && self.role != Role::User {
            let field = format!("{field}.files");
            return Err(Error::invalid(
                &field,
                format!("`{field}` is only allowed in a `user` message."),
            ));
        }
        let event = NewEvent {
            message: self.message_text(),
            content: Some(self.content),
            tool_calls: self.tool_calls.filter(|calls| !calls.is_empty()),
            tool_call_id: self.tool_call_id,
            tool_name,
            is_error: self.is_error,
            ..NewEvent::new(action)
        };
        event.check(field)?;
        Ok(event)
    }

    /// An event has no field for files; the message that is stored with it has.
    fn message_text(&self) -> Option<MessageText> {
        if self.files.is_empty() {
            return None;
        }
        let text = json!({field::KIND: kind::TEXT, field::TEXT: self.content});
        let text = Some(text).filter(|_| !self.content.is_empty());
        let files = self.files.iter().map(File::to_part);
        let parts: Vec<Value> = text.into_iter().chain(files).collect();
        Some(MessageText {
            fields: format!(
                r#""role":"{}","parts":{}"#,
                self.role.name(),
                Value::from(parts)
            ),
            is_dated: false,
        })
    }
}
