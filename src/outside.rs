//! The seam to what lies outside this object and takes time: models, buckets,
//! other agents, services, a pause. Nothing here decides; what is said to whom,
//! and what becomes of the answer, is said where it is asked.
//!
//! A call is bounded twice: in the time it may take and in the bytes that its
//! answer may have. No transaction holds one.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use crate::error::{Code, Error};

/// A value that is there later. Not `Send`: an object is one thread.
pub type Later<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// Whom a call goes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// An address that the operator configured or allowed.
    Url(String),
    /// A service binding, by its name, and a path on it.
    Service { binding: String, path: String },
    /// An operation of another agent of this Worker.
    Agent { name: String, operation: String },
}

/// A POST of JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub place: Place,
    /// Beside `content-type`, which is JSON.
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub limits: Limits,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// From the call to its answer's head, and then between any two of its chunks.
    pub silence_ms: i64,
    /// Of the answer's body.
    pub max_bytes: usize,
}

/// The head of an answer; its body comes in chunks.
pub struct Answer<'a> {
    pub status: u16,
    /// Lower case, without parameters; empty when absent.
    pub content_type: String,
    /// Seconds, from `retry-after`.
    pub retry_after: Option<i64>,
    pub body: Box<dyn Chunks + 'a>,
}

pub trait Chunks {
    /// The next bytes; `None` at the end. Dropping it ends the call.
    fn next(&mut self) -> Later<'_, Result<Option<Vec<u8>>, Failure>>;
}

/// Why there is no answer, or no more of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Failure {
    /// This Worker has no such binding.
    NotConfigured {
        binding: String,
    },
    /// The binding is there, but a local run can't serve it.
    RemoteOnly {
        binding: String,
    },
    Unreachable {
        cause: String,
    },
    TimedOut {
        silence_ms: i64,
    },
    TooLarge {
        max_bytes: usize,
    },
}

/// An object of the bucket.
pub struct Stored {
    pub bytes: Vec<u8>,
    /// Names these bytes: others have another.
    pub etag: String,
    /// Its custom metadata's `description`.
    pub description: Option<String>,
}

/// What the bucket must hold for an object to be put in its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expected<'a> {
    Anything,
    Nothing,
    Etag(&'a str),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Listed {
    pub key: String,
    pub bytes: i64,
    pub description: Option<String>,
}

pub struct Listing {
    pub objects: Vec<Listed>,
    /// Where the next page begins; `None` at the end.
    pub cursor: Option<String>,
}

pub trait Outside {
    /// A variable or a secret of the Worker's.
    fn find_setting(&self, name: &str) -> Option<String>;

    /// Whether there is a binding of this name.
    fn is_bound(&self, binding: &str) -> bool;

    fn send<'a>(&'a self, call: Call) -> Later<'a, Result<Answer<'a>, Failure>>;

    /// Workers AI: `input` is a JSON object; with `"stream":true` in it the
    /// answer is an event stream, else JSON.
    fn run_ai<'a>(
        &'a self,
        model: &'a str,
        input: String,
        limits: Limits,
    ) -> Later<'a, Result<Answer<'a>, Failure>>;

    /// `None`: there is no such object.
    fn get_object<'a>(
        &'a self,
        key: &'a str,
        limits: Limits,
    ) -> Later<'a, Result<Option<Stored>, Failure>>;

    /// `false`: the bucket holds something else than expected; nothing was put.
    fn put_object<'a>(
        &'a self,
        key: &'a str,
        content: String,
        description: Option<&'a str>,
        expected: Expected<'a>,
        limits: Limits,
    ) -> Later<'a, Result<bool, Failure>>;

    fn delete_object<'a>(&'a self, key: &'a str, limits: Limits) -> Later<'a, Result<(), Failure>>;

    fn list_objects<'a>(
        &'a self,
        prefix: &'a str,
        cursor: Option<&'a str>,
        limit: u32,
        limits: Limits,
    ) -> Later<'a, Result<Listing, Failure>>;

    fn sleep<'a>(&'a self, ms: i64) -> Later<'a, ()>;
}

/// The whole body of an answer.
pub async fn read_all(body: &mut dyn Chunks) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The outcome of some work, tries and pauses included; `None`: it took longer
/// than so many milliseconds, and is given up.
pub async fn in_time<T>(
    outside: &dyn Outside,
    ms: i64,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    let mut pause = outside.sleep(ms);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending => pause.as_mut().poll(context).map(|()| None),
    })
    .await
}

impl Failure {
    /// The binding is missing: the operator's to fix.
    pub fn not_configured(binding: &str) -> Error {
        Error::new(
            Code::NotConfigured,
            format!(
                "This Worker has no binding `{binding}`. Add it to wrangler.toml and deploy again."
            ),
        )
        .with("binding", binding)
    }

    /// What happened, as the end of a sentence; no address, no payload.
    pub fn reason(&self) -> String {
        match self {
            Failure::NotConfigured { binding } => format!("this Worker has no binding `{binding}`"),
            Failure::RemoteOnly { binding } => {
                format!("the binding `{binding}` can't be served by a local run")
            }
            Failure::Unreachable { .. } => "it could not be reached".to_owned(),
            Failure::TimedOut { silence_ms } => {
                format!("it said nothing for {} s", silence_ms / 1000)
            }
            Failure::TooLarge { max_bytes } => {
                format!("its answer is larger than {max_bytes} bytes")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;
    use crate::testing::{Script, wait_for};

    #[test]
    fn what_takes_too_long_is_given_up_and_what_is_there_is_not() {
        let outside = Script::default();
        assert_eq!(wait_for(in_time(&outside, 50, ready(1))), Some(1));
        assert_eq!(wait_for(in_time(&outside, 50, pending::<i32>())), None);
        assert_eq!(*outside.slept.borrow(), [50, 50]);
    }
}
