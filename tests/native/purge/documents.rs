//! Copies of a document in logs: which of them a purge of the document erases, and which remain.

use serde_json::{Value, json};

use super::{NEEDLE, places_after_purge};
use crate::Alice;

const ERASED: &str = "[This document was erased.]";

/// An agent with the document `skills/k`, which session `s` has loaded.
fn with_document() -> Alice {
    let alice = Alice::with_session();
    let block = json!({"label": "skills", "kind": "loadable"});
    alice.ok("defineBlock", block);
    put(&alice, json!({}), NEEDLE);
    load(&alice);
    alice
}

fn put(alice: &Alice, place: Value, content: &str) {
    let mut body = json!({"label": "skills", "key": "k", "content": content});
    body.as_object_mut()
        .unwrap()
        .extend(place.as_object().unwrap().clone());
    alice.ok("putSkill", body);
}

fn load(alice: &Alice) {
    let loaded = json!({"sessionId": "s", "label": "skills", "key": "k"});
    alice.ok("loadSkill", loaded);
}

fn purge(alice: &Alice) -> Value {
    let input = json!({"label": "skills", "key": "k", "purge": true});
    alice.ok("deleteSkill", input)
}

fn assert_erased(alice: &Alice) {
    assert_eq!(places_after_purge(&alice.db), Vec::<String>::new());
    alice.assert_consistent("a purge of a document");
}

fn append(alice: &Alice, events: Value) -> Vec<String> {
    let appended = alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    crate::ids(&appended["events"])
}

/// A model's call that loads the document.
fn loads(id: &str) -> Value {
    json!({"id": id, "name": "load_context", "arguments": {"label": " Skills", "key": "k"}})
}

fn loads_other(id: &str) -> Value {
    json!({"id": id, "name": "load_context", "arguments": {"label": "skills", "key": "other"}})
}

fn user_event(id: &str) -> Value {
    json!({"id": id, "name": "weather", "arguments": {}})
}

fn event_of(calls: &[Value]) -> Value {
    json!({"action": "tool_call_request", "toolCalls": calls})
}

fn result(id: &str, name: &str, content: &str) -> Value {
    json!({"action": "tool_result", "toolCallId": id, "toolName": name, "content": content})
}

/// Appends a call that loads the document, and its result.
fn log_copy(alice: &Alice, content: &str) {
    let answer = result("c", "load_context", content);
    append(alice, json!([event_of(&[loads("c")]), answer]));
}

