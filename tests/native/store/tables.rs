//! Every table is in the list of tables (`lifecycle/tables.rs`), and takes part in everything that
//! is done to a session. The tests read the names of the tables from SQLite's catalog, in an object
//! that has rows in every table.

use std::collections::BTreeSet;

use serde_json::json;

use crate::Alice;
use crate::store::upgrades::make::{UNFINISHED_IMPORT, make, outbound};
use crate::store::upgrades::rows_of;
use api::table::find_entry;
use api::transfer::begin_import;
use base::database::Database;
use base::tables::{Deletion, ExportRule, ForkRule, RowOwner, Table};
use chat::run::resume::resume_some_turns;
use lifecycle::tables::tables;

/// The names of the tables that something leaves out.
fn left_out(is_left_out: impl Fn(&Table) -> bool) -> Vec<&'static str> {
    let tables = tables().filter(|table| is_left_out(table));
    tables.map(|table| table.name).collect()
}

fn names(tables: Vec<String>) -> BTreeSet<String> {
    tables.into_iter().collect()
}

fn without(tables: BTreeSet<String>, left_out: &[&str]) -> BTreeSet<String> {
    let is_listed = |table: &String| !left_out.contains(&table.as_str());
    tables.into_iter().filter(is_listed).collect()
}

#[test]
fn each_migrated_table_has_a_descriptor() {
    let db = Alice::default().db;
    // Without the shadow tables of virtual tables.
    let sql = "SELECT t.name
                 FROM sqlite_master AS t
                WHERE t.type = 'table'
                  AND NOT EXISTS (SELECT 1
                                    FROM sqlite_master AS v
                                   WHERE v.sql LIKE 'CREATE VIRTUAL TABLE%'
                                     AND t.name IN (v.name || '_data', v.name || '_idx', v.name || '_docsize', v.name || '_config', v.name || '_content'))";
    let rows = db.rows(sql, &[]).unwrap();
    let made = names(
        rows.iter()
            .map(|row| row.text(0).unwrap().to_owned())
            .collect(),
    );
    let listed: Vec<String> = tables().map(|table| table.name.to_owned()).collect();
    assert_eq!(
        names(listed),
        made,
        "left: the list in lifecycle/tables.rs; right: the existing tables"
    );
    assert_eq!(tables().count(), made.len(), "a table has two lines");
    // `destroy` drops the tables whose names have this prefix.
    assert!(made.iter().all(|name| name.starts_with("cf_agents_")));
}

#[test]
fn a_fork_copies_every_column() {
    let db = Alice::default().db;
    for table in tables() {
        let (RowOwner::Session(owner), ForkRule::Copy { columns }) = (table.owner, table.fork)
        else {
            continue;
        };
        let copied: Vec<&str> = columns.split(", ").collect();
        let there = db.columns(table.name);
        // A copied row gets a new number.
        let rest = there.iter().map(String::as_str);
        let rest: Vec<&str> = rest
            .filter(|name| *name != owner && *name != "number")
            .collect();
        assert_eq!(copied, rest, "{}: its crate's tables.rs", table.name);
    }
}

#[test]
fn the_columns_named_by_descriptors_exist() {
    let db = Alice::default().db;
    for table in tables() {
        let owner = match table.owner {
            RowOwner::Session(column) => Some(column),
            // Every table has a column `rowid`, which isn't listed.
            RowOwner::Through(column, _) if column != "rowid" => Some(column),
            RowOwner::Through(..) | RowOwner::Agent | RowOwner::Event | RowOwner::View => None,
        };
        for column in owner.iter().chain(&table.block) {
            assert!(
                db.columns(table.name).iter().any(|name| name == column),
                "{}.{column}: its crate's tables.rs",
                table.name
            );
        }
    }
}

/// A table with a column for a block's key contains content of the block, which is purged with the
/// block. The exceptions are listed here.
#[test]
fn a_blocks_content_is_purged_with_the_block() {
    let db = Alice::default().db;
    for table in tables() {
        let has_key = |name: &String| name == "block" || name == "key";
        let names_block = db.columns(table.name).iter().any(has_key);
        let is_other = match table.name {
            // The block's definition, and the documents that a session has loaded.
            "cf_agents_blocks" | "cf_agents_loaded_skills" => true,
            name => name == "cf_agents_config",
        };
        assert_eq!(
            table.block.is_some(),
            names_block && !is_other,
            "{}: its crate's tables.rs",
            table.name
        );
    }
}

#[test]
fn the_operations_named_by_descriptors_exist() {
    for table in tables() {
        if let ExportRule::ShownBy(operation) = table.file {
            assert!(find_entry(operation).is_ok(), "{operation}");
        }
    }
}

