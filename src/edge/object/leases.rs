//! The leases of an object, and the connections to the Workers that have them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::edge::sockets::{self, Socket};
use crate::edge::tasks::CancellableTask;
use base::ids::Id;
use base::leased_calls::{Lease, LeaseHolder, LeasedCall, ToHolder};
use chat::run::running_turns::RunningTurn;

/// The leases of the turns that run, by their ids.
#[derive(Default)]
pub struct Leases(pub RefCell<BTreeMap<String, Rc<LeasedTurn>>>);

pub struct LeasedTurn {
    pub session_id: Id,
    pub running: Rc<RunningTurn>,
    pub lease: Rc<Lease>,
    pub link: Rc<Link>,
    /// The turn, and what sends its chunks to the Worker.
    pub tasks: [CancellableTask; 2],
    pub last_message_at_ms: Cell<i64>,
}

impl Leases {
    pub fn find(&self, id: &str) -> Option<Rc<LeasedTurn>> {
        self.0.borrow().get(id).cloned()
    }

    /// Drops the turns of an object that is no longer in memory. They are stored, and the object's
    /// next activation recovers them. Without this, each would keep its memory in the isolate.
    pub fn drop_all(&self) {
        for turn in self.0.take().into_values() {
            turn.link.is_cut.set(true);
            turn.tasks.iter().for_each(CancellableTask::cancel);
        }
    }
}

/// The connection to the Worker. Messages wait for its socket.
pub struct Link {
    pub id: String,
    /// Keeps the object awake until the turn waits again.
    keep_awake: Box<dyn Fn(&str)>,
    pub socket: RefCell<Option<Socket>>,
    waiting: RefCell<Vec<String>>,
    pub is_cut: Cell<bool>,
}

impl Link {
    /// `keep_awake` receives the lease's id.
    pub fn new(id: String, keep_awake: Box<dyn Fn(&str)>) -> Self {
        Self {
            id,
            keep_awake,
            socket: RefCell::default(),
            waiting: RefCell::default(),
            is_cut: Cell::new(false),
        }
    }

    pub fn send(&self, message: &ToHolder) {
        if self.is_cut.get() {
            return;
        }
        let Ok(text) = message.render() else {
            return;
        };
        match &*self.socket.borrow() {
            // An error means that the socket is already closed; its close event follows.
            Some(socket) => {
                let _ = socket.send_with_str(&text);
            }
            None => self.waiting.borrow_mut().push(text),
        }
    }

    pub fn connect(&self, socket: Socket) {
        for text in self.waiting.take() {
            let _ = socket.send_with_str(&text);
        }
        self.socket.replace(Some(socket));
    }

    /// Ends the connection. Later messages are for nobody.
    pub fn close(&self) {
        self.is_cut.set(true);
        self.waiting.take();
        if let Some(socket) = self.socket.take() {
            sockets::close_with(&socket, 1000, "");
        }
    }
}

/// The Worker, to the turn.
pub struct Front {
    pub link: Rc<Link>,
    pub running: Rc<RunningTurn>,
}

impl LeaseHolder for Front {
    fn accepts_calls(&self) -> bool {
        self.running.outcome().is_none()
    }

    fn ask(&self, call: LeasedCall) {
        self.link.send(&ToHolder::Ask(call));
    }

    fn abandon(&self, number: u32) {
        self.link.send(&ToHolder::Abandon(number));
    }

    fn resumed(&self) {
        if !self.link.is_cut.get() {
            (self.link.keep_awake)(&self.link.id);
        }
    }
}
