//! Helpers for searches and their results.

use serde_json::{Value, json};

use crate::{Alice, ids};

impl Alice {
    pub fn search(&self, query: &str) -> Vec<Value> {
        self.search_with(query, json!({}))
    }

    pub fn search_with(&self, query: &str, more: Value) -> Vec<Value> {
        let mut body = json!({"query": query});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        self.ok("search", body)["results"]
            .as_array()
            .unwrap()
            .clone()
    }

    pub fn found(&self, query: &str) -> Vec<String> {
        ids(&Value::from(self.search(query)))
    }

    pub fn append_message(&self, id: &str, text: &str) {
        self.ok("appendEvents", json!({"sessionId": "s", "events": [{"id": id, "action": "user_message", "content": text}]}));
    }
}

/// Messages of a few words, a thousand per request.
pub fn append_many(alice: &Alice, session: &str, texts: &[String]) {
    for texts in texts.chunks(1_000) {
        let events: Vec<Value> = texts
            .iter()
            .map(|text| json!({"action": "user_message", "content": text}))
            .collect();
        alice.ok(
            "appendEvents",
            json!({"sessionId": session, "events": events}),
        );
    }
}