fn contents(alice: &Alice) -> Vec<String> {
    let results = alice.events().into_iter();
    let results = results.filter(|event| event["action"] == "tool_result");
    results
        .map(|event| event["content"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn with_shared_call_ids_only_the_calls_own_result_is_purged() {
    let of = |name: &str, content: &str| result("c", name, content);
    let document = || of("load_context", NEEDLE);
    let is_stored = || of("weather", "sunny");
    let other = || of("load_context", "Other.");
    let cases: [(Vec<Value>, &[&str]); 6] = [
        // One after the other.
        (
            vec![
                event_of(&[loads("c")]),
                document(),
                event_of(&[user_event("c")]),
                is_stored(),
                event_of(&[loads_other("c")]),
                other(),
                event_of(&[loads("c")]),
                document(),
            ],
            &[ERASED, "sunny", "Other.", ERASED],
        ),
        // The newest open call is answered first.
        (
            vec![
                event_of(&[user_event("c")]),
                event_of(&[loads("c")]),
                document(),
                is_stored(),
            ],
            &[ERASED, "sunny"],
        ),
        // Of several calls of one event, the first is answered.
        (
            vec![
                event_of(&[loads("c"), user_event("c")]),
                document(),
                is_stored(),
            ],
            &[ERASED, "sunny"],
        ),
        (
            vec![
                event_of(&[loads_other("c"), loads("c")]),
                other(),
                document(),
            ],
            &["Other.", ERASED],
        ),
        // One result twice, and one whose call was deleted.
        (
            vec![event_of(&[loads("c")]), document(), document(), is_stored()],
            &[ERASED, ERASED, "sunny"],
        ),
        // Other ids in between.
        (
            vec![
                event_of(&[loads("c"), user_event("d")]),
                result("d", "weather", "sunny"),
                document(),
            ],
            &["sunny", ERASED],
        ),
    ];
    for (events, left) in cases {
        let alice = with_document();
        append(&alice, json!(events));
        let receipt = purge(&alice);
        assert_eq!(contents(&alice), left, "{events:?}");
        let copies = left.iter().filter(|text| **text == ERASED).count();
        assert_eq!(receipt["erased"]["loadedDocuments"], json!(copies + 1));
        assert_erased(&alice);
    }
}

#[test]
fn the_result_of_another_branchs_call_is_kept() {
    let alice = with_document();
    let root = alice.append_texts(&["root"]).remove(0);
    log_copy(&alice, NEEDLE);
    let mut sibling = event_of(&[user_event("c")]);
    sibling["parentId"] = json!(root);
    let events = json!([sibling, result("c", "weather", "sunny")]);
    let sibling_ids = append(&alice, events);
    let summary = json!({"sessionId": "s", "summary": "It is sunny.", "fromId": sibling_ids[0], "toId": sibling_ids[1]});
    let summary = alice.ok("addCompaction", summary);
    let receipt = purge(&alice);
    assert_eq!(contents(&alice), [ERASED, "sunny"]);
    assert_eq!(receipt["erased"]["summaries"], 0, "{receipt}");
    let left = alice.ok("getCompactions", json!({"sessionId": "s"}));
    assert_eq!(left["compactions"][0]["id"], summary["id"], "{left}");
    assert_erased(&alice);
}

fn define_own(alice: &Alice) {
    let own = json!({"sessionId": "s", "label": "skills", "kind": "loadable"});
    alice.ok("defineBlock", own);
}

#[test]
fn an_earlier_copy_is_purged_after_the_session_defines_its_own_block() {
    let alice = with_document();
    log_copy(&alice, NEEDLE);
    alice.host.advance(1);
    define_own(&alice);
    purge(&alice);
    assert_eq!(contents(&alice), [ERASED]);
    assert_erased(&alice);
}

#[test]
fn copies_of_a_sessions_own_document_are_kept() {
    let alice = with_document();
    log_copy(&alice, NEEDLE);
    alice.host.advance(1);
    define_own(&alice);
    put(&alice, json!({"sessionId": "s"}), "Its own.");
    alice.host.advance(1);
    load(&alice);
    log_copy(&alice, "Its own.");
    purge(&alice);
    assert_eq!(contents(&alice), [ERASED, "Its own."]);
    assert_erased(&alice);
    let load = json!({"sessionId": "s", "label": "skills", "key": "k"});
    assert_eq!(alice.ok("loadSkill", load)["loaded"], false);
}

/// Every order of changes to the session's own block, at the same time or later.
#[test]
fn a_sessions_own_loaded_copy_is_kept_in_any_order() {
    let orders: [&[&str]; 8] = [
        &["define", "put", "load"],
        &["define", "put", "load", "describe"],
        &["load", "define", "put", "load"],
        &["load", "define", "put", "load", "describe"],
        &["load", "define", "put the same", "load"],
        &["define", "put", "load", "remove"],
        &["define", "put", "load", "describe", "put more"],
        &["define", "describe", "put", "load", "remove", "define"],
    ];
    for (order, pause_ms) in orders
        .into_iter()
        .flat_map(|order| [(order, 0), (order, 1)])
    {
        let alice = with_document();
        let own = json!({"sessionId": "s"});
        let mut text = "Its own.";
        for step in order {
            alice.host.advance(pause_ms);
            match *step {
                "define" => define_own(&alice),
                "put" => put(&alice, own.clone(), text),
                "put the same" => {
                    text = NEEDLE;
                    put(&alice, own.clone(), text);
                }
                "put more" => put(&alice, own.clone(), "Its own, and more."),
                "load" => load(&alice),
                "remove" => {
                    alice.ok("removeBlock", json!({"sessionId": "s", "label": "skills"}));
                }
                _ => {
                    let described = json!({"sessionId": "s", "label": "skills", "kind": "loadable", "description": format!("Of {step}, {pause_ms}.")});
                    alice.ok("defineBlock", described);
                }
            }
        }
        purge(&alice);
        let sql = "SELECT content FROM cf_agents_loaded_skills WHERE session_id = 's'";
        let left: Option<String> = base::columns::find_value(&alice.db, sql, &[]).unwrap();
        assert_eq!(left.as_deref(), Some(text), "{order:?}, {pause_ms} ms");
    }
}

/// A turn logs its calls when it ends.
#[test]
fn a_copys_age_is_that_of_its_question() {
    let alice = with_document();
    let question = json!([{"action": "user_message", "content": "Which?"}]);
    append(&alice, question);
    alice.host.advance(1);
    define_own(&alice);
    alice.host.advance(1);
    log_copy(&alice, NEEDLE);
    purge(&alice);
    assert_eq!(contents(&alice), [ERASED]);
    assert_erased(&alice);
}

#[test]
fn a_later_result_of_a_purged_call_is_found_by_the_next_purge() {
    let alice = with_document();
    let place = json!({"label": "skills", "key": "k"});
    let part = json!({"type": "tool-load_context", "toolCallId": "c", "state": "output-available",
        "input": place, "output": NEEDLE});
    let message = json!({"id": "m", "role": "assistant", "parts": [part]});
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "message": message}),
    );
    purge(&alice);
    put(&alice, json!({}), NEEDLE);
    load(&alice);
    append(&alice, json!([result("c", "load_context", NEEDLE)]));
    purge(&alice);
    assert_erased(&alice);
}

