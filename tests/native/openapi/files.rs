//! The paths of files: sessions and whole agents.

use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::{agent_parameter, refusal};
use api::agent_file::import::ImportedAgent;
use lifecycle::transfer::import::Imported;

pub fn export() -> Value {
    json!({
        "operationId": "exportSession",
        "summary": "The whole session as JSON lines, streamed.",
        "description": "The lines come in this order: one `session` line, an `event` line for each event in `seq` order, a `compaction` line for each overlay, a `change` line for each entry of the feed, the session's memory in `block`, `version`, `entry`, `skill`, `loaded` and `prompt` lines, and one `end` line. A file without its `end` line was cut off. A file whose export failed ends with an `error` line. The caller needs the rights of `getSession` and `loadEvents`. For each part of the session's memory, the caller needs the rights of the operations that show this part.",
        "parameters": session_parameters(),
        "responses": {
            "200": {
                "description": "The file. `x-rows-read` counts the rows read before its start.",
                "content": {"application/x-ndjson": {"schema": {"type": "string"}}}
            },
            "default": refusal()
        }
    })
}

pub fn import(schemas: &mut SchemaGenerator) -> Value {
    json!({
        "operationId": "importSession",
        "summary": "Imports an exported session under the id in the URL.",
        "description": "The session appears once the last line was read. Before that, nothing of \
                        it is visible. An invalid line is refused, and `details.line` is its \
                        number. If the same session already exists, its lines are skipped, so an \
                        import can be repeated. If another session has this id, the import is \
                        refused with `already_exists`. A caller who may not read the existing \
                        session gets `already_exists`, too. The caller needs the rights of \
                        `createSession` and `appendEvents`. For every other kind of line, the \
                        caller needs the rights of the operations that write the same data. A \
                        block's `source` and a frozen prompt require the Worker's secret and \
                        `allowSources`. Without these, a `source` is refused and a frozen prompt \
                        is left out.",
        "parameters": import_parameters(),
        "requestBody": {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}},
        "responses": {
            "200": {
                "description": "The result of the import.",
                "content": {"application/json": {"schema": schemas.subschema_for::<Imported>()}}
            },
            "default": refusal()
        }
    })
}

pub fn export_agent() -> Value {
    json!({
        "operationId": "exportAgent",
        "summary": "The whole agent as JSON lines, streamed.",
        "description": "The lines come in this order: one `agent` line with the number of the \
                        `format`; a `settings` line, if the agent has its own settings; a `tool` \
                        line for each registered tool; a `usage` line for each day and model; the \
                        agent's memory in `block`, `version`, `entry`, `skill`, `past` and \
                        `prompt` lines; the lines of each session, as `exportSession` writes them, \
                        from its `session` line to its `end` line; and one `done` line. A file \
                        without its `done` line is truncated. After each session, and about every \
                        megabyte within one, there is a `cursor` line. To continue an export \
                        there, pass its `after` as `?after=`. The file contains no values of \
                        tools' headers. Requires the Worker's secret.",
        "parameters": [
            agent_parameter(),
            {
                "name": "after", "in": "query", "required": false,
                "description": "The `after` of the last `cursor` line of an interrupted export.",
                "schema": {"type": "string"}
            }
        ],
        "responses": {
            "200": {
                "description": "The file. `x-rows-read` counts the rows read before its start.",
                "content": {"application/x-ndjson": {"schema": {"type": "string"}}}
            },
            "default": refusal()
        }
    })
}

pub fn import_agent(schemas: &mut SchemaGenerator) -> Value {
    json!({
        "operationId": "importAgent",
        "summary": "Imports an exported agent into an empty agent.",
        "description": "The agent's own lines are written first, then session by session; a \
                        session appears once its last line was read. If an import is interrupted, \
                        repeat it with the same file: existing data is compared, and not written \
                        again. If the agent has any other data, it is not changed, and the import \
                        is refused with `already_exists`. An invalid line is refused, and \
                        `details.line` is its number. Requires the Worker's secret. A block's \
                        `source`, a frozen prompt and an MCP server are only accepted with \
                        `allowSources`: without it, a `source` is refused, and the others are left \
                        out.",
        "parameters": [
            agent_parameter(),
            {
                "name": "allowSources", "in": "query", "required": false,
                "description": "Accept the `source` of blocks, MCP servers and frozen prompts from \
                                the file.",
                "schema": {"type": "boolean", "default": false}
            }
        ],
        "requestBody": {"content": {"application/x-ndjson": {"schema": {"type": "string"}}}},
        "responses": {
            "200": {
                "description": "The result of the import.",
                "content": {"application/json": {"schema": schemas.subschema_for::<ImportedAgent>()}}
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
            "description": "Accept the `source` of blocks and the frozen prompt from the file.",
            "schema": {"type": "boolean", "default": false}
        }));
    }
    parameters
}

fn session_parameters() -> Value {
    json!([
        agent_parameter(),
        {
            "name": "sessionId", "in": "path", "required": true,
            "description": "The session's id, `%`-encoded.",
            "schema": {"type": "string", "minLength": 1, "maxLength": 200}
        }
    ])
}
