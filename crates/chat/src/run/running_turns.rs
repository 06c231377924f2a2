//! The turns that run in this activation of the object, and their listeners.
//!
//! A turn writes its chunks into one buffer. Each listener reads from the buffer at its own
//! pace, so a client that doesn't read delays nobody and takes no extra memory. This module
//! is only a cache: the tables store everything that must survive an eviction.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};

use crate::frames::outgoing::{FrameHeader, TurnOutcome};
use crate::request::api_turn::ApiTurn;
use crate::request::queued_requests::MAX_WAITING;
pub use crate::run::audience::{Audience, ClientReply};
use crate::run::awaited::Awaited;
pub use crate::run::awaited::TurnStart;
use crate::run::checks::TurnChecks;
use crate::stream::answer_events::AnswerEvent;
use crate::stream::problem::StreamProblem;
use crate::turn::Turn;
use crate::turn::report::TurnReport;
use base::budget::{Reservation, TURNS};
use base::error::{Code, Error, Result};
use base::ids::Id;

/// The most turns of one agent that may run concurrently.
pub const MAX_TURNS: usize = 256;

/// The most bytes of one turn in memory: its messages, and its chunks, which take at least
/// as many bytes again.
pub const MAX_TURN_BYTES: usize = 16 << 20;

/// The bytes that are reserved for every turn, so that long turns never cause a short one
/// to fail. For 256 turns that is 8 MiB, a third of the memory for all turns.
const MIN_TURN_BYTES: usize = 32 << 10;

/// The bytes that a chunk takes besides its text: a pointer and reference counts.
const CHUNK_BYTES: usize = 32;

/// The bytes that an event takes besides its texts.
const EVENT_BYTES: usize = 96;

/// A finished turn's listeners are dropped after this many checks in a row without
/// progress. The object checks every ten seconds, and the first check only records the
/// state, so listeners have half a minute.
const MAX_SILENT_CHECKS: u32 = 2;

/// A turn that has not started yet, shared with the callers that wait for it.
pub type AwaitedTurn = Awaited<RunningTurn>;

#[derive(Default)]
pub struct RunningTurns {
    running: RefCell<HashMap<String, Rc<RunningTurn>>>,
    /// Finished turns with active listeners.
    finished: RefCell<Vec<Weak<RunningTurn>>>,
    /// Finished turns that were offered to a socket, which had not acknowledged them when
    /// they ended.
    offered: RefCell<Vec<Rc<RunningTurn>>>,
    /// Turns that have not started yet and that a caller waits for.
    awaited: RefCell<Vec<Weak<AwaitedTurn>>>,
    /// The sessions of requests that wait for the end of a turn without storing anything.
    queued_sessions: RefCell<Vec<Weak<Id>>>,
    /// When this activation checks for interrupted turns and slow listeners.
    pub checks: TurnChecks,
}

impl RunningTurns {
    pub fn find(&self, session_id: &Id) -> Option<Rc<RunningTurn>> {
        self.running.borrow().get(session_id.as_str()).cloned()
    }

    /// The running turn that this request started.
    pub fn find_of_request(&self, request: &str) -> Option<Rc<RunningTurn>> {
        let running = self.running.borrow();
        running
            .values()
            .find(|turn| turn.is_of_request(request))
            .cloned()
    }

    /// Stops the turn of a session, if one is running.
    pub fn cancel(&self, session_id: &Id) {
        if let Some(running) = self.find(session_id) {
            running.cancel();
        }
    }

    /// Stops the turn of a session and cancels its queued turns, because the session's
    /// messages are deleted.
    pub fn cancel_with_waiting(&self, session_id: &Id) {
        self.cancel(session_id);
        self.offered
            .borrow_mut()
            .retain(|turn| turn.session_id != *session_id);
        self.abandon_all(session_id);
    }

    /// The number of running turns.
    pub fn running(&self) -> usize {
        self.running.borrow().len()
    }

    /// Whether any turn is running or still has listeners.
    pub fn is_busy(&self) -> bool {
        self.finished
            .borrow_mut()
            .retain(|turn| turn.strong_count() > 0);
        !self.running.borrow().is_empty() || !self.finished.borrow().is_empty()
    }

    /// The sessions with a running turn.
    pub fn sessions(&self) -> Vec<String> {
        self.running.borrow().keys().cloned().collect()
    }

    /// How many of the running turns were interrupted and recovered.
    pub fn count_resumed(&self) -> usize {
        let running = self.running.borrow();
        running.values().filter(|turn| turn.was_cut_off).count()
    }

