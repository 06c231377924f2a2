//! Creates an object that contains everything this build can store: rows in every table and every
//! column, turns interrupted at every step, and a half-finished import. It writes through the
//! public entry points, except for rows of megabytes: `put_long_rows` writes short rows by SQL
//! instead.

use serde_json::{Value, json};

use crate::Alice;
use crate::Dice;
use crate::shared::naive_tree::{NaiveTree, Rules};
use crate::shared::provider::in_session;
use crate::shared::turns::{calls, define, text_answer, user};
use crate::store::sdk_migration::DOCUMENTS_DDL;
use access::{MemoryScope, Principal, PrincipalKind};
use api::transfer::begin_import;
use base::database::Database;
use base::ids::Id;
use base::outbound;
use base::testing::{FixedHost, Script, ScriptedAnswer, Sqlite, cut_off};
use chat::request::answers::{CallAnswer, ClientAnswer, ClientOutcome};
use chat::request::parse_chat_request;
use chat::request::queued_requests::{self, QueuedRequest};
use chat::run::cycle::run;
use chat::run::out_of_band;
use chat::run::resume::resume_some_turns;
use chat::run::running_turns::ClientReply;
use conversation::session::usage_days::DAY_MS;
use lifecycle::testing::guarded_tables;
use store::schema;

/// The documents' tables, which an object starts with.
const DOCUMENTS_ROWS: &str = r#"
INSERT INTO cf_agents_sessions VALUES ('carried', 'alice', 100, 900, '{"title":"old"}');
INSERT INTO cf_agents_events VALUES ('e-1', 'carried', 1, 'user_message', 'hello of old', NULL, 110);
INSERT INTO cf_agents_events VALUES ('e-2', 'carried', 2, 'tool_call_request', NULL,
  '{"toolCalls":[{"id":"c1","name":"echo","arguments":{"text":"hi"}}],"traceId":"t1"}', 120);
INSERT INTO cf_agents_events VALUES ('e-3', 'carried', 3, 'tool_result', 'hi', '{"toolCallId":"c1","toolName":"echo"}', 130);
INSERT INTO cf_agents_events VALUES ('o-1', 'orphaned', 1, 'user_message', 'no session', NULL, 50);
"#;

/// Sessions in the middle of a turn.
pub const INTERRUPTED: &[&str] = &[
    "cut-before-the-answer",
    "cut-again",
    "cut-with-tools-running",
    "cut-after-a-tool",
    "cut-after-an-approval",
    "cut-after-a-clients-answer",
];

/// A session whose message waits for its turn.
pub const QUEUED: &str = "waiting";

/// A session that an import has started to write.
pub const UNFINISHED_IMPORT: &str = "half";

/// The outside of the object, the same whenever the object is opened.
pub fn outbound() -> Script {
    let script = Script::default();
    let blocks = json!([
        {"label": "deployed", "kind": "readonly", "defaultContent": "from the configuration"},
        {"label": "unwanted", "kind": "readonly", "defaultContent": "removed later"}
    ]);
    let settings = [
        ("MODEL", "openai:m"),
        ("OPENAI_API_KEY", "k"),
        ("TOOL_ORIGINS", "https://tools.example"),
        ("MEMORY_BLOCKS", &blocks.to_string()),
    ];
    for (name, value) in settings {
        let mut settings = script.settings.borrow_mut();
        settings.insert(name.to_owned(), value.to_owned());
    }
    let bindings = ["NOTES", "SKILLS_BUCKET"].map(str::to_owned);
    script.bindings.borrow_mut().extend(bindings);
    let objects = [
        ("persona.md", "Speaks plainly.", None),
        (
            "runbooks/restart",
            "Turn it off and on.",
            Some("When stuck"),
        ),
    ];
    let bucket = objects.map(|(key, content, about)| {
        (
            key.to_owned(),
            (content.to_owned(), about.map(str::to_owned)),
        )
    });
    *script.bucket.borrow_mut() = Some(bucket.into());
    script
}

