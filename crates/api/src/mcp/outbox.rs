//! The messages to a client before the answer to its request: progress, logs and questions. The
//! first of them makes the response an event stream.

use std::cell::{Cell, RefCell};

use serde_json::Value;

use base::json;

/// The most bytes of events that the client has not read yet.
const MAX_WAITING_BYTES: usize = 1 << 20;

#[derive(Default)]
pub struct Outbox {
    events: RefCell<String>,
    has_started: Cell<bool>,
}

impl Outbox {
    /// Sends a message. It is dropped if the client reads too slowly.
    pub fn push(&self, message: &Value) {
        self.push_text(&json::text(message));
    }

    fn push_text(&self, line: &str) {
        let mut events = self.events.borrow_mut();
        if events.len() + line.len() > MAX_WAITING_BYTES {
            return;
        }
        self.has_started.set(true);
        events.push_str(&event_of(line));
    }

    /// Sends the answer itself, which is never dropped.
    pub fn finish(&self, answer: &str) {
        self.events.borrow_mut().push_str(&event_of(answer));
    }

    /// As [`Outbox::finish`], for an answer that is an event already.
    pub fn finish_with(&self, event: &str) {
        self.events.borrow_mut().push_str(event);
    }

    /// Sends a comment, which clients ignore.
    pub fn keep_alive(&self) {
        let mut events = self.events.borrow_mut();
        if events.is_empty() {
            events.push_str(": waiting\n\n");
        }
    }

    /// Whether the answer is a stream already.
    pub fn has_started(&self) -> bool {
        self.has_started.get()
    }

    /// The events that were not sent to the client yet.
    pub fn take(&self) -> Option<String> {
        let events = self.events.take();
        (!events.is_empty()).then_some(events)
    }
}

/// A message as one event.
pub fn event_of(json: &str) -> String {
    // A line break outside of JSON's strings is a space.
    let line = json.replace(['\n', '\r'], " ");
    format!("event: message\ndata: {line}\n\n")
}
