//! Appending several messages of the AI SDK: all of them or none.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::message_writes::MessageParser;
use crate::limits::EVENTS_BODY_BYTES;
use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use crate::operations::compaction::Growth;
use access::{Effect, Needs};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{JsonObject, list, nullable};
use conversation::log::MAX_EVENTS;
use conversation::log::append::{AppendOutcome, AppendedEvent, Parent};
use conversation::messages::append::append_messages;
use conversation::messages::parse::MessageSource;

/// Appends messages, all of them or none, each after the one before it.
///
/// A message whose id is already in the session is not written again, so a retry is safe.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AppendMessages {
    session_id: Id,
    #[serde(deserialize_with = "list::<_, _, 1, MAX_EVENTS>")]
    #[schemars(length(min = 1, max = MAX_EVENTS))]
    messages: Vec<JsonObject>,
    /// The event that the first new message follows. Default: the leaf. `null`: no event, so
    /// that the message is a root.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<Id>")]
    parent_id: Option<Option<Id>>,
    /// With `client`, reserved metadata keys and provider metadata are removed.
    #[serde(default)]
    source: MessageSource,
    /// The leaf that the caller expects; at another leaf the call fails with `leaf_moved`.
    /// `null`: an empty session.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<Id>")]
    expected_leaf_id: Option<Option<Id>>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AppendedMessages {
    /// The outcome of each message, in the order of the request.
    messages: Vec<AppendedEvent>,
    leaf_id: Option<String>,
}

impl Operation for AppendMessages {
    const NAME: &'static str = "appendMessages";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Messages;
    const MAX_BODY_BYTES: usize = EVENTS_BODY_BYTES;
    type Output = AppendedMessages;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for AppendMessages {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let parser = MessageParser::of(agent, self.source);
        // Each text that was sent is dropped as soon as it is parsed, so that it is in memory
        // once.
        let messages = self
            .messages
            .into_iter()
            .enumerate()
            .map(|(index, message)| {
                let parsed = parser.parse(&message);
                parsed.map_err(|error| renamed(error, "message", &format!("messages[{index}]")))
            })
            .collect::<Result<Vec<_>>>()?;
        let growth = Growth::of(agent);
        let outcome = append_messages(
            agent.db,
            agent.host,
            &self.session_id,
            messages,
            (
                &Parent::from_field(self.parent_id),
                self.expected_leaf_id.as_ref(),
            ),
            &|stored| growth.find_due(stored),
        )
        // The log's errors name a row of the append as `events[2]`.
        .map_err(|error| renamed(error, "events", "messages"))?;
        let AppendOutcome {
            events,
            leaf_id,
            follow_up,
            ..
        } = outcome;
        let is_grown = events.iter().any(|event| event.inserted);
        let reply = Reply::json(&AppendedMessages {
            messages: events,
            leaf_id,
        })?;
        Ok(if is_grown {
            growth.mark(reply, &self.session_id, &follow_up)
        } else {
            reply
        })
    }
}

/// The error with its field as the request has it: `messages[2].role` for `message.role`.
fn renamed(mut error: Error, from: &str, to: &str) -> Error {
    let named = error.field.as_deref();
    let Some(rest) = named.and_then(|named| named.strip_prefix(from)) else {
        return error;
    };
    let named = format!("{to}{rest}");
    error.message = error
        .message
        .replacen(&format!("`{from}"), &format!("`{to}"), 1);
    error.with_field(named)
}
