//! For each kind of content and each entry point that can write it: a purge leaves the text in no
//! table.

use serde_json::{Value, json};

use super::{NEEDLE, places_after_purge, places_of_needle};
use crate::Alice;
use crate::shared::turns::{calls, text_answer};
use base::outbound::CallFailure;
use base::testing::ScriptedAnswer;

fn text(text: &str) -> String {
    format!("They said {NEEDLE} {text}.")
}

fn append(alice: &Alice, session: &str, events: Value) -> Vec<String> {
    let appended = alice.ok(
        "appendEvents",
        json!({"sessionId": session, "events": events}),
    );
    crate::ids(&appended["events"])
}

/// An agent that searches, so that what is written is indexed, and that has vectors.
fn agent() -> Alice {
    let alice = Alice::with_model();
    alice.ok("createSession", json!({"id": "s"}));
    alice.append_texts(&["before"]);
    alice.ok("search", json!({"query": "before"}));
    alice
}

/// Where the text is stored. `cargo test purge -- --nocapture` prints it for each case.
fn needle_places(alice: &Alice) -> Vec<String> {
    let places = places_of_needle(&alice.db);
    assert!(!places.is_empty(), "the entry point wrote nothing");
    places
}

fn assert_erased(alice: &Alice) {
    let places = places_after_purge(&alice.db);
    assert!(places.is_empty(), "{places:?}");
}

fn purge(alice: &Alice, operation: &str, mut body: Value) -> Value {
    let places = needle_places(alice);
    let test = std::thread::current();
    let case = test.name().unwrap_or_default().rsplit("::").next();
    println!("purge: {case:?} by {operation}: {}", places.join(", "));
    body["purge"] = json!(true);
    let receipt = alice.ok(operation, body);
    assert_erased(alice);
    receipt
}

#[test]
fn events_of_every_action_are_purged() {
    let events = [
        json!({"action": "user_message", "content": text("a"), "metadata": {"about": NEEDLE}}),
        json!({"action": "agent_message", "content": text("b")}),
        json!({"action": "system_instruction", "content": text("c")}),
        json!({"action": "tool_call_request", "toolCalls": [{"id": "c", "name": "t", "arguments": {"q": NEEDLE}}]}),
        json!({"action": "tool_result", "toolCallId": "c", "toolName": "t", "content": text("d")}),
    ];
    for event in events {
        let alice = agent();
        let ids = append(&alice, "s", json!([event]));
        let receipt = purge(
            &alice,
            "deleteEvents",
            json!({"sessionId": "s", "eventIds": ids}),
        );
        assert_eq!(
            (&receipt["deleted"], &receipt["erased"]["events"]),
            (&json!(1), &json!(1))
        );
    }
}

#[test]
fn a_long_event_is_purged_with_its_slices() {
    let alice = agent();
    let long = format!("{} {}", "walrus ".repeat(300_000), text("long"));
    let ids = append(
        &alice,
        "s",
        json!([{"action": "user_message", "content": long}]),
    );
    purge(
        &alice,
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": ids}),
    );
}

#[test]
fn messages_are_purged_with_media_and_updates() {
    let alice = agent();
    let picture = format!("data:image/png;base64,{}", NEEDLE.repeat(500));
    let message = |content: &str| {
        json!({"sessionId": "s", "message": {"id": "m", "role": "user", "parts": [
            {"type": "text", "text": content}, {"type": "file", "mediaType": "image/png", "url": picture}]}})
    };
    alice.ok("appendMessage", message(&text("first")));
    alice.ok("updateMessage", message(&text("again")));
    let receipt = purge(
        &alice,
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": ["m"]}),
    );
    assert_eq!(receipt["erased"]["media"], 1);
    assert_eq!(receipt["deleted"], 1);
}

#[test]
fn media_used_by_another_message_is_kept() {
    let alice = agent();
    let picture = format!("data:image/png;base64,{}", "iVBOR".repeat(1_000));
    for id in ["a", "b"] {
        alice.ok(
            "appendMessage",
            json!({"sessionId": "s", "message": {"id": id, "role": "user", "parts": [
            {"type": "file", "mediaType": "image/png", "url": picture}]}}),
        );
    }
    let receipt = alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": ["a"], "purge": true}),
    );
    assert_eq!(receipt["erased"]["media"], 0);
    let message = alice.ok("getMessage", json!({"sessionId": "s", "messageId": "b"}));
    assert_eq!(message["parts"][0]["url"], json!(picture));
}

