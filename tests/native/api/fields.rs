//! The permission to set each field. Every field of a request is a name, an amount or a switch. The
//! switches are listed in [`SWITCHES`], and each is tested at each entry point with each kind of
//! token. A new field fails the first test until it is classified here.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Alice;
use crate::api::examples::populated;
use access::{Allow, Caller, Needs, TokenScope};
use api::chat::begin_chat;
use api::dispatch::dispatch;
use api::operation::Agent;
use api::socket::{SocketState, handle_frame};
use api::table::OPERATIONS;
use base::database::Database as _;
use base::ids::Id;
use base::testing::wait_for;
use chat::request::delivery::Delivery;
use chat::run::cycle::run;

/// Fields that name something, or contain the text to write or to find. A caller's token decides
/// which names and texts are allowed, for every such field; `attacks.rs` tests that.
const CONTENT: &[&str] = &[
    "sessionId",
    "messageId",
    "messageIds",
    "eventIds",
    "compactionId",
    "leafId",
    "atId",
    "turnId",
    "id",
    "fromId",
    "toId",
    "parentId",
    "parentSessionId",
    "label",
    "key",
    "name",
    "version",
    "expectedLeafId",
    "expectedVersion",
    "message",
    "messages",
    "events",
    "content",
    "summary",
    "title",
    "description",
    "metadata",
    "tags",
    "changes",
    "reason",
    "arguments",
    "query",
    "queries",
    "defaultContent",
    "inputTokens",
    "outputTokens",
    "cachedInputTokens",
    "contextTokens",
    "cost",
    "kind",
    "supersedes",
    "validFrom",
    "validUntil",
    "ids",
    "places",
    "receipt",
];

/// Fields that set the amount and the format of an answer.
const SHAPE: &[&str] = &[
    "limit",
    "cursor",
    "before",
    "since",
    "until",
    "afterSeq",
    "beforeSeq",
    "tail",
    "actions",
    "roles",
    "by",
    "failed",
    "maxBytes",
    "forModel",
    "format",
    "asOf",
    "dryRun",
    "contents",
    "keepMedia",
    "where",
    "labels",
    "status",
];

