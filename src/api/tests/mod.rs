//! The operations against a real SQLite, natively: what a caller sees.

mod access;
mod attacks;
mod carry_over;
mod chat;
mod compaction;
mod config;
mod cut_off;
mod door;
mod early_answers;
mod estimates;
mod events;
mod examples;
mod faults;
mod feed;
mod files;
mod kept;
mod listeners;
mod lists;
mod long_reads;
mod media;
mod memory_agents;
mod memory_blocks;
mod memory_bucket;
mod memory_docs;
mod memory_nonsense;
mod memory_services;
mod messages;
mod model_writes;
mod nonsense;
mod numbers;
mod random_play;
mod search;
mod search_index;
mod sessions;
mod staging;
mod stats;
mod tables;
mod tools;
mod transfer;
mod transfer_memory;
mod transfer_rights;
mod upgrades;
mod vectors;
mod working_context;

use serde_json::{Value, json};

use super::{Agent, dispatch};
use crate::access::{Caller, Policy};
use crate::chat::live::Desk;
use crate::compaction::auto::Watch;
use crate::database::Database;
use crate::error::Error;
use crate::testing::Onlookers;
use crate::testing::{FixedHost, Script, Sqlite, migrated, wait_for};

/// An agent called `alice` with tables and nothing in them.
struct Alice {
    db: Sqlite,
    host: FixedHost,
    policy: Policy,
    caller: Caller,
    outside: Script,
    watch: Watch,
    desk: Desk,
    audience: Onlookers,
    /// The agents that its requests came through.
    via: Vec<String>,
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
            outside: Script::default(),
            watch: Watch::default(),
            desk: Desk::default(),
            audience: Onlookers::default(),
            via: Vec::new(),
        }
    }
}

impl Alice {
    /// One with an empty session `s`.
    fn with_session() -> Self {
        let alice = Self::default();
        alice.ok("createSession", json!({"id": "s"}));
        alice
    }

    fn call(&self, operation: &str, body: Value) -> Result<Value, Error> {
        self.send(&self.db, operation, body.to_string().as_bytes())
    }

    fn send(&self, db: &dyn Database, operation: &str, body: &[u8]) -> Result<Value, Error> {
        let reply = wait_for(dispatch(&self.agent(db), operation, body))?;
        Ok(serde_json::from_str(&reply.body.into_string()).unwrap())
    }

    fn agent<'a>(&'a self, db: &'a dyn Database) -> Agent<'a> {
        Agent {
            name: "alice",
            db,
            host: &self.host,
            policy: &self.policy,
            caller: &self.caller,
            outside: &self.outside,
            watch: &self.watch,
            desk: &self.desk,
            audience: &self.audience,
            via: &self.via,
        }
    }

    fn ok(&self, operation: &str, body: Value) -> Value {
        self.call(operation, body).unwrap()
    }

    /// The code of the error that this call is refused with.
    fn refused(&self, operation: &str, body: Value) -> &'static str {
        self.call(operation, body).unwrap_err().code.name()
    }

    /// Appends user messages with these texts; gives their ids.
    fn say(&self, texts: &[&str]) -> Vec<String> {
        let events: Vec<Value> = texts
            .iter()
            .map(|text| json!({"action": "user_message", "content": text}))
            .collect();
        let outcome = self.ok("appendEvents", json!({"sessionId": "s", "events": events}));
        ids(&outcome["events"])
    }

    /// All events of session `s` (of up to 1,000).
    fn events(&self) -> Vec<Value> {
        let events = self.ok("loadEvents", json!({"sessionId": "s", "limit": 1000}));
        events.as_array().unwrap().clone()
    }
}

fn ids(list: &Value) -> Vec<String> {
    let id = |item: &Value| item["id"].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(id).collect()
}

/// Session `s` with a message of everybody's: `system`, a user's `mine`, the agent's
/// `its`, and a run of events that begins with `run`.
fn conversation() -> Alice {
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
