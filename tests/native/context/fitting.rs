//! Contexts that fit a budget, from `buildWorkingContext`.

use serde_json::{Value, json};

use crate::{Alice, ids};
use access::{Caller, TokenScope};
use base::tokens::estimate;

fn build(alice: &Alice, more: Value) -> Value {
    let mut body = json!({"sessionId": "s", "limit": 1000});
    let fields = body.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    alice.ok("buildWorkingContext", body)
}

fn append(alice: &Alice, events: Value) {
    alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
}

/// Five events: a question, a call, a long output, a note, an answer.
fn turn(alice: &Alice, number: usize) {
    append(
        alice,
        json!([
            {"action": "user_message", "content": format!("Question {number} about something or other.")},
            {"action": "tool_call_request", "toolCalls": [{"id": format!("c{number}"), "name": "t", "arguments": {"n": number}}]},
            {"action": "tool_result", "toolCallId": format!("c{number}"), "toolName": "t", "content": "word ".repeat(number % 7 * 100)},
            {"action": "agent_message", "content": format!("Answer {number} with several words.")}
        ]),
    );
}

fn contents(context: &Value) -> Vec<String> {
    let messages = context["messages"].as_array().unwrap();
    let content = |message: &Value| message["content"].as_str().unwrap().to_owned();
    messages.iter().map(content).collect()
}

fn tokens(context: &Value) -> i64 {
    context["tokensEstimate"].as_i64().unwrap()
}

/// Checks that each result follows its call.
fn check_pairs(context: &Value) {
    let mut open: Vec<String> = Vec::new();
    for message in context["messages"].as_array().unwrap() {
        if message["role"] == "tool" {
            assert_eq!(
                Some(message["toolCallId"].as_str().unwrap()),
                open.pop().as_deref()
            );
        } else {
            assert!(open.is_empty());
            let calls = message.get("toolCalls").cloned().unwrap_or(json!([]));
            open = ids(&calls);
        }
    }
    assert!(open.is_empty());
}

#[test]
fn the_newest_messages_are_selected_and_no_pair_is_split() {
    let alice = Alice::with_session();
    for number in 0..40 {
        turn(&alice, number);
    }
    for max_tokens in (200..4_000).step_by(97) {
        let context = build(&alice, json!({"maxTokens": max_tokens}));
        assert!(tokens(&context) <= max_tokens, "{max_tokens}");
        assert!(
            tokens(&context) > max_tokens / 4,
            "{max_tokens}: {}",
            tokens(&context)
        );
        let shown = contents(&context);
        assert!(shown.last().unwrap().starts_with("Answer 39"));
        check_pairs(&context);
        let notice = context["systemInstructions"][0].as_str().unwrap();
        assert!(notice.contains("earlier messages of this conversation are not shown"));
        let hidden: i64 = notice.split(' ').nth(1).unwrap().parse().unwrap();
        assert_eq!(hidden + shown.len() as i64, 160, "{notice}");
    }
    // If everything fits, the context is unchanged.
    let context = build(&alice, json!({"maxTokens": 1_000_000}));
    assert_eq!(context, build(&alice, json!({})));
}

#[test]
fn the_prefix_rarely_changes() {
    let alice = Alice::with_session();
    let mut before: Vec<String> = Vec::new();
    let mut changes = 0;
    for number in 0..120 {
        alice.append_texts(&[&format!("Message {number} that says a few words more.")]);
        let now = contents(&build(&alice, json!({"maxTokens": 600})));
        changes += usize::from(!now.starts_with(&before));
        before = now;
    }
    // A window of 600 tokens fits some 40 of these messages.
    assert!((2..=20).contains(&changes), "{changes}");
}

#[test]
fn a_message_longer_than_the_budget_is_truncated_not_dropped() {
    let alice = Alice::with_session();
    turn(&alice, 1);
    let long = format!("BEGIN {} What is it?", "word ".repeat(100_000));
    alice.append_texts(&[&long]);
    let context = build(&alice, json!({"maxTokens": 1_000}));
    assert!(tokens(&context) <= 1_000);
    let shown = contents(&context);
    let last = shown.last().unwrap();
    assert!(last.starts_with("BEGIN") && last.ends_with("What is it?"));
    assert!(last.contains("omitted here and stored in the log"));
    // A small budget still fits the rest of the conversation.
    assert!(shown[0].starts_with("Question 1"));
}

