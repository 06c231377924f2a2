//! An object with the tables of the Agents SDK's documentation, created by its statements. The
//! first request migrates all rows.

use serde_json::{Value, json};

use crate::Alice;
use crate::RecordedSockets;
use crate::StartedWork;
use access::{Caller, Policy};
use base::database::Database;
use base::testing::recovery::RecordingRecovery;
use base::testing::{Failing, FixedHost, Script, Sqlite};
use chat::run::in_flight_work::InFlightWork;
use chat::run::running_turns::RunningTurns;
use context::compaction::auto::CompactionTracker;
use store::schema;

pub const DOCUMENTS_DDL: &str = "
CREATE TABLE IF NOT EXISTS cf_agents_sessions (
  id TEXT PRIMARY KEY NOT NULL,
  agent_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,  -- ms since epoch
  updated_at INTEGER NOT NULL,  -- ms since epoch
  metadata TEXT                 -- JSON
);

CREATE TABLE IF NOT EXISTS cf_agents_events (
  id TEXT PRIMARY KEY NOT NULL,
  session_id TEXT NOT NULL,
  seq INTEGER NOT NULL,         -- monotonic insertion order within session
  action TEXT NOT NULL,
  content TEXT,
  metadata TEXT,                -- JSON
  created_at INTEGER NOT NULL   -- ms since epoch
);

CREATE INDEX IF NOT EXISTS idx_events_session_seq
  ON cf_agents_events(session_id, seq);
";

fn documents_object(rows: &str) -> Sqlite {
    let db = Sqlite::new();
    db.run(DOCUMENTS_DDL, &[]).unwrap();
    db.run(rows, &[]).unwrap();
    db
}

fn carried_over(rows: &str) -> Alice {
    let db = documents_object(rows);
    schema::migrate(&db, &FixedHost::default()).unwrap();
    Alice {
        via: Vec::new(),
        db,
        host: FixedHost::default(),
        policy: Policy::default(),
        caller: Caller::Owner,
        outbound: Script::default(),
        compactions: CompactionTracker::default(),
        turns: RunningTurns::default(),
        work: InFlightWork::default(),
        audience: RecordedSockets::default(),
        starter: StartedWork::default(),
        recovery: RecordingRecovery::default(),
    }
}

const ROWS: &str = r#"
INSERT INTO cf_agents_sessions VALUES ('s', 'alice', 100, 900, '{"title":"old"}');
INSERT INTO cf_agents_sessions VALUES ('empty', 'alice', 200, 200, NULL);
INSERT INTO cf_agents_events VALUES ('e-1', 's', 1, 'user_message', 'hello', NULL, 110);
INSERT INTO cf_agents_events VALUES ('e-2', 's', 2, 'tool_call_request', NULL,
  '{"toolCalls":[{"id":"c1","name":"echo","arguments":{"text":"hi"}}],"traceId":"t1"}', 120);
INSERT INTO cf_agents_events VALUES ('e-3', 's', 3, 'tool_result', 'hi', '{"toolCallId":"c1","toolName":"echo"}', 130);
INSERT INTO cf_agents_events VALUES ('e-4', 's', 4, 'agent_message', 'done', '{"model":"m","big":12345678901234567890}', 140);
INSERT INTO cf_agents_events VALUES ('o-1', 'orphaned', 1, 'user_message', 'no session', NULL, 50);
INSERT INTO cf_agents_events VALUES ('o-2', 'orphaned', 2, 'agent_message', 'none at all', NULL, 60);
"#;

#[test]
fn sessions_and_events_are_migrated() {
    let alice = carried_over(ROWS);
    let session = alice.ok("getSession", json!({"sessionId": "s"}));
    assert_eq!(session["metadata"], json!({"title": "old"}));
    assert_eq!(
        (&session["createdAt"], &session["updatedAt"]),
        (&json!(100), &json!(900))
    );
    assert_eq!(session["agentId"], "alice");
    assert_eq!(alice.events(), [
        json!({"id": "e-1", "sessionId": "s", "seq": 1, "parentId": null, "action": "user_message", "content": "hello", "createdAt": 110}),
        json!({"id": "e-2", "sessionId": "s", "seq": 2, "parentId": "e-1", "action": "tool_call_request", "content": "",
               "toolCalls": [{"id": "c1", "name": "echo", "arguments": {"text": "hi"}}], "metadata": {"traceId": "t1"}, "createdAt": 120}),
        json!({"id": "e-3", "sessionId": "s", "seq": 3, "parentId": "e-2", "action": "tool_result", "content": "hi",
               "toolCallId": "c1", "toolName": "echo", "createdAt": 130}),
        serde_json::from_str::<Value>(r#"{"id":"e-4","sessionId":"s","seq":4,"parentId":"e-3","action":"agent_message","content":"done",
               "metadata":{"model":"m","big":12345678901234567890},"createdAt":140}"#).unwrap(),
    ]);
}

