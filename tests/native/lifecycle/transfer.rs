//! Export and import: an import restores the same session, or nothing.

use serde_json::{Value, json};

use crate::Alice;
pub use crate::shared::files::small;
use access::{Allow, Caller, TokenScope};
use api::transfer::{begin_export, begin_import};
use base::database::Database;
use base::error::Error;
use base::host::Host as _;
use base::ids::Id;
use lifecycle::transfer::import::Imported;

fn user(text: &str) -> Value {
    json!({"role": "user", "parts": [{"type": "text", "text": text}]})
}

/// An agent whose session `s` contains data of every kind.
pub fn populated() -> Alice {
    let alice = Alice::default();
    alice.ok("createSession", json!({"id": "parent"}));
    alice.ok(
        "createSession",
        json!({"id": "s", "name": "A \"trip\"\n😀", "parentSessionId": "parent", "metadata": {"a": [1, null]}}),
    );
    alice.host.advance(10);
    alice
        .send(
            &alice.db,
            "appendEvents",
            br#"{"sessionId":"s","events":[
                {"action":"user_message","content":"a\u0000b \u2028 \u0001\n","metadata":{"z":12345678901234567890,"a":1.0,
                  "z":-0.0}},
                {"action":"tool_call_request","toolCalls":[{"id":"c1","name":"t","arguments":{"n": 1.50,
                  "m":[]}}],"createdAt":42},
                {"action":"tool_result","toolCallId":"c1","toolName":"t","content":"","isError":true},
                {"id":"mine","action":"agent_message","content":"done"},
                {"action":"compaction","content":"so far"}]}"#,
        )
        .unwrap();
    let events = alice.events();
    alice.host.advance(10);
    let mut dated = user("dated");
    dated["id"] = json!("dated");
    dated["createdAt"] = json!("2026-01-01");
    dated["custom"] = json!({"kept": true});
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "parentId": "mine", "message": dated}),
    );
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "parentId": null, "message": user("a root")}),
    );
    alice.ok(
        "appendMessage",
        json!({"sessionId": "s", "message": user(&"é".repeat(500_000))}),
    );
    alice.ok("appendEvents", json!({"sessionId": "s", "parentId": events[0]["id"],
        "events": [{"action": "user_message", "content": "x".repeat(2_000_000)}, {"action": "agent_message", "content": "end"}]}));
    alice.host.advance(10);
    let mut updated = user("updated");
    updated["id"] = json!("dated");
    alice.ok(
        "updateMessage",
        json!({"sessionId": "s", "message": updated}),
    );
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": [events[4]["id"]]}),
    );
    alice.ok(
        "addUsage",
        json!({"sessionId": "s", "inputTokens": 7, "outputTokens": 8, "cost": 0.1}),
    );
    alice.ok("addUsage", json!({"sessionId": "s", "cost": 0.2}));
    alice.ok("setLeaf", json!({"sessionId": "s", "id": "dated"}));
    alice.remember("s");
    alice
}

pub fn refused(outcome: Result<Imported, Error>) -> (&'static str, Value) {
    let error = outcome.unwrap_err();
    (
        error.code.name(),
        error.details().get("line").cloned().unwrap_or_default(),
    )
}

#[test]
fn a_session_is_restored_in_the_same_and_in_another_object() {
    let alice = populated();
    let file = alice.export("s").unwrap();
    let bob = Alice::default();
    let events = alice.events().len() as i64;
    let outcome = bob.import("s", &file).unwrap();
    assert_eq!(
        (outcome.events, outcome.imported, outcome.skipped),
        (events, events, 0)
    );
    assert_eq!(bob.export("s").unwrap(), file);
    assert_eq!(bob.read_session("s"), alice.read_session("s"));

    // In an agent that has deleted the session before, the feed has the same changes. Its
    // cursors are new: none is valid that the deleted session gave.
    let answer = |alice: &Alice| {
        let mut answer = alice.read_session("s");
        let feed = answer.remove(4);
        let changes = feed["changes"].as_array().unwrap().clone();
        let change = |change: Value| (change["type"].clone(), change["id"].clone());
        (answer, changes.into_iter().map(change).collect::<Vec<_>>())
    };
    let before = answer(&alice);
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    let empty = alice.rows();
    alice.import("s", &file).unwrap();
    assert_eq!(answer(&alice), before);
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    assert_eq!(alice.rows(), empty);
}