#[test]
fn a_turn_is_purged_with_reasoning_tools_and_record() {
    let alice = agent();
    crate::shared::turns::define(&alice, "echo", false);
    alice
        .outbound
        .answer(calls(&[("c1", "echo", json!({"text": NEEDLE}))]));
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(200, &text("echoed"))));
    alice.outbound.answer(text_answer(&text("answered")));
    alice.chat_text("asked");
    let page = alice.ok("getHistory", json!({"sessionId": "s"}));
    let ids = crate::ids(&page["messages"]);
    let receipt = purge(
        &alice,
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": &ids[1..]}),
    );
    assert_eq!(receipt["erased"]["turns"], 1);
}

#[test]
fn a_pending_callback_is_purged_with_its_message() {
    let alice = agent();
    let url = json!({"onTurnEnd": {"url": "https://tools.example/ended"}});
    alice.ok("configureAgent", url);
    alice.outbound.answer(text_answer(&text("answered")));
    alice.chat_text("hi");
    let page = alice.ok("getHistory", json!({"sessionId": "s"}));
    let ids = crate::ids(&page["messages"]);
    let receipt = purge(
        &alice,
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": &ids[1..]}),
    );
    assert_eq!(receipt["erased"]["callbacks"], 1);
}

#[test]
fn only_summaries_that_covered_a_purged_event_are_deleted() {
    let alice = agent();
    let ids = append(
        &alice,
        "s",
        json!([
            {"action": "user_message", "content": "one"}, {"action": "agent_message", "content": text("two")},
            {"action": "user_message", "content": "three"}, {"action": "agent_message", "content": "four"}
        ]),
    );
    let compaction = |summary: &str, from: usize, to: usize| {
        alice.ok(
            "addCompaction",
            json!({"sessionId": "s", "summary": summary, "fromId": ids[from], "toId": ids[to]}),
        )
    };
    compaction(&text("in the summary"), 0, 1);
    let later = compaction("later", 2, 3);
    let receipt = purge(
        &alice,
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": [ids[1]]}),
    );
    assert_eq!(receipt["erased"]["summaries"], 1);
    let left = alice.ok("getCompactions", json!({"sessionId": "s"}));
    let left = &left["compactions"];
    assert_eq!(left.as_array().map_or(0, Vec::len), 1, "{left}");
    assert_eq!(left[0]["id"], later["id"]);
}

#[test]
fn a_summary_of_another_branch_is_kept() {
    let alice = agent();
    let ids = append(
        &alice,
        "s",
        json!([
            {"action": "user_message", "content": "root"}, {"action": "agent_message", "content": "one"}
        ]),
    );
    let branch = alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "parentId": ids[0], "events": [
        {"action": "agent_message", "content": text("beside")}]}),
    );
    let branch = crate::ids(&branch["events"]);
    let on = alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "parentId": ids[1], "events": [
        {"action": "user_message", "content": "two"}]}),
    );
    let on = crate::ids(&on["events"]);
    alice.ok(
        "addCompaction",
        json!({"sessionId": "s", "summary": "x", "fromId": ids[0], "toId": on[0]}),
    );
    let receipt = purge(
        &alice,
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": branch}),
    );
    assert_eq!(receipt["erased"]["summaries"], 0);
}

#[test]
fn an_imported_session_is_purged() {
    let other = Alice::with_session();
    other.append_texts(&[&text("imported")]);
    let file = other.export("s").unwrap();
    let alice = agent();
    alice.import("imported", &file).unwrap();
    alice.ok("search", json!({"query": "imported"}));
    purge(&alice, "deleteSession", json!({"sessionId": "imported"}));
}

#[test]
fn a_session_is_purged_with_name_metadata_and_memory() {
    let alice = agent();
    alice.ok(
        "createSession",
        json!({"id": "t", "name": text("name"), "metadata": {"about": NEEDLE}}),
    );
    append(
        &alice,
        "t",
        json!([{"action": "user_message", "content": text("said")}]),
    );
    alice.ok("defineBlock", json!({"sessionId": "t", "label": "memory", "kind": "writable", "defaultContent": text("default")}));
    alice.ok(
        "setBlock",
        json!({"sessionId": "t", "label": "memory", "content": text("block")}),
    );
    alice.ok("freezePrompt", json!({"sessionId": "t"}));
    let receipt = purge(&alice, "deleteSession", json!({"sessionId": "t"}));
    assert_eq!(receipt["erased"]["sessions"], 1);
    assert_eq!(receipt["erased"]["prompts"], 1);
}

fn with_blocks() -> Alice {
    let alice = agent();
    for (label, kind) in [
        ("kb", "searchable"),
        ("skills", "loadable"),
        ("memory", "writable"),
    ] {
        alice.ok("defineBlock", json!({"label": label, "kind": kind}));
    }
    alice
}

