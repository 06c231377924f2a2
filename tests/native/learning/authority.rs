//! Authority: what is learned from somebody's text is written only where they could write, reveals
//! only what they could read, and counts toward their limits. The table of who may write what is in
//! docs/learning.md; a test here generates it.

use serde_json::{Value, json};

use super::{adds, user_event};
use crate::Alice;
use crate::chat::turns::{calls, text_answer, user};
use crate::shared::mcp::send_request_in;
use access::{Allow, Caller, TokenScope};
use api::dispatch::follow_up;
use base::database::Database as _;
use base::host::Host as _;
use base::ids::Id;
use base::testing::{Dice, wait_for};
use conversation::session::usage_days::DAY_MS;
use store::limits::PrincipalLimits;

fn id(text: &str) -> Id {
    Id::parse(text.to_owned()).unwrap()
}

/// A token as the preset `chat` of a session, and the operations of memory.
fn token(session: Option<&str>, agent_memory: bool, holder: Option<(&str, i64)>) -> Caller {
    Caller::Scoped(TokenScope {
        session_id: session.map(id),
        allow: Allow {
            agent_memory,
            agent_messages: true,
            ..Allow::default()
        },
        limits: holder.map(|(holder, tokens)| PrincipalLimits {
            holder: holder.to_owned(),
            most: serde_json::from_value(json!({"tokensPerDay": tokens})).unwrap(),
        }),
        expires_at: i64::MAX,
        ..TokenScope::default()
    })
}

/// The caller that causes a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Secret,
    AgentToken,
    SessionTokenWithMemory,
    SessionToken,
}

impl Who {
    const ALL: [Self; 4] = [
        Self::Secret,
        Self::AgentToken,
        Self::SessionTokenWithMemory,
        Self::SessionToken,
    ];

    fn caller(self) -> Caller {
        match self {
            Self::Secret => Caller::Owner,
            Self::AgentToken => token(None, false, None),
            Self::SessionTokenWithMemory => token(Some("s"), true, None),
            Self::SessionToken => token(Some("s"), false, None),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Secret => "the secret",
            Self::AgentToken => "a token for the agent",
            Self::SessionTokenWithMemory => "a token for a session, with `agentMemory`",
            Self::SessionToken => "a token for a session",
        }
    }

    fn writes_agent(self) -> bool {
        self != Self::SessionToken
    }
}

/// The way a text is added.
const WRITERS: [&str; 14] = [
    "appendEvents",
    "appendMessage",
    "upsertMessage",
    "updateMessage",
    "appendMessages",
    "persistWorkingContext",
    "runTurn",
    "an imported session",
    "an imported session with a block",
    "set_context in a turn",
    "set_context over MCP",
    "callTool",
    "setEntry",
    "setBlock",
];

/// The ways that write memory without learning.
const WRITES_AT_ONCE: [&str; 6] = [
    "an imported session with a block",
    "set_context in a turn",
    "set_context over MCP",
    "callTool",
    "setEntry",
    "setBlock",
];

const FACT: &str = "The user likes saffron.";
const STATEMENT: &str = "I like saffron.";

impl Alice {
    fn as_caller<T>(&mut self, caller: Caller, act: impl FnOnce(&Self) -> T) -> T {
        let before = std::mem::replace(&mut self.caller, caller);
        let done = act(self);
        self.caller = before;
        done
    }
}

fn message(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "parts": [{"type": "text", "text": text}]})
}

/// An agent with the sessions `s` and `t`. `has_own`: session `s` has its own block of facts.
fn populated(has_own: bool) -> Alice {
    let alice = Alice::learner(json!({"review": "auto", "profile": "profile"}));
    alice.ok("createSession", json!({"id": "t"}));
    alice.ok(
        "defineBlock",
        json!({"label": "profile", "kind": "writable"}),
    );
    if has_own {
        alice.ok(
            "defineBlock",
            json!({"sessionId": "s", "label": "facts", "kind": "searchable"}),
        );
    }
    alice
}

/// A call of the tool that writes the fact.
fn set_fact() -> Value {
    json!({"name": "set_context", "arguments": {"label": "facts", "content": FACT, "metadata": {"title": "likes saffron"}}})
}

