//! MCP servers that an agent uses: lists of tools, calls, and invalid answers.

use std::rc::Rc;

use serde_json::{Value, json};

use super::turns::{calls, text_answer, text_of, user};
use crate::Alice;
use access::{Allow, Caller, TokenScope};
use api::chat::begin_chat;
use base::database::Database as _;
use base::outbound::{CallFailure, Endpoint, OutboundRequest, RequestForm};
use base::testing::{ScriptedAnswer, cut_off};
use chat::run::cycle::run;
use chat::tools::mcp::server::{REFRESH_CHANGED_MS, REFRESH_EVERY_MS};

const URL: &str = "https://tools.example/mcp";

type Answer = Result<ScriptedAnswer, CallFailure>;

fn result(id: i64, result: Value) -> Answer {
    ScriptedAnswer::json(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn events(messages: &[Value]) -> Answer {
    let events = messages
        .iter()
        .map(|message| format!("event: message\ndata: {message}\n\n"));
    Ok(ScriptedAnswer::stream(&events.collect::<String>()))
}

fn initialized() -> Answer {
    result(
        1,
        json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "x", "version": "1"}}),
    )
}

fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("The {name}."), "inputSchema": {"type": "object"}})
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

impl Alice {
    fn with_server(tools: &Value, more: &Value) -> Self {
        let alice = Self::with_model();
        alice.define_server(tools, more).unwrap();
        alice
    }

    /// Defines the server `gh`, which lists these tools.
    pub fn define_server(&self, tools: &Value, more: &Value) -> Result<Value, base::error::Error> {
        self.answers([
            initialized(),
            Ok(ScriptedAnswer::text(202, "")),
            result(2, json!({"tools": tools})),
        ]);
        let mut input = json!({"name": "gh", "mcp": URL});
        let fields = input.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        self.call("defineTool", input)
    }

    fn answers<const N: usize>(&self, answers: [Answer; N]) {
        for answer in answers {
            self.outbound.answer(answer);
        }
    }

    /// The names of the listed tools, and whether each needs approval.
    fn tools(&self) -> Vec<(String, bool)> {
        let listed = self.ok("listTools", json!({}));
        let tools = listed["tools"].as_array().unwrap().iter();
        tools
            .map(|tool| {
                let name = tool["name"].as_str().unwrap().to_owned();
                (name, tool["needsApproval"] == true)
            })
            .collect()
    }

    /// A turn in which the model calls the tool `gh_a` once. Returns the text that the
    /// model reads.
    fn call_in_turn(&self, answers: Vec<Answer>) -> String {
        let before = self.outbound.calls.borrow().len();
        self.outbound
            .answer(calls(&[("c1", "gh_a", json!({"q": 1}))]));
        for answer in answers {
            self.outbound.answer(answer);
        }
        self.outbound.answer(text_answer("Done."));
        let chunks = self.chat_text("go");
        assert!(text_of(&chunks).ends_with("Done."), "{chunks:?}");
        assert!(
            self.outbound.answers.borrow().is_empty(),
            "every scripted answer was used"
        );
        let calls = self.outbound.calls.borrow();
        assert!(calls.len() > before + 2);
        let request: Value = serde_json::from_str(&calls.last().unwrap().body).unwrap();
        let result = request["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        result["content"].as_str().unwrap().to_owned()
    }

    fn sent_call(&self, index: usize) -> (OutboundRequest, Value) {
        let call = self.outbound.calls.borrow()[index].clone();
        let body = serde_json::from_str(&call.body).unwrap();
        (call, body)
    }
}

fn header<'a>(call: &'a OutboundRequest, name: &str) -> Option<&'a str> {
    let mut found = call.headers.iter().filter(|(named, _)| named == name);
    found.next().map(|(_, value)| value.as_str())
}

fn off() -> Value {
    json!({"needsApproval": false})
}

#[test]
fn tools_are_listed_and_called_as_the_protocol_specifies() {
    let alice = Alice::with_model();
    *alice.outbound.session.borrow_mut() = Some("S-1".to_owned());
    let more = json!({"needsApproval": false, "headers": {"x-team": "blue"}, "timeoutMs": 7_000, "maxOutputBytes": 2_000});
    let defined = alice
        .define_server(&json!([tool("b"), tool("a")]), &more)
        .unwrap();
    assert_eq!(defined["mcp"], URL);
    assert_eq!(defined["revision"], "2025-11-25");
    assert_eq!(
        defined["tools"][0],
        json!({"name": "gh_a", "description": "The a.", "parameters": {"type": "object"}, "server": "gh", "needsApproval": false})
    );
    assert_eq!(defined["tools"][1]["name"], "gh_b");
    let (hello, body) = alice.sent_call(0);
    assert_eq!(hello.endpoint, Endpoint::Url(URL.to_owned()));
    assert_eq!(body["method"], "initialize");
    assert_eq!(body["params"]["protocolVersion"], "2025-11-25");
    assert_eq!(
        header(&hello, "accept"),
        Some("application/json, text/event-stream")
    );
    assert_eq!(header(&hello, "mcp-session-id"), None);
    assert_eq!(header(&hello, "mcp-protocol-version"), None);
    let (note, body) = alice.sent_call(1);
    assert_eq!(
        body,
        json!({"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}})
    );
    assert_eq!(header(&note, "mcp-session-id"), Some("S-1"));
    let (list, body) = alice.sent_call(2);
    assert_eq!(
        body,
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}})
    );
    assert_eq!(header(&list, "mcp-session-id"), Some("S-1"));
    assert_eq!(header(&list, "mcp-protocol-version"), Some("2025-11-25"));

    assert_eq!(
        alice.call_in_turn(vec![result(1, text("It is so."))]),
        "It is so."
    );
    let (call, body) = alice.sent_call(4);
    assert_eq!(
        body,
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": {"q": 1}}})
    );
    assert_eq!(header(&call, "mcp-session-id"), Some("S-1"));
    assert_eq!(header(&call, "x-team"), Some("blue"));
    assert!(header(&call, "idempotency-key").is_some());
    assert_eq!(
        (call.limits.total_ms, call.limits.max_bytes),
        (7_000, 2_000)
    );
    // The model receives both tools.
    let (_, body) = alice.sent_call(3);
    assert_eq!(body["tools"][1]["function"]["name"], "gh_b");

    let listed = alice.ok("listTools", json!({}));
    assert_eq!(listed["servers"][0]["name"], "gh");
    assert_eq!(listed["servers"][0]["headers"], json!({"x-team": "blue"}));
    assert_eq!(listed["servers"][0]["tools"], Value::Null);
    assert_eq!(
        alice.ok("removeTool", json!({"name": "gh"}))["removed"],
        true
    );
    assert_eq!(alice.ok("listTools", json!({})), json!({"tools": []}));
}

