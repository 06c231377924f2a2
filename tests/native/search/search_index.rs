//! The search index during its build: partial, for a single session, over long texts; and what a
//! token for one session learns about others.

use serde_json::{Value, json};

use crate::{Alice, ids};
use access::{Caller, TokenScope};
use base::database::{Database as _, Delete};
use base::ids::Id;
use conversation::index::build::{BuildScope, advance, build_batch};
use conversation::tables::EVENTS_SEARCH;

/// Appends events of one text each, 1,000 at a time.
fn fill(alice: &Alice, session: &str, texts: impl Iterator<Item = String>) {
    let texts: Vec<String> = texts.collect();
    for texts in texts.chunks(1_000) {
        let events: Vec<Value> = texts
            .iter()
            .map(|text| json!({"action": "user_message", "content": text}))
            .collect();
        alice.ok(
            "appendEvents",
            json!({"sessionId": session, "events": events}),
        );
    }
}

fn indexed(alice: &Alice) -> i64 {
    let sql = "SELECT count(*) FROM cf_agents_search_docsize";
    alice.db.rows(sql, &[]).unwrap()[0].integer(0).unwrap()
}

fn limited_to_session(alice: Alice, session: &str) -> Alice {
    let scope = TokenScope {
        session_id: Some(Id::parse(session.to_owned()).unwrap()),
        operations: Some(vec!["search".to_owned(), "callTool".to_owned()]),
        expires_at: i64::MAX,
        ..TokenScope::default()
    };
    Alice {
        caller: Caller::Scoped(scope),
        ..alice
    }
}

#[test]
fn the_first_search_covers_the_newest_events_and_indexing_continues() {
    let alice = Alice::with_session();
    fill(&alice, "s", (0..12_000).map(|n| format!("apple {n}")));
    let answer = alice.ok("search", json!({"query": "11999"}));
    assert_eq!(answer["pending"], true);
    assert_eq!(answer["results"][0]["seq"], 12_000);
    assert_eq!(indexed(&alice), 8 * 999);
    // A message that is appended in the meantime is found at once.
    alice.append_message("late", "a medlar");
    assert_eq!(alice.found("medlars"), ["late"]);
    while build_batch(&alice.db).unwrap() {}
    let answer = alice.ok("search", json!({"query": "77"}));
    assert_eq!(answer.get("pending"), None);
    assert_eq!(answer["results"][0]["seq"], 78);
    assert_eq!(indexed(&alice), 12_001);
}

#[test]
fn a_batch_is_bounded_in_events_bytes_and_sessions() {
    let indexed_by_a_batch = |populate: &dyn Fn(&Alice)| {
        let alice = Alice::with_session();
        populate(&alice);
        let sql = "INSERT INTO cf_agents_config (key, value) VALUES ('search', '{\"number\":5000,\"from\":1000000}')";
        alice.db.run(sql, &[]).unwrap();
        let continues = build_batch(&alice.db).unwrap();
        (indexed(&alice), continues)
    };
    let many = |alice: &Alice| fill(alice, "s", (0..3_000).map(|n| n.to_string()));
    assert_eq!(indexed_by_a_batch(&many), (999, true));
    let long = |alice: &Alice| fill(alice, "s", (0..6).map(|_| "word ".repeat(100_000)));
    assert_eq!(indexed_by_a_batch(&long), (3, true));
    let sessions = |alice: &Alice| {
        alice.append_message("a", "oldest of all");
        for n in 0..1_200 {
            alice.ok("createSession", json!({"id": format!("s{n}")}));
        }
    };
    assert_eq!(indexed_by_a_batch(&sessions), (0, true));
}

#[test]
fn a_session_search_indexes_that_session_first() {
    let alice = Alice::with_session();
    fill(&alice, "s", (0..100).map(|n| format!("old {n}")));
    alice.ok("createSession", json!({"id": "t"}));
    fill(&alice, "t", (0..12_000).map(|n| format!("new {n}")));
    let answer = alice.ok("search", json!({"query": "old", "sessionId": "s"}));
    assert_eq!(answer["results"].as_array().unwrap().len(), 20);
    assert_eq!(answer.get("pending"), None);
    assert_eq!(
        alice.ok("search", json!({"query": "old"}))["results"]
            .as_array()
            .unwrap()
            .len(),
        20
    );
}

#[test]
fn a_session_tokens_search_indexes_no_other_session() {
    let alice = Alice::with_session();
    fill(&alice, "s", (0..10).map(|n| format!("own {n}")));
    alice.ok("createSession", json!({"id": "t"}));
    fill(&alice, "t", (0..50).map(|n| format!("other {n}")));
    let alice = limited_to_session(alice, "s");
    let answer = alice.ok("search", json!({"query": "own other"}));
    assert_eq!(answer["results"].as_array().unwrap().len(), 10);
    assert_eq!(answer.get("pending"), None);
    assert_eq!(indexed(&alice), 10);
    assert!(!build_batch(&alice.db).unwrap());
    // Appends to other sessions write nothing to the index until they are searched.
    let alice = Alice {
        caller: Caller::Owner,
        ..alice
    };
    fill(&alice, "t", (50..60).map(|n| format!("other {n}")));
    fill(&alice, "s", (10..12).map(|n| format!("own {n}")));
    assert_eq!(indexed(&alice), 12);
    assert_eq!(alice.search_with("other", json!({"limit": 100})).len(), 60);
    assert_eq!(indexed(&alice), 72);
}

