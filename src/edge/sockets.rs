//! Sockets that outlive the object's memory: the runtime keeps each socket with its
//! `SocketState`.

use js_sys::{Array, Function, Object, Reflect};
use wasm_bindgen::prelude::*;
use worker::web_sys;

use super::host::Runtime;
use crate::api::socket::SocketState;
use crate::base::error::{Error, Result};
use crate::base::host::Host as _;
use crate::base::ids::Id;
use crate::base::json;
use crate::chat::running_turns::Audience;

#[wasm_bindgen]
extern "C" {
    /// The part of the object's state that deals with sockets.
    pub type ObjectState;

    #[wasm_bindgen(method, catch, js_name = acceptWebSocket)]
    fn accept_web_socket(this: &ObjectState, socket: &Socket, tags: Array) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch, js_name = getWebSockets)]
    fn get_web_sockets(this: &ObjectState, tag: &str) -> Result<Array, JsValue>;

    pub type Socket;

    #[wasm_bindgen(method, catch)]
    pub fn send(this: &Socket, frame: &str) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch)]
    pub fn close(this: &Socket, code: u16, reason: &str) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch, js_name = serializeAttachment)]
    fn serialize_attachment(this: &Socket, value: &str) -> Result<(), JsValue>;

    #[wasm_bindgen(method, catch, js_name = deserializeAttachment)]
    fn deserialize_attachment(this: &Socket) -> Result<JsValue, JsValue>;

    #[wasm_bindgen(js_name = WebSocketPair)]
    type Pair;

    #[wasm_bindgen(constructor, js_class = "WebSocketPair")]
    fn new() -> Pair;
}

pub struct Sockets {
    state: ObjectState,
}

impl Sockets {
    pub fn new(state: ObjectState) -> Self {
        Self { state }
    }

    /// Opens a socket; `protocol` is the subprotocol to answer with.
    pub fn open(
        &self,
        state: &SocketState,
        greeting: &[String],
        protocol: Option<&str>,
    ) -> Result<web_sys::Response, JsValue> {
        let pair: JsValue = Pair::new().into();
        let end = |name: &str| Reflect::get(&pair, &name.into());
        let (client, server) = (end("0")?, end("1")?);
        let server: Socket = server.unchecked_into();
        self.state
            .accept_web_socket(&server, Array::of1(&tag(&state.session_id).into()))?;
        keep(&server, state)?;
        for frame in greeting {
            server.send(frame)?;
        }
        let init = Object::new();
        let set = |object: &Object, key: &str, value: &JsValue| {
            Reflect::set(object, &key.into(), value).map(drop)
        };
        set(&init, "status", &101.into())?;
        set(&init, "webSocket", &client)?;
        if let Some(protocol) = protocol {
            let headers = Object::new();
            set(&headers, "sec-websocket-protocol", &protocol.into())?;
            set(&init, "headers", &headers)?;
        }
        // web-sys does not bind the `webSocket` field of a response.
        let class: Function = Reflect::get(&js_sys::global(), &"Response".into())?.dyn_into()?;
        let args = Array::of2(&JsValue::NULL, &init);
        Ok(Reflect::construct(&class, &args)?.unchecked_into())
    }

    /// How many sockets a session has open.
    pub fn count(&self, session_id: &Id) -> usize {
        usize::try_from(self.of_session(session_id).length()).unwrap_or(usize::MAX)
    }

    fn of_session(&self, session_id: &Id) -> Array {
        self.state
            .get_web_sockets(&tag(session_id))
            .unwrap_or_default()
    }
}

impl Audience for Sockets {
    fn tell(&self, session_id: &Id, frame: &str, except: Option<&str>) {
        for socket in self.of_session(session_id).iter() {
            let socket: Socket = socket.unchecked_into();
            let Some(state) = find_state(&socket) else {
                continue;
            };
            if state.has_expired(Runtime.now_ms()) {
                close_expired(&socket);
                continue;
            }
            let is_excepted = except.is_some() && state.asked.as_deref() == except;
            if state.session_id == *session_id && !state.is_held && !is_excepted {
                // An error means that the socket is gone; its close event follows.
                let _ = socket.send(frame);
            }
        }
    }

    fn is_there(&self, session_id: &Id) -> bool {
        self.of_session(session_id).length() > 0
    }
}

/// Closes a socket and says why.
pub fn close_with(socket: &Socket, code: u16, reason: &str) {
    // An error means that the socket is gone already.
    let _ = socket.close(code, reason);
}

/// Closes a socket whose token has expired.
pub fn close_expired(socket: &Socket) {
    // An error means that the socket is gone already.
    let _ = socket.close(4401, "The token has expired; have another minted.");
}

pub fn find_state(socket: &Socket) -> Option<SocketState> {
    let kept = socket.deserialize_attachment().ok()?.as_string()?;
    json::decode(&kept).ok()
}

pub fn keep(socket: &Socket, state: &SocketState) -> Result<(), JsValue> {
    let state = serde_json::to_string(state).map_err(|error| JsValue::from(error.to_string()))?;
    socket.serialize_attachment(&state)
}

/// The tag of a session's sockets. A tag holds 256 bytes, which is enough for most
/// ids. A longer id is cut, and the socket's state tells such sessions apart.
fn tag(session_id: &Id) -> String {
    const MAX_TAG_BYTES: usize = 250;
    let id = session_id.as_str();
    let end = id.floor_char_boundary(MAX_TAG_BYTES);
    id.get(..end).unwrap_or_default().to_owned()
}

pub fn failed(thrown: JsValue) -> Error {
    Error::storage(thrown.as_string().unwrap_or_else(|| format!("{thrown:?}")))
}