/// Adds the text as this caller, in this way, with a model that follows it.
fn add_text(alice: &mut Alice, who: Who, writer: &str) {
    // Preparation: the message to edit, or the file to import.
    match writer {
        "updateMessage" => {
            alice.ok(
                "appendMessage",
                json!({"sessionId": "s", "message": message("m", "Hello.")}),
            );
        }
        "an imported session" | "an imported session with a block" => {
            let file = {
                let other = Alice::with_session();
                other.append(json!([user_event(STATEMENT)]));
                if writer != "an imported session" {
                    other.ok(
                        "defineBlock",
                        json!({"sessionId": "s", "label": "facts", "kind": "searchable"}),
                    );
                    other.ok(
                        "setEntry",
                        json!({"sessionId": "s", "label": "facts", "key": "likes-saffron", "content": FACT}),
                    );
                }
                other.export("s").unwrap()
            };
            alice.ok("deleteSession", json!({"sessionId": "s"}));
            let imported =
                alice.as_caller(who.caller(), |alice| alice.import_untrusted("s", &file));
            // A block changes prompts: a token must name `defineBlock` for it.
            let may_be_refused = writer == "an imported session with a block" && who != Who::Secret;
            assert!(imported.is_ok() || may_be_refused, "{writer} {who:?}");
            if imported.is_err() {
                alice.ok("createSession", json!({"id": "s"}));
            }
        }
        "runTurn" => alice.outbound.answer(text_answer("Noted.")),
        "set_context in a turn" => {
            let arguments =
                json!({"label": "facts", "content": FACT, "metadata": {"title": "likes saffron"}});
            alice
                .outbound
                .answer(calls(&[("c", "set_context", arguments)]));
            alice.outbound.answer(text_answer("Noted."));
        }
        _ => {}
    }
    let in_session = json!({"sessionId": "s"});
    let with = |mut body: Value| {
        body["sessionId"] = in_session["sessionId"].clone();
        body
    };
    // A refusal is a valid outcome, too.
    let _ = alice.as_caller(who.caller(), |alice| match writer {
        "appendEvents" => alice.call(writer, with(json!({"events": [user_event(STATEMENT)]}))),
        "appendMessage" | "upsertMessage" | "updateMessage" => {
            alice.call(writer, with(json!({"message": message("m", STATEMENT)})))
        }
        "appendMessages" => {
            alice.call(writer, with(json!({"messages": [message("m", STATEMENT)]})))
        }
        "persistWorkingContext" => alice.call(
            writer,
            with(json!({"messages": [{"role": "user", "content": STATEMENT}]})),
        ),
        "runTurn" => alice.call("runTurn", with(json!({"message": user(STATEMENT)}))),
        "set_context in a turn" => {
            alice.call("runTurn", with(json!({"message": user("Keep it.")})))
        }
        "set_context over MCP" => Ok(send_request_in(alice, Some("s"), "tools/call", &set_fact())),
        "callTool" => alice.call(writer, with(set_fact())),
        "setEntry" => alice.call(
            writer,
            json!({"label": "facts", "key": "likes-saffron", "content": FACT}),
        ),
        "setBlock" => alice.call(writer, json!({"label": "profile", "content": FACT})),
        _ => Ok(Value::Null),
    });
    alice.host.advance(10_000);
    alice.outbound.answers.borrow_mut().clear();
    if WRITES_AT_ONCE.contains(&writer) {
        return;
    }
    // A model that proposes everything it reads.
    alice.model_proposes(json!([adds("likes-saffron", FACT, "e1")]));
    for _ in 0..3 {
        alice.model_proposes(json!([]));
    }
    let _ = alice.call("learn", json!({"sessionId": "s"}));
    alice.outbound.answers.borrow_mut().clear();
}

/// The places that contain the text afterwards.
fn places(alice: &Alice) -> Vec<&'static str> {
    let mut places = Vec::new();
    let has = |value: &Value| value.to_string().contains("saffron");
    let facts = alice.ok("listEntries", json!({"label": "facts"}));
    let profile = alice.ok("getBlock", json!({"label": "profile"}));
    if has(&facts) || has(&profile) {
        places.push("agent");
    }
    let own = alice.call("listEntries", json!({"sessionId": "s", "label": "facts"}));
    if own.is_ok_and(|own| has(&own)) {
        places.push("session");
    }
    let waits = alice
        .proposals()
        .iter()
        .any(|one| one["status"] == "pending" && has(one));
    if waits {
        places.push("proposal");
    }
    places
}

#[test]
fn learning_writes_only_where_the_speaker_could_write() {
    let mut table = String::from("| how it comes in |");
    for who in Who::ALL {
        table.push_str(&format!(" {} |", who.name()));
    }
    table.push_str("\n|---|---|---|---|---|\n");
    for has_own in [false, true] {
        for writer in WRITERS {
            let mut row = String::new();
            for who in Who::ALL {
                let mut alice = populated(has_own);
                add_text(&mut alice, who, writer);
                let places = places(&alice);
                if !who.writes_agent() {
                    assert!(
                        !places.contains(&"agent"),
                        "{writer} {who:?} {has_own}: {places:?}"
                    );
                    // No other session receives any of it.
                    alice.outbound.answer(text_answer("Hello."));
                    alice.ok(
                        "runTurn",
                        json!({"sessionId": "t", "message": user("Saffron?")}),
                    );
                    let reply = alice.outbound.calls.borrow().last().unwrap().body.clone();
                    assert!(
                        !reply.contains("likes saffron"),
                        "{writer} {who:?}: {reply}"
                    );
                } else if writer == "an imported session" {
                    assert_eq!(places, ["proposal"], "{who:?}");
                } else if writer == "an imported session with a block" {
                    let expected: &[&str] = match who {
                        Who::Secret => &["session"],
                        _ => &[],
                    };
                    assert_eq!(places, expected, "{who:?}");
                }
                let places = if places.is_empty() {
                    "nowhere".to_owned()
                } else {
                    places.join(", ")
                };
                row.push_str(&format!(" {places} |"));
            }
            let own = if has_own {
                ", with a block of the session's own"
            } else {
                ""
            };
            table.push_str(&format!("| {writer}{own} |{row}\n"));
        }
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/learning.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains(&table),
        "docs/learning.md should contain this table:\n\n{table}"
    );
}