#[test]
fn a_copy_behaves_like_the_original() {
    let alice = populated();
    let bob = Alice::default();
    bob.host.advance(alice.host.now_ms() - bob.host.now_ms());
    bob.import("s", &alice.export("s").unwrap()).unwrap();
    for each in [&alice, &bob] {
        let next = each.ok("appendEvents", json!({"sessionId": "s", "expectedLeafId": "dated", "events": [{"id": "next", "action": "user_message", "content": "on"}]}));
        assert_eq!(next["events"][0]["seq"], 11);
        each.ok(
            "deleteMessages",
            json!({"sessionId": "s", "messageIds": ["mine", "next"]}),
        );
    }
    assert_eq!(bob.export("s").unwrap(), alice.export("s").unwrap());
}

#[test]
fn a_file_is_parsed_the_same_in_any_chunks() {
    let file = small().export("s").unwrap();
    let without_last_break = file.trim_end();
    for file in [
        file.as_str(),
        without_last_break,
        &file.replace('\n', "\r\n\r\n"),
    ] {
        for bytes in [1, 2, 7, file.len()] {
            let bob = Alice::default();
            bob.import_in(&bob.db, "s", file, bytes).unwrap();
            assert_eq!(
                bob.ok("loadEvents", json!({"sessionId": "s"}))
                    .as_array()
                    .unwrap()
                    .len(),
                3
            );
        }
    }
}

#[test]
fn an_empty_session_exports_two_lines() {
    let alice = Alice::with_session();
    let file = alice.export("s").unwrap();
    assert_eq!(file.lines().count(), 2);
    let outcome = alice.import("t", &file).unwrap();
    assert_eq!((outcome.session_id.as_str(), outcome.events), ("t", 0));
    assert_eq!(
        alice.ok("getSession", json!({"sessionId": "t"}))["createdAt"],
        1_000_000
    );
}

