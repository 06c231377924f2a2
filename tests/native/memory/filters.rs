//! `where` of the operations that list and search, compared with a naive filter in Rust, for random
//! metadata and filters.

use serde_json::{Map, Value, json};

use crate::{Alice, Dice};
use access::{Caller, TokenScope};
use base::host::Host as _;
use base::ids::Id;

const KEYS: [&str; 5] = ["city", "a.b", "$.city", "\"quoted\" '", "é\n"];
const TAGS: [&str; 4] = ["red", "green blue", "'); --", "$[0]"];

fn value(dice: &mut Dice) -> Value {
    [
        json!("Oslo"),
        json!("oslo"),
        json!("' OR 1 = 1 --"),
        json!(""),
        json!(1),
        json!(1.0),
        json!(2.5),
        json!(-3),
        json!("1"),
        json!(true),
        json!(false),
        json!(null),
    ][dice.roll(12)]
    .clone()
}

fn metadata(dice: &mut Dice) -> Value {
    let mut fields = Map::new();
    for key in KEYS {
        match dice.roll(8) {
            0..=3 => drop(fields.insert(key.to_owned(), value(dice))),
            4 => drop(fields.insert(key.to_owned(), json!([value(dice)]))),
            5 => drop(fields.insert(key.to_owned(), json!({"city": value(dice)}))),
            _ => {}
        }
    }
    fields.into()
}

fn tags(dice: &mut Dice, least: usize) -> Vec<&'static str> {
    let mut tags: Vec<&str> = TAGS.into_iter().filter(|_| dice.roll(2) == 0).collect();
    while tags.len() < least {
        tags.push(TAGS[dice.roll(TAGS.len())]);
    }
    tags
}

fn filter(dice: &mut Dice) -> Value {
    let mut tests = Map::new();
    for _ in 0..dice.roll(3) {
        let comparable = |dice: &mut Dice| loop {
            let value = value(dice);
            if value.is_string() || value.is_number() {
                return value;
            }
        };
        let test = match dice.roll(4) {
            0 => value(dice),
            1 => json!({"in": (0..=dice.roll(3)).map(|_| value(dice)).collect::<Vec<_>>()}),
            2 => json!({"gt": comparable(dice)}),
            _ => json!({"gt": comparable(dice), "lt": comparable(dice)}),
        };
        tests.insert(KEYS[dice.roll(KEYS.len())].to_owned(), test);
    }
    let mut tag_tests = Map::new();
    for name in ["all", "any", "none"] {
        if dice.roll(3) == 0 {
            tag_tests.insert(name.to_owned(), json!(tags(dice, 1)));
        }
    }
    json!({"metadata": tests, "tags": tag_tests})
}

/// The filter, as a naive implementation over the object.
fn passes(filter: &Value, metadata: &Value, tags: &[&str]) -> bool {
    let is_equal = |a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) => a == b,
        _ => a == b,
    };
    let order = |a: &Value, b: &Value| match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Number(a), Value::Number(b)) => a.as_f64()?.partial_cmp(&b.as_f64()?),
        _ => None,
    };
    for (key, test) in filter["metadata"].as_object().unwrap() {
        let Some(stored) = metadata.get(key) else {
            return false;
        };
        let Some(operators) = test.as_object() else {
            if !is_equal(stored, test) {
                return false;
            }
            continue;
        };
        let holds = operators.iter().all(|(name, wanted)| match name.as_str() {
            "in" => wanted
                .as_array()
                .unwrap()
                .iter()
                .any(|one| is_equal(stored, one)),
            "gt" => order(stored, wanted).is_some_and(std::cmp::Ordering::is_gt),
            _ => order(stored, wanted).is_some_and(std::cmp::Ordering::is_lt),
        });
        if !holds {
            return false;
        }
    }
    let list = |name: &str| filter["tags"][name].as_array().cloned();
    let is_tagged = |tag: &Value| tags.contains(&tag.as_str().unwrap());
    list("all").is_none_or(|all| all.iter().all(is_tagged))
        && list("any").is_none_or(|any| any.iter().any(is_tagged))
        && list("none").is_none_or(|none| !none.iter().any(is_tagged))
}

/// The `id` field of every item in all pages of a listing.
fn list_all(alice: &Alice, operation: &str, mut body: Value, list: &str, id: &str) -> Vec<String> {
    let mut found = Vec::new();
    for _ in 0..1_000 {
        let page = alice.ok(operation, body.clone());
        for item in page[list].as_array().unwrap() {
            found.push(item[id].as_str().unwrap().to_owned());
        }
        if page["cursor"].is_null() {
            found.sort();
            return found;
        }
        body["cursor"] = page["cursor"].clone();
    }
    panic!("it never ends");
}

