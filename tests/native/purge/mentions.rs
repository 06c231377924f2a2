//! Finding all mentions of a text, and erasing them.

use serde_json::{Value, json};

use super::{NEEDLE, places_after_purge};
use crate::Alice;
use crate::shared::learner::adds;
use crate::store::upgrades::make::make;
use access::{Allow, Caller, TokenScope};
use base::database::Database as _;
use base::ids::Id;
use chat::run::resume::resume_some_turns;

/// All places, page by page.
fn find_all(alice: &Alice, mut body: Value) -> Vec<Value> {
    let mut places = Vec::new();
    for _ in 0..10_000 {
        let page = alice.ok("findMentions", body.clone());
        let found = page["places"].as_array().unwrap();
        assert!(found.len() as i64 <= body["limit"].as_i64().unwrap_or(50));
        places.extend(found.iter().cloned());
        if page["cursor"].is_null() {
            return places;
        }
        body["cursor"] = page["cursor"].clone();
    }
    panic!("it never ends");
}

/// The fields of each location, without its snippet.
fn named(places: &[Value]) -> Vec<String> {
    let without = |place: &Value| {
        let mut place = place.clone();
        place.as_object_mut().unwrap().remove("snippet");
        place.to_string()
    };
    places.iter().map(without).collect()
}

fn populated() -> Alice {
    let alice = Alice::with_session();
    alice.ok(
        "createSession",
        json!({"id": "named", "name": format!("About {NEEDLE}")}),
    );
    for (label, kind) in [
        ("kb", "searchable"),
        ("skills", "loadable"),
        ("memory", "writable"),
    ] {
        alice.ok("defineBlock", json!({"label": label, "kind": kind}));
    }
    let ids = alice.append_texts(&[
        "one",
        &format!("It was {} itself.", NEEDLE.to_uppercase()),
        "three",
    ]);
    alice.ok("addCompaction", json!({"sessionId": "s", "summary": format!("They said {NEEDLE}."), "fromId": ids[0], "toId": ids[1]}));
    for text in [NEEDLE, "other"] {
        alice.ok(
            "setBlock",
            json!({"label": "memory", "content": format!("Likes {text}.")}),
        );
        alice.ok(
            "setEntry",
            json!({"label": "kb", "key": "a", "content": format!("Of {text}.")}),
        );
    }
    alice.ok(
        "setBlock",
        json!({"label": "memory", "content": format!("Again {NEEDLE}.")}),
    );
    alice.ok(
        "setEntry",
        json!({"sessionId": null, "label": "kb", "key": "b", "content": NEEDLE}),
    );
    alice.ok(
        "putSkill",
        json!({"label": "skills", "key": "c", "content": format!("Ask {NEEDLE}.")}),
    );
    alice.ok(
        "loadSkill",
        json!({"sessionId": "s", "label": "skills", "key": "c"}),
    );
    alice.ok("freezePrompt", json!({}));
    alice
}

#[test]
fn every_location_is_found_in_pages_of_any_size() {
    let alice = populated();
    let all = find_all(&alice, json!({"query": NEEDLE, "limit": 100}));
    let kinds: Vec<&str> = all
        .iter()
        .map(|place| place["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "event",
            "summary",
            "session",
            "version",
            "block",
            "entry",
            "document",
            "version",
            "loadedDocument",
            "prompt"
        ]
    );
    for place in &all {
        let snippet = place["snippet"].as_str().unwrap().to_lowercase();
        assert!(snippet.contains(NEEDLE), "{place}");
    }
    assert_eq!(all[3]["label"], "memory");
    assert_eq!(
        (&all[3]["version"], &all[4]["version"]),
        (&json!(1), &json!(3))
    );
    for limit in [1, 2, 3, 7] {
        let paged = find_all(&alice, json!({"query": NEEDLE, "limit": limit}));
        assert_eq!(named(&paged), named(&all), "{limit}");
    }
}

#[test]
fn erasing_every_location_leaves_nothing() {
    let alice = populated();
    let places = find_all(&alice, json!({"query": NEEDLE, "limit": 100}));
    let erased = alice.ok("erase", json!({"places": places}));
    // The loaded copy went with its document, and the prompt and the summary with theirs.
    assert_eq!(erased["erased"]["events"], 1);
    assert_eq!(erased["erased"]["entries"], 1);
    assert_eq!(erased["erased"]["documents"], 1);
    assert_eq!(erased["erased"]["summaries"], 1);
    assert_eq!(erased["operation"], "erase");
    assert_eq!(places_after_purge(&alice.db), [] as [&str; 0]);
    assert!(find_all(&alice, json!({"query": NEEDLE})).is_empty());
    assert_eq!(
        alice.ok("getBlock", json!({"label": "memory"}))["content"],
        ""
    );
    // A repeated request finds nothing, and the answer reports it.
    let again = alice.ok("erase", json!({"places": places}));
    assert_eq!(again["erased"]["events"], 0);
    assert_eq!(alice.events().len(), 2);
}

