//! Generated attacks: every operation, with every kind of token, at every entry point. The expected
//! result follows from the operation's declaration, so a new operation is tested automatically. The
//! requests come from `examples.rs`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::api::access::forgeries;
use crate::api::examples::{Example, examples, populated};
use crate::{Alice, conversation};
use access::{
    AccessRule, Allow, Caller, Claims, Effect, Needs, Policy, Secret, TokenScope, identify,
};
use api::chat::begin_chat;
use api::chat::resume_chat;
use api::dispatch::dispatch;
use api::mcp::{Clients, McpHeaders, McpRequest, answer};
use api::operations::message_reads::get_messages;
use api::operations::tokens::Preset;
use api::socket::{SocketState, handle_frame, open};
use api::table::{OPERATIONS, RULES};
use api::transfer::{begin_export, begin_import};
use base::error::{Code, Error, Result};
use base::host::Host as _;
use base::ids::Id;
use base::testing::{ScriptedAnswer, wait_for};
use chat::request::parse_chat_request;
use chat::run::agent::CHAT_RULE;
use chat::run::start::start;
use store::limits::PrincipalLimits;

/// The sender of the request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    NoToken,
    Wrong,
    Expired,
    AnotherAgents,
    AnotherSecrets,
    AnotherSessions,
    ReadPreset,
    ReadPresetOfTheSession,
    ChatPreset,
    SessionWithoutOperations,
    SessionThatNamesIt,
    SessionThatNamesAnother,
    AgentWithoutOperations,
    AgentThatNamesIt,
    Secret,
}

pub const KINDS: [Kind; 15] = [
    Kind::NoToken,
    Kind::Wrong,
    Kind::Expired,
    Kind::AnotherAgents,
    Kind::AnotherSecrets,
    Kind::AnotherSessions,
    Kind::ReadPreset,
    Kind::ReadPresetOfTheSession,
    Kind::ChatPreset,
    Kind::SessionWithoutOperations,
    Kind::SessionThatNamesIt,
    Kind::SessionThatNamesAnother,
    Kind::AgentWithoutOperations,
    Kind::AgentThatNamesIt,
    Kind::Secret,
];

const SECRET: &str = "the secret of these attacks, long enough";

/// The session and the operations to which a token of this kind is limited.
fn scope_of(kind: Kind, operation: &str) -> (Option<&'static str>, Option<Vec<String>>) {
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    match kind {
        Kind::AnotherSessions => (Some("t"), names(&[operation])),
        Kind::ReadPreset => (None, names(&Preset::Read.operations(RULES))),
        Kind::ReadPresetOfTheSession => (Some("s"), names(&Preset::Read.operations(RULES))),
        Kind::ChatPreset => (Some("s"), names(&Preset::Chat.operations(RULES))),
        Kind::SessionWithoutOperations => (Some("s"), None),
        Kind::SessionThatNamesIt => (Some("s"), names(&[operation])),
        Kind::SessionThatNamesAnother => (Some("s"), names(&["another"])),
        Kind::AgentThatNamesIt => (None, names(&[operation])),
        _ => (None, None),
    }
}

/// The token that the request carries.
pub fn bearer(kind: Kind, alice: &Alice, operation: &str) -> Option<String> {
    let (session, operations) = scope_of(kind, operation);
    let now_ms = alice.host.now_ms();
    let claims = Claims {
        agent: match kind {
            Kind::AnotherAgents => "bob".to_owned(),
            _ => "alice".to_owned(),
        },
        scope: TokenScope {
            session_id: session.map(id),
            operations,
            expires_at: match kind {
                Kind::Expired => now_ms,
                _ => now_ms + 1000,
            },
            // Naming a purging operation is not enough to allow it: `access/lib.rs` tests this.
            allow: Allow {
                purge: matches!(kind, Kind::SessionThatNamesIt | Kind::AgentThatNamesIt),
                ..Allow::default()
            },
            ..TokenScope::default()
        },
    };
    let secret = match kind {
        Kind::NoToken => return None,
        Kind::Wrong => return Some("x".repeat(64)),
        Kind::Secret => return Some(SECRET.to_owned()),
        Kind::AnotherSecrets => "the secret of another Worker, as long",
        _ => SECRET,
    };
    Some(Secret::new(secret.to_owned()).unwrap().mint(&claims))
}

