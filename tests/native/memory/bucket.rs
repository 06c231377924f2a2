//! Blocks stored in the bucket: one object with a text, or documents under a prefix.

use serde_json::{Value, json};

use crate::Alice;
pub use crate::shared::bucket::with_bucket;

#[test]
fn a_text_is_read_from_the_bucket() {
    let alice = with_bucket(&[("soul.md", "You are bold.", None)]);
    let define = json!({"label": "soul", "kind": "readonly", "source": {"r2": "soul.md"}, "defaultContent": "You are kind."});
    assert_eq!(alice.ok("defineBlock", define)["content"], "You are bold.");
    alice.outbound.bucket.borrow_mut().as_mut().unwrap().clear();
    assert_eq!(
        alice.ok("getBlock", json!({"label": "soul"}))["content"],
        "You are kind."
    );
}

#[test]
fn text_is_written_to_the_bucket_and_versions_stay_here() {
    let alice = with_bucket(&[]);
    alice.ok(
        "defineBlock",
        json!({"label": "notes", "kind": "writable", "source": {"r2": "notes.md"}}),
    );
    alice.ok("setBlock", json!({"label": "notes", "content": "a"}));
    let block = alice.ok("appendToBlock", json!({"label": "notes", "content": "b"}));
    assert_eq!(
        (&block["content"], &block["version"]),
        (&json!("ab"), &json!(2))
    );
    let stored = || {
        alice.outbound.bucket.borrow().as_ref().unwrap()["notes.md"]
            .0
            .clone()
    };
    assert_eq!(stored(), "ab");
    alice.ok("revertBlock", json!({"label": "notes", "version": 1}));
    assert_eq!(stored(), "a");
    let before = alice.db.dump();
    alice.ok("setBlock", json!({"label": "notes", "content": "a"}));
    assert_eq!(alice.db.dump(), before);
}

fn with_notes(objects: &[(&str, &str, Option<&str>)]) -> Alice {
    let alice = with_bucket(objects);
    alice.ok(
        "defineBlock",
        json!({"label": "notes", "kind": "writable", "source": {"r2": "notes.md"}}),
    );
    alice
}

/// Another writer stores these texts in the object: one right before each write of the agent.
fn expect_competing_writes(alice: &Alice, texts: &[&str]) {
    let competing_writes = texts
        .iter()
        .map(|text| ("notes.md".to_owned(), (*text).to_owned()));
    *alice.outbound.competing_writes.borrow_mut() = competing_writes.collect();
}

#[test]
fn concurrent_appends_are_both_kept() {
    for objects in [&[][..], &[("notes.md", "a\n", Some("Notes"))]] {
        let alice = with_notes(objects);
        expect_competing_writes(&alice, &["a\ntheirs\n"]);
        let block = alice.ok(
            "appendToBlock",
            json!({"label": "notes", "content": "ours"}),
        );
        assert_eq!(block["content"], "a\ntheirs\nours");
        let bucket = alice.outbound.bucket.borrow();
        assert_eq!(bucket.as_ref().unwrap()["notes.md"].0, "a\ntheirs\nours");
    }
}

#[test]
fn concurrent_appends_to_a_document_are_both_kept() {
    for objects in [
        &[][..],
        &[("skills/howto", "a", Some("How"))],
        &[("skills/howto/SKILL.md", "a", Some("How"))],
    ] {
        let alice = with_bucket(objects);
        let define = json!({"label": "skills", "kind": "loadable", "source": {"r2Prefix": "skills/"}, "modelWrites": true});
        alice.ok("defineBlock", define);
        let place = objects.first().map_or("skills/howto", |object| object.0);
        let rival = (place.to_owned(), "a\ntheirs".to_owned());
        alice
            .outbound
            .competing_writes
            .borrow_mut()
            .push_back(rival);
        let arguments = json!({"label": "skills", "content": "ours", "action": "append", "metadata": {"title": "howto"}});
        let outcome = alice.ok(
            "callTool",
            json!({"name": "set_context", "arguments": arguments}),
        );
        assert_eq!(outcome["isError"], false, "{outcome}");
        let bucket = alice.outbound.bucket.borrow();
        let bucket = bucket.as_ref().unwrap();
        assert_eq!(bucket[place].0, "a\ntheirs\nours");
        assert_eq!(bucket.len(), 1);
    }
}