#[test]
fn a_deleted_entry_is_purged_with_its_versions() {
    for is_deleted in [false, true] {
        for operation in ["setEntry", "set_context"] {
            let alice = with_blocks();
            for content in ["first", "second"] {
                match operation {
                    "setEntry" => alice.ok(
                        "setEntry",
                        json!({"label": "kb", "key": "k", "title": NEEDLE, "content": text(content)}),
                    ),
                    _ => alice.ok(
                        "callTool",
                        json!({"name": "set_context", "arguments": {
                        "label": "kb", "content": text(content), "metadata": {"title": "k"}}}),
                    ),
                };
            }
            let entry = json!({"label": "kb", "key": "k"});
            if is_deleted {
                assert_eq!(alice.ok("deleteEntry", entry.clone())["versionsKept"], 2);
            }
            let receipt = purge(&alice, "deleteEntry", entry.clone());
            assert_eq!(receipt["deleted"], !is_deleted);
            assert_eq!(receipt["erased"]["entries"], i64::from(!is_deleted));
            assert_eq!(receipt["versionsKept"], Value::Null);
            let versions = alice.ok("getBlockVersions", json!({"label": "kb", "key": "k"}));
            assert_eq!(versions["versions"], json!([]), "{versions}");
            // The counts are those of the remaining rows.
            let blocks = alice.ok(
                "setEntry",
                json!({"label": "kb", "key": "k", "content": "new"}),
            );
            assert_eq!(blocks["content"], "new");
        }
    }
}

#[test]
fn a_document_is_purged_with_copies_in_contexts_and_logs() {
    let alice = with_blocks();
    let document = |content: &str| json!({"label": "skills", "key": "k", "description": NEEDLE, "content": text(content)});
    alice.ok("putSkill", document("first"));
    alice.ok("freezePrompt", json!({"sessionId": "s"}));
    alice.outbound.answer(calls(&[(
        "c1",
        "load_context",
        json!({"label": "Skills", "key": "k"}),
    )]));
    alice.outbound.answer(text_answer("Read."));
    alice.chat_text("load it");
    alice.ok("createSession", json!({"id": "t"}));
    alice.ok(
        "loadSkill",
        json!({"sessionId": "t", "label": "skills", "key": "k"}),
    );
    alice.ok("putSkill", document("second"));
    let before = alice.ok("getHistory", json!({"sessionId": "s"}));
    let receipt = purge(
        &alice,
        "deleteSkill",
        json!({"label": "skills", "key": "k"}),
    );
    assert_eq!(receipt["erased"]["documents"], 1);
    assert_eq!(receipt["erased"]["loadedDocuments"], 3);
    assert_eq!(receipt["erased"]["prompts"], 1);
    let after = alice.ok("getHistory", json!({"sessionId": "s"}));
    let [before, after] = [before, after].map(|page| crate::ids(&page["messages"]));
    assert_eq!(before, after);
}

/// Text derived from a document's copy in a log contains the document's text.
#[test]
fn a_document_is_purged_with_summaries_and_callbacks_of_its_copies() {
    let alice = with_blocks();
    let url = json!({"onTurnEnd": {"url": "https://tools.example/ended"}});
    alice.ok("configureAgent", url);
    let document = json!({"label": "skills", "key": "k", "content": text("first")});
    alice.ok("putSkill", document);
    let load = json!({"label": "skills", "key": "k"});
    alice
        .outbound
        .answer(calls(&[("c1", "load_context", load)]));
    alice.outbound.answer(text_answer("Read."));
    alice.outbound.answer(text_answer("Then nothing."));
    alice.chat_text("load it");
    alice.chat_text("and then?");
    let page = alice.ok("getHistory", json!({"sessionId": "s"}));
    let ids = crate::ids(&page["messages"]);
    let ids = &ids[ids.len() - 4..];
    let summary = |content: &str, from: usize, to: usize| {
        let body =
            json!({"sessionId": "s", "summary": content, "fromId": ids[from], "toId": ids[to]});
        alice.ok("addCompaction", body)
    };
    summary(&text("in short"), 0, 1);
    let later = summary("later", 2, 3);
    let receipt = purge(
        &alice,
        "deleteSkill",
        json!({"label": "skills", "key": "k"}),
    );
    assert_eq!(receipt["erased"]["summaries"], 1, "{receipt}");
    assert_eq!(receipt["erased"]["callbacks"], 1, "{receipt}");
    let left = alice.ok("getCompactions", json!({"sessionId": "s"}));
    assert_eq!(left["compactions"][0]["id"], later["id"], "{left}");
}

#[test]
fn a_block_is_purged_with_its_versions_and_prompts() {
    let alice = with_blocks();
    for content in ["first", "second"] {
        alice.ok(
            "setBlock",
            json!({"label": "memory", "content": text(content), "reason": NEEDLE}),
        );
    }
    alice.ok("freezePrompt", json!({}));
    alice.ok("freezePrompt", json!({"sessionId": "s"}));
    let receipt = purge(&alice, "removeBlock", json!({"label": "memory"}));
    assert_eq!(
        (&receipt["removed"], &receipt["erased"]["versions"]),
        (&json!(true), &json!(2))
    );
    assert_eq!(receipt["erased"]["prompts"], 2);
}