#[test]
fn a_session_token_indexes_a_long_session_in_batches() {
    let alice = Alice::with_session();
    fill(&alice, "s", (0..9_500).map(|n| format!("own {n}")));
    let alice = limited_to_session(alice, "s");
    assert_eq!(alice.ok("search", json!({"query": "own"}))["pending"], true);
    while build_batch(&alice.db).unwrap() {}
    assert_eq!(
        alice.ok("search", json!({"query": "own"})).get("pending"),
        None
    );
    assert_eq!(indexed(&alice), 9_500);
}

#[test]
fn other_sessions_do_not_change_a_session_tokens_results() {
    let answers = |others: &dyn Fn(&Alice, usize)| {
        let alice = Alice::with_session();
        alice.ok("configureAgent", json!({"sessionSearch": true}));
        others(&alice, 0);
        for (n, text) in [
            "an apple and a pear, said the baker",
            "pears are what the baker likes",
            "Does the baker like apples?",
            "the baker",
            "zebra crossing",
        ]
        .into_iter()
        .cycle()
        .take(40)
        .enumerate()
        {
            alice.append_message(&format!("e{n}"), &format!("{text} {}", n % 7));
        }
        alice.append_message(
            "long",
            &format!("{} apple crumble", "flour sugar ".repeat(120_000)),
        );
        others(&alice, 1);
        alice.search("anything");
        others(&alice, 2);
        while build_batch(&alice.db).unwrap() {}
        let alice = limited_to_session(alice, "s");
        let mut answer = String::new();
        for query in [
            "apple baker",
            "zebra pear 3",
            "\"the baker\"",
            "cross* app*",
            "crumble",
            "flour",
            "quince",
        ] {
            for more in [
                json!({}),
                json!({"limit": 100, "roles": ["user"]}),
                json!({"since": 0}),
            ] {
                let mut body = json!({"query": query});
                body.as_object_mut()
                    .unwrap()
                    .extend(more.as_object().unwrap().clone());
                answer.push_str(&alice.ok("search", body).to_string());
            }
            answer.push_str(&alice.ok("callTool", json!({"sessionId": "s", "name": "session_search", "arguments": {"query": query}})).to_string());
        }
        answer
    };
    let alone = answers(&|_, _| {});
    assert!(alone.contains("\"long\"") && alone.len() > 10_000);
    let among = answers(&|alice, round| {
        alice.ok("createSession", json!({"id": format!("o{round}")}));
        let words = ["baker", "zebra apple apple", "crumble flour", "pear 3"];
        fill(
            alice,
            &format!("o{round}"),
            (0..400).map(|n| words[n % 4].repeat(1 + n % 3)),
        );
        let long = "baker apple ".repeat(100_000);
        fill(alice, &format!("o{round}"), std::iter::once(long));
    });
    // Only the session's number differs, and no answer contains it.
    assert_eq!(alone, among);
}

#[test]
fn a_long_text_appears_once_in_the_results() {
    for is_built_first in [false, true] {
        let alice = Alice::with_session();
        if is_built_first {
            alice.search("anything");
        }
        for n in 0..5 {
            alice.append_message(&format!("short{n}"), "an apple");
        }
        alice.append_message("long", &"apple ".repeat(690_000));
        let mut found = alice.found("apple");
        found.sort();
        assert_eq!(
            found,
            ["long", "short0", "short1", "short2", "short3", "short4"]
        );
        let mut found = ids(&Value::from(
            alice.search_with("apples", json!({"sessionId": "s"})),
        ));
        found.sort();
        assert_eq!(found.len(), 6);
    }
}

#[test]
fn a_changed_long_text_leaves_no_stale_parts() {
    let alice = Alice::with_session();
    alice.append_message("long", &format!("quince {} medlar", "y ".repeat(2_000_000)));
    alice.append_message("short", "quince medlar");
    assert_eq!(alice.found("medlar").len(), 2);
    alice.ok("updateMessage", json!({"sessionId": "s", "message": {"id": "long", "role": "user", "parts": [{"type": "text", "text": "a plum"}]}}));
    assert_eq!(alice.found("quince medlar"), ["short"]);
    assert_eq!(
        alice
            .db
            .rows("SELECT 1 FROM cf_agents_search_parts", &[])
            .unwrap(),
        []
    );
}

fn import_again(alice: &Alice, session: &str) {
    let file = alice.export(session).unwrap();
    alice.ok("deleteSession", json!({"sessionId": session}));
    alice.import(session, &file).unwrap();
}

