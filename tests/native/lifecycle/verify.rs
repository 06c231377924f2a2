//! `verify` finds nothing in an object that was only written by operations, and reports each
//! invariant that a test breaks.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Alice;
use crate::store::upgrades::make::make;
use access::{Caller, TokenScope};
use base::database::Database;
use base::ids::Id;
use base::testing::Sqlite;

/// An object with data of every kind, which the tests copy.
struct Populated(Vec<u8>);

impl Populated {
    fn new() -> Self {
        let alice = make(true);
        alice.ok(
            "appendEvents",
            json!({"sessionId": "talked", "events": [
                {"id": "named", "action": "user_message", "content": "the text is nobody's business"},
                {"action": "user_message", "content": "after it"}]}),
        );
        alice.ok("setLeaf", json!({"sessionId": "talked", "id": "named"}));
        alice.ok("search", json!({"query": "anything"}));
        Self(alice.db.into_file())
    }

    fn copy(&self) -> Alice {
        Alice {
            db: Sqlite::from_file(&self.0),
            ..Alice::default()
        }
    }
}

/// A corruption that no operation can cause: the SQL, the code that names it, and the other fields
/// of the finding.
type Damage = (&'static str, &'static str, Value);

fn damages() -> Vec<Damage> {
    vec![
        (
            "DELETE FROM cf_agents_sessions WHERE id = 'talked'",
            "rows_without_session",
            json!({"sessionId": "talked"}),
        ),
        (
            "UPDATE cf_agents_events SET id_indexed = 0 WHERE id = 'named'",
            "event_unreachable",
            json!({"sessionId": "talked", "id": "named"}),
        ),
        (
            "INSERT INTO cf_agents_events (session_id, seq, id, id_indexed, parent_seq, parent_id, is_branch, action, created_at, written_at)
             SELECT 'talked', seq + 100, 'named', 0, seq, 'named', 1, 'user_message', 1, 1
               FROM cf_agents_events WHERE id = 'named'",
            "event_id_twice",
            json!({"sessionId": "talked", "id": "named"}),
        ),
        (
            "UPDATE cf_agents_events SET metadata = '{\"half' WHERE id = 'named'",
            "event_damaged",
            json!({"sessionId": "talked", "id": "named"}),
        ),
        (
            "UPDATE cf_agents_events SET message = '\"parts\":[' WHERE id = 'named'",
            "event_damaged",
            json!({"sessionId": "talked", "id": "named"}),
        ),
        (
            "DELETE FROM cf_agents_events WHERE id = 'named'",
            "parent_missing",
            json!({"sessionId": "talked"}),
        ),
        (
            "UPDATE cf_agents_events SET parent_seq = seq, parent_id = id, is_branch = 1 WHERE id = 'named'",
            "parent_not_before",
            json!({"sessionId": "talked", "id": "named"}),
        ),
        (
            "UPDATE cf_agents_events SET parent_id = 'another' WHERE id = 'named'",
            "parent_id_wrong",
            json!({"sessionId": "talked", "id": "named"}),
        ),
        (
            "UPDATE cf_agents_events SET parent_id = (SELECT id FROM cf_agents_events WHERE session_id = 'talked' AND seq = 1), parent_seq = 1 WHERE id = 'named'",
            "branch_unmarked",
            json!({"sessionId": "talked", "id": "named"}),
        ),
        (
            "UPDATE cf_agents_events SET splits_run = 1 WHERE id = 'named'",
            "boundary_wrong",
            json!({"sessionId": "talked", "id": "named"}),
        ),
        (
            "UPDATE cf_agents_events SET more_messages = more_messages + 1 WHERE id = 'named'",
            "totals_wrong",
            json!({"sessionId": "talked", "id": "named"}),
        ),
        (
            "UPDATE cf_agents_events SET path_messages = NULL WHERE id = 'named'",
            "totals_wrong",
            json!({"sessionId": "talked", "id": "named"}),
        ),
        (
            "DELETE FROM cf_agents_slices WHERE part = 1",
            "slices_incomplete",
            json!({"id": "long"}),
        ),
        (
            "INSERT INTO cf_agents_slices (session_id, seq, field, part, text)
             SELECT session_id, seq, 'content', 0, 'x' FROM cf_agents_events WHERE id = 'named'",
            "slice_stray",
            json!({"sessionId": "talked"}),
        ),
        (
            "UPDATE cf_agents_sessions SET leaf_seq = 77 WHERE id = 'talked'",
            "leaf_missing",
            json!({"sessionId": "talked"}),
        ),
        (
            "INSERT INTO cf_agents_path_digests (digest, session_id, seq, is_answer)
             SELECT 'of a question', session_id, seq, 1 FROM cf_agents_events WHERE id = 'named'",
            "path_end_wrong",
            json!({"sessionId": "talked"}),
        ),
        (
            "INSERT INTO cf_agents_path_digests (digest, session_id, seq, is_answer)
             SELECT 'of no event', session_id, max(seq) + 1, 1 FROM cf_agents_events WHERE session_id = 'talked'",
            "path_end_wrong",
            json!({"sessionId": "talked"}),
        ),
        (
            "UPDATE cf_agents_sessions SET metadata = '[]' WHERE id = 'talked'",
            "session_damaged",
            json!({"sessionId": "talked"}),
        ),
        (
            "INSERT INTO cf_agents_changes (session_id, cursor, type, id, changed_at)
             SELECT 'talked', (max(seq) + 1000) << 20, 'update', 'named', 1 FROM cf_agents_events WHERE session_id = 'talked'",
            "change_ahead",
            json!({"sessionId": "talked", "id": "named"}),
        ),
        (
            "DELETE FROM cf_agents_media",
            "media_missing",
            json!({}),
        ),
        (
            "DELETE FROM cf_agents_media_uses",
            "media_use_missing",
            json!({}),
        ),
        ("DELETE FROM cf_agents_media_uses", "media_unused", json!({})),
        (
            "INSERT INTO cf_agents_media_uses (session_id, hash, seq)
             SELECT session_id, hash, 999 FROM cf_agents_media_uses LIMIT 1",
            "media_use_stray",
            json!({}),
        ),
        (
            "UPDATE cf_agents_media SET text = 'x' || substr(text, 2) WHERE part = 0",
            "media_damaged",
            json!({}),
        ),
        (
            "DELETE FROM cf_agents_media WHERE part = 0",
            "media_damaged",
            json!({}),
        ),
        (
            "DELETE FROM cf_agents_search
              WHERE rowid = (SELECT (s.number << 32) | e.seq
                               FROM cf_agents_events AS e JOIN cf_agents_sessions AS s ON s.id = e.session_id
                              WHERE e.id = 'named')",
            "index_missing",
            json!({"sessionId": "talked", "id": "named"}),
        ),
        (
            "INSERT INTO cf_agents_search (rowid, stems, words, about) VALUES ((900 << 32) | 5, 'a', 'a', 'a')",
            "index_stray",
            json!({"seq": (900_i64 << 32) | 5}),
        ),
        (
            "DELETE FROM cf_agents_search_parts",
            "index_stray",
            json!({}),
        ),
        (
            "INSERT INTO cf_agents_search_progress (number, indexed_from) VALUES (900, 5)",
            "index_stray",
            json!({"seq": 900}),
        ),
        (
            "INSERT INTO cf_agents_event_vectors (place, model, vector) VALUES ((900 << 32) | 5, 'm', 'v')",
            "vector_stray",
            json!({"seq": (900_i64 << 32) | 5}),
        ),
        (
            "UPDATE cf_agents_compactions SET from_id = 'another'",
            "overlay_edge_missing",
            json!({}),
        ),
        (
            "UPDATE cf_agents_compactions SET above_seq = above_seq + 1",
            "overlay_above_wrong",
            json!({}),
        ),
        (
            "UPDATE cf_agents_compactions SET from_seq = to_seq + 1, to_seq = from_seq",
            "overlay_off_path",
            json!({}),
        ),
        (
            "UPDATE cf_agents_last_turns SET state = '{' WHERE state IS NOT NULL",
            "turn_damaged",
            json!({}),
        ),
        (
            "UPDATE cf_agents_waiting SET part = part + 10",
            "waiting_incomplete",
            json!({}),
        ),
        (
            "UPDATE cf_agents_early_answers SET part = part + 10",
            "waiting_incomplete",
            json!({}),
        ),
        (
            "UPDATE cf_agents_blocks SET source = '{' WHERE source IS NOT NULL",
            "block_damaged",
            json!({}),
        ),
        (
            "UPDATE cf_agents_block_versions SET version = 0 WHERE version = 1",
            "version_number_wrong",
            json!({"version": 0}),
        ),
        (
            "UPDATE cf_agents_entries SET note = '{'",
            "note_damaged",
            json!({}),
        ),
        (
            "UPDATE cf_agents_item_versions SET slot = slot + 40",
            "version_misplaced",
            json!({}),
        ),
        (
            "UPDATE cf_agents_item_versions SET version = version + 20 WHERE content IS NOT NULL",
            "version_not_newest",
            json!({}),
        ),
        (
            "DELETE FROM cf_agents_entries_search WHERE rowid = (SELECT min(number) FROM cf_agents_entries)",
            "index_missing",
            json!({"table": "cf_agents_entries"}),
        ),
        (
            "INSERT INTO cf_agents_entries_search (rowid, stems, words, about) VALUES (7, 'a', 'a', 'a')",
            "index_stray",
            json!({"seq": 7}),
        ),
        (
            "INSERT INTO cf_agents_entry_vectors (number, model, vector) VALUES (7, 'm', 'v')",
            "vector_stray",
            json!({"seq": 7}),
        ),
        (
            "UPDATE cf_agents_entries SET number = number + (1 << 30)",
            "entry_number_wrong",
            json!({}),
        ),
        (
            "UPDATE cf_agents_item_counts SET entries = entries + 1",
            "counts_wrong",
            json!({}),
        ),
        (
            "UPDATE cf_agents_item_counts SET deleted = deleted + 1",
            "counts_wrong",
            json!({}),
        ),
        (
            "DELETE FROM cf_agents_item_counts",
            "counts_wrong",
            json!({"table": "cf_agents_entries"}),
        ),
        (
            "DELETE FROM cf_agents_replacements",
            "replacement_missing",
            json!({}),
        ),
        (
            "INSERT INTO cf_agents_replacements (scope, block, key, replacer) VALUES ('', 'facts', 'a', 'b')",
            "replacement_stray",
            json!({"label": "facts", "key": "a"}),
        ),
        (
            "UPDATE cf_agents_prompts SET sections = '{'",
            "prompt_damaged",
            json!({}),
        ),
        (
            "UPDATE cf_agents_callbacks SET report = '{'",
            "callback_damaged",
            json!({}),
        ),
        (
            "UPDATE cf_agents_failed_turns SET record = '{'",
            "turn_damaged",
            json!({"sessionId": "failed"}),
        ),
        (
            "UPDATE cf_agents_proposals SET changes = '{'",
            "proposal_damaged",
            json!({}),
        ),
        (
            "INSERT INTO cf_agents_config (key, value) VALUES ('broken', '{')",
            "setting_damaged",
            json!({"id": "broken"}),
        ),
        (
            "UPDATE cf_agents_tools SET parameters = '{' WHERE name = 'echo'",
            "tool_damaged",
            json!({"id": "echo"}),
        ),
    ]
}

