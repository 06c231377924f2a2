//! The export of a whole agent. The import restores it to the byte, in pieces and after
//! interruptions, or is rejected; and every table declares what the file contains of it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Alice;
use crate::lifecycle::transfer::small;
use crate::store::upgrades::make::{make, outbound};
use access::{Caller, TokenScope};
use api::file_import::FileImport as _;
use api::transfer::{begin_agent_export, begin_agent_import};
use base::database::Database;
use base::error::Error;
use base::tables::{AgentFileRule, ExportRule, RowOwner};
use base::testing::Sqlite;
use lifecycle::tables::tables;
use lifecycle::transfer::PagedFile as _;

/// An empty agent beside the one that [`make`] created.
fn empty() -> Alice {
    Alice {
        outbound: outbound(),
        ..Alice::default()
    }
}

fn kinds(file: &str) -> Vec<String> {
    let kind = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["type"].as_str().unwrap().to_owned()
    };
    file.lines().map(kind).collect()
}

fn without_cursors(file: &str) -> String {
    let lines = file.split_inclusive('\n');
    lines
        .filter(|line| !line.starts_with("{\"type\":\"cursor\""))
        .collect()
}

/// The tables with rows.
fn filled(db: &Sqlite) -> BTreeSet<&'static str> {
    let is_filled = |table: &&str| {
        let sql = format!("SELECT 1 FROM {table} LIMIT 1");
        !db.rows(&sql, &[]).unwrap().is_empty()
    };
    tables().map(|table| table.name).filter(is_filled).collect()
}

#[test]
fn an_agent_with_rows_in_every_table_is_restored_byte_for_byte() {
    let alice = make(true);
    let file = alice.export_agent();
    let bob = empty();
    let imported = bob.import_agent(&file).unwrap();
    assert_eq!(imported.skipped, 0);
    assert!(imported.sessions > 5, "{imported:?}");
    assert_eq!(imported.sessions, imported.imported);
    assert!(bob.export_agent() == file);
    // Each table has rows where its descriptor promises them.
    let (there, here) = (filled(&alice.db), filled(&bob.db));
    for table in tables() {
        let expects_rows = match (table.agent_file, table.file) {
            (AgentFileRule::Lines(_), _) => true,
            (AgentFileRule::AsInSessions, ExportRule::Always | ExportRule::ShownBy(_)) => true,
            (AgentFileRule::AsInSessions, ExportRule::Rebuilt(_) | ExportRule::Nothing(_))
            | (AgentFileRule::Nothing(_), _) => false,
        };
        if expects_rows {
            assert!(
                there.contains(table.name),
                "{} has no rows to lose",
                table.name
            );
            assert!(
                here.contains(table.name),
                "{}: its crate's tables.rs",
                table.name
            );
        }
    }
    // The same file again changes nothing.
    let before = bob.db.dump();
    let again = bob.import_agent(&file).unwrap();
    assert_eq!((again.imported, again.skipped), (0, imported.sessions));
    assert!(bob.db.dump() == before);
}

#[test]
fn every_agent_table_has_lines_in_the_file() {
    let known = ["settings", "tool", "usage"];
    for table in tables() {
        match (table.owner, table.agent_file) {
            (RowOwner::Agent, AgentFileRule::Lines(kind)) => assert!(known.contains(&kind)),
            (RowOwner::Agent, AgentFileRule::AsInSessions) => {
                panic!("{} has rows of no session", table.name)
            }
            // They concern the agent's memory, and are deleted with the session they were learned from.
            (RowOwner::Session("session_id"), AgentFileRule::Lines("proposal")) => {}
            (_, AgentFileRule::Lines(_)) => panic!("{} is not the agent's alone", table.name),
            (_, AgentFileRule::Nothing(reason)) => assert!(!reason.is_empty()),
            (_, AgentFileRule::AsInSessions) => {}
        }
    }
}

#[test]
fn an_unbound_service_is_refused_on_import() {
    let settings = |config: &Value| {
        let line = json!({"type": "settings", "config": config});
        format!(
            "{{\"type\":\"agent\",\"format\":1}}\n{line}\n{{\"type\":\"done\",\"sessions\":0}}\n"
        )
    };
    for setting in ["summarize", "onTurnEnd"] {
        let config = json!({setting: {"service": "NOBODY"}});
        let bob = Alice::default();
        let before = bob.db.dump();
        let error = bob.import_agent(&settings(&config)).unwrap_err();
        assert_eq!(error.code.name(), "not_configured", "{setting}");
        assert_eq!(error.details()["field"], setting);
        assert!(bob.db.dump() == before);
        assert_eq!(bob.refused("configureAgent", config), "not_configured");
    }
    let bob = Alice::default();
    bob.outbound
        .bindings
        .borrow_mut()
        .push("SUMMARISER".to_owned());
    let config = json!({"summarize": {"service": "SUMMARISER"}});
    bob.import_agent(&settings(&config)).unwrap();
    let shown = bob.ok("getConfig", json!({}));
    assert_eq!(shown["summarize"], config["summarize"]);
}

