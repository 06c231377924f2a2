//! Proposals: decided as a whole or in part, and reverted in one call.

use serde_json::{Value, json};

use super::adds;
use crate::Alice;

/// An agent with a proposal of three new facts.
fn proposed() -> (Alice, Value) {
    let alice = Alice::learner(json!({}));
    alice.append_texts(&["I like tea. My cat is Tom. I live in Rome."]);
    alice.model_proposes(json!([
        adds("tea", "The user likes tea.", "e1"),
        adds("cat", "The user's cat is Tom.", "e1"),
        adds("home", "The user lives in Rome.", "e1"),
    ]));
    let id = alice.learn()["proposals"][0]["id"].clone();
    (alice, id)
}

fn statuses(proposal: &Value) -> Vec<&str> {
    let changes = proposal["changes"].as_array().unwrap();
    changes
        .iter()
        .map(|change| change["status"].as_str().unwrap())
        .collect()
}

#[test]
fn a_proposal_is_approved_as_a_whole_and_reverted() {
    let (alice, id) = proposed();
    let decided = alice.ok("decideProposal", json!({"id": id, "approve": true}));
    assert_eq!(decided["status"], "applied");
    assert_eq!(decided["decidedBy"], "operator");
    assert_eq!(alice.facts().as_object().unwrap().len(), 3);
    let error = alice
        .call("decideProposal", json!({"id": id, "reject": true}))
        .unwrap_err();
    assert_eq!(error.details()["field"], "id");
    let reverted = alice.ok("revertProposal", json!({"id": id}));
    assert_eq!(reverted["status"], "reverted");
    assert_eq!(alice.facts(), json!({}));
    assert_eq!(
        alice.refused("revertProposal", json!({"id": id})),
        "invalid_request"
    );
}

#[test]
fn a_proposal_can_be_decided_in_part_and_edited() {
    let (alice, id) = proposed();
    let decided = alice.ok(
        "decideProposal",
        json!({"id": id, "approve": true, "changes": [{"index": 1, "content": "The user's cat is Tim."}]}),
    );
    assert_eq!(decided["status"], "pending");
    assert_eq!(statuses(&decided), ["pending", "applied", "pending"]);
    assert_eq!(decided["changes"][1]["source"], "operator");
    assert_eq!(alice.facts(), json!({"cat": "The user's cat is Tim."}));
    let decided = alice.ok(
        "decideProposal",
        json!({"id": id, "reject": true, "changes": [{"index": 0}]}),
    );
    assert_eq!(statuses(&decided), ["rejected", "applied", "pending"]);
    let decided = alice.ok("decideProposal", json!({"id": id, "reject": true}));
    assert_eq!(decided["status"], "applied");
    for wrong in [
        json!({"id": id}),
        json!({"id": id, "approve": true, "reject": true}),
        json!({"id": id, "approve": true, "changes": []}),
        json!({"id": id, "approve": true, "changes": [{"index": 0}]}),
        json!({"id": id, "approve": true, "changes": [{"index": 9}]}),
        json!({"id": "7", "approve": true}),
        json!({"id": "x", "approve": true}),
    ] {
        assert_eq!(
            alice.refused("decideProposal", wrong.clone()),
            "invalid_request",
            "{wrong}"
        );
    }
}

#[test]
fn text_written_since_is_neither_overwritten_nor_reverted() {
    let (alice, id) = proposed();
    let write = |key: &str, content: &str| {
        alice.ok(
            "setEntry",
            json!({"label": "facts", "key": key, "content": content}),
        );
    };
    write("cat", "The user's cat is called Kit.");
    let before = alice.facts();
    let error = alice
        .call("decideProposal", json!({"id": id, "approve": true}))
        .unwrap_err();
    assert_eq!(error.code.name(), "version_conflict");
    assert_eq!(error.details()["index"], 1);
    assert_eq!(alice.facts(), before, "all of it or nothing");
    alice.ok(
        "decideProposal",
        json!({"id": id, "reject": true, "changes": [{"index": 1}]}),
    );
    alice.ok("decideProposal", json!({"id": id, "approve": true}));
    write("home", "The user lives in Oslo.");
    let reverted = alice.ok("revertProposal", json!({"id": id}));
    assert_eq!(statuses(&reverted), ["reverted", "rejected", "applied"]);
    assert!(
        reverted["changes"][2]["reason"]
            .as_str()
            .unwrap()
            .contains("has changed since")
    );
    assert_eq!(
        alice.facts(),
        json!({"cat": "The user's cat is called Kit.", "home": "The user lives in Oslo."})
    );
}

/// Deletes `tea`, and lets its deletion marker expire.
type Deletion = fn(&Alice);

fn by_retention(alice: &Alice) {
    alice.ok("deleteEntry", json!({"label": "facts", "key": "tea"}));
    alice.host.advance(8 * 24 * 60 * 60 * 1000);
    let applied = alice.ok("applyRetention", json!({}));
    assert_eq!(applied["gone"]["deleted"]["count"], 1, "{applied}");
}