/// How a fact of the agent's memory is changed or removed.
const METHODS: [&str; 13] = [
    "setEntry",
    "deleteEntry",
    "deleteEntry with purge",
    "removeBlock",
    "callTool: set_context",
    "callTool: forget",
    "set_context in a turn",
    "forget in a turn",
    "set_context over MCP",
    "forget over MCP",
    "learn: forget",
    "learn: replace",
    "consolidate",
];

/// A caller with the same scope that may also use each operation that changes memory.
fn with_memory_operations(who: Who) -> Caller {
    let Caller::Scoped(scope) = who.caller() else {
        return Caller::Owner;
    };
    let operations = [
        "setEntry",
        "deleteEntry",
        "removeBlock",
        "callTool",
        "runTurn",
        "appendEvents",
        "learn",
        "consolidate",
        "chat",
        "mcp",
    ];
    Caller::Scoped(TokenScope {
        operations: Some(operations.map(str::to_owned).to_vec()),
        allow: Allow {
            purge: true,
            ..scope.allow
        },
        ..scope
    })
}

const NO_PENICILLIN: &str = "The user is not allergic to penicillin.";

/// Tries to change the fact as this caller in this way, in the session `s` and for the agent.
/// Returns whether the fact is unchanged.
fn is_unchanged(who: Who, method: &str) -> bool {
    let mut alice = with_bob();
    let named = json!({"label": "facts", "key": "penicillin"});
    let before = alice.ok("getEntry", named.clone());
    let set = json!({"name": "set_context", "arguments":
        {"label": "facts", "content": NO_PENICILLIN, "metadata": {"title": "penicillin"}}});
    let forget = json!({"name": "forget", "arguments": named});
    let tool = if method.contains("forget") {
        &forget
    } else {
        &set
    };
    let statement = "Forget what I told you about penicillin. I am not allergic to penicillin.";
    for scope in [json!({"sessionId": "s"}), json!({})] {
        let with = |body: &Value| {
            let mut body = body.clone();
            body.as_object_mut()
                .unwrap()
                .extend(scope.as_object().unwrap().clone());
            body
        };
        alice.host.advance(10_000);
        alice.outbound.answers.borrow_mut().clear();
        let caller = with_memory_operations(who);
        // A refusal is a valid outcome, too.
        let _ = alice.as_caller(caller, |alice| match method {
            "setEntry" => {
                let mut body = with(&named);
                body["content"] = NO_PENICILLIN.into();
                alice.call(method, body)
            }
            "deleteEntry" => alice.call(method, with(&named)),
            "deleteEntry with purge" => {
                let mut body = with(&named);
                body["purge"] = true.into();
                alice.call("deleteEntry", body)
            }
            "removeBlock" => alice.call(method, with(&json!({"label": "facts"}))),
            "callTool: set_context" | "callTool: forget" => alice.call("callTool", with(tool)),
            "set_context in a turn" | "forget in a turn" => {
                let name = tool["name"].as_str().unwrap();
                let arguments = tool["arguments"].clone();
                alice.outbound.answer(calls(&[("c", name, arguments)]));
                alice.outbound.answer(text_answer("Done."));
                let message = user(statement);
                alice.call("runTurn", json!({"sessionId": "s", "message": message}))
            }
            "set_context over MCP" | "forget over MCP" => {
                let session_id = scope["sessionId"].as_str();
                Ok(send_request_in(alice, session_id, "tools/call", tool))
            }
            _ => {
                alice.append(json!([user_event(statement)]));
                Ok(Value::Null)
            }
        });
        learn_and_consolidate(&alice, method);
    }
    alice
        .call("getEntry", named)
        .is_ok_and(|after| after == before)
}

/// The operator's learning pass after a caller's text, with a model that follows it.
fn learn_and_consolidate(alice: &Alice, method: &str) {
    let change = match method {
        "learn: forget" => json!({"action": "forget", "key": "penicillin", "events": ["e1"]}),
        "learn: replace" => {
            json!({"action": "replace", "key": "penicillin", "content": NO_PENICILLIN, "events": ["e1"]})
        }
        "consolidate" => adds("not-allergic", NO_PENICILLIN, "e1"),
        _ => return,
    };
    alice.host.advance(10_000);
    alice.model_proposes(json!([change]));
    alice.ok("learn", json!({"sessionId": "s"}));
    if method == "consolidate" {
        alice.model_proposes(json!([
            {"action": "retire", "key": "penicillin", "by": "not-allergic"},
        ]));
        alice.ok("consolidate", json!({}));
    }
}