#[test]
fn a_fork_has_rows_in_the_same_tables_as_its_original() {
    let alice = make(true);
    for session in ["s", "mixed", "talked"] {
        let fork = alice.ok("forkSession", json!({"sessionId": session}));
        let copied = names(rows_of(&alice.db, fork["id"].as_str().unwrap()));
        let original = without(
            names(rows_of(&alice.db, session)),
            &left_out(|table| matches!(table.fork, ForkRule::Nothing(_))),
        );
        let missing: Vec<_> = original.difference(&copied).collect();
        assert!(
            missing.is_empty(),
            "{session}: no rows in the fork: {missing:?}"
        );
    }
}

#[test]
fn an_import_has_rows_in_the_same_tables_as_its_export() {
    let alice = make(true);
    for session in ["s", "mixed", "talked"] {
        let file = alice.export(session).unwrap();
        let bob = Alice {
            outbound: outbound(),
            ..Alice::default()
        };
        bob.import(session, &file).unwrap();
        let imported = names(rows_of(&bob.db, session));
        let original = without(
            names(rows_of(&alice.db, session)),
            &left_out(|table| {
                matches!(table.file, ExportRule::Rebuilt(_) | ExportRule::Nothing(_))
            }),
        );
        let missing: Vec<_> = original.difference(&imported).collect();
        assert!(
            missing.is_empty(),
            "{session}: not in the file: {missing:?}"
        );
    }
}

#[test]
fn an_interrupted_import_leaves_no_rows() {
    let alice = make(true);
    let file = alice.export("mixed").unwrap();
    let bob = Alice {
        outbound: outbound(),
        ..Alice::default()
    };
    let before = bob.db.dump();
    // The import gets all lines but the last, one by one, and is never finished.
    let lines: Vec<&str> = file.split_inclusive('\n').collect();
    let mut import = begin_import(&bob.agent(&bob.db), "mixed".to_owned(), true).unwrap();
    for line in &lines[..lines.len() - 1] {
        import.push(&bob.db, &bob.host, line.as_bytes()).unwrap();
    }
    import.abandon(&bob.db).unwrap();
    assert!(bob.db.dump() == before);
    // A session that is created under the import's id has no rows of the import.
    alice.ok("createSession", json!({"id": UNFINISHED_IMPORT}));
    assert_eq!(rows_of(&alice.db, UNFINISHED_IMPORT), [] as [&str; 0]);
}

#[test]
fn a_deleted_session_leaves_no_rows() {
    let alice = make(true);
    // `deleteSession` would only ask a running turn to stop, so the turns are resumed and dropped.
    drop(resume_some_turns(&alice.agent(&alice.db)));
    let count = |table: &str| {
        let rows = alice
            .db
            .rows(&format!("SELECT 1 FROM {table}"), &[])
            .unwrap();
        rows.len()
    };
    let listed = alice.ok("listSessions", json!({}));
    for session in crate::ids(&listed["sessions"]) {
        alice.ok("deleteSession", json!({"sessionId": session}));
        assert_eq!(rows_of(&alice.db, &session), [] as [&str; 0], "{session}");
    }
    alice.ok("createSession", json!({"id": UNFINISHED_IMPORT}));
    alice.ok("deleteSession", json!({"sessionId": UNFINISHED_IMPORT}));
    // The remaining rows belong to the agent, also if a row names its owner by a
    // number.
    for table in tables() {
        let name = table.name;
        match (table.owner, table.deletion) {
            (RowOwner::Agent | RowOwner::View, _) => {}
            (RowOwner::Through(..), _) => {
                assert_eq!(count(name), count("cf_agents_entries"), "{name}");
            }
            (RowOwner::Session("scope"), _) => {
                let sql = format!("SELECT 1 FROM {name} WHERE scope <> ''");
                let rows = alice.db.rows(&sql, &[]).unwrap();
                assert_eq!(rows.len(), 0, "{name} has rows of deleted sessions");
            }
            (
                RowOwner::Session(_) | RowOwner::Event,
                Deletion::WithLog
                | Deletion::WithContext
                | Deletion::WithSession
                | Deletion::Never(_),
            ) => assert_eq!(count(name), 0, "{name} has rows of deleted sessions"),
        }
    }
}

#[test]
fn a_cleared_session_leaves_no_rows_of_its_messages() {
    let alice = make(true);
    drop(resume_some_turns(&alice.agent(&alice.db)));
    let cleared =
        left_out(|table| matches!(table.deletion, Deletion::WithLog | Deletion::WithContext));
    for session in ["s", "mixed", "talked"] {
        let before = names(rows_of(&alice.db, session));
        alice.ok("clearMessages", json!({"sessionId": session}));
        let after = names(rows_of(&alice.db, session));
        let deleted: BTreeSet<&str> = before.difference(&after).map(String::as_str).collect();
        let expected = before.iter().map(String::as_str);
        let expected: BTreeSet<&str> = expected.filter(|name| cleared.contains(name)).collect();
        assert!(
            deleted == expected,
            "{session}: {deleted:?}, not {expected:?}"
        );
    }
}
