//! The rows that an operation reads don't grow with the session, the block or the agent. Exceptions
//! are listed here, each with its reason.
//!
//! Reads are counted in steps of SQLite's virtual machine: each row takes a few.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::examples::{Example, examples, populated};
use crate::{Alice, ids};
use api::table::OPERATIONS;
use base::database::{Database, atomically};
use base::error::Error;

const SHORT: usize = 1_000;
const LONG: usize = 10_000;

/// The number of the newest events, which no summary covers.
const TAIL: usize = 50;

/// How many more steps the longer data may take: an entry that isn't counted yet is read, and their
/// number varies.
const TOLERANCE: i32 = 1_000;

/// Operations whose reads grow with the data. docs/costs.md lists them, too.
const LINEAR: &[(&str, &str)] = &[
    ("deleteSession", "it deletes all that the session has"),
    ("clearMessages", "it deletes all that was said"),
    ("forkSession", "it copies the path and the session's memory"),
    (
        "removeBlock",
        "with `purge`, it deletes all that the block has",
    ),
    (
        "deleteSkill",
        "with `purge`, it looks for copies in the log of each session that loaded the document",
    ),
    ("erase", "so does this with a document"),
    (
        "deleteEntry",
        "with `purge`, it looks for the key in what the block's other entries replaced",
    ),
    ("search", "the first search of an agent builds the index"),
    ("backup", "it writes all that the agent has into a file"),
    (
        "restoreBackup",
        "it compares or writes all that the file holds",
    ),
    ("eraseAgents", "its receipts count what there was"),
    (
        "findMentions",
        "it looks at up to 20,000 rows, or 8 MiB of their texts",
    ),
    (
        "verify",
        "it checks up to 5,000 rows, or 8 MiB of their texts",
    ),
    (
        "loadEvents",
        "with `since` or `actions`, it looks at each event",
    ),
    (
        "learn",
        "it takes up to 8 looks, and searches the entries for each",
    ),
    (
        "consolidate",
        "it passes the entries of other blocks that are newer",
    ),
];

/// Additional requests whose data is large.
fn more_examples() -> Vec<Example> {
    let kb = |more: Value| {
        let mut body = json!({"sessionId": "s", "label": "kb"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    [
        ("getBlock", json!({"label": "kb"})),
        (
            "setEntry",
            kb(json!({"key": "k", "content": "x", "supersedes": ["grown-7"]})),
        ),
        ("deleteEntry", kb(json!({"key": "replacer"}))),
        ("searchContext", kb(json!({"query": "rains"}))),
        ("searchContext", kb(json!({"query": "marmalade"}))),
        ("listEntries", kb(json!({"limit": 20, "cursor": "grown-5"}))),
        (
            "loadEvents",
            json!({"sessionId": "s", "actions": ["compaction"]}),
        ),
        (
            "loadEvents",
            json!({"sessionId": "s", "limit": 20, "tail": true}),
        ),
        (
            "getHistory",
            json!({"sessionId": "s", "limit": 20, "forModel": true}),
        ),
        ("compact", json!({"sessionId": "s", "dryRun": true})),
        (
            "buildWorkingContext",
            json!({"sessionId": "s", "memory": true, "maxTokens": 3_000}),
        ),
    ]
    .into_iter()
    .map(|(operation, body)| Example { operation, body })
    .collect()
}

/// An agent like that of [`populated`], with so many events in session `s`, all but the
/// newest behind a summary, so many entries in each `kb`, and so many sessions.
fn grown(count: usize) -> Alice {
    let alice = populated();
    let db = &alice.db;
    let mut first = Value::Null;
    for _ in 0..count / 1_000 {
        let events = vec![json!({"action": "user_message", "content": "It rains in Oslo."}); 1_000];
        let outcome = alice.ok("appendEvents", json!({"sessionId": "s", "events": events}));
        if first.is_null() {
            first = json!(ids(&outcome["events"])[0]);
        }
    }
    let newest = json!({"sessionId": "s", "limit": TAIL, "tail": true});
    let tail = ids(&alice.ok("loadEvents", newest));
    alice.ok(
        "addCompaction",
        json!({"sessionId": "s", "summary": "It rained.", "fromId": first, "toId": tail[0]}),
    );
    let numbers = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {})",
        count - 10
    );
    for scope in ["", "s"] {
        let sql = format!(
            "{numbers}
             INSERT INTO cf_agents_entries (number, scope, block, key, content, created_at, updated_at)
             SELECT newest + n, '{scope}', 'kb', 'grown-' || n, 'It rains.', 1000000, 1000000
               FROM numbers,
                    (SELECT max(number) AS newest
                       FROM cf_agents_entries
                      WHERE scope = '{scope}'
                        AND block = 'kb')"
        );
        db.run(&sql, &[]).unwrap();
    }
    db.run(
        "INSERT INTO cf_agents_entries_search (rowid, stems, words, about)
         SELECT number, 'it rain', 'it rains', 'grown'
           FROM cf_agents_entries
          WHERE key LIKE 'grown-%'",
        &[],
    )
    .unwrap();
    let replacer = json!({"sessionId": "s", "label": "kb", "key": "replacer", "content": "x",
                          "supersedes": ["grown-8"]});
    alice.ok("setEntry", replacer);
    let sql = format!(
        "{numbers}
         INSERT INTO cf_agents_sessions (id, agent_id, created_at, updated_at, settled_at)
         SELECT 'grown-' || n, 'alice', 1000000, 1000000, 1000000 FROM numbers"
    );
    db.run(&sql, &[]).unwrap();
    // The sessions' own writes do the same.
    for _ in 0..count / 16 {
        conversation::session::activity::trim_window(db).unwrap();
    }
    alice
}

/// The steps of a request, which is rolled back afterwards.
fn steps_of(alice: &Alice, example: &Example) -> i32 {
    let mut steps = 0;
    let outcome: Result<(), Error> = atomically(&alice.db, || {
        alice.db.take_steps();
        let answer = alice.call(example.operation, example.body.clone());
        steps = alice.db.take_steps();
        answer.map(drop)?;
        Err(Error::invalid("test", "taken back"))
    });
    let error = outcome.unwrap_err();
    assert_eq!(
        error.message, "taken back",
        "{} {}",
        example.operation, example.body
    );
    steps
}

#[test]
fn only_the_listed_operations_read_more_as_data_grows() {
    let known: BTreeSet<&str> = OPERATIONS.iter().map(|entry| entry.name).collect();
    assert!(LINEAR.iter().all(|(name, _)| known.contains(name)));
    let [short, long] = [SHORT, LONG].map(grown);
    let mut grew = Vec::new();
    let mut unneeded: BTreeSet<&str> = LINEAR.iter().map(|(name, _)| *name).collect();
    for example in examples().into_iter().chain(more_examples()) {
        let (before, after) = (steps_of(&short, &example), steps_of(&long, &example));
        if after <= before + before / 20 + TOLERANCE {
            continue;
        }
        unneeded.remove(example.operation);
        if !LINEAR.iter().any(|(name, _)| *name == example.operation) {
            grew.push(format!(
                "{} {}: {before} steps with {SHORT}, {after} with {LONG}",
                example.operation, example.body
            ));
        }
    }
    assert!(grew.is_empty(), "{}", grew.join("\n"));
    assert!(unneeded.is_empty(), "no longer linear: {unneeded:?}");
}