#[test]
fn a_fact_is_changed_only_by_those_who_could_write_it() {
    let mut table = String::from("| how a fact is changed or removed |");
    for who in Who::ALL {
        table.push_str(&format!(" {} |", who.name()));
    }
    table.push_str("\n|---|---|---|---|---|\n");
    for method in METHODS {
        let mut row = String::new();
        for who in Who::ALL {
            let is_unchanged = is_unchanged(who, method);
            assert!(is_unchanged || who.writes_agent(), "{method} {who:?}");
            assert!(!is_unchanged || who != Who::Secret, "{method} does nothing");
            row.push_str(if is_unchanged {
                " unchanged |"
            } else {
                " changed |"
            });
        }
        table.push_str(&format!("| {method} |{row}\n"));
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/learning.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains(&table),
        "docs/learning.md should contain this table:\n\n{table}"
    );
}

/// Bob, in session `t` by the secret, is allergic to penicillin.
fn with_bob() -> Alice {
    let alice = populated(false);
    alice.ok(
        "appendEvents",
        json!({"sessionId": "t", "events": [user_event("I am allergic to penicillin.")]}),
    );
    alice.host.advance(10_000);
    alice.model_proposes(json!([adds(
        "penicillin",
        "The user is allergic to penicillin.",
        "e1"
    )]));
    alice.ok("learn", json!({"sessionId": "t"}));
    assert_eq!(
        alice.facts(),
        json!({"penicillin": "The user is allergic to penicillin."})
    );
    alice
}

#[test]
fn a_restricted_caller_neither_retracts_nor_learns_from_other_sessions() {
    for action in ["forget", "retire", "replace"] {
        let mut alice = with_bob();
        let facts = alice.facts();
        let statement = "Forget what I told you about penicillin. I am not allergic to penicillin.";
        alice.as_caller(token(Some("s"), false, None), |alice| {
            alice.append(json!([user_event(statement)]));
        });
        alice.host.advance(10_000);
        let mut change = json!({"action": action, "key": "penicillin", "events": ["e1"]});
        if action == "replace" {
            change["content"] = "The user is not allergic to penicillin.".into();
        }
        alice.model_proposes(json!([change]));
        alice.learn();
        assert!(
            !alice.learn_prompt().contains("The user is allergic"),
            "{action}"
        );
        assert_eq!(alice.facts(), facts, "{action}");
        let entry = alice.ok("getEntry", json!({"label": "facts", "key": "penicillin"}));
        assert_eq!(entry["validUntil"], Value::Null, "{action}");
        assert_eq!(alice.proposals().len(), 1, "{action}: bob's alone");
        // With the secret, the same text in the same session counts.
        alice.append(json!([user_event(statement)]));
        alice.host.advance(10_000);
        alice.model_proposes(json!([change]));
        alice.learn();
        assert!(
            alice.learn_prompt().contains("The user is allergic"),
            "{action}"
        );
        assert_eq!(
            alice.proposals()[0]["changes"][0]["status"],
            "applied",
            "{action}"
        );
    }
}

#[test]
fn a_restricted_callers_fact_waits_and_can_be_retracted_by_its_session() {
    let mut alice = with_bob();
    alice.as_caller(token(Some("s"), false, None), |alice| {
        alice.append(json!([user_event(STATEMENT)]));
    });
    alice.host.advance(10_000);
    alice.model_proposes(json!([adds("likes-saffron", FACT, "e1")]));
    alice.learn();
    let proposal = alice.proposals()[0].clone();
    assert_eq!(proposal["changes"][0]["status"], "pending");
    let reason = proposal["changes"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("their own session's memory"), "{reason}");
    alice.ok(
        "decideProposal",
        json!({"id": proposal["id"], "approve": true}),
    );
    assert_eq!(alice.facts()["likes-saffron"], FACT);

    // The same session's text concerns that entry and no other.
    alice.as_caller(token(Some("s"), false, None), |alice| {
        alice.append(json!([user_event(
            "Forget what I told you about saffron and penicillin."
        )]));
    });
    alice.host.advance(10_000);
    alice.model_proposes(json!([
        {"action": "forget", "key": "likes-saffron", "events": ["e1"]},
        {"action": "forget", "key": "penicillin", "events": ["e1"]},
    ]));
    alice.learn();
    let prompt = alice.learn_prompt();
    assert!(prompt.contains(FACT) && !prompt.contains("The user is allergic"));
    let proposal = alice.proposals()[0].clone();
    assert_eq!(proposal["changes"].as_array().unwrap().len(), 1);
    assert_eq!(proposal["changes"][0]["key"], "likes-saffron");
    assert_eq!(proposal["changes"][0]["status"], "pending");
    assert_eq!(proposal["refused"], 1);

    // It is merged with no other text, and is in no profile.
    alice.host.advance(10);
    alice.model_answers(
        &json!({"changes": [{"action": "replace", "key": "penicillin", "content": "The user is allergic to penicillin and likes saffron.", "merges": ["likes-saffron"]}],
            "profile": "The user likes saffron."})
        .to_string(),
    );
    alice.ok("consolidate", json!({}));
    assert!(!alice.learn_prompt().contains("saffron"));
    assert_eq!(alice.facts()["likes-saffron"], FACT);
    assert_eq!(
        alice.ok("getBlock", json!({"label": "profile"}))["content"],
        ""
    );
}

