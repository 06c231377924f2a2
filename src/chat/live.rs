//! The turns that run in this life of the object, and whoever listens to them.
//!
//! A turn writes chunks into one buffer; every listener reads from there at its
//! own pace, so a client that doesn't read holds nothing up and costs nothing
//! more. All of it is a cache: what has to outlive the object is in the tables.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use super::answers::Answer;
use super::frames::outgoing::{Telling, TurnOutcome};
use super::turn::{MAX_CALLS, Turn};
use crate::access::Reach;
use crate::error::{Code, Error, Result};
use crate::ids::Id;
use crate::log::slices::MAX_EVENT_BYTES;
use crate::models::ToolDefinition;

/// Turns of one agent at a time.
pub const MAX_TURNS: usize = 256;

/// Bytes of chunks that one turn may tell, and all running turns together: an
/// isolate has 128 MB.
pub const MAX_TURN_BYTES: usize = MAX_EVENT_BYTES;
pub const MAX_DESK_BYTES: usize = 48 << 20;

#[derive(Default)]
pub struct Desk {
    running: RefCell<HashMap<String, Rc<Running>>>,
}

impl Desk {
    pub fn find(&self, session_id: &Id) -> Option<Rc<Running>> {
        self.running.borrow().get(session_id.as_str()).cloned()
    }

    /// Stops the turn of a session, if one runs.
    pub fn cancel(&self, session_id: &Id) {
        if let Some(running) = self.find(session_id) {
            running.cancel();
        }
    }

    /// How many turns run.
    pub fn running(&self) -> usize {
        self.running.borrow().len()
    }

    pub fn is_busy(&self) -> bool {
        !self.running.borrow().is_empty()
    }

    /// Stops all turns: what they would write has no place any more.
    pub fn cancel_all(&self) {
        for running in self.running.borrow().values() {
            running.cancel();
        }
    }

    /// Whether another turn may begin.
    pub fn check_room(&self) -> Result<()> {
        if self.running.borrow().len() < MAX_TURNS {
            return Ok(());
        }
        Err(Error::new(
            Code::RateLimited,
            format!("This agent has {MAX_TURNS} turns running, which is the limit. Try again when some have ended."),
        )
        .with("retryAfter", 5))
    }

    /// Takes the session for a turn. The table of turns has let nobody else in.
    pub fn begin(&self, turn: &Turn) -> Rc<Running> {
        let running = Rc::new(Running {
            session_id: turn.session_id.clone(),
            request_id: turn.id.clone(),
            message_id: turn.message_id.clone(),
            is_continuation: turn.is_continuation,
            chunks: RefCell::default(),
            bytes: Cell::new(0),
            outcome: Cell::new(None),
            is_cancelled: Cell::new(false),
            answers: RefCell::default(),
            wakers: RefCell::default(),
        });
        self.running
            .borrow_mut()
            .insert(turn.session_id.as_str().to_owned(), Rc::clone(&running));
        running
    }

    pub fn end(&self, running: &Running, outcome: TurnOutcome) {
        running.outcome.set(Some(outcome));
        // Its place may be another's by now: the session was deleted and made again.
        self.running
            .borrow_mut()
            .retain(|_, other| !std::ptr::eq(Rc::as_ptr(other), std::ptr::from_ref(running)));
        running.wake();
    }

    fn bytes(&self) -> usize {
        let running = self.running.borrow();
        running.values().map(|running| running.bytes.get()).sum()
    }

    /// Whether a turn has said more than there is room for.
    pub fn is_full(&self, running: &Running) -> bool {
        running.bytes.get() > MAX_TURN_BYTES || self.bytes() > MAX_DESK_BYTES
    }
}

/// What a socket answered to a call, perhaps before the turn that asked has ended:
/// a client runs its tools as soon as it hears of their calls.
pub struct ClientReply {
    pub answer: Answer,
    pub continues: bool,
    pub client_tools: Vec<ToolDefinition>,
    /// How far the model reaches for its caller.
    pub reach: Reach,
}

/// One turn, as it is heard.
pub struct Running {
    pub session_id: Id,
    pub request_id: String,
    pub message_id: String,
    pub is_continuation: bool,
    chunks: RefCell<Vec<Rc<str>>>,
    bytes: Cell<usize>,
    outcome: Cell<Option<TurnOutcome>>,
    is_cancelled: Cell<bool>,
    /// Answers to its calls that came while it still ran.
    answers: RefCell<Vec<ClientReply>>,
    /// Of all who wait for a chunk, or for the user to change their mind.
    wakers: RefCell<Vec<Waker>>,
}

impl Running {
    pub fn telling(&self, is_replay: bool) -> Telling<'_> {
        Telling {
            id: &self.request_id,
            is_continuation: self.is_continuation,
            is_replay,
        }
    }

    /// Adds a chunk; gives its number.
    pub fn push(&self, chunk: Rc<str>) -> usize {
        self.bytes.set(self.bytes.get() + chunk.len());
        let mut chunks = self.chunks.borrow_mut();
        chunks.push(chunk);
        let number = chunks.len() - 1;
        drop(chunks);
        self.wake();
        number
    }

    pub fn chunk(&self, index: usize) -> Option<Rc<str>> {
        self.chunks.borrow().get(index).cloned()
    }

    pub fn chunks_so_far(&self) -> usize {
        self.chunks.borrow().len()
    }

    /// The chunk of this number once it is there; `None`: the turn is over before it.
    pub async fn listen(&self, index: usize) -> Option<Rc<str>> {
        poll_fn(|context| {
            if let Some(chunk) = self.chunk(index) {
                return Poll::Ready(Some(chunk));
            }
            if self.outcome.get().is_some() {
                return Poll::Ready(None);
            }
            self.wakers.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Keeps an answer for the turn's end; beyond a limit nobody's calls are left.
    pub fn keep_answer(&self, answer: ClientReply) {
        let mut answers = self.answers.borrow_mut();
        if answers.len() < MAX_CALLS {
            answers.push(answer);
        }
    }

    pub fn take_answers(&self) -> Vec<ClientReply> {
        self.answers.take()
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.get()
    }

    pub fn cancel(&self) {
        self.is_cancelled.set(true);
        self.wake();
    }

    /// What `work` comes to, or `None` as soon as the turn is cancelled.
    pub async fn unless_cancelled<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        poll_fn(|context| {
            if self.is_cancelled.get() {
                return Poll::Ready(None);
            }
            if let Poll::Ready(value) = work.as_mut().poll(context) {
                return Poll::Ready(Some(value));
            }
            self.wakers.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    fn wake(&self) {
        for waker in self.wakers.take() {
            waker.wake();
        }
    }
}

/// Who watches a session through a socket.
pub trait Audience {
    /// Tells everybody who isn't waiting for a replay; `except` by the id of the
    /// request that they made.
    fn tell(&self, session_id: &Id, frame: &str, except: Option<&str>);

    /// Whether there is anybody.
    fn is_there(&self, session_id: &Id) -> bool;
}
