//! The interface to everything outside this object that takes time: models, buckets, other agents,
//! services, a pause. Nothing here decides: the caller chooses whom to call, what to send and what
//! to do with the answer.
//!
//! Each call has a limit on its time and on the bytes of its answer. No transaction stays open
//! during a call. A call is queued until it may start (see [`may_start`]), and its clock starts
//! then. Dropping a call, or the body of its answer, ends the call: a queued call is never sent, a
//! sent call is aborted. A call to the bucket can't be aborted; its answer is ignored.

use std::pin::pin;

use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::{Code, Error};
use crate::owner::Owner;
use crate::settings::Setting;
use crate::slots::{HolderKind, QueueBounds, Slot, Slots};
use crate::trace::span::SpanQueue;

/// The most calls to models and tools that may wait for the heads of their answers at once. The
/// platform allows six such connections per object. It delays further calls silently, while their
/// clocks run.
const MOST_OUT: usize = 5;

/// The most of them that are not calls to models, so that a silent tool blocks no turn's call to
/// its model.
const MAX_OTHER_CALLS: usize = 4;

/// The most of them for one session, so that another session's tool gets a slot, too.
const MOST_EACH: usize = 3;

/// The notifications to a class that extends this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassNotice {
    /// The present work of a session's turn or compaction.
    Status,
    /// A compaction, or one that was canceled.
    Compaction,
}

impl ClassNotice {
    pub fn name(self) -> &'static str {
        match self {
            Self::Status => "status",
            Self::Compaction => "compaction",
        }
    }
}

/// The binding for calls to the methods of a class that extends this one: a model, vectors, a tool,
/// a block. The npm package adds it to the Worker's own bindings; no configuration has it.
pub const OWN_CLASS: &str = "SESSION_AGENT_CLASS";

/// The bounds of the queue of calls: one per turn of an agent, and as many again for the turns'
/// tools. Their bodies are in memory in the meantime. One session may queue the calls of a turn and
/// its memory, and the requests to two models.
pub const LINE: QueueBounds = QueueBounds {
    waiting: 512,
    bytes: 16 << 20,
    waiting_each: 128,
    bytes_each: 8 << 20,
};

/// The purpose of a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CallPurpose {
    Model,
    /// A tool, a server of tools, or a service that is notified of a turn's end.
    Tool,
    /// A call that reads or writes memory outside this object.
    Memory,
    /// Spans for the operator's receiver. Nothing waits for it.
    Trace,
}

/// A call that waits for its answer's head, or that is queued.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PendingCall {
    pub purpose: CallPurpose,
    pub owner: Owner,
}

impl HolderKind for PendingCall {
    fn owner(self) -> Owner {
        self.owner
    }
}

/// Whether a call may start while the calls `out` wait for their heads. The sixth connection is
/// only for memory, one call at a time. So a tool that calls this agent for its memory does not
/// wait for itself. A call to another agent uses no connection and does not count. So two agents
/// that call each other do not wait for each other's queues. Spans are sent while nothing else is
/// out, and delay no other call.
pub fn may_start(out: &[PendingCall], call: PendingCall) -> bool {
    if call.purpose == CallPurpose::Trace {
        return out.is_empty();
    }
    let count = |purpose| out.iter().filter(|other| other.purpose == purpose).count();
    let memory = count(CallPurpose::Memory);
    if call.purpose == CallPurpose::Memory && memory == 0 {
        return true;
    }
    // One call about memory has the sixth connection.
    let other_calls = count(CallPurpose::Tool) + memory.saturating_sub(1);
    let is_model = |call: &PendingCall| call.purpose == CallPurpose::Model;
    let own = out
        .iter()
        .filter(|other| other.purpose != CallPurpose::Trace)
        .filter(|other| other.owner == call.owner && is_model(other) == is_model(&call));
    other_calls + count(CallPurpose::Model) < MOST_OUT
        && (is_model(&call) || other_calls < MAX_OTHER_CALLS)
        && own.count() < MOST_EACH
}

// Not `Send`: an object runs in one thread.
pub use futures_util::future::LocalBoxFuture;

/// A URL as a caller without the secret sees it: its scheme and host. All else may contain a
/// credential: many services put one into the path.
pub fn redact_url(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}{host}")
}

