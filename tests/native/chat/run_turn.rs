//! `runTurn`: a turn whose caller receives the whole answer.

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{calls, define, text_answer, user};
use access::{Caller, TokenScope};
use base::database::Database as _;
use base::ids::Id;
use base::outbound::CallFailure;
use base::testing::{Failing, ScriptedAnswer};
use chat::run::resume::resume_some_turns;

fn turn_input(text: &str) -> Value {
    json!({"sessionId": "s", "message": user(text)})
}

impl Alice {
    fn count_model_calls(&self) -> usize {
        self.outbound.calls.borrow().len()
    }
}

#[test]
fn a_turn_returns_its_whole_answer() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("Hello!"));
    let ran = alice.ok("runTurn", turn_input("hi"));
    let shown = alice.shown();
    assert_eq!(
        ran,
        json!({
            "message": shown[1],
            "usage": {"inputTokens": 10, "outputTokens": 2, "cachedInputTokens": 0, "cost": 0.0},
            "finishReason": "stop",
            "steps": 1,
        })
    );
    assert_eq!(shown[0]["id"], "u-hi");
    assert_eq!(alice.actions(), ["user_message", "agent_message"]);
}

#[test]
fn a_repeated_request_returns_the_answer_without_a_call() {
    let mut alice = Alice::with_model();
    alice.outbound.answer(text_answer("Hello!"));
    let first = alice.ok("runTurn", turn_input("hi"));
    assert_eq!(alice.ok("runTurn", turn_input("hi")), first);
    alice.reactivate();
    assert_eq!(alice.ok("runTurn", turn_input("hi")), first);
    // Later turns overwrite this turn's row.
    alice.outbound.answer(text_answer("More."));
    alice.ok("runTurn", turn_input("more"));
    alice.outbound.answer(text_answer("Yes."));
    alice.chat_text("and by chat");
    assert_eq!(alice.ok("runTurn", turn_input("hi")), first);
    assert_eq!(alice.count_model_calls(), 3);
    assert_eq!(alice.events().len(), 6);
}

#[test]
fn an_answer_moved_by_another_write_is_found() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("Late."));
    let agent = alice.agent(&alice.db);
    let body = turn_input("hi").to_string();
    let ran = api::dispatch::dispatch(&agent, "runTurn", body.as_bytes());
    let mut ran = std::pin::pin!(ran);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(ran.as_mut().poll(&mut context).is_pending());
    alice.append_texts(&["in between"]);
    alice.run_work(alice.starter.take().unwrap());
    assert!(ran.as_mut().poll(&mut context).is_ready());
    let again = alice.ok("runTurn", turn_input("hi"));
    assert_eq!(again["message"]["parts"][0]["text"], "Late.");
    assert_eq!(again["usage"]["inputTokens"], 10);
    assert_eq!(alice.count_model_calls(), 1);
}

#[test]
fn a_message_written_by_another_operation_is_refused() {
    let alice = Alice::with_model();
    alice.ok("createSession", json!({"id": "s"}));
    alice.ok("appendMessage", turn_input("appended"));
    alice.outbound.answer(text_answer("By chat."));
    alice.chat_text("said");
    let before = alice.db.dump();
    for text in ["appended", "said"] {
        let error = alice.call("runTurn", turn_input(text)).unwrap_err();
        assert_eq!(error.code.name(), "already_exists", "{text}");
        assert_eq!(error.details()["id"], format!("u-{text}"));
    }
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn another_text_under_an_answered_id_is_refused() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("Hello!"));
    let first = alice.ok("runTurn", turn_input("hi"));
    let before = alice.db.dump();
    let mut other = turn_input("hi");
    other["message"]["parts"][0]["text"] = "bye".into();
    let error = alice.call("runTurn", other).unwrap_err();
    assert_eq!(error.code.name(), "already_exists");
    assert_eq!(error.details()["id"], "u-hi");
    assert!(
        error.message.contains("a different text"),
        "{}",
        error.message
    );
    assert_eq!(alice.db.dump(), before);
    // Parts other than text may differ: a caller that repeats a call rebuilds them.
    let mut again = turn_input("hi");
    again["message"]["metadata"] = json!({"try": 2});
    assert_eq!(alice.ok("runTurn", again), first);
    assert_eq!(alice.count_model_calls(), 1);
}

#[test]
fn an_interrupted_turn_is_joined() {
    let mut alice = Alice::with_model();
    {
        let agent = alice.agent(&alice.db);
        let body = turn_input("hi").to_string();
        base::testing::cut_off(api::dispatch::dispatch(&agent, "runTurn", body.as_bytes()));
    }
    alice.reactivate();
    alice.outbound.answer(text_answer("Back."));
    let ran = alice.ok("runTurn", turn_input("hi"));
    assert_eq!(ran["message"]["parts"][0]["text"], "Back.");
    assert_eq!(alice.actions(), ["user_message", "agent_message"]);
    assert_eq!(alice.ok("runTurn", turn_input("hi")), ran);
}

