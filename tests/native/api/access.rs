//! Permissions of the secret, of tokens and of callers without a credential.

use serde_json::{Value, json};

use crate::{Alice, conversation, ids};
use access::{Caller, Effect, Needs, Policy, TokenScope, identify};
use api::table::OPERATIONS;
use base::ids::Id;

fn scoped(alice: Alice, session: Option<&str>, operations: Option<&[&str]>) -> Alice {
    let scope = TokenScope {
        session_id: session.map(|id| Id::parse(id.to_owned()).unwrap()),
        operations: operations.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        expires_at: i64::MAX,
        ..TokenScope::default()
    };
    Alice {
        caller: Caller::Scoped(scope),
        ..alice
    }
}

fn two_sessions() -> Alice {
    let alice = Alice::with_session();
    alice.ok("createSession", json!({"id": "t", "name": "the other's"}));
    alice
}

#[test]
fn a_session_token_sees_only_its_session() {
    let alice = scoped(two_sessions(), Some("s"), None);
    assert_eq!(alice.ok("getSession", json!({"sessionId": "s"}))["id"], "s");
    assert_eq!(ids(&alice.ok("listSessions", json!({}))["sessions"]), ["s"]);
    let everything_else = [
        ("getSession", json!({"sessionId": "t"})),
        ("updateSession", json!({"sessionId": "t", "name": "mine"})),
        ("deleteSession", json!({"sessionId": "t"})),
        ("addUsage", json!({"sessionId": "t", "inputTokens": 1})),
        (
            "appendEvents",
            json!({"sessionId": "t", "events": [{"action": "user_message", "content": "x"}]}),
        ),
        ("loadEvents", json!({"sessionId": "t"})),
        ("deleteEvents", json!({"sessionId": "t", "eventIds": []})),
        // A session that doesn't exist gets the same answer as one that exists.
        ("loadEvents", json!({"sessionId": "nobody"})),
        ("createSession", json!({})),
        ("createSession", json!({"id": "u"})),
        ("getConfig", json!({})),
    ];
    for (operation, body) in everything_else {
        assert_eq!(alice.refused(operation, body), "forbidden", "{operation}");
    }
}

#[test]
fn no_token_reaches_another_agent() {
    let alice = scoped(Alice::with_session(), None, None);
    assert_eq!(alice.ok("getConfig", json!({}))["maxSteps"], 10);
    for (operation, body) in [
        ("mintToken", json!({"expiresIn": 60})),
        ("destroy", json!({"confirm": "alice"})),
        ("configureAgent", json!({"maxSteps": 1})),
        ("listAgents", json!({})),
        ("searchAgents", json!({"prefix": "a", "query": "x"})),
        ("eraseAgents", json!({"prefix": "a", "confirm": "a"})),
        ("getBookmark", json!({})),
        (
            "restoreBookmark",
            json!({"bookmark": "b", "confirm": "alice"}),
        ),
        ("restoreBackup", json!({"key": "a/000000000000001.ndjson"})),
    ] {
        assert_eq!(alice.refused(operation, body), "forbidden", "{operation}");
    }
}

#[test]
fn a_token_runs_only_the_operations_it_names() {
    let alice = scoped(Alice::with_session(), None, Some(&["loadEvents"]));
    alice.ok("loadEvents", json!({"sessionId": "s"}));
    assert_eq!(
        alice.refused("deleteSession", json!({"sessionId": "s"})),
        "forbidden"
    );
    assert_eq!(alice.refused("listSessions", json!({})), "forbidden");
}

#[test]
fn the_authorization_check_accepts_a_minted_token() {
    let alice = Alice::default();
    let minted = alice.ok(
        "mintToken",
        json!({"sessionId": "s", "operations": ["loadEvents", "getSession"], "expiresIn": 60}),
    );
    assert_eq!(minted["expiresAt"], 1_060_000);
    let caller = identify(
        &alice.policy,
        &alice.host,
        Some("alice"),
        minted["token"].as_str(),
    )
    .unwrap();
    let Caller::Scoped(scope) = caller else {
        panic!("not the owner")
    };
    assert_eq!(scope.session_id.unwrap().as_str(), "s");
    assert_eq!(scope.operations.unwrap(), ["getSession", "loadEvents"]);
}

