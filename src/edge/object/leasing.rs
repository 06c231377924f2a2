//! Turns whose models the Worker in front waits for. The object decides what to ask and reads the
//! answer; between two messages of the Worker it may sleep, and costs nothing.
//!
//! The Worker is lost when its socket closes, or when it is silent for too long. Then the object
//! makes the calls itself. A turn whose answer had started is recovered as after an eviction.

use std::cell::Cell;
use std::rc::{Rc, Weak};

use js_sys::Uint8Array;
use wasm_bindgen::JsValue;

use super::Object;
use super::leases::{Front, LeasedTurn, Link};
use crate::edge::host::Runtime;
use crate::edge::http::{self, HttpRequest};
use crate::edge::sockets::{self, Socket};
use crate::edge::storage::Sqlite;
use crate::edge::tasks::{self, CancellableTask};
use access::{FRONT_HEADER, LEASE_HEADER};
use api::route::no_such_route;
use base::background::{Background as _, CHECK_AFTER_MS, JobKind};
use base::host::Host as _;
use base::ids::Id;
use base::leased_calls::{FromHolder, Lease, Loss, ToHolder};
use chat::run::cycle::run;
use chat::run::elsewhere::may_wait_elsewhere;
use chat::run::listener::TurnListener;
use chat::run::work::TurnWork;
use chat::stream::chunks::HEADERS;

/// How long the Worker may be silent. It sends something every 5 seconds.
const SILENCE_MS: i64 = 16_000;

impl Object {
    /// Whether the Worker in front offers to wait for the model.
    pub(super) fn is_front(&self, head: &HttpRequest) -> bool {
        let Some(signature) = head.find_header(FRONT_HEADER) else {
            return false;
        };
        self.policy
            .is_front(self.name.get(), Runtime.now_ms(), Some(&signature))
    }

    pub(super) fn may_lease(&self, work: &TurnWork, db: &Sqlite<'_>) -> bool {
        // If this can't be found out, the turn itself reports why.
        may_wait_elsewhere(&self.own_agent(db), work.turn()).unwrap_or(false)
    }

    /// Begins a turn whose models the Worker waits for. The answer has only the id of the lease,
    /// and the headers of the answer to the client.
    pub(super) fn begin_leased(
        self: &Rc<Self>,
        work: TurnWork,
        db: &Sqlite<'_>,
    ) -> http::ResponseResult {
        // The alarm finds the turn if the Worker never connects.
        self.wake_within(CHECK_AFTER_MS);
        let id = Id::mint_turn(&Runtime).as_str().to_owned();
        let me = Weak::clone(&self.me);
        let keep_awake = move |id: &str| {
            if let Some(object) = me.upgrade()
                && let Some(turn) = object.leases.find(id)
            {
                let lease = Rc::clone(&turn.lease);
                object.run_later(async move { lease.until_idle().await });
            }
        };
        let link = Rc::new(Link::new(id.clone(), Box::new(keep_awake)));
        let running = Rc::clone(work.running());
        let lease = Lease::new(Box::new(Front {
            link: Rc::clone(&link),
            running: Rc::clone(&running),
        }));
        let (object, leased) = (Rc::clone(self), Rc::clone(&lease));
        let turn = tasks::start_cancellable(self.working(async move {
            let db = Sqlite::new(&object.storage);
            let agent = object.own_agent(&db);
            let grown = leased.run(run(&agent, work)).await;
            leased.end();
            object.recover_once();
            // The turn's model may have deleted something.
            object.clear_left(&db).await;
            object.follow_up(&grown).await;
            leased.finish();
        }));
        let (me, to_worker, ending) = (Weak::clone(&self.me), Rc::clone(&link), Rc::clone(&lease));
        let mut listener = TurnListener::to(Rc::clone(&running));
        let chunks = tasks::start_cancellable(async move {
            while let Some(events) = listener.next().await {
                to_worker.send(&ToHolder::Events(events));
            }
            to_worker.send(&ToHolder::Over);
            // A message that was queued in the meantime is another turn, which this client does not
            // read.
            ending.end();
            if let Some(object) = me.upgrade() {
                object.leases.0.borrow_mut().remove(&to_worker.id);
            }
        });
        let leased = LeasedTurn {
            session_id: running.session_id.clone(),
            running,
            lease: Rc::clone(&lease),
            link,
            tasks: [turn, chunks],
            last_message_at_ms: Cell::new(Runtime.now_ms()),
        };
        self.leases
            .0
            .borrow_mut()
            .insert(id.clone(), Rc::new(leased));
        self.run_later(async move { lease.until_idle().await });
        let mut headers = HEADERS.to_vec();
        headers.push((LEASE_HEADER, &id));
        http::respond(200, &JsValue::from(""), Some(&db.statements), &headers)
    }