#[test]
fn a_loaded_document_is_purged_with_its_results_in_any_order() {
    let loaded = json!({"kind": "loadedDocument", "sessionId": "s", "label": "skills", "key": "k"});
    let document = json!({"kind": "document", "label": "skills", "key": "k"});
    let orders: [&[&[&Value]]; 4] = [
        &[&[&loaded, &document]],
        &[&[&document, &loaded]],
        &[&[&loaded], &[&document]],
        &[&[&document], &[&loaded]],
    ];
    for order in orders {
        let alice = with_document();
        append(
            &alice,
            json!([event_of(&[loads("c")]), result("c", "load_context", NEEDLE)]),
        );
        for places in order {
            alice.ok("erase", json!({"places": places}));
        }
        assert_eq!(contents(&alice), [ERASED], "{order:?}");
        assert_erased(&alice);
    }
    // The agent's document is kept.
    let alice = with_document();
    log_copy(&alice, NEEDLE);
    let erased = alice.ok("erase", json!({"places": [loaded]}));
    assert_eq!(
        (&erased["found"], &erased["erased"]["loadedDocuments"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(contents(&alice), [ERASED]);
    let again = alice.ok("erase", json!({"places": [loaded]}));
    assert_eq!(again["found"], 0);
    purge(&alice);
    assert_erased(&alice);
}

/// A part with the tool's answer.
fn part(id: &str, input: Value) -> Value {
    json!({"type": "tool-load_context", "toolCallId": id, "state": "output-available", "input": input, "output": NEEDLE})
}

fn message(parts: Value) -> Value {
    json!({"id": "m", "role": "assistant", "parts": parts, "metadata": {"liked": true}})
}

fn shown(alice: &Alice) -> Value {
    alice.ok("getMessage", json!({"sessionId": "s", "messageId": "m"}))
}

#[test]
fn a_result_merged_into_a_message_is_purged_and_the_rest_kept() {
    let named = json!({"label": "Skills", "key": "k"});
    let dynamic = json!({"type": "dynamic-tool", "toolName": "load_context", "toolCallId": "c", "state": "output-error", "input": named, "errorText": NEEDLE});
    let weather = json!({"type": "tool-weather", "toolCallId": "c", "state": "output-available", "input": {}, "output": {"sunny": true}});
    let other = json!({"type": "tool-load_context", "toolCallId": "e", "state": "output-available", "input": {"label": "skills", "key": "other"}, "output": "Other."});
    let picture = format!("data:image/png;base64,{}", "iVBOR".repeat(1_000));
    let file = json!({"type": "file", "mediaType": "image/png", "url": picture});
    for length in [1, 1_000_000, 2_500_000] {
        let text = json!({"type": "text", "text": "x".repeat(length)});
        let alice = with_document();
        alice.ok("search", json!({"query": "before"}));
        let parts = [
            &text,
            &part("c", named.clone()),
            &weather,
            &other,
            &dynamic,
            &file,
        ];
        let append = json!({"sessionId": "s", "message": message(json!(parts))});
        alice.ok("appendMessage", append);
        let feed = alice.ok("getChanges", json!({"sessionId": "s"}));
        let receipt = purge(&alice);
        assert_eq!(receipt["erased"]["loadedDocuments"], 3, "{receipt}");
        let (mut erased, mut failed) = (part("c", named.clone()), dynamic.clone());
        erased["output"] = json!(ERASED);
        failed["errorText"] = json!(ERASED);
        let mut left = shown(&alice);
        left.as_object_mut().unwrap().remove("createdAt");
        let parts = [&text, &erased, &weather, &other, &failed, &file];
        assert!(left == message(json!(parts)), "{length}");
        assert_erased(&alice);
        let since = json!({"sessionId": "s", "since": feed["cursor"]});
        let answer = alice.ok("getChanges", since);
        assert!(answer["changes"].to_string().contains(r#""m""#), "{answer}");
    }
}

#[test]
fn a_run_updated_to_a_message_is_found() {
    let alice = with_document();
    let mut run = event_of(&[loads("c"), user_event("d")]);
    run["id"] = json!("m");
    let events = [
        run,
        result("c", "load_context", NEEDLE),
        result("d", "weather", "sunny"),
    ];
    append(&alice, json!(events));
    let mut updated = shown(&alice);
    updated["metadata"] = json!({"liked": true});
    let update = json!({"sessionId": "s", "message": updated});
    alice.ok("updateMessage", update);
    let receipt = purge(&alice);
    assert_eq!(receipt["erased"]["loadedDocuments"], 2, "{receipt}");
    updated["parts"][0]["output"] = json!(ERASED);
    assert_eq!(shown(&alice), updated);
    assert_erased(&alice);
}

#[test]
fn a_result_in_another_message_than_its_call_is_found() {
    let open = |id: &str| {
        let input = json!({"label": "skills", "key": "k"});
        json!({"type": "tool-load_context", "toolCallId": id, "state": "input-available", "input": input})
    };
    let append_message = |alice: &Alice, parts: Value| {
        let body = json!({"sessionId": "s", "message": message(parts)});
        alice.ok("appendMessage", body);
    };
    // A message's open call, and its result as an event.
    let alice = with_document();
    append_message(&alice, json!([open("c")]));
    append(&alice, json!([result("c", "load_context", NEEDLE)]));
    purge(&alice);
    assert_eq!(contents(&alice), [ERASED]);
    assert_erased(&alice);
    // A result in its own message, because a summary separated it from its call.
    let alice = with_document();
    append(&alice, json!([event_of(&[loads("c")])]));
    append_message(&alice, json!([part("c", json!({}))]));
    purge(&alice);
    assert_eq!(shown(&alice)["parts"][0]["output"], ERASED);
    assert_erased(&alice);
}

/// The calls of a long event are in slices.
#[test]
fn the_calls_of_a_long_event_are_read() {
    let alice = with_document();
    let mut long = user_event("d");
    long["arguments"] = json!({"text": "x".repeat(2_000_000)});
    let events = [
        event_of(&[loads("c"), long]),
        result("c", "load_context", NEEDLE),
        result("d", "weather", "sunny"),
    ];
    append(&alice, json!(events));
    purge(&alice);
    assert_eq!(contents(&alice), [ERASED, "sunny"]);
    assert_erased(&alice);
}
