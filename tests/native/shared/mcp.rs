//! Messages of the Model Context Protocol.

use serde_json::{Value, json};

use crate::Alice;
use api::mcp::{Clients, McpAnswer, McpHeaders, McpRequest, answer};
use base::testing::wait_for;

pub fn post(
    alice: &Alice,
    session_id: Option<&str>,
    headers: McpHeaders<'_>,
    body: &str,
) -> McpAnswer {
    wait_for(answer(
        &alice.agent(&alice.db),
        McpRequest {
            session_id: session_id.map(str::to_owned),
            headers,
            body: body.as_bytes().to_vec(),
            clients: &Clients::default(),
            outbox: None,
        },
    ))
}

pub fn json_headers() -> McpHeaders<'static> {
    McpHeaders {
        content_type: Some("application/json"),
        ..McpHeaders::default()
    }
}

pub fn read(answer: McpAnswer) -> (u16, Value) {
    let text = answer.body.into_string();
    (
        answer.status,
        serde_json::from_str(&text).unwrap_or_default(),
    )
}

/// A request of a client that has completed the handshake.
pub fn send_request_in(
    alice: &Alice,
    session_id: Option<&str>,
    method: &str,
    params: &Value,
) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let (_, reply) = read(post(alice, session_id, json_headers(), &body.to_string()));
    assert_eq!(
        (&reply["jsonrpc"], &reply["id"]),
        (&json!("2.0"), &json!(7))
    );
    reply
}