/// The host and the port of a URL. The port is the scheme's, unless the URL names one.
pub fn host_and_port(url: &str) -> (String, i64) {
    let origin = redact_url(url);
    let (scheme, authority) = origin.split_once("://").unwrap_or(("https", &origin));
    let default_port = if scheme.eq_ignore_ascii_case("http") {
        80
    } else {
        443
    };
    let named = authority.rsplit_once(':').and_then(|(host, port)| {
        let port = port.parse::<u16>().ok()?;
        Some((host.to_owned(), i64::from(port)))
    });
    named.unwrap_or_else(|| (authority.to_owned(), default_port))
}

/// The receiver of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    /// An address that the operator configured or allowed.
    Url(String),
    /// A service binding, by its name, and a path of the service.
    Service { binding: String, path: String },
    /// An operation of another agent of this Worker.
    Agent { name: String, operation: String },
    /// A part of the directory of agents.
    Directory { part: String },
}

/// The method of a request, and the type of its body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestForm {
    /// A POST of JSON.
    Json,
    /// A POST of a form, as OAuth's token endpoints accept it.
    Form,
    /// A GET. The body is empty.
    Get,
}

/// A request to an [`Endpoint`]: see [`Outbound::send`].
#[derive(Clone, Debug, PartialEq)]
pub struct OutboundRequest {
    pub purpose: CallPurpose,
    pub endpoint: Endpoint,
    /// The headers besides `content-type`, which the request's form sets.
    pub headers: Vec<(String, String)>,
    pub body: String,
    pub limits: CallLimits,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallLimits {
    /// How long the call may be queued.
    pub wait_ms: i64,
    /// How long the answer may be silent: from the call's start to the answer's head, and then
    /// between two chunks.
    pub silence_ms: i64,
    /// How long chunks may arrive without content for their reader, such as comments of an event
    /// stream. `None`: the reader needs the whole answer.
    #[serde(rename = "mute_ms")]
    pub no_content_ms: Option<i64>,
    /// The longest time from the call's start to the answer's end.
    pub total_ms: i64,
    /// The most bytes of the answer's body.
    pub max_bytes: usize,
}

/// Measures a call's time, from its start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    limits: CallLimits,
    left_at_ms: i64,
    /// When the answer last had content for its reader.
    content_at_ms: i64,
}

impl Clock {
    pub fn start(limits: CallLimits, now_ms: i64) -> Self {
        Self {
            limits,
            left_at_ms: now_ms,
            content_at_ms: now_ms,
        }
    }

    /// Records that the answer had content for its reader.
    pub fn record_content(&mut self, now_ms: i64) {
        self.content_at_ms = now_ms;
    }

    /// How long to wait for the next chunk, and the failure to report if the wait is
    /// longer.
    pub fn next_wait(&self, now_ms: i64) -> (i64, CallFailure) {
        let CallLimits {
            silence_ms,
            no_content_ms,
            total_ms,
            ..
        } = self.limits;
        let left = |since_ms: i64, limit_ms: i64| (since_ms + limit_ms - now_ms).max(0);
        let mut next_wait = (silence_ms, CallFailure::TimedOut { silence_ms });
        if let Some(no_content_ms) = no_content_ms {
            let left_ms = left(self.content_at_ms, no_content_ms);
            if left_ms < next_wait.0 {
                let silence_ms = no_content_ms;
                next_wait = (left_ms, CallFailure::TimedOut { silence_ms });
            }
        }
        let left_ms = left(self.left_at_ms, total_ms);
        if left_ms < next_wait.0 {
            next_wait = (left_ms, CallFailure::DeadlineExceeded { total_ms });
        }
        next_wait
    }
}

/// The head of an answer, and its body in chunks.
pub struct OutboundResponse<'a> {
    pub status: u16,
    /// In lower case and without parameters; empty if the header is absent.
    pub content_type: String,
    /// Seconds, from `retry-after`.
    pub retry_after: Option<i64>,
    /// From `mcp-session-id`: the session that an MCP server started.
    pub session: Option<String>,
    /// From `www-authenticate`: what a server requires of a caller that it rejects.
    pub challenge: Option<String>,
    pub body: Box<dyn ByteChunks + 'a>,
}

pub trait ByteChunks {
    /// The next bytes; `None` at the end. Dropping the body ends the call.
    fn next(&mut self) -> LocalBoxFuture<'_, Result<Option<Vec<u8>>, CallFailure>>;

    /// The reader found content in the last bytes. A reader that never calls this has
    /// [`CallLimits::no_content_ms`] in all.
    fn record_content(&mut self) {}
}

