//! Blocks stored by services, whose answers are scripted; and errors for a backend that isn't
//! bound.

use serde_json::{Value, json};

use crate::Alice;
use base::outbound::{CallFailure, Endpoint};
use base::testing::ScriptedAnswer;

type Answers = fn() -> Result<ScriptedAnswer, CallFailure>;

#[test]
fn a_missing_binding_is_reported() {
    let alice = Alice::default();
    for (kind, source, binding) in [
        ("loadable", json!({"r2Prefix": "skills/"}), "SKILLS_BUCKET"),
        ("readonly", json!({"r2": "soul.md"}), "SKILLS_BUCKET"),
        ("writable", json!({"service": "NOTES"}), "NOTES"),
    ] {
        let body = json!({"label": "a", "kind": kind, "source": source});
        let error = alice.call("defineBlock", body).unwrap_err();
        assert_eq!(
            (
                error.code.name(),
                error.code.status(),
                &error.details()["binding"]
            ),
            ("not_configured", 501, &json!(binding))
        );
    }
    // A deployed block without its bucket has no content in the prompt; the rest of the
    // prompt is there.
    let deployed =
        json!([{"label": "skills", "kind": "loadable", "source": {"r2Prefix": "skills/"}}]);
    alice
        .outbound
        .settings
        .borrow_mut()
        .insert("MEMORY_BLOCKS".to_owned(), deployed.to_string());
    assert_eq!(
        alice.refused("getBlock", json!({"label": "skills"})),
        "not_configured"
    );
    assert_eq!(
        alice.refused("loadSkill", json!({"label": "skills", "key": "a"})),
        "not_configured"
    );
    let prompt = alice.ok("renderPrompt", json!({}));
    assert!(
        prompt["prompt"]
            .as_str()
            .unwrap()
            .contains("unavailable: This Worker has no binding `SKILLS_BUCKET`")
    );
    let outcome = alice.ok(
        "callTool",
        json!({"name": "load_context", "arguments": {"label": "skills", "key": "a"}}),
    );
    assert_eq!(outcome["isError"], true);
}

pub fn with_service(kind: &str) -> Alice {
    let alice = Alice::with_session();
    alice
        .outbound
        .bindings
        .borrow_mut()
        .push("NOTES".to_owned());
    alice.outbound.answer(ScriptedAnswer::json(&json!({})));
    alice.ok(
        "defineBlock",
        json!({"label": "notes", "kind": kind, "source": {"service": "NOTES"}}),
    );
    alice.outbound.calls.borrow_mut().clear();
    alice
}

fn service_calls(alice: &Alice) -> Vec<(String, Value)> {
    let calls = alice.outbound.calls.borrow();
    calls
        .iter()
        .map(|call| match &call.endpoint {
            Endpoint::Service { binding, path } => {
                assert_eq!(binding, "NOTES");
                (path.clone(), serde_json::from_str(&call.body).unwrap())
            }
            place => panic!("{place:?}"),
        })
        .collect()
}

#[test]
fn a_service_stores_a_text() {
    let alice = with_service("writable");
    alice
        .outbound
        .answer(ScriptedAnswer::json(&json!({"content": "old"})));
    assert_eq!(
        alice.ok("getBlock", json!({"label": "notes"}))["content"],
        "old"
    );
    alice
        .outbound
        .answer(ScriptedAnswer::json(&json!({"content": "old"})));
    alice.outbound.answer(ScriptedAnswer::json(&json!({})));
    let block = alice.ok("appendToBlock", json!({"label": "notes", "content": "+"}));
    assert_eq!(
        (&block["content"], &block["version"]),
        (&json!("old+"), &json!(1))
    );
    let whom = json!({"agent": "alice", "sessionId": null, "label": "notes", "kind": "writable"});
    let mut set = whom.clone();
    set["content"] = json!("old+");
    assert_eq!(
        service_calls(&alice),
        [
            ("get".to_owned(), whom.clone()),
            ("get".to_owned(), whom),
            ("set".to_owned(), set)
        ]
    );
}

