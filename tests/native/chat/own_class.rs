//! A class that extends this one decides for each call of its tools whether the user must approve
//! it.

use std::future::Future as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{calls, kinds, text_answer, user};
use base::outbound::{CallFailure, Endpoint, OWN_CLASS, OutboundRequest};
use base::testing::ScriptedAnswer;
use chat::run::cycle::run;
use chat::run::resume::resume_some_turns;

impl Alice {
    /// An agent whose class has a tool `pay`, which may need approval.
    fn with_class() -> Self {
        let alice = Self::with_model();
        let bound = OWN_CLASS.to_owned();
        alice.outbound.bindings.borrow_mut().push(bound);
        let tools = json!([{"name": "pay", "description": "Pays.", "service": OWN_CLASS, "needsApproval": true}]);
        let defaults = json!({"tools": tools}).to_string();
        let mut settings = alice.outbound.settings.borrow_mut();
        settings.insert("AGENT_DEFAULTS".to_owned(), defaults);
        drop(settings);
        alice
    }

    fn calls_to_class(&self, path: &str) -> Vec<OutboundRequest> {
        let place = Endpoint::Service {
            binding: OWN_CLASS.to_owned(),
            path: path.to_owned(),
        };
        let calls = self.outbound.calls.borrow();
        let is_to_class = |call: &&OutboundRequest| call.endpoint == place;
        calls.iter().filter(is_to_class).cloned().collect()
    }
}

fn word(text: &str) -> Result<ScriptedAnswer, CallFailure> {
    Ok(ScriptedAnswer::text(200, text))
}

fn states(alice: &Alice) -> Vec<Value> {
    let parts = alice.shown()[1]["parts"].clone();
    let parts = parts.as_array().unwrap().clone();
    let states = parts.into_iter().map(|part| part["state"].clone());
    states.filter(Value::is_string).collect()
}

#[test]
fn a_call_that_the_class_exempts_runs_without_approval() {
    let alice = Alice::with_class();
    let pay = calls(&[("c1", "pay", json!({"sum": 5}))]);
    for answer in [pay, word("false"), word("paid 5"), text_answer("Paid.")] {
        alice.outbound.answer(answer);
    }
    let chunks = alice.chat_text("pay");
    assert!(!kinds(&chunks).contains(&"tool-approval-request"));
    assert_eq!(states(&alice), ["output-available"]);
    let [request] = &alice.calls_to_class("approval")[..] else {
        panic!("the class is called once")
    };
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(
        body,
        json!({"name": "pay", "arguments": {"sum": 5}, "agent": "alice", "sessionId": "s"})
    );
    let [call] = &alice.calls_to_class("")[..] else {
        panic!("the call is made once")
    };
    // The function and the tool receive the same call.
    assert_eq!(call.headers, request.headers);
}

#[test]
fn only_an_explicit_false_skips_approval() {
    let unreachable = || {
        Err(CallFailure::Unreachable {
            cause: "away".to_owned(),
        })
    };
    for answer in [
        word("true"),
        word("0"),
        word("\"false\""),
        word(""),
        word("null"),
        Ok(ScriptedAnswer::text(500, "false")),
        Ok(ScriptedAnswer::text(201, "false")),
        unreachable(),
    ] {
        let alice = Alice::with_class();
        let pay = calls(&[("c1", "pay", json!({"sum": 5}))]);
        alice.outbound.answer(pay);
        alice.outbound.answer(answer);
        let chunks = alice.chat_text("pay");
        assert!(kinds(&chunks).contains(&"tool-approval-request"));
        assert_eq!(states(&alice), ["approval-requested"]);
        assert_eq!(alice.calls_to_class("").len(), 0);
        // The approved call runs, and the class is not called again.
        let mut message = alice.shown()[1].clone();
        message["parts"][1]["state"] = json!("approval-responded");
        message["parts"][1]["approval"]["approved"] = json!(true);
        alice.outbound.answer(word("paid 5"));
        alice.outbound.answer(text_answer("Paid."));
        alice.chat(json!({"id": "s", "messages": [user("pay"), message]}));
        assert_eq!(states(&alice), ["output-available"]);
        assert_eq!(alice.calls_to_class("approval").len(), 1);
    }
}

