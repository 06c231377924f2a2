//! A token's rights at a provider's API are those of chat.

use serde_json::{Value, json};

use super::{assistant, chat, headers, in_session, remember, tool, unstreamed_text, user};
use crate::Alice;
use access::{Allow, Caller, TokenScope};
use api::operations::tokens::MintToken;
use base::ids::Id;
use models::caller_fields::ProviderApi;

fn scoped(session: Option<&str>, allow: Allow) -> Caller {
    Caller::Scoped(TokenScope {
        session_id: session.map(|id| Id::parse(id.to_owned()).unwrap()),
        operations: Some(vec!["chat".to_owned()]),
        allow,
        expires_at: i64::MAX,
        ..TokenScope::default()
    })
}

/// Whether the request to the model contains the memory prompt, and whether it contains tools.
fn memory_sent(alice: &Alice, header: Option<&str>) -> (bool, bool) {
    alice.outbound.answer(unstreamed_text("Hello."));
    let pairs: Vec<(&str, &str)> = header
        .map(|it| ("x-session-memory", it))
        .into_iter()
        .collect();
    alice.complete(&headers(&pairs), chat(json!([user("hi")])));
    let request = alice.last_sent();
    let has_prompt = request.to_string().contains("Likes tea.");
    (has_prompt, request.get("tools").is_some())
}

#[test]
fn memory_mode_is_set_by_configuration_token_and_header() {
    let mut alice = Alice::with_model();
    remember(&alice);
    alice.ok(
        "setBlock",
        json!({"label": "memory", "content": "Likes tea."}),
    );
    let (off, read, on) = ((false, false), (true, false), (true, true));
    assert_eq!(memory_sent(&alice, None), on);
    alice.ok("configureAgent", json!({"sessionMemory": "off"}));
    assert_eq!(memory_sent(&alice, None), off);
    assert_eq!(memory_sent(&alice, Some("on")), on);
    let minted = |memory: &str| {
        let body = json!({"preset": "model", "sessionMemory": memory, "expiresIn": 60});
        let given: MintToken = serde_json::from_value(body).unwrap();
        given.scope(&alice.agent(&alice.db)).unwrap()
    };
    let (reads, writes) = (minted("read"), minted("on"));
    alice.caller = Caller::Scoped(writes);
    assert_eq!(memory_sent(&alice, None), on);
    alice.caller = Caller::Scoped(reads);
    assert_eq!(memory_sent(&alice, None), read);
    assert_eq!(memory_sent(&alice, Some("off")), off);
    for api in [ProviderApi::ChatCompletions, ProviderApi::Responses] {
        let body = match api {
            ProviderApi::Responses => json!({"model": "m", "input": "hi"}),
            _ => chat(json!([user("hi")])),
        };
        let result = alice.begin_api(api, &headers(&[("x-session-memory", "on")]), &body);
        let error = result.err().unwrap();
        assert_eq!(error.code.name(), "forbidden");
        assert_eq!(error.field.as_deref(), Some("x-session-memory"));
    }
}

fn refused(alice: &Alice, body: &Value) -> (&'static str, Option<String>) {
    let api = ProviderApi::ChatCompletions;
    let error = alice.begin_api(api, &headers(&[]), body).err().unwrap();
    (error.code.name(), error.field.clone())
}

#[test]
fn a_token_sets_model_prompt_and_tools_only_if_allowed() {
    let mut alice = Alice::with_model();
    alice.caller = scoped(None, Allow::default());
    let plain = chat(json!([user("hi")]));
    let with = |name: &str, value: Value| {
        let mut body = plain.clone();
        body[name] = value;
        body
    };
    let cases = [
        (with("model", json!("dear")), "model"),
        (
            chat(json!([{"role": "system", "content": "Obey."}, user("hi")])),
            "system",
        ),
        (with("tools", json!([tool("look")])), "tools"),
        (with("web_search_options", json!({})), "web_search_options"),
    ];
    for (body, field) in &cases {
        let (code, named) = refused(&alice, body);
        assert_eq!((code, named.as_deref()), ("forbidden", Some(*field)));
    }
    alice.outbound.answer(unstreamed_text("Hello!"));
    alice.complete(&headers(&[]), plain);

    alice.caller = scoped(
        None,
        Allow {
            models: vec![Id::parse("openai:dear".to_owned()).unwrap()],
            system_instructions: true,
            client_tools: true,
            ..Allow::default()
        },
    );
    for (body, _) in cases {
        alice.outbound.answer(unstreamed_text("Hello!"));
        alice.complete(&headers(&[]), body);
    }
}

#[test]
fn a_session_token_is_confined_to_its_session() {
    let mut alice = Alice::with_model();
    alice.outbound.answer(unstreamed_text("Secret."));
    alice.complete(&in_session("other"), chat(json!([user("hi")])));
    alice.caller = scoped(Some("mine"), Allow::default());
    let api = ProviderApi::ChatCompletions;
    let named = alice.begin_api(api, &in_session("other"), &chat(json!([user("hi")])));
    assert_eq!(named.err().unwrap().code.name(), "forbidden");
    // Knowing another session's history gives no access to it.
    alice.outbound.answer(unstreamed_text("Mine."));
    let history = json!([user("hi"), assistant("Secret."), user("More?")]);
    let (session, _) = alice.complete(&headers(&[]), chat(history));
    assert_eq!(session, "mine");
    alice.caller = Caller::Owner;
    assert_eq!(alice.shown_in("other").len(), 2);
}

#[test]
fn a_token_without_chat_cannot_list_models() {
    let mut alice = Alice::with_model();
    alice.caller = Caller::Scoped(TokenScope {
        operations: Some(vec!["getSession".to_owned()]),
        expires_at: i64::MAX,
        ..TokenScope::default()
    });
    assert_eq!(refused(&alice, &chat(json!([user("hi")]))).0, "forbidden");
    let agent = alice.agent(&alice.db);
    let family = provider_api::calls::ApiFamily::OpenAi;
    let list = provider_api::models_list::answer(&agent, family, None);
    assert_eq!(list.unwrap_err().code.name(), "forbidden");
}

#[test]
fn the_model_list_has_the_agents_and_the_tokens_models() {
    let mut alice = Alice::with_model();
    alice.caller = scoped(
        None,
        Allow {
            models: vec![Id::parse("anthropic:claude-x".to_owned()).unwrap()],
            ..Allow::default()
        },
    );
    let agent = alice.agent(&alice.db);
    let family = provider_api::calls::ApiFamily::OpenAi;
    let list = provider_api::models_list::answer(&agent, family, None).unwrap();
    let list: Value = serde_json::from_str(&list).unwrap();
    let ids: Vec<&str> = (list["data"].as_array().unwrap().iter())
        .map(|model| model["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["m", "anthropic:claude-x"]);
    assert!(provider_api::models_list::answer(&agent, family, Some("m")).is_ok());
    assert!(provider_api::models_list::answer(&agent, family, Some("x")).is_err());
}
