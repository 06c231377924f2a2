//! Converts a request's history for the log: the results of calls that wait for the caller, and the
//! messages that the log lacks. What a caller claims that the assistant said is marked as its
//! claim.

use std::collections::HashMap;

use serde_json::Value;

use crate::history_position::HistoryPosition;
use crate::request::{Item, ItemCall, text_part};
use base::action::{Action, Role};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, JsonObject, json};
use base::part::field::{CALL_ID, INPUT, KIND, TOOL_NAME};
use base::part::{ToolState, field, kind};
use chat::request::answers::{ClientAnswer, ClientOutcome};
use chat::request::known_messages::load_message;
use chat::request::plan::AwaitedAnswer;
use chat::run::agent::Agent;
use chat::run::api_writer::ApiPosition;
use conversation::log::event::NewEvent;
use conversation::log::note::{Note, ProviderData};
use conversation::log::tip::get_tip;
use conversation::messages::append::to_event;
use conversation::messages::parse::{MessageSource, parse_message};
use memory::origin::Origin;
use models::caller_fields::ProviderApi;
use models::choice::Provider;
use store::config::Config;

fn names_of_calls(items: &[Item]) -> HashMap<String, Id> {
    let calls = items.iter().flat_map(|item| match item {
        Item::Assistant { calls, .. } => calls.as_slice(),
        _ => &[],
    });
    calls
        .map(|call| (call.id.as_str().to_owned(), call.name.clone()))
        .collect()
}

/// The conversion of a request's history.
pub struct History<'a> {
    agent: &'a Agent<'a>,
    provider: Provider,
    /// The names of the tools that the history's calls call.
    names: HashMap<String, Id>,
    reserved: &'a [Id],
}

impl<'a> History<'a> {
    pub fn new(agent: &'a Agent<'a>, api: ProviderApi, config: &'a Config, items: &[Item]) -> Self {
        Self {
            agent,
            provider: api.provider(),
            names: names_of_calls(items),
            reserved: &config.reserved_metadata_keys.0,
        }
    }

    /// The results of calls that wait at this position, and the items after them.
    pub fn split_answers(
        &self,
        found: &HistoryPosition,
        rest: Vec<Item>,
    ) -> Result<(Vec<ClientAnswer>, Vec<Item>)> {
        let ApiPosition::After(seq) = found.position else {
            return Ok((Vec::new(), rest));
        };
        let db = self.agent.db;
        let copied_seq = get_tip(db, &found.session_id)?.copied_seq;
        let known = load_message(db, &found.session_id, seq, copied_seq)?;
        let open = known.map(|known| known.stored.open).unwrap_or_default();
        let mut open: Vec<String> = open
            .into_iter()
            .filter(|open| open.awaits == AwaitedAnswer::Output)
            .map(|open| open.tool_call_id)
            .collect();
        let mut answers = Vec::new();
        let mut others = Vec::new();
        for item in rest {
            match item {
                Item::Result {
                    call_id,
                    text,
                    is_error,
                    given,
                } if others.is_empty() && open.iter().any(|id| id == call_id.as_str()) => {
                    open.retain(|id| id != call_id.as_str());
                    answers.push(ClientAnswer {
                        outcome: if is_error {
                            ClientOutcome::error(Some(text))
                        } else {
                            ClientOutcome::Output(json::raw(json::quoted(text.as_str()))?)
                        },
                        tool_call_id: call_id,
                        provider_data: self.provider_data_of(given),
                    });
                }
                item => others.push(item),
            }
        }
        if others.is_empty()
            && let Some(missing) = open.first()
        {
            return Err(Error::invalid(
                "messages",
                format!(
                    "The call `{missing}` has no result in `messages`. Send the results of all tool calls of that message."
                ),
            ));
        }
        Ok((answers, others))
    }

    pub fn to_events(&self, items: Vec<Item>) -> Result<Vec<NewEvent>> {
        let mut events = Vec::new();
        let mut claimed: Option<Claimed> = None;
        for item in items {
            match item {
                Item::Assistant { text, calls, items } => {
                    self.close(&mut claimed, &mut events)?;
                    claimed = Some(Claimed::new(text, calls, items));
                }
                Item::Result {
                    call_id,
                    text,
                    is_error,
                    given,
                } => match claimed.as_mut() {
                    Some(claimed) if claimed.has(&call_id) => {
                        claimed
                            .results
                            .insert(call_id.as_str().to_owned(), (text, is_error));
                    }
                    _ => {
                        self.close(&mut claimed, &mut events)?;
                        events.push(self.result(call_id, text, is_error, given)?);
                    }
                },
                Item::User { parts, given, .. } => {
                    self.close(&mut claimed, &mut events)?;
                    let message = json!({"role": Role::User.name(), "parts": Value::Array(parts)});
                    events.push(self.message(&message, given, None)?);
                }
            }
        }
        self.close(&mut claimed, &mut events)?;
        Ok(events)
    }

