//! The paths of the providers' APIs.

use serde_json::{Map, Value, json};

use super::agent_parameter;

/// Adds each path below an agent. A session has the same paths.
pub fn add(paths: &mut Map<String, Value>) {
    for (path, method, operation) in operations() {
        let path = format!("/agents/session-agent/{{agent}}/{path}");
        let mut methods = json!({method: operation});
        if path.ends_with("{responseId}") {
            let about = "Deletes the id of an answer. Its messages stay in the session.";
            methods["delete"] = response(("deleteResponse", about));
        }
        paths.insert(path, methods);
    }
}

fn operations() -> Vec<(&'static str, &'static str, Value)> {
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
            ),
        ),
        (
            "openai/v1/responses",
            "post",
            turn(
                ("openaiResponses", openai),
                &json!({"model": "default", "input": "Hi"}),
            ),
        ),
        (
            "openai/v1/responses/{responseId}",
            "get",
            response(("getResponse", "A stored answer of `responses`.")),
        ),
        (
            "openai/v1/models",
            "get",
            models(("openaiModels", openai), false),
        ),
        (
            "openai/v1/models/{model}",
            "get",
            models(("openaiModel", openai), true),
        ),
        (
            "anthropic/v1/messages",
            "post",
            turn(
                ("anthropicMessages", anthropic),
                &json!({"model": "default", "max_tokens": 100, "messages": user}),
            ),
        ),
        (
            "anthropic/v1/messages/count_tokens",
            "post",
            count(&json!({"model": "default", "messages": user})),
        ),
        (
            "anthropic/v1/models",
            "get",
            models(("anthropicModels", anthropic), false),
        ),
        (
            "anthropic/v1/models/{model}",
            "get",
            models(("anthropicModel", anthropic), true),
        ),
    ]
}

fn header(name: &str, description: &str, schema: Value) -> Value {
    json!({"name": name, "in": "header", "required": false, "description": description, "schema": schema})
}

fn turn((name, api): (&str, &str), example: &Value) -> Value {
    let mut parameters = vec![agent_parameter()];
    parameters.extend([
        header(
            "x-session-id",
            "The session. Default: the session in the URL, else that of the token, else the one whose history the request continues.",
            json!({"type": "string", "minLength": 1, "maxLength": 200}),
        ),
        header(
            "x-session-history",
            "`stored`: the session's own messages are put before those of the request.",
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
        "operationId": name,
        "summary": format!("Runs a turn through {api}."),
        "description": format!("The body and the answer are those of {api}, whole or as server-sent events. The same address exists below `/sessions/{{sessionId}}`. Requires the rights of a chat turn."),
        "parameters": parameters,
        "requestBody": {"content": {"application/json": {
            "schema": turn_schema(example),
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

/// The schema of a body, derived from its example.
fn schema(example: &Value) -> Value {
    let object = json!({"type": "object", "additionalProperties": true});
    let mut properties = json!({
        "model": {
            "type": "string",
            "description": "The provider's name for a model, or `default` for the agent's own model."
        }
    });
    let content = match example.get("input") {
        Some(_) => {
            properties["input"] = json!({
                "type": ["string", "array"],
                "items": object,
                "description": "The new items, or the conversation, as in the provider's API."
            });
            "input"
        }
        None => {
            properties["messages"] = json!({
                "type": "array",
                "items": object,
                "description": "The conversation, as in the provider's API."
            });
            "messages"
        }
    };
    json!({
        "type": "object",
        "required": ["model", content],
        "properties": properties,
        "additionalProperties": true
    })
}

/// The same of a turn, which may be streamed.
fn turn_schema(example: &Value) -> Value {
    let mut schema = schema(example);
    schema["properties"]["stream"] = json!({
        "type": "boolean",
        "description": "Whether the answer comes as server-sent events."
    });
    schema
}

fn response((name, about): (&str, &str)) -> Value {
    let mut parameters = vec![agent_parameter()];
    parameters.push(json!({
        "name": "responseId", "in": "path", "required": true,
        "description": "The id of the answer.",
        "schema": {"type": "string"}
    }));
    json!({
        "operationId": name,
        "summary": about,
        "description": "Requires the rights of a chat turn.",
        "parameters": parameters,
        "responses": {
            "200": {
                "description": "The answer.",
                "content": {"application/json": {"schema": {"type": "object", "additionalProperties": true}}}
            },
            "default": refusal("OpenAI's API")
        }
    })
}

fn count(example: &Value) -> Value {
    json!({
        "operationId": "countTokens",
        "summary": "An estimate of a request's tokens, with the agent's prompt.",
        "description": "Writes nothing. Requires the rights of a chat turn.",
        "parameters": vec![agent_parameter()],
        "requestBody": {"content": {"application/json": {
            "schema": schema(example),
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

fn models((name, api): (&str, &str), is_one: bool) -> Value {
    let mut parameters = vec![agent_parameter()];
    if is_one {
        parameters.push(json!({
            "name": "model", "in": "path", "required": true,
            "description": "The model's name.",
            "schema": {"type": "string"}
        }));
    }
    json!({
        "operationId": name,
        "summary": if is_one { "A model that the caller may use." } else { "The models that the caller may use." },
        "description": format!("The agent's own model, and those that the token allows, in the format of {api}. Requires the rights of a chat turn."),
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