#[test]
fn a_result_is_the_servers_answer_or_an_error() {
    let alice = Alice::with_server(&json!([tool("a")]), &off());
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {}});
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": text("Streamed.")});
    let failed = |status, text: &str| Ok(ScriptedAnswer::text(status, text));
    let broken = |last: CallFailure| {
        let mut answer = events(std::slice::from_ref(&progress)).ok().unwrap();
        answer.chunks.push(Err(last));
        Ok(answer)
    };
    let refusal =
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": "No such tool."}});
    for (answer, expected) in [
        (events(&[progress.clone(), answer.clone()]), "Streamed."),
        (
            result(
                1,
                json!({"content": [{"type": "text", "text": "Not you."}], "isError": true}),
            ),
            "Error: Not you.",
        ),
        (
            result(1, json!({"content": [], "structuredContent": {"n": 1}})),
            r#"{"n":1}"#,
        ),
        (
            ScriptedAnswer::json(&refusal),
            "Error: `gh_a` returned no result: it refused: No such tool.",
        ),
        (
            result(9, text("For another.")),
            "Error: `gh_a` returned no result: it answered a different request.",
        ),
        (
            result(1, json!([1])),
            "Error: `gh_a` failed: its answer was not a tool result.",
        ),
        (
            events(std::slice::from_ref(&progress)),
            "Error: `gh_a` returned no result: it ended its answer without a result.",
        ),
        (
            broken(CallFailure::DeadlineExceeded { total_ms: 300_000 }),
            "Error: `gh_a` returned no result: its answer took longer than 300 s.",
        ),
        (
            broken(CallFailure::TooLarge { max_bytes: 262_144 }),
            "Error: `gh_a` returned no result: its answer is larger than 262144 bytes.",
        ),
        (
            Err(CallFailure::TimedOut { silence_ms: 30_000 }),
            "Error: `gh_a` returned no result: it sent nothing for 30 s.",
        ),
        (
            failed(200, "<html>"),
            "Error: `gh_a` returned no result: it returned neither JSON nor an event stream.",
        ),
        (
            failed(302, ""),
            "Error: `gh_a` returned no result: it returned status 302, and redirects are not followed.",
        ),
        (
            failed(401, "Who?"),
            "Error: `gh_a` returned no result: it returned status 401.",
        ),
        (
            failed(404, "Where?"),
            "Error: `gh_a` returned no result: it returned status 404.",
        ),
        (
            failed(202, ""),
            "Error: `gh_a` returned no result: it returned neither JSON nor an event stream.",
        ),
        (
            ScriptedAnswer::json(&json!([answer])),
            "Error: `gh_a` returned no result: it returned something other than a JSON-RPC message.",
        ),
    ] {
        assert_eq!(alice.call_in_turn(vec![answer]), expected);
    }
}

#[test]
fn requests_from_a_server_are_refused() {
    let alice = Alice::with_server(&json!([tool("a")]), &off());
    let request = |id: Value, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}});
    let mut messages = vec![request(json!("p"), "ping")];
    messages.extend((0..20).map(|n| request(json!(n), "sampling/createMessage")));
    messages.push(json!({"jsonrpc": "2.0", "id": 1, "result": text("Fine.")}));
    let refused = (0..8).map(|_| Ok(ScriptedAnswer::text(202, "")));
    let mut answers = vec![events(&messages)];
    answers.extend(refused);
    assert_eq!(alice.call_in_turn(answers), "Fine.");
    let (_, ping) = alice.sent_call(5);
    assert_eq!(ping, json!({"jsonrpc": "2.0", "id": "p", "result": {}}));
    let (_, sampling) = alice.sent_call(6);
    assert_eq!(sampling["error"]["code"], -32_601);
    assert_eq!(sampling["id"], 0);
}

