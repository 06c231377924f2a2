//! Each table, with text in each column: no text remains when all its owners are purged. The tables
//! and columns come from the list of tables and from SQLite's catalog, so a forgotten table fails
//! here.

use serde_json::{Value, json};

use super::{NEEDLE, places_after_purge, places_of_needle};
use crate::Alice;
use crate::store::upgrades::make::{UNFINISHED_IMPORT, make};
use base::database::{Database as _, Delete, atomically};
use base::error::Result;
use base::tables::{PurgeRule, Table};
use base::testing::Sqlite;
use conversation::tables::EVENTS;
use lifecycle::tables::tables;
use memory::purge::renew_tables;
use store::erased::Erased;
use store::erasing::{ErasingDatabase, Overwrite};
use store::schema::zeros::empty_free_pages;

/// The columns of a table whose text is overwritten.
fn texts_of(table: &Table) -> &'static [&'static str] {
    match table.purge {
        PurgeRule::Overwritten { texts, .. } | PurgeRule::Parts { texts, .. } => texts,
        PurgeRule::Merged | PurgeRule::Nothing(_) => &[],
    }
}

/// Columns that contain identifiers, in any table: no user text.
const NAMES: &[&str] = &[
    "id",
    "agent_id",
    "session_id",
    "parent_session_id",
    "parent_id",
    "from_id",
    "to_id",
    "event_id",
    "turn_id",
    "message_id",
    "tool_call_id",
    "scope",
    "retention",
    "block",
    "label",
    "key",
    "replacer",
    "kind",
    "status",
    "action",
    "type",
    "field",
    "hash",
    "model",
    "token",
    "when_changed",
    "written_by",
    // Where a bucket's listing comes from, and the author of a block's text.
    "source",
    "origin",
    // Numbers, as JSON.
    "usage_days",
    "calibration",
];

#[test]
fn each_text_column_is_overwritten_or_is_an_identifier() {
    let db = Alice::default().db;
    for table in tables() {
        if matches!(table.purge, PurgeRule::Nothing(_) | PurgeRule::Merged) {
            continue;
        }
        let columns: Vec<String> = db
            .columns(table.name)
            .into_iter()
            .filter(|column| is_text(&db, table.name, column))
            .collect();
        for column in columns {
            let is_named = texts_of(table).contains(&column.as_str());
            assert!(
                is_named || NAMES.contains(&column.as_str()),
                "{}.{column}: does it hold text? Say so in the tables.rs of its crate, or in NAMES here",
                table.name
            );
        }
        for column in texts_of(table) {
            assert!(
                db.columns(table.name).iter().any(|name| name == column),
                "{}.{column}: no such column",
                table.name
            );
        }
    }
}

/// Whether the table's statement declares the column as text.
fn is_text(db: &Sqlite, table: &str, column: &str) -> bool {
    let sql = "SELECT sql FROM sqlite_master WHERE name = ?1";
    let rows = db.rows(sql, &[table.into()]).unwrap();
    let statement = rows[0].text(0).unwrap().to_owned();
    let mut words = statement.split_whitespace();
    while let Some(word) = words.next() {
        if word.trim_start_matches('(') == column {
            return words.next().is_some_and(|kind| kind.starts_with("TEXT"));
        }
    }
    false
}

#[test]
fn each_count_of_a_table_is_in_the_receipt() {
    let mut erased = Erased::default();
    for table in tables() {
        if let PurgeRule::Overwritten {
            counted: Some(name),
            ..
        }
        | PurgeRule::Parts { counted: name, .. } = table.purge
        {
            assert!(erased.count_of(name).is_some(), "{}: {name}", table.name);
        }
    }
}

