//! What one client hears of a turn: chunks as server-sent events, at the pace at
//! which the client reads them.

use std::rc::Rc;

use crate::chat::chunks::{Chunk, SSE_DONE, sse};
use crate::chat::running_turns::RunningTurn;
use crate::models::FinishReason;

/// A turn's answer, as one client hears it.
pub struct TurnListener {
    running: Option<Rc<RunningTurn>>,
    /// What comes before the chunk of number `next`.
    prelude: Vec<String>,
    next: usize,
    is_over: bool,
}

impl TurnListener {
    pub fn to(running: Rc<RunningTurn>) -> Self {
        Self {
            running: Some(running),
            prelude: Vec::new(),
            next: 0,
            is_over: false,
        }
    }

    /// A client that resumes begins an empty message: these chunks are told first, in
    /// place of the turn's own start.
    pub fn begin_with(&mut self, chunks: &[Chunk]) {
        let message_id = self
            .running
            .as_ref()
            .map(|running| running.message_id.clone());
        let start = Chunk::Start {
            message_id,
            message_metadata: None,
        };
        self.prelude.push(start.json());
        self.prelude.extend(chunks.iter().map(Chunk::json));
        self.next = 1;
    }

    /// The next server-sent events; `None` after the last.
    pub async fn next(&mut self) -> Option<String> {
        if !self.prelude.is_empty() {
            return Some(self.prelude.drain(..).map(|chunk| sse(&chunk)).collect());
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
            let mut events = SSE_DONE.to_owned();
            if running.is_some_and(|running| running.is_cut_short()) {
                events.insert_str(
                    0,
                    &sse(&Chunk::Error {
                        error_text: TOO_SLOW.to_owned(),
                    }
                    .json()),
                );
            }
            return Some(events);
        };
        self.next += 1;
        if let Some(running) = &self.running {
            running.was_read();
        }
        let mut events = sse(&chunk);
        // What else is there already goes along.
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

/// Bytes of one write of a stream, about.
const MAX_EVENTS_BYTES: usize = 64 << 10;

/// What a client hears that took nothing for too long after the turn's end.
const TOO_SLOW: &str =
    "This answer was not read in time. It is whole in the session's history: load that.";

/// A stream that says that nothing is said yet.
pub fn waiting(message_id: String) -> TurnListener {
    let start = Chunk::Start {
        message_id: Some(message_id),
        message_metadata: None,
    };
    let finish = Chunk::Finish {
        finish_reason: FinishReason::ToolCalls,
        message_metadata: None,
    };
    TurnListener {
        running: None,
        prelude: vec![start.json(), finish.json()],
        next: 0,
        is_over: false,
    }
}
