//! Model calls that a Worker makes for a turn: the turn's object decides what to ask and reads
//! the answer, and the holder of the turn's [`Lease`] waits for the model.
//!
//! While a call is out, the turn is a future that waits for a message. It needs no timer, no open
//! request and no connection, so the object may sleep. The holder applies the call's limits.
//! If the holder is lost, the turn continues: the object makes a call whose answer has not started,
//! and requests an answer that has started again, as after an eviction.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::host::Host;
use crate::json;
use crate::outbound::{
    ByteChunks, CallFailure, CallLimits, CallPurpose, Clock, Endpoint, LocalBoxFuture,
    OutboundRequest, OutboundResponse, RequestForm,
};
use crate::trace;
use crate::trace::calls::record_call;
use crate::trace::span::SpanQueue;

/// The longest body of a leased call: a message over a socket has at most 32 MiB, and its text may
/// take twice as many bytes as the body. The object makes a longer call itself.
const MAX_BODY_BYTES: usize = 12 << 20;

thread_local! {
    static CURRENT: RefCell<Option<Rc<Lease>>> = const { RefCell::new(None) };
}

/// Where a leased call goes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LeasedEndpoint {
    Url {
        url: String,
        headers: Vec<(String, String)>,
    },
    /// Workers AI, with the model's name.
    Ai { model: String },
}

/// A call for the holder of the lease.
#[derive(Clone, Debug, PartialEq)]
pub struct LeasedCall {
    /// Distinguishes the calls of a lease.
    pub number: u32,
    pub endpoint: LeasedEndpoint,
    pub limits: CallLimits,
    pub body: String,
}

/// The head of an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeasedHead {
    pub status: u16,
    pub content_type: String,
    pub retry_after: Option<i64>,
}

/// A piece of an answer, in the order of its arrival: a head, bytes, and an end or a failure.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    Head(LeasedHead),
    Bytes(Vec<u8>),
    End,
    Failed(CallFailure),
}

/// The one who makes the calls.
pub trait LeaseHolder {
    /// Whether the turn that the holder waits for still runs. The object makes the calls of the
    /// next turn itself.
    fn accepts_calls(&self) -> bool;

    fn ask(&self, call: LeasedCall);

    /// Nobody waits for the answer any more.
    fn abandon(&self, number: u32);

    /// The turn works again. The object must stay awake until [`Lease::until_idle`].
    fn resumed(&self);
}

/// What a lost holder leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The turn continues by itself.
    Nothing,
    /// An answer that has started and will not be continued: the step must be requested again.
    Answer,
}

struct OutCall {
    number: u32,
    arrived: VecDeque<Arrival>,
    has_started: bool,
    /// The turn has read everything that arrived, and waits.
    is_parked: bool,
    waker: Option<Waker>,
}

/// The calls of one turn that its holder makes. One call is out at a time; the object makes a
/// second one itself.
pub struct Lease {
    holder: Box<dyn LeaseHolder>,
    out: RefCell<Option<OutCall>>,
    next_number: Cell<u32>,
    /// The holder makes no further call.
    is_over: Cell<bool>,
    /// The turn's task has ended.
    is_done: Cell<bool>,
    idle_wakers: RefCell<Vec<Waker>>,
}

impl Lease {
    pub fn new(holder: Box<dyn LeaseHolder>) -> Rc<Self> {
        Rc::new(Self {
            holder,
            out: RefCell::default(),
            next_number: Cell::new(0),
            is_over: Cell::new(false),
            is_done: Cell::new(false),
            idle_wakers: RefCell::default(),
        })
    }

    /// The lease of the running task.
    pub fn current() -> Option<Rc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    /// Runs a future whose calls to models are leased.
    pub fn run<F: Future>(self: &Rc<Self>, task: F) -> LeasedTask<F> {
        LeasedTask {
            lease: Some(Rc::clone(self)),
            task: Box::pin(task),
        }
    }

    /// Runs a future without a lease. A leased task may call a class's code, which may enter the
    /// object again before it returns. Work that begins in this way is not the turn's.
    pub fn run_without<F: Future>(task: F) -> LeasedTask<F> {
        LeasedTask {
            lease: None,
            task: Box::pin(task),
        }
    }

