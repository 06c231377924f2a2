//! The Worker in front waits for a turn's models, if `MODEL_WAIT` is `worker`. A Worker is paid for
//! its CPU time, an object for each second that it is awake.
//!
//! The object answers a chat request with the id of a lease. The Worker opens the lease's socket,
//! makes the calls that the object asks for, and sends what arrives back to it. The object's events
//! go on to the client. Only the object decides and stores: if the Worker or client disconnects,
//! the object continues the turn.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use js_sys::{Function, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use worker::{Env, web_sys};

use super::host::{Runtime, pause};
use super::http::ResponseResult;
use super::outbound::Bindings;
use super::stub::Stub;
use super::tasks::{self, CancellableTask};
use super::{env, http, stream};
use access::{FRONT_HEADER, LEASE_HEADER, Policy};
use base::error::Result;
use base::host::Host as _;
use base::leased_calls::{Arrival, FromHolder, LeasedCall, LeasedEndpoint, LeasedHead, ToHolder};
use base::outbound::{CallPurpose, Endpoint, Outbound as _, OutboundRequest, in_time};
use base::settings::Setting;
use chat::run::listener::EventSource;
use chat::run::running_turns::MAX_TURN_BYTES;
use chat::stream::problem::StreamProblem;

/// The value of `MODEL_WAIT` with which the Worker waits.
const WORKER: &str = "worker";

/// How often the Worker sends something, so that the object knows that it is there and stays in
/// memory.
const ALIVE_MS: i64 = 5_000;

/// How long bytes of an answer wait for others: fewer messages wake the object. The first bytes
/// don't wait.
const BATCH_MS: i64 = 150;

/// Bytes that don't wait for others.
const MAX_PIECE_BYTES: usize = 64 << 10;

/// The signature with which the Worker offers to wait. `None`: the object waits by itself.
pub fn sign(env: &Env, policy: &Policy, agent: &str) -> Option<String> {
    if env::find_text(env, Setting::ModelWait)? != WORKER {
        return None;
    }
    policy.sign_front(agent, Runtime.now_ms())
}

/// A chat request for which the Worker waits.
pub struct FrontTurn {
    pub request: web_sys::Request,
    pub object: Stub,
    pub agent: String,
    pub signature: String,
}

impl FrontTurn {
    /// Forwards the request. The answer is the object's own, if there is nothing to wait for.
    pub async fn answer(self, env: &Env, policy: &Policy, context: &JsValue) -> ResponseResult {
        let headers = web_sys::Headers::new_with_headers(&self.request.headers())?;
        headers.set(FRONT_HEADER, &self.signature)?;
        headers.delete(LEASE_HEADER)?;
        let init = web_sys::RequestInit::new();
        init.set_headers(&headers);
        let forwarded = web_sys::Request::new_with_request_and_init(&self.request, &init)?;
        let answer = JsFuture::from(self.object.fetch(&forwarded)?.promise()).await?;
        let answer: web_sys::Response = answer.unchecked_into();
        let Some(id) = answer.headers().get(LEASE_HEADER)? else {
            return Ok(answer);
        };
        let events = Rc::new(Events::default());
        let source = EventsOf(Rc::clone(&events));
        let body =
            stream::of_events(source).map_err(|error| JsValue::from(error.into_message()))?;
        headers.set("upgrade", "websocket")?;
        headers.set(LEASE_HEADER, &id)?;
        let signature = policy.sign_lease(&self.agent, &id).unwrap_or_default();
        headers.set(FRONT_HEADER, &signature)?;
        for name in ["content-length", "content-type"] {
            headers.delete(name)?;
        }
        let init = web_sys::RequestInit::new();
        init.set_headers(&headers);
        let forwarded = web_sys::Request::new_with_str_and_init(&self.request.url(), &init)?;
        let connected = JsFuture::from(self.object.fetch(&forwarded)?.promise()).await;
        // Without a socket, the object's alarm continues the turn.
        match connected.and_then(|connected| Connection::open(&connected)) {
            Ok(connection) => {
                let (bindings, events) = (Rc::new(Bindings::new(env)), Rc::clone(&events));
                let work = tasks::promise(async move {
                    serve(connection, bindings, &events).await;
                    Ok(JsValue::UNDEFINED)
                });
                // The turn continues for a while after its client disconnects.
                let wait_until = Reflect::get(context, &"waitUntil".into())?;
                wait_until
                    .unchecked_into::<Function>()
                    .call1(context, &work)?;
            }
            Err(_) => events.end(Some(StreamProblem::Interrupted)),
        }
        let headers = web_sys::Headers::new_with_headers(&answer.headers())?;
        for name in [LEASE_HEADER, "content-length"] {
            headers.delete(name)?;
        }
        http::respond_stream(&body, &headers)
    }
}

