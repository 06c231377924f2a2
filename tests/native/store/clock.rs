//! A clock that is set back: nothing stored becomes older, and no replaced fact becomes true again.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::{Alice, ids};
use base::testing::Dice;

const START_MS: i64 = 1_700_000_000_000;

fn populated() -> Alice {
    let alice = Alice::with_session();
    alice.host.advance(START_MS);
    for (label, kind) in [
        ("kb", "searchable"),
        ("guides", "loadable"),
        ("notes", "writable"),
    ] {
        alice.ok("defineBlock", json!({"label": label, "kind": kind}));
    }
    alice
}

fn current(alice: &Alice) -> BTreeSet<String> {
    let body = json!({"label": "kb", "query": "fact", "limit": 50});
    let found = alice.ok("searchContext", body);
    let results = found["results"].as_array().unwrap().iter();
    results
        .map(|entry| entry["key"].as_str().unwrap().to_owned())
        .collect()
}

fn set(alice: &Alice, key: &str, content: &str, supersedes: &[&str]) {
    let mut body = json!({"label": "kb", "key": key, "content": format!("a fact: {content}")});
    if !supersedes.is_empty() {
        body["supersedes"] = json!(supersedes);
    }
    alice.ok("setEntry", body);
}

fn keys(keys: &[&str]) -> BTreeSet<String> {
    keys.iter().map(|key| (*key).to_owned()).collect()
}

#[test]
fn a_replaced_fact_stays_replaced_when_the_clock_moves_back() {
    let alice = populated();
    set(&alice, "oslo", "she lives in Oslo", &[]);
    alice.host.advance(1_000);
    set(&alice, "rome", "she lives in Rome", &["oslo"]);
    alice.host.advance(-5_000);
    assert_eq!(current(&alice), keys(&["rome"]));
    // A fact that will be replaced later is still valid.
    let later = START_MS + 10_000_000;
    alice.ok(
        "setEntry",
        json!({"label": "kb", "key": "bonn", "content": "a fact: she moves to Bonn", "supersedes": ["rome"], "validFrom": later}),
    );
    assert_eq!(current(&alice), keys(&["rome"]));
    alice.host.advance(20_000_000);
    assert_eq!(current(&alice), keys(&["bonn"]));
}

#[test]
fn a_replacement_after_the_clock_moved_back_applies() {
    let alice = populated();
    set(&alice, "oslo", "Oslo", &[]);
    alice.host.advance(-5_000);
    set(&alice, "rome", "Rome", &["oslo"]);
    set(&alice, "bonn", "Bonn", &["oslo"]);
    assert_eq!(current(&alice), keys(&["bonn", "rome"]));
    // Rome still replaces it.
    alice.ok("deleteEntry", json!({"label": "kb", "key": "bonn"}));
    assert_eq!(current(&alice), keys(&["rome"]));
    // A fact that is repeated is valid from now on.
    set(&alice, "oslo", "Oslo again", &[]);
    assert_eq!(current(&alice), keys(&["oslo", "rome"]));
}

#[test]
fn deleting_the_newest_event_does_not_make_a_session_older() {
    let alice = populated();
    let first = alice.append_texts(&["one"]);
    alice.host.advance(1_000);
    let newest = alice.append_texts(&["two"]);
    let at = || {
        alice.ok("getSession", json!({"sessionId": "s"}))["updatedAt"]
            .as_i64()
            .unwrap()
    };
    let before = at();
    alice.host.advance(-1_000_000);
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": newest}),
    );
    assert!(at() >= before);
    alice.ok(
        "deleteMessages",
        json!({"sessionId": "s", "messageIds": first}),
    );
    alice.append_texts(&["three"]);
    alice.ok("clearMessages", json!({"sessionId": "s"}));
    assert!(at() >= before);
}

/// Every timestamp that a caller can read, by the item to which it belongs.
fn times(alice: &Alice) -> BTreeMap<String, i64> {
    let mut times = BTreeMap::new();
    let mut note = |name: String, value: &Value| {
        if let Some(at) = value.as_i64() {
            times.insert(name, at);
        }
    };
    note(
        "session".to_owned(),
        &alice.ok("getSession", json!({"sessionId": "s"}))["updatedAt"],
    );
    for block in alice.ok("getBlocks", json!({})).as_array().unwrap() {
        note(format!("block {}", block["label"]), &block["updatedAt"]);
    }
    for (operation, label, list) in [
        ("listEntries", "kb", "entries"),
        ("listSkills", "guides", "skills"),
    ] {
        let page = alice.ok(operation, json!({"label": label}));
        for item in page[list].as_array().unwrap() {
            note(format!("{label} {}", item["key"]), &item["updatedAt"]);
        }
    }
    let frozen = alice.ok("freezePrompt", json!({}));
    note("prompt".to_owned(), &frozen["frozenAt"]);
    times
}

