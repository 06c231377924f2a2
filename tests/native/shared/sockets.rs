//! The sockets of a session.

use std::cell::{Cell, RefCell};

use api::answers::assert_frame_matches_schema;
use base::ids::Id;
use chat::run::running_turns::Audience;

/// The sockets that watch a session, and the frames that they were sent.
#[derive(Default)]
pub struct RecordedSockets {
    pub are_there: Cell<bool>,
    /// One of them was offered the turn, and has not acknowledged it.
    pub awaits_replay: Cell<bool>,
    pub frames: RefCell<Vec<String>>,
}

impl Audience for RecordedSockets {
    fn send(&self, _: &Id, frame: &str, _: Option<&str>) {
        assert_frame_matches_schema(frame);
        self.frames.borrow_mut().push(frame.to_owned());
    }

    fn is_watching(&self, _: &Id) -> bool {
        self.are_there.get()
    }

    fn awaits_replay(&self, _: &Id) -> bool {
        self.awaits_replay.get()
    }
}
