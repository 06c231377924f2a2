//! `onTurnEnd`: a service is notified of each turn's end at least once, with the same id, or the
//! callback is recorded as failed.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;

use crate::Alice;
use crate::chat::turns::{calls, text_answer, user};
pub use crate::shared::callbacks::{ENDED, body_of, header, ok};
use base::host::Host as _;
use base::outbound::CallFailure;
use base::testing::{Failing, ScriptedAnswer, wait_for};
use chat::run::callbacks::CallbackSender;
use chat::run::cycle::run;
use chat::run::resume::resume_some_turns;
use store::callbacks::{MAX_ATTEMPTS, MAX_FAILED};

#[test]
fn a_service_is_notified_once_when_a_turn_ends() {
    let alice = Alice::with_turn_end_callback();
    alice.outbound.answer(text_answer("Hello!"));
    alice.chat_text("hi");
    assert_eq!(alice.callback_rows(), 1);
    alice.outbound.answer(ok());
    assert_eq!(alice.run_callbacks(), None);
    let reply = alice.turn_end_calls();
    assert_eq!(reply.len(), 1);
    let id = header(&reply[0], "webhook-id").to_owned();
    assert_eq!(
        body_of(&reply[0]),
        json!({
            "deliveryId": id,
            "agent": "alice",
            "sessionId": "s",
            "message": alice.shown()[1],
            "usage": {"inputTokens": 10, "outputTokens": 2, "cachedInputTokens": 0, "cost": 0.0},
            "finishReason": "stop",
            "steps": 1,
        })
    );
    assert_eq!(alice.callback_rows(), 0);
    assert_eq!(alice.run_callbacks(), None);
    assert_eq!(alice.turn_end_calls().len(), 1);
}

#[test]
fn a_callback_is_signed_with_a_derived_key() {
    let alice = Alice::with_turn_end_callback();
    alice.outbound.answer(text_answer("Hello!"));
    alice.chat_text("hi");
    alice.outbound.answer(ok());
    alice.run_callbacks();
    let reply = &alice.turn_end_calls()[0];
    let mac = |key: &[u8], text: &str| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
        mac.update(text.as_bytes());
        mac.finalize().into_bytes()
    };
    let secret = "the secret of these tests, long enough";
    let key = mac(secret.as_bytes(), "session-agent callback signing key 1");
    let (id, time) = (
        header(reply, "webhook-id"),
        header(reply, "webhook-timestamp"),
    );
    assert_eq!(time, (alice.host.now_ms() / 1000).to_string());
    let signed = mac(&key, &format!("{id}.{time}.{}", reply.body));
    let expected = format!("v1,{}", STANDARD.encode(signed));
    assert_eq!(header(reply, "webhook-signature"), expected);
    // A Worker without a secret signs nothing.
    let mut open = Alice::with_turn_end_callback();
    open.policy = access::Policy::new(None, Some("open"));
    open.outbound.answer(text_answer("Hello!"));
    open.chat_text("hi");
    open.outbound.answer(ok());
    open.run_callbacks();
    assert_eq!(header(&open.turn_end_calls()[0], "webhook-signature"), "");
}

#[test]
fn during_rotation_a_callback_carries_both_signatures() {
    let mut alice = Alice::with_turn_end_callback();
    alice.outbound.answer(text_answer("Hello!"));
    alice.chat_text("hi");
    alice.outbound.answer(ok());
    alice.run_callbacks();
    let of = |alice: &Alice, n: usize, name: &str| {
        let reply = alice.turn_end_calls();
        header(&reply[n], name).to_owned()
    };
    let older_id = of(&alice, 0, "webhook-id");
    let (newer, older) = (
        "another secret, long enough for it",
        "the secret of these tests, long enough",
    );
    alice.policy =
        access::Policy::new(Some(newer.to_owned()), None).with_previous(Some(older.to_owned()));
    alice.outbound.answer(text_answer("Hello!"));
    alice.chat_text("again");
    alice.outbound.answer(ok());
    alice.run_callbacks();
    let (id, time) = (
        of(&alice, 1, "webhook-id"),
        of(&alice, 1, "webhook-timestamp"),
    );
    let content = format!("{id}.{time}.{}", alice.turn_end_calls()[1].body);
    let signatures = [newer, older].map(|secret| {
        let secret = access::Secret::new(secret.to_owned()).unwrap();
        format!("v1,{}", STANDARD.encode(secret.sign_callback(&content)))
    });
    assert_eq!(of(&alice, 1, "webhook-signature"), signatures.join(" "));
    // A service answers an earlier call: its turn still sends no callback.
    let session_id = base::ids::Id::parse("s".to_owned()).unwrap();
    let delivery = chat::request::delivery::Delivery::of(&alice.policy, "alice", &session_id);
    for id in [older_id, id] {
        assert!(delivery.issued(&base::ids::Id::parse(id).unwrap()));
    }
}