#[test]
fn defining_a_server_that_cannot_list_tools_writes_nothing() {
    let alice = Alice::with_model();
    let note = || Ok(ScriptedAnswer::text(202, ""));
    let page = |cursor: &str| result(2, json!({"tools": [], "nextCursor": cursor}));
    let many: Vec<Value> = (0..600).map(|n| tool(&format!("t{n}"))).collect();
    let revision = |revision: &str| result(1, json!({"protocolVersion": revision}));
    let before = alice.db.dump();
    for (answers, expected) in [
        (
            vec![Err(CallFailure::Unreachable {
                cause: String::new(),
            })],
            "it could not be reached",
        ),
        (
            vec![Err(CallFailure::TooLarge { max_bytes: 1 << 20 })],
            "larger than 1048576 bytes",
        ),
        (
            vec![Ok(ScriptedAnswer::text(301, ""))],
            "status 301, and redirects are not followed",
        ),
        (
            vec![Ok(ScriptedAnswer::text(401, ""))],
            "it returned status 401",
        ),
        // The list is requested once more in the newest revision.
        (
            vec![
                Ok(ScriptedAnswer::text(404, "")),
                Ok(ScriptedAnswer::text(404, "")),
            ],
            "it returned status 404",
        ),
        (
            vec![Ok(ScriptedAnswer::text(200, "Hello."))],
            "neither JSON nor an event stream",
        ),
        (
            vec![revision("1999-01-01")],
            "an unknown revision of the protocol",
        ),
        (vec![result(1, json!({}))], "specified no revision"),
        (
            vec![initialized(), Ok(ScriptedAnswer::text(500, ""))],
            "it returned status 500",
        ),
        (
            vec![initialized(), note(), result(2, json!({}))],
            "returned no list for `tools/list`",
        ),
        (
            vec![initialized(), note(), result(1, json!({"tools": []}))],
            "answered a different request",
        ),
        (
            vec![initialized(), note(), result(2, json!({"tools": many}))],
            "lists too many tools",
        ),
        (
            vec![initialized(), note(), page(&"x".repeat(5_000))],
            "lists too many tools",
        ),
    ] {
        for answer in answers {
            alice.outbound.answer(answer);
        }
        let error = alice
            .call("defineTool", json!({"name": "gh", "mcp": URL}))
            .unwrap_err();
        assert_eq!(error.code.name(), "invalid_request");
        assert_eq!(error.details()["field"], "mcp");
        assert!(error.message.contains(expected), "{}", error.message);
        assert!(alice.outbound.answers.borrow().is_empty(), "{expected}");
    }
    // An endless list, and a server that never answers.
    alice.answers([initialized(), note()]);
    for page in 2..40 {
        alice
            .outbound
            .answer(result(page, json!({"tools": [], "nextCursor": "again"})));
    }
    let error = alice
        .call("defineTool", json!({"name": "gh", "mcp": URL}))
        .unwrap_err();
    assert!(error.message.contains("lists too many tools"));
    alice.outbound.answers.borrow_mut().clear();
    alice.outbound.hangs_after_answers.set(true);
    let error = alice
        .call("defineTool", json!({"name": "gh", "mcp": URL}))
        .unwrap_err();
    assert!(error.message.contains("it took longer than 30 s"));
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn all_pages_of_a_list_are_read() {
    let alice = Alice::with_model();
    alice.answers([
        initialized(),
        Ok(ScriptedAnswer::text(202, "")),
        events(&[json!({"jsonrpc": "2.0", "id": 2, "result": {"tools": [tool("a")], "nextCursor": "n/2"}})]),
        result(3, json!({"tools": [tool("b")], "nextCursor": ""})),
    ]);
    alice.ok("defineTool", json!({"name": "gh", "mcp": URL}));
    let (_, body) = alice.sent_call(3);
    assert_eq!(body["params"], json!({"cursor": "n/2"}));
    let both = [("gh_a".to_owned(), true), ("gh_b".to_owned(), true)];
    assert_eq!(alice.tools(), both);
}

#[test]
fn the_newest_revision_needs_no_handshake() {
    let alice = Alice::with_model();
    let refused = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "Unsupported protocol version"}});
    let refused = ScriptedAnswer {
        status: 400,
        ..ScriptedAnswer::json(&refused).ok().unwrap()
    };
    alice.answers([
        Ok(refused),
        result(
            2,
            json!({"resultType": "complete", "tools": [tool("ä")], "ttlMs": 0}),
        ),
    ]);
    let defined = alice.ok(
        "defineTool",
        json!({"name": "gh", "mcp": URL, "needsApproval": false}),
    );
    assert_eq!(defined["revision"], "2026-07-28");
    assert_eq!(defined["tools"][0]["name"], "gh__");
    alice.outbound.answer(calls(&[("c1", "gh__", json!({}))]));
    alice.answers([
        result(1, json!({"resultType": "complete", "content": []})),
        text_answer("Done."),
    ]);
    alice.chat_text("go");
    let (call, body) = alice.sent_call(3);
    let meta = &body["params"]["_meta"];
    assert_eq!(
        meta["io.modelcontextprotocol/protocolVersion"],
        "2026-07-28"
    );
    assert_eq!(
        meta["io.modelcontextprotocol/clientCapabilities"],
        json!({"elicitation": {"form": {}, "url": {}}})
    );
    assert_eq!(body["params"]["name"], "ä");
    assert_eq!(header(&call, "mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(header(&call, "mcp-method"), Some("tools/call"));
    assert_eq!(header(&call, "mcp-name"), Some("=?base64?w6Q=?="));
}

#[test]
fn arguments_mapped_to_headers_are_sent_there_too() {
    let alice = Alice::with_model();
    let mark = |kind: &str, name: &str| json!({"type": kind, "x-mcp-header": name});
    let schema = json!({"type": "object", "properties": {
        "region": mark("string", "Region"), "n": mark("integer", "N"), "on": mark("boolean", "On"),
        "auth": mark("string", "Authorization"), "none": mark("string", "None"), "q": {"type": "string"},
    }});
    let refused = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "Unsupported protocol version"}});
    let refused = ScriptedAnswer {
        status: 400,
        ..ScriptedAnswer::json(&refused).ok().unwrap()
    };
    let marked = json!({"name": "t", "description": "A tool.", "inputSchema": schema});
    let broken = json!({"name": "x", "inputSchema": {"type": "object", "properties": {"a": mark("number", "A")}}});
    let list = json!({"resultType": "complete", "tools": [marked, broken], "ttlMs": 0});
    alice.answers([Ok(refused), result(2, list)]);
    let define = json!({"name": "gh", "mcp": URL, "needsApproval": false});
    let defined = alice.ok("defineTool", define);
    assert_eq!(defined["leftOut"][0]["name"], "x");
    let given = json!({"region": " us\r\nx: y", "n": 7, "on": false, "auth": "Bearer x", "none": null, "q": "no"});
    alice.outbound.answer(calls(&[("c1", "gh_t", given)]));
    let done = json!({"resultType": "complete", "content": []});
    alice.answers([result(1, done), text_answer("Done.")]);
    alice.chat_text("go");
    let (call, body) = alice.sent_call(3);
    assert_eq!(body["params"]["arguments"]["region"], " us\r\nx: y");
    for (name, value) in [
        ("mcp-param-region", Some("=?base64?IHVzDQp4OiB5?=")),
        ("mcp-param-n", Some("7")),
        ("mcp-param-on", Some("false")),
        ("mcp-param-authorization", Some("Bearer x")),
        ("mcp-param-none", None),
        ("mcp-param-q", None),
        ("authorization", None),
    ] {
        assert_eq!(header(&call, name), value, "{name}");
    }
    // A value too long for a header prevents the call.
    let sent = alice.outbound.calls.borrow().len();
    let long = json!({"region": "x".repeat(5_000)});
    alice.outbound.answer(calls(&[("c2", "gh_t", long)]));
    alice.answers([text_answer("Done.")]);
    alice.chat_text("again");
    assert_eq!(alice.outbound.calls.borrow().len(), sent + 2);
}