fn id(text: &str) -> Id {
    Id::parse(text.to_owned()).unwrap()
}

/// Makes the holder of this token the agent's caller, if the entry point admits the token.
pub fn enter(alice: &mut Alice, bearer: Option<&str>) -> Result<()> {
    alice.policy = Policy::new(Some(SECRET.to_owned()), None);
    alice.caller = identify(&alice.policy, &alice.host, Some("alice"), bearer)?;
    Ok(())
}

/// The expected error, by the operation's declaration. `None`: the request is allowed.
fn verdict(kind: Kind, rule: AccessRule, session: Option<&str>, forges: bool) -> Option<Code> {
    match kind {
        Kind::Secret => return None,
        Kind::NoToken
        | Kind::Wrong
        | Kind::Expired
        | Kind::AnotherAgents
        | Kind::AnotherSecrets => {
            return Some(Code::Unauthorized);
        }
        _ => {}
    }
    let (only, operations) = scope_of(kind, rule.operation);
    let is_named = operations
        .as_ref()
        .is_some_and(|names| names.iter().any(|name| name == rule.operation));
    let may_run = match rule.effect {
        Effect::Agent => false,
        Effect::Prompts => is_named,
        Effect::Nothing | Effect::Session | Effect::Messages => is_named || operations.is_none(),
    };
    let may_reach = match rule.needs {
        Needs::Secret => false,
        Needs::WholeAgent => only.is_none(),
        Needs::Session => only.is_none() || only == session,
        Needs::Narrowed => only.is_none() || session.is_none() || only == session,
    };
    (!may_run || !may_reach || forges).then_some(Code::Forbidden)
}

/// The session that a body names: in its `id` if the operation creates a session.
fn session_of(operation: &str, body: &Value) -> Option<String> {
    let field = match operation {
        "erase" => {
            let places = body["places"].as_array().unwrap();
            let session = &places[0]["sessionId"];
            let is_one = places.iter().all(|place| place["sessionId"] == *session);
            return session.as_str().filter(|_| is_one).map(str::to_owned);
        }
        "createSession" => "id",
        "getTurn" => {
            return body["turnId"]
                .as_str()?
                .split('.')
                .nth(2)
                .map(str::to_owned);
        }
        _ => "sessionId",
    };
    body[field].as_str().map(str::to_owned)
}

/// Whether a body writes under another role than a user's.
fn forges(rule: AccessRule, body: &Value) -> bool {
    let contains_other = |field: &str, key: &str, users: &str| {
        let list = body[field].as_array().cloned().unwrap_or_default();
        list.iter().any(|item| item[key] != users)
    };
    rule.effect == Effect::Messages
        && (contains_other("events", "action", "user_message")
            || contains_other("messages", "role", "user")
            || body["message"]["role"] == "assistant")
}

/// How a request arrives: over HTTP, or as a frame of a socket that was opened before.
#[derive(Clone, Copy, Debug, PartialEq)]
enum EntryPoint {
    Http,
    Socket,
}

fn try_entry_point(
    entry_point: EntryPoint,
    alice: &Alice,
    operation: &str,
    body: &Value,
) -> Result<(), Code> {
    let agent = alice.agent(&alice.db);
    match entry_point {
        EntryPoint::Http => {
            let body = body.to_string();
            let done = alice.finish(&agent, dispatch(&agent, operation, body.as_bytes()));
            done.map(drop).map_err(|error| error.code)
        }
        EntryPoint::Socket => {
            let state = SocketState::new(id("s"), &alice.caller);
            // After hibernation, the socket's state is read back from storage.
            let stored: SocketState =
                serde_json::from_str(&serde_json::to_string(&state).unwrap()).unwrap();
            let caller = stored.caller();
            let agent = api::operation::Agent {
                caller: &caller,
                ..agent
            };
            let frame = json!({"type": "rpc", "id": "1", "method": operation, "args": [body]});
            let frame = frame.to_string();
            let received = alice
                .finish(&agent, handle_frame(&agent, &stored, &frame))
                .unwrap();
            let answer: Value = serde_json::from_str(&received.replies[0]).unwrap();
            match answer["success"].as_bool() {
                Some(true) => Ok(()),
                _ => Err(if is_forbidden(&answer) {
                    Code::Forbidden
                } else {
                    Code::InvalidRequest
                }),
            }
        }
    }
}