#[test]
fn a_turn_without_the_setting_writes_no_row() {
    let alice = Alice::with_model();
    alice.outbound.answer(text_answer("Hello!"));
    alice.chat_text("hi");
    assert_eq!(alice.callback_rows(), 0);
    assert!(!alice.work.callbacks.new.take());
}

#[test]
fn a_failing_callback_is_retried_then_stored_as_failed() {
    let alice = Alice::with_turn_end_callback();
    alice.outbound.answer(text_answer("Hello!"));
    alice.chat_text("hi");
    let mut pauses = Vec::new();
    for n in 0..MAX_ATTEMPTS {
        match n % 3 {
            0 => alice.outbound.answer(Ok(ScriptedAnswer::text(500, "no"))),
            1 => alice.outbound.answer(Ok(ScriptedAnswer::text(302, ""))),
            _ => alice
                .outbound
                .answer(Err(CallFailure::TimedOut { silence_ms: 10_000 })),
        }
        let next = alice.run_callbacks();
        // It is not retried before it is due.
        assert_eq!(alice.run_callbacks(), next);
        if let Some(at_ms) = next {
            let pause_ms = at_ms - alice.host.now_ms();
            pauses.push(pause_ms);
            alice.host.advance(pause_ms);
        }
    }
    assert_eq!(pauses, [5_000, 30_000, 120_000, 600_000]);
    let reply = alice.turn_end_calls();
    assert_eq!(reply.len(), 5);
    let ids: BTreeSet<&str> = reply
        .iter()
        .map(|call| header(call, "webhook-id"))
        .collect();
    assert_eq!(ids.len(), 1);
    let failed = alice.failed_calls();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0]["id"], *ids.first().unwrap());
    assert_eq!(
        (&failed[0]["attempts"], &failed[0]["sessionId"]),
        (&json!(5), &json!("s"))
    );
    assert_eq!(failed[0]["reason"], "it returned status 302");
    alice.host.advance(86_400_000);
    assert_eq!(alice.run_callbacks(), None);
    assert_eq!(alice.turn_end_calls().len(), 5);
}

#[test]
fn a_service_is_notified_once_it_is_available_again() {
    let alice = Alice::with_turn_end_callback();
    alice.outbound.answer(text_answer("Hello!"));
    alice.chat_text("hi");
    alice.outbound.answer(Ok(ScriptedAnswer::text(503, "")));
    let at_ms = alice.run_callbacks().unwrap();
    alice.host.advance(at_ms - alice.host.now_ms());
    alice.outbound.answer(ok());
    assert_eq!(alice.run_callbacks(), None);
    assert_eq!((alice.callback_rows(), alice.failed_calls().len()), (0, 0));
}

#[test]
fn a_bounded_number_of_failed_callbacks_is_stored() {
    let alice = Alice::with_turn_end_callback();
    for n in 0..MAX_FAILED + 3 {
        alice.outbound.answer(text_answer("Hello!"));
        alice.chat_text(&n.to_string());
    }
    alice.fail_callbacks();
    assert_eq!(alice.callback_rows() as i64, MAX_FAILED);
}

