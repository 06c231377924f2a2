//! Blocks stored in other agents. The agents are real and can call each other.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value, json};

use crate::RecordedSockets;
use crate::StartedWork;
use access::{Caller, Policy};
use api::admission::find_via;
use api::dispatch::dispatch;
use api::operation::Agent;
use api::table::RULES;
use base::error::Error;
use base::outbound::{
    BucketObject, CallFailure, CallLimits, Endpoint, LocalBoxFuture, ObjectListing, Outbound,
    OutboundRequest, OutboundResponse, PutCondition, RequestForm, WriteLocks,
};
use base::settings::Setting;
use base::testing::recovery::RecordingRecovery;
use base::testing::{FixedHost, Script, ScriptedAnswer, Sqlite, wait_for};
use chat::run::in_flight_work::InFlightWork;
use chat::run::running_turns::RunningTurns;
use context::compaction::auto::CompactionTracker;
use directory::membership::Member;
use directory::part::DirectoryPart;
use lifecycle::testing::migrated;
use memory::backends::agent::{VIA_HEADER, parse_via};

/// Agents that can call each other, like the agents of one Worker.
pub struct Cluster {
    agents: BTreeMap<&'static str, Sqlite>,
    pub host: FixedHost,
    policy: Policy,
    pub script: Script,
    pub calls: RefCell<Vec<OutboundRequest>>,
    /// The shards of the directory, which exists if the script binds it.
    parts: RefCell<BTreeMap<String, Rc<Sqlite>>>,
    /// The shards don't answer.
    pub are_parts_silent: Cell<bool>,
}

const SECRET: &str = "the secret of these two, long enough";

impl Cluster {
    pub fn of(names: &[&'static str]) -> Self {
        let cluster = Self {
            agents: names.iter().map(|name| (*name, migrated())).collect(),
            host: FixedHost::default(),
            policy: Policy::new(Some(SECRET.to_owned()), None),
            script: Script::default(),
            calls: RefCell::default(),
            parts: RefCell::default(),
            are_parts_silent: Cell::new(false),
        };
        cluster
            .script
            .settings
            .borrow_mut()
            .insert("SESSION_AGENT_TOKEN".to_owned(), SECRET.to_owned());
        cluster
    }

    /// The storage of a shard of the directory.
    pub fn part(&self, name: &str) -> Rc<Sqlite> {
        let mut parts = self.parts.borrow_mut();
        let part = parts
            .entry(name.to_owned())
            .or_insert_with(|| Rc::new(Sqlite::new()));
        Rc::clone(part)
    }

    /// An agent that should be listed in the directory.
    pub fn member<'a>(&'a self, name: &'a str) -> Member<'a> {
        Member {
            name,
            db: &self.agents[name],
            host: &self.host,
            outbound: self,
        }
    }

    pub async fn send_to_shard(&self, name: &str, body: &str) -> Result<String, Error> {
        let db = self.part(name);
        let part = DirectoryPart {
            name,
            db: db.as_ref(),
            host: &self.host,
            outbound: self,
        };
        let answer = part.answer(body.as_bytes()).await?;
        // The shard's object checks this before it sends the answer.
        part.has_unreported_change()?;
        Ok(answer)
    }

    /// Like the HTTP entry point for this caller, who sends `way` as the call path header.
    pub fn send_as(
        &self,
        caller: &Caller,
        way: Option<&str>,
        (name, operation, body): (&str, &str, Value),
    ) -> Result<Value, Error> {
        let via = find_via(caller, way);
        let body = body.to_string();
        let running = self.run_as(caller, (name, operation, &body), &via);
        Ok(serde_json::from_str(&wait_for(running)?).unwrap())
    }

    async fn run(
        &self,
        name: &str,
        operation: &str,
        body: &str,
        via: &[String],
    ) -> Result<String, Error> {
        self.run_as(&Caller::Owner, (name, operation, body), via)
            .await
    }

    async fn run_as(
        &self,
        caller: &Caller,
        (name, operation, body): (&str, &str, &str),
        via: &[String],
    ) -> Result<String, Error> {
        let agent = Agent {
            name,
            db: &self.agents[name],
            host: &self.host,
            operations: RULES,
            policy: &self.policy,
            caller,
            outbound: self,
            deployed: crate::deployed(&self.script),
            compactions: &CompactionTracker::default(),
            turns: &RunningTurns::default(),
            work: &InFlightWork::default(),
            audience: &RecordedSockets::default(),
            starter: &StartedWork::default(),
            background: &StartedWork::default(),
            recovery: &RecordingRecovery::default(),
            forget_import: lifecycle::pending_import::forget,
            via,
            body: None,
        };
        let reply = dispatch(&agent, operation, body.as_bytes()).await?;
        Ok(reply.body.into_string())
    }

    pub fn call(&self, name: &str, operation: &str, body: Value) -> Result<Value, Error> {
        let reply = wait_for(self.run(name, operation, &body.to_string(), &[]))?;
        Ok(serde_json::from_str(&reply).unwrap())
    }

    pub fn ok(&self, name: &str, operation: &str, body: Value) -> Value {
        self.call(name, operation, body).unwrap()
    }
}

impl Outbound for Cluster {
    fn writers(&self) -> &WriteLocks {
        self.script.writers()
    }

