//! The wire for Workers: `fetch` on a service binding or on a Durable Object.

use std::time::Duration;

use worker::js_sys::{Math, Reflect, Uint8Array};
use worker::wasm_bindgen::{JsCast, JsValue};
use worker::wasm_bindgen_futures::JsFuture;
use worker::web_sys::{ReadableStream, ReadableStreamDefaultReader};
use worker::{
    Delay, Fetcher, Headers, Method, ObjectNamespace, RequestInit, RequestRedirect, Response,
    ResponseBody,
};

use crate::agent::Agent;
use crate::error::{Error, Result};
use crate::wire::{Answer, Body, Payload, Request, Wire};

/// The connection to an agent: a service binding, or a Durable Object namespace.
#[derive(Clone, Debug)]
pub struct Binding(Way);

#[derive(Clone, Debug)]
enum Way {
    Service(Fetcher),
    Object {
        namespace: ObjectNamespace,
        name: String,
    },
}

impl Agent<Binding> {
    /// The agent `name` behind a service binding: `env.service("MEMORY")?`.
    pub fn service(binding: Fetcher, name: &str) -> Result<Self> {
        Self::over(Binding(Way::Service(binding)), name)
    }

    /// The agent `name` among the objects of a namespace: `env.durable_object("AGENTS")?`.
    pub fn object(namespace: ObjectNamespace, name: &str) -> Result<Self> {
        let name_of_object = name.to_owned();
        let way = Way::Object {
            namespace,
            name: name_of_object,
        };
        Self::over(Binding(way), name)
    }
}

impl Wire for Binding {
    type Body = Received;
    type Stream = ReadableStream;

    async fn send(
        &self,
        request: &Request<ReadableStream>,
    ) -> std::result::Result<Answer<Received>, String> {
        let response = self
            .fetch(request)
            .await
            .map_err(|error| error.to_string())?;
        let location = response.headers().get("location").unwrap_or_default();
        Ok(Answer {
            status: response.status_code(),
            location,
            body: Received {
                response,
                reader: None,
            },
        })
    }

    async fn wait(&self, pause: Duration) {
        Delay::from(pause).await;
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a Worker's own randomness, for pauses alone"
    )]
    fn random(&self) -> f64 {
        Math::random()
    }
}

impl Binding {
    async fn fetch(&self, request: &Request<ReadableStream>) -> worker::Result<Response> {
        let request = worker::Request::new_with_init(&request.url, &init_of(request)?)?;
        match &self.0 {
            Way::Service(binding) => response_of(binding.fetch_request(request).await?),
            // Creates an id from the name first, which works with every compatibility date.
            Way::Object { namespace, name } => {
                let object = namespace.id_from_name(name)?.get_stub()?;
                object.fetch_with_request(request).await
            }
        }
    }
}

/// With its feature `http`, the crate `worker` returns another response type.
fn response_of<R>(response: R) -> worker::Result<Response>
where
    R: TryInto<Response>,
    R::Error: std::fmt::Display,
{
    let converted = response.try_into();
    converted.map_err(|error| worker::Error::RustError(error.to_string()))
}

fn init_of(request: &Request<ReadableStream>) -> worker::Result<RequestInit> {
    let headers = Headers::new();
    if let Some(kind) = request.payload.content_type() {
        headers.set("content-type", kind)?;
    }
    if let Some(token) = &request.token {
        headers.set("authorization", &format!("Bearer {token}"))?;
    }
    if let Some(trace) = &request.trace {
        headers.set("traceparent", &trace.traceparent)?;
        if let Some(state) = &trace.tracestate {
            headers.set("tracestate", state)?;
        }
    }
    let body: Option<JsValue> = match &request.payload {
        Payload::Nothing => None,
        Payload::Json(text) => Some(text.as_str().into()),
        Payload::File(bytes) => Some(Uint8Array::from(bytes.as_slice()).into()),
        Payload::Stream(stream) => Some(stream.into()),
    };
    let mut init = RequestInit::new();
    // Redirects are not followed, because they would send the token and the input
    // elsewhere.
    init.with_redirect(RequestRedirect::Manual)
        .with_headers(headers)
        .with_method(if body.is_some() {
            Method::Post
        } else {
            Method::Get
        })
        .with_body(body);
    Ok(init)
}

/// The body of an answer.
#[derive(Debug)]
pub struct Received {
    response: Response,
    reader: Option<ReadableStreamDefaultReader>,
}

impl Received {
    /// The body as the runtime's stream, for an import or for your own answer. It lacks
    /// what was already read.
    #[must_use]
    pub fn into_stream(self) -> Option<ReadableStream> {
        if let Some(reader) = &self.reader {
            reader.release_lock();
        }
        self.stream()
    }

    fn stream(&self) -> Option<ReadableStream> {
        match self.response.body() {
            ResponseBody::Stream(stream) => Some(stream.clone()),
            _ => None,
        }
    }

    async fn read(&mut self) -> std::result::Result<Option<Vec<u8>>, JsValue> {
        if self.reader.is_none() {
            let reader = self.stream().map(|stream| stream.get_reader());
            self.reader = reader.map(JsCast::unchecked_into);
        }
        let Some(reader) = &self.reader else {
            return Ok(None);
        };
        let read = JsFuture::from(reader.read()).await?;
        if Reflect::get(&read, &"done".into())?.is_truthy() {
            return Ok(None);
        }
        let piece: Uint8Array = Reflect::get(&read, &"value".into())?.dyn_into()?;
        Ok(Some(piece.to_vec()))
    }
}

impl Body for Received {
    async fn text(mut self) -> std::result::Result<String, String> {
        self.response
            .text()
            .await
            .map_err(|error| error.to_string())
    }

    async fn piece(&mut self) -> std::result::Result<Option<Vec<u8>>, String> {
        let piece = self.read().await;
        piece.map_err(|error| worker::Error::from(error).to_string())
    }
}

/// Lets `?` convert errors in a Worker's request handler.
impl From<Error> for worker::Error {
    fn from(error: Error) -> Self {
        Self::RustError(error.to_string())
    }
}
