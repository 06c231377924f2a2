//! An agent for tests: its database, its clock, and scripted answers of the outside.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};

use crate::RecordedSockets;
use access::{Caller, Policy};
use api::defaults;
use api::dispatch::dispatch;
use api::operation::Agent;
use api::table::RULES;
use base::background::{Background, JobKind};
use base::database::Database;
use base::error::Error;
use base::outbound::LocalBoxFuture;
use base::testing::recovery::RecordingRecovery;
use base::testing::{FixedHost, Script, Sqlite, wait_for};
use chat::run::cycle::run;
use chat::run::deployed::Deployed;
use chat::run::in_flight_work::InFlightWork;
use chat::run::running_turns::RunningTurns;
use chat::run::work::{TurnStarter, TurnWork};
use context::compaction::auto::CompactionTracker;
use lifecycle::testing::migrated;

/// The deployed settings, read again: a test may have changed them. They live as long as the test
/// run, like the real ones as long as the isolate.
pub fn deployed(outside: &Script) -> &'static Deployed {
    let file = outside.defaults_file.borrow();
    Box::leak(Box::new(defaults::read(outside, file.as_deref())))
}

/// Turns that operations began in the background.
#[derive(Default)]
pub struct StartedWork {
    pub works: RefCell<VecDeque<TurnWork>>,
    /// How often a restart of the object was requested.
    pub restarts: RefCell<usize>,
    /// The jobs that were started in the background.
    pub started: RefCell<Vec<JobKind>>,
    /// The time of the alarm.
    pub alarm_at: Cell<Option<i64>>,
    /// The alarms that were set without waiting for them.
    pub wakes_within: RefCell<Vec<i64>>,
    /// The failures that were logged.
    pub failures: RefCell<Vec<Error>>,
}

impl StartedWork {
    pub fn take(&self) -> Option<TurnWork> {
        self.works.borrow_mut().pop_front()
    }
}

impl TurnStarter for StartedWork {
    fn begin(&self, work: TurnWork) {
        self.works.borrow_mut().push_back(work);
    }

    fn recover(&self) {}
}

impl Background for StartedWork {
    fn has_tables(&self) -> bool {
        true
    }

    fn start(&self, job: JobKind) {
        self.started.borrow_mut().push(job);
    }

    fn wake_by(&self, at_ms: i64) -> LocalBoxFuture<'_, ()> {
        let known = self.alarm_at.get();
        let at_ms = known.map_or(at_ms, |known| known.min(at_ms));
        self.alarm_at.set(Some(at_ms));
        Box::pin(std::future::ready(()))
    }

    fn fires_by(&self, at_ms: i64, now_ms: i64) -> bool {
        let known = self.alarm_at.get();
        known.is_some_and(|known| (now_ms + 1..=at_ms).contains(&known))
    }

    fn wake_within(&self, ms: i64) {
        self.wakes_within.borrow_mut().push(ms);
    }

    fn keep_alive_until(&self, _is_over: Box<dyn Fn() -> bool>) {}

    fn restart(&self) {
        *self.restarts.borrow_mut() += 1;
    }

    fn show(&self, _session_id: &base::ids::Id) {}

    fn log(&self, failure: &Error) {
        self.failures.borrow_mut().push(failure.clone());
    }
}

/// An agent called `alice`, with tables and without rows.
pub struct Alice {
    pub db: Sqlite,
    pub host: FixedHost,
    pub policy: Policy,
    pub caller: Caller,
    pub outbound: Script,
    pub compactions: CompactionTracker,
    pub turns: RunningTurns,
    pub work: InFlightWork,
    pub audience: RecordedSockets,
    pub starter: StartedWork,
    pub recovery: RecordingRecovery,
    /// The agents that forwarded its requests.
    pub via: Vec<String>,
}

impl Default for Alice {
    fn default() -> Self {
        Self {
            db: migrated(),
            host: FixedHost::default(),
            policy: Policy::new(
                Some("the secret of these tests, long enough".to_owned()),
                None,
            ),
            caller: Caller::Owner,
            outbound: Script::default(),
            compactions: CompactionTracker::default(),
            turns: RunningTurns::default(),
            work: InFlightWork::default(),
            audience: RecordedSockets::default(),
            starter: StartedWork::default(),
            recovery: RecordingRecovery::default(),
            via: Vec::new(),
        }
    }
}

impl Alice {
    /// An agent with an empty session `s`.
    pub fn with_session() -> Self {
        let alice = Self::default();
        alice.ok("createSession", json!({"id": "s"}));
        alice
    }

    pub fn call(&self, operation: &str, body: Value) -> Result<Value, Error> {
        self.send(&self.db, operation, body.to_string().as_bytes())
    }

    pub fn send(&self, db: &dyn Database, operation: &str, body: &[u8]) -> Result<Value, Error> {
        let agent = self.agent(db);
        let reply = self.finish(&agent, dispatch(&agent, operation, body))?;
        Ok(serde_json::from_str(&reply.body.into_string()).unwrap())
    }

    /// Runs a future to its end, and the turns that it begins and waits for.
    pub fn finish<T>(&self, agent: &Agent<'_>, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
                return value;
            }
            let work = self.starter.take().expect("it waits for no turn");
            wait_for(run(agent, work));
        }
    }

    pub fn agent<'a>(&'a self, db: &'a dyn Database) -> Agent<'a> {
        Agent {
            name: "alice",
            db,
            host: &self.host,
            forget_import: lifecycle::pending_import::forget,
            operations: RULES,
            policy: &self.policy,
            caller: &self.caller,
            outbound: &self.outbound,
            deployed: deployed(&self.outbound),
            compactions: &self.compactions,
            turns: &self.turns,
            work: &self.work,
            audience: &self.audience,
            starter: &self.starter,
            background: &self.starter,
            recovery: &self.recovery,
            via: &self.via,
            body: None,
        }
    }

    pub fn ok(&self, operation: &str, body: Value) -> Value {
        self.call(operation, body).unwrap()
    }

    /// The code of the error that refuses this call.
    pub fn refused(&self, operation: &str, body: Value) -> &'static str {
        self.call(operation, body).unwrap_err().code.name()
    }

    /// Appends user messages with these texts, and returns their ids.
    pub fn append_texts(&self, texts: &[&str]) -> Vec<String> {
        let events: Vec<Value> = texts
            .iter()
            .map(|text| json!({"action": "user_message", "content": text}))
            .collect();
        let outcome = self.ok("appendEvents", json!({"sessionId": "s", "events": events}));
        ids(&outcome["events"])
    }

    /// All events of session `s`, up to 1,000.
    pub fn events(&self) -> Vec<Value> {
        let events = self.ok("loadEvents", json!({"sessionId": "s", "limit": 1000}));
        events.as_array().unwrap().clone()
    }
}

pub fn ids(list: &Value) -> Vec<String> {
    let id = |item: &Value| item["id"].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(id).collect()
}

/// An agent whose session `s` has a message of every role: `system`, the user's `mine`,
/// the agent's `its`, and a run of events that begins with `run`.
pub fn conversation() -> Alice {
    let alice = Alice::with_session();
    let message = |id: &str, role: &str| json!({"sessionId": "s", "message": {"id": id, "role": role, "parts": [{"type": "text", "text": id}]}});
    for (id, role) in [("system", "system"), ("mine", "user"), ("its", "assistant")] {
        alice.ok("appendMessage", message(id, role));
    }
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [
            {"action": "user_message", "content": "?"},
            {"id": "run", "action": "agent_message", "content": "a"},
            {"action": "agent_message", "content": "b"},
        ]}),
    );
    alice
}