pub fn make(is_searched: bool) -> Alice {
    let db = Sqlite::new();
    db.run(DOCUMENTS_DDL, &[]).unwrap();
    db.run(DOCUMENTS_ROWS, &[]).unwrap();
    schema::migrate(&db, &FixedHost::default()).unwrap();
    db.guard(guarded_tables());
    let mut alice = Alice {
        db,
        outbound: outbound(),
        ..Alice::default()
    };
    configure(&alice);
    define_blocks(&alice);
    fill_blocks(&alice);
    play(&alice);
    fill_session(&alice);
    run_turns(&alice);
    fail(&alice);
    run_provider_turns(&alice);
    alice.ok(
        "forkSession",
        json!({"sessionId": "talked", "name": "a fork"}),
    );
    learn(&alice);
    split_a_run(&alice);
    if is_searched {
        search(&alice);
    }
    leave_calls_pending(&alice);
    interrupt_turns(&mut alice);
    start_import(&alice);
    put_long_rows(&alice, is_searched);
    assert_eq!(alice.turn_rows(), INTERRUPTED.len());
    alice
}

/// Turns that failed: one before the model answered, and one after partial text.
fn fail(alice: &Alice) {
    let chunk = json!({"choices": [{"delta": {"content": "Well, "}}]});
    let broken_off = ScriptedAnswer::stream(&format!("data: {chunk}\n\n"));
    for (text, answer) in [("Why?", None), ("And now?", Some(broken_off))] {
        alice.outbound.answers.borrow_mut().clear();
        if let Some(answer) = answer {
            alice.outbound.answer(Ok(answer));
        }
        alice.chat(json!({"id": "failed", "message": user(text)}));
    }
}

/// A pending proposal, and a session whose learning pass failed.
fn learn(alice: &Alice) {
    alice.ok(
        "configureAgent",
        json!({"learn": {"into": "kb", "after": "manual", "review": "auto"}}),
    );
    let fact = json!({"changes": [
        {"action": "add", "key": "greeting", "content": "The user greets.", "events": ["e1"]}
    ]});
    alice.model_answers(&fact.to_string());
    alice.ok("learn", json!({"sessionId": "carried"}));
    alice.model_answers("No.");
    alice.refused("learn", json!({"sessionId": "talked"}));
}

fn configure(alice: &Alice) {
    alice.ok(
        "configureAgent",
        json!({"limits": {"turnsPerMinute": 1_000, "tokensPerDay": 1_000_000_000},
               "model": "openai:m", "systemInstructions": ["Be kind."], "maxSteps": 5,
               "sessionSearch": true, "vectors": true, "reservedMetadataKeys": ["secret"]}),
    );
    alice.ok(
        "configureCompaction",
        json!({"compactAfter": 900_000, "protectHead": 1}),
    );
    define(alice, "echo", false);
    define(alice, "pay", true);
    alice.ok(
        "defineTool",
        json!({"name": "note", "description": "Notes.", "service": "NOTES",
               "parameters": {"type": "object", "properties": {"text": {"type": "string"}}},
               "headers": {"x-team": "blue"}, "timeoutMs": 60_000, "maxOutputBytes": 1_000}),
    );
    define_server(alice);
}

