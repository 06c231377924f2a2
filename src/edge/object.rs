//! The Durable Object: one agent.
//!
//! This module binds the class without the worker crate's macro. The macro copies a response into
//! Rust bytes; here an answer that SQLite created stays in JavaScript until it is sent.

mod answering;
mod background;
mod calls;
mod files;
mod granted;
mod incoming;
mod leases;
mod leasing;
mod membership;
mod name;
mod opening;
mod recovery;
mod tables;
mod tracing;

use std::cell::{Cell, OnceCell};
use std::rc::{Rc, Weak};

use js_sys::{JsString, Promise};
use wasm_bindgen::prelude::*;
use worker::worker_sys::DurableObjectState;
use worker::{Env, web_sys};

use self::incoming::Incoming;
use self::leases::Leases;
use self::name::AgentName;
use super::host::Runtime;
use super::outbound::Bindings;
use super::request_log::{RequestLog, RequestNote};
use super::sockets::{self, Socket, Sockets};
use super::storage::{ObjectStorage, Sqlite, settle};
use super::{policy, tasks};
use access::{Caller, Policy};
use api::dispatch::follow_up;
use api::jobs::{self, AlarmTime};
use api::mcp::Clients;
use api::operation::Agent;
use api::request::{EntryPoint, Request};
use api::socket;
use api::table::RULES;
use base::background::{Background as _, CHECK_AFTER_MS, JobKind, SHORT_DELAY_MS};
use base::budget::Reservation;
use base::error::Result;
use base::host::Host as _;
use base::ids::Id;
use base::tokens::TokenCounter;
use base::trace::{self, Trace};
use chat::frames::incoming::MAX_FRAME_BYTES;
use chat::run::broadcast_throttle::{BroadcastThrottle, MessageChange};
use chat::run::cycle::run;
use chat::run::in_flight_work::InFlightWork;
use chat::run::running_turns::{Audience as _, RunningTurns};
use chat::run::work::TurnWork;
use context::compaction::auto::CompactionTracker;
use directory::joining::Joining;
use lifecycle::pending_import::forget as forget_import;
use lifecycle::transfer::cpu::CpuAllowance;

#[wasm_bindgen]
pub struct SessionAgent {
    /// Shared with the work that continues after an answer.
    object: Rc<Object>,
}

struct Object {
    /// The object itself, for turns that operations begin.
    me: Weak<Object>,
    state: DurableObjectState,
    storage: ObjectStorage,
    policy: Rc<Policy>,
    log: Rc<RequestLog>,
    outbound: Bindings,
    sockets: Sockets,
    name: AgentName,
    /// How the class counts tokens, if it does. Set once anything has entered.
    counter: OnceCell<Option<TokenCounter>>,
    /// The CPU time that files may use, until the object calls itself.
    files_cpu: CpuAllowance,
    /// Whether the tables are known to have this build's schema.
    is_migrated: Cell<bool>,
    compactions: CompactionTracker,
    turns: RunningTurns,
    work: InFlightWork,
    /// The turns whose models the Worker in front waits for.
    leases: Leases,
    clients: Clients,
    throttle: BroadcastThrottle,
    joining: Joining,
    alarm: AlarmTime,
}

#[wasm_bindgen]
impl SessionAgent {
    #[wasm_bindgen(constructor)]
    pub fn new(state: DurableObjectState, env: Env) -> Result<Self, JsValue> {
        let sockets = Sockets::new(JsValue::from(&state).unchecked_into());
        let storage = ObjectStorage::of(&state)?;
        let name = AgentName::new(&state.id()?, &env, &Sqlite::new(&storage))?;
        let object = Rc::new_cyclic(|me| Object {
            me: Weak::clone(me),
            storage,
            policy: policy(&env),
            log: RequestLog::of(&env),
            outbound: Bindings::new(&env),
            sockets,
            name,
            counter: OnceCell::new(),
            files_cpu: CpuAllowance::default(),
            is_migrated: Cell::new(false),
            compactions: CompactionTracker::default(),
            turns: RunningTurns::default(),
            work: InFlightWork::default(),
            leases: Leases::default(),
            clients: Clients::default(),
            throttle: BroadcastThrottle::default(),
            joining: Joining::default(),
            alarm: AlarmTime::default(),
            state,
        });
        Ok(Self { object })
    }

    /// `body`: the request's body, if it is short; it was read before. `granted`: the rights that a
    /// class that extends this one gives the request, as JSON.
    pub fn fetch(
        &self,
        request: web_sys::Request,
        body: Option<Vec<u8>>,
        granted: Option<String>,
    ) -> Promise {
        let object = Rc::clone(&self.object);
        let incoming = Rc::new(Incoming::new(request, body, granted, &object.policy));
        tasks::promise(self.object.working(async move {
            let answer = match &incoming.outbox {
                Some(outbox) => object.answer_message(&incoming, outbox).await,
                None => object.answer(&incoming).await,
            };
            answer.map(JsValue::from)
        }))
    }

