//! The part of a request that a provider can cache: everything before the newest message is the
//! same from turn to turn, even if blocks change meanwhile.

use serde_json::{Value, json};

use super::turns::user;
use crate::Alice;
use base::outbound::OWN_CLASS;
use base::testing::ScriptedAnswer;
use models::choice::Provider;

const TURNS: usize = 20;

/// The text in each turn's reminder about the block. No other text contains it.
fn reminder_text(turn: usize) -> String {
    format!("mood number {turn}")
}

pub fn agent(provider: Provider) -> Alice {
    let alice = Alice::default();
    let model = format!("{}:m", provider.name());
    let mut settings = alice.outbound.settings.borrow_mut();
    for (name, value) in [
        ("MODEL", model.as_str()),
        ("OPENAI_API_KEY", "k"),
        ("ANTHROPIC_API_KEY", "k"),
    ] {
        settings.insert(name.to_owned(), value.to_owned());
    }
    drop(settings);
    let bound = ["AI".to_owned(), OWN_CLASS.to_owned()];
    alice.outbound.bindings.borrow_mut().extend(bound);
    alice.ok(
        "defineBlock",
        json!({"label": "mood", "kind": "writable", "whenChanged": "remind"}),
    );
    alice
}

pub fn answer(provider: Provider, text: &str, call: Option<&str>) -> ScriptedAnswer {
    let answer = match (provider, call) {
        (Provider::Anthropic, None) => json!({
            "type": "message", "content": [{"type": "text", "text": text}],
            "stop_reason": "end_turn", "usage": {"input_tokens": 10, "output_tokens": 2}}),
        (Provider::Anthropic, Some(id)) => json!({
            "type": "message", "stop_reason": "tool_use",
            "content": [{"type": "tool_use", "id": id, "name": "set_context",
                "input": {"label": "mood", "content": text}}]}),
        (_, None) => json!({
            "choices": [{"message": {"content": text}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 2}}),
        (_, Some(id)) => json!({"choices": [{
            "finish_reason": "tool_calls",
            "message": {"tool_calls": [{"id": id, "type": "function", "function": {
                "name": "set_context",
                "arguments": json!({"label": "mood", "content": text}).to_string()}}]}}]}),
    };
    ScriptedAnswer::json(&answer).unwrap()
}

/// The bodies that the provider was sent.
pub fn sent_requests(alice: &Alice, provider: Provider) -> Vec<Value> {
    let parse = |body: &str| serde_json::from_str(body).unwrap();
    match provider {
        Provider::WorkersAi => {
            let calls = alice.outbound.ai_calls.borrow();
            calls.iter().map(|(_, body)| parse(body)).collect()
        }
        Provider::OpenAi | Provider::Anthropic | Provider::Own => {
            let calls = alice.outbound.calls.borrow();
            calls.iter().map(|call| parse(&call.body)).collect()
        }
    }
}

/// A request in the order in which the provider reads it: the tools, the system text, and
/// the messages block by block. The provider ignores the cache markers for matching.
fn blocks(body: &Value) -> Vec<String> {
    fn unmarked(block: &Value) -> String {
        let mut block = block.clone();
        if let Some(block) = block.as_object_mut() {
            block.remove("cache_control");
        }
        block.to_string()
    }
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut read: Vec<String> = list(&body["tools"]).iter().map(unmarked).collect();
    read.extend(list(&body["system"]).iter().map(unmarked));
    for message in list(&body["messages"]) {
        let role = message["role"].as_str().unwrap();
        match &message["content"] {
            Value::Array(content) => {
                read.extend(
                    content
                        .iter()
                        .map(|block| format!("{role} {}", unmarked(block))),
                );
            }
            _ => read.push(message.to_string()),
        }
    }
    read
}

#[test]
fn the_prefix_before_the_newest_message_is_stable() {
    for provider in Provider::ALL {
        let alice = agent(provider);
        for turn in 1..=TURNS {
            alice.ok(
                "setBlock",
                json!({"label": "mood", "content": reminder_text(turn)}),
            );
            if turn % 5 == 0 {
                let call = answer(
                    provider,
                    &reminder_text(turn + 1_000),
                    Some(&format!("c{turn}")),
                );
                alice.outbound.answer(Ok(call));
            }
            alice.outbound.answer(Ok(answer(provider, "Yes.", None)));
            alice.chat_text(&format!("question {turn}"));
        }
        let requests = sent_requests(&alice, provider);
        assert_eq!(requests.len(), TURNS + TURNS / 5, "{provider:?}");
        let mut known: Vec<String> = Vec::new();
        for (number, request) in requests.iter().enumerate() {
            let read = blocks(request);
            let is_question = |text: &String| text.contains("question");
            let newest = read.iter().rposition(is_question).unwrap();
            let before = &read[..newest];
            let shared = before.len().min(known.len());
            assert_eq!(before[..shared], known[..shared], "{provider:?} {number}");
            assert!(
                before
                    .iter()
                    .all(|block| !block.contains("have changed since")),
                "{provider:?} {number}: a reminder stands before the newest message"
            );
            // The first turn freezes the prompt. After it, the block has changed.
            let reminders = read[newest..]
                .iter()
                .filter(|block| block.contains("have changed since"));
            assert_eq!(
                reminders.count(),
                usize::from(number > 0),
                "{provider:?} {number}"
            );
            known = before.to_vec();
        }
    }
}

/// The blocks up to which Anthropic should cache.
fn marked(body: &Value) -> Vec<String> {
    fn walk(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Array(list) => list.iter().for_each(|item| walk(item, found)),
            Value::Object(fields) => {
                if fields.contains_key("cache_control") {
                    assert_eq!(fields["cache_control"], json!({"type": "ephemeral"}));
                    let name = ["name", "text", "tool_use_id"];
                    let name = name.iter().find_map(|name| fields.get(*name)?.as_str());
                    found.push(name.unwrap().chars().take(12).collect());
                }
                fields.values().for_each(|value| walk(value, found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for part in ["tools", "system", "messages"] {
        walk(&body[part], &mut found);
    }
    found
}

#[test]
fn anthropic_caches_the_tools_the_system_text_and_the_unchanged_messages() {
    let provider = Provider::Anthropic;
    let alice = agent(provider);
    let no = answer(provider, "No.", None);
    alice.outbound.answer(Ok(no));
    alice.chat_text("one");
    alice.ok(
        "setBlock",
        json!({"label": "mood", "content": reminder_text(1)}),
    );
    alice
        .outbound
        .answer(Ok(answer(provider, &reminder_text(2), Some("c1"))));
    alice.outbound.answer(Ok(answer(provider, "Done.", None)));
    alice.chat_text("two");
    let requests = sent_requests(&alice, provider);
    let bar = "═".repeat(12);
    assert_eq!(marked(&requests[0]), ["set_context", &bar, "one"]);
    // The next turn omits the reminder after the question.
    assert_eq!(marked(&requests[1]), ["set_context", &bar, "two"]);
    assert!(
        blocks(&requests[1])
            .last()
            .unwrap()
            .contains(&reminder_text(1))
    );
    assert_eq!(marked(&requests[2]), ["set_context", &bar, "two", "c1"]);
    // A caller that requests the input sends it itself, and gets no cache markers.
    let input = alice.ok(
        "buildWorkingContext",
        json!({"sessionId": "s", "format": "anthropic"}),
    );
    assert_eq!(marked(&input["modelInput"]), Vec::<String>::new());
}

#[test]
fn cached_tokens_are_counted_across_turns() {
    let alice = agent(Provider::OpenAi);
    let run_turn_with_cached = |cached: i64| {
        let answer = json!({
            "choices": [{"message": {"content": "Yes."}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": cached}}});
        alice.outbound.answer(ScriptedAnswer::json(&answer));
        alice.chat(json!({"id": "s", "message": user(&format!("{cached}"))}));
        alice.ok("getSession", json!({"sessionId": "s"}))["usage"].clone()
    };
    let used = |input: i64, output: i64, cost: f64, cached: i64| json!({"inputTokens": input, "outputTokens": output, "cost": cost, "cachedInputTokens": cached});
    assert_eq!(
        run_turn_with_cached(0),
        json!({"inputTokens": 100, "outputTokens": 2, "cost": 0.0})
    );
    assert_eq!(run_turn_with_cached(64), used(200, 4, 0.0, 64));
    // If a provider reports more cached tokens than it read, the tokens that it read count.
    assert_eq!(run_turn_with_cached(700), used(300, 6, 0.0, 164));
    alice.ok("clearMessages", json!({"sessionId": "s"}));
    assert_eq!(run_turn_with_cached(30), used(400, 8, 0.0, 194));
    alice.ok(
        "addUsage",
        json!({"sessionId": "s", "cachedInputTokens": 6, "cost": 0.5}),
    );
    assert_eq!(run_turn_with_cached(1), used(500, 10, 0.5, 201));
}
