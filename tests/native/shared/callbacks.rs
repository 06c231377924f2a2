//! The calls of `onTurnEnd` that the service received.

use serde_json::{Value, json};

use crate::Alice;
use base::database::Database as _;
use base::outbound::{CallFailure, Endpoint, OutboundRequest};
use base::testing::{ScriptedAnswer, wait_for};
use chat::run::callbacks::CallbackSender;

pub const ENDED: &str = "https://tools.example/ended";

impl Alice {
    pub fn with_turn_end_callback() -> Self {
        let alice = Self::with_model();
        alice.ok("configureAgent", json!({"onTurnEnd": {"url": ENDED}}));
        alice
    }

    pub fn sender(&self) -> CallbackSender<'_> {
        CallbackSender {
            memory: self.agent(&self.db).memory(),
            policy: &self.policy,
            in_flight: &self.work.callbacks,
        }
    }

    /// Sends the calls that are due, and returns when the next one is due.
    pub fn run_callbacks(&self) -> Option<i64> {
        wait_for(self.sender().call_due()).unwrap()
    }

    /// Fails every attempt of the pending calls.
    pub fn fail_callbacks(&self) {
        while self.run_callbacks().is_some() {
            self.host.advance(600_000);
        }
    }

    /// The calls of `onTurnEnd` so far.
    pub fn turn_end_calls(&self) -> Vec<OutboundRequest> {
        let calls = self.outbound.calls.borrow();
        let is_callback =
            |call: &&OutboundRequest| call.endpoint == Endpoint::Url(ENDED.to_owned());
        calls.iter().filter(is_callback).cloned().collect()
    }

    pub fn callback_rows(&self) -> usize {
        let sql = "SELECT 1 FROM cf_agents_callbacks";
        self.db.rows(sql, &[]).unwrap().len()
    }

    pub fn failed_calls(&self) -> Vec<Value> {
        let stats = self.ok("getStats", json!({}));
        stats["callbacks"]["failed"].as_array().unwrap().clone()
    }
}

pub fn body_of(call: &OutboundRequest) -> Value {
    serde_json::from_str(&call.body).unwrap()
}

pub fn header<'a>(call: &'a OutboundRequest, name: &str) -> &'a str {
    let found = call.headers.iter().find(|(key, _)| key == name);
    found.map_or("", |(_, value)| value.as_str())
}

pub fn ok() -> Result<ScriptedAnswer, CallFailure> {
    Ok(ScriptedAnswer::text(204, ""))
}