#[test]
fn any_supported_revision_from_the_handshake_is_used() {
    for (revision, has_note) in [
        ("2026-07-28", false),
        ("2025-11-25", true),
        ("2025-06-18", true),
        ("2025-03-26", true),
    ] {
        let alice = Alice::with_model();
        alice.outbound.answer(result(
            1,
            json!({"protocolVersion": revision, "capabilities": {"tools": {}}}),
        ));
        if has_note {
            alice.outbound.answer(Ok(ScriptedAnswer::text(202, "")));
        }
        alice
            .outbound
            .answer(result(2, json!({"tools": [tool("a")]})));
        let defined = alice.ok(
            "defineTool",
            json!({"name": "gh", "mcp": URL, "needsApproval": false}),
        );
        assert_eq!(defined["revision"], revision);
        assert_eq!(defined["tools"][0]["name"], "gh_a");
        let (list, _) = alice.sent_call(if has_note { 2 } else { 1 });
        assert_eq!(header(&list, "mcp-protocol-version"), Some(revision));
        alice.outbound.answer(calls(&[("c1", "gh_a", json!({}))]));
        alice.answers([result(1, json!({"content": []})), text_answer("Done.")]);
        alice.chat_text("go");
    }
}

#[test]
fn an_expired_session_is_reinitialized_once() {
    let alice = Alice::with_model();
    let session = |name: &str| *alice.outbound.session.borrow_mut() = Some(name.to_owned());
    session("S-1");
    alice.define_server(&json!([tool("a")]), &off()).unwrap();
    session("S-2");
    let note = || Ok(ScriptedAnswer::text(202, ""));
    let not_found = || Ok(ScriptedAnswer::text(404, ""));
    let hello = || result(2, json!({"protocolVersion": "2025-06-18"}));
    let received = alice.call_in_turn(vec![
        not_found(),
        hello(),
        note(),
        result(3, text("Again.")),
    ]);
    assert_eq!(received, "Again.");
    assert_eq!(header(&alice.sent_call(4).0, "mcp-session-id"), Some("S-1"));
    let (again, body) = alice.sent_call(7);
    assert_eq!(header(&again, "mcp-session-id"), Some("S-2"));
    assert_eq!(header(&again, "mcp-protocol-version"), Some("2025-06-18"));
    assert_eq!(body["params"]["arguments"], json!({"q": 1}));
    // The next call uses the new session.
    assert_eq!(
        alice.call_in_turn(vec![result(1, text("Known."))]),
        "Known."
    );
    assert_eq!(
        header(&alice.sent_call(10).0, "mcp-session-id"),
        Some("S-2")
    );
    let lost = alice.call_in_turn(vec![not_found(), hello(), note(), not_found()]);
    assert_eq!(
        lost,
        "Error: `gh_a` returned no result: it did not recognize its own session."
    );
    // A failed handshake is repeated by the next call.
    let unreachable = || {
        Err(CallFailure::Unreachable {
            cause: String::new(),
        })
    };
    for failing in [vec![unreachable()], vec![hello(), unreachable()]] {
        let mut answers = vec![not_found()];
        answers.extend(failing);
        assert_eq!(
            alice.call_in_turn(answers),
            "Error: `gh_a` returned no result: it could not be reached."
        );
        let received =
            alice.call_in_turn(vec![not_found(), hello(), note(), result(3, text("Back."))]);
        assert_eq!(received, "Back.");
    }
    // Some servers report this with status 400 and an error for no request.
    let unknown = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "No valid session ID provided"}});
    let unknown = ScriptedAnswer {
        status: 400,
        ..ScriptedAnswer::json(&unknown).ok().unwrap()
    };
    let received = alice.call_in_turn(vec![
        Ok(unknown),
        hello(),
        note(),
        result(3, text("Again.")),
    ]);
    assert_eq!(received, "Again.");
    // Any other failure may occur after the tool has run: nothing is sent again.
    assert!(
        alice
            .call_in_turn(vec![Ok(ScriptedAnswer::text(500, ""))])
            .contains("status 500")
    );
}

#[test]
fn server_tools_need_approval_unless_disabled() {
    let alice = Alice::with_server(&json!([tool("a")]), &json!({}));
    assert_eq!(alice.tools(), [("gh_a".to_owned(), true)]);
    alice.outbound.answer(calls(&[("c1", "gh_a", json!({}))]));
    alice.chat_text("go");
    let mut message = alice.shown()[1].clone();
    assert_eq!(message["parts"][1]["state"], "approval-requested");
    message["parts"][1]["state"] = json!("approval-responded");
    message["parts"][1]["approval"]["approved"] = json!(true);
    let approve = json!({"id": "s", "messages": [user("go"), message]});
    alice.answers([result(1, text("Paid.")), text_answer("Done.")]);
    alice.chat(approve);
    assert!(alice.sent_call(5).1.to_string().contains("Paid."));
}

