//! What all parts of chat share: the access that turns need, and the steps around a
//! turn's beginning.

use super::operation::{Agent, CHAT};
use super::show_pace::News;
use super::shown::load_shown;
use crate::access::{AccessRule, Asker, Effect, Needs};
use crate::base::budget::Reservation;
use crate::base::error::Code;
use crate::base::ids::Id;
use crate::chat::frames::outgoing::{render_message_updated, render_messages};
use crate::chat::run::accept::Accepting;
use crate::chat::run::context::TurnContext;
use crate::chat::run::work::TurnWork;
use crate::chat::turn::Turn;
use crate::messages::read::find_message;

/// The access that a caller needs to begin or follow a turn.
pub const CHAT_RULE: AccessRule = AccessRule {
    operation: CHAT,
    needs: Needs::Session,
    effect: Effect::Messages,
};

/// The access that a caller needs to stop a turn, with `cancelTurn` or with a message
/// that replaces the turn.
pub const CANCEL_RULE: AccessRule = AccessRule {
    operation: "cancelTurn",
    needs: Needs::Session,
    effect: Effect::Session,
};

pub fn accepting<'a>(agent: &Agent<'a>, session_id: &'a Id, asker: Asker) -> Accepting<'a> {
    Accepting {
        db: agent.db,
        host: agent.host,
        deployed: agent.outbound.deployed(),
        agent_name: agent.name,
        session_id,
        asker,
    }
}

/// Registers a turn that is stored.
pub fn begin(agent: &Agent<'_>, turn: Turn, reservation: Reservation) -> TurnWork {
    TurnWork::Begin(agent.turns.begin(&turn, reservation, false), Box::new(turn))
}

/// Makes the calls that a turn's end has written, if there are any.
pub fn call_back(agent: &Agent<'_>) {
    if agent.turns.callbacks.take_new() {
        agent.starter.call_back();
    }
}

/// Whether a retry may succeed after this error.
pub fn is_for_later(code: Code) -> bool {
    matches!(
        code,
        Code::StorageFailed | Code::RateLimited | Code::TurnInProgress
    )
}

/// Sends a changed message to every socket of the session.
pub fn show_updated(agent: &Agent<'_>, session_id: &Id, message_id: &str) {
    if agent.audience.is_there(session_id)
        && let Ok(id) = Id::parse(message_id.to_owned())
        && let Ok(Some(message)) = find_message(agent.db, session_id, &id)
    {
        #[cfg(test)]
        super::answers::hold_message(&message.json);
        let frame = render_message_updated(&message.json);
        agent.audience.tell(session_id, &frame, None);
    }
}

/// Changed messages of more bytes are sent as a list, which is bounded by itself.
const MAX_CHANGED_BYTES: usize = 512 << 10;

/// Sends what changed to the session's sockets: the messages alone, or the list.
pub fn show_news(agent: &Agent<'_>, session_id: &Id, news: &News) {
    let frames = match news {
        News::Messages(ids) => render_changed(agent, session_id, ids),
        News::List => None,
    };
    let Some(frames) = frames else {
        return show_if_watched(agent, session_id, None);
    };
    for frame in frames {
        agent.audience.tell(session_id, &frame, None);
    }
}

/// A frame for each message; `None`: the list has to be sent. A client that does not show a
/// message leaves its frame out. But it takes a message with a call for any message whose
/// call has the same id, and models repeat ids.
fn render_changed(agent: &Agent<'_>, session_id: &Id, ids: &[Id]) -> Option<Vec<String>> {
    let mut bytes = 0;
    let mut frames = Vec::new();
    for id in ids {
        let message = find_message(agent.db, session_id, id).ok()??;
        bytes += message.json.len();
        let has_calls = message.json.contains(r#""toolCallId""#);
        if has_calls || message.id != id.as_str() || bytes > MAX_CHANGED_BYTES {
            return None;
        }
        #[cfg(test)]
        super::answers::hold_message(&message.json);
        frames.push(render_message_updated(&message.json));
    }
    Some(frames)
}

/// Sends the session's messages to its sockets. If the messages can't be read, nothing
/// is sent: a client that reads them gets the error.
pub fn show_if_watched(agent: &Agent<'_>, session_id: &Id, except: Option<&str>) {
    if agent.audience.is_there(session_id)
        && let Ok(messages) = load_shown(agent.db, session_id)
    {
        let frame = render_messages(&messages.into_string());
        agent.audience.tell(session_id, &frame, except);
    }
}

pub fn turn_context<'a>(agent: &Agent<'a>) -> TurnContext<'a> {
    TurnContext {
        memory: agent.memory(),
        turns: agent.turns,
        audience: agent.audience,
        compactions: agent.compactions,
    }
}