/// Whether an answer over a socket is `forbidden`. Such an answer has a sentence and no
/// code.
fn is_forbidden(answer: &Value) -> bool {
    let sentence = answer["error"].as_str().unwrap();
    ["token", "secret"]
        .iter()
        .any(|word| sentence.contains(word))
}

#[test]
fn every_operation_admits_exactly_its_declared_callers() {
    let mut tried = 0;
    for kind in KINDS {
        for entry_point in [EntryPoint::Http, EntryPoint::Socket] {
            // A request that is refused or that only reads writes nothing, so all these
            // requests share one agent. The first search builds the index.
            let mut unchanged = populated();
            unchanged.ok("search", json!({"query": "anything"}));
            let before = unchanged.db.dump();
            for Example { operation, body } in examples() {
                let entry = OPERATIONS
                    .iter()
                    .find(|entry| entry.name == operation)
                    .unwrap();
                let session = session_of(operation, &body);
                let verdict = verdict(
                    kind,
                    entry.rule,
                    session.as_deref(),
                    forges(entry.rule, &body),
                );
                let case = format!("{operation} {body} by {kind:?} at {entry_point:?}");
                let token = bearer(kind, &unchanged, operation);
                tried += 1;
                match enter(&mut unchanged, token.as_deref()) {
                    Err(error) => {
                        assert_eq!(Some(error.code), verdict, "{case}");
                        continue;
                    }
                    Ok(()) => assert_ne!(verdict, Some(Code::Unauthorized), "{case}"),
                }
                if verdict.is_some() {
                    assert_eq!(
                        try_entry_point(entry_point, &unchanged, operation, &body).err(),
                        verdict,
                        "{case}"
                    );
                    continue;
                }
                let mut fresh = None;
                let alice = match entry.rule.effect {
                    Effect::Nothing => &unchanged,
                    _ => {
                        let fresh = fresh.insert(populated());
                        enter(fresh, token.as_deref()).unwrap();
                        &*fresh
                    }
                };
                assert_eq!(
                    try_entry_point(entry_point, alice, operation, &body),
                    Ok(()),
                    "{case}"
                );
            }
            assert_eq!(unchanged.db.dump(), before, "{kind:?} at {entry_point:?}");
        }
    }
    assert!(tried > 2 * KINDS.len() * OPERATIONS.len());
}

/// An entry point that is not an operation, with the rules that it applies.
struct OtherEntryPoint {
    name: &'static str,
    /// A token may name the operation of the last rule.
    rules: Vec<AccessRule>,
    try_entry_point: fn(&Alice, &str) -> Result<()>,
}

