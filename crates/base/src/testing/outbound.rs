//! A scripted [`Outbound`]: it returns a test's answers in order, and records the requests.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Waker};

use sha2::{Digest, Sha256};

use super::archive::MemoryArchive;
use crate::leased_calls::{Lease, run_ai_leased, send_leased};
use crate::outbound::Archive;
use crate::outbound::{
    BucketObject, ByteChunks, CallFailure, CallLimits, Clock, Endpoint, ListedObject,
    LocalBoxFuture, ObjectListing, Outbound, OutboundRequest, OutboundResponse, PutCondition,
    RequestForm, WriteLocks,
};
use crate::settings::Setting;
use crate::testing::FixedHost;
use crate::trace;
use crate::trace::span::SpanQueue;

/// One scripted answer.
pub struct ScriptedAnswer {
    pub status: u16,
    pub content_type: &'static str,
    /// The pieces of the body, which the reader receives one by one.
    pub chunks: Vec<Result<Vec<u8>, CallFailure>>,
}

impl ScriptedAnswer {
    pub fn json(body: &serde_json::Value) -> Result<Self, CallFailure> {
        Ok(Self {
            status: 200,
            content_type: "application/json",
            chunks: vec![Ok(body.to_string().into_bytes())],
        })
    }

    /// An answer that is an event stream in one piece.
    pub fn stream(text: &str) -> Self {
        Self {
            content_type: "text/event-stream",
            ..Self::text(200, text)
        }
    }

    pub fn text(status: u16, text: &str) -> Self {
        Self {
            status,
            content_type: "text/plain",
            chunks: vec![Ok(text.as_bytes().to_vec())],
        }
    }
}

/// The bucket's objects by key: each object's text and its description.
type Texts = BTreeMap<String, (String, Option<String>)>;

type Act = Box<dyn FnOnce()>;

/// Answers each request; `None`: the request stays unanswered.
type Replies = Box<dyn Fn(&OutboundRequest) -> Option<Result<ScriptedAnswer, CallFailure>>>;

/// A scripted [`Outbound`]: it returns its answers in order and records every request. The bucket
/// is a real map.
#[derive(Default)]
pub struct Script {
    pub settings: RefCell<HashMap<String, String>>,
    /// The text of the bundled `agent-defaults.json`.
    pub defaults_file: RefCell<Option<String>>,
    pub bindings: RefCell<Vec<String>>,
    pub answers: RefCell<VecDeque<Result<ScriptedAnswer, CallFailure>>>,
    /// How many seconds the caller should wait, in each answer.
    pub retry_after: RefCell<Option<i64>>,
    /// The session id of an MCP server, in each answer.
    pub session: RefCell<Option<String>>,
    /// The challenge in an answer with the status 401 or 403.
    pub challenge: RefCell<Option<String>>,
    /// The form of every call, in the order of `calls`.
    pub forms: RefCell<Vec<RequestForm>>,
    /// Whether the script handles the discovery of an MCP server's revision like any request.
    /// Otherwise it answers with 404, and does not record the request.
    pub scripts_discovery: std::cell::Cell<bool>,
    /// The pauses that the caller made.
    pub pauses_ms: RefCell<Vec<i64>>,
    /// Pauses never end.
    pub sleeps_forever: std::cell::Cell<bool>,
    pub calls: RefCell<Vec<OutboundRequest>>,
    /// Answers instead of `answers`, if it is set.
    pub replies: Option<Replies>,
    /// After the last answer, a request stays unanswered instead of failing.
    pub hangs_after_answers: std::cell::Cell<bool>,
    /// The last answer does not end: after its last piece, nothing arrives.
    pub stays_open: std::cell::Cell<bool>,
    /// The model and the input of every call to Workers AI.
    pub ai_calls: RefCell<Vec<(String, String)>>,
    /// Runs during the next call, once.
    pub during_next_call: RefCell<Option<Act>>,
    /// Objects of the bucket whose bytes are not text.
    pub binaries: RefCell<BTreeMap<String, Vec<u8>>>,
    pub bucket: RefCell<Option<Texts>>,
    /// Objects that another writer stores in the bucket: one of them right before each write of the
    /// agent.
    pub competing_writes: RefCell<VecDeque<(String, String)>>,
    /// The bucket of backups, if it is bound.
    pub backup_bucket: OnceCell<MemoryArchive>,
    pub writers: WriteLocks,
    /// The queued spans, if the test has a span collector.
    pub spans: OnceCell<SpanQueue>,
    host: FixedHost,
    /// The body of every answer after the scripted ones.
    pub trickle: RefCell<Option<Rc<Trickle>>>,
    /// The longest time spent reading such a body.
    pub trickled_ms: Rc<std::cell::Cell<i64>>,
}

