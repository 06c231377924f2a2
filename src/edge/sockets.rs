//! WebSockets that survive the object's hibernation: the runtime stores each socket with
//! its `SocketState`.

use std::borrow::Cow;
use std::cell::Cell;

use js_sys::{Array, Object, Reflect};
use wasm_bindgen::prelude::*;
use worker::web_sys;
pub use worker::web_sys::WebSocket as Socket;
use worker::worker_sys::WebSocketPair;
use worker::worker_sys::ext::{ResponseInitExt as _, WebSocketExt as _};

use super::host::Runtime;
use api::socket::{Credit, SocketState};
use base::error::{Error, Result};
use base::host::Host as _;
use base::ids::Id;
use base::json;
use chat::run::running_turns::Audience;

#[wasm_bindgen]
extern "C" {
    /// The socket functions of the object's state. The worker crate's binding copies the
    /// whole list of sockets, even to count them.
    pub type ObjectState;

    #[wasm_bindgen(method, catch, js_name = acceptWebSocket)]
    fn accept_web_socket(this: &ObjectState, socket: &Socket, tags: Array) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch, js_name = getWebSockets)]
    fn get_all_web_sockets(this: &ObjectState) -> Result<Array, JsValue>;

    #[wasm_bindgen(method, catch, js_name = getWebSockets)]
    fn get_web_sockets(this: &ObjectState, tag: &str) -> Result<Array, JsValue>;
}

pub struct Sockets {
    state: ObjectState,
    /// Whether any socket may be open; `None`: unknown. Cached, so that a write in an agent
    /// without sockets doesn't call the runtime.
    are_open: Cell<Option<bool>>,
}

impl Sockets {
    pub fn new(state: ObjectState) -> Self {
        Self {
            state,
            are_open: Cell::new(None),
        }
    }

    /// Opens a socket; `protocol` is the subprotocol to answer with.
    pub fn open(
        &self,
        state: &SocketState,
        greeting: &[String],
        protocol: Option<&str>,
    ) -> Result<web_sys::Response, JsValue> {
        let mut pair = WebSocketPair::new()?;
        let (client, server) = (pair.client()?, pair.server()?);
        self.state
            .accept_web_socket(&server, Array::of1(&tag(&state.session_id).into()))?;
        self.are_open.set(Some(true));
        store_state(&server, state)?;
        for frame in greeting {
            send(&server, state, frame)?;
        }
        let mut init = web_sys::ResponseInit::new();
        init.set_status(101);
        init.websocket(&client)?;
        if let Some(protocol) = protocol {
            let headers = Object::new();
            Reflect::set(&headers, &"sec-websocket-protocol".into(), &protocol.into())?;
            init.set_headers(&headers);
        }
        web_sys::Response::new_with_opt_str_and_init(None, &init)
    }

    /// Opens the socket of a lease. It belongs to no session, so no frame is sent to it.
    pub fn open_lease(&self, id: &str) -> Result<(Socket, web_sys::Response), JsValue> {
        let mut pair = WebSocketPair::new()?;
        let (client, server) = (pair.client()?, pair.server()?);
        self.state.accept_web_socket(&server, Array::new())?;
        self.are_open.set(Some(true));
        server.serialize_attachment(format!("{LEASE}{id}").into())?;
        let mut init = web_sys::ResponseInit::new();
        init.set_status(101);
        init.websocket(&client)?;
        let answer = web_sys::Response::new_with_opt_str_and_init(None, &init)?;
        Ok((server, answer))
    }

    /// Closes a session's sockets. Their pages connect again, and resume the turn.
    pub fn close_all(&self, session_id: &Id) {
        for socket in self.of_session(session_id).iter() {
            close_with(&socket.unchecked_into(), 1012, "Connect again.");
        }
    }

    /// The number of a session's open sockets.
    pub fn count(&self, session_id: &Id) -> usize {
        usize::try_from(self.of_session(session_id).length()).unwrap_or(usize::MAX)
    }

    /// Drops the cached state, because a socket was closed.
    pub fn forget_known(&self) {
        self.are_open.set(None);
    }

    fn are_open(&self) -> bool {
        if let Some(are_open) = self.are_open.get() {
            return are_open;
        }
        let all = self.state.get_all_web_sockets().unwrap_or_default();
        let are_open = all.length() > 0;
        self.are_open.set(Some(are_open));
        are_open
    }

    fn of_session(&self, session_id: &Id) -> Array {
        self.state
            .get_web_sockets(&tag(session_id))
            .unwrap_or_default()
    }
}

impl Audience for Sockets {
    fn send(&self, session_id: &Id, frame: &str, except: Option<&str>) {
        for socket in self.of_session(session_id).iter() {
            let socket: Socket = socket.unchecked_into();
            let Some(state) = find_state(&socket) else {
                continue;
            };
            if state.has_expired(Runtime.now_ms()) {
                close_expired(&socket);
                continue;
            }
            let is_excepted = except.is_some() && state.last_request_id.as_deref() == except;
            if state.session_id == *session_id && !state.awaits_replay && !is_excepted {
                // An error means that the socket is already closed; its close event
                // follows.
                let _ = send(&socket, &state, frame);
            }
        }
    }

