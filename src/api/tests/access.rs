use serde_json::{Value, json};

use super::{Alice, ids};
use crate::access::{Caller, Policy, Scope, identify};
use crate::ids::Id;

fn scoped(alice: Alice, session: Option<&str>, operations: Option<&[&str]>) -> Alice {
    let scope = Scope {
        session_id: session.map(|id| Id::parse(id.to_owned()).unwrap()),
        operations: operations.map(|names| names.iter().map(|name| (*name).to_owned()).collect()),
        expires_at: i64::MAX,
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
fn a_token_for_a_session_sees_that_session_only() {
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
        // A session that isn't there answers like one that is.
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
fn no_token_reaches_beyond_the_agent() {
    let alice = scoped(Alice::with_session(), None, None);
    assert_eq!(alice.ok("getConfig", json!({}))["maxSteps"], 10);
    for (operation, body) in [
        ("mintToken", json!({"expiresIn": 60})),
        ("destroy", json!({"confirm": "alice"})),
        ("configureAgent", json!({"maxSteps": 1})),
    ] {
        assert_eq!(alice.refused(operation, body), "forbidden", "{operation}");
    }
}

#[test]
fn a_token_runs_the_operations_that_it_names() {
    let alice = scoped(Alice::with_session(), None, Some(&["loadEvents"]));
    alice.ok("loadEvents", json!({"sessionId": "s"}));
    assert_eq!(
        alice.refused("deleteSession", json!({"sessionId": "s"})),
        "forbidden"
    );
    assert_eq!(alice.refused("listSessions", json!({})), "forbidden");
}

#[test]
fn a_minted_token_is_one_that_the_door_takes() {
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

#[test]
fn a_token_that_can_not_be_is_not_minted() {
    let alice = Alice::default();
    let table: [(Value, &str); 5] = [
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
            alice.call("mintToken", body).unwrap_err().details["field"],
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
        (error.code.name(), &error.details["binding"]),
        ("not_configured", &json!("SESSION_AGENT_TOKEN"))
    );
}