/// The version of an object in the bucket. Other bytes have another version.
fn etag(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A body that repeats its beginning, each time after a pause, until its reader times out. The time
/// passes only in the test.
pub struct Trickle {
    pub piece: Vec<u8>,
    pub pause_ms: i64,
}

struct TrickledBody {
    trickle: Rc<Trickle>,
    clock: Clock,
    now_ms: i64,
    received: usize,
    max_bytes: usize,
    spent_ms: Rc<std::cell::Cell<i64>>,
}

impl ByteChunks for TrickledBody {
    fn next(&mut self) -> LocalBoxFuture<'_, Result<Option<Vec<u8>>, CallFailure>> {
        let (wait_ms, failure) = self.clock.next_wait(self.now_ms);
        let waited_ms = self.trickle.pause_ms.min(wait_ms);
        self.now_ms += waited_ms;
        self.received += self.trickle.piece.len();
        let longest = self.spent_ms.get().max(self.now_ms);
        self.spent_ms.set(longest);
        let max_bytes = self.max_bytes;
        let outcome = if waited_ms < self.trickle.pause_ms {
            Err(failure)
        } else if self.received > max_bytes {
            Err(CallFailure::TooLarge { max_bytes })
        } else {
            Ok(Some(self.trickle.piece.clone()))
        };
        Box::pin(async { outcome })
    }

    fn record_content(&mut self) {
        self.clock.record_content(self.now_ms);
    }
}

struct Rest {
    chunks: VecDeque<Result<Vec<u8>, CallFailure>>,
    stays_open: bool,
    /// How many more bytes the call's limits allow, and how many they allowed.
    left: usize,
    max_bytes: usize,
}

impl ByteChunks for Rest {
    fn next(&mut self) -> LocalBoxFuture<'_, Result<Option<Vec<u8>>, CallFailure>> {
        let chunk = self.chunks.pop_front().transpose();
        if self.stays_open && matches!(chunk, Ok(None)) {
            return Box::pin(std::future::pending());
        }
        if let Ok(Some(bytes)) = &chunk {
            let max_bytes = self.max_bytes;
            match self.left.checked_sub(bytes.len()) {
                Some(left) => self.left = left,
                None => return Box::pin(async move { Err(CallFailure::TooLarge { max_bytes }) }),
            }
        }
        Box::pin(async { chunk })
    }
}

impl Script {
    pub fn answer(&self, scripted: Result<ScriptedAnswer, CallFailure>) {
        self.answers.borrow_mut().push_back(scripted);
    }

