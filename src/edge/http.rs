//! Reads the bodies of requests, and builds responses, with the runtime's types.

use std::rc::Rc;

use js_sys::{ArrayBuffer, JSON, JsString, Object, Promise, Reflect, Uint8Array};
use serde_json::{Map, Value};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use worker::{console_error, web_sys};

use super::host::pause;
use super::storage::Statements;
use super::stream;
use super::text::Sent;
use api::limits::check_length;
use api::refusal;
use api::request::RequestHead;
use api::route::find_family;
use base::budget::{REQUESTS, Reservation};
use base::error::{Error, Result};
use base::json::{self, json};
use base::outbound::in_time;
use base::trace::{TRACEPARENT, Trace};
use provider_api::refusal::render;

#[wasm_bindgen]
extern "C" {
    // web-sys accepts only a Rust string or web-sys's own stream.
    #[wasm_bindgen(js_name = Response)]
    type RawResponse;

    #[wasm_bindgen(constructor, js_class = "Response")]
    fn new_streamed(body: &JsValue, init: &Object) -> RawResponse;

    /// A reader that fills a buffer of the caller.
    #[wasm_bindgen(js_name = ReadableStreamBYOBReader)]
    type ByteReader;

    #[wasm_bindgen(constructor, catch, js_class = "ReadableStreamBYOBReader")]
    fn new(stream: &web_sys::ReadableStream) -> Result<ByteReader, JsValue>;

    #[wasm_bindgen(method)]
    fn read(this: &ByteReader, into: &Uint8Array) -> Promise;
}

#[wasm_bindgen(module = "/src/edge/glue.js")]
extern "C" {
    #[wasm_bindgen(js_name = respond)]
    fn respond_with(
        status: u16,
        body: &JsValue,
        cost: Option<&Statements>,
        more: Option<&str>,
    ) -> JsValue;

    #[wasm_bindgen(js_name = respondInTime)]
    fn respond_in_time(
        status: u16,
        bytes: &Uint8Array,
        cost: Option<&Statements>,
        more: Option<&str>,
    ) -> JsValue;
}

/// An error here is a failure of the runtime, never the caller's fault.
pub type ResponseResult = Result<web_sys::Response, JsValue>;

/// The longest answer that is sent at once, in bytes or in UTF-16 units. The runtime
/// buffers it until it is read, without reporting when. A longer answer is streamed in
/// chunks, and dropped if nobody reads it.
const MAX_WHOLE_LENGTH: u32 = 64 << 10;

/// The longest answer whose memory isn't reserved while it is sent. Otherwise a few average
/// pages that are read at the same time would exhaust the limit.
const MAX_UNCOUNTED_LENGTH: u32 = 512 << 10;

/// `reservation` reserves the memory of a long answer until it is sent.
pub fn answer(
    status: u16,
    body: &Sent,
    cost: &Statements,
    reservation: Reservation,
    headers: &[(&str, &str)],
) -> ResponseResult {
    let length = match body {
        Sent::String(text) => text.length(),
        Sent::Bytes(bytes) => bytes.length(),
        Sent::Long(_) => u32::MAX,
    };
    if length <= MAX_UNCOUNTED_LENGTH {
        reservation.resize(0);
    }
    if let Sent::Bytes(bytes) = body
        && (MAX_WHOLE_LENGTH + 1..=MAX_UNCOUNTED_LENGTH).contains(&length)
    {
        let more = render_headers(headers);
        return Ok(respond_in_time(status, bytes, Some(cost), more.as_deref()).unchecked_into());
    }
    let pieces = match body {
        Sent::String(text) if length <= MAX_WHOLE_LENGTH => {
            return respond(status, text, Some(cost), headers);
        }
        Sent::Bytes(bytes) if length <= MAX_WHOLE_LENGTH => {
            return respond(status, bytes, Some(cost), headers);
        }
        Sent::String(text) => stream::of_text(text.clone(), reservation),
        Sent::Bytes(bytes) => stream::of_array(bytes.clone(), reservation),
        Sent::Long(text) => stream::of_bytes(Rc::clone(text), reservation),
    };
    match pieces {
        Ok(body) => stream_with(status, &body, cost, headers),
        Err(error) => refuse(&error, Some(cost)),
    }
}

