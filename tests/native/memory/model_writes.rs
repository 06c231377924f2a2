//! The blocks that the model may write: blocks with `modelWrites`, and in a turn whose
//! caller is limited to a session only the blocks of that session.

use serde_json::{Value, json};

use crate::Alice;
use crate::shared::turns::{calls, define, text_answer, user};
use access::{Allow, Caller, TokenScope};
use base::database::Database;
use base::ids::Id;
use base::testing::ScriptedAnswer;

fn token(session_id: Option<&str>, allow: Allow) -> Caller {
    Caller::Scoped(TokenScope {
        session_id: session_id.map(|id| Id::parse(id.to_owned()).unwrap()),
        operations: Some(["chat", "callTool", "getTools"].map(str::to_owned).to_vec()),
        allow,
        expires_at: i64::MAX,
        ..TokenScope::default()
    })
}

fn agent_memory() -> Allow {
    Allow {
        agent_memory: true,
        ..Allow::default()
    }
}

/// An agent with its own blocks and blocks of a session, all of which the model may write.
fn populated() -> Alice {
    let alice = Alice::with_model();
    alice.ok("createSession", json!({"id": "s"}));
    alice.ok(
        "defineBlock",
        json!({"label": "shared", "kind": "writable"}),
    );
    alice.ok("defineBlock", json!({"label": "docs", "kind": "loadable"}));
    alice.ok(
        "defineBlock",
        json!({"label": "own", "kind": "writable", "sessionId": "s"}),
    );
    alice
}

fn write(label: &str, content: &str) -> Value {
    json!({"label": label, "content": content, "metadata": {"title": "t"}})
}

impl Alice {
    /// Whether a turn of this caller can write the agent's block, the session's block and
    /// the agent's documents.
    pub fn writes_in_a_turn(&self) -> [bool; 3] {
        self.outbound.answer(calls(&[
            ("c1", "set_context", write("shared", "all")),
            ("c2", "set_context", write("own", "one")),
            ("c3", "set_context", write("docs", "all")),
        ]));
        self.outbound.answer(text_answer("Done."));
        self.chat(json!({"id": "s", "message": user("go")}));
        self.written()
    }

    pub fn written(&self) -> [bool; 3] {
        let content = |sql: &str| !self.db.rows(sql, &[]).unwrap().is_empty();
        [
            content("SELECT 1 FROM cf_agents_block_versions WHERE key = 'shared'"),
            content("SELECT 1 FROM cf_agents_block_versions WHERE key = 'own'"),
            content("SELECT 1 FROM cf_agents_skills"),
        ]
    }

    /// The labels that `set_context` offered to the model of the last turn.
    pub fn listed(&self) -> Value {
        let calls = self.outbound.calls.borrow();
        let request: Value = serde_json::from_str(&calls.last().unwrap().body).unwrap();
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        let tool = tools
            .iter()
            .find(|tool| tool["function"]["name"] == "set_context");
        tool.map_or(json!([]), |tool| {
            tool["function"]["parameters"]["properties"]["label"]["enum"].clone()
        })
    }
}

#[test]
fn a_restricted_callers_turn_writes_only_its_session() {
    for (caller, written, listed) in [
        (
            Caller::Owner,
            [true, true, true],
            json!(["shared", "docs", "own"]),
        ),
        (
            token(None, Allow::default()),
            [true, true, true],
            json!(["shared", "docs", "own"]),
        ),
        (
            token(Some("s"), Allow::default()),
            [false, true, false],
            json!(["own"]),
        ),
        (
            token(Some("s"), agent_memory()),
            [true, true, true],
            json!(["shared", "docs", "own"]),
        ),
    ] {
        let mut alice = populated();
        alice.caller = caller.clone();
        assert_eq!(alice.writes_in_a_turn(), written, "{caller:?}");
        assert_eq!(alice.listed(), listed);
        // `callTool` has the same limits.
        let mut alice = populated();
        alice.caller = caller.clone();
        for label in ["shared", "own", "docs"] {
            let body =
                json!({"sessionId": "s", "name": "set_context", "arguments": write(label, "x")});
            alice.ok("callTool", body);
        }
        assert_eq!(alice.written(), written, "{caller:?}");
    }
}