    /// Drops the chunks of finished turns whose listeners have stopped reading.
    pub fn disconnect_silent(&self) {
        self.finished
            .borrow_mut()
            .retain(|turn| turn.upgrade().is_some_and(|turn| !turn.check_listeners()));
        self.offered
            .borrow_mut()
            .retain(|turn| turn.problem().is_none());
    }

    /// Stops all turns, because their log no longer exists. They write nothing more.
    pub fn cancel_all(&self) {
        for running in self.running.borrow().values() {
            running.has_lost_log.set(true);
            running.cancel();
        }
        self.offered.take();
        for awaited in self.awaited.take().iter().filter_map(Weak::upgrade) {
            awaited.resolve(TurnStart::Never(None));
        }
    }

    /// Queues a request that waits for the end of its session's turn, with nothing stored,
    /// until its client disconnects. `None`: the queue is full.
    pub fn enqueue(&self, session_id: &Id) -> Option<Rc<Id>> {
        let mut queued_sessions = self.queued_sessions.borrow_mut();
        queued_sessions.retain(|queued_session| queued_session.strong_count() > 0);
        let waiting = queued_sessions.iter().filter_map(Weak::upgrade);
        if waiting
            .filter(|queued_session| **queued_session == *session_id)
            .count()
            >= MAX_WAITING
        {
            return None;
        }
        let queued_session = Rc::new(session_id.clone());
        queued_sessions.push(Rc::downgrade(&queued_session));
        Some(queued_session)
    }

    /// Registers a caller who waits for the start of a turn.
    pub fn wait_for(&self, session_id: &Id, turn_id: &str) -> Rc<AwaitedTurn> {
        let mut awaited = self.awaited.borrow_mut();
        awaited.retain(|turn| turn.strong_count() > 0);
        let mut turns = awaited.iter().filter_map(Weak::upgrade);
        if let Some(turn) = turns.find(|turn| turn.is_of(session_id, turn_id)) {
            return turn;
        }
        let turn = Rc::new(AwaitedTurn::new(session_id, turn_id));
        awaited.push(Rc::downgrade(&turn));
        turn
    }

    /// Notifies the callers that wait for a turn that it will not start. `error` is the
    /// reason; `None`: its message was withdrawn.
    pub fn abandon(&self, session_id: &Id, turn_id: &str, error: Option<&Error>) {
        self.resolve_all(
            |turn| turn.is_of(session_id, turn_id),
            || TurnStart::Never(error.cloned()),
        );
    }

    /// Cancels all queued turns of a session.
    fn abandon_all(&self, session_id: &Id) {
        self.resolve_all(|turn| turn.is_in(session_id), || TurnStart::Never(None));
    }

    fn resolve_all(
        &self,
        is_eligible: impl Fn(&AwaitedTurn) -> bool,
        start: impl Fn() -> TurnStart<RunningTurn>,
    ) {
        self.awaited.borrow_mut().retain(|turn| {
            let Some(turn) = turn.upgrade() else {
                return false;
            };
            let is_eligible = is_eligible(&turn);
            if is_eligible {
                turn.resolve(start());
            }
            !is_eligible
        });
    }

    /// Reserves memory for another turn, which takes at least `bytes`. Must be called
    /// before anything is written.
    pub fn reserve(&self, bytes: usize) -> Result<Reservation> {
        if self.running.borrow().len() < MAX_TURNS {
            return Reservation::take(&TURNS, bytes.max(MIN_TURN_BYTES), "Running turns");
        }
        Err(Error::new(
            Code::RateLimited,
            format!("This agent has {MAX_TURNS} turns running, which is the limit. Try again when some have ended."),
        )
        .with_retry_after(5))
    }

