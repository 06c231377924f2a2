//! `onMemoryChange`: a service is notified of each change of an entry, a block's text or a document
//! at least once, with the same id, or the callback is recorded as failed.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Alice;
use crate::memory::bucket::with_bucket;
use crate::memory::services::with_service;
use crate::shared::callbacks::{body_of, header, ok};
use crate::shared::turns::{calls, text_answer, user};
use base::database::Database as _;
use base::host::Host as _;
use base::ids::Id;
use base::outbound::{Endpoint, OutboundRequest};
use base::testing::{Failing, ScriptedAnswer, wait_for};
use chat::request::delivery::Delivery;
use chat::run::callbacks::CallbackSender;
use store::callbacks::MAX_ATTEMPTS;

const CHANGED: &str = "https://tools.example/changed";

/// The writes that change memory, in order: the operation, its body, and the reported event.
fn changes() -> Vec<(&'static str, Value, Value)> {
    let answer = |kind: &str, label: &str, key: Option<&str>, deleted: bool, version: i64| {
        let mut answer =
            json!({"kind": kind, "label": label, "deleted": deleted, "version": version});
        if let Some(key) = key {
            answer["key"] = json!(key);
        }
        answer
    };
    let entry = json!({"label": "facts", "key": "seat", "content": "Window."});
    let later = json!({"label": "facts", "key": "seat", "content": "Aisle."});
    let document = json!({"label": "guides", "key": "g", "content": "# Guide"});
    vec![
        (
            "setEntry",
            entry,
            answer("entry", "facts", Some("seat"), false, 1),
        ),
        (
            "setEntry",
            later,
            answer("entry", "facts", Some("seat"), false, 2),
        ),
        (
            "deleteEntry",
            json!({"label": "facts", "key": "seat"}),
            answer("entry", "facts", Some("seat"), true, 3),
        ),
        (
            "revertBlock",
            json!({"label": "facts", "key": "seat", "version": 1}),
            answer("entry", "facts", Some("seat"), false, 4),
        ),
        (
            "setBlock",
            json!({"label": "Memory", "content": "Likes tea."}),
            answer("block", "Memory", None, false, 1),
        ),
        (
            "appendToBlock",
            json!({"label": "memory", "content": " Green."}),
            answer("block", "Memory", None, false, 2),
        ),
        (
            "revertBlock",
            json!({"label": "Memory", "version": 1}),
            answer("block", "Memory", None, false, 3),
        ),
        (
            "clearBlocks",
            json!({}),
            answer("block", "Memory", None, false, 4),
        ),
        (
            "putSkill",
            document,
            answer("document", "guides", Some("g"), false, 1),
        ),
        (
            "deleteSkill",
            json!({"label": "guides", "key": "g"}),
            answer("document", "guides", Some("g"), true, 2),
        ),
    ]
}

fn with_blocks() -> Alice {
    let alice = Alice::with_model();
    for (label, kind) in [
        ("facts", "searchable"),
        ("Memory", "writable"),
        ("guides", "loadable"),
    ] {
        alice.ok("defineBlock", json!({"label": label, "kind": kind}));
    }
    alice
}

fn alice_with_callback() -> Alice {
    let alice = with_blocks();
    alice.ok(
        "configureAgent",
        json!({"onMemoryChange": {"url": CHANGED}}),
    );
    alice
}

impl Alice {
    /// The calls of `onMemoryChange` so far.
    fn memory_change_calls(&self) -> Vec<OutboundRequest> {
        let calls = self.outbound.calls.borrow();
        let is_callback =
            |call: &&OutboundRequest| call.endpoint == Endpoint::Url(CHANGED.to_owned());
        calls.iter().filter(is_callback).cloned().collect()
    }

    /// Answers the pending calls, and returns their contents.
    fn received_changes(&self) -> Vec<Value> {
        let before = self.memory_change_calls().len();
        for _ in 0..self.callback_rows() {
            self.outbound.answer(ok());
        }
        assert_eq!(self.run_callbacks(), None);
        assert_eq!(self.callback_rows(), 0);
        self.memory_change_calls()[before..]
            .iter()
            .map(body_of)
            .collect()
    }

    fn memory_delivery(&self) -> String {
        Delivery::of_memory(&self.policy, "alice").seal("d-1")
    }
}

