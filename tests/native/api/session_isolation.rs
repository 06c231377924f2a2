//! Isolation between sessions: two agents differ only in their other sessions, and a token for one
//! session gets the same answers from both, for every operation and entry point. Compared are
//! status, body, counted rows, and requests to models.
//!
//! The steps of SQLite may differ slightly, because the row after a range may belong to another
//! session. They don't grow with the rows of other sessions.

use std::cell::Cell;

use serde_json::{Value, json};

use crate::Alice;
use crate::api::examples::{Example, examples, populate};
use crate::shared::turns::text_answer;
use access::{Caller, TokenScope};
use api::dispatch::dispatch;
use api::mcp::{Clients, McpHeaders, McpRequest, answer};
use api::operation::Agent;
use api::operations::message_reads::get_messages;
use api::operations::tokens::Preset;
use api::socket::{SocketState, handle_frame};
use api::table::RULES;
use api::transfer::begin_import;
use base::database::atomically;
use base::error::{Error, Result};
use base::ids::Id;
use base::testing::Dice;
use base::testing::{FixedHost, Script, ScriptedAnswer, wait_for};
use context::compaction::auto::CompactionTracker;

/// The vocabulary of the sessions. Session `s` uses the first half.
const WORDS: [&str; 12] = [
    "parcel", "lisbon", "refund", "kettle", "invoice", "harbour", "4711", "otter", "quartz",
    "violet", "marble", "zebra",
];

const OWN_WORDS: usize = WORDS.len() / 2;

/// The maximum difference in SQLite steps that other sessions may cause in an operation.
const MAX_STEPS: i32 = 400;

fn id(text: &str) -> Id {
    Id::parse(text.to_owned()).unwrap()
}

fn some_words(dice: &mut Dice, among: &[&str]) -> String {
    let count = 1 + dice.roll(6);
    let words: Vec<&str> = (0..count).map(|_| among[dice.roll(among.len())]).collect();
    words.join(" ")
}

fn user_event(id: Option<String>, text: &str) -> Value {
    let mut event = json!({"action": "user_message", "content": text});
    if let Some(id) = id {
        event["id"] = id.into();
    }
    event
}

/// Creates session `s` and the other data that every agent of this test has.
fn populate_alike(alice: &Alice) {
    populate(alice);
    alice.ok(
        "configureAgent",
        json!({"sessionSearch": true, "model": "openai:m"}),
    );
    let mut dice = Dice(7);
    let own: Vec<Value> = (0..40)
        .map(|_| user_event(None, &some_words(&mut dice, &WORDS[..OWN_WORDS])))
        .collect();
    alice.ok("appendEvents", json!({"sessionId": "s", "events": own}));
    for n in 0..12 {
        let text = some_words(&mut dice, &WORDS[..OWN_WORDS]);
        for session in [json!("s"), json!(null)] {
            alice.ok(
                "setEntry",
                json!({"sessionId": session, "label": "kb", "key": format!("e{n}"), "content": text}),
            );
        }
    }
}

/// Creates random other sessions: some before session `s` in the order of names, some after.
struct Neighbors<'a> {
    alice: &'a Alice,
    dice: Dice,
    seed: u64,
    made: Cell<usize>,
}