#[test]
fn an_approval_applies_to_the_definition_shown() {
    let alice = Alice::with_server(&json!([tool("a")]), &json!({}));
    alice.outbound.answer(calls(&[("c1", "gh_a", json!({}))]));
    alice.chat_text("go");
    let mut changed = tool("a");
    changed["description"] = json!("Pays all you have.");
    alice.define_server(&json!([changed]), &json!({})).unwrap();
    let mut message = alice.shown()[1].clone();
    message["parts"][1]["state"] = json!("approval-responded");
    message["parts"][1]["approval"]["approved"] = json!(true);
    let before = alice.outbound.calls.borrow().len();
    alice.outbound.answer(text_answer("Nothing was done."));
    alice.chat(json!({"id": "s", "messages": [user("go"), message]}));
    let calls = alice.outbound.calls.borrow();
    assert_eq!(calls.len(), before + 1, "the tool was not called");
    assert!(calls[before].body.contains("the approval is not valid"));
}

#[test]
fn a_stale_list_is_fetched_again() {
    let alice = Alice::with_server(&json!([tool("a"), tool("b")]), &off());
    alice.outbound.answer(text_answer("Hi."));
    alice.chat_text("1");
    assert_eq!(alice.outbound.calls.borrow().len(), 4, "the list is fresh");
    alice.host.advance(REFRESH_EVERY_MS);
    let mut changed = tool("a");
    changed["annotations"] = json!({"destructiveHint": true});
    alice.answers([
        result(1, json!({"tools": [changed, tool("c"), tool("b")]})),
        text_answer("Hi."),
    ]);
    alice.chat_text("2");
    let named = |name: &str, needs_approval: bool| (name.to_owned(), needs_approval);
    // A tool that the operator has not seen needs approval; an unchanged tool does
    // not.
    let expected = [
        named("gh_a", true),
        named("gh_b", false),
        named("gh_c", true),
    ];
    assert_eq!(alice.tools(), expected);
    let listed = alice.ok("listTools", json!({}));
    assert_eq!(listed["tools"][0]["isChanged"], true);
    assert_eq!(listed["tools"][1]["isChanged"], Value::Null);
    // The model of the same turn received the new list.
    assert_eq!(alice.sent_call(5).1["tools"][2]["function"]["name"], "gh_c");
    // An unchanged tool needs no new approval.
    alice.host.advance(REFRESH_EVERY_MS);
    alice.answers([result(1, json!({"tools": [tool("a")]})), text_answer("Hi.")]);
    alice.chat_text("3");
    assert_eq!(alice.tools(), [named("gh_a", false)]);
    // `defineTool` accepts the present tools.
    alice
        .define_server(&json!([tool("a"), tool("c")]), &off())
        .unwrap();
    assert_eq!(alice.tools(), [named("gh_a", false), named("gh_c", false)]);
}

#[test]
fn a_list_changed_notification_triggers_a_refresh() {
    let alice = Alice::with_server(&json!([tool("a")]), &off());
    let reports = |id: i64| {
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        let done = json!({"jsonrpc": "2.0", "id": id, "result": text("Fine.")});
        events(&[changed.clone(), changed, done])
    };
    assert_eq!(alice.call_in_turn(vec![reports(1)]), "Fine.");
    alice.outbound.answer(text_answer("Hi."));
    alice.chat_text("too soon");
    assert_eq!(alice.tools().len(), 1);
    alice.host.advance(REFRESH_CHANGED_MS);
    alice.answers([
        result(1, json!({"tools": [tool("a"), tool("b")]})),
        text_answer("Hi."),
    ]);
    alice.chat_text("once it is a minute old");
    assert_eq!(alice.tools().len(), 2);
    // Without another notification, the list is valid for ten minutes.
    alice.host.advance(REFRESH_CHANGED_MS);
    alice.outbound.answer(text_answer("Hi."));
    alice.chat_text("later");
    // A server that doesn't answer is not contacted in every turn.
    assert_eq!(alice.call_in_turn(vec![reports(1)]), "Fine.");
    alice.outbound.answer(Err(CallFailure::Overloaded));
    alice.outbound.answer(text_answer("Hi."));
    alice.chat_text("it fails");
    alice.outbound.answer(text_answer("Hi."));
    alice.chat_text("at once again");
    assert!(alice.outbound.answers.borrow().is_empty());
}

#[test]
fn an_unavailable_server_only_delays_the_turn() {
    let alice = Alice::with_server(&json!([tool("a")]), &off());
    for (answer, problem) in [
        (
            Err(CallFailure::Unreachable {
                cause: String::new(),
            }),
            "it could not be reached",
        ),
        (Ok(ScriptedAnswer::text(500, "")), "it returned status 500"),
        (
            result(1, json!({"tools": 7})),
            "it returned no list for `tools/list`",
        ),
    ] {
        alice.host.advance(REFRESH_EVERY_MS);
        alice.answers([answer, text_answer("Hi.")]);
        alice.chat_text("hi");
        let expected = format!("The server did not list its tools: {problem}.");
        assert_eq!(
            alice.ok("listTools", json!({}))["servers"][0]["problem"],
            expected
        );
        assert_eq!(alice.tools(), [("gh_a".to_owned(), false)]);
        // It is not contacted again immediately.
        alice.outbound.answer(text_answer("Hi."));
        alice.chat_text("hi again");
    }
    alice.host.advance(REFRESH_EVERY_MS);
    let mut settings = alice.outbound.settings.borrow_mut();
    settings.insert("TOOL_ORIGINS".to_owned(), String::new());
    drop(settings);
    alice.outbound.answer(text_answer("Hi."));
    alice.chat_text("hi once more");
    let problem = &alice.ok("listTools", json!({}))["servers"][0]["problem"];
    assert!(
        problem
            .as_str()
            .unwrap()
            .contains("Tools at https://tools.example")
    );
    // A call is checked against the current settings.
    alice.outbound.answer(calls(&[("c1", "gh_a", json!({}))]));
    alice.outbound.answer(text_answer("No."));
    let before = alice.outbound.calls.borrow().len();
    alice.chat_text("go");
    assert_eq!(
        alice.outbound.calls.borrow().len(),
        before + 2,
        "the tool was not called"
    );
}