/// Each table that contains text can be searched and erased.
#[test]
fn text_stored_anywhere_is_found_and_erased() {
    let alice = make(true);
    drop(resume_some_turns(&alice.agent(&alice.db)));
    for (table, column) in [
        ("cf_agents_events", "content"),
        ("cf_agents_slices", "text"),
        ("cf_agents_compactions", "summary"),
        ("cf_agents_sessions", "name"),
        ("cf_agents_blocks", "description"),
        ("cf_agents_block_versions", "content"),
        ("cf_agents_entries", "content"),
        ("cf_agents_skills", "content"),
        ("cf_agents_item_versions", "content"),
        ("cf_agents_loaded_skills", "content"),
        ("cf_agents_prompts", "prompt"),
    ] {
        let sql = format!(
            "UPDATE {table} SET {column} = {column} || ' {NEEDLE}' WHERE {column} IS NOT NULL"
        );
        alice.db.run(&sql, &[]).unwrap();
    }
    // A pending import is not visible yet.
    alice
        .db
        .run(
            "UPDATE cf_agents_events SET content = 'x' WHERE session_id = 'half'",
            &[],
        )
        .unwrap();
    for _ in 0..100 {
        let page = alice.ok("findMentions", json!({"query": NEEDLE, "limit": 100}));
        let places = page["places"].as_array().unwrap();
        if places.is_empty() && page["cursor"].is_null() {
            break;
        }
        if !places.is_empty() {
            alice.ok("erase", json!({"places": places}));
        }
    }
    assert_eq!(places_after_purge(&alice.db), [] as [&str; 0]);
}

