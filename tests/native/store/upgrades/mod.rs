//! Objects that older builds stored, as files in tests/upgrades, which this build opens. The files
//! never change, because they represent deployed objects.
//!
//! Each version of the tables has two files: an object that was searched, and one that was not. A
//! third file contains the answers of reads at that time. `FIXTURES=1 cargo test
//! the_newest_schema`, run on the commit that adds a migration, creates the files of the newest
//! version and changes no others.

pub mod make;
mod reads;

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::Dice;
use crate::shared::long::{games, is_long};
use crate::shared::naive_tree::{NaiveTree, Rules};
use crate::{Alice, ids};
use base::database::Database;
use base::outbound::Endpoint;
use base::testing::{Failing, FixedHost, ScriptedAnswer, Sqlite, wait_for};
use chat::run::cycle::run;
use chat::run::resume::resume_some_turns;
use chat::turn::store::MAX_RESUMED;
use make::{INTERRUPTED, QUEUED, UNFINISHED_IMPORT};
use reads::{agrees, read_all};
use store::schema;

struct Fixture {
    /// The file's name without its ending, such as `0010-searched`.
    name: String,
    file: Vec<u8>,
    /// The answers of reads when the file was created.
    reads: Value,
}

impl Fixture {
    fn is_searched(&self) -> bool {
        self.name.ends_with("-searched")
    }

    /// The object as it is stored, before any request.
    fn stored(&self) -> Sqlite {
        Sqlite::from_file(&self.file)
    }

    /// The object at its first request to this build.
    fn opened(&self) -> Alice {
        let alice = Alice {
            db: self.stored(),
            host: FixedHost::later(),
            outbound: make::outbound(),
            ..Alice::default()
        };
        schema::migrate(&alice.db, &alice.host).unwrap();
        alice
    }
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join("tests/upgrades")
}

fn fixtures() -> Vec<Fixture> {
    let mut names: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".db").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 2);
    let read = |name: String| fs::read(folder().join(name)).unwrap();
    let fixture = |name: String| Fixture {
        file: read(format!("{name}.db")),
        reads: serde_json::from_slice(&read(format!("{}.json", &name[..4]))).unwrap(),
        name,
    };
    names.into_iter().map(fixture).collect()
}