    fn find_setting(&self, setting: Setting) -> Option<String> {
        self.script.find_setting(setting)
    }

    fn find_secret(&self, _: &str) -> Option<String> {
        None
    }

    fn is_bound(&self, binding: &str) -> bool {
        self.script.is_bound(binding)
    }

    fn send_as<'a>(
        &'a self,
        _form: RequestForm,
        call: OutboundRequest,
    ) -> LocalBoxFuture<'a, Result<OutboundResponse<'a>, CallFailure>> {
        self.calls.borrow_mut().push(call.clone());
        if let Endpoint::Directory { .. } = call.endpoint
            && self.are_parts_silent.get()
        {
            let cause = "a test has it silent".to_owned();
            return Box::pin(async { Err(CallFailure::Unreachable { cause }) });
        }
        if let Endpoint::Url(_) | Endpoint::Service { .. } = call.endpoint {
            return self.script.send(call);
        }
        Box::pin(async move {
            let header = |wanted: &str| {
                let found = call.headers.iter().find(|(name, _)| name == wanted);
                found.map(|(_, value)| value.as_str())
            };
            assert_eq!(
                header("authorization"),
                Some("Bearer the secret of these two, long enough")
            );
            let via = parse_via(header(VIA_HEADER));
            let outcome = match &call.endpoint {
                Endpoint::Agent { name, operation } => {
                    self.run(name, operation, &call.body, &via).await
                }
                Endpoint::Directory { part } => self.send_to_shard(part, &call.body).await,
                Endpoint::Url(_) | Endpoint::Service { .. } => unreachable!(),
            };
            let (status, body) = match outcome {
                Ok(body) => (200, body),
                Err(error) => (error.code.status(), error.body()),
            };
            self.script.answer(Ok(ScriptedAnswer {
                status,
                content_type: "application/json",
                chunks: vec![Ok(body.into_bytes())],
            }));
            // The script returns its next answer, whichever agent is called.
            let endpoint = Endpoint::Url(String::new());
            self.script.send(OutboundRequest { endpoint, ..call }).await
        })
    }

    fn run_ai<'a>(
        &'a self,
        model: &'a str,
        input: String,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<OutboundResponse<'a>, CallFailure>> {
        self.script.run_ai(model, input, limits)
    }

    fn get_object<'a>(
        &'a self,
        key: &'a str,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<Option<BucketObject>, CallFailure>> {
        self.script.get_object(key, limits)
    }

    fn put_object<'a>(
        &'a self,
        key: &'a str,
        content: String,
        description: Option<&'a str>,
        expected: PutCondition<'a>,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<bool, CallFailure>> {
        let script = &self.script;
        script.put_object(key, content, description, expected, limits)
    }

    fn delete_object<'a>(
        &'a self,
        key: &'a str,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<(), CallFailure>> {
        self.script.delete_object(key, limits)
    }

    fn list_objects<'a>(
        &'a self,
        prefix: &'a str,
        cursor: Option<&'a str>,
        limit: u32,
        limits: CallLimits,
    ) -> LocalBoxFuture<'a, Result<ObjectListing, CallFailure>> {
        self.script.list_objects(prefix, cursor, limit, limits)
    }

    fn sleep<'a>(&'a self, ms: i64) -> LocalBoxFuture<'a, ()> {
        self.script.sleep(ms)
    }
}

