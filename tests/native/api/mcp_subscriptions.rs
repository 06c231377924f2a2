//! Subscriptions to MCP resources: what the Worker that holds a stream receives.

use serde_json::{Value, json};

use super::mcp::{Client, populated, scoped, send_newest_request, send_request};
use super::mcp_offered::with_class;
use crate::Alice;
use access::Caller;
use base::testing::{ScriptedAnswer, wait_for};

const MEMORY: &str = "memory://block/memory";

fn send(client: &Client, alice: &Alice, method: &str, params: Value) -> Value {
    let answer = wait_for(client.send(alice, method, &params));
    serde_json::from_str(&answer.body.into_string()).unwrap()
}

fn poll(client: &Client, alice: &Alice, resources: Value) -> Value {
    let params = json!({"stream": "a", "resources": resources});
    let answer = send(client, alice, "session-agent/poll", params);
    assert!(answer["error"].is_null(), "{answer}");
    answer["result"].clone()
}

fn write(alice: &Alice, content: &str) {
    alice.ok("setBlock", json!({"label": "memory", "content": content}));
}

#[test]
fn a_client_with_a_handshake_subscribes_and_unsubscribes() {
    let alice = populated();
    let client = Client::with(&alice, &json!({}));
    let uri = json!({"uri": MEMORY});
    let answer = send(&client, &alice, "resources/subscribe", uri.clone());
    assert_eq!(answer["result"], json!({}));
    // A change between the subscription and the first poll is reported, too.
    write(&alice, "Likes coffee.");
    let answer = poll(&client, &alice, json!({}));
    assert_eq!(answer["changed"], json!([MEMORY]));
    let state = answer["resources"].clone();
    let answer = poll(&client, &alice, state.clone());
    assert_eq!(
        (&answer["changed"], &answer["resources"]),
        (&json!([]), &state)
    );
    // The object's next activation restores its state from the stream.
    let next = client.after_eviction();
    write(&alice, "Likes tea.");
    let answer = poll(&next, &alice, state.clone());
    assert_eq!(answer["changed"], json!([MEMORY]));
    // Another stream of the session starts at this one's position.
    let answer = poll(&next, &alice, json!({}));
    assert_eq!(answer["resources"].as_object().unwrap().len(), 1);
    assert_eq!(
        send(&next, &alice, "resources/unsubscribe", uri)["result"],
        json!({})
    );
    for known in [state, json!({})] {
        let answer = poll(&next, &alice, known);
        assert_eq!(answer, json!({"resources": {}, "changed": []}));
    }
    // Removing a block is one change; defining it again is another.
    send(&next, &alice, "resources/subscribe", json!({"uri": MEMORY}));
    let mut state = poll(&next, &alice, json!({}))["resources"].clone();
    alice.ok("removeBlock", json!({"label": "memory"}));
    for _ in 0..2 {
        let answer = poll(&next, &alice, state);
        assert_eq!(answer["changed"], json!([MEMORY]));
        state = answer["resources"].clone();
        alice.ok(
            "defineBlock",
            json!({"label": "memory", "kind": "writable"}),
        );
    }
}

#[test]
fn a_subscription_needs_a_readable_resource() {
    let alice = populated();
    let without = send_request(&alice, "resources/subscribe", &json!({"uri": MEMORY}));
    assert_eq!(without["error"]["code"], -32600);
    let client = Client::with(&alice, &json!({}));
    let subscribe = |alice: &Alice, uri: &str| {
        send(&client, alice, "resources/subscribe", json!({"uri": uri}))["error"]["code"].clone()
    };
    for (uri, code) in [
        ("memory://block/nothing", json!(-32002)),
        ("memory://block/%zz", json!(-32602)),
        ("docs://readme", json!(-32002)),
        (&format!("a:{}", "x".repeat(999)), json!(-32602)),
        ("memory://skill/skills/a%2Fb%20c.md", Value::Null),
    ] {
        assert_eq!(subscribe(&alice, uri), code, "{uri}");
    }
    for n in 0..31 {
        let label = format!("b{n}");
        alice.ok("defineBlock", json!({"label": label, "kind": "writable"}));
        assert_eq!(
            subscribe(&alice, &format!("memory://block/{label}")),
            Value::Null
        );
    }
    assert_eq!(subscribe(&alice, MEMORY), -32602);
    // A client with other rights has other subscriptions.
    let alice = scoped(alice, None, &["getBlock"], &[]);
    assert_eq!(poll(&client, &alice, json!({}))["resources"], json!({}));
    let alice = scoped(alice, None, &["search"], &[]);
    let params = json!({"stream": "a", "resources": {MEMORY: "x"}});
    let answer = send(&client, &alice, "session-agent/poll", params);
    assert_eq!(answer["error"]["data"]["code"], "forbidden");
}