#[test]
fn the_class_decides_for_each_of_several_calls() {
    let alice = Alice::with_class();
    let pay = |id, sum| (id, "pay", json!({"sum": sum}));
    let tool_calls = calls(&[pay("c1", 5), pay("c2", 500)]);
    for answer in [tool_calls, word("false"), word("true"), word("paid 5")] {
        alice.outbound.answer(answer);
    }
    alice.chat_text("pay");
    assert_eq!(states(&alice), ["output-available", "approval-requested"]);
}

/// The object is evicted while the class decides. The next activation repeats the question about the
/// same call, and the model is not called again.
#[test]
fn the_approval_decision_survives_a_crash() {
    let mut alice = Alice::with_class();
    let pay = calls(&[("c1", "pay", json!({"sum": 5}))]);
    alice.outbound.answer(pay);
    alice.outbound.hangs_after_answers.set(true);
    let started = alice
        .begin(&json!({"id": "s", "message": user("pay")}))
        .unwrap();
    {
        let agent = alice.agent(&alice.db);
        let mut turn = pin!(run(&agent, started.work.unwrap()));
        let mut context = Context::from_waker(Waker::noop());
        assert!(matches!(turn.as_mut().poll(&mut context), Poll::Pending));
    }
    assert_eq!(alice.calls_to_class("approval").len(), 1);
    alice.crash();
    alice.outbound.hangs_after_answers.set(false);
    for answer in [word("false"), word("paid 5"), text_answer("Paid.")] {
        alice.outbound.answer(answer);
    }
    for work in resume_some_turns(&alice.agent(&alice.db)).works {
        alice.run_work(work);
    }
    assert_eq!(states(&alice), ["output-available"]);
    let requests = alice.calls_to_class("approval");
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0], requests[1]);
    assert_eq!(alice.calls_to_class("").len(), 1);
    // The model's first answer, the question, the repeated question, the call, the second answer.
    assert_eq!(alice.outbound.calls.borrow().len(), 5);
}

#[test]
fn a_classs_block_receives_the_session_and_a_service_does_not() {
    for (service, reply) in [(OWN_CLASS, json!("s")), ("NOTES", Value::Null)] {
        let alice = Alice::with_model();
        alice
            .outbound
            .bindings
            .borrow_mut()
            .push(service.to_owned());
        let source = json!({"service": service});
        let facts = json!([{"label": "facts", "kind": "searchable", "source": source}]);
        let defaults = json!({"blocks": facts}).to_string();
        alice
            .outbound
            .settings
            .borrow_mut()
            .insert("AGENT_DEFAULTS".to_owned(), defaults);
        alice.ok("createSession", json!({"id": "s"}));
        let newest_answers = |alice: &Alice| {
            let calls = alice.outbound.calls.borrow();
            let is_search = |place: &Endpoint| matches!(place, Endpoint::Service { path, .. } if path == "search");
            let searches = calls.iter().filter(|call| is_search(&call.endpoint));
            let bodies = searches.map(|call| serde_json::from_str::<Value>(&call.body).unwrap());
            bodies
                .map(|body| body["sessionId"].clone())
                .collect::<Vec<_>>()
        };
        alice.outbound.answer(word(r#"{"results": []}"#));
        let search = json!({"label": "facts", "query": "tea"});
        alice.ok(
            "callTool",
            json!({"sessionId": "s", "name": "search_context", "arguments": search}),
        );
        alice.outbound.answer(word(r#"{"results": []}"#));
        alice.ok("searchContext", search);
        assert_eq!(newest_answers(&alice), [reply, Value::Null], "{service}");
    }
}
