//! Blocks that live elsewhere: in the bucket, in other agents, behind services.
//! The bucket and the agents are real ones; a service says what a test wrote.

use std::cell::RefCell;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Alice;
use crate::access::{Caller, Policy};
use crate::api::{Agent, dispatch};
use crate::compaction::auto::Watch;
use crate::error::Error;
use crate::memory::homes::agent::{VIA_HEADER, parse_via};
use crate::outside::{Answer, Call, Failure, Later, Limits, Listing, Outside, Place, Stored};
use crate::testing::{FixedHost, Said, Script, Sqlite, migrated, wait_for};

/// Agents that reach each other, as those of one Worker do.
struct Town {
    agents: BTreeMap<&'static str, Sqlite>,
    host: FixedHost,
    policy: Policy,
    script: Script,
    calls: RefCell<Vec<Call>>,
}

const SECRET: &str = "a secret";

impl Town {
    fn of(names: &[&'static str]) -> Self {
        let town = Self {
            agents: names.iter().map(|name| (*name, migrated())).collect(),
            host: FixedHost::default(),
            policy: Policy::new(Some(SECRET.to_owned()), None),
            script: Script::default(),
            calls: RefCell::default(),
        };
        town.script
            .settings
            .borrow_mut()
            .insert("SESSION_AGENT_TOKEN".to_owned(), SECRET.to_owned());
        town
    }

    async fn run(
        &self,
        name: &str,
        operation: &str,
        body: &str,
        via: &[String],
    ) -> Result<String, Error> {
        let agent = Agent {
            name,
            db: &self.agents[name],
            host: &self.host,
            policy: &self.policy,
            caller: &Caller::Owner,
            outside: self,
            watch: &Watch::default(),
            via,
        };
        let reply = dispatch(&agent, operation, body.as_bytes()).await?;
        Ok(reply.body.into_string())
    }

    fn call(&self, name: &str, operation: &str, body: Value) -> Result<Value, Error> {
        let reply = wait_for(self.run(name, operation, &body.to_string(), &[]))?;
        Ok(serde_json::from_str(&reply).unwrap())
    }

    fn ok(&self, name: &str, operation: &str, body: Value) -> Value {
        self.call(name, operation, body).unwrap()
    }
}

impl Outside for Town {
    fn find_setting(&self, name: &str) -> Option<String> {
        self.script.find_setting(name)
    }

    fn is_bound(&self, binding: &str) -> bool {
        self.script.is_bound(binding)
    }

    fn send<'a>(&'a self, call: Call) -> Later<'a, Result<Answer<'a>, Failure>> {
        self.calls.borrow_mut().push(call.clone());
        let Place::Agent { name, operation } = call.place.clone() else {
            return self.script.send(call);
        };
        Box::pin(async move {
            let header = |wanted: &str| {
                let found = call.headers.iter().find(|(name, _)| name == wanted);
                found.map(|(_, value)| value.as_str())
            };
            assert_eq!(header("authorization"), Some("Bearer a secret"));
            let via = parse_via(header(VIA_HEADER));
            let outcome = self.run(&name, &operation, &call.body, &via).await;
            let (status, body) = match outcome {
                Ok(body) => (200, body),
                Err(error) => (error.code.status(), error.body()),
            };
            self.script.answer(Ok(Said {
                status,
                content_type: "application/json",
                chunks: vec![Ok(body.into_bytes())],
            }));
            self.script.send(call).await
        })
    }

    fn run_ai<'a>(
        &'a self,
        model: &'a str,
        input: String,
        limits: Limits,
    ) -> Later<'a, Result<Answer<'a>, Failure>> {
        self.script.run_ai(model, input, limits)
    }

    fn get_object<'a>(
        &'a self,
        key: &'a str,
        limits: Limits,
    ) -> Later<'a, Result<Option<Stored>, Failure>> {
        self.script.get_object(key, limits)
    }

    fn put_object<'a>(
        &'a self,
        key: &'a str,
        content: String,
        description: Option<&'a str>,
        limits: Limits,
    ) -> Later<'a, Result<(), Failure>> {
        self.script.put_object(key, content, description, limits)
    }

    fn delete_object<'a>(&'a self, key: &'a str, limits: Limits) -> Later<'a, Result<(), Failure>> {
        self.script.delete_object(key, limits)
    }

    fn list_objects<'a>(
        &'a self,
        prefix: &'a str,
        cursor: Option<&'a str>,
        limit: u32,
        limits: Limits,
    ) -> Later<'a, Result<Listing, Failure>> {
        self.script.list_objects(prefix, cursor, limit, limits)
    }

    fn sleep<'a>(&'a self, ms: i64) -> Later<'a, ()> {
        self.script.sleep(ms)
    }
}

