//! The seam to what lies outside this object and takes time: models, buckets,
//! other agents, services, a pause. Nothing here decides; what is said to whom,
//! and what becomes of the answer, is said where it is asked.
//!
//! A call is bounded twice: in the time it may take and in the bytes that its
//! answer may have. No transaction holds one. It waits in line until it may leave
//! (see [`may_leave`]), and its clock starts when it does. Whoever drops a call, or
//! its answer's body, ends it: one that waits is never sent, one that was sent is
//! aborted. The bucket alone can't be told; what it still answers is let go.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

use sha2::{Digest as _, Sha256};

use crate::base::error::{Code, Error};
use crate::base::settings::Setting;
use crate::base::slots::{QueueBounds, Slot, Slots};

/// Calls that may wait for their answers' heads at once: the platform lets six
/// connections of an object do so and keeps the others back without a word, while
/// their clocks run.
const MOST_OUT: usize = 5;

/// Calls that wait until they may leave: the turns of an agent, one each, and as
/// much again for their tools. What they carry is held in memory meanwhile.
pub const LINE: QueueBounds = QueueBounds {
    waiting: 512,
    bytes: 16 << 20,
};

/// What a call is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallPurpose {
    /// A model or a tool is asked.
    Work,
    /// Memory that lives elsewhere is read or written.
    Memory,
}

/// Whether a call may leave while these wait for their heads. The sixth connection
/// is for memory alone, one call at a time: a tool that asks this agent for it does
/// not wait for itself. Another agent is no connection, and its calls don't count:
/// two agents that ask each other don't wait for each other's lines.
pub fn may_leave(out: &[CallPurpose], purpose: CallPurpose) -> bool {
    out.len() < MOST_OUT || (purpose == CallPurpose::Memory && !out.contains(&CallPurpose::Memory))
}

// Not `Send`: an object is one thread.
pub use futures_util::future::LocalBoxFuture;

/// Whom a call goes to.
#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    /// An address that the operator configured or allowed.
    Url(String),
    /// A service binding, by its name, and a path on it.
    Service { binding: String, path: String },
    /// An operation of another agent of this Worker.
    Agent { name: String, operation: String },
}

/// A POST of JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct OutboundRequest {
    pub purpose: CallPurpose,
    pub place: Endpoint,
    /// Beside `content-type`, which is JSON.
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub limits: CallLimits,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CallLimits {
    /// In line, before it leaves.
    pub wait_ms: i64,
    /// From where it leaves to its answer's head, and then between any two of its chunks.
    pub silence_ms: i64,
    /// From where it leaves to its answer's end. `None`: as long as it is not silent.
    pub total_ms: Option<i64>,
    /// Of the answer's body.
    pub max_bytes: usize,
}

/// The time that a call has, from where it leaves.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    limits: CallLimits,
    left_at_ms: i64,
}

impl Clock {
    pub fn start(limits: CallLimits, now_ms: i64) -> Self {
        Self {
            limits,
            left_at_ms: now_ms,
        }
    }

    /// How long its next word may take, and what it is if that takes longer.
    pub fn patience(&self, now_ms: i64) -> (i64, CallFailure) {
        let silence_ms = self.limits.silence_ms;
        if let Some(total_ms) = self.limits.total_ms {
            let rest_ms = (self.left_at_ms + total_ms - now_ms).max(0);
            if rest_ms < silence_ms {
                return (rest_ms, CallFailure::TookTooLong { total_ms });
            }
        }
        (silence_ms, CallFailure::TimedOut { silence_ms })
    }
}

/// The head of an answer; its body comes in chunks.
pub struct OutboundResponse<'a> {
    pub status: u16,
    /// Lower case, without parameters; empty when absent.
    pub content_type: String,
    /// Seconds, from `retry-after`.
    pub retry_after: Option<i64>,
    pub body: Box<dyn ByteChunks + 'a>,
}

pub trait ByteChunks {
    /// The next bytes; `None` at the end. Dropping it ends the call.
    fn next(&mut self) -> LocalBoxFuture<'_, Result<Option<Vec<u8>>, CallFailure>>;
}

/// Why there is no answer, or no more of it.
#[derive(Clone, Debug, PartialEq)]
pub enum CallFailure {
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
    TookTooLong {
        total_ms: i64,
    },
    /// It never left: too many others wait, or it waited too long.
    Crowded,
    TooLarge {
        max_bytes: usize,
    },
}

/// An object of the bucket.
pub struct BucketObject {
    pub bytes: Vec<u8>,
    /// Names these bytes: others have another.
    pub etag: String,
    /// Its custom metadata's `description`.
    pub description: Option<String>,
}

/// What the bucket must hold for an object to be put in its place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PutCondition<'a> {
    Anything,
    Nothing,
    Etag(&'a str),
}

#[derive(Clone, Debug, PartialEq)]
pub struct ListedObject {
    pub key: String,
    pub bytes: i64,
    pub description: Option<String>,
}

pub struct ObjectListing {
    pub objects: Vec<ListedObject>,
    /// Where the next page begins; `None` at the end.
    pub cursor: Option<String>,
}

/// Who writes where outside at the moment, one at a time a place: a text that is
/// read there, changed and put back is not changed by another of this object's
/// requests meanwhile.
pub struct WriteLocks(Slots<EndpointHash>);

/// A place's own name, hashed: as long as any other.
type EndpointHash = [u8; 32];

/// Held while a place is written.
pub struct WriteLock<'a> {
    _slot: Slot<'a, EndpointHash>,
}

