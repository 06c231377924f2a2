//! The turns that run in this life of the object, and whoever listens to them.
//!
//! A turn writes chunks into one buffer; every listener reads from there at its
//! own pace, so a client that doesn't read holds nothing up and costs nothing
//! more. All of it is a cache: what has to outlive the object is in the tables.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};

use serde::{Deserialize, Serialize};

use super::answers::CallAnswer;
use super::frames::outgoing::{FrameHeader, TurnOutcome};
use super::turn::Turn;
use crate::access::ModelReach;
use crate::base::budget::{Reservation, TURNS};
use crate::base::error::{Code, Error, Result};
use crate::base::ids::Id;
use crate::models::ToolDefinition;

/// Turns of one agent at a time.
pub const MAX_TURNS: usize = 256;

/// What one turn may hold: what it said, and the chunks that tell it, which are
/// as many bytes again and more.
pub const MAX_TURN_BYTES: usize = 16 << 20;

/// What every turn is given room for, so that a short one is never cut off by
/// long ones: 256 of them are 8 MiB, a third of what all turns may hold.
const MIN_TURN_BYTES: usize = 32 << 10;

/// What a chunk takes beside its text: a pointer to it, and its counts.
const CHUNK_BYTES: usize = 32;

/// Looks in a row that find a listener of a turn that is over where it was: then
/// it is cut off. The object looks every ten seconds.
const MAX_SILENT_LOOKS: u32 = 3;

#[derive(Default)]
pub struct RunningTurns {
    running: RefCell<HashMap<String, Rc<RunningTurn>>>,
    /// Turns that are over and have listeners that still read.
    outlasted: RefCell<Vec<Weak<RunningTurn>>>,
}

impl RunningTurns {
    pub fn find(&self, session_id: &Id) -> Option<Rc<RunningTurn>> {
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

    /// Whether there is anything to look after.
    pub fn is_busy(&self) -> bool {
        self.outlasted
            .borrow_mut()
            .retain(|turn| turn.strong_count() > 0);
        !self.running.borrow().is_empty() || !self.outlasted.borrow().is_empty()
    }

    /// Sessions whose turn runs.
    pub fn sessions(&self) -> Vec<String> {
        self.running.borrow().keys().cloned().collect()
    }

    /// Turns that run and had been cut off.
    pub fn count_taken_up(&self) -> usize {
        let running = self.running.borrow();
        running.values().filter(|turn| turn.was_cut_off).count()
    }

    /// Lets go of what was told to listeners that have stopped reading since the
    /// turn's end.
    pub fn cut_off_silent(&self) {
        self.outlasted
            .borrow_mut()
            .retain(|turn| turn.upgrade().is_some_and(|turn| !turn.look_at_listeners()));
    }

    /// Stops all turns: what they would write has no place any more.
    pub fn cancel_all(&self) {
        for running in self.running.borrow().values() {
            running.cancel();
        }
    }

    /// Room for another turn, of which `bytes` are known; to be asked for before
    /// anything is written.
    pub fn reserve(&self, bytes: usize) -> Result<Reservation> {
        if self.running.borrow().len() < MAX_TURNS {
            return Reservation::take(&TURNS, bytes.max(MIN_TURN_BYTES), "The turns that run");
        }
        Err(Error::new(
            Code::RateLimited,
            format!("This agent has {MAX_TURNS} turns running, which is the limit. Try again when some have ended."),
        )
        .with("retryAfter", 5))
    }

    /// Takes the session for a turn. The table of turns has let nobody else in.
    pub fn begin(
        &self,
        turn: &Turn,
        reservation: Reservation,
        was_cut_off: bool,
    ) -> Rc<RunningTurn> {
        let running = Rc::new(RunningTurn {
            was_cut_off,
            session_id: turn.session_id.clone(),
            request_id: turn.id.clone(),
            message_id: turn.message_id.clone(),
            is_continuation: turn.is_continuation,
            chunks: RefCell::default(),
            chunk_bytes: Cell::new(0),
            turn_bytes: Cell::new(0),
            is_over_limit: Cell::new(false),
            is_cut_short: Cell::new(false),
            reservation,
            outcome: Cell::new(None),
            is_cancelled: Cell::new(false),
            reads: Cell::new(0),
            silent_looks: Cell::new((0, 0)),
            wakers: RefCell::default(),
        });
        self.running
            .borrow_mut()
            .insert(turn.session_id.as_str().to_owned(), Rc::clone(&running));
        running
    }

    pub fn end(&self, running: &RunningTurn, outcome: TurnOutcome) {
        running.outcome.set(Some(outcome));
        // Its place may be another's by now: the session was deleted and made again.
        self.running
            .borrow_mut()
            .retain(|_, other| !std::ptr::eq(Rc::as_ptr(other), std::ptr::from_ref(running)));
        running.wake();
    }

    /// Looks after a turn that is over as long as somebody reads what it told.
    pub fn outlast(&self, running: &Rc<RunningTurn>) {
        self.outlasted.borrow_mut().push(Rc::downgrade(running));
    }
}

/// What a socket answered to a call, perhaps before the turn that asked has ended:
/// a client runs its tools as soon as it hears of their calls.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientReply {
    pub answer: CallAnswer,
    pub continues: bool,
    pub client_tools: Vec<ToolDefinition>,
    /// How far the model reaches for its caller.
    pub reach: ModelReach,
}