#[test]
fn each_change_is_reported_once_with_its_version() {
    let alice = alice_with_callback();
    for (operation, body, expected) in changes() {
        alice.ok(operation, body.clone());
        assert_eq!(alice.callback_rows(), 1, "{operation}");
        let mut answer = alice.received_changes().remove(0);
        let version = answer["version"].take();
        assert_eq!(version["version"], expected["version"], "{operation}");
        assert_eq!(version["writtenBy"], "operation", "{operation}");
        for field in ["kind", "label", "deleted"] {
            assert_eq!(answer[field], expected[field], "{operation}");
        }
        assert_eq!(answer.get("key"), expected.get("key"), "{operation}");
        assert_eq!(answer["agent"], "alice");
        assert_eq!(answer["sessionId"], Value::Null);
        if let (Some(content), "setEntry" | "setBlock" | "putSkill") =
            (body.get("content"), operation)
        {
            assert_eq!(&version["content"], content);
        }
    }
    assert_eq!(alice.run_callbacks(), None);
    assert_eq!(alice.memory_change_calls().len(), changes().len());
}

#[test]
fn a_session_blocks_events_name_and_follow_the_session() {
    let alice = alice_with_callback();
    alice.ok("createSession", json!({"id": "s"}));
    alice.ok(
        "defineBlock",
        json!({"sessionId": "s", "label": "plan", "kind": "writable"}),
    );
    let write = json!({"sessionId": "s", "label": "plan", "content": "Pack."});
    alice.ok("setBlock", write);
    let answer = alice.received_changes();
    assert_eq!(answer[0]["sessionId"], "s");
    assert_eq!(answer[0]["version"]["sessionId"], "s");
    let write = json!({"sessionId": "s", "label": "plan", "content": "Go."});
    alice.ok("setBlock", write);
    assert_eq!(alice.callback_rows(), 1);
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    assert_eq!(alice.callback_rows(), 0);
}

#[test]
fn without_the_setting_no_row_is_written() {
    let (plain, answer) = (with_blocks(), alice_with_callback());
    for (operation, body, _) in changes() {
        plain.ok(operation, body.clone());
        assert_eq!(plain.callback_rows(), 0, "{operation}");
        answer.ok(operation, body);
    }
    answer.received_changes();
    // Unchanged texts, and deletions of missing items.
    for (operation, body) in [
        (
            "setEntry",
            json!({"label": "facts", "key": "seat", "content": "Window."}),
        ),
        ("deleteEntry", json!({"label": "facts", "key": "none"})),
        ("clearBlocks", json!({})),
        ("deleteSkill", json!({"label": "guides", "key": "g"})),
    ] {
        answer.ok(operation, body);
        assert_eq!(answer.callback_rows(), 0, "{operation}");
    }
    // A write that is refused.
    let late = json!({"label": "Memory", "content": "x", "expectedVersion": 1});
    assert_eq!(answer.refused("setBlock", late), "version_conflict");
    assert_eq!(answer.callback_rows(), 0);
}

/// A model that writes a fact, and then answers.
fn script_fact_write(alice: &Alice, content: &str) {
    let arguments = json!({"label": "facts", "metadata": {"title": "seat"}, "content": content});
    alice
        .outbound
        .answer(calls(&[("c", "set_context", arguments)]));
    alice.outbound.answer(text_answer("Noted."));
}

#[test]
fn a_tools_write_is_reported_with_its_turn() {
    let alice = alice_with_callback();
    script_fact_write(&alice, "Window.");
    alice.chat_text("I like window seats");
    let answer = alice.received_changes();
    assert_eq!(answer.len(), 1);
    let version = &answer[0]["version"];
    assert_eq!(
        (&version["writtenBy"], &version["sessionId"]),
        (&json!("tool"), &json!("s"))
    );
    assert!(version["eventId"].is_string() && version["turnId"].is_string());
}