#[test]
fn importing_again_writes_nothing() {
    let alice = populated();
    let file = alice.export("s").unwrap();
    let before = alice.db.dump();
    let outcome = alice.import("s", &file).unwrap();
    assert_eq!((outcome.imported, outcome.skipped), (0, outcome.events));
    // The same file as another program writes it, with other spaces.
    let file = small().export("s").unwrap().replace("\":", "\" : ");
    let bob = Alice::default();
    bob.import("s", &file).unwrap();
    assert_eq!(bob.import("s", &file).unwrap().skipped, 3);
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn another_session_with_that_id_is_unchanged() {
    let file = small().export("s").unwrap();
    for (change, body) in [
        (
            "appendEvents",
            json!({"events": [{"action": "user_message", "content": "more"}]}),
        ),
        ("updateSession", json!({"name": "other"})),
        ("deleteEvents", json!({"eventIds": ["m"]})),
        ("addUsage", json!({"cost": 1})),
    ] {
        let alice = small();
        let mut body = body;
        body["sessionId"] = json!("s");
        alice.host.advance(1);
        alice.ok(change, body);
        let before = alice.db.dump();
        assert_eq!(
            refused(alice.import("s", &file)).0,
            "already_exists",
            "{change}"
        );
        assert_eq!(alice.db.dump(), before);
    }
}

#[test]
fn an_invalid_line_is_named_and_nothing_is_written() {
    let alice = small();
    let file = alice.export("s").unwrap();
    let lines: Vec<&str> = file.lines().collect();
    let bob = Alice::default();
    let before = bob.db.dump();
    let edit = |at: usize, from: &str, to: &str| {
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        assert!(lines[at].contains(from), "{} {from}", lines[at]);
        lines[at] = lines[at].replacen(from, to, 1);
        lines.join("\n")
    };
    let first_id = alice.events()[0]["id"].as_str().unwrap().to_owned();
    let table = [
        (edit(0, "{", ""), 1),
        (edit(0, "\"format\":1", "\"format\":2"), 1),
        (edit(0, "\"format\":1", "\"formatt\":1"), 1),
        (edit(0, "session", "event"), 1),
        (edit(0, "\"cost\":0.0", "\"cost\":-1"), 1),
        (edit(1, "}", ""), 2),
        (edit(2, "event", "evnt"), 3),
        (edit(2, "event", "session"), 3),
        (edit(2, "event", "error"), 3),
        (edit(2, "\"seq\":2", "\"seq\":1"), 3),
        (edit(2, "\"seq\":2", "\"seq\":4294967296"), 3),
        (edit(2, "\"seq\":2", "\"seq\":\"2\""), 3),
        (
            edit(
                2,
                &format!("\"parentId\":\"{first_id}\""),
                "\"parentId\":\"nobody\"",
            ),
            3,
        ),
        (edit(2, "\"parentId\":", "\"parent\":"), 3),
        (edit(2, "two", "\\ud800"), 3),
        (edit(2, "\"content\":\"two\"", "\"toolCalls\":[]"), 3),
        (
            edit(3, "\"id\":\"m\"", &format!("\"id\":\"{first_id}\"")),
            4,
        ),
        (edit(3, "assistant", "user"), 4),
        (edit(3, "assistant", "nobody"), 4),
        (edit(4, "\"events\":3", "\"events\":4"), 5),
        (edit(4, "\"leafId\":null", "\"leafId\":\"nobody\""), 5),
        (format!("{file}{{}}\n"), 6),
        (format!("{file}{}", lines[4]), 6),
        (lines[..4].join("\n"), 4),
        (String::new(), 1),
    ];
    for (file, line) in table {
        let outcome = refused(bob.import("s", &file));
        assert_eq!(outcome, ("invalid_request", json!(line)), "{file}");
        assert_eq!(bob.db.dump(), before, "{file}");
    }
}

#[test]
fn an_invalid_feed_entry_is_named() {
    let alice = small();
    alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": ["m"]}));
    let file = alice.export("s").unwrap();
    let bob = Alice::default();
    for (from, to) in [
        ("\"cursor\":3145729", "\"cursor\":4194304"),
        ("\"change\":\"delete\"", "\"change\":\"append\""),
        ("\"type\":\"change\"", "\"type\":\"event\""),
    ] {
        assert!(file.contains(from), "{file}");
        let outcome = refused(bob.import("s", &file.replacen(from, to, 1)));
        assert_eq!(outcome, ("invalid_request", json!(4)), "{to}");
    }
    bob.import("s", &file).unwrap();
    let next = bob.append_texts(&["three"]);
    let changes = bob.ok("getChanges", json!({"sessionId": "s", "since": 3_145_729}));
    assert_eq!(changes["changes"][0]["id"], json!(next[0]));
}

#[test]
fn a_truncated_file_creates_no_session() {
    let file = small().export("s").unwrap();
    let bob = Alice::default();
    let before = bob.db.dump();
    for end in 0..file.len() - 1 {
        refused(bob.import("s", file.get(..end).unwrap()));
        assert_eq!(bob.db.dump(), before, "{end}");
    }
}

#[test]
fn a_line_over_the_limit_is_refused_before_parsing() {
    let bob = Alice::default();
    let mut import = begin_import(&bob.agent(&bob.db), "s".to_owned(), false).unwrap();
    let piece = vec![b'x'; 1 << 20];
    let error = (0..40)
        .find_map(|_| import.push(&bob.db, &bob.host, &piece).err())
        .unwrap();
    assert_eq!(
        (error.code.name(), &error.details()["line"]),
        ("payload_too_large", &json!(1))
    );
}

#[test]
fn concurrent_writes_are_excluded_and_deleted_rows_omitted() {
    let alice = Alice::with_session();
    let long = "x".repeat(1_000_000);
    let event_ids = alice.append_texts(&[&long, &long, &long, "4", "5"]);
    alice.ok("setLeaf", json!({"sessionId": "s", "id": event_ids[3]}));
    let mut export = begin_export(&alice.agent(&alice.db), "s".to_owned()).unwrap();
    let mut file = export.next_page(&alice.db).unwrap().unwrap();
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": [event_ids[0], event_ids[2], event_ids[3]]}),
    );
    alice.append_texts(&["6"]);
    while let Some(page) = export.next_page(&alice.db).unwrap() {
        file.push_str(&page);
    }
    let bob = Alice::default();
    bob.import("s", &file).unwrap();
    let events = bob.events();
    let seqs: Vec<i64> = events
        .iter()
        .map(|event| event["seq"].as_i64().unwrap())
        .collect();
    assert_eq!(seqs, [1, 2, 5]);
    assert_eq!(
        bob.ok("getHistory", json!({"sessionId": "s"}))["messages"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn exporting_a_session_deleted_meanwhile_ends_with_an_error() {
    let alice = Alice::with_session();
    alice.append_texts(&["x".repeat(1_100_000).as_str(), "2"]);
    let mut export = begin_export(&alice.agent(&alice.db), "s".to_owned()).unwrap();
    export.next_page(&alice.db).unwrap().unwrap();
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    alice.host.advance(1);
    alice.ok("createSession", json!({"id": "s"}));
    let error = export.next_page(&alice.db).unwrap_err();
    assert_eq!(error.code.name(), "session_not_found");
    let line = lifecycle::transfer::export::render_failure(&error);
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(
        (&line["type"], &line["error"]["code"]),
        (&json!("error"), &json!("session_not_found"))
    );
}

#[test]
fn imported_events_are_indexed_if_the_agent_searches() {
    let file = small().export("s").unwrap();
    let bob = Alice::default();
    bob.ok("search", json!({"query": "two"}));
    bob.import("s", &file).unwrap();
    let found = bob.ok("search", json!({"query": "two"}));
    assert_eq!(found["results"][0]["sessionId"], "s");
    bob.ok("deleteSession", json!({"sessionId": "s"}));
    let found = bob.ok("search", json!({"query": "two"}));
    assert_eq!(found["results"], json!([]));
}

#[test]
fn pages_are_bounded_for_any_session() {
    let alice = Alice::with_session();
    let texts = vec!["y".repeat(10_000); 500];
    alice.append_texts(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let mut export = begin_export(&alice.agent(&alice.db), "s".to_owned()).unwrap();
    let mut pages = 0;
    while let Some(page) = export.next_page(&alice.db).unwrap() {
        assert!(page.len() < (1 << 20) + 20_000);
        pages += 1;
    }
    assert_eq!(pages, 5);
}

#[test]
fn a_migrated_log_with_missing_data_is_restored() {
    let alice = small();
    alice
        .db
        .run("UPDATE cf_agents_events SET content = NULL, action = 'tool_call_request' WHERE seq = 2", &[])
        .unwrap();
    let bob = Alice::default();
    bob.import("s", &alice.export("s").unwrap()).unwrap();
    assert_eq!(bob.read_session("s"), alice.read_session("s"));
}

#[test]
fn a_corrupt_row_is_named() {
    let alice = small();
    alice
        .db
        .run(
            "UPDATE cf_agents_events SET metadata = '{oops' WHERE seq = 2",
            &[],
        )
        .unwrap();
    assert_eq!(alice.export("s").unwrap_err().code.name(), "corrupt_row");
}

#[test]
fn a_token_exports_and_imports_within_its_rights() {
    let alice = populated();
    let file = alice.export("s").unwrap();
    let three = small().export("s").unwrap();
    let scoped = |session: Option<&str>, operations: Option<&[&str]>| {
        Caller::Scoped(TokenScope {
            session_id: session.map(|id| Id::parse(id.to_owned()).unwrap()),
            operations: operations
                .map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
            allow: Allow {
                agent_messages: true,
                ..Allow::default()
            },
            expires_at: i64::MAX,
            ..TokenScope::default()
        })
    };
    let table = [
        (scoped(None, None), true, true),
        (scoped(Some("s"), None), true, true),
        (scoped(Some("t"), None), false, false),
        (scoped(Some("s"), Some(&["loadEvents"])), false, false),
        (
            scoped(Some("s"), Some(&["loadEvents", "getSession"])),
            true,
            false,
        ),
        (
            scoped(Some("s"), Some(&["appendEvents", "createSession"])),
            false,
            true,
        ),
    ];
    for (caller, exports, imports) in table {
        let mut alice = small();
        alice.caller = caller.clone();
        assert_eq!(alice.export("s").is_ok(), exports, "{caller:?}");
        let bob = Alice {
            caller,
            ..Alice::default()
        };
        assert_eq!(bob.import("s", &three).is_ok(), imports, "{:?}", bob.caller);
    }
    // The token may create its own session, but name no other session as the parent.
    let bob = Alice {
        caller: scoped(Some("s"), None),
        ..Alice::default()
    };
    assert_eq!(refused(bob.import("s", &file)).0, "forbidden");
}

/// Hand-written files: they omit what an export writes, or write it differently.
#[test]
fn only_the_same_hand_written_file_can_be_imported_again() {
    let session = json!({"type": "session", "format": 1, "id": "x", "createdAt": 1, "updatedAt": 1, "seqFloor": 0,
                         "usage": {"inputTokens": 0, "outputTokens": 0, "cost": 0.0}});
    let event = |seq: i64, id: &str, parent: Option<&str>, more: Value| {
        let mut line =
            json!({"type": "event", "seq": seq, "id": id, "createdAt": 5, "writtenAt": 10 * seq});
        if parent.is_some() {
            line["parentId"] = json!(parent);
        }
        line.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        line
    };
    let statement = event(
        1,
        "a",
        None,
        json!({"action": "user_message", "content": "hi", "metadata": {}}),
    );
    let message = json!({"role": "user", "parts": [{"text": "hi", "type": "text"}]});
    let complete = event(
        2,
        "m",
        Some("a"),
        json!({"action": "user_message", "message": message}),
    );
    let call = event(
        3,
        "c",
        Some("m"),
        json!({"action": "tool_call_request", "metadata": null,
        "toolCalls": [{"name": "t", "arguments": {"b": 1, "a": [ ]}, "id": "1"}]}),
    );
    let result = event(
        7,
        "r",
        Some("c"),
        json!({"action": "tool_result", "toolName": "t", "toolCallId": "1", "content": "", "isError": null}),
    );
    let end = |events: i64| json!({"type": "end", "events": events});
    let compaction = json!({"type": "compaction", "id": "o", "fromId": "a", "toId": "m", "summary": "S", "createdAt": 3});
    let change = json!({"type": "change", "cursor": (1_i64 << 20) + 1, "change": "update", "id": "a", "changedAt": 50});
    let files = [
        vec![session.clone(), end(0)],
        vec![session.clone(), statement.clone(), end(1)],
        vec![session.clone(), statement.clone(), complete.clone(), end(2)],
        vec![
            session.clone(),
            statement.clone(),
            complete.clone(),
            call.clone(),
            result.clone(),
            compaction,
            change,
            end(4),
        ],
        vec![
            json!({"type": "session", "format": 1, "id": "x", "name": null, "metadata": {"b": 1, "a": 2}, "tags": [],
                   "createdAt": 9_000_000_000_000_i64, "updatedAt": 9_000_000_000_000_i64, "seqFloor": 3,
                   "usage": {"inputTokens": 1, "outputTokens": 0, "cost": 0, "cachedInputTokens": 0}}),
            statement,
            json!({"type": "end", "events": 1, "leafId": null}),
        ],
    ];
    for lines in files {
        let file: String = lines.iter().map(|line| format!("\n {line}  \n")).collect();
        let alice = Alice::default();
        for imported in [true, false, false] {
            let outcome = alice.import("s", &file).unwrap();
            assert_eq!(outcome.imported > 0, imported && lines.len() > 2, "{file}");
            alice.host.advance(1_000);
        }
        let exported = alice.export("s").unwrap();
        assert_eq!(alice.import("s", &exported).unwrap().imported, 0);
        for (field, other) in [
            ("\"hi\"", "\"ho\""),
            ("\"createdAt\":5", "\"createdAt\":6"),
            ("\"events\":", "\"events\":1"),
        ] {
            if lines.len() > 2 && file.contains(field) {
                let error = alice
                    .import("s", &file.replacen(field, other, 1))
                    .unwrap_err();
                assert!(
                    ["already_exists", "invalid_request"].contains(&error.code.name()),
                    "{field}"
                );
            }
        }
    }
}