fn conflict() -> Result<ScriptedAnswer, CallFailure> {
    Ok(ScriptedAnswer::text(409, "another version"))
}

#[test]
fn concurrent_appends_to_a_versioned_service_are_both_kept() {
    let alice = with_service("writable");
    alice.outbound.answer(ScriptedAnswer::json(
        &json!({"content": null, "version": "0"}),
    ));
    alice.outbound.answer(conflict());
    alice.outbound.answer(ScriptedAnswer::json(
        &json!({"content": "theirs\n", "version": 7}),
    ));
    alice.outbound.answer(ScriptedAnswer::json(&json!({})));
    let block = alice.ok(
        "appendToBlock",
        json!({"label": "notes", "content": "ours"}),
    );
    assert_eq!(
        (&block["content"], &block["version"]),
        (&json!("theirs\nours"), &json!(1))
    );
    let sets: Vec<(Value, Value)> = service_calls(&alice)
        .into_iter()
        .filter(|(path, _)| path == "set")
        .map(|(_, body)| (body["content"].clone(), body["expectedVersion"].clone()))
        .collect();
    assert_eq!(
        sets,
        [
            (json!("ours"), json!("0")),
            (json!("theirs\nours"), json!(7))
        ]
    );
}

#[test]
fn a_writer_that_always_loses_to_a_service_gets_an_error() {
    let alice = with_service("writable");
    let before = alice.db.dump();
    for version in 1..=4 {
        let reply = json!({"content": "theirs", "version": version});
        alice.outbound.answer(ScriptedAnswer::json(&reply));
        alice.outbound.answer(conflict());
    }
    let append = json!({"label": "notes", "content": "ours"});
    assert_eq!(alice.refused("appendToBlock", append), "version_conflict");
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn a_write_without_a_response_has_an_unknown_outcome() {
    let alice = with_service("writable");
    alice
        .outbound
        .answer(ScriptedAnswer::json(&json!({"content": "a"})));
    let silence = CallFailure::TimedOut { silence_ms: 10_000 };
    alice.outbound.answer(Err(silence.clone()));
    let set = json!({"label": "notes", "content": "b"});
    let error = alice.call("setBlock", set.clone()).unwrap_err();
    assert!(
        error.message.contains("may or may not have been written"),
        "{}",
        error.message
    );
    // If the read before the write fails, nothing is written.
    alice.outbound.answer(Err(silence));
    let error = alice.call("setBlock", set).unwrap_err();
    assert!(
        error.message.contains("Nothing is lost"),
        "{}",
        error.message
    );
}

#[test]
fn a_service_is_searched_and_serves_documents() {
    let alice = with_service("searchable");
    alice.outbound.answer(ScriptedAnswer::json(
        &json!({"results": [{"key": "k", "title": "T", "content": "penguins swim"}]}),
    ));
    let found = alice.ok(
        "searchContext",
        json!({"label": "notes", "query": "penguin"}),
    );
    assert_eq!(found["results"][0]["snippet"], "penguins swim");
    assert_eq!(found["results"][0]["highlights"], json!([[0, 8]]));
    alice.outbound.answer(ScriptedAnswer::json(
        &json!({"content": "As the documents' providers do: one text."}),
    ));
    let found = alice.ok(
        "callTool",
        json!({"name": "search_context", "arguments": {"label": "notes", "query": "x"}}),
    );
    assert_eq!(
        found["output"],
        "(source: unknown; written at an unknown time)\n> As the documents' providers do: one text."
    );
    assert_eq!(
        alice.refused("listEntries", json!({"label": "notes"})),
        "invalid_request"
    );

    let alice = with_service("loadable");
    alice.outbound.answer(ScriptedAnswer::json(
        &json!({"skills": [{"key": "b"}, {"key": "a", "description": "First"}, {"key": "../c"}]}),
    ));
    assert_eq!(
        alice.ok("getBlock", json!({"label": "notes"}))["content"],
        "- a: First\n- b"
    );
    alice
        .outbound
        .answer(ScriptedAnswer::json(&json!({"content": "Whole."})));
    assert_eq!(
        alice.ok(
            "loadSkill",
            json!({"sessionId": "s", "label": "notes", "key": "a"})
        )["content"],
        "Whole."
    );
    alice.outbound.answer(Ok(ScriptedAnswer {
        status: 404,
        content_type: "text/plain",
        chunks: vec![],
    }));
    assert_eq!(
        alice.refused("loadSkill", json!({"label": "notes", "key": "b"})),
        "skill_not_found"
    );
}

#[test]
fn any_answer_of_a_service_renders_a_prompt_and_loses_nothing() {
    let html = || {
        Ok(ScriptedAnswer {
            status: 200,
            content_type: "text/html",
            chunks: vec![Ok(b"<html>Welcome!".to_vec())],
        })
    };
    let answers: Vec<(Answers, &str)> = vec![
        (html, "not the expected JSON"),
        (
            || {
                Ok(ScriptedAnswer {
                    status: 500,
                    content_type: "text/plain",
                    chunks: vec![Ok(b"secret stack".to_vec())],
                })
            },
            "status 500",
        ),
        (
            || {
                Ok(ScriptedAnswer {
                    status: 200,
                    content_type: "application/json",
                    chunks: vec![],
                })
            },
            "not the expected JSON",
        ),
        (
            || {
                Ok(ScriptedAnswer {
                    status: 200,
                    content_type: "application/json",
                    chunks: vec![Ok(vec![b'x'; 1 << 20]); 50],
                })
            },
            "larger than 1048576 bytes",
        ),
        (
            || {
                Ok(ScriptedAnswer {
                    status: 200,
                    content_type: "application/json",
                    chunks: vec![Ok(b"{\"content\":\"\xff\xfe\"}".to_vec())],
                })
            },
            "not UTF-8",
        ),
        (
            || {
                Ok(ScriptedAnswer {
                    status: 200,
                    content_type: "application/json",
                    chunks: vec![Err(CallFailure::TimedOut { silence_ms: 10_000 })],
                })
            },
            "nothing for 10 s",
        ),
        (
            || {
                Err(CallFailure::Unreachable {
                    cause: "refused".to_owned(),
                })
            },
            "could not be reached",
        ),
        (
            || ScriptedAnswer::json(&json!({"content": 5})),
            "not the expected JSON",
        ),
        (
            || ScriptedAnswer::json(&json!([1])),
            "not the expected JSON",
        ),
    ];
    for (answer, reason) in answers {
        let alice = with_service("writable");
        alice.ok(
            "defineBlock",
            json!({"label": "memory", "kind": "writable", "defaultContent": "Stays."}),
        );
        let before = alice.db.dump();
        alice.outbound.answer(answer());
        let block = alice.ok("getBlock", json!({"label": "notes"}));
        assert!(
            block["unavailable"].as_str().unwrap().contains(reason),
            "{block}"
        );
        alice.outbound.answer(answer());
        let prompt = alice.ok("renderPrompt", json!({}))["prompt"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            prompt.contains("unavailable: Service `NOTES`") && prompt.ends_with("Stays."),
            "{prompt}"
        );
        assert!(!prompt.contains("secret stack") && !prompt.contains("Welcome"));
        alice.outbound.answer(answer());
        let error = alice
            .call("setBlock", json!({"label": "notes", "content": "x"}))
            .unwrap_err();
        assert!(error.message.contains(reason), "{}", error.message);
        alice.outbound.answer(answer());
        let outcome = alice.ok(
            "callTool",
            json!({"name": "set_context", "arguments": {"label": "notes", "content": "x"}}),
        );
        assert_eq!(outcome["isError"], true);
        assert_eq!(alice.db.dump(), before);
    }
}
