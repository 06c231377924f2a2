//! Data that only the secret may read: the values of headers, and everything in a URL except its
//! host and path.

use serde_json::{Value, json};

use crate::Alice;
use crate::api::attacks::{KINDS, Kind, bearer, enter};
use crate::api::examples::{READS, examples, populated};
use api::table::OPERATIONS;
use base::testing::ScriptedAnswer;

const REFERENCE: &str = "Bearer secret:KEY";

fn with_credentials() -> Alice {
    let alice = populated();
    let settings = [
        ("TOOL_SECRETS", r#"{"KEY": "https://tools.example"}"#),
        ("KEY", "the-secret-key"),
    ];
    for (name, value) in settings {
        alice
            .outbound
            .settings
            .borrow_mut()
            .insert(name.to_owned(), value.to_owned());
    }
    let headers = json!({"authorization": REFERENCE, "x-key": "literal-key"});
    alice.ok(
        "defineTool",
        json!({"name": "weather", "description": "Weather.",
        "url": "https://tools.example/weather/in-the-path?key=in-the-query", "headers": headers}),
    );
    let result = |id: i64, result: &Value| {
        ScriptedAnswer::json(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
    };
    for answer in [
        result(1, &json!({"protocolVersion": "2025-11-25"})),
        Ok(ScriptedAnswer::text(202, "")),
        result(
            2,
            &json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}]}),
        ),
    ] {
        alice.outbound.answer(answer);
    }
    alice.ok("defineTool", json!({"name": "gh", "mcp": "https://tools.example/mcp/in-the-path?key=in-the-query", "headers": headers}));
    alice.ok(
        "configureAgent",
        json!({"onTurnEnd": {"url": "https://tools.example/ended/in-the-path?key=in-the-query"}}),
    );
    alice
}

#[test]
fn only_the_secret_sees_credentials() {
    let mut tried = 0;
    for kind in KINDS {
        let mut alice = with_credentials();
        for example in examples() {
            let entry = OPERATIONS
                .iter()
                .find(|entry| entry.name == example.operation)
                .unwrap();
            if !READS.contains(&entry.name) || entry.name == "mintToken" {
                continue;
            }
            let token = bearer(kind, &alice, entry.name);
            if enter(&mut alice, token.as_deref()).is_err() {
                continue;
            }
            let Ok(answer) = alice.call(entry.name, example.body) else {
                continue;
            };
            let answer = answer.to_string();
            let case = format!("{} by {kind:?}", entry.name);
            for credential in ["literal", "in-the-path", "in-the-query", "the-secret-key"] {
                let contains_credential = answer.contains(credential);
                let may = kind == Kind::Secret && credential != "the-secret-key";
                assert!(may || !contains_credential, "{case}: {answer}");
            }
            tried += 1;
        }
    }
    assert!(tried > 200, "{tried}");
}

#[test]
fn a_reader_sees_header_names_and_target_hosts() {
    for kind in [Kind::ReadPreset, Kind::Secret] {
        let mut alice = with_credentials();
        let token = bearer(kind, &alice, "listTools");
        enter(&mut alice, token.as_deref()).unwrap();
        let listed = alice.ok("listTools", json!({}));
        let tools = listed["tools"].as_array().unwrap();
        let weather = tools.iter().find(|tool| tool["name"] == "weather").unwrap();
        let config = alice.ok("getConfig", json!({}));
        let (headers, place) = match kind {
            Kind::Secret => (
                json!({"authorization": REFERENCE, "x-key": "literal-key"}),
                "/in-the-path?key=in-the-query",
            ),
            _ => (json!({"authorization": "set", "x-key": "set"}), ""),
        };
        let address = |path: &str| match place {
            "" => "https://tools.example".to_owned(),
            place => format!("https://tools.example/{path}{place}"),
        };
        assert_eq!(weather["headers"], headers);
        assert_eq!(weather["url"], address("weather"));
        assert_eq!(listed["servers"][0]["headers"], headers);
        assert_eq!(listed["servers"][0]["mcp"], address("mcp"));
        assert_eq!(config["onTurnEnd"]["url"], address("ended"));
    }
}

#[test]
fn possible_credentials_in_a_url_are_redacted() {
    use base::outbound::redact_url;
    for (url, shown) in [
        ("https://a.example/x/y?k=1#f", "https://a.example"),
        (
            "https://user:pass@a.example:8443/x@y?k",
            "https://a.example:8443",
        ),
        ("https://a.example?k=1", "https://a.example"),
        ("https://u@v@a.example", "https://a.example"),
        ("https://a.example/#k", "https://a.example"),
        ("a.example?k", "a.example"),
    ] {
        assert_eq!(redact_url(url), shown);
    }
}
