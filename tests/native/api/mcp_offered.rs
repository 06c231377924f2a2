//! Resources and prompts of a class that extends this one, over the Model Context Protocol.

use serde_json::{Value, json};

use super::mcp::{
    NEWEST, json_headers, names, populated, post, read, send_newest_request, send_request,
    send_request_in,
};
use super::mcp::{result, scoped};
use crate::Alice;
use access::Policy;
use api::mcp::McpHeaders;
use base::outbound::{CallFailure, Endpoint, OWN_CLASS, OutboundRequest};
use base::testing::ScriptedAnswer;

/// An agent whose class offers two resources, a template and prompts.
pub fn with_class() -> Alice {
    let mut alice = populated();
    alice.policy = Policy::new(Some("a secret of at least 32 characters".to_owned()), None);
    let bound = OWN_CLASS.to_owned();
    alice.outbound.bindings.borrow_mut().push(bound);
    alice.outbound.replies = Some(Box::new(|call| Some(reply(call))));
    alice
}

fn reply(call: &OutboundRequest) -> Result<ScriptedAnswer, CallFailure> {
    let place = Endpoint::Service {
        binding: OWN_CLASS.to_owned(),
        path: "mcp".to_owned(),
    };
    assert_eq!(call.endpoint, place);
    let request: Value = serde_json::from_str(&call.body).unwrap();
    assert_eq!(request["agent"], "alice");
    let status = |status| Ok(ScriptedAnswer::text(status, "secret of the class"));
    let text = |uri: &str, text: &str| json!({"contents": [{"uri": uri, "text": text}]});
    let answer = match (
        request["ask"].as_str().unwrap(),
        request["uri"].as_str().or(request["name"].as_str()),
    ) {
        ("list", _) => json!({
            "resources": [
                {"uri": "docs://readme", "name": "readme", "mimeType": "text/plain", "x": 1},
                {"uri": "docs://logo", "name": "logo", "description": "The logo."},
            ],
            "templates": [{"uriTemplate": "tickets://{id}", "name": "ticket"}],
            "prompts": [
                {"name": "review", "arguments": [{"name": "code", "required": true}]},
                {"name": "system", "description": "Not the agent's."},
            ],
        }),
        ("read", Some("docs://readme")) => text("docs://readme", "# Hello"),
        ("read", Some("docs://logo")) => json!({"contents": [
            {"uri": "docs://logo", "mimeType": "image/png", "blob": "eHg=", "more": 1},
        ]}),
        ("read", Some("tickets://session")) => text(
            "tickets://session",
            request["sessionId"].as_str().unwrap_or("-"),
        ),
        ("read", Some("tickets://text")) => return Ok(ScriptedAnswer::text(200, "no json")),
        ("read", Some("tickets://shape")) => json!({"contents": {}}),
        ("read", Some("tickets://both")) => {
            json!({"contents": [{"uri": "a:b", "text": "", "blob": ""}]})
        }
        ("read", Some("tickets://blob")) => json!({"contents": [{"uri": "a:b", "blob": "x\"y="}]}),
        ("read", Some("tickets://nameless")) => json!({"contents": [{"text": ""}]}),
        ("read", Some("tickets://many")) => {
            json!({"contents": vec![json!({"uri": "a:b", "text": ""}); 101]})
        }
        ("read", Some("tickets://away")) => {
            return Err(CallFailure::TooLarge { max_bytes: 9 });
        }
        ("read", Some("tickets://fails")) => return status(500),
        ("prompt", Some("review")) => match request["arguments"]["code"].as_str() {
            None => return Ok(ScriptedAnswer::text(400, "code")),
            Some("role") => json!({"messages": [{"role": "system", "content": text("", "")}]}),
            Some("content") => {
                json!({"messages": [{"role": "user", "content": {"type": "script", "text": "x"}}]})
            }
            Some(code) => json!({"description": "A review.", "messages": [
                {"role": "user", "content": {"type": "text", "text": code}, "more": 1},
                {"role": "assistant", "content": {"type": "image", "data": "eA==", "mimeType": "image/png"}},
            ]}),
        },
        ("prompt", Some("ask")) => match &request["inputResponses"] {
            Value::Null => json!({
                "resultType": "input_required",
                "inputRequests": {"who": {"method": "elicitation/create", "params": {"message": "Who?"}}},
                "requestState": "mine",
            }),
            answers => {
                let answer = format!("{answers} {}", request["requestState"]);
                json!({"messages": [{"role": "user", "content": {"type": "text", "text": answer}}]})
            }
        },
        ("prompt", Some("fails")) => return status(500),
        ("complete", _) => match (request["of"].as_str().unwrap(), &request["isPrompt"]) {
            ("review", Value::Bool(true)) => json!(["beta", "alpha", "Alphabet"]),
            ("tickets://{id}", Value::Bool(false)) => {
                let other = request["arguments"]["other"].as_str().unwrap_or("-");
                json!(["1", "10", format!("1{other}")])
            }
            _ => return status(404),
        },
        _ => return status(404),
    };
    ScriptedAnswer::json(&answer)
}