fn other_entry_points() -> Vec<OtherEntryPoint> {
    let rule = |operation: &str| {
        OPERATIONS
            .iter()
            .find(|entry| entry.name == operation)
            .unwrap()
            .rule
    };
    vec![
        OtherEntryPoint {
            name: "chat",
            rules: vec![CHAT_RULE],
            try_entry_point: |alice, session| {
                let message = json!({"id": "hello", "role": "user", "parts": [{"type": "text", "text": "Hello."}]});
                let body = json!({"id": session, "message": message});
                begin_chat(
                    &alice.agent(&alice.db),
                    "default",
                    body.to_string().as_bytes(),
                )
                .map(drop)
            },
        },
        OtherEntryPoint {
            name: "chat, the session in the address",
            rules: vec![CHAT_RULE],
            try_entry_point: |alice, session| {
                let message = json!({"id": "hello", "role": "user", "parts": [{"type": "text", "text": "Hello."}]});
                let body = json!({"message": message});
                begin_chat(
                    &alice.agent(&alice.db),
                    session,
                    body.to_string().as_bytes(),
                )
                .map(drop)
            },
        },
        OtherEntryPoint {
            name: "resume",
            rules: vec![CHAT_RULE],
            try_entry_point: |alice, session| {
                resume_chat(&alice.agent(&alice.db), session).map(drop)
            },
        },
        OtherEntryPoint {
            name: "socket",
            rules: vec![CHAT_RULE],
            try_entry_point: |alice, session| {
                open(&alice.agent(&alice.db), session.to_owned()).map(drop)
            },
        },
        OtherEntryPoint {
            name: "get-messages",
            rules: vec![rule("getHistory")],
            try_entry_point: |alice, session| {
                get_messages(&alice.agent(&alice.db), session.to_owned()).map(drop)
            },
        },
        OtherEntryPoint {
            name: "export",
            rules: [
                "getBlocks",
                "getBlockVersions",
                "listEntries",
                "loadSkill",
                "freezePrompt",
                "getSession",
                "loadEvents",
            ]
            .map(rule)
            .to_vec(),
            try_entry_point: |alice, session| {
                begin_export(&alice.agent(&alice.db), session.to_owned()).map(drop)
            },
        },
        OtherEntryPoint {
            name: "import",
            rules: ["createSession", "appendEvents"].map(rule).to_vec(),
            try_entry_point: |alice, session| {
                begin_import(&alice.agent(&alice.db), session.to_owned(), false).map(drop)
            },
        },
        OtherEntryPoint {
            name: "mcp, a memory tool",
            rules: vec![rule("callTool")],
            try_entry_point: |alice, session| {
                let write = json!({"name": "set_context", "arguments": {"label": "memory", "content": "x"}});
                send_mcp(alice, session, "tools/call", &write)
            },
        },
        OtherEntryPoint {
            name: "mcp, search",
            rules: vec![rule("search")],
            try_entry_point: |alice, session| {
                let search = json!({"name": "search", "arguments": {"query": "x"}});
                send_mcp(alice, session, "tools/call", &search)
            },
        },
        OtherEntryPoint {
            name: "mcp, a document",
            rules: vec![rule("loadSkill")],
            try_entry_point: |alice, session| {
                let uri = json!({"uri": "memory://skill/skills/nothing"});
                send_mcp(alice, session, "resources/read", &uri)
            },
        },
        OtherEntryPoint {
            name: "mcp, the prompt",
            rules: vec![rule("renderPrompt")],
            try_entry_point: |alice, session| {
                send_mcp(alice, session, "prompts/get", &json!({"name": "system"}))
            },
        },
    ]
}

/// Sends an MCP message. A message refused for another reason than the caller's rights was
/// admitted.
fn send_mcp(alice: &Alice, session: &str, method: &str, params: &Value) -> Result<()> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = McpRequest {
        session_id: Some(session.to_owned()),
        headers: McpHeaders {
            content_type: Some("application/json"),
            ..McpHeaders::default()
        },
        body: message.to_string().into_bytes(),
        clients: &Clients::default(),
        outbox: None,
    };
    let reply = wait_for(answer(&alice.agent(&alice.db), request));
    let reply: Value = serde_json::from_str(&reply.body.into_string()).unwrap();
    if reply["error"]["data"]["code"] == "forbidden" {
        return Err(Error::new(
            Code::Forbidden,
            reply["error"]["message"].as_str().unwrap(),
        ));
    }
    Ok(())
}

#[test]
fn other_entry_points_follow_the_same_rules() {
    for entry_point in other_entry_points() {
        for kind in KINDS {
            let mut alice = populated();
            let named = entry_point.rules.last().unwrap().operation;
            let token = bearer(kind, &alice, named);
            let case = format!("{} by {kind:?}", entry_point.name);
            // An export reads for several operations: it needs the rules of all of them,
            // and only reads.
            let refused = entry_point.rules.iter().find_map(|rule| {
                let effect = match entry_point.name {
                    "export" => Effect::Nothing,
                    _ => rule.effect,
                };
                let rule = AccessRule { effect, ..*rule };
                verdict_of_named(kind, rule, named)
            });
            let before = alice.db.dump();
            let outcome = match enter(&mut alice, token.as_deref()) {
                Err(error) => Err(error.code),
                Ok(()) => (entry_point.try_entry_point)(&alice, "s").map_err(|error| error.code),
            };
            assert_eq!(outcome.err(), refused, "{case}");
            if refused.is_some() {
                assert_eq!(alice.db.dump(), before, "{case}");
            }
        }
    }
}

