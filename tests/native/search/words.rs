//! Search by words.

use serde_json::{Value, json};

use crate::{Alice, ids};
use access::{Caller, TokenScope};
use base::database::Database;
use base::ids::Id;

#[test]
fn a_hit_has_its_position_and_snippet() {
    let alice = Alice::with_session();
    alice.ok("updateSession", json!({"sessionId": "s", "name": "Ops"}));
    alice.append_message("a", "The deployment failed on Friday.");
    alice.append_message("b", "Lunch was good.");
    let hits = alice.search("deploying");
    assert_eq!(hits.len(), 1);
    let mut hit = hits[0].clone();
    assert!(hit["score"].as_f64().unwrap() > 0.0);
    hit.as_object_mut().unwrap().remove("score");
    assert_eq!(
        hit,
        json!({
            "sessionId": "s", "sessionName": "Ops", "id": "a", "role": "user", "action": "user_message", "seq": 1,
            "createdAt": 1_000_000, "snippet": "The deployment failed on Friday.", "highlights": [[4, 14]]
        })
    );
}

#[test]
fn a_snippet_is_plain_text_without_markup() {
    let alice = Alice::with_session();
    alice.append_message("a", "\u{1F600} <img src=x onerror=alert(1)> apple</mark>");
    let hit = &alice.search("apples image")[0];
    assert_eq!(
        hit["snippet"],
        "\u{1F600} <img src=x onerror=alert(1)> apple</mark>"
    );
    assert_eq!(hit["highlights"], json!([[32, 37]]));
}

#[test]
fn words_phrases_prefixes_and_accents() {
    let alice = Alice::with_session();
    for (id, text) in [
        ("a", "We drank coffee in the old café."),
        ("b", "An old coffee machine; coffee everywhere"),
        ("c", "Deploy the deployments"),
        ("d", "東京都の天気は晴れです"),
        ("e", "the of and to in it"),
    ] {
        alice.append_message(id, text);
    }
    assert_eq!(alice.found("\"old coffee\""), ["b"]);
    assert_eq!(alice.found("\"coffee old\""), Vec::<String>::new());
    assert_eq!(alice.found("cafe"), ["a"]);
    assert_eq!(alice.found("deploym*"), ["c"]);
    assert_eq!(alice.found("東京"), ["d"]);
    assert_eq!(alice.found("天気"), ["d"]);
    assert_eq!(alice.found("nothing of the kind machine"), ["b"]);
    assert_eq!(alice.found("of and to"), ["e"]);
    assert!(alice.found("zebra").is_empty());
}

#[test]
fn tools_and_messages_and_long_texts_are_searched_whole() {
    let alice = Alice::with_session();
    let long = format!("{} needle {}", "hay ".repeat(700_000), "hay ".repeat(10));
    let fill = |alice: &Alice| {
        alice.ok("appendEvents", json!({"sessionId": "s", "events": [
            {"id": "call", "action": "tool_call_request", "toolCalls": [{"id": "c", "name": "weather", "arguments": {"city": "Trondheim"}}]},
            {"id": "result", "action": "tool_result", "toolCallId": "c", "toolName": "weather", "content": "hailstorm"},
        ]}));
        alice.ok("appendMessage", json!({"sessionId": "s", "message": {"id": "message", "role": "assistant", "parts": [
            {"type": "text", "text": "a plain answer"},
            {"type": "tool-lookup", "toolCallId": "x", "state": "output-available", "input": {"q": "marmalade"}, "output": {"rows": ["quince"]}}
        ]}}));
        alice.append_message("long", &long);
        alice.ok("appendMessage", json!({"sessionId": "s", "message": {"id": "long-message", "role": "user", "parts": [{"type": "text", "text": long.replace("needle", "haystack")}]}}));
    };
    let check = |alice: &Alice| {
        for (query, id) in [
            ("Trondheim", "call"),
            ("hailstorm", "result"),
            ("marmalade", "message"),
            ("quince", "message"),
            ("answer", "message"),
            ("needle", "long"),
            ("haystack", "long-message"),
        ] {
            assert_eq!(alice.found(query), [id], "{query}");
        }
        assert!(alice.search_with("needle", json!({"sessionId": "s"})).len() == 1);
    };
    // The texts are written once before the first search, and once after it.
    fill(&alice);
    check(&alice);
    let alice = Alice::with_session();
    assert!(alice.found("anything").is_empty());
    fill(&alice);
    check(&alice);
    alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": ["long", "long-message"]}),
    );
    assert!(alice.found("needle haystack").is_empty());
    assert!(!alice.db.dump().contains("cf_agents_search_parts"));
}