/// Creates the files of the newest number, if `FIXTURES` is set and the files are missing.
fn make_missing() {
    let number = format!("{:04}", schema::newest());
    let answers_path = folder().join(format!("{number}.json"));
    if std::env::var_os("FIXTURES").is_none() || answers_path.exists() {
        return;
    }
    let [searched, unsearched] =
        [("searched", true), ("unsearched", false)].map(|(ending, is_searched)| {
            let fixture = Fixture {
                name: format!("{number}-{ending}"),
                file: make::make(is_searched).db.into_file(),
                reads: Value::Null,
            };
            fs::write(folder().join(format!("{}.db", fixture.name)), &fixture.file).unwrap();
            // Some reads write an index or a frozen prompt, so they run on a copy.
            read_all(&fixture.opened())
        });
    assert_eq!(searched, unsearched);
    let lines: Vec<String> = searched.iter().map(Value::to_string).collect();
    fs::write(answers_path, format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
}

#[test]
fn the_newest_schema_has_a_fixture() {
    make_missing();
    for ending in ["searched", "unsearched"] {
        let name = format!("{:04}-{ending}.db", schema::newest());
        assert!(
            folder().join(&name).exists(),
            "tests/upgrades/{name} is missing: a migration was added. Run `FIXTURES=1 cargo test the_newest_schema` and commit what it makes."
        );
    }
}

#[test]
fn a_setting_equal_to_the_default_counts_as_unset() {
    let db = Sqlite::from_file(&fs::read(folder().join("0015-unsearched.db")).unwrap());
    let stored = json!({"model": "demo", "systemInstructions": [], "maxSteps": 10,
        "sessionSearch": false, "vectors": true, "reservedMetadataKeys": []});
    let sql = "UPDATE cf_agents_config SET value = ?1 WHERE key = 'agent'";
    db.run(sql, &[stored.to_string().into()]).unwrap();
    let alice = Alice {
        db,
        host: FixedHost::later(),
        ..Alice::default()
    };
    schema::migrate(&alice.db, &alice.host).unwrap();
    let config = alice.ok("getConfig", json!({}));
    for (name, origin) in config["origins"].as_object().unwrap() {
        let is_own = ["model", "vectors"].contains(&name.as_str());
        let expected = if is_own { "agent" } else { "built-in" };
        assert_eq!(origin, expected, "{name}");
    }
    assert_eq!(config["model"], "demo");
}

/// Every table has rows, and every column has a value that isn't empty. So `make.rs`
/// can't forget a column that is newer than itself.
#[test]
fn each_fixture_fills_every_column_of_every_table() {
    for fixture in fixtures() {
        let db = fixture.stored();
        for table in tables(&db) {
            let of_the_index =
                table.starts_with("cf_agents_search") || table == "cf_agents_event_vectors";
            if of_the_index && !fixture.is_searched() {
                continue;
            }
            for column in db.columns(&table) {
                let sql = format!("SELECT 1 FROM \"{table}\" WHERE \"{column}\" <> 0 LIMIT 1");
                let found = db.rows(&sql, &[]).unwrap();
                assert_eq!(
                    found.len(),
                    1,
                    "{} has nothing in {table}.{column}: fill it in make.rs, delete the files of this number, and make them again",
                    fixture.name
                );
            }
        }
    }
}

/// The tables that contain rows: neither virtual tables nor their shadow tables.
pub fn tables(db: &Sqlite) -> Vec<String> {
    let sql = "SELECT t.name
                 FROM sqlite_master AS t
                WHERE t.type = 'table'
                  AND t.name GLOB 'cf_agents_*'
                  AND t.sql NOT LIKE 'CREATE VIRTUAL TABLE%'
                  AND NOT EXISTS (SELECT 1
                                    FROM sqlite_master AS v
                                   WHERE v.sql LIKE 'CREATE VIRTUAL TABLE%'
                                     AND t.name IN (v.name || '_data', v.name || '_idx', v.name || '_docsize', v.name || '_config', v.name || '_content'))
                ORDER BY t.name";
    let rows = db.rows(sql, &[]).unwrap();
    rows.iter()
        .map(|row| row.text(0).unwrap().to_owned())
        .collect()
}

/// The names of the tables that have a row of this session.
pub fn rows_of(db: &Sqlite, session_id: &str) -> Vec<String> {
    let mut found = Vec::new();
    for table in tables(db) {
        for column in ["session_id", "scope"] {
            // In a table with a `scope`, `session_id` is the writer of the row, not its owner.
            let is_owner =
                column == "scope" || !db.columns(&table).iter().any(|name| name == "scope");
            if !is_owner || !db.columns(&table).iter().any(|name| name == column) {
                continue;
            }
            let sql = format!("SELECT 1 FROM {table} WHERE {column} = ?1");
            if !db.rows(&sql, &[session_id.into()]).unwrap().is_empty() {
                found.push(table.clone());
            }
        }
    }
    found
}

/// The feed of the numbers 10 and 11 didn't report that an append changes the message that it
/// joins.
fn leave_out_joined(now: &mut Value, then: &[Value]) {
    let changes = now["changes"].as_array_mut().unwrap();
    changes.retain(|change| change["type"] != "update" || then.contains(change));
}

/// Since the number 34, listings of documents quote texts from files.
fn leave_out_sources(now: &mut Value, then: &mut Value) {
    const QUOTED: &str = " (source: import) > ";
    match (now, then) {
        (Value::Array(now), Value::Array(then)) => {
            now.iter_mut()
                .zip(then)
                .for_each(|(now, then)| leave_out_sources(now, then));
        }
        (Value::Object(now), Value::Object(then)) => {
            for field in ["content", "prompt"] {
                let Some(Value::String(text)) = now.get_mut(field) else {
                    continue;
                };
                if text.contains(QUOTED) {
                    *text = text.replace(QUOTED, ": ");
                    for count in ["tokens", "tokensEstimate"] {
                        now.remove(count);
                        then.remove(count);
                    }
                }
            }
        }
        _ => {}
    }
}

/// A prompt's sentence about an unavailable block no longer contains the reason: it was untrusted.
fn leave_out_reasons(answer: &mut Value) {
    let prompt = answer["prompt"].as_str().unwrap_or_default();
    if !prompt.contains(UNAVAILABLE) {
        return;
    }
    let lines = prompt.lines().map(|line| {
        if line.starts_with(UNAVAILABLE) {
            UNAVAILABLE
        } else {
            line
        }
    });
    answer["prompt"] = lines.collect::<Vec<_>>().join("\n").into();
    answer["tokensEstimate"] = Value::Null;
}

/// The sentences above the blocks of a reminder are a build's own; the blocks are the agent's.
fn leave_out_heading(reminder: &mut Value) {
    let text = reminder["text"].as_str().unwrap_or_default();
    let Some((heading, blocks)) = text.split_once("\n\n") else {
        return;
    };
    assert!(heading.starts_with("These blocks have changed since your instructions were written."));
    reminder["text"] = blocks.into();
}

const UNAVAILABLE: &str = "[The content of this block is unavailable";

#[test]
fn data_of_older_builds_is_consistent() {
    for fixture in fixtures() {
        fixture.opened().assert_consistent(&fixture.name);
    }
}

#[test]
fn reads_return_what_the_writing_build_returned() {
    for fixture in fixtures() {
        let alice = fixture.opened();
        for read in fixture.reads.as_array().unwrap() {
            let mut now =
                reads::answer_of(&alice, read["operation"].as_str().unwrap(), &read["body"]);
            if read["operation"] == "getChanges" && fixture.name.as_str() < "0012" {
                let then = read["answer"]["changes"].as_array().unwrap();
                leave_out_joined(&mut now, then);
            }
            if read["operation"] == "getTools" {
                // A newer build may have more tools.
                let then = read["answer"].as_array().unwrap();
                let tools = now.as_array_mut().unwrap();
                tools.retain(|tool| then.contains(tool));
            }
            let mut then = read["answer"].clone();
            if fixture.name.as_str() < "0034" {
                leave_out_sources(&mut now, &mut then);
            }
            if read["operation"] == "renderPrompt" {
                leave_out_reasons(&mut now);
                leave_out_reasons(&mut then);
            }
            if read["operation"] == "getReminder" {
                leave_out_heading(&mut now);
                leave_out_heading(&mut then);
            }
            if let Err(difference) = agrees(&then, &now, "") {
                panic!(
                    "{}: {} {}: {difference}",
                    fixture.name, read["operation"], read["body"]
                );
            }
        }
    }
}

#[test]
fn reopening_an_object_changes_nothing() {
    for fixture in fixtures() {
        let alice = fixture.opened();
        let before = alice.db.dump();
        schema::migrate(&alice.db, &alice.host).unwrap();
        assert!(alice.db.dump() == before, "{}", fixture.name);
    }
}

#[test]
fn an_older_object_is_exported_and_copied_byte_for_byte() {
    for fixture in fixtures() {
        let file = fixture.opened().export_agent();
        let copy = Alice {
            host: FixedHost::later(),
            outbound: make::outbound(),
            ..Alice::default()
        };
        copy.import_agent(&file).unwrap();
        assert!(copy.export_agent() == file, "{}", fixture.name);
    }
}

/// The quick form tries the oldest objects, searched and not: they pass through every migration.
/// The long form tries the objects of each build.
#[test]
fn a_failed_migration_leaves_the_old_object_unchanged() {
    let tried = if is_long() { usize::MAX } else { 2 };
    for fixture in fixtures().into_iter().take(tried) {
        let (before, migrated) = (fixture.stored().dump(), fixture.opened().db.dump());
        for passing in 0.. {
            let db = fixture.stored();
            let failing = Failing::after(&db, passing);
            let outcome = schema::migrate(&failing, &FixedHost::later());
            if !failing.has_failed() {
                outcome.unwrap();
                break;
            }
            outcome.unwrap_err();
            assert!(db.dump() == before, "{}, statement {passing}", fixture.name);
            schema::migrate(&db, &FixedHost::later()).unwrap();
            assert!(
                db.dump() == migrated,
                "{}, statement {passing}",
                fixture.name
            );
        }
    }
}

#[test]
fn interrupted_turns_end_and_no_tool_runs_twice() {
    for fixture in fixtures() {
        let alice = fixture.opened();
        // The first turn requests a tool server's stale list. The server is unavailable.
        if alice.ok("listTools", json!({}))["servers"].is_array() {
            alice.outbound.answer(Ok(ScriptedAnswer::text(500, "")));
        }
        // One more answer is for the queued message.
        for _ in 0..=INTERRUPTED.len() {
            alice.outbound.answer(make::resumed_answer());
        }
        let before = |session: &str| messages(&alice, session).len();
        let calls_before: Vec<usize> = INTERRUPTED.iter().map(|session| before(session)).collect();
        let mut rounds = 0;
        while alice.has_turn_rows() || alice.waiting_rows() > 0 {
            rounds += 1;
            assert!(rounds <= INTERRUPTED.len(), "{}: turns stay", fixture.name);
            for work in resume_some_turns(&alice.agent(&alice.db)).works {
                wait_for(run(&alice.agent(&alice.db), work));
            }
        }
        for call in alice.outbound.calls.borrow().iter() {
            let is_tool = match &call.endpoint {
                Endpoint::Url(url) => {
                    url.contains("tools.example") && !call.body.contains("tools/list")
                }
                _ => true,
            };
            assert!(!is_tool, "{}: {call:?}", fixture.name);
        }
        if alice.has_session(QUEUED) {
            let reply = messages(&alice, QUEUED);
            assert_eq!(reply.len(), 2, "{}: one question, one answer", fixture.name);
        }
        for (session, calls_before) in INTERRUPTED.iter().zip(calls_before) {
            let name = format!("{}, {session}", fixture.name);
            let messages = messages(&alice, session);
            assert_eq!(messages.len(), 2, "{name}: one question, one answer");
            assert!(calls_before <= 2, "{name}");
            assert!(
                messages[1].to_string().contains("Here I am again."),
                "{name}"
            );
            assert_no_call_is_pending(&messages[1], &name);
        }
    }
}

fn messages(alice: &Alice, session: &str) -> Vec<Value> {
    let page = alice.ok("getHistory", json!({"sessionId": session}));
    page["messages"].as_array().unwrap().clone()
}

fn assert_no_call_is_pending(message: &Value, name: &str) {
    for part in message["parts"].as_array().unwrap() {
        if part["type"].as_str().unwrap().starts_with("tool-") {
            let state = part["state"].as_str().unwrap();
            assert!(state.starts_with("output-"), "{name}: {part}");
        }
    }
}

#[test]
fn pending_calls_can_still_be_answered() {
    for fixture in fixtures() {
        let alice = fixture.opened();
        let mut message = messages(&alice, "open-approval")[1].clone();
        message["parts"][1]["state"] = json!("approval-responded");
        message["parts"][1]["approval"]["approved"] = json!(true);
        alice.outbound.answer(Ok(ScriptedAnswer::text(200, "paid")));
        alice.outbound.answer(make::resumed_answer());
        alice.chat(
            json!({"id": "open-approval", "messages": [crate::shared::turns::user("pay"), message]}),
        );
        let part = &messages(&alice, "open-approval")[1]["parts"][1];
        assert_eq!(part["output"], "paid", "{}", fixture.name);

        let mut message = messages(&alice, "open-client-call")[1].clone();
        message["parts"][1]["state"] = json!("output-available");
        message["parts"][1]["output"] = json!({"place": "Rome"});
        alice.outbound.answer(make::resumed_answer());
        alice.chat(
            json!({"id": "open-client-call", "messages": [crate::shared::turns::user("where"), message]}),
        );
        let part = &messages(&alice, "open-client-call")[1]["parts"][1];
        assert_eq!(part["output"]["place"], "Rome", "{}", fixture.name);
    }
}

#[test]
fn an_unfinished_import_is_invisible_and_cleaned_up() {
    for fixture in fixtures() {
        let small = Alice::with_session();
        small.append_texts(&["a small file"]);
        let file = small.export("s").unwrap();

        let alice = fixture.opened();
        assert_eq!(
            alice.ok("getSession", json!({"sessionId": UNFINISHED_IMPORT})),
            Value::Null
        );
        assert!(!rows_of(&alice.db, UNFINISHED_IMPORT).is_empty());
        alice.import(UNFINISHED_IMPORT, &file).unwrap();
        let read = alice.ok("loadEvents", json!({"sessionId": UNFINISHED_IMPORT}));
        assert_eq!(read.as_array().unwrap().len(), 1, "{}", fixture.name);

        let alice = fixture.opened();
        alice.ok("createSession", json!({"id": UNFINISHED_IMPORT}));
        let read = alice.ok("loadEvents", json!({"sessionId": UNFINISHED_IMPORT}));
        assert_eq!(read, json!([]), "{}", fixture.name);

        // The unfinished import is older than an hour, so the next import of any session
        // deletes it.
        let alice = fixture.opened();
        alice.import("elsewhere", &file).unwrap();
        assert_eq!(
            rows_of(&alice.db, UNFINISHED_IMPORT),
            [] as [&str; 0],
            "{}",
            fixture.name
        );
    }
}

#[test]
fn an_older_object_is_searched_completely() {
    for fixture in fixtures() {
        let alice = fixture.opened();
        // The index may be built in batches: a search reports whether some are missing.
        let mut rounds = 0;
        while alice.ok("search", json!({"query": "zeppelin"}))["pending"] == true {
            rounds += 1;
            assert!(rounds < 1_000, "{}: never done", fixture.name);
        }
        for (query, session) in [
            ("old", "carried"),
            ("zeppelins", "mixed"),
            ("walrus", "mixed"),
            ("fourth", "s"),
            ("first", "s"),
            ("fog", "talked"),
        ] {
            let found = alice.ok("search", json!({"query": query, "limit": 100}));
            let found = found["results"].as_array().unwrap();
            let is_found = found.iter().any(|hit| hit["sessionId"] == session);
            // The message `fourth` was deleted.
            assert_eq!(is_found, query != "fourth", "{}: {query}", fixture.name);
        }
        alice.append_texts(&["a pelican since the upgrade"]);
        let found = alice.ok("search", json!({"query": "pelican"}));
        assert_eq!(ids(&found["results"]).len(), 1, "{}", fixture.name);
        let block = json!({"label": "kb", "query": "drizzle"});
        let found = alice.ok("searchContext", block);
        assert_eq!(found["results"].as_array().unwrap().len(), 2);
    }
}

#[test]
fn writes_continue_and_reads_match_a_naive_tree() {
    for fixture in fixtures() {
        for seed in 1..=games(2, 8) {
            let alice = fixture.opened();
            let rules = Rules {
                name: format!("{}, game {seed}", fixture.name),
                moves: 1_000..1_040,
                compared_every: 4,
            };
            let naive = NaiveTree::of(&alice);
            rules.play(
                &alice,
                naive,
                &mut Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            );
        }
    }
}

#[test]
fn each_session_is_forked_exported_imported_and_deleted() {
    for fixture in fixtures() {
        let alice = fixture.opened();
        for _ in 0..=INTERRUPTED.len() {
            alice.outbound.answer(make::resumed_answer());
        }
        while alice.has_turn_rows() || alice.waiting_rows() > 0 {
            for work in resume_some_turns(&alice.agent(&alice.db)).works {
                wait_for(run(&alice.agent(&alice.db), work));
            }
        }
        let listed = alice.ok("listSessions", json!({}));
        for session in ids(&listed["sessions"]) {
            let name = format!("{}, {session}", fixture.name);
            let fork = alice.ok("forkSession", json!({"sessionId": session}));
            let length = |id: &Value| alice.ok("getPathLength", json!({"sessionId": id}));
            // A fork has one branch: nothing splits the run there, so it is one message again.
            let expected = if session == "split" {
                json!({"length": 1})
            } else {
                length(&json!(session))
            };
            assert_eq!(length(&fork["id"]), expected, "{name}");

            let file = alice.export(&session).unwrap();
            let bob = Alice {
                outbound: make::outbound(),
                ..Alice::default()
            };
            bob.import(&session, &file).unwrap();
            assert_eq!(bob.export(&session).unwrap(), file, "{name}");

            alice.ok("deleteSession", json!({"sessionId": session}));
            assert_eq!(rows_of(&alice.db, &session), [] as [&str; 0], "{name}");
        }
    }
}

/// The table of running turns became the table of last turns. An unreadable turn must not prevent
/// the object from opening.
#[test]
fn an_unreadable_turn_is_migrated_and_closed() {
    let fixtures = fixtures();
    let old = fixtures.iter().find(|old| old.name == "0014-searched");
    let mut alice = Alice {
        db: old.unwrap().stored(),
        host: FixedHost::later(),
        outbound: make::outbound(),
        ..Alice::default()
    };
    let damaged = INTERRUPTED[0];
    let sql = "UPDATE cf_agents_turns SET state = '{' WHERE session_id = ?1";
    alice.db.run(sql, &[damaged.into()]).unwrap();
    schema::migrate(&alice.db, &alice.host).unwrap();
    assert_eq!(alice.turn_rows(), INTERRUPTED.len());
    while alice.has_turn_rows() {
        for _ in 0..MAX_RESUMED {
            alice.outbound.answer(make::resumed_answer());
        }
        for work in resume_some_turns(&alice.agent(&alice.db)).works {
            alice.run_work(work);
        }
    }
    alice.crash();
    for session in INTERRUPTED {
        let page = alice.ok("getHistory", json!({"sessionId": session}));
        let message = page["messages"][1].to_string();
        let is_closed = message.contains("could not be finished");
        assert_eq!(is_closed, *session == damaged, "{session}: {message}");
    }
}