#[test]
fn every_kind_of_turn_end_is_reported() {
    let alice = Alice::with_turn_end_callback();
    // A turn that fails.
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(500, "broken")));
    alice.chat_text("fails");
    // A turn that a client must continue.
    let tools = json!([{"name": "where"}]);
    alice.outbound.answer(calls(&[("c", "where", json!({}))]));
    alice.chat(json!({"id": "s", "message": user("where"), "tools": tools}));
    // A turn that is stopped.
    let started = alice
        .begin(&json!({"id": "s", "message": user("stop")}))
        .unwrap();
    alice.ok("cancelTurn", json!({"sessionId": "s"}));
    alice.run_work(started.work.unwrap());
    for _ in 0..3 {
        alice.outbound.answer(ok());
    }
    alice.run_callbacks();
    let reply: Vec<Value> = alice.turn_end_calls().iter().map(body_of).collect();
    let reasons: Vec<&str> = reply
        .iter()
        .map(|body| body["finishReason"].as_str().unwrap())
        .collect();
    assert_eq!(reasons, ["error", "tool-calls", "cancelled"]);
    assert_eq!(reply[0]["message"], Value::Null);
    assert_eq!(reply[1]["message"]["parts"][1]["state"], "input-available");
}

#[test]
fn a_turn_started_by_a_callback_sends_none() {
    let alice = Alice::with_turn_end_callback();
    // The service's request contains the id of the callback.
    alice.outbound.answer(text_answer("Zero."));
    alice.chat_text("hello");
    alice.outbound.answer(ok());
    alice.run_callbacks();
    let delivery = body_of(&alice.turn_end_calls()[0])["deliveryId"].clone();
    let by_id = json!({"sessionId": "s", "message": user("by id"), "deliveryId": delivery});
    alice.outbound.answer(text_answer("One."));
    alice.ok("runTurn", by_id);
    alice.outbound.answer(text_answer("Two."));
    alice.chat(json!({"id": "s", "message": user("by chat"), "deliveryId": delivery}));
    assert_eq!(alice.callback_rows(), 0);
    // The service runs a turn before it answers.
    alice.outbound.answer(text_answer("Three."));
    alice.chat_text("hi");
    alice.outbound.hangs_after_answers.set(true);
    let mut calling = std::pin::pin!(alice.sender().call_due());
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(calling.as_mut().poll(&mut context).is_pending());
    assert_eq!(alice.callback_rows(), 1);
    alice.outbound.answer(text_answer("Four."));
    alice.ok(
        "runTurn",
        json!({"sessionId": "s", "message": user("from within")}),
    );
    assert_eq!(alice.callback_rows(), 1, "this turn is not reported");
    // A turn started by a page or in another session is reported.
    alice.outbound.answer(text_answer("Five."));
    alice.chat_text("a page");
    alice.outbound.answer(text_answer("Six."));
    alice.ok(
        "runTurn",
        json!({"sessionId": "t", "message": user("elsewhere")}),
    );
    assert_eq!(alice.callback_rows(), 3);
}

#[test]
fn callbacks_go_only_to_allowed_urls() {
    let alice = Alice::with_model();
    for (callback, code, field) in [
        (
            json!({"url": "https://evil.example/x"}),
            "forbidden",
            "onTurnEnd.url",
        ),
        (
            json!({"url": "ftp://tools.example"}),
            "invalid_request",
            "onTurnEnd.url",
        ),
        (json!({"service": "NOBODY"}), "not_configured", "onTurnEnd"),
        (json!({}), "invalid_request", "onTurnEnd"),
        (
            json!({"service": "A", "url": ENDED}),
            "invalid_request",
            "onTurnEnd",
        ),
    ] {
        let error = alice
            .call("configureAgent", json!({"onTurnEnd": callback}))
            .unwrap_err();
        assert_eq!(
            (error.code.name(), &error.details()["field"]),
            (code, &json!(field)),
            "{callback}"
        );
    }
    // The list of allowed origins was shortened in the meantime.
    let alice = Alice::with_turn_end_callback();
    alice.outbound.answer(text_answer("Hello!"));
    alice.chat_text("hi");
    alice.outbound.settings.borrow_mut().remove("TOOL_ORIGINS");
    alice.fail_callbacks();
    assert!(alice.turn_end_calls().is_empty());
    let reason = alice.failed_calls()[0]["reason"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(reason.contains("TOOL_ORIGINS"), "{reason}");
}

#[test]
fn a_deleted_message_is_not_reported() {
    let alice = Alice::with_turn_end_callback();
    alice.outbound.answer(text_answer("Hello!"));
    alice.chat_text("hi");
    let answer = alice.shown()[1]["id"].clone();
    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": [answer]}),
    );
    alice.outbound.answer(ok());
    alice.run_callbacks();
    assert_eq!(body_of(&alice.turn_end_calls()[0])["message"], Value::Null);
    for operation in ["clearMessages", "deleteSession"] {
        alice.outbound.answer(text_answer("Hello!"));
        alice.chat_text(operation);
        alice.ok(operation, json!({"sessionId": "s"}));
        assert_eq!(alice.callback_rows(), 0, "{operation}");
    }
}