fn read_it(alice: &Alice, uri: &str) -> Value {
    send_request(alice, "resources/read", &json!({"uri": uri}))
}

fn get(alice: &Alice, name: &str, arguments: Value) -> Value {
    let params = json!({"name": name, "arguments": arguments});
    send_request(alice, "prompts/get", &params)
}

#[test]
fn a_classs_resources_are_served_with_the_agents() {
    let alice = with_class();
    let list = result(&alice, "resources/list", json!({}));
    let listed = names(&list["resources"], "uri");
    assert!(listed.contains(&"memory://block/memory".to_owned()));
    assert_eq!(listed[listed.len() - 2..], ["docs://readme", "docs://logo"]);
    let readme = list["resources"].as_array().unwrap()[listed.len() - 2].clone();
    assert_eq!(
        readme,
        json!({"uri": "docs://readme", "name": "readme", "mimeType": "text/plain"})
    );
    let templates = result(&alice, "resources/templates/list", json!({}));
    let templates = names(&templates["resourceTemplates"], "uriTemplate");
    assert_eq!(templates.last().unwrap(), "tickets://{id}");
    assert_eq!(
        read_it(&alice, "docs://readme")["result"]["contents"],
        json!([{"uri": "docs://readme", "text": "# Hello"}])
    );
    assert_eq!(
        read_it(&alice, "docs://logo")["result"]["contents"],
        json!([{"uri": "docs://logo", "mimeType": "image/png", "blob": "eHg="}])
    );
    // The class receives the session that the client named.
    let params = json!({"uri": "tickets://session"});
    for (session, answer) in [(None, "-"), (Some("s"), "s")] {
        let read = send_request_in(&alice, session, "resources/read", &params);
        assert_eq!(read["result"]["contents"][0]["text"], answer);
    }
    // The agent's own URIs are never forwarded to the class.
    alice.outbound.calls.borrow_mut().clear();
    for uri in [
        "memory://block/memory",
        "memory://block/nothing",
        "memory:x",
    ] {
        read_it(&alice, uri);
    }
    assert!(alice.outbound.calls.borrow().is_empty());
}