/// Why a call has no answer, or only a part of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
    #[serde(rename = "TookTooLong")]
    DeadlineExceeded {
        total_ms: i64,
    },
    /// The call never started: too many calls were queued, or this call waited too long.
    #[serde(rename = "Crowded")]
    Overloaded,
    TooLarge {
        max_bytes: usize,
    },
}

/// An object of the bucket.
pub struct BucketObject {
    pub bytes: Vec<u8>,
    /// Identifies these bytes: other bytes have another etag.
    pub etag: String,
    /// The `description` in the object's custom metadata.
    pub description: Option<String>,
}

/// The state of the bucket that is required before an object is put.
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
    /// The beginning of the next page; `None` at the end.
    pub cursor: Option<String>,
}

/// Locks on the external texts that this object writes, one writer per text. A writer reads a text,
/// changes it and writes it back; no other request of this object changes the text in the meantime.
pub struct WriteLocks(Slots<TextWriter>);

/// A writer of a text, by the hash of the text's name, so that all names are equally
/// long.
#[derive(Clone, Copy, PartialEq)]
struct TextWriter {
    name_hash: [u8; 32],
    owner: Owner,
}

impl HolderKind for TextWriter {
    fn owner(self) -> Owner {
        self.owner
    }
}

/// A lock that is held while a text is written.
pub struct WriteLock<'a> {
    _slot: Slot<'a, TextWriter>,
}

impl Default for WriteLocks {
    fn default() -> Self {
        let may_write = |out: &[TextWriter], writer: TextWriter| {
            out.iter().all(|other| other.name_hash != writer.name_hash)
        };
        Self(Slots::new(may_write, LINE))
    }
}

impl WriteLocks {
    /// Waits until there is no other writer of the text `name`. `bytes`: the memory that this
    /// writer uses in the meantime.
    pub async fn enter(&self, name: &str, bytes: usize) -> Result<WriteLock<'_>, CallFailure> {
        let writer = TextWriter {
            name_hash: Sha256::digest(name).into(),
            owner: Owner::current(),
        };
        let slot = self.0.acquire(writer, bytes).await;
        slot.map(|_slot| WriteLock { _slot })
            .map_err(|_| CallFailure::Overloaded)
    }
}

/// The bucket of backups. An object appears there whole: its parts are uploaded one after the
/// other, and are visible only when the upload is completed.
pub trait Archive {
    /// Begins the upload of an object.
    fn begin<'a>(
        &'a self,
        key: &'a str,
    ) -> LocalBoxFuture<'a, Result<Box<dyn ArchiveUpload>, CallFailure>>;

    /// Lists objects in the order of their keys.
    fn list<'a>(
        &'a self,
        prefix: &'a str,
        cursor: Option<&'a str>,
        limit: u32,
    ) -> LocalBoxFuture<'a, Result<ObjectListing, CallFailure>>;

    /// Reads up to `length` bytes of an object from `offset` on; `None`: there is no such
    /// object. Past the object's end there are no bytes.
    fn read<'a>(
        &'a self,
        key: &'a str,
        offset: i64,
        length: i64,
    ) -> LocalBoxFuture<'a, Result<Option<ArchivePiece>, CallFailure>>;

    fn delete<'a>(&'a self, key: &'a str) -> LocalBoxFuture<'a, Result<(), CallFailure>>;
}

/// Some bytes of an object.
pub struct ArchivePiece {
    pub bytes: Vec<u8>,
    /// The length of the whole object.
    pub total: i64,
}

/// An object that is being uploaded to the bucket. All parts but the last have the same length.
pub trait ArchiveUpload {
    fn put(&mut self, part: Vec<u8>) -> LocalBoxFuture<'_, Result<(), CallFailure>>;

    /// Completes the upload: the parts become an object.
    fn complete(&mut self) -> LocalBoxFuture<'_, Result<(), CallFailure>>;

    /// Drops the parts.
    fn abort(&mut self) -> LocalBoxFuture<'_, Result<(), CallFailure>>;
}

pub trait Outbound {
    fn writers(&self) -> &WriteLocks;

    /// Finds a variable or a secret of the Worker; `None` if it is empty.
    fn find_setting(&self, setting: Setting) -> Option<String>;

    /// Finds a secret of the operator by its name; `None` if it is empty or not a text. The caller
    /// has checked that the name is not one of the Worker's own settings.
    fn find_secret(&self, name: &str) -> Option<String>;

    /// Whether there is a binding of this name.
    fn is_bound(&self, binding: &str) -> bool;