fn reports(finding: &Value, code: &str, more: &Value) -> bool {
    let more = more.as_object().unwrap();
    finding["code"] == code && more.iter().all(|(name, value)| finding[name] == *value)
}

#[test]
fn data_written_through_the_api_is_consistent() {
    make(false).assert_consistent("not searched");
    make(true).assert_consistent("searched");
    Populated::new().copy().assert_consistent("populated");
    Alice::default().assert_consistent("without rows");
}

#[test]
fn each_corruption_is_named_by_code_and_ids() {
    let populated = Populated::new();
    let mut unnamed = Vec::new();
    for (sql, code, more) in damages() {
        let alice = populated.copy();
        if let Err(error) = alice.db.run(sql, &[]) {
            unnamed.push(format!("{code}: {sql}: {error:?}"));
            continue;
        }
        let findings = alice.verified(json!({}));
        if !findings.iter().any(|finding| reports(finding, code, &more)) {
            unnamed.push(format!("{code}: {sql}: {findings:?}"));
        }
        for finding in &findings {
            assert!(finding["message"].as_str().unwrap().ends_with('.'));
            assert!(!finding.to_string().contains("business"), "{finding}");
        }
    }
    assert!(unnamed.is_empty(), "{}", unnamed.join("\n"));
}

/// The codes of the API, by the schema of the answer.
fn codes() -> BTreeSet<String> {
    let schema = schemars::schema_for!(lifecycle::verify::FindingCode).to_value();
    let variants = schema["oneOf"].as_array().unwrap();
    let codes = variants.iter().map(|variant| variant["const"].as_str());
    codes.map(|code| code.unwrap().to_owned()).collect()
}

