//! Memory with a past: versions of entries and documents, and facts that hold for a time.

use serde_json::{Value, json};

use crate::base::database::Database;
use crate::tests::Alice;

/// An agent with a searchable block `kb` and a loadable block `guides`.
fn furnished() -> Alice {
    let alice = Alice::with_session();
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    alice.ok(
        "defineBlock",
        json!({"label": "guides", "kind": "loadable"}),
    );
    alice
}

fn set(alice: &Alice, key: &str, content: &str, more: Value) -> Value {
    let mut body = json!({"label": "kb", "key": key, "content": content});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    alice.ok("setEntry", body)
}

fn versions(alice: &Alice, label: &str, key: &str) -> Vec<Value> {
    let body = json!({"label": label, "key": key});
    let versions = alice.ok("getBlockVersions", body);
    versions["versions"].as_array().unwrap().clone()
}

/// The keys that a search finds, and those of its `past`.
fn found(alice: &Alice, query: &str, more: Value) -> (Vec<String>, Vec<String>) {
    let mut body = json!({"label": "kb", "query": query});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let answer = alice.ok("searchContext", body);
    let keys = |list: &Value| -> Vec<String> {
        let list = list.as_array().into_iter().flatten();
        list.map(|item| item["key"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut results = keys(&answer["results"]);
    results.sort();
    (results, keys(&answer["past"]))
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn an_entry_has_versions_with_their_authors_and_goes_back_to_each() {
    let alice = furnished();
    set(&alice, "home", "Oslo", json!({"title": "Home"}));
    alice.host.advance(10);
    let arguments = json!({"label": "kb", "content": "Bergen", "metadata": {"title": "Home"}});
    let tool = json!({"sessionId": "s", "name": "set_context", "arguments": arguments});
    assert_eq!(alice.ok("callTool", tool)["isError"], false);
    alice.host.advance(10);
    set(&alice, "home", "Rome", json!({}));
    let told = versions(&alice, "kb", "home");
    let shown: Vec<_> = told
        .iter()
        .map(|version| {
            let fields = ["version", "content", "writtenBy", "sessionId", "writtenAt"];
            fields.map(|field| version[field].clone())
        })
        .collect();
    assert_eq!(
        json!(shown),
        json!([
            [3, "Rome", "operation", null, 1_000_020],
            [2, "Bergen", "tool", "s", 1_000_010],
            [1, "Oslo", "operation", null, 1_000_000]
        ])
    );
    assert_eq!(
        (&told[2]["title"], &told[0]["title"]),
        (&json!("Home"), &json!(null))
    );

    alice.ok(
        "revertBlock",
        json!({"label": "kb", "key": "home", "version": 1}),
    );
    let entries = alice.ok("listEntries", json!({"label": "kb"}));
    assert_eq!(entries["entries"][0]["content"], "Oslo");
    assert_eq!(entries["entries"][0]["title"], "Home");
    assert_eq!(versions(&alice, "kb", "home")[0]["version"], 4);
    assert_eq!(found(&alice, "oslo", json!({})).0, names(&["home"]));
    // The same text again is no version.
    set(&alice, "home", "Oslo", json!({"title": "Home"}));
    assert_eq!(versions(&alice, "kb", "home").len(), 4);
}

#[test]
fn a_deleted_entry_says_so_and_comes_back() {
    let alice = furnished();
    set(&alice, "home", "Oslo", json!({}));
    alice.ok("deleteEntry", json!({"label": "kb", "key": "home"}));
    let told = versions(&alice, "kb", "home");
    assert_eq!(
        (&told[0]["version"], &told[0]["deleted"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(found(&alice, "oslo", json!({})).0, names(&[]));
    let revert = |version: i64| json!({"label": "kb", "key": "home", "version": version});
    assert_eq!(alice.refused("revertBlock", revert(2)), "invalid_request");
    assert_eq!(alice.refused("revertBlock", revert(9)), "invalid_request");
    let block = alice.ok("revertBlock", revert(1));
    assert_eq!(block["content"], "1 entry indexed.");
    let told = versions(&alice, "kb", "home");
    let numbers: Vec<&Value> = told.iter().map(|version| &version["version"]).collect();
    assert_eq!(numbers, [3, 2, 1]);
    assert_eq!(found(&alice, "oslo", json!({})).0, names(&["home"]));
}

#[test]
fn a_document_has_versions_too() {
    let alice = furnished();
    let put = |content: &str, description: Value| {
        let body =
            json!({"label": "guides", "key": "g", "content": content, "description": description});
        alice.ok("putSkill", body);
    };
    put("one", json!("First."));
    put("two", Value::Null);
    alice.ok("deleteSkill", json!({"label": "guides", "key": "g"}));
    let told = versions(&alice, "guides", "g");
    assert_eq!(told.len(), 3);
    assert_eq!(
        (&told[2]["content"], &told[2]["title"]),
        (&json!("one"), &json!("First."))
    );
    alice.ok(
        "revertBlock",
        json!({"label": "guides", "key": "g", "version": 1}),
    );
    let document = alice.ok("loadSkill", json!({"label": "guides", "key": "g"}));
    assert_eq!(
        (&document["content"], &document["description"]),
        (&json!("one"), &json!("First."))
    );
    assert_eq!(versions(&alice, "guides", "g")[0]["version"], 4);
}

#[test]
fn a_bounded_number_of_versions_is_kept() {
    let alice = furnished();
    for n in 0..30 {
        set(&alice, "home", &format!("Text {n}."), json!({}));
        let body = json!({"label": "guides", "key": "g", "content": format!("Text {n}.")});
        alice.ok("putSkill", body);
    }
    let numbers = |label: &str, key: &str| -> Vec<i64> {
        let told = versions(&alice, label, key);
        told.iter()
            .map(|version| version["version"].as_i64().unwrap())
            .collect()
    };
    assert_eq!(numbers("kb", "home"), (10..=30).rev().collect::<Vec<_>>());
    assert_eq!(numbers("guides", "g"), (20..=30).rev().collect::<Vec<_>>());
    let sql = "SELECT count(*) FROM cf_agents_item_versions";
    assert_eq!(alice.db.rows(sql, &[]).unwrap()[0].integer(0).unwrap(), 30);
    let some = json!({"label": "kb", "key": "home", "limit": 2});
    assert_eq!(
        alice.ok("getBlockVersions", some)["versions"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn a_bounded_number_of_deleted_entries_is_kept() {
    let alice = furnished();
    for n in 0..1_003 {
        alice.host.advance(1);
        let key = format!("k{n:04}");
        set(&alice, &key, "x", json!({}));
        alice.ok("deleteEntry", json!({"label": "kb", "key": key}));
    }
    assert!(versions(&alice, "kb", "k0002").is_empty());
    assert_eq!(versions(&alice, "kb", "k0003").len(), 2);
    let sql = "SELECT count(*) FROM cf_agents_item_versions";
    assert_eq!(
        alice.db.rows(sql, &[]).unwrap()[0].integer(0).unwrap(),
        2_000
    );
}

#[test]
fn a_replaced_fact_is_found_in_the_past_and_named_now() {
    let alice = furnished();
    set(&alice, "oslo", "The user lives in Oslo.", json!({}));
    alice.host.advance(1_000);
    let newer = json!({"supersedes": ["oslo"]});
    let entry = set(&alice, "rome", "The user lives in Rome.", newer);
    assert_eq!(entry["supersedes"], json!(["oslo"]));
    let answer = alice.ok(
        "searchContext",
        json!({"label": "kb", "query": "where the user lives"}),
    );
    assert_eq!(answer["results"].as_array().unwrap().len(), 1);
    assert_eq!(answer["results"][0]["key"], "rome");
    assert_eq!(
        answer["past"],
        json!([{"key": "oslo", "title": null, "supersededBy": "rome", "supersededAt": 1_001_000}])
    );
    let at = |time: i64| found(&alice, "lives", json!({"asOf": time}));
    assert_eq!(at(999_999), (names(&[]), names(&[])));
    assert_eq!(at(1_000_500), (names(&["oslo"]), names(&[])));
    assert_eq!(at(1_001_000), (names(&["rome"]), names(&[])));

    let tool = |arguments: Value| {
        let body = json!({"name": "search_context", "arguments": arguments});
        alice.ok("callTool", body)["output"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let now = tool(json!({"label": "kb", "query": "lives"}));
    assert_eq!(
        now,
        "[rome]\n(in place of oslo)\nThe user lives in Rome.\n\n[oslo] holds no longer: rome replaced it on 1970-01-01."
    );
    assert_eq!(
        tool(json!({"label": "kb", "query": "lives", "asOf": "1970-01-01"})),
        "[rome]\n(in place of oslo)\nThe user lives in Rome."
    );
    assert!(tool(json!({"label": "kb", "query": "lives", "asOf": "soon"})).contains("2026-01-31"));
}

#[test]
fn of_facts_that_replace_each_other_in_a_circle_the_newest_holds() {
    let alice = furnished();
    set(&alice, "a", "The fact is a.", json!({}));
    set(&alice, "b", "The fact is b.", json!({"supersedes": ["a"]}));
    set(&alice, "c", "The fact is c.", json!({"supersedes": ["b"]}));
    assert_eq!(found(&alice, "fact", json!({})).0, names(&["c"]));
    set(&alice, "a", "The fact is a.", json!({"supersedes": ["c"]}));
    assert_eq!(found(&alice, "fact", json!({})).0, names(&["a"]));
    // A fact that is written again without a word about others holds as well.
    set(&alice, "b", "The fact is b.", json!({}));
    assert_eq!(found(&alice, "fact", json!({})).0, names(&["a", "b"]));
}

#[test]
fn a_fact_holds_while_its_time_lasts() {
    let alice = furnished();
    set(
        &alice,
        "trip",
        "A trip to Rome.",
        json!({"validFrom": 2_000_000, "validUntil": 3_000_000}),
    );
    set(
        &alice,
        "past",
        "A trip to Bonn.",
        json!({"validFrom": 1_000, "validUntil": 5_000}),
    );
    assert_eq!(
        found(&alice, "trip", json!({})),
        (names(&[]), names(&["past"]))
    );
    assert_eq!(
        found(&alice, "trip", json!({"asOf": 1_500})).0,
        names(&["past"])
    );
    assert_eq!(
        found(&alice, "trip", json!({"asOf": 2_000_000})).0,
        names(&["trip"])
    );
    assert_eq!(
        found(&alice, "trip", json!({"asOf": 3_000_000})).0,
        names(&[])
    );
    alice.host.advance(1_500_000);
    assert_eq!(found(&alice, "trip", json!({})).0, names(&["trip"]));
}

#[test]
fn a_search_in_the_past_shows_the_text_of_then() {
    let alice = furnished();
    set(&alice, "home", "Oslo", json!({"title": "Home"}));
    alice.host.advance(1_000);
    set(&alice, "home", "Rome", json!({"title": "Home"}));
    let at = |time: i64| {
        let body = json!({"label": "kb", "query": "home", "asOf": time});
        alice.ok("searchContext", body)["results"][0]["content"].clone()
    };
    assert_eq!(
        (at(1_000_500), at(1_001_000)),
        (json!("Oslo"), json!("Rome"))
    );
    // Somebody said since when the newest text holds.
    set(
        &alice,
        "home",
        "Bergen",
        json!({"title": "Home", "validFrom": 1_000_400}),
    );
    assert_eq!(at(1_000_500), "Bergen");
}

#[test]
fn nonsense_about_time_is_refused_and_writes_nothing() {
    let alice = furnished();
    set(&alice, "a", "x", json!({}));
    let before = alice.db.dump();
    for (more, field) in [
        (json!({"supersedes": ["nobody"]}), "supersedes"),
        (json!({"supersedes": ["a", "nobody"]}), "supersedes"),
        (json!({"supersedes": ["b"]}), "supersedes"),
        (json!({"supersedes": "a"}), "supersedes"),
        (json!({"supersedes": vec!["a"; 21]}), "supersedes"),
        (json!({"validFrom": 5, "validUntil": 5}), "validUntil"),
        (json!({"validFrom": "1970-01-01"}), "validFrom"),
        (json!({"validUntil": -1}), "validUntil"),
    ] {
        let mut body = json!({"label": "kb", "key": "b", "content": "x"});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let error = alice.call("setEntry", body).unwrap_err();
        assert_eq!(error.details["field"], field, "{more}");
    }
    alice.ok("defineBlock", json!({"label": "text", "kind": "writable"}));
    let text = json!({"label": "text", "key": "a"});
    assert_eq!(alice.refused("getBlockVersions", text), "invalid_request");
    alice.ok("removeBlock", json!({"label": "text"}));
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn the_past_goes_with_a_session_into_forks_and_files_and_away() {
    let alice = Alice::with_session();
    alice.say(&["Hello."]);
    let of_session = |body: Value| {
        let mut body = body;
        body["sessionId"] = json!("s");
        body
    };
    for (label, kind) in [("kb", "searchable"), ("guides", "loadable")] {
        alice.ok(
            "defineBlock",
            of_session(json!({"label": label, "kind": kind})),
        );
    }
    for n in 0..25 {
        let content = format!("Text {n}.");
        alice.ok(
            "setEntry",
            of_session(json!({"label": "kb", "key": "a", "content": content})),
        );
        alice.ok(
            "putSkill",
            of_session(json!({"label": "guides", "key": "g", "content": content})),
        );
    }
    let newer = json!({"label": "kb", "key": "b", "content": "Newer.", "supersedes": ["a"]});
    alice.ok("setEntry", of_session(newer));
    alice.ok(
        "deleteEntry",
        of_session(json!({"label": "kb", "key": "b"})),
    );
    let file = alice.export("s").unwrap();
    alice.import("t", &file).unwrap();
    assert_eq!(
        alice.export("t").unwrap(),
        file.replace("\"id\":\"s\"", "\"id\":\"t\"")
    );
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    let told = |session: &Value, label: &str, key: &str| {
        let body = json!({"sessionId": session, "label": label, "key": key});
        alice.ok("getBlockVersions", body)
    };
    for session in [&json!("t"), &fork["id"]] {
        for (label, key) in [("kb", "a"), ("kb", "b"), ("guides", "g")] {
            assert_eq!(
                told(session, label, key),
                told(&json!("s"), label, key),
                "{session}"
            );
        }
        let list = json!({"sessionId": session, "label": "kb"});
        assert_eq!(
            alice.ok("listEntries", list)["entries"][0]["supersededBy"],
            "b"
        );
    }
    for session in [&json!("s"), &json!("t"), &fork["id"]] {
        alice.ok("deleteSession", json!({"sessionId": session}));
    }
    let sql = "SELECT count(*) FROM cf_agents_item_versions";
    assert_eq!(alice.db.rows(sql, &[]).unwrap()[0].integer(0).unwrap(), 0);
}
