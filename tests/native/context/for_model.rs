//! `getHistory` with `forModel`.

use serde_json::{Value, json};

use crate::Alice;

fn history(alice: &Alice, more: Value) -> Value {
    let mut body = json!({"sessionId": "s", "forModel": true});
    let fields = body.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    alice.ok("getHistory", body)
}

fn append(alice: &Alice, id: &str, role: &str, parts: Value) {
    let message = json!({"id": id, "role": role, "parts": parts, "metadata": {"n": 1.0}});
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "message": message}),
    );
}

#[test]
fn older_messages_are_truncated_and_the_newest_are_whole() {
    let alice = Alice::with_session();
    let long = "x".repeat(3_000);
    let text = "y".repeat(10_001);
    append(
        &alice,
        "tool",
        "assistant",
        json!([
        {"type": "tool-t", "toolCallId": "c", "state": "output-available", "input": {}, "output": {"a": long}},
        {"type": "text", "text": "Done."}]),
    );
    append(
        &alice,
        "text",
        "user",
        json!([{"type": "text", "text": text}]),
    );
    let few = history(&alice, json!({}));
    assert_eq!(few, alice.ok("getHistory", json!({"sessionId": "s"})));
    alice.append_texts(&["1"; 16]);
    let shown = history(&alice, json!({}));
    let output = shown["messages"][0]["parts"][0]["output"].as_str().unwrap();
    assert!(output.starts_with("{\"a\":\"xxx") && output.contains("2508 more characters"));
    assert_eq!(
        shown["messages"][0]["parts"][1],
        json!({"type": "text", "text": "Done."})
    );
    assert!(
        shown["messages"][1]["parts"][0]["text"]
            .as_str()
            .unwrap()
            .contains("1 more characters")
    );
    // The log and other readers have the full text.
    let full = alice.ok("getHistory", json!({"sessionId": "s"}));
    assert_eq!(
        full["messages"][0]["parts"][0]["output"]["a"],
        long.as_str()
    );
}

#[test]
fn older_files_are_named_on_every_page() {
    let alice = Alice::with_session();
    let picture = json!([{"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", "filename": "a.png"}]);
    append(&alice, "old", "user", picture.clone());
    alice.append_texts(&["1", "2", "3"]);
    append(&alice, "new", "user", picture.clone());
    let named = json!([{"type": "text", "text": "[Attachment: a.png, image/png; shown earlier, omitted here]"}]);
    let shown = history(&alice, json!({}));
    assert_eq!(shown["messages"][0]["parts"], named);
    assert_eq!(shown["messages"][0]["id"], "old");
    assert_eq!(shown["messages"][0]["metadata"], json!({"n": 1.0}));
    assert_eq!(shown["messages"][4]["parts"], picture);
    assert_eq!(
        history(&alice, json!({"keepMedia": 5}))["messages"][0]["parts"],
        picture
    );
    // A page of older messages also counts from the newest one.
    let below = history(&alice, json!({"limit": 4}));
    let above = history(&alice, json!({"before": below["cursor"], "keepMedia": 5}));
    assert_eq!(above["messages"][0]["parts"], picture);
    let above = history(&alice, json!({"before": below["cursor"]}));
    assert_eq!(above["messages"][0]["parts"], named);
}

#[test]
fn an_unloaded_document_is_removed_and_a_loaded_one_is_whole() {
    let alice = Alice::with_session();
    let text = "rule ".repeat(1_000);
    alice.ok(
        "defineBlock",
        json!({"label": "skills", "kind": "loadable"}),
    );
    alice.ok(
        "putSkill",
        json!({"label": "skills", "key": "deploy", "content": text}),
    );
    let loaded = alice.ok("callTool", json!({"sessionId": "s", "name": "load_context", "arguments": {"label": "skills", "key": "deploy"}}));
    append(
        &alice,
        "a",
        "assistant",
        json!([{"type": "tool-load_context", "toolCallId": "c", "state": "output-available",
        "input": {"label": "skills", "key": "deploy"}, "output": loaded["output"]}]),
    );
    alice.append_texts(&["1"; 16]);
    let output = || history(&alice, json!({}))["messages"][0]["parts"][0]["output"].clone();
    assert_eq!(output(), loaded["output"]);
    alice.ok(
        "unloadSkill",
        json!({"sessionId": "s", "label": "skills", "key": "deploy"}),
    );
    assert_eq!(
        output(),
        "[unloaded: skills/deploy — load_context loads it again]"
    );
}

#[test]
fn files_in_a_tool_output_are_named() {
    let alice = Alice::with_session();
    let url = format!("data:image/png;base64,{}", "A".repeat(2_000));
    append(
        &alice,
        "a",
        "assistant",
        json!([{"type": "tool-t", "toolCallId": "c", "state": "output-available", "input": {}, "output": {"picture": url, "n": 1}}]),
    );
    let output = &history(&alice, json!({}))["messages"][0]["parts"][0]["output"];
    assert_eq!(
        *output,
        json!({"picture": "[a file, image/png, 2022 bytes, omitted here]", "n": 1})
    );
}
