//! Workers RPC: a Worker with a binding to this one calls an operation as a method. Input and
//! output are JSON texts, without a request and a response around them.
//!
//! The Worker and the object accept the same arguments and reject the same ones. An error is an
//! `Error` of JavaScript with the fields of the contract; for `request`, shim.mjs converts it to
//! data.

use js_sys::{Array, JSON, JsString, Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

use super::http::{self, ReceivedBody};
use super::request_log::RequestNote;
use super::stream::{self, TextEncoder};
use super::text::Sent;
use access::MAX_TOKEN_BYTES;
use api::limits::check_length;
use api::route::check_agent_name;
use api::table::NamedOperation;
use base::budget::{FORWARDS, Reservation, SMALL_BYTES};
use base::error::{Error, Result};
use base::json::{self, json};
use base::trace::{TRACEPARENT, TRACESTATE};

#[wasm_bindgen]
extern "C" {
    type Text;

    /// Whether all surrogates are in pairs.
    #[wasm_bindgen(method, js_name = isWellFormed)]
    fn is_well_formed(this: &Text) -> bool;
}

#[wasm_bindgen(module = "/src/edge/glue.js")]
extern "C" {
    fn decode(bytes: &Uint8Array) -> JsString;
}

/// The longest answer, in UTF-16 units. The runtime transfers 32 MiB per call. A text that is not
/// Latin-1 takes two bytes per unit, and some bytes more.
const MAX_ANSWER_UNITS: usize = (16 << 20) - (1 << 10);

/// No operation and no agent has so long a name. A longer one is truncated before it is copied, and
/// is rejected all the same.
const MAX_NAME_UNITS: u32 = 512;

/// The arguments of a call, except the agent's name. Their types were checked.
pub struct RpcCall {
    pub operation: NamedOperation,
    pub json: Option<JsString>,
    pub options: RpcOptions,
}

/// The options of a call, in addition to its operation and its input.
#[derive(Default)]
pub struct RpcOptions {
    pub token: Option<String>,
    /// The name of the agent that the caller expects, if it calls an object.
    pub agent: Option<String>,
    /// The caller's trace, in the form of the headers of these names.
    pub traceparent: Option<String>,
    pub tracestate: Option<String>,
}

impl RpcCall {
    /// `note` names the operation even if the other arguments are refused.
    pub fn parse(
        operation: &JsValue,
        json: JsValue,
        options: &JsValue,
        note: &RequestNote,
    ) -> Result<Self> {
        let operation = parse_operation(operation)?;
        note.set_operation(operation.listed_name());
        Ok(Self {
            operation,
            json: parse_json(json)?,
            options: parse_options(options)?,
        })
    }
}

impl RpcOptions {
    /// Takes the option that corresponds to this header of a request.
    pub fn take_header(&mut self, name: &str) -> Option<String> {
        match name {
            TRACEPARENT => self.traceparent.take(),
            TRACESTATE => self.tracestate.take(),
            _ => None,
        }
    }
}

fn parse_operation(operation: &JsValue) -> Result<NamedOperation> {
    find_name(operation)
        .map(NamedOperation::find)
        .ok_or_else(|| {
            Error::invalid(
                "operation",
                "`operation` must be a string: the name of an operation.",
            )
        })
}

/// The agent's name, if the argument is a text.
pub fn parse_agent(agent: &JsValue) -> Result<String> {
    find_name(agent)
        .filter(|_| agent.unchecked_ref::<Text>().is_well_formed())
        .ok_or_else(|| Error::invalid("agent", "`agent` must be a string: the agent's name."))
        .and_then(check_agent_name)
}

fn find_name(argument: &JsValue) -> Option<String> {
    let text: &JsString = argument.dyn_ref()?;
    if text.length() <= MAX_NAME_UNITS {
        return Some(text.into());
    }
    Some(text.slice(0, MAX_NAME_UNITS).into())
}

/// A call without JSON is one of an empty object, as a request without a body is.
fn parse_json(json: JsValue) -> Result<Option<JsString>> {
    if json.is_undefined() {
        return Ok(None);
    }
    let text: JsString = json.dyn_into().map_err(|_| {
        Error::invalid(
            "json",
            "`json` must be a string, an object serialized with `JSON.stringify`.",
        )
    })?;
    if !text.unchecked_ref::<Text>().is_well_formed() {
        return Err(Error::invalid(
            "json",
            "`json` contains an unpaired surrogate, so it is not valid text.",
        ));
    }
    Ok(Some(text))
}

fn parse_options(options: &JsValue) -> Result<RpcOptions> {
    let refused = |field| {
        Error::invalid(
            field,
            "The options of a call must be an object with the string fields `token`, \
             `traceparent`, `tracestate` and, on the object, `agent`.",
        )
    };
    if options.is_undefined() {
        return Ok(RpcOptions::default());
    }
    if !options.is_object() || Array::is_array(options) {
        return Err(refused("options"));
    }
    let mut given = RpcOptions::default();
    for name in Object::keys(options.unchecked_ref::<Object>()) {
        let value = Reflect::get(options, &name).map_err(|_| refused("options"))?;
        match name.as_string().as_deref() {
            Some("token" | "agent" | "traceparent" | "tracestate") if value.is_undefined() => {}
            // A trace in another form is ignored, as in a request's headers.
            Some("traceparent") => given.traceparent = find_name(&value),
            Some("tracestate") => given.tracestate = find_name(&value),
            Some("token") => {
                let text: JsString = value.dyn_into().map_err(|_| refused("token"))?;
                // The truncated text is still too long for a token, and is rejected.
                given.token = Some(text.slice(0, MAX_TOKEN_BYTES as u32 + 1).into());
            }
            Some("agent") => given.agent = Some(parse_agent(&value)?),
            _ => return Err(refused("options")),
        }
    }
    Ok(given)
}

/// Copies the JSON into Wasm. Fails with `payload_too_large` beyond `limit`, and with
/// `rate_limited` if no memory is left for the text.
pub fn receive(json: Option<JsString>, limit: usize) -> Result<ReceivedBody> {
    let Some(text) = json else {
        return ReceivedBody::nothing();
    };
    // A text has at least as many bytes as UTF-16 units.
    let units = text.length();
    check_length(limit, units as usize)?;
    let reservation = Reservation::for_request(units as usize)?;
    if units as usize <= SMALL_BYTES {
        let bytes = String::from(text).into_bytes();
        return Ok(ReceivedBody { bytes, reservation });
    }
    let mut received = ReceivedBody::with_reservation(units as usize, reservation);
    let encoder = TextEncoder::new();
    let mut at = 0;
    while at < units {
        let (piece, end) = stream::encode_piece(&encoder, &text, at);
        received.push(&piece.to_vec(), limit)?;
        at = end;
    }
    Ok(received)
}

/// Reserves the memory of a text that the Worker buffers until the object has answered. `None`: the
/// text is too short to be counted.
pub fn reserve_forward(json: Option<&JsString>, limit: usize) -> Result<Option<Reservation>> {
    let units = json.map_or(0, |text| text.length() as usize);
    check_length(limit, units)?;
    if units <= SMALL_BYTES {
        return Ok(None);
    }
    Reservation::take(&FORWARDS, units, "Running calls").map(Some)
}

/// The answer as the caller receives it. A read fails if its answer is too long; a write is
/// answered in any case.
pub fn to_text(body: Sent, may_be_repeated: bool) -> Result<JsValue> {
    let text = match body {
        Sent::String(text) => text,
        Sent::Bytes(bytes) => decode(&bytes),
        Sent::Long(text) => JsString::from(text.as_str()),
    };
    let units = text.length() as usize;
    if may_be_repeated && units > MAX_ANSWER_UNITS {
        let what = "The answer is too long for a call. Use `fetch` to stream it. The answer";
        return Err(Error::payload_too_large(what, MAX_ANSWER_UNITS, units));
    }
    Ok(text.into())
}

/// The error as the caller receives it. The runtime transfers the fields to the calling Worker.
pub fn to_thrown(error: &Error) -> JsValue {
    if error.cause.is_some() {
        http::log(error);
    }
    let thrown = js_sys::Error::new(&error.message);
    let fields = json!({
        "code": error.code.name(),
        "details": error.details(),
        "status": error.code.status(),
    });
    // The text is JSON, so parsing it never fails.
    if let Ok(fields) = JSON::parse(&json::text(&fields)) {
        Object::assign(&thrown, fields.unchecked_ref());
    }
    thrown.into()
}

/// Whether this is an error that an object made, and not one of the runtime's.
pub fn is_refusal(thrown: &JsValue) -> bool {
    Reflect::get(thrown, &"code".into()).is_ok_and(|code| code.is_string())
}

/// Whether an error means that the object has no such method, so that nothing has run. An object
/// may be of an older build than the Worker while a new one is rolled out.
pub fn is_of_older_build(thrown: &JsValue) -> bool {
    let message = Reflect::get(thrown, &"message".into()).ok();
    message
        .and_then(|message| message.as_string())
        .is_some_and(|message| message.contains("does not implement the method"))
}