#[test]
fn filters_narrow_the_results() {
    let alice = Alice::with_session();
    alice.ok("createSession", json!({"id": "t"}));
    for (session, id, action, at) in [
        ("s", "a", "user_message", 10),
        ("s", "b", "agent_message", 20),
        ("t", "c", "user_message", 30),
        ("t", "d", "system_instruction", 40),
    ] {
        alice.ok("appendEvents", json!({"sessionId": session, "events": [{"id": id, "action": action, "content": "apple", "createdAt": at}]}));
    }
    let found = |more: Value| {
        let mut ids = ids(&Value::from(alice.search_with("apples", more)));
        ids.sort();
        ids.join("")
    };
    for (more, expected) in [
        (json!({}), "abcd"),
        (json!({"sessionId": "s"}), "ab"),
        (json!({"roles": ["user"]}), "ac"),
        (json!({"roles": ["assistant", "system"]}), "bd"),
        (json!({"roles": ["tool"]}), ""),
        (json!({"roles": []}), "abcd"),
        (json!({"since": 20}), "bcd"),
        (json!({"until": 20}), "ab"),
        (json!({"since": 20, "until": 30, "roles": ["user"]}), "c"),
        (json!({"since": 20, "sessionId": "s"}), "b"),
    ] {
        assert_eq!(found(more.clone()), expected, "{more}");
    }
    assert_eq!(alice.search_with("apple", json!({"limit": 3})).len(), 3);
    assert_eq!(
        alice.refused("search", json!({"query": "apple", "sessionId": "nobody"})),
        "session_not_found"
    );
    assert_eq!(
        alice.call("search", json!({})).unwrap_err().details()["field"],
        "query"
    );
    assert_eq!(
        alice
            .call("search", json!({"query": "a", "roles": ["nobody"]}))
            .unwrap_err()
            .details()["field"],
        "roles[0]"
    );
    assert_eq!(
        alice
            .call("search", json!({"query": "a", "limit": 101}))
            .unwrap_err()
            .details()["field"],
        "limit"
    );
}

#[test]
fn a_session_token_searches_only_its_session() {
    let alice = Alice::with_session();
    alice.ok("createSession", json!({"id": "t"}));
    alice.append_message("a", "apple");
    alice.ok("appendEvents", json!({"sessionId": "t", "events": [{"id": "b", "action": "user_message", "content": "apple"}]}));
    let scope = TokenScope {
        session_id: Some(Id::parse("s".to_owned()).unwrap()),
        operations: None,
        expires_at: i64::MAX,
        ..TokenScope::default()
    };
    let alice = Alice {
        caller: Caller::Scoped(scope),
        ..alice
    };
    assert_eq!(alice.found("apple"), ["a"]);
    assert_eq!(
        alice.search_with("apple", json!({"sessionId": "s"})).len(),
        1
    );
    assert_eq!(
        alice.refused("search", json!({"query": "apple", "sessionId": "t"})),
        "forbidden"
    );
}

#[test]
fn any_query_is_valid() {
    let alice = Alice::with_session();
    alice.append_message("a", "apple OR pear");
    for query in [
        "",
        " ",
        "\"",
        "\"\"",
        "*",
        "a*",
        "\"apple",
        "NEAR(apple, 2)",
        "apple OR",
        "OR AND NOT",
        "-apple",
        "{}",
        "stems:apple",
        "^apple",
        "(((",
        "\u{0}",
        "\u{1F600}",
        "'; DROP TABLE x; --",
        "%",
        "Ⓐ",
        "\u{93F}",
        "Ⓐ apple",
        "\\",
    ] {
        alice.search(query);
    }
    alice.search(&"word ".repeat(10_000));
    alice.search(&"\"".repeat(10_000));
    assert_eq!(alice.found("NEAR(apple)"), ["a"]);
    assert_eq!(alice.found("apple*"), ["a"]);
}