/// Writes the needle into each column with text, in every row.
fn fill_with_needle(db: &Sqlite) {
    for table in tables() {
        for column in texts_of(table) {
            // A block whose backend can't be read can't be removed.
            if *column == "source" {
                continue;
            }
            // JSON stays JSON, since deletions read some of it.
            let sql = format!(
                "UPDATE {table}
                    SET {column} = CASE
                          WHEN {column} IS NULL THEN NULL
                          WHEN json_valid({column}) AND json_type({column}) = 'object'
                          THEN json_set({column}, '$.{NEEDLE}', '{NEEDLE}')
                          WHEN '{column}' = 'tags'
                          THEN json_insert({column}, '$[#]', '{NEEDLE}')
                          WHEN json_valid({column}) AND json_type({column}) = 'array'
                          THEN {column}
                          ELSE {column} || ' {NEEDLE}'
                        END",
                table = table.name,
            );
            db.run(&sql, &[]).unwrap();
        }
        if table.purge == PurgeRule::Merged {
            let sql = format!(
                "INSERT OR REPLACE INTO {name} (rowid, stems, words, about)
                 SELECT rowid, '{NEEDLE}', '{NEEDLE}', '{NEEDLE}' FROM {name}",
                name = table.name
            );
            db.run(&sql, &[]).unwrap();
        }
    }
}

#[test]
fn after_purging_everything_no_table_contains_its_text() {
    let alice = make(true);
    fill_with_needle(&alice.db);
    let before = places_of_needle(&alice.db);
    println!("purge: text in {} columns", before.len());
    for table in tables() {
        for column in texts_of(table) {
            let place = format!("{}.{column}", table.name);
            // Positions of media, names of messages and of listings are lists.
            let is_list = ["media", "message_ids", "skills", "source", "changes"].contains(column);
            assert!(is_list || before.contains(&place), "nothing in {place}");
        }
        if table.purge == PurgeRule::Merged {
            let place = format!("{}_data.block", table.name);
            assert!(before.contains(&place), "nothing in {place}: {before:?}");
        }
    }
    let mut sum = 0;
    // The contract has no answer for the current values of the sessions' own columns.
    let listed = alice.db.rows("SELECT id FROM cf_agents_sessions", &[]);
    let listed = listed.unwrap().into_iter();
    let mut sessions: Vec<String> = listed.map(|row| row.text(0).unwrap().to_owned()).collect();
    sessions.push(UNFINISHED_IMPORT.to_owned());
    for session in sessions {
        let receipt = alice.ok(
            "deleteSession",
            json!({"sessionId": session, "purge": true}),
        );
        sum += receipt["erased"]["events"].as_i64().unwrap();
        assert!(receipt["digest"].is_string());
    }
    assert!(sum > 500, "{sum} events");
    let blocks = alice.ok("getBlocks", json!({}));
    for block in blocks.as_array().unwrap() {
        let label = &block["label"];
        alice.ok("removeBlock", json!({"label": label, "purge": true}));
    }
    // A hidden deployed block has a row with its definition.
    alice.ok("removeBlock", json!({"label": "unwanted", "purge": true}));
    let left = places_after_purge(&alice.db);
    assert!(left.is_empty(), "{left:?}");
}

/// Whether a statement of a purge is refused. Its changes are rolled back.
fn is_refused(db: &Sqlite, sql: &str) -> bool {
    let outcome: Result<()> = atomically(db, || {
        let erasing = ErasingDatabase::of_purge(db)?;
        erasing.run(sql, &[])?;
        println!("not refused: {sql}");
        Ok(())
    });
    outcome.is_err()
}