/// Reserves memory for an answer until it is sent. If there is none, a request that changed
/// nothing is refused, and can be retried. A request that changed something always gets its
/// answer.
pub fn reserve_answer(body: &Sent, may_be_repeated: bool) -> Result<Reservation> {
    let bytes = match body {
        // JavaScript uses two bytes per unit for strings that are not Latin-1.
        Sent::String(text) => text.length() as usize * 2,
        // A long page is in memory as a whole, and as the chunks being sent.
        Sent::Bytes(bytes) => bytes.length() as usize * 2,
        Sent::Long(text) => text.capacity(),
    };
    match Reservation::for_request(bytes) {
        Err(_) if !may_be_repeated => Ok(Reservation::unchecked(&REQUESTS, bytes)),
        reservation => reservation,
    }
}

pub fn refuse(error: &Error, cost: Option<&Statements>) -> ResponseResult {
    refuse_as(error, (error.code.status(), error.body()), cost)
}

/// Refuses a request to this URL. Below a base URL, the error has the shape of the
/// provider's API.
pub fn refuse_at(url: &str, error: &Error, cost: Option<&Statements>) -> ResponseResult {
    match find_family(url) {
        Some(family) => {
            let refusal = render(family, error);
            refuse_as(error, (refusal.status, refusal.body), cost)
        }
        None => refuse(error, cost),
    }
}

fn refuse_as(
    error: &Error,
    (status, body): (u16, String),
    cost: Option<&Statements>,
) -> ResponseResult {
    if error.cause.is_some() {
        // Errors are logged only here, because every refusal passes through.
        log(error);
    }
    let header = refusal::find_extra(error);
    let extra = header.as_ref().map(|(name, value)| (*name, value.as_ref()));
    respond(status, &JsString::from(body), cost, extra.as_slice())
}

/// Logs the failure of a request for the operator, with the engine's own message. The request's
/// own line names the agent.
pub fn log(error: &Error) {
    console_error!("{}: {}", error.code.name(), cause_of(error));
}

/// Logs a failure of an agent's own work, which no request's line reports.
pub fn log_of(agent: &str, error: &Error) {
    console_error!("{}: agent {agent}: {}", error.code.name(), cause_of(error));
}

fn cause_of(error: &Error) -> &str {
    error.cause.as_deref().unwrap_or(&error.message)
}

/// The metadata document of the Worker as an OAuth client.
pub fn answer_client(description: &str) -> ResponseResult {
    let headers = [("cache-control", "max-age=300")];
    respond(200, &description.into(), None, &headers)
}

pub fn respond(
    status: u16,
    body: &JsValue,
    cost: Option<&Statements>,
    extra: &[(&str, &str)],
) -> ResponseResult {
    let more = render_headers(extra);
    Ok(respond_with(status, body, cost, more.as_deref()).unchecked_into())
}

/// Additional headers, as a JSON object.
fn render_headers(headers: &[(&str, &str)]) -> Option<String> {
    (!headers.is_empty()).then(|| json::text(&object_of(headers)))
}

/// A successful answer without a body.
pub fn nothing(cost: &Statements) -> ResponseResult {
    let init = init(204, Some(cost), &[])?;
    Ok(RawResponse::new_streamed(&JsValue::NULL, &init).unchecked_into())
}

/// An answer with only headers.
pub fn nothing_but(headers: &[(&str, &str)]) -> ResponseResult {
    let init = init(204, None, headers)?;
    Ok(RawResponse::new_streamed(&JsValue::NULL, &init).unchecked_into())
}

/// An answer whose body is produced while the client reads it. Its headers report the cost
/// until it started.
pub fn stream(body: &JsValue, cost: &Statements, headers: &[(&str, &str)]) -> ResponseResult {
    stream_with(200, body, cost, headers)
}