#[test]
fn random_play_leaves_the_index_as_if_rebuilt() {
    let mut dice: u64 = 0x2545_F491_4F6C_DD1D;
    let mut roll = |sides: usize| {
        dice ^= dice << 13;
        dice ^= dice >> 7;
        dice ^= dice << 17;
        (dice >> 33) as usize % sides
    };
    let fruits = ["apple", "pear", "plum", "quince", "medlar"];
    let sessions = ["s", "t", "u"];
    let alice = Alice::with_session();
    alice.ok("createSession", json!({"id": "t"}));
    alice.ok("createSession", json!({"id": "u"}));
    // The sessions are longer than a batch, so every write meets the index half-built.
    let fill = |session: &str| fill(&alice, session, (0..700).map(|n| fruits[n % 5].to_owned()));
    for session in sessions.repeat(3) {
        fill(session);
    }
    let mut half_built = 0;
    for turn in 0..400 {
        let fruit = fruits[roll(fruits.len())];
        let session = sessions[roll(sessions.len())];
        if alice
            .call("getSession", json!({"sessionId": session}))
            .unwrap()
            .is_null()
        {
            alice.ok("createSession", json!({"id": session}));
            fill(session);
        }
        let seq = 1 + roll(2_100) as i64;
        let any = alice.ok(
            "loadEvents",
            json!({"sessionId": session, "afterSeq": seq, "limit": 1}),
        );
        let any = any[0].get("id").cloned();
        match (roll(24), any) {
            (0..=3, Some(id)) => drop(alice.ok("deleteEvents", json!({"sessionId": session, "eventIds": [id]}))),
            (4..=8, Some(id)) => drop(alice.ok("updateMessage", json!({"sessionId": session, "message": {"id": id, "role": "user", "parts": [{"type": "text", "text": fruit}]}}))),
            (9, _) => drop(alice.ok("clearMessages", json!({"sessionId": session}))),
            (10, _) => {
                let fork = alice.ok("forkSession", json!({"sessionId": session}));
                alice.ok("deleteSession", json!({"sessionId": session}));
                if roll(2) == 0 {
                    alice.ok("deleteSession", json!({"sessionId": fork["id"]}));
                }
            }
            (11, _) => drop(build_batch(&alice.db).unwrap()),
            (12, _) => drop(advance(&alice.db, BuildScope::Only(session)).unwrap()),
            (13, _) if turn > 60 => drop(advance(&alice.db, BuildScope::Anyone(Some(session))).unwrap()),
            (14, _) if turn > 250 => drop(advance(&alice.db, BuildScope::Anyone(None)).unwrap()),
            (15, _) => fill(session),
            (16, _) => import_again(&alice, session),
            _ => drop(alice.ok("appendEvents", json!({"sessionId": session, "events": [{"action": "user_message", "content": fruit}]}))),
        }
        let state = alice
            .db
            .rows(
                "SELECT value FROM cf_agents_config WHERE key = 'search'",
                &[],
            )
            .unwrap();
        half_built += usize::from(
            state
                .first()
                .is_some_and(|row| row.text(0).unwrap() != "true"),
        );
    }
    assert!(half_built > 50, "{half_built}");
    while advance(&alice.db, BuildScope::Anyone(None))
        .unwrap()
        .is_pending
    {}
    let indexed = index_of(&alice);
    assert_eq!(
        alice
            .db
            .rows("SELECT 1 FROM cf_agents_search_progress", &[])
            .unwrap(),
        []
    );
    alice.assert_consistent("after random play");
    // The index of the same log, rebuilt.
    Delete::all(EVENTS_SEARCH).run(&alice.db).unwrap();
    alice
        .db
        .run("DELETE FROM cf_agents_search_parts", &[])
        .unwrap();
    alice
        .db
        .run("DELETE FROM cf_agents_config WHERE key = 'search'", &[])
        .unwrap();
    while advance(&alice.db, BuildScope::Anyone(None))
        .unwrap()
        .is_pending
    {}
    assert!(indexed.len() > 1_000);
    assert_eq!(indexed, index_of(&alice));
}

/// Every word of the index with its rows and columns, and every row of the index.
fn index_of(alice: &Alice) -> Vec<String> {
    alice.db.run("CREATE VIRTUAL TABLE IF NOT EXISTS temp.instances USING fts5vocab (main, cf_agents_search, instance)", &[]).unwrap();
    let mut rows = alice
        .db
        .rows(
            "SELECT term || ' ' || doc || ' ' || col || ' ' || offset FROM temp.instances",
            &[],
        )
        .unwrap();
    rows.extend(
        alice
            .db
            .rows("SELECT 'row ' || id FROM cf_agents_search_docsize", &[])
            .unwrap(),
    );
    let mut rows: Vec<String> = rows
        .iter()
        .map(|row| row.text(0).unwrap().to_owned())
        .collect();
    rows.sort();
    rows
}