/// After a failure of any statement, the message is stored at most once, and a call that
/// is repeated returns its answer.
#[test]
fn run_turn_can_be_repeated_whichever_statement_fails() {
    for passing in 0.. {
        let mut alice = Alice::with_model();
        alice.outbound.answer(text_answer("Once."));
        let failing = Failing::after(&alice.db, passing);
        let body = turn_input("hi").to_string();
        let outcome = alice.send(&failing, "runTurn", body.as_bytes());
        if !failing.has_failed() {
            outcome.unwrap();
            assert!(passing > 20, "{passing}");
            break;
        }
        alice.reactivate();
        for work in resume_some_turns(&alice.agent(&alice.db)).works {
            alice.outbound.answer(text_answer("Once."));
            alice.run_work(work);
        }
        alice.outbound.answer(text_answer("Once."));
        let ran = alice.ok("runTurn", turn_input("hi"));
        let at = format!("statement {passing}");
        assert_eq!(ran["message"]["parts"][0]["text"], "Once.", "{at}");
        assert_eq!(alice.actions(), ["user_message", "agent_message"], "{at}");
    }
}

#[test]
fn a_failed_turn_without_output_can_be_retried() {
    let alice = Alice::with_model();
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(500, "broken")));
    assert_eq!(alice.refused("runTurn", turn_input("hi")), "model_failed");
    alice.outbound.answer(text_answer("Now."));
    let ran = alice.ok("runTurn", turn_input("hi"));
    assert_eq!(ran["message"]["parts"][0]["text"], "Now.");
    assert_eq!(alice.actions(), ["user_message", "agent_message"]);
    assert_eq!(alice.ok("runTurn", turn_input("hi")), ran);
}

#[test]
fn a_repeated_failed_turn_returns_the_same_error() {
    let alice = Alice::with_model();
    let mut broken =
        ScriptedAnswer::stream("data: {\"choices\":[{\"delta\":{\"content\":\"Half an\"}}]}\n\n");
    broken
        .chunks
        .push(Err(CallFailure::TimedOut { silence_ms: 60_000 }));
    alice.outbound.answer(Ok(broken));
    let first = alice.call("runTurn", turn_input("hi")).unwrap_err();
    assert_eq!(first.code.name(), "model_failed");
    assert_eq!(first.details()["messageId"], alice.shown()[1]["id"]);
    assert_eq!(alice.call("runTurn", turn_input("hi")).unwrap_err(), first);
    assert_eq!(alice.count_model_calls(), 1);
}

#[test]
fn reaching_the_step_limit_is_reported() {
    let alice = Alice::with_model();
    alice.ok("configureAgent", json!({"maxSteps": 1}));
    define(&alice, "echo", false);
    alice.outbound.answer(calls(&[("c1", "echo", json!({}))]));
    alice.outbound.answer(Ok(ScriptedAnswer::text(200, "x")));
    let first = alice.call("runTurn", turn_input("hi")).unwrap_err();
    assert_eq!(first.code.name(), "step_limit_reached");
    assert_eq!(alice.call("runTurn", turn_input("hi")).unwrap_err(), first);
}

#[test]
fn stopping_for_an_approval_or_client_tool_is_reported() {
    let alice = Alice::with_model();
    define(&alice, "pay", true);
    alice.outbound.answer(calls(&[("c1", "pay", json!({}))]));
    let ran = alice.ok("runTurn", turn_input("pay"));
    assert_eq!(ran["finishReason"], "tool-calls");
    assert_eq!(ran["message"]["parts"][1]["state"], "approval-requested");
    alice.outbound.answer(calls(&[("c2", "where", json!({}))]));
    let mut body = turn_input("where");
    body["tools"] = json!([{"name": "where", "description": "Where am I?"}]);
    let ran = alice.ok("runTurn", body);
    assert_eq!(ran["finishReason"], "tool-calls");
    assert_eq!(ran["message"]["parts"][1]["state"], "input-available");
    assert_eq!(alice.ok("runTurn", turn_input("where")), ran);
}

#[test]
fn run_turn_needs_the_rights_of_a_chat_request() {
    let scoped = |operations: &[&str]| {
        let mut alice = Alice::with_model();
        alice.caller = Caller::Scoped(TokenScope {
            session_id: Id::parse("s".to_owned()).ok(),
            operations: Some(operations.iter().map(|name| (*name).to_owned()).collect()),
            expires_at: i64::MAX,
            ..TokenScope::default()
        });
        alice
    };
    for (field, value) in [
        ("model", json!("demo")),
        ("systemInstructions", json!(["Obey."])),
        ("tools", json!([{"name": "mine"}])),
    ] {
        let alice = scoped(&["runTurn"]);
        let mut body = turn_input("hi");
        body[field] = value;
        let error = alice.call("runTurn", body).unwrap_err();
        assert_eq!(error.code.name(), "forbidden", "{field}");
        assert_eq!(error.details()["field"], field);
    }
    let alice = scoped(&["runTurn"]);
    alice.outbound.answer(text_answer("Yes."));
    alice.ok("runTurn", turn_input("hi"));
    assert_eq!(
        scoped(&["chat"]).refused("runTurn", turn_input("hi")),
        "forbidden"
    );
    let other = json!({"sessionId": "t", "message": user("hi")});
    assert_eq!(scoped(&["runTurn"]).refused("runTurn", other), "forbidden");
}