#[test]
fn a_session_block_is_learned_into_decided_and_reverted() {
    let mut alice = populated(true);
    let own = |alice: &Alice| {
        let page = alice.ok("listEntries", json!({"sessionId": "s", "label": "facts"}));
        page["entries"].as_array().unwrap().len()
    };
    alice.as_caller(token(Some("s"), false, None), |alice| {
        alice.append(json!([user_event(STATEMENT), user_event("My cat is Tom.")]));
    });
    alice.host.advance(10_000);
    alice.model_proposes(json!([
        adds("likes-saffron", FACT, "e1"),
        adds("cat", "The user has a cat, Tom, that purrs.", "e2"),
    ]));
    let outcome = alice.learn();
    let proposal = &outcome["proposals"][0];
    assert_eq!(proposal["changes"][0]["status"], "applied");
    assert_eq!(proposal["changes"][1]["status"], "pending");
    assert_eq!(own(&alice), 1);
    assert_eq!(alice.facts(), json!({}));
    alice.ok(
        "decideProposal",
        json!({"id": proposal["id"], "approve": true}),
    );
    assert_eq!(own(&alice), 2);
    assert_eq!(alice.facts(), json!({}));
    alice.ok("revertProposal", json!({"id": proposal["id"]}));
    assert_eq!(own(&alice), 0);
    // A purge also deletes the text in the proposal.
    let receipt = alice.ok(
        "deleteEntry",
        json!({"sessionId": "s", "label": "facts", "key": "likes-saffron", "purge": true}),
    );
    assert!(receipt.to_string().contains("erased"), "{receipt}");
    assert!(
        !alice
            .proposals()
            .iter()
            .any(|one| one.to_string().contains("saffron"))
    );
}

#[test]
fn a_pass_covers_messages_of_one_authority() {
    let mut alice = populated(false);
    alice.append(json!([user_event("I like tea.")]));
    alice.as_caller(token(Some("s"), false, None), |alice| {
        alice.append(json!([
            user_event("I like milk."),
            user_event("I like sugar.")
        ]));
    });
    alice.append(json!([user_event("I like cake.")]));
    alice.host.advance(10_000);
    for _ in 0..3 {
        alice.model_proposes(json!([]));
    }
    alice.ok("learn", json!({}));
    let calls = alice.outbound.calls.borrow();
    let outcomes: Vec<[bool; 4]> = calls
        .iter()
        .map(|call| ["tea", "milk", "sugar", "cake"].map(|word| call.body.contains(word)))
        .collect();
    let [t, f] = [true, false];
    assert_eq!(outcomes, [[t, f, f, f], [f, t, t, f], [f, f, f, t]]);
}

#[test]
fn an_edited_message_has_the_narrower_authority_of_both_writers() {
    let mut alice = populated(false);
    let body = |text: &str| json!({"sessionId": "s", "message": message("m", text)});
    alice.as_caller(token(Some("s"), false, None), |alice| {
        alice.ok("appendMessage", body("Hello."));
    });
    // The operator edits a restricted caller's text.
    alice.ok("updateMessage", body(STATEMENT));
    alice.host.advance(10_000);
    alice.model_proposes(json!([adds("likes-saffron", FACT, "e1")]));
    alice.learn();
    assert_eq!(alice.facts(), json!({}));
    assert_eq!(alice.proposals()[0]["status"], "pending");
}