#[test]
fn a_silent_server_delays_a_turn_by_three_seconds() {
    let alice = Alice::with_server(&json!([tool("a")]), &off());
    alice.host.advance(REFRESH_EVERY_MS);
    alice.outbound.pauses_ms.borrow_mut().clear();
    alice.outbound.hangs_after_answers.set(true);
    let body = json!({"id": "s", "message": user("hi")}).to_string();
    let agent = alice.agent(&alice.db);
    let started = begin_chat(&agent, "default", body.as_bytes()).unwrap();
    // The model doesn't answer either: the turn waits for it beyond the refresh.
    cut_off(run(&agent, started.work.unwrap()));
    assert_eq!(alice.outbound.pauses_ms.borrow()[0], 3_000);
    let (_, body) = alice.sent_call(4);
    assert_eq!(body["tools"][0]["function"]["name"], "gh_a");
}

#[test]
fn a_call_needs_the_definition_the_model_saw() {
    let alice = Rc::new(Alice::with_server(&json!([tool("a")]), &off()));
    let same = Rc::clone(&alice);
    // While the model answers, the list changes.
    alice.outbound.answer(calls(&[("c1", "gh_a", json!({}))]));
    *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(move || {
        let model = same.outbound.answers.borrow_mut().pop_front().unwrap();
        let mut changed = tool("a");
        changed["description"] = json!("Something else.");
        same.define_server(&json!([changed]), &off()).unwrap();
        same.answers([model, text_answer("Done.")]);
    }));
    alice.chat_text("go");
    let calls = alice.outbound.calls.borrow();
    assert_eq!(calls.len(), 8, "the tool was not called");
    assert!(
        calls[7]
            .body
            .contains("was changed or removed after you called it")
    );
}

#[test]
fn a_call_of_another_tool_never_reaches_the_server() {
    for more in [off(), json!({})] {
        let alice = Rc::new(Alice::with_model());
        let own = json!({"name": "gh_a", "description": "", "url": "https://tools.example/t"});
        alice.ok("defineTool", own);
        let same = Rc::clone(&alice);
        alice.outbound.answer(calls(&[("c1", "gh_a", json!({}))]));
        // While the model answers, a server's tool gets the name.
        *alice.outbound.during_next_call.borrow_mut() = Some(Box::new(move || {
            let model = same.outbound.answers.borrow_mut().pop_front().unwrap();
            same.ok("removeTool", json!({"name": "gh_a"}));
            same.define_server(&json!([tool("a")]), &more).unwrap();
            same.answers([model, text_answer("Done.")]);
        }));
        alice.chat_text("go");
        let calls = alice.outbound.calls.borrow();
        assert_eq!(calls.len(), 5, "the tool was not called");
        assert!(
            calls[4]
                .body
                .contains("was changed or removed after you called it")
        );
    }
}

#[test]
fn tool_names_are_unique() {
    let alice = Alice::with_model();
    let own =
        |name: &str| json!({"name": name, "description": "", "url": "https://tools.example/t"});
    alice.ok("defineTool", own("gh_b"));
    let defined = alice
        .define_server(&json!([tool("a"), tool("b"), tool("a")]), &off())
        .unwrap();
    let left = defined["leftOut"].as_array().unwrap();
    assert_eq!(left.len(), 2);
    assert_eq!(left[0]["name"], "b");
    let refused = alice.call("defineTool", own("gh_a")).unwrap_err();
    assert!(refused.message.contains("is a tool of the server `gh`"));
    assert_eq!(
        alice.refused("removeTool", json!({"name": "gh_a"})),
        "invalid_request"
    );
    // A server's tool can't have the name of a memory tool.
    alice.answers([
        initialized(),
        Ok(ScriptedAnswer::text(202, "")),
        result(2, json!({"tools": [tool("context")]})),
    ]);
    let defined = alice.ok("defineTool", json!({"name": "set", "mcp": URL}));
    assert_eq!(defined["tools"], json!([]));
    // A tool replaces a server of its name, and all of the server's tools.
    alice.ok("defineTool", own("gh"));
    let named = |name: &str| (name.to_owned(), false);
    assert_eq!(alice.tools(), [named("gh"), named("gh_b")]);
}

#[test]
fn an_agent_has_at_most_128_tools_and_16_servers() {
    let alice = Alice::with_model();
    alice.ok(
        "defineTool",
        json!({"name": "own", "description": "", "url": "https://tools.example/t"}),
    );
    let many: Vec<Value> = (0..130).map(|n| tool(&format!("t{n}"))).collect();
    let defined = alice.define_server(&json!(many), &off()).unwrap();
    assert_eq!(defined["tools"].as_array().unwrap().len(), 127);
    assert_eq!(defined["leftOut"].as_array().unwrap().len(), 3);
    assert_eq!(alice.tools().len(), 128);
    // Defining the same server again needs no additional capacity.
    let defined = alice.define_server(&json!(many), &off()).unwrap();
    assert_eq!(defined["tools"].as_array().unwrap().len(), 127);
    let own = json!({"name": "more", "description": "", "url": "https://tools.example/t"});
    assert_eq!(alice.refused("defineTool", own), "invalid_request");
    for n in 1..17 {
        alice.answers([
            initialized(),
            Ok(ScriptedAnswer::text(202, "")),
            result(2, json!({"tools": []})),
        ]);
        let outcome = alice.call("defineTool", json!({"name": format!("s{n}"), "mcp": URL}));
        assert_eq!(outcome.is_ok(), n < 16, "{n}");
    }
}

