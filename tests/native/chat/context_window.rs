//! The part of a long conversation that a turn sends: the window, the compaction before
//! it is full, and a model that refuses the length.

use serde_json::{Value, json};

use crate::Alice;
use crate::chat::turns::{kinds, text_of, user};
use api::dispatch::follow_up;
use base::ids::Id;
use base::outbound::CallFailure;
use base::testing::{ScriptedAnswer, cut_off, wait_for};
use base::tokens::estimate;
use chat::run::cycle::run;
use chat::run::resume::resume_some_turns;

const NOTICE: &str = "are not shown here";

/// An answer without a report of tokens.
pub fn answered(text: &str) -> Result<ScriptedAnswer, CallFailure> {
    let chunk = json!({"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]});
    Ok(ScriptedAnswer::stream(&format!(
        "data: {chunk}\n\ndata: [DONE]\n\n"
    )))
}

pub fn refused(sent: i64, most: i64) -> Result<ScriptedAnswer, CallFailure> {
    let message = format!(
        "This model's maximum context length is {most} tokens. However, your messages resulted in {sent} tokens. Please reduce the length of the messages."
    );
    let error = json!({"error": {"message": message, "type": "invalid_request_error", "code": "context_length_exceeded"}});
    Ok(ScriptedAnswer::text(400, &error.to_string()))
}

fn long_text(number: usize) -> String {
    format!(
        "Message {number}: {}",
        "some words to fill the window ".repeat(8)
    )
}

impl Alice {
    /// An agent whose model has a window of so many tokens; a quarter is for the answer.
    fn with_window(tokens: i64) -> Self {
        let alice = Self::with_model();
        alice.ok("configureAgent", json!({"maxContextTokens": tokens}));
        alice
    }

    fn chat_numbered(&self, number: usize, text: &str) -> Vec<Value> {
        let parts = json!([{"type": "text", "text": text}]);
        self.chat(json!({"id": "s", "message": {"id": format!("u{number}"), "role": "user", "parts": parts}}))
    }

    /// Runs turns that the model answers.
    fn run_turns(&self, turns: std::ops::Range<usize>) {
        for number in turns {
            self.outbound.answer(answered(&format!("Answer {number}.")));
            let chunks = self.chat_numbered(number, &long_text(number));
            assert_eq!(text_of(&chunks), format!("Answer {number}."), "{chunks:?}");
        }
    }

    /// The messages of every request so far.
    fn requests(&self) -> Vec<Vec<Value>> {
        let calls = self.outbound.calls.borrow();
        // Tool calls contain no `messages`.
        let messages = calls.iter().filter_map(|call| {
            let body: Value = serde_json::from_str(&call.body).unwrap();
            body["messages"].as_array().cloned()
        });
        messages.collect()
    }

    fn follow_up(&self) {
        let id = Id::parse("s".to_owned()).unwrap();
        let _ = wait_for(follow_up(&self.agent(&self.db), &id));
    }

    fn compactions(&self) -> usize {
        let answer = self.ok("getCompactions", json!({"sessionId": "s"}));
        answer["compactions"].as_array().unwrap().len()
    }
}

fn tokens(request: &[Value]) -> i64 {
    let contents = request.iter().map(|message| &message["content"]);
    contents
        .map(|content| estimate(content.as_str().unwrap_or_default()))
        .sum()
}

#[test]
fn the_prefix_is_stable_until_the_window_is_full() {
    let alice = Alice::with_window(2_000);
    alice.ok("configureCompaction", json!({"compactAfter": null}));
    alice.run_turns(0..80);
    let requests = alice.requests();
    let mut moves = Vec::new();
    for (number, pair) in requests.windows(2).enumerate() {
        let (before, now) = (&pair[0], &pair[1]);
        assert!(tokens(now) <= 1_500, "{number}: {}", tokens(now));
        if !now.starts_with(before) {
            // The window was full; after moving, it is at most 70 % full.
            assert!(tokens(before) > 1_300, "{number}: {}", tokens(before));
            assert!(tokens(now) <= 1_050 + 80, "{number}: {}", tokens(now));
            assert!(now[0]["content"].as_str().unwrap().contains(NOTICE));
            moves.push(number);
        }
    }
    // A turn takes some 70 tokens, so the window moves about every seven turns.
    assert!((5..=20).contains(&moves.len()), "{moves:?}");
    assert_eq!(alice.actions().len(), 160);
}

#[test]
fn the_conversation_is_compacted_before_the_window_is_full() {
    let alice = Alice::with_window(2_000);
    for number in 0..60 {
        alice.run_turns(number..number + 1);
        alice.outbound.answer(answered("SUMMARY"));
        alice.follow_up();
        alice.outbound.answers.borrow_mut().clear();
    }
    assert!(alice.compactions() >= 1);
    let requests = alice.requests();
    let turns = requests.iter().filter(|request| request.len() > 1);
    for request in turns {
        assert!(tokens(request) <= 1_500);
        assert!(
            !request
                .iter()
                .any(|message| message.to_string().contains(NOTICE))
        );
    }
    let newest = requests
        .iter()
        .rev()
        .find(|request| request.len() > 1)
        .unwrap();
    assert!(newest.iter().any(|message| message["content"] == "SUMMARY"));
    assert_eq!(alice.events().len(), 120);
}

#[test]
fn without_compaction_a_note_names_omitted_messages() {
    let alice = Alice::with_window(2_000);
    alice.ok("configureCompaction", json!({"compactAfter": null}));
    alice.run_turns(0..40);
    alice.follow_up();
    assert_eq!(alice.compactions(), 0);
    let last = alice.requests().pop().unwrap();
    assert!(last[0]["content"].as_str().unwrap().contains(NOTICE));
}

#[test]
fn a_length_error_triggers_one_compaction_and_one_retry() {
    let alice = Alice::with_model();
    alice.run_turns(0..20);
    alice.outbound.answer(refused(9_000, 4_500));
    // The middle of the conversation is summarized in three parts.
    for _ in 0..3 {
        alice.outbound.answer(answered("SUMMARY"));
    }
    alice.outbound.answer(answered("Here."));
    let chunks = alice.chat_text("And now?");
    assert_eq!(
        kinds(&chunks),
        [
            "start",
            "start-step",
            "text-start",
            "text-delta",
            "text-end",
            "finish-step",
            "finish"
        ]
    );
    assert_eq!(text_of(&chunks), "Here.");
    let requests = alice.requests();
    let (first, second) = (&requests[20], &requests[24]);
    assert_eq!(requests.len(), 25);
    assert!(
        requests[21][0]["content"]
            .as_str()
            .unwrap()
            .starts_with("Summarize")
    );
    assert!(
        tokens(second) * 2 <= tokens(first) + 40,
        "{} {}",
        tokens(first),
        tokens(second)
    );
    assert!(second.iter().any(|message| message["content"] == "SUMMARY"));
    assert_eq!(alice.compactions(), 1);
    // The correction persists: the next turn is not refused.
    alice.run_turns(30..31);
    assert!(tokens(alice.requests().last().unwrap()) * 2 <= tokens(first) + 40);
}

#[test]
fn a_failed_summary_does_not_fail_the_turn() {
    let alice = Alice::with_model();
    alice.run_turns(0..20);
    alice.outbound.answer(refused(9_000, 4_500));
    alice.outbound.answer(Ok(ScriptedAnswer::text(500, "no")));
    alice.outbound.answer(answered("Here."));
    assert_eq!(text_of(&alice.chat_text("And now?")), "Here.");
    assert_eq!(alice.compactions(), 0);
    let last = alice.requests().pop().unwrap();
    assert!(last[0]["content"].as_str().unwrap().contains(NOTICE));
}

#[test]
fn a_second_length_error_ends_the_turn_and_shrinks_the_next_request() {
    let alice = Alice::with_model();
    alice.ok("configureCompaction", json!({"compactAfter": null}));
    alice.run_turns(0..20);
    alice.outbound.answer(refused(9_000, 8_000));
    alice.outbound.answer(refused(9_000, 8_000));
    let chunks = alice.chat_text("And now?");
    let error = chunks.last().unwrap()["errorText"].as_str().unwrap();
    assert!(
        error.contains("refused again") && error.contains("`maxContextTokens`"),
        "{error}"
    );
    assert!(!alice.has_turn_rows());
    alice.run_turns(30..31);
    let sizes: Vec<i64> = alice
        .requests()
        .iter()
        .map(|request| tokens(request))
        .collect();
    assert!(sizes[21] < sizes[20] && sizes[22] < sizes[21], "{sizes:?}");
}

#[test]
fn a_length_error_inside_a_stream_is_recognized() {
    let alice = Alice::with_model();
    alice.run_turns(0..10);
    let error = json!({"error": {"message": "the request exceeds the available context size", "type": "exceed_context_size_error", "n_prompt_tokens": 2_000, "n_ctx": 1_000, "code": 400}});
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::stream(&format!("data: {error}\n\n"))));
    for _ in 0..2 {
        alice.outbound.answer(answered("SUMMARY"));
    }
    alice.outbound.answer(answered("Here."));
    assert_eq!(text_of(&alice.chat_text("And now?")), "Here.");
}

