//! The rows that the Agents SDK left in the object, read in pages.

use serde_json::{Value, json};

use crate::Alice;
use base::database::Database;

fn run(alice: &Alice, sql: &str) {
    alice.db.run(sql, &[]).unwrap();
}

/// The pages from the first to the last.
fn pages(alice: &Alice) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let page = alice.ok("loadForeignRows", json!({"cursor": cursor}));
        pages.push(page["rows"].as_array().unwrap().clone());
        cursor = page["cursor"].clone();
        if cursor.is_null() {
            return pages;
        }
        assert!(pages.len() < 100);
    }
}

#[test]
fn an_agents_own_object_has_no_foreign_rows() {
    let alice = Alice::with_session();
    alice.append_texts(&["Hello."]);
    assert_eq!(
        alice.ok("loadForeignRows", json!({})),
        json!({"rows": [], "cursor": null})
    );
}

#[test]
fn rows_are_returned_unchanged_and_kept() {
    let alice = Alice::with_session();
    // Columns of one version of the SDK, one with a name that SQL has to quote.
    run(
        &alice,
        "CREATE TABLE assistant_messages (id TEXT PRIMARY KEY, \"an \"\"odd\"\" name\" TEXT, content TEXT NOT NULL, share REAL, created_at INTEGER)",
    );
    run(
        &alice,
        "INSERT INTO assistant_messages VALUES ('m', 'x', '{\"a\":\"é\"}', 0.5, 7), ('n', NULL, x'00', NULL, NULL)",
    );
    run(
        &alice,
        "CREATE TABLE cf_agents_session_attachment_chunks (hash TEXT, idx INTEGER, data BLOB)",
    );
    run(
        &alice,
        "INSERT INTO cf_agents_session_attachment_chunks VALUES ('h', 0, x'00ff10')",
    );
    // Tables that an importer has nothing to do with.
    run(
        &alice,
        "CREATE TABLE cf_agents_mcp_servers (id TEXT, auth TEXT)",
    );
    run(
        &alice,
        "INSERT INTO cf_agents_mcp_servers VALUES ('s', 'a credential')",
    );
    let before = alice.db.dump();
    assert_eq!(
        alice.ok("loadForeignRows", json!({})),
        json!({"rows": [
            {"table": "cf_agents_session_attachment_chunks", "row": {"hash": "h", "idx": 0, "data": "AP8Q"}},
            {"table": "assistant_messages", "row": {"id": "m", "an \"odd\" name": "x", "content": "{\"a\":\"é\"}", "share": 0.5, "created_at": 7}},
            {"table": "assistant_messages", "row": {"id": "n", "an \"odd\" name": null, "content": null, "share": null, "created_at": null}}
        ], "cursor": null})
    );
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn a_page_is_bounded_and_no_row_is_missed() {
    let alice = Alice::with_session();
    run(
        &alice,
        "CREATE TABLE assistant_messages (id INTEGER PRIMARY KEY, content TEXT)",
    );
    run(
        &alice,
        "CREATE TABLE cf_agents_session_attachment_chunks (hash TEXT, idx INTEGER, data BLOB)",
    );
    run(
        &alice,
        "INSERT INTO cf_agents_session_attachment_chunks VALUES ('h', 0, zeroblob(1900000)), ('h', 1, zeroblob(400000))",
    );
    run(
        &alice,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250)
         INSERT INTO assistant_messages SELECT i, 'm' || i FROM n",
    );
    let pages = pages(&alice);
    // The longest row is a page by itself, with all of its bytes.
    assert_eq!(pages[0].len(), 1);
    let data = pages[0][0]["row"]["data"].as_str().unwrap();
    assert_eq!(data.len(), 1_900_000_usize.div_ceil(3) * 4);
    assert!(pages.iter().all(|page| page.len() <= 101));
    let rows: Vec<&Value> = pages.iter().flatten().collect();
    let ids = rows.iter().skip(2).map(|row| row["row"]["id"].as_i64());
    assert!(ids.eq((1..=250).map(Some)));
}

#[test]
fn an_invalid_cursor_is_refused_and_one_past_the_end_is_empty() {
    let alice = Alice::with_session();
    run(
        &alice,
        "CREATE TABLE assistant_messages (id TEXT PRIMARY KEY)",
    );
    for cursor in [
        "", "x", "1", "1.x", "-1.[]", "1.7", "1.{}", "1.[null]", "1.[[7]]", "6.[1, 2]",
    ] {
        let refused = alice.refused("loadForeignRows", json!({"cursor": cursor}));
        assert_eq!(refused, "invalid_request", "{cursor}");
    }
    let end = json!({"rows": [], "cursor": null});
    for cursor in [
        "99.[]",
        "0.[1000]",
        "6.[1000]",
        "18446744073709551615.[18446744073709551615]",
    ] {
        let page = alice.ok("loadForeignRows", json!({"cursor": cursor}));
        assert_eq!(page, end, "{cursor}");
    }
}

/// Fills the SDK's tables of messages, one with row ids and one without, and reads them.
/// Returns the statements' steps from each page to the next.
fn steps_of_pages(messages: usize) -> Vec<i32> {
    let alice = Alice::with_session();
    run(
        &alice,
        "CREATE TABLE cf_agents_session_messages (session_id TEXT NOT NULL, id TEXT NOT NULL, content TEXT, PRIMARY KEY (session_id, id)) WITHOUT ROWID",
    );
    run(
        &alice,
        "CREATE TABLE assistant_messages (id TEXT PRIMARY KEY, content TEXT)",
    );
    for table in [
        "cf_agents_session_messages SELECT 's' || i % 3, ",
        "assistant_messages SELECT ",
    ] {
        let sql = format!(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {messages})
             INSERT INTO {table} 'm' || i, 'said' FROM n"
        );
        run(&alice, &sql);
    }
    let mut cursor = Value::Null;
    let mut steps = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    loop {
        alice.db.take_steps();
        let page = alice.ok("loadForeignRows", json!({"cursor": cursor}));
        steps.push(alice.db.take_steps());
        seen.extend(
            page["rows"]
                .as_array()
                .unwrap()
                .iter()
                .map(Value::to_string),
        );
        cursor = page["cursor"].clone();
        if cursor.is_null() {
            assert_eq!(seen.len(), 2 * messages, "each row is returned once");
            return steps;
        }
    }
}

#[test]
fn a_page_costs_the_same_at_any_position() {
    let steps = steps_of_pages(3_000);
    assert!(steps.len() >= 60, "{steps:?}");
    let full = &steps[1..29];
    let (least, most) = (full.iter().min().unwrap(), full.iter().max().unwrap());
    assert!(most * 10 < least * 12, "{steps:?}");
    let full = &steps[32..59];
    let (least, most) = (full.iter().min().unwrap(), full.iter().max().unwrap());
    assert!(most * 10 < least * 12, "{steps:?}");
}
