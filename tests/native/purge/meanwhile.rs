//! Purges that come while somebody waits for an answer with a text in the hand, and purges of
//! what is not there.

use std::rc::Rc;

use serde_json::{Value, json};

use super::{NEEDLE, places_after_purge};
use crate::Alice;
use base::columns::find_value;
use base::testing::Said;

/// An agent with a block whose home is asked, and a block before it that holds the needle.
fn with_a_home() -> Rc<Alice> {
    let alice = Rc::new(Alice::with_session());
    alice.ok(
        "defineBlock",
        json!({"label": "notes", "kind": "writable", "defaultContent": NEEDLE}),
    );
    alice.outbound.answer(Said::json(&json!({})));
    alice.ok(
        "defineBlock",
        json!({"label": "theirs", "kind": "writable", "source": {"agent": "user:42"}}),
    );
    alice.outbound.answers.borrow_mut().clear();
    alice
}

#[test]
fn what_is_erased_while_a_home_is_read_stands_in_no_frozen_prompt() {
    for operation in ["freezePrompt", "refreshPrompt"] {
        let alice = with_a_home();
        let other = Rc::clone(&alice);
        *alice.outbound.meanwhile.borrow_mut() = Some(Box::new(move || {
            let gone = other.ok("removeBlock", json!({"label": "notes", "purge": true}));
            assert_eq!(gone["removed"], true);
        }));
        let frozen = alice.ok(operation, json!({"sessionId": "s"}));
        assert!(
            !frozen.to_string().contains(NEEDLE),
            "{operation}: {frozen}"
        );
        assert_eq!(places_after_purge(&alice.db), Vec::<String>::new());
    }
}

/// How many prompts a purge forgets, of the agent's own and of a session's.
fn forgotten(operation: &str, body: Value) -> Value {
    let alice = Alice::with_session();
    for (label, kind) in [("facts", "searchable"), ("notes", "writable")] {
        alice.ok("defineBlock", json!({"label": label, "kind": kind}));
    }
    alice.ok("setBlock", json!({"label": "notes", "content": "words"}));
    alice.ok("removeBlock", json!({"label": "facts"}));
    alice.ok("freezePrompt", json!({}));
    alice.ok("freezePrompt", json!({"sessionId": "s"}));
    alice.ok("removeBlock", json!({"label": "notes"}));
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    let prompts = alice.ok(operation, body)["erased"]["prompts"].clone();
    let sql = "SELECT count(*) FROM cf_agents_prompts";
    let left: i64 = find_value(&alice.db, sql, &[]).unwrap().unwrap();
    assert_eq!(json!(2 - left), prompts);
    alice.is_sound(operation);
    prompts
}

#[test]
fn a_purge_of_what_nothing_shows_costs_no_conversation_its_prompt() {
    let gone = |label: &str| json!({"label": label, "purge": true});
    assert_eq!(forgotten("removeBlock", gone("never")), 0);
    // It was removed before, and prompts still show it.
    assert_eq!(forgotten("removeBlock", gone("Notes")), 2);
    let entry = json!({"label": "kb", "key": "none", "purge": true});
    assert_eq!(forgotten("deleteEntry", entry), 0);
}