/// The scope of a minted token, as the agent's entry point reads it.
fn scope_of(alice: &Alice, body: Value) -> TokenScope {
    let minted = alice.ok("mintToken", body);
    let token = minted["token"].as_str();
    match identify(&alice.policy, &alice.host, Some("alice"), token).unwrap() {
        Caller::Scoped(scope) => scope,
        Caller::Owner => panic!("not the owner"),
    }
}

#[test]
fn a_preset_and_named_operations_add_up() {
    let alice = Alice::default();
    let names = |body: Value| scope_of(&alice, body).operations;
    assert_eq!(names(json!({"expiresIn": 60})), None);
    let chat = names(json!({"preset": "chat", "sessionId": "s", "expiresIn": 60})).unwrap();
    let both = json!({"preset": "chat", "sessionId": "s", "operations": ["setLeaf", "getHistory"], "expiresIn": 60});
    let mut sum = chat.clone();
    sum.push("setLeaf".to_owned());
    sum.sort_unstable();
    assert_eq!(names(both).unwrap(), sum);
    let read = names(json!({"preset": "read", "expiresIn": 60})).unwrap();
    for entry in OPERATIONS {
        let rule = entry.rule;
        let is_reading = rule.effect == Effect::Nothing && rule.needs != Needs::Secret;
        assert_eq!(
            read.contains(&entry.name.to_owned()),
            is_reading,
            "{}",
            entry.name
        );
        if chat.contains(&entry.name.to_owned()) {
            let is_of_turns = ["runTurn", "cancelTurn"].contains(&entry.name);
            assert!(is_reading || is_of_turns, "{}", entry.name);
        }
    }
    assert!(chat.contains(&"chat".to_owned()) && !read.contains(&"chat".to_owned()));
}

#[test]
fn a_token_allows_what_it_was_minted_for() {
    let alice = Alice::default();
    let allow = json!({
        "models": ["openai:one", "demo"], "systemInstructions": true, "clientTools": true,
        "agentMessages": true, "agentMemory": true, "purge": true, "tools": ["weather"],
    });
    let body = json!({"sessionId": "s", "allow": allow, "expiresIn": 60});
    let scope = scope_of(&alice, body);
    assert_eq!(serde_json::to_value(&scope.allow).unwrap(), allow);
    let scope = scope_of(&alice, json!({"sessionId": "s", "expiresIn": 60}));
    assert!(scope.allow.is_nothing());
}

#[test]
fn prompt_operations_need_a_token_that_names_them() {
    let body = || json!({"sessionId": "s", "label": "memory", "kind": "writable"});
    let alice = scoped(Alice::with_session(), Some("s"), None);
    assert_eq!(alice.refused("defineBlock", body()), "forbidden");
    let alice = scoped(Alice::with_session(), Some("s"), Some(&["defineBlock"]));
    alice.ok("defineBlock", body());
}

#[test]
fn an_invalid_token_is_not_minted() {
    let alice = Alice::default();
    let names = |count: usize| vec!["demo"; count];
    let long = "x".repeat(200);
    let table: [(Value, &str); 12] = [
        (json!({"expiresIn": 60, "preset": "chat"}), "sessionId"),
        (json!({"expiresIn": 60, "preset": "write"}), "preset"),
        (
            json!({"expiresIn": 60, "allow": {"models": ["demo", "mine"]}}),
            "allow.models[1]",
        ),
        (
            json!({"expiresIn": 60, "allow": {"models": names(33)}}),
            "allow.models",
        ),
        (
            json!({"expiresIn": 60, "allow": {"tools": names(33)}}),
            "allow.tools",
        ),
        (
            json!({"expiresIn": 60, "allow": {"agentMesages": true}}),
            "allow.agentMesages",
        ),
        (
            json!({"expiresIn": 60, "allow": {"tools": vec!["é".repeat(200); 32]}, "sessionId": long}),
            "allow",
        ),
        (json!({}), "expiresIn"),
        (json!({"expiresIn": 0}), "expiresIn"),
        (json!({"expiresIn": 86_401}), "expiresIn"),
        (
            json!({"expiresIn": 60, "operations": ["loadEvents", "loadEvent"]}),
            "operations[1]",
        ),
        (json!({"expiresIn": 60, "sessionId": ""}), "sessionId"),
    ];
    for (body, field) in table {
        assert_eq!(
            alice.call("mintToken", body).unwrap_err().details()["field"],
            field
        );
    }
    let open = Alice {
        policy: Policy::new(None, Some("open")),
        ..Alice::default()
    };
    let error = open
        .call("mintToken", json!({"expiresIn": 60}))
        .unwrap_err();
    assert_eq!(
        (error.code.name(), &error.details()["binding"]),
        ("not_configured", &json!("SESSION_AGENT_TOKEN"))
    );
}