impl Default for WriteLocks {
    fn default() -> Self {
        Self(Slots::new(|out, place| !out.contains(&place), LINE))
    }
}

impl WriteLocks {
    /// Waits until nobody else writes there, carrying so many bytes.
    pub async fn enter(&self, place: &str, bytes: usize) -> Result<WriteLock<'_>, CallFailure> {
        let name = Sha256::digest(place).into();
        let slot = self.0.take(name, bytes).await;
        slot.map(|_slot| WriteLock { _slot })
            .map_err(|_| CallFailure::Crowded)
    }
}

pub trait Outbound {
    fn writers(&self) -> &WriteLocks;

    /// A variable or a secret of the Worker's, unless it is empty.
    fn find_setting(&self, setting: Setting) -> Option<String>;

    /// Whether there is a binding of this name.
    fn is_bound(&self, binding: &str) -> bool;

    /// Dropped, it is given up: see above.
    fn send<'a>(
        &'a self,
        call: OutboundRequest,
    ) -> LocalBoxFuture<'a, Result<OutboundResponse<'a>, CallFailure>>;

    /// Workers AI: `input` is a JSON object; with `"stream":true` in it the
    /// answer is an event stream, else JSON.
    fn run_ai<'a>(
        &'a self,
        model: &'a str,
        input: String,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<OutboundResponse<'a>, CallFailure>>;

    /// `None`: there is no such object.
    fn get_object<'a>(
        &'a self,
        key: &'a str,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<Option<BucketObject>, CallFailure>>;

    /// `false`: the bucket holds something else than expected; nothing was put.
    fn put_object<'a>(
        &'a self,
        key: &'a str,
        content: String,
        description: Option<&'a str>,
        expected: PutCondition<'a>,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<bool, CallFailure>>;

    fn delete_object<'a>(
        &'a self,
        key: &'a str,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<(), CallFailure>>;

    fn list_objects<'a>(
        &'a self,
        prefix: &'a str,
        cursor: Option<&'a str>,
        limit: u32,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<ObjectListing, CallFailure>>;

    fn sleep<'a>(&'a self, ms: i64) -> LocalBoxFuture<'a, ()>;
}

/// The whole body of an answer.
pub async fn read_all(body: &mut dyn ByteChunks) -> Result<Vec<u8>, CallFailure> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The outcome of some work, tries and pauses included; `None`: it took longer
/// than so many milliseconds, and is given up.
pub async fn in_time<T>(
    outbound: &dyn Outbound,
    ms: i64,
    work: impl Future<Output = T>,
) -> Option<T> {
    let mut work = pin!(work);
    let mut pause = outbound.sleep(ms);
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
        Poll::Pending => pause.as_mut().poll(context).map(|()| None),
    })
    .await
}

impl CallFailure {
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
            CallFailure::NotConfigured { binding } => {
                format!("this Worker has no binding `{binding}`")
            }
            CallFailure::RemoteOnly { binding } => {
                format!("the binding `{binding}` can't be served by a local run")
            }
            CallFailure::Unreachable { .. } => "it could not be reached".to_owned(),
            CallFailure::TimedOut { silence_ms } => {
                format!("it said nothing for {} s", silence_ms / 1000)
            }
            CallFailure::TookTooLong { total_ms } => {
                format!("its answer took longer than {} s", total_ms / 1000)
            }
            CallFailure::Crowded => {
                "it was not asked, since too many calls of this agent are under way".to_owned()
            }
            CallFailure::TooLarge { max_bytes } => {
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
    fn five_calls_leave_and_memory_may_be_the_sixth() {
        use CallPurpose::{Memory, Work};
        for (out, work, memory) in [
            (&[][..], true, true),
            (&[Work; 4], true, true),
            (&[Work; 5], false, true),
            (&[Work, Work, Work, Work, Memory], false, false),
            (&[Memory; 5], false, false),
            (&[Work, Work, Work, Work, Work, Memory], false, false),
        ] {
            assert_eq!(may_leave(out, Work), work, "{out:?}");
            assert_eq!(may_leave(out, Memory), memory, "{out:?}");
        }
    }

    #[test]
    fn a_clock_starts_when_its_call_leaves_and_knows_which_limit_ends_it() {
        let silence = (30_000, CallFailure::TimedOut { silence_ms: 30_000 });
        let limits = CallLimits {
            wait_ms: 0,
            silence_ms: 30_000,
            total_ms: Some(300_000),
            max_bytes: 0,
        };
        let clock = Clock::start(limits, 1_000_000);
        assert_eq!(clock.patience(1_000_000), silence);
        assert_eq!(clock.patience(1_270_000), silence);
        let total = |left_ms| (left_ms, CallFailure::TookTooLong { total_ms: 300_000 });
        assert_eq!(clock.patience(1_270_001), total(29_999));
        assert_eq!(clock.patience(1_300_000), total(0));
        assert_eq!(clock.patience(1_400_000), total(0));
        let limits = CallLimits {
            total_ms: None,
            ..limits
        };
        assert_eq!(Clock::start(limits, 0).patience(i64::MAX), silence);
    }

    #[test]
    fn what_takes_too_long_is_given_up_and_what_is_there_is_not() {
        let outbound = Script::default();
        assert_eq!(wait_for(in_time(&outbound, 50, ready(1))), Some(1));
        assert_eq!(wait_for(in_time(&outbound, 50, pending::<i32>())), None);
        assert_eq!(*outbound.slept.borrow(), [50, 50]);
    }
}
