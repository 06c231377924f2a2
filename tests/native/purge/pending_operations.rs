//! Purges during pending operations that have read the text, and purges of missing data.

use std::rc::Rc;

use serde_json::{Value, json};

use super::{NEEDLE, places_after_purge};
use crate::Alice;
use crate::shared::bucket::with_bucket;
use crate::shared::turns::{calls, text_answer};
use base::columns::find_value;
use base::testing::ScriptedAnswer;
use store::erased::Erased;

/// An agent with a remote block, and a block before it that contains the needle.
fn with_backend() -> Rc<Alice> {
    let alice = Rc::new(Alice::with_session());
    alice.ok(
        "defineBlock",
        json!({"label": "notes", "kind": "writable", "defaultContent": NEEDLE}),
    );
    alice.outbound.answer(ScriptedAnswer::json(&json!({})));
    alice.ok(
        "defineBlock",
        json!({"label": "theirs", "kind": "writable", "source": {"agent": "user:42"}}),
    );
    alice.outbound.answers.borrow_mut().clear();
    alice
}

#[test]
fn text_erased_during_a_backend_read_is_in_no_frozen_prompt() {
    for operation in ["freezePrompt", "refreshPrompt"] {
        let alice = with_backend();
        let other = Rc::clone(&alice);
        *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(move || {
            let receipt = other.ok("removeBlock", json!({"label": "notes", "purge": true}));
            assert_eq!(receipt["removed"], true);
        }));
        let frozen = alice.ok(operation, json!({"sessionId": "s"}));
        assert!(
            !frozen.to_string().contains(NEEDLE),
            "{operation}: {frozen}"
        );
        assert_eq!(places_after_purge(&alice.db), Vec::<String>::new());
    }
}

/// The number of the agent's and of a session's prompts that a purge invalidates.
fn invalidated_prompts(operation: &str, body: Value) -> Value {
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
    alice.assert_consistent(operation);
    prompts
}

#[test]
fn a_purge_of_hidden_text_keeps_frozen_prompts() {
    let input = |label: &str| json!({"label": label, "purge": true});
    assert_eq!(invalidated_prompts("removeBlock", input("never")), 0);
    // It was removed before, and prompts still contain it.
    assert_eq!(invalidated_prompts("removeBlock", input("Notes")), 2);
    let entry = json!({"label": "kb", "key": "none", "purge": true});
    assert_eq!(invalidated_prompts("deleteEntry", entry), 0);
}

/// Loads a document of another agent, which is erased during the call to that agent. The next call
/// returns a new text.
fn load_while(erase: &str, load: &str) -> Value {
    let alice = Rc::new(Alice::with_session());
    let source = json!({"agent": "user:42", "label": "skills"});
    let block = json!({"label": "skills", "kind": "loadable", "source": source});
    alice.outbound.answer(ScriptedAnswer::json(&json!({})));
    alice.ok("defineBlock", block);
    alice.outbound.answers.borrow_mut().clear();
    let deletion = json!({"deleted": true, "erased": Erased::default(), "digest": "d"});
    if erase == "deleteSkill" {
        alice.outbound.answer(ScriptedAnswer::json(&deletion));
    }
    let document = |content: &str| json!({"key": "k", "content": content});
    alice
        .outbound
        .answer(ScriptedAnswer::json(&document(NEEDLE)));
    alice
        .outbound
        .answer(ScriptedAnswer::json(&document("New.")));
    let (other, erase) = (Rc::clone(&alice), erase.to_owned());
    *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(move || {
        let mut body = json!({"label": "skills", "purge": true});
        if erase == "deleteSkill" {
            body["key"] = json!("k");
        }
        other.ok(&erase, body);
    }));
    let place = json!({"label": "skills", "key": "k"});
    let body = match load {
        "loadSkill" => json!({"sessionId": "s", "label": "skills", "key": "k"}),
        _ => json!({"sessionId": "s", "name": "load_context", "arguments": place}),
    };
    let answer = match alice.call(load, body) {
        Ok(answer) => answer,
        Err(error) => json!(error.code.name()),
    };
    assert_eq!(places_after_purge(&alice.db), Vec::<String>::new());
    assert!(!answer.to_string().contains(NEEDLE), "{answer}");
    answer
}

#[test]
fn a_document_erased_while_being_read_is_not_loaded() {
    let answer = load_while("deleteSkill", "loadSkill");
    assert_eq!(answer["content"], "New.", "{answer}");
    let answer = load_while("deleteSkill", "callTool");
    assert_eq!(answer["output"], "New.", "{answer}");
    // The block is deleted with its copies.
    let answer = load_while("removeBlock", "loadSkill");
    assert_eq!(answer, "block_not_found");
    let answer = load_while("removeBlock", "callTool");
    assert_eq!(answer["isError"], true, "{answer}");
}

/// When a turn ends, it logs what it loaded, even if it was erased in the meantime: another purge
/// finds it.
#[test]
fn a_turns_writes_after_a_purge_are_found_by_the_next_purge() {
    let alice = Rc::new(Alice::with_model());
    alice.ok("createSession", json!({"id": "s"}));
    alice.ok(
        "defineBlock",
        json!({"label": "skills", "kind": "loadable"}),
    );
    let document = json!({"label": "skills", "key": "k", "content": NEEDLE});
    alice.ok("putSkill", document);
    let place = json!({"label": "skills", "key": "k"});
    alice
        .outbound
        .answer(calls(&[("c", "load_context", place)]));
    alice.outbound.answer(text_answer("Read."));
    let other = Rc::clone(&alice);
    let input = json!({"label": "skills", "key": "k", "purge": true});
    let purged = input.clone();
    // The first request makes the model load the document, the second contains it.
    *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(move || {
        let again = Rc::clone(&other);
        *other.outbound.during_next_call.borrow_mut() = Some(Box::new(move || {
            assert_eq!(
                again.ok("deleteSkill", purged)["erased"]["loadedDocuments"],
                1
            );
        }));
    }));
    alice.chat_text("load it");
    assert!(alice.outbound.during_next_call.borrow().is_none());
    assert_ne!(places_after_purge(&alice.db), Vec::<String>::new());
    alice.ok("deleteSkill", input);
    assert_eq!(places_after_purge(&alice.db), Vec::<String>::new());
}

#[test]
fn a_listing_requested_before_a_purge_is_not_cached() {
    let alice = Rc::new(with_bucket(&[("skills/k", "x", Some(NEEDLE))]));
    let block = json!({"label": "skills", "kind": "loadable", "source": {"r2Prefix": "skills/"}});
    alice.ok("defineBlock", block);
    // The listing requested by the definition is too old.
    alice.host.advance(120_000);
    let other = Rc::clone(&alice);
    *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(move || {
        let input = json!({"label": "skills", "key": "k", "purge": true});
        assert_eq!(other.ok("deleteSkill", input)["deleted"], true);
    }));
    alice.ok("listSkills", json!({"label": "skills"}));
    assert_eq!(places_after_purge(&alice.db), Vec::<String>::new());
}
