//! All that the crate asks of its surroundings: somebody who sends a request, waits, and
//! knows a random number.

use std::fmt;
use std::future::Future;
use std::time::Duration;

/// Sends requests to an agent.
pub trait Wire {
    /// The body of an answer.
    type Body: Body;
    /// A file that is sent while it comes.
    type Stream;

    /// The answer, of whatever status. Redirects are not followed. An error is a sentence.
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

    /// The next piece. `None`: there is no more.
    fn piece(&mut self) -> impl Future<Output = Result<Option<Vec<u8>>, String>>;
}

/// One request.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct Request<Stream> {
    pub url: String,
    /// For the header `authorization`, after `Bearer `.
    pub token: Option<String>,
    /// For the headers of its fields' names.
    pub trace: Option<TraceContext>,
    pub payload: Payload<Stream>,
}

/// The caller's trace, as the W3C's Trace Context writes it. Another form is ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TraceContext {
    pub traceparent: String,
    /// The data that other tracers want to be passed on. It counts with the secret alone.
    pub tracestate: Option<String>,
}

/// Without the token and the input, which belong in no log.
impl<Stream> fmt::Debug for Request<Stream> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Request").field(&self.url).finish()
    }
}

/// The content of a request. Without anything it is a `GET`, and else a `POST`.
#[derive(Clone, Debug, PartialEq)]
pub enum Payload<Stream> {
    Nothing,
    Json(String),
    /// Lines of JSON.
    File(Vec<u8>),
    /// Lines of JSON, which are sent while they come.
    Stream(Stream),
}

impl<Stream> Payload<Stream> {
    /// For the header `content-type`.
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
    /// The header of this name.
    pub location: Option<String>,
    pub body: Body,
}
