//! The environment that the crate needs: sending a request, waiting, and a random number.

use std::fmt;
use std::future::Future;
use std::time::Duration;

/// Sends requests to an agent.
pub trait Wire {
    /// The body of an answer.
    type Body: Body;
    /// A file that is streamed while it is produced.
    type Stream;

    /// Returns the answer, with any status. Redirects are not followed. An error is a
    /// sentence.
    fn send(
        &self,
        request: &Request<Self::Stream>,
    ) -> impl Future<Output = Result<Answer<Self::Body>, String>>;

    fn wait(&self, pause: Duration) -> impl Future<Output = ()>;

    /// Between 0 and 1.
    fn random(&self) -> f64;
}

/// The body of an answer.
pub trait Body {
    fn text(self) -> impl Future<Output = Result<String, String>>;

    /// The next chunk. `None`: the body is complete.
    fn piece(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, String>>;
}

/// One request.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Request<Stream> {
    pub url: String,
    /// The value of the header `authorization`, after `Bearer `.
    pub token: Option<String>,
    /// The values of the headers named like its fields.
    pub trace: Option<TraceContext>,
    pub payload: Payload<Stream>,
}

/// The caller's trace in the format of W3C Trace Context. Invalid values are ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceContext {
    pub traceparent: String,
    /// Data that other tracers need to receive. It is only used with the secret.
    pub tracestate: Option<String>,
}

/// Omits the token and the input, which must not be logged.
impl<Stream> fmt::Debug for Request<Stream> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Request").field(&self.url).finish()
    }
}

/// The content of a request. `Nothing` makes it a `GET`, anything else a `POST`.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload<Stream> {
    Nothing,
    Json(String),
    /// Lines of JSON.
    File(Vec<u8>),
    /// Lines of JSON, streamed while they are produced.
    Stream(Stream),
}

impl<Stream> Payload<Stream> {
    /// The value of the header `content-type`.
    #[must_use]
    pub fn content_type(&self) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::Json(_) => Some("application/json"),
            Self::File(_) | Self::Stream(_) => Some("application/x-ndjson"),
        }
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer<Body> {
    pub status: u16,
    /// The header `location`.
    pub location: Option<String>,
    pub body: Body,
}
