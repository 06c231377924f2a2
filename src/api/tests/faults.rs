//! Every write operation, failing its nth statement for every n: the storage is
//! as before or as after, never in between.

use serde_json::{Value, json};

use super::Alice;
use crate::error::Code;
use crate::testing::{Failing, FixedHost, Sqlite};
use crate::{database::Database, schema};

/// An agent with something of everything: three sessions, a branch, a choice of leaf.
fn furnished() -> Alice {
    let alice = Alice::with_session();
    let said = alice.say(&["1", "2", "3", "4"]);
    alice.ok("appendEvents", json!({"sessionId": "s", "parentId": said[1], "events": [{"id": "b1", "action": "user_message", "content": "5"}]}));
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [
            {"action": "tool_call_request", "toolCalls": [{"id": "c", "name": "t", "arguments": {}}]},
            {"action": "tool_result", "toolCallId": "c", "toolName": "t", "content": "r"}
        ]}),
    );
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "message": picture("pic", "a")}),
    );
    alice.ok(
        "createSession",
        json!({"id": "t", "parentSessionId": "s", "metadata": {"a": 1}}),
    );
    alice.ok("configureAgent", json!({"maxSteps": 5}));
    let compaction = json!({"sessionId": "s", "summary": "x", "fromId": said[1], "toId": "b1"});
    alice.ok("addCompaction", compaction);
    for session in [json!(null), json!("s")] {
        for (label, kind) in [
            ("memory", "writable"),
            ("kb", "searchable"),
            ("skills", "loadable"),
        ] {
            alice.ok(
                "defineBlock",
                json!({"sessionId": session, "label": label, "kind": kind, "whenChanged": "remind"}),
            );
        }
        for (operation, body) in [
            ("setBlock", json!({"label": "memory", "content": "a"})),
            (
                "setEntry",
                json!({"label": "kb", "key": "k", "content": "c"}),
            ),
            (
                "putSkill",
                json!({"label": "skills", "key": "k", "content": "c"}),
            ),
        ] {
            let mut body = body;
            body["sessionId"] = session.clone();
            alice.ok(operation, body);
        }
    }
    alice.ok(
        "loadSkill",
        json!({"sessionId": "s", "label": "skills", "key": "k"}),
    );
    alice.ok("freezePrompt", json!({"sessionId": "s"}));
    alice.ok("setBlock", json!({"label": "memory", "content": "b"}));
    alice
}

fn picture(id: &str, word: &str) -> Value {
    let url = format!("data:image/png;base64,{}", word.repeat(5_000));
    json!({"id": id, "role": "user", "parts": [{"type": "file", "url": url}]})
}

#[test]
fn every_write_is_all_or_nothing_whichever_statement_fails() {
    sweep(furnished);
}

#[test]
fn so_is_it_for_an_agent_that_searches() {
    sweep(|| {
        let alice = furnished();
        alice.ok("search", json!({"query": "anything"}));
        alice
    });
}

