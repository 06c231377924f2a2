//! From the runtime's requests to bytes, and from answers to its responses.

use futures_util::StreamExt as _;
use js_sys::{JsString, Object, Reflect};
use wasm_bindgen::prelude::*;
use worker::{console_error, web_sys};

use super::storage::Meter;
use crate::api::MAX_BODY_BYTES;
use crate::database::Text;
use crate::error::{Code, Error, Result};

#[wasm_bindgen]
extern "C" {
    // web-sys takes a Rust string; the body is one of JavaScript's already.
    #[wasm_bindgen(js_name = Response)]
    type RawResponse;

    #[wasm_bindgen(constructor, js_class = "Response")]
    fn new(body: &JsString, init: &Object) -> RawResponse;

    #[wasm_bindgen(constructor, js_class = "Response")]
    fn new_streamed(body: &JsValue, init: &Object) -> RawResponse;
}

/// Why a response could not be built: never the caller's doing.
type Built = Result<web_sys::Response, JsValue>;

pub fn answer(body: &Text, meter: &Meter) -> Built {
    respond(200, body, Some(meter), &[])
}

pub fn refuse(error: &Error, meter: Option<&Meter>) -> Built {
    if error.cause.is_some() {
        // Here alone: this is where an error leaves.
        log(error);
    }
    let extra = match error.code {
        Code::Unauthorized => Some(("www-authenticate", "Bearer")),
        Code::MethodNotAllowed => error
            .details
            .get("allow")
            .and_then(|allow| allow.as_str())
            .map(|allow| ("allow", allow)),
        _ => None,
    };
    respond(
        error.code.status(),
        &error.body().into(),
        meter,
        extra.as_slice(),
    )
}

/// For the operator: what happened, and what the engine said to it.
pub fn log(error: &Error) {
    let cause = error.cause.as_deref().unwrap_or(&error.message);
    console_error!("{}: {cause}", error.code.name());
}

pub fn respond(status: u16, body: &Text, meter: Option<&Meter>, extra: &[(&str, &str)]) -> Built {
    let init = init(status, meter, extra)?;
    Ok(RawResponse::new(&body.0, &init).unchecked_into())
}

/// Nothing to say, and nothing wrong.
pub fn nothing(meter: &Meter) -> Built {
    let init = init(204, Some(meter), &[])?;
    Ok(RawResponse::new_streamed(&JsValue::NULL, &init).unchecked_into())
}

/// An answer whose body is written piece by piece, as it is read. Its headers
/// say what it has cost up to its start.
pub fn stream(body: &JsValue, meter: &Meter, headers: &[(&str, &str)]) -> Built {
    let init = init(200, Some(meter), headers)?;
    Ok(RawResponse::new_streamed(body, &init).unchecked_into())
}

fn init(status: u16, meter: Option<&Meter>, extra: &[(&str, &str)]) -> Result<Object, JsValue> {
    let headers = Object::new();
    let set = |object: &Object, key: &str, value: &JsValue| {
        Reflect::set(object, &JsValue::from_str(key), value)
    };
    set(
        &headers,
        "content-type",
        &JsValue::from_str("application/json"),
    )?;
    set(&headers, "cache-control", &JsValue::from_str("no-store"))?;
    let cost = |cost: fn(&Meter) -> f64| JsValue::from_f64(meter.map_or(0.0, cost));
    set(
        &headers,
        "x-rows-read",
        &cost(|meter| meter.rows_read.get()),
    )?;
    set(
        &headers,
        "x-rows-written",
        &cost(|meter| meter.rows_written.get()),
    )?;
    for (key, value) in extra {
        set(&headers, key, &JsValue::from_str(value))?;
    }
    let init = Object::new();
    set(&init, "status", &JsValue::from_f64(f64::from(status)))?;
    set(&init, "headers", &headers)?;
    Ok(init)
}

/// A request's header, if it has it.
pub fn find_header(request: &web_sys::Request, name: &str) -> Option<String> {
    request.headers().get(name).ok().flatten()
}

/// How much of a body that is too large is taken off the wire and thrown away:
/// a client that is still sending when the answer comes sees a broken pipe
/// instead of the answer.
const MAX_DISCARDED_BYTES: usize = 4 * MAX_BODY_BYTES;

/// A request's body, a piece at a time.
pub struct Body(Option<worker::ByteStream>);

impl Body {
    pub fn new(request: web_sys::Request) -> Result<Self> {
        if request.body().is_none() {
            return Ok(Self(None));
        }
        let stream = worker::Request::from(request).stream().map_err(lost)?;
        Ok(Self(Some(stream)))
    }

    pub fn empty() -> Self {
        Self(None)
    }

    /// `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        match &mut self.0 {
            Some(stream) => stream.next().await.transpose().map_err(lost),
            None => Ok(None),
        }
    }

    /// Takes what nobody wants any more, so that the answer is heard.
    pub async fn discard(&mut self) {
        let mut discarded = 0;
        while discarded <= MAX_DISCARDED_BYTES
            && let Ok(Some(bytes)) = self.next().await
        {
            discarded += bytes.len();
        }
    }
}

fn lost(_: worker::Error) -> Error {
    Error::invalid("body", "The body broke off before its end.")
}

/// The whole body, or `payload_too_large`.
pub async fn read_body(request: web_sys::Request) -> Result<Vec<u8>> {
    if request.body().is_none() {
        return Ok(Vec::new());
    }
    let announced = find_header(&request, "content-length").and_then(|length| length.parse().ok());
    if announced.is_some_and(|length: usize| length <= MAX_BODY_BYTES) {
        // The runtime holds a body to the length that it announced.
        return worker::Request::from(request).bytes().await.map_err(lost);
    }
    let mut stream = Body::new(request)?;
    let mut body = Vec::new();
    let mut received = 0;
    while let Some(chunk) = stream.next().await? {
        received += chunk.len();
        if received <= MAX_BODY_BYTES {
            body.extend(chunk);
        } else if received <= MAX_DISCARDED_BYTES {
            body = Vec::new();
        } else {
            break;
        }
    }
    if received > MAX_BODY_BYTES {
        let actual = announced.unwrap_or(received);
        return Err(Error::payload_too_large("The body", MAX_BODY_BYTES, actual));
    }
    Ok(body)
}
