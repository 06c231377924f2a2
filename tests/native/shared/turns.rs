//! Helpers for chat turns: an agent with a scripted model, the model's requests, and the client's
//! chunks.

use serde_json::{Value, json};

use crate::Alice;
use api::chat::{StartedTurn, begin_chat};
use base::database::Database;
use base::error::Error;
use base::outbound::{CallFailure, Endpoint};
use base::testing::{ScriptedAnswer, wait_for};
use chat::run::cycle::run;
use chat::run::in_flight_work::InFlightWork;
use chat::run::listener::TurnListener;
use chat::run::resume::{RecoveryRound, resume_some_turns};
use chat::run::running_turns::RunningTurns;
use chat::run::work::TurnWork;
use conversation::session::last_turns::IS_OPEN;

impl Alice {
    pub fn with_model() -> Self {
        let alice = Self::default();
        let settings = [
            ("MODEL".to_owned(), "openai:m".to_owned()),
            ("OPENAI_API_KEY".to_owned(), "k".to_owned()),
            // Most servers use Chat Completions; for Responses, see `Alice::with_responses`.
            ("OPENAI_API".to_owned(), "chat-completions".to_owned()),
            (
                "TOOL_ORIGINS".to_owned(),
                "https://tools.example".to_owned(),
            ),
        ];
        alice.outbound.settings.borrow_mut().extend(settings);
        alice
    }

    pub fn begin(&self, body: &Value) -> Result<StartedTurn, Error> {
        let body = body.to_string();
        begin_chat(&self.agent(&self.db), "default", body.as_bytes())
    }

    pub fn run_work(&self, work: TurnWork) {
        wait_for(run(&self.agent(&self.db), work));
    }

    /// Runs a whole turn, and returns the chunks that its client gets.
    pub fn chat(&self, body: Value) -> Vec<Value> {
        let started = self.begin(&body).unwrap();
        if let Some(work) = started.work {
            self.run_work(work);
        }
        receive(started.listener)
    }

    pub fn chat_text(&self, text: &str) -> Vec<Value> {
        self.chat(json!({"id": "s", "message": user(text)}))
    }

    pub fn actions(&self) -> Vec<String> {
        let action = |event: &Value| event["action"].as_str().unwrap().to_owned();
        self.events().iter().map(action).collect()
    }

    pub fn shown(&self) -> Vec<Value> {
        let page = self.ok("getHistory", json!({"sessionId": "s"}));
        page["messages"].as_array().unwrap().clone()
    }

    /// Crashes the object: its memory is lost.
    pub fn crash(&mut self) {
        self.turns = RunningTurns::default();
        self.work = InFlightWork::default();
    }

    /// Whether a turn is running or was interrupted.
    pub fn has_turn_rows(&self) -> bool {
        self.turn_rows() > 0
    }
}

pub fn receive(mut listener: TurnListener) -> Vec<Value> {
    let mut chunks = Vec::new();
    let mut is_done = false;
    while let Some(events) = wait_for(listener.next()) {
        for event in events.split_terminator("\n\n") {
            assert!(!is_done, "nothing follows the end");
            let data = event.strip_prefix("data: ").unwrap();
            match data {
                "[DONE]" => is_done = true,
                data => chunks.push(serde_json::from_str(data).unwrap()),
            }
        }
    }
    assert!(is_done);
    chunks
}

pub fn user(text: &str) -> Value {
    json!({"id": format!("u-{text}"), "role": "user", "parts": [{"type": "text", "text": text}]})
}

