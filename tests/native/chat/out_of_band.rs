//! Results of client tools that arrive while the turn that called them still runs. None is lost and
//! none is processed twice, whenever the object is evicted.

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{calls, define, text_answer, user};
use api::socket::{FrameOutcome, SocketState, handle_frame};
use base::budget::MAX_ANSWER_BYTES;
use base::database::Database;
use base::error::Error;
use base::ids::Id;
use base::testing::{Failing, ScriptedAnswer, wait_for};
use chat::run::resume::resume_some_turns;
use chat::run::work::TurnWork;

const TOOLS: &str =
    r#"[{"name":"place","description":"Says where one is.","parameters":{"type":"object"}}]"#;

impl Alice {
    /// A turn whose model will call the client's tool `place` and the server's tool
    /// `echo`.
    pub fn begin_two_calls(&self) -> TurnWork {
        define(self, "echo", false);
        let tools: Value = serde_json::from_str(TOOLS).unwrap();
        let body = json!({"id": "s", "message": user("where"), "tools": tools});
        self.begin(&body).unwrap().work.unwrap()
    }

    pub fn script_two_calls(&self) {
        let both = [("c1", "place", json!({})), ("c2", "echo", json!({}))];
        self.outbound.answer(calls(&both));
        self.outbound
            .answer(Ok(ScriptedAnswer::text(200, "echoed")));
    }

    pub fn frame(&self, call_id: &str, output: &str) -> Result<FrameOutcome, Error> {
        let socket = SocketState::new(Id::parse("s".to_owned()).unwrap(), &self.caller);
        let tools: Value = serde_json::from_str(TOOLS).unwrap();
        let frame = json!({"type": "cf_agent_tool_result", "toolCallId": call_id, "toolName": "place",
            "output": output, "autoContinue": true, "clientTools": tools});
        wait_for(handle_frame(
            &self.agent(&self.db),
            &socket,
            &frame.to_string(),
        ))
    }

    pub fn out_of_band_rows(&self) -> usize {
        let sql = "SELECT 1 FROM cf_agents_early_answers";
        self.db.rows(sql, &[]).unwrap().len()
    }

    /// The call and the text of every tool result in the log.
    pub fn outcomes(&self) -> Vec<(String, String)> {
        let events = self.events();
        let results = events
            .iter()
            .filter(|event| event["action"] == "tool_result");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        results
            .map(|event| (text(&event["toolCallId"]), text(&event["content"])))
            .collect()
    }

    pub fn run_all(&self) {
        for work in resume_some_turns(&self.agent(&self.db)).works {
            self.run_work(work);
        }
    }
}

fn both() -> Vec<(String, String)> {
    [("c2", "echoed"), ("c1", "Rome")]
        .map(|(id, text)| (id.to_owned(), text.to_owned()))
        .to_vec()
}

#[test]
fn an_answer_during_the_turn_is_applied_at_its_end() {
    let alice = Alice::with_model();
    let work = alice.begin_two_calls();
    alice.frame("c1", "Rome").unwrap();
    assert_eq!(alice.out_of_band_rows(), 1);
    alice.script_two_calls();
    alice.outbound.answer(text_answer("In Rome."));
    alice.run_work(work);
    assert_eq!(alice.outcomes(), both());
    assert_eq!(alice.out_of_band_rows(), 0);
    assert_eq!(alice.shown()[1]["parts"][3]["text"], "In Rome.");
}

#[test]
fn an_answer_survives_a_crash_during_the_turn() {
    let mut alice = Alice::with_model();
    drop(alice.begin_two_calls());
    alice.frame("c1", "Rome").unwrap();
    alice.crash();
    // The client sends its answer again, because it got no acknowledgement.
    alice.frame("c1", "Oslo").unwrap();
    assert_eq!(alice.out_of_band_rows(), 1);
    alice.script_two_calls();
    alice.outbound.answer(text_answer("In Rome."));
    alice.run_all();
    assert_eq!(alice.outcomes(), both());
    assert_eq!(
        (alice.out_of_band_rows(), alice.has_turn_rows()),
        (0, false)
    );
}

