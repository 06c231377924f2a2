//! The in-memory state of an object's MCP clients: the log level that each requested, the
//! resources that it subscribed to, and the pending questions. After an eviction, a client
//! gets logs at the default level, a question is repeated with the next call, and an open
//! stream restores its subscriptions.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::rc::{Rc, Weak};
use std::task::{Poll, Waker};

use serde_json::Value;

use super::level::Level;
use super::outbox::Outbox;
use super::shares::{Shared, WhenFull};
use crate::operation::Agent;
use base::host::Host;
use base::ids::Id;
use base::json::{self, RawValue, json};
use base::outbound::in_time;

/// The most clients whose log level is stored. Each takes about 100 bytes.
const MAX_LEVELS: usize = 256;

/// The most pending questions. Each keeps the object awake.
const MAX_QUESTIONS: usize = 32;

/// How long a question waits for a person's answer.
const ANSWER_MS: i64 = 5 * 60_000;

/// The most resources of one stream, or of one session.
pub const MAX_RESOURCES: usize = 32;

/// The most clients whose subscriptions are stored, shared among callers. Each takes up to 64 KiB.
const MAX_SUBSCRIBERS: usize = 64;

/// The most open streams, shared among callers. Each polls the object.
const MAX_STREAMS: usize = 32;

/// A stream that has not polled for this long counts as closed: it polls at least twice a
/// minute.
const STREAM_MS: i64 = 90_000;

/// How often a waiting stream sends a keep-alive: proxies close a stream that is silent for
/// long.
const KEEP_ALIVE_MS: i64 = 15_000;

/// The state of an object's clients.
pub struct Clients {
    levels: RefCell<VecDeque<(String, Level)>>,
    subscribers: RefCell<Shared<Subscriber>>,
    /// When each open stream polled last.
    streams: RefCell<Shared<i64>>,
    questions: RefCell<Vec<Weak<Question>>>,
    /// Signs state that clients store, if the Worker has no secret.
    key: OnceCell<[u8; 32]>,
}

/// The URIs of subscribed resources, each with the last fingerprint that was seen.
pub type Subscribed = BTreeMap<String, Option<String>>;

/// The subscriptions of a client with a handshake.
#[derive(Default)]
struct Subscriber {
    follows: Subscribed,
    /// Canceled subscriptions that a stream may not have seen yet.
    left: BTreeSet<String>,
}

/// A question that was sent to a client on the stream of one of its requests.
struct Question {
    id: String,
    /// The rights of the caller who received the question.
    caller: String,
    answer: RefCell<Option<Value>>,
    waker: RefCell<Option<Waker>>,
    is_answered: Cell<bool>,
}

impl Question {
    async fn answered(&self) -> Value {
        poll_fn(|context| match self.answer.take() {
            Some(answer) => Poll::Ready(answer),
            None => {
                self.waker.replace(Some(context.waker().clone()));
                Poll::Pending
            }
        })
        .await
    }
}

impl Default for Clients {
    fn default() -> Self {
        Self {
            levels: RefCell::default(),
            subscribers: RefCell::new(Shared::new(MAX_SUBSCRIBERS, WhenFull::Forget)),
            streams: RefCell::new(Shared::new(MAX_STREAMS, WhenFull::Refuse)),
            questions: RefCell::default(),
            key: OnceCell::default(),
        }
    }
}

/// A client with a handshake: the rights of its caller, and its session.
pub struct ClientKey {
    pub caller: String,
    pub session: String,
}

impl Clients {
    pub fn set_level(&self, session: &str, level: Level) {
        let mut levels = self.levels.borrow_mut();
        levels.retain(|(other, _)| other != session);
        if levels.len() == MAX_LEVELS {
            levels.pop_front();
        }
        levels.push_back((session.to_owned(), level));
    }

    pub fn level(&self, session: &str) -> Option<Level> {
        let levels = self.levels.borrow();
        levels
            .iter()
            .find(|(other, _)| other == session)
            .map(|(_, level)| *level)
    }

    /// Subscribes a client to a resource. `false`: it has too many subscriptions.
    pub fn subscribe(&self, key: &ClientKey, address: &str, mark: String) -> bool {
        self.with_subscriber(key, |subscriber| {
            let is_known = subscriber.follows.contains_key(address);
            if !is_known && subscriber.follows.len() >= MAX_RESOURCES {
                return false;
            }
            subscriber.left.remove(address);
            let follows = &mut subscriber.follows;
            follows.entry(address.to_owned()).or_insert(Some(mark));
            true
        })
    }