#[test]
fn two_agents_share_a_users_memory() {
    let town = Town::of(&["alice", "bob", "user:42"]);
    for name in ["alice", "bob"] {
        town.ok(
            name,
            "defineBlock",
            json!({"label": "user", "kind": "writable", "maxTokens": 50,
                   "source": {"agent": "user:42", "label": "profile"}}),
        );
    }
    // Nobody wrote yet, so nothing was made there.
    assert_eq!(town.ok("user:42", "getBlocks", json!({})), json!([]));
    let written = town.ok(
        "alice",
        "setBlock",
        json!({"label": "user", "content": "Likes tea."}),
    );
    assert_eq!(
        (&written["content"], &written["version"]),
        (&json!("Likes tea."), &json!(1))
    );
    let read = town.ok("bob", "getBlock", json!({"label": "user"}));
    assert_eq!(
        (&read["content"], &read["version"], &read["label"]),
        (&json!("Likes tea."), &json!(1), &json!("user"))
    );
    let there = town.ok("user:42", "getBlock", json!({"label": "profile"}));
    assert_eq!(
        (&there["content"], &there["maxTokens"]),
        (&json!("Likes tea."), &json!(50))
    );
    town.ok(
        "bob",
        "appendToBlock",
        json!({"label": "user", "content": "\nHas a dog."}),
    );
    let prompt = town.ok("alice", "renderPrompt", json!({}));
    assert!(
        prompt["prompt"]
            .as_str()
            .unwrap()
            .ends_with("Likes tea.\nHas a dog.")
    );
    // The home's own rules hold, and its history leads back.
    let error = town
        .call(
            "alice",
            "setBlock",
            json!({"label": "user", "content": "x", "expectedVersion": 1}),
        )
        .unwrap_err();
    assert_eq!(
        (error.code.name(), &error.details["version"]),
        ("version_conflict", &json!(2))
    );
    let error = town
        .call(
            "alice",
            "appendToBlock",
            json!({"label": "user", "content": "x".repeat(400)}),
        )
        .unwrap_err();
    assert_eq!(error.code.name(), "block_over_budget");
    let versions = town.ok("alice", "getBlockVersions", json!({"label": "user"}));
    assert_eq!(versions["versions"][1]["content"], "Likes tea.");
    assert_eq!(
        town.ok("bob", "revertBlock", json!({"label": "user", "version": 1}))["content"],
        "Likes tea."
    );
}

#[test]
fn entries_and_documents_are_shared_as_well() {
    let town = Town::of(&["alice", "bob"]);
    for (label, kind) in [("kb", "searchable"), ("skills", "loadable")] {
        town.ok(
            "alice",
            "defineBlock",
            json!({"label": label, "kind": kind, "source": {"agent": "bob"}}),
        );
    }
    town.ok(
        "alice",
        "setEntry",
        json!({"label": "kb", "key": "k", "content": "penguins swim"}),
    );
    assert_eq!(
        town.ok("alice", "getBlock", json!({"label": "kb"}))["content"],
        "1 entry indexed."
    );
    let found = town.ok(
        "alice",
        "searchContext",
        json!({"label": "kb", "query": "penguin"}),
    );
    assert_eq!(found["results"][0]["key"], "k");
    assert_eq!(
        town.ok("alice", "listEntries", json!({"label": "kb"}))["entries"][0]["content"],
        "penguins swim"
    );
    assert_eq!(
        town.ok("alice", "deleteEntry", json!({"label": "kb", "key": "k"})),
        json!({"deleted": true})
    );
    town.ok(
        "alice",
        "putSkill",
        json!({"label": "skills", "key": "d", "content": "Do it.", "description": "How"}),
    );
    assert_eq!(
        town.ok("alice", "listSkills", json!({"label": "skills"}))["skills"][0]["description"],
        "How"
    );
    assert_eq!(
        town.ok("bob", "getBlock", json!({"label": "skills"}))["content"],
        "- d: How"
    );
    let loaded = town.ok(
        "alice",
        "callTool",
        json!({"name": "load_context", "arguments": {"label": "skills", "key": "d"}}),
    );
    assert_eq!(loaded["output"], "Do it.");
    let error = town
        .call(
            "alice",
            "loadSkill",
            json!({"label": "skills", "key": "nope"}),
        )
        .unwrap_err();
    assert_eq!(error.code.name(), "skill_not_found");
}

