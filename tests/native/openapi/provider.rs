//! The addresses of the providers' APIs.

use serde_json::{Map, Value, json};

use super::agent_parameter;

/// Adds each address, below an agent and below a session.
pub fn add(paths: &mut Map<String, Value>) {
    let agent = "/agents/session-agent/{agent}";
    let session = "/agents/session-agent/{agent}/sessions/{sessionId}";
    for (base, is_session) in [(agent, false), (session, true)] {
        for (path, method, operation) in operations(is_session) {
            paths.insert(format!("{base}/{path}"), json!({method: operation}));
        }
    }
}

fn operations(is_session: bool) -> Vec<(&'static str, &'static str, Value)> {
    let openai = "OpenAI's API";
    let anthropic = "Anthropic's API";
    let user = json!([{"role": "user", "content": "Hi"}]);
    vec![
        (
            "openai/v1/chat/completions",
            "post",
            turn(
                ("chatCompletions", openai),
                &json!({"model": "default", "messages": user}),
                is_session,
            ),
        ),
        (
            "openai/v1/models",
            "get",
            models(("openaiModels", openai), is_session, false),
        ),
        (
            "openai/v1/models/{model}",
            "get",
            models(("openaiModel", openai), is_session, true),
        ),
        (
            "anthropic/v1/messages",
            "post",
            turn(
                ("messages", anthropic),
                &json!({"model": "default", "max_tokens": 100, "messages": user}),
                is_session,
            ),
        ),
        (
            "anthropic/v1/messages/count_tokens",
            "post",
            count(&json!({"model": "default", "messages": user}), is_session),
        ),
        (
            "anthropic/v1/models",
            "get",
            models(("anthropicModels", anthropic), is_session, false),
        ),
        (
            "anthropic/v1/models/{model}",
            "get",
            models(("anthropicModel", anthropic), is_session, true),
        ),
    ]
}

fn id_of(name: &str, is_session: bool) -> String {
    match is_session {
        true => format!("{name}InSession"),
        false => name.to_owned(),
    }
}

fn parameters(is_session: bool) -> Vec<Value> {
    let session = json!({
        "name": "sessionId", "in": "path", "required": true,
        "description": "The session's id.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200}
    });
    let mut parameters = vec![agent_parameter()];
    parameters.extend(is_session.then_some(session));
    parameters
}

fn header(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "header", "required": false, "description": description, "schema": schema})
}

fn turn((name, api): (&str, &str), example: &Value, is_session: bool) -> Value {
    let mut parameters = parameters(is_session);
    parameters.extend([
        header(
            "x-session-id",
            "The session. Default: the session in the URL or of the token, otherwise the one whose history the request continues.",
            json!({"type": "string", "minLength": 1, "maxLength": 200}),
        ),
        header(
            "x-session-history",
            "`stored`: the session's own messages go before the request's.",
            json!({"type": "string", "enum": ["request", "stored"], "default": "request"}),
        ),
        header(
            "x-session-memory",
            "What the model may do with the agent's memory.",
            json!({"type": "string", "enum": ["off", "read", "on"], "default": "on"}),
        ),
        header(
            "idempotency-key",
            "A repeated request with the same key and body gets the same answer.",
            json!({"type": "string", "minLength": 1, "maxLength": 255}),
        ),
    ]);
    json!({
        "operationId": id_of(name, is_session),
        "summary": format!("A turn, in {api}."),
        "description": format!("The body and the answer are those of {api}, whole or as server-sent events. Needs what a chat turn needs."),
        "parameters": parameters,
        "requestBody": {"content": {"application/json": {
            "schema": {"type": "object", "required": ["model", "messages"], "additionalProperties": true},
            "example": example
        }}},
        "responses": {
            "200": {
                "description": "The answer.",
                "headers": {"x-session-id": {"description": "The session of the turn.", "schema": {"type": "string"}}},
                "content": {
                    "application/json": {"schema": {"type": "object", "additionalProperties": true}},
                    "text/event-stream": {"schema": {"type": "string"}}
                }
            },
            "default": refusal(api)
        }
    })
}

fn count(example: &Value, is_session: bool) -> Value {
    json!({
        "operationId": id_of("countTokens", is_session),
        "summary": "An estimate of a request's tokens, with the agent's prompt.",
        "description": "Writes nothing. Needs what a chat turn needs.",
        "parameters": parameters(is_session),
        "requestBody": {"content": {"application/json": {
            "schema": {"type": "object", "required": ["model", "messages"], "additionalProperties": true},
            "example": example
        }}},
        "responses": {
            "200": {
                "description": "The estimate.",
                "content": {"application/json": {"schema": {
                    "type": "object",
                    "required": ["input_tokens"],
                    "properties": {"input_tokens": {"type": "integer"}},
                    "additionalProperties": false
                }}}
            },
            "default": refusal("Anthropic's API")
        }
    })
}

fn models((name, api): (&str, &str), is_session: bool, is_one: bool) -> Value {
    let mut parameters = parameters(is_session);
    if is_one {
        parameters.push(json!({
            "name": "model", "in": "path", "required": true,
            "description": "The model's name.",
            "schema": {"type": "string"}
        }));
    }
    json!({
        "operationId": id_of(name, is_session),
        "summary": if is_one { "A model that the caller may name." } else { "The models that the caller may name." },
        "description": format!("The agent's own model, and those that the token allows, in the shape of {api}. Needs what a chat turn needs."),
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {"application/json": {"schema": {"type": "object", "additionalProperties": true}}}
            },
            "default": refusal(api)
        }
    })
}

fn refusal(api: &str) -> Value {
    json!({
        "description": format!("An error in the shape of {api}."),
        "content": {"application/json": {"schema": {
            "type": "object",
            "required": ["error"],
            "additionalProperties": true
        }}}
    })
}
