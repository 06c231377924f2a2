//! Sends a turn's chunks to one client as server-sent events, as fast as the client
//! reads them.

use std::rc::{Rc, Weak};

use crate::run::running_turns::{AwaitedTurn, ReplayedMessage, RunningTurn, TurnStart};
use crate::stream::chunks::{Chunk, SSE_DONE, sse};
use crate::stream::problem::StreamProblem;
use base::error::Result;
use models::FinishReason;

/// A turn's answer, as it is sent to one client.
pub struct TurnListener {
    /// The turn that has not started yet.
    awaited: Option<Rc<AwaitedTurn>>,
    running: Option<Rc<RunningTurn>>,
    /// Chunks to send before the chunk of number `next`.
    prelude: Vec<String>,
    /// The turn's message as it was before, and how much of it was sent. The turn keeps the message
    /// for all listeners.
    replayed: Option<(Weak<ReplayedMessage>, usize)>,
    next: usize,
    is_over: bool,
}

/// A stream of server-sent events to one client.
pub trait EventSource {
    /// The next events; `None` after the last.
    fn next_events(&mut self) -> impl Future<Output = Option<String>>;
}

impl EventSource for TurnListener {
    async fn next_events(&mut self) -> Option<String> {
        self.next().await
    }
}

impl TurnListener {
    pub fn to(running: Rc<RunningTurn>) -> Self {
        Self {
            awaited: None,
            running: Some(running),
            prelude: Vec::new(),
            replayed: None,
            next: 0,
            is_over: false,
        }
    }

    /// Waits for the beginning of a turn and then follows the turn.
    pub fn from(awaited: Rc<AwaitedTurn>) -> Self {
        Self {
            awaited: Some(awaited),
            running: None,
            prelude: Vec::new(),
            replayed: None,
            next: 0,
            is_over: false,
        }
    }

    /// Sends these chunks first, instead of the turn's own start: a client that resumes
    /// begins with an empty message.
    pub fn begin_with(&mut self, running: &RunningTurn, chunks: &[Chunk]) -> Result<()> {
        let start = Chunk::Start {
            message_id: Some(running.message_id.clone()),
            message_metadata: None,
        };
        let mut events = sse(&start.json());
        for chunk in chunks {
            events.push_str(&sse(&chunk.json()));
        }
        self.replayed = Some((running.replay(events)?, 0));
        self.next = 1;
        Ok(())
    }

    /// The next piece of the turn's message as it was before. `None`: all of it was sent, or the
    /// turn's chunks no longer exist.
    fn next_replayed(&mut self) -> Option<String> {
        let (replayed, sent) = self.replayed.as_mut()?;
        let piece = replayed.upgrade().and_then(|replayed| {
            let rest = replayed.events.get(*sent..).unwrap_or_default();
            let end = rest.floor_char_boundary(MAX_EVENTS_BYTES);
            rest.get(..end).map(str::to_owned)
        });
        let piece = piece.filter(|piece| !piece.is_empty());
        match &piece {
            Some(piece) => *sent += piece.len(),
            None => self.replayed = None,
        }
        piece
    }

    /// The next server-sent events; `None` after the last.
    pub async fn next(&mut self) -> Option<String> {
        if let Some(awaited) = self.awaited.take() {
            match awaited.wait_for_start().await {
                TurnStart::Running(running) => self.running = Some(running),
                TurnStart::Never(error) => self.prelude.push(
                    match error {
                        Some(error) => Chunk::Error {
                            error_text: error.into_message(),
                        },
                        None => Chunk::Abort { reason: None },
                    }
                    .json(),
                ),
            }
        }
        if !self.prelude.is_empty() {
            return Some(self.prelude.drain(..).map(|chunk| sse(&chunk)).collect());
        }
        if let Some(events) = self.next_replayed() {
            if let Some(running) = &self.running {
                running.was_read();
            }
            return Some(events);
        }
        if self.is_over {
            return None;
        }
        let chunk = match &self.running {
            Some(running) => running.listen(self.next).await,
            None => None,
        };
        let Some(chunk) = chunk else {
            self.is_over = true;
            let running = self.running.take();
            let problem = running.and_then(|running| running.problem());
            return Some(problem.map_or_else(|| SSE_DONE.to_owned(), StreamProblem::render));
        };
        self.next += 1;
        if let Some(running) = &self.running {
            running.was_read();
        }
        let mut events = sse(&chunk);
        // Chunks that are ready already are sent in the same write.
        while let Some(chunk) = self
            .running
            .as_ref()
            .and_then(|running| running.chunk(self.next))
            && events.len() < MAX_EVENTS_BYTES
        {
            events.push_str(&sse(&chunk));
            self.next += 1;
        }
        Some(events)
    }
}

/// The approximate number of bytes in one write of a stream.
const MAX_EVENTS_BYTES: usize = 64 << 10;

/// A stream of an answer that has no content yet.
pub fn left_to_client(message_id: String) -> TurnListener {
    let start = Chunk::Start {
        message_id: Some(message_id),
        message_metadata: None,
    };
    let finish = Chunk::Finish {
        finish_reason: FinishReason::ToolCalls,
        message_metadata: None,
    };
    TurnListener {
        awaited: None,
        running: None,
        prelude: vec![start.json(), finish.json()],
        replayed: None,
        next: 0,
        is_over: false,
    }
}