    /// `is_own`: the call comes from a class that extends this one, in this same object.
    pub fn call(
        &self,
        operation: JsValue,
        json: JsValue,
        options: JsValue,
        is_own: bool,
    ) -> Promise {
        let object = Rc::clone(&self.object);
        tasks::promise(
            self.object
                .working(async move { object.call(&operation, json, &options, is_own).await }),
        )
    }

    /// A read by a class that extends this one, in this same object: the answer, or the failure as
    /// an `Error`. `undefined`: the read must wait for something, and `call` runs it.
    #[wasm_bindgen(js_name = callNow)]
    pub fn call_now(&self, operation: JsValue, json: JsValue) -> JsValue {
        let object = Rc::clone(&self.object);
        tasks::run_now(self.object.working(async move {
            object
                .call(&operation, json, &JsValue::UNDEFINED, true)
                .await
        }))
        .map_or(JsValue::UNDEFINED, |answer| {
            answer.unwrap_or_else(|refusal| refusal)
        })
    }

    /// Forgets what was read, because the class has written. `may_be_rolled_back`: a transaction of the
    /// class has ended. If it was rolled back, so was an alarm that was set in it.
    #[wasm_bindgen(js_name = forgetReads)]
    pub fn forget_reads(&self, may_be_rolled_back: bool) {
        self.object.storage.read_cache().clear();
        if may_be_rolled_back {
            self.object.alarm.clear();
        }
    }

    /// Keeps nothing that it reads, because another instance takes over.
    #[wasm_bindgen(js_name = stopCaching)]
    pub fn stop_caching(&self) {
        self.object.storage.read_cache().disable();
    }

    /// Runs the background work that is due.
    pub fn alarm(&self) -> Promise {
        let object = Rc::clone(&self.object);
        tasks::promise(
            self.object
                .working(async move { object.wake().await.map(|()| JsValue::UNDEFINED) }),
        )
    }

    #[wasm_bindgen(js_name = webSocketMessage)]
    pub fn web_socket_message(&self, socket: Socket, message: JsValue) -> Promise {
        let object = Rc::clone(&self.object);
        tasks::promise(self.object.working(async move {
            object.receive(&socket, message).await;
            Ok(JsValue::UNDEFINED)
        }))
    }

    #[wasm_bindgen(js_name = webSocketClose)]
    pub fn web_socket_close(&self, socket: Socket) {
        self.object.sockets.forget_known();
        self.object.lose_lease_of(&socket);
        sockets::close_with(&socket, 1000, "");
    }

    #[wasm_bindgen(js_name = webSocketError)]
    pub fn web_socket_error(&self, socket: Socket) {
        self.object.sockets.forget_known();
        self.object.lose_lease_of(&socket);
        sockets::close_with(&socket, 1011, "");
    }
}

/// The runtime drops the object when it evicts it from memory.
impl Drop for SessionAgent {
    fn drop(&mut self) {
        self.object.leases.drop_all();
    }
}

impl Object {
    async fn wake(self: &Rc<Self>) -> Result<(), JsValue> {
        self.alarm.clear();
        let db = Sqlite::new(&self.storage);
        if let Err(error) = self.open_tables(&db) {
            self.log(&error);
            // The runtime retries an alarm that fails.
            return Err(JsValue::from_str(error.code.name()));
        }
        if !self.is_migrated.get() {
            // The agent was destroyed after the alarm was set.
            return Ok(());
        }
        self.handle_tables_opened();
        self.turns.checks.set_recovery_due(false);
        self.lose_silent_leases();
        self.join_later();
        jobs::wake(&self.own_agent(&db)).await;
        Ok(())
    }

    async fn receive(self: &Rc<Self>, socket: &Socket, message: JsValue) {
        let text = match message.dyn_into::<JsString>() {
            Ok(text) => text,
            // Only the Worker in front sends bytes.
            Err(bytes) => return self.receive_leased(socket, &bytes),
        };
        let length = text.length() as usize;
        if length > MAX_FRAME_BYTES {
            // Every known frame type has a lower limit, so this frame has no known type.
            return;
        }
        // The request id for an error frame is inside the frame, and no memory is left
        // to parse it.
        let Ok(reservation) = Reservation::for_request(length) else {
            sockets::close_with(
                socket,
                1013,
                "Too many requests are running; try again in 5 seconds.",
            );
            return;
        };
        if let Err(error) = self.handle_frame(socket, &String::from(text)).await {
            self.log(&error);
        }
        drop(reservation);
    }

    /// Starts the work that follows an answer. The alarm for the index survives an eviction.
    fn follow_answer(
        self: &Rc<Self>,
        grown: Option<Id>,
        changed: Option<MessageChange>,
        indexing_continues: bool,
    ) {
        if let Some(changed) = changed {
            self.show(changed);
        }
        let object = Rc::clone(self);
        if let Some(grown) = grown {
            self.run_later(async move { object.follow_up(&grown).await });
        }
        if indexing_continues {
            self.wake_within(SHORT_DELAY_MS);
        }
    }