#[test]
fn a_tool_with_a_forbidden_url_is_imported_and_named() {
    let alice = empty();
    for binding in ["WEATHER", "MAPS"] {
        alice
            .outbound
            .bindings
            .borrow_mut()
            .push(binding.to_owned());
    }
    let tools = [
        ("maps", json!({"service": "MAPS"})),
        ("news", json!({"url": "https://tools.example/news"})),
        ("weather", json!({"service": "WEATHER"})),
    ];
    for (name, place) in &tools {
        let mut tool = json!({"name": name, "description": "D"});
        tool.as_object_mut()
            .unwrap()
            .extend(place.as_object().unwrap().clone());
        alice.ok("defineTool", tool);
    }
    alice.ok("createSession", json!({"id": "s"}));
    alice.append_texts(&["hello"]);
    let file = alice.export_agent();
    // What the other Worker binds, and what it doesn't.
    let table: [(&[&str], &str, &[&str]); 4] = [
        (&["WEATHER", "MAPS"], "https://tools.example", &[]),
        (&["MAPS"], "https://tools.example", &["weather"]),
        (&[], "https://tools.example", &["maps", "weather"]),
        (&["WEATHER"], "https://other.example", &["maps", "news"]),
    ];
    for (bound, origins, unavailable) in table {
        let bob = Alice::default();
        bob.outbound
            .bindings
            .borrow_mut()
            .extend(bound.iter().map(|name| (*name).to_owned()));
        bob.outbound
            .settings
            .borrow_mut()
            .insert("TOOL_ORIGINS".to_owned(), origins.to_owned());
        // Again, the lines are compared.
        for imported in [1, 0] {
            let outcome = bob.import_agent(&file).unwrap();
            assert_eq!(outcome.imported, imported);
            assert_eq!(outcome.tools_unavailable, unavailable, "{bound:?}");
        }
        assert!(bob.export_agent() == file);
        let tools = bob.ok("listTools", json!({}));
        assert_eq!(tools["tools"].as_array().unwrap().len(), 3);
    }
    // A line that no request could write is still refused.
    let bad = file.replace("https://tools.example/news", "ftp://tools.example/news");
    assert!(empty().import_agent(&bad).is_err());
}

#[test]
fn a_hand_written_file_can_be_imported_again() {
    let lines = [
        json!({"type": "agent", "format": 1}),
        json!({"type": "settings", "config": {"maxSteps": 5}}),
        json!({"type": "tool", "name": "news", "description": "D", "url": "https://tools.example/news",
               "needsApproval": false, "headers": [], "timeoutMs": null, "definedAt": 5}),
        json!({"type": "block", "label": "Facts", "kind": "searchable", "whenChanged": "wait", "definedAt": 7,
               "tags": []}),
        json!({"type": "entry", "block": "facts", "key": "k", "content": "c", "createdAt": 1, "updatedAt": 1}),
        json!({"type": "session", "format": 1, "id": "s", "createdAt": 10, "updatedAt": 10, "seqFloor": 0,
               "usage": {"inputTokens": 0, "outputTokens": 0, "cost": 0}}),
        json!({"type": "event", "seq": 1, "id": "a", "action": "user_message", "content": "hi",
               "createdAt": 20, "writtenAt": 20}),
        json!({"type": "end", "events": 1}),
        json!({"type": "done", "sessions": 1}),
    ];
    let file: String = lines
        .iter()
        .map(|line| format!("{line:#}").replace('\n', " ") + "\n")
        .collect();
    let bob = empty();
    for imported in [1, 0, 0] {
        let outcome = bob.import_agent(&file).unwrap();
        assert_eq!((outcome.imported, outcome.sessions), (imported, 1));
    }
    for (field, other) in [
        ("\"hi\"", "\"ho\""),
        ("\"maxSteps\": 5", "\"maxSteps\": 6"),
        ("\"k\"", "\"l\""),
    ] {
        assert!(file.contains(field), "{field}");
        let error = bob.import_agent(&file.replace(field, other)).unwrap_err();
        assert_eq!(error.code.name(), "already_exists", "{field}");
    }
}

