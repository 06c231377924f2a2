//! The call that reports a turn's end (`onTurnEnd`).

use serde::Serialize;

use super::message::CallbackMessage;
use super::target::{TURN_END, endpoint_of};
use crate::request::delivery::Delivery;
use crate::turn::Turn;
use crate::turn::report::{TurnFinish, TurnReport};
use access::Policy;
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, RawValue};
use conversation::log::sessions::session_exists;
use conversation::messages::read::find_message_around;
use conversation::session::spending::TurnUsage;
use memory::Memory;
use store::callbacks::{Callback, NewCallback};
use store::config::load_config;

/// Writes the call for a turn's end, if the agent's configuration names a service to call; `false`:
/// no service is called. `message_id`: the message with the turn's last text. Part of the turn's
/// last transaction.
pub fn insert(
    memory: &Memory<'_>,
    turn: &Turn,
    message_id: &str,
    report: &TurnReport,
) -> Result<bool> {
    if turn.skips_callbacks {
        return Ok(false);
    }
    let config = load_config(memory.db, &memory.deployed.config)?;
    if config.on_turn_end.is_none() {
        return Ok(false);
    }
    let call = NewCallback {
        session_id: turn.session_id.as_str(),
        message_id,
        report: json::encode(report)?,
    };
    call.insert(memory.db, memory.host)?;
    Ok(true)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TurnEndBody<'a> {
    delivery_id: &'a str,
    agent: &'a str,
    session_id: &'a str,
    message: Option<Box<RawValue>>,
    usage: TurnUsage,
    finish_reason: TurnFinish,
    steps: usize,
}

/// The content of the call.
pub fn render(memory: &Memory<'_>, policy: &Policy, call: &Callback) -> Result<CallbackMessage> {
    let config = load_config(memory.db, &memory.deployed.config)?;
    let endpoint = endpoint_of(memory.outbound, TURN_END, config.on_turn_end.as_ref())?;
    let session_id = Id::parse(call.session_id.clone()).map_err(Error::storage)?;
    let delivery_id = Delivery::of(policy, memory.agent, &session_id).seal(&call.id);
    let message = find_message(memory, &session_id, call)?.map(json::raw);
    // A report that can't be read is sent without its numbers.
    let report: TurnReport = json::decode(&call.report).unwrap_or_default();
    let body = json::encode(&TurnEndBody {
        delivery_id: &delivery_id,
        agent: memory.agent,
        session_id: session_id.as_str(),
        message: message.transpose()?,
        usage: report.spent.usage(),
        finish_reason: report.finish_reason,
        steps: report.steps,
    })?;
    Ok(CallbackMessage {
        endpoint,
        delivery_id,
        body,
    })
}

/// The current answer; `None`: the turn had no output, or its answer was deleted or is too long to
/// be sent.
fn find_message(memory: &Memory<'_>, session_id: &Id, call: &Callback) -> Result<Option<String>> {
    if !session_exists(memory.db, session_id)? {
        return Ok(None);
    }
    let id = Id::parse(call.message_id.clone()).map_err(Error::storage)?;
    let found = find_message_around(memory.db, session_id, &id);
    Ok(found.ok().flatten().map(|message| message.json))
}