impl Neighbors<'_> {
    fn name(&mut self) -> String {
        const NAMES: [&str; 6] = ["a", "n", "r", "sa", "ss", "z"];
        NAMES[self.dice.roll(NAMES.len())].to_owned()
    }

    fn play(&mut self, moves: usize) {
        for _ in 0..moves {
            let name = self.name();
            self.alice.host.advance(1 + self.dice.roll(500) as i64);
            // A request that is refused because the session is missing changes nothing.
            let _ = self.step(&name);
        }
    }

    fn call(&self, operation: &str, body: Value) -> Result<Value> {
        self.alice.call(operation, body)
    }

    fn step(&mut self, name: &str) -> Result<Value> {
        let count = self.made.get() + 1;
        self.made.set(count);
        let text = some_words(&mut self.dice, &WORDS);
        let session = json!(name);
        let event = format!("e{}", self.dice.roll(40));
        match self.dice.roll(26) {
            0..=3 => {
                let body = json!({"id": name, "name": text, "metadata": {"n": count}});
                self.call("createSession", body)
            }
            4..=8 => {
                let many = 1 + self.dice.roll(80);
                let events: Vec<Value> = (0..many)
                    .map(|n| {
                        let id = (n % 3 == 0).then(|| format!("e{}", self.dice.roll(40)));
                        user_event(id, &some_words(&mut self.dice, &WORDS))
                    })
                    .collect();
                self.call("appendEvents", json!({"sessionId": session, "events": events}))
            }
            9 => {
                let text = format!("{text} ").repeat(90_000 / text.len());
                let events = [user_event(None, &text.repeat(10))];
                self.call("appendEvents", json!({"sessionId": session, "events": events}))
            }
            10 | 11 => {
                for (label, kind) in [("kb", "searchable"), ("memory", "writable"), ("skills", "loadable"), ("x", "searchable")] {
                    let body = json!({"sessionId": session, "label": label, "kind": kind, "whenChanged": "remind"});
                    self.call("defineBlock", body)?;
                }
                for n in 0..1 + self.dice.roll(60) {
                    let content = some_words(&mut self.dice, &WORDS);
                    let label = ["kb", "x"][self.dice.roll(2)];
                    let body = json!({"sessionId": session, "label": label, "key": format!("e{n}"), "content": content});
                    self.call("setEntry", body)?;
                }
                let body = json!({"sessionId": session, "label": "skills", "key": "k", "content": text});
                self.call("putSkill", body)?;
                let body = json!({"sessionId": session, "label": "skills", "key": "k"});
                self.call("loadSkill", body)?;
                let body = json!({"sessionId": session, "label": "memory", "content": text});
                self.call("setBlock", body)?;
                self.call("freezePrompt", json!({"sessionId": session}))
            }
            12 => {
                self.call("deleteEntry", json!({"sessionId": session, "label": "kb", "key": event}))?;
                self.call("removeBlock", json!({"sessionId": session, "label": "x", "purge": true}))
            }
            13 => self.call("addUsage", json!({"sessionId": session, "inputTokens": 900, "contextTokens": 400, "outputTokens": 3, "cost": 1.5, "id": event})),
            14 => self.call("deleteEvents", json!({"sessionId": session, "eventIds": [event]})),
            15 => self.call("clearMessages", json!({"sessionId": session})),
            16 => self.call("deleteSession", json!({"sessionId": session})),
            17 => self.call("forkSession", json!({"sessionId": session})),
            18 => {
                // A complete or interrupted import that advances the row numbers.
                let file = self.alice.export(name)?;
                let copy = format!("{name}-{count}-{}", self.seed);
                let mut import = begin_import(&self.alice.agent(&self.alice.db), copy, true)?;
                let cut = [file.len(), file.len() / 2][self.dice.roll(2)];
                import.push(&self.alice.db, &self.alice.host, &file.as_bytes()[..cut])?;
                if cut == file.len() {
                    import.finish(&self.alice.db, &self.alice.host)?;
                }
                Ok(json!(null))
            }
            19 => {
                let update = json!({"id": event, "role": "user", "parts": [{"type": "text", "text": text}]});
                self.call("updateMessage", json!({"sessionId": session, "message": update}))
            }
            20 => self.call("setLeaf", json!({"sessionId": session, "id": event})),
            21 => {
                self.call("addCompaction", json!({"sessionId": session, "summary": text, "fromId": event, "toId": event}))?;
                self.call("configureCompaction", json!({"sessionId": session, "compactAfter": 50}))
            }
            22 => {
                self.alice.fail_in(name, &text);
                Ok(json!(null))
            }
            23 => {
                self.alice.stop_in(name, &text);
                Ok(json!(null))
            }
            24 => {
                self.alice.outbound.answer(text_answer(&text));
                let message = json!({"id": format!("turn-{count}"), "role": "user", "parts": [{"type": "text", "text": text}]});
                self.call("runTurn", json!({"sessionId": session, "message": message}))
            }
            _ => {
                // As the holder of a token for that session only.
                let caller = Caller::Scoped(TokenScope {
                    session_id: Some(id(name)),
                    expires_at: i64::MAX,
                    ..TokenScope::default()
                });
                let agent = Agent {
                    caller: &caller,
                    ..self.alice.agent(&self.alice.db)
                };
                let body = json!({"query": text}).to_string();
                wait_for(dispatch(&agent, "search", body.as_bytes()))?;
                Ok(json!(null))
            }
        }
    }
}