#[test]
fn a_budget_smaller_than_the_prompt_is_refused_with_sizes() {
    let alice = Alice::with_session();
    alice.ok(
        "configureAgent",
        json!({"systemInstructions": ["word ".repeat(1_000)]}),
    );
    let refused = |max_tokens: i64| {
        let body = json!({"sessionId": "s", "maxTokens": max_tokens, "memory": true});
        alice.call("buildWorkingContext", body).unwrap_err()
    };
    alice.append_texts(&["hello"]);
    let error = refused(1_300);
    assert_eq!(error.code.name(), "invalid_request");
    assert_eq!(error.details()["field"], "maxTokens");
    assert_eq!(error.details()["limit"], 1_300);
    assert_eq!(error.details()["systemPrompt"], 1_300);
    assert!(error.message.contains("1300"), "{}", error.message);
    for max_tokens in [0, 1] {
        assert_eq!(refused(max_tokens).details()["field"], "maxTokens");
    }
    build(&alice, json!({"maxTokens": 1_400}));
}

#[test]
fn the_newest_summary_is_kept_when_later_messages_are_dropped() {
    let alice = Alice::with_session();
    for number in 0..30 {
        turn(&alice, number);
    }
    let events = ids(&Value::from(alice.events()));
    alice.ok(
        "addCompaction",
        json!({"sessionId": "s", "summary": "The user likes tea.", "fromId": events[0], "toId": events[39]}),
    );
    let context = build(&alice, json!({"maxTokens": 700}));
    let shown = contents(&context);
    assert_eq!(shown[0], "The user likes tea.");
    assert!(shown.last().unwrap().starts_with("Answer 29"));
    // The messages after the summary are included.
    let notice = context["systemInstructions"][0].as_str().unwrap();
    let hidden: usize = notice.split(' ').nth(1).unwrap().parse().unwrap();
    assert_eq!(hidden + shown.len() - 1, 80, "{notice}");
}