#[test]
fn agents_that_name_each_other_find_out() {
    let town = Town::of(&["alice", "bob", "carol"]);
    let define = |name: &str, home: &str| {
        town.ok(
            name,
            "defineBlock",
            json!({"label": "m", "kind": "writable", "source": {"agent": home}}),
        )
    };
    define("alice", "bob");
    define("bob", "alice");
    let block = town.ok("alice", "getBlock", json!({"label": "m"}));
    assert!(
        block["unavailable"]
            .as_str()
            .unwrap()
            .contains("alice → bob → alice"),
        "{block}"
    );
    let error = town
        .call("alice", "setBlock", json!({"label": "m", "content": "x"}))
        .unwrap_err();
    assert_eq!(
        (error.code.name(), &error.details["field"]),
        ("invalid_request", &json!("source"))
    );
    assert!(
        error.message.contains("alice → bob → alice"),
        "{}",
        error.message
    );
    assert!(town.calls.borrow().len() < 10);
    let itself = json!({"label": "m", "kind": "writable", "source": {"agent": "carol"}});
    assert_eq!(
        town.call("carol", "defineBlock", itself)
            .unwrap_err()
            .details["field"],
        "source"
    );
}

#[test]
fn a_chain_of_homes_ends() {
    let town = Town::of(&["a", "b", "c", "d", "e", "f", "g"]);
    for (name, home) in [
        ("a", "b"),
        ("b", "c"),
        ("c", "d"),
        ("d", "e"),
        ("e", "f"),
        ("f", "g"),
    ] {
        town.ok(
            name,
            "defineBlock",
            json!({"label": "m", "kind": "writable", "source": {"agent": home}}),
        );
    }
    town.ok("c", "setBlock", json!({"label": "m", "content": "far"}));
    assert_eq!(
        town.ok("g", "getBlock", json!({"label": "m"}))["content"],
        "far"
    );
    let error = town
        .call("a", "setBlock", json!({"label": "m", "content": "x"}))
        .unwrap_err();
    assert!(
        error.message.contains("a → b → c → d → e → f"),
        "{}",
        error.message
    );
}

fn with_bucket(objects: &[(&str, &str, Option<&str>)]) -> Alice {
    let alice = Alice::with_session();
    alice
        .outside
        .bindings
        .borrow_mut()
        .push("SKILLS_BUCKET".to_owned());
    *alice.outside.bucket.borrow_mut() = Some(
        objects
            .iter()
            .map(|(key, content, description)| {
                let description = description.map(str::to_owned);
                ((*key).to_owned(), ((*content).to_owned(), description))
            })
            .collect(),
    );
    alice
}

#[test]
fn a_soul_in_the_bucket_is_read_from_there() {
    let alice = with_bucket(&[("soul.md", "You are bold.", None)]);
    let define = json!({"label": "soul", "kind": "readonly", "source": {"r2": "soul.md"}, "defaultContent": "You are kind."});
    assert_eq!(alice.ok("defineBlock", define)["content"], "You are bold.");
    alice.outside.bucket.borrow_mut().as_mut().unwrap().clear();
    assert_eq!(
        alice.ok("getBlock", json!({"label": "soul"}))["content"],
        "You are kind."
    );
}