#[test]
fn the_file_of_an_empty_agent_has_two_lines() {
    let file = Alice::default().export_agent();
    assert_eq!(
        file,
        "{\"type\":\"agent\",\"format\":1}\n{\"type\":\"done\",\"sessions\":0}\n"
    );
    let bob = Alice::default();
    let before = bob.db.dump();
    bob.import_agent(&file).unwrap();
    assert!(bob.db.dump() == before);
}

#[test]
fn the_lines_are_ordered_and_contain_no_header_value() {
    let alice = make(true);
    alice.ok(
        "defineTool",
        json!({"name": "keyed", "description": "D", "url": "https://tools.example/k",
               "headers": {"x-key": "abc-literal"}}),
    );
    let file = alice.export_agent();
    assert!(!file.contains("abc-literal"));
    assert!(!file.contains("secret:"));
    let kinds = kinds(&file);
    assert_eq!(
        (
            kinds.first().unwrap().as_str(),
            kinds.last().unwrap().as_str()
        ),
        ("agent", "done")
    );
    let bob = empty();
    let imported = bob.import_agent(&file).unwrap();
    assert!(imported.tools_without_headers.contains(&"keyed".to_owned()));
    let tools = bob.ok("listTools", json!({}));
    let keyed = tools["tools"].as_array().unwrap().iter();
    let keyed = keyed.clone().find(|tool| tool["name"] == "keyed").unwrap();
    assert_eq!(keyed["headers"], json!({"x-key": "secret:"}));
    assert!(bob.export_agent() == file);
}

#[test]
fn an_export_resumes_from_each_cursor() {
    let alice = make(true);
    // Long enough for cursors within a session.
    let text = "x".repeat(60_000);
    let events: Vec<Value> = (0..40)
        .map(|_| json!({"action": "user_message", "content": text}))
        .collect();
    alice.ok("createSession", json!({"id": "long"}));
    for batch in events.chunks(10) {
        alice.ok(
            "appendEvents",
            json!({"sessionId": "long", "events": batch}),
        );
    }
    let file = alice.export_agent();
    let mut at = 0;
    let mut within = 0;
    for line in file.split_inclusive('\n') {
        at += line.len();
        let value: Value = serde_json::from_str(line).unwrap();
        if value["type"] != "cursor" {
            continue;
        }
        let after = value["after"].as_str().unwrap();
        within += usize::from(after.ends_with(".long") && !after.contains("..."));
        let rest = alice.agent_pages(Some(after)).unwrap().concat();
        assert!(rest == file[at..], "after {after}");
    }
    assert!(within >= 2, "cursors within the long session: {within}");
    let error = alice.agent_pages(Some("1.2...nowhere")).err().unwrap();
    assert_eq!(error.details()["field"], "after");
}

#[test]
fn an_interrupted_import_is_completed_by_the_same_file() {
    let alice = small();
    alice.remember("s");
    alice.ok("configureAgent", json!({"maxSteps": 4}));
    alice.ok("defineBlock", json!({"label": "soul", "kind": "writable"}));
    alice.ok("setBlock", json!({"label": "soul", "content": "kind"}));
    alice.ok("createSession", json!({"id": "second"}));
    let file = alice.export_agent();
    let lines: Vec<&str> = file.split_inclusive('\n').collect();
    for count in 0..lines.len() {
        let bob = Alice::default();
        let cut = lines[..count].concat();
        let agent = bob.agent(&bob.db);
        let mut import = begin_agent_import(&agent, true).unwrap();
        import.push(&bob.db, &bob.host, cut.as_bytes()).unwrap();
        if count % 2 == 0 {
            drop(import);
        } else {
            drop(import.end(&bob.db, &bob.host).unwrap_err());
        }
        let imported = bob.import_agent(&file).unwrap();
        assert_eq!(
            (imported.sessions, imported.imported + imported.skipped),
            (2, 2)
        );
        assert!(bob.export_agent() == file, "{count} lines");
    }
}

#[test]
fn an_agent_with_other_content_is_unchanged() {
    let alice = small();
    alice.ok("configureAgent", json!({"maxSteps": 4}));
    let file = alice.export_agent();
    let populate: [(&str, Value); 4] = [
        ("createSession", json!({"id": "s"})),
        ("configureAgent", json!({"maxSteps": 5})),
        ("defineBlock", json!({"label": "b", "kind": "writable"})),
        ("configureCompaction", json!({"protectHead": 5})),
    ];
    for (operation, body) in populate {
        let bob = Alice::default();
        bob.ok(operation, body);
        let before = bob.db.dump();
        let error = bob.import_agent(&file).unwrap_err();
        assert_eq!(error.code.name(), "already_exists", "{operation}");
        assert!(bob.db.dump() == before, "{operation}");
    }
}