/// An agent with session `s`; with a seed, it also has other sessions. `is_searched`: all sessions
/// are indexed.
fn agent(seed: Option<u64>, is_searched: bool) -> Alice {
    let mut alice = Alice::with_model();
    let play = |alice: &mut Alice, salt: u64| {
        let Some(seed) = seed else { return };
        alice.host = FixedHost::of(seed * 2 + salt);
        let dice = Dice((seed * 2 + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        let mut neighbors = Neighbors {
            alice,
            dice,
            seed: seed * 2 + salt,
            made: Cell::new(0),
        };
        neighbors.play(40);
    };
    play(&mut alice, 0);
    alice.host = FixedHost::default();
    populate_alike(&alice);
    alice.fail_in("s", "parcel");
    alice.stop_in("s", "refund");
    if is_searched {
        alice.ok("search", json!({"query": "anything"}));
    }
    play(&mut alice, 1);
    if seed.is_some() {
        // More failures than one page, all newer than those of session `s`.
        alice.fail_in_many_others(3_000);
        alice.fail_in("n", "invoice");
        alice.stop_in("n", "kettle");
    }
    alice
}

/// The request that a caller sends.
enum Request {
    Operation(&'static str, Value),
    Frame(Value),
    Mcp(&'static str, Value),
    Messages,
    Export,
}

impl Request {
    fn name(&self) -> String {
        match self {
            Request::Operation(name, body) => {
                let mut body = body.to_string();
                body.truncate(200);
                format!("{name} {body}")
            }
            Request::Frame(frame) => format!("frame {frame}"),
            Request::Mcp(method, params) => format!("mcp {method} {params}"),
            Request::Messages => "get-messages".to_owned(),
            Request::Export => "export".to_owned(),
        }
    }

    fn operation(&self) -> &'static str {
        match self {
            Request::Operation(name, _) => name,
            Request::Mcp(..) => "callTool",
            Request::Frame(_) => "chat",
            Request::Messages | Request::Export => "getHistory",
        }
    }

    fn of(&self, agent: &Agent<'_>, alice: &Alice) -> Result<String> {
        match self {
            Request::Operation(name, body) => {
                let body = body.to_string();
                let reply = alice.finish(agent, dispatch(agent, name, body.as_bytes()))?;
                Ok(reply.body.into_string())
            }
            Request::Frame(frame) => {
                let state = SocketState::new(id("s"), agent.caller);
                let frame = frame.to_string();
                let received = alice.finish(agent, handle_frame(agent, &state, &frame))?;
                if let Some(work) = received.work {
                    wait_for(chat::run::cycle::run(agent, work));
                }
                Ok(received.replies.join("\n"))
            }
            Request::Mcp(method, params) => {
                let message =
                    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
                let request = McpRequest {
                    session_id: Some("s".to_owned()),
                    headers: McpHeaders {
                        content_type: Some("application/json"),
                        ..McpHeaders::default()
                    },
                    body: message.to_string().into_bytes(),
                    clients: &Clients::default(),
                    outbox: None,
                };
                let outcome = alice.finish(agent, answer(agent, request));
                Ok(format!("{} {}", outcome.status, outcome.body.into_string()))
            }
            Request::Messages => {
                get_messages(agent, "s".to_owned()).map(|reply| reply.body.into_string())
            }
            Request::Export => {
                let mut export = api::transfer::begin_export(agent, "s".to_owned())?;
                let mut file = String::new();
                while let Some(page) = export.next_page(&alice.db)? {
                    file.push_str(&page);
                }
                Ok(file)
            }
        }
    }
}

fn requests() -> Vec<Request> {
    let mut requests: Vec<Request> = examples()
        .into_iter()
        .map(|Example { operation, body }| Request::Operation(operation, body))
        .collect();
    let mut queries: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
    queries.extend(
        [
            "parcel zebra",
            "\"lisbon refund\"",
            "kett*",
            "z*",
            "otter quartz violet",
            "nobody",
            "c",
        ]
        .map(str::to_owned),
    );
    for query in queries {
        let mut add = |name, body| requests.push(Request::Operation(name, body));
        add("search", json!({"query": query}));
        add(
            "search",
            json!({"query": query, "sessionId": "s", "roles": ["user"]}),
        );
        for session in [json!("s"), json!(null)] {
            let body = json!({"sessionId": session, "label": "kb", "query": query});
            add("searchContext", body);
            let filter = json!({"tags": {"none": ["odd"]}, "metadata": {"n": {"gt": 0}}});
            let body =
                json!({"sessionId": session, "label": "kb", "query": query, "where": filter});
            add("searchContext", body);
        }
        let filter = json!({"tags": {"none": ["odd"]}});
        add("search", json!({"query": query, "where": filter}));
        add("listSessions", json!({"where": filter}));
        add(
            "listEntries",
            json!({"sessionId": "s", "label": "kb", "where": filter}),
        );
        let search = json!({"label": "kb", "query": query});
        add(
            "callTool",
            json!({"sessionId": "s", "name": "search_context", "arguments": search}),
        );
        let search = json!({"query": query});
        add(
            "callTool",
            json!({"sessionId": "s", "name": "session_search", "arguments": search}),
        );
        requests.push(Request::Mcp(
            "tools/call",
            json!({"name": "search", "arguments": search}),
        ));
    }
    for (name, body) in [
        ("listSessions", json!({"limit": 1})),
        ("listSessions", json!({"cursor": "99999999999999-3"})),
        ("listSessions", json!({"cursor": "1060000-3"})),
        ("createSession", json!({"id": "s"})),
        ("getSession", json!({"sessionId": "z"})),
        ("getChanges", json!({"sessionId": "s", "since": 1 << 20})),
        ("getHistory", json!({"sessionId": "s", "limit": 3})),
        (
            "loadEvents",
            json!({"sessionId": "s", "tail": true, "limit": 5}),
        ),
        ("getUsage", json!({"sessionId": "s", "by": "model"})),
        ("getTurns", json!({"sessionId": "s"})),
        ("getTurns", json!({"sessionId": "s", "failed": true})),
        ("getTurns", json!({"sessionId": "s", "limit": 1})),
        ("getTurn", json!({"turnId": "1.f4240.s"})),
        (
            "setEntry",
            json!({"sessionId": "s", "label": "kb", "key": "new", "content": "zebra parcel"}),
        ),
        (
            "appendMessage",
            json!({"sessionId": "s", "message": {"id": "new", "role": "user", "parts": [{"type": "text", "text": "zebra parcel"}]}}),
        ),
        (
            "deleteMessages",
            json!({"sessionId": "s", "messageIds": ["new", "b1"]}),
        ),
    ] {
        requests.push(Request::Operation(name, body));
    }
    for (method, params) in [
        ("tools/list", json!({})),
        ("resources/list", json!({})),
        ("resources/read", json!({"uri": "memory://block/memory"})),
        ("prompts/get", json!({"name": "system"})),
    ] {
        requests.push(Request::Mcp(method, params));
    }
    let message = json!({"role": "user", "parts": [{"type": "text", "text": "zebra?"}]});
    let body = json!({"messages": [message]}).to_string();
    for frame in [
        json!({"type": "cf_agent_use_chat_request", "id": "1", "init": {"method": "POST", "body": body}}),
        json!({"type": "cf_agent_stream_resume_request"}),
        json!({"type": "rpc", "id": "1", "method": "search", "args": [{"query": "zebra"}]}),
    ] {
        requests.push(Request::Frame(frame));
    }
    requests.extend([Request::Messages, Request::Export]);
    requests
}

/// The operations named by a token for session `s`, by the kind of token. `None`: the
/// token names none.
fn tokens(operation: &str) -> [(&'static str, Option<Vec<String>>); 4] {
    let of = |preset: Preset| {
        let names = preset.operations(RULES);
        Some(names.iter().map(|name| (*name).to_owned()).collect())
    };
    [
        ("no operations", None),
        ("this operation", Some(vec![operation.to_owned()])),
        ("preset read", of(Preset::Read)),
        ("preset chat", of(Preset::Chat)),
    ]
}

/// Everything that a caller can observe.
#[derive(Debug, PartialEq)]
struct Observed {
    body: Result<String, (String, String, String)>,
    rows_returned: usize,
    rows_written: u64,
    /// The requests to models and tools.
    sent: Vec<String>,
}

fn send(alice: &mut Alice, send: &Request, operations: Option<Vec<String>>) -> (Observed, i32) {
    alice.host = FixedHost::of(99);
    alice.caller = Caller::Scoped(TokenScope {
        session_id: Some(id("s")),
        operations,
        expires_at: i64::MAX,
        ..TokenScope::default()
    });
    let settings = alice.outbound.settings.take();
    alice.outbound = Script::default();
    alice.outbound.settings.replace(settings);
    for _ in 0..3 {
        alice.outbound.answer(text_answer("An answer."));
    }
    alice.outbound.answer(Ok(ScriptedAnswer::text(500, "")));
    alice.crash();
    alice.compactions = CompactionTracker::default();
    let (_, _) = (alice.db.take_costs(), alice.db.take_steps());
    let mut body = Err(Error::storage("not asked"));
    // The request's writes are rolled back.
    let _: Result<()> = atomically(&alice.db, || {
        body = send.of(&alice.agent(&alice.db), alice);
        Err(Error::storage("taken back"))
    });
    let (rows_returned, rows_written) = alice.db.take_costs();
    let sent = alice.outbound.calls.borrow();
    let sent = sent.iter().map(|call| format!("{call:?}")).collect();
    let reply = Observed {
        body: body.map_err(|error| {
            let details = format!("{:?}", error.details());
            (error.code.name().to_owned(), error.message.clone(), details)
        }),
        rows_returned,
        rows_written,
        sent,
    };
    (reply, alice.db.take_steps())
}

#[test]
fn other_sessions_do_not_affect_a_session_tokens_answers() {
    let mut cells = 0;
    let mut found = Vec::new();
    for is_searched in [false, true] {
        let mut alone = agent(None, is_searched);
        for seed in 1..=3_u64 {
            let mut among_others = agent(Some(seed), is_searched);
            for request in &requests() {
                for (kind, operations) in tokens(request.operation()) {
                    cells += 1;
                    let (expected, steps_alone) = send(&mut alone, request, operations.clone());
                    let (answer, steps) = send(&mut among_others, request, operations);
                    let case = format!(
                        "seed {seed}, searched: {is_searched}, {kind}: {}",
                        request.name()
                    );
                    if answer != expected {
                        let (mut a, mut b) = (format!("{expected:?}"), format!("{answer:?}"));
                        a.truncate(1500);
                        b.truncate(1500);
                        found.push(format!("{case}\n  alone  {a}\n  beside {b}"));
                    } else if (steps - steps_alone).abs() > MAX_STEPS {
                        found.push(format!(
                            "{case}: {steps_alone} steps alone, {steps} beside others"
                        ));
                    }
                }
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} of {cells} cells:\n{}",
        found.len(),
        found.join("\n")
    );
    assert!(cells > 1000, "{cells}");
}