    fn is_watching(&self, session_id: &Id) -> bool {
        self.are_open() && self.of_session(session_id).length() > 0
    }

    fn awaits_replay(&self, session_id: &Id) -> bool {
        let awaits_replay =
            |state: SocketState| state.session_id == *session_id && state.awaits_replay;
        self.is_watching(session_id)
            && self
                .of_session(session_id)
                .iter()
                .any(|socket| find_state(&socket.unchecked_into()).is_some_and(awaits_replay))
    }
}

/// The property of a socket that counts its unacknowledged bytes while the object is in
/// memory.
const UNACKNOWLEDGED: &str = "unheardBytes";

/// Sends a frame. Closes the socket instead if its page was silent for too many bytes.
pub fn send(socket: &Socket, state: &SocketState, frame: &str) -> Result<(), JsValue> {
    let frame = match &state.sdk {
        None => Cow::Borrowed(frame),
        Some(sdk) => match sdk.translate(frame) {
            Some(frame) => Cow::Owned(frame),
            None => return Ok(()),
        },
    };
    let counted = Reflect::get(socket, &UNACKNOWLEDGED.into())?.as_f64();
    let unacknowledged = counted.map_or(state.unacknowledged_bytes, |bytes| bytes as usize);
    let Credit::Left {
        unacknowledged_bytes,
        must_store,
    } = Credit::after(unacknowledged, frame.len())
    else {
        close_with(
            socket,
            1013,
            "The page has not read its messages in time. Connect again.",
        );
        return Ok(());
    };
    Reflect::set(
        socket,
        &UNACKNOWLEDGED.into(),
        &(unacknowledged_bytes as f64).into(),
    )?;
    if must_store {
        let state = SocketState {
            unacknowledged_bytes,
            ..state.clone()
        };
        store_state(socket, &state)?;
    }
    socket.send_with_str(&frame)
}

/// Records that a socket's page sent something. Returns the socket's new state.
pub fn received(socket: &Socket, state: SocketState) -> SocketState {
    // If this fails, too many bytes are counted, and the page reconnects.
    let _ = Reflect::set(socket, &UNACKNOWLEDGED.into(), &0.into());
    if state.unacknowledged_bytes == 0 {
        return state;
    }
    let state = SocketState {
        unacknowledged_bytes: 0,
        ..state
    };
    let _ = store_state(socket, &state);
    state
}

/// Closes a socket with a reason.
pub fn close_with(socket: &Socket, code: u16, reason: &str) {
    // An error means that the socket is already closed.
    let _ = socket.close_with_code_and_reason(code, reason);
}

/// Closes a socket whose token has expired.
pub fn close_expired(socket: &Socket) {
    close_with(
        socket,
        4401,
        "The token has expired. Connect again with a new token.",
    );
}

/// The beginning of the state of a lease's socket. No JSON begins like this.
const LEASE: &str = "lease ";

/// The id of the lease that this socket belongs to.
pub fn find_lease(socket: &Socket) -> Option<String> {
    let attachment = socket.deserialize_attachment().ok()?.as_string()?;
    attachment.strip_prefix(LEASE).map(str::to_owned)
}

pub fn find_state(socket: &Socket) -> Option<SocketState> {
    let attachment = socket.deserialize_attachment().ok()?.as_string()?;
    json::decode(&attachment).ok()
}

pub fn store_state(socket: &Socket, state: &SocketState) -> Result<(), JsValue> {
    let state = json::encode(state).map_err(|error| JsValue::from(error.into_message()))?;
    socket.serialize_attachment(state.into())
}

/// The tag of a session's sockets. A tag has at most 256 bytes, which is enough for most
/// ids. A longer id is cut, and the socket's state distinguishes such sessions.
fn tag(session_id: &Id) -> String {
    const MAX_TAG_BYTES: usize = 250;
    let id = session_id.as_str();
    let end = id.floor_char_boundary(MAX_TAG_BYTES);
    id.get(..end).unwrap_or_default().to_owned()
}

pub fn failed(thrown: JsValue) -> Error {
    Error::storage(thrown.as_string().unwrap_or_else(|| format!("{thrown:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag_of(id: &str) -> String {
        tag(&Id::parse(id.to_owned()).unwrap())
    }

    #[test]
    fn a_tag_is_the_id_truncated_to_the_runtimes_limit() {
        assert_eq!(tag_of("s"), "s");
        assert_eq!(tag_of(&"é".repeat(125)), "é".repeat(125));
        assert_eq!(tag_of(&"é".repeat(126)), "é".repeat(125));
        // The last bytes of the 84th character would exceed the limit.
        assert_eq!(tag_of(&"€".repeat(200)), "€".repeat(83));
    }
}