/// Settings, blocks and the like would differ. Agents with only sessions must be distinguished,
/// too.
#[test]
fn an_agent_with_other_sessions_is_unchanged() {
    let alice = Alice::default();
    for id in ["first", "second"] {
        alice.ok("createSession", json!({"id": id}));
    }
    let file = alice.export_agent();
    let bob = Alice::default();
    bob.ok("createSession", json!({"id": "bobs"}));
    let before = bob.db.dump();
    let error = bob.import_agent(&file).unwrap_err();
    assert_eq!(error.code.name(), "already_exists");
    assert!(error.message.contains("`first`"), "{}", error.message);
    assert!(error.message.contains("destroy"), "{}", error.message);
    assert!(bob.db.dump() == before);

    // The same after this file's import was interrupted and the agent was used.
    let bob = Alice::default();
    let second = file.find("{\"type\":\"session\",\"format\":1,\"id\":\"second\"");
    let cut = &file[..second.unwrap()];
    bob.import_agent(cut).unwrap_err();
    bob.ok("createSession", json!({"id": "bobs"}));
    let before = bob.db.dump();
    let error = bob.import_agent(&file).unwrap_err();
    assert_eq!(error.code.name(), "already_exists");
    assert!(bob.db.dump() == before);

    // An import that is complete writes nothing, so it mixes nothing.
    let bob = Alice::default();
    bob.import_agent(&file).unwrap();
    bob.ok("createSession", json!({"id": "bobs"}));
    assert_eq!(bob.import_agent(&file).unwrap().skipped, 2);
}

#[test]
fn an_interrupted_import_preserves_later_writes() {
    let alice = small();
    alice.ok("configureAgent", json!({"maxSteps": 4}));
    alice.ok("defineBlock", json!({"label": "soul", "kind": "writable"}));
    let file = alice.export_agent();
    let bob = Alice::default();
    let agent = bob.agent(&bob.db);
    let mut import = begin_agent_import(&agent, true).unwrap();
    let lines: Vec<&str> = file.split_inclusive('\n').collect();
    let own = lines[..2].concat();
    import.push(&bob.db, &bob.host, own.as_bytes()).unwrap();
    // The object is evicted without cleanup.
    drop(import);
    bob.ok("createSession", json!({"id": "bobs"}));
    let before = bob.db.dump();
    let error = bob.import_agent(&file).unwrap_err();
    assert_eq!(error.code.name(), "already_exists");
    assert!(bob.db.dump() == before);
}

#[test]
fn a_newer_format_or_a_malformed_file_is_refused_with_its_line() {
    let file = small().export_agent();
    let newer = file.replacen("\"format\":1", "\"format\":2", 1);
    let bob = Alice::default();
    let before = bob.db.dump();
    let error = bob.import_agent(&newer).unwrap_err();
    assert_eq!(
        (&error.details()["field"], &error.details()["line"]),
        (&json!("format"), &json!(1))
    );
    assert!(error.message.contains("a newer one"), "{}", error.message);
    assert!(bob.db.dump() == before);

    let last = file.lines().count();
    for (wrong, line) in [
        (
            file.replace(
                "\"type\":\"done\",\"sessions\":1",
                "\"type\":\"done\",\"sessions\":2",
            ),
            last,
        ),
        (
            file.replace("{\"type\":\"done\"", "{\"type\":\"dome\""),
            last,
        ),
        (
            format!("{file}{{\"type\":\"done\",\"sessions\":1}}\n"),
            last + 1,
        ),
        (file.lines().skip(1).collect::<Vec<_>>().join("\n"), 1),
    ] {
        let error = Alice::default().import_agent(&wrong).unwrap_err();
        assert_eq!(error.details()["line"], json!(line), "{}", error.message);
    }
}

#[test]
fn a_continued_part_adds_only_sessions() {
    let alice = small();
    alice.ok("configureAgent", json!({"maxSteps": 4}));
    alice.ok("createSession", json!({"id": "second"}));
    let file = without_cursors(&alice.export_agent());
    let lines: Vec<&str> = file.split_inclusive('\n').collect();
    let second = lines
        .iter()
        .position(|line| line.contains("\"id\":\"second\""))
        .unwrap();
    let done = "{\"type\":\"done\",\"sessions\":1}\n";
    let parts = [
        format!("{}{done}", lines[..second].concat()),
        format!(
            "{{\"type\":\"agent\",\"format\":1,\"continued\":true}}\n{}{done}",
            lines[second..lines.len() - 1].concat()
        ),
    ];
    let bob = Alice::default();
    for part in &parts {
        assert_eq!(bob.import_agent(part).unwrap().imported, 1);
    }
    assert_eq!(without_cursors(&bob.export_agent()), file);
}

