//! The Model Context Protocol, from a client's perspective.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};

use crate::Alice;
pub use crate::shared::mcp::{json_headers, post, read, send_request_in};
use access::{Allow, Caller, Policy, TokenScope};
use api::mcp::{Clients, McpAnswer, McpHeaders, McpRequest, Outbox, answer};
use base::ids::Id;
use base::testing::{ScriptedAnswer, wait_for};

pub const NEWEST: &str = "2026-07-28";

/// Sends a request unchanged.
pub fn send(alice: &Alice, request: &Value) -> u16 {
    post(alice, None, json_headers(), &request.to_string()).status
}

pub fn send_request(alice: &Alice, method: &str, params: &Value) -> Value {
    send_request_in(alice, None, method, params)
}

pub fn result(alice: &Alice, method: &str, params: Value) -> Value {
    let reply = send_request(alice, method, &params);
    assert!(reply["error"].is_null(), "{method} {params}: {reply}");
    reply["result"].clone()
}

/// A request of the newest revision, with its required headers.
pub fn send_newest_request(
    alice: &Alice,
    method: &str,
    mut params: Value,
    name: Option<&str>,
) -> (u16, Value) {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let headers = McpHeaders {
        version: Some(NEWEST),
        method: Some(method),
        name,
        ..json_headers()
    };
    let body = json!({"jsonrpc": "2.0", "id": "x", "method": method, "params": params});
    read(post(alice, None, headers, &body.to_string()))
}

pub fn names(list: &Value, field: &str) -> Vec<String> {
    let name = |item: &Value| item[field].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(name).collect()
}

/// An agent with a block of each kind, a document, tools and a session.
pub fn populated() -> Alice {
    let alice = Alice::with_model();
    alice.ok("createSession", json!({"id": "s"}));
    alice.ok("createSession", json!({"id": "t"}));
    for (label, kind) in [
        ("soul", "readonly"),
        ("memory", "writable"),
        ("kb", "searchable"),
        ("skills", "loadable"),
    ] {
        let block = json!({"label": label, "kind": kind, "description": format!("The {label}.")});
        alice.ok("defineBlock", block);
    }
    alice.ok(
        "setBlock",
        json!({"label": "memory", "content": "Likes tea."}),
    );
    alice.ok(
        "putSkill",
        json!({"label": "skills", "key": "a/b c.md", "content": "# How"}),
    );
    let own = json!({"label": "notes", "kind": "writable", "sessionId": "s"});
    alice.ok("defineBlock", own);
    let note = json!({"label": "notes", "sessionId": "s", "content": "Of s."});
    alice.ok("setBlock", note);
    for (name, needs_approval) in [("echo", false), ("pay", true), ("search", false)] {
        let tool = json!({"name": name, "description": "A tool.", "url": "https://tools.example/t", "needsApproval": needs_approval});
        alice.ok("defineTool", tool);
    }
    alice
}

pub fn scoped(
    mut alice: Alice,
    session: Option<&str>,
    operations: &[&str],
    tools: &[&str],
) -> Alice {
    let id = |text: &str| Id::parse(text.to_owned()).unwrap();
    alice.caller = Caller::Scoped(TokenScope {
        session_id: session.map(id),
        operations: Some(operations.iter().map(|name| (*name).to_owned()).collect()),
        allow: Allow {
            tools: tools.iter().map(|name| id(name)).collect(),
            ..Allow::default()
        },
        expires_at: i64::MAX,
        ..TokenScope::default()
    });
    alice
}

#[test]
fn a_client_initializes_and_lists_everything() {
    let alice = populated();
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let answer = result(&alice, "initialize", hello);
    assert_eq!(answer["protocolVersion"], "2025-11-25");
    assert_eq!(answer["serverInfo"]["name"], "session-agent");
    let all = json!({
        "tools": {},
        "resources": {"subscribe": true},
        "prompts": {},
        "completions": {},
        "logging": {},
    });
    assert_eq!(answer["capabilities"], all);
    let done = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    let accepted = post(&alice, None, json_headers(), done);
    assert_eq!(
        (accepted.status, accepted.body.into_string()),
        (202, String::new())
    );
    assert_eq!(result(&alice, "ping", json!({})), json!({}));

    let tools = result(&alice, "tools/list", json!({}))["tools"].clone();
    assert_eq!(
        names(&tools, "name"),
        [
            "set_context",
            "search_context",
            "load_context",
            "unload_context",
            "forget",
            "search",
            "echo"
        ]
    );
    for tool in tools.as_array().unwrap() {
        assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
    }
    let resources = result(&alice, "resources/list", json!({}))["resources"].clone();
    assert_eq!(
        names(&resources, "uri"),
        [
            "memory://block/soul",
            "memory://block/memory",
            "memory://block/kb",
            "memory://block/skills",
            "memory://skill/skills/a%2Fb%20c.md",
        ]
    );
    let templates = result(&alice, "resources/templates/list", json!({}));
    assert_eq!(
        names(&templates["resourceTemplates"], "uriTemplate"),
        ["memory://block/{label}", "memory://skill/{label}/{key}"]
    );
    let prompts = result(&alice, "prompts/list", json!({}));
    assert_eq!(names(&prompts["prompts"], "name"), ["system"]);
}

#[test]
fn the_newest_revision_needs_no_handshake() {
    let alice = populated();
    let (status, answer) = send_newest_request(&alice, "server/discover", json!({}), None);
    assert_eq!(status, 200);
    let answer = &answer["result"];
    assert_eq!(answer["supportedVersions"][0], NEWEST);
    assert_eq!(answer["resultType"], "complete");
    assert_eq!(
        (&answer["ttlMs"], &answer["cacheScope"]),
        (&json!(0), &json!("private"))
    );
    let name = &answer["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
    assert_eq!(name, "session-agent");
    for (method, params, name) in [
        ("tools/list", json!({}), None),
        ("resources/list", json!({}), None),
        ("prompts/list", json!({}), None),
        ("prompts/get", json!({"name": "system"}), Some("system")),
        (
            "resources/read",
            json!({"uri": "memory://block/memory"}),
            Some("memory://block/memory"),
        ),
        (
            "tools/call",
            json!({"name": "search", "arguments": {"query": "x"}}),
            Some("=?base64?c2VhcmNo?="),
        ),
    ] {
        let (status, reply) = send_newest_request(&alice, method, params, name);
        assert_eq!(
            (status, &reply["result"]["resultType"]),
            (200, &json!("complete")),
            "{method}: {reply}"
        );
    }
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "nothing",
        "",
    ] {
        let (status, reply) = send_newest_request(&alice, method, json!({}), None);
        assert_eq!(
            (status, &reply["error"]["code"]),
            (404, &json!(-32601)),
            "{method}"
        );
        assert_eq!(reply["id"], "x");
    }
}