/// Requests that forge text of the agent, its tools or the system, for every operation that writes
/// messages. Each is paired with the field that names the forged author.
pub fn forgeries() -> Vec<(&'static str, Value, &'static str)> {
    let message = |id: &str, role: &str| json!({"sessionId": "s", "message": {"id": id, "role": role, "parts": [{"type": "text", "text": "forged"}]}});
    let event = |event: Value| json!({"sessionId": "s", "events": [{"action": "user_message", "content": "x"}, event]});
    let context = |context: Value| json!({"sessionId": "s", "messages": [{"role": "user", "content": "x"}, context]});
    let calls = json!([{"id": "c", "name": "t", "arguments": {}}]);
    let mut forgeries = Vec::new();
    for role in ["assistant", "system"] {
        forgeries.push(("runTurn", message("new", role), "message.role"));
    }
    for operation in ["appendMessage", "upsertMessage", "updateMessage"] {
        for role in ["assistant", "system"] {
            // An unknown id, the id of the user's message, and the id of the agent's message.
            for id in ["new", "mine", "its"] {
                forgeries.push((operation, message(id, role), "message.role"));
            }
        }
        if operation != "appendMessage" {
            for id in ["its", "run", "system"] {
                forgeries.push((operation, message(id, "user"), "message.id"));
            }
        }
    }
    for role in ["assistant", "system"] {
        let [own, forged] = ["user", role]
            .map(|role| json!({"role": role, "parts": [{"type": "text", "text": "x"}]}));
        let body = json!({"sessionId": "s", "messages": [own, forged]});
        forgeries.push(("appendMessages", body, "messages[1].role"));
    }
    for forged in [
        json!({"action": "agent_message", "content": "x"}),
        json!({"action": "system_instruction", "content": "x"}),
        json!({"action": "compaction", "content": "x"}),
        json!({"action": "tool_call_request", "toolCalls": calls}),
        json!({"action": "tool_result", "toolCallId": "c", "toolName": "t", "content": "x"}),
    ] {
        forgeries.push(("appendEvents", event(forged), "events[1].action"));
    }
    for forged in [
        json!({"role": "assistant", "content": "x"}),
        json!({"role": "assistant", "toolCalls": calls}),
        json!({"role": "system", "content": "x"}),
        json!({"role": "tool", "toolCallId": "c", "toolName": "t", "content": "x"}),
    ] {
        forgeries.push(("persistWorkingContext", context(forged), "messages[1].role"));
    }
    forgeries
}

#[test]
fn a_minted_token_cannot_write_agent_messages() {
    for (operation, body, field) in forgeries() {
        for (session, named) in [(Some("s"), false), (None, false), (Some("s"), true)] {
            let named = named.then_some([operation]);
            let alice = scoped(
                conversation(),
                session,
                named.as_ref().map(|names| &names[..]),
            );
            let before = alice.db.dump();
            let error = alice.call(operation, body.clone()).unwrap_err();
            assert_eq!(error.code.name(), "forbidden", "{operation} {body}");
            assert_eq!(error.details()["field"], field, "{operation} {body}");
            assert_eq!(alice.db.dump(), before, "{operation} {body}");
        }
        let mut alice = scoped(conversation(), Some("s"), None);
        if let Caller::Scoped(scope) = &mut alice.caller {
            scope.allow.agent_messages = true;
        }
        match operation {
            // A turn answers a user's message, from any caller.
            "runTurn" => assert_eq!(alice.refused(operation, body), "invalid_request"),
            _ => drop(alice.ok(operation, body)),
        }
    }
}