#[test]
fn random_filters_match_a_naive_implementation() {
    let mut dice = Dice(25);
    for game in 0..6 {
        let alice = Alice::default();
        for (label, kind) in [
            ("kb", "searchable"),
            ("more", "searchable"),
            ("skills", "loadable"),
        ] {
            alice.ok("defineBlock", json!({"label": label, "kind": kind}));
        }
        let mut model: Vec<(String, Value, Vec<&str>)> = Vec::new();
        for number in 0..25 {
            let name = format!("n{number:02}");
            let (metadata, tags) = (metadata(&mut dice), tags(&mut dice, 0));
            let marked = |mut body: Value| {
                body["metadata"] = metadata.clone();
                body["tags"] = json!(tags);
                body
            };
            for label in ["kb", "more"] {
                let body = json!({"label": label, "key": name, "content": "rain and tea"});
                let entry = alice.ok("setEntry", marked(body));
                let is_empty = metadata.as_object().unwrap().is_empty();
                let expected = if is_empty { &Value::Null } else { &metadata };
                assert_eq!(entry["metadata"], *expected);
            }
            alice.ok(
                "putSkill",
                marked(json!({"label": "skills", "key": name, "content": "x"})),
            );
            alice.ok("createSession", marked(json!({"id": name})));
            alice.ok(
                "appendEvents",
                json!({"sessionId": name, "events": [{"action": "user_message", "content": "rain and tea"}]}),
            );
            model.push((name, metadata, tags));
        }
        for _ in 0..20 {
            let filter = filter(&mut dice);
            let expected: Vec<String> = model
                .iter()
                .filter(|(_, metadata, tags)| passes(&filter, metadata, tags))
                .map(|(name, _, _)| name.clone())
                .collect();
            let limit = 1 + dice.roll(30);
            let body = json!({"label": "kb", "limit": limit, "where": filter});
            let entries = list_all(&alice, "listEntries", body, "entries", "key");
            assert_eq!(entries, expected, "game {game}: {filter}");
            let body = json!({"label": "skills", "limit": limit, "where": filter});
            let skills = list_all(&alice, "listSkills", body, "skills", "key");
            assert_eq!(skills, expected, "game {game}: {filter}");
            let body = json!({"limit": limit, "where": filter});
            let sessions = list_all(&alice, "listSessions", body, "sessions", "id");
            assert_eq!(sessions, expected, "game {game}: {filter}");
            let keys = |found: Value, id: &str| {
                let mut keys: Vec<String> = found["results"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|result| result[id].as_str().unwrap().to_owned())
                    .collect();
                keys.sort();
                keys
            };
            let body = json!({"label": "kb", "query": "tea", "limit": 100, "where": filter});
            let found = keys(alice.ok("searchContext", body), "key");
            assert_eq!(found, expected, "game {game}: {filter}");
            let body = json!({"query": "tea", "limit": 100, "where": filter});
            let found = keys(alice.ok("search", body), "sessionId");
            assert_eq!(found, expected, "game {game}: {filter}");
            let body =
                json!({"labels": ["kb", "more"], "query": "tea", "limit": 100, "where": filter});
            let found = keys(alice.ok("searchContext", body), "key");
            let twice: Vec<String> = expected
                .iter()
                .flat_map(|key| [key.clone(), key.clone()])
                .collect();
            assert_eq!(found, twice, "game {game}: {filter}");
        }
    }
}

