//! Files whose lines are doubled, removed, swapped, cut off or moved. The import names
//! the fault, or the accepted session withstands every read, a fork, another export and a
//! delete. A file comes from anywhere, so no order of lines may leave a session that an
//! operation can't read.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::catch_unwind;

use serde_json::{Value, json};

use crate::Alice;
use crate::shared::long::{games, is_tried};
use base::testing::Dice;

/// How many files with one line at a random position are tried, in addition to those of the table.
const RANDOM_FILES: usize = 150;

/// An agent whose session `s` has lines of every type, and each type at least twice if
/// the file may have it twice. The lines are branches, calls, media, overlays that nest,
/// a feed, memory.
fn with_every_line_type() -> Alice {
    let alice = Alice::default();
    alice.ok("createSession", json!({"id": "s", "metadata": {"a": 1}}));
    let event_ids = alice.append_texts(&["first", "second"]);
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [
            {"id": "call", "action": "tool_call_request",
             "toolCalls": [{"id": "call_0", "name": "t", "arguments": {}}]},
            {"id": "result", "action": "tool_result", "toolCallId": "call_0", "toolName": "t", "content": "r"},
            {"id": "answer", "action": "agent_message", "content": "done"},
        ]}),
    );
    let picture = json!({"id": "pic", "role": "user", "parts": [
        {"type": "file", "mediaType": "image/png", "url": format!("data:image/png;base64,{}", "A".repeat(400))}]});
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "message": picture}),
    );
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "parentId": event_ids[1], "events": [{"id": "branch", "action": "user_message", "content": "else"}]}),
    );
    for (from, to) in [
        (&event_ids[0], "second"),
        (&event_ids[0], "answer"),
        (&event_ids[0], "branch"),
    ] {
        let to = if to == "second" { &event_ids[1] } else { to };
        alice.ok(
            "addCompaction",
            json!({"sessionId": "s", "summary": format!("to {to}"), "fromId": from, "toId": to}),
        );
    }
    alice.host.advance(10);
    for text in ["pic one", "pic two"] {
        alice.ok(
            "updateMessage",
            json!({"sessionId": "s", "message": {"id": "pic", "role": "user", "parts": [{"type": "text", "text": text}]}}),
        );
    }
    alice.ok("addUsage", json!({"sessionId": "s", "inputTokens": 7}));
    alice.ok("setLeaf", json!({"sessionId": "s", "id": "pic"}));
    alice.remember("s");
    for content in ["Older", "Newer"] {
        alice.ok(
            "setEntry",
            json!({"sessionId": "s", "label": "kb", "key": "b", "content": content}),
        );
        alice.ok(
            "putSkill",
            json!({"sessionId": "s", "label": "skills", "key": "b", "content": content}),
        );
    }
    alice
}

