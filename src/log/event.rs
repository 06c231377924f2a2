//! One event: what a caller sends, and what is read back.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base::action::Action;
use crate::base::columns::FromRow;
use crate::base::database::Row;
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::base::json::{Count, JsonObject, check_values, nullable, optional_list};
use crate::log::MAX_CALLS;
use crate::log::note::Note;
use crate::log::tool::{StoredTool, ToolCall, ToolFields};

/// Whether an event `e` is read together with its neighbours of the same kind, as
/// one message, in SQL. `EventRow::is_run_member` says the same of a row at hand.
pub const IS_RUN_MEMBER: &str = "(e.message IS NULL
    AND e.action IN ('agent_message', 'tool_call_request', 'tool_result'))";

/// An event to append. `id`, `metadata` and `createdAt` may be brought along.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewEvent {
    pub id: Option<Id>,
    pub action: Action,
    /// May be left out with `tool_call_request` alone.
    pub content: Option<String>,
    /// With `tool_call_request` alone, and there at least one.
    #[serde(default, deserialize_with = "optional_list::<_, _, 0, MAX_CALLS>")]
    #[cfg_attr(test, schemars(length(max = MAX_CALLS)))]
    pub tool_calls: Option<Vec<ToolCall>>,
    /// With `tool_result` alone: the call that it answers.
    pub tool_call_id: Option<Id>,
    /// With `tool_result` alone: the tool that was called.
    pub tool_name: Option<Id>,
    /// With `tool_result` alone: the tool failed, `content` says how.
    pub is_error: Option<bool>,
    pub metadata: Option<JsonObject>,
    /// Milliseconds since the epoch; now, when not given.
    pub created_at: Option<Count>,
    /// The event to follow, where it is not the one before it in this call. `null`: a root.
    #[serde(default, deserialize_with = "nullable")]
    #[cfg_attr(test, schemars(with = "Option<Id>"))]
    pub parent_id: Option<Option<Id>>,
    /// The message of the AI SDK that this event is, from the message operations alone.
    #[serde(skip)]
    #[cfg_attr(test, schemars(skip))]
    pub message: Option<MessageText>,
    /// From a chat turn alone.
    #[serde(skip)]
    #[cfg_attr(test, schemars(skip))]
    pub note: Option<Note>,
    /// Taken so that an event can be sent as it was read; the log numbers its events itself.
    #[serde(rename = "seq")]
    #[cfg_attr(test, schemars(with = "Option<i64>"))]
    pub _seq: Option<IgnoredAny>,
    /// Taken so that an event can be sent as it was read; the call's `sessionId` holds.
    #[serde(rename = "sessionId")]
    #[cfg_attr(test, schemars(with = "Option<String>"))]
    pub _session_id: Option<IgnoredAny>,
}

/// A message as it is stored beside its event.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageText {
    /// The inside of the JSON object, less `id` and a `createdAt` of ours.
    pub fields: String,
    /// Whether a `createdAt` of the sender's own stays among them.
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
            _seq: None,
            _session_id: None,
        }
    }

    /// What serde's types can't say: which fields belong to which action.
    pub fn check(&self, field: &str) -> Result<()> {
        let missing = |name: &str, action: &str| {
            let field = format!("{field}.{name}");
            Error::invalid(
                &field,
                format!("`{field}` is missing: a {action} carries it."),
            )
        };
        let belongs = |name: &str, given: bool, action: Action| {
            let field = format!("{field}.{name}");
            if given && self.action != action {
                return Err(Error::invalid(
                    &field,
                    format!(
                        "`{field}` belongs to a {}, not to a {}.",
                        action.name(),
                        self.action.name()
                    ),
                ));
            }
            Ok(())
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
                Err(missing("toolCalls", "tool_call_request"))
            }
            Action::ToolResult if self.tool_call_id.is_none() => {
                Err(missing("toolCallId", "tool_result"))
            }
            Action::ToolResult if self.tool_name.is_none() => {
                Err(missing("toolName", "tool_result"))
            }
            // A call may go without a word; everything else says something.
            action if self.content.is_none() && action != Action::ToolCallRequest => {
                Err(missing("content", action.name()))
            }
            _ => Ok(()),
        }
    }

    pub fn tool_json(&self) -> Option<String> {
        if !matches!(self.action, Action::ToolCallRequest | Action::ToolResult) {
            return None;
        }
        serde_json::to_string(&ToolFields {
            tool_calls: self.tool_calls.as_deref(),
            tool_call_id: self.tool_call_id.as_ref(),
            tool_name: self.tool_name.as_ref(),
            is_error: self.is_error,
        })
        .ok()
    }
}

/// An event as it is read. SQLite writes this JSON on the hot path
/// ([`EVENT_JSON`]); [`StoredEvent`] writes the same where SQLite can't.
#[cfg(test)]
#[derive(Debug, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[allow(dead_code)]
pub struct Event {
    pub id: Id,
    pub session_id: Id,
    /// From 1, growing within the session, never reused.
    pub seq: i64,
    /// The event that this one follows; `null` for a root.
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

/// An event's JSON from its row `e`. A plain event is one call of `json_object`, which is
/// three times as fast as joining. Optional fields are left out by joining text, since
/// `json_object` can't; `json()` fails on a damaged row, which the reader then names.
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

/// An event's row, for pages that are too big for one value of SQLite's.
pub struct StoredEvent<'a> {
    id: &'a str,
    pub session_id: &'a str,
    pub seq: i64,
    parent_id: Option<&'a str>,
    action: &'a str,
    pub content: Cow<'a, str>,
    pub tool: Option<Cow<'a, str>>,
    pub metadata: Option<Cow<'a, str>>,
    created_at: i64,
    /// How many bytes are not in the row, and the message that they may be made from.
    pub sliced_bytes: i64,
    pub message: Option<&'a str>,
}

impl StoredEvent<'_> {
    /// Of an event `e`.
    pub const COLUMNS: &'static str = "e.id, e.session_id, e.seq, e.parent_id, e.action, e.content, e.tool, e.metadata, e.created_at, \
         e.sliced_bytes, iif(e.sliced_bytes > 0, e.message, NULL)";
}

impl<'a> FromRow<'a> for StoredEvent<'a> {
    fn from_row(row: &'a Row) -> Result<Self> {
        Ok(Self {
            id: row.text(0)?,
            session_id: row.text(1)?,
            seq: row.integer(2)?,
            parent_id: row.find_text(3),
            action: row.text(4)?,
            content: row.find_text(5).unwrap_or_default().into(),
            tool: row.find_text(6).map(Cow::Borrowed),
            metadata: row.find_text(7).map(Cow::Borrowed),
            created_at: row.integer(8)?,
            sliced_bytes: row.integer(9)?,
            message: row.find_text(10),
        })
    }
}

impl StoredEvent<'_> {
    /// What [`EVENT_JSON`] makes of the same row.
    pub fn json(&self) -> Result<String> {
        let damaged = |_| Error::corrupt_row(self.id, "metadata");
        let shown = ShownEvent {
            id: self.id,
            session_id: self.session_id,
            seq: self.seq,
            parent_id: self.parent_id,
            action: self.action,
            content: &self.content,
            tool: match &self.tool {
                Some(text) => serde_json::from_str(text).map_err(damaged)?,
                None => StoredTool::default(),
            },
            metadata: self
                .metadata
                .as_deref()
                .map(serde_json::from_str)
                .transpose()
                .map_err(damaged)?,
            created_at: self.created_at,
        };
        serde_json::to_string(&shown).map_err(|error| Error::storage(error.to_string()))
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