    /// Adds a piece of an answer. `false`: nobody waits for this answer.
    pub fn arrive(&self, number: u32, arrival: Arrival) -> bool {
        let mut out = self.out.borrow_mut();
        let Some(out) = out.as_mut().filter(|out| out.number == number) else {
            return false;
        };
        out.arrived.push_back(arrival);
        let was_parked = std::mem::replace(&mut out.is_parked, false);
        let waker = out.waker.take();
        if was_parked {
            self.holder.resumed();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
        true
    }

    /// Ends the lease: the holder is lost, or the turn is over. The object makes further calls.
    pub fn end(&self) -> Loss {
        self.is_over.set(true);
        let mut out = self.out.borrow_mut();
        let Some(out) = out.as_mut() else {
            return Loss::Nothing;
        };
        let is_complete = matches!(out.arrived.back(), Some(Arrival::End | Arrival::Failed(_)));
        if is_complete {
            return Loss::Nothing;
        }
        if out.has_started || !out.arrived.is_empty() {
            return Loss::Answer;
        }
        if std::mem::replace(&mut out.is_parked, false) {
            self.holder.resumed();
        }
        if let Some(waker) = out.waker.take() {
            waker.wake();
        }
        Loss::Nothing
    }

    pub fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// The turn's task has ended.
    pub fn finish(&self) {
        self.is_over.set(true);
        self.is_done.set(true);
        self.wake_idle();
    }

    /// Waits until the turn waits for its holder, or has ended.
    pub async fn until_idle(&self) {
        poll_fn(|context| {
            let is_parked = self.out.borrow().as_ref().is_some_and(|out| out.is_parked);
            if is_parked || self.is_done.get() {
                return Poll::Ready(());
            }
            self.idle_wakers.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn wake_idle(&self) {
        for waker in self.idle_wakers.take() {
            waker.wake();
        }
    }

    /// Makes a call through the holder. `None`: the object makes the call.
    async fn ask<'h>(
        self: Rc<Self>,
        endpoint: LeasedEndpoint,
        body: &str,
        limits: CallLimits,
        host: &'h dyn Host,
    ) -> Option<Result<OutboundResponse<'h>, CallFailure>> {
        let is_refused = self.is_over.get() || !self.holder.accepts_calls();
        if is_refused || body.len() > MAX_BODY_BYTES || self.out.borrow().is_some() {
            return None;
        }
        let number = self.next_number.get();
        self.next_number.set(number.wrapping_add(1));
        self.out.replace(Some(OutCall {
            number,
            arrived: VecDeque::new(),
            has_started: false,
            is_parked: false,
            waker: None,
        }));
        let call = PendingCall {
            lease: Rc::clone(&self),
            number,
            is_complete: Cell::new(false),
        };
        let clock = Clock::start(limits, host.now_ms());
        self.holder.ask(LeasedCall {
            number,
            endpoint,
            limits: CallLimits {
                // The holder can't know which bytes have content.
                no_content_ms: None,
                ..limits
            },
            body: body.to_owned(),
        });
        match call.next().await {
            Some(Arrival::Head(head)) => Some(Ok(OutboundResponse {
                status: head.status,
                content_type: head.content_type,
                retry_after: head.retry_after,
                session: None,
                challenge: None,
                body: Box::new(LeasedBody {
                    call,
                    host,
                    clock,
                    received: 0,
                    max_bytes: limits.max_bytes,
                }),
            })),
            Some(Arrival::Failed(failure)) => Some(Err(failure)),
            Some(Arrival::Bytes(_) | Arrival::End) => Some(Err(broken())),
            None => None,
        }
    }
}

fn broken() -> CallFailure {
    CallFailure::Unreachable {
        cause: "the answer came without its head".to_owned(),
    }
}

/// Makes a call to a model through the holder of the running task's lease. `None`: there is none,
/// or the call is not for it. A service binding may be a class's own, in the object itself.
/// `spans`: receives the call's span.
pub async fn send_leased<'h>(
    form: RequestForm,
    call: &OutboundRequest,
    spans: Option<&SpanQueue>,
    host: &'h dyn Host,
) -> Option<Result<OutboundResponse<'h>, CallFailure>> {
    let Endpoint::Url(url) = &call.endpoint else {
        return None;
    };
    if call.purpose != CallPurpose::Model || form != RequestForm::Json {
        return None;
    }
    let lease = Lease::current()?;
    let traced = trace::begin_call(host);
    let headers = trace::headers_of(traced.as_ref())
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value));
    let endpoint = LeasedEndpoint::Url {
        url: url.clone(),
        headers: headers.chain(call.headers.iter().cloned()).collect(),
    };
    let left_at = host.now_ms();
    let answer = lease.ask(endpoint, &call.body, call.limits, host).await?;
    let times = (left_at, host.now_ms());
    let outcome = answer.as_ref().map(|answer| answer.status);
    record_call(spans, traced.as_ref(), &call.endpoint, times, outcome);
    Some(answer)
}