#[test]
fn a_write_during_a_callback_sends_none() {
    let alice = alice_with_callback();
    let delivery = alice.memory_delivery();
    for (operation, mut body, _) in changes() {
        body["deliveryId"] = json!(delivery);
        alice.ok(operation, body);
        assert_eq!(alice.callback_rows(), 0, "{operation}");
    }
    // The receiver starts a turn, whose model writes.
    script_fact_write(&alice, "Aisle.");
    let turn = json!({"sessionId": "s", "message": user("note it"), "deliveryId": delivery});
    alice.ok("createSession", json!({"id": "s"}));
    alice.ok("runTurn", turn);
    assert_eq!(alice.callback_rows(), 0);
    // Any other id changes nothing.
    let s = Id::parse("s".to_owned()).unwrap();
    let of_turn = Delivery::of(&alice.policy, "alice", &s).seal("d-1");
    let of_bob = Delivery::of_memory(&alice.policy, "bob").seal("d-1");
    for (n, id) in ["d-1", &of_turn, &of_bob, &delivery.to_uppercase()]
        .iter()
        .enumerate()
    {
        let body = json!({"label": "Memory", "content": n.to_string(), "deliveryId": id});
        alice.ok("setBlock", body);
        assert_eq!(alice.received_changes().len(), 1, "{id}");
    }
}

#[test]
fn a_turn_started_by_a_callback_reports_no_change() {
    let alice = alice_with_callback();
    let both = json!({"onTurnEnd": {"url": "https://tools.example/ended"}});
    alice.ok("configureAgent", both);
    let turn = json!({"id": "s", "message": user("hi"), "deliveryId": alice.memory_delivery()});
    alice.outbound.answer(text_answer("Hello!"));
    alice.chat(turn);
    assert_eq!(alice.callback_rows(), 0);
}

#[test]
fn a_failed_callback_is_stored_without_a_session() {
    let alice = alice_with_callback();
    alice.ok("setBlock", json!({"label": "Memory", "content": "x"}));
    for _ in 0..MAX_ATTEMPTS {
        alice.outbound.answer(Ok(ScriptedAnswer::text(500, "no")));
        if let Some(at_ms) = alice.run_callbacks() {
            alice.host.advance(at_ms - alice.host.now_ms());
        }
    }
    let reply = alice.memory_change_calls();
    assert_eq!(reply.len(), MAX_ATTEMPTS);
    let ids: BTreeSet<&str> = reply
        .iter()
        .map(|call| header(call, "webhook-id"))
        .collect();
    assert_eq!(ids.len(), 1);
    let failed = alice.failed_calls();
    assert_eq!(failed[0]["id"], *ids.first().unwrap());
    assert_eq!(failed[0].get("sessionId"), None);
    // Its id is still a valid delivery id.
    let body = json!({"label": "Memory", "content": "y", "deliveryId": failed[0]["id"]});
    alice.ok("setBlock", body);
    assert_eq!(alice.callback_rows(), 1);
}

#[test]
fn callbacks_go_only_to_allowed_urls() {
    let alice = with_blocks();
    for (target, code, field) in [
        (
            json!({"url": "https://evil.example/x"}),
            "forbidden",
            "onMemoryChange.url",
        ),
        (
            json!({"service": "NOBODY"}),
            "not_configured",
            "onMemoryChange",
        ),
        (json!({}), "invalid_request", "onMemoryChange"),
    ] {
        let body = json!({"onMemoryChange": target});
        let error = alice.call("configureAgent", body).unwrap_err();
        assert_eq!(
            (error.code.name(), &error.details()["field"]),
            (code, &json!(field))
        );
    }
}

#[test]
fn a_purge_deletes_callbacks_that_contain_its_text() {
    for (operation, purge) in [
        (
            "deleteEntry",
            json!({"label": "facts", "key": "seat", "purge": true}),
        ),
        (
            "deleteSkill",
            json!({"label": "guides", "key": "g", "purge": true}),
        ),
        ("removeBlock", json!({"label": "Memory", "purge": true})),
    ] {
        let alice = alice_with_callback();
        let entry = |key: &str| json!({"label": "facts", "key": key, "content": "x"});
        alice.ok("setEntry", entry("seat"));
        alice.ok("setEntry", entry("meal"));
        alice.ok(
            "putSkill",
            json!({"label": "guides", "key": "g", "content": "x"}),
        );
        alice.ok("setBlock", json!({"label": "Memory", "content": "x"}));
        assert_eq!(alice.callback_rows(), 4);
        alice.ok(operation, purge);
        assert_eq!(alice.callback_rows(), 3, "{operation}");
    }
}