#[test]
fn a_past_search_filters_by_past_tags() {
    let alice = Alice::default();
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    let started_ms = alice.host.now_ms();
    let set = |at: i64, key: &str, tag: &str, content: &str| {
        alice.host.advance(started_ms + at - alice.host.now_ms());
        let body = json!({"label": "kb", "key": key, "content": content, "tags": [tag]});
        alice.ok("setEntry", body);
    };
    set(100, "home", "old", "lives in Oslo");
    set(200, "home", "new", "lives in Rome");
    set(210, "gone", "old", "lives nowhere");
    alice.ok("deleteEntry", json!({"label": "kb", "key": "gone"}));
    let found = |at: i64, tag: &str| {
        let body = json!({"label": "kb", "query": "lives", "asOf": started_ms + at, "where": {"tags": {"all": [tag]}}});
        let mut found: Vec<String> = alice.ok("searchContext", body)["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["content"].as_str().unwrap().to_owned())
            .collect();
        found.sort();
        found
    };
    assert_eq!(found(150, "old"), ["lives in Oslo"]);
    assert_eq!(found(150, "new"), [] as [&str; 0]);
    assert_eq!(found(205, "new"), ["lives in Rome"]);
    assert_eq!(found(205, "old"), [] as [&str; 0]);
}

#[test]
fn a_filtered_page_scans_a_bounded_number_of_rows() {
    let alice = Alice::default();
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    for number in 0..1_100 {
        let tags = if number == 1_050 {
            json!(["rare"])
        } else {
            json!([])
        };
        let body =
            json!({"label": "kb", "key": format!("{number:04}"), "content": "x", "tags": tags});
        alice.ok("setEntry", body);
    }
    let mut body = json!({"label": "kb", "where": {"tags": {"all": ["rare"]}}});
    let first = alice.ok("listEntries", body.clone());
    assert_eq!(first, json!({"entries": [], "cursor": "0999"}));
    body["cursor"] = first["cursor"].clone();
    let second = alice.ok("listEntries", body);
    assert_eq!(second["entries"][0]["key"], "1050");
    assert_eq!(second["cursor"], Value::Null);
}

#[test]
fn several_blocks_share_a_ranking_that_names_the_block() {
    let alice = Alice::default();
    for label in ["kb", "more"] {
        alice.ok("defineBlock", json!({"label": label, "kind": "searchable"}));
    }
    for (label, key, content) in [
        ("kb", "a", "tea in the rain"),
        ("kb", "b", "coffee"),
        ("more", "a", "tea, tea and a harbour in the rain"),
        ("more", "c", "a harbour"),
    ] {
        alice.ok(
            "setEntry",
            json!({"label": label, "key": key, "content": content}),
        );
    }
    let search = |body: Value| {
        alice.ok("searchContext", body)["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["label"].clone(), one["key"].clone()))
            .collect::<Vec<_>>()
    };
    let found = search(json!({"labels": ["KB", "more"], "query": "harbour rain"}));
    assert_eq!(found[0], (json!("more"), json!("a")));
    assert_eq!(found.len(), 3);
    let both = search(json!({"label": "kb", "labels": ["more", "kb"], "query": "tea"}));
    assert_eq!(both.len(), 2);
    // A search of one block is unchanged, and no result names the block.
    let one = search(json!({"labels": ["kb"], "query": "coffee"}));
    assert_eq!(one, [(Value::Null, json!("b"))]);
    let none = alice
        .call("searchContext", json!({"query": "tea"}))
        .unwrap_err();
    assert_eq!(none.details()["field"], "label");
    let many: Vec<String> = (0..9).map(|number| format!("b{number}")).collect();
    let many = json!({"labels": many, "query": "tea"});
    assert_eq!(alice.refused("searchContext", many), "invalid_request");
    let unknown = json!({"labels": ["kb", "nothing"], "query": "tea"});
    assert_eq!(alice.refused("searchContext", unknown), "block_not_found");
}

/// The answers to these requests for a caller of session `s`. `api/session_isolation.rs` tests
/// their cost.
fn seen(alice: &Alice) -> Vec<Value> {
    let tag = json!({"tags": {"any": ["red"]}, "metadata": {"n": {"gt": 0}}});
    [
        ("listSessions", json!({"where": tag})),
        (
            "listEntries",
            json!({"sessionId": "s", "label": "kb", "where": tag}),
        ),
        (
            "searchContext",
            json!({"sessionId": "s", "label": "kb", "query": "tea", "where": tag}),
        ),
        ("search", json!({"query": "tea", "where": tag})),
    ]
    .into_iter()
    .map(|(operation, body)| alice.ok(operation, body))
    .collect()
}

fn populate(alice: &Alice, session: &str, count: usize) {
    let head = json!({"sessionId": session, "metadata": {"n": 1}, "tags": ["red"]});
    alice.ok("updateSession", head);
    let block = json!({"sessionId": session, "label": "kb", "kind": "searchable"});
    alice.ok("defineBlock", block);
    for number in 0..count {
        let entry = json!({"sessionId": session, "label": "kb", "key": format!("k{number}"),
                           "content": "tea", "tags": ["red"], "metadata": {"n": number}});
        alice.ok("setEntry", entry);
        let events = json!([{"action": "user_message", "content": "tea"}]);
        alice.ok(
            "appendEvents",
            json!({"sessionId": session, "events": events}),
        );
    }
}

fn as_caller_of_s(alice: Alice) -> Alice {
    Alice {
        caller: Caller::Scoped(TokenScope {
            session_id: Some(Id::parse("s".to_owned()).unwrap()),
            expires_at: i64::MAX,
            ..TokenScope::default()
        }),
        ..alice
    }
}

#[test]
fn a_filter_reveals_nothing_about_other_sessions() {
    let alice = Alice::with_session();
    populate(&alice, "s", 3);
    let alice = as_caller_of_s(alice);
    seen(&alice);
    let before = seen(&alice);
    assert_eq!(before[1]["entries"].as_array().unwrap().len(), 2);
    assert_eq!(before[3]["results"].as_array().unwrap().len(), 3);
    let alice = Alice {
        caller: Caller::Owner,
        ..alice
    };
    for session in ["t", "u"] {
        alice.ok("createSession", json!({"id": session}));
        populate(&alice, session, 40);
    }
    let alice = as_caller_of_s(alice);
    assert_eq!(seen(&alice), before);
    let other = json!({"sessionId": "t", "label": "kb", "key": "k1"});
    assert_eq!(alice.refused("getEntry", other), "forbidden");
}
