//! Blocks: defining and writing them, their versions, and whether they belong to the
//! agent or to a session.

use serde_json::{Value, json};

use crate::Alice;
use access::{Caller, TokenScope};
use base::ids::Id;

fn scoped_to(session: Option<&str>) -> Caller {
    Caller::Scoped(TokenScope {
        session_id: session.map(|id| Id::parse(id.to_owned()).unwrap()),
        operations: Some(
            NAMED
                .iter()
                .map(|operation| (*operation).to_owned())
                .collect(),
        ),
        expires_at: i64::MAX,
        ..TokenScope::default()
    })
}

/// The operations that a token must name, and the others that these tests use.
const NAMED: &[&str] = &[
    "defineBlock",
    "setBlock",
    "getBlocks",
    "loadSkill",
    "callTool",
    "getTools",
    "renderPrompt",
];

fn with_memory() -> Alice {
    let alice = Alice::with_session();
    alice.ok(
        "defineBlock",
        json!({"label": "memory", "kind": "writable", "maxTokens": 100}),
    );
    alice
}

#[test]
fn a_block_has_the_documented_fields() {
    let alice = Alice::default();
    let block = alice.ok(
        "defineBlock",
        json!({"label": "memory", "kind": "writable", "description": "Facts", "maxTokens": 100, "defaultContent": "None yet."}),
    );
    let expected = json!({
        "label": "memory", "kind": "writable", "description": "Facts", "maxTokens": 100,
        "content": "None yet.", "tokens": 3, "version": 0, "scope": "agent", "source": null,
        "whenChanged": "wait", "modelWrites": true, "updatedAt": 1_000_000
    });
    assert_eq!(block, expected);
    assert_eq!(alice.ok("getBlock", json!({"label": "MEMORY"})), expected);
    assert_eq!(alice.ok("getBlocks", json!({})), json!([expected]));
    assert_eq!(alice.ok("getBlock", json!({"label": "other"})), Value::Null);
}

#[test]
fn redefining_keeps_content_and_position() {
    let alice = with_memory();
    alice.ok("defineBlock", json!({"label": "todos", "kind": "writable"}));
    alice.ok("setBlock", json!({"label": "memory", "content": "a"}));
    let block = alice.ok(
        "defineBlock",
        json!({"label": "Memory", "kind": "writable", "description": "New"}),
    );
    assert_eq!(
        (&block["content"], &block["label"], &block["maxTokens"]),
        (&json!("a"), &json!("Memory"), &Value::Null)
    );
    let blocks = alice.ok("getBlocks", json!({}));
    assert_eq!(blocks[0]["label"], "Memory");
    assert_eq!(blocks[1]["label"], "todos");
}

#[test]
fn a_readonly_block_changes_only_by_its_definition() {
    let alice = Alice::default();
    let define = |content: &str| {
        let body = json!({"label": "soul", "kind": "readonly", "defaultContent": content});
        alice.ok("defineBlock", body)["content"].clone()
    };
    assert_eq!(define("You are kind."), "You are kind.");
    for operation in ["setBlock", "appendToBlock"] {
        let body = json!({"label": "soul", "content": "Obey."});
        assert_eq!(alice.refused(operation, body), "block_read_only");
    }
    assert_eq!(
        alice.refused("revertBlock", json!({"label": "soul", "version": 0})),
        "block_read_only"
    );
    assert_eq!(define("You are bold."), "You are bold.");
}

#[test]
fn a_write_over_the_budget_is_refused_with_the_sizes() {
    let alice = with_memory();
    alice.ok(
        "setBlock",
        json!({"label": "memory", "content": "x".repeat(400)}),
    );
    let before = alice.db.dump();
    let error = alice
        .call("appendToBlock", json!({"label": "memory", "content": "x"}))
        .unwrap_err();
    assert_eq!(error.code.name(), "block_over_budget");
    assert_eq!(error.code.status(), 422);
    assert_eq!(
        (&error.details()["tokens"], &error.details()["maxTokens"]),
        (&json!(101), &json!(100))
    );
    assert_eq!(alice.db.dump(), before);
    let over =
        json!({"label": "b", "kind": "writable", "maxTokens": 1, "defaultContent": "two words"});
    assert_eq!(alice.refused("defineBlock", over), "block_over_budget");
}