#[test]
fn forks_and_files_keep_the_authority_and_untrusted_files_only_narrow_it() {
    let notes = |alice: &Alice, session: &str| -> Vec<Value> {
        let file = alice.export(session).unwrap();
        let lines = file
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let events = lines.filter(|line| line["type"] == "event");
        events.map(|event| event["note"].clone()).collect()
    };
    let mut alice = populated(false);
    let holder = Some(("alice", 100));
    alice.append(json!([user_event("I like tea.")]));
    alice.as_caller(token(Some("s"), false, holder), |alice| {
        alice.append(json!([user_event(STATEMENT)]));
    });
    let restricted = json!({"reach": "session", "byToken": true,
        "limits": {"holder": "alice", "most": {"tokensPerDay": 100}}});
    assert_eq!(notes(&alice, "s"), [Value::Null, restricted.clone()]);
    let fork = alice.ok("forkSession", json!({"sessionId": "s"}));
    assert_eq!(
        notes(&alice, fork["id"].as_str().unwrap()),
        [Value::Null, restricted.clone()]
    );
    let file = alice.export("s").unwrap();

    // Trusted: byte for byte. Untrusted: no usage is charged because of a file, and its authority
    // stays restricted.
    let other = Alice::default();
    other.import("s", &file).unwrap();
    assert_eq!(other.export("s").unwrap(), file);
    let other = Alice::default();
    other.import_untrusted("s", &file).unwrap();
    other.import_untrusted("s", &file).unwrap();
    assert_eq!(
        notes(&other, "s"),
        [Value::Null, json!({"reach": "session"})]
    );
    let mut third = Alice::default();
    third.as_caller(token(Some("s"), false, Some(("bob", 7))), |third| {
        third.import_untrusted("s", &file).unwrap();
        third.import_untrusted("s", &file).unwrap();
    });
    let bobs = json!({"reach": "session", "byToken": true,
        "limits": {"holder": "bob", "most": {"tokensPerDay": 7}}});
    assert_eq!(notes(&third, "s"), [bobs.clone(), bobs]);
}

#[test]
fn a_turn_for_a_restricted_caller_has_the_same_restrictions() {
    let mut alice = populated(false);
    alice.as_caller(token(Some("s"), false, None), |alice| {
        alice.ok(
            "appendMessage",
            json!({"sessionId": "s", "message": message("m", "Keep: saffron.")}),
        );
    });
    // The operator runs a turn that answers it.
    alice.outbound.answer(text_answer("Noted."));
    alice.chat(json!({"id": "s", "trigger": "regenerate-message"}));
    let request = alice.outbound.calls.borrow().last().unwrap().body.clone();
    assert!(!request.contains("set_context"), "{request}");
}

#[test]
fn a_token_cannot_write_a_block_through_consolidation() {
    let scoped = |operations: &[&str]| {
        Caller::Scoped(TokenScope {
            operations: Some(operations.iter().map(|name| (*name).to_owned()).collect()),
            expires_at: i64::MAX,
            ..TokenScope::default()
        })
    };
    let profile =
        |alice: &Alice| alice.ok("getBlock", json!({"label": "profile"}))["content"].clone();
    let answer = json!({"changes": [], "profile": "The user is allergic to penicillin."});
    for (operations, expected) in [
        (&["consolidate"][..], ""),
        (
            &["consolidate", "setBlock"][..],
            "The user is allergic to penicillin.",
        ),
    ] {
        let mut alice = with_bob();
        alice.host.advance(10);
        alice.model_answers(&answer.to_string());
        let ordered = alice.as_caller(scoped(operations), |alice| {
            alice.ok("consolidate", json!({}))
        });
        assert_eq!(profile(&alice), expected, "{ordered}");
    }
    // An edited text in a proposal has the authority of whoever decides.
    let mut alice = populated(false);
    alice.append(json!([user_event("I like tea.")]));
    alice.host.advance(10_000);
    alice.model_proposes(json!([adds("tea", "The user drinks it.", "e1")]));
    let id = alice.learn()["proposals"][0]["id"].clone();
    alice.as_caller(scoped(&["decideProposal"]), |alice| {
        alice.ok("decideProposal", json!({"id": id, "approve": true, "changes": [{"index": 0, "content": "The user likes tea."}]}))
    });
    let entry = alice.ok("getEntry", json!({"label": "facts", "key": "tea"}));
    assert_eq!(entry["source"], "user");
}

#[test]
fn learning_counts_toward_the_callers_limit_and_blocks_nobody() {
    let mut alice = populated(false);
    let holder = Some(("alice", 100));
    let caller = token(Some("s"), false, holder);
    // Her turn exhausts her limit.
    alice.outbound.answer(text_answer("Hello."));
    alice.as_caller(caller.clone(), |alice| {
        alice.ok(
            "runTurn",
            json!({"sessionId": "s", "message": user(STATEMENT)}),
        );
    });
    assert!(spent(&alice, "alice") > 0);
    alice.ok(
        "appendEvents",
        json!({"sessionId": "t", "events": [user_event("I like tea.")]}),
    );
    alice.host.advance(10_000);
    alice.model_proposes(json!([adds("likes-saffron", FACT, "e1")]));
    alice.model_proposes(json!([adds("tea", "The user likes tea.", "e1")]));
    let before = spent(&alice, "alice");
    alice.alarm();
    // Only the pass over her messages also counts toward her limit.
    assert_eq!(spent(&alice, "alice"), before + 110);
    assert_eq!(spent(&alice, "learning"), 220);
    assert_eq!(alice.facts(), json!({"tea": "The user likes tea."}));

    // Her limit is exhausted: her messages wait, and her session reports the reason.
    alice.as_caller(caller, |alice| {
        alice.append(json!([user_event("I like milk.")]));
    });
    alice.ok(
        "appendEvents",
        json!({"sessionId": "t", "events": [user_event("I like cake.")]}),
    );
    alice.host.advance(10_000);
    let requests_before = alice.request_count();
    alice.model_proposes(json!([adds("cake", "The user likes cake.", "e1")]));
    let round = alice.alarm();
    assert!(round.failures.is_empty());
    assert_eq!(alice.request_count(), requests_before + 1);
    assert_eq!(alice.facts()["cake"], "The user likes cake.");
    let session = alice.ok("getSession", json!({"sessionId": "s"}));
    assert_eq!(session["lastLearningError"]["code"], "rate_limited");
    let midnight = (alice.host.now_ms() / DAY_MS + 1) * DAY_MS;
    assert_eq!(round.next_at, Some(midnight));
    assert_eq!(alice.ok("learn", json!({}))["complete"], true);
    assert_eq!(
        alice.refused("learn", json!({"sessionId": "s"})),
        "rate_limited"
    );
    // The next day it continues.
    alice.host.advance(midnight - alice.host.now_ms());
    alice.model_proposes(json!([]));
    alice.alarm();
    assert!(alice.learn_prompt().contains("milk"));
}