/// The callers that may set a switch.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Who {
    /// Every caller that may run the operation: the switch concerns only its own request or
    /// session, or a token has to name the operation.
    Runs,
    /// The holder of the secret. From others the field is refused.
    Secret,
    /// The holder of a token that allows this. From others the field is refused.
    Allowed(&'static str),
    /// The field has an effect only if it is true, for any caller.
    True,
    /// For other callers the field has no effect.
    IgnoredWithout(&'static str),
}

/// Fields that switch something on or off. `chat` means the body of a chat request, over HTTP and
/// in a frame, and `frame` the other frames of a socket.
const SWITCHES: &[(&str, &str, Who)] = &[
    ("addUsage", "model", Who::Runs),
    (
        "appendMessage",
        "source",
        Who::IgnoredWithout("agentMessages"),
    ),
    (
        "appendMessages",
        "source",
        Who::IgnoredWithout("agentMessages"),
    ),
    (
        "updateMessage",
        "source",
        Who::IgnoredWithout("agentMessages"),
    ),
    (
        "upsertMessage",
        "source",
        Who::IgnoredWithout("agentMessages"),
    ),
    ("buildWorkingContext", "asTurn", Who::Runs),
    ("buildWorkingContext", "maxTokens", Who::Runs),
    ("buildWorkingContext", "memory", Who::Runs),
    ("buildWorkingContext", "systemInstructions", Who::Runs),
    ("createSession", "pinned", Who::Secret),
    ("createSession", "retention", Who::Secret),
    ("configureCompaction", "compactAfter", Who::Runs),
    ("configureCompaction", "minTailMessages", Who::Runs),
    ("configureCompaction", "protectHead", Who::Runs),
    ("configureCompaction", "tailTokenBudget", Who::Runs),
    ("defineBlock", "maxTokens", Who::Runs),
    ("defineBlock", "modelWrites", Who::Runs),
    ("defineBlock", "retention", Who::Secret),
    ("defineBlock", "source", Who::Secret),
    ("defineBlock", "whenChanged", Who::Runs),
    ("setBlock", "deliveryId", Who::True),
    ("appendToBlock", "deliveryId", Who::True),
    ("revertBlock", "deliveryId", Who::True),
    ("clearBlocks", "deliveryId", Who::True),
    ("setEntry", "deliveryId", Who::True),
    ("deleteEntry", "deliveryId", Who::True),
    ("putSkill", "deliveryId", Who::True),
    ("deleteSkill", "deliveryId", Who::True),
    ("deleteEntry", "purge", Who::Runs),
    ("deleteEvents", "purge", Who::Runs),
    ("deleteMessages", "purge", Who::Runs),
    ("deleteSession", "purge", Who::Runs),
    ("deleteSkill", "purge", Who::Runs),
    ("removeBlock", "purge", Who::Runs),
    ("runTurn", "model", Who::Allowed("models")),
    (
        "runTurn",
        "systemInstructions",
        Who::Allowed("systemInstructions"),
    ),
    ("runTurn", "tools", Who::Allowed("clientTools")),
    ("runTurn", "whenBusy", Who::Allowed("cancelTurn")),
    ("runTurn", "deliveryId", Who::True),
    // memory/metadata.rs tests which source a caller may claim.
    ("putSkill", "source", Who::Runs),
    ("setEntry", "source", Who::Runs),
    ("setBlock", "source", Who::Runs),
    ("appendToBlock", "source", Who::Runs),
    ("consolidate", "profile", Who::Runs),
    ("decideProposal", "approve", Who::Runs),
    ("decideProposal", "reject", Who::Runs),
    ("updateSession", "pinned", Who::Secret),
    ("updateSession", "retention", Who::Secret),
    ("chat", "trigger", Who::Runs),
    ("chat", "model", Who::Allowed("models")),
    (
        "chat",
        "systemInstructions",
        Who::Allowed("systemInstructions"),
    ),
    ("chat", "tools", Who::Allowed("clientTools")),
    ("chat", "clientTools", Who::Allowed("clientTools")),
    ("chat", "whenBusy", Who::Allowed("cancelTurn")),
    ("chat", "deliveryId", Who::True),
    ("frame", "approved", Who::Runs),
    ("frame", "autoContinue", Who::Runs),
    ("frame", "trigger", Who::Runs),
    ("frame", "clientTools", Who::Allowed("clientTools")),
    ("import", "allowSources", Who::Secret),
];

/// Fields of frames that are not switches: the frame's type, its turn or call, and a chat request,
/// whose own fields count as in a body.
const FRAME_CONTENT: &[&str] = &[
    "body",
    "kind",
    "id",
    "requestId",
    "method",
    "args",
    "init",
    "probeId",
    "toolCallId",
    "output",
    "state",
    "errorText",
    "reason",
];

/// The purpose of a request's header, and the callers from which it is accepted.
#[derive(Clone, Copy, Debug, PartialEq)]
enum HeaderUse {
    /// It identifies the caller: the secret or a token, which are verified.
    Credential,
    /// It can only cause a refusal or change the answer's format.
    Shape,
    /// It is trusted information about the caller, accepted from the secret alone:
    /// `memory/unavailable_reasons.rs` and `api/rights.rs` test each with every kind of caller.
    Believed,
}

/// Every header of a request that is read, by the edge or by `api/request.rs`.
const HEADERS: &[(&str, HeaderUse)] = &[
    ("authorization", HeaderUse::Credential),
    ("sec-websocket-protocol", HeaderUse::Credential),
    ("x-api-key", HeaderUse::Credential),
    // Signed by the Worker that forwards the request.
    ("FRONT_HEADER", HeaderUse::Credential),
    // Accepted only with that signature.
    ("LEASE_HEADER", HeaderUse::Shape),
    ("host", HeaderUse::Shape),
    ("origin", HeaderUse::Shape),
    ("sec-fetch-site", HeaderUse::Shape),
    ("access-control-request-method", HeaderUse::Shape),
    ("upgrade", HeaderUse::Shape),
    ("content-length", HeaderUse::Shape),
    ("content-encoding", HeaderUse::Shape),
    ("accept", HeaderUse::Shape),
    ("content-type", HeaderUse::Shape),
    ("mcp-protocol-version", HeaderUse::Shape),
    ("mcp-method", HeaderUse::Shape),
    ("mcp-name", HeaderUse::Shape),
    ("mcp-session-id", HeaderUse::Shape),
    ("TRACEPARENT", HeaderUse::Believed),
    ("TRACESTATE", HeaderUse::Believed),
    ("VIA_HEADER", HeaderUse::Believed),
];

/// The files of the edge. Only the runtime can run them whole, so their texts are read.
fn edge_sources() -> Vec<String> {
    fn walk(folder: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs")
                // These read the headers of answers.
                && !path.to_string_lossy().contains("outbound")
            {
                found.push(std::fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut found = Vec::new();
    let edge = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/edge");
    walk(std::path::Path::new(edge), &mut found);
    // The caller is identified here, from the headers that the edge reads.
    let request = include_str!("../../../crates/api/src/request.rs");
    let (request, _) = request.split_once("#[cfg(test)]").unwrap();
    found.push(request.to_owned());
    found
}

#[test]
fn every_trusted_header_depends_on_its_sender() {
    let mut found = BTreeSet::new();
    for source in edge_sources() {
        for (at, _) in source.match_indices("header(") {
            let (arguments, _) = source[at + 7..].split_once(')').unwrap();
            let name = arguments
                .rsplit(',')
                .map(str::trim)
                .find(|name| !name.is_empty());
            let name = name.unwrap_or_default().trim_matches('"');
            // A variable; the names of variables are listed elsewhere.
            if !["name", "name: &str"].contains(&name) {
                found.insert(name.to_owned());
            }
        }
        let names = source.split_once("let names = [").map(|(_, rest)| rest);
        for name in names
            .and_then(|rest| rest.split_once(']'))
            .iter()
            .flat_map(|(names, _)| names.split(','))
        {
            found.insert(name.trim().trim_matches('"').to_owned());
        }
        // In the edge, only the functions that check the caller read trusted headers.
        for reader in ["parse_via(", "parse_parent("] {
            assert!(!source.contains(reader), "{reader}");
        }
    }
    found.remove("");
    let known = HEADERS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(found, known, "declare in HEADERS who may set it");
    let believed = HEADERS.iter().filter(|(_, of)| *of == HeaderUse::Believed);
    assert_eq!(believed.count(), 3);
}

/// The fields of a struct in a source file, as JSON names them.
fn fields_of(source: &str, name: &str) -> Vec<String> {
    let (_, rest) = source.split_once(&format!("struct {name}")).unwrap();
    let (body, _) = rest.split_once("\n}").unwrap();
    let field = |line: &str| Some(line.trim().split_once(": ")?.0.to_owned());
    let fields = body.lines().filter(|line| !line.trim().starts_with('#'));
    fields.filter_map(field).map(|name| camel(&name)).collect()
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let (head, tail) = word.split_at(1);
        name + &head.to_uppercase() + tail
    })
}

#[test]
fn every_request_field_has_its_rule() {
    let mut found = BTreeSet::new();
    for entry in OPERATIONS
        .iter()
        .filter(|entry| entry.rule.needs != Needs::Secret)
    {
        let schema = (entry.input)(&mut schemars::SchemaGenerator::default());
        let schema = serde_json::to_value(&schema).unwrap();
        // An input shared with another operation is a reference.
        let named = schema["$ref"].as_str().unwrap_or("#");
        let schema = schema.pointer(named.trim_start_matches('#')).unwrap();
        for field in schema["properties"]
            .as_object()
            .into_iter()
            .flat_map(|it| it.keys())
        {
            found.insert((entry.name, field.clone()));
        }
    }
    let bodies = [
        (
            "chat",
            include_str!("../../../crates/chat/src/request/mod.rs"),
            "ChatRequestBody",
        ),
        (
            "frame",
            include_str!("../../../crates/chat/src/frames/incoming.rs"),
            "Frame<'a>",
        ),
    ];
    for (entry_point, source, name) in bodies {
        let fields = fields_of(source, name);
        assert!(fields.len() > 8, "{name}");
        found.extend(fields.into_iter().map(|field| (entry_point, field)));
    }
    found.insert(("import", "allowSources".to_owned()));
    let switches: BTreeSet<_> = SWITCHES
        .iter()
        .map(|(entry_point, field, _)| (*entry_point, (*field).to_owned()))
        .collect();
    let is_plain = |(entry_point, field): &&(&str, String)| {
        let others = match *entry_point {
            "frame" => FRAME_CONTENT,
            _ => SHAPE,
        };
        CONTENT.contains(&field.as_str()) || others.contains(&field.as_str())
    };
    let without: Vec<_> = found
        .iter()
        .filter(|field| !switches.contains(field) && !is_plain(field))
        .collect();
    assert!(
        without.is_empty(),
        "declare in SWITCHES who may set {without:?}"
    );
    let missing: Vec<_> = switches.difference(&found).collect();
    assert!(missing.is_empty(), "removed fields: {missing:?}");
}

/// The caller of the request.
#[derive(Clone, Debug, PartialEq)]
enum Principal {
    Secret,
    /// The token's session, and the rights that it grants: none, all, or one.
    Token(Option<&'static str>, &'static str),
}

fn principals() -> Vec<Principal> {
    let allowances = [
        "nothing",
        "models",
        "systemInstructions",
        "clientTools",
        "agentMessages",
        "agentMemory",
        "cancelTurn",
        "everything",
    ];
    let tokens = [Some("s"), None].into_iter().flat_map(|session| {
        allowances
            .iter()
            .map(move |allowance| Principal::Token(session, allowance))
    });
    tokens.chain([Principal::Secret]).collect()
}

impl Principal {
    fn allows(&self, right: &str) -> bool {
        match self {
            Principal::Secret => true,
            Principal::Token(_, allowance) => *allowance == right || *allowance == "everything",
        }
    }

    fn caller(&self) -> Caller {
        let Principal::Token(session, _) = self else {
            return Caller::Owner;
        };
        let mut operations = vec![
            "chat",
            "runTurn",
            "appendMessage",
            "appendMessages",
            "updateMessage",
            "upsertMessage",
            "defineBlock",
            "createSession",
            "appendEvents",
        ];
        operations.extend(self.allows("cancelTurn").then_some("cancelTurn"));
        let models = self.allows("models").then(|| id("demo"));
        Caller::Scoped(TokenScope {
            session_id: session.map(id),
            operations: Some(operations.into_iter().map(str::to_owned).collect()),
            allow: Allow {
                models: models.into_iter().collect(),
                system_instructions: self.allows("systemInstructions"),
                client_tools: self.allows("clientTools"),
                agent_messages: self.allows("agentMessages"),
                agent_memory: self.allows("agentMemory"),
                purge: false,
                tools: Vec::new(),
            },
            expires_at: i64::MAX,
            ..TokenScope::default()
        })
    }
}

fn id(text: &str) -> Id {
    Id::parse(text.to_owned()).unwrap()
}

/// An entry point that starts a turn.
#[derive(Clone, Copy, Debug, PartialEq)]
enum EntryPoint {
    RunTurn,
    Chat,
    Socket,
}

/// Starts a turn of session `s` and runs it to its end, unless another one runs. An error
/// names the field that it refuses.
fn run_turn_with(alice: &Alice, entry_point: EntryPoint, more: &Value) -> Result<(), String> {
    let message = json!({"id": "m", "role": "user", "parts": [{"type": "text", "text": "x"}]});
    let mut body = json!({"message": message});
    body.as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    let agent = alice.agent(&alice.db);
    let named = |error: base::error::Error| {
        let field = error.field.as_deref();
        field.unwrap_or(error.code.name()).to_owned()
    };
    let work = match entry_point {
        EntryPoint::RunTurn => {
            body["sessionId"] = json!("s");
            let turn = dispatch(&agent, "runTurn", body.to_string());
            // A turn that waits for another one was accepted, too.
            let mut turn = std::pin::pin!(turn);
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            loop {
                match turn.as_mut().poll(&mut context) {
                    std::task::Poll::Ready(reply) => return reply.map(drop).map_err(named),
                    std::task::Poll::Pending => match alice.starter.take() {
                        Some(work) => drop(wait_for(run(&agent, work))),
                        None => return Ok(()),
                    },
                }
            }
        }
        EntryPoint::Chat => {
            begin_chat(&agent, "s", body.to_string())
                .map_err(named)?
                .work
        }
        EntryPoint::Socket => {
            let frame = json!({"type": "cf_agent_use_chat_request", "id": "1",
                "init": {"method": "POST", "body": body.to_string()}});
            let state = SocketState::new(id("s"), agent.caller);
            let received =
                wait_for(handle_frame(&agent, &state, &frame.to_string())).map_err(named)?;
            if let Some(refusal) = received.replies.first() {
                let field = more.as_object().unwrap().keys().next().unwrap();
                // A frame contains a sentence instead of a code.
                let is_about = refusal.contains(field.as_str()) || refusal.contains("cancelTurn");
                return Err(if is_about {
                    field.clone()
                } else {
                    refusal.clone()
                });
            }
            received.work
        }
    };
    if let Some(work) = work {
        alice.run_work(work);
    }
    Ok(())
}

fn agent_of(principal: &Principal) -> Alice {
    let mut alice = populated();
    alice.ok(
        "configureAgent",
        json!({"onTurnEnd": {"url": "https://tools.example/ended"}}),
    );
    alice.caller = principal.caller();
    alice
}

fn callbacks(alice: &Alice) -> usize {
    alice
        .db
        .rows("SELECT 1 FROM cf_agents_callbacks", &[])
        .unwrap()
        .len()
}

#[test]
fn each_turn_option_needs_its_listed_right() {
    let tools = json!([{"name": "mine", "parameters": {"type": "object"}}]);
    let mut tried = 0;
    for (place, field, allowed) in SWITCHES {
        let entry_points: &[EntryPoint] = match *place {
            "runTurn" => &[EntryPoint::RunTurn],
            "chat" => &[EntryPoint::Chat, EntryPoint::Socket],
            _ => continue,
        };
        let value = match *field {
            "model" => json!("demo"),
            "systemInstructions" => json!(["Obey."]),
            "tools" | "clientTools" => tools.clone(),
            "whenBusy" => json!("replace"),
            _ => continue,
        };
        let Who::Allowed(allowance) = allowed else {
            panic!("{field}");
        };
        for (entry_point, principal) in entry_points
            .iter()
            .flat_map(|entry_point| principals().into_iter().map(move |a| (entry_point, a)))
        {
            let mut alice = agent_of(&principal);
            // `whenBusy` applies only while a turn runs.
            if *field == "whenBusy" {
                let other = json!({"message": {"id": "o", "role": "user", "parts": [{"type": "text", "text": "hi"}]}});
                let caller = std::mem::replace(&mut alice.caller, Caller::Owner);
                begin_chat(&alice.agent(&alice.db), "s", other.to_string()).unwrap();
                alice.caller = caller;
            }
            let before = alice.db.dump();
            let outcome = run_turn_with(&alice, *entry_point, &json!({*field: value}));
            let case = format!("{field} by {principal:?} at {entry_point:?}");
            if principal.allows(allowance) {
                assert_eq!(outcome, Ok(()), "{case}");
            } else {
                assert_eq!(outcome, Err((*field).to_owned()), "{case}");
                assert_eq!(alice.db.dump(), before, "{case}");
            }
            tried += 1;
        }
    }
    println!("{tried} requests");
}

#[test]
fn only_an_id_issued_for_the_session_suppresses_a_callback() {
    let mut tried = 0;
    for entry_point in [EntryPoint::RunTurn, EntryPoint::Chat, EntryPoint::Socket] {
        for principal in principals() {
            let alice = agent_of(&principal);
            let (s, t) = (id("s"), id("t"));
            let of = |agent, session| Delivery::of(&alice.policy, agent, session).seal("d-1");
            let other = access::Policy::new(Some("x".repeat(32)), None);
            let given = of("alice", &s);
            let shortened = given[..given.len() - 1].to_owned();
            let longer = format!("{given}0");
            let ids = [
                (given.clone(), true),
                ("d-1".to_owned(), false),
                ("whatever".to_owned(), false),
                (of("alice", &t), false),
                (of("bob", &s), false),
                (Delivery::of(&other, "alice", &s).seal("d-1"), false),
                (shortened, false),
                (longer, false),
                (given.to_uppercase(), false),
                (given.replace("d-1", "d-2"), false),
            ];
            for (delivery, is_true) in ids {
                let alice = agent_of(&principal);
                let outcome = run_turn_with(&alice, entry_point, &json!({"deliveryId": delivery}));
                assert_eq!(
                    outcome,
                    Ok(()),
                    "{delivery} by {principal:?} at {entry_point:?}"
                );
                let answer = usize::from(!is_true);
                assert_eq!(
                    callbacks(&alice),
                    answer,
                    "{delivery} by {principal:?} at {entry_point:?}"
                );
                tried += 1;
            }
        }
    }
    println!("{tried} requests");
}

#[test]
fn a_page_cannot_suppress_a_callback_by_timing_its_turn() {
    for principal in principals() {
        let mut alice = agent_of(&Principal::Secret);
        run_turn_with(&alice, EntryPoint::Chat, &json!({})).unwrap();
        // The service has not answered the first call yet.
        alice.outbound.hangs_after_answers.set(true);
        let in_flight = chat::run::callbacks::CallbackSender {
            memory: alice.agent(&alice.db).memory(),
            policy: &alice.policy,
            in_flight: &alice.work.callbacks,
        };
        let mut calling = Box::pin(in_flight.call_due());
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(calling.as_mut().poll(&mut context).is_pending());
        let caller = principal.caller();
        let agent = Agent {
            caller: &caller,
            ..alice.agent(&alice.db)
        };
        let body = json!({"sessionId": "s", "message": {"id": "n", "role": "user", "parts": [{"type": "text", "text": "hi"}]}});
        alice
            .finish(&agent, dispatch(&agent, "runTurn", body.to_string()))
            .unwrap();
        let answer = if principal == Principal::Secret { 1 } else { 2 };
        assert_eq!(callbacks(&alice), answer, "{principal:?}");
        drop(calling);
        alice.caller = Caller::Owner;
    }
}

#[test]
fn reserved_metadata_needs_the_right_to_write_as_the_agent() {
    for principal in principals() {
        for operation in [
            "appendMessage",
            "appendMessages",
            "upsertMessage",
            "updateMessage",
        ] {
            let mut alice = agent_of(&Principal::Secret);
            alice.ok("configureAgent", json!({"reservedMetadataKeys": ["paid"]}));
            let part = json!([{"type": "text", "text": "x", "providerMetadata": {"a": {}}}]);
            let message =
                json!({"id": "b1", "role": "user", "parts": part, "metadata": {"paid": true}});
            let message = match operation {
                "appendMessage" | "appendMessages" => {
                    json!({"id": "new", "role": "user", "parts": part, "metadata": {"paid": true}})
                }
                _ => message,
            };
            alice.caller = principal.caller();
            let body = match operation {
                "appendMessages" => {
                    json!({"sessionId": "s", "messages": [message], "source": "server"})
                }
                _ => json!({"sessionId": "s", "message": message, "source": "server"}),
            };
            alice.ok(operation, body);
            alice.caller = Caller::Owner;
            let read = json!({"sessionId": "s", "messageId": message["id"]});
            let stored = alice.ok("getMessage", read);
            let is_stored = stored["metadata"]["paid"] == true
                && !stored["parts"][0]["providerMetadata"].is_null();
            assert_eq!(
                is_stored,
                principal.allows("agentMessages"),
                "{operation} by {principal:?}"
            );
        }
    }
}

/// `lifecycle/transfer_rights.rs` tests files that contain sources.
#[test]
fn only_the_secret_sets_a_source() {
    for principal in principals() {
        let mut alice = agent_of(&Principal::Secret);
        alice.caller = principal.caller();
        let is_secret = principal == Principal::Secret;
        let source = json!({"sessionId": "s", "label": "theirs", "kind": "writable",
            "source": {"agent": "bob"}});
        let defined = alice
            .call("defineBlock", source)
            .map(drop)
            .map_err(|error| error.code.name());
        let expected = if is_secret { Ok(()) } else { Err("forbidden") };
        assert_eq!(defined, expected, "{principal:?}");
    }
}