/// One turn, as it is heard.
pub struct RunningTurn {
    pub session_id: Id,
    pub request_id: String,
    pub message_id: String,
    pub is_continuation: bool,
    chunks: RefCell<Vec<Rc<str>>>,
    chunk_bytes: Cell<usize>,
    /// Of what the turn keeps beside its chunks.
    turn_bytes: Cell<usize>,
    /// Held until the last who listens is gone.
    reservation: Reservation,
    is_over_limit: Cell<bool>,
    is_cut_short: Cell<bool>,
    outcome: Cell<Option<TurnOutcome>>,
    is_cancelled: Cell<bool>,
    /// It was taken up again.
    was_cut_off: bool,
    /// Chunks that listeners took, and how many it were, and for how many looks,
    /// when they were looked at last.
    reads: Cell<u64>,
    silent_looks: Cell<(u64, u32)>,
    /// Of all who wait for a chunk, or for the user to change their mind.
    wakers: RefCell<Vec<Waker>>,
}

impl RunningTurn {
    pub fn frame_header(&self, is_replay: bool) -> FrameHeader<'_> {
        FrameHeader {
            id: &self.request_id,
            is_continuation: self.is_continuation,
            is_replay,
        }
    }

    /// Adds a chunk; gives its number.
    pub fn push(&self, chunk: Rc<str>) -> usize {
        self.chunk_bytes
            .set(self.chunk_bytes.get() + chunk.len() + CHUNK_BYTES);
        self.measure();
        let mut chunks = self.chunks.borrow_mut();
        chunks.push(chunk);
        let number = chunks.len() - 1;
        drop(chunks);
        self.wake();
        number
    }

    /// Says what the turn keeps beside its chunks by now.
    pub fn keeps(&self, bytes: usize) {
        self.turn_bytes.set(bytes);
        self.measure();
    }

    fn measure(&self) {
        let bytes = self.turn_bytes.get() + self.chunk_bytes.get();
        let fits = bytes <= MAX_TURN_BYTES && self.reservation.resize(bytes.max(MIN_TURN_BYTES));
        self.is_over_limit.set(!fits);
    }

    /// Whether it holds more than there is room for.
    pub fn is_over_limit(&self) -> bool {
        self.is_over_limit.get()
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

    /// Notes that a listener took a chunk.
    pub fn was_read(&self) {
        self.reads.set(self.reads.get() + 1);
    }

    /// Whether its listeners were cut off, now or before.
    fn look_at_listeners(&self) -> bool {
        let (seen, looks) = self.silent_looks.get();
        let reads = self.reads.get();
        let looks = if reads == seen { looks + 1 } else { 0 };
        self.silent_looks.set((reads, looks));
        if looks < MAX_SILENT_LOOKS {
            return false;
        }
        self.is_cut_short.set(true);
        self.chunks.take();
        self.reservation.resize(0);
        true
    }

    /// Whether chunks that nobody took in time are gone.
    pub fn is_cut_short(&self) -> bool {
        self.is_cut_short.get()
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