#[test]
fn a_first_search_that_fails_leaves_no_half_an_index() {
    let mut tried = 0;
    loop {
        let alice = furnished();
        let before = alice.db.dump();
        let failing = Failing::after(&alice.db, tried);
        let found = alice.send(&failing, "search", br#"{"query": "5"}"#);
        if !failing.has_failed() {
            assert_eq!(found.unwrap()["results"].as_array().unwrap().len(), 1);
            break;
        }
        // The index is whole and in use, or there is nothing of it.
        found.unwrap_err();
        let in_use = alice
            .db
            .rows("SELECT 1 FROM cf_agents_config WHERE key = 'search'", &[])
            .unwrap()
            .len()
            == 1;
        assert!(in_use || alice.db.dump() == before, "statement {tried}");
        assert_eq!(
            alice.ok("search", json!({"query": "5"}))["results"]
                .as_array()
                .unwrap()
                .len(),
            1
        );
        tried += 1;
    }
    assert!(tried > 5);
}

fn sweep(furnished: fn() -> Alice) {
    let big: Vec<Value> = (0..5)
        .map(|n| json!({"id": format!("big-{n}"), "action": "user_message", "content": "x".repeat(400_000)}))
        .collect();
    let run = furnished().events()[5]["id"].clone();
    let minted = furnished().events()[1]["id"].clone();
    let compactions = furnished().ok("getCompactions", json!({"sessionId": "s"}));
    let compaction = compactions["compactions"][0]["id"].clone();
    let writes: Vec<(&str, Value)> = vec![
        ("createSession", json!({"id": "u", "parentSessionId": "s"})),
        (
            "updateSession",
            json!({"sessionId": "s", "name": "n", "metadata": {"b": 2}}),
        ),
        (
            "addUsage",
            json!({"sessionId": "s", "inputTokens": 5, "cost": 1.5}),
        ),
        ("deleteSession", json!({"sessionId": "s"})),
        (
            "appendEvents",
            json!({"sessionId": "s", "events": [{"action": "user_message", "content": "6"}]}),
        ),
        (
            "appendEvents",
            json!({"sessionId": "s", "parentId": "b1", "events": [{"id": "c", "action": "user_message", "content": "6"}, {"action": "agent_message", "content": "7"}]}),
        ),
        ("appendEvents", json!({"sessionId": "s", "events": big})),
        (
            "deleteEvents",
            json!({"sessionId": "s", "eventIds": ["b1", minted]}),
        ),
        (
            "appendMessage",
            json!({"sessionId": "s", "message": {"id": "m", "role": "user", "parts": []}}),
        ),
        (
            "updateMessage",
            json!({"sessionId": "s", "message": {"id": "b1", "role": "user", "parts": []}}),
        ),
        (
            "upsertMessage",
            json!({"sessionId": "s", "message": {"id": run, "role": "assistant", "parts": []}}),
        ),
        (
            "deleteMessages",
            json!({"sessionId": "s", "messageIds": ["b1", run]}),
        ),
        (
            "appendMessage",
            json!({"sessionId": "s", "message": picture("pic2", "b")}),
        ),
        (
            "updateMessage",
            json!({"sessionId": "s", "message": picture("pic", "b")}),
        ),
        (
            "deleteMessages",
            json!({"sessionId": "s", "messageIds": ["pic"]}),
        ),
        ("forkSession", json!({"sessionId": "s"})),
        ("clearMessages", json!({"sessionId": "s"})),
        ("setLeaf", json!({"sessionId": "s", "id": "b1"})),
        ("forkSession", json!({"sessionId": "s", "atId": "b1"})),
        ("configureAgent", json!({"model": "demo"})),
        ("configureCompaction", json!({"protectHead": 1})),
        (
            "configureCompaction",
            json!({"sessionId": "s", "protectHead": 1}),
        ),
        (
            "addCompaction",
            json!({"sessionId": "s", "summary": "y", "fromId": minted, "toId": "b1"}),
        ),
        (
            "deleteCompaction",
            json!({"sessionId": "s", "compactionId": compaction}),
        ),
        (
            "defineBlock",
            json!({"label": "new", "kind": "readonly", "defaultContent": "d"}),
        ),
        (
            "defineBlock",
            json!({"label": "memory", "kind": "writable", "maxTokens": 9}),
        ),
        ("removeBlock", json!({"label": "kb", "purge": true})),
        ("setBlock", json!({"label": "memory", "content": "c"})),
        (
            "appendToBlock",
            json!({"sessionId": "s", "label": "memory", "content": "c"}),
        ),
        ("revertBlock", json!({"label": "memory", "version": 1})),
        ("clearBlocks", json!({})),
        (
            "setEntry",
            json!({"label": "kb", "key": "new", "content": "c"}),
        ),
        (
            "setEntry",
            json!({"label": "kb", "key": "k", "content": "other"}),
        ),
        ("deleteEntry", json!({"label": "kb", "key": "k"})),
        (
            "putSkill",
            json!({"label": "skills", "key": "k", "content": "other"}),
        ),
        ("deleteSkill", json!({"label": "skills", "key": "k"})),
        (
            "loadSkill",
            json!({"sessionId": "t", "label": "skills", "key": "k"}),
        ),
        (
            "unloadSkill",
            json!({"sessionId": "s", "label": "skills", "key": "k"}),
        ),
        ("freezePrompt", json!({})),
        ("refreshPrompt", json!({"sessionId": "t"})),
        (
            "callTool",
            json!({"sessionId": "s", "name": "set_context", "arguments": {"label": "memory", "content": "t"}}),
        ),
        (
            "callTool",
            json!({"name": "set_context", "arguments": {"label": "skills", "content": "t", "metadata": {"title": "T"}}}),
        ),
        ("destroy", json!({"confirm": "alice"})),
    ];
    for (operation, body) in writes {
        let mut tried = 0;
        loop {
            let alice = furnished();
            let before = alice.db.dump();
            let failing = Failing::after(&alice.db, tried);
            let outcome = alice.send(&failing, operation, body.to_string().as_bytes());
            if !failing.has_failed() {
                outcome.unwrap();
                assert_ne!(alice.db.dump(), before, "{operation} writes");
                break;
            }
            let error = outcome.expect_err(operation);
            assert_eq!(
                error.code,
                Code::StorageFailed,
                "{operation}, statement {tried}"
            );
            assert_eq!(alice.db.dump(), before, "{operation}, statement {tried}");
            // And the same request, sent again, succeeds.
            alice
                .send(&alice.db, operation, body.to_string().as_bytes())
                .unwrap();
            tried += 1;
        }
        assert!(tried >= 2, "{operation} reads and writes");
    }
}

#[test]
fn a_migration_that_fails_leaves_nothing_and_runs_again() {
    let host = FixedHost::default();
    let mut tried = 0;
    loop {
        let db = Sqlite::new();
        let failing = Failing::after(&db, tried);
        let outcome = schema::migrate(&failing, &host);
        if !failing.has_failed() {
            outcome.unwrap();
            break;
        }
        // A failure of the very first look is taken for a table that isn't there yet.
        if tried > 0 {
            outcome.unwrap_err();
            assert_eq!(db.rows("SELECT name FROM sqlite_master", &[]).unwrap(), []);
            schema::migrate(&db, &host).unwrap();
        }
        tried += 1;
    }
    assert!(tried > 3);
}