/// A streamed answer with these headers.
pub fn respond_stream(body: &JsValue, headers: &web_sys::Headers) -> ResponseResult {
    let init = Object::new();
    Reflect::set(&init, &"headers".into(), headers)?;
    Ok(RawResponse::new_streamed(body, &init).unchecked_into())
}

fn stream_with(
    status: u16,
    body: &JsValue,
    cost: &Statements,
    headers: &[(&str, &str)],
) -> ResponseResult {
    let init = init(status, Some(cost), headers)?;
    Ok(RawResponse::new_streamed(body, &init).unchecked_into())
}

/// Builds the object from one JSON text, because setting each field separately takes three
/// calls into JavaScript.
fn init(status: u16, cost: Option<&Statements>, extra: &[(&str, &str)]) -> Result<Object, JsValue> {
    let rows = |rows: fn(&Statements) -> f64| cost.map_or(0.0, rows).to_string();
    let (read, written) = (rows(Statements::rows_read), rows(Statements::rows_written));
    let common = [
        ("content-type", "application/json"),
        ("cache-control", "no-store"),
        ("x-content-type-options", "nosniff"),
        ("x-rows-read", read.as_str()),
        ("x-rows-written", written.as_str()),
    ];
    let headers = object_of(&[&common, extra].concat());
    let init = json!({"status": status, "headers": headers});
    JSON::parse(&json::text(&init)).map(JsCast::unchecked_into)
}

/// Headers as a JSON object. If a name occurs twice, the later one wins.
fn object_of(headers: &[(&str, &str)]) -> Value {
    let mut object = Map::new();
    for (name, value) in headers {
        object.insert((*name).to_owned(), (*value).into());
    }
    Value::Object(object)
}

/// A request, and its URL: each read of the URL copies it from JavaScript.
pub struct HttpRequest {
    pub inner: web_sys::Request,
    pub url: String,
}

impl HttpRequest {
    pub fn new(inner: web_sys::Request) -> Self {
        Self {
            url: inner.url(),
            inner,
        }
    }

    pub fn find_header(&self, name: &str) -> Option<String> {
        find_header(&self.inner, name)
    }
}

impl RequestHead for HttpRequest {
    fn header(&self, name: &str) -> Option<String> {
        self.find_header(name)
    }

    fn url(&self) -> &str {
        &self.url
    }
}

/// Adds the trace to an answer.
pub fn name_trace(answer: &web_sys::Response, trace: &Trace) -> Result<(), JsValue> {
    answer.headers().set(TRACEPARENT, &trace.traceparent())
}

/// A request's header, if it is there.
pub fn find_header(request: &web_sys::Request, name: &str) -> Option<String> {
    request.headers().get(name).ok().flatten()
}

/// How much of a refused request's body is read and discarded. Without this, a client that
/// is still sending gets a broken pipe instead of the answer. A file that is refused at an
/// early line may be much longer. The bytes pass through one buffer, so they cost time and
/// no memory.
const MAX_DISCARDED_BYTES: usize = 128 << 20;

/// How long a refused request's body is discarded.
const MAX_DISCARDING_MS: i64 = 2_000;

/// Bytes per read. All reads share one buffer: with a new buffer per chunk, the whole body
/// would be left as garbage.
const PIECE_BYTES: u32 = 64 << 10;

/// The length of a body's first buffer. A client that sends one byte and waits uses no more
/// than this. After a full buffer, the next buffer is twice as long.
const FIRST_PIECE_BYTES: u32 = 4 << 10;

/// The deadline for a body. After this time, its memory is released.
const MAX_READING_MS: i64 = 60_000;

/// A request's body, read in chunks.
pub struct RequestBody {
    reader: Option<ByteReader>,
    buffer: ArrayBuffer,
    /// A body that was already read completely.
    read: Option<Vec<u8>>,
}