#[test]
fn each_code_is_caused_by_some_corruption() {
    let named: BTreeSet<String> = damages()
        .into_iter()
        .map(|(_, code, _)| code.to_owned())
        .collect();
    assert_eq!(named, codes());
}

#[test]
fn a_long_log_is_checked_in_pages_and_each_row_once() {
    let alice = Alice::with_session();
    for _ in 0..6 {
        let events: Vec<Value> = (0..1_000)
            .map(|n| json!({"action": "user_message", "content": n.to_string()}))
            .collect();
        alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
    }
    let sql = "UPDATE cf_agents_events SET parent_id = 'x' WHERE seq % 7 = 0";
    alice.db.run(sql, &[]).unwrap();
    let mut body = json!({});
    let (mut seqs, mut checked, mut requests) = (Vec::new(), 0, 0);
    loop {
        let page = alice.ok("verify", body.clone());
        let findings = page["findings"].as_array().unwrap();
        assert!(findings.len() < 700);
        assert!(page["checked"].as_i64().unwrap() <= 5_000);
        seqs.extend(
            findings
                .iter()
                .map(|finding| finding["seq"].as_i64().unwrap()),
        );
        checked += page["checked"].as_i64().unwrap();
        requests += 1;
        if page["cursor"].is_null() {
            break;
        }
        body["cursor"] = page["cursor"].clone();
    }
    assert!(requests > 2);
    // The events, and the session's own row.
    assert_eq!(checked, 6_001);
    assert_eq!(
        seqs,
        (1..=6_000).filter(|seq| seq % 7 == 0).collect::<Vec<i64>>()
    );
}