/// An answer of a model, streamed in OpenAI's shape.
pub fn text_answer(text: &str) -> Result<ScriptedAnswer, CallFailure> {
    let chunk = json!({"choices": [{"delta": {"content": text}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2}});
    Ok(ScriptedAnswer::stream(&format!(
        "data: {chunk}\n\ndata: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n"
    )))
}

pub fn calls(calls: &[(&str, &str, Value)]) -> Result<ScriptedAnswer, CallFailure> {
    calls_that_cost(calls, Value::Null)
}

/// The same from a provider that reports the tokens of the request.
pub fn calls_that_cost(
    calls: &[(&str, &str, Value)],
    usage: Value,
) -> Result<ScriptedAnswer, CallFailure> {
    let calls: Vec<Value> = calls
        .iter()
        .enumerate()
        .map(|(index, (id, name, arguments))| {
            json!({"index": index, "id": id, "type": "function",
                "function": {"name": name, "arguments": arguments.to_string()}})
        })
        .collect();
    let chunk = json!({"choices": [{"delta": {"content": "Let me see.", "tool_calls": calls}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "tool_calls"}], "usage": usage});
    Ok(ScriptedAnswer::stream(&format!(
        "data: {chunk}\n\ndata: {end}\n\ndata: [DONE]\n\n"
    )))
}

pub fn define(alice: &Alice, name: &str, needs_approval: bool) {
    alice.ok(
        "defineTool",
        json!({"name": name, "description": "A tool.", "url": "https://tools.example/t", "needsApproval": needs_approval}),
    );
}

impl Alice {
    pub fn recover(&self, db: &dyn Database) -> RecoveryRound {
        resume_some_turns(&self.agent(db))
    }

    pub fn turn_rows(&self) -> usize {
        let sql = format!("SELECT 1 FROM cf_agents_last_turns AS t WHERE {IS_OPEN}");
        self.db.rows(&sql, &[]).unwrap().len()
    }
}

impl Alice {
    /// Runs a turn that is stopped before its model call, if it starts.
    pub fn stop_in(&self, session: &str, text: &str) {
        if let Ok(started) = self.begin(&json!({"id": session, "message": user(text)}))
            && let Some(work) = started.work
        {
            self.ok("cancelTurn", json!({"sessionId": session}));
            self.run_work(work);
        }
    }

    /// Runs a turn whose model returns no answer, if it starts.
    pub fn fail_in(&self, session: &str, text: &str) {
        self.outbound.answer(Err(CallFailure::Unreachable {
            cause: "away".to_owned(),
        }));
        if let Ok(started) = self.begin(&json!({"id": session, "message": user(text)}))
            && let Some(work) = started.work
        {
            self.run_work(work);
        }
    }

    /// Rows of failures of sessions that have nothing else.
    pub fn fail_in_many_others(&self, count: usize) {
        let sql = format!(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
             INSERT INTO cf_agents_failed_turns
             SELECT 'other-' || n, 0, 1, 2000000 + n, 0,
                    json_object('inputTokens', 0, 'outputTokens', 0, 'hasFailed', json('true'),
                                'record', json_object('requestId', 'r', 'endedAt', 2000000 + n))
               FROM numbers"
        );
        self.db.run(&sql, &[]).unwrap();
    }
}

impl Alice {
    pub fn waiting_rows(&self) -> usize {
        let sql = "SELECT 1 FROM cf_agents_waiting";
        self.db.rows(sql, &[]).map_or(0, |rows| rows.len())
    }

    pub fn has_session(&self, session: &str) -> bool {
        !self
            .ok("getSession", json!({"sessionId": session}))
            .is_null()
    }
}

impl Alice {
    /// Evicts the object. The work that it had started is dropped.
    pub fn reactivate(&mut self) {
        self.crash();
        while let Some(work) = self.starter.take() {
            drop(work);
        }
    }
}

impl Alice {
    /// The bodies of the calls that the registered tools received.
    pub fn tool_calls(&self) -> Vec<Value> {
        let calls = self.outbound.calls.borrow();
        let of_tools = calls.iter().filter(|call| {
            matches!(&call.endpoint, Endpoint::Url(url) if url.starts_with("https://tools.example"))
        });
        of_tools
            .map(|call| serde_json::from_str(&call.body).unwrap())
            .collect()
    }
}