    pub fn unsubscribe(&self, key: &ClientKey, address: &str) {
        self.with_subscriber(key, |subscriber| {
            subscriber.follows.remove(address);
            if subscriber.left.len() < MAX_RESOURCES {
                subscriber.left.insert(address.to_owned());
            }
        });
    }

    /// Merges the client's new and canceled subscriptions into a stream's state, and stores the
    /// result for the next stream.
    pub fn join(&self, key: &ClientKey, known: &mut Subscribed) {
        self.with_subscriber(key, |subscriber| {
            known.retain(|address, _| !subscriber.left.contains(address));
            for (address, mark) in &subscriber.follows {
                if !known.contains_key(address) && known.len() < MAX_RESOURCES {
                    known.insert(address.clone(), mark.clone());
                }
            }
            subscriber.follows.clone_from(known);
        });
    }

    fn with_subscriber<T>(&self, key: &ClientKey, act: impl FnOnce(&mut Subscriber) -> T) -> T {
        let ClientKey { caller, session } = key;
        let mut subscribers = self.subscribers.borrow_mut();
        let mut subscriber = subscribers.take(caller, session).unwrap_or_default();
        let outcome = act(&mut subscriber);
        let is_of_use = !subscriber.follows.is_empty() || !subscriber.left.is_empty();
        if is_of_use {
            subscribers.insert(caller, session, subscriber);
        }
        outcome
    }

    /// Records that a caller's stream polled. `false`: too many others are open.
    pub fn record_stream(&self, caller: &str, stream: &str, now_ms: i64) -> bool {
        let mut streams = self.streams.borrow_mut();
        streams.retain(|polled_ms| now_ms - *polled_ms < STREAM_MS);
        streams.insert(caller, stream, now_ms)
    }

    /// The key of this object's current activation.
    pub fn key(&self, host: &dyn Host) -> &[u8; 32] {
        self.key.get_or_init(|| {
            let mut key = [0; 32];
            host.fill_random(&mut key);
            key
        })
    }

    /// Sends a question to the client on the stream of its own request, and waits for the
    /// answer. `None`: there was no answer in time, or too many questions are pending.
    pub async fn ask(
        &self,
        agent: &Agent<'_>,
        outbox: &Outbox,
        method: &str,
        params: &Value,
    ) -> Option<Value> {
        let question = Rc::new(Question {
            id: Id::mint_turn(agent.host).as_str().to_owned(),
            caller: caller_text(agent),
            answer: RefCell::default(),
            waker: RefCell::default(),
            is_answered: Cell::new(false),
        });
        {
            let mut questions = self.questions.borrow_mut();
            questions.retain(|question| question.strong_count() > 0);
            if questions.len() >= MAX_QUESTIONS {
                return None;
            }
            questions.push(Rc::downgrade(&question));
        }
        outbox.push(&json!({
            "jsonrpc": "2.0", "id": question.id, "method": method, "params": params,
        }));
        for _ in 0..ANSWER_MS / KEEP_ALIVE_MS {
            let pause = agent.outbound.sleep(KEEP_ALIVE_MS);
            if let Some(answer) = in_time(pause, question.answered()).await {
                return Some(answer);
            }
            outbox.keep_alive();
        }
        None
    }

    /// Accepts a client's answer. Only the caller who received the question can answer it,
    /// and only once.
    pub fn accept_answer(&self, agent: &Agent<'_>, id: &str, result: Option<&RawValue>) {
        let Ok(id) = json::decode::<String>(id) else {
            return;
        };
        let questions = self.questions.borrow();
        let live = questions.iter().filter_map(Weak::upgrade);
        let Some(question) = live.into_iter().find(|question| question.id == id) else {
            return;
        };
        if question.caller != caller_text(agent) || question.is_answered.replace(true) {
            return;
        }
        let answer = result.and_then(|result| json::decode_tree(result.get()).ok());
        question.answer.replace(Some(answer.unwrap_or_default()));
        if let Some(waker) = question.waker.take() {
            waker.wake();
        }
    }
}

/// A text that is identical for callers with the same rights.
pub fn caller_text(agent: &Agent<'_>) -> String {
    agent.caller.rights_text()
}
