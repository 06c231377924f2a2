//! Requests in the APIs of OpenAI and Anthropic, from their bodies to their answers, with a scripted
//! model behind the real adapters.

mod answers;
mod as_a_turn;
mod busy;
mod history;
mod hostile;
mod responses;
mod responses_beside;
mod rights;

use serde_json::{Value, json};

use crate::Alice;
use base::error::Error;
use base::outbound::CallFailure;
use base::testing::{Said, wait_for};
use chat::run::listener::EventSource as _;
use chat::run::request_writer::turn_in_progress;
use models::caller_fields::ProviderApi;
use provider_api::begin::{Beginning, BegunAnswer, begin};
use provider_api::calls::ApiHeaders;

type Answered = Result<Said, CallFailure>;

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
    ) -> Result<BegunAnswer, Error> {
        let agent = self.agent(&self.db);
        match begin(&agent, api, None, headers, body.to_string().as_bytes())? {
            Beginning::Answer(begun) => Ok(begun),
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
        let begun = self.begin_api(api, headers, body)?;
        if let Some(work) = begun.work {
            self.run_work(work);
        }
        let answer = wait_for(begun.listener.whole())?;
        Ok((
            begun.session_id.as_str().to_owned(),
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
        let begun = self.begin_api(api, headers, body).unwrap();
        if let Some(work) = begun.work {
            self.run_work(work);
        }
        let mut listener = begun.listener;
        wait_for(listener.begins()).unwrap();
        let mut heard = Vec::new();
        while let Some(events) = wait_for(listener.next_events()) {
            for event in events.split_terminator("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data: "));
                match data.unwrap() {
                    "[DONE]" => heard.push(json!("[DONE]")),
                    data => heard.push(serde_json::from_str(data).unwrap()),
                }
            }
        }
        heard
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

    pub fn session_count(&self) -> usize {
        let page = self.ok("listSessions", json!({}));
        page["sessions"].as_array().unwrap().len()
    }

    pub fn shown_in(&self, session_id: &str) -> Vec<Value> {
        let page = self.ok("getHistory", json!({"sessionId": session_id}));
        page["messages"].as_array().unwrap().clone()
    }
}

/// A completion that OpenAI sends whole.
pub fn completion(message: Value, reason: &str) -> Answered {
    Ok(Said::json(&json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 7,
        "model": "m-2",
        "service_tier": "default",
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    }))
    .unwrap())
}

pub fn said_whole(text: &str) -> Answered {
    completion(
        json!({"role": "assistant", "content": text, "refusal": null, "annotations": []}),
        "stop",
    )
}

pub fn called_whole(calls: &[(&str, &str, Value)]) -> Answered {
    let calls: Vec<Value> = calls
        .iter()
        .map(|(id, name, arguments)| {
            json!({"id": id, "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()}})
        })
        .collect();
    completion(
        json!({"role": "assistant", "content": null, "refusal": null, "tool_calls": calls}),
        "tool_calls",
    )
}

/// A message that Anthropic sends whole.
pub fn anthropic_whole(content: Value, reason: &str) -> Answered {
    Ok(Said::json(&json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-x",
        "content": content,
        "stop_reason": reason,
        "stop_sequence": null,
        "container": null,
        "usage": {"input_tokens": 10, "output_tokens": 2, "service_tier": "standard"}
    }))
    .unwrap())
}

pub fn anthropic_said(text: &str) -> Answered {
    anthropic_whole(
        json!([{"type": "text", "text": text, "citations": null}]),
        "end_turn",
    )
}

pub fn chat(messages: Value) -> Value {
    json!({"model": "m", "messages": messages})
}

pub fn claude(messages: Value) -> Value {
    json!({"model": "claude-x", "max_tokens": 100, "messages": messages})
}

pub fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

pub fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

pub fn tool(name: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": "Looks.",
        "strict": true, "parameters": {"type": "object", "properties": {}}}})
}

/// A block that the model may write, so that it has a tool of ours.
pub fn remember(alice: &Alice) {
    alice.ok(
        "defineBlock",
        json!({"label": "memory", "kind": "writable", "description": "What to remember"}),
    );
}

pub fn set_context(id: &str, content: &str) -> (String, String, Value) {
    let arguments = json!({"label": "memory", "content": content});
    (id.to_owned(), "set_context".to_owned(), arguments)
}