/// After a failure of any statement: the turn's end is reported at least once, always with the same
/// id.
#[test]
fn each_turn_end_is_reported_whichever_statement_fails() {
    for passing in 0.. {
        let mut alice = Alice::with_turn_end_callback();
        let started = alice
            .begin(&json!({"id": "s", "message": user("hi")}))
            .unwrap();
        alice.outbound.answer(text_answer("Hello!"));
        alice.outbound.answer(ok());
        let failing = Failing::after(&alice.db, passing);
        wait_for(run(&alice.agent(&failing), started.work.unwrap()));
        let sender = CallbackSender {
            memory: alice.agent(&failing).memory(),
            ..alice.sender()
        };
        let _ = wait_for(sender.call_due());
        let has_failed = failing.has_failed();
        if has_failed {
            alice.reactivate();
            alice.outbound.answers.borrow_mut().clear();
            let works = resume_some_turns(&alice.agent(&alice.db)).works;
            for work in works {
                alice.outbound.answer(text_answer("Hello!"));
                alice.run_work(work);
            }
            alice.outbound.answer(ok());
            alice.run_callbacks();
        }
        let at = format!("statement {passing}");
        let reply = alice.turn_end_calls();
        assert!(!reply.is_empty(), "{at}");
        let ids: BTreeSet<&str> = reply
            .iter()
            .map(|call| header(call, "webhook-id"))
            .collect();
        assert_eq!(ids.len(), 1, "{at}");
        assert_eq!(
            body_of(reply.last().unwrap())["message"]["parts"][0]["text"],
            "Hello!",
            "{at}"
        );
        assert_eq!(alice.callback_rows(), 0, "{at}");
        if !has_failed {
            assert!(passing > 20);
            break;
        }
    }
}

#[test]
fn writes_of_operations_are_broadcast_to_open_sockets() {
    let alice = Alice::with_model();
    let changed = |operation: &str, body: Value| {
        let agent = alice.agent(&alice.db);
        let body = body.to_string();
        let reply = wait_for(api::dispatch::dispatch(&agent, operation, body.as_bytes()));
        reply
            .unwrap()
            .changed
            .map(|change| change.session_id.as_str().to_owned())
    };
    alice.ok("createSession", json!({"id": "s"}));
    let append = json!({"sessionId": "s", "message": user("one")});
    assert_eq!(changed("appendMessage", append), None, "nobody watches");
    alice.audience.are_there.set(true);
    let append = json!({"sessionId": "s", "message": user("two")});
    assert_eq!(changed("appendMessage", append).as_deref(), Some("s"));
    let events = json!({"sessionId": "s", "events": [{"action": "user_message", "content": "x"}]});
    assert_eq!(changed("appendEvents", events).as_deref(), Some("s"));
    assert_eq!(changed("getHistory", json!({"sessionId": "s"})), None);
    assert_eq!(changed("listSessions", json!({})), None);
    assert_eq!(
        changed("deleteSession", json!({"sessionId": "s"})).as_deref(),
        Some("s")
    );
}