#[test]
fn servers_are_allowed_only_at_permitted_urls() {
    let alice = Alice::with_model();
    alice.outbound.bindings.borrow_mut().push("GH".to_owned());
    let calls = || alice.outbound.calls.borrow().len();
    for (more, code, field) in [
        (
            json!({"mcp": "https://elsewhere.example/mcp"}),
            "forbidden",
            "mcp",
        ),
        (
            json!({"mcp": "http://tools.example/mcp"}),
            "invalid_request",
            "mcp",
        ),
        (json!({"mcp": 7}), "invalid_request", "mcp"),
        (
            json!({"mcp": {"service": "GH", "x": 1}}),
            "invalid_request",
            "mcp",
        ),
        (
            json!({"mcp": {"service": "GH", "path": "a b"}}),
            "invalid_request",
            "mcp",
        ),
        (
            json!({"mcp": {"service": "SESSION_AGENT"}}),
            "invalid_request",
            "mcp",
        ),
        (json!({"mcp": {"service": "NOPE"}}), "not_configured", ""),
        (
            json!({"mcp": URL, "url": URL}),
            "invalid_request",
            "service",
        ),
        (
            json!({"mcp": URL, "description": "x"}),
            "invalid_request",
            "description",
        ),
        (
            json!({"mcp": URL, "name": "x".repeat(33)}),
            "invalid_request",
            "name",
        ),
        (
            json!({"mcp": URL, "name": "set_context"}),
            "invalid_request",
            "name",
        ),
        (
            json!({"mcp": URL, "headers": {"authorization": "Bearer x"}}),
            "invalid_request",
            "headers",
        ),
        (
            json!({"mcp": URL, "headers": {"mcp-session-id": "x"}}),
            "invalid_request",
            "headers",
        ),
        (
            json!({"mcp": URL, "headers": {"x": "secret:NOPE"}}),
            "forbidden",
            "headers",
        ),
    ] {
        let mut input = json!({"name": "gh"});
        input
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let error = alice.call("defineTool", input).unwrap_err();
        assert_eq!(error.code.name(), code, "{more}: {}", error.message);
        if !field.is_empty() {
            assert_eq!(error.details()["field"], field, "{more}");
        }
    }
    assert_eq!(calls(), 0, "no request was sent");
    let defined = alice
        .define_server(&json!([tool("a")]), &json!({"mcp": {"service": "GH"}}))
        .unwrap();
    assert_eq!(defined["mcp"], json!({"service": "GH", "path": "mcp"}));
    let place = Endpoint::Service {
        binding: "GH".to_owned(),
        path: "mcp".to_owned(),
    };
    assert_eq!(alice.sent_call(2).0.endpoint, place);
    alice.answers([
        initialized(),
        Ok(ScriptedAnswer::text(202, "")),
        result(2, json!({"tools": []})),
    ]);
    alice.ok(
        "defineTool",
        json!({"name": "gh", "mcp": {"service": "GH", "path": "/a/mcp?x=1"}}),
    );
    assert_eq!(
        alice.ok("listTools", json!({}))["servers"][0]["mcp"]["path"],
        "a/mcp?x=1"
    );
}

