//! The rows of a session after it is cleared, after it is forked, and after a repeated request.

use serde_json::{Value, json};

use crate::Alice;
use base::database::Database;
use base::testing::ScriptedAnswer;

fn usage(alice: &Alice, session_id: &str) -> Value {
    alice.ok("getSession", json!({"sessionId": session_id}))["usage"].clone()
}

fn with_a_document() -> Alice {
    let alice = Alice::with_session();
    alice.ok(
        "defineBlock",
        json!({"label": "skills", "kind": "loadable"}),
    );
    alice.ok(
        "putSkill",
        json!({"label": "skills", "key": "deploy", "content": "Press the red button."}),
    );
    alice.ok(
        "loadSkill",
        json!({"sessionId": "s", "label": "skills", "key": "deploy"}),
    );
    alice
}

#[test]
fn clearing_unloads_documents() {
    let context = |alice: &Alice| {
        let context = alice.ok("buildWorkingContext", json!({"sessionId": "s"}));
        context.to_string()
    };
    // A session with a message, and a session without one.
    for texts in [&["hi"][..], &[]] {
        let alice = with_a_document();
        alice.ok("createSession", json!({"id": "t"}));
        alice.ok(
            "loadSkill",
            json!({"sessionId": "t", "label": "skills", "key": "deploy"}),
        );
        if !texts.is_empty() {
            alice.append_texts(texts);
        }
        assert!(context(&alice).contains("red button"));
        let cleared = alice.ok("clearMessages", json!({"sessionId": "s"}));
        assert_eq!(cleared["deleted"], texts.len());
        assert!(!context(&alice).contains("red button"), "{texts:?}");
        // Another session keeps its documents.
        let other = alice.ok("buildWorkingContext", json!({"sessionId": "t"}));
        assert!(other.to_string().contains("red button"));
        // A second clearing finds nothing to clear.
        let before = alice.db.dump();
        alice.ok("clearMessages", json!({"sessionId": "s"}));
        assert_eq!(alice.db.dump(), before);
    }
}

#[test]
fn a_fork_keeps_settings_and_loaded_documents() {
    let alice = with_a_document();
    let set = alice.ok(
        "configureCompaction",
        json!({"sessionId": "s", "compactAfter": 5000, "protectHead": 7}),
    );
    alice.ok("addUsage", json!({"sessionId": "s", "inputTokens": 9}));
    alice.append_texts(&["hi"]);
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    let read = json!({"sessionId": fork["id"]});
    assert_eq!(alice.ok("configureCompaction", read.clone()), set);
    let context = alice.ok("buildWorkingContext", read);
    assert!(context.to_string().contains("red button"));
    // The fork's usage starts at zero.
    assert_eq!(fork["usage"]["inputTokens"], 0);
    // A fork without its own settings uses the agent's.
    alice.ok("createSession", json!({"id": "plain"}));
    let fork = alice.ok("forkSession", json!({"sessionId": "plain"}));
    alice.ok("configureCompaction", json!({"protectHead": 5}));
    let settings = alice.ok("configureCompaction", json!({"sessionId": fork["id"]}));
    assert_eq!(settings["protectHead"], 5);
}

#[test]
fn a_fork_omits_the_originals_compaction_outcomes() {
    let alice = Alice::with_session();
    alice
        .db
        .run(
            r#"UPDATE cf_agents_sessions
                  SET compaction = '{"settings":{"protectHead":1},"lastError":{"code":"model_failed","message":"No.","at":1,"attempts":2,"seq":3},"decisions":[]}'"#,
            &[],
        )
        .unwrap();
    alice.append_texts(&["hi"]);
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    assert!(fork.get("lastCompactionError").is_none(), "{fork}");
    let read = json!({"sessionId": fork["id"]});
    assert_eq!(alice.ok("configureCompaction", read)["protectHead"], 1);
    // The error is also cleared with its messages.
    let session = alice.ok("getSession", json!({"sessionId": "s"}));
    assert_eq!(session["lastCompactionError"]["attempts"], 2);
    alice.ok("clearMessages", json!({"sessionId": "s"}));
    let session = alice.ok("getSession", json!({"sessionId": "s"}));
    assert!(session.get("lastCompactionError").is_none(), "{session}");
    let read = json!({"sessionId": "s"});
    assert_eq!(alice.ok("configureCompaction", read)["protectHead"], 1);
}

#[test]
fn usage_with_a_repeated_id_counts_once() {
    let alice = Alice::with_session();
    let call = json!({"sessionId": "s", "inputTokens": 100, "outputTokens": 5, "cachedInputTokens": 80, "cost": 0.5, "id": "call-1"});
    let first = alice.ok("addUsage", call.clone());
    assert_eq!(
        first["usage"],
        json!({"inputTokens": 100, "outputTokens": 5, "cost": 0.5, "cachedInputTokens": 80})
    );
    let before = alice.db.dump();
    assert_eq!(alice.ok("addUsage", call.clone()), first);
    assert_eq!(alice.db.dump(), before, "nothing is written");
    // A call with another id counts, and so does every call without an id.
    for more in [json!("call-2"), Value::Null, Value::Null] {
        alice.ok(
            "addUsage",
            json!({"sessionId": "s", "inputTokens": 1, "id": more}),
        );
    }
    assert_eq!(usage(&alice, "s")["inputTokens"], 103);
    // Another session counts a call with the same id.
    alice.ok("createSession", json!({"id": "t"}));
    let mut other = call.clone();
    other["sessionId"] = json!("t");
    assert_eq!(alice.ok("addUsage", other)["usage"], first["usage"]);
    // The ids are deleted with the session.
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    alice.ok("createSession", json!({"id": "s"}));
    assert_eq!(alice.ok("addUsage", call)["usage"], first["usage"]);
}

