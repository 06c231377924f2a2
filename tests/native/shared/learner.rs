//! An agent that learns with a scripted model.

use serde_json::{Value, json};

use crate::Alice;
use base::database::Database;
use base::error::Error;
use base::testing::{ScriptedAnswer, wait_for};
use learning::rounds::{TimedRound, learn_if_due};

impl Alice {
    /// An agent with a session `s`, that learns into `facts` by a scripted model.
    pub fn learner(settings: Value) -> Self {
        let alice = Self::with_model();
        alice.ok("createSession", json!({"id": "s"}));
        alice.ok(
            "defineBlock",
            json!({"label": "facts", "kind": "searchable"}),
        );
        let mut learn = json!({"into": "facts"});
        for (name, value) in settings.as_object().unwrap() {
            learn[name] = value.clone();
        }
        alice.ok("configureAgent", json!({"learn": learn}));
        alice
    }

    /// Like [`Self::learner`], with automatic review.
    pub fn trusting() -> Self {
        Self::learner(json!({"review": "auto"}))
    }

    /// The next answer of the model.
    pub fn model_proposes(&self, changes: Value) {
        self.model_answers(&json!({ "changes": changes }).to_string());
    }

    pub fn model_answers(&self, text: &str) {
        let answer = json!({
            "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        });
        self.outbound.answer(ScriptedAnswer::json(&answer));
    }

    /// The text of the newest request to the model.
    pub fn learn_prompt(&self) -> String {
        let calls = self.outbound.calls.borrow();
        let body: Value = serde_json::from_str(&calls.last().unwrap().body).unwrap();
        body["messages"][0]["content"].as_str().unwrap().to_owned()
    }

    pub fn request_count(&self) -> usize {
        self.outbound.calls.borrow().len()
    }

    pub fn learn(&self) -> Value {
        self.ok("learn", json!({"sessionId": "s"}))
    }

    /// The alarm's round.
    pub fn alarm(&self) -> TimedRound {
        self.alarm_in(&self.db).unwrap()
    }

    pub fn alarm_in(&self, db: &dyn Database) -> Result<TimedRound, Error> {
        let agent = self.agent(db);
        wait_for(learn_if_due(&agent.memory(), &self.work.learning))
    }

    pub fn append(&self, events: Value) {
        self.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    }

    /// The texts of the facts by their keys.
    pub fn facts(&self) -> Value {
        let page = self.ok("listEntries", json!({"label": "facts"}));
        let entries = page["entries"].as_array().unwrap();
        let facts = entries.iter().map(|entry| {
            let key = entry["key"].as_str().unwrap().to_owned();
            (key, entry["content"].clone())
        });
        Value::Object(facts.collect())
    }

    pub fn proposals(&self) -> Vec<Value> {
        let page = self.ok("getProposals", json!({}));
        page["proposals"].as_array().unwrap().clone()
    }
}

/// A user's event.
pub fn user_event(text: &str) -> Value {
    json!({"action": "user_message", "content": text})
}

/// A proposed new fact based on this event.
pub fn adds(key: &str, content: &str, event: &str) -> Value {
    json!({"action": "add", "key": key, "content": content, "events": [event]})
}