#[test]
fn an_agent_that_never_searches_builds_no_index() {
    let alice = Alice::with_session();
    alice.append_message("a", "apple");
    let indexed = || {
        alice
            .db
            .rows("SELECT count(*) FROM cf_agents_search_docsize", &[])
            .unwrap()[0]
            .integer(0)
            .unwrap()
    };
    assert_eq!(indexed(), 0);
    assert_eq!(alice.found("apple"), ["a"]);
    assert_eq!(indexed(), 1);
    alice.append_message("b", "apple");
    assert_eq!(indexed(), 2);
    alice.ok("updateMessage", json!({"sessionId": "s", "message": {"id": "b", "role": "user", "parts": [{"type": "text", "text": "pear"}]}}));
    assert_eq!(
        (alice.found("apple"), alice.found("pears")),
        (vec!["a".to_owned()], vec!["b".to_owned()])
    );
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    assert_eq!(alice.found("pear").len(), 2);
    alice.ok("deleteSession", json!({"sessionId": fork["id"]}));
    assert_eq!(alice.found("pear"), ["b"]);
    alice.ok("clearMessages", json!({"sessionId": "s"}));
    assert_eq!(indexed(), 0);
}

/// Invented sessions of two friends, and questions about them, each with the turns that
/// contain its answer.
const FRIENDS: &str = include_str!("friends.txt");

#[test]
fn answers_are_among_the_first_ten_results() {
    let alice = Alice::default();
    let mut session = String::new();
    let mut at = 0_i64;
    let (mut expected, mut hit) = (0, 0);
    let mut missed = Vec::new();
    for line in FRIENDS.lines().filter(|line| !line.is_empty()) {
        if let Some(header) = line.strip_prefix("# ") {
            let (name, ms) = header.split_once(' ').unwrap();
            session = name.to_owned();
            at = ms.parse().unwrap();
            alice.ok("createSession", json!({"id": session}));
        } else if let Some(question) = line.strip_prefix("? ") {
            let (turns, question) = question.split_once(' ').unwrap();
            let found = ids(&Value::from(
                alice.search_with(question, json!({"limit": 10})),
            ));
            for turn in turns.split(',') {
                expected += 1;
                if found.iter().any(|id| id == turn) {
                    hit += 1;
                } else {
                    missed.push(format!("{turn} {question}"));
                }
            }
        } else {
            let (id, content) = line.split_once(' ').unwrap();
            let (speaker, text) = content.split_once(": ").unwrap();
            at += 60_000;
            let role = if speaker == "Nora" {
                "user"
            } else {
                "assistant"
            };
            alice.ok(
                "appendMessage",
                json!({"sessionId": session, "message": {
                    "id": id, "role": role, "createdAt": at, "metadata": {"name": speaker},
                    "parts": [{"type": "text", "text": text}]
                }}),
            );
        }
    }
    let recall = f64::from(hit) / f64::from(expected);
    println!("recall@10: {hit} of {expected}; missed: {missed:#?}");
    assert!(
        expected >= 30 && recall >= 0.8,
        "recall@10 is {recall:.2}: {missed:#?}"
    );
}

/// Two sessions about a sister, whose evidence is in two places.
fn about_a_sister() -> Alice {
    let alice = Alice::with_session();
    for (id, text) in [
        ("name", "Irene is my sister, as you know."),
        ("x1", "The weather was fine in spring."),
        ("x2", "My brother likes the sea."),
        ("x3", "We had soup."),
        ("x4", "The train was late."),
        ("place", "Irene moved to Bergen in spring."),
    ] {
        alice.append_message(id, text);
    }
    alice
}