#[test]
fn a_crash_at_any_point_frees_capacity_and_ends_the_turn_once() {
    const PARTS: usize = 3;
    let answer = |alice: &Alice, number: usize| {
        alice.outbound.answer(match number {
            0 => refused(9_000, 4_500),
            1..=PARTS => answered("SUMMARY"),
            _ => answered("Here."),
        });
    };
    for evicted_after in 0..PARTS + 2 {
        let mut alice = Alice::with_model();
        alice.run_turns(0..20);
        alice.outbound.hangs_after_answers.set(true);
        (0..evicted_after).for_each(|number| answer(&alice, number));
        let message = user("And now?");
        let started = alice
            .begin(&json!({"id": "s", "message": message}))
            .unwrap();
        cut_off(run(&alice.agent(&alice.db), started.work.unwrap()));
        drop(started.listener);
        alice.crash();
        // An unfinished compaction restarts; earlier answers remain.
        let first = match evicted_after {
            0 => 0,
            evicted_after if evicted_after <= PARTS => 1,
            _ => PARTS + 1,
        };
        (first..PARTS + 2).for_each(|number| answer(&alice, number));
        let works = resume_some_turns(&alice.agent(&alice.db)).works;
        assert_eq!(works.len(), 1, "{evicted_after}");
        for work in works {
            alice.run_work(work);
        }
        assert!(!alice.has_turn_rows());
        let actions = alice.actions();
        assert_eq!(
            actions[40..],
            ["user_message", "agent_message"],
            "{evicted_after}"
        );
        assert_eq!(alice.events()[41]["content"], "Here.");
        assert_eq!(alice.compactions(), 1, "{evicted_after}");
    }
}