#[test]
fn an_unreadable_document_is_replaced_in_place() {
    let alice = with_bucket(&[]);
    let define = json!({"label": "skills", "kind": "loadable", "source": {"r2Prefix": "skills/"}});
    alice.ok("defineBlock", define);
    let place = "skills/howto/SKILL.md".to_owned();
    alice
        .outbound
        .binaries
        .borrow_mut()
        .insert(place.clone(), vec![0xFF]);
    let put = json!({"label": "skills", "key": "howto", "content": "Steps."});
    alice.ok("putSkill", put);
    let bucket = alice.outbound.bucket.borrow();
    let keys: Vec<&String> = bucket.as_ref().unwrap().keys().collect();
    assert_eq!(keys, [&place]);
}

#[test]
fn a_document_that_others_keep_changing_is_not_overwritten() {
    let alice = with_bucket(&[("skills/howto", "0", None)]);
    let define = json!({"label": "skills", "kind": "loadable", "source": {"r2Prefix": "skills/"}, "modelWrites": true});
    alice.ok("defineBlock", define);
    let competing_writes =
        ["1", "2", "3", "4"].map(|text| ("skills/howto".to_owned(), text.to_owned()));
    *alice.outbound.competing_writes.borrow_mut() = competing_writes.into();
    let arguments = json!({"label": "skills", "content": "ours", "action": "append", "metadata": {"title": "howto"}});
    let outcome = alice.ok(
        "callTool",
        json!({"name": "set_context", "arguments": arguments}),
    );
    assert_eq!(outcome["isError"], true);
    assert!(
        outcome["output"]
            .as_str()
            .unwrap()
            .contains("Nothing was written")
    );
    let bucket = alice.outbound.bucket.borrow();
    assert_eq!(bucket.as_ref().unwrap()["skills/howto"].0, "4");
}

#[test]
fn a_write_preserves_the_objects_description() {
    let alice = with_notes(&[("notes.md", "a", Some("Notes"))]);
    alice.ok("appendToBlock", json!({"label": "notes", "content": "b"}));
    let bucket = alice.outbound.bucket.borrow();
    let stored = &bucket.as_ref().unwrap()["notes.md"];
    assert_eq!(stored, &("ab".to_owned(), Some("Notes".to_owned())));
}

#[test]
fn a_writer_that_loses_every_race_gets_an_error() {
    let alice = with_notes(&[]);
    let before = alice.db.dump();
    expect_competing_writes(&alice, &["1", "2", "3", "4"]);
    let append = json!({"label": "notes", "content": "ours"});
    assert_eq!(alice.refused("appendToBlock", append), "version_conflict");
    assert_eq!(alice.db.dump(), before);
    let bucket = alice.outbound.bucket.borrow();
    assert_eq!(bucket.as_ref().unwrap()["notes.md"].0, "4");
}

#[test]
fn documents_are_listed_without_their_prefix() {
    let alice = with_bucket(&[
        ("other/x", "no", None),
        (
            "skills/api-ref",
            "# API",
            Some("API Reference documentation"),
        ),
        (
            "skills/deploy/SKILL.md",
            "---\nname: deploy\ndescription: How to deploy\n---\nSteps.",
            None,
        ),
        ("skills/deploy/scripts/run.sh", "echo", None),
        ("skills/plain", "text", None),
    ]);
    let block = alice.ok(
        "defineBlock",
        json!({"label": "skills", "kind": "loadable", "source": {"r2Prefix": "skills/"}}),
    );
    assert_eq!(
        block["content"],
        "- api-ref: API Reference documentation\n- deploy: How to deploy\n- plain"
    );
    let load = |key: &str| {
        alice.call(
            "loadSkill",
            json!({"sessionId": "s", "label": "skills", "key": key}),
        )
    };
    assert!(
        load("deploy").unwrap()["content"]
            .as_str()
            .unwrap()
            .ends_with("Steps.")
    );
    assert_eq!(load("deploy/scripts/run.sh").unwrap()["content"], "echo");
    assert_eq!(load("nope").unwrap_err().code.name(), "skill_not_found");
    for key in [
        "../other/x",
        "/other/x",
        "a/../../other/x",
        "",
        "a\nb",
        &"x".repeat(513),
    ] {
        assert_eq!(load(key).unwrap_err().details()["field"], "key", "{key}");
    }
    // A document that exists is overwritten in place; a new document gets its own object.
    alice.ok(
        "putSkill",
        json!({"label": "skills", "key": "deploy", "content": "New."}),
    );
    alice.ok(
        "putSkill",
        json!({"label": "skills", "key": "new", "content": "Hi.", "description": "Greets"}),
    );
    let keys: Vec<String> = alice
        .outbound
        .bucket
        .borrow()
        .as_ref()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert_eq!(
        keys,
        [
            "other/x",
            "skills/api-ref",
            "skills/deploy/SKILL.md",
            "skills/deploy/scripts/run.sh",
            "skills/new",
            "skills/plain"
        ]
    );
    assert_eq!(
        alice.ok("deleteSkill", json!({"label": "skills", "key": "plain"})),
        json!({"deleted": true})
    );
    let listed = alice.ok("getBlock", json!({"label": "skills"}));
    assert_eq!(
        listed["content"],
        "- api-ref: API Reference documentation\n- deploy\n- new: Greets"
    );
}

