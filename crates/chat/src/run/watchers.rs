//! Sends the messages of a session to its sockets.

use crate::frames::outgoing::{render_message_updated, render_messages};
use crate::run::agent::Agent;
use crate::run::broadcast_throttle::Broadcast;
use base::database::{Database, SqlText};
use base::error::{Code, Result};
use base::ids::Id;
use conversation::messages::history::{DEFAULT_MAX_BYTES, load_newest};
use conversation::messages::page::{PageForm, PageQuery};
use conversation::messages::read::find_message;

/// The most messages that `get-messages` returns.
const MAX_SHOWN_MESSAGES: usize = 1000;

/// A session's newest messages as a JSON array, for a client that opens the session.
pub fn load_shown(db: &dyn Database, session_id: &Id) -> Result<SqlText> {
    let ask = PageQuery {
        limit: MAX_SHOWN_MESSAGES,
        max_bytes: DEFAULT_MAX_BYTES as usize,
        form: PageForm::List,
    };
    let page = match load_newest(db, session_id, ask) {
        Err(error) if error.code == Code::SessionNotFound => None,
        page => page?,
    };
    let Some(page) = page else {
        return Ok("[]".into());
    };
    Ok(page.into_json())
}

/// Sends a changed message to every socket of the session.
pub fn broadcast_message(agent: &Agent<'_>, session_id: &Id, message_id: &str) {
    if agent.audience.is_watching(session_id)
        && let Ok(id) = Id::parse(message_id.to_owned())
        && let Ok(Some(message)) = find_message(agent.db, session_id, &id)
    {
        let frame = render_message_updated(&message.json);
        agent.audience.send(session_id, &frame, None);
    }
}

/// If the changed messages have more bytes, the list is sent, which has its own limit.
const MAX_CHANGED_BYTES: usize = 512 << 10;

/// Sends what changed to the session's sockets: only the messages, or the list.
pub fn send_broadcast(agent: &Agent<'_>, session_id: &Id, broadcast: &Broadcast) {
    let frames = match broadcast {
        Broadcast::Messages(ids) => render_changed(agent, session_id, ids),
        Broadcast::List => None,
    };
    let Some(frames) = frames else {
        return broadcast_list(agent, session_id, None);
    };
    for frame in frames {
        agent.audience.send(session_id, &frame, None);
    }
}

/// A frame for each message; `None`: the list must be sent. A client that does not show a message
/// ignores its frame. But it mistakes a message with a call for any message whose call has the same
/// id, and models repeat ids.
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
        frames.push(render_message_updated(&message.json));
    }
    Some(frames)
}

/// Sends the session's messages to its sockets. If the messages can't be read, nothing is sent: a
/// client that reads them receives the error.
pub fn broadcast_list(agent: &Agent<'_>, session_id: &Id, except: Option<&str>) {
    if agent.audience.is_watching(session_id)
        && let Ok(messages) = load_shown(agent.db, session_id)
    {
        let frame = render_messages(&messages.into_string());
        agent.audience.send(session_id, &frame, except);
    }
}