    fn next_answer(&self, limits: CallLimits) -> Result<OutboundResponse<'static>, CallFailure> {
        let scripted = self.answers.borrow_mut().pop_front();
        let scripted = scripted.unwrap_or(Err(CallFailure::Unreachable {
            cause: "the script is at its end".to_owned(),
        }));
        self.respond(scripted, limits)
    }

    fn respond(
        &self,
        scripted: Result<ScriptedAnswer, CallFailure>,
        limits: CallLimits,
    ) -> Result<OutboundResponse<'static>, CallFailure> {
        let scripted = scripted?;
        Ok(OutboundResponse {
            status: scripted.status,
            content_type: scripted.content_type.to_owned(),
            retry_after: *self.retry_after.borrow(),
            session: self.session.borrow().clone(),
            challenge: match scripted.status {
                401 | 403 => self.challenge.borrow().clone(),
                _ => None,
            },
            body: Box::new(Rest {
                chunks: scripted.chunks.into(),
                stays_open: self.stays_open.get() && self.answers.borrow().is_empty(),
                left: limits.max_bytes,
                max_bytes: limits.max_bytes,
            }),
        })
    }

    /// An answer whose body never ends, if the test wants one.
    fn trickled(&self, limits: CallLimits) -> Option<OutboundResponse<'static>> {
        if !self.answers.borrow().is_empty() {
            return None;
        }
        let trickle = Rc::clone(self.trickle.borrow().as_ref()?);
        let head = trickle.piece.first();
        Some(OutboundResponse {
            status: 200,
            content_type: match head {
                Some(b'{' | b' ') => "application/json".to_owned(),
                _ => "text/event-stream".to_owned(),
            },
            retry_after: None,
            session: None,
            challenge: None,
            body: Box::new(TrickledBody {
                trickle,
                clock: Clock::start(limits, 0),
                now_ms: 0,
                received: 0,
                max_bytes: limits.max_bytes,
                spent_ms: Rc::clone(&self.trickled_ms),
            }),
        })
    }

    fn send_directly<'a>(
        &'a self,
        form: RequestForm,
        call: OutboundRequest,
    ) -> LocalBoxFuture<'a, Result<OutboundResponse<'a>, CallFailure>> {
        if let Endpoint::Directory { .. } = call.endpoint {
            // There is one agent, for every caller and prefix.
            let page = serde_json::json!({
                "agents": [{"name": "alice", "createdAt": 0}],
                "more": false,
            });
            return Box::pin(async move { self.respond(ScriptedAnswer::json(&page), call.limits) });
        }
        if !self.scripts_discovery.get() && call.body.contains(r#""method":"server/discover""#) {
            let unknown = Ok(ScriptedAnswer::text(404, ""));
            return Box::pin(async move { self.respond(unknown, call.limits) });
        }
        if let Some(replies) = &self.replies {
            return match replies(&call) {
                Some(scripted) => Box::pin(async move { self.respond(scripted, call.limits) }),
                None => Box::pin(std::future::pending()),
            };
        }
        let limits = call.limits;
        let mut call = call;
        let traced = trace::headers_of(trace::begin_call(&self.host).as_ref());
        let traced = traced.into_iter();
        call.headers
            .extend(traced.map(|(name, value)| (name.to_owned(), value)));
        self.calls.borrow_mut().push(call);
        self.forms.borrow_mut().push(form);
        if let Some(answer) = self.trickled(limits) {
            return Box::pin(async { Ok(answer) });
        }
        let during_next_call = self.during_next_call.borrow_mut().take();
        if let Some(act) = during_next_call {
            act();
        }
        if self.hangs_after_answers.get() && self.answers.borrow().is_empty() {
            return Box::pin(std::future::pending());
        }
        Box::pin(async move { self.next_answer(limits) })
    }

    fn run_ai_directly<'a>(
        &'a self,
        model: &'a str,
        input: String,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<OutboundResponse<'a>, CallFailure>> {
        self.ai_calls.borrow_mut().push((model.to_owned(), input));
        if let Some(answer) = self.trickled(limits) {
            return Box::pin(async { Ok(answer) });
        }
        let during_next_call = self.during_next_call.borrow_mut().take();
        if let Some(act) = during_next_call {
            act();
        }
        Box::pin(async move { self.next_answer(limits) })
    }

    fn with_bucket<T>(&self, act: impl FnOnce(&mut Texts) -> T) -> Result<T, CallFailure> {
        match self.bucket.borrow_mut().as_mut() {
            Some(bucket) => Ok(act(bucket)),
            None => Err(CallFailure::NotConfigured {
                binding: "SKILLS_BUCKET".to_owned(),
            }),
        }
    }
}

impl Outbound for Script {
    fn writers(&self) -> &WriteLocks {
        &self.writers
    }

    fn find_setting(&self, setting: Setting) -> Option<String> {
        self.settings.borrow().get(setting.name()).cloned()
    }

    fn find_secret(&self, name: &str) -> Option<String> {
        self.settings.borrow().get(name).cloned()
    }

    fn is_bound(&self, binding: &str) -> bool {
        self.bindings.borrow().iter().any(|bound| bound == binding)
    }