#[test]
fn a_listing_is_cached_for_a_minute() {
    let alice = with_bucket(&[("skills/a", "x", None)]);
    alice.ok(
        "defineBlock",
        json!({"label": "skills", "kind": "loadable", "source": {"r2Prefix": "skills/"}}),
    );
    let content = || alice.ok("getBlock", json!({"label": "skills"}))["content"].clone();
    assert_eq!(content(), "- a");
    alice
        .outbound
        .bucket
        .borrow_mut()
        .as_mut()
        .unwrap()
        .insert("skills/b".to_owned(), ("y".to_owned(), None));
    assert_eq!(content(), "- a");
    alice.host.advance(60_001);
    assert_eq!(content(), "- a\n- b");
}

#[test]
fn all_pages_of_a_long_listing_are_read() {
    let alice = with_bucket(&[]);
    for n in 0..1_200 {
        let mut bucket = alice.outbound.bucket.borrow_mut();
        bucket
            .as_mut()
            .unwrap()
            .insert(format!("s/{n:04}"), ("x".to_owned(), None));
    }
    alice.ok(
        "defineBlock",
        json!({"label": "skills", "kind": "loadable", "source": {"r2Prefix": "s/"}}),
    );
    let page = alice.ok("listSkills", json!({"label": "skills", "limit": 1000}));
    assert_eq!(
        (page["skills"].as_array().unwrap().len(), &page["cursor"]),
        (1_000, &Value::Null)
    );
    let page = alice.ok("listSkills", json!({"label": "skills", "limit": 10}));
    assert_eq!(page["cursor"], "0009");
}

#[test]
fn a_binary_or_too_long_document_is_reported() {
    let alice = with_bucket(&[
        ("skills/long", &"x".repeat((256 << 10) + 1), None),
        ("skills/huge", &"x".repeat((1 << 20) + 1), None),
    ]);
    alice.ok(
        "defineBlock",
        json!({"label": "skills", "kind": "loadable", "source": {"r2Prefix": "skills/"}}),
    );
    let binary = ("skills/binary".to_owned(), b"\xff\xfe\x00".to_vec());
    alice.outbound.binaries.borrow_mut().extend([binary]);
    let named = json!({"sessionId": "s", "label": "skills", "key": "binary"});
    let error = alice.call("loadSkill", named).unwrap_err();
    assert_eq!(error.details()["field"], "key");
    assert!(error.message.contains("not UTF-8"), "{}", error.message);
    for key in ["long", "huge"] {
        let error = alice
            .call(
                "loadSkill",
                json!({"sessionId": "s", "label": "skills", "key": key}),
            )
            .unwrap_err();
        assert_eq!(
            (error.code.name(), error.code.status()),
            ("payload_too_large", 413),
            "{key}"
        );
    }
    let error = alice
        .call(
            "putSkill",
            json!({"label": "skills", "key": "k", "content": "x".repeat((256 << 10) + 1)}),
        )
        .unwrap_err();
    assert_eq!(
        (error.code.name(), &error.details()["limit"]),
        ("payload_too_large", &json!(262_144))
    );
}