impl RequestBody {
    /// A short body that was read before Rust was called.
    pub fn of(bytes: Vec<u8>) -> Self {
        Self {
            reader: None,
            buffer: ArrayBuffer::new(0),
            read: Some(bytes),
        }
    }

    pub fn new(request: &web_sys::Request) -> Result<Self> {
        let reader = match request.body() {
            Some(stream) => Some(ByteReader::new(&stream).map_err(|_| lost())?),
            None => None,
        };
        let first = if reader.is_some() {
            FIRST_PIECE_BYTES
        } else {
            0
        };
        Ok(Self {
            reader,
            buffer: ArrayBuffer::new(first),
            read: None,
        })
    }

    /// The next chunk; `None` after the last.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>> {
        if let Some(bytes) = self.read.take() {
            return Ok(Some(bytes));
        }
        // The reader is stored again only when a chunk has arrived. An interrupted body
        // keeps the buffer, so the next call must report the end. A view of the lost buffer
        // would throw, and abort every request of this instance.
        let Some(reader) = self.reader.take() else {
            return Ok(None);
        };
        let reading = reader.read(&Uint8Array::new(&self.buffer));
        let read = JsFuture::from(reading).await.map_err(|_| lost())?;
        let field = |name: &str| Reflect::get(&read, &name.into()).map_err(|_| lost());
        if field("done")?.is_truthy() {
            return Ok(None);
        }
        let piece: Uint8Array = field("value")?.dyn_into().map_err(|_| lost())?;
        let bytes = piece.to_vec();
        // The stream detached the buffer, and returns the same memory with the chunk.
        self.buffer = piece.buffer();
        self.reader = Some(reader);
        let length = self.buffer.byte_length();
        if piece.length() == length && length < PIECE_BYTES {
            self.buffer = ArrayBuffer::new(length * 2);
        }
        Ok(Some(bytes))
    }

    /// Discards the rest of the body, so that the client receives the answer. The time is
    /// limited, because a client may wait for the answer before it sends more.
    pub async fn discard(&mut self) {
        in_time(pause(MAX_DISCARDING_MS), self.take_all()).await;
    }

    async fn take_all(&mut self) {
        let mut discarded = 0;
        while discarded <= MAX_DISCARDED_BYTES
            && let Ok(Some(bytes)) = self.next().await
        {
            discarded += bytes.len();
        }
    }
}

fn lost() -> Error {
    Error::invalid(
        "body",
        "The body was incomplete, or did not arrive within a minute.",
    )
}

/// Discards the body of a request that is refused before its body is read.
pub async fn discard(request: &web_sys::Request) {
    let limit = Some(MAX_DISCARDED_BYTES);
    if announced(request) <= limit
        && let Ok(mut body) = RequestBody::new(request)
    {
        body.discard().await;
    }
}

/// The body's length according to `content-length`.
fn announced(request: &web_sys::Request) -> Option<usize> {
    find_header(request, "content-length")?.parse().ok()
}

/// A body and its memory reservation while the request is handled.
pub struct ReceivedBody {
    pub bytes: Vec<u8>,
    pub reservation: Reservation,
}

impl ReceivedBody {
    pub fn nothing() -> Result<Self> {
        Ok(Self {
            bytes: Vec::new(),
            reservation: Reservation::for_request(0)?,
        })
    }

    /// A body that has not arrived yet. `reservation` covers the memory of its `bytes`.
    pub fn with_reservation(bytes: usize, reservation: Reservation) -> Self {
        let mut body = Vec::new();
        body.reserve_exact(bytes);
        Self {
            bytes: body,
            reservation,
        }
    }

    /// Adds a chunk. If it doesn't fit, the buffer grows by a quarter, after the memory was
    /// reserved.
    pub fn push(&mut self, piece: &[u8], limit: usize) -> Result<()> {
        let length = self.bytes.len() + piece.len();
        check_length(limit, length)?;
        if length > self.bytes.capacity() {
            let capacity = (length + length / 4).min(limit);
            // The old reservation is released first, so that a long body is accepted if
            // there are no others.
            self.reservation = Reservation::for_request(0)?;
            self.reservation = Reservation::for_request(capacity)?;
            self.bytes.reserve_exact(capacity - self.bytes.len());
        }
        self.bytes.extend_from_slice(piece);
        Ok(())
    }
}