    /// Connects the Worker with its turn.
    pub(super) fn connect_lease(&self, head: &HttpRequest, id: &str) -> http::ResponseResult {
        let signature = head.find_header(FRONT_HEADER);
        let is_holder = self
            .policy
            .holds_lease(self.name.get(), id, signature.as_deref());
        let turn = self
            .leases
            .find(id)
            .filter(|turn| is_holder && turn.link.socket.borrow().is_none());
        let Some(turn) = turn else {
            return http::refuse(&no_such_route(), None);
        };
        let (socket, answer) = self.sockets.open_lease(id)?;
        turn.last_message_at_ms.set(Runtime.now_ms());
        turn.link.connect(socket);
        Ok(answer)
    }

    /// Takes a message of the Worker.
    pub(super) fn receive_leased(self: &Rc<Self>, socket: &Socket, message: &JsValue) {
        let Some(id) = sockets::find_lease(socket) else {
            return;
        };
        let Some(turn) = self.leases.find(&id) else {
            // The turn has ended, or the object was evicted in the meantime.
            sockets::close_with(socket, 1011, "");
            self.recover_after_eviction();
            return;
        };
        turn.last_message_at_ms.set(Runtime.now_ms());
        match FromHolder::parse(&Uint8Array::new(message).to_vec()) {
            Ok(FromHolder::Alive) => {}
            // An answer that nobody waits for was given up.
            Ok(FromHolder::Arrived(number, arrival)) => {
                turn.lease.arrive(number, arrival);
            }
            Err(error) => {
                self.log(&error);
                self.lose(&id);
            }
        }
    }

    /// The Worker's socket was closed.
    pub(super) fn lose_lease_of(self: &Rc<Self>, socket: &Socket) {
        if let Some(id) = sockets::find_lease(socket)
            && !self.lose(&id)
        {
            self.recover_after_eviction();
        }
    }

    /// Gives up Workers that are silent.
    pub(super) fn lose_silent_leases(self: &Rc<Self>) {
        let due = Runtime.now_ms() - SILENCE_MS;
        let leases = self.leases.0.borrow();
        let silent = leases
            .iter()
            .filter(|(_, turn)| turn.last_message_at_ms.get() < due);
        let silent: Vec<String> = silent.map(|(id, _)| id.clone()).collect();
        drop(leases);
        for id in silent {
            self.lose(&id);
        }
    }

    /// Continues a turn without its Worker. `false`: there is no such turn.
    fn lose(self: &Rc<Self>, id: &str) -> bool {
        let Some(turn) = self.leases.find(id) else {
            return false;
        };
        let loss = turn.lease.end();
        self.leases.0.borrow_mut().remove(id);
        turn.link.close();
        if loss == Loss::Answer {
            turn.tasks.iter().for_each(CancellableTask::cancel);
            turn.lease.finish();
            self.turns.interrupt(&turn.running);
            self.sockets.close_all(&turn.session_id);
            self.start(JobKind::Turns);
        }
        true
    }

    /// Recovers the turns of the object's previous activation.
    fn recover_after_eviction(self: &Rc<Self>) {
        let db = Sqlite::new(&self.storage);
        match self.open_tables(&db) {
            Ok(()) => self.recover_once(),
            // The alarm retries.
            Err(error) => self.log(&error),
        }
    }
}
