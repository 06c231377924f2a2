use serde_json::{Value, json};

use crate::{Alice, ids};
use base::tokens::estimate;

fn build(alice: &Alice, more: Value) -> Value {
    let mut body = json!({"sessionId": "s"});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    alice.ok("buildWorkingContext", body)
}

#[test]
fn a_turn_is_built_run_and_persisted() {
    let alice = Alice::with_session();
    alice.ok(
        "configureAgent",
        json!({"systemInstructions": ["Be brief."]}),
    );
    let context = build(&alice, json!({"systemInstructions": ["Answer in verse."]}));
    assert_eq!(
        context,
        json!({
            "systemInstructions": ["Be brief.", "Answer in verse."], "messages": [], "leafId": null,
            "tokensEstimate": estimate("Be brief.") + estimate("Answer in verse.")
        })
    );
    let turn = json!([
        {"role": "user", "content": "Echo hi, please."},
        {"role": "assistant", "content": "", "toolCalls": [{"id": "c1", "name": "echo", "arguments": {"text": "hi"}}]},
        {"role": "tool", "content": "hi", "toolCallId": "c1"},
        {"role": "assistant", "content": "It says hi."}
    ]);
    let written = alice.ok(
        "persistWorkingContext",
        json!({"sessionId": "s", "messages": turn, "expectedLeafId": context["leafId"]}),
    );
    assert_eq!(ids(&written["events"]).len(), 4);
    let actions: Vec<Value> = alice
        .events()
        .iter()
        .map(|event| event["action"].clone())
        .collect();
    assert_eq!(
        actions,
        [
            "user_message",
            "tool_call_request",
            "tool_result",
            "agent_message"
        ]
    );

    let next = build(&alice, json!({}));
    assert_eq!(next["leafId"], written["leafId"]);
    assert_eq!(
        next["messages"],
        json!([
            {"role": "user", "content": "Echo hi, please."},
            {"role": "assistant", "content": "", "toolCalls": [{"id": "c1", "name": "echo", "arguments": {"text": "hi"}}]},
            {"role": "tool", "content": "hi", "toolCallId": "c1", "toolName": "echo"},
            {"role": "assistant", "content": "It says hi."}
        ])
    );
    // A second turn built on the same leaf is refused.
    assert_eq!(
        alice.refused(
            "persistWorkingContext",
            json!({"sessionId": "s", "messages": turn, "expectedLeafId": null})
        ),
        "leaf_moved"
    );
    // The returned messages can be sent back unchanged.
    alice.ok(
        "persistWorkingContext",
        json!({"sessionId": "s", "messages": next["messages"]}),
    );
}

#[test]
fn an_ai_sdk_message_expands_into_calls_and_results() {
    let alice = Alice::with_session();
    alice.ok("appendMessage", json!({"sessionId": "s", "message": {"id": "m", "role": "assistant", "parts": [
        {"type": "step-start"},
        {"type": "reasoning", "text": "hidden"},
        {"type": "text", "text": "Let me see."},
        {"type": "tool-echo", "toolCallId": "c1", "state": "output-available", "input": {"a": 1}, "output": {"b": 2}},
        {"type": "dynamic-tool", "toolName": "slow", "toolCallId": "c2", "state": "output-error", "input": {}, "errorText": "too slow"},
        {"type": "tool-ask", "toolCallId": "c3", "state": "input-available", "input": {}},
        {"type": "step-start"},
        {"type": "text", "text": "Done."}
    ]}}));
    let context = build(&alice, json!({}));
    let messages = context["messages"].as_array().unwrap();
    assert_eq!(messages[0]["content"], "Let me see.");
    assert_eq!(ids(&messages[0]["toolCalls"]), ["c1", "c2", "c3"]);
    assert_eq!(
        messages[1],
        json!({"role": "tool", "content": "{\"b\":2}", "toolCallId": "c1", "toolName": "echo"})
    );
    assert_eq!(
        messages[2],
        json!({"role": "tool", "content": "too slow", "toolCallId": "c2", "toolName": "slow", "isError": true})
    );
    // A call without an answer gets an error as its result, so that no call is sent
    // without one.
    assert_eq!(
        (&messages[3]["toolCallId"], &messages[3]["isError"]),
        (&json!("c3"), &json!(true))
    );
    assert_eq!(
        messages[4],
        json!({"role": "assistant", "content": "Done."})
    );
    assert_eq!(messages.len(), 5);
}