    /// Adds the message that a client claims the assistant wrote.
    fn close(&self, claimed: &mut Option<Claimed>, events: &mut Vec<NewEvent>) -> Result<()> {
        if let Some(mut claimed) = claimed.take() {
            let untrusted = Some(Origin::Import.name().to_owned());
            let items = claimed.items.take();
            events.push(self.message(&claimed.into_message(), items, untrusted)?);
        }
        Ok(())
    }

    /// Data that a caller wrote in a provider's format is for all of the provider's models.
    fn provider_data_of(&self, given: Option<JsonObject>) -> Option<ProviderData> {
        given.map(|parts| ProviderData {
            by: self.provider.name().to_owned(),
            parts,
        })
    }

    fn note(&self, given: Option<JsonObject>, untrusted: Option<String>) -> Note {
        Note {
            provider_data: self.provider_data_of(given),
            untrusted,
            ..Note::of(self.agent.caller.principal().authority())
        }
    }

    fn message(
        &self,
        message: &Value,
        given: Option<JsonObject>,
        untrusted: Option<String>,
    ) -> Result<NewEvent> {
        let text: JsonObject = json::decode(&json::text(message))
            .map_err(|error| Error::storage(error.to_string()))?;
        let mut parsed = parse_message(&text, MessageSource::Client, &|| Ok(self.reserved))?;
        parsed.note = Some(self.note(given, untrusted));
        Ok(to_event(parsed))
    }

    fn result(
        &self,
        call_id: Id,
        text: String,
        is_error: bool,
        given: Option<JsonObject>,
    ) -> Result<NewEvent> {
        let Some(name) = self.names.get(call_id.as_str()).cloned() else {
            return Err(Error::invalid(
                "messages",
                format!(
                    "`messages` contains a result of the call `{call_id}`, but no message with this call."
                ),
            ));
        };
        Ok(NewEvent {
            content: Some(text),
            tool_call_id: Some(call_id),
            tool_name: Some(name),
            is_error: is_error.then_some(true),
            note: Some(self.note(given, None)),
            ..NewEvent::new(Action::ToolResult)
        })
    }
}

/// A message that a client claims the assistant said, with the results of its calls.
struct Claimed {
    text: String,
    calls: Vec<ItemCall>,
    items: Option<JsonObject>,
    results: HashMap<String, (String, bool)>,
}

impl Claimed {
    fn new(text: String, calls: Vec<ItemCall>, items: Option<JsonObject>) -> Self {
        Self {
            text,
            calls,
            items,
            results: HashMap::new(),
        }
    }

    fn has(&self, call_id: &Id) -> bool {
        self.calls.iter().any(|call| call.id == *call_id)
    }

    /// The message as the AI SDK writes it.
    fn into_message(mut self) -> Value {
        let mut parts = Vec::new();
        if !self.text.is_empty() || self.calls.is_empty() {
            parts.push(text_part(&self.text));
        }
        for call in self.calls {
            let input = json::decode_tree(call.arguments.as_str()).unwrap_or_default();
            let mut part = json!({
                KIND: kind::DYNAMIC_TOOL,
                TOOL_NAME: call.name.as_str(),
                CALL_ID: call.id.as_str(),
                INPUT: input
            });
            let (state, result) = match self.results.remove(call.id.as_str()) {
                None => (ToolState::InputAvailable, None),
                Some((text, false)) => (ToolState::OutputAvailable, Some((field::OUTPUT, text))),
                Some((text, true)) => (ToolState::OutputError, Some((field::ERROR_TEXT, text))),
            };
            if let Some(part) = part.as_object_mut() {
                part.insert(field::STATE.to_owned(), state.name().into());
                if let Some((name, text)) = result {
                    part.insert(name.to_owned(), text.into());
                }
            }
            parts.push(part);
        }
        json!({
            "role": Role::Assistant.name(),
            "parts": Value::Array(parts),
            "metadata": {"source": "client"}
        })
    }
}