/// The tokens counted for a holder.
fn spent(alice: &Alice, holder: &str) -> i64 {
    let sql = "SELECT coalesce(sum(tokens), 0) FROM cf_agents_metered WHERE holder = ?1";
    let rows = alice.db.rows(sql, &[holder.into()]).unwrap();
    rows[0].integer(0).unwrap()
}

#[test]
fn vectors_count_toward_the_callers_limit_and_words_work_without() {
    let mut alice = Alice::with_session().embedding_by("workers-ai:@cf/m");
    alice.ok("configureAgent", json!({"limits": {"tokensPerDay": 1_000}}));
    alice.ok("defineBlock", json!({"label": "kb", "kind": "searchable"}));
    let vector = [1.0, 0.2, 0.0];
    alice.embeds(&[vector]);
    alice.add_entry("umbrella", "Take it when it drizzles.");
    let own = spent(&alice, "");
    assert!(own > 0);
    let search = |alice: &mut Alice, query: String| {
        alice.embeds(&[vector]);
        let input = json!({"label": "kb", "query": query});
        let caller = token(None, false, Some(("alice", 30)));
        let found = alice.as_caller(caller, |alice| alice.ok("searchContext", input));
        alice.outbound.answers.borrow_mut().clear();
        found
    };
    let found = search(&mut alice, "drizzles".to_owned());
    assert_eq!(found["vectors"], json!({"pending": false}));
    let alices = spent(&alice, "alice");
    assert!(alices > 0);
    assert_eq!(spent(&alice, ""), own + alices);
    // Her limit is exhausted: her searches match only words, and the agent's own count is
    // unchanged.
    search(&mut alice, "drizzles ".repeat(40));
    let (alices, all) = (spent(&alice, "alice"), spent(&alice, ""));
    let found = search(&mut alice, "drizzles".to_owned());
    assert_eq!(found["vectors"]["error"]["code"], "rate_limited");
    assert_eq!(found["results"][0]["key"], "umbrella");
    assert_eq!((spent(&alice, "alice"), spent(&alice, "")), (alices, all));
    // Other callers' searches still have vectors.
    alice.embeds(&[vector]);
    assert_eq!(
        alice.search_entries("drizzles")["vectors"],
        json!({"pending": false})
    );
}

#[test]
fn a_summary_counts_toward_the_limit_of_the_appending_caller() {
    for (holder, pays) in [(Some(("alice", 1_000_000)), true), (None, false)] {
        let mut alice = Alice::with_model();
        alice.ok("createSession", json!({"id": "s"}));
        alice.ok(
            "configureCompaction",
            json!({"compactAfter": 100, "tailTokenBudget": 10, "protectHead": 0}),
        );
        alice.as_caller(token(Some("s"), false, holder), |alice| {
            alice.append_texts(&["one two three four five six seven"; 40]);
        });
        alice.model_answers("They counted.");
        let _ = wait_for(follow_up(&alice.agent(&alice.db), &id("s")));
        assert_eq!(alice.request_count(), 1);
        assert_eq!(spent(&alice, "alice") > 0, pays);
    }
}