#[test]
fn a_window_never_starts_or_ends_inside_a_pair() {
    let alice = Alice::with_session();
    for n in 0..20 {
        alice.ok("appendEvents", json!({"sessionId": "s", "events": [
            {"action": "user_message", "content": n.to_string()},
            {"action": "tool_call_request", "toolCalls": [
                {"id": format!("a{n}"), "name": "t", "arguments": {}}, {"id": format!("b{n}"), "name": "t", "arguments": {}}]},
            {"action": "tool_result", "toolCallId": format!("a{n}"), "toolName": "t", "content": "r"},
            {"action": "tool_result", "toolCallId": format!("b{n}"), "toolName": "t", "content": "r"},
            {"action": "agent_message", "content": "done"}
        ]}));
    }
    let leaves = ids(&Value::from(alice.events()));
    for limit in 1..30 {
        let end = &leaves[leaves.len() - 1 - limit % 7];
        let context = build(&alice, json!({"limit": limit, "leafId": end}));
        let messages = context["messages"].as_array().unwrap();
        let mut open = Vec::new();
        for message in messages {
            if message["role"] == "tool" {
                let id = message["toolCallId"].as_str().unwrap().to_owned();
                let index = open.iter().position(|open| *open == id);
                open.remove(index.unwrap_or_else(|| panic!("{id} has no call: {messages:#?}")));
            } else {
                assert!(open.is_empty(), "{open:?}: {messages:#?}");
                open = message["toolCalls"]
                    .as_array()
                    .map_or_else(Vec::new, |calls| ids(&Value::from(calls.clone())));
            }
        }
        assert!(open.is_empty());
        assert!(messages.len() <= limit + 2);
        assert_eq!(context["leafId"], end.as_str());
    }
}

#[test]
fn older_outputs_are_truncated_only_in_copies() {
    let alice = Alice::with_session();
    let long = "x".repeat(3000);
    let mut events = vec![
        json!({"action": "tool_call_request", "toolCalls": [{"id": "c", "name": "t", "arguments": {}}]}),
        json!({"action": "tool_result", "toolCallId": "c", "toolName": "t", "content": long}),
    ];
    events.extend((0..20).map(|n| json!({"action": "user_message", "content": n.to_string()})));
    alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    let context = build(&alice, json!({}));
    let shown = context["messages"][1]["content"].as_str().unwrap();
    assert!(shown.len() < 600 && shown.contains("2500 more characters"));
    assert_eq!(alice.events()[1]["content"], long.as_str());
}

#[test]
fn an_invalid_item_is_refused_with_its_index() {
    let alice = Alice::with_session();
    for (message, field) in [
        (
            json!({"role": "nobody", "content": "x"}),
            "messages[1].role",
        ),
        (
            json!({"role": "tool", "content": "x"}),
            "messages[1].toolCallId",
        ),
        (
            json!({"role": "tool", "content": "x", "toolCallId": "c"}),
            "messages[1].toolName",
        ),
        (
            json!({"role": "user", "content": "x", "toolCalls": [{"id": "c", "name": "t", "arguments": {}}]}),
            "messages[1].toolCalls",
        ),
        (json!({"role": "user", "content": 5}), "messages[1].content"),
    ] {
        let messages = json!([{"role": "user", "content": "fine"}, message]);
        let error = alice
            .call(
                "persistWorkingContext",
                json!({"sessionId": "s", "messages": messages}),
            )
            .unwrap_err();
        assert_eq!(error.details()["field"], field);
    }
    assert_eq!(
        alice
            .call(
                "persistWorkingContext",
                json!({"sessionId": "s", "messages": []})
            )
            .unwrap_err()
            .details()["field"],
        "messages"
    );
    assert!(alice.events().is_empty());
    assert_eq!(
        alice.refused("buildWorkingContext", json!({"sessionId": "nobody"})),
        "session_not_found"
    );
    assert_eq!(
        alice.refused(
            "buildWorkingContext",
            json!({"sessionId": "s", "leafId": "nobody"})
        ),
        "message_not_found"
    );
}