#[test]
fn invalid_input_is_refused_and_writes_nothing() {
    let alice = Alice::with_model();
    let before = alice.db.dump();
    for (body, field) in [
        (json!({"sessionId": "s"}), "message"),
        (json!({"sessionId": "s", "message": "hi"}), "message"),
        (
            json!({"sessionId": "s", "message": {"parts": []}}),
            "message.role",
        ),
        (
            json!({"sessionId": "s", "message": {"role": "assistant", "parts": []}}),
            "message.role",
        ),
        (
            json!({"sessionId": "s", "message": {"role": "user", "parts": []}}),
            "message.parts",
        ),
        (
            json!({"sessionId": "s", "message": {"role": "user", "parts": [{"type": "text", "text": " \n"}, {"type": "step-start"}]}}),
            "message.parts",
        ),
        (
            json!({"sessionId": "s", "message": user("x"), "whenBusy": "soon"}),
            "whenBusy",
        ),
        (
            json!({"sessionId": "s", "message": user("x"), "tools": [{"name": "no spaces"}]}),
            "tools[0].name",
        ),
        (
            json!({"sessionId": "s", "message": user("x"), "model": "nobody:m"}),
            "model",
        ),
    ] {
        let error = alice.call("runTurn", body.clone()).unwrap_err();
        assert_eq!(error.code.name(), "invalid_request", "{body}");
        assert_eq!(error.details()["field"], field, "{body}");
    }
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn an_export_does_not_contain_the_caller() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("Hello!"));
    alice.ok("runTurn", turn_input("hi"));
    let file = alice.export("s").unwrap();
    let bob = Alice::with_model();
    bob.import("s", &file).unwrap();
    assert_eq!(bob.export("s").unwrap(), file);
    assert_eq!(bob.refused("runTurn", turn_input("hi")), "already_exists");
}

/// The failure that ends a turn early, the code that reports it, and the details that must be kept.
type Failure = (
    &'static str,
    fn(&Alice),
    &'static str,
    &'static [&'static str],
);

#[test]
fn a_failure_of_a_turn_keeps_its_code_and_its_details() {
    let failures: &[Failure] = &[
        (
            "a damaged event",
            |alice| {
                let events = json!([
                    {"id": "call", "action": "tool_call_request", "toolCalls": [{"id": "c", "name": "t", "arguments": {}}]},
                    {"action": "tool_result", "toolCallId": "c", "toolName": "t", "content": "r"},
                ]);
                alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
                let sql = "UPDATE cf_agents_events SET tool = '{' WHERE id = 'call'";
                alice.db.run(sql, &[]).unwrap();
            },
            "corrupt_row",
            &["id"],
        ),
        (
            "no key",
            |alice| {
                alice
                    .outbound
                    .settings
                    .borrow_mut()
                    .remove("OPENAI_API_KEY");
            },
            "not_configured",
            &["binding"],
        ),
        (
            "a window that is too small",
            |alice| {
                let instructions = ["word ".repeat(2_000)];
                let settings =
                    json!({"maxContextTokens": 1_000, "systemInstructions": instructions});
                alice.ok("configureAgent", settings);
            },
            "invalid_request",
            &["field", "limit", "systemPrompt", "messages"],
        ),
        (
            "a provider that refuses",
            |alice| alice.outbound.answer(Ok(ScriptedAnswer::text(400, "no"))),
            "model_failed",
            &["status"],
        ),
        (
            "a day that is spent",
            |alice| {
                alice
                    .outbound
                    .answer(calls(&[("c", "nothing", json!({"long": "x".repeat(500)}))]));
                alice.ok("configureAgent", json!({"limits": {"tokensPerDay": 12}}));
            },
            "rate_limited",
            &["field", "retryAfter"],
        ),
    ];
    for (name, fault, code, details) in failures {
        let alice = Alice::with_model();
        alice.ok("createSession", json!({"id": "s"}));
        fault(&alice);
        let error = alice.call("runTurn", turn_input("hi")).unwrap_err();
        assert_eq!(error.code.name(), *code, "{name}: {error:?}");
        for detail in *details {
            assert!(
                error.details().contains_key(*detail),
                "{name}: {detail} of {error:?}"
            );
        }
    }
}
