//! Peers that send meaningless bytes endlessly: every call ends with an error that states the
//! reason.

use std::rc::Rc;

use serde_json::json;

use super::turns::{calls, text_answer};
use crate::Alice;
use base::testing::{ScriptedAnswer, Trickle};

/// The maximum duration of a call: half an hour, for a model that keeps sending.
const LONGEST_MS: i64 = 30 * 60_000;

/// The maximum for a model that sends nothing.
const MUTE_MS: i64 = 2 * 60_000;

/// Chunks without content.
const EMPTY_CHUNKS: &[&str] = &[
    ": waiting\n\n",
    "\n",
    " ",
    ":",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "data: {\"choices\":[{\"delta\":{}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n",
    "data:\n\n",
    "{",
    "[1,",
    "retry: 1\n\n",
    "x",
];

/// A model that sends one letter at long intervals.
const LETTER: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";

fn with_trickle(alice: &Alice, piece: &str, pause_ms: i64) {
    *alice.outbound.trickle.borrow_mut() = Some(Rc::new(Trickle {
        piece: piece.as_bytes().to_vec(),
        pause_ms,
    }));
}

/// An entry point's name, an agent for it, and the request that uses it.
type EntryPoint = (&'static str, fn() -> Alice, fn(&Alice));

/// The entry points that make outgoing calls.
const ENTRY_POINTS: &[EntryPoint] = &[
    ("a model of OpenAI's kind", Alice::with_model, talks),
    ("Anthropic", || with_model("anthropic:claude"), talks),
    ("Workers AI", || with_model("workers-ai:@cf/x/y"), talks),
    ("a tool", with_tool, talks),
    ("a server of tools", with_server, talks),
    (
        "a server of tools that begins",
        Alice::with_model,
        |alice| {
            drop(alice.call(
                "defineTool",
                json!({"name": "gh", "mcp": "https://tools.example/mcp"}),
            ));
        },
    ),
    ("a backend", with_backend, |alice| {
        drop(alice.call("renderPrompt", json!({})));
    }),
    ("a backend that a tool reads", with_backend, |alice| {
        drop(alice.call("setBlock", json!({"label": "notes", "content": "x"})));
    }),
    ("a summary", with_long_talk, |alice| {
        drop(alice.call("compact", json!({"sessionId": "s"})));
    }),
    ("an embedding", with_entries, |alice| {
        drop(alice.call("searchContext", json!({"label": "kb", "query": "rain"})));
    }),
    ("who hears of a turn's end", with_callback, |alice| {
        alice.run_callbacks();
    }),
];

fn talks(alice: &Alice) {
    drop(alice.chat_text("Hi."));
    assert!(!alice.has_turn_rows());
}

fn with_model(model: &str) -> Alice {
    let alice = Alice::with_model();
    let settings = [("MODEL", model), ("ANTHROPIC_API_KEY", "k")];
    for (name, value) in settings {
        let mut settings = alice.outbound.settings.borrow_mut();
        settings.insert(name.to_owned(), value.to_owned());
    }
    alice.outbound.bindings.borrow_mut().push("AI".to_owned());
    alice
}

fn with_tool() -> Alice {
    let alice = Alice::with_model();
    super::turns::define(&alice, "t", false);
    alice.outbound.answer(calls(&[("c1", "t", json!({}))]));
    alice
}

fn with_server() -> Alice {
    let alice = Alice::with_model();
    let tools = json!([{"name": "a", "inputSchema": {"type": "object"}}]);
    alice
        .define_server(&tools, &json!({"needsApproval": false}))
        .unwrap();
    alice.outbound.answer(calls(&[("c1", "gh_a", json!({}))]));
    alice
}

fn with_backend() -> Alice {
    let alice = Alice::with_model();
    alice
        .outbound
        .bindings
        .borrow_mut()
        .push("NOTES".to_owned());
    alice.outbound.answer(ScriptedAnswer::json(&json!({})));
    alice.ok(
        "defineBlock",
        json!({"label": "notes", "kind": "writable", "source": {"service": "NOTES"}}),
    );
    alice
}

fn with_long_talk() -> Alice {
    let alice = Alice::with_model();
    alice.ok("createSession", json!({"id": "s"}));
    alice.ok(
        "configureCompaction",
        json!({"tailTokenBudget": 10, "protectHead": 0}),
    );
    alice.append_texts(&["one two three"; 60]);
    alice
}

fn with_entries() -> Alice {
    let alice = with_model("openai:m").embedding_by("openai:e");
    alice.ok("configureAgent", json!({"vectors": true}));
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    alice.embeds(&[[1.0, 0.0, 0.0]]);
    alice.add_entry("a", "Rain falls.");
    alice.outbound.answers.borrow_mut().clear();
    alice
}

fn with_callback() -> Alice {
    let alice = Alice::with_turn_end_callback();
    alice.outbound.answer(text_answer("Hello."));
    drop(alice.chat_text("Hi."));
    alice
}

#[test]
fn a_silent_answer_ends_at_every_entry_point() {
    for (entry_point, populate, send) in ENTRY_POINTS {
        let mut trickled = 0;
        for piece in EMPTY_CHUNKS {
            for pause_ms in [10, 900, 20_000, 59_000] {
                let alice = populate();
                with_trickle(&alice, piece, pause_ms);
                send(&alice);
                let spent_ms = alice.outbound.trickled_ms.get();
                assert!(
                    spent_ms <= 5 * 60_000,
                    "{entry_point}, {piece:?}: {spent_ms} ms"
                );
                trickled = trickled.max(spent_ms);
            }
        }
        assert!(trickled > 0, "{entry_point} was not called");
    }
}

#[test]
fn a_model_that_sends_only_comments_fails_the_turn() {
    let alice = Alice::with_model();
    with_trickle(&alice, ": waiting\n\n", 10_000);
    let chunks = alice.chat_text("Hi.");
    let error = chunks.last().unwrap()["errorText"].as_str().unwrap();
    assert!(error.contains("it sent nothing for 120 s"), "{error}");
    assert_eq!(alice.outbound.trickled_ms.get(), MUTE_MS);
}

#[test]
fn a_slow_model_is_read_for_up_to_half_an_hour() {
    let alice = Alice::with_model();
    with_trickle(&alice, LETTER, 50_000);
    let chunks = alice.chat_text("Hi.");
    let error = chunks.last().unwrap()["errorText"].as_str().unwrap();
    assert!(
        error.contains("its answer took longer than 1800 s"),
        "{error}"
    );
    assert_eq!(alice.outbound.trickled_ms.get(), LONGEST_MS);
    // The text that the model sent before the end is stored.
    assert_eq!(alice.events()[1]["content"], "a".repeat(36));
}