#[test]
fn two_agents_share_a_users_block() {
    let cluster = Cluster::of(&["alice", "bob", "user:42"]);
    for name in ["alice", "bob"] {
        cluster.ok(
            name,
            "defineBlock",
            json!({"label": "user", "kind": "writable", "maxTokens": 50,
                   "source": {"agent": "user:42", "label": "profile"}}),
        );
    }
    // The block was never written, so `user:42` has none.
    assert_eq!(cluster.ok("user:42", "getBlocks", json!({})), json!([]));
    let written = cluster.ok(
        "alice",
        "setBlock",
        json!({"label": "user", "content": "Likes tea."}),
    );
    assert_eq!(
        (&written["content"], &written["version"]),
        (&json!("Likes tea."), &json!(1))
    );
    let read = cluster.ok("bob", "getBlock", json!({"label": "user"}));
    assert_eq!(
        (&read["content"], &read["version"], &read["label"]),
        (&json!("Likes tea."), &json!(1), &json!("user"))
    );
    let there = cluster.ok("user:42", "getBlock", json!({"label": "profile"}));
    assert_eq!(
        (&there["content"], &there["maxTokens"]),
        (&json!("Likes tea."), &json!(50))
    );
    cluster.ok(
        "bob",
        "appendToBlock",
        json!({"label": "user", "content": "\nHas a dog."}),
    );
    let prompt = cluster.ok("alice", "renderPrompt", json!({}));
    assert!(
        prompt["prompt"]
            .as_str()
            .unwrap()
            .ends_with("Likes tea.\nHas a dog.")
    );
    // The other agent's rules apply, and its versions can be restored.
    let error = cluster
        .call(
            "alice",
            "setBlock",
            json!({"label": "user", "content": "x", "expectedVersion": 1}),
        )
        .unwrap_err();
    assert_eq!(
        (error.code.name(), &error.details()["version"]),
        ("version_conflict", &json!(2))
    );
    let error = cluster
        .call(
            "alice",
            "appendToBlock",
            json!({"label": "user", "content": "x".repeat(400)}),
        )
        .unwrap_err();
    assert_eq!(error.code.name(), "block_over_budget");
    let versions = cluster.ok("alice", "getBlockVersions", json!({"label": "user"}));
    assert_eq!(versions["versions"][1]["content"], "Likes tea.");
    assert_eq!(
        cluster.ok("bob", "revertBlock", json!({"label": "user", "version": 1}))["content"],
        "Likes tea."
    );
}

#[test]
fn entries_and_documents_can_be_shared() {
    let cluster = Cluster::of(&["alice", "bob"]);
    for (label, kind) in [("kb", "searchable"), ("skills", "loadable")] {
        cluster.ok(
            "alice",
            "defineBlock",
            json!({"label": label, "kind": kind, "source": {"agent": "bob"}}),
        );
    }
    cluster.ok(
        "alice",
        "setEntry",
        json!({"label": "kb", "key": "k", "content": "penguins swim"}),
    );
    assert_eq!(
        cluster.ok("alice", "getBlock", json!({"label": "kb"}))["content"],
        "1 entry indexed."
    );
    let found = cluster.ok(
        "alice",
        "searchContext",
        json!({"label": "kb", "query": "penguin"}),
    );
    assert_eq!(found["results"][0]["key"], "k");
    assert_eq!(
        cluster.ok("alice", "listEntries", json!({"label": "kb"}))["entries"][0]["content"],
        "penguins swim"
    );
    assert_eq!(
        cluster.ok("alice", "deleteEntry", json!({"label": "kb", "key": "k"})),
        json!({"deleted": true, "versionsKept": 1})
    );
    cluster.ok(
        "alice",
        "putSkill",
        json!({"label": "skills", "key": "d", "content": "Do it.", "description": "How"}),
    );
    assert_eq!(
        cluster.ok("alice", "listSkills", json!({"label": "skills"}))["skills"][0]["description"],
        "How"
    );
    assert_eq!(
        cluster.ok("bob", "getBlock", json!({"label": "skills"}))["content"],
        "- d: How"
    );
    let loaded = cluster.ok(
        "alice",
        "callTool",
        json!({"name": "load_context", "arguments": {"label": "skills", "key": "d"}}),
    );
    assert_eq!(loaded["output"], "Do it.");
    // A tool's text is quoted in every agent that reads it.
    cluster.ok(
        "bob",
        "putSkill",
        json!({"label": "skills", "key": "t", "content": "Pay.", "source": "tool"}),
    );
    let loaded = cluster.ok(
        "alice",
        "callTool",
        json!({"name": "load_context", "arguments": {"label": "skills", "key": "t"}}),
    );
    assert_eq!(
        loaded["output"],
        "(source: tool; written 1970-01-01)\n> Pay."
    );
    let error = cluster
        .call(
            "alice",
            "loadSkill",
            json!({"label": "skills", "key": "nope"}),
        )
        .unwrap_err();
    assert_eq!(error.code.name(), "skill_not_found");
}