#[test]
fn events_without_a_session_get_a_new_one() {
    let alice = carried_over(ROWS);
    let listed = alice.ok("listSessions", json!({}));
    assert_eq!(listed["sessions"].as_array().unwrap().len(), 3);
    let orphaned = alice.ok("loadEvents", json!({"sessionId": "orphaned"}));
    assert_eq!(orphaned.as_array().unwrap().len(), 2);
    assert_eq!(orphaned[1]["parentId"], "o-1");
}

#[test]
fn appends_continue_after_the_last_event() {
    let alice = carried_over(ROWS);
    let outcome = alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "expectedLeafId": "e-4", "events": [
            {"id": "e-1", "action": "user_message", "content": "again"},
            {"action": "user_message", "content": "next"}
        ]}),
    );
    assert_eq!(
        outcome["events"][0],
        json!({"id": "e-1", "seq": 1, "inserted": false})
    );
    assert_eq!(outcome["events"][1]["seq"], 5);
    assert_eq!(
        alice.ok(
            "deleteEvents",
            json!({"sessionId": "s", "eventIds": ["e-2", "e-3"]})
        ),
        json!({"deleted": 2})
    );
    let parents: Vec<Value> = alice
        .events()
        .iter()
        .map(|event| event["parentId"].clone())
        .collect();
    assert_eq!(parents, [json!(null), json!("e-1"), json!("e-4")]);
}

#[test]
fn seqs_that_do_not_fit_the_key_are_reassigned() {
    let alice = carried_over(
        "INSERT INTO cf_agents_sessions VALUES ('s', 'alice', 1, 1, NULL);
         INSERT INTO cf_agents_events VALUES ('a', 's', 0, 'user_message', '1', NULL, 1);
         INSERT INTO cf_agents_events VALUES ('b', 's', 1, 'user_message', '2', NULL, 2);
         INSERT INTO cf_agents_events VALUES ('c', 's', 1, 'user_message', '3', NULL, 3);
         INSERT INTO cf_agents_events VALUES ('d', 's', 7, 'user_message', '4', NULL, 4);",
    );
    let seen: Vec<_> = alice
        .events()
        .iter()
        .map(|event| (event["seq"].clone(), event["content"].clone()))
        .collect();
    assert_eq!(
        seen,
        [
            (json!(1), json!("1")),
            (json!(2), json!("2")),
            (json!(3), json!("3")),
            (json!(4), json!("4"))
        ]
    );
}

#[test]
fn metadata_of_another_shape_is_kept_and_corruption_reported() {
    let alice = carried_over(
        r#"INSERT INTO cf_agents_sessions VALUES ('s', 'alice', 1, 1, NULL);
           INSERT INTO cf_agents_events VALUES ('a', 's', 1, 'tool_call_request', '', '{"toolCalls":"none"}', 1);
           INSERT INTO cf_agents_events VALUES ('b', 's', 2, 'user_message', '2', '{broken', 2);
           INSERT INTO cf_agents_events VALUES ('c', 's', 3, 'user_message', '3', NULL, 3);"#,
    );
    let first = alice.ok("loadEvents", json!({"sessionId": "s", "limit": 1}));
    assert_eq!(first[0]["metadata"], json!({"toolCalls": "none"}));
    assert_eq!(
        alice
            .call("loadEvents", json!({"sessionId": "s"}))
            .unwrap_err()
            .details()["id"],
        "b"
    );
    assert_eq!(
        alice.ok("loadEvents", json!({"sessionId": "s", "afterSeq": 2}))[0]["content"],
        "3"
    );
}

#[test]
fn a_failed_migration_leaves_the_original() {
    let mut tried = 1;
    loop {
        let db = documents_object(ROWS);
        let before = db.dump();
        let failing = Failing::after(&db, tried);
        if schema::migrate(&failing, &FixedHost::default()).is_ok() {
            break;
        }
        assert_eq!(db.dump(), before, "statement {tried}");
        tried += 1;
    }
    assert!(tried > 5);
}