/// As [`send_leased`], for Workers AI.
pub async fn run_ai_leased<'h>(
    model: &str,
    input: &str,
    limits: CallLimits,
    host: &'h dyn Host,
) -> Option<Result<OutboundResponse<'h>, CallFailure>> {
    let endpoint = LeasedEndpoint::Ai {
        model: model.to_owned(),
    };
    Lease::current()?.ask(endpoint, input, limits, host).await
}

/// A call that is out. Dropping it before its end gives it up.
struct PendingCall {
    lease: Rc<Lease>,
    number: u32,
    is_complete: Cell<bool>,
}

impl PendingCall {
    /// The next piece. `None`: the holder is lost.
    async fn next(&self) -> Option<Arrival> {
        let arrival = poll_fn(|context| {
            let mut out = self.lease.out.borrow_mut();
            let Some(out) = out.as_mut().filter(|out| out.number == self.number) else {
                return Poll::Ready(None);
            };
            if let Some(arrival) = out.arrived.pop_front() {
                out.has_started = true;
                return Poll::Ready(Some(arrival));
            }
            if self.lease.is_over.get() {
                return Poll::Ready(None);
            }
            out.waker = Some(context.waker().clone());
            if !std::mem::replace(&mut out.is_parked, true) {
                self.lease.wake_idle();
            }
            Poll::Pending
        })
        .await;
        if matches!(arrival, None | Some(Arrival::End | Arrival::Failed(_))) {
            self.is_complete.set(true);
        }
        arrival
    }
}

impl Drop for PendingCall {
    fn drop(&mut self) {
        let left = self.lease.out.take();
        if left.is_some_and(|out| out.is_parked) {
            self.lease.holder.resumed();
        }
        if !self.is_complete.get() {
            self.lease.holder.abandon(self.number);
        }
    }
}

struct LeasedBody<'h> {
    call: PendingCall,
    host: &'h dyn Host,
    clock: Clock,
    received: usize,
    max_bytes: usize,
}

impl ByteChunks for LeasedBody<'_> {
    fn next(&mut self) -> LocalBoxFuture<'_, Result<Option<Vec<u8>>, CallFailure>> {
        Box::pin(async move {
            let max_bytes = self.max_bytes;
            // A timer would keep the object awake, so time is checked when something arrives.
            match self.call.next().await {
                Some(Arrival::Bytes(bytes)) => {
                    self.received += bytes.len();
                    if self.received > max_bytes {
                        return Err(CallFailure::TooLarge { max_bytes });
                    }
                    match self.clock.next_wait(self.host.now_ms()) {
                        (0, failure) => Err(failure),
                        _ => Ok(Some(bytes)),
                    }
                }
                Some(Arrival::End) => Ok(None),
                Some(Arrival::Failed(failure)) => Err(failure),
                Some(Arrival::Head(_)) => Err(broken()),
                None => Err(CallFailure::Unreachable {
                    cause: "the Worker that read the answer was lost".to_owned(),
                }),
            }
        })
    }

    fn record_content(&mut self) {
        self.clock.record_content(self.host.now_ms());
    }
}

