//! The limit of an answer counts bytes as written: a character that JSON escapes takes up to six
//! bytes, but only one in storage. Each reading operation runs on an agent full of such characters.

use serde_json::{Value, json};

use crate::Alice;
use crate::api::examples::{BACKUP, READS};
use api::dispatch::dispatch;
use base::budget::MAX_ANSWER_BYTES;
use base::testing::archive::MemoryArchive;
use base::testing::wait_for;
use memory::content::MAX_VERSIONS_BYTES;
use memory::prompt::MAX_PROMPT_BYTES;
use memory::skills::loaded::MAX_LOADED_BYTES;
use store::erased::Erased;

/// Characters that are written longer than they are stored, or stored longer than they count.
const WORST: &[(&str, &str)] = &[
    ("control characters", "\u{1}"),
    (
        "quotes, backslashes, emoji and line separators",
        "\"\\😀\u{2028}",
    ),
];

/// The parts of an answer besides texts: names, ids, numbers.
const AROUND_BYTES: usize = 512 << 10;

/// A text of about this many stored bytes.
fn of(worst: &str, bytes: usize) -> String {
    worst.repeat(bytes / worst.len())
}

/// A text of this many characters without control characters.
fn line(worst: &str, chars: usize) -> String {
    if worst.chars().any(|c| c.is_control() || c == '\u{2028}') {
        "\"".repeat(chars)
    } else {
        worst.repeat(chars)
    }
}

/// An agent filled to its limits with these characters.
fn full_of(worst: &str) -> Alice {
    let alice = Alice::with_model();
    let text = |bytes| of(worst, bytes);
    alice.ok(
        "createSession",
        json!({"id": "s", "name": of(worst, 900), "metadata": {"a": text(100_000)}}),
    );
    for n in 0..10 {
        let name: String = worst.repeat(100);
        alice.ok(
            "createSession",
            json!({"id": format!("t{n}"), "name": name, "metadata": {"a": text(140_000)}}),
        );
    }
    populate_log(&alice, worst);
    populate_summaries(&alice, worst);
    populate_memory(&alice, worst);
    alice
}

fn populate_log(alice: &Alice, worst: &str) {
    let text = |bytes| of(worst, bytes);
    let mut last = Value::Null;
    for round in 0..7 {
        let small: Vec<Value> = (0..40)
            .map(|_| json!({"action": "user_message", "content": text(8_000)}))
            .collect();
        alice.ok("appendEvents", json!({"sessionId": "s", "events": small}));
        let id = format!("c{round}");
        let events = json!([
            {"action": "agent_message", "content": text(150_000), "metadata": {"m": text(50_000)}},
            {"action": "tool_call_request", "toolCalls": [{"id": id, "name": "t", "arguments": {"a": text(60_000)}}]},
            {"action": "tool_result", "toolCallId": id, "toolName": "t", "content": text(150_000)},
            {"action": "user_message", "content": text(150_000)},
        ]);
        last = alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
        let parts = json!([{"type": "text", "text": text(200_000)}]);
        let message = json!({"id": format!("m{round}"), "role": "user", "parts": parts});
        alice.ok(
            "appendMessage",
            json!({"sessionId": "s", "message": message}),
        );
    }
    for round in 0..8 {
        let parts = json!([{"type": "text", "text": text(150_000)}]);
        let message = json!({"id": format!("b{round}"), "role": "user", "parts": parts});
        let leaf = last["leafId"].clone();
        alice.ok(
            "appendMessage",
            json!({"sessionId": "s", "parentId": leaf, "message": message}),
        );
    }
}

/// A session with summaries of the maximum length.
fn populate_summaries(alice: &Alice, worst: &str) {
    alice.ok("createSession", json!({"id": "c"}));
    for n in 0..20 {
        let id = format!("c{n}");
        let event = json!({"id": id, "action": "user_message", "content": "x"});
        alice.ok("appendEvents", json!({"sessionId": "c", "events": [event]}));
        let summary = format!("x{}", of(worst, 60_000));
        alice.ok(
            "addCompaction",
            json!({"sessionId": "c", "summary": summary, "fromId": id, "toId": id}),
        );
    }
}