    /// Notifies a class that extends this one, if there is such a class. Nothing waits for it.
    /// `render` renders the JSON.
    fn notify_class(&self, _kind: ClassNotice, _render: &dyn Fn() -> String) {}

    /// The queued spans of this object, if the operator configured a receiver.
    fn spans(&self) -> Option<&SpanQueue> {
        None
    }

    /// The bucket of backups, if it is bound.
    fn archive(&self) -> Option<&dyn Archive> {
        None
    }

    /// Sends a call as a POST of JSON. Dropping the future ends the call: see the module's
    /// documentation.
    fn send<'a>(
        &'a self,
        call: OutboundRequest,
    ) -> LocalBoxFuture<'a, Result<OutboundResponse<'a>, CallFailure>> {
        self.send_as(RequestForm::Json, call)
    }

    /// As [`Outbound::send`], with another method or another type of body.
    fn send_as<'a>(
        &'a self,
        form: RequestForm,
        call: OutboundRequest,
    ) -> LocalBoxFuture<'a, Result<OutboundResponse<'a>, CallFailure>>;

    /// Calls Workers AI. `input` is a JSON object. With `"stream":true` in it the
    /// answer is an event stream, otherwise JSON.
    fn run_ai<'a>(
        &'a self,
        model: &'a str,
        input: String,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<OutboundResponse<'a>, CallFailure>>;

    /// `None`: the bucket has no such object.
    fn get_object<'a>(
        &'a self,
        key: &'a str,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<Option<BucketObject>, CallFailure>>;

    /// `false`: the bucket is not in the expected state, and nothing was put.
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

/// An answer that was read to its end.
pub struct WholeResponse {
    pub status: u16,
    /// As in [`OutboundResponse`].
    pub content_type: String,
    pub body: Vec<u8>,
}

/// Sends a call and reads its whole answer.
pub async fn send_and_read(
    outbound: &dyn Outbound,
    call: OutboundRequest,
) -> Result<WholeResponse, CallFailure> {
    let mut answer = outbound.send(call).await?;
    Ok(WholeResponse {
        body: read_all(answer.body.as_mut()).await?,
        status: answer.status,
        content_type: answer.content_type,
    })
}