/// A server that listed one tool.
fn define_server(alice: &Alice) {
    let answer = |id: i64, result: Value| {
        ScriptedAnswer::json(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    };
    *alice.outbound.session.borrow_mut() = Some("of-old".to_owned());
    let listed = json!([{"name": "lookup", "description": "Looks it up.", "inputSchema": {"type": "object"}}]);
    for answer in [
        answer(1, json!({"protocolVersion": "2025-11-25"})),
        Ok(ScriptedAnswer::text(202, "")),
        answer(2, json!({"tools": listed})),
    ] {
        alice.outbound.answer(answer);
    }
    alice.ok(
        "defineTool",
        json!({"name": "wiki", "mcp": "https://tools.example/mcp", "needsApproval": false}),
    );
    *alice.outbound.session.borrow_mut() = None;
    // Without the key, the row cannot be opened.
    let sql = "INSERT INTO cf_agents_tool_authorizations (server, sealed, updated_at)
               VALUES ('wiki', '1.c2VhbGVk', 1)";
    alice.db.run(sql, &[]).unwrap();
}

fn define_blocks(alice: &Alice) {
    alice.ok("createSession", json!({"id": "s", "name": "a tree"}));
    alice.ok(
        "createSession",
        json!({"id": "mixed", "name": "of everything", "metadata": {"a": 1}, "tags": ["odd"], "parentSessionId": "s"}),
    );
    let blocks = [
        json!({"label": "soul", "kind": "readonly", "defaultContent": "Curious."}),
        json!({"label": "Memory", "kind": "writable", "description": "what to know", "maxTokens": 1100, "whenChanged": "remind"}),
        json!({"label": "kb", "kind": "searchable", "retention": {"entriesDays": 36_500}, "metadata": {"owner": "us"}, "tags": ["facts"]}),
        json!({"label": "skills", "kind": "loadable"}),
        json!({"label": "persona", "kind": "readonly", "source": {"r2": "persona.md"}}),
        json!({"label": "runbooks", "kind": "loadable", "source": {"r2Prefix": "runbooks/"}, "modelWrites": true}),
        json!({"label": "profile", "kind": "writable", "source": {"agent": "user:42", "label": "me"}}),
        json!({"label": "notes", "kind": "writable", "source": {"service": "NOTES"}}),
    ];
    for block in &blocks {
        // A remote block belongs to one session, so that the chats of other sessions make no call.
        if block["source"]["service"].is_null() && block["source"]["agent"].is_null() {
            alice.ok("defineBlock", block.clone());
        }
    }
    for mut block in blocks {
        if block["source"]["r2"].is_null() && block["source"]["r2Prefix"].is_null() {
            alice.outbound.answer(ScriptedAnswer::json(&json!({})));
            block["sessionId"] = json!("mixed");
            alice.ok("defineBlock", block);
            alice.outbound.answers.borrow_mut().clear();
        }
    }
    // A block from a file, with a tool's text.
    let brought = json!({"sessionId": "mixed", "label": "brought", "kind": "writable"});
    alice.ok("defineBlock", brought);
    let sql = "UPDATE cf_agents_blocks SET origin = 'import' WHERE key = 'brought'";
    alice.db.run(sql, &[]).unwrap();
    alice.ok(
        "setBlock",
        json!({"sessionId": "mixed", "label": "brought", "content": "It rains.", "source": "tool"}),
    );
    alice.ok(
        "updateSession",
        json!({"sessionId": "mixed", "retention": {"eventsDays": 36_500}, "pinned": true}),
    );
    alice.ok("removeBlock", json!({"label": "unwanted"}));
}

fn fill_blocks(alice: &Alice) {
    let set = |name: &str, value: &str| {
        let mut settings = alice.outbound.settings.borrow_mut();
        settings.insert(name.to_owned(), value.to_owned());
    };
    for session in [Value::Null, json!("mixed")] {
        for content in ["Likes tea.", "Likes tea and rain."] {
            alice.ok(
                "setBlock",
                json!({"sessionId": session, "label": "memory", "content": content, "reason": "told", "source": "user"}),
            );
        }
        set("EMBEDDING_MODEL", "workers-ai:@cf/m");
        for (key, title) in [("umbrella", Some("Rain")), ("kitten", None)] {
            let vector = json!({"data": [[1.0, 0.5, 0.25]]});
            alice.outbound.answer(ScriptedAnswer::json(&vector));
            alice.set_entry(
                json!({"sessionId": session, "label": "kb", "key": key, "title": title,
                       "content": format!("What one says of a {key} in the drizzle."),
                       "metadata": {"place": "Oslo", "level": 3}, "tags": ["weather", key],
                       "source": "user", "events": ["m1", "m2"]}),
            );
        }
        for (key, content) in [("home", "Oslo"), ("home", "Bergen"), ("gone", "x")] {
            let vector = json!({"data": [[1.0, 0.5, 0.25]]});
            alice.outbound.answer(ScriptedAnswer::json(&vector));
            alice.set_entry(
                json!({"sessionId": session, "label": "kb", "key": key, "title": "Home",
                       "content": content, "validFrom": 5}),
            );
        }
        let vector = json!({"data": [[1.0, 0.5, 0.25]]});
        alice.outbound.answer(ScriptedAnswer::json(&vector));
        alice.set_entry(
            json!({"sessionId": session, "label": "kb", "key": "work", "title": "Work",
                   "content": "By the harbour", "supersedes": ["home"]}),
        );
        let input = json!({"sessionId": session, "label": "kb", "key": "gone"});
        alice.ok("deleteEntry", input);
        alice
            .outbound
            .settings
            .borrow_mut()
            .remove("EMBEDDING_MODEL");
        for key in ["deploy", "rollback"] {
            alice.ok(
                "putSkill",
                json!({"sessionId": session, "label": "skills", "key": key,
                       "content": format!("How to {key}."), "description": key,
                       "metadata": {"level": 1}, "tags": ["ops"], "source": "import"}),
            );
        }
    }
    alice.ok("listSkills", json!({"label": "runbooks"}));
    let skill = |label: &str, key: &str| json!({"sessionId": "mixed", "label": label, "key": key});
    for (label, key) in [
        ("skills", "deploy"),
        ("skills", "rollback"),
        ("runbooks", "restart"),
    ] {
        alice.ok("loadSkill", skill(label, key));
    }
    alice.ok("unloadSkill", skill("skills", "rollback"));
    alice.ok("freezePrompt", json!({}));
    alice.ok("freezePrompt", json!({"sessionId": "mixed"}));
    alice.ok(
        "callTool",
        json!({"sessionId": "mixed", "name": "set_context",
               "arguments": {"label": "memory", "content": "Likes snow."}}),
    );
}

/// A tree of user messages with branches, overlays, deletes and choices.
fn play(alice: &Alice) {
    let rules = Rules {
        name: "the maker's".to_owned(),
        moves: 0..80,
        compared_every: 10,
    };
    rules.play(
        alice,
        NaiveTree::default(),
        &mut Dice(0x9E37_79B9_7F4A_7C15),
    );
    // One row of each kind, in addition to the random moves.
    let event_ids = alice.append_texts(&["first", "second", "between", "third", "fourth"]);
    // One in the middle, and the last one.
    let deletion = json!({"sessionId": "s", "messageIds": [event_ids[2], event_ids[4]]});
    alice.ok("deleteMessages", deletion);
    let compaction = json!({"sessionId": "s", "summary": "Counted.", "fromId": event_ids[0], "toId": event_ids[1]});
    alice.ok("addCompaction", compaction);
    alice.ok("setLeaf", json!({"sessionId": "s", "id": event_ids[1]}));
}

fn fill_session(alice: &Alice) {
    let picture = format!("data:image/png;base64,{}", "iVBOR".repeat(1_000));
    let append = |event: Value| {
        alice.ok(
            "appendEvents",
            json!({"sessionId": "mixed", "events": [event]}),
        )
    };
    let message = |message: Value| {
        alice.ok(
            "appendMessage",
            json!({"sessionId": "mixed", "message": message}),
        )
    };
    append(
        json!({"action": "system_instruction", "content": "In rhymes.", "metadata": {"by": "us"}, "createdAt": 500}),
    );
    append(
        json!({"id": "asked", "action": "user_message", "content": "Which zeppelin deployments failed?"}),
    );
    append(
        json!({"action": "tool_call_request", "content": "", "toolCalls": [{"id": "x", "name": "echo", "arguments": {"of": "zeppelin"}}]}),
    );
    append(
        json!({"action": "tool_result", "toolCallId": "x", "toolName": "echo", "content": "None did.", "isError": true}),
    );
    append(json!({"action": "agent_message", "content": "None."}));
    for id in ["picture", "picture-again"] {
        message(
            json!({"id": id, "role": "user", "parts": [{"type": "text", "text": "look"}, {"type": "file", "mediaType": "image/png", "url": picture}]}),
        );
    }
    message(
        json!({"id": "dated", "role": "user", "createdAt": "yesterday", "parts": [{"type": "text", "text": "dated"}], "metadata": {"n": 1}}),
    );
    alice.ok(
        "updateMessage",
        json!({"sessionId": "mixed", "message": {"id": "asked", "role": "user", "parts": [{"type": "text", "text": "Which zeppelin deployment failed?"}]}}),
    );
    message(
        json!({"id": "long", "role": "user", "parts": [{"type": "text", "text": "walrus and gorilla"}]}),
    );
    alice.ok(
        "addUsage",
        json!({"sessionId": "mixed", "inputTokens": 7, "outputTokens": 5, "cost": 0.5,
               "cachedInputTokens": 3, "id": "call-1"}),
    );
    // A deleted session leaves the row that records its lifetime. Its next lifetime has its own
    // cursors.
    for id in ["gone", "twice"] {
        alice.ok("createSession", json!({"id": id}));
        let event = json!({"action": "user_message", "content": "soon gone"});
        alice.ok("appendEvents", json!({"sessionId": id, "events": [event]}));
        alice.ok("deleteSession", json!({"sessionId": id}));
    }
    alice.ok("createSession", json!({"id": "twice"}));
    let settings =
        json!({"sessionId": "mixed", "protectHead": 1, "tailTokenBudget": 1, "minTailMessages": 1});
    alice.ok("configureCompaction", settings);
    alice
        .outbound
        .answer(text_answer("They spoke of zeppelins."));
    let compacted = alice.ok("compact", json!({"sessionId": "mixed"}));
    assert!(compacted["compaction"].is_object(), "{compacted}");
    append(json!({"id": "after", "action": "user_message", "content": "after it"}));
    // The model returns no answer, and the session stores the error.
    alice.ok("compact", json!({"sessionId": "mixed"}));
}

/// A run of two events, and a branch that splits it.
fn split_a_run(alice: &Alice) {
    let event = |id: &str| json!({"id": id, "action": "agent_message", "content": id});
    alice.ok("createSession", json!({"id": "split"}));
    let events = [event("run"), event("one-way")];
    alice.ok(
        "appendEvents",
        json!({"sessionId": "split", "events": events}),
    );
    let branch = json!({"sessionId": "split", "parentId": "run", "events": [event("another-way")]});
    alice.ok("appendEvents", branch);
}

/// Whole turns, with a tool, a write to the memory, and the model's reasoning.
/// A turn that a request in a provider's API began.
fn run_provider_turns(alice: &Alice) {
    alice.outbound.answers.borrow_mut().clear();
    alice.outbound.answer(text_answer("You spoke another API."));
    let body = json!({"model": "default", "messages": [{"role": "user", "content": "spoken"}]});
    alice.complete(&in_session("spoken"), body);
}

fn run_turns(alice: &Alice) {
    alice.outbound.answer(calls(&[
        ("c1", "echo", json!({"text": "hi"})),
        (
            "c2",
            "set_context",
            json!({"label": "memory", "content": "Likes fog."}),
        ),
    ]));
    alice.outbound.answer(Ok(ScriptedAnswer::text(200, "hi")));
    alice.outbound.answer(text_answer("You like fog."));
    alice.chat(json!({"id": "talked", "message": user("remember the fog")}));
    // The usage of the first of these turns is in the row of the second.
    alice.ok(
        "configureAgent",
        json!({"prices": {"input": 1, "output": 2}}),
    );
    let received = json!({
        "choices": [{"message": {"content": "Heard."}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}});
    for text in ["once", "twice"] {
        alice.outbound.answer(ScriptedAnswer::json(&received));
        alice.chat(json!({"id": "talked-twice", "message": user(text)}));
    }
    // A session's spending remains after its deletion. The first day has the number 0.
    alice.host.advance(DAY_MS);
    alice.outbound.answer(ScriptedAnswer::json(&received));
    alice.chat(json!({"id": "gone", "message": user("gone")}));
    alice.outbound.answer(Ok(ScriptedAnswer::text(400, "No.")));
    alice.chat(json!({"id": "gone", "message": user("and failed")}));
    alice.ok("deleteSession", json!({"sessionId": "gone"}));
    let usage = json!({"sessionId": "talked", "inputTokens": 5, "model": "other:m"});
    alice.ok("addUsage", usage);
    assert!(alice.outbound.answers.borrow().is_empty());
}

fn search(alice: &Alice) {
    let name = "EMBEDDING_MODEL".to_owned();
    let model = "workers-ai:@cf/m".to_owned();
    alice
        .outbound
        .settings
        .borrow_mut()
        .insert(name.clone(), model);
    // Each round answers the requests for vectors that the round before has shown.
    for _ in 0..4 {
        for request in alice.embedding_requests() {
            let vectors = vec![[1.0, 0.5, 0.25]; request.as_array().unwrap().len()];
            alice
                .outbound
                .answer(ScriptedAnswer::json(&json!({"data": vectors})));
        }
        alice.outbound.ai_calls.borrow_mut().clear();
        alice.ok("search", json!({"query": "zeppelin"}));
        alice.outbound.answers.borrow_mut().clear();
    }
    alice.outbound.settings.borrow_mut().remove(&name);
    alice.outbound.answers.borrow_mut().clear();
}

fn tools() -> Value {
    json!([{"name": "where", "description": "Where am I?", "parameters": {"type": "object"}}])
}

fn ask_for_approval(alice: &Alice, session: &str) -> Value {
    alice
        .outbound
        .answer(calls(&[("c1", "pay", json!({"sum": 5}))]));
    alice.chat(json!({"id": session, "message": user("pay")}));
    let page = alice.ok("getHistory", json!({"sessionId": session}));
    page["messages"][1].clone()
}

fn ask_the_client(alice: &Alice, session: &str) -> Value {
    alice.outbound.answer(calls(&[("c1", "where", json!({}))]));
    alice.chat(json!({"id": session, "message": user("where"), "tools": tools()}));
    let page = alice.ok("getHistory", json!({"sessionId": session}));
    page["messages"][1].clone()
}

/// Finished turns whose calls wait for an approval or for the client.
fn leave_calls_pending(alice: &Alice) {
    ask_for_approval(alice, "open-approval");
    ask_the_client(alice, "open-client-call");
}

fn interrupt_turns(alice: &mut Alice) {
    let body = |session: &str| json!({"id": session, "message": user("go on"), "systemInstructions": ["Briefly."], "tools": tools()});
    drop(alice.begin(&body("cut-again")).unwrap());
    alice.crash();
    // The turn is resumed once, which is counted, and is interrupted again.
    drop(resume_some_turns(&alice.agent(&alice.db)).works);
    alice.crash();

    drop(alice.begin(&body("cut-before-the-answer")).unwrap());

    let cut = |body: Value| {
        let started = alice.begin(&body).unwrap();
        alice.outbound.hangs_after_answers.set(true);
        cut_off(run(&alice.agent(&alice.db), started.work.unwrap()));
        alice.outbound.hangs_after_answers.set(false);
        assert!(alice.outbound.answers.borrow().is_empty());
    };
    let two = || {
        calls(&[
            ("c1", "echo", json!({"n": 1})),
            ("c2", "note", json!({"text": "x"})),
        ])
    };
    alice.outbound.answer(two());
    alice.outbound.answer(Ok(ScriptedAnswer::text(200, "one")));
    cut(body("cut-with-tools-running"));

    alice.outbound.answer(calls(&[("c1", "echo", json!({}))]));
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(200, "echoed")));
    cut(body("cut-after-a-tool"));

    let mut message = ask_for_approval(alice, "cut-after-an-approval");
    message["parts"][1]["state"] = json!("approval-responded");
    message["parts"][1]["approval"]["approved"] = json!(true);
    cut(json!({"id": "cut-after-an-approval", "messages": [user("pay"), message]}));

    let mut message = ask_the_client(alice, "cut-after-a-clients-answer");
    message["parts"][1]["state"] = json!("output-available");
    message["parts"][1]["output"] = json!({"place": "Rome"});
    let session = "cut-after-a-clients-answer";
    cut(json!({"id": session, "messages": [user("where"), message], "tools": tools()}));
    answer_early(alice, session);
    leave_queued_message(alice);
    add_failed_callback(alice);
    alice.crash();
}