fn populate_memory(alice: &Alice, worst: &str) {
    let text = |bytes| of(worst, bytes);
    for session in [Value::Null, json!("s")] {
        let of_session = |mut body: Value| {
            body["sessionId"] = session.clone();
            body
        };
        for n in 0..2 {
            let label = format!("b{n}");
            let description = line(worst, 900);
            alice.ok(
                "defineBlock",
                of_session(json!({"label": label, "kind": "writable", "description": description})),
            );
            for version in 0..8 {
                let content = format!("{version}{}", text(170_000));
                alice.ok(
                    "setBlock",
                    of_session(
                        json!({"label": label, "content": content, "reason": line(worst, 400)}),
                    ),
                );
            }
        }
        alice.ok(
            "defineBlock",
            of_session(json!({"label": "kb", "kind": "searchable"})),
        );
        alice.ok(
            "defineBlock",
            of_session(json!({"label": "skills", "kind": "loadable"})),
        );
        for n in 0..24 {
            let content = format!("parcel {n} {}", text(60_000));
            let title = line(worst, 100);
            alice.ok("setEntry", of_session(json!({"label": "kb", "key": format!("k{n}"), "title": title, "content": content})));
        }
        for version in 0..20 {
            let content = format!("parcel {version} {}", text(60_000));
            alice.ok(
                "setEntry",
                of_session(json!({"label": "kb", "key": "k0", "content": content})),
            );
        }
        for n in 0..8 {
            let content = format!("{n}{}", text(150_000));
            let description = line(worst, 400);
            alice.ok("putSkill", of_session(json!({"label": "skills", "key": format!("d{n}"), "description": description, "content": content})));
        }
    }
    // As many as the session accepts: in the worst case one byte is written as six.
    for n in 0..4 {
        alice.ok(
            "loadSkill",
            json!({"sessionId": "t0", "label": "skills", "key": format!("d{n}")}),
        );
    }
}

/// The request for each reading operation, for the maximum that it returns.
fn requests() -> Vec<(&'static str, Value)> {
    let s = |mut body: Value| {
        body["sessionId"] = json!("s");
        body
    };
    let mut requests = vec![
        // This runs before a read freezes a prompt, because the backup contains none.
        (
            "restoreBackup",
            json!({"key": BACKUP, "allowSources": true}),
        ),
        ("getSession", s(json!({}))),
        ("listSessions", json!({"limit": 500})),
        ("getUsage", json!({"by": "model"})),
        ("getTurns", s(json!({"limit": 100}))),
        ("getTurns", json!({"failed": true, "limit": 100})),
        ("getTurn", json!({"turnId": "1.1.s"})),
        ("loadEvents", s(json!({"limit": 1000}))),
        ("loadEvents", s(json!({"limit": 40, "tail": true}))),
        (
            "loadEvents",
            s(json!({"limit": 600, "actions": ["user_message"]})),
        ),
        ("loadEvents", s(json!({"limit": 1000, "afterSeq": 1}))),
        ("getMessage", s(json!({"messageId": "m0"}))),
        ("getHistory", s(json!({"limit": 1000}))),
        ("getHistory", s(json!({"limit": 1000, "forModel": true}))),
        ("getBranches", s(json!({"messageId": "m6"}))),
        ("getLatestLeaf", s(json!({}))),
        ("getPathLength", s(json!({}))),
        ("getChanges", s(json!({"limit": 1000}))),
        ("search", json!({"query": "parcel", "limit": 100})),
        ("getCompactions", json!({"sessionId": "c"})),
        ("estimateTokens", s(json!({}))),
        ("renderPrompt", s(json!({"format": "xml"}))),
        ("renderPrompt", s(json!({}))),
        ("getReminder", s(json!({}))),
        ("getTools", s(json!({}))),
        ("cancelTurn", s(json!({}))),
        ("listTools", json!({})),
        ("getConfig", json!({})),
        ("backup", json!({"to": "r2"})),
        ("listBackups", json!({})),
        ("getBookmark", json!({})),
        (
            "restoreBookmark",
            json!({"bookmark": "state-1", "confirm": "alice"}),
        ),
        ("applyRetention", json!({"dryRun": true})),
        ("listAgents", json!({"limit": 1000})),
        ("searchAgents", json!({"prefix": "a", "query": "x"})),
        ("getStats", json!({})),
        ("verify", json!({})),
        ("loadForeignRows", json!({})),
        ("mintToken", json!({"expiresIn": 60})),
    ];
    for session in [Value::Null, json!("s")] {
        let of_session = |mut body: Value| {
            body["sessionId"] = session.clone();
            body
        };
        requests.extend([
            ("getBlock", of_session(json!({"label": "b0"}))),
            ("getBlocks", of_session(json!({}))),
            ("getBlocks", of_session(json!({"contents": false}))),
            ("getBlockVersions", of_session(json!({"label": "b0"}))),
            (
                "getBlockVersions",
                of_session(json!({"label": "kb", "key": "k0"})),
            ),
            (
                "listEntries",
                of_session(json!({"label": "kb", "limit": 200})),
            ),
            ("getEntry", of_session(json!({"label": "kb", "key": "k0"}))),
            (
                "searchContext",
                of_session(json!({"label": "kb", "query": "parcel", "limit": 100})),
            ),
            (
                "listSkills",
                of_session(json!({"label": "skills", "limit": 1000})),
            ),
        ]);
    }
    for session in ["s", "t0"] {
        for limit in [1000] {
            requests.push((
                "buildWorkingContext",
                json!({"sessionId": session, "limit": limit}),
            ));
            for memory in [false, true] {
                for format in ["workers-ai", "openai", "anthropic"] {
                    // A token budget results in the same context.
                    let max_tokens = if format == "openai" {
                        json!(10_000_000)
                    } else {
                        Value::Null
                    };
                    let input = json!({"sessionId": session, "limit": limit, "format": format, "memory": memory, "maxTokens": max_tokens});
                    requests.push(("buildWorkingContext", input));
                }
            }
        }
    }
    requests.push(("getProposals", json!({"limit": 100})));
    requests.push(("learn", json!({})));
    requests.push(("consolidate", json!({})));
    requests.push(("findMentions", json!({"query": "xxx", "limit": 100})));
    let receipt = json!({"erased": serde_json::to_value(Erased::default()).unwrap(),
                         "agent": "a", "operation": "o", "at": 1, "digest": "d"});
    requests.push(("verifyReceipt", json!({"receipt": receipt})));
    requests
}