#[test]
fn proposals_of_a_restricted_session_do_not_block_learning() {
    let mut alice = populated(false);
    for number in 0..25 {
        alice.as_caller(token(Some("s"), false, None), |alice| {
            alice.append(json!([user_event(&format!("I like spice {number}."))]));
        });
        alice.host.advance(4_000_000);
        let fact = format!("The user likes spice {number}.");
        alice.outbound.answers.borrow_mut().clear();
        alice.model_proposes(json!([adds(&format!("spice-{number}"), &fact, "e1")]));
        assert!(alice.alarm().failures.is_empty());
    }
    assert_eq!(
        alice.ok("getProposals", json!({"limit": 100}))["proposals"]
            .as_array()
            .unwrap()
            .len(),
        20
    );
    alice.outbound.answers.borrow_mut().clear();
    alice.ok(
        "appendEvents",
        json!({"sessionId": "t", "events": [user_event("I like tea.")]}),
    );
    alice.host.advance(10_000);
    alice.model_proposes(json!([adds("tea", "The user likes tea.", "e1")]));
    alice.ok("learn", json!({}));
    assert_eq!(alice.facts(), json!({"tea": "The user likes tea."}));
}

#[test]
fn an_append_by_a_restricted_caller_writes_one_row() {
    for holder in [None, Some(("alice", 100))] {
        let mut alice = Alice::with_session();
        alice.db.take_costs();
        alice.as_caller(token(Some("s"), false, holder), |alice| {
            alice.append(json!([user_event(STATEMENT)]));
        });
        assert_eq!(alice.db.take_costs().1, 1);
    }
}

/// Sessions of several callers, learned from at random: whatever the model proposes, text of a
/// restricted session is only in its proposals, its own block, and its log, and no request about it
/// contains another's.
#[test]
fn random_play_never_mixes_authorities() {
    const WORDS: [&str; 8] = [
        "lisbon", "kettle", "harbour", "otter", "quartz", "violet", "marble", "zebra",
    ];
    for seed in 1..=40 {
        let mut dice = Dice(seed);
        let mut alice = populated(false);
        alice.ok("createSession", json!({"id": "u"}));
        for session in ["t", "u"] {
            if dice.roll(2) == 0 {
                alice.ok(
                    "defineBlock",
                    json!({"sessionId": session, "label": "facts", "kind": "searchable"}),
                );
            }
        }
        // Session `s` belongs to the secret's holder; `t` and `u` belong to restricted callers.
        let mut texts: Vec<(&str, String)> = Vec::new();
        for _ in 0..12 {
            let session = ["s", "t", "u"][dice.roll(3)];
            let word = WORDS[dice.roll(WORDS.len())];
            let name = format!("{word}{session}");
            let caller = match session {
                "s" => Caller::Owner,
                session => token(Some(session), false, None),
            };
            let text = match dice.roll(3) {
                0 => format!("Forget what I told you about {name}."),
                _ => format!("I like {name}."),
            };
            alice.as_caller(caller, |alice| {
                alice.ok(
                    "appendEvents",
                    json!({"sessionId": session, "events": [user_event(&text)]}),
                )
            });
            texts.push((session, name));
            if dice.roll(2) == 0 {
                alice.host.advance(10_000);
                // A model that tries every change with every text.
                let (_, other) = texts[dice.roll(texts.len())].clone();
                let (_, last) = texts[texts.len() - 1].clone();
                for _ in 0..4 {
                    let changes: Vec<Value> = [&last, &other]
                        .iter()
                        .flat_map(|name| {
                            let fact = format!("The user likes {name}.");
                            [
                                adds(name, &fact, "e1"),
                                json!({"action": "forget", "key": name, "events": ["e1"]}),
                                json!({"action": "replace", "key": last, "content": fact, "events": ["e1"]}),
                            ]
                        })
                        .collect();
                    alice.model_proposes(json!(changes));
                }
                let from = alice.request_count();
                let _ = alice.call("learn", json!({}));
                alice.outbound.answers.borrow_mut().clear();
                for call in alice.outbound.calls.borrow().iter().skip(from) {
                    let body: Value = serde_json::from_str(&call.body).unwrap();
                    let prompt = body["messages"][0]["content"].as_str().unwrap();
                    let events = prompt.split("<events>").nth(1).unwrap();
                    let has = |session: &str| {
                        WORDS
                            .iter()
                            .any(|word| prompt.contains(&format!("{word}{session}")))
                    };
                    let is_restricted = WORDS.iter().any(|word| {
                        events.contains(&format!("{word}t")) || events.contains(&format!("{word}u"))
                    });
                    if is_restricted {
                        let sessions = ["s", "t", "u"]
                            .iter()
                            .filter(|session| has(session))
                            .count();
                        assert_eq!(sessions, 1, "seed {seed}: {prompt}");
                    }
                }
            }
        }
        let facts = alice.facts().to_string();
        for word in WORDS {
            for session in ["t", "u"] {
                assert!(
                    !facts.contains(&format!("{word}{session}")),
                    "seed {seed}: {facts}"
                );
            }
            for (session, other) in [("t", "u"), ("u", "t"), ("t", "s"), ("u", "s")] {
                let own = alice.call(
                    "listEntries",
                    json!({"sessionId": session, "label": "facts"}),
                );
                let own = own.map_or(String::new(), |own| own.to_string());
                assert!(
                    !own.contains(&format!("{word}{other}")),
                    "seed {seed}: {own}"
                );
            }
        }
    }
}