/// A callback about a turn's end that failed permanently.
fn add_failed_callback(alice: &Alice) {
    let callback = json!({"onTurnEnd": {"url": "https://tools.example/ended"}});
    alice.ok("configureAgent", callback);
    alice.outbound.answer(text_answer("Told."));
    alice.chat(json!({"id": "told", "message": user("tell")}));
    alice.fail_callbacks();
    alice.ok("configureAgent", json!({"onTurnEnd": null}));
}

/// A queued message without a running turn: the object was evicted between two turns.
fn leave_queued_message(alice: &Alice) {
    alice.ok("createSession", json!({"id": QUEUED}));
    let body = json!({"message": user("waiting")}).to_string();
    let request = parse_chat_request(body.as_bytes()).unwrap();
    let messages: Vec<_> = request.messages.iter().collect();
    let waiting = QueuedRequest::new(&request, &messages, Principal::default());
    let session = Id::parse(QUEUED.to_owned()).unwrap();
    queued_requests::insert(&alice.db, &session, "t-waiting", &waiting, false).unwrap();
}

/// A client's out-of-band result for a call that the running turn has not made.
fn answer_early(alice: &Alice, session: &str) {
    let id = |id: &str| Id::parse(id.to_owned()).unwrap();
    let answer = ClientAnswer {
        tool_call_id: id("c9"),
        outcome: ClientOutcome::error(None),
        provider_data: None,
    };
    let reply = ClientReply {
        answer: CallAnswer::Tool(answer),
        continues: true,
        client_tools: Vec::new(),
        asked_by: Some(PrincipalKind::Secret),
        memory_scope: MemoryScope::Agent,
        limits: None,
        trace: None,
    };
    out_of_band::insert(&alice.db, &id(session), &reply).unwrap();
}

