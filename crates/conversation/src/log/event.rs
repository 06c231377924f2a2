//! An event: as a caller sends it, and as the log returns it.

use crate::json_schema::JsonSchema;
use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::log::MAX_CALLS;
use crate::log::note::Note;
use crate::log::tool::{StoredTool, ToolCall, ToolFields};
use base::action::Action;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, Count, JsonObject, RawValue, check_values, nullable, optional_list};
use base::row;

/// SQL: whether the event of the table `$event` forms one message with adjacent events of
/// its kind. `EventRow::is_run_member` is the same rule for a loaded row.
macro_rules! is_run_member {
    ($event:literal) => {
        concat!(
            "(",
            $event,
            ".message IS NULL AND ",
            $event,
            ".action IN ",
            base::action::agents_actions!(),
            ")"
        )
    };
}
pub(crate) use is_run_member;

/// SQL: whether event `e` is a run member. As a condition of `iif`, the actions are
/// compared one by one; as a value, SQLite would read the list as a table for each event.
pub const IS_RUN_MEMBER: &str = concat!("iif(", is_run_member!("e"), ", 1, 0)");

/// An event to append. The caller may set `id`, `metadata` and `createdAt`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewEvent {
    pub id: Option<Id>,
    pub action: Action,
    /// Required, except with `tool_call_request`.
    pub content: Option<String>,
    /// Only with `tool_call_request`, which needs at least one call.
    #[serde(default, deserialize_with = "optional_list::<_, _, 0, MAX_CALLS>")]
    #[schemars(length(max = MAX_CALLS))]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// Only with `tool_result`: the id of the call that this result answers.
    pub tool_call_id: Option<Id>,
    /// Only with `tool_result`: the name of the tool that was called.
    pub tool_name: Option<Id>,
    /// Only with `tool_result`: whether the tool failed; `content` is then the error.
    pub is_error: Option<bool>,
    pub metadata: Option<JsonObject>,
    /// Milliseconds since the epoch. Default: the current time.
    pub created_at: Option<Count>,
    /// The event to follow. Default: the event before this one in the call. `null`: a root.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<Id>")]
    pub parent_id: Option<Option<Id>>,
    /// The AI SDK message that this event stores. Only the message operations set it.
    #[serde(skip)]
    #[schemars(skip)]
    pub message: Option<MessageText>,
    /// Only chat turns set it.
    #[serde(skip)]
    #[schemars(skip)]
    pub note: Option<Note>,
    /// JSON: the spending of the turn that ends with this event. Only chat turns set it.
    #[serde(skip)]
    #[schemars(skip)]
    pub ends_turn: Option<String>,
    /// Ignored: the log numbers its events. Accepted so that a loaded event can be sent.
    #[serde(rename = "seq")]
    #[schemars(with = "Option<i64>")]
    pub _seq: Option<IgnoredAny>,
    /// Ignored: the call's `sessionId` applies. Accepted so that a loaded event can be sent.
    #[serde(rename = "sessionId")]
    #[schemars(with = "Option<String>")]
    pub _session_id: Option<IgnoredAny>,
}

/// A message in its stored form, in addition to its event.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageText {
    /// The content of the JSON object, without `id` and without a `createdAt` that we add.
    pub fields: String,
    /// Whether `fields` contains a `createdAt` from the sender.
    pub is_dated: bool,
}

impl NewEvent {
    pub fn new(action: Action) -> Self {
        Self {
            id: None,
            action,
            content: None,
            tool_calls: None,
            tool_call_id: None,
            tool_name: None,
            is_error: None,
            metadata: None,
            created_at: None,
            parent_id: None,
            message: None,
            note: None,
            ends_turn: None,
            _seq: None,
            _session_id: None,
        }
    }

    /// Checks a rule that serde's types can't express: which fields belong to which action.
    pub fn check(&self, field: &str) -> Result<()> {
        let missing = |name: &str| missing(&format!("{field}.{name}"), self.action);
        let belongs = |name: &str, given: bool, action: Action| {
            if given {
                check_belongs(&format!("{field}.{name}"), action, self.action)
            } else {
                Ok(())
            }
        };
        belongs(
            "toolCalls",
            self.tool_calls.is_some(),
            Action::ToolCallRequest,
        )?;
        belongs(
            "toolCallId",
            self.tool_call_id.is_some(),
            Action::ToolResult,
        )?;
        belongs("toolName", self.tool_name.is_some(), Action::ToolResult)?;
        belongs("isError", self.is_error.is_some(), Action::ToolResult)?;
        if let Some(metadata) = &self.metadata {
            check_values(&format!("{field}.metadata"), metadata.as_str())?;
        }
        for (index, call) in self.tool_calls.iter().flatten().enumerate() {
            let field = format!("{field}.toolCalls[{index}].arguments");
            check_values(&field, call.arguments.as_str())?;
        }
        match self.action {
            Action::ToolCallRequest if self.tool_calls.as_deref().is_none_or(<[_]>::is_empty) => {
                Err(missing("toolCalls"))
            }
            Action::ToolResult if self.tool_call_id.is_none() => Err(missing("toolCallId")),
            Action::ToolResult if self.tool_name.is_none() => Err(missing("toolName")),
            // Only a request for tool calls may have no content.
            action if self.content.is_none() && action != Action::ToolCallRequest => {
                Err(missing("content"))
            }
            _ => Ok(()),
        }
    }