#[test]
fn text_in_json_is_found_in_any_escaping() {
    let alice = Alice::with_session();
    for (id, metadata) in [
        ("a", r#"{"who":"Zoë \"Z\""}"#),
        ("b", r#"{"who":"Zo\u00eb \"Z\""}"#),
        ("c", r#"{"who":"ZO\u00cb \"z\""}"#),
    ] {
        let body = format!(
            r#"{{"sessionId":"s","events":[{{"id":"{id}","action":"user_message","content":"x","metadata":{metadata}}}]}}"#
        );
        alice
            .send(&alice.db, "appendEvents", body.as_bytes())
            .unwrap();
    }
    let found = find_all(&alice, json!({"query": "zoë \"Z\""}));
    assert_eq!(crate::ids(&json!(found)), ["a", "b", "c"]);
}

#[test]
fn locations_of_events_are_copies_summaries_and_memories() {
    let alice = populated();
    let events = alice.events();
    let id = events[0]["id"].as_str().unwrap();
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    let found = find_all(&alice, json!({"ids": [id]}));
    let kinds: Vec<&str> = found
        .iter()
        .map(|place| place["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["event", "event", "summary", "summary"]);
    let sessions: Vec<&Value> = found.iter().map(|place| &place["sessionId"]).collect();
    assert!(sessions.contains(&&fork["id"]));
}

#[test]
fn a_summary_of_another_branch_is_not_a_location() {
    let alice = Alice::with_session();
    let ids = alice.append_texts(&["1", "2", "3"]);
    let append_below = |parent: &str, text: &str| {
        let event = json!({"action": "user_message", "content": text, "parentId": parent});
        let appended = alice.ok("appendEvents", json!({"sessionId": "s", "events": [event]}));
        crate::ids(&appended["events"]).remove(0)
    };
    let sibling = append_below(&ids[1], "4");
    let last = append_below(&ids[2], "5");
    let summary = json!({"sessionId": "s", "summary": "2 to 5", "fromId": ids[1], "toId": last});
    alice.ok("addCompaction", summary);
    let kinds = |id: &str| -> Vec<Value> {
        let found = find_all(&alice, json!({"ids": [id], "limit": 1}));
        found.iter().map(|place| place["kind"].clone()).collect()
    };
    assert_eq!(kinds(&sibling), ["event"]);
    assert_eq!(kinds(&ids[0]), ["event"]);
    for covered in [&ids[1], &ids[2], &last] {
        assert_eq!(kinds(covered), ["event", "summary"], "{covered}");
    }
    let places = find_all(&alice, json!({"ids": [sibling]}));
    let erased = alice.ok("erase", json!({"places": places}));
    assert_eq!(erased["erased"]["summaries"], 0, "{erased}");
}

fn token_with(operations: &[&str]) -> Caller {
    Caller::Scoped(TokenScope {
        session_id: Some(Id::parse("t".to_owned()).unwrap()),
        operations: Some(operations.iter().map(|name| (*name).to_owned()).collect()),
        allow: Allow {
            purge: true,
            ..Allow::default()
        },
        expires_at: i64::MAX,
        ..TokenScope::default()
    })
}

#[test]
fn a_session_token_finds_and_erases_only_in_its_session() {
    let mut alice = populated();
    alice.ok("createSession", json!({"id": "t"}));
    alice.ok(
        "appendEvents",
        json!({"sessionId": "t", "events": [{"action": "user_message", "content": NEEDLE}]}),
    );
    alice.ok(
        "defineBlock",
        json!({"sessionId": "t", "label": "kb", "kind": "searchable"}),
    );
    alice.ok(
        "setEntry",
        json!({"sessionId": "t", "label": "kb", "key": "k", "content": NEEDLE}),
    );
    let others = find_all(&alice, json!({"query": NEEDLE}));
    alice.caller = token_with(&["findMentions", "erase"]);
    let found = find_all(&alice, json!({"query": NEEDLE}));
    let sessions: Vec<&Value> = found.iter().map(|place| &place["sessionId"]).collect();
    assert_eq!(sessions, ["t", "t"]);
    for place in &others {
        if place["sessionId"] != "t" {
            assert_eq!(
                alice.refused("erase", json!({"places": [place]})),
                "forbidden"
            );
        }
    }
    alice.ok("erase", json!({"places": found}));
    assert!(find_all(&alice, json!({"query": NEEDLE})).is_empty());
    alice.caller = Caller::Owner;
    assert_eq!(
        find_all(&alice, json!({"query": NEEDLE})).len() + 2,
        others.len()
    );
    // A token must name the purging operation and allow purges.
    let unnamed = token_with(&["findMentions"]);
    let Caller::Scoped(scope) = token_with(&["findMentions", "erase"]) else {
        panic!("a token");
    };
    let unallowed = Caller::Scoped(TokenScope {
        session_id: None,
        allow: Allow::default(),
        ..scope
    });
    let rest = find_all(&alice, json!({"query": NEEDLE}));
    let in_session: Vec<&Value> = rest
        .iter()
        .filter(|place| place["sessionId"] == "s")
        .collect();
    assert!(!in_session.is_empty());
    for caller in [unnamed, unallowed] {
        alice.caller = caller;
        assert_eq!(
            alice.refused("erase", json!({"places": in_session})),
            "forbidden"
        );
    }
}

/// Proposals change the agent's memory, and reports are for the operator. Callers that may not find
/// them may not delete them.
#[test]
fn a_session_token_erases_no_proposal_and_no_callback() {
    for learning_session in ["s", "t"] {
        let mut alice = Alice::learner(json!({}));
        alice.ok("createSession", json!({"id": "t"}));
        let events = json!([{"id": "e1", "action": "user_message", "content": "I like tea."}]);
        let body = json!({"sessionId": learning_session, "events": events});
        alice.ok("appendEvents", body);
        alice.model_proposes(json!([adds("tea", "The user likes tea.", "e1")]));
        alice.ok("learn", json!({"sessionId": learning_session}));
        let proposals = alice.proposals();
        let id = &proposals[0]["id"];
        alice.caller = token_with(&["erase"]);
        for kind in ["proposal", "report"] {
            let place = json!({"kind": kind, "sessionId": "t", "id": id});
            assert_eq!(
                alice.refused("erase", json!({"places": [place]})),
                "forbidden"
            );
        }
        alice.caller = Caller::Owner;
        assert_eq!(alice.proposals(), proposals);
        let found = find_all(&alice, json!({"query": "likes tea"}));
        assert_eq!(alice.ok("erase", json!({"places": found}))["found"], 1);
        assert!(alice.proposals().is_empty());
    }
}

#[test]
fn an_invalid_request_is_refused_and_named() {
    let alice = Alice::with_session();
    for (body, field) in [
        (json!({}), "query"),
        (json!({"query": "ab"}), "query"),
        (json!({"query": "x".repeat(201)}), "query"),
        (json!({"query": "abc", "ids": ["a"]}), "query"),
        (json!({"query": "abc", "cursor": "nonsense"}), "cursor"),
        (json!({"query": "abc", "limit": 101}), "limit"),
    ] {
        let error = alice.call("findMentions", body).unwrap_err();
        assert_eq!(error.details()["field"], field);
    }
    for (place, field) in [
        (json!({"kind": "event", "sessionId": "s"}), "places[0].id"),
        (json!({"kind": "event", "id": "e"}), "places[0].sessionId"),
        (json!({"kind": "entry", "label": "kb"}), "places[0].key"),
        (json!({"kind": "block", "label": "kb"}), "places[0].version"),
    ] {
        let error = alice.call("erase", json!({"places": [place]})).unwrap_err();
        assert_eq!(error.details()["field"], field);
    }
}

#[test]
fn a_request_scans_a_bounded_part_and_the_next_continues() {
    let alice = Alice::with_session();
    let insert = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
        INSERT INTO cf_agents_events (session_id, seq, id, parent_seq, action, content, created_at, written_at)
        SELECT 's', i, 'e' || i, i - 1, 'user_message', 'number ' || i, 0, 0 FROM n";
    alice.db.run(insert, &[]).unwrap();
    let mut pages = 0;
    let mut body = json!({"query": "number 99999"});
    loop {
        let page = alice.ok("findMentions", body.clone());
        pages += 1;
        if page["cursor"].is_null() {
            assert_eq!(page["places"], json!([]));
            break;
        }
        body["cursor"] = page["cursor"].clone();
        if pages == 5 {
            assert_eq!(page["places"][0]["id"], "e99999");
        }
    }
    assert_eq!(pages, 6);
}

/// The marker of a deleted item has no text, and its key is found.
#[test]
fn a_deleted_items_key_is_found_and_erased_in_any_order() {
    let key = format!("likes-{NEEDLE}");
    let cases: [(&str, &str, &str, usize); 4] = [
        ("kb", "setEntry", "deleteEntry", 1),
        ("kb", "setEntry", "deleteEntry", 3),
        ("skills", "putSkill", "deleteSkill", 1),
        ("skills", "putSkill", "deleteSkill", 2),
    ];
    for (label, set, delete, rounds) in cases {
        for order in 0..4 {
            let alice = Alice::with_session();
            for (label, kind) in [("kb", "searchable"), ("skills", "loadable")] {
                alice.ok("defineBlock", json!({"label": label, "kind": kind}));
            }
            alice.ok(
                "setEntry",
                json!({"label": "kb", "key": "stays", "content": "It stays."}),
            );
            for _ in 0..rounds {
                alice.ok(set, json!({"label": label, "key": key, "content": "Figs."}));
                alice.ok(delete, json!({"label": label, "key": key}));
            }
            let mut places = find_all(&alice, json!({"query": NEEDLE}));
            assert_eq!(places.len(), 2 * rounds);
            let parts: Vec<Vec<Value>> = match order {
                0 => vec![places],
                1 => vec![places.into_iter().rev().collect()],
                2 => places.into_iter().map(|place| vec![place]).collect(),
                _ => {
                    places.reverse();
                    places.into_iter().map(|place| vec![place]).collect()
                }
            };
            for places in parts {
                let erased = alice.ok("erase", json!({"places": places}));
                assert_eq!(erased["found"], places.len(), "{label} {order}");
                assert_eq!(erased["erased"]["versions"], places.len());
                let again = alice.ok("erase", json!({"places": places}));
                assert_eq!(again["found"], 0);
                alice.assert_consistent("an erasure of what was deleted");
            }
            assert!(find_all(&alice, json!({"query": NEEDLE})).is_empty());
            assert_eq!(places_after_purge(&alice.db), [] as [&str; 0]);
            // The key is used again.
            alice.ok(
                set,
                json!({"label": label, "key": key, "content": "Dates."}),
            );
            let versions = alice.ok("getBlockVersions", json!({"label": label, "key": key}));
            assert_eq!(versions["versions"].as_array().map_or(0, Vec::len), 1);
        }
    }
}

/// Other entries record what they replaced, or what replaced them.
#[test]
fn a_purged_entrys_key_is_removed_from_other_entries() {
    let key = format!("likes-{NEEDLE}");
    let set = |alice: &Alice, key: &str, replaced: Option<&str>| {
        let body = json!({"label": "kb", "key": key, "content": "x", "supersedes": replaced.map_or(vec![], |key| vec![key])});
        alice.ok("setEntry", body);
    };
    for replaces in [true, false] {
        for ending in ["stays", "deleted", "written anew"] {
            for is_deleted in [false, true] {
                let alice = Alice::with_session();
                alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
                let (first, second) = if replaces {
                    ("other", key.as_str())
                } else {
                    (key.as_str(), "other")
                };
                set(&alice, first, None);
                set(&alice, second, Some(first));
                let other = json!({"label": "kb", "key": "other"});
                match ending {
                    "deleted" => {
                        alice.ok("deleteEntry", other);
                    }
                    "written anew" => set(&alice, "other", None),
                    _ => {}
                }
                let mut purge = json!({"label": "kb", "key": key});
                if is_deleted {
                    alice.ok("deleteEntry", purge.clone());
                }
                purge["purge"] = json!(true);
                alice.ok("deleteEntry", purge);
                let left = places_after_purge(&alice.db);
                let case = format!("{replaces} {ending} {is_deleted}");
                assert_eq!(left, [] as [&str; 0], "{case}");
                alice.assert_consistent(&case);
            }
        }
    }
}