#[test]
fn a_classs_output_is_checked_and_its_errors_stay_in_the_log() {
    let alice = with_class();
    for name in ["nothing", "docs:", ""] {
        let error = read_it(&alice, name)["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]["uri"]),
            (&json!(-32002), &json!(name))
        );
    }
    for name in [
        "text", "shape", "both", "blob", "nameless", "many", "away", "fails",
    ] {
        let answer = read_it(&alice, &format!("tickets://{name}"));
        assert_eq!(answer["error"]["code"], -32603, "{answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("The agent's class "), "{message}");
        assert!(!answer.to_string().contains("secret"), "{answer}");
    }
    assert_eq!(
        read_it(&alice, "tickets://fails")["error"]["message"],
        "The agent's class could not give `tickets://fails`. The Worker's log contains the error."
    );
    for (name, arguments, code) in [
        ("review", json!({"code": "role"}), -32603),
        ("review", json!({"code": "content"}), -32603),
        ("fails", json!({}), -32603),
        ("nobody", json!({}), -32602),
        ("review", json!({"code": 1}), -32602),
        ("review", json!({}), -32602),
    ] {
        let answer = get(&alice, name, arguments);
        assert_eq!(answer["error"]["code"], code, "{answer}");
        assert!(!answer.to_string().contains("secret"), "{answer}");
    }
    assert_eq!(
        get(&alice, "review", json!({}))["error"]["message"],
        "The argument `code` is missing or not valid."
    );
}

#[test]
fn a_classs_prompts_are_listed_completed_and_rendered() {
    let alice = with_class();
    let list = result(&alice, "prompts/list", json!({}));
    assert_eq!(names(&list["prompts"], "name"), ["system", "review"]);
    assert_eq!(
        list["prompts"][1]["arguments"],
        json!([{"name": "code", "required": true}])
    );
    let reply = get(&alice, "review", json!({"code": "1 + 1"}))["result"].clone();
    assert_eq!(
        reply,
        json!({"description": "A review.", "messages": [
            {"role": "user", "content": {"type": "text", "text": "1 + 1"}},
            {"role": "assistant", "content": {"type": "image", "data": "eA==", "mimeType": "image/png"}},
        ]})
    );
    let complete = |of: Value, name: &str, value: &str| {
        let argument = json!({"name": name, "value": value});
        let context = json!({"arguments": {"other": "x"}});
        let params = json!({"ref": of, "argument": argument, "context": context});
        result(&alice, "completion/complete", params)["completion"]["values"].clone()
    };
    let review = json!({"type": "ref/prompt", "name": "review"});
    assert_eq!(complete(review, "code", "al"), json!(["Alphabet", "alpha"]));
    let ticket = json!({"type": "ref/resource", "uri": "tickets://{id}"});
    assert_eq!(complete(ticket, "id", "1"), json!(["1", "10", "1x"]));
    let unknown = json!({"type": "ref/prompt", "name": "nobody"});
    assert_eq!(complete(unknown, "code", ""), json!([]));
}

#[test]
fn a_prompt_may_ask_for_input() {
    let alice = with_class();
    let headers = McpHeaders {
        version: Some(NEWEST),
        method: Some("prompts/get"),
        name: Some("ask"),
        ..json_headers()
    };
    let get = |more: Value, can: Value| {
        let mut params = json!({"name": "ask", "_meta": {
            "io.modelcontextprotocol/protocolVersion": NEWEST,
            "io.modelcontextprotocol/clientCapabilities": can,
        }});
        for (name, value) in more.as_object().unwrap() {
            params[name] = value.clone();
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": params});
        read(post(&alice, None, headers, &body.to_string()))
    };
    let can = json!({"elicitation": {}});
    let (status, answer) = get(json!({}), can.clone());
    let answer = &answer["result"];
    assert_eq!(
        (
            status,
            &answer["resultType"],
            &answer["inputRequests"]["who"]["method"]
        ),
        (200, &json!("input_required"), &json!("elicitation/create"))
    );
    let state = answer["requestState"].as_str().unwrap();
    let who = json!({"who": {"action": "accept"}});
    let more = json!({"requestState": state, "inputResponses": who});
    let (_, answer) = get(more, can.clone());
    assert_eq!(
        answer["result"]["messages"][0]["content"]["text"],
        r#"{"who":{"action":"accept"}} "mine""#
    );
    // The state is valid only for these arguments.
    let more = json!({"requestState": state, "arguments": {"a": "b"}});
    assert_eq!(get(more, can.clone()).1["error"]["code"], -32602);
    let (_, answer) = get(json!({"inputResponses": who}), can);
    assert_eq!(
        answer["result"]["messages"][0]["content"]["text"],
        r#"{"who":{"action":"accept"}} null"#
    );
    let (status, answer) = get(json!({}), json!({}));
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32021)));
}

#[test]
fn a_token_needs_access_to_the_whole_memory() {
    let uri = json!({"uri": "docs://readme"});
    let alice = scoped(with_class(), None, &["getBlock"], &[]);
    assert_eq!(read_it(&alice, "docs://readme")["error"], Value::Null);
    assert!(get(&alice, "review", json!({"code": "x"}))["error"].is_object());
    let alice = scoped(with_class(), None, &["renderPrompt"], &[]);
    assert!(get(&alice, "review", json!({"code": "x"}))["error"].is_null());
    assert!(read_it(&alice, "docs://readme")["error"].is_object());
    let all = ["getBlock", "listSkills", "loadSkill", "renderPrompt"];
    let alice = scoped(with_class(), Some("s"), &all, &[]);
    alice.outbound.calls.borrow_mut().clear();
    let list = result(&alice, "resources/list", json!({}));
    assert!(!names(&list["resources"], "uri").contains(&"docs://readme".to_owned()));
    assert_eq!(
        names(
            &result(&alice, "prompts/list", json!({}))["prompts"],
            "name"
        ),
        ["system"]
    );
    assert_eq!(
        send_request(&alice, "resources/read", &uri)["error"]["code"],
        -32002
    );
    assert!(get(&alice, "review", json!({"code": "x"}))["error"].is_object());
    assert!(alice.outbound.calls.borrow().is_empty());
}

#[test]
fn an_agent_without_a_class_makes_no_call_to_one() {
    let alice = populated();
    result(&alice, "resources/list", json!({}));
    result(&alice, "prompts/list", json!({}));
    assert_eq!(read_it(&alice, "docs://readme")["error"]["code"], -32002);
    let (status, _) = send_newest_request(&alice, "resources/list", json!({}), None);
    assert_eq!(status, 200);
    assert!(alice.outbound.calls.borrow().is_empty());
    // A class without the method `mcp` adds no resources or prompts.
    let mut alice = with_class();
    alice.outbound.replies = Some(Box::new(|_| Some(Ok(ScriptedAnswer::text(404, "")))));
    let list = result(&alice, "prompts/list", json!({}));
    assert_eq!(names(&list["prompts"], "name"), ["system"]);
}