    /// Registers the turn of a session. The table of turns ensures that it is the only one.
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
            question_id: turn.parent_id.clone(),
            report: RefCell::default(),
            api: turn.api.clone(),
            events: RefCell::default(),
            chunks: RefCell::default(),
            chunk_bytes: Cell::new(0),
            turn_bytes: Cell::new(0),
            replayed: RefCell::default(),
            is_over_limit: Cell::new(false),
            problem: Cell::new(None),
            reservation,
            outcome: Cell::new(None),
            is_cancelled: Cell::new(false),
            has_lost_log: Cell::new(false),
            was_broadcast: Cell::new(false),
            reads: Cell::new(0),
            silent_checks: Cell::new((0, 0)),
            wakers: RefCell::default(),
        });
        self.running
            .borrow_mut()
            .insert(turn.session_id.as_str().to_owned(), Rc::clone(&running));
        self.resolve_all(
            |awaited| awaited.is_of(&turn.session_id, &turn.id),
            || TurnStart::Running(Rc::clone(&running)),
        );
        running
    }

    pub fn end(&self, running: &RunningTurn, outcome: TurnOutcome, report: Result<TurnReport>) {
        running.report.replace(Some(report));
        running.outcome.set(Some(outcome));
        // If the session was deleted and created again, its entry may belong to another
        // turn.
        self.running
            .borrow_mut()
            .retain(|_, other| !std::ptr::eq(Rc::as_ptr(other), std::ptr::from_ref(running)));
        running.wake();
    }

    /// Forgets a running turn whose driver was dropped in the middle of an answer. The turn itself
    /// is stored, and is recovered as after an eviction.
    pub fn interrupt(&self, running: &RunningTurn) {
        let lost = Error::new(
            Code::ModelFailed,
            "The turn was interrupted and continues. Send the same request again to wait for it.",
        );
        running.problem.set(Some(StreamProblem::Interrupted));
        self.end(running, TurnOutcome::Error, Err(lost));
    }

    /// Tracks a finished turn while listeners still read its chunks. `is_offered`: a socket
    /// has yet to acknowledge the turn, and then reads its chunks.
    pub fn retain_finished(&self, running: &Rc<RunningTurn>, is_offered: bool) {
        self.finished.borrow_mut().push(Rc::downgrade(running));
        if is_offered && !running.has_lost_log() {
            self.offered.borrow_mut().push(Rc::clone(running));
        }
    }

    /// A finished turn whose chunks are stored for sockets to which it was offered.
    pub fn find_offered(&self, session_id: &Id, request_id: &str) -> Option<Rc<RunningTurn>> {
        let offered = self.offered.borrow();
        let matches = |turn: &&Rc<RunningTurn>| {
            turn.session_id == *session_id && turn.request_id == request_id
        };
        offered.iter().find(matches).cloned()
    }
}

/// The events that replay the start of a message, and their memory reservation.
pub struct ReplayedMessage {
    pub events: String,
    _reservation: Reservation,
}

/// A running turn, shared with its listeners.
pub struct RunningTurn {
    pub session_id: Id,
    pub request_id: String,
    pub message_id: String,
    pub is_continuation: bool,
    /// The event that the answer follows.
    pub question_id: Option<Id>,
    /// The report of a finished turn. An error: the turn's end could not be written.
    report: RefCell<Option<Result<TurnReport>>>,
    /// Set if a request in a provider's API started the turn.
    pub api: Option<Rc<ApiTurn>>,
    /// The model's output, for listeners that use that API.
    events: RefCell<Vec<AnswerEvent>>,
    chunks: RefCell<Vec<Rc<str>>>,
    chunk_bytes: Cell<usize>,
    /// The bytes that the turn uses besides its chunks.
    turn_bytes: Cell<usize>,
    /// The turn's message before the turn, for listeners that resume: one copy for all of
    /// them.
    replayed: RefCell<Vec<Rc<ReplayedMessage>>>,
    /// Released with the last listener.
    reservation: Reservation,
    is_over_limit: Cell<bool>,
    /// Why listeners receive an incomplete stream.
    problem: Cell<Option<StreamProblem>>,
    outcome: Cell<Option<TurnOutcome>>,
    is_cancelled: Cell<bool>,
    has_lost_log: Cell<bool>,
    /// Messages of others were broadcast to the session's sockets while the turn ran.
    was_broadcast: Cell<bool>,
    /// The turn was interrupted and recovered.
    was_cut_off: bool,
    /// `reads` counts the chunks that listeners read. `silent_checks` is that count at the
    /// last check, and the number of checks since it changed.
    reads: Cell<u64>,
    silent_checks: Cell<(u64, u32)>,
    /// Wakers of all listeners that wait for a chunk or a cancellation.
    wakers: RefCell<Vec<Waker>>,
}

impl RunningTurn {
    /// Whether this request in a provider's API started the turn.
    pub fn is_of_request(&self, request: &str) -> bool {
        self.api.as_ref().is_some_and(|api| api.request == request)
    }

