//! Learning passes: what the model is shown, when, and that each event is processed once.

use std::rc::Rc;

use serde_json::{Value, json};

use super::{adds, user_event};
use crate::Alice;
use base::background::JobKind;
use base::database::Database as _;
use base::host::Host as _;
use base::testing::{ScriptedAnswer, wait_for};
use models::LEARN_REQUEST;

#[test]
fn a_users_statement_becomes_a_fact_with_its_evidence() {
    let alice = Alice::trusting();
    let ids = alice.append_texts(&["Hello!", "I like window seats."]);
    alice.model_proposes(json!([adds("seat", "The user likes window seats.", "e2")]));
    let outcome = alice.learn();
    assert_eq!(outcome["looks"], 1);
    assert_eq!(outcome["events"], 2);
    assert_eq!(outcome["complete"], true);
    let proposal = &outcome["proposals"][0];
    assert_eq!(proposal["status"], "applied");
    assert_eq!(proposal["decidedBy"], "trust");
    assert_eq!(proposal["model"], "openai:m");
    assert_eq!(
        proposal["changes"],
        json!([{
            "index": 0, "action": "add", "label": "facts", "key": "seat",
            "content": "The user likes window seats.",
            "events": [{"sessionId": "s", "id": ids[1], "seq": 2}],
            "source": "user", "status": "applied", "madeFor": 0, "version": 1,
        }])
    );
    let page = alice.ok("listEntries", json!({"label": "facts"}));
    assert_eq!(page["entries"][0]["source"], "user");
    assert_eq!(page["entries"][0]["events"], json!([ids[1]]));
    let prompt = alice.learn_prompt();
    assert!(prompt.starts_with(LEARN_REQUEST));
    assert!(
        prompt.contains(r#"{"event":"e2","from":"user","text":"I like window seats."}"#),
        "{prompt}"
    );
    // There are no new messages, so the model is not called.
    assert_eq!(alice.learn()["looks"], 0);
    assert_eq!(alice.request_count(), 1);
}

#[test]
fn without_the_operators_setting_every_change_waits() {
    let alice = Alice::learner(json!({}));
    alice.append_texts(&["I like window seats."]);
    alice.model_proposes(json!([adds("seat", "The user likes window seats.", "e1")]));
    assert_eq!(alice.learn()["proposals"][0]["status"], "pending");
    assert_eq!(alice.facts(), json!({}));
}

#[test]
fn related_entries_are_shown_and_replaced() {
    let alice = Alice::trusting();
    for (key, content) in [
        ("seat", "The user likes aisle seats."),
        ("pet", "The user has a cat."),
    ] {
        alice.ok(
            "setEntry",
            json!({"label": "facts", "key": key, "content": content}),
        );
    }
    alice.append_texts(&["From now on I like window seats."]);
    alice.model_proposes(json!([
        {"action": "replace", "key": "seat", "content": "The user likes window seats.", "events": ["e1"]},
        {"action": "replace", "key": "none", "content": "The user likes window seats.", "events": ["e1"]},
        {"action": "replace", "key": "seat", "content": "The user likes seats.", "events": ["e1"]},
    ]));
    let outcome = alice.learn();
    let proposal = &outcome["proposals"][0];
    assert_eq!(proposal["refused"], 2, "an unknown key, and a key twice");
    assert_eq!(proposal["changes"][0]["madeFor"], 1);
    let prompt = alice.learn_prompt();
    assert!(
        prompt.contains(r#"{"content":"The user likes aisle seats.","key":"seat"}"#),
        "{prompt}"
    );
    assert!(!prompt.contains("cat"));
    assert_eq!(alice.facts()["seat"], "The user likes window seats.");
    let versions = alice.ok("getBlockVersions", json!({"label": "facts", "key": "seat"}));
    assert_eq!(
        versions["versions"][1]["content"],
        "The user likes aisle seats."
    );
}

#[test]
fn facts_are_retired_and_forgotten_at_the_users_request() {
    let alice = Alice::trusting();
    for (key, content) in [
        ("dog", "The user has a dog."),
        ("code", "The door code is 1234."),
    ] {
        alice.ok(
            "setEntry",
            json!({"label": "facts", "key": key, "content": content}),
        );
    }
    alice.host.advance(10);
    alice.append_texts(&["My dog has died.", "Forget my door code."]);
    alice.model_proposes(json!([
        {"action": "retire", "key": "dog", "events": ["e1"]},
        {"action": "forget", "key": "code", "events": ["e2"]},
    ]));
    let proposal = &alice.learn()["proposals"][0];
    assert_eq!(proposal["status"], "applied", "{proposal}");
    alice.host.advance(10);
    let found = alice.ok("searchContext", json!({"label": "facts", "query": "dog"}));
    assert_eq!(found["results"], json!([]));
    assert_eq!(found["past"][0]["key"], "dog");
    assert_eq!(alice.facts().as_object().unwrap().len(), 1);
    // One call reverts both.
    let reverted = alice.ok("revertProposal", json!({"id": proposal["id"]}));
    assert_eq!(reverted["status"], "reverted");
    assert_eq!(
        alice.facts(),
        json!({"dog": "The user has a dog.", "code": "The door code is 1234."})
    );
    let found = alice.ok("searchContext", json!({"label": "facts", "query": "dog"}));
    assert_eq!(found["results"][0]["key"], "dog");
}

#[test]
fn nothing_is_learned_twice() {
    let alice = Alice::trusting();
    alice.append_texts(&["I like tea."]);
    alice.model_proposes(json!([
        adds("tea", "The user likes tea.", "e1"),
        adds("drink", "the user likes tea", "e1"),
    ]));
    let proposal = &alice.learn()["proposals"][0];
    assert_eq!(proposal["refused"], 1);
    alice.append_texts(&["As I said, I like tea."]);
    alice.model_proposes(json!([adds("tea", "The user likes tea.", "e1")]));
    assert_eq!(alice.learn()["proposals"], json!([]));
    // Another fact under an existing key gets its own key.
    alice.append_texts(&["I like green tea."]);
    alice.model_proposes(json!([adds("tea", "The user likes green tea.", "e1")]));
    alice.learn();
    assert_eq!(
        alice.facts(),
        json!({"tea": "The user likes tea.", "tea-2": "The user likes green tea."})
    );
}

#[test]
fn a_long_history_is_learned_in_several_passes() {
    let alice = Alice::trusting();
    let long = "word ".repeat(1_000);
    let texts: Vec<&str> = vec![&long; 20];
    alice.append_texts(&texts);
    for _ in 0..10 {
        alice.model_proposes(json!([]));
    }
    let outcome = alice.learn();
    assert_eq!(outcome["complete"], true);
    assert_eq!(outcome["events"], 20);
    let passes = outcome["looks"].as_u64().unwrap();
    assert!((4..=8).contains(&passes), "{passes}");
    assert!(
        alice
            .outbound
            .calls
            .borrow()
            .iter()
            .all(|call| call.body.len() < 40_000)
    );
}

#[test]
fn a_pass_is_due_after_a_turn_an_append_or_a_quiet_period() {
    for (after, waits_ms) in [("turn", 3_000), ("idle", 600_000)] {
        let alice = Alice::learner(json!({"after": after}));
        let started_ms = alice.host.now_ms();
        alice.append_texts(&["I like tea."]);
        let round = alice.alarm();
        assert_eq!(round.next_at, Some(started_ms + waits_ms), "{after}");
        alice.host.advance(waits_ms / 2);
        // More messages arrive: an idle pass waits for its own idle period.
        alice.append_texts(&["I like coffee."]);
        alice.host.advance(waits_ms - waits_ms / 2);
        alice.model_proposes(json!([]));
        let round = alice.alarm();
        match after {
            "turn" => assert_eq!((round.next_at, alice.request_count()), (None, 1)),
            _ => {
                assert_eq!(round.next_at, Some(started_ms + waits_ms + waits_ms / 2));
                assert_eq!(alice.request_count(), 0);
                alice.host.advance(waits_ms / 2);
                assert_eq!(alice.alarm().next_at, None);
                assert_eq!(alice.request_count(), 1);
            }
        }
    }
    let alice = Alice::learner(json!({"after": "manual"}));
    alice.append_texts(&["I like tea."]);
    alice.host.advance(1_000_000_000);
    assert_eq!(alice.alarm().next_at, None);
    alice.model_proposes(json!([]));
    assert_eq!(alice.ok("learn", json!({}))["events"], 1);
}

#[test]
fn a_pass_runs_as_soon_as_a_turn_ends() {
    let alice = Alice::trusting();
    alice.model_answers("You are welcome.");
    alice.chat(json!({"id": "s", "message": {"id": "q", "role": "user", "parts": [{"type": "text", "text": "I like tea."}]}}));
    alice.model_proposes(json!([adds("tea", "The user likes tea.", "e1")]));
    let round = alice.alarm();
    assert!(round.has_learnt);
    assert_eq!(round.next_at, None);
    assert!(
        alice
            .learn_prompt()
            .contains(r#"{"event":"e2","from":"agent","text":"You are welcome."}"#)
    );
    assert_eq!(alice.facts(), json!({"tea": "The user likes tea."}));
}

#[test]
fn an_agent_that_does_not_learn_writes_no_row_for_it() {
    let due = |alice: &Alice| {
        let sql = "SELECT count(*) FROM cf_agents_sessions WHERE learn_due_at IS NOT NULL";
        alice.db.rows(sql, &[]).unwrap()[0].integer(0).unwrap()
    };
    let silent = Alice::with_session();
    silent.append(json!([user_event("I like tea.")]));
    assert_eq!(due(&silent), 0);
    let alice = Alice::learner(json!({}));
    alice.append(json!([user_event("I like tea.")]));
    assert_eq!(due(&alice), 1);
    let error = silent.call("learn", json!({})).unwrap_err();
    assert_eq!(error.code.name(), "not_configured");
}

#[test]
fn an_invalid_answer_is_retried_and_finally_skipped() {
    let alice = Alice::learner(json!({}));
    alice.append_texts(&["I like tea."]);
    for attempt in 0..3 {
        alice.model_answers("I'd rather not.");
        let outcome = alice.call("learn", json!({"sessionId": "s"}));
        match attempt {
            0 | 1 => assert_eq!(outcome.unwrap_err().code.name(), "model_failed"),
            _ => assert_eq!(outcome.unwrap()["complete"], true),
        }
    }
    assert_eq!(alice.proposals(), Vec::<Value>::new());
    assert_eq!(alice.learn()["looks"], 0);
}

#[test]
fn a_failing_model_is_retried_with_growing_delays() {
    let alice = Alice::learner(json!({}));
    alice.append_texts(&["I like tea."]);
    let mut pauses = Vec::new();
    for _ in 0..9 {
        let now = alice.host.now_ms();
        let next_at = alice.alarm().next_at.unwrap();
        pauses.push((next_at - now) / 1_000);
        alice.host.advance(next_at - now);
    }
    // The first pass waits until appends pause.
    assert_eq!(pauses, [3, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
    // The session and the agent report the reason.
    let session = alice.ok("getSession", json!({"sessionId": "s"}));
    let error = session["lastLearningError"].as_object().unwrap();
    let mut names: Vec<&str> = error.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["at", "attempts", "code", "message"]);
    assert_eq!(
        (&error["code"], &error["attempts"]),
        (&json!("model_failed"), &json!(8))
    );
    let stats = alice.ok("getStats", json!({}));
    assert_eq!(stats["learning"]["waiting"], 1);
    let mut failure = session["lastLearningError"].clone();
    failure["sessionId"] = json!("s");
    assert_eq!(stats["learning"]["failures"], json!([failure]));
    alice.model_proposes(json!([]));
    assert_eq!(alice.alarm().next_at, None);
    let session = alice.ok("getSession", json!({"sessionId": "s"}));
    assert_eq!(session.get("lastLearningError"), None);
    assert_eq!(
        alice.ok("getStats", json!({}))["learning"]["failures"],
        json!([])
    );
}

#[test]
fn each_failure_of_a_round_is_logged() {
    let alice = Alice::learner(json!({}));
    alice.append_texts(&["I like tea."]);
    alice.ok("createSession", json!({"id": "t"}));
    let coffee = json!({"sessionId": "t", "events": [user_event("I like coffee.")]});
    alice.ok("appendEvents", coffee);
    alice.host.advance(3_000);
    wait_for(api::jobs::run(&alice.agent(&alice.db), JobKind::Learning));
    let logged = alice.starter.failures.borrow();
    let codes = logged.iter().map(|failure| failure.code.name());
    assert_eq!(codes.collect::<Vec<_>>(), ["model_failed", "model_failed"]);
}

#[test]
fn a_pass_sees_every_entry_related_to_its_messages() {
    let alice = Alice::trusting();
    for number in 0..200 {
        alice.ok(
            "setEntry",
            json!({"label": "facts", "key": format!("k{number}"), "content": format!("The user knows the word w{number}x.")}),
        );
    }
    // The relevant message is the oldest of many, and its word the last of many.
    let questions =
        (0..20).map(|n| user_event(&format!("How long do I boil number {n} of these?")));
    let first = user_event(
        "Well, by the way, since we speak of all these many things today, forget what I said about w7x.",
    );
    let events: Vec<Value> = [first].into_iter().chain(questions).collect();
    alice.append(json!(events));
    alice.model_proposes(json!([{"action": "forget", "key": "k7", "events": ["e1"]}]));
    let outcome = alice.learn();
    assert!(
        alice.learn_prompt().contains("\"k7\""),
        "{}",
        alice.learn_prompt()
    );
    assert_eq!(outcome["proposals"][0]["changes"][0]["status"], "applied");
}

#[test]
fn the_daily_token_limit_is_enforced() {
    let alice = Alice::learner(json!({"maxTokensPerDay": 200}));
    // A pass reports 110 tokens.
    for text in ["one", "two"] {
        alice.append_texts(&[text]);
        alice.model_proposes(json!([]));
        alice.learn();
    }
    alice.append_texts(&["three"]);
    let error = alice.call("learn", json!({"sessionId": "s"})).unwrap_err();
    assert_eq!(error.code.name(), "rate_limited");
    assert_eq!(error.details()["field"], "learn.maxTokensPerDay");
    assert!(
        error.message.contains("`learn.maxTokensPerDay`"),
        "{}",
        error.message
    );
    assert_eq!(alice.request_count(), 2);
    // The pass waits for the next day.
    let retry_after = error.details()["retryAfter"].as_i64().unwrap();
    let next_at = alice.alarm().next_at.unwrap();
    assert_eq!(next_at, alice.host.now_ms() + retry_after * 1_000);
    alice.host.advance(retry_after * 1_000);
    alice.model_proposes(json!([]));
    assert_eq!(alice.alarm().next_at, None);
    assert_eq!(alice.request_count(), 3);
}

#[test]
fn the_demo_learns_corrects_and_forgets() {
    let alice = Alice::with_session();
    alice.ok(
        "defineBlock",
        json!({"label": "facts", "kind": "searchable"}),
    );
    alice.ok(
        "configureAgent",
        json!({"model": "demo", "learn": {"into": "facts", "review": "auto"}}),
    );
    for (text, expected) in [
        (
            "Hello! remember that I like window seats",
            json!({"likes-window-seats": "The user likes window seats"}),
        ),
        (
            "My favourite colour is blue.",
            json!({"likes-window-seats": "The user likes window seats", "favourite-colour": "The user's favourite colour is blue"}),
        ),
        (
            "Sorry, what? My favourite colour is now green.",
            json!({"likes-window-seats": "The user likes window seats", "favourite-colour": "The user's favourite colour is green"}),
        ),
        (
            "Call me Ann",
            json!({"likes-window-seats": "The user likes window seats", "favourite-colour": "The user's favourite colour is green", "name": "The user is called Ann"}),
        ),
        (
            "Forget my favourite colour.",
            json!({"likes-window-seats": "The user likes window seats", "name": "The user is called Ann"}),
        ),
        (
            "Is my name Bob?",
            json!({"likes-window-seats": "The user likes window seats", "name": "The user is called Ann"}),
        ),
    ] {
        alice.append_texts(&[text]);
        alice.learn();
        assert_eq!(alice.facts(), expected, "{text}");
    }
}

/// A message with as many words as four searches cover.
fn long_talk() -> String {
    let words: Vec<String> = (0..150).map(|number| format!("word{number}")).collect();
    words.join(" ")
}

#[test]
fn embeddings_are_not_requested_again_after_a_failure() {
    let alice = Alice::trusting().embedding_by("workers-ai:@cf/m");
    alice.append_texts(&[&long_talk()]);
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(500, "broken")));
    alice.model_proposes(json!([]));
    assert_eq!(alice.learn()["complete"], true);
    assert_eq!(alice.embedding_requests().len(), 1);
}

#[test]
fn embeddings_are_requested_within_a_time_limit() {
    for (lasts_ms, expected) in [(0, 4), (20_000, 1)] {
        let alice = Rc::new(Alice::trusting().embedding_by("workers-ai:@cf/m"));
        alice.append_texts(&[&long_talk()]);
        let same = Rc::clone(&alice);
        let passes = move || same.host.advance(lasts_ms);
        *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(passes));
        for _ in 0..expected {
            alice.embeds(&[[1.0, 0.0, 0.0]]);
        }
        alice.model_proposes(json!([]));
        assert_eq!(alice.learn()["complete"], true);
        assert_eq!(alice.embedding_requests().len(), expected, "{lasts_ms}");
    }
}

#[test]
fn a_files_text_is_not_a_statement_of_the_user() {
    let file = json!({
        "type": "file", "filename": "I like tea.", "mediaType": "text/plain", "url": "https://files.example/f",
    });
    for (parts, role) in [
        (json!([file]), "import"),
        (json!([file, {"type": "text", "text": ""}]), "import"),
        (
            json!([{"type": "data-note", "data": {"text": "I like tea."}}]),
            "import",
        ),
        (
            json!([file, {"type": "text", "text": "Read this."}]),
            "user",
        ),
        // The row of such a long message can't contain its text.
        (
            json!([file, {"type": "text", "text": "Read this. ".repeat(150_000)}]),
            "user",
        ),
    ] {
        let alice = Alice::trusting();
        alice.ok(
            "appendMessage",
            json!({"sessionId": "s", "message": {"id": "m", "role": "user", "parts": parts}}),
        );
        alice.model_proposes(json!([adds("tea", "The user likes tea.", "e1")]));
        let change = alice.learn()["proposals"][0]["changes"][0].clone();
        let prompt = alice.learn_prompt();
        assert!(prompt.contains(&format!(r#""from":"{role}""#)), "{prompt}");
        assert_eq!(prompt.contains(r#""text":"I like tea."#), role == "import");
        assert_eq!(change["status"], "pending", "{parts}");
        assert_ne!(change["source"], "user");
    }
}

/// The bytes of the newest request, and the maximum tokens of its answer.
fn sent(alice: &Alice) -> (usize, Value) {
    let calls = alice.outbound.calls.borrow();
    let body: Value = serde_json::from_str(&calls.last().unwrap().body).unwrap();
    let most = body["max_tokens"].clone();
    (alice.learn_prompt().len(), most)
}

fn refused(answer: ScriptedAnswer) -> ScriptedAnswer {
    ScriptedAnswer {
        status: 400,
        ..answer
    }
}

fn long_words(count: usize) -> Vec<String> {
    let words = |n: usize| format!("Day {n}: {}", "the garden was green. ".repeat(40));
    (0..count).map(words).collect()
}

#[test]
fn a_small_window_needs_more_passes() {
    let alice = Alice::trusting();
    alice.ok("configureAgent", json!({"maxContextTokens": 4_000}));
    let texts = long_words(20);
    alice.append_texts(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    for n in 0..40 {
        let body = json!({"label": "facts", "key": format!("g{n}"), "content": format!("The garden was green in year {n}. {}", "Grass. ".repeat(60))});
        alice.ok("setEntry", body);
    }
    let mut passes = 0;
    let mut events = 0;
    let mut complete = json!(false);
    while complete == json!(false) {
        for _ in 0..8 {
            alice.model_proposes(json!([]));
        }
        let outcome = alice.learn();
        passes += outcome["looks"].as_i64().unwrap();
        events += outcome["events"].as_i64().unwrap();
        complete = outcome["complete"].clone();
        let (bytes, most) = sent(&alice);
        assert!(bytes < 9_000 + 2_100, "{bytes}");
        assert!(bytes > 2_000, "{bytes}");
        assert_eq!(most, 1_000);
    }
    assert_eq!(events, 20);
    assert!((3..20).contains(&passes), "{passes}");
}

#[test]
fn a_length_error_halves_the_pass_and_loses_nothing() {
    let alice = Alice::trusting();
    let texts = long_words(24);
    let ids = alice.append_texts(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let refuse = || {
        let error = json!({"error": {"message": "This model's maximum context length is 3000 tokens. However, you requested 9000 tokens.", "code": "context_length_exceeded"}});
        alice
            .outbound
            .answer(ScriptedAnswer::json(&error).map(refused));
    };
    refuse();
    for _ in 0..8 {
        alice.model_proposes(json!([adds("g", "The garden was green.", "e1")]));
    }
    let outcome = alice.learn();
    assert_eq!(
        outcome["proposals"][0]["changes"][0]["events"][0]["id"],
        ids[0]
    );
    let request_bytes: Vec<usize> = {
        let calls = alice.outbound.calls.borrow();
        calls.iter().map(|call| call.body.len()).collect()
    };
    assert!(request_bytes[1] < request_bytes[0] / 2, "{request_bytes:?}");
    // The window reported by the provider applies to later passes.
    assert!(
        request_bytes[2..].iter().all(|bytes| *bytes < 8_000),
        "{request_bytes:?}"
    );
    // A model that accepts no length fails the pass, which is repeated.
    let alice = Alice::trusting();
    alice.append_texts(&["I like window seats."]);
    for _ in 0..4 {
        let error = json!({"error": {"message": "prompt is too long"}});
        alice
            .outbound
            .answer(ScriptedAnswer::json(&error).map(refused));
    }
    let error = alice.refused("learn", json!({"sessionId": "s"}));
    assert_eq!(error, "model_failed");
    assert_eq!(alice.request_count(), 4);
    alice.model_proposes(json!([]));
    assert_eq!(alice.learn()["events"], 1);
}

#[test]
fn only_a_denial_ends_a_fact_automatically_in_other_languages() {
    for (text, action, status) in [
        ("Ich habe keinen Hund mehr.", "retire", "applied"),
        ("Vergiss bitte meinen Hund.", "forget", "pending"),
        ("Mein Hund ist gestorben.", "retire", "pending"),
    ] {
        let alice = Alice::trusting();
        alice.ok(
            "setEntry",
            json!({"label": "facts", "key": "hund", "content": "Ich habe einen Hund."}),
        );
        let ids = alice.append_texts(&[text]);
        alice.model_proposes(json!([{"action": action, "key": "hund", "events": ["e1"]}]));
        let change = alice.learn()["proposals"][0]["changes"][0].clone();
        assert_eq!(change["status"], status, "{text}");
        assert_eq!(change["events"][0]["id"], ids[0], "{text}");
        if status == "pending" {
            let id = alice.proposals()[0]["id"].clone();
            alice.ok("decideProposal", json!({"id": id, "approve": true}));
        }
        let found = alice.ok("searchContext", json!({"label": "facts", "query": "Hund"}));
        assert_eq!(found["results"], json!([]), "{text}");
    }
    // A fact is not evidence for its denial, nor the other way round.
    let alice = Alice::trusting();
    alice.append_texts(&["Ich bin nicht allergisch gegen Nüsse."]);
    alice.model_proposes(json!([adds("a", "Ich bin allergisch gegen Nüsse.", "e1")]));
    let change = alice.learn()["proposals"][0]["changes"][0].clone();
    assert_eq!(change["status"], "pending");
}