/// Reads the whole body, unless it is `short` and was already read. Fails with
/// `payload_too_large` beyond `limit`, and with `rate_limited` if there is no memory for
/// the body. If the length is announced, both are decided before the body is read.
pub async fn read_body(
    request: &web_sys::Request,
    short: Option<Vec<u8>>,
    limit: usize,
) -> Result<ReceivedBody> {
    if limit == 0 {
        return ReceivedBody::nothing();
    }
    if let Some(bytes) = short {
        check_length(limit, bytes.len())?;
        return Ok(ReceivedBody {
            reservation: Reservation::for_request(bytes.len())?,
            bytes,
        });
    }
    if request.body().is_none() {
        return ReceivedBody::nothing();
    }
    let announced = announced(request);
    let mut body = RequestBody::new(request)?;
    let read = read_within(&mut body, announced, limit).await;
    if read.is_err() {
        body.discard().await;
    }
    read
}

async fn read_within(
    body: &mut RequestBody,
    announced: Option<usize>,
    limit: usize,
) -> Result<ReceivedBody> {
    if let Some(announced) = announced {
        check_length(limit, announced)?;
    }
    let _arriving = Reservation::for_arrival(announced)?;
    let reservation = Reservation::for_request(announced.unwrap_or(0))?;
    before_deadline(gather(body, announced.unwrap_or(0), limit, reservation)).await
}

/// Fails if a body has not arrived at the deadline.
async fn before_deadline(
    reading: impl Future<Output = Result<ReceivedBody>>,
) -> Result<ReceivedBody> {
    let received = in_time(pause(MAX_READING_MS), reading).await;
    received.unwrap_or_else(|| {
        Err(Error::invalid(
            "body",
            "The body did not arrive within a minute. Send it faster, or in several requests.",
        ))
    })
}

async fn gather(
    body: &mut RequestBody,
    announced: usize,
    limit: usize,
    reservation: Reservation,
) -> Result<ReceivedBody> {
    let mut received = ReceivedBody::with_reservation(announced, reservation);
    while let Some(piece) = body.next().await? {
        received.push(&piece, limit)?;
    }
    Ok(received)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::error::Code;

    #[test]
    fn the_later_of_two_headers_with_one_name_counts() {
        let headers = [("content-type", "application/json"), ("allow", "GET")];
        let more = [("content-type", "text/plain")];
        assert_eq!(
            object_of(&[&headers[..], &more].concat()),
            json!({"content-type": "text/plain", "allow": "GET"})
        );
        assert_eq!(render_headers(&[]), None);
        assert_eq!(
            render_headers(&[("retry-after", "5")]).as_deref(),
            Some(r#"{"retry-after":"5"}"#)
        );
    }

    #[test]
    fn a_body_grows_only_to_its_limit() {
        let mut body = ReceivedBody::nothing().unwrap();
        body.push(b"abcd", 10).unwrap();
        body.push(b"efghij", 10).unwrap();
        let refused = body.push(b"k", 10).unwrap_err();
        assert_eq!(refused.code, Code::PayloadTooLarge);
        assert_eq!(body.bytes, b"abcdefghij");
        assert!(body.bytes.capacity() <= 10);
    }

    #[test]
    fn a_body_of_the_announced_length_is_not_reallocated() {
        let reservation = Reservation::for_request(8).unwrap();
        let mut body = ReceivedBody::with_reservation(8, reservation);
        let at = body.bytes.as_ptr();
        for _ in 0..8 {
            body.push(b"x", 1 << 20).unwrap();
        }
        assert_eq!(body.bytes.as_ptr(), at);
    }
}