fn by_a_thousand_deletions(alice: &Alice) {
    alice.ok("deleteEntry", json!({"label": "facts", "key": "tea"}));
    for n in 0..1_000 {
        alice.host.advance(1);
        let key = format!("k{n}");
        let entry = json!({"label": "facts", "key": key, "content": "it rains"});
        alice.ok("setEntry", entry);
        alice.ok("deleteEntry", json!({"label": "facts", "key": key}));
    }
    let left = alice.ok("getBlockVersions", json!({"label": "facts", "key": "tea"}));
    assert_eq!(left["versions"], json!([]));
}

#[test]
fn text_with_restarted_versions_is_neither_overwritten_nor_reverted() {
    for forget in [by_retention as Deletion, by_a_thousand_deletions] {
        let alice = Alice::learner(json!({}));
        alice.ok("configureAgent", json!({"retention": {"deletedDays": 7}}));
        let propose = |change: Value| {
            alice.append_texts(&["I like tea."]);
            alice.host.advance(5_000);
            alice.model_proposes(json!([change]));
            alice.learn()["proposals"][0]["id"].clone()
        };
        let applied = propose(adds("tea", "The user likes tea.", "e1"));
        alice.ok("decideProposal", json!({"id": applied, "approve": true}));
        let waiting = propose(json!({
            "action": "replace", "key": "tea", "content": "The user loves tea.", "events": ["e1"]
        }));
        forget(&alice);
        let entry = json!({"label": "facts", "key": "tea", "content": "Tea is theirs."});
        alice.ok("setEntry", entry);
        let entry = alice.ok("getEntry", json!({"label": "facts", "key": "tea"}));
        assert_eq!(entry["version"], 1);
        let error = alice
            .call("decideProposal", json!({"id": waiting, "approve": true}))
            .unwrap_err();
        assert_eq!(error.code.name(), "version_conflict");
        let reverted = alice.ok("revertProposal", json!({"id": applied}));
        let change = &reverted["changes"][0];
        assert_eq!(
            (&change["status"], &change["outdated"]),
            (&json!("applied"), &json!(true))
        );
        assert!(
            change["reason"]
                .as_str()
                .unwrap()
                .contains("has changed since")
        );
        assert_eq!(alice.facts(), json!({"tea": "Tea is theirs."}));
    }
}

#[test]
fn a_fact_learned_after_a_deletion_is_applied_and_reverted() {
    for is_written_again in [false, true] {
        let alice = Alice::learner(json!({}));
        alice.ok("configureAgent", json!({"retention": {"deletedDays": 7}}));
        let set = json!({"label": "facts", "key": "tea", "content": "The user hates tea."});
        alice.ok("setEntry", set.clone());
        alice.ok("deleteEntry", json!({"label": "facts", "key": "tea"}));
        let mut change = adds("tea", "The user likes tea.", "e1");
        if is_written_again {
            alice.ok("setEntry", set);
            change["action"] = json!("replace");
        }
        let before = alice.facts();
        alice.append_texts(&["I like tea."]);
        alice.model_proposes(json!([change]));
        let id = alice.learn()["proposals"][0]["id"].clone();
        alice.host.advance(8 * 24 * 60 * 60 * 1000);
        let applied = alice.ok("applyRetention", json!({}));
        assert_eq!(applied["gone"]["deleted"]["count"], 1, "{applied}");
        alice.ok("decideProposal", json!({"id": id, "approve": true}));
        assert_eq!(alice.facts(), json!({"tea": "The user likes tea."}));
        let reverted = alice.ok("revertProposal", json!({"id": id}));
        assert_eq!(reverted["status"], "reverted");
        assert_eq!(alice.facts(), before);
    }
}

#[test]
fn a_pending_change_shows_the_current_text() {
    let alice = Alice::learner(json!({}));
    alice.ok(
        "setEntry",
        json!({"label": "facts", "key": "tea", "content": "The user hates tea."}),
    );
    alice.append_texts(&["I like tea."]);
    alice.model_proposes(json!([
        {"action": "replace", "key": "tea", "content": "The user likes tea.", "events": ["e1"]}
    ]));
    let change = alice.learn()["proposals"][0]["changes"][0].clone();
    assert_eq!(
        change["before"],
        json!({"version": 1, "content": "The user hates tea."})
    );
}

#[test]
fn proposals_are_paged_and_filtered_by_status() {
    let (alice, id) = proposed();
    alice.ok("decideProposal", json!({"id": id, "approve": true}));
    for text in ["one", "two", "three"] {
        alice.append_texts(&[text]);
        alice.model_proposes(json!([adds(text, text, "e1")]));
        alice.learn();
    }
    let list = |body: Value| {
        let page = alice.ok("getProposals", body);
        let labels: Vec<Value> = page["proposals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|proposal| proposal["changes"][0]["key"].clone())
            .collect();
        (json!(labels), page["cursor"].clone())
    };
    let (first, cursor) = list(json!({"limit": 3}));
    assert_eq!(first, json!(["three", "two", "one"]));
    assert_eq!(
        list(json!({"limit": 3, "cursor": cursor})),
        (json!(["tea"]), json!(null))
    );
    assert_eq!(list(json!({"status": "applied"})).0, json!(["tea"]));
    assert_eq!(
        list(json!({"status": "pending"})).0,
        json!(["three", "two", "one"])
    );
    assert_eq!(list(json!({"sessionId": "other"})).0, json!([]));
    assert_eq!(
        alice.refused("getProposals", json!({"cursor": "x"})),
        "invalid_request"
    );
}
