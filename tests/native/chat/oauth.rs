//! Tool servers that require a person's authorization: how it starts and ends, which request has
//! which credential, and when the person must authorize again.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::turns::{calls, text_answer};
use crate::Alice;
use api::authorization::{ReturnPage, answer_return, check_return, describe_client};
use api::route::{self, Route};
use base::outbound::{CallFailure, Endpoint, RequestForm};
use base::testing::{ScriptedAnswer, wait_for};
use chat::tools::mcp::oauth::finish::Return;

const URL: &str = "https://tools.example/mcp";
const ISSUER: &str = "https://login.example";
const WORKER: &str = "https://memory.example.com";
const CALLBACK: &str = "https://memory.example.com/oauth/callback";

type Answer = Result<ScriptedAnswer, CallFailure>;

fn document(body: &Value) -> Answer {
    ScriptedAnswer::json(body)
}

fn status(status: u16) -> Answer {
    Ok(ScriptedAnswer::text(status, ""))
}

fn result(id: i64, result: Value) -> Answer {
    ScriptedAnswer::json(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

fn resource() -> Answer {
    document(
        &json!({"resource": URL, "authorization_servers": [ISSUER], "scopes_supported": ["read"]}),
    )
}

fn metadata_with(more: &Value) -> Value {
    let mut metadata = json!({
        "issuer": ISSUER, "authorization_endpoint": "https://login.example/authorize",
        "token_endpoint": "https://login.example/token",
        "registration_endpoint": "https://login.example/register",
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
    });
    let fields = metadata.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    metadata
}

fn metadata() -> Answer {
    document(&metadata_with(&json!({})))
}

fn registered() -> Answer {
    let body = json!({"client_id": "c-1", "client_secret": "client/secret", "token_endpoint_auth_method": "client_secret_basic"});
    document(&body)
}

fn tokens(access: &str, refresh: &str) -> Answer {
    document(
        &json!({"access_token": access, "token_type": "bearer", "expires_in": 3600, "refresh_token": refresh}),
    )
}

fn listed() -> [Answer; 3] {
    [
        result(1, json!({"protocolVersion": "2025-11-25"})),
        status(202),
        result(
            2,
            json!({"tools": [{"name": "a", "description": "The a.", "inputSchema": {"type": "object"}}]}),
        ),
    ]
}

fn text(text: &str) -> Answer {
    result(1, json!({"content": [{"type": "text", "text": text}]}))
}

/// The fields of a query or a form.
fn fields(encoded: &str) -> Value {
    let query = encoded.split_once('?').map_or(encoded, |(_, query)| query);
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let decoded = pairs.map(|(name, value)| {
        let value = route::decode("field", value).unwrap();
        (name.to_owned(), Value::from(value))
    });
    Value::Object(decoded.collect())
}

impl Alice {
    fn with_oauth() -> Self {
        let alice = Self::with_model();
        let mut settings = alice.outbound.settings.borrow_mut();
        for (name, value) in [
            (
                "TOOL_ORIGINS",
                "https://tools.example https://login.example",
            ),
            ("PUBLIC_URL", WORKER),
            (
                "TOOL_TOKEN_KEY",
                "a key of at least 32 characters, for tests",
            ),
        ] {
            settings.insert(name.to_owned(), value.to_owned());
        }
        drop(settings);
        alice.set_challenge(r#"Bearer resource_metadata="https://tools.example/about""#);
        alice
    }

    fn set_challenge(&self, challenge: &str) {
        *self.outbound.challenge.borrow_mut() = Some(challenge.to_owned());
    }

    fn add_answers(&self, answers: impl IntoIterator<Item = Answer>) {
        for answer in answers {
            self.outbound.answer(answer);
        }
    }

    /// Defines the server, which requires authorization. Returns the URL to open.
    fn define_unauthorized_server(&self, more: &Value, answers: Vec<Answer>) -> String {
        self.add_answers([status(401)].into_iter().chain(answers));
        let mut input = json!({"name": "gh", "mcp": URL, "needsApproval": false});
        let given = input.as_object_mut().unwrap();
        given.extend(more.as_object().unwrap().clone());
        let defined = self.ok("defineTool", input);
        assert_eq!(defined["needsAuthorization"], true, "{defined}");
        assert_eq!(defined["tools"], json!([]));
        defined["authorizationUrl"].as_str().unwrap().to_owned()
    }

    fn begin_authorization(&self) -> String {
        self.define_unauthorized_server(&json!({}), vec![resource(), metadata(), registered()])
    }

    /// Like `begin_authorization`, for an agent that has registered its client.
    fn begin_registered(&self) -> String {
        self.define_unauthorized_server(&json!({}), vec![resource(), metadata()])
    }

    /// The browser calls the redirect URL with these fields.
    fn return_with(&self, query: &str) -> ReturnPage {
        let address = format!("{CALLBACK}?{query}");
        let Route::OAuthReturn { agent, returned } = route::parse("GET", &address).unwrap() else {
            panic!("{address}");
        };
        assert_eq!(agent, "alice");
        wait_for(answer_return(&self.agent(&self.db), &returned))
    }

    fn authorized() -> Self {
        let alice = Self::with_oauth();
        let opened = alice.begin_authorization();
        alice.add_answers(
            [tokens("token-one", "refresh-one")]
                .into_iter()
                .chain(listed()),
        );
        let page = alice.return_with(&allowed(&opened));
        assert_eq!(page.status, 200, "{}", page.html);
        alice
    }

    /// Runs a turn in which the model calls the tool. Returns the text that the model reads.
    fn call_authorized_tool(&self, answers: Vec<Answer>) -> String {
        self.outbound.answer(calls(&[("c1", "gh_a", json!({}))]));
        self.add_answers(answers);
        self.outbound.answer(text_answer("Done."));
        self.chat_text("go");
        assert!(
            self.outbound.answers.borrow().is_empty(),
            "every scripted answer was used"
        );
        let calls = self.outbound.calls.borrow();
        let request: Value = serde_json::from_str(&calls.last().unwrap().body).unwrap();
        let read = request["messages"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone();
        read["content"].as_str().unwrap().to_owned()
    }

    fn server(&self) -> Value {
        self.ok("listTools", json!({}))["servers"][0].clone()
    }

    /// The address, the form, the body and the credential of each request since `from`.
    fn sent_since(&self, from: usize) -> Vec<(String, RequestForm, String, Option<String>)> {
        let forms = self.outbound.forms.borrow();
        let calls = self.outbound.calls.borrow();
        let sent = calls
            .iter()
            .zip(forms.iter())
            .skip(from)
            .map(|(call, form)| {
                let Endpoint::Url(url) = &call.endpoint else {
                    panic!("{:?}", call.endpoint);
                };
                let credential = call
                    .headers
                    .iter()
                    .find(|(name, _)| name == "authorization");
                let credential = credential.map(|(_, value)| value.clone());
                (url.clone(), *form, call.body.clone(), credential)
            });
        sent.collect()
    }

    fn count_sent(&self) -> usize {
        self.outbound.calls.borrow().len()
    }
}

fn allowed(opened: &str) -> String {
    let state = fields(opened)["state"].as_str().unwrap().to_owned();
    format!("code=the-code&state={state}&iss=https%3A%2F%2Flogin.example")
}

#[test]
fn a_user_authorizes_the_agent_and_requests_carry_the_token() {
    let alice = Alice::with_oauth();
    let opened = alice.begin_authorization();
    let sent = alice.sent_since(1);
    let places: Vec<(&str, RequestForm)> = sent
        .iter()
        .map(|(url, form, ..)| (url.as_str(), *form))
        .collect();
    assert_eq!(
        places,
        [
            ("https://tools.example/about", RequestForm::Get),
            (
                "https://login.example/.well-known/oauth-authorization-server",
                RequestForm::Get
            ),
            ("https://login.example/register", RequestForm::Json),
        ]
    );
    let described: Value = serde_json::from_str(&sent[2].2).unwrap();
    assert_eq!(described["redirect_uris"], json!([CALLBACK]));
    assert_eq!(described["application_type"], "web");
    assert!(opened.starts_with("https://login.example/authorize?response_type=code&"));
    let query = fields(&opened);
    assert_eq!(query["client_id"], "c-1");
    assert_eq!(query["redirect_uri"], CALLBACK);
    assert_eq!(query["resource"], URL);
    assert_eq!(query["scope"], "read");
    assert_eq!(query["code_challenge_method"], "S256");
    assert_eq!(alice.server()["needsAuthorization"], true);

    let from = alice.count_sent();
    alice.add_answers(
        [tokens("token-one", "refresh-one")]
            .into_iter()
            .chain(listed()),
    );
    let page = alice.return_with(&allowed(&opened));
    assert_eq!((page.status, page.failure), (200, None));
    let sent = alice.sent_since(from);
    let (url, form, body, credential) = &sent[0];
    assert_eq!(
        (url.as_str(), *form),
        ("https://login.example/token", RequestForm::Form)
    );
    let given = fields(body);
    assert_eq!(given["grant_type"], "authorization_code");
    assert_eq!(given["code"], "the-code");
    assert_eq!(given["redirect_uri"], CALLBACK);
    assert_eq!(given["resource"], URL);
    let verifier = given["code_verifier"].as_str().unwrap();
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier));
    assert_eq!(query["code_challenge"], challenge);
    let basic = format!("Basic {}", STANDARD.encode("c-1:client%2Fsecret"));
    assert_eq!(credential.as_deref(), Some(basic.as_str()));
    for (url, _, _, credential) in &sent[1..] {
        assert_eq!(url, URL);
        assert_eq!(credential.as_deref(), Some("Bearer token-one"));
    }
    // The operator defined the server without approval, so its first tools need none.
    let known = alice.ok("listTools", json!({}));
    assert_eq!(known["tools"][0]["needsApproval"], false);
    assert_eq!(known["servers"][0]["needsAuthorization"], Value::Null);
    let from = alice.count_sent() + 1;
    assert_eq!(
        alice.call_authorized_tool(vec![text("You are token-one.")]),
        "You are [secret]."
    );
    assert_eq!(
        alice.sent_since(from)[0].3.as_deref(),
        Some("Bearer token-one")
    );
    // No row, and no answer, contains a secret.
    let stored = format!("{:?}", alice.db.dump());
    for secret in ["token-one", "refresh-one", verifier, "client/secret"] {
        assert!(!stored.contains(secret), "{secret}");
    }
}

#[test]
fn an_authorization_response_is_valid_once_for_ten_minutes() {
    let alice = Alice::with_oauth();
    alice.begin_authorization();
    let unknown = |page: ReturnPage| {
        assert_eq!(page.status, 400);
        page.failure.unwrap().details()["field"].clone()
    };
    for (change, field) in [
        (("login.example", "evil.example"), "iss"),
        // An equivalent URL with a different text is refused.
        (("login.example", "login.example%2F"), "iss"),
        (("&iss=https%3A%2F%2Flogin.example", ""), "iss"),
        (("code=the-code&", ""), "code"),
        (("the-code&", "x&error=no%0Away&"), "error"),
    ] {
        let opened = alice.begin_registered();
        let from = alice.count_sent();
        let query = allowed(&opened).replace(change.0, change.1);
        let page = alice.return_with(&query);
        let failure = page.failure.unwrap();
        assert_eq!(failure.details()["field"], field, "{query}");
        assert_eq!(alice.count_sent(), from, "no request is sent");
        // A used authorization is invalid.
        assert_eq!(unknown(alice.return_with(&allowed(&opened))), "state");
    }
    let opened = alice.begin_registered();
    alice.host.advance(10 * 60_000);
    assert_eq!(unknown(alice.return_with(&allowed(&opened))), "state");
    // A later authorization URL replaces an earlier one.
    let first = alice.begin_registered();
    let second = alice.begin_registered();
    assert_ne!(first, second);
    assert_eq!(unknown(alice.return_with(&allowed(&first))), "state");
    for state in ["", "x", "W10"] {
        let address = format!("{CALLBACK}?code=x&state={state}");
        let error = route::parse("GET", &address).unwrap_err();
        assert_eq!(error.details()["field"], "state");
    }
}

#[test]
fn an_unknown_state_is_refused_without_waking_an_agent() {
    let alice = Alice::with_oauth();
    let address = format!("{CALLBACK}?{}", allowed(&alice.begin_authorization()));
    let Route::OAuthReturn { agent, returned } = route::parse("GET", &address).unwrap() else {
        panic!("{address}");
    };
    let is_own = |alice: &Alice, agent: &str, returned: &Return| {
        check_return(&alice.outbound, agent, returned).is_ok()
    };
    assert!(is_own(&alice, &agent, &returned));
    assert!(!is_own(&alice, "bob", &returned));
    let other_server = Return {
        server: "other".to_owned(),
        ..returned.clone()
    };
    assert!(!is_own(&alice, &agent, &other_server));
    for nonce in ["", "guessed", &returned.nonce[1..]] {
        let guessed = Return {
            nonce: nonce.to_owned(),
            ..returned.clone()
        };
        assert!(!is_own(&alice, &agent, &guessed), "{nonce}");
    }
    // A deployment without the settings starts no authorization.
    assert!(!is_own(&Alice::default(), &agent, &returned));
}

#[test]
fn a_token_is_refreshed_before_expiry_and_once_after_a_401() {
    let alice = Alice::authorized();
    alice.host.advance(3_540_000);
    let from = alice.count_sent() + 1;
    // The list is stale, too.
    let fresh = result(
        1,
        json!({"tools": [{"name": "a", "description": "The a.", "inputSchema": {"type": "object"}}]}),
    );
    alice.add_answers([tokens("token-two", "refresh-two"), fresh]);
    let before = alice.count_sent();
    assert_eq!(alice.call_authorized_tool(vec![text("Fine.")]), "Fine.");
    let sent = alice.sent_since(before);
    let given = fields(&sent[0].2);
    assert_eq!(given["grant_type"], "refresh_token");
    assert_eq!(given["refresh_token"], "refresh-one");
    assert_eq!(given["resource"], URL);
    assert_eq!(sent[1].3.as_deref(), Some("Bearer token-two"));
    assert!(from > 0);

    // Refused: the token is refreshed and the request repeated once. A response without a refresh
    // token keeps the old one.
    let without = document(&json!({"access_token": "token-three", "token_type": "Bearer"}));
    let again = result(2, json!({"content": [{"type": "text", "text": "Again."}]}));
    let before = alice.count_sent() + 1;
    assert_eq!(
        alice.call_authorized_tool(vec![status(401), without, again]),
        "Again."
    );
    let sent = alice.sent_since(before);
    assert_eq!(sent[0].3.as_deref(), Some("Bearer token-two"));
    assert_eq!(fields(&sent[1].2)["refresh_token"], "refresh-two");
    assert_eq!(sent[2].3.as_deref(), Some("Bearer token-three"));

    // The authorization server is unavailable: the grant is retained.
    let unreachable = || {
        Err(CallFailure::Unreachable {
            cause: String::new(),
        })
    };
    let read = alice.call_authorized_tool(vec![status(401), unreachable()]);
    assert!(
        read.contains("its authorization could not be renewed"),
        "{read}"
    );
    assert_eq!(alice.server()["needsAuthorization"], Value::Null);
    // It refuses: the user must authorize again.
    let read = alice.call_authorized_tool(vec![status(401), status(400)]);
    assert!(read.contains("must be authorized"), "{read}");
    assert_eq!(alice.server()["needsAuthorization"], true);
    let before = alice.count_sent() + 1;
    alice.call_authorized_tool(vec![status(401)]);
    assert_eq!(alice.sent_since(before)[0].3, None, "the token was deleted");
}

#[test]
fn a_tool_that_needs_more_scopes_requests_all_of_them() {
    let alice = Alice::authorized();
    alice.set_challenge(r#"Bearer error="insufficient_scope", scope="write""#);
    let read = alice.call_authorized_tool(vec![status(403)]);
    assert!(read.contains("`gh` must be authorized"), "{read}");
    assert_eq!(alice.server()["needsAuthorization"], true);
    // The server lists its tools, and requires more scopes.
    alice.add_answers(listed().into_iter().chain([resource(), metadata()]));
    let define = json!({"name": "gh", "mcp": URL, "needsApproval": false});
    let defined = alice.ok("defineTool", define);
    assert_eq!(defined["tools"][0]["name"], "gh_a");
    assert_eq!(defined["needsAuthorization"], true);
    let opened = defined["authorizationUrl"].as_str().unwrap();
    // The client is known, so it isn't registered again.
    assert_eq!(fields(opened)["scope"], "read write");
    assert_eq!(fields(opened)["client_id"], "c-1");
    // Until then, the other tools are called with the existing token.
    let before = alice.count_sent() + 1;
    alice.call_authorized_tool(vec![text("Fine.")]);
    assert_eq!(
        alice.sent_since(before)[0].3.as_deref(),
        Some("Bearer token-one")
    );
}

#[test]
fn metadata_of_another_issuer_or_without_pkce_are_refused() {
    let alice = Alice::with_oauth();
    let before = alice.db.dump();
    let of = |resource: &str, issuer: &str| {
        document(&json!({"resource": resource, "authorization_servers": [issuer]}))
    };
    let with = |more: Value| document(&metadata_with(&more));
    for (answers, code, expected) in [
        (
            vec![of("https://other.example/mcp", ISSUER)],
            "invalid_request",
            "those of another server",
        ),
        (
            vec![of("https://tools.example/mcp/x", ISSUER)],
            "invalid_request",
            "those of another server",
        ),
        (
            vec![of(URL, "https://elsewhere.example")],
            "forbidden",
            "https://elsewhere.example",
        ),
        (
            vec![of(URL, "http://login.example")],
            "invalid_request",
            "no `https:` URL",
        ),
        (
            vec![resource(), status(404), status(404)],
            "invalid_request",
            "has no metadata",
        ),
        (
            vec![
                resource(),
                with(json!({"issuer": "https://login.example/"})),
            ],
            "invalid_request",
            "another issuer",
        ),
        (
            vec![
                resource(),
                with(json!({"code_challenge_methods_supported": ["plain"]})),
            ],
            "invalid_request",
            "PKCE",
        ),
        (
            vec![
                resource(),
                with(json!({"authorization_endpoint": "javascript:alert(1)"})),
            ],
            "invalid_request",
            "address to open",
        ),
        (
            vec![
                resource(),
                with(json!({"registration_endpoint": "https://elsewhere.example/r"})),
            ],
            "forbidden",
            "https://elsewhere.example",
        ),
        (
            vec![resource(), metadata(), status(400)],
            "invalid_request",
            "did not register",
        ),
        (
            vec![resource(), with(json!({"registration_endpoint": null}))],
            "invalid_request",
            "oauth.clientId",
        ),
    ] {
        alice.add_answers([status(401)].into_iter().chain(answers));
        let refused = alice.call("defineTool", json!({"name": "gh", "mcp": URL}));
        let error = refused.unwrap_err();
        assert_eq!(error.code.name(), code, "{}", error.message);
        assert!(error.message.contains(expected), "{}", error.message);
        assert!(alice.outbound.answers.borrow().is_empty(), "{expected}");
    }
    assert_eq!(alice.db.dump(), before);
}

#[test]
fn metadata_are_discovered_at_the_standard_locations() {
    let alice = Alice::with_oauth();
    alice.set_challenge("Bearer");
    let issuer = "https://login.example/tenant";
    let resource =
        document(&json!({"resource": "https://tools.example", "authorization_servers": [issuer]}));
    let metadata = document(&metadata_with(
        &json!({"issuer": issuer, "scopes_supported": ["offline_access"]}),
    ));
    let opened = alice.define_unauthorized_server(
        &json!({}),
        vec![
            status(404),
            resource,
            status(404),
            status(404),
            metadata,
            registered(),
        ],
    );
    let places: Vec<String> = alice
        .sent_since(1)
        .into_iter()
        .map(|(url, ..)| url)
        .collect();
    assert_eq!(
        places[..5],
        [
            "https://tools.example/.well-known/oauth-protected-resource/mcp",
            "https://tools.example/.well-known/oauth-protected-resource",
            "https://login.example/.well-known/oauth-authorization-server/tenant",
            "https://login.example/.well-known/openid-configuration/tenant",
            "https://login.example/tenant/.well-known/openid-configuration",
        ]
    );
    // The server's own identifier, and no scope if it names none.
    assert_eq!(fields(&opened)["resource"], "https://tools.example");
    assert_eq!(fields(&opened)["scope"], Value::Null);
}

#[test]
fn client_registration_prefers_configuration_then_a_metadata_document() {
    let supported = json!({"client_id_metadata_document_supported": true});
    let alice = Alice::with_oauth();
    let opened = alice.define_unauthorized_server(
        &json!({}),
        vec![resource(), document(&metadata_with(&supported))],
    );
    let described = "https://memory.example.com/oauth/client.json";
    assert_eq!(fields(&opened)["client_id"], described);
    let document_of_client: Value =
        serde_json::from_str(&describe_client(&alice.outbound).unwrap()).unwrap();
    assert_eq!(document_of_client["client_id"], described);
    assert_eq!(document_of_client["redirect_uris"], json!([CALLBACK]));
    assert_eq!(route::parse("GET", described), Ok(Route::OAuthClient));

    let alice = Alice::with_oauth();
    let mut settings = alice.outbound.settings.borrow_mut();
    settings.insert(
        "TOOL_SECRETS".to_owned(),
        "LOGIN=https://login.example".to_owned(),
    );
    settings.insert("LOGIN".to_owned(), "the-clients-secret".to_owned());
    drop(settings);
    let post = json!({"token_endpoint_auth_methods_supported": ["client_secret_post"], "client_id_metadata_document_supported": true});
    let own = json!({"oauth": {"clientId": "mine", "clientSecret": "secret:LOGIN", "scopes": ["a", "b"]}});
    let opened =
        alice.define_unauthorized_server(&own, vec![resource(), document(&metadata_with(&post))]);
    assert_eq!(fields(&opened)["client_id"], "mine");
    assert_eq!(fields(&opened)["scope"], "a b");
    assert_eq!(alice.server()["oauth"], own["oauth"]);
    let from = alice.count_sent();
    alice.add_answers(
        [tokens("token-one", "refresh-one")]
            .into_iter()
            .chain(listed()),
    );
    assert_eq!(alice.return_with(&allowed(&opened)).status, 200);
    let given = fields(&alice.sent_since(from)[0].2);
    assert_eq!(given["client_id"], "mine");
    assert_eq!(given["client_secret"], "the-clients-secret");
    assert_eq!(alice.sent_since(from)[0].3, None);
    for wrong in [
        json!({"clientSecret": "secret:LOGIN"}),
        json!({"clientId": "mine", "clientSecret": "the-clients-secret"}),
        json!({"clientId": "a b"}),
        json!({"scopes": ["a b"]}),
    ] {
        let define = json!({"name": "gh", "mcp": URL, "oauth": wrong});
        let error = alice.call("defineTool", define).unwrap_err();
        assert_eq!(error.details()["field"], "oauth", "{wrong}");
    }
}

#[test]
fn removing_a_server_deletes_its_tokens() {
    let count = |alice: &Alice| {
        let sql = "SELECT count(*) FROM cf_agents_tool_authorizations";
        base::columns::find_value::<i64>(&alice.db, sql, &[])
            .unwrap()
            .unwrap()
    };
    let alice = Alice::authorized();
    assert_eq!(count(&alice), 1);
    alice.ok("removeTool", json!({"name": "gh"}));
    assert_eq!(count(&alice), 0);

    let alice = Alice::authorized();
    let own = json!({"name": "gh", "description": "Own.", "url": "https://tools.example/own"});
    alice.ok("defineTool", own);
    assert_eq!(count(&alice), 0);

    // A server at another address gets no token of this one.
    let alice = Alice::authorized();
    let from = alice.count_sent();
    alice.add_answers(listed());
    alice.ok(
        "defineTool",
        json!({"name": "gh", "mcp": "https://tools.example/other"}),
    );
    assert!(
        alice
            .sent_since(from)
            .iter()
            .all(|(.., credential)| credential.is_none())
    );
    assert_eq!(count(&alice), 0);

    // A server with an operator's credential gets no token either.
    let alice = Alice::authorized();
    let mut settings = alice.outbound.settings.borrow_mut();
    settings.insert(
        "TOOL_SECRETS".to_owned(),
        "KEY=https://tools.example".to_owned(),
    );
    settings.insert("KEY".to_owned(), "the-operators".to_owned());
    drop(settings);
    let from = alice.count_sent();
    alice.add_answers(listed());
    let headers = json!({"authorization": "Bearer secret:KEY"});
    alice.ok(
        "defineTool",
        json!({"name": "gh", "mcp": URL, "headers": headers}),
    );
    assert_eq!(
        alice.sent_since(from)[0].3.as_deref(),
        Some("Bearer the-operators")
    );
    assert_eq!(count(&alice), 0);

    let alice = Alice::authorized();
    let receipt = alice.ok("destroy", json!({"confirm": "alice", "purge": true}));
    assert_eq!(receipt["erased"]["authorizations"], 1, "{receipt}");
}

#[test]
fn another_key_or_none_counts_as_not_authorized() {
    let alice = Alice::authorized();
    let set = |name: &str, value: &str| {
        let mut settings = alice.outbound.settings.borrow_mut();
        settings.insert(name.to_owned(), value.to_owned());
    };
    set("TOOL_TOKEN_KEY", "another key of at least 32 characters");
    let before = alice.count_sent() + 1;
    let read = alice.call_authorized_tool(vec![status(401)]);
    assert!(read.contains("must be authorized"), "{read}");
    assert_eq!(alice.sent_since(before)[0].3, None);

    for (name, value) in [
        ("TOOL_TOKEN_KEY", "short"),
        ("PUBLIC_URL", "memory.example.com"),
    ] {
        set(name, value);
        alice.add_answers([status(401)]);
        let error = alice
            .call("defineTool", json!({"name": "gh", "mcp": URL}))
            .unwrap_err();
        assert!(
            error.message.contains("`TOOL_TOKEN_KEY`"),
            "{}",
            error.message
        );
        set(
            "TOOL_TOKEN_KEY",
            "a key of at least 32 characters, for tests",
        );
    }
    assert_eq!(describe_client(&alice.outbound), None);
    // A tool without a server has no such client.
    let own =
        json!({"name": "x", "description": "X.", "url": "https://tools.example/x", "oauth": {}});
    assert_eq!(alice.refused("defineTool", own), "invalid_request");
}