fn start_import(alice: &Alice) {
    let other = Alice::with_session();
    let texts: Vec<String> = (0..600).map(|n| n.to_string()).collect();
    other.append_texts(&texts.iter().map(String::as_str).collect::<Vec<_>>());
    let file = other.export("s").unwrap();
    let mut import =
        begin_import(&alice.agent(&alice.db), UNFINISHED_IMPORT.to_owned(), false).unwrap();
    let half = &file.as_bytes()[..file.len() - 200];
    import.push(&alice.db, &alice.host, half).unwrap();
}

/// The rows that megabytes would have created: the slices of the message `long`, two rows of the
/// index for its words, and two parts of the picture.
fn put_long_rows(alice: &Alice, is_searched: bool) {
    let run = |sql: &str| {
        alice.db.unguarded(|| alice.db.run(sql, &[])).unwrap();
    };
    run("INSERT INTO cf_agents_slices (session_id, seq, field, part, text)
         SELECT session_id, seq, 'message', 0, substr(message, 1, 20) FROM cf_agents_events WHERE id = 'long'");
    run("INSERT INTO cf_agents_slices (session_id, seq, field, part, text)
         SELECT session_id, seq, 'message', 1, substr(message, 21) FROM cf_agents_events WHERE id = 'long'");
    run(
        "UPDATE cf_agents_events SET sliced_bytes = length(message), message = NULL WHERE id = 'long'",
    );
    run("INSERT INTO cf_agents_media (session_id, hash, part, text)
         SELECT session_id, hash, 1, substr(text, 101) FROM cf_agents_media WHERE part = 0");
    run("UPDATE cf_agents_media SET text = substr(text, 1, 100) WHERE part = 0");
    if is_searched {
        // The second word has its own row in the index, and the row's position in `long`.
        run("INSERT INTO cf_agents_search_parts (rowid_, number, seq)
             SELECT 4503599627370496, s.number, e.seq
               FROM cf_agents_events AS e JOIN cf_agents_sessions AS s ON s.id = e.session_id
              WHERE e.id = 'long'");
        run("INSERT INTO cf_agents_search (rowid, stems, words, about)
             VALUES (4503599627370496, 'gorilla', 'gorilla', 'user')");
        build_half_of_the_index(&run);
    }
}

/// The index as it is between two batches: the first events of one session are missing.
fn build_half_of_the_index(run: &dyn Fn(&str)) {
    run("DELETE FROM cf_agents_search
          WHERE rowid IN (SELECT (s.number << 32) | e.seq
                            FROM cf_agents_events AS e JOIN cf_agents_sessions AS s ON s.id = e.session_id
                           WHERE s.id = 'talked' AND e.seq < 3)");
    run(
        "INSERT INTO cf_agents_search_progress (number, indexed_from)
         SELECT number, 3 FROM cf_agents_sessions WHERE id = 'talked'",
    );
    run(r#"UPDATE cf_agents_config SET value = '{"number":0,"from":0}' WHERE key = 'search'"#);
}

/// The model's answer to a resumed turn.
pub fn resumed_answer() -> Result<ScriptedAnswer, outbound::CallFailure> {
    text_answer("Here I am again.")
}