#[test]
fn blocks_are_purged_with_their_items() {
    for (label, operation) in [("kb", "setEntry"), ("skills", "putSkill")] {
        let alice = with_blocks();
        for content in ["first", "second"] {
            alice.ok(
                operation,
                json!({"label": label, "key": "k", "content": text(content)}),
            );
        }
        purge(&alice, "removeBlock", json!({"label": label}));
    }
}

#[test]
fn without_purge_versions_stay_and_there_is_no_receipt() {
    let alice = with_blocks();
    alice.ok(
        "setEntry",
        json!({"label": "kb", "key": "k", "content": text("x")}),
    );
    let receipt = alice.ok(
        "deleteEntry",
        json!({"label": "kb", "key": "k", "purge": false}),
    );
    assert_eq!(receipt, json!({"deleted": true, "versionsKept": 1}));
    needle_places(&alice);
}

#[test]
fn a_model_deletes_only_what_it_may_write() {
    let alice = with_blocks();
    alice.ok(
        "setEntry",
        json!({"label": "kb", "key": "k", "content": text("x")}),
    );
    alice.ok(
        "defineBlock",
        json!({"label": "facts", "kind": "searchable", "modelWrites": false}),
    );
    alice.ok(
        "setEntry",
        json!({"label": "facts", "key": "k", "content": "stays"}),
    );
    let forget = |label: &str, key: &str| {
        alice.ok(
            "callTool",
            json!({"sessionId": "s", "name": "forget", "arguments": {"label": label, "key": key}}),
        )
    };
    assert_eq!(forget("facts", "k")["isError"], true);
    assert_eq!(forget("kb", "none")["isError"], true);
    needle_places(&alice);
    assert_eq!(
        forget("KB", "k"),
        json!({"output": "Forgotten: kb/k.", "isError": false})
    );
    assert_erased(&alice);
}

#[test]
fn a_remote_backend_deletes_first_and_is_named_in_the_receipt() {
    let alice = agent();
    let source = json!({"label": "theirs", "kind": "searchable", "source": {"agent": "user:42", "label": "kb"}});
    alice.outbound.answer(ScriptedAnswer::json(&json!({})));
    alice.ok("defineBlock", source);
    alice.outbound.answers.borrow_mut().clear();
    let erased = serde_json::to_value(store::erased::Erased {
        entries: 1,
        ..Default::default()
    })
    .unwrap();
    alice.outbound.answer(ScriptedAnswer::json(&json!({"deleted": true, "erased": erased, "at": 1, "digest": "d", "agent": "user:42", "operation": "deleteEntry"})));
    let receipt = alice.ok(
        "deleteEntry",
        json!({"label": "theirs", "key": "k", "purge": true}),
    );
    assert_eq!(receipt["deleted"], true);
    assert_eq!(
        receipt["home"],
        json!({"kind": "agent", "name": "user:42", "deleted": true, "erased": erased, "digest": "d"})
    );
    assert_eq!(receipt["erased"]["entries"], 0);
    let request = alice.outbound.calls.borrow().last().unwrap().body.clone();
    let request: Value = serde_json::from_str(&request).unwrap();
    assert_eq!(request, json!({"label": "kb", "key": "k", "purge": true}));
    // The backend is unavailable: nothing is erased, and nothing is signed.
    alice
        .outbound
        .answer(Err(CallFailure::TimedOut { silence_ms: 1 }));
    let refused = alice.call(
        "deleteEntry",
        json!({"label": "theirs", "key": "k", "purge": true}),
    );
    assert!(refused.is_err());
}

#[test]
fn a_service_that_deletes_nothing_is_reported() {
    let alice = agent();
    alice
        .outbound
        .bindings
        .borrow_mut()
        .push("NOTES".to_owned());
    alice.outbound.answer(ScriptedAnswer::json(&json!({})));
    alice.ok(
        "defineBlock",
        json!({"label": "notes", "kind": "searchable", "source": {"service": "NOTES"}}),
    );
    alice.outbound.answers.borrow_mut().clear();
    for (status, deleted) in [(200, true), (404, false), (405, false)] {
        alice.outbound.answer(Ok(ScriptedAnswer::text(status, "")));
        let receipt = alice.ok(
            "deleteEntry",
            json!({"label": "notes", "key": "k", "purge": true}),
        );
        assert_eq!(
            receipt["home"],
            json!({"kind": "service", "name": "NOTES", "deleted": deleted})
        );
    }
}