#[test]
fn a_resumed_turn_keeps_its_restrictions() {
    for (allow, written) in [
        (Allow::default(), [false, true, false]),
        (agent_memory(), [true, true, true]),
    ] {
        let mut alice = populated();
        alice.caller = token(Some("s"), allow);
        let body = json!({"id": "s", "message": user("go")});
        drop(alice.begin(&body).unwrap());
        alice.crash();
        // The next activation resumes the turn without the caller's request.
        alice.caller = Caller::Owner;
        alice.outbound.answer(calls(&[
            ("c1", "set_context", write("shared", "all")),
            ("c2", "set_context", write("own", "one")),
            ("c3", "set_context", write("docs", "all")),
        ]));
        alice.outbound.answer(text_answer("Done."));
        let works = chat::run::resume::resume_some_turns(&alice.agent(&alice.db)).works;
        for work in works {
            alice.run_work(work);
        }
        assert_eq!(alice.written(), written);
    }
}

#[test]
fn the_narrower_of_two_callers_of_a_message_applies() {
    let session_token = || token(Some("s"), Allow::default());
    for (first, second) in [
        (session_token(), Caller::Owner),
        (Caller::Owner, session_token()),
    ] {
        let mut alice = populated();
        define(&alice, "pay", true);
        alice.caller = first;
        alice.outbound.answer(calls(&[("c1", "pay", json!({}))]));
        alice.chat(json!({"id": "s", "message": user("pay, then tell everybody")}));
        alice.caller = Caller::Owner;
        let mut message = alice.shown()[1].clone();
        message["parts"][1]["state"] = json!("approval-responded");
        message["parts"][1]["approval"]["approved"] = json!(true);
        alice.caller = second;
        alice.outbound.answer(Ok(ScriptedAnswer::text(200, "paid")));
        alice.outbound.answer(calls(&[
            ("c2", "set_context", write("shared", "all")),
            ("c3", "set_context", write("own", "one")),
        ]));
        alice.outbound.answer(text_answer("Done."));
        alice.chat(json!({"id": "s", "messages": [message]}));
        assert_eq!(alice.written(), [false, true, false]);
    }
}

#[test]
fn the_model_writes_a_remote_block_only_if_its_definition_allows_it() {
    let alice = Alice::default();
    alice
        .outbound
        .bindings
        .borrow_mut()
        .push("NOTES".to_owned());
    for (label, source, model_writes, writes) in [
        ("a", Value::Null, Value::Null, true),
        ("b", Value::Null, json!(false), false),
        ("c", json!({"service": "NOTES"}), Value::Null, false),
        ("d", json!({"service": "NOTES"}), json!(true), true),
        ("e", json!({"agent": "user:42"}), Value::Null, false),
    ] {
        let block = json!({"label": label, "kind": "searchable", "source": source, "modelWrites": model_writes});
        let shown = alice.ok("defineBlock", block);
        assert_eq!(shown["modelWrites"], writes, "{label}");
        let shown = alice.ok("getBlocks", json!({}));
        let shown = shown
            .as_array()
            .unwrap()
            .iter()
            .find(|block| block["label"] == label);
        assert_eq!(shown.unwrap()["modelWrites"], writes, "{label}");
    }
    let tools = alice.ok("getTools", json!({}));
    let set_context = &tools["tools"][0];
    assert_eq!(set_context["name"], "set_context");
    assert_eq!(
        set_context["parameters"]["properties"]["label"]["enum"],
        json!(["a", "d"])
    );
    let calls = alice.outbound.calls.borrow().len();
    let body = json!({"name": "set_context", "arguments": write("c", "x")});
    let outcome = alice.ok("callTool", body);
    assert_eq!(outcome["isError"], true);
    let output = outcome["output"].as_str().unwrap();
    assert!(output.contains("You can't write to c"), "{output}");
    assert_eq!(
        alice.outbound.calls.borrow().len(),
        calls,
        "no request was sent"
    );
    // Operations still write the block.
    let entry = json!({"label": "b", "key": "k", "content": "ours"});
    alice.ok("setEntry", entry);
    // A readonly block stays readonly, also with `modelWrites`.
    let block = json!({"label": "r", "kind": "readonly", "modelWrites": true});
    assert_eq!(alice.ok("defineBlock", block)["modelWrites"], false);
}

#[test]
fn without_a_writable_block_the_model_has_no_write_tool() {
    let alice = Alice::with_session();
    let block = json!({"label": "b", "kind": "writable", "modelWrites": false});
    alice.ok("defineBlock", block);
    assert_eq!(alice.ok("getTools", json!({}))["tools"], json!([]));
    let prompt = alice.ok("renderPrompt", json!({}))["prompt"].clone();
    assert!(
        prompt.as_str().unwrap().contains("B [writable]"),
        "{prompt}"
    );
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    assert!(fork["id"].is_string());
}

