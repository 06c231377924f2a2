//! Consolidation: what is merged, retired and rewritten, and which changes apply without review.

use serde_json::{Value, json};

use crate::Alice;

/// An agent with these facts, the oldest first: key, text, source.
fn with_facts(settings: Value, facts: &[(&str, &str, &str)]) -> Alice {
    let alice = Alice::learner(settings);
    for (key, content, source) in facts {
        alice.ok(
            "setEntry",
            json!({"label": "facts", "key": key, "content": content, "source": source}),
        );
        alice.host.advance(10);
    }
    alice
}

fn consolidated(alice: &Alice, answer: Value, body: Value) -> Value {
    alice.model_answers(&answer.to_string());
    let done = alice.ok("consolidate", body);
    alice.host.advance(10);
    done
}

fn fact_keys(alice: &Alice) -> Vec<String> {
    let found = alice.ok("searchContext", json!({"label": "facts", "query": "user"}));
    let mut keys: Vec<String> = found["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["key"].as_str().unwrap().to_owned())
        .collect();
    keys.sort();
    keys
}

const FACTS: &[(&str, &str, &str)] = &[
    ("home", "The user lives in Paris.", "user"),
    ("tea", "The user likes tea.", "user"),
    ("drink", "The user likes green tea.", "user"),
    ("moved", "The user lives in Rome.", "user"),
];

#[test]
fn duplicates_are_merged_and_newer_facts_replace_older_ones() {
    let alice = with_facts(json!({"review": "auto"}), FACTS);
    let answer = json!({"changes": [
        {"action": "replace", "key": "drink", "content": "The user likes tea, green tea.", "merges": ["tea"]},
        {"action": "retire", "key": "home", "by": "moved"},
    ]});
    let done = consolidated(&alice, answer, json!({}));
    assert_eq!(done["complete"], true);
    let proposal = &done["proposal"];
    assert_eq!(proposal["kind"], "consolidate");
    assert_eq!(proposal["status"], "applied", "{proposal}");
    assert_eq!(proposal["changes"][1]["supersedes"], json!(["home"]));
    assert_eq!(fact_keys(&alice), ["drink", "moved"]);
    // The originals are stored, and one call restores them.
    assert_eq!(alice.facts().as_object().unwrap().len(), 4);
    alice.ok("revertProposal", json!({"id": proposal["id"]}));
    alice.host.advance(10);
    assert_eq!(fact_keys(&alice), ["drink", "home", "moved", "tea"]);
    assert_eq!(alice.facts()["drink"], "The user likes green tea.");
}

#[test]
fn invalid_changes_are_refused() {
    for change in [
        // The older does not retire the newer.
        json!({"action": "retire", "key": "moved", "by": "home"}),
        json!({"action": "retire", "key": "home", "by": "home"}),
        json!({"action": "retire", "key": "home"}),
        json!({"action": "retire", "key": "none", "by": "moved"}),
        json!({"action": "forget", "key": "home"}),
        json!({"action": "add", "key": "new", "content": "The user likes tea."}),
        json!({"action": "replace", "key": "none", "content": "The user likes tea.", "merges": ["tea"]}),
        json!({"action": "replace", "key": "tea", "content": "The user likes tea.", "merges": ["none"]}),
        json!({"action": "replace", "key": "tea", "content": "The user likes tea.", "merges": ["tea"]}),
        json!({"action": "replace", "key": "tea", "content": "The user likes tea.", "merges": []}),
        json!({"action": "replace", "key": "tea", "content": "", "merges": ["drink"]}),
    ] {
        let alice = with_facts(json!({"review": "auto"}), FACTS);
        let done = consolidated(&alice, json!({"changes": [change]}), json!({}));
        assert_eq!(done["proposal"], Value::Null, "{change}");
        assert_eq!(
            fact_keys(&alice),
            ["drink", "home", "moved", "tea"],
            "{change}"
        );
    }
}

#[test]
fn only_merges_of_trusted_entries_apply_at_once() {
    let merge = |content: &str| json!({"changes": [{"action": "replace", "key": "a", "content": content, "merges": ["b"]}]});
    for (source, content, expected) in [
        ("user", "The user likes tea and cake.", ("applied", "user")),
        (
            "operator",
            "The user likes tea and cake.",
            ("applied", "user"),
        ),
        ("tool", "The user likes tea and cake.", ("pending", "tool")),
        (
            "import",
            "The user likes tea and cake.",
            ("pending", "import"),
        ),
        (
            "user",
            "The user likes tea and sends money to Bob.",
            ("pending", "agent"),
        ),
        (
            "user",
            "The user does not like tea and cake.",
            ("pending", "agent"),
        ),
    ] {
        let facts = [
            ("b", "The user likes tea.", source),
            ("a", "The user likes cake.", "user"),
        ];
        let alice = with_facts(json!({"review": "auto"}), &facts);
        let done = consolidated(&alice, merge(content), json!({}));
        let change = &done["proposal"]["changes"][0];
        let outcome = (
            change["status"].as_str().unwrap(),
            change["source"].as_str().unwrap(),
        );
        assert_eq!(outcome, expected, "{source}: {content}");
    }
    // A less trusted entry retires none automatically.
    let facts = [
        ("old", "The user lives in Paris.", "user"),
        ("new", "The user lives in Rome.", "tool"),
    ];
    let alice = with_facts(json!({"review": "auto"}), &facts);
    let done = consolidated(
        &alice,
        json!({"changes": [{"action": "retire", "key": "old", "by": "new"}]}),
        json!({}),
    );
    assert_eq!(done["proposal"]["status"], "pending");
    // If every change needs review, none is applied.
    let alice = with_facts(json!({}), FACTS);
    let done = consolidated(
        &alice,
        json!({"changes": [{"action": "retire", "key": "home", "by": "moved"}]}),
        json!({}),
    );
    assert_eq!(done["proposal"]["status"], "pending");
    alice.ok(
        "decideProposal",
        json!({"id": done["proposal"]["id"], "approve": true}),
    );
    alice.host.advance(10);
    assert_eq!(fact_keys(&alice), ["drink", "moved", "tea"]);
}

#[test]
fn a_profile_stays_within_its_budget_and_can_be_reverted() {
    let long = "tea Rome ".repeat(100);
    for (source, profile, expected) in [
        (
            "user",
            "The user lives in Rome and likes tea.",
            Some("applied"),
        ),
        (
            "tool",
            "The user lives in Rome and likes tea.",
            Some("pending"),
        ),
        (
            "user",
            "The user lives in Rome and owns a bank.",
            Some("pending"),
        ),
        ("user", "", None),
        ("user", long.as_str(), None),
    ] {
        let facts = [
            ("a", "The user likes tea.", source),
            ("b", "The user lives in Rome.", "user"),
        ];
        let alice = with_facts(json!({"review": "auto"}), &facts);
        alice.ok("defineBlock", json!({"label": "profile", "kind": "writable", "maxTokens": 50, "defaultContent": "Nobody."}));
        let done = consolidated(
            &alice,
            json!({"changes": [], "profile": profile}),
            json!({"profile": "profile"}),
        );
        let status = done["proposal"]["changes"][0]["status"].as_str();
        assert_eq!(status, expected, "{source}: {profile}");
        let content = || alice.ok("getBlock", json!({"label": "profile"}))["content"].clone();
        if status == Some("applied") {
            assert_eq!(content(), *profile);
            alice.ok("revertProposal", json!({"id": done["proposal"]["id"]}));
        }
        assert_eq!(content(), "Nobody.");
    }
    let alice = with_facts(json!({}), FACTS);
    for label in ["facts", "none"] {
        let error = alice
            .call("consolidate", json!({"profile": label}))
            .unwrap_err();
        assert!(
            ["invalid_request", "block_not_found"].contains(&error.code.name()),
            "{label}"
        );
    }
}

#[test]
fn a_large_block_is_consolidated_step_by_step() {
    let alice = Alice::learner(json!({"review": "auto"}));
    for number in 0..250 {
        alice.ok("setEntry", json!({"label": "facts", "key": format!("k{number}"), "content": format!("The user knows {number}.")}));
    }
    let mut steps = 0;
    loop {
        alice.model_answers(r#"{"changes":[]}"#);
        let done = alice.ok("consolidate", json!({}));
        steps += 1;
        if done["complete"] == true {
            break;
        }
    }
    assert_eq!(steps, 3);
    assert!(alice.learn_prompt().contains("\"k0\"") && !alice.learn_prompt().contains("\"k249\""));
}

#[test]
fn the_demo_merges_equal_entries() {
    let alice = Alice::with_session();
    alice.ok(
        "defineBlock",
        json!({"label": "facts", "kind": "searchable"}),
    );
    alice.ok(
        "defineBlock",
        json!({"label": "profile", "kind": "writable"}),
    );
    alice.ok(
        "configureAgent",
        json!({"model": "demo", "learn": {"into": "facts", "review": "auto"}}),
    );
    for (key, content) in [
        ("a", "The user likes tea"),
        ("b", "The user likes tea"),
        ("c", "The user's home is Paris"),
        ("d", "The user's home is Rome"),
    ] {
        alice.ok(
            "setEntry",
            json!({"label": "facts", "key": key, "content": content}),
        );
        alice.host.advance(10);
    }
    alice.ok("consolidate", json!({"profile": "profile"}));
    alice.host.advance(10);
    assert_eq!(fact_keys(&alice), ["b", "d"]);
    assert_eq!(
        alice.ok("getBlock", json!({"label": "profile"}))["content"],
        "The user's home is Rome\nThe user likes tea"
    );
}

/// The outcome of the only change: its status, its source and its title.
fn outcome_of(done: &Value) -> (String, String, Value) {
    let change = &done["proposal"]["changes"][0];
    let text = |field: &str| change[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("source"), change["title"].clone())
}

#[test]
fn a_title_contains_only_what_the_entries_state() {
    for (title, expected) in [
        ("Tea and cake", json!("Tea and cake")),
        ("Drinks", json!("Drinks")),
        ("Sends money to Bob", json!("Cake")),
        ("No tea, no cake", json!("Cake")),
    ] {
        let alice = Alice::learner(json!({"review": "auto"}));
        for (key, title, content) in [
            ("drinks", Value::Null, "The user likes tea."),
            ("food", json!("Cake"), "The user likes cake."),
        ] {
            alice.ok(
                "setEntry",
                json!({"label": "facts", "key": key, "title": title, "content": content}),
            );
            alice.host.advance(10);
        }
        let answer = json!({"changes": [{
            "action": "replace", "key": "food", "title": title,
            "content": "The user likes tea and cake.", "merges": ["drinks"],
        }]});
        let (status, _, applied) = outcome_of(&consolidated(&alice, answer, json!({})));
        assert_eq!((status.as_str(), applied), ("applied", expected), "{title}");
    }
}

#[test]
fn each_profile_sentence_is_from_one_trusted_entry() {
    for (profile, expected) in [
        (
            "The user likes tea. They live in Rome.",
            ("applied", "user"),
        ),
        (
            "About the user:\nlikes tea\nlives in Rome",
            ("applied", "user"),
        ),
        ("The user lives in Rome and likes tea.", ("applied", "user")),
        ("The user does not like cake.", ("applied", "user")),
        ("The user does not like tea.", ("pending", "agent")),
        (
            "The user does not live in Rome and likes tea.",
            ("pending", "agent"),
        ),
        ("The user likes cake.", ("pending", "agent")),
        ("Tea lives in Rome.", ("pending", "agent")),
        ("The user owns a boat.", ("pending", "tool")),
    ] {
        let facts = [
            ("a", "The user likes tea.", "user"),
            ("b", "The user lives in Rome.", "user"),
            ("c", "The user does not like cake.", "user"),
            ("d", "The user owns a boat.", "tool"),
        ];
        let alice = with_facts(json!({"review": "auto"}), &facts);
        alice.ok(
            "defineBlock",
            json!({"label": "profile", "kind": "writable"}),
        );
        let answer = json!({"changes": [], "profile": profile});
        let done = consolidated(&alice, answer, json!({"profile": "profile"}));
        let (status, source, _) = outcome_of(&done);
        assert_eq!((status.as_str(), source.as_str()), expected, "{profile}");
    }
}

#[test]
fn an_entry_shown_in_part_is_not_replaced_automatically() {
    let long = format!("The user likes tea. {}", "Tea is good. ".repeat(60));
    let merge = json!({"action": "replace", "key": "a", "content": "The user likes tea and cake.", "merges": ["b"]});
    let retire = json!({"action": "retire", "key": "b", "by": "a"});
    for change in [&merge, &retire] {
        for (content, expected) in [("The user likes tea.", "applied"), (&long, "pending")] {
            let facts = [
                ("b", content, "user"),
                ("a", "The user likes cake.", "user"),
            ];
            let alice = with_facts(json!({"review": "auto"}), &facts);
            let done = consolidated(&alice, json!({"changes": [change]}), json!({}));
            assert_eq!(outcome_of(&done).0, expected, "{change}: {content}");
        }
    }
    // A text is not shortened either.
    for (content, expected) in [
        ("The user likes tea.", "pending"),
        ("The user likes cake, tea.", "applied"),
    ] {
        let facts = [
            ("b", "The user lives in Rome.", "user"),
            ("a", "The user likes tea and cake.", "user"),
        ];
        let alice = with_facts(json!({"review": "auto"}), &facts);
        let answer = json!({"changes": [{"action": "replace", "key": "a", "content": content, "merges": []}]});
        let done = consolidated(&alice, answer, json!({}));
        assert_eq!(outcome_of(&done).0, expected, "{content}");
    }
}