/// The maximum bytes of an operation's answer, apart from names and numbers.
fn bound(operation: &str, body: &Value) -> usize {
    match operation {
        "getBlockVersions" => MAX_VERSIONS_BYTES as usize,
        // The part before the messages has its own limits, and with a provider's format it appears
        // twice.
        "buildWorkingContext" => {
            let prompt = if body["memory"] == true {
                2 * MAX_PROMPT_BYTES
            } else {
                0
            };
            let loaded = if body["sessionId"] == "t0" {
                MAX_LOADED_BYTES as usize
            } else {
                0
            };
            let once = MAX_ANSWER_BYTES.max(prompt + loaded);
            once * if body["format"].is_null() { 1 } else { 2 }
        }
        _ => MAX_ANSWER_BYTES,
    }
}

#[test]
fn no_answer_exceeds_its_bound() {
    let operations: Vec<&str> = requests().iter().map(|(operation, _)| *operation).collect();
    for operation in READS {
        assert!(
            operations.contains(operation),
            "add a request for {operation} in escaped_answers.rs"
        );
    }
    let mut tried = 0;
    let mut too_long = Vec::new();
    for (name, worst) in WORST {
        let alice = full_of(worst);
        let directory = "DIRECTORY".to_owned();
        alice.outbound.bindings.borrow_mut().push(directory);
        alice.recovery.since_ms.set(Some(0));
        let backup_bucket = alice
            .outbound
            .backup_bucket
            .get_or_init(MemoryArchive::default);
        let file = alice.export_agent().into_bytes();
        backup_bucket
            .objects
            .borrow_mut()
            .insert(BACKUP.to_owned(), file);
        for (operation, body) in requests() {
            let agent = alice.agent(&alice.db);
            let bytes = match wait_for(dispatch(&agent, operation, body.to_string())) {
                Ok(reply) => reply.body.into_string().len(),
                Err(error) if error.code.name() == "payload_too_large" => 0,
                Err(error)
                    if error.code.name() == "invalid_request"
                        && operation == "buildWorkingContext" =>
                {
                    0
                }
                // This agent does not learn. Both operations return proposals, as `getProposals`
                // does.
                Err(error)
                    if error.code.name() == "not_configured"
                        && matches!(operation, "learn" | "consolidate") =>
                {
                    0
                }
                Err(error) => panic!("{operation} {body}: {error:?}"),
            };
            tried += 1;
            if bytes > bound(operation, &body) + AROUND_BYTES {
                too_long.push(format!("{bytes} {operation} {body} of {name}"));
            }
        }
    }
    assert!(too_long.is_empty(), "of {tried}:\n{}", too_long.join("\n"));
}