/// Versions, events and changes by their order: none is older than the one before it.
fn check_order(alice: &Alice, game: &str) {
    let check = |name: &str, times: Vec<i64>| {
        assert!(times.is_sorted(), "{game}: {name}: {times:?}");
    };
    let written = |list: &Value| -> Vec<i64> {
        let list = list.as_array().unwrap().iter().rev();
        list.map(|version| version["writtenAt"].as_i64().unwrap())
            .collect()
    };
    for (label, key) in [("notes", None), ("kb", Some("f0")), ("guides", Some("g0"))] {
        let mut body = json!({"label": label});
        if let Some(key) = key {
            body["key"] = json!(key);
        }
        if let Ok(answer) = alice.call("getBlockVersions", body) {
            check(label, written(&answer["versions"]));
        }
    }
    let events = alice.events();
    check(
        "events",
        events
            .iter()
            .map(|event| event["createdAt"].as_i64().unwrap())
            .collect(),
    );
}

#[test]
fn random_clocks_never_revive_or_age_anything() {
    for seed in 1..=25_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let alice = populated();
        let mut holds: BTreeSet<String> = BTreeSet::new();
        let mut made = 0;
        let mut before = times(&alice);
        for step in 0..60 {
            let game = format!("seed {seed}, step {step}");
            let back = dice.roll(3) == 0;
            let ms = [5, 5_000, 500_000_000][dice.roll(3)];
            alice.host.advance(if back { -ms } else { ms / 2 });
            let some: Vec<String> = ids(&json!(alice.events()));
            let any = |dice: &mut Dice| some.get(dice.roll(some.len().max(1))).cloned();
            let content = format!("text {step}");
            match dice.roll(18) {
                0 | 1 => drop(alice.append_texts(&[&content])),
                2 => {
                    let parts = json!([{"type": "text", "text": content}]);
                    let message = json!({"id": format!("m{step}"), "role": "user", "parts": parts});
                    alice.ok(
                        "appendMessage",
                        json!({"sessionId": "s", "message": message}),
                    );
                    alice.host.advance(-7_000);
                    let parts = json!([{"type": "text", "text": format!("{content}!")}]);
                    let message = json!({"id": format!("m{step}"), "role": "user", "parts": parts});
                    alice.ok(
                        "updateMessage",
                        json!({"sessionId": "s", "message": message}),
                    );
                }
                3 => {
                    if let Some(id) = any(&mut dice) {
                        alice.ok("deleteEvents", json!({"sessionId": "s", "eventIds": [id]}));
                    }
                }
                4 => {
                    if let Some(id) = any(&mut dice) {
                        alice.ok("setLeaf", json!({"sessionId": "s", "id": id}));
                    }
                }
                5 => drop(alice.ok("addUsage", json!({"sessionId": "s", "inputTokens": 3}))),
                6 => drop(alice.ok("updateSession", json!({"sessionId": "s", "name": content}))),
                7 if dice.roll(4) == 0 => {
                    drop(alice.ok("clearMessages", json!({"sessionId": "s"})));
                }
                8 => {
                    let leaf = alice.ok("getLatestLeaf", json!({"sessionId": "s"}));
                    if let Some(id) = leaf["id"].as_str() {
                        alice
                            .call("addCompaction", json!({"sessionId": "s", "summary": content, "fromId": id, "toId": id}))
                            .ok();
                    }
                }
                9 => drop(alice.ok("setBlock", json!({"label": "notes", "content": content}))),
                10 => drop(alice.ok(
                    "defineBlock",
                    json!({"label": "notes", "kind": "writable", "description": content}),
                )),
                11 => drop(alice.ok("refreshPrompt", json!({}))),
                12 => drop(alice.ok(
                    "putSkill",
                    json!({"label": "guides", "key": "g0", "content": content}),
                )),
                13 => {
                    alice.ok("deleteSkill", json!({"label": "guides", "key": "g0"}));
                    before.remove("guides \"g0\"");
                }
                // A new fact that replaces a valid one.
                14 | 15 => {
                    let replaced = holds.iter().nth(dice.roll(holds.len().max(1))).cloned();
                    let key = format!("f{made}");
                    made += 1;
                    set(
                        &alice,
                        &key,
                        &content,
                        &replaced.iter().map(String::as_str).collect::<Vec<_>>(),
                    );
                    if let Some(replaced) = replaced {
                        holds.remove(&replaced);
                    }
                    holds.insert(key);
                }
                // A fact is rewritten, which makes it valid.
                16 if made > 0 => {
                    let key = format!("f{}", dice.roll(made));
                    set(&alice, &key, &content, &[]);
                    holds.insert(key);
                }
                _ => {}
            }
            assert_eq!(current(&alice), holds, "{game}");
            let now = times(&alice);
            for (name, at) in &before {
                let now = now
                    .get(name)
                    .unwrap_or_else(|| panic!("{game}: {name} is gone"));
                assert!(now >= at, "{game}: {name} went from {at} to {now}");
            }
            before = now;
            check_order(&alice, &game);
        }
    }
}