#[test]
fn a_purge_changes_text_only_through_typed_calls() {
    let alice = make(true);
    let before = alice.db.dump();
    let count = |name: &str| {
        let sql = format!("SELECT count(*) FROM {name}");
        alice.db.rows(&sql, &[]).unwrap()[0].integer(0).unwrap()
    };
    let mut tried = 0;
    for table in tables() {
        let (name, texts) = (table.name, texts_of(table));
        if texts.is_empty() && table.purge != PurgeRule::Merged {
            continue;
        }
        // The effect in SQLite decides, not the text of the statement.
        let mut others = vec![
            format!("DELETE FROM {name}"),
            format!("delete from main.{name} where true"),
            format!(
                "WITH all_rows AS (SELECT rowid_ FROM (SELECT 1 AS rowid_))
                 DELETE FROM {name} WHERE EXISTS (SELECT 1 FROM all_rows)"
            ),
        ];
        if !texts.is_empty() {
            others.push(format!(
                "INSERT OR REPLACE INTO {name} SELECT * FROM {name}"
            ));
        }
        // If a text is NULL in each row, there is nothing to erase.
        let filled = texts.iter().filter(|text| {
            let sql = format!("SELECT 1 FROM {name} WHERE trim({text}, '0') <> '' LIMIT 1");
            !alice.db.rows(&sql, &[]).unwrap().is_empty()
        });
        for text in filled {
            others.push(format!("UPDATE {name} SET {text} = 'x'"));
            // Zeros, as an overwritten text has them, but of another length.
            others.push(format!(
                "UPDATE {name} SET {text} = substr(hex(zeroblob(octet_length({text}) + 1)), 1, octet_length({text}) + 1)"
            ));
        }
        assert!(count(name) > 0, "{name} has no row");
        for other in others {
            assert!(is_refused(&alice.db, &other), "{other}");
            tried += 1;
        }
    }
    assert!(tried > 100, "{tried}");
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn text_is_overwritten_in_place_and_deletions_are_counted() {
    let alice = Alice::with_session();
    alice.append_texts(&["one", "two"]);
    let erasing = ErasingDatabase::of_purge(&alice.db).unwrap();
    let contents = Overwrite {
        table: EVENTS,
        columns: &["content"],
        condition: "session_id = 's'",
        params: &[],
    };
    assert_eq!(erasing.overwrite(&contents).unwrap(), 2);
    // A text that is overwritten may be replaced.
    let sql = "UPDATE cf_agents_events SET content = 'gone' WHERE seq = 1";
    erasing.run(sql, &[]).unwrap();
    // No row meets a condition on its text any more once the text is overwritten.
    let by_text = Delete::from(EVENTS, "content = 'gone'", &[]);
    assert!(by_text.run(&erasing).is_err());
    assert_eq!(
        Delete::from(EVENTS, "seq = 2", &[]).run(&erasing).unwrap(),
        1
    );
}

#[test]
fn ordinary_deletions_are_typed_too() {
    let alice = Alice::with_session();
    alice.append_texts(&["one", "two"]);
    let events = "cf_agents_events";
    for other in [
        format!("DELETE FROM {events} WHERE seq = 1"),
        format!("WITH one AS (SELECT 1 AS seq) DELETE FROM {events} WHERE seq IN one"),
        format!("INSERT OR REPLACE INTO {events} SELECT * FROM {events} WHERE seq = 1"),
    ] {
        assert!(alice.db.run(&other, &[]).is_err(), "{other}");
    }
    assert_eq!(Delete::all(EVENTS).run(&alice.db).unwrap(), 2);
}

/// The answers of reads and searches.
fn reads(alice: &Alice) -> Vec<Value> {
    let mut reads = vec![
        alice.ok("search", json!({"query": "zeppelin"})),
        alice.ok(
            "searchContext",
            json!({"label": "kb", "query": "umbrella drizzle"}),
        ),
        alice.ok("listEntries", json!({"label": "kb"})),
        alice.ok("getBlocks", json!({})),
    ];
    for session in ["s", "mixed", "talked"] {
        reads.push(alice.ok("loadEvents", json!({"sessionId": session, "limit": 1000})));
        reads.push(alice.ok("getCompactions", json!({"sessionId": session})));
        reads.push(alice.ok("getChanges", json!({"sessionId": session})));
    }
    reads
}

#[test]
fn rewriting_tables_does_not_change_reads() {
    let alice = make(true);
    // The index is half built in that agent.
    alice.ok("search", json!({"query": "zeppelin"}));
    let before = reads(&alice);
    let tables: Vec<&str> = tables()
        .filter(|table| !matches!(table.purge, PurgeRule::Nothing(_)))
        .map(|table| table.name)
        .collect();
    for _ in 0..2 {
        renew_tables(&alice.db, &tables, 0).unwrap();
        empty_free_pages(&alice.db).unwrap();
        assert_eq!(reads(&alice), before);
    }
    // The tables accept more rows, and find each by its keys and indexes.
    let id = alice.append_texts(&["after"]).remove(0);
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": [id], "purge": true}),
    );
    alice.ok(
        "setEntry",
        json!({"label": "kb", "key": "umbrella", "content": "new"}),
    );
}