/// As [`verdict`], for a token that was minted for `named`.
fn verdict_of_named(kind: Kind, rule: AccessRule, named: &str) -> Option<Code> {
    let names_one = [
        Kind::SessionThatNamesIt,
        Kind::AgentThatNamesIt,
        Kind::AnotherSessions,
    ];
    if names_one.contains(&kind) && rule.operation != named {
        return Some(Code::Forbidden);
    }
    verdict(kind, rule, Some("s"), false)
}

#[test]
fn only_the_secret_adds_a_server_or_disables_its_approval() {
    const SERVER: &str = "https://tools.example/mcp";
    let result = |id: i64, result: &Value| {
        ScriptedAnswer::json(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    };
    let listed = json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}]});
    let defined = json!({"name": "gh", "mcp": SERVER, "needsApproval": false});
    for kind in KINDS {
        let mut alice = populated();
        let initialized = json!({"protocolVersion": "2025-11-25"});
        for answer in [
            result(1, &initialized),
            Ok(ScriptedAnswer::text(202, "")),
            result(2, &listed),
        ] {
            alice.outbound.answer(answer);
        }
        alice.ok("defineTool", defined.clone());
        let calls_before = alice.outbound.calls.borrow().len();
        let before = alice.db.dump();
        let tries = [
            ("defineTool", defined.clone()),
            ("removeTool", json!({"name": "gh"})),
        ];
        for (operation, body) in tries {
            let token = bearer(kind, &alice, operation);
            if kind == Kind::Secret || enter(&mut alice, token.as_deref()).is_err() {
                continue;
            }
            for entry_point in [EntryPoint::Http, EntryPoint::Socket] {
                let outcome = try_entry_point(entry_point, &alice, operation, &body);
                assert_eq!(outcome, Err(Code::Forbidden), "{operation} by {kind:?}");
            }
        }
        let token = bearer(kind, &alice, "callTool");
        let is_in = enter(&mut alice, token.as_deref()).is_ok();
        alice.outbound.answer(result(1, &json!({"content": []})));
        let call = json!({"name": "gh_a", "arguments": {}});
        let reply = is_in.then(|| send_mcp(&alice, "s", "tools/call", &call));
        let is_called = alice.outbound.calls.borrow().len() > calls_before;
        assert_eq!(
            is_called,
            kind == Kind::Secret,
            "{kind:?} {:?}",
            reply.is_some()
        );
        assert_eq!(alice.db.dump(), before, "{kind:?}");
    }
}

#[test]
fn forgeries_are_tested_for_every_operation_that_writes_messages() {
    let tried: BTreeSet<&str> = forgeries()
        .into_iter()
        .map(|(operation, ..)| operation)
        .collect();
    let writing: BTreeSet<&str> = OPERATIONS
        .iter()
        .filter(|entry| entry.rule.effect == Effect::Messages)
        .map(|entry| entry.name)
        .collect();
    assert_eq!(
        tried, writing,
        "forgeries() in access.rs contains each of them"
    );
}

#[test]
fn a_forgery_is_refused_at_every_entry_point() {
    for (operation, body, _) in forgeries() {
        for kind in [
            Kind::SessionWithoutOperations,
            Kind::SessionThatNamesIt,
            Kind::AgentWithoutOperations,
            Kind::AgentThatNamesIt,
        ] {
            for entry_point in [EntryPoint::Http, EntryPoint::Socket] {
                let mut alice = conversation();
                let token = bearer(kind, &alice, operation);
                enter(&mut alice, token.as_deref()).unwrap();
                assert_eq!(
                    try_entry_point(entry_point, &alice, operation, &body),
                    Err(Code::Forbidden),
                    "{operation} {body} by {kind:?} at {entry_point:?}"
                );
            }
        }
    }
}

/// The prompts of the sessions `s` and `t` and of the agent.
fn prompts(alice: &Alice) -> Vec<Option<Value>> {
    let mut prompts = Vec::new();
    for body in [
        json!({"sessionId": "s"}),
        json!({"sessionId": "t"}),
        json!({}),
    ] {
        for operation in ["renderPrompt", "getTools", "getBlocks", "getReminder"] {
            prompts.push(alice.call(operation, body.clone()).ok());
        }
    }
    prompts
}