#[test]
fn several_queries_merge_into_one_ranking() {
    let alice = about_a_sister();
    let found = |body: Value| ids(&alice.ok("search", body)["results"]);
    // `name` and `place` contain words of one query each. `x1` contains a word of the second.
    let both = found(json!({"queries": ["my sister's name", "moved to Bergen in spring"]}));
    assert_eq!(both, ["place", "name", "x1"]);
    assert_eq!(
        found(json!({"queries": ["soup"]})),
        found(json!({"query": "soup"}))
    );
    // Each query keeps its own rules: a phrase applies to its own query.
    let mut ids = found(json!({"queries": ["\"was late\"", "\"had soup\"", "", "zebra"]}));
    ids.sort();
    assert_eq!(ids, ["x3", "x4"]);
    let hits = alice.ok("search", json!({"queries": ["soup", "train"], "limit": 1}));
    assert_eq!(hits["results"].as_array().unwrap().len(), 1);
    // The words of all queries are highlighted.
    let hits = alice.ok("search", json!({"queries": ["Irene", "Bergen"]}));
    assert_eq!(hits["results"][0]["highlights"], json!([[0, 5], [15, 21]]));
}

#[test]
fn a_search_takes_one_query_or_up_to_eight() {
    let alice = about_a_sister();
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    for (operation, label) in [("search", None), ("searchContext", Some("kb"))] {
        let field = |mut body: Value| {
            if let Some(label) = label {
                body["label"] = label.into();
            }
            alice.call(operation, body).unwrap_err().details()["field"].clone()
        };
        assert_eq!(field(json!({})), "query");
        assert_eq!(field(json!({"query": "a", "queries": ["b"]})), "queries");
        assert_eq!(field(json!({"queries": []})), "queries");
        assert_eq!(field(json!({"queries": vec!["a"; 9]})), "queries");
        assert_eq!(field(json!({"queries": ["a", 1]})), "queries[1]");
    }
    assert_eq!(
        alice.ok("search", json!({"queries": vec!["soup"; 8]}))["results"][0]["id"],
        "x3"
    );
}

#[test]
fn entries_can_be_searched_with_several_queries() {
    let alice = Alice::with_session();
    alice.ok("configureAgent", json!({"sessionSearch": true}));
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    for (key, content) in [
        ("umbrella", "It stands beside the door."),
        ("kitten", "It sleeps on the sofa."),
        ("piano", "Nobody plays it."),
    ] {
        alice.ok(
            "setEntry",
            json!({"label": "kb", "key": key, "content": content}),
        );
    }
    let found = alice.ok(
        "searchContext",
        json!({"label": "kb", "queries": ["door", "sofa", "zebra"]}),
    );
    let mut keys: Vec<&str> = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["key"].as_str().unwrap())
        .collect();
    keys.sort_unstable();
    assert_eq!(keys, ["kitten", "umbrella"]);
    alice.append_message("a", "The ferry leaves at nine.");
    alice.append_message("b", "Nothing else.");
    alice.append_message("c", "The hotel has a garden.");
    let answer = |arguments: Value| {
        let call = json!({"name": "session_search", "arguments": arguments});
        alice.ok("callTool", call)
    };
    let both = answer(json!({"query": "ferry", "queries": ["hotel"]}));
    assert_eq!(both["isError"], false);
    let both = both["output"].as_str().unwrap();
    assert!(
        both.contains("ferry leaves") && both.contains("hotel has"),
        "{both}"
    );
    assert_eq!(answer(json!({"queries": ["ferry"]}))["isError"], false);
    assert_eq!(answer(json!({}))["isError"], true);
    assert_eq!(
        answer(json!({"query": "ferry", "queries": [1]}))["isError"],
        true
    );
    let answer = alice.ok(
        "callTool",
        json!({"name": "search_context", "arguments": {"label": "kb", "query": "door", "queries": ["sofa"]}}),
    );
    let answer = answer["output"].as_str().unwrap();
    assert!(
        answer.contains("[umbrella]") && answer.contains("[kitten]"),
        "{answer}"
    );
}

#[test]
fn only_questions_also_find_neighboring_messages() {
    let alice = Alice::with_session();
    for (id, text) in [
        ("far", "Good morning."),
        ("before", "Look at this."),
        ("start", "I signed up for fencing lessons."),
        ("asked", "Brave! How often?"),
        ("answer", "Every Thursday."),
        ("after", "See you."),
    ] {
        alice.append_message(id, text);
    }
    assert_eq!(alice.found("fencing lessons"), ["start"]);
    let mut found = alice.found("When are the fencing lessons?");
    assert_eq!(found[0], "start");
    found.sort();
    assert_eq!(found, ["answer", "asked", "before", "far", "start"]);
}