#[test]
fn a_client_of_the_newest_revision_lists_its_subscriptions() {
    let alice = populated();
    let poll = |notifications: Value, resources: Value| {
        let params = json!({"stream": "a", "notifications": notifications, "resources": resources});
        send_newest_request(&alice, "session-agent/poll", params, None)
    };
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": [MEMORY, "no address"]});
    let (_, answer) = poll(filter.clone(), Value::Null);
    let state = answer["result"]["resources"].clone();
    assert_eq!(state.as_object().unwrap().len(), 1);
    assert_eq!(answer["result"]["changed"], json!([]));
    write(&alice, "Likes coffee.");
    let (_, answer) = poll(filter, state);
    assert_eq!(answer["result"]["changed"], json!([MEMORY]));
    let many = json!({"resourceSubscriptions": vec![MEMORY; 33]});
    for filter in [
        many,
        json!({"resourceSubscriptions": MEMORY}),
        json!({"resourceSubscriptions": [7]}),
        json!({"resourceSubscriptions": ["x".repeat(1_001)]}),
    ] {
        let (status, answer) = poll(filter, Value::Null);
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32602)));
    }
    // The older methods are not available there.
    let params = json!({"uri": MEMORY});
    assert_eq!(
        send_newest_request(&alice, "resources/subscribe", params, None).0,
        404
    );
}

#[test]
fn a_foreign_state_is_bounded_and_read_with_the_callers_rights() {
    let alice = populated();
    let client = Client::with(&alice, &json!({}));
    let mut state = json!({"a": 1, "memory://block/%zz": "x", "nothing": "x"});
    assert_eq!(poll(&client, &alice, state.clone())["resources"], json!({}));
    for n in 0..40 {
        state[format!("docs://{n}")] = json!("x");
    }
    let answer = poll(&client, &alice, state);
    assert_eq!(answer["resources"].as_object().unwrap().len(), 32);
    for params in [json!({}), json!({"stream": "x".repeat(65)})] {
        let answer = send(&client, &alice, "session-agent/poll", params);
        assert_eq!(answer["error"]["code"], -32602);
    }
    let open = |stream: usize| {
        let params = json!({"stream": stream.to_string()});
        send(&client, &alice, "session-agent/poll", params)["error"]["data"]["code"].clone()
    };
    // One of the 32 streams is already open.
    for stream in 0..31 {
        assert_eq!(open(stream), Value::Null);
    }
    assert_eq!((open(31), open(30)), (json!("rate_limited"), Value::Null));
    alice.host.advance(90_000);
    assert_eq!(open(31), Value::Null);
}

#[test]
fn one_token_cannot_use_up_streams_and_subscriptions() {
    let alice = populated();
    let client = Client::with(&alice, &json!({}));
    let open = |alice: &Alice, stream: &str| {
        let params = json!({"stream": stream});
        send(&client, alice, "session-agent/poll", params)["error"]["data"]["code"].clone()
    };
    let alice = scoped(alice, None, &["getBlock"], &[]);
    for stream in 0..32 {
        assert_eq!(open(&alice, &stream.to_string()), Value::Null);
    }
    assert_eq!(open(&alice, "more"), "rate_limited");
    let token = alice.caller.clone();
    let mut alice = alice;
    alice.caller = Caller::Owner;
    // Another caller's stream of the same name is separate.
    for stream in 0..16 {
        assert_eq!(open(&alice, &stream.to_string()), Value::Null);
    }
    assert_eq!(open(&alice, "more"), "rate_limited");
    // The subscriptions of the token's many sessions displace only its own.
    let uri = json!({"uri": MEMORY});
    send(&client, &alice, "resources/subscribe", uri.clone());
    alice.caller = token;
    let mut other = Client {
        clients: client.clients,
        ..Client::default()
    };
    for session in 0..100 {
        other.session = Some(format!(".{session}"));
        let answer = send(&other, &alice, "resources/subscribe", uri.clone());
        assert_eq!(answer["result"], json!({}));
    }
    other.session = client.session;
    alice.caller = Caller::Owner;
    let params = json!({"stream": "0", "resources": {}});
    let answer = send(&other, &alice, "session-agent/poll", params);
    assert_eq!(answer["result"]["resources"].as_object().unwrap().len(), 1);
}

#[test]
fn a_class_reports_a_changed_resource() {
    let mut alice = with_class();
    let client = Client::with(&alice, &json!({}));
    let answers = |alice: &mut Alice, version: &'static str| {
        alice.outbound.replies = Some(Box::new(move |call| {
            let request: Value = serde_json::from_str(&call.body).unwrap();
            assert_eq!(request["ask"], "version");
            Some(match version {
                "fails" => Ok(ScriptedAnswer::text(500, "")),
                _ => ScriptedAnswer::json(&json!({"version": version})),
            })
        }));
    };
    answers(&mut alice, "1");
    let uri = json!({"uri": "docs://readme"});
    send(&client, &alice, "resources/subscribe", uri);
    let mut state = json!({});
    // A failing function changes nothing.
    for (answer, changed) in [("1", false), ("fails", false), ("2", true), ("2", false)] {
        answers(&mut alice, answer);
        let reply = poll(&client, &alice, state);
        assert_eq!(
            reply["changed"] == json!(["docs://readme"]),
            changed,
            "{answer}"
        );
        state = reply["resources"].clone();
    }
}