#[test]
fn each_operation_has_its_declared_effect() {
    for Example { operation, body } in examples() {
        let entry = OPERATIONS
            .iter()
            .find(|entry| entry.name == operation)
            .unwrap();
        let alice = populated();
        alice.ok("search", json!({"query": "anything"}));
        let (dump, before) = (alice.db.dump(), prompts(&alice));
        alice.ok(operation, body.clone());
        let case = format!("{operation} {body}");
        match entry.rule.effect {
            Effect::Nothing => assert_eq!(alice.db.dump(), dump, "{case}"),
            // A deleted session has no prompt.
            Effect::Session | Effect::Messages if operation != "deleteSession" => {
                assert_eq!(prompts(&alice), before, "{case}");
            }
            _ => {}
        }
    }
    // The operations that need the secret are those that change the agent, and those that read
    // beyond it.
    for entry in OPERATIONS {
        if ["listAgents", "searchAgents"].contains(&entry.name) {
            continue;
        }
        assert_eq!(
            entry.rule.needs == Needs::Secret,
            entry.rule.effect == Effect::Agent,
            "{}",
            entry.name
        );
    }
}

#[test]
fn a_page_without_the_right_stops_only_its_own_turns() {
    for (request_id, operations, stops) in [
        (None, &["chat"][..], false),
        (Some("another"), &["chat"], false),
        (Some("turn"), &["chat"], true),
        (None, &["chat", "cancelTurn"], true),
    ] {
        let mut alice = Alice::with_model();
        let request = json!({"message": {"id": "m", "role": "user", "parts": [{"type": "text", "text": "hi"}]}});
        let mut request = parse_chat_request(request.to_string().as_bytes()).unwrap();
        start(&alice.agent(&alice.db), &id("s"), &mut request, "turn").unwrap();
        alice.caller = Caller::Scoped(TokenScope {
            session_id: Some(id("s")),
            operations: Some(operations.iter().map(|name| (*name).to_owned()).collect()),
            expires_at: i64::MAX,
            ..TokenScope::default()
        });
        let state = SocketState {
            last_request_id: request_id.map(str::to_owned),
            ..SocketState::new(id("s"), &alice.caller)
        };
        let agent = alice.agent(&alice.db);
        let frame = json!({"type": "cf_agent_chat_request_cancel", "id": "turn"});
        let received = wait_for(handle_frame(&agent, &state, &frame.to_string())).unwrap();
        assert!(received.replies.is_empty());
        let is_stopped = agent.turns.find(&id("s")).unwrap().is_cancelled();
        assert_eq!(is_stopped, stops, "{request_id:?} {operations:?}");
    }
}

/// Sends a frame over a socket of session `s`, whose token has the `chat` preset.
fn frame_of_a_page(alice: &mut Alice, frame: &Value) -> Result<Vec<String>> {
    let token = bearer(Kind::ChatPreset, alice, "chat");
    enter(alice, token.as_deref()).unwrap();
    let state = SocketState::new(id("s"), &alice.caller);
    let agent = alice.agent(&alice.db);
    wait_for(handle_frame(&agent, &state, &frame.to_string())).map(|received| {
        assert!(received.work.is_none());
        received.replies
    })
}

#[test]
fn a_socket_turn_is_limited_by_its_token() {
    let tools = json!([{"name": "mine", "parameters": {"type": "object"}}]);
    for (field, value) in [
        ("model", json!("demo")),
        ("systemInstructions", json!(["Obey."])),
        ("tools", tools.clone()),
        ("clientTools", tools.clone()),
    ] {
        let mut alice = populated();
        let before = alice.db.dump();
        let mut body =
            json!({"message": {"role": "user", "parts": [{"type": "text", "text": "x"}]}});
        body[field] = value;
        let frame = json!({"type": "cf_agent_use_chat_request", "id": "1", "init": {"method": "POST", "body": body.to_string()}});
        let replies = frame_of_a_page(&mut alice, &frame).unwrap();
        assert!(
            replies[0].contains(&format!("does not allow `{field}`")),
            "{replies:?}"
        );
        assert_eq!(alice.db.dump(), before, "{field}");
    }
    // An answer to a tool call can't define tools either.
    let answer = json!({"type": "cf_agent_tool_result", "toolCallId": "c", "toolName": "t", "output": 1, "autoContinue": true, "clientTools": tools});
    let error = frame_of_a_page(&mut populated(), &answer).unwrap_err();
    assert_eq!(
        (error.code, &error.details()["field"]),
        (Code::Forbidden, &json!("clientTools"))
    );
}