#[test]
fn an_unchanged_write_writes_no_row() {
    let alice = with_memory();
    alice.ok("setBlock", json!({"label": "memory", "content": "a"}));
    let before = alice.db.dump();
    let block = alice.ok("setBlock", json!({"label": "memory", "content": "a"}));
    assert_eq!(block["version"], 1);
    alice.ok("appendToBlock", json!({"label": "memory", "content": ""}));
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn versions_record_their_author_and_can_be_restored() {
    let alice = with_memory();
    alice.ok(
        "setBlock",
        json!({"label": "memory", "content": "a", "reason": "Start."}),
    );
    alice.host.advance(1_000);
    alice.ok(
        "callTool",
        json!({"sessionId": "s", "name": "set_context", "arguments": {"label": "memory", "content": "b"}}),
    );
    let versions = alice.ok("getBlockVersions", json!({"label": "memory"}));
    assert_eq!(
        versions,
        json!({"versions": [
            {"version": 2, "content": "b", "tokens": 2, "writtenBy": "tool", "sessionId": "s", "turnId": null, "reason": null, "writtenAt": 1_001_000},
            {"version": 1, "content": "a", "tokens": 2, "writtenBy": "operation", "sessionId": null, "turnId": null, "reason": "Start.", "writtenAt": 1_000_000},
        ]})
    );
    let block = alice.ok("revertBlock", json!({"label": "memory", "version": 1}));
    assert_eq!(
        (&block["content"], &block["version"]),
        (&json!("a"), &json!(3))
    );
    let block = alice.ok("revertBlock", json!({"label": "memory", "version": 0}));
    assert_eq!(
        (&block["content"], &block["version"]),
        (&json!(""), &json!(4))
    );
    let error = alice
        .call("revertBlock", json!({"label": "memory", "version": 9}))
        .unwrap_err();
    assert_eq!(error.details()["field"], "version");
}

#[test]
fn a_write_with_an_outdated_version_is_refused() {
    let alice = with_memory();
    let set = |content: &str, version: i64| {
        alice.call(
            "setBlock",
            json!({"label": "memory", "content": content, "expectedVersion": version}),
        )
    };
    assert_eq!(set("a", 0).unwrap()["version"], 1);
    let error = set("b", 0).unwrap_err();
    assert_eq!(
        (error.code.name(), error.code.status()),
        ("version_conflict", 409)
    );
    assert_eq!(error.details()["version"], 1);
    assert_eq!(set("b", 1).unwrap()["version"], 2);
}

#[test]
fn versions_are_limited_to_fifty_and_eight_mebibytes() {
    let alice = Alice::default();
    alice.ok(
        "defineBlock",
        json!({"label": "memory", "kind": "writable"}),
    );
    for n in 0..60 {
        alice.ok(
            "setBlock",
            json!({"label": "memory", "content": format!("{n}")}),
        );
    }
    let count = |alice: &Alice| {
        let versions = alice.ok("getBlockVersions", json!({"label": "memory"}));
        versions["versions"].as_array().unwrap().len()
    };
    assert_eq!(count(&alice), 50);
    for n in 0..9 {
        let content = format!("{n}{}", "x".repeat((1 << 20) - 1));
        alice.ok("setBlock", json!({"label": "memory", "content": content}));
    }
    assert_eq!(count(&alice), 8);
    let error = alice
        .call(
            "setBlock",
            json!({"label": "memory", "content": "x".repeat((1 << 20) + 1)}),
        )
        .unwrap_err();
    assert_eq!(error.code.name(), "payload_too_large");
}

#[test]
fn clearing_resets_writable_blocks_and_keeps_versions() {
    let alice = with_memory();
    alice.ok(
        "defineBlock",
        json!({"label": "todos", "kind": "writable", "defaultContent": "None."}),
    );
    alice.ok("setBlock", json!({"label": "memory", "content": "a"}));
    alice.ok("setBlock", json!({"label": "todos", "content": "b"}));
    assert_eq!(alice.ok("clearBlocks", json!({})), json!({"cleared": 2}));
    assert_eq!(
        alice.ok("getBlock", json!({"label": "todos"}))["content"],
        "None."
    );
    assert_eq!(alice.ok("clearBlocks", json!({})), json!({"cleared": 0}));
    let block = alice.ok("revertBlock", json!({"label": "memory", "version": 1}));
    assert_eq!(block["content"], "a");
}

#[test]
fn a_redefined_block_has_its_old_content_unless_purged() {
    let alice = with_memory();
    alice.ok("setBlock", json!({"label": "memory", "content": "a"}));
    assert_eq!(
        alice.ok("removeBlock", json!({"label": "memory"})),
        json!({"removed": true})
    );
    assert_eq!(
        alice.ok("removeBlock", json!({"label": "memory"})),
        json!({"removed": false})
    );
    assert_eq!(
        alice.refused("setBlock", json!({"label": "memory", "content": "b"})),
        "block_not_found"
    );
    let define = json!({"label": "memory", "kind": "writable"});
    assert_eq!(alice.ok("defineBlock", define.clone())["content"], "a");
    alice.ok("removeBlock", json!({"label": "memory", "purge": true}));
    assert_eq!(alice.ok("defineBlock", define)["content"], "");
}

#[test]
fn a_kind_change_that_would_hide_content_is_refused() {
    let alice = with_memory();
    alice.ok("setBlock", json!({"label": "memory", "content": "a"}));
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    alice.ok(
        "setEntry",
        json!({"label": "kb", "key": "k", "content": "c"}),
    );
    alice.ok(
        "defineBlock",
        json!({"label": "skills", "kind": "loadable"}),
    );
    alice.ok(
        "putSkill",
        json!({"label": "skills", "key": "k", "content": "c"}),
    );
    for (label, kind) in [
        ("memory", "searchable"),
        ("memory", "loadable"),
        ("kb", "writable"),
        ("skills", "searchable"),
    ] {
        let before = alice.db.dump();
        let error = alice
            .call("defineBlock", json!({"label": label, "kind": kind}))
            .unwrap_err();
        assert_eq!(error.details()["field"], "kind");
        assert!(error.message.contains("purge"), "{}", error.message);
        assert_eq!(alice.db.dump(), before);
    }
    // A block keeps its text when it becomes readonly.
    let block = alice.ok(
        "defineBlock",
        json!({"label": "memory", "kind": "readonly"}),
    );
    assert_eq!(block["content"], "a");
    alice.ok("removeBlock", json!({"label": "kb", "purge": true}));
    alice.ok("defineBlock", json!({"label": "kb", "kind": "writable"}));
}

#[test]
fn a_session_block_overrides_the_agents() {
    let alice = with_memory();
    alice.ok("createSession", json!({"id": "t"}));
    alice.ok("setBlock", json!({"label": "memory", "content": "shared"}));
    alice.ok(
        "defineBlock",
        json!({"sessionId": "s", "label": "Memory", "kind": "writable"}),
    );
    alice.ok(
        "setBlock",
        json!({"sessionId": "s", "label": "memory", "content": "mine"}),
    );
    let prompt = |body: Value| {
        alice.ok("renderPrompt", body)["prompt"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    assert!(prompt(json!({"sessionId": "s"})).ends_with("mine"));
    assert!(!prompt(json!({"sessionId": "s"})).contains("shared"));
    assert!(prompt(json!({"sessionId": "t"})).ends_with("shared"));
    assert_eq!(
        alice.ok("getBlock", json!({"sessionId": "t", "label": "memory"})),
        Value::Null
    );
    assert_eq!(
        alice.refused("getBlocks", json!({"sessionId": "nobody"})),
        "session_not_found"
    );
}

#[test]
fn deleting_a_session_deletes_its_memory() {
    let alice = with_memory();
    let empty = alice.db.dump();
    alice.ok("createSession", json!({"id": "t"}));
    for (label, kind) in [("m", "writable"), ("kb", "searchable"), ("sk", "loadable")] {
        alice.ok(
            "defineBlock",
            json!({"sessionId": "t", "label": label, "kind": kind}),
        );
    }
    alice.ok(
        "setBlock",
        json!({"sessionId": "t", "label": "m", "content": "a"}),
    );
    alice.ok(
        "setEntry",
        json!({"sessionId": "t", "label": "kb", "key": "k", "content": "word"}),
    );
    alice.ok(
        "putSkill",
        json!({"sessionId": "t", "label": "sk", "key": "k", "content": "c"}),
    );
    alice.ok(
        "loadSkill",
        json!({"sessionId": "t", "label": "sk", "key": "k"}),
    );
    alice.ok("freezePrompt", json!({"sessionId": "t"}));
    alice.ok("deleteSession", json!({"sessionId": "t"}));
    let without_shadows = |dump: String| {
        dump.lines()
            .filter(|line| !line.starts_with("cf_agents_entries_search"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(without_shadows(alice.db.dump()), without_shadows(empty));
}

#[test]
fn a_fork_copies_the_sessions_memory() {
    let alice = with_memory();
    alice.append_texts(&["hi"]);
    alice.ok(
        "defineBlock",
        json!({"sessionId": "s", "label": "kb", "kind": "searchable"}),
    );
    alice.ok(
        "setEntry",
        json!({"sessionId": "s", "label": "kb", "key": "k", "content": "heliotrope"}),
    );
    let frozen = alice.ok("freezePrompt", json!({"sessionId": "s"}));
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}))["id"].clone();
    alice.ok("deleteSession", json!({"sessionId": "s"}));
    let found = alice.ok(
        "searchContext",
        json!({"sessionId": fork, "label": "kb", "query": "heliotropes"}),
    );
    assert_eq!(found["results"][0]["key"], "k");
    assert_eq!(alice.ok("freezePrompt", json!({"sessionId": fork})), frozen);
}

#[test]
fn a_session_token_reaches_only_its_blocks() {
    let mut alice = with_memory();
    alice.ok("createSession", json!({"id": "t"}));
    alice.caller = scoped_to(Some("s"));
    alice.ok(
        "defineBlock",
        json!({"sessionId": "s", "label": "own", "kind": "writable"}),
    );
    alice.ok("renderPrompt", json!({"sessionId": "s"}));
    for (operation, body) in [
        ("defineBlock", json!({"label": "a", "kind": "writable"})),
        ("setBlock", json!({"label": "memory", "content": "a"})),
        ("getBlocks", json!({"sessionId": "t"})),
        ("loadSkill", json!({"label": "a", "key": "b"})),
        ("callTool", json!({"name": "set_context", "arguments": {}})),
        (
            "defineBlock",
            json!({"sessionId": "s", "label": "b", "kind": "writable", "source": {"agent": "bob"}}),
        ),
    ] {
        assert_eq!(alice.refused(operation, body), "forbidden", "{operation}");
    }
    // The token can't write a block of the agent through a tool either.
    let tools = alice.ok("getTools", json!({"sessionId": "s"}));
    assert_eq!(
        tools["tools"][0]["parameters"]["properties"]["label"]["enum"],
        json!(["own"])
    );
    let outcome = alice.ok(
        "callTool",
        json!({"sessionId": "s", "name": "set_context", "arguments": {"label": "memory", "content": "forged"}}),
    );
    assert_eq!(outcome["isError"], true);
    alice.caller = scoped_to(None);
    alice.ok("setBlock", json!({"label": "memory", "content": "a"}));
    let remote = json!({"label": "b", "kind": "writable", "source": {"agent": "bob"}});
    assert_eq!(alice.refused("defineBlock", remote), "forbidden");
}

#[test]
fn operations_override_deployed_blocks() {
    let alice = Alice::default();
    let deployed = json!([
        {"label": "soul", "kind": "readonly", "defaultContent": "You are kind."},
        {"label": "memory", "kind": "writable", "maxTokens": 50},
    ]);
    let deploy = |blocks: &Value| {
        let mut settings = alice.outbound.settings.borrow_mut();
        settings.insert("MEMORY_BLOCKS".to_owned(), blocks.to_string());
    };
    deploy(&deployed);
    assert_eq!(
        alice.ok("getBlock", json!({"label": "soul"}))["updatedAt"],
        Value::Null
    );
    alice.ok("setBlock", json!({"label": "memory", "content": "a"}));
    alice.ok("defineBlock", json!({"label": "extra", "kind": "writable"}));
    alice.ok(
        "defineBlock",
        json!({"label": "Soul", "kind": "readonly", "defaultContent": "You are bold."}),
    );
    let labels = |alice: &Alice| {
        let blocks = alice.ok("getBlocks", json!({}));
        let blocks = blocks.as_array().unwrap().clone();
        blocks
            .iter()
            .map(|block| block["label"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(labels(&alice), ["Soul", "memory", "extra"]);
    assert_eq!(
        alice.ok("getBlock", json!({"label": "soul"}))["content"],
        "You are bold."
    );
    // A removed deployed block is not restored by the next read.
    assert_eq!(
        alice.ok("removeBlock", json!({"label": "soul"})),
        json!({"removed": true})
    );
    assert_eq!(labels(&alice), ["memory", "extra"]);
    assert_eq!(
        alice.ok("removeBlock", json!({"label": "soul"})),
        json!({"removed": false})
    );

    // `getConfig` reports an error in `MEMORY_BLOCKS`; everything else works.
    deploy(&json!([{"label": "memory", "kind": "writable"}, {"label": "x", "kind": "y"}]));
    assert_eq!(labels(&alice), ["memory", "extra"]);
    let problems = &alice.ok("getConfig", json!({}))["problems"];
    assert_eq!(problems[0]["source"], "MEMORY_BLOCKS");
    assert_eq!(problems[0]["field"], "blocks[1].kind");
    let prompt = alice.ok("renderPrompt", json!({}));
    assert!(
        prompt["prompt"]
            .as_str()
            .unwrap()
            .contains("MEMORY [writable]")
    );
}

#[test]
fn entries_are_listed_replaced_and_deleted() {
    let alice = Alice::default();
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    for key in ["c", "a", "b"] {
        alice.ok(
            "setEntry",
            json!({"label": "kb", "key": key, "content": format!("about {key}")}),
        );
    }
    let page = alice.ok("listEntries", json!({"label": "kb", "limit": 2}));
    assert_eq!(
        (
            &page["entries"][0]["key"],
            &page["entries"][1]["key"],
            &page["cursor"]
        ),
        (&json!("a"), &json!("b"), &json!("b"))
    );
    let rest = alice.ok(
        "listEntries",
        json!({"label": "kb", "limit": 2, "cursor": "b"}),
    );
    assert_eq!(
        (&rest["entries"][0]["key"], &rest["cursor"]),
        (&json!("c"), &Value::Null)
    );
    alice.ok(
        "setEntry",
        json!({"label": "kb", "key": "a", "title": "T", "content": "on penguins"}),
    );
    let search = |query: &str| {
        alice.ok("searchContext", json!({"label": "kb", "query": query}))["results"].clone()
    };
    assert_eq!(search("penguin")[0]["snippet"], "on penguins");
    assert_eq!(search("penguin")[0]["highlights"], json!([[3, 11]]));
    assert_eq!(
        search("\"about a\""),
        json!([]),
        "the replaced text is no longer found"
    );
    assert_eq!(
        alice.ok("deleteEntry", json!({"label": "kb", "key": "a"})),
        json!({"deleted": true, "versionsKept": 2})
    );
    assert_eq!(
        alice.ok("deleteEntry", json!({"label": "kb", "key": "a"})),
        json!({"deleted": false})
    );
    assert_eq!(search("penguin"), json!([]));
}

#[test]
fn entries_are_found_by_stem_and_ranked() {
    let alice = Alice::default();
    for label in ["kb", "other"] {
        alice.ok("defineBlock", json!({"label": label, "kind": "searchable"}));
    }
    for (key, title, content) in [
        (
            "refunds",
            "Refund policy",
            "Customers are refunded within thirty days of a purchase.",
        ),
        (
            "shipping",
            "Shipping",
            "We ship to Norway and Sweden. Shipping takes five days.",
        ),
        (
            "hours",
            "Opening hours",
            "Open on weekdays from nine to five.",
        ),
    ] {
        alice.ok(
            "setEntry",
            json!({"label": "kb", "key": key, "title": title, "content": content}),
        );
    }
    alice.ok(
        "setEntry",
        json!({"label": "other", "key": "secret", "content": "refund refund refund"}),
    );
    let keys = |query: &str| {
        let found = alice.ok(
            "searchContext",
            json!({"label": "kb", "query": query, "limit": 2}),
        );
        let found = found["results"].as_array().unwrap().clone();
        found
            .iter()
            .map(|result| result["key"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(keys("how do I get refunded?"), ["refunds"]);
    assert_eq!(keys("days until shipped")[0], "shipping");
    assert_eq!(keys("\"nine to five\""), ["hours"]);
    assert_eq!(keys("swed*"), ["shipping"]);
    for syntax in [
        "",
        "\"",
        "*",
        "NEAR(a b)",
        "content:a",
        "a OR",
        "'; DROP TABLE x",
        "-a ^b {c}",
    ] {
        keys(syntax);
    }
}

#[test]
fn an_unchanged_definition_writes_no_row() {
    let alice = with_memory();
    let before = alice.db.dump();
    alice.host.advance(1_000);
    alice.ok(
        "defineBlock",
        json!({"label": "memory", "kind": "writable", "maxTokens": 100}),
    );
    assert_eq!(alice.db.dump(), before);
}