/// The named ways to rearrange the lines. Lines that parse the same are another file
/// nonetheless.
fn rearrangements(lines: &[String]) -> Vec<(String, Vec<String>)> {
    let mut files = Vec::new();
    let mut add = |name: String, lines: Vec<String>| files.push((name, lines));
    let last = lines.len() - 1;
    for at in 0..lines.len() {
        let with = |act: &dyn Fn(&mut Vec<String>)| {
            let mut lines = lines.to_vec();
            act(&mut lines);
            lines
        };
        add(
            format!("line {} twice", at + 1),
            with(&|lines| lines.insert(at, lines[at].clone())),
        );
        add(
            format!("line {} twice, the second before the end", at + 1),
            with(&|lines| lines.insert(last, lines[at].clone())),
        );
        add(
            format!("line {} removed", at + 1),
            with(&|lines| drop(lines.remove(at))),
        );
        if at < last {
            add(
                format!("line {} after its neighbour", at + 1),
                with(&|lines| lines.swap(at, at + 1)),
            );
        }
        add(
            format!("line {} cut off", at + 1),
            with(&|lines| {
                let half = lines[at].floor_char_boundary(lines[at].len() / 2);
                lines[at].truncate(half);
            }),
        );
        add(
            format!("line {} last", at + 1),
            with(&|lines| {
                let line = lines.remove(at);
                lines.push(line);
            }),
        );
        add(
            format!("line {} before the end", at + 1),
            with(&|lines| {
                let line = lines.remove(at);
                lines.insert(lines.len() - 1, line);
            }),
        );
    }
    // The `end` line counts events. With a corrected count, the other checks run.
    let with_right_count = |lines: &[String]| {
        let events = lines
            .iter()
            .filter(|line| line.starts_with(r#"{"type":"event""#))
            .count();
        let end = lines
            .iter()
            .position(|line| line.starts_with(r#"{"type":"end""#))?;
        let mut end_line: Value = serde_json::from_str(&lines[end]).ok()?;
        end_line["events"] = json!(events);
        let mut lines = lines.to_vec();
        lines[end] = end_line.to_string();
        Some(lines)
    };
    let again: Vec<_> = files
        .iter()
        .filter_map(|(name, lines)| Some((format!("{name}, counted"), with_right_count(lines)?)))
        .filter(|(_, file)| !files.iter().any(|(_, known)| known == file))
        .collect();
    files.extend(again);
    let mut dice = Dice(0x5DEE_CE66_D1CE_4E5B);
    for _ in 0..RANDOM_FILES {
        let mut file = lines.to_vec();
        let (from, to) = (dice.roll(lines.len()), dice.roll(lines.len()));
        let line = match dice.roll(2) {
            0 => file.remove(from),
            _ => file[from].clone(),
        };
        file.insert(to.min(file.len()), line);
        let file = with_right_count(&file).unwrap_or(file);
        files.push((format!("line {} at {}", from + 1, to + 1), file));
    }
    files
}

impl Alice {
    /// The answers about a session of every operation that reads.
    fn read_everything(&self, session_id: &str) -> Vec<Value> {
        let mut answer = Vec::new();
        let mut read = |operation: &str, mut body: Value| {
            body["sessionId"] = json!(session_id);
            let outcome = self
                .call(operation, body.clone())
                .unwrap_or_else(|error| panic!("{operation} {body}: {error:?}"));
            answer.push(outcome.clone());
            outcome
        };
        let events = read("loadEvents", json!({"limit": 1000}));
        for (operation, body) in [
            ("getSession", json!({})),
            ("loadEvents", json!({"tail": true, "limit": 3})),
            (
                "loadEvents",
                json!({"actions": ["user_message"], "since": 0}),
            ),
            ("getHistory", json!({"limit": 1000})),
            ("getHistory", json!({"limit": 2, "forModel": true})),
            ("getLatestLeaf", json!({})),
            ("getPathLength", json!({})),
            ("getChanges", json!({"limit": 1000})),
            (
                "buildWorkingContext",
                json!({"format": "openai", "memory": true}),
            ),
            (
                "buildWorkingContext",
                json!({"format": "anthropic", "limit": 3}),
            ),
            (
                "buildWorkingContext",
                json!({"format": "workers-ai", "maxTokens": 4000}),
            ),
            ("getCompactions", json!({})),
            ("estimateTokens", json!({})),
            ("compact", json!({"dryRun": true})),
            ("configureCompaction", json!({})),
            ("search", json!({"query": "second done pic"})),
            ("getBlocks", json!({})),
            ("renderPrompt", json!({"format": "xml"})),
            ("freezePrompt", json!({})),
            ("getReminder", json!({})),
            ("getTools", json!({})),
        ] {
            read(operation, body);
        }
        for block in ["Rules", "İdeas", "kb", "skills", "gone"] {
            read("getBlock", json!({"label": block}));
        }
        for (operation, label) in [
            ("getBlockVersions", "İdeas"),
            ("listEntries", "kb"),
            ("listSkills", "skills"),
        ] {
            let body = json!({"sessionId": session_id, "label": label});
            answer.push(answer_or_refusal(self, operation, &body));
        }
        for key in ["a", "b"] {
            for (operation, label) in [("loadSkill", "skills"), ("unloadSkill", "skills")] {
                let body = json!({"sessionId": session_id, "label": label, "key": key});
                answer.push(answer_or_refusal(self, operation, &body));
            }
            let query = json!({"sessionId": session_id, "label": "kb", "query": "deployment"});
            answer.push(answer_or_refusal(self, "searchContext", &query));
            let versions = json!({"sessionId": session_id, "label": "kb", "key": key});
            answer.push(answer_or_refusal(self, "getBlockVersions", &versions));
        }
        for event in events.as_array().unwrap() {
            for (operation, field) in [
                ("getMessage", "messageId"),
                ("getBranches", "messageId"),
                ("getHistory", "leafId"),
                ("estimateTokens", "leafId"),
                ("getPathLength", "leafId"),
            ] {
                let body = json!({"sessionId": session_id, field: event["id"]});
                answer.push(answer_or_refusal(self, operation, &body));
            }
        }
        answer
    }
}

/// The answer, or the refusal as data: a block that the file left out isn't there. A
/// failure of the object is a failure of the test.
fn answer_or_refusal(alice: &Alice, operation: &str, body: &Value) -> Value {
    match alice.call(operation, body.clone()) {
        Ok(answer) => answer,
        Err(error) => {
            assert!(error.code.status() < 500, "{operation} {body}: {error:?}");
            json!(error.code.name())
        }
    }
}

/// Uses an imported session with every operation.
fn exercise(bob: &Alice, session_id: &str, name: &str) {
    let exported = bob.export(session_id).unwrap();
    let carol = Alice::default();
    carol
        .import(session_id, &exported)
        .unwrap_or_else(|error| panic!("{name}: its own export is refused: {error:?}"));
    assert_eq!(carol.export(session_id).unwrap(), exported, "{name}");
    bob.read_everything(session_id);

    let events = bob.ok(
        "loadEvents",
        json!({"sessionId": session_id, "limit": 1000}),
    );
    for event in events.as_array().unwrap() {
        let body = json!({"sessionId": session_id, "atId": event["id"]});
        let fork = bob
            .call("forkSession", body)
            .unwrap_or_else(|error| panic!("{name}: fork at {}: {error:?}", event["id"]));
        let fork = fork["id"].as_str().unwrap();
        assert_eq!(
            answer_or_refusal(bob, "getHistory", &json!({"sessionId": fork}))["messages"],
            answer_or_refusal(
                bob,
                "getHistory",
                &json!({"sessionId": session_id, "leafId": event["id"]})
            )["messages"],
            "{name}: fork at {}",
            event["id"]
        );
        bob.export(fork).unwrap();
        bob.ok("deleteSession", json!({"sessionId": fork}));
    }
    bob.ok(
        "appendEvents",
        json!({"sessionId": session_id, "events": [{"action": "user_message", "content": "on"}]}),
    );
    let listed = bob.ok("getCompactions", json!({"sessionId": session_id}));
    let overlays = listed["compactions"].as_array().unwrap().clone();
    let mut ids = BTreeMap::new();
    for overlay in &overlays {
        *ids.entry(overlay["id"].to_string()).or_insert(0) += 1;
    }
    assert!(ids.values().all(|times| *times == 1), "{name}: {ids:?}");
    if let Some(overlay) = overlays.first() {
        let body = json!({"sessionId": session_id, "compactionId": overlay["id"]});
        assert_eq!(
            bob.ok("deleteCompaction", body),
            json!({"deleted": true}),
            "{name}"
        );
        let listed = bob.ok("getCompactions", json!({"sessionId": session_id}));
        assert_eq!(
            listed["compactions"].as_array().unwrap().len() + 1,
            overlays.len(),
            "{name}"
        );
    }
    for event in events.as_array().unwrap().iter().take(3) {
        bob.ok(
            "deleteEvents",
            json!({"sessionId": session_id, "eventIds": [event["id"]]}),
        );
        bob.ok("forkSession", json!({"sessionId": session_id}));
    }
    bob.read_everything(session_id);
}

#[test]
fn a_reordered_file_is_refused_by_line_or_imports_consistently() {
    let alice = with_every_line_type();
    let file = alice.export("s").unwrap();
    let lines: Vec<String> = file.lines().map(str::to_owned).collect();
    let types: BTreeSet<String> = lines
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["type"].to_string())
        .collect();
    // All types but `error`, which only an export that fails writes.
    assert_eq!(types.len(), 12, "{types:?}");

    let files = rearrangements(&lines);
    let (mut tried, mut accepted) = (0, 0);
    let mut failures = Vec::new();
    for (number, (name, lines)) in files.iter().enumerate() {
        // The quick form tries every second file.
        if !is_tried(number, 2) {
            continue;
        }
        tried += 1;
        // One run reports every file that fails.
        match catch_unwind(|| try_file(name, &lines.join("\n"))) {
            Ok(is_accepted) => accepted += u64::from(is_accepted),
            Err(_) => failures.push(name),
        }
    }
    println!("{tried} files: {accepted} accepted");
    assert!(failures.is_empty(), "{failures:?}");
    assert!(accepted > games(25, 50), "{accepted}");
    assert!(tried - accepted > games(50, 100), "{tried}");
}

/// Imports a file into an empty agent. `false`: the import refused it.
fn try_file(name: &str, file: &str) -> bool {
    let bob = Alice::default();
    let before = bob.rows();
    let Err(error) = bob.import("s", file) else {
        exercise(&bob, "s", name);
        return true;
    };
    assert!(error.code.status() < 500, "{name}: {error:?}");
    assert!(error.details().contains_key("line"), "{name}: {error:?}");
    assert!(error.details().contains_key("field"), "{name}: {error:?}");
    assert_eq!(bob.rows(), before, "{name}");
    false
}
