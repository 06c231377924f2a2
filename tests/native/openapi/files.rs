//! The addresses of files: a session's, and a whole agent's.

use schemars::SchemaGenerator;
use serde_json::{Value, json};

use super::{agent_parameter, refusal};
use api::whole::import::ImportedAgent;
use lifecycle::transfer::import::Imported;

pub fn export() -> Value {
    json!({
        "operationId": "exportSession",
        "summary": "The whole session as lines of JSON, streamed.",
        "description": "The lines come in this order: one `session` line, an `event` line for each event in `seq` order, a `compaction` line for each overlay, a `change` line for each entry of the feed, the session's memory in `block`, `version`, `entry`, `skill`, `loaded` and `prompt` lines, and one `end` line. A file without its `end` line was cut off. A file whose export failed ends with an `error` line. The caller needs the rights of `getSession` and `loadEvents`. For each part of the session's memory, the caller needs the rights of the operations that show this part.",
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

pub fn import(schemas: &mut SchemaGenerator) -> Value {
    json!({
        "operationId": "importSession",
        "summary": "An exported session back in, under the id in the address.",
        "description": "The session appears once the last line was read. Before that, nothing of it can be seen. A broken line is refused, and `details.line` is its number. If the same session is there already, its lines are skipped, so an import can be repeated. If another session has this id, the import is refused with `already_exists`. A caller who may not read the session that is there gets `already_exists` too. The caller needs the rights of `createSession` and `appendEvents`. For every other kind of line, the caller needs the rights of the operations that write the same. A block's `source` and a frozen prompt need the Worker's secret and `allowSources`. Without these, a `source` is refused and a frozen prompt is left out.",
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
        "summary": "The whole agent as lines of JSON, streamed.",
        "description": "The lines come in this order: one `agent` line with the number of the `format`; a `settings` line, if the agent has settings of its own; a `tool` line for each registered tool; a `usage` line for each day and model; the agent's memory in `block`, `version`, `entry`, `skill`, `past` and `prompt` lines; the lines of each session, as `exportSession` writes them, from its `session` line to its `end` line; and one `done` line. A file without its `done` line was cut off. After each session, and about every megabyte within one, stands a `cursor` line: its `after`, given as `?after=`, has the export go on behind it. No value of a tool's header is in the file. Needs the Worker's secret.",
        "parameters": [
            agent_parameter(),
            {
                "name": "after", "in": "query", "required": false,
                "description": "The `after` of the last `cursor` line of an export that broke off.",
                "schema": {"type": "string"}
            }
        ],
        "responses": {
            "200": {
                "description": "The file. `x-rows-read` is what its start has read.",
                "content": {"application/x-ndjson": {"schema": {"type": "string"}}}
            },
            "default": refusal()
        }
    })
}

pub fn import_agent(schemas: &mut SchemaGenerator) -> Value {
    json!({
        "operationId": "importAgent",
        "summary": "An exported agent back in, into an agent that is empty.",
        "description": "The agent's own lines are written first, then session by session; a session appears once its last line was read. An import that broke off is repeated with the same file: what is there already is compared, and not written again. An agent that holds anything else is left as it is, and the import is refused with `already_exists`. A broken line is refused, and `details.line` is its number. Needs the Worker's secret. A block's `source`, a frozen prompt and a server of tools count only with `allowSources`: without it, a `source` is refused, and the others are left out.",
        "parameters": [
            agent_parameter(),
            {
                "name": "allowSources", "in": "query", "required": false,
                "description": "The file is trusted with where blocks and servers of tools live, and with frozen prompts.",
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
            "description": "The file is trusted with where blocks live and with the frozen prompt.",
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