#[test]
fn a_refused_clear_is_answered_with_the_current_messages() {
    let mut alice = populated();
    let before = alice.db.dump();
    let replies = frame_of_a_page(&mut alice, &json!({"type": "cf_agent_chat_clear"})).unwrap();
    let shown: Value = serde_json::from_str(&replies[0]).unwrap();
    assert_eq!(shown["type"], "cf_agent_chat_messages");
    assert!(
        shown["messages"]
            .as_array()
            .is_some_and(|messages| !messages.is_empty())
    );
    assert_eq!(alice.db.dump(), before);
}

/// Each entry point at which the holder of a token may start a turn.
#[test]
fn no_entry_point_exceeds_a_tokens_limits() {
    let message =
        |id: &str| json!({"id": id, "role": "user", "parts": [{"type": "text", "text": "x"}]});
    let frame = |id: &str, more: &Value| {
        let mut body = json!({"messages": [message(id)]});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        json!({"type": "cf_agent_use_chat_request", "id": id, "init": {"method": "POST", "body": body.to_string()}})
    };
    let rpc = |operation: &str, body: Value| json!({"type": "rpc", "id": "1", "method": operation, "args": [body]});
    let input = |id: &str| json!({"sessionId": "s", "message": message(id)});
    let options = json!({"limits": null, "holder": "another", "whenBusy": "replace"});
    let mut alice = populated();
    let claims = Claims {
        agent: "alice".to_owned(),
        scope: TokenScope {
            session_id: Some(id("s")),
            limits: Some(PrincipalLimits {
                holder: "token a".to_owned(),
                most: serde_json::from_value(json!({"turnsPerMinute": 1})).unwrap(),
            }),
            expires_at: alice.host.now_ms() + 1000,
            ..TokenScope::default()
        },
    };
    let token = Secret::new(SECRET.to_owned()).unwrap().mint(&claims);
    enter(&mut alice, Some(&token)).unwrap();
    let agent = alice.agent(&alice.db);
    let first = json!({"message": message("first")}).to_string();
    let started = begin_chat(&agent, "s", first.as_bytes()).unwrap();
    let before = alice.db.dump();
    // During the turn, and after it.
    for work in [None, started.work] {
        let is_over = work.is_some();
        let before = match work {
            None => before.clone(),
            Some(work) => {
                alice.run_work(work);
                alice.db.dump()
            }
        };
        for frame in [
            frame("a", &json!({"whenBusy": "queue"})),
            frame("b", &json!({"whenBusy": "replace"})),
            frame("c", &options),
            rpc("runTurn", input("d")),
            rpc("configureAgent", json!({"limits": {}})),
            rpc("mintToken", json!({"expiresIn": 60, "limits": {}})),
            rpc("destroy", json!({"confirm": "alice"})),
        ] {
            let stored: SocketState = serde_json::from_str(
                &serde_json::to_string(&SocketState::new(id("s"), &alice.caller)).unwrap(),
            )
            .unwrap();
            let caller = stored.caller();
            let agent = api::operation::Agent {
                caller: &caller,
                ..alice.agent(&alice.db)
            };
            let outcome = wait_for(handle_frame(&agent, &stored, &frame.to_string())).unwrap();
            assert!(outcome.work.is_none(), "{frame}");
            let reply = &outcome.replies[0];
            assert!(
                ["limits.turnsPerMinute", "requires the Worker's secret"]
                    .iter()
                    .any(|secret| reply.contains(secret))
                    || !is_over && reply.contains("turn of this session is running"),
                "{frame} {reply}"
            );
        }
        let body = json!({"message": message("e"), "whenBusy": "queue"}).to_string();
        let error = begin_chat(&agent, "s", body.as_bytes()).err().unwrap();
        assert_eq!(error.code, Code::RateLimited);
        assert_eq!(alice.db.dump(), before);
    }
}