#[test]
fn an_unknown_cursor_is_refused() {
    let alice = Alice::with_session();
    for cursor in ["", "x", "WzAsWzFdXQ", "Wzk5OTksW11d"] {
        assert_eq!(
            alice.refused("verify", json!({"cursor": cursor})),
            "invalid_request"
        );
    }
}

#[test]
fn a_session_token_checks_only_its_session() {
    let populated = Populated::new();
    let damage = "UPDATE cf_agents_events SET parent_id = 'x' WHERE session_id IN ('talked', 'carried') AND seq = 2";
    let alice = populated.copy();
    alice.ok("createSession", json!({"id": "quiet"}));
    alice.db.run(damage, &[]).unwrap();
    let sessions = |findings: &[Value]| -> BTreeSet<String> {
        let session = |finding: &Value| finding["sessionId"].as_str().unwrap().to_owned();
        findings.iter().map(session).collect()
    };
    let both = ["carried", "talked"].map(str::to_owned).into();
    assert_eq!(sessions(&alice.verified(json!({}))), both);
    let talked = BTreeSet::from(["talked".to_owned()]);
    assert_eq!(
        sessions(&alice.verified(json!({"sessionId": "talked"}))),
        talked
    );
    assert_eq!(
        alice.verified(json!({"sessionId": "quiet"})),
        Vec::<Value>::new()
    );
    assert_eq!(
        alice.refused("verify", json!({"sessionId": "nobody"})),
        "session_not_found"
    );
    let scope = TokenScope {
        session_id: Some(Id::parse("talked".to_owned()).unwrap()),
        expires_at: i64::MAX,
        ..TokenScope::default()
    };
    let alice = Alice {
        caller: Caller::Scoped(scope),
        ..alice
    };
    assert_eq!(sessions(&alice.verified(json!({}))), talked);
    assert_eq!(
        alice.refused("verify", json!({"sessionId": "s"})),
        "forbidden"
    );
}