/// The events that the client has yet to read.
#[derive(Default)]
struct Events {
    queue: RefCell<VecDeque<String>>,
    bytes: Cell<usize>,
    is_over: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Events {
    fn push(&self, events: String) {
        if self.is_over.get() {
            return;
        }
        if self.bytes.get() + events.len() > MAX_TURN_BYTES {
            // The client reads too slowly. The turn continues.
            self.queue.take();
            return self.end(Some(StreamProblem::Interrupted));
        }
        self.bytes.set(self.bytes.get() + events.len());
        self.queue.borrow_mut().push_back(events);
        self.wake();
    }

    fn end(&self, problem: Option<StreamProblem>) {
        if self.is_over.replace(true) {
            return;
        }
        if let Some(problem) = problem {
            self.queue.borrow_mut().push_back(problem.render());
        }
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }
}

struct EventsOf(Rc<Events>);

/// The client has left, or has read everything.
impl Drop for EventsOf {
    fn drop(&mut self) {
        self.0.is_over.set(true);
        self.0.queue.take();
    }
}

impl EventSource for EventsOf {
    async fn next_events(&mut self) -> Option<String> {
        poll_fn(|context| {
            let next = self.0.queue.borrow_mut().pop_front();
            if let Some(events) = next {
                let left = self.0.bytes.get().saturating_sub(events.len());
                self.0.bytes.set(left);
                return Poll::Ready(Some(events));
            }
            if self.0.is_over.get() {
                return Poll::Ready(None);
            }
            self.0.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await
    }
}

/// What comes over the socket. `None`: it was closed.
#[derive(Default)]
struct Inbox {
    queue: RefCell<VecDeque<Option<String>>>,
    waker: RefCell<Option<Waker>>,
}

impl Inbox {
    fn push(&self, message: Option<String>) {
        self.queue.borrow_mut().push_back(message);
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    async fn next(&self) -> Option<String> {
        poll_fn(|context| {
            if let Some(message) = self.queue.borrow_mut().pop_front() {
                return Poll::Ready(message);
            }
            self.waker.replace(Some(context.waker().clone()));
            Poll::Pending
        })
        .await
    }
}

/// The socket to the object.
struct Connection {
    socket: web_sys::WebSocket,
    inbox: Rc<Inbox>,
}

impl Connection {
    fn open(answer: &JsValue) -> Result<Self, JsValue> {
        let socket = Reflect::get(answer, &"webSocket".into())?;
        if !socket.is_object() {
            return Err(JsValue::from("the object opened no socket"));
        }
        let inbox = Rc::new(Inbox::default());
        let (received, closed) = (Rc::clone(&inbox), Rc::clone(&inbox));
        let on_message = Closure::<dyn FnMut(JsValue)>::new(move |event: JsValue| {
            let data = Reflect::get(&event, &"data".into()).unwrap_or_default();
            if let Some(text) = data.as_string() {
                received.push(Some(text));
            }
        });
        let on_close = Closure::<dyn FnMut(JsValue)>::new(move |_| closed.push(None));
        let listen = Reflect::get(&socket, &"addEventListener".into())?;
        let listen: Function = listen.unchecked_into();
        // The socket owns the listeners: it may call them after this value is dropped.
        let (on_message, on_close) = (on_message.into_js_value(), on_close.into_js_value());
        listen.call2(&socket, &"message".into(), &on_message)?;
        listen.call2(&socket, &"close".into(), &on_close)?;
        listen.call2(&socket, &"error".into(), &on_close)?;
        let accept = Reflect::get(&socket, &"accept".into())?;
        accept.unchecked_into::<Function>().call0(&socket)?;
        Ok(Self {
            socket: socket.unchecked_into(),
            inbox,
        })
    }
}

/// Sends a message to the object. If the socket is closed, its close event follows.
fn send(socket: &web_sys::WebSocket, message: &FromHolder) {
    if let Ok(bytes) = message.render() {
        let _ = socket.send_with_js_u8_array(&Uint8Array::from(bytes.as_slice()));
    }
}

/// Does what the object asks for, until the turn is over or the object closes the connection.
async fn serve(connection: Connection, bindings: Rc<Bindings>, events: &Events) {
    let mut calling: Option<(u32, CancellableTask)> = None;
    let mut alive_at_ms = Runtime.now_ms();
    let problem = loop {
        let next = in_time(pause(ALIVE_MS), connection.inbox.next()).await;
        // The object may write more often than that, and then nothing else is sent to it.
        if next.is_none() || Runtime.now_ms() - alive_at_ms >= ALIVE_MS {
            send(&connection.socket, &FromHolder::Alive);
            alive_at_ms = Runtime.now_ms();
        }
        let Some(next) = next else {
            continue;
        };
        match next.as_deref().map(ToHolder::parse) {
            Some(Ok(ToHolder::Ask(call))) => {
                let (bindings, socket) = (Rc::clone(&bindings), connection.socket.clone());
                let number = call.number;
                let making =
                    tasks::start_cancellable(async move { make(call, &bindings, &socket).await });
                calling = Some((number, making));
            }
            Some(Ok(ToHolder::Abandon(number))) => {
                if let Some((_, making)) = calling.take_if(|(made, _)| *made == number) {
                    making.cancel();
                }
            }
            Some(Ok(ToHolder::Events(text))) => events.push(text),
            Some(Ok(ToHolder::Over)) => break None,
            Some(Err(_)) | None => break Some(StreamProblem::Interrupted),
        }
    };
    if let Some((_, making)) = calling {
        making.cancel();
    }
    events.end(problem);
    // An error means that the socket is already closed.
    let _ = connection.socket.close_with_code(1000);
}

/// Makes a call, and sends its answer to the object as it arrives.
async fn make(call: LeasedCall, bindings: &Bindings, socket: &web_sys::WebSocket) {
    let LeasedCall {
        number,
        endpoint,
        limits,
        body,
    } = call;
    let report = |arrival| send(socket, &FromHolder::Arrived(number, arrival));
    let answer = match &endpoint {
        LeasedEndpoint::Url { url, headers } => {
            let call = OutboundRequest {
                purpose: CallPurpose::Model,
                endpoint: Endpoint::Url(url.clone()),
                headers: headers.clone(),
                body,
                limits,
            };
            bindings.send(call).await
        }
        LeasedEndpoint::Ai { model } => bindings.run_ai(model, body, limits).await,
    };
    let mut answer = match answer {
        Ok(answer) => answer,
        Err(failure) => return report(Arrival::Failed(failure)),
    };
    report(Arrival::Head(LeasedHead {
        status: answer.status,
        content_type: answer.content_type.clone(),
        retry_after: answer.retry_after,
    }));
    let mut buffered: Vec<u8> = Vec::new();
    let mut due_ms = Runtime.now_ms();
    loop {
        let mut next = answer.body.next();
        let next = loop {
            let left_ms = due_ms - Runtime.now_ms();
            if buffered.len() >= MAX_PIECE_BYTES || !buffered.is_empty() && left_ms <= 0 {
                report(Arrival::Bytes(std::mem::take(&mut buffered)));
                due_ms = Runtime.now_ms() + BATCH_MS;
            }
            if buffered.is_empty() {
                break next.await;
            }
            // The pause ends no read: `next` continues.
            if let Some(next) = in_time(pause(left_ms.max(1)), &mut next).await {
                break next;
            }
        };
        match next {
            Ok(Some(bytes)) => buffered.extend(bytes),
            ended => {
                if !buffered.is_empty() {
                    report(Arrival::Bytes(buffered));
                }
                return report(match ended {
                    Err(failure) => Arrival::Failed(failure),
                    Ok(_) => Arrival::End,
                });
            }
        }
    }
}