#[test]
fn retention_deletes_callbacks_of_expired_items() {
    let alice = alice_with_callback();
    alice.ok(
        "configureAgent",
        json!({"retention": {"entriesDays": 60, "versionsDays": 10, "deletedDays": 20}}),
    );
    let entry = |key: &str, text: &str| json!({"label": "facts", "key": key, "content": text});
    alice.ok("setEntry", entry("seat", "Window."));
    alice.ok("setEntry", entry("seat", "Aisle."));
    alice.ok("setBlock", json!({"label": "Memory", "content": "a"}));
    alice.ok("setBlock", json!({"label": "Memory", "content": "b"}));
    alice.ok("setEntry", entry("meal", "Soup."));
    alice.ok("deleteEntry", json!({"label": "facts", "key": "meal"}));
    assert_eq!(alice.callback_rows(), 6);
    let after = |days: i64| {
        alice.host.advance(days * 24 * 60 * 60 * 1000);
        while alice.ok("applyRetention", json!({}))["complete"] == false {}
        alice.callback_rows()
    };
    assert_eq!(after(5), 6);
    // The first versions of the seat, the block and the meal were deleted.
    assert_eq!(after(10), 3);
    // The remains of the deletion are deleted.
    assert_eq!(after(10), 2);
    // The entry is deleted. The block's text stays.
    assert_eq!(after(40), 1);
}

#[test]
fn a_turn_started_by_a_callback_is_not_learned_from() {
    let alice = alice_with_callback();
    let learn = json!({"learn": {"into": "facts", "review": "auto"}});
    alice.ok("configureAgent", learn);
    let turn = |id: &str, delivery: Option<String>| {
        let mut body = json!({"id": "s", "message": user(id)});
        body["message"]["id"] = json!(id);
        if let Some(delivery) = delivery {
            body["deliveryId"] = json!(delivery);
        }
        alice.outbound.answer(text_answer("Hello!"));
        alice.chat(body);
    };
    turn("one", Some(alice.memory_delivery()));
    assert_eq!(alice.alarm().next_at, None);
    // The next turn processes both, and so does an explicit call.
    turn("two", None);
    alice.model_proposes(json!([]));
    assert_eq!(alice.alarm().next_at, None);
    assert!(alice.learn_prompt().contains("\"e4\""));
    turn("three", Some(alice.memory_delivery()));
    assert_eq!(alice.alarm().next_at, None);
    alice.model_proposes(json!([]));
    assert_eq!(alice.ok("learn", json!({}))["events"], 2);
}

#[test]
fn a_deleted_text_is_not_reported() {
    let alice = alice_with_callback();
    let entry = json!({"label": "facts", "key": "seat", "content": "Window."});
    alice.ok("setEntry", entry);
    alice.ok("removeBlock", json!({"label": "facts"}));
    let answer = alice.received_changes();
    assert_eq!(
        (&answer[0]["key"], &answer[0]["version"]),
        (&json!("seat"), &Value::Null)
    );
}

#[test]
fn copies_made_by_a_fork_are_not_reported() {
    let alice = alice_with_callback();
    alice.ok("createSession", json!({"id": "s"}));
    let block = json!({"sessionId": "s", "label": "facts", "kind": "searchable"});
    alice.ok("defineBlock", block);
    let entry = json!({"sessionId": "s", "label": "facts", "key": "a", "content": "x"});
    alice.ok("setEntry", entry);
    alice.received_changes();
    alice.ok("forkSession", json!({"sessionId": "s"}));
    assert_eq!(alice.callback_rows(), 0);
}

#[test]
fn a_remote_backends_write_is_reported_without_a_version() {
    let alice = with_bucket(&[]);
    alice.outbound.settings.borrow_mut().insert(
        "TOOL_ORIGINS".to_owned(),
        "https://tools.example".to_owned(),
    );
    alice.ok(
        "configureAgent",
        json!({"onMemoryChange": {"url": CHANGED}}),
    );
    let source = json!({"label": "docs", "kind": "loadable", "source": {"r2Prefix": "docs/"}});
    alice.ok("defineBlock", source);
    alice.ok(
        "putSkill",
        json!({"label": "docs", "key": "a", "content": "x"}),
    );
    alice.ok("deleteSkill", json!({"label": "docs", "key": "a"}));
    let reply = alice.received_changes();
    let short = |reply: &Value| {
        (
            reply["kind"].clone(),
            reply["deleted"].clone(),
            reply["version"].clone(),
        )
    };
    let reply: Vec<_> = reply.iter().map(short).collect();
    let document = |deleted: bool| (json!("document"), json!(deleted), Value::Null);
    assert_eq!(reply, [document(false), document(true)]);

    let alice = with_service("searchable");
    alice.outbound.settings.borrow_mut().insert(
        "TOOL_ORIGINS".to_owned(),
        "https://tools.example".to_owned(),
    );
    alice.ok(
        "configureAgent",
        json!({"onMemoryChange": {"url": CHANGED}}),
    );
    alice.outbound.answer(ScriptedAnswer::json(&json!({})));
    alice.ok(
        "setEntry",
        json!({"label": "notes", "key": "a", "content": "x"}),
    );
    assert_eq!(alice.received_changes()[0]["kind"], "entry");
}