/// The object is evicted after a statement near the turn's end fails. The test tries every
/// statement.
#[test]
fn an_answer_is_applied_once_whichever_statement_fails() {
    for passing in 0.. {
        let mut alice = Alice::with_model();
        let work = alice.begin_two_calls();
        alice.frame("c1", "Rome").unwrap();
        alice.script_two_calls();
        alice.outbound.answer(text_answer("In Rome."));
        let failing = Failing::after(&alice.db, passing);
        wait_for(chat::run::cycle::run(&alice.agent(&failing), work));
        if !failing.has_failed() {
            assert!(passing > 30);
            break;
        }
        alice.crash();
        *alice.outbound.answers.borrow_mut() = Default::default();
        if !alice.actions().contains(&"tool_call_request".to_owned()) {
            let ran = alice.outbound.calls.borrow();
            let is_made = ran.iter().any(|call| call.body.contains("\"agent\""));
            drop(ran);
            if !is_made {
                alice.script_two_calls();
            }
        }
        for _ in 0..3 {
            alice.outbound.answer(text_answer("In Rome."));
        }
        alice.run_all();
        let outcomes = alice.outcomes();
        let of_client = outcomes.iter().filter(|(id, _)| id == "c1");
        let texts: Vec<&str> = of_client.map(|(_, text)| text.as_str()).collect();
        assert_eq!(texts, ["Rome"], "statement {passing}: {outcomes:?}");
        assert_eq!(alice.out_of_band_rows(), 0, "statement {passing}");
        assert!(!alice.has_turn_rows(), "statement {passing}");
    }
}

#[test]
fn a_leftover_answer_is_applied_by_the_next_scan() {
    let mut alice = Alice::with_model();
    let work = alice.begin_two_calls();
    alice.script_two_calls();
    alice.run_work(work);
    // As if the object were evicted right after the turn's end: the early answer is still
    // stored.
    let sql = "UPDATE cf_agents_last_turns SET state = '{}', answer_seq = NULL";
    alice.db.run(sql, &[]).unwrap();
    alice.frame("c1", "Rome").unwrap();
    let sql = "UPDATE cf_agents_last_turns SET state = NULL";
    alice.db.run(sql, &[]).unwrap();
    alice.crash();
    alice.outbound.answer(text_answer("In Rome."));
    alice.run_all();
    assert_eq!(alice.outcomes(), both());
    assert_eq!(alice.out_of_band_rows(), 0);
}

#[test]
fn an_answer_to_an_unknown_call_is_dropped() {
    let alice = Alice::with_model();
    let work = alice.begin_two_calls();
    alice.frame("c9", "Rome").unwrap();
    alice.outbound.answer(text_answer("Hello."));
    alice.run_work(work);
    assert_eq!(alice.out_of_band_rows(), 0);
    assert_eq!(alice.actions(), ["user_message", "agent_message"]);
}

#[test]
fn a_long_answer_is_stored_in_parts_up_to_a_limit() {
    let alice = Alice::with_model();
    let work = alice.begin_two_calls();
    let long = "é".repeat(1_200_000);
    alice.frame("c1", &long).unwrap();
    assert_eq!(alice.out_of_band_rows(), 3);
    let error = alice
        .frame("c2", &"x".repeat(MAX_ANSWER_BYTES - 2_000_000))
        .map(drop)
        .unwrap_err();
    assert_eq!(error.code.name(), "payload_too_large");
    alice.script_two_calls();
    alice.outbound.answer(text_answer("Long."));
    alice.run_work(work);
    assert_eq!(alice.outcomes()[1].1.len(), long.len());
}

#[test]
fn clearing_or_deleting_a_session_deletes_out_of_band_results() {
    for operation in ["clearMessages", "deleteSession"] {
        let alice = Alice::with_model();
        drop(alice.begin_two_calls());
        alice.frame("c1", "Rome").unwrap();
        alice.ok(operation, json!({"sessionId": "s"}));
        assert_eq!(alice.out_of_band_rows(), 0, "{operation}");
    }
}

#[test]
fn a_scan_reports_whether_answers_remain() {
    let alice = Alice::with_model();
    for session in 0..5 {
        alice.ok("createSession", json!({"id": format!("s{session}")}));
        let sql =
            "INSERT INTO cf_agents_early_answers (session_id, number, part, tool_call_id, text)
                   VALUES (?1, 1, 1, 'c', '{')";
        let id = format!("s{session}");
        alice.db.run(sql, &[id.as_str().into()]).unwrap();
    }
    for (left, is_more_left) in [(1, true), (0, false)] {
        let round = resume_some_turns(&alice.agent(&alice.db));
        assert_eq!(
            (alice.out_of_band_rows(), round.is_more_left),
            (left, is_more_left)
        );
    }
}