#[test]
fn mutually_referencing_agents_get_an_error() {
    let cluster = Cluster::of(&["alice", "bob", "carol"]);
    let define = |name: &str, home: &str| {
        cluster.ok(
            name,
            "defineBlock",
            json!({"label": "m", "kind": "writable", "source": {"agent": home}}),
        )
    };
    define("alice", "bob");
    define("bob", "alice");
    let block = cluster.ok("alice", "getBlock", json!({"label": "m"}));
    assert!(
        block["unavailable"]
            .as_str()
            .unwrap()
            .contains("alice → bob → alice"),
        "{block}"
    );
    let error = cluster
        .call("alice", "setBlock", json!({"label": "m", "content": "x"}))
        .unwrap_err();
    assert_eq!(
        (error.code.name(), &error.details()["field"]),
        ("invalid_request", &json!("source"))
    );
    assert!(
        error.message.contains("alice → bob → alice"),
        "{}",
        error.message
    );
    assert!(cluster.calls.borrow().len() < 10);
    // An agent that names itself stores the block itself, and calls no agent.
    let calls = cluster.calls.borrow().len();
    define("carol", "carol");
    cluster.ok("carol", "setBlock", json!({"label": "m", "content": "x"}));
    assert_eq!(cluster.calls.borrow().len(), calls);
}

#[test]
fn a_chain_of_backends_is_limited() {
    let cluster = Cluster::of(&["a", "b", "c", "d", "e", "f", "g"]);
    for (name, home) in [
        ("a", "b"),
        ("b", "c"),
        ("c", "d"),
        ("d", "e"),
        ("e", "f"),
        ("f", "g"),
    ] {
        cluster.ok(
            name,
            "defineBlock",
            json!({"label": "m", "kind": "writable", "source": {"agent": home}}),
        );
    }
    cluster.ok("c", "setBlock", json!({"label": "m", "content": "far"}));
    assert_eq!(
        cluster.ok("g", "getBlock", json!({"label": "m"}))["content"],
        "far"
    );
    let error = cluster
        .call("a", "setBlock", json!({"label": "m", "content": "x"}))
        .unwrap_err();
    assert!(
        error.message.contains("a → b → c → d → e → f"),
        "{}",
        error.message
    );
}

#[test]
fn a_tool_appends_to_a_shared_block() {
    let cluster = Cluster::of(&["alice", "bob"]);
    cluster.ok(
        "alice",
        "defineBlock",
        json!({"label": "m", "kind": "writable", "source": {"agent": "bob"}, "modelWrites": true}),
    );
    for line in ["one", "two"] {
        let arguments = json!({"label": "m", "content": line, "action": "append"});
        let body = json!({"name": "set_context", "arguments": arguments});
        assert_eq!(cluster.ok("alice", "callTool", body)["isError"], false);
    }
    assert_eq!(
        cluster.ok("bob", "getBlock", json!({"label": "m"}))["content"],
        "one\ntwo"
    );
}