#[test]
fn the_newest_thousand_usage_ids_are_remembered() {
    let alice = Alice::with_session();
    let call = |n: i64| {
        let body = json!({"sessionId": "s", "inputTokens": 1, "id": format!("call-{n}")});
        alice.ok("addUsage", body)["usage"]["inputTokens"].clone()
    };
    for n in 1..=2_500 {
        assert_eq!(call(n), n);
    }
    let sql = "SELECT count(*) FROM cf_agents_usage_calls";
    let stored = alice.db.rows(sql, &[]).unwrap()[0].integer(0).unwrap();
    assert!((1_000..=2_000).contains(&stored), "{stored}");
    for n in 1_501..=2_500 {
        assert_eq!(call(n), 2_500, "{n}");
    }
}

#[test]
fn usage_saturates_at_javascripts_largest_integer() {
    let alice = Alice::with_session();
    let most = 9_007_199_254_740_991_i64;
    for _ in 0..3 {
        alice.ok(
            "addUsage",
            json!({"sessionId": "s", "inputTokens": most, "cachedInputTokens": most, "cost": 1e15}),
        );
    }
    let answer = usage(&alice, "s");
    assert_eq!(answer["inputTokens"], most);
    assert_eq!(answer["cachedInputTokens"], most);
    // The usage is the same after an export and an import.
    let file = alice.export("s").unwrap();
    let bob = Alice::default();
    bob.import("s", &file).unwrap();
    assert_eq!(usage(&bob, "s"), answer);
    assert_eq!(bob.export("s").unwrap(), file);
}

/// An agent with a long conversation, and with a scripted model that writes the
/// summaries.
fn with_long_conversation() -> Alice {
    let alice = Alice::with_session();
    let settings = [
        ("MODEL".to_owned(), "openai:m".to_owned()),
        ("OPENAI_API_KEY".to_owned(), "k".to_owned()),
    ];
    alice.outbound.settings.borrow_mut().extend(settings);
    let long = "many words ".repeat(300);
    alice.append_texts(&[long.as_str(); 20]);
    alice.ok(
        "configureCompaction",
        json!({"protectHead": 1, "tailTokenBudget": 10, "minTailMessages": 1}),
    );
    alice
}

/// A model's answer with a summary and its usage, as the provider streams both.
fn summary(text: &str, input: i64, output: i64) -> ScriptedAnswer {
    let chunk = json!({"choices": [{"delta": {"content": text}}]});
    let end = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    let usage =
        json!({"choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output}});
    ScriptedAnswer::stream(&format!(
        "data: {chunk}\n\ndata: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n"
    ))
}

#[test]
fn summary_costs_are_counted_with_their_overlay() {
    let alice = with_long_conversation();
    // The messages in the middle need more than one request to the model.
    for _ in 0..4 {
        alice.outbound.answer(Ok(summary("In short.", 1_000, 10)));
    }
    let compacted = alice.ok("compact", json!({"sessionId": "s"}));
    assert_eq!(compacted["reason"], "compacted");
    let calls = alice.outbound.calls.borrow().len() as i64;
    assert!(calls > 1);
    assert_eq!(
        usage(&alice, "s"),
        json!({"inputTokens": calls * 1_000, "outputTokens": calls * 10, "cost": 0.0})
    );
}

#[test]
fn a_failed_summarys_reported_usage_is_counted() {
    // The first part is summarized. The second answer breaks off after its usage.
    let alice = with_long_conversation();
    alice.outbound.answer(Ok(summary("In short.", 1_000, 10)));
    let usage_then_error = concat!(
        "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":500,\"completion_tokens\":1}}\n\n",
        "data: {\"error\":{\"message\":\"Out of order.\",\"code\":500}}\n\n"
    );
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::stream(usage_then_error)));
    let failed = alice.ok("compact", json!({"sessionId": "s"}));
    assert_eq!(failed["reason"], "summariser_failed");
    let reply = usage(&alice, "s");
    assert!(reply["inputTokens"].as_i64().unwrap() >= 1_000, "{reply}");
    assert_eq!(
        reply,
        json!({"inputTokens": 1_500, "outputTokens": 11, "cost": 0.0})
    );
}

#[test]
fn a_dry_run_of_a_compaction_costs_nothing() {
    let alice = with_long_conversation();
    let dry = alice.ok("compact", json!({"sessionId": "s", "dryRun": true}));
    assert_eq!(dry["reason"], "would_compact");
    assert_eq!(usage(&alice, "s")["inputTokens"], 0);
}