#[test]
fn inconsistent_headers_and_unknown_revisions_are_refused() {
    let alice = populated();
    let meta = |version: &str| json!({"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}});
    let call = json!({"name": "search", "arguments": {"query": "x"}, "_meta": meta(NEWEST)});
    let listing = json!({"_meta": meta(NEWEST)});
    let plain = json!({});
    let table = [
        // version, method and name in the headers; the parameters; status and code
        (
            Some(NEWEST),
            Some("tools/list"),
            None,
            "tools/list",
            &listing,
            200,
            0,
        ),
        (
            Some(NEWEST),
            None,
            None,
            "tools/list",
            &listing,
            400,
            -32020,
        ),
        (
            Some(NEWEST),
            Some("TOOLS/LIST"),
            None,
            "tools/list",
            &listing,
            400,
            -32020,
        ),
        (
            Some(NEWEST),
            Some("prompts/list"),
            None,
            "tools/list",
            &listing,
            400,
            -32020,
        ),
        (
            Some(NEWEST),
            Some("tools/call"),
            Some(" search "),
            "tools/call",
            &call,
            200,
            0,
        ),
        (
            Some(NEWEST),
            Some("tools/call"),
            None,
            "tools/call",
            &call,
            400,
            -32020,
        ),
        (
            Some(NEWEST),
            Some("tools/call"),
            Some("echo"),
            "tools/call",
            &call,
            400,
            -32020,
        ),
        (
            Some(NEWEST),
            Some("tools/call"),
            Some("=?base64?c2Vhc?="),
            "tools/call",
            &call,
            400,
            -32020,
        ),
        (
            None,
            Some("tools/list"),
            None,
            "tools/list",
            &listing,
            400,
            -32020,
        ),
        (
            Some("2025-11-25"),
            Some("tools/list"),
            None,
            "tools/list",
            &listing,
            400,
            -32020,
        ),
        (
            Some(NEWEST),
            Some("tools/list"),
            None,
            "tools/list",
            &plain,
            400,
            -32602,
        ),
        (Some("2025-11-25"), None, None, "tools/list", &plain, 200, 0),
        (Some("2025-06-18"), None, None, "tools/list", &plain, 200, 0),
        (None, None, None, "tools/list", &plain, 200, 0),
        (
            Some("2024-11-05"),
            None,
            None,
            "tools/list",
            &plain,
            400,
            -32022,
        ),
        (
            Some("nonsense"),
            None,
            None,
            "tools/list",
            &plain,
            400,
            -32022,
        ),
    ];
    for (version, header, name, method, params, status, code) in table {
        let headers = McpHeaders {
            version,
            method: header,
            name,
            ..json_headers()
        };
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (status_received, reply) = read(post(&alice, None, headers, &body.to_string()));
        let got_code = reply["error"]["code"].as_i64().unwrap_or(0);
        assert_eq!(
            (status_received, got_code),
            (status, code),
            "{version:?} {header:?} {name:?}: {reply}"
        );
    }
    let unknown = meta("v999");
    let headers = McpHeaders {
        version: Some("v999"),
        ..json_headers()
    };
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": unknown}});
    let (_, reply) = read(post(&alice, None, headers, &body.to_string()));
    assert_eq!(reply["error"]["data"]["requested"], "v999");
    assert_eq!(reply["error"]["data"]["supported"][0], NEWEST);
}

#[test]
fn a_malformed_message_is_refused_before_anything_runs() {
    let alice = populated();
    let before = alice.db.dump();
    let html = McpHeaders {
        accept: Some("text/html"),
        ..json_headers()
    };
    let form = McpHeaders {
        content_type: Some("text/plain;charset=UTF-8"),
        ..json_headers()
    };
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (headers, body, status, code) in [
        (html, ping, 406, -32600),
        (form, ping, 415, -32600),
        (McpHeaders::default(), ping, 415, -32600),
        (json_headers(), "[1", 400, -32600),
        (
            json_headers(),
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            400,
            -32600,
        ),
        (json_headers(), "{", 400, -32700),
        (json_headers(), "", 400, -32600),
    ] {
        let (status_received, reply) = read(post(&alice, None, headers, body));
        assert_eq!(
            (status_received, &reply["error"]["code"]),
            (status, &json!(code)),
            "{body}"
        );
        assert!(reply["id"].is_null());
    }
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn an_answer_may_be_an_event_stream() {
    let alice = populated();
    let tool = json!({"name": "wide", "description": "x", "url": "https://tools.example/t", "parameters": {}});
    // A schema keeps its line breaks.
    let tool = tool
        .to_string()
        .replace("\"parameters\":{}", "\"parameters\":{\n\"a\":\n1}");
    alice
        .send(&alice.db, "defineTool", tool.as_bytes())
        .unwrap();
    let headers = McpHeaders {
        accept: Some("text/event-stream"),
        ..json_headers()
    };
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let answer = post(&alice, None, headers, list);
    assert_eq!(answer.content_type, "text/event-stream");
    let body = answer.body.into_string();
    let data = body.strip_prefix("event: message\ndata: ").unwrap();
    let data = data.strip_suffix("\n\n").unwrap();
    assert!(!data.contains('\n'));
    let message: Value = serde_json::from_str(data).unwrap();
    assert!(names(&message["result"]["tools"], "name").contains(&"wide".to_owned()));
}

#[test]
fn tool_errors_are_results_for_the_model() {
    let alice = populated();
    let call = |name: &str, arguments: Value| {
        result(
            &alice,
            "tools/call",
            json!({"name": name, "arguments": arguments}),
        )
    };
    let reply = call(
        "set_context",
        json!({"label": "memory", "content": "Likes rain.", "action": "append"}),
    );
    assert_eq!(reply["isError"], false);
    let block = alice.ok("getBlock", json!({"label": "memory"}));
    assert!(block["content"].as_str().unwrap().contains("Likes rain."));
    let reply = call("set_context", json!({"label": "soul", "content": "x"}));
    assert_eq!(reply["isError"], true);
    alice.ok("appendEvents", json!({"sessionId": "s", "events": [{"action": "user_message", "content": "Lisbon is sunny."}]}));
    let reply = call("search", json!({"query": "Lisbon"}));
    let found: Value = serde_json::from_str(reply["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(found["results"][0]["sessionId"], "s");
    assert_eq!(call("search", json!({"quarry": "x"}))["isError"], true);
    // Filters by the tags of sessions, like the operation.
    let among = |tag: &str| {
        let reply = call(
            "search",
            json!({"query": "Lisbon", "where": {"tags": {"any": [tag]}}}),
        );
        let text = reply["content"][0]["text"].as_str().unwrap().to_owned();
        let found: Value = serde_json::from_str(&text).unwrap();
        found["results"].as_array().unwrap().len()
    };
    alice.ok(
        "updateSession",
        json!({"sessionId": "s", "tags": ["trips"]}),
    );
    assert_eq!((among("trips") > 0, among("work")), (true, 0));

    alice
        .outbound
        .answer(ScriptedAnswer::json(&json!({"sky": "clear"})));
    let reply = call(
        "echo",
        json!({"n": 12345678901234567890_u64, "b": 1, "a": 2}),
    );
    assert_eq!(
        reply,
        json!({"content": [{"type": "text", "text": r#"{"sky":"clear"}"#}], "isError": false})
    );
    let sent: Value = serde_json::from_str(&alice.outbound.calls.borrow()[0].body).unwrap();
    assert_eq!(sent["agent"], "alice");
    assert!(sent.get("sessionId").is_none());
    let picture = json!({"content": [{"type": "image", "data": "eA==", "mimeType": "image/png"}], "isError": false});
    alice.outbound.answer(ScriptedAnswer::json(&picture));
    assert_eq!(call("echo", json!({})), picture);
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(500, "broken")));
    assert_eq!(call("echo", json!({}))["isError"], true);

    for name in ["pay", "nothing", "", "SEARCH"] {
        let reply = send_request(&alice, "tools/call", &json!({"name": name}));
        assert_eq!(reply["error"]["code"], -32602, "{name}");
        assert_eq!(
            reply["error"]["message"], "There is no such tool.",
            "{name}"
        );
    }
    for params in [
        json!({}),
        json!({"name": 1}),
        json!({"name": "echo", "arguments": []}),
        json!({"name": "echo", "arguments": "{}"}),
    ] {
        assert_eq!(
            send_request(&alice, "tools/call", &params)["error"]["code"],
            -32602,
            "{params}"
        );
    }
    assert_eq!(alice.outbound.calls.borrow().len(), 3);
}

#[test]
fn reading_a_resource_does_not_load_it() {
    let alice = populated();
    let before = alice.db.dump();
    let read =
        |uri: &str| result(&alice, "resources/read", json!({"uri": uri}))["contents"].clone();
    let block =
        json!([{"uri": "memory://block/Memory", "mimeType": "text/plain", "text": "Likes tea."}]);
    assert_eq!(read("memory://block/Memory"), block);
    for uri in [
        "memory://skill/skills/a%2Fb%20c.md",
        "memory://skill/skills/a/b%20c.md",
    ] {
        assert_eq!(
            read(uri),
            json!([{"uri": uri, "mimeType": "text/markdown", "text": "# How"}])
        );
    }
    for uri in [
        "memory://block/nothing",
        "memory://skill/skills/nothing",
        "memory://skill/nothing/x",
        "file:///etc/passwd",
        "test://x",
    ] {
        let error = send_request(&alice, "resources/read", &json!({"uri": uri}))["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]),
            (&json!(-32002), &json!({"uri": uri})),
            "{uri}"
        );
        let (status, reply) =
            send_newest_request(&alice, "resources/read", json!({"uri": uri}), Some(uri));
        assert_eq!(
            (status, &reply["error"]["code"]),
            (400, &json!(-32602)),
            "{uri}"
        );
        assert_eq!(reply["error"]["data"]["uri"], uri);
    }
    for uri in [
        "memory://block/%zz",
        "memory://block/",
        "memory://skill/memory/x",
        "memory://skill/skills/..",
    ] {
        assert_eq!(
            send_request(&alice, "resources/read", &json!({"uri": uri}))["error"]["code"],
            -32602,
            "{uri}"
        );
    }
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn the_memory_prompt_is_rendered() {
    let alice = populated();
    for (params, format) in [
        (json!({"name": "system"}), "text"),
        (
            json!({"name": "system", "arguments": {"format": "xml"}}),
            "xml",
        ),
    ] {
        let rendered = alice.ok("renderPrompt", json!({"format": format}));
        let answer = result(&alice, "prompts/get", params);
        assert_eq!(answer["messages"][0]["role"], "user");
        assert_eq!(
            answer["messages"][0]["content"],
            json!({"type": "text", "text": rendered["prompt"]})
        );
    }
    for params in [
        json!({}),
        json!({"name": "other"}),
        json!({"name": "system", "arguments": {"format": "html"}}),
        json!({"name": "system", "arguments": {"format": 1}}),
    ] {
        assert_eq!(
            send_request(&alice, "prompts/get", &params)["error"]["code"],
            -32602,
            "{params}"
        );
    }
}

#[test]
fn a_session_in_the_url_adds_its_memory() {
    let alice = populated();
    let uri = json!({"uri": "memory://block/notes"});
    assert_eq!(
        send_request(&alice, "resources/read", &uri)["error"]["code"],
        -32002
    );
    let reply = send_request_in(&alice, Some("s"), "resources/read", &uri);
    assert_eq!(reply["result"]["contents"][0]["text"], "Of s.");
    let reply = send_request_in(&alice, Some("nobody"), "resources/list", &json!({}));
    assert_eq!(reply["error"]["data"]["code"], "session_not_found");
    let reply = send_request_in(&alice, Some(""), "tools/list", &json!({}));
    assert_eq!(reply["error"]["code"], -32602);
}

#[test]
fn lists_are_paged_and_a_cursor_fits_only_its_list() {
    let alice = populated();
    for n in 0..150 {
        let skill = json!({"label": "skills", "key": format!("k{n:03}"), "content": "x"});
        alice.ok("putSkill", skill);
    }
    let first = result(&alice, "resources/list", json!({}));
    assert_eq!(first["resources"].as_array().unwrap().len(), 100);
    let second = result(
        &alice,
        "resources/list",
        json!({"cursor": first["nextCursor"]}),
    );
    assert!(second.get("nextCursor").is_none());
    let mut seen = names(&first["resources"], "uri");
    seen.extend(names(&second["resources"], "uri"));
    assert_eq!(seen.len(), 155);
    seen.dedup();
    assert_eq!(seen.len(), 155);
    for cursor in ["nonsense", "", "bWVtb3J5"] {
        let reply = send_request(&alice, "resources/list", &json!({"cursor": cursor}));
        assert_eq!(reply["error"]["code"], -32602, "{cursor}");
    }
    assert_eq!(
        send_request(&alice, "resources/list", &json!({"cursor": 1}))["error"]["code"],
        -32602
    );
    // Tools with long schemas end a page before it reaches its maximum number of items.
    let schema = json!({"type": "object", "description": "x".repeat(60_000)});
    for n in 0..40 {
        let tool = json!({"name": format!("t{n:02}"), "description": "", "url": "https://tools.example/t", "parameters": schema});
        alice.ok("defineTool", tool);
    }
    let mut cursor = Value::Null;
    let (mut pages, mut tools) = (0, Vec::new());
    loop {
        let page = result(&alice, "tools/list", json!({"cursor": cursor}));
        assert!(page.to_string().len() < 2 << 20);
        tools.extend(names(&page["tools"], "name"));
        pages += 1;
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((pages, tools.len()), (3, 47));
}

#[test]
fn a_token_sees_only_what_it_may_use() {
    let offered = |alice: &Alice| {
        let hello = json!({"protocolVersion": "2025-11-25"});
        let reply = result(alice, "initialize", hello);
        let offered = reply["capabilities"].as_object().unwrap();
        offered.keys().cloned().collect::<Vec<_>>()
    };
    let refused = |alice: &Alice, method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (status, reply) = read(post(alice, None, json_headers(), &body.to_string()));
        assert_eq!(
            (status, &reply["error"]["data"]["code"]),
            (403, &json!("forbidden")),
            "{method} {reply}"
        );
    };
    let alice = scoped(populated(), None, &["search"], &[]);
    assert_eq!(offered(&alice), ["logging", "tools"]);
    assert_eq!(
        names(&result(&alice, "tools/list", json!({}))["tools"], "name"),
        ["search"]
    );
    refused(
        &alice,
        "tools/call",
        json!({"name": "set_context", "arguments": {"label": "memory", "content": "x"}}),
    );
    refused(&alice, "resources/list", json!({}));
    refused(&alice, "resources/templates/list", json!({}));
    refused(
        &alice,
        "resources/read",
        json!({"uri": "memory://block/memory"}),
    );
    refused(&alice, "prompts/list", json!({}));
    refused(&alice, "prompts/get", json!({"name": "system"}));
    let hidden = send_request(&alice, "tools/call", &json!({"name": "echo"}));
    assert_eq!(hidden["error"]["message"], "There is no such tool.");

    // Reading does not load: a block's token reads no document.
    let alice = scoped(populated(), None, &["getBlock", "listSkills"], &[]);
    assert_eq!(offered(&alice), ["completions", "resources"]);
    assert_eq!(
        result(&alice, "resources/list", json!({}))["resources"]
            .as_array()
            .unwrap()
            .len(),
        5
    );
    refused(
        &alice,
        "resources/read",
        json!({"uri": "memory://skill/skills/a%2Fb%20c.md"}),
    );
    refused(&alice, "tools/list", json!({}));

    let alice = scoped(populated(), None, &[], &["echo", "pay", "search"]);
    assert_eq!(offered(&alice), ["logging", "tools"]);
    assert_eq!(
        names(&result(&alice, "tools/list", json!({}))["tools"], "name"),
        ["echo"]
    );
    alice.outbound.answer(Ok(ScriptedAnswer::text(200, "ok")));
    let reply = result(&alice, "tools/call", json!({"name": "echo"}));
    assert_eq!(reply["content"][0]["text"], "ok");

    let alice = scoped(populated(), None, &["getHistory"], &[]);
    assert_eq!(offered(&alice), [] as [&str; 0]);
    for method in ["tools/list", "resources/list", "prompts/list"] {
        refused(&alice, method, json!({}));
    }
}

#[test]
fn a_session_token_writes_only_its_own_blocks() {
    let operations = [
        "getTools",
        "callTool",
        "getBlock",
        "loadSkill",
        "renderPrompt",
        "search",
    ];
    let alice = scoped(populated(), Some("s"), &operations, &[]);
    // The address need not name the session, and can't name another.
    let read = result(
        &alice,
        "resources/read",
        json!({"uri": "memory://block/notes"}),
    );
    assert_eq!(read["contents"][0]["text"], "Of s.");
    let reply = send_request_in(
        &alice,
        Some("t"),
        "resources/read",
        &json!({"uri": "memory://block/memory"}),
    );
    assert_eq!(reply["error"]["data"]["code"], "forbidden");
    let tools = result(&alice, "tools/list", json!({}));
    assert_eq!(
        tools["tools"][0]["inputSchema"]["properties"]["label"]["enum"],
        json!(["notes"])
    );
    let before = alice.db.dump();
    let write = json!({"name": "set_context", "arguments": {"label": "memory", "content": "x"}});
    assert_eq!(result(&alice, "tools/call", write)["isError"], true);
    let other = json!({"name": "search", "arguments": {"query": "x", "sessionId": "t"}});
    assert_eq!(
        send_request(&alice, "tools/call", &other)["error"]["data"]["code"],
        "forbidden"
    );
    let read = result(
        &alice,
        "resources/read",
        json!({"uri": "memory://skill/skills/a%2Fb%20c.md"}),
    );
    assert_eq!(read["contents"][0]["text"], "# How");
    assert_eq!(alice.db.dump(), before);
}

/// A client, the object's state about it, and the messages that precede an answer.
#[derive(Default)]
pub struct Client {
    pub clients: Clients,
    pub outbox: RefCell<Rc<Outbox>>,
    pub session: Option<String>,
}

impl Client {
    /// A client that has completed the handshake with these capabilities.
    pub fn with(alice: &Alice, capabilities: &Value) -> Self {
        let mut client = Self::default();
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": capabilities});
        let answer = wait_for(client.send(alice, "initialize", &hello));
        client.session = answer.session;
        assert!(client.session.is_some());
        client
    }

    /// The same client, with an object that has lost its state.
    pub fn after_eviction(&self) -> Self {
        Self {
            session: self.session.clone(),
            ..Self::default()
        }
    }

    pub async fn send(&self, alice: &Alice, method: &str, params: &Value) -> McpAnswer {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(alice, &message).await
    }

    async fn post(&self, alice: &Alice, message: &Value) -> McpAnswer {
        let headers = McpHeaders {
            session: self.session.as_deref(),
            ..json_headers()
        };
        let outbox = Rc::new(Outbox::default());
        if message["method"] == "tools/call" {
            self.outbox.replace(Rc::clone(&outbox));
        }
        let request = McpRequest {
            session_id: None,
            headers,
            body: message.to_string().into_bytes(),
            clients: &self.clients,
            outbox: Some(&outbox),
        };
        answer(&alice.agent(&alice.db), request).await
    }

    /// The sent messages, and whether they include the answer.
    fn received(&self) -> Vec<Value> {
        let events = self.outbox.borrow().take().unwrap_or_default();
        let data = events
            .lines()
            .filter_map(|line| line.strip_prefix("data: "));
        data.map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    fn call(&self, alice: &Alice, params: &Value) -> Vec<Value> {
        let answer = wait_for(self.send(alice, "tools/call", params));
        let mut received = self.received();
        if let Ok(last) = serde_json::from_str(&answer.body.into_string()) {
            received.push(last);
        }
        received
    }
}

fn poll<T>(future: &mut Pin<Box<impl Future<Output = T>>>) -> Option<T> {
    match future
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()))
    {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}

#[test]
fn completions_include_only_readable_data() {
    let complete = |alice: &Alice, of: Value, name: &str, value: &str, context: Value| {
        let argument = json!({"name": name, "value": value});
        let params = json!({"ref": of, "argument": argument, "context": context});
        result(alice, "completion/complete", params)["completion"].clone()
    };
    let prompt = |name: &str| json!({"type": "ref/prompt", "name": name});
    let template = |uri: &str| json!({"type": "ref/resource", "uri": uri});
    let (block, skill) = ("memory://block/{label}", "memory://skill/{label}/{key}");
    let alice = populated();
    let none = json!({});
    for (of, name, value, context, expected) in [
        (
            prompt("system"),
            "format",
            "",
            &none,
            json!(["text", "xml"]),
        ),
        (prompt("system"), "format", "X", &none, json!(["xml"])),
        (prompt("system"), "other", "", &none, json!([])),
        (prompt("nothing"), "format", "", &none, json!([])),
        (
            template(block),
            "label",
            "s",
            &none,
            json!(["skills", "soul"]),
        ),
        (template(block), "label", "notes", &none, json!([])),
        (template(block), "key", "", &none, json!([])),
        (template(skill), "label", "", &none, json!(["skills"])),
        (template(skill), "key", "", &none, json!([])),
        (
            template(skill),
            "key",
            "A/",
            &json!({"arguments": {"label": "skills"}}),
            json!(["a/b c.md"]),
        ),
        (
            template(skill),
            "key",
            "",
            &json!({"arguments": {"label": "soul"}}),
            json!([]),
        ),
        (template("file:///{path}"), "path", "", &none, json!([])),
    ] {
        let found = complete(&alice, of.clone(), name, value, context.clone());
        assert_eq!(found["values"], expected, "{of} {name} {value}");
        assert_eq!(found["hasMore"], false);
    }
    for n in 0..101 {
        let skill = json!({"label": "skills", "key": format!("k{n:03}"), "content": "x"});
        alice.ok("putSkill", skill);
    }
    let of = json!({"arguments": {"label": "skills"}});
    let found = complete(&alice, template(skill), "key", "k", of);
    assert_eq!(found["values"].as_array().unwrap().len(), 100);
    assert_eq!(
        (&found["total"], &found["hasMore"]),
        (&json!(101), &json!(true))
    );
    for params in [
        json!({}),
        json!({"ref": {"type": "ref/tool"}, "argument": {"name": "a", "value": ""}}),
        json!({"ref": prompt("system"), "argument": {"name": "format"}}),
        json!({"ref": prompt("system"), "argument": {"name": 1, "value": ""}}),
        json!({"ref": prompt("system"), "argument": {"name": "format", "value": "x".repeat(1_001)}}),
        json!({"ref": "system", "argument": []}),
    ] {
        let reply = send_request(&alice, "completion/complete", &params);
        assert_eq!(reply["error"]["code"], -32602, "{params}");
    }
    // A token gets completions only of items that it may list.
    let alice = scoped(populated(), None, &["listSkills"], &[]);
    assert_eq!(
        complete(&alice, template(block), "label", "", json!({}))["values"],
        json!([])
    );
    assert_eq!(
        complete(&alice, template(skill), "label", "", json!({}))["values"],
        json!(["skills"])
    );
    let params = json!({"ref": prompt("system"), "argument": {"name": "format", "value": ""}});
    let reply = send_request(&alice, "completion/complete", &params);
    assert_eq!(reply["error"]["data"]["code"], "forbidden");
    let alice = scoped(populated(), None, &["search"], &[]);
    let params = json!({"ref": template(block), "argument": {"name": "label", "value": ""}});
    let reply = send_request(&alice, "completion/complete", &params);
    assert_eq!(reply["error"]["data"]["code"], "forbidden");
}

const PROGRESS_STREAM: &str = r#"event: message
data: {"method":"notifications/progress","params":{"progress":0,"total":2,"message":"Begun."}}

data: {"method":"notifications/progress","params":{"progress":1,"total":2,"progressToken":"of another"}}
data:

data: {"method":"notifications/progress","params":{"progress":1}}

data: {"method":"notifications/progress","params":{"progress":"2"}}

data: {"method":"notifications/message","params":{"level":"debug","data":"quiet"}}

data: {"method":"notifications/message","params":{"level":"info","logger":"own","data":{"n":1}}}

data: {"method":"notifications/message","params":{"level":"loud","data":"x"}}

data: {"method":"notifications/message","params":{"level":"error","data":"bad"}}

data: {"method":"tools/list","id":1}

data: {"result":{"sky":"clear"}}

data: {"method":"notifications/progress","params":{"progress":9}}

"#;

#[test]
fn a_tool_reports_progress_only_if_requested() {
    let alice = populated();
    let progress = |params: &Value, client: &Client| {
        alice
            .outbound
            .answer(Ok(ScriptedAnswer::stream(PROGRESS_STREAM)));
        client.call(&alice, params)
    };
    let methods = |received: &[Value]| {
        let method = |message: &Value| match message["method"].as_str() {
            Some(method) => method.replace("notifications/", ""),
            None => "answer".to_owned(),
        };
        received.iter().map(method).collect::<Vec<_>>()
    };
    let client = Client::with(&alice, &json!({}));
    let received = progress(
        &json!({"name": "echo", "_meta": {"progressToken": 7}}),
        &client,
    );
    assert_eq!(
        methods(&received),
        ["progress", "progress", "message", "message", "answer"]
    );
    assert_eq!(
        received[0]["params"],
        json!({"progressToken": 7, "progress": 0, "total": 2, "message": "Begun."})
    );
    assert_eq!(
        received[1]["params"],
        json!({"progressToken": 7, "progress": 1, "total": 2})
    );
    assert_eq!(
        received[2]["params"],
        json!({"level": "info", "logger": "own", "data": {"n": 1}})
    );
    assert_eq!(
        received[3]["params"],
        json!({"level": "error", "logger": "echo", "data": "bad"})
    );
    assert_eq!(
        received[4]["result"]["content"][0]["text"],
        r#"{"sky":"clear"}"#
    );

    // A client may request less.
    wait_for(client.send(&alice, "logging/setLevel", &json!({"level": "error"})));
    assert_eq!(
        methods(&progress(&json!({"name": "echo"}), &client)),
        ["message", "answer"]
    );
    let other = Client::with(&alice, &json!({}));
    assert_eq!(
        methods(&progress(&json!({"name": "echo"}), &other)),
        ["message", "message", "answer"]
    );
    for params in [json!({}), json!({"level": "loud"}), json!({"level": 1})] {
        assert_eq!(
            send_request(&alice, "logging/setLevel", &params)["error"]["code"],
            -32602
        );
    }
    // The newest revision logs nothing unless the request asks for it.
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::stream(PROGRESS_STREAM)));
    let (_, reply) =
        send_newest_request(&alice, "tools/call", json!({"name": "echo"}), Some("echo"));
    assert_eq!(reply["result"]["content"][0]["text"], r#"{"sky":"clear"}"#);
    // A stream without a result is returned as text.
    let early = "data: {\"method\":\"notifications/progress\",\"params\":{\"progress\":0}}\n\n";
    alice.outbound.answer(Ok(ScriptedAnswer::stream(early)));
    let received = client.call(&alice, &json!({"name": "echo"}));
    assert_eq!(
        received.last().unwrap()["result"]["content"][0]["text"],
        early
    );
    // The number of a tool's progress messages is limited.
    let flood = (0..2_000).map(|n| format!("data: {{\"method\":\"notifications/message\",\"params\":{{\"level\":\"error\",\"data\":{n}}}}}\n\n"));
    let flood: String = flood
        .chain(["data: {\"result\":1}\n\n".to_owned()])
        .collect();
    alice.outbound.answer(Ok(ScriptedAnswer::stream(&flood)));
    assert_eq!(client.call(&alice, &json!({"name": "echo"})).len(), 1_001);
    let long = json!({"method": "notifications/message", "params": {"level": "error", "data": "x".repeat(17 << 10)}});
    let long = format!("data: {long}\n\ndata: {{\"result\":1}}\n\n");
    alice.outbound.answer(Ok(ScriptedAnswer::stream(&long)));
    assert_eq!(client.call(&alice, &json!({"name": "echo"})).len(), 1);
}

fn ask_user(alice: &Alice, params: Value, capabilities: Value) -> (u16, Value) {
    let mut params = params;
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": NEWEST,
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    });
    let name = params["name"].as_str().unwrap_or("none").to_owned();
    let method = if name == "none" {
        "tools/list"
    } else {
        "tools/call"
    };
    let headers = McpHeaders {
        version: Some(NEWEST),
        method: Some(method),
        name: Some(&name),
        ..json_headers()
    };
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    read(post(alice, None, headers, &body.to_string()))
}

fn approval_answers() -> Value {
    json!({"approval": {"action": "accept", "content": {"approve": true}}})
}

#[test]
fn a_tool_that_needs_approval_elicits_it_from_capable_clients() {
    let mut alice = populated();
    alice.policy = Policy::new(Some("a secret of at least 32 characters".to_owned()), None);
    let can = json!({"elicitation": {}});
    let (_, reply) = ask_user(&alice, json!({}), can.clone());
    assert!(names(&reply["result"]["tools"], "name").contains(&"pay".to_owned()));
    let (_, reply) = ask_user(&alice, json!({}), json!({"sampling": {}}));
    assert!(!names(&reply["result"]["tools"], "name").contains(&"pay".to_owned()));

    let call = json!({"name": "pay", "arguments": {"sum": 5, "to": "a\u{202e}b"}});
    let (status, reply) = ask_user(&alice, call.clone(), can.clone());
    let reply = &reply["result"];
    assert_eq!(
        (status, &reply["resultType"]),
        (200, &json!("input_required"))
    );
    let question = &reply["inputRequests"]["approval"];
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(
        question["params"]["message"],
        r#"Approve the call of the tool `pay` with these arguments? {"sum":5,"to":"a\u{202e}b"}"#
    );
    let state = reply["requestState"].as_str().unwrap().to_owned();
    assert!(alice.outbound.calls.borrow().is_empty());

    let again = |alice: &Alice, with: Value| {
        let mut call = call.clone();
        for (name, value) in with.as_object().unwrap() {
            call[name] = value.clone();
        }
        ask_user(alice, call, can.clone())
    };
    // Without the state or without an approval, the question is repeated.
    for with in [
        json!({"inputResponses": approval_answers()}),
        json!({"requestState": state}),
        json!({"requestState": state, "inputResponses": {"other": {"action": "accept"}}}),
        json!({"requestState": state, "inputResponses": {"approval": true}}),
        json!({"requestState": state, "inputResponses": null}),
    ] {
        let (_, reply) = again(&alice, with.clone());
        assert_eq!(reply["result"]["resultType"], "input_required", "{with}");
    }
    for answer in [
        json!({"action": "decline"}),
        json!({"action": "cancel", "content": {"approve": true}}),
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {"approve": "true"}}),
        json!({"action": "accept", "content": {"approve": false}}),
    ] {
        let with = json!({"requestState": state, "inputResponses": {"approval": answer}});
        let (_, reply) = again(&alice, with);
        assert_eq!(reply["result"]["isError"], true, "{answer}");
        assert_eq!(
            reply["result"]["content"][0]["text"],
            "The user did not approve the call of `pay`."
        );
    }
    assert!(alice.outbound.calls.borrow().is_empty());

    let approved = json!({"requestState": state, "inputResponses": approval_answers()});
    for _ in 0..2 {
        alice.outbound.answer(Ok(ScriptedAnswer::text(200, "paid")));
        let (_, reply) = again(&alice, approved.clone());
        assert_eq!(reply["result"]["resultType"], "complete");
        assert_eq!(reply["result"]["content"][0]["text"], "paid");
    }
    // A repeated request is recognized by its key.
    let keys: Vec<_> = alice
        .outbound
        .calls
        .borrow()
        .iter()
        .map(|call| call.headers.clone())
        .collect();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    let sent: Value = serde_json::from_str(&alice.outbound.calls.borrow()[0].body).unwrap();
    assert!(sent.get("inputResponses").is_none(), "{sent}");
}

#[test]
fn a_state_is_bound_to_its_caller_call_and_time() {
    let mut alice = populated();
    let policy = Policy::new(Some("a secret of at least 32 characters".to_owned()), None);
    alice.policy = policy.clone();
    let can = json!({"elicitation": {}});
    let call = json!({"name": "pay", "arguments": {"sum": 5}});
    let (_, reply) = ask_user(&alice, call.clone(), can.clone());
    let state = reply["result"]["requestState"].as_str().unwrap().to_owned();
    let refused = |alice: &Alice, call: &Value, state: &str| {
        let mut call = call.clone();
        call["requestState"] = json!(state);
        call["inputResponses"] = approval_answers();
        let (status, reply) = ask_user(alice, call, can.clone());
        assert_eq!(
            (status, &reply["error"]["code"]),
            (400, &json!(-32602)),
            "{reply}"
        );
        assert_eq!(reply["error"]["data"]["field"], "requestState");
    };
    let (content, seal) = state.split_once('.').unwrap();
    for changed in [
        format!("{state}-TAMPERED"),
        format!("x{state}"),
        content.to_owned(),
        format!("{content}."),
        format!(".{seal}"),
        String::new(),
        "x".repeat(200_000),
        state.replacen(|letter: char| letter.is_ascii_lowercase(), "Z", 1),
    ] {
        refused(&alice, &call, &changed);
    }
    refused(
        &alice,
        &json!({"name": "pay", "arguments": {"sum": 6}}),
        &state,
    );
    refused(&alice, &json!({"name": "pay"}), &state);
    refused(
        &alice,
        &json!({"name": "echo", "arguments": {"sum": 5}}),
        &state,
    );
    // The state is invalid for another caller, an older definition, another secret or a later time.
    let mut other = scoped(populated(), None, &[], &["pay"]);
    other.policy = policy.clone();
    refused(&other, &call, &state);
    let moved = json!({"name": "pay", "description": "A tool.", "url": "https://tools.example/else", "needsApproval": true});
    let fresh = |policy: Policy| {
        let mut alice = populated();
        alice.policy = policy;
        alice
    };
    let changed = fresh(policy.clone());
    changed.ok("defineTool", moved);
    refused(&changed, &call, &state);
    refused(
        &fresh(Policy::new(
            Some("another secret of 32 characters, yes".to_owned()),
            None,
        )),
        &call,
        &state,
    );
    let late = fresh(policy.clone());
    late.host.advance(10 * 60_000);
    refused(&late, &call, &state);
    // During rotation of the secret, states signed with the older one are still valid.
    let replaced = Policy::new(
        Some("another secret of 32 characters, yes".to_owned()),
        None,
    )
    .with_previous(Some("a secret of at least 32 characters".to_owned()));
    let alice = fresh(replaced);
    alice.outbound.answer(Ok(ScriptedAnswer::text(200, "paid")));
    let mut call = call;
    call["requestState"] = json!(state);
    call["inputResponses"] = approval_answers();
    let (_, reply) = ask_user(&alice, call, can);
    assert_eq!(reply["result"]["content"][0]["text"], "paid");
}

#[test]
fn a_client_with_a_handshake_is_asked_on_its_requests_stream() {
    let alice = populated();
    let client = Client::with(&alice, &json!({"elicitation": {}}));
    let call = json!({"name": "pay", "arguments": {"sum": 5}});
    let answer_with = |client: &Client, id: &Value, answer: Value| {
        let message = json!({"jsonrpc": "2.0", "id": id, "result": answer});
        assert_eq!(wait_for(client.post(&alice, &message)).status, 202);
    };
    for (answer, expected) in [
        (
            json!({"action": "accept", "content": {"approve": true}}),
            "paid",
        ),
        (
            json!({"action": "decline"}),
            "The user did not approve the call of `pay`.",
        ),
        (json!({}), "The user did not approve the call of `pay`."),
    ] {
        alice.outbound.answers.borrow_mut().clear();
        alice.outbound.answer(Ok(ScriptedAnswer::text(200, "paid")));
        alice.outbound.sleeps_forever.set(true);
        let mut calling = Box::pin(client.send(&alice, "tools/call", &call));
        assert!(poll(&mut calling).is_none());
        let questions = client.received();
        assert_eq!(
            (questions.len(), &questions[0]["method"]),
            (1, &json!("elicitation/create"))
        );
        // Answers of another client, and answers without a question, change nothing.
        answer_with(&client, &json!("t-unknown"), json!({"action": "accept"}));
        answer_with(&client, &json!(1), json!({"action": "accept"}));
        let other_client = scoped(populated(), None, &["search"], &[]);
        let message = json!({"jsonrpc": "2.0", "id": questions[0]["id"], "result": {"action": "accept", "content": {"approve": true}}});
        wait_for(client.post(&other_client, &message));
        assert!(poll(&mut calling).is_none());
        answer_with(&client, &questions[0]["id"], answer);
        answer_with(
            &client,
            &questions[0]["id"],
            json!({"action": "accept", "content": {"approve": true}}),
        );
        let reply = poll(&mut calling).unwrap();
        assert_eq!(reply.body.into_string(), "");
        assert_eq!(
            client.received()[0]["result"]["content"][0]["text"],
            expected
        );
    }
    // Without the capability or without a stream, the tool is not listed.
    for client in [Client::with(&alice, &json!({})), Client::default()] {
        let reply = client.call(&alice, &call);
        assert_eq!(reply[0]["error"]["message"], "There is no such tool.");
    }
    assert_eq!(
        send_request(&alice, "tools/call", &call)["error"]["message"],
        "There is no such tool."
    );
}

#[test]
fn a_tool_requests_input_and_resumes_with_the_answers() {
    let mut alice = populated();
    alice.policy = Policy::new(Some("a secret of at least 32 characters".to_owned()), None);
    let name = json!({"method": "elicitation/create", "params": {"message": "Who?"}});
    let thought = json!({"method": "sampling/createMessage", "params": {"maxTokens": 9}});
    let input_required = |requests: Value| {
        ScriptedAnswer::json(
            &json!({"resultType": "input_required", "inputRequests": requests, "requestState": "mine"}),
        )
    };
    let call = json!({"name": "echo", "arguments": {"a": 1}});
    alice
        .outbound
        .answer(input_required(json!({"name": name, "thought": thought})));
    let (_, reply) = ask_user(&alice, call.clone(), json!({"elicitation": {}}));
    // Only questions that this client can answer are sent.
    assert_eq!(reply["result"]["inputRequests"], json!({"name": name}));
    let state = reply["result"]["requestState"].as_str().unwrap().to_owned();
    assert!(!state.contains("mine"));

    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(200, "Hello, Ann.")));
    let mut again = call.clone();
    again["requestState"] = json!(state);
    again["inputResponses"] = json!({"name": {"action": "accept", "content": {"name": "Ann"}}, "more": {"x": 1}, "approval": {"action": "accept"}});
    let (_, reply) = ask_user(&alice, again, json!({"elicitation": {}}));
    assert_eq!(reply["result"]["content"][0]["text"], "Hello, Ann.");
    let calls = alice.outbound.calls.borrow();
    let sent = |at: usize| serde_json::from_str::<Value>(&calls[at].body).unwrap();
    assert_eq!(sent(0).get("inputResponses"), None);
    assert_eq!(
        sent(1)["inputResponses"],
        json!({"name": {"action": "accept", "content": {"name": "Ann"}}})
    );
    assert_eq!(sent(1)["requestState"], "mine");
    assert_ne!(calls[0].headers, calls[1].headers);
    drop(calls);

    // A client that knows the questions may send the answers with its first call.
    let mut at_once = call.clone();
    at_once["inputResponses"] = json!({"name": {"action": "accept"}, "wrong": 7});
    alice
        .outbound
        .answer(Ok(ScriptedAnswer::text(200, "Hello.")));
    let (_, reply) = ask_user(&alice, at_once.clone(), json!({}));
    assert_eq!(reply["result"]["content"][0]["text"], "Hello.");
    let sent = |call: &base::outbound::OutboundRequest| serde_json::from_str::<Value>(&call.body);
    let last = sent(alice.outbound.calls.borrow().last().unwrap()).unwrap();
    assert_eq!(
        last["inputResponses"],
        json!({"name": {"action": "accept"}})
    );
    assert!(last.get("requestState").is_none());
    let many = (0..9).map(|n| (n.to_string(), json!({"action": "accept"})));
    let long = json!({"name": {"action": "accept", "content": "x".repeat(65 << 10)}});
    for answers in [Value::Object(many.collect()), long, json!([]), json!(null)] {
        at_once["inputResponses"] = answers;
        alice
            .outbound
            .answer(Ok(ScriptedAnswer::text(200, "Hello.")));
        ask_user(&alice, at_once.clone(), json!({}));
        let last = sent(alice.outbound.calls.borrow().last().unwrap()).unwrap();
        assert!(last.get("inputResponses").is_none(), "{last}");
    }

    alice
        .outbound
        .answer(input_required(json!({"thought": thought})));
    let (status, reply) = ask_user(&alice, call.clone(), json!({"elicitation": {}}));
    assert_eq!((status, &reply["error"]["code"]), (400, &json!(-32021)));
    assert_eq!(
        reply["error"]["data"]["requiredCapabilities"],
        json!({"sampling": {}})
    );
    let many: serde_json::Map<String, Value> =
        (0..9).map(|n| (n.to_string(), name.clone())).collect();
    for requests in [
        json!({}),
        json!([]),
        json!({"x": {"method": "tools/call", "params": {}}}),
        json!({"x": {"method": "elicitation/create", "params": []}}),
        json!({"x": "elicitation/create"}),
        Value::Object(many),
        json!({"x": {"method": "elicitation/create", "params": {"message": "x".repeat(65 << 10)}}}),
    ] {
        alice.outbound.answer(input_required(requests));
        let (_, reply) = ask_user(
            &alice,
            call.clone(),
            json!({"elicitation": {}, "sampling": {}}),
        );
        assert_eq!(reply["error"]["code"], -32603, "{reply}");
    }
    // Over a stream, a tool that keeps asking is stopped.
    let client = Client::with(&alice, &json!({"elicitation": {}}));
    alice.outbound.answers.borrow_mut().clear();
    for _ in 0..8 {
        alice.outbound.answer(input_required(json!({"name": name})));
    }
    alice.outbound.sleeps_forever.set(true);
    let mut calling = Box::pin(client.send(&alice, "tools/call", &call));
    for _ in 0..8 {
        assert!(poll(&mut calling).is_none());
        let message = json!({"jsonrpc": "2.0", "id": client.received()[0]["id"], "result": {"action": "accept"}});
        wait_for(client.post(&alice, &message));
    }
    assert!(poll(&mut calling).is_some());
    assert_eq!(client.received()[0]["result"]["isError"], true);
}

#[test]
fn a_servers_elicitation_is_forwarded_to_the_client_as_a_form() {
    let mut alice = populated();
    alice.policy = Policy::new(Some("a secret of at least 32 characters".to_owned()), None);
    let answer = |id: i64, result: Value| {
        alice.outbound.answer(ScriptedAnswer::json(
            &json!({"jsonrpc": "2.0", "id": id, "result": result}),
        ));
    };
    let refused = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -32022, "message": "Unsupported protocol version"}});
    alice.outbound.answer(Ok(ScriptedAnswer {
        status: 400,
        ..ScriptedAnswer::json(&refused).ok().unwrap()
    }));
    let tool = json!({"name": "t", "description": "A tool.", "inputSchema": {"type": "object"}});
    answer(
        2,
        json!({"resultType": "complete", "tools": [tool], "ttlMs": 0}),
    );
    alice.ok(
        "defineTool",
        json!({"name": "gh", "mcp": "https://tools.example/mcp", "needsApproval": false}),
    );
    let input_required = |method: &str, params: Value| json!({"resultType": "input_required", "inputRequests": {"n": {"method": method, "params": params}}, "requestState": "its"});
    let can = json!({"elicitation": {"url": {}}, "sampling": {}});
    let call = json!({"name": "gh_t", "arguments": {}});
    let sent = || {
        serde_json::from_str::<Value>(&alice.outbound.calls.borrow().last().unwrap().body).unwrap()
    };
    answer(
        1,
        input_required("elicitation/create", json!({"message": "Who?"})),
    );
    let (_, reply) = ask_user(&alice, call.clone(), can.clone());
    let question = &reply["result"]["inputRequests"]["n"]["params"];
    assert_eq!(question["message"], "The server `gh` asks: Who?");
    let capabilities = "io.modelcontextprotocol/clientCapabilities";
    assert_eq!(
        sent()["params"]["_meta"][capabilities],
        json!({"elicitation": {}})
    );

    let mut again = call.clone();
    again["requestState"] = reply["result"]["requestState"].clone();
    again["inputResponses"] = json!({"n": {"action": "decline"}});
    answer(
        1_001,
        json!({"resultType": "complete", "content": [{"type": "text", "text": "Done."}]}),
    );
    let (_, reply) = ask_user(&alice, again, can.clone());
    assert_eq!(reply["result"]["content"][0]["text"], "Done.");
    let params = sent()["params"].clone();
    assert_eq!(
        params["inputResponses"],
        json!({"n": {"action": "decline"}})
    );
    assert_eq!(params["requestState"], "its");

    for (method, params) in [
        ("sampling/createMessage", json!({})),
        ("roots/list", json!({})),
        (
            "elicitation/create",
            json!({"mode": "url", "message": "x", "url": "https://evil.example"}),
        ),
    ] {
        answer(1, input_required(method, params));
        let (_, reply) = ask_user(&alice, call.clone(), can.clone());
        assert_eq!(reply["error"]["code"], -32603, "{reply}");
    }
    // For a client without elicitation, the server is informed, and a question is an error.
    answer(
        1,
        input_required("elicitation/create", json!({"message": "Who?"})),
    );
    let (_, reply) = ask_user(&alice, call, json!({"sampling": {}}));
    assert_eq!(reply["result"]["isError"], true);
    assert_eq!(sent()["params"]["_meta"][capabilities], json!({}));
}