#[test]
fn a_context_has_the_format_of_the_named_provider() {
    let alice = Alice::with_session();
    alice.ok(
        "configureAgent",
        json!({"systemInstructions": ["Be brief."]}),
    );
    alice.ok("appendEvents", json!({"sessionId": "s", "events": [
        {"action": "user_message", "content": "Echo hi."},
        {"action": "tool_call_request", "toolCalls": [{"id": "c1", "name": "echo", "arguments": {"text": "hi"}}]},
        {"action": "tool_result", "toolCallId": "c1", "toolName": "echo", "content": "hi"}
    ]}));
    let input = |format: &str| {
        let context = build(
            &alice,
            json!({"format": format, "systemInstructions": ["In verse."]}),
        );
        assert_eq!(context["messages"].as_array().unwrap().len(), 3);
        context["modelInput"].clone()
    };
    let call = json!({"id": "c1", "type": "function", "function": {"name": "echo", "arguments": "{\"text\":\"hi\"}"}});
    assert_eq!(
        input("openai"),
        json!({"messages": [
            {"role": "system", "content": "Be brief.\n\nIn verse."},
            {"role": "user", "content": "Echo hi."},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "hi"}
        ]})
    );
    assert_eq!(
        input("workers-ai"),
        json!({"max_tokens": 4096, "messages": [
            {"role": "system", "content": "Be brief.\n\nIn verse."},
            {"role": "user", "content": "Echo hi."},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "name": "echo", "tool_call_id": "c1", "content": "hi"}
        ]})
    );
    assert_eq!(
        input("anthropic"),
        json!({"max_tokens": 8192, "system": "Be brief.\n\nIn verse.", "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Echo hi."}]},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "echo", "input": {"text": "hi"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "hi"}]}
        ]})
    );
    assert!(build(&alice, json!({})).get("modelInput").is_none());
    let error = alice
        .call(
            "buildWorkingContext",
            json!({"sessionId": "s", "format": "gemini"}),
        )
        .unwrap_err();
    assert_eq!(
        error.message,
        "`format` must be one of `workers-ai`, `openai`, `anthropic`."
    );
}

#[test]
fn a_users_files_are_sent_and_persisted() {
    let alice = Alice::with_session();
    let image =
        json!({"mediaType": "image/png", "url": "data:image/png;base64,AAAA", "filename": "a.png"});
    alice.ok("appendMessage", json!({"sessionId": "s", "message": {"id": "m", "role": "user", "parts": [
        {"type": "text", "text": "What is it?"},
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", "filename": "a.png"},
        {"type": "file", "mediaType": "image/png", "url": "file:///etc/passwd"}
    ]}}));
    let context = build(&alice, json!({"format": "openai"}));
    let message = json!({"role": "user", "content": "What is it?", "files": [image]});
    assert_eq!(context["messages"], json!([message]));
    assert_eq!(
        context["modelInput"]["messages"][0]["content"][1]["image_url"]["url"],
        "data:image/png;base64,AAAA"
    );
    // An image counts more tokens than its text alone.
    assert_eq!(context["tokensEstimate"], estimate("What is it?") + 1000);

    let written = alice.ok(
        "persistWorkingContext",
        json!({"sessionId": "s", "messages": [message, {"role": "user", "content": "", "files": [image]}]}),
    );
    let again = build(&alice, json!({}));
    assert_eq!(again["messages"][1], message);
    assert_eq!(again["messages"][2]["files"], json!([image]));
    let stored = alice.ok(
        "getMessage",
        json!({"sessionId": "s", "messageId": written["events"][0]["id"]}),
    );
    assert_eq!(
        stored["parts"],
        json!([
            {"type": "text", "text": "What is it?"},
            {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", "filename": "a.png"}
        ])
    );
}

#[test]
fn unsupported_files_are_refused_with_their_index() {
    let alice = Alice::with_session();
    let file = |url: &str| json!({"mediaType": "image/png", "url": url});
    for (message, field) in [
        (
            json!({"role": "user", "files": [file("data:,"), file("http://example.com")]}),
            "messages[0].files[1].url",
        ),
        (
            json!({"role": "user", "files": [{"mediaType": "", "url": "data:,"}]}),
            "messages[0].files[0].mediaType",
        ),
        (
            json!({"role": "user", "files": vec![file("data:,"); 21]}),
            "messages[0].files",
        ),
        (
            json!({"role": "assistant", "content": "a", "files": [file("data:,")]}),
            "messages[0].files",
        ),
    ] {
        let error = alice
            .call(
                "persistWorkingContext",
                json!({"sessionId": "s", "messages": [message]}),
            )
            .unwrap_err();
        assert_eq!(error.details()["field"], field);
    }
    assert!(alice.events().is_empty());
}