    fn send_as<'a>(
        &'a self,
        form: RequestForm,
        call: OutboundRequest,
    ) -> LocalBoxFuture<'a, Result<OutboundResponse<'a>, CallFailure>> {
        if Lease::current().is_some() {
            return Box::pin(async move {
                match send_leased(form, &call, self.spans.get(), &self.host).await {
                    Some(answer) => answer,
                    None => self.send_directly(form, call).await,
                }
            });
        }
        self.send_directly(form, call)
    }

    fn run_ai<'a>(
        &'a self,
        model: &'a str,
        input: String,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<OutboundResponse<'a>, CallFailure>> {
        if Lease::current().is_some() {
            return Box::pin(async move {
                match run_ai_leased(model, &input, limits, &self.host).await {
                    Some(answer) => answer,
                    None => self.run_ai_directly(model, input, limits).await,
                }
            });
        }
        self.run_ai_directly(model, input, limits)
    }

    fn spans(&self) -> Option<&SpanQueue> {
        self.spans.get()
    }

    fn archive(&self) -> Option<&dyn Archive> {
        self.backup_bucket
            .get()
            .map(|bucket| bucket as &dyn Archive)
    }

    fn get_object<'a>(
        &'a self,
        key: &'a str,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<Option<BucketObject>, CallFailure>> {
        Box::pin(async move {
            if let Some(bytes) = self.binaries.borrow().get(key).cloned() {
                return Ok(Some(BucketObject {
                    etag: etag(&bytes),
                    bytes,
                    description: None,
                }));
            }
            let stored = self.with_bucket(|bucket| bucket.get(key).cloned())?;
            match stored {
                Some((content, _)) if content.len() > limits.max_bytes => {
                    Err(CallFailure::TooLarge {
                        max_bytes: limits.max_bytes,
                    })
                }
                Some((content, description)) => Ok(Some(BucketObject {
                    etag: etag(content.as_bytes()),
                    bytes: content.into_bytes(),
                    description,
                })),
                None => Ok(None),
            }
        })
    }

    fn put_object<'a>(
        &'a self,
        key: &'a str,
        content: String,
        description: Option<&'a str>,
        expected: PutCondition<'a>,
        _: CallLimits,
    ) -> LocalBoxFuture<'a, Result<bool, CallFailure>> {
        Box::pin(async move {
            let description = description.map(str::to_owned);
            self.with_bucket(|bucket| {
                if let Some((key, content)) = self.competing_writes.borrow_mut().pop_front() {
                    bucket.insert(key, (content, None));
                }
                let there = bucket.get(key).map(|(content, _)| etag(content.as_bytes()));
                let is_expected = match expected {
                    PutCondition::Anything => true,
                    PutCondition::Nothing => there.is_none(),
                    PutCondition::Etag(etag) => there.as_deref() == Some(etag),
                };
                if is_expected {
                    bucket.insert(key.to_owned(), (content, description));
                }
                is_expected
            })
        })
    }

    fn delete_object<'a>(
        &'a self,
        key: &'a str,
        _: CallLimits,
    ) -> LocalBoxFuture<'a, Result<(), CallFailure>> {
        Box::pin(async move { self.with_bucket(|bucket| bucket.remove(key)).map(drop) })
    }

    fn list_objects<'a>(
        &'a self,
        prefix: &'a str,
        cursor: Option<&'a str>,
        limit: u32,
        _: CallLimits,
    ) -> LocalBoxFuture<'a, Result<ObjectListing, CallFailure>> {
        Box::pin(async move {
            let listing = self.with_bucket(|bucket| {
                let mut objects: Vec<ListedObject> = bucket
                    .iter()
                    .filter(|(key, _)| {
                        key.starts_with(prefix) && cursor.is_none_or(|cursor| key.as_str() > cursor)
                    })
                    .map(|(key, (content, description))| ListedObject {
                        key: key.clone(),
                        bytes: content.len() as i64,
                        description: description.clone(),
                    })
                    .take(limit as usize + 1)
                    .collect();
                let has_more = objects.len() > limit as usize;
                objects.truncate(limit as usize);
                let cursor = objects.last().filter(|_| has_more);
                ObjectListing {
                    cursor: cursor.map(|last| last.key.clone()),
                    objects,
                }
            });
            let during_next_call = self.during_next_call.borrow_mut().take();
            if let Some(act) = during_next_call {
                act();
            }
            listing
        })
    }

    fn sleep<'a>(&'a self, ms: i64) -> LocalBoxFuture<'a, ()> {
        self.pauses_ms.borrow_mut().push(ms);
        if self.sleeps_forever.get() {
            return Box::pin(std::future::pending());
        }
        Box::pin(async {})
    }
}

/// Runs the future until it first waits, then drops it, as an eviction would.
pub fn cut_off<T>(future: impl Future<Output = T>) {
    let mut context = Context::from_waker(Waker::noop());
    let outcome = pin!(future).as_mut().poll(&mut context);
    assert!(outcome.is_pending(), "it came to its end");
}