/// Reads the whole body of an answer. The body itself ends at [`CallLimits::max_bytes`].
pub async fn read_all(body: &mut dyn ByteChunks) -> Result<Vec<u8>, CallFailure> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next().await? {
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Runs some work, its retries and pauses included; `None`: the pause ended first, and
/// the work was dropped.
pub async fn in_time<T>(
    pause: impl Future<Output = ()>,
    work: impl Future<Output = T>,
) -> Option<T> {
    match select(pin!(work), pin!(pause)).await {
        Either::Left((outcome, _)) => Some(outcome),
        Either::Right(_) => None,
    }
}

impl CallFailure {
    /// The binding is missing: the operator must add it.
    pub fn not_configured(binding: &str) -> Error {
        Error::new(
            Code::NotConfigured,
            format!(
                "This Worker has no binding `{binding}`. Add it to wrangler.toml and deploy again."
            ),
        )
        .with("binding", binding)
    }

    /// The failure, as the end of a sentence, without URLs or payloads.
    pub fn reason(&self) -> String {
        match self {
            CallFailure::NotConfigured { binding } => {
                format!("this Worker has no binding `{binding}`")
            }
            CallFailure::RemoteOnly { binding } => {
                format!("the binding `{binding}` is not available in a local run")
            }
            CallFailure::Unreachable { .. } => "it could not be reached".to_owned(),
            CallFailure::TimedOut { silence_ms } => {
                format!("it sent nothing for {} s", silence_ms / 1000)
            }
            CallFailure::DeadlineExceeded { total_ms } => {
                format!("its answer took longer than {} s", total_ms / 1000)
            }
            CallFailure::Overloaded => {
                "it was not called, because too many calls of this agent are in progress".to_owned()
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
    use crate::testing::Dice;
    use crate::testing::wait_for;

    #[test]
    fn memory_calls_may_use_a_sixth_slot() {
        use CallPurpose::{Memory, Model, Tool};
        // The session and the purpose of each call; then whether a call of session 9 may
        // start: to a model, to a tool, and for memory.
        for (out, model, tool, memory) in [
            (&[][..], true, true, true),
            (&[(1, Model); 4][..], true, true, true),
            (&[(1, Model); 5], false, false, true),
            (&[(1, Tool), (1, Tool), (1, Tool)], true, true, true),
            (&[(1, Tool); 4], true, false, true),
            (
                &[(1, Tool), (2, Tool), (3, Tool), (4, Tool), (5, Memory)],
                true,
                false,
                false,
            ),
            (&[(1, Memory); 4], true, true, true),
            (&[(1, Memory); 5], true, false, false),
            (
                &[
                    (1, Model),
                    (2, Model),
                    (3, Model),
                    (4, Model),
                    (5, Model),
                    (6, Memory),
                ],
                false,
                false,
                false,
            ),
            // Session 9 already has the maximum, of model calls or of others.
            (&[(9, Tool); 3], true, false, true),
            (&[(9, Memory); 3], true, false, false),
            (&[(9, Model); 3], false, true, true),
        ] {
            let call = |(session, purpose): (i32, CallPurpose)| PendingCall {
                purpose,
                owner: Owner::named(&session.to_string()),
            };
            let all: Vec<PendingCall> = out.iter().copied().map(call).collect();
            for (purpose, may) in [(Model, model), (Tool, tool), (Memory, memory)] {
                assert_eq!(
                    may_start(&all, call((9, purpose))),
                    may,
                    "{out:?} {purpose:?}"
                );
            }
        }
    }

    /// After random calls: at most six connections, five of them for models and tools,
    /// and one always reserved for a model.
    #[test]
    fn one_sessions_tools_leave_slots_for_models_and_other_sessions() {
        use CallPurpose::{Memory, Model, Tool};
        for seed in 1..=200_u64 {
            let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
            let mut out: Vec<PendingCall> = Vec::new();
            for step in 0..200 {
                let case = format!("seed {seed}, step {step}: {out:?}");
                let call = PendingCall {
                    purpose: [Model, Tool, Tool, Memory][dice.roll(4)],
                    owner: Owner::named(["a", "b", "c"][dice.roll(3)]),
                };
                if may_start(&out, call) {
                    out.push(call);
                } else if !out.is_empty() {
                    out.swap_remove(dice.roll(out.len()));
                }
                let count = |purpose| out.iter().filter(|one| one.purpose == purpose).count();
                let (models, tools, memory) = (count(Model), count(Tool), count(Memory));
                assert!(out.len() <= 6 && models + tools <= 5, "{case}");
                let stranger = |purpose| PendingCall {
                    purpose,
                    owner: Owner::named("stranger"),
                };
                if models < 1 {
                    assert!(may_start(&out, stranger(Model)), "{case}");
                }
                let is_one_sessions = out.iter().all(|one| one.owner == out[0].owner);
                if models < 2 && is_one_sessions && memory < 2 {
                    assert!(may_start(&out, stranger(Tool)), "{case}");
                }
            }
        }
    }

    #[test]
    fn a_timeout_starts_with_the_call_and_names_its_limit() {
        let silence = (30_000, CallFailure::TimedOut { silence_ms: 30_000 });
        let limits = CallLimits {
            wait_ms: 0,
            silence_ms: 30_000,
            no_content_ms: None,
            total_ms: 300_000,
            max_bytes: 0,
        };
        let clock = Clock::start(limits, 1_000_000);
        assert_eq!(clock.next_wait(1_000_000), silence);
        assert_eq!(clock.next_wait(1_270_000), silence);
        let total = |left_ms| (left_ms, CallFailure::DeadlineExceeded { total_ms: 300_000 });
        assert_eq!(clock.next_wait(1_270_001), total(29_999));
        assert_eq!(clock.next_wait(1_300_000), total(0));
        assert_eq!(clock.next_wait(1_400_000), total(0));
        // Bytes without content.
        let mute = |left_ms| (left_ms, CallFailure::TimedOut { silence_ms: 90_000 });
        let limits = CallLimits {
            no_content_ms: Some(90_000),
            ..limits
        };
        let mut clock = Clock::start(limits, 0);
        assert_eq!(clock.next_wait(60_000), silence);
        assert_eq!(clock.next_wait(60_001), mute(29_999));
        assert_eq!(clock.next_wait(100_000), mute(0));
        clock.record_content(60_001);
        assert_eq!(clock.next_wait(60_001), silence);
        clock.record_content(290_000);
        assert_eq!(clock.next_wait(290_000), total(10_000));
    }

    #[test]
    fn a_slow_future_times_out_and_a_ready_one_does_not() {
        let over = || Box::pin(ready(()));
        assert_eq!(wait_for(in_time(over(), ready(1))), Some(1));
        assert_eq!(wait_for(in_time(over(), pending::<i32>())), None);
    }
}