#[test]
fn notes_in_the_bucket_are_written_there_and_their_versions_kept_here() {
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
        alice.outside.bucket.borrow().as_ref().unwrap()["notes.md"]
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

#[test]
fn skills_of_a_bucket_are_listed_without_their_prefix() {
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
        assert_eq!(load(key).unwrap_err().details["field"], "key", "{key}");
    }
    // A document is written back where it stands, and a new one beside it.
    alice.ok(
        "putSkill",
        json!({"label": "skills", "key": "deploy", "content": "New."}),
    );
    alice.ok(
        "putSkill",
        json!({"label": "skills", "key": "new", "content": "Hi.", "description": "Greets"}),
    );
    let keys: Vec<String> = alice
        .outside
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
fn a_listing_is_believed_for_a_minute() {
    let alice = with_bucket(&[("skills/a", "x", None)]);
    alice.ok(
        "defineBlock",
        json!({"label": "skills", "kind": "loadable", "source": {"r2Prefix": "skills/"}}),
    );
    let content = || alice.ok("getBlock", json!({"label": "skills"}))["content"].clone();
    assert_eq!(content(), "- a");
    alice
        .outside
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
fn more_than_a_page_of_skills_is_listed() {
    let alice = with_bucket(&[]);
    for n in 0..1_200 {
        let mut bucket = alice.outside.bucket.borrow_mut();
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
fn what_is_not_bound_is_said_by_name() {
    let alice = Alice::default();
    for (kind, source, binding) in [
        ("loadable", json!({"r2Prefix": "skills/"}), "SKILLS_BUCKET"),
        ("readonly", json!({"r2": "soul.md"}), "SKILLS_BUCKET"),
        ("writable", json!({"service": "NOTES"}), "NOTES"),
    ] {
        let body = json!({"label": "a", "kind": kind, "source": source});
        let error = alice.call("defineBlock", body).unwrap_err();
        assert_eq!(
            (
                error.code.name(),
                error.code.status(),
                &error.details["binding"]
            ),
            ("not_configured", 501, &json!(binding))
        );
    }
    // A deployed block whose bucket is gone costs its content in the prompt, no more.
    let deployed =
        json!([{"label": "skills", "kind": "loadable", "source": {"r2Prefix": "skills/"}}]);
    alice
        .outside
        .settings
        .borrow_mut()
        .insert("MEMORY_BLOCKS".to_owned(), deployed.to_string());
    assert_eq!(
        alice.refused("getBlock", json!({"label": "skills"})),
        "not_configured"
    );
    assert_eq!(
        alice.refused("loadSkill", json!({"label": "skills", "key": "a"})),
        "not_configured"
    );
    let prompt = alice.ok("renderPrompt", json!({}));
    assert!(
        prompt["prompt"]
            .as_str()
            .unwrap()
            .contains("unavailable: This Worker has no binding `SKILLS_BUCKET`")
    );
    let outcome = alice.ok(
        "callTool",
        json!({"name": "load_context", "arguments": {"label": "skills", "key": "a"}}),
    );
    assert_eq!(outcome["isError"], true);
}

fn with_service(kind: &str) -> Alice {
    let alice = Alice::with_session();
    alice.outside.bindings.borrow_mut().push("NOTES".to_owned());
    alice.outside.answer(Said::json(&json!({})));
    alice.ok(
        "defineBlock",
        json!({"label": "notes", "kind": kind, "source": {"service": "NOTES"}}),
    );
    alice.outside.calls.borrow_mut().clear();
    alice
}

fn asked(alice: &Alice) -> Vec<(String, Value)> {
    let calls = alice.outside.calls.borrow();
    calls
        .iter()
        .map(|call| match &call.place {
            Place::Service { binding, path } => {
                assert_eq!(binding, "NOTES");
                (path.clone(), serde_json::from_str(&call.body).unwrap())
            }
            place => panic!("{place:?}"),
        })
        .collect()
}

#[test]
fn a_service_keeps_a_text() {
    let alice = with_service("writable");
    alice.outside.answer(Said::json(&json!({"content": "old"})));
    assert_eq!(
        alice.ok("getBlock", json!({"label": "notes"}))["content"],
        "old"
    );
    alice.outside.answer(Said::json(&json!({"content": "old"})));
    alice.outside.answer(Said::json(&json!({})));
    let block = alice.ok("appendToBlock", json!({"label": "notes", "content": "+"}));
    assert_eq!(
        (&block["content"], &block["version"]),
        (&json!("old+"), &json!(1))
    );
    let whom = json!({"agent": "alice", "sessionId": null, "label": "notes", "kind": "writable"});
    let mut set = whom.clone();
    set["content"] = json!("old+");
    assert_eq!(
        asked(&alice),
        [
            ("get".to_owned(), whom.clone()),
            ("get".to_owned(), whom),
            ("set".to_owned(), set)
        ]
    );
}

#[test]
fn a_service_is_searched_and_its_documents_loaded() {
    let alice = with_service("searchable");
    alice.outside.answer(Said::json(
        &json!({"results": [{"key": "k", "title": "T", "content": "penguins swim"}]}),
    ));
    let found = alice.ok(
        "searchContext",
        json!({"label": "notes", "query": "penguin"}),
    );
    assert_eq!(found["results"][0]["snippet"], "<mark>penguins</mark> swim");
    alice.outside.answer(Said::json(
        &json!({"content": "As the documents' providers do: one text."}),
    ));
    let found = alice.ok(
        "callTool",
        json!({"name": "search_context", "arguments": {"label": "notes", "query": "x"}}),
    );
    assert_eq!(found["output"], "As the documents' providers do: one text.");
    assert_eq!(
        alice.refused("listEntries", json!({"label": "notes"})),
        "invalid_request"
    );

    let alice = with_service("loadable");
    alice.outside.answer(Said::json(
        &json!({"skills": [{"key": "b"}, {"key": "a", "description": "First"}, {"key": "../c"}]}),
    ));
    assert_eq!(
        alice.ok("getBlock", json!({"label": "notes"}))["content"],
        "- a: First\n- b"
    );
    alice
        .outside
        .answer(Said::json(&json!({"content": "Whole."})));
    assert_eq!(
        alice.ok(
            "loadSkill",
            json!({"sessionId": "s", "label": "notes", "key": "a"})
        )["content"],
        "Whole."
    );
    alice.outside.answer(Ok(Said {
        status: 404,
        content_type: "text/plain",
        chunks: vec![],
    }));
    assert_eq!(
        alice.refused("loadSkill", json!({"label": "notes", "key": "b"})),
        "skill_not_found"
    );
}

#[test]
fn whatever_a_service_answers_the_prompt_is_rendered_and_nothing_is_lost() {
    let html = || {
        Ok(Said {
            status: 200,
            content_type: "text/html",
            chunks: vec![Ok(b"<html>Welcome!".to_vec())],
        })
    };
    let answers: Vec<(fn() -> Result<Said, Failure>, &str)> = vec![
        (html, "not the JSON"),
        (
            || {
                Ok(Said {
                    status: 500,
                    content_type: "text/plain",
                    chunks: vec![Ok(b"secret stack".to_vec())],
                })
            },
            "status 500",
        ),
        (
            || {
                Ok(Said {
                    status: 200,
                    content_type: "application/json",
                    chunks: vec![],
                })
            },
            "not the JSON",
        ),
        (
            || {
                Ok(Said {
                    status: 200,
                    content_type: "application/json",
                    chunks: vec![Ok(vec![b'x'; 1 << 20]); 50],
                })
            },
            "larger than 1048576 bytes",
        ),
        (
            || {
                Ok(Said {
                    status: 200,
                    content_type: "application/json",
                    chunks: vec![Ok(b"{\"content\":\"\xff\xfe\"}".to_vec())],
                })
            },
            "not UTF-8",
        ),
        (
            || {
                Ok(Said {
                    status: 200,
                    content_type: "application/json",
                    chunks: vec![Err(Failure::TimedOut { silence_ms: 10_000 })],
                })
            },
            "nothing for 10 s",
        ),
        (
            || {
                Err(Failure::Unreachable {
                    cause: "refused".to_owned(),
                })
            },
            "could not be reached",
        ),
        (|| Said::json(&json!({"content": 5})), "not the JSON"),
        (|| Said::json(&json!([1])), "not the JSON"),
    ];
    for (answer, reason) in answers {
        let alice = with_service("writable");
        alice.ok(
            "defineBlock",
            json!({"label": "memory", "kind": "writable", "defaultContent": "Stays."}),
        );
        let before = alice.db.dump();
        alice.outside.answer(answer());
        let block = alice.ok("getBlock", json!({"label": "notes"}));
        assert!(
            block["unavailable"].as_str().unwrap().contains(reason),
            "{block}"
        );
        alice.outside.answer(answer());
        let prompt = alice.ok("renderPrompt", json!({}))["prompt"]
            .as_str()
            .unwrap()
            .to_owned();
        assert!(
            prompt.contains("unavailable: Service `NOTES`") && prompt.ends_with("Stays."),
            "{prompt}"
        );
        assert!(!prompt.contains("secret stack") && !prompt.contains("Welcome"));
        alice.outside.answer(answer());
        let error = alice
            .call("setBlock", json!({"label": "notes", "content": "x"}))
            .unwrap_err();
        assert!(error.message.contains(reason), "{}", error.message);
        alice.outside.answer(answer());
        let outcome = alice.ok(
            "callTool",
            json!({"name": "set_context", "arguments": {"label": "notes", "content": "x"}}),
        );
        assert_eq!(outcome["isError"], true);
        assert_eq!(alice.db.dump(), before);
    }
}

#[test]
fn a_document_that_is_no_text_or_too_long_is_said_to_be() {
    let alice = with_bucket(&[
        ("skills/long", &"x".repeat((256 << 10) + 1), None),
        ("skills/huge", &"x".repeat((1 << 20) + 1), None),
    ]);
    alice.ok(
        "defineBlock",
        json!({"label": "skills", "kind": "loadable", "source": {"r2Prefix": "skills/"}}),
    );
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
        (error.code.name(), &error.details["limit"]),
        ("payload_too_large", &json!(262_144))
    );
}