/// All texts of the memory, and the number of versions.
fn texts_of(alice: &Alice) -> String {
    let sql = "SELECT json_group_array(json_array(key, content))
                 FROM (SELECT key, content FROM cf_agents_entries
                        UNION ALL
                       SELECT key, content FROM cf_agents_skills
                        UNION ALL
                       SELECT key || version, content FROM cf_agents_block_versions)";
    let rows = alice.db.rows(sql, &[]).unwrap();
    rows[0].text(0).unwrap().to_owned()
}

/// After a failure of any statement: a change exists and is reported at least once with one id, or
/// neither.
#[test]
fn each_change_is_reported_whichever_statement_fails() {
    for (index, (operation, body, _)) in changes().into_iter().enumerate() {
        for passing in 0.. {
            let mut alice = alice_with_callback();
            for (earlier, body, _) in changes().into_iter().take(index) {
                alice.ok(earlier, body);
            }
            alice.received_changes();
            let calls_before = alice.memory_change_calls().len();
            let before = texts_of(&alice);
            alice.outbound.answer(ok());
            let failing = Failing::after(&alice.db, passing);
            let outcome = alice.send(&failing, operation, body.to_string().as_bytes());
            let sender = CallbackSender {
                memory: alice.agent(&failing).memory(),
                ..alice.sender()
            };
            let _ = wait_for(sender.call_due());
            let has_failed = failing.has_failed();
            alice.reactivate();
            alice.outbound.answers.borrow_mut().clear();
            alice.outbound.answer(ok());
            alice.run_callbacks();
            let at = format!("{operation}, statement {passing}");
            let is_changed = texts_of(&alice) != before;
            let reply = &alice.memory_change_calls()[calls_before..];
            let ids: BTreeSet<&str> = reply
                .iter()
                .map(|call| header(call, "webhook-id"))
                .collect();
            assert_eq!(ids.len(), usize::from(is_changed), "{at}");
            assert!(is_changed || outcome.is_err(), "{at}");
            assert_eq!(alice.callback_rows(), 0, "{at}");
            if !has_failed {
                assert!(passing > 5, "{at}");
                break;
            }
        }
    }
}

#[test]
fn a_proposal_is_reported_when_created_and_when_decided() {
    let alice = alice_with_callback();
    let learn = json!({"into": "facts", "after": "manual", "review": "propose"});
    alice.ok("configureAgent", json!({"learn": learn}));
    alice.ok("createSession", json!({"id": "s"}));
    let event = json!({"action": "user_message", "content": "I like window seats."});
    alice.ok("appendEvents", json!({"sessionId": "s", "events": [event]}));
    let change =
        json!({"action": "add", "key": "seat", "content": "Likes window seats.", "events": ["e1"]});
    alice
        .outbound
        .answer(text_answer(&json!({"changes": [change]}).to_string()));
    let learned = alice.ok("learn", json!({}));
    let id = learned["proposals"][0]["id"].clone();
    let reply = alice.received_changes();
    let expected = |status: &str| (json!("proposal"), json!("facts"), id.clone(), json!(status));
    let short = |reply: &Value| {
        let field = |name: &str| reply[name].clone();
        (field("kind"), field("label"), field("id"), field("status"))
    };
    assert_eq!(
        reply.iter().map(short).collect::<Vec<_>>(),
        [expected("pending")]
    );
    alice.ok("decideProposal", json!({"id": id, "approve": true}));
    let reply = alice.received_changes();
    assert_eq!(
        (&reply[0]["kind"], &reply[0]["key"]),
        (&json!("entry"), &json!("seat"))
    );
    assert_eq!(short(&reply[1]), expected("applied"));
    alice.ok("revertProposal", json!({"id": id}));
    let reply = alice.received_changes();
    assert_eq!(reply[0]["deleted"], true);
    assert_eq!(short(&reply[1]), expected("reverted"));
}