    async fn handle_frame(self: &Rc<Self>, socket: &Socket, text: &str) -> Result<()> {
        let Some(state) = sockets::find_state(socket) else {
            socket
                .close_with_code_and_reason(1011, "")
                .map_err(sockets::failed)?;
            return Ok(());
        };
        if state.has_expired(Runtime.now_ms()) {
            sockets::close_expired(socket);
            return Ok(());
        }
        let state = sockets::received(socket, state);
        let db = Sqlite::new(&self.storage);
        self.open_tables(&db)?;
        let caller = state.caller();
        if caller.only_session().is_some() {
            db.bypass_cache();
        }
        let note = RequestNote::begin(&self.log);
        note.set_operation("socketFrame");
        let blank = self.blank(&db);
        let agent = Agent {
            db: self.readable(&db, &blank),
            caller: &caller,
            ..self.own_agent(&db)
        };
        let trace = self.trace_of_frame(&state);
        note.set_trace(trace.as_deref());
        let handling = socket::handle_frame(&agent, &state, text);
        let received = trace::run_in(trace, handling).await;
        let (name, cost) = (self.name.get(), Some(&db.statements));
        match &received {
            Ok(_) => note.answered(name, 200, cost),
            Err(error) => note.refused(name, error, cost),
        }
        self.store_name(&db)?;
        self.recover_once();
        self.join_later();
        self.export_later();
        let received = received?;
        // The turn and the work after the answer begin first, so that they run even if the socket is
        // closed. They send nothing before this function awaits.
        if let Some(work) = received.work {
            self.begin(work);
        }
        self.follow_answer(
            received.grown,
            received.changed,
            received.indexing_continues,
        );
        if let Some(state) = &received.state {
            sockets::store_state(socket, state).map_err(sockets::failed)?;
        }
        // Another frame may have changed the state in the meantime.
        let state = sockets::find_state(socket).unwrap_or(state);
        for reply in received.replies {
            sockets::send(socket, &state, &reply).map_err(sockets::failed)?;
        }
        self.clear_after(&db, received.empties_storage, &received.purged)
            .await
    }
}

impl Object {
    /// Starts the work after the current code ends, and keeps the object alive for it.
    fn run_later(&self, work: impl Future<Output = ()> + 'static) {
        // `wait_until` fails only if the object no longer exists, and then the work doesn't either.
        let work = self.working(work);
        let _ = self.state.wait_until(&tasks::promise_later(work));
    }

    /// Runs a turn to its end, even if its client disconnects.
    fn begin(self: &Rc<Self>, work: TurnWork) {
        // The alarm is set concurrently: the model call does not wait for it.
        self.wake_within(CHECK_AFTER_MS);
        let object = Rc::clone(self);
        self.run_later(async move {
            if matches!(work, TurnWork::Resume(_))
                && let Err(error) = settle(&object.storage).await
            {
                // The turn's listeners still receive its end.
                object.log(&error);
            }
            let db = Sqlite::new(&object.storage);
            let grown = run(&object.own_agent(&db), work).await;
            object.recover_once();
            // The turn's model may have deleted something.
            object.clear_left(&db).await;
            object.follow_up(&grown).await;
        });
    }

    /// Begins the work that an earlier activation left, once. This happens after the request that
    /// woke the object, so that the request's own turn is not among the interrupted ones.
    fn recover_once(&self) {
        if self.turns.checks.take_recovery_due() {
            let db = Sqlite::new(&self.storage);
            jobs::begin(&self.own_agent(&db));
        }
    }

    fn entry_point(&self) -> EntryPoint<'_> {
        EntryPoint {
            policy: &self.policy,
            host: &Runtime,
            sampler: self.find_sampler(),
        }
    }

    /// The agent, as a request sees it.
    fn agent<'a>(&'a self, db: &'a Sqlite<'_>, request: &'a Request) -> Agent<'a> {
        Agent {
            caller: &request.caller,
            via: &request.via,
            ..self.own_agent(db)
        }
    }

    /// The agent, as its own work sees it.
    fn own_agent<'a>(&'a self, db: &'a Sqlite<'_>) -> Agent<'a> {
        Agent {
            name: self.name.get(),
            db,
            host: &Runtime,
            operations: RULES,
            forget_import,
            policy: &self.policy,
            caller: &Caller::Owner,
            outbound: &self.outbound,
            deployed: self.outbound.deployed(),
            compactions: &self.compactions,
            turns: &self.turns,
            work: &self.work,
            audience: &self.sockets,
            starter: self,
            background: self,
            recovery: self,
            via: &[],
            body: None,
        }
    }

    async fn follow_up(self: &Rc<Self>, grown: &Id) {
        let db = Sqlite::new(&self.storage);
        let agent = self.own_agent(&db);
        let trace = Trace::of_request(None, self.find_sampler(), &Runtime).map(Rc::new);
        let began_at = Runtime.now_ms();
        // Sets the alarm of the learning pass, which must not wait for a summary's model.
        self.start(JobKind::Learning);
        if let Err(error) = trace::run_in(trace.clone(), follow_up(&agent, grown)).await {
            self.log(&error);
        }
        if self.compactions.take_compacted(grown) {
            self.record_compaction(trace.as_deref(), grown, began_at);
            if self.sockets.is_watching(grown) {
                self.show(MessageChange::of_all(grown.clone()));
            }
        }
        self.export_later();
    }
}
