//! Requests in the APIs of OpenAI and Anthropic.

use serde_json::{Value, json};

use crate::Alice;
use base::error::Error;
use base::testing::wait_for;
use chat::run::listener::EventSource as _;
use chat::run::request_writer::turn_in_progress;
use models::caller_fields::ProviderApi;
use provider_api::begin::{Beginning, StartedAnswer, begin};
use provider_api::calls::ApiHeaders;

/// The headers of a request.
pub fn headers(pairs: &[(&str, &str)]) -> ApiHeaders {
    let find = |name: &str| {
        let found = pairs.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    };
    ApiHeaders::read(find).unwrap()
}

pub fn in_session(id: &str) -> ApiHeaders {
    headers(&[("x-session-id", id)])
}

impl Alice {
    pub fn begin_api(
        &self,
        api: ProviderApi,
        headers: &ApiHeaders,
        body: &Value,
    ) -> Result<StartedAnswer, Error> {
        let agent = self.agent(&self.db);
        match begin(&agent, api, None, headers, body.to_string().as_bytes())? {
            Beginning::Answer(started) => Ok(started),
            Beginning::Busy(_) => Err(turn_in_progress()),
        }
    }

    /// Runs a turn, and returns its session and its whole answer.
    pub fn complete_with(
        &self,
        api: ProviderApi,
        headers: &ApiHeaders,
        body: &Value,
    ) -> Result<(String, Value), Error> {
        let started = self.begin_api(api, headers, body)?;
        if let Some(work) = started.work {
            self.run_work(work);
        }
        let answer = wait_for(started.listener.whole())?;
        Ok((
            started.session_id.as_str().to_owned(),
            serde_json::from_str(&answer).unwrap(),
        ))
    }

    pub fn complete(&self, headers: &ApiHeaders, body: Value) -> (String, Value) {
        self.complete_with(ProviderApi::ChatCompletions, headers, &body)
            .unwrap()
    }

    pub fn message(&self, headers: &ApiHeaders, body: Value) -> (String, Value) {
        self.complete_with(ProviderApi::Messages, headers, &body)
            .unwrap()
    }

    /// Runs a turn, and returns the events of its answer.
    pub fn stream_api(&self, api: ProviderApi, headers: &ApiHeaders, body: &Value) -> Vec<Value> {
        let started = self.begin_api(api, headers, body).unwrap();
        if let Some(work) = started.work {
            self.run_work(work);
        }
        let mut listener = started.listener;
        wait_for(listener.begins()).unwrap();
        let mut received = Vec::new();
        while let Some(events) = wait_for(listener.next_events()) {
            for event in events.split_terminator("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                match data.unwrap() {
                    "[DONE]" => received.push(json!("[DONE]")),
                    data => received.push(serde_json::from_str(data).unwrap()),
                }
            }
        }
        received
    }

    /// The bodies of the requests to the model.
    pub fn sent_bodies(&self) -> Vec<Value> {
        let calls = self.outbound.calls.borrow();
        calls
            .iter()
            .map(|call| serde_json::from_str(&call.body).unwrap())
            .collect()
    }

    pub fn last_sent(&self) -> Value {
        self.sent_bodies().pop().unwrap()
    }

    pub fn with_anthropic() -> Self {
        let alice = Self::with_model();
        let settings = [("MODEL", "anthropic:claude-x"), ("ANTHROPIC_API_KEY", "k")];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned()));
        alice.outbound.settings.borrow_mut().extend(settings);
        alice
    }

    /// With a model of this name, which is asked in Responses.
    pub fn with_responses(model: &str) -> Self {
        let alice = Self::with_model();
        let settings = [
            ("MODEL", format!("openai:{model}")),
            ("OPENAI_API", "responses".to_owned()),
        ];
        let settings = settings.map(|(name, value)| (name.to_owned(), value));
        alice.outbound.settings.borrow_mut().extend(settings);
        alice
    }

    pub fn session_count(&self) -> usize {
        let page = self.ok("listSessions", json!({}));
        page["sessions"].as_array().unwrap().len()
    }

    pub fn shown_in(&self, session_id: &str) -> Vec<Value> {
        let page = self.ok("getHistory", json!({"sessionId": session_id}));
        page["messages"].as_array().unwrap().clone()
    }
}
