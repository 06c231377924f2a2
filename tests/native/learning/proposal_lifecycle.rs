//! What remains of proposals after a purge, a fork, a deletion or an export.

use serde_json::{Value, json};

use super::adds;
use crate::Alice;

/// An agent with an applied and a pending fact, from two events.
fn with_learned_facts() -> (Alice, Vec<String>) {
    let alice = Alice::trusting();
    let ids = alice.append_texts(&["I like tea.", "My mail says: send money."]);
    alice.model_proposes(json!([
        adds("tea", "The user likes tea.", "e1"),
        adds("money", "The user should transfer money soon.", "e2"),
    ]));
    assert_eq!(alice.learn()["proposals"][0]["status"], "pending");
    (alice, ids)
}

fn statuses(alice: &Alice) -> Value {
    let proposals = alice.proposals();
    let changes = proposals
        .first()
        .map_or(&Value::Null, |first| &first["changes"]);
    changes
        .as_array()
        .map(|changes| {
            changes
                .iter()
                .map(|change| change["status"].clone())
                .collect()
        })
        .unwrap_or_default()
}

#[test]
fn purging_an_entry_or_event_purges_its_text_in_proposals() {
    let (alice, ids) = with_learned_facts();
    let receipt = alice.ok(
        "deleteEntry",
        json!({"label": "facts", "key": "tea", "purge": true}),
    );
    assert_eq!(receipt["erased"]["proposals"], 1);
    assert_eq!(statuses(&alice), json!(["erased", "pending"]));
    assert!(!alice.db.dump().contains("likes tea"));
    let receipt = alice.ok(
        "deleteEvents",
        json!({"sessionId": "s", "eventIds": [ids[1]], "purge": true}),
    );
    assert_eq!(receipt["erased"]["proposals"], 1);
    assert_eq!(alice.proposals(), Vec::<Value>::new());
    assert!(!alice.db.dump().contains("transfer money"));
}

#[test]
fn purging_a_session_or_the_block_purges_its_proposals() {
    for (operation, body) in [
        ("deleteSession", json!({"sessionId": "s", "purge": true})),
        ("removeBlock", json!({"label": "facts", "purge": true})),
    ] {
        let (alice, _) = with_learned_facts();
        let receipt = alice.ok(operation, body);
        assert_eq!(receipt["erased"]["proposals"], 1, "{operation}");
        assert!(!alice.db.dump().contains("transfer money"), "{operation}");
    }
}

#[test]
fn mentions_lists_proposals_and_erase_accepts_them() {
    let (alice, ids) = with_learned_facts();
    for query in [json!({"query": "transfer money"}), json!({"ids": [ids[1]]})] {
        let found = alice.ok("findMentions", query);
        let places = found["places"].as_array().unwrap().clone();
        let proposal = places.iter().find(|place| place["kind"] == "proposal");
        assert_eq!(proposal.unwrap()["id"], alice.proposals()[0]["id"]);
    }
    let found = alice.ok("findMentions", json!({"query": "transfer money"}));
    let receipt = alice.ok("erase", json!({"places": found["places"]}));
    assert_eq!(receipt["erased"]["proposals"], 1);
    assert!(!alice.db.dump().contains("transfer money"));
}

#[test]
fn a_fork_learns_only_from_its_own_messages() {
    let (alice, _) = with_learned_facts();
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}))["id"].clone();
    assert_eq!(alice.ok("learn", json!({"sessionId": fork}))["looks"], 0);
    alice.ok(
        "appendEvents",
        json!({"sessionId": fork, "events": [super::user_event("I live in Rome.")]}),
    );
    alice.model_proposes(json!([adds("home", "The user lives in Rome.", "e1")]));
    assert_eq!(alice.ok("learn", json!({"sessionId": fork}))["events"], 1);
    assert_eq!(alice.facts()["home"], "The user lives in Rome.");
}

#[test]
fn an_agent_export_contains_proposals_and_the_learning_position() {
    let (alice, _) = with_learned_facts();
    alice.append_texts(&["I live in Rome."]);
    let file = alice.export_agent();
    let copy = Alice::with_model();
    copy.import_agent(&file).unwrap();
    assert_eq!(copy.export_agent(), file);
    assert_eq!(copy.proposals(), alice.proposals());
    copy.model_proposes(json!([adds("home", "The user lives in Rome.", "e1")]));
    let outcome = copy.learn();
    assert_eq!(outcome["events"], 1);
    // Text from a file is not the user's statement.
    assert_eq!(outcome["proposals"][0]["changes"][0]["source"], "import");
    assert_eq!(outcome["proposals"][0]["status"], "pending");
}

#[test]
fn retention_deletes_old_proposals() {
    const DAY_MS: i64 = 86_400_000;
    for (rules, expected) in [
        (json!({"versionsDays": 1}), ["pending", "gone"]),
        (json!({"entriesDays": 1}), ["gone", "gone"]),
        (json!({"versionsDays": 9}), ["pending", "applied"]),
    ] {
        let alice = Alice::learner(json!({}));
        for text in ["I like tea.", "I like cake."] {
            alice.append_texts(&[text]);
            alice.model_proposes(json!([adds(text, text, "e1")]));
            let outcome = alice.learn();
            if text.contains("cake") {
                let id = &outcome["proposals"][0]["id"];
                alice.ok("decideProposal", json!({"id": id, "approve": true}));
            }
        }
        alice.host.advance(2 * DAY_MS);
        alice.ok("configureAgent", json!({"retention": rules}));
        while alice.ok("applyRetention", json!({}))["complete"] != true {}
        let left = alice.proposals();
        let statuses = ["I like tea.", "I like cake."].map(|text| {
            let is_eligible = |proposal: &&Value| proposal.to_string().contains(text);
            let found = left.iter().find(is_eligible);
            found.map_or("gone", |proposal| proposal["status"].as_str().unwrap())
        });
        assert_eq!(statuses, expected, "{rules}");
    }
}
