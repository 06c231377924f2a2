//! The Model Context Protocol, as a client meets it.

use serde_json::{Value, json};

use crate::Alice;
pub use crate::shared::mcp::{ask_in, json_headers, post, read};
use access::{Allow, Caller, TokenScope};
use api::mcp::McpHeaders;
use base::ids::Id;
use base::testing::Said;

const NEWEST: &str = "2026-07-28";

/// Sends a request as it is.
pub fn send(alice: &Alice, request: &Value) -> u16 {
    post(alice, None, json_headers(), &request.to_string()).status
}

fn ask(alice: &Alice, method: &str, params: &Value) -> Value {
    ask_in(alice, None, method, params)
}

fn result(alice: &Alice, method: &str, params: Value) -> Value {
    let said = ask(alice, method, &params);
    assert!(said["error"].is_null(), "{method} {params}: {said}");
    said["result"].clone()
}

/// A request of the newest revision, with the headers that it wants.
fn ask_newest(alice: &Alice, method: &str, mut params: Value, name: Option<&str>) -> (u16, Value) {
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

fn names(list: &Value, field: &str) -> Vec<String> {
    let name = |item: &Value| item[field].as_str().unwrap().to_owned();
    list.as_array().unwrap().iter().map(name).collect()
}

/// An agent with a block of each kind, a document, tools and a session.
fn furnished() -> Alice {
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

fn scoped(mut alice: Alice, session: Option<&str>, operations: &[&str], tools: &[&str]) -> Alice {
    let id = |text: &str| Id::parse(text.to_owned()).unwrap();
    alice.caller = Caller::Scoped(TokenScope {
        session_id: session.map(id),
        operations: Some(operations.iter().map(|name| (*name).to_owned()).collect()),
        allow: Allow {
            tools: tools.iter().map(|name| id(name)).collect(),
            ..Allow::default()
        },
        limits: None,
        expires_at: i64::MAX,
    });
    alice
}

#[test]
fn a_client_shakes_hands_and_finds_everything() {
    let alice = furnished();
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    let told = result(&alice, "initialize", hello);
    assert_eq!(told["protocolVersion"], "2025-11-25");
    assert_eq!(told["serverInfo"]["name"], "session-agent");
    let all = json!({"tools": {}, "resources": {}, "prompts": {}});
    assert_eq!(told["capabilities"], all);
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
fn the_newest_revision_needs_no_handshake_and_says_so_in_every_result() {
    let alice = furnished();
    let (status, told) = ask_newest(&alice, "server/discover", json!({}), None);
    assert_eq!(status, 200);
    let told = &told["result"];
    assert_eq!(told["supportedVersions"][0], NEWEST);
    assert_eq!(told["resultType"], "complete");
    assert_eq!(
        (&told["ttlMs"], &told["cacheScope"]),
        (&json!(0), &json!("private"))
    );
    let name = &told["_meta"]["io.modelcontextprotocol/serverInfo"]["name"];
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
        let (status, said) = ask_newest(&alice, method, params, name);
        assert_eq!(
            (status, &said["result"]["resultType"]),
            (200, &json!("complete")),
            "{method}: {said}"
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
        let (status, said) = ask_newest(&alice, method, json!({}), None);
        assert_eq!(
            (status, &said["error"]["code"]),
            (404, &json!(-32601)),
            "{method}"
        );
        assert_eq!(said["id"], "x");
    }
}

#[test]
fn headers_that_differ_from_the_body_and_revisions_that_are_not_served_are_refused() {
    let alice = furnished();
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
        let (got, said) = read(post(&alice, None, headers, &body.to_string()));
        let got_code = said["error"]["code"].as_i64().unwrap_or(0);
        assert_eq!(
            (got, got_code),
            (status, code),
            "{version:?} {header:?} {name:?}: {said}"
        );
    }
    let unknown = meta("v999");
    let headers = McpHeaders {
        version: Some("v999"),
        ..json_headers()
    };
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": unknown}});
    let (_, said) = read(post(&alice, None, headers, &body.to_string()));
    assert_eq!(said["error"]["data"]["requested"], "v999");
    assert_eq!(said["error"]["data"]["supported"][0], NEWEST);
}

#[test]
fn a_body_that_is_not_a_message_is_refused_before_anything_runs() {
    let alice = furnished();
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
        let (got, said) = read(post(&alice, None, headers, body));
        assert_eq!(
            (got, &said["error"]["code"]),
            (status, &json!(code)),
            "{body}"
        );
        assert!(said["id"].is_null());
    }
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn an_answer_may_be_an_event_stream() {
    let alice = furnished();
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
    let said: Value = serde_json::from_str(data).unwrap();
    assert!(names(&said["result"]["tools"], "name").contains(&"wide".to_owned()));
}

#[test]
fn tools_are_called_and_their_mistakes_are_for_the_model() {
    let alice = furnished();
    let call = |name: &str, arguments: Value| {
        result(
            &alice,
            "tools/call",
            json!({"name": name, "arguments": arguments}),
        )
    };
    let told = call(
        "set_context",
        json!({"label": "memory", "content": "Likes rain.", "action": "append"}),
    );
    assert_eq!(told["isError"], false);
    let block = alice.ok("getBlock", json!({"label": "memory"}));
    assert!(block["content"].as_str().unwrap().contains("Likes rain."));
    let told = call("set_context", json!({"label": "soul", "content": "x"}));
    assert_eq!(told["isError"], true);
    alice.ok("appendEvents", json!({"sessionId": "s", "events": [{"action": "user_message", "content": "Lisbon is sunny."}]}));
    let told = call("search", json!({"query": "Lisbon"}));
    let found: Value = serde_json::from_str(told["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(found["results"][0]["sessionId"], "s");
    assert_eq!(call("search", json!({"quarry": "x"}))["isError"], true);
    // By the tags of sessions, as the operation.
    let among = |tag: &str| {
        let told = call(
            "search",
            json!({"query": "Lisbon", "where": {"tags": {"any": [tag]}}}),
        );
        let text = told["content"][0]["text"].as_str().unwrap().to_owned();
        let found: Value = serde_json::from_str(&text).unwrap();
        found["results"].as_array().unwrap().len()
    };
    alice.ok(
        "updateSession",
        json!({"sessionId": "s", "tags": ["trips"]}),
    );
    assert_eq!((among("trips") > 0, among("work")), (true, 0));

    alice.outbound.answer(Said::json(&json!({"sky": "clear"})));
    let told = call(
        "echo",
        json!({"n": 12345678901234567890_u64, "b": 1, "a": 2}),
    );
    assert_eq!(
        told,
        json!({"content": [{"type": "text", "text": r#"{"sky":"clear"}"#}], "isError": false})
    );
    let sent: Value = serde_json::from_str(&alice.outbound.calls.borrow()[0].body).unwrap();
    assert_eq!(sent["agent"], "alice");
    assert!(sent.get("sessionId").is_none());
    let picture = json!({"content": [{"type": "image", "data": "eA==", "mimeType": "image/png"}], "isError": false});
    alice.outbound.answer(Said::json(&picture));
    assert_eq!(call("echo", json!({})), picture);
    alice.outbound.answer(Ok(Said::text(500, "broken")));
    assert_eq!(call("echo", json!({}))["isError"], true);

    for name in ["pay", "nothing", "", "SEARCH"] {
        let said = ask(&alice, "tools/call", &json!({"name": name}));
        assert_eq!(said["error"]["code"], -32602, "{name}");
        assert_eq!(said["error"]["message"], "There is no such tool.", "{name}");
    }
    for params in [
        json!({}),
        json!({"name": 1}),
        json!({"name": "echo", "arguments": []}),
        json!({"name": "echo", "arguments": "{}"}),
    ] {
        assert_eq!(
            ask(&alice, "tools/call", &params)["error"]["code"],
            -32602,
            "{params}"
        );
    }
    assert_eq!(alice.outbound.calls.borrow().len(), 3);
}

#[test]
fn resources_are_read_and_none_is_loaded() {
    let alice = furnished();
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
        let error = ask(&alice, "resources/read", &json!({"uri": uri}))["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]),
            (&json!(-32002), &json!({"uri": uri})),
            "{uri}"
        );
        let (status, said) = ask_newest(&alice, "resources/read", json!({"uri": uri}), Some(uri));
        assert_eq!(
            (status, &said["error"]["code"]),
            (400, &json!(-32602)),
            "{uri}"
        );
        assert_eq!(said["error"]["data"]["uri"], uri);
    }
    for uri in [
        "memory://block/%zz",
        "memory://block/",
        "memory://skill/memory/x",
        "memory://skill/skills/..",
    ] {
        assert_eq!(
            ask(&alice, "resources/read", &json!({"uri": uri}))["error"]["code"],
            -32602,
            "{uri}"
        );
    }
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn the_prompt_is_the_rendered_memory() {
    let alice = furnished();
    for (params, format) in [
        (json!({"name": "system"}), "text"),
        (
            json!({"name": "system", "arguments": {"format": "xml"}}),
            "xml",
        ),
    ] {
        let rendered = alice.ok("renderPrompt", json!({"format": format}));
        let told = result(&alice, "prompts/get", params);
        assert_eq!(told["messages"][0]["role"], "user");
        assert_eq!(
            told["messages"][0]["content"],
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
            ask(&alice, "prompts/get", &params)["error"]["code"],
            -32602,
            "{params}"
        );
    }
}

#[test]
fn a_session_in_the_address_adds_its_memory() {
    let alice = furnished();
    let uri = json!({"uri": "memory://block/notes"});
    assert_eq!(ask(&alice, "resources/read", &uri)["error"]["code"], -32002);
    let said = ask_in(&alice, Some("s"), "resources/read", &uri);
    assert_eq!(said["result"]["contents"][0]["text"], "Of s.");
    let said = ask_in(&alice, Some("nobody"), "resources/list", &json!({}));
    assert_eq!(said["error"]["data"]["code"], "session_not_found");
    let said = ask_in(&alice, Some(""), "tools/list", &json!({}));
    assert_eq!(said["error"]["code"], -32602);
}

#[test]
fn long_lists_come_in_pages_and_a_cursor_is_of_its_list() {
    let alice = furnished();
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
        let said = ask(&alice, "resources/list", &json!({"cursor": cursor}));
        assert_eq!(said["error"]["code"], -32602, "{cursor}");
    }
    assert_eq!(
        ask(&alice, "resources/list", &json!({"cursor": 1}))["error"]["code"],
        -32602
    );
    // Tools with long schemas end a page before its number of items does.
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
fn a_token_uses_what_its_operations_allow_and_is_told_of_nothing_else() {
    let offered = |alice: &Alice| {
        let hello = json!({"protocolVersion": "2025-11-25"});
        let told = result(alice, "initialize", hello);
        let offered = told["capabilities"].as_object().unwrap();
        offered.keys().cloned().collect::<Vec<_>>()
    };
    let refused = |alice: &Alice, method: &str, params: Value| {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let (status, said) = read(post(alice, None, json_headers(), &body.to_string()));
        assert_eq!(
            (status, &said["error"]["data"]["code"]),
            (403, &json!("forbidden")),
            "{method} {said}"
        );
    };
    let alice = scoped(furnished(), None, &["search"], &[]);
    assert_eq!(offered(&alice), ["tools"]);
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
    let hidden = ask(&alice, "tools/call", &json!({"name": "echo"}));
    assert_eq!(hidden["error"]["message"], "There is no such tool.");

    // Reading is not loading: a block's token reads no document.
    let alice = scoped(furnished(), None, &["getBlock", "listSkills"], &[]);
    assert_eq!(offered(&alice), ["resources"]);
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

    let alice = scoped(furnished(), None, &[], &["echo", "pay", "search"]);
    assert_eq!(offered(&alice), ["tools"]);
    assert_eq!(
        names(&result(&alice, "tools/list", json!({}))["tools"], "name"),
        ["echo"]
    );
    alice.outbound.answer(Ok(Said::text(200, "ok")));
    let told = result(&alice, "tools/call", json!({"name": "echo"}));
    assert_eq!(told["content"][0]["text"], "ok");

    let alice = scoped(furnished(), None, &["getHistory"], &[]);
    assert_eq!(offered(&alice), [] as [&str; 0]);
    for method in ["tools/list", "resources/list", "prompts/list"] {
        refused(&alice, method, json!({}));
    }
}

#[test]
fn a_sessions_token_sees_its_session_and_writes_its_blocks_alone() {
    let operations = [
        "getTools",
        "callTool",
        "getBlock",
        "loadSkill",
        "renderPrompt",
        "search",
    ];
    let alice = scoped(furnished(), Some("s"), &operations, &[]);
    // The address need not name the session, and can't name another.
    let read = result(
        &alice,
        "resources/read",
        json!({"uri": "memory://block/notes"}),
    );
    assert_eq!(read["contents"][0]["text"], "Of s.");
    let said = ask_in(
        &alice,
        Some("t"),
        "resources/read",
        &json!({"uri": "memory://block/memory"}),
    );
    assert_eq!(said["error"]["data"]["code"], "forbidden");
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
        ask(&alice, "tools/call", &other)["error"]["data"]["code"],
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