#[test]
fn a_window_smaller_than_the_prompt_is_an_error_with_sizes() {
    let alice = Alice::with_window(1_000);
    alice.ok(
        "configureAgent",
        json!({"systemInstructions": ["word ".repeat(1_000)]}),
    );
    let chunks = alice.chat_text("hi");
    let error = chunks.last().unwrap()["errorText"].as_str().unwrap();
    for part in ["`maxContextTokens`", "750 tokens", "1300 tokens"] {
        assert!(error.contains(part), "{error}");
    }
    assert!(alice.outbound.calls.borrow().is_empty());
    alice.ok("configureAgent", json!({"maxContextTokens": 4_000}));
    alice.run_turns(0..1);
}

#[test]
fn a_long_output_is_truncated_for_the_model_but_not_in_the_log() {
    let alice = Alice::with_window(4_000);
    alice.run_turns(0..3);
    crate::chat::turns::define(&alice, "t", false);
    alice
        .outbound
        .answer(crate::chat::turns::calls(&[("c1", "t", json!({}))]));
    let output = "line of output ".repeat(13_000);
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(200, &output)));
    alice.outbound.answer(answered("Long."));
    assert!(text_of(&alice.chat_text("Read it.")).ends_with("Long."));
    let last = alice.requests().pop().unwrap();
    assert!(tokens(&last) <= 3_000, "{}", tokens(&last));
    // The rest of the conversation is unchanged.
    assert!(
        last.iter()
            .any(|message| message["content"] == long_text(0).as_str())
    );
    let events = alice.events();
    let result = events
        .iter()
        .find(|event| event["action"] == "tool_result")
        .unwrap();
    assert_eq!(result["content"], output.as_str());
}

#[test]
fn files_are_named_instead_of_sent_when_the_window_moves() {
    let alice = Alice::with_window(4_000);
    alice.ok("configureCompaction", json!({"compactAfter": null}));
    let parts = json!([{"type": "text", "text": "See."}, {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", "filename": "a.png"}]);
    alice.outbound.answer(answered("Seen."));
    alice.chat(json!({"id": "s", "message": {"id": "p", "role": "user", "parts": parts}}));
    let has_file = || {
        let last = alice.outbound.calls.borrow().last().unwrap().body.clone();
        (
            last.contains("data:image/png"),
            last.contains("a.png, image/png; shown earlier"),
        )
    };
    alice.run_turns(0..5);
    assert_eq!(has_file(), (true, false));
    alice.run_turns(5..32);
    assert_eq!(has_file(), (false, true));
}