#[test]
fn model_writes_is_copied_and_exported_and_reset_by_redefinition() {
    let alice = Alice::with_session();
    let block = json!({"sessionId": "s", "label": "b", "kind": "writable", "modelWrites": false});
    alice.ok("defineBlock", block.clone());
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    let file = alice.export("s").unwrap();
    alice.import("t", &file).unwrap();
    assert_eq!(
        alice.export("t").unwrap(),
        file.replace("\"id\":\"s\"", "\"id\":\"t\"")
    );
    for session in ["s", "t", fork["id"].as_str().unwrap()] {
        let block = json!({"sessionId": session, "label": "b"});
        assert_eq!(
            alice.ok("getBlock", block)["modelWrites"],
            false,
            "{session}"
        );
    }
    // A definition replaces the previous one completely: an omitted field has its default
    // again.
    let mut again = block;
    again.as_object_mut().unwrap().remove("modelWrites");
    assert_eq!(alice.ok("defineBlock", again)["modelWrites"], true);
}

#[test]
fn a_deployed_block_may_set_model_writes() {
    let alice = Alice::default();
    let blocks = json!([
        {"label": "runbooks", "kind": "loadable", "source": {"r2Prefix": "runbooks/"}},
        {"label": "notes", "kind": "loadable", "source": {"r2Prefix": "notes/"}, "modelWrites": true},
    ]);
    let setting = ("MEMORY_BLOCKS".to_owned(), blocks.to_string());
    alice.outbound.settings.borrow_mut().extend([setting]);
    *alice.outbound.bucket.borrow_mut() = Some(Default::default());
    for (label, writes) in [("runbooks", false), ("notes", true)] {
        let body = json!({"name": "set_context", "arguments": write(label, "x")});
        let outcome = alice.ok("callTool", body);
        assert_eq!(outcome["isError"], !writes, "{outcome}");
    }
    let bucket = alice.outbound.bucket.borrow();
    let keys: Vec<&String> = bucket.as_ref().unwrap().keys().collect();
    assert_eq!(keys, ["notes/t"]);
}

#[test]
fn removing_a_remote_block_needs_the_secret() {
    let source = json!({"agent": "user:42"});
    let mut alice = Alice::with_session();
    let deployed = json!([{"label": "deployed", "kind": "writable", "source": source}]);
    let setting = ("MEMORY_BLOCKS".to_owned(), deployed.to_string());
    alice.outbound.settings.borrow_mut().extend([setting]);
    alice.ok(
        "defineBlock",
        json!({"label": "shared", "kind": "writable", "source": source}),
    );
    alice.ok(
        "defineBlock",
        json!({"label": "own", "kind": "writable", "source": source, "sessionId": "s"}),
    );
    alice.ok("defineBlock", json!({"label": "local", "kind": "writable"}));
    let before = alice.db.dump();
    let operations = ["removeBlock", "defineBlock"].map(str::to_owned).to_vec();
    alice.caller = Caller::Scoped(TokenScope {
        operations: Some(operations),
        allow: Allow {
            purge: true,
            ..Allow::default()
        },
        expires_at: i64::MAX,
        ..TokenScope::default()
    });
    for (label, session) in [
        ("deployed", None),
        ("shared", None),
        ("Shared", None),
        ("own", Some("s")),
    ] {
        for body in [
            json!({"label": label, "sessionId": session}),
            json!({"label": label, "sessionId": session, "purge": true}),
        ] {
            let error = alice.call("removeBlock", body).unwrap_err();
            assert_eq!(
                (error.code.name(), &error.details()["field"]),
                ("forbidden", &json!("source"))
            );
        }
        let input = json!({"label": label, "sessionId": session, "kind": "writable"});
        assert_eq!(alice.refused("defineBlock", input), "forbidden");
    }
    assert_eq!(alice.db.dump(), before);
    assert_eq!(
        alice.ok("removeBlock", json!({"label": "local"}))["removed"],
        true
    );
    assert_eq!(
        alice.ok("removeBlock", json!({"label": "nobody"}))["removed"],
        false
    );
    alice.caller = Caller::Owner;
    for body in [
        json!({"label": "deployed"}),
        json!({"label": "own", "sessionId": "s"}),
    ] {
        assert_eq!(alice.ok("removeBlock", body)["removed"], true);
    }
}