    pub fn frame_header(&self, is_replay: bool) -> FrameHeader<'_> {
        FrameHeader {
            id: &self.request_id,
            is_continuation: self.is_continuation,
            is_replay,
        }
    }

    /// Adds a chunk and returns its number.
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

    /// Adds model output for listeners that use a provider's API.
    pub fn push_event(&self, event: AnswerEvent) {
        if self.api.is_none() {
            return;
        }
        self.chunk_bytes
            .set(self.chunk_bytes.get() + event.bytes() + EVENT_BYTES);
        self.measure();
        self.events.borrow_mut().push(event);
        self.wake();
    }

    pub fn event(&self, index: usize) -> Option<AnswerEvent> {
        self.events.borrow().get(index).cloned()
    }

    /// Waits for the event with this index; `None`: the turn ended before it.
    pub async fn listen_event(&self, index: usize) -> Option<AnswerEvent> {
        poll_fn(|context| {
            if let Some(event) = self.event(index) {
                return Poll::Ready(Some(event));
            }
            if self.outcome.get().is_some() {
                return Poll::Ready(None);
            }
            self.wakers.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Sets the bytes that the turn now uses besides its chunks.
    pub fn set_retained_bytes(&self, bytes: usize) {
        self.turn_bytes.set(bytes);
        self.measure();
    }

    fn measure(&self) {
        let bytes = self.turn_bytes.get() + self.chunk_bytes.get();
        let fits = bytes <= MAX_TURN_BYTES && self.reservation.resize(bytes.max(MIN_TURN_BYTES));
        self.is_over_limit.set(!fits);
    }

    /// `None`: the turn is running.
    pub fn outcome(&self) -> Option<TurnOutcome> {
        self.outcome.get()
    }

    /// Whether the turn uses more bytes than allowed.
    pub fn is_over_limit(&self) -> bool {
        self.is_over_limit.get()
    }

    pub fn chunk(&self, index: usize) -> Option<Rc<str>> {
        self.chunks.borrow().get(index).cloned()
    }

    pub fn chunks_so_far(&self) -> usize {
        self.chunks.borrow().len()
    }

    /// Waits for the chunk with this index; `None`: the turn ended before it.
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

    /// Waits until the turn is over.
    pub async fn ends(&self) -> Result<TurnReport> {
        poll_fn(|context| {
            if let Some(report) = &*self.report.borrow() {
                return Poll::Ready(report.clone());
            }
            self.wakers.borrow_mut().push(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Stores events that listeners receive first, for as long as the turn's chunks exist.
    /// Refuses them if there is no memory.
    pub fn replay(&self, events: String) -> Result<Weak<ReplayedMessage>> {
        let mut replayed = self.replayed.borrow_mut();
        let found = replayed.iter().find(|known| known.events == events);
        if let Some(known) = found {
            return Ok(Rc::downgrade(known));
        }
        let reservation = Reservation::take(&TURNS, events.len(), "Running turns")?;
        let new = Rc::new(ReplayedMessage {
            events,
            _reservation: reservation,
        });
        replayed.push(Rc::clone(&new));
        Ok(Rc::downgrade(&new))
    }

    /// Records that a listener read a chunk.
    pub fn was_read(&self) {
        self.reads.set(self.reads.get() + 1);
    }

    /// Checks for silent listeners. If they were silent for too long, drops the chunks and
    /// returns `true`.
    fn check_listeners(&self) -> bool {
        let (reads_before, checks) = self.silent_checks.get();
        let reads = self.reads.get();
        let checks = if reads == reads_before { checks + 1 } else { 0 };
        self.silent_checks.set((reads, checks));
        if checks < MAX_SILENT_CHECKS {
            return false;
        }
        self.problem.set(Some(StreamProblem::TooSlow));
        self.chunks.take();
        self.events.take();
        self.replayed.take();
        self.reservation.resize(0);
        true
    }

    /// Why the stream is incomplete; `None`: it is not.
    pub fn problem(&self) -> Option<StreamProblem> {
        self.problem.get()
    }

    /// Records that the session's messages were broadcast to its sockets while the turn
    /// runs.
    pub fn record_broadcast(&self) {
        self.was_broadcast.set(true);
    }

    pub fn was_broadcast(&self) -> bool {
        self.was_broadcast.get()
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.get()
    }

    /// Whether the agent was destroyed while the turn ran.
    pub fn has_lost_log(&self) -> bool {
        self.has_lost_log.get()
    }

    pub fn cancel(&self) {
        self.is_cancelled.set(true);
        self.wake();
    }

    /// The result of `work`, or `None` as soon as the turn is canceled.
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
