//! The paths of chat turns.

use serde_json::{Value, json};

use super::rules::model;
use super::{agent_parameter, refusal};
use chat::request::client_tools::MAX_CLIENT_TOOLS;
use chat::request::{MAX_CHAT_BODY_BYTES, MAX_MESSAGES};
use store::config::MAX_INSTRUCTIONS;

pub fn chat() -> Value {
    let message = json!({"$ref": "#/components/schemas/SentMessage"});
    // A user's new message, or a message with the answers to calls of the client's tools.
    let message_of_turn = json!({"anyOf": [
        {"$ref": "#/components/schemas/SentUserMessage"},
        {"type": "object", "properties": {"role": {"const": "assistant"}}}
    ]});
    json!({
        "operationId": "chat",
        "summary": "A chat turn, as server-sent events.",
        "description": "Each event is one chunk of the AI SDK's UI message stream; the last one is \
                        `[DONE]`. Only messages that are not in the log are written. The turn \
                        continues if the client disconnects.",
        "parameters": [agent_parameter(), session_parameter("query", false)],
        "requestBody": {"content": {"application/json": {
            "schema": {
                "type": "object",
                "properties": {
                    "id": {"type": "string", "minLength": 1, "maxLength": 200, "description": "The session. Default: the one in the address, or `default`."},
                    "message": message,
                    "messages": {"type": "array", "maxItems": MAX_MESSAGES, "items": message, "description": "The conversation, with the new message last. Set this or `message`."},
                    "trigger": {"type": "string", "enum": ["submit-message", "regenerate-message"]},
                    "messageId": {"type": "string", "minLength": 1, "maxLength": 200, "description": "The message to answer once more, or to replace."},
                    "model": {"type": "string", "pattern": model()},
                    "systemInstructions": {"type": ["string", "array"], "maxItems": MAX_INSTRUCTIONS, "items": {"type": "string"}},
                    "tools": {"type": "array", "maxItems": MAX_CLIENT_TOOLS, "items": {"$ref": "#/components/schemas/ClientTool"}, "description": "Tools that the client runs."},
                    "whenBusy": {"type": "string", "enum": ["reject", "queue", "replace"]}
                },
                "allOf": [
                    {"if": {"required": ["message"]}, "then": {"properties": {"message": message_of_turn}}},
                    {
                        "if": {"required": ["messages"]},
                        "then": {
                            "properties": {"messages": {"type": "array", "contains": message_of_turn}},
                            "not": {"required": ["message"]}
                        }
                    },
                    {
                        "if": {"not": {"anyOf": [{"required": ["message"]}, {"required": ["messages"]}]}},
                        "then": {"required": ["trigger"], "properties": {"trigger": {"const": "regenerate-message"}}}
                    }
                ],
                "additionalProperties": true
            },
            "example": {"id": "trip", "message": {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}}
        }}},
        "x-max-body-bytes": MAX_CHAT_BODY_BYTES,
        "responses": {"200": stream(), "default": refusal()}
    })
}

pub fn resume() -> Value {
    json!({
        "operationId": "resumeChat",
        "summary": "The running turn of a session, from its beginning.",
        "parameters": [agent_parameter(), session_parameter("path", true)],
        "responses": {
            "200": stream(),
            "204": {"description": "No turn runs."},
            "default": refusal()
        }
    })
}

fn session_parameter(place: &str, is_required: bool) -> Value {
    json!({
        "name": "sessionId", "in": place, "required": is_required,
        "description": "The session's id.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200}
    })
}

fn stream() -> Value {
    json!({
        "description": "The turn's chunks: `start`, `start-step`, `text-start`, `text-delta`, `text-end`, `reasoning-…`, `tool-input-…`, `tool-output-…`, `tool-approval-request`, `finish-step`, `finish`, `abort` and `error`.",
        "headers": {"x-vercel-ai-ui-message-stream": {"schema": {"const": "v1"}}},
        "content": {"text/event-stream": {"schema": {"type": "string"}}}
    })
}