/// A task with a lease, or without any.
pub struct LeasedTask<F> {
    lease: Option<Rc<Lease>>,
    task: Pin<Box<F>>,
}

impl<F: Future> Future for LeasedTask<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let before = CURRENT.replace(self.lease.clone());
        let outcome = self.task.as_mut().poll(context);
        CURRENT.set(before);
        outcome
    }
}

/// A message of the object to the holder.
#[derive(Debug, PartialEq)]
pub enum ToHolder {
    Ask(LeasedCall),
    Abandon(u32),
    /// Events of the turn, for its client.
    Events(String),
    /// The turn has ended.
    Over,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallHead {
    number: u32,
    #[serde(rename = "place")]
    endpoint: LeasedEndpoint,
    limits: CallLimits,
}

fn unreadable() -> Error {
    Error::storage("a message between the Worker and its object can't be read")
}

impl ToHolder {
    pub fn render(&self) -> Result<String> {
        Ok(match self {
            // The body follows as it is, so that it is not escaped.
            Self::Ask(call) => {
                let head = json::encode(&CallHead {
                    number: call.number,
                    endpoint: call.endpoint.clone(),
                    limits: call.limits,
                })?;
                format!("c{head}\n{}", call.body)
            }
            Self::Abandon(number) => format!("x{number}"),
            Self::Events(events) => format!("e{events}"),
            Self::Over => "o".to_owned(),
        })
    }

    pub fn parse(message: &str) -> Result<Self> {
        let mut letters = message.chars();
        let kind = letters.next();
        let rest = letters.as_str();
        match kind {
            Some('c') => {
                let (head, body) = rest.split_once('\n').ok_or_else(unreadable)?;
                let head: CallHead = json::decode(head).map_err(|_| unreadable())?;
                Ok(Self::Ask(LeasedCall {
                    number: head.number,
                    endpoint: head.endpoint,
                    limits: head.limits,
                    body: body.to_owned(),
                }))
            }
            Some('x') => rest.parse().map(Self::Abandon).map_err(|_| unreadable()),
            Some('e') => Ok(Self::Events(rest.to_owned())),
            Some('o') => Ok(Self::Over),
            _ => Err(unreadable()),
        }
    }
}

/// A message of the holder to the object.
#[derive(Debug, PartialEq)]
pub enum FromHolder {
    /// The holder is there, and has nothing to say.
    Alive,
    Arrived(u32, Arrival),
}

impl FromHolder {
    pub fn render(&self) -> Result<Vec<u8>> {
        let (number, arrival) = match self {
            Self::Alive => return Ok(vec![b'a']),
            Self::Arrived(number, arrival) => (number, arrival),
        };
        let encoded;
        let (kind, rest): (u8, &[u8]) = match arrival {
            Arrival::Head(head) => {
                encoded = json::encode(head)?;
                (b'h', encoded.as_bytes())
            }
            Arrival::Bytes(bytes) => (b'b', bytes),
            Arrival::End => (b'e', &[]),
            Arrival::Failed(failure) => {
                encoded = json::encode(failure)?;
                (b'f', encoded.as_bytes())
            }
        };
        let mut message = Vec::with_capacity(5 + rest.len());
        message.push(kind);
        message.extend_from_slice(&number.to_le_bytes());
        message.extend_from_slice(rest);
        Ok(message)
    }

    pub fn parse(message: &[u8]) -> Result<Self> {
        let (kind, rest) = message.split_first().ok_or_else(unreadable)?;
        if *kind == b'a' {
            return Ok(Self::Alive);
        }
        let (number, rest) = rest.split_first_chunk::<4>().ok_or_else(unreadable)?;
        let arrival = match kind {
            b'h' => Arrival::Head(json::decode_bytes(rest).map_err(|_| unreadable())?),
            b'b' => Arrival::Bytes(rest.to_vec()),
            b'e' => Arrival::End,
            b'f' => Arrival::Failed(json::decode_bytes(rest).map_err(|_| unreadable())?),
            _ => return Err(unreadable()),
        };
        Ok(Self::Arrived(u32::from_le_bytes(*number), arrival))
    }
}

#[cfg(test)]
mod tests;