#[test]
fn an_untrusted_import_omits_prompts_and_refuses_sources() {
    let alice = small();
    alice.ok(
        "defineBlock",
        json!({"label": "soul", "kind": "readonly", "defaultContent": "x"}),
    );
    alice.ok("freezePrompt", json!({}));
    let file = alice.export_agent();
    let bob = Alice::default();
    let imported = bob.import_agent_in(&bob.db, &file, 100, false).unwrap();
    assert_eq!(json!(imported.left_out), json!(["prompt"]));
    assert!(!bob.export_agent().contains("\"type\":\"prompt\""));
    // It can be repeated with the same restrictions.
    let again = bob.import_agent_in(&bob.db, &file, 100, false).unwrap();
    assert_eq!(
        (again.skipped, json!(again.left_out)),
        (1, json!(["prompt"]))
    );

    let file = make(true).export_agent();
    let bob = empty();
    let error = bob.import_agent_in(&bob.db, &file, 100, false).unwrap_err();
    assert_eq!(error.details()["field"], "source");
}

#[test]
fn only_the_secret_exports_or_imports_an_agent() {
    let alice = small();
    let file = alice.export_agent();
    let everything = Caller::Scoped(TokenScope {
        expires_at: i64::MAX,
        ..TokenScope::default()
    });
    let alice = Alice {
        caller: everything,
        ..alice
    };
    let code = |error: Error| error.code.name();
    assert_eq!(alice.agent_pages(None).map_err(code), Err("forbidden"));
    assert_eq!(alice.import_agent(&file).map_err(code), Err("forbidden"));
}

/// An agent whose session is written in several pages.
fn with_long_session() -> Alice {
    let alice = small();
    let text = "x".repeat(60_000);
    let events: Vec<Value> = (0..40)
        .map(|_| json!({"action": "user_message", "content": text}))
        .collect();
    for batch in events.chunks(10) {
        alice.ok("appendEvents", json!({"sessionId": "s", "events": batch}));
    }
    alice
}

#[test]
fn a_session_deleted_during_the_export_is_not_in_the_copy() {
    let alice = with_long_session();
    alice.ok("createSession", json!({"id": "second"}));
    let mut export = begin_agent_export(&alice.agent(&alice.db), None).unwrap();
    let mut file = export.next_page(&alice.db).unwrap().unwrap();
    file.push_str(&export.next_page(&alice.db).unwrap().unwrap());
    assert!(kinds(&file).contains(&"event".to_owned()));
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    while let Some(page) = export.next_page(&alice.db).unwrap() {
        file.push_str(&page);
    }
    assert!(kinds(&file).contains(&"gone".to_owned()));
    let bob = Alice::default();
    assert_eq!(bob.import_agent(&file).unwrap().imported, 1);
    assert!(bob.export_agent() == alice.export_agent());
}

#[test]
fn an_export_interrupted_in_a_session_omits_later_events() {
    let alice = with_long_session();
    let exported = alice.export_agent();
    let (mut cursors, mut at) = (Vec::new(), 0);
    for line in exported.split_inclusive('\n') {
        at += line.len();
        let line: Value = serde_json::from_str(line).unwrap();
        if line["type"] == "cursor" {
            cursors.push((at, line["after"].as_str().unwrap().to_owned()));
        }
    }
    // The last cursor follows the session.
    cursors.pop();
    assert!(!cursors.is_empty());
    // An event that is then deleted leaves a change, and another event is chosen as the leaf.
    let event_ids = alice.append_texts(&["gone"]);
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": event_ids}),
    );
    let newer = alice.append_texts(&["newer", "newest"]);
    alice.ok("setLeaf", json!({"sessionId": "s", "id": newer[0]}));
    for (at, after) in cursors {
        let rest = alice.agent_pages(Some(&after)).unwrap().concat();
        let file = format!("{}{rest}", &exported[..at]);
        assert!(file == exported, "after {after}");
        let bob = Alice::default();
        assert_eq!(
            bob.import_agent(&file).unwrap().imported,
            1,
            "after {after}"
        );
        assert_eq!(bob.import_agent(&file).unwrap().skipped, 1, "after {after}");
    }
}