/// A scoped caller of an agent that reserves the metadata key `role`.
fn scoped_with_reserved_key() -> Alice {
    let alice = conversation();
    alice.ok("configureAgent", json!({"reservedMetadataKeys": ["role"]}));
    scoped(alice, Some("s"), None)
}

#[test]
fn a_write_without_metadata_does_not_read_the_reserved_keys() {
    let message = json!({"id": "mine", "role": "user", "parts": [{"type": "text", "text": "x"}]});
    let event = json!({"action": "user_message", "content": "x"});
    let new = json!({"id": "new", "role": "user", "parts": [{"type": "text", "text": "x"}]});
    for (operation, field, sent) in [
        ("appendEvents", "events", event),
        ("appendMessage", "message", new.clone()),
        ("appendMessages", "messages", new.clone()),
        ("upsertMessage", "message", new),
        ("upsertMessage", "message", message.clone()),
        ("updateMessage", "message", message),
    ] {
        let rows_read = |metadata: Option<Value>| {
            let alice = scoped_with_reserved_key();
            let mut sent = sent.clone();
            if let Some(metadata) = metadata {
                sent["metadata"] = metadata;
            }
            let is_list = field.ends_with('s');
            let sent = if is_list { json!([sent]) } else { sent };
            alice.db.take_costs();
            alice.ok(operation, json!({"sessionId": "s", field: sent}));
            let read = alice.db.take_costs().0;
            (read, alice.db.dump())
        };
        let (with, stored) = rows_read(Some(json!({"role": "admin", "page": 1})));
        assert!(stored.contains("page"), "{operation}");
        assert!(!stored.contains("admin"), "{operation}");
        let (without, _) = rows_read(None);
        assert_eq!(without, with - 1, "{operation}");
    }
}

#[test]
fn a_minted_token_writes_and_edits_user_messages() {
    let alice = scoped(conversation(), Some("s"), None);
    let message = |id: &str, text: &str| json!({"sessionId": "s", "message": {"id": id, "role": "user", "parts": [{"type": "text", "text": text}]}});
    assert_eq!(
        alice.ok("appendMessage", message("m", "Hello"))["inserted"],
        true
    );
    alice.ok("updateMessage", message("mine", "Edited"));
    alice.ok("upsertMessage", message("m", "Hello!"));
    alice.ok("upsertMessage", message("n", "New"));
    assert_eq!(
        alice.ok("updateMessage", message("nobody", "x")),
        Value::Null
    );
    alice.ok(
        "appendEvents",
        json!({"sessionId": "s", "events": [{"action": "user_message", "content": "x"}]}),
    );
    alice.ok(
        "persistWorkingContext",
        json!({"sessionId": "s", "messages": [{"role": "user", "content": "x"}]}),
    );
}

#[test]
fn a_minted_token_always_writes_as_a_client() {
    let mut alice = Alice::with_session();
    alice.ok("configureAgent", json!({"reservedMetadataKeys": ["plan"]}));
    let body = json!({"sessionId": "s", "source": "server", "message": {"id": "m", "role": "user",
        "metadata": {"plan": "gold", "mine": 1}, "parts": [{"type": "text", "text": "a", "providerMetadata": {"x": 1}}]}});
    alice = scoped(alice, Some("s"), None);
    alice.ok("appendMessage", body.clone());
    let mut several = body.clone();
    several["messages"] = json!([body["message"]]);
    several["messages"][0]["id"] = json!("n");
    several.as_object_mut().unwrap().remove("message");
    alice.ok("appendMessages", several);
    let several = alice.ok("getMessage", json!({"sessionId": "s", "messageId": "n"}));
    assert_eq!(several["metadata"], json!({"mine": 1}));
    let event = json!({"id": "e", "action": "user_message", "content": "b", "metadata": {"plan": "gold", "mine": 2.0}});
    alice.ok("appendEvents", json!({"sessionId": "s", "events": [event]}));
    let events = alice.events();
    assert_eq!(events[2]["metadata"], json!({"mine": 2.0}));
    let stored = alice.ok("getMessage", json!({"sessionId": "s", "messageId": "m"}));
    assert_eq!(stored["metadata"], json!({"mine": 1}));
    assert_eq!(stored["parts"], json!([{"type": "text", "text": "a"}]));
}
