//! openapi.json, generated from the table of operations. The file in the tree
//! is what the Worker serves; this test holds it to the code.
//! `UPDATE=1 cargo test openapi` writes it anew.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::OPENAPI_JSON;
use super::operation::Entry;
use super::table::OPERATIONS;
use super::tokens::Preset;
use crate::access::{Needs, Touches};
use crate::error::Code;
use crate::transfer::import::Imported;

fn document() -> Value {
    let mut schemas = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let mut paths = Map::new();
    for entry in OPERATIONS {
        paths.insert(
            format!("/agents/session-agent/{{agent}}/rpc/{}", entry.name),
            json!({"post": operation(entry, &mut schemas)}),
        );
    }
    paths.insert(
        "/health".to_owned(),
        json!({"get": {
            "operationId": "health",
            "summary": "Liveness and build identity.",
            "security": [],
            "responses": {"200": {"description": "The Worker is up."}}
        }}),
    );
    let session = "/agents/session-agent/{agent}/sessions/{sessionId}";
    paths.insert(format!("{session}/export"), json!({"get": export()}));
    paths.insert(
        format!("{session}/import"),
        json!({"post": import(&mut schemas)}),
    );
    let mut components = schemas.take_definitions(true);
    components.insert("Error".to_owned(), error_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Session Agent",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE")},
            "description": env!("CARGO_PKG_DESCRIPTION"),
        },
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {
                "type": "http",
                "scheme": "bearer",
                "description": "The Worker's secret, or a token from `mintToken`.",
                "x-presets": {
                    "chat": Preset::Chat.operations(),
                    "read": Preset::Read.operations()
                }
            }},
            "schemas": components,
        }
    })
}

fn operation(entry: &Entry, schemas: &mut SchemaGenerator) -> Value {
    let mut input = (entry.input)(schemas);
    // Where the generator puts them for a document of their own.
    for key in ["$schema", "$defs", "components", "title"] {
        input.remove(key);
    }
    let text = input
        .remove("description")
        .and_then(|text| text.as_str().map(str::to_owned))
        .unwrap_or_default();
    assert!(!text.is_empty(), "{} has no doc comment", entry.name);
    let (summary, description) = text.split_once("\n\n").unwrap_or((&text, ""));
    let access = match entry.rule.needs {
        Needs::Secret => "Needs the secret.",
        Needs::WholeAgent => "Not for a token that is narrowed to a session.",
        Needs::Session => "A token that is narrowed to a session runs it on that session.",
        Needs::Narrowed => "A token that is narrowed to a session sees that session only.",
    };
    let named = match entry.rule.touches {
        Touches::Prompts => " A minted token runs it only if it names it.",
        Touches::Messages => {
            " With a minted token, for a user's messages, unless it allows `agentMessages`."
        }
        _ => "",
    };
    let presets: Vec<&str> = [("chat", Preset::Chat), ("read", Preset::Read)]
        .into_iter()
        .filter(|(_, preset)| preset.operations().contains(&entry.name))
        .map(|(name, _)| name)
        .collect();
    let description = format!("{}\n\n{access}{named}", description.replace('\n', " "));
    let description = description.trim();
    json!({
        "operationId": entry.name,
        "x-presets": presets,
        "summary": summary.replace('\n', " "),
        "description": description,
        "parameters": [{
            "name": "agent", "in": "path", "required": true,
            "description": "The agent's name, `%`-encoded.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 200}
        }],
        "requestBody": {"content": {"application/json": {"schema": input}}},
        "x-max-body-bytes": entry.max_body_bytes,
        "responses": {
            "200": {
                "description": "The output.",
                "headers": {
                    "x-rows-read": {"description": "Rows that the request read.", "schema": {"type": "integer"}},
                    "x-rows-written": {"description": "Rows that the request wrote.", "schema": {"type": "integer"}}
                },
                "content": {"application/json": {"schema": (entry.output)(schemas)}}
            },
            "default": refusal()
        }
    })
}

fn export() -> Value {
    json!({
        "operationId": "exportSession",
        "summary": "The whole session as lines of JSON, streamed.",
        "description": "A `session` line, an `event` line each in `seq` order, a `compaction` line each, a `change` line each, the session's memory in `block`, `version`, `entry`, `skill`, `loaded` and `prompt` lines, an `end` line. A file without its `end` was cut off; one that failed half-way ends with an `error` line. Needs what `getSession` and `loadEvents` need, and for what the session has of memory what the operations need that show it.",
        "parameters": session_parameters(),
        "responses": {
            "200": {
                "description": "The file. `x-rows-read` is what its start has read.",
                "content": {"application/x-ndjson": {"schema": {"type": "string"}}}
            },
            "default": refusal()
        }
    })
}

fn import(schemas: &mut SchemaGenerator) -> Value {
    json!({
        "operationId": "importSession",
        "summary": "An exported session back in, under the id in the address.",
        "description": "The session is there when the last line was read, and nothing of it before. A broken line is refused with its number in `details.line`. What is there already and the same is skipped; another session of that id is `already_exists`, and so is any for who may not read it. Needs what `createSession` and `appendEvents` need, and for every other kind of line what the operations need that write as much. A block's `source` and a frozen prompt count with the Worker's secret and `allowSources` alone: without, the one is refused, the other left out.",
        "parameters": import_parameters(),
        "requestBody": {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}},
        "responses": {
            "200": {
                "description": "What became of it.",
                "content": {"application/json": {"schema": schemas.subschema_for::<Imported>()}}
            },
            "default": refusal()
        }
    })
}

fn import_parameters() -> Value {
    let mut parameters = session_parameters();
    if let Some(list) = parameters.as_array_mut() {
        list.push(json!({
            "name": "allowSources", "in": "query", "required": false,
            "description": "The file is trusted with where blocks live and with the frozen prompt.",
            "schema": {"type": "boolean", "default": false}
        }));
    }
    parameters
}

fn session_parameters() -> Value {
    let parameter = |name: &str, what: &str| {
        json!({
            "name": name, "in": "path", "required": true,
            "description": what,
            "schema": {"type": "string", "minLength": 1, "maxLength": 200}
        })
    };
    json!([
        parameter("agent", "The agent's name, `%`-encoded."),
        parameter("sessionId", "The session's id, `%`-encoded.")
    ])
}

fn refusal() -> Value {
    json!({
        "description": "What went wrong.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    })
}

fn error_schema() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["code", "message", "details"],
            "properties": {
                "code": {"type": "string", "enum": codes},
                "message": {"type": "string"},
                "details": {"type": "object"}
            }
        }}
    })
}

#[test]
fn the_document_in_the_tree_is_the_codes() {
    let expected = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write("src/api/openapi.json", &expected).unwrap();
        return;
    }
    assert!(
        OPENAPI_JSON == expected,
        "src/api/openapi.json is behind the code: `UPDATE=1 cargo test openapi` writes it anew"
    );
}
