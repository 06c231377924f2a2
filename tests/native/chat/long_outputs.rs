//! Outputs of tools that are too long for the model, or for the turn's row: stored whole, with a
//! preview for the model.

use serde_json::{Value, json};

use super::tools::{alice, tool};
use super::turns::{calls, receive, text_answer, user};
use crate::Alice;
use api::chat::resume_chat;
use base::database::Database as _;
use base::testing::{ScriptedAnswer, cut_off};
use chat::run::cycle::run;

const LEFT_OUT: &str = "omitted here and stored in the log";

/// An output with a recognizable end.
fn long(length: usize) -> String {
    format!("{}the end", "x".repeat(length - "the end".len()))
}

fn answer(alice: &Alice, output: &str) {
    alice.outbound.answer(Ok(ScriptedAnswer::text(200, output)));
}

/// The call results in the newest request to the model.
fn results(alice: &Alice) -> Vec<String> {
    let sent = alice.outbound.calls.borrow();
    let body: Value = serde_json::from_str(&sent.last().unwrap().body).unwrap();
    let messages = body["messages"].as_array().unwrap().clone();
    let results = messages.iter().filter(|message| message["role"] == "tool");
    results
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}

/// The outputs of the turn's calls in the history.
fn outputs(alice: &Alice) -> Vec<Value> {
    let message = alice.shown().last().unwrap().clone();
    let parts = message["parts"].as_array().unwrap().clone();
    let calls = parts.iter().filter(|part| part["type"] == "tool-echo");
    calls.map(|part| part["output"].clone()).collect()
}

fn outputs_of(chunks: &[Value]) -> Vec<Value> {
    let outputs_of = chunks
        .iter()
        .filter(|chunk| chunk["type"] == "tool-output-available");
    outputs_of.map(|chunk| chunk["output"].clone()).collect()
}

fn waiting(alice: &Alice) -> usize {
    let sql = "SELECT 1 FROM cf_agents_early_answers";
    alice.db.rows(sql, &[]).unwrap().len()
}

#[test]
fn a_long_output_is_stored_whole_and_truncated_for_the_model() {
    let alice = alice();
    alice.ok("defineTool", tool(&json!({})));
    for (bytes, fits) in [(262_144, true), (262_145, false), (1 << 20, false)] {
        let output = long(bytes);
        alice.outbound.answer(calls(&[("c1", "echo", json!({}))]));
        answer(&alice, &output);
        alice.outbound.answer(text_answer("Done."));
        let chunks = alice.chat_text("go");
        assert_eq!(
            outputs_of(&chunks),
            [json!(output)],
            "the client receives all of it"
        );
        assert_eq!(
            outputs(&alice),
            [json!(output)],
            "the log contains all of it"
        );
        let read = results(&alice).pop().unwrap();
        assert_eq!(read == output, fits, "{bytes}");
        assert_eq!(read.contains(LEFT_OUT), !fits);
        assert!(read.starts_with("xxx") && read.ends_with("the end"));
        assert!(fits || read.len() < 10_000);
        assert_eq!(waiting(&alice), 0);
    }
}

#[test]
fn long_json_stays_json_in_the_log() {
    let alice = alice();
    alice.ok("defineTool", tool(&json!({})));
    let output = json!({"rows": vec!["a \"quoted\" row\n"; 30_000]});
    alice.outbound.answer(calls(&[("c1", "echo", json!({}))]));
    alice.outbound.answer(ScriptedAnswer::json(&output));
    alice.outbound.answer(text_answer("Done."));
    assert_eq!(
        outputs_of(&alice.chat_text("go")),
        std::slice::from_ref(&output)
    );
    assert_eq!(outputs(&alice), [output]);
    assert!(results(&alice)[0].contains(LEFT_OUT));
}

#[test]
fn outputs_too_large_for_the_turn_row_are_stored_separately() {
    let alice = alice();
    alice.ok("configureAgent", json!({"maxContextTokens": 1_000_000}));
    alice.ok("defineTool", tool(&json!({"maxOutputBytes": 524_288})));
    let scripted: Vec<(String, String)> = (0..3)
        .map(|n| (format!("c{n}"), long(400_000 + n)))
        .collect();
    let of_model: Vec<(&str, &str, Value)> = scripted
        .iter()
        .map(|(id, _)| (id.as_str(), "echo", json!({})))
        .collect();
    alice.outbound.answer(calls(&of_model));
    for (_, output) in &scripted {
        answer(&alice, output);
    }
    alice.outbound.answer(text_answer("Done."));
    alice.chat_text("go");
    let expected: Vec<Value> = scripted.iter().map(|(_, output)| json!(output)).collect();
    assert_eq!(outputs(&alice), expected);
    let read = results(&alice);
    let shortened = read.iter().filter(|read| read.contains(LEFT_OUT));
    assert_eq!((read.len(), shortened.count()), (3, 1));
    assert_eq!(waiting(&alice), 0);
}

#[test]
fn a_tools_own_limit_ends_its_call() {
    let alice = alice();
    alice.ok("defineTool", tool(&json!({"maxOutputBytes": 1_000})));
    alice.outbound.answer(calls(&[("c1", "echo", json!({}))]));
    answer(&alice, &long(1_000));
    alice.outbound.answer(text_answer("Done."));
    alice.chat_text("go");
    assert_eq!(alice.outbound.calls.borrow()[1].limits.max_bytes, 1_000);
    assert_eq!(results(&alice), [long(1_000)]);
}

#[test]
fn the_outputs_of_a_turn_are_bounded_together() {
    let alice = alice();
    alice.ok("defineTool", tool(&json!({})));
    let output = long(1 << 20);
    for n in 0..3 {
        let id = format!("c{n}");
        alice.outbound.answer(calls(&[(&id, "echo", json!({}))]));
        answer(&alice, &output);
    }
    alice.outbound.answer(text_answer("Done."));
    let chunks = alice.chat_text("go");
    assert_eq!(outputs_of(&chunks), [json!(output), json!(output)]);
    let refused = chunks
        .iter()
        .find(|chunk| chunk["type"] == "tool-output-error");
    let sentence = refused.unwrap()["errorText"].as_str().unwrap();
    assert!(sentence.contains("2097152"), "{sentence}");
    assert_eq!(outputs(&alice)[..2], [json!(output), json!(output)]);
    assert_eq!(waiting(&alice), 0);
}

#[test]
fn a_long_output_survives_a_crash() {
    let mut alice = alice();
    alice.ok("defineTool", tool(&json!({})));
    let output = long(1 << 20);
    alice.outbound.answer(calls(&[("c1", "echo", json!({}))]));
    answer(&alice, &output);
    alice.outbound.hangs_after_answers.set(true);
    let started = alice
        .begin(&json!({"id": "s", "message": user("go")}))
        .unwrap();
    cut_off(run(&alice.agent(&alice.db), started.work.unwrap()));
    assert!(waiting(&alice) > 0);
    alice.crash();
    alice.outbound.hangs_after_answers.set(false);
    alice.outbound.answer(text_answer("Done."));
    let resumed = resume_chat(&alice.agent(&alice.db), "s").unwrap().unwrap();
    alice.run_work(resumed.work.unwrap());
    assert_eq!(outputs_of(&receive(resumed.listener)), [json!(output)]);
    assert_eq!(outputs(&alice), [json!(output)]);
    assert!(results(&alice)[0].contains(LEFT_OUT));
    assert_eq!(waiting(&alice), 0);
    assert!(!alice.has_turn_rows());
}
