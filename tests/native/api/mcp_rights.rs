//! No MCP method does more than the operations behind it: both are compared for each kind of token
//! and each session that an address can name.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Alice;
use crate::api::attacks::{KINDS, bearer, enter};
use crate::api::examples::populated;
use api::mcp::{Clients, McpHeaders, McpRequest, answer};
use base::testing::wait_for;

/// The operations for which a token may have been minted.
const NAMED: &[&str] = &[
    "getBlock",
    "getBlocks",
    "listSkills",
    "loadSkill",
    "getTools",
    "callTool",
    "search",
    "renderPrompt",
];

const LABELS: &[&str] = &["memory", "kb", "skills", "theirs", "mine", "nothing"];

fn prepared() -> Alice {
    let alice = populated();
    for (session, label, text) in [
        (Value::Null, "theirs", "The agent's own."),
        (json!("s"), "mine", "Of s."),
    ] {
        let block = json!({"sessionId": session, "label": label, "kind": "writable"});
        alice.ok("defineBlock", block);
        alice.ok(
            "setBlock",
            json!({"sessionId": session, "label": label, "content": text}),
        );
    }
    for session in [Value::Null, json!("s")] {
        let key = if session.is_null() {
            "of the agent"
        } else {
            "of s"
        };
        let skill = json!({"sessionId": session, "label": "skills", "key": key, "content": key});
        alice.ok("putSkill", skill);
    }
    alice.ok("search", json!({"query": "anything"}));
    alice
}

/// The answer of a method, or the code of the error that refuses it.
fn call_mcp(
    alice: &Alice,
    session: Option<&str>,
    method: &str,
    params: &Value,
) -> Result<Value, String> {
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let request = McpRequest {
        session_id: session.map(str::to_owned),
        headers: McpHeaders {
            content_type: Some("application/json"),
            ..McpHeaders::default()
        },
        body: message.to_string().into_bytes(),
        clients: &Clients::default(),
        outbox: None,
    };
    let reply = wait_for(answer(&alice.agent(&alice.db), request));
    let reply: Value = serde_json::from_str(&reply.body.into_string()).unwrap();
    if !reply["result"].is_null() {
        Ok(reply["result"].clone())
    } else {
        Err(match reply["error"]["data"]["code"].as_str() {
            Some(code) => code.to_owned(),
            None => "not there".to_owned(),
        })
    }
}

/// A caller at one of the protocol's URLs.
struct Place<'a> {
    alice: &'a Alice,
    named: Option<&'a str>,
}

impl Place<'_> {
    /// The session of the operations behind the methods.
    fn session(&self) -> Option<String> {
        let only = self.alice.caller.only_session();
        let named = self.named.map(str::to_owned);
        named.or_else(|| only.map(ToString::to_string))
    }

    fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        call_mcp(self.alice, self.named, method, &params)
    }

    /// The operation that is behind a method, with its input.
    fn operation(
        &self,
        session: Option<&str>,
        name: &str,
        mut body: Value,
    ) -> Result<Value, String> {
        if let Some(session) = session {
            body["sessionId"] = json!(session);
        }
        let answer = self.alice.call(name, body);
        answer.map_err(|error| error.code.name().to_owned())
    }

    fn here(&self, name: &str, body: Value) -> Result<Value, String> {
        self.operation(self.session().as_deref(), name, body)
    }

    /// The block that `getBlock` returns: the session's, or else the agent's.
    fn block(&self, label: &str) -> Result<Value, String> {
        let body = json!({"label": label});
        if let Some(session) = self.session() {
            let own = self.operation(Some(&session), "getBlock", body.clone())?;
            if !own.is_null() || self.alice.caller.only_session().is_some() {
                return Ok(own);
            }
        }
        self.operation(None, "getBlock", body)
    }

    fn lists(&self, method: &str, field: &str, name: &str) -> BTreeSet<String> {
        let answer = self.call(method, json!({})).unwrap_or_default();
        let items = answer[field].as_array().cloned().unwrap_or_default();
        let name = |item: &Value| item[name].as_str().unwrap().to_owned();
        items.iter().map(name).collect()
    }
}

#[test]
fn mcp_methods_show_the_same_data_as_their_operations() {
    let mut alice = prepared();
    let before = alice.db.dump();
    let mut tried = 0;
    for (kind, named) in KINDS
        .iter()
        .flat_map(|kind| NAMED.iter().map(move |it| (*kind, *it)))
    {
        let token = bearer(kind, &alice, named);
        if enter(&mut alice, token.as_deref()).is_err() {
            continue;
        }
        for address in [None, Some("s"), Some("t"), Some("nobody")] {
            let case = format!("{kind:?} for {named} at {address:?}");
            let place = Place {
                alice: &alice,
                named: address,
            };
            let only = alice.caller.only_session().map(ToString::to_string);
            if address.is_some() && only.is_some() && only.as_deref() != address {
                for method in ["tools/list", "resources/list", "prompts/list"] {
                    assert_eq!(
                        place.call(method, json!({})),
                        Err("forbidden".to_owned()),
                        "{case}"
                    );
                }
                continue;
            }
            tried += LABELS.len() + 4;
            blocks_are_those_of_get_block(&place, &case);
            documents_are_those_of_the_skills(&place, &case);
            tools_are_those_that_may_be_called(&place, &case);
            let rendered = place.here("renderPrompt", json!({}));
            let answer = place.call("prompts/get", json!({"name": "system"}));
            let answer = answer.map(|answer| answer["messages"][0]["content"]["text"].clone());
            assert_eq!(
                answer,
                rendered.map(|rendered| rendered["prompt"].clone()),
                "{case}"
            );
        }
    }
    assert!(tried > 2_000, "{tried}");
    assert_eq!(alice.db.dump(), before, "reading writes nothing");
}