#[test]
fn older_files_are_named_instead_of_sent() {
    let alice = Alice::with_session();
    let picture = |id: &str| {
        json!({"sessionId": "s", "message": {"id": id, "role": "user", "parts": [
        {"type": "text", "text": "See:"},
        {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", "filename": format!("{id}.png")}]}})
    };
    alice.ok("appendMessage", picture("first"));
    alice.append_texts(&["1", "2", "3"]);
    assert!(
        build(&alice, json!({}))["messages"][0]
            .get("files")
            .is_some()
    );
    alice.append_texts(&["4"]);
    for body in [json!({}), json!({"maxTokens": 10_000})] {
        let context = build(&alice, body);
        assert!(context["messages"][0].get("files").is_none());
        assert_eq!(
            context["messages"][0]["content"],
            "See:\n[Attachment: first.png, image/png; shown earlier, omitted here]"
        );
    }
    alice.ok("configureAgent", json!({"keepMedia": 5}));
    assert!(
        build(&alice, json!({}))["messages"][0]
            .get("files")
            .is_some()
    );
    alice.ok("configureAgent", json!({"keepMedia": null}));
    let with_media = build(&alice, json!({"keepMedia": 5}));
    assert!(with_media["messages"][0].get("files").is_some());
    alice.ok("appendMessage", picture("second"));
    let context = build(&alice, json!({"keepMedia": 1, "format": "openai"}));
    assert_eq!(context.to_string().matches("data:image").count(), 2);
    assert_eq!(
        context["modelInput"]
            .to_string()
            .matches("data:image")
            .count(),
        1
    );
}

#[test]
fn a_context_with_memory_is_ready_to_send() {
    let alice = Alice::with_session();
    alice.ok(
        "configureAgent",
        json!({"systemInstructions": ["Be brief."], "sessionSearch": true}),
    );
    alice.ok(
        "defineBlock",
        json!({"label": "memory", "kind": "writable", "defaultContent": "Likes tea."}),
    );
    alice.append_texts(&["Hello."]);
    let context = |format: &str| {
        let more = json!({"memory": true, "format": format, "systemInstructions": ["In verse."], "maxTokens": 2_000});
        build(&alice, more)
    };
    let tools = alice.ok("getTools", json!({"sessionId": "s"}))["tools"].clone();
    let names: Vec<&Value> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, ["set_context", "session_search"]);
    let prompt = alice.ok("freezePrompt", json!({"sessionId": "s"}))["prompt"].clone();
    let openai = context("openai");
    assert_eq!(
        openai["systemInstructions"],
        json!([prompt, "Be brief.", "In verse."])
    );
    let system = format!("{}\n\nBe brief.\n\nIn verse.", prompt.as_str().unwrap());
    for format in ["openai", "workers-ai"] {
        let input = &context(format)["modelInput"];
        assert_eq!(input["messages"][0]["content"], system);
        let sent: Vec<&Value> = input["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["function"]["parameters"])
            .collect();
        let made: Vec<&Value> = tools
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| &tool["parameters"])
            .collect();
        assert_eq!(sent, made);
    }
    let anthropic = &context("anthropic")["modelInput"];
    assert_eq!(anthropic["tools"][0]["name"], "set_context");
    assert!(anthropic.to_string().contains("Likes tea."));
    // The prompt and the tools count.
    let bare = build(&alice, json!({"systemInstructions": ["In verse."]}));
    let added = estimate(prompt.as_str().unwrap());
    assert!(tokens(&openai) > tokens(&bare) + added + 100);
    // The bytes are the same until the prompt is refreshed.
    alice.ok(
        "setBlock",
        json!({"label": "memory", "content": "Likes milk."}),
    );
    assert_eq!(context("openai")["systemInstructions"][0], prompt);
}

#[test]
fn a_context_without_a_format_lists_tools_and_reminder_separately() {
    let alice = Alice::with_session();
    alice.ok(
        "defineBlock",
        json!({"label": "today", "kind": "writable", "whenChanged": "remind", "defaultContent": "It is Monday."}),
    );
    alice.append_texts(&["Hello."]);
    let plain = build(&alice, json!({}));
    assert!(plain.get("tools").is_none() && plain.get("reminder").is_none());
    let context = build(&alice, json!({"memory": true}));
    let tools = alice.ok("getTools", json!({"sessionId": "s"}))["tools"].clone();
    assert_eq!(tools[0]["name"], "set_context");
    assert_eq!(context["tools"], tools);
    assert!(context.get("reminder").is_none() && context.get("modelInput").is_none());

    let before = tokens(&context);
    alice.ok(
        "setBlock",
        json!({"label": "today", "content": "It is Tuesday."}),
    );
    let reminder = alice.ok("getReminder", json!({"sessionId": "s"}))["text"].clone();
    let reminded = build(&alice, json!({"memory": true, "maxTokens": 2_000}));
    assert_eq!(reminded["reminder"], reminder);
    let text = reminder.as_str().unwrap();
    assert!(text.contains("It is Tuesday."));
    assert_eq!(tokens(&reminded), before + estimate(text));

    // A context that is ready for a provider has the reminder in the same place as a turn
    // of chat.
    let ready = build(&alice, json!({"memory": true, "format": "openai"}));
    assert!(ready.get("tools").is_none());
    let messages = ready["modelInput"]["messages"].as_array().unwrap();
    let newest = messages.last().unwrap();
    assert_eq!(newest["role"], "user");
    assert!(newest["content"].to_string().contains("It is Tuesday."));
    assert!(!messages[0].to_string().contains("It is Tuesday."));
    let bare = build(&alice, json!({"format": "openai"}));
    assert!(!bare.to_string().contains("It is Tuesday."));
}

#[test]
fn a_caller_that_may_not_freeze_a_prompt_gets_a_rendered_one() {
    let mut alice = Alice::with_session();
    alice.ok(
        "defineBlock",
        json!({"label": "memory", "kind": "writable", "defaultContent": "Likes tea."}),
    );
    alice.caller = Caller::Scoped(TokenScope {
        session_id: base::ids::Id::parse("s".to_owned()).ok(),
        ..TokenScope::default()
    });
    let before = alice.db.dump();
    let context = build(&alice, json!({"memory": true}));
    assert!(
        context["systemInstructions"][0]
            .as_str()
            .unwrap()
            .contains("Likes tea.")
    );
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn loaded_documents_count_toward_the_budget() {
    let alice = Alice::with_session();
    alice.ok(
        "defineBlock",
        json!({"label": "skills", "kind": "loadable"}),
    );
    let text = format!("BEGIN {} END", "rule ".repeat(5_000));
    alice.ok(
        "putSkill",
        json!({"label": "skills", "key": "deploy", "content": text}),
    );
    alice.ok(
        "loadSkill",
        json!({"sessionId": "s", "label": "skills", "key": "deploy"}),
    );
    alice.append_texts(&["What now?"]);
    let context = build(&alice, json!({"maxTokens": 2_000}));
    assert!(tokens(&context) <= 2_000);
    let document = context["systemInstructions"][0].as_str().unwrap();
    assert!(document.starts_with("Loaded document skills/deploy") && document.ends_with("END"));
    let full = build(&alice, json!({"maxTokens": 20_000}));
    assert!(
        full["systemInstructions"][0]
            .as_str()
            .unwrap()
            .contains(&text)
    );
}