    pub fn tool_json(&self) -> Option<String> {
        if !matches!(self.action, Action::ToolCallRequest | Action::ToolResult) {
            return None;
        }
        json::encode(&ToolFields {
            tool_calls: self.tool_calls.as_deref(),
            tool_call_id: self.tool_call_id.as_ref(),
            tool_name: self.tool_name.as_ref(),
            is_error: self.is_error,
        })
        .ok()
    }
}

/// Refuses a field that only events with the action `owner` have.
pub fn check_belongs(field: &str, owner: Action, action: Action) -> Result<()> {
    if owner == action {
        return Ok(());
    }
    let (owner, action) = (owner.name(), action.name());
    Err(Error::invalid(
        field,
        format!("`{field}` is a field of `{owner}`, not of `{action}`."),
    ))
}

/// The error for an event without a field that its action requires.
pub fn missing(field: &str, action: Action) -> Error {
    let action = action.name();
    Error::invalid(
        field,
        format!("`{field}` is missing: `{action}` requires it."),
    )
}

/// An event as it is read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Event {
    pub id: Id,
    pub session_id: Id,
    /// The event's number: starts at 1, grows within the session, is never reused.
    pub seq: i64,
    /// The event that this event follows; `null` for a root.
    pub parent_id: Option<Id>,
    pub action: Action,
    pub content: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<Vec<ToolCall>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<Id>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<JsonObject>,
    pub created_at: i64,
}

/// An event's JSON from its row `e`. For most events, this is one call of `json_object`,
/// which is three times as fast as concatenating text. Optional fields need concatenation,
/// because `json_object` can't omit a field. `json()` fails on a damaged row, which the
/// reader then reports.
pub const EVENT_JSON: &str = r#"
    iif(e.tool IS NULL AND e.metadata IS NULL,
        json_object('id', e.id, 'sessionId', e.session_id, 'seq', e.seq, 'parentId', e.parent_id,
                    'action', e.action, 'content', coalesce(e.content, ''), 'createdAt', e.created_at),
        concat('{"id":', json_quote(e.id),
               ',"sessionId":', json_quote(e.session_id),
               ',"seq":', e.seq,
               ',"parentId":', json_quote(e.parent_id),
               ',"action":', json_quote(e.action),
               ',"content":', json_quote(coalesce(e.content, '')),
               iif(e.tool IS NULL, '', ',' || rtrim(ltrim(json(e.tool), '{'), '}')),
               iif(e.metadata IS NULL, '', ',"metadata":' || json(e.metadata)),
               ',"createdAt":', e.created_at,
               '}'))"#;

row! {
    /// The row of an event `e`, for pages that are too long for one SQLite value: Rust builds its
    /// JSON.
    pub struct StoredEvent<'a> {
        id: &'a str = "e.id",
        pub session_id: &'a str = "e.session_id",
        pub seq: i64 = "e.seq",
        parent_id: Option<&'a str> = "e.parent_id",
        action: &'a str = "e.action",
        pub content: Option<Cow<'a, str>> = "e.content",
        pub tool: Option<Cow<'a, str>> = "e.tool",
        pub metadata: Option<Cow<'a, str>> = "e.metadata",
        created_at: i64 = "e.created_at",
        /// How many bytes are in slices, and the message from which `content` may be restored.
        pub sliced_bytes: i64 = "e.sliced_bytes",
        pub message: Option<&'a str> = "iif(e.sliced_bytes > 0, e.message, NULL)",
    }
}

impl StoredEvent<'_> {
    /// The same JSON as [`EVENT_JSON`] for this row.
    pub fn json(&self) -> Result<String> {
        let damaged = |_| Error::corrupt_row(self.id, "metadata");
        let shown = ShownEvent {
            id: self.id,
            session_id: self.session_id,
            seq: self.seq,
            parent_id: self.parent_id,
            action: self.action,
            content: self.content.as_deref().unwrap_or_default(),
            tool: match &self.tool {
                Some(text) => json::decode(text).map_err(damaged)?,
                None => StoredTool::default(),
            },
            metadata: self
                .metadata
                .as_deref()
                .map(json::decode)
                .transpose()
                .map_err(damaged)?,
            created_at: self.created_at,
        };
        json::encode(&shown)
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownEvent<'a> {
    id: &'a str,
    session_id: &'a str,
    seq: i64,
    parent_id: Option<&'a str>,
    action: &'a str,
    content: &'a str,
    #[serde(flatten)]
    tool: StoredTool<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
    created_at: i64,
}