fn blocks_are_those_of_get_block(place: &Place<'_>, case: &str) {
    let listed = place.lists("resources/list", "resources", "uri");
    for label in LABELS {
        let uri = format!("memory://block/{label}");
        let answer = place.call("resources/read", json!({"uri": uri}));
        let answer = answer.map(|answer| answer["contents"][0]["text"].clone());
        let shown = match place.block(label) {
            Ok(block) if block.is_null() => Err("not there".to_owned()),
            Ok(block) => Ok(block["content"].clone()),
            Err(code) => Err(code),
        };
        assert_eq!(answer, shown, "{label} {case}");
        assert_eq!(
            listed.contains(&uri),
            shown.is_ok(),
            "{label} {case}: {listed:?}"
        );
    }
}

fn documents_are_those_of_the_skills(place: &Place<'_>, case: &str) {
    // If the session and the agent have blocks of the same label, the session's is listed.
    let session = place.session();
    let own = session.as_deref().filter(|session| *session == "s");
    let is_agents = own.is_none() && place.alice.caller.only_session().is_none();
    let owner = own.map(Some).or(is_agents.then_some(None));
    let expected: BTreeSet<String> = match owner {
        None => BTreeSet::new(),
        Some(_) if session.as_deref() == Some("nobody") => BTreeSet::new(),
        Some(owner) => {
            let page = place.operation(owner, "listSkills", json!({"label": "skills"}));
            let page = page.unwrap_or_default();
            let skills = page["skills"].as_array().cloned().unwrap_or_default();
            let key = |skill: &Value| skill["key"].as_str().unwrap().replace(' ', "%20");
            skills
                .iter()
                .map(|it| format!("memory://skill/skills/{}", key(it)))
                .collect()
        }
    };
    let mut listed = place.lists("resources/list", "resources", "uri");
    listed.retain(|uri| uri.starts_with("memory://skill/"));
    assert_eq!(listed, expected, "{case}");
    for key in ["of the agent", "of s", "nothing"] {
        let uri = format!("memory://skill/skills/{}", key.replace(' ', "%20"));
        let answer = place.call("resources/read", json!({"uri": uri}));
        let answer = answer.map(|answer| answer["contents"][0]["text"].clone());
        let shown = place.here(
            "loadSkill",
            json!({"label": "skills", "key": key, "dryRun": true}),
        );
        let shown = match shown {
            Err(code) if code == "skill_not_found" => Err("not there".to_owned()),
            shown => shown.map(|shown| shown["content"].clone()),
        };
        assert_eq!(answer, shown, "{key} {case}");
    }
}

fn tools_are_those_that_may_be_called(place: &Place<'_>, case: &str) {
    let listed = place.lists("tools/list", "tools", "name");
    // Calling an unknown tool shows whether the caller may call tools, and changes nothing.
    let called = place.here("callTool", json!({"name": "nothing", "arguments": {}}));
    if called == Err("session_not_found".to_owned()) {
        assert_eq!(place.call("tools/list", json!({})), called, "{case}");
        return;
    }
    let may_call = called.is_ok();
    let may_search = place
        .operation(None, "search", json!({"query": "x"}))
        .is_ok();
    let shown = match (place.here("getTools", json!({})), may_call) {
        (Ok(shown), true) => shown["tools"].as_array().unwrap().clone(),
        // A token that may only call tools sees the tools that it may call.
        (Err(_), true) => {
            assert!(listed.contains("search_context"), "{case}: {listed:?}");
            listed.iter().map(|name| json!({"name": name})).collect()
        }
        (_, false) => Vec::new(),
    };
    for name in ["set_context", "search_context", "load_context"] {
        let is_shown = shown.iter().any(|tool| tool["name"] == name);
        assert_eq!(listed.contains(name), is_shown, "{name} {case}: {listed:?}");
    }
    assert_eq!(listed.contains("search"), may_search, "{case}: {listed:?}");
    let call = json!({"name": "search_context", "arguments": {"label": "kb", "query": "c"}});
    let called = place.call("tools/call", call.clone());
    let done = place.here("callTool", call);
    assert_eq!(
        called.map(|called| called["content"][0]["text"].clone()),
        done.map(|done| done["output"].clone()),
        "{case}"
    );
}

/// The preset for reading contains no operation that writes, and none of its tools writes.
#[test]
fn a_read_only_token_sees_no_tool_it_may_not_call() {
    let mut alice = prepared();
    for kind in KINDS {
        let token = bearer(kind, &alice, "search");
        if enter(&mut alice, token.as_deref()).is_err() {
            continue;
        }
        let place = Place {
            alice: &alice,
            named: None,
        };
        for name in place.lists("tools/list", "tools", "name") {
            let arguments = json!({"label": "memory", "query": "x", "key": "k", "content": ""});
            let arguments = if name == "search" {
                json!({"query": "x"})
            } else {
                arguments
            };
            let answer = place.call("tools/call", json!({"name": name, "arguments": arguments}));
            assert!(answer.is_ok(), "{name} by {kind:?}: {answer:?}");
        }
    }
}
