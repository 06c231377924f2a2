//! Versions of entries and documents, and facts that are true for a limited time.

use serde_json::{Value, json};

use crate::Alice;
use crate::shared::turns::{calls, text_answer};
use base::database::Database;
use base::host::Host as _;

/// An agent with a searchable block `kb` and a loadable block `guides`.
fn populated() -> Alice {
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

/// The keys of a search's results, and of its `past` results.
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
fn an_entry_has_versions_with_authors_and_can_be_reverted() {
    let alice = populated();
    set(&alice, "home", "Oslo", json!({"title": "Home"}));
    alice.host.advance(10);
    let arguments = json!({"label": "kb", "content": "Bergen", "metadata": {"title": "Home"}});
    let tool = json!({"sessionId": "s", "name": "set_context", "arguments": arguments});
    assert_eq!(alice.ok("callTool", tool)["isError"], false);
    alice.host.advance(10);
    set(&alice, "home", "Rome", json!({}));
    let answer = versions(&alice, "kb", "home");
    let shown: Vec<_> = answer
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
        (&answer[2]["title"], &answer[0]["title"]),
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
    // The same text again is not a new version.
    set(&alice, "home", "Oslo", json!({"title": "Home"}));
    assert_eq!(versions(&alice, "kb", "home").len(), 4);
}

#[test]
fn a_deleted_entry_is_marked_and_restorable() {
    let alice = populated();
    set(&alice, "home", "Oslo", json!({}));
    let place = json!({"label": "kb", "key": "home"});
    let deleted = alice.ok("deleteEntry", place.clone());
    assert_eq!(deleted, json!({"deleted": true, "versionsKept": 1}));
    let again = alice.ok("deleteEntry", place);
    assert_eq!(again, json!({"deleted": false}));
    let answer = versions(&alice, "kb", "home");
    assert_eq!(
        (&answer[0]["version"], &answer[0]["deleted"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(found(&alice, "oslo", json!({})).0, names(&[]));
    let revert = |version: i64| json!({"label": "kb", "key": "home", "version": version});
    assert_eq!(alice.refused("revertBlock", revert(2)), "invalid_request");
    assert_eq!(alice.refused("revertBlock", revert(9)), "invalid_request");
    let block = alice.ok("revertBlock", revert(1));
    assert_eq!(block["content"], "1 entry indexed.");
    let answer = versions(&alice, "kb", "home");
    let numbers: Vec<&Value> = answer.iter().map(|version| &version["version"]).collect();
    assert_eq!(numbers, [3, 2, 1]);
    assert_eq!(found(&alice, "oslo", json!({})).0, names(&["home"]));
}

#[test]
fn documents_have_versions_too() {
    let alice = populated();
    let put = |content: &str, description: Value| {
        let body =
            json!({"label": "guides", "key": "g", "content": content, "description": description});
        alice.ok("putSkill", body);
    };
    put("one", json!("First."));
    put("two", Value::Null);
    alice.ok("deleteSkill", json!({"label": "guides", "key": "g"}));
    let answer = versions(&alice, "guides", "g");
    assert_eq!(answer.len(), 3);
    assert_eq!(
        (&answer[2]["content"], &answer[2]["title"]),
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
fn a_bounded_number_of_versions_is_stored() {
    let alice = populated();
    for n in 0..30 {
        set(&alice, "home", &format!("Text {n}."), json!({}));
        let body = json!({"label": "guides", "key": "g", "content": format!("Text {n}.")});
        alice.ok("putSkill", body);
    }
    let numbers = |label: &str, key: &str| -> Vec<i64> {
        let answer = versions(&alice, label, key);
        answer
            .iter()
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
fn a_bounded_number_of_deleted_entries_is_stored() {
    let alice = populated();
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
fn a_replaced_fact_is_found_in_the_past_and_names_its_successor() {
    let alice = populated();
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
        "[rome]\n(source: operator; written 1970-01-01; replaces oslo)\n> The user lives in Rome.\n\n[oslo] is no longer true: rome replaced it on 1970-01-01."
    );
    assert_eq!(
        tool(json!({"label": "kb", "query": "lives", "asOf": "1970-01-01"})),
        "[rome]\n(source: operator; written 1970-01-01; replaces oslo)\n> The user lives in Rome."
    );
    assert!(tool(json!({"label": "kb", "query": "lives", "asOf": "soon"})).contains("2026-01-31"));
}

#[test]
fn the_newest_of_cyclically_replaced_facts_is_valid() {
    let alice = populated();
    set(&alice, "a", "The fact is a.", json!({}));
    set(&alice, "b", "The fact is b.", json!({"supersedes": ["a"]}));
    set(&alice, "c", "The fact is c.", json!({"supersedes": ["b"]}));
    assert_eq!(found(&alice, "fact", json!({})).0, names(&["c"]));
    set(&alice, "a", "The fact is a.", json!({"supersedes": ["c"]}));
    assert_eq!(found(&alice, "fact", json!({})).0, names(&["a"]));
    // A fact that is rewritten without naming others is valid as well.
    set(&alice, "b", "The fact is b.", json!({}));
    assert_eq!(found(&alice, "fact", json!({})).0, names(&["a", "b"]));
}

#[test]
fn a_fact_is_valid_within_its_time_range() {
    let alice = populated();
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
fn a_past_search_returns_the_past_text() {
    let alice = populated();
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
    // The newest text has a start time.
    set(
        &alice,
        "home",
        "Bergen",
        json!({"title": "Home", "validFrom": 1_000_400}),
    );
    assert_eq!(at(1_000_500), "Bergen");
}

#[test]
fn a_past_search_matches_the_past_words() {
    let alice = populated();
    set(&alice, "home", "Oslo", json!({"title": "Where"}));
    set(&alice, "gone", "Old Oslo harbour", json!({}));
    set(&alice, "same", "A trip to Oslo", json!({}));
    alice.host.advance(1_000);
    set(&alice, "home", "Rome", json!({"title": "Where"}));
    alice.ok("deleteEntry", json!({"label": "kb", "key": "gone"}));
    set(&alice, "new", "Oslo again", json!({}));
    let at = |query: &str, time: i64| found(&alice, query, json!({"asOf": time})).0;
    let start_ms = 1_000_500;
    assert_eq!(at("oslo", start_ms), names(&["gone", "home", "same"]));
    assert_eq!(at("rome", start_ms), names(&[]));
    assert_eq!(at("where", start_ms), names(&["home"]));
    assert_eq!(at("\"oslo harbour\"", start_ms), names(&["gone"]));
    assert_eq!(at("\"harbour oslo\"", start_ms), names(&[]));
    assert_eq!(at("harb*", start_ms), names(&["gone"]));
    assert_eq!(at("harbours", start_ms), names(&["gone"]));
    assert_eq!(at("oslo", 1_001_000), names(&["new", "same"]));
    assert_eq!(at("rome", 1_001_000), names(&["home"]));
    assert_eq!(at("oslo", 999_999), names(&[]));
    let body = json!({"label": "kb", "query": "old oslo", "asOf": start_ms, "limit": 1});
    let best = &alice.ok("searchContext", body)["results"][0];
    assert_eq!(
        (&best["content"], &best["snippet"], &best["highlights"]),
        (
            &json!("Old Oslo harbour"),
            &json!("Old Oslo harbour"),
            &json!([[0, 3], [4, 8]])
        )
    );
    // A text that is valid only later leaves the earlier one valid until then.
    set(
        &alice,
        "same",
        "A trip to Bonn",
        json!({"validFrom": 1_002_000}),
    );
    assert_eq!(at("oslo", 1_001_000), names(&["new", "same"]));
    assert_eq!(at("oslo", 1_002_000), names(&["new"]));
    assert_eq!(at("bonn", 1_002_000), names(&["same"]));
}

#[test]
fn a_past_search_reads_a_bounded_number_of_bytes() {
    let alice = populated();
    let long = "x ".repeat(30_000);
    for n in 0..40 {
        alice.host.advance(1);
        let key = format!("k{n:02}");
        set(&alice, &key, &format!("needle {long}"), json!({}));
        set(&alice, &key, "something else", json!({}));
    }
    let past = json!({"asOf": 1_000_040, "limit": 100});
    assert_eq!(
        found(&alice, "needle", past).0,
        names(&[]),
        "both at the same time"
    );
    for n in 0..40 {
        set(
            &alice,
            &format!("k{n:02}"),
            &format!("needle {long}"),
            json!({}),
        );
    }
    let now = alice.host.now_ms();
    alice.host.advance(10);
    for n in 0..40 {
        set(&alice, &format!("k{n:02}"), "short", json!({}));
    }
    let answer = found(&alice, "needle", json!({"asOf": now, "limit": 100})).0;
    // 34 texts of 60 KB fit into 2 MiB.
    assert_eq!(answer.len(), 34);
}

#[test]
fn deleting_a_fact_restores_the_facts_it_replaced() {
    let alice = populated();
    let fact = |key: &str| format!("The fact is {key}.");
    let holds = || found(&alice, "fact", json!({}));
    set(&alice, "a", &fact("a"), json!({}));
    for (key, replaced) in [("b", "a"), ("c", "a")] {
        alice.host.advance(10);
        set(&alice, key, &fact(key), json!({"supersedes": [replaced]}));
    }
    let delete = |key: &str| {
        alice.ok("deleteEntry", json!({"label": "kb", "key": key}));
    };
    assert_eq!(holds(), (names(&["b", "c"]), names(&["a"])));
    // Another entry replaced the fact, too.
    delete("c");
    let past = alice.ok("searchContext", json!({"label": "kb", "query": "fact"}));
    let replaced = &past["past"][0];
    assert_eq!(
        (
            &replaced["key"],
            &replaced["supersededBy"],
            &replaced["supersededAt"]
        ),
        (&json!("a"), &json!("b"), &json!(1_000_010))
    );
    delete("b");
    assert_eq!(holds(), (names(&["a"]), names(&[])));
    // The deleted fact is restored, and again replaces the facts that it had replaced.
    alice.ok(
        "revertBlock",
        json!({"label": "kb", "key": "b", "version": 1}),
    );
    assert_eq!(holds(), (names(&["b"]), names(&["a"])));
    // A text that replaces other facts restores those that it had replaced.
    set(&alice, "d", &fact("d"), json!({}));
    set(&alice, "b", &fact("b"), json!({"supersedes": ["d"]}));
    assert_eq!(holds(), (names(&["a", "b"]), names(&["d"])));
    alice.ok(
        "revertBlock",
        json!({"label": "kb", "key": "b", "version": 3}),
    );
    assert_eq!(holds(), (names(&["b", "d"]), names(&["a"])));
    // A deleted fact is not replaced again.
    delete("a");
    delete("b");
    alice.ok(
        "revertBlock",
        json!({"label": "kb", "key": "b", "version": 3}),
    );
    assert_eq!(holds(), (names(&["b", "d"]), names(&[])));
    // A rewritten fact is valid, whichever fact replaced it before.
    set(&alice, "e", &fact("e"), json!({"supersedes": ["d"]}));
    alice.host.advance(10);
    set(&alice, "d", &fact("d anew"), json!({}));
    set(&alice, "f", &fact("f"), json!({"supersedes": ["d"]}));
    delete("f");
    assert_eq!(holds(), (names(&["b", "d", "e"]), names(&[])));
}

#[test]
fn a_model_sets_validity_and_replaced_facts() {
    let alice = populated();
    let tool = |metadata: Value| {
        let arguments = json!({"label": "kb", "content": "Lives there.", "metadata": metadata});
        let body = json!({"sessionId": "s", "name": "set_context", "arguments": arguments});
        let answer = alice.ok("callTool", body);
        (
            answer["isError"].clone(),
            answer["output"].as_str().unwrap().to_owned(),
        )
    };
    let listed = |key: &str| {
        let entries = alice.ok("listEntries", json!({"label": "kb"}));
        let entries = entries["entries"].as_array().unwrap().clone();
        entries
            .into_iter()
            .find(|entry| entry["key"] == key)
            .unwrap()
    };
    assert_eq!(tool(json!({"title": "Oslo"})).0, false);
    assert_eq!(
        tool(
            json!({"title": "Rome", "supersedes": ["[oslo]", "oslo"], "validFrom": "1970-01-01",
                    "validUntil": "1970-01-31"})
        )
        .0,
        false
    );
    let rome = listed("rome");
    assert_eq!(rome["supersedes"], json!(["oslo"]));
    assert_eq!(
        (&rome["validFrom"], &rome["validUntil"]),
        (&json!(0), &json!(31 * 86_400_000_i64))
    );
    assert_eq!(listed("oslo")["supersededBy"], "rome");
    // One key is a list of one.
    assert_eq!(
        tool(json!({"title": "Bonn", "supersedes": "rome"})).0,
        false
    );
    assert_eq!(found(&alice, "lives", json!({})).0, names(&["bonn"]));
    let arguments = json!({"label": "kb", "content": "In the north.", "action": "append",
                           "metadata": {"title": "Rome"}});
    alice.ok(
        "callTool",
        json!({"name": "set_context", "arguments": arguments}),
    );
    assert_eq!(listed("rome")["validUntil"], 31 * 86_400_000_i64);
    let before = alice.db.dump();
    for (metadata, answer) in [
        (json!({"supersedes": ["nobody"]}), "doesn't have"),
        (
            json!({"supersedes": [7]}),
            "`metadata.supersedes` must be a list",
        ),
        (
            json!({"supersedes": {}}),
            "`metadata.supersedes` must be a list",
        ),
        (
            json!({"supersedes": (0..21).map(|n| format!("k{n}")).collect::<Vec<_>>()}),
            "at most 20",
        ),
        (
            json!({"validFrom": "soon"}),
            "`metadata.validFrom` must be a day",
        ),
        (
            json!({"validUntil": 5}),
            "`metadata.validUntil` must be a string",
        ),
        (
            json!({"validFrom": "2026-02-01", "validUntil": "2026-01-01"}),
            "later than",
        ),
    ] {
        let mut metadata = metadata;
        metadata["title"] = json!("Paris");
        let (is_error, output) = tool(metadata.clone());
        assert_eq!(is_error, true, "{metadata}");
        assert!(output.contains(answer), "{output}");
    }
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn a_version_names_the_message_in_which_a_model_wrote_it() {
    let alice = Alice::with_model();
    for (label, kind) in [
        ("notes", "writable"),
        ("kb", "searchable"),
        ("guides", "loadable"),
    ] {
        alice.ok("defineBlock", json!({"label": label, "kind": kind}));
    }
    let call = |label: &str, title: &str| json!({"label": label, "content": "Green.", "metadata": {"title": title}});
    alice.outbound.answer(calls(&[
        ("c1", "set_context", call("notes", "")),
        ("c2", "set_context", call("kb", "Colour")),
        ("c3", "set_context", call("guides", "Colour")),
    ]));
    alice.outbound.answer(text_answer("Noted."));
    alice.chat_text("My colour is green.");
    let history = alice.ok("getHistory", json!({"sessionId": "s"}));
    let answer = &history["messages"][1]["id"];
    for (label, key) in [
        ("notes", None),
        ("kb", Some("colour")),
        ("guides", Some("colour")),
    ] {
        let reply = alice.ok("getBlockVersions", json!({"label": label, "key": key}));
        let newest = &reply["versions"][0];
        assert_eq!(&newest["eventId"], answer, "{label}");
        assert_eq!(
            (&newest["writtenBy"], &newest["sessionId"]),
            (&json!("tool"), &json!("s"))
        );
        assert!(newest["turnId"].is_string());
    }
    alice.ok("setBlock", json!({"label": "notes", "content": "Blue."}));
    let reply = alice.ok("getBlockVersions", json!({"label": "notes"}));
    assert!(reply["versions"][0].get("eventId").is_none());
}

#[test]
fn invalid_times_are_refused_and_write_nothing() {
    let alice = populated();
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
        assert_eq!(error.details()["field"], field, "{more}");
    }
    alice.ok("defineBlock", json!({"label": "text", "kind": "writable"}));
    let text = json!({"label": "text", "key": "a"});
    assert_eq!(alice.refused("getBlockVersions", text), "invalid_request");
    alice.ok("removeBlock", json!({"label": "text"}));
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn versions_are_forked_exported_and_deleted_with_a_session() {
    let alice = Alice::with_session();
    alice.append_texts(&["Hello."]);
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
    let input = json!({"label": "kb", "key": "c", "content": "Not for long."});
    alice.ok("setEntry", of_session(input));
    alice.ok(
        "deleteEntry",
        of_session(json!({"label": "kb", "key": "c"})),
    );
    let file = alice.export("s").unwrap();
    alice.import("t", &file).unwrap();
    assert_eq!(
        alice.export("t").unwrap(),
        file.replace("\"id\":\"s\"", "\"id\":\"t\"")
    );
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    let answer = |session: &Value, label: &str, key: &str| {
        let body = json!({"sessionId": session, "label": label, "key": key});
        alice.ok("getBlockVersions", body)
    };
    for session in [&json!("t"), &fork["id"]] {
        for (label, key) in [("kb", "a"), ("kb", "c"), ("guides", "g")] {
            assert_eq!(
                answer(session, label, key),
                answer(&json!("s"), label, key),
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