#[test]
fn a_secret_repeated_by_a_server_is_redacted() {
    const SECRET: &str = "hunter2-hunter2";
    let alice = Alice::with_model();
    for (name, value) in [
        ("TOOL_SECRETS", "KEY=https://tools.example"),
        ("KEY", SECRET),
    ] {
        let mut settings = alice.outbound.settings.borrow_mut();
        settings.insert(name.to_owned(), value.to_owned());
    }
    let mut reply = tool("a");
    reply["description"] = json!(format!("Knows {SECRET}."));
    let more = json!({"needsApproval": false, "headers": {"authorization": "Bearer secret:KEY"}});
    alice.define_server(&json!([reply]), &more).unwrap();
    assert_eq!(
        header(&alice.sent_call(0).0, "authorization"),
        Some("Bearer hunter2-hunter2")
    );
    assert_eq!(
        alice.call_in_turn(vec![result(1, text(&format!("Key: {SECRET}")))]),
        "Key: [secret]"
    );
    // JSON has many ways to write one text.
    let escaped = SECRET.replace('-', "\\u002d");
    let reply = format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"structuredContent":{{"key":"{escaped}"}}}}}}"#
    );
    let within = text(&format!(r#"{{"key":"{escaped}"}}"#));
    for answer in [
        Ok(ScriptedAnswer::stream(&format!("data: {reply}\n\n"))),
        result(1, within),
    ] {
        assert_eq!(alice.call_in_turn(vec![answer]), r#"{"key":"[secret]"}"#);
    }
    let refusal = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": format!("Bad key {SECRET}")}});
    assert!(
        alice
            .call_in_turn(vec![ScriptedAnswer::json(&refusal)])
            .contains("Bad key [secret]")
    );
    assert!(!alice.db.dump().contains(SECRET));
    let error = ScriptedAnswer::json(&refusal).ok().unwrap();
    alice.answers([Ok(error), Ok(ScriptedAnswer::text(404, ""))]);
    let error = alice
        .call(
            "defineTool",
            json!({"name": "gh", "mcp": URL, "headers": {"x": "secret:KEY"}}),
        )
        .unwrap_err();
    assert!(error.message.contains("Bad key [secret]") && !error.message.contains(SECRET));
}

#[test]
fn only_the_operator_adds_a_server() {
    let mut alice = Alice::with_server(&json!([tool("a")]), &off());
    let scope = TokenScope {
        session_id: None,
        operations: None,
        allow: Allow::default(),
        expires_at: i64::MAX,
        ..TokenScope::default()
    };
    alice.caller = Caller::Scoped(scope);
    for (operation, body) in [
        ("defineTool", json!({"name": "x", "mcp": URL})),
        ("removeTool", json!({"name": "gh"})),
    ] {
        assert_eq!(alice.refused(operation, body), "forbidden");
    }
    assert_eq!(
        alice.outbound.calls.borrow().len(),
        3,
        "no request was sent"
    );
}

#[test]
fn a_corrupt_server_row_is_reported() {
    let alice = Alice::with_server(&json!([tool("a")]), &off());
    alice
        .db
        .run("UPDATE cf_agents_tools SET server = '{'", &[])
        .unwrap();
    assert_eq!(alice.refused("listTools", json!({})), "corrupt_row");
    alice.ok("removeTool", json!({"name": "gh"}));
}

/// A stream that ends after these events, each with an id.
fn cut_after(ids: &[&str], retry_ms: i64, last: Option<CallFailure>) -> Answer {
    let events = ids
        .iter()
        .map(|id| format!("id: {id}\nretry: {retry_ms}\ndata: \n\n"));
    let mut answer = ScriptedAnswer::stream(&events.collect::<String>());
    answer.chunks.extend(last.map(Err));
    Ok(answer)
}

#[test]
fn a_broken_stream_resumes_after_the_retry_delay_without_a_second_call() {
    let alice = Alice::with_server(&json!([tool("a")]), &off());
    let lost = || CallFailure::Unreachable {
        cause: String::new(),
    };
    let answer = json!({"jsonrpc": "2.0", "id": 1, "result": text("At last.")});
    let before = alice.outbound.calls.borrow().len() + 1;
    let read = alice.call_in_turn(vec![
        cut_after(&["e-1", "e-2"], 700, None),
        cut_after(&[], 0, Some(lost())),
        Err(lost()),
        cut_after(&["e-3"], 900, Some(lost())),
        events(&[answer]),
    ]);
    assert_eq!(read, "At last.");
    let forms = alice.outbound.forms.borrow();
    let calls = alice.outbound.calls.borrow();
    let reply: Vec<_> = (before..before + 5)
        .map(|at| (forms[at], header(&calls[at], "last-event-id")))
        .collect();
    assert_eq!(
        reply,
        [
            (RequestForm::Json, None),
            (RequestForm::Get, Some("e-2")),
            (RequestForm::Get, Some("e-2")),
            (RequestForm::Get, Some("e-2")),
            (RequestForm::Get, Some("e-3")),
        ]
    );
    assert_eq!(
        header(&calls[before + 1], "accept"),
        Some("text/event-stream")
    );
    assert_eq!(calls[before + 1].body, "");
    let pauses_ms = alice.outbound.pauses_ms.borrow();
    let pauses: Vec<i64> = pauses_ms
        .iter()
        .copied()
        .filter(|ms| *ms < 10_000)
        .collect();
    assert_eq!(pauses, [700, 700, 700, 900]);
}

#[test]
fn resuming_is_limited_and_needs_server_support() {
    let alice = Alice::with_server(&json!([tool("a")]), &off());
    let ended = "Error: `gh_a` returned no result: it ended its answer without a result.";
    let cut = || cut_after(&["e"], 1, None);
    // The server does not support resuming, or has dropped its session. The tool is not called
    // again.
    for status in [405, 404] {
        let read = alice.call_in_turn(vec![cut(), Ok(ScriptedAnswer::text(status, ""))]);
        assert_eq!(read, ended);
    }
    assert_eq!(alice.call_in_turn((0..6).map(|_| cut()).collect()), ended);
    // A stream without an id, or with another failure, can't be resumed.
    assert_eq!(alice.call_in_turn(vec![cut_after(&[""], 1, None)]), ended);
    let late = CallFailure::DeadlineExceeded { total_ms: 300_000 };
    let read = alice.call_in_turn(vec![cut_after(&["e"], 1, Some(late))]);
    assert!(read.contains("took longer than 300 s"), "{read}");
}

#[test]
fn the_newest_revision_is_probed_first() {
    let refused = |data: Value| {
        let refused = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "Unsupported", "data": data}});
        Ok(ScriptedAnswer {
            status: 400,
            ..ScriptedAnswer::json(&refused).ok().unwrap()
        })
    };
    let listed = |id| result(id, json!({"tools": [tool("a")]}));
    let newest = |answer: Answer| {
        let alice = Alice::with_model();
        alice.outbound.scripts_discovery.set(true);
        alice.answers([answer, listed(2)]);
        let defined = alice.ok("defineTool", json!({"name": "gh", "mcp": URL}));
        assert_eq!(defined["revision"], "2026-07-28");
        let (first, body) = alice.sent_call(0);
        assert_eq!(body["method"], "server/discover");
        assert_eq!(header(&first, "mcp-method"), Some("server/discover"));
        assert_eq!(header(&first, "mcp-protocol-version"), Some("2026-07-28"));
        let meta = &body["params"]["_meta"];
        assert_eq!(
            meta["io.modelcontextprotocol/protocolVersion"],
            "2026-07-28"
        );
        assert_eq!(alice.sent_call(1).1["method"], "tools/list");
    };
    newest(result(
        1,
        json!({"supportedVersions": ["2026-07-28"], "capabilities": {}}),
    ));
    newest(refused(json!({"supported": ["2026-07-28"]})));
    for older in [
        Ok(ScriptedAnswer::text(404, "")),
        Ok(ScriptedAnswer::text(500, "")),
        result(1, json!({})),
        result(1, json!({"supportedVersions": ["2025-11-25"]})),
        refused(json!({"supported": ["2025-11-25"]})),
        Ok(ScriptedAnswer::text(200, "<html>")),
    ] {
        let alice = Alice::with_model();
        alice.outbound.scripts_discovery.set(true);
        alice.answers([
            older,
            initialized(),
            Ok(ScriptedAnswer::text(202, "")),
            listed(2),
        ]);
        let defined = alice.ok("defineTool", json!({"name": "gh", "mcp": URL}));
        assert_eq!(defined["revision"], "2025-11-25");
        let (hello, body) = alice.sent_call(1);
        assert_eq!(body["method"], "initialize");
        assert_eq!(header(&hello, "mcp-protocol-version"), None);
    }
}
