//! Generates openapi.json from the table of operations. The Worker serves the checked-in file; this
//! test checks that it matches the code. `UPDATE=1 cargo test openapi` rewrites it.

mod files;
mod provider;
mod rules;
mod shapes;
mod turns;

use std::collections::BTreeSet;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::api::examples::examples;
use access::{Effect, Needs};
use api::OPENAPI_JSON;
use api::admission::MAX_MCP_BODY_BYTES;
use api::operation::OperationEntry;
use api::operations::message_reads::UiMessage;
use api::operations::tokens::Preset;
use api::table::{OPERATIONS, RULES};
use base::error::Code;

/// An input's schema lists the fields that a caller may omit; an answer's lists the fields that are
/// always present. One type can be both, so each has its own generator.
struct Schemas {
    inputs: SchemaGenerator,
    answers: SchemaGenerator,
}

/// The targets of references of inputs and of answers, until [`merge`] joins the schemas.
const INPUTS: &str = "/components/inputs";
const SCHEMAS: &str = "/components/schemas";

impl Schemas {
    fn new() -> Self {
        let at = |path: &str, settings: SchemaSettings| {
            let settings =
                settings.with(|settings| settings.definitions_path = path.to_owned().into());
            settings.into_generator()
        };
        Self {
            inputs: at(INPUTS, SchemaSettings::draft2020_12().for_deserialize()),
            answers: at(SCHEMAS, SchemaSettings::draft2020_12().for_serialize()),
        }
    }
}

/// Adds the inputs' schemas to the answers' schemas. If an input's schema differs from
/// the answer's schema of the same name, the input's is called `{name}Input`.
fn merge(
    document: &mut Value,
    inputs: Map<String, Value>,
    mut answers: Map<String, Value>,
) -> Map<String, Value> {
    let mut others: BTreeSet<String> = BTreeSet::new();
    loop {
        let differs = |(name, schema): (&String, &Value)| {
            let mut schema = schema.clone();
            refer(&mut schema, &others);
            answers.get(name).is_some_and(|answer| *answer != schema)
        };
        let found: BTreeSet<String> = inputs
            .iter()
            .filter(|field| differs(*field))
            .map(|(name, _)| name.clone())
            .collect();
        if found.is_subset(&others) {
            break;
        }
        others.extend(found);
    }
    for (name, mut schema) in inputs {
        refer(&mut schema, &others);
        answers.insert(input_name(&name, &others), schema);
    }
    refer(document, &others);
    answers
}

fn input_name(name: &str, others: &BTreeSet<String>) -> String {
    if others.contains(name) {
        format!("{name}Input")
    } else {
        name.to_owned()
    }
}

/// Points every reference to an input's schema to the place where [`merge`] puts it.
fn refer(value: &mut Value, others: &BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let name = field.as_str().and_then(|text| text.strip_prefix('#'));
                let name = name.and_then(|text| text.strip_prefix(INPUTS));
                match name.and_then(|text| text.strip_prefix('/')) {
                    Some(name) if key == "$ref" => {
                        *field = json!(format!("#{SCHEMAS}/{}", input_name(name, others)));
                    }
                    _ => refer(field, others),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| refer(item, others)),
        _ => {}
    }
}

fn document() -> Value {
    let mut schemas = Schemas::new();
    let mut paths = Map::new();
    // `every_operation_has_an_example_that_succeeds` runs the same examples.
    let examples = examples();
    for entry in OPERATIONS {
        let example = examples.iter().find(|one| one.operation == entry.name);
        let example =
            example.unwrap_or_else(|| panic!("{} has no example in examples.rs", entry.name));
        paths.insert(
            format!("/agents/session-agent/{{agent}}/rpc/{}", entry.name),
            json!({"post": operation(entry, &example.body, &mut schemas)}),
        );
    }
    paths.insert(
        "/health".to_owned(),
        json!({"get": {
            "operationId": "health",
            "summary": "Liveness and build identity.",
            "security": [],
            "responses": {"200": {
                "description": "The Worker is up.",
                "content": {"application/json": {"schema": health_schema()}}
            }}
        }}),
    );
    paths.insert(
        "/agents/session-agent/{agent}/mcp".to_owned(),
        json!({"post": mcp()}),
    );
    let session = "/agents/session-agent/{agent}/sessions/{sessionId}";
    paths.insert(
        "/agents/session-agent/{agent}/get-messages".to_owned(),
        json!({"get": get_messages(&mut schemas.answers)}),
    );
    paths.insert(format!("{session}/export"), json!({"get": files::export()}));
    paths.insert(
        format!("{session}/import"),
        json!({"post": files::import(&mut schemas.answers)}),
    );
    let agent = "/agents/session-agent/{agent}";
    paths.insert(
        format!("{agent}/export"),
        json!({"get": files::export_agent()}),
    );
    paths.insert(
        format!("{agent}/import"),
        json!({"post": files::import_agent(&mut schemas.answers)}),
    );
    provider::add(&mut paths);
    paths.insert(format!("{agent}/chat"), json!({"post": turns::chat()}));
    paths.insert(
        format!("{agent}/chat/{{sessionId}}/stream"),
        json!({"get": turns::resume()}),
    );
    let mut document = json!({
        "openapi": "3.1.0",
        "servers": [{"url": "/", "description": "The Worker that serves this document."}],
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
                    "chat": Preset::Chat.operations(RULES),
                    "read": Preset::Read.operations(RULES),
                    "model": Preset::Model.operations(RULES)
                }
            }},
        }
    });
    let inputs = schemas.inputs.take_definitions(true);
    let answers = schemas.answers.take_definitions(true);
    let mut components = merge(&mut document, inputs, answers);
    components.insert("Error".to_owned(), error_schema());
    document["components"]["schemas"] = components.into();
    shapes::complete(&mut document);
    document
}

fn operation(entry: &OperationEntry, example: &Value, schemas: &mut Schemas) -> Value {
    let mut input = (entry.input)(&mut schemas.inputs);
    // The generator adds these keys for a standalone document.
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
        Needs::Secret => "Requires the secret.",
        Needs::WholeAgent => "Not available to a token for one session.",
        Needs::Session => "A token for one session can run it on that session only.",
        Needs::Narrowed => "A token for one session sees that session only.",
    };
    let named = match entry.rule.effect {
        Effect::Prompts => " A minted token must name it.",
        Effect::Messages => {
            " A minted token can only write user messages, unless it allows `agentMessages`."
        }
        _ => "",
    };
    let presets: Vec<&str> = [("chat", Preset::Chat), ("read", Preset::Read)]
        .into_iter()
        .filter(|(_, preset)| preset.operations(RULES).contains(&entry.name))
        .map(|(name, _)| name)
        .collect();
    let description = format!("{}\n\n{access}{named}", description.replace('\n', " "));
    let description = description.trim();
    json!({
        "operationId": entry.name,
        "x-presets": presets,
        "summary": summary.replace('\n', " "),
        "description": description,
        "parameters": [agent_parameter()],
        "requestBody": {"content": {"application/json": {"schema": input, "example": example}}},
        "x-max-body-bytes": entry.max_body_bytes,
        "responses": {
            "200": {
                "description": "The output.",
                "headers": {
                    "x-rows-read": {"description": "Rows that the request read.", "schema": {"type": "integer"}},
                    "x-rows-written": {"description": "Rows that the request wrote.", "schema": {"type": "integer"}}
                },
                "content": {"application/json": {"schema": (entry.output)(&mut schemas.answers)}}
            },
            "default": refusal()
        }
    })
}

fn health_schema() -> Value {
    json!({
        "type": "object",
        "required": ["status", "name", "version", "revision"],
        "properties": {
            "status": {"const": "ok"},
            "name": {"const": "session-agent"},
            "version": {"type": "string", "description": "The version of the package that was built."},
            "revision": {"type": "string", "description": "The commit that was built, or `unknown`."}
        }
    })
}

fn get_messages(schemas: &mut SchemaGenerator) -> Value {
    json!({
        "operationId": "getMessages",
        "summary": "The newest messages of a session, in the format of the AI SDK and Agents SDK clients.",
        "description": "The messages are ordered from root to leaf, with overlays applied. A \
                        session that does not exist has none. Requires the rights of `getHistory`.",
        "parameters": [
            agent_parameter(),
            {
                "name": "sessionId", "in": "query", "required": false,
                "description": "The session; by default the one that is called `default`.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 200, "default": "default"}
            },
            {
                "name": "token", "in": "query", "required": false,
                "description": "A token from `mintToken`, for clients that can't send headers.",
                "schema": {"type": "string"}
            }
        ],
        "responses": {
            "200": {
                "description": "The messages.",
                "content": {"application/json": {"schema": schemas.subschema_for::<Vec<UiMessage>>()}}
            },
            "default": refusal()
        }
    })
}

fn agent_parameter() -> Value {
    json!({
        "name": "agent", "in": "path", "required": true,
        "description": "The agent's name, `%`-encoded.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": rules::without_control_characters()}
    })
}

fn mcp() -> Value {
    json!({
        "operationId": "mcp",
        "summary": "One message of the Model Context Protocol.",
        "description": "Streamable HTTP without sessions, in the revisions 2026-07-28, 2025-11-25 \
                        and 2025-06-18. The tools are the memory tools, `search`, and the \
                        registered tools that the caller may call. The resources are the blocks \
                        and the documents. The prompt `system` is the rendered memory. Each method \
                        requires the rights of the corresponding operations. A refused message is \
                        answered with a JSON-RPC error, and `data.code` is a code of this \
                        document.",
        "parameters": [
            agent_parameter(),
            {
                "name": "sessionId", "in": "query", "required": false,
                "description": "The session whose memory to include in addition to the agent's. \
                                Default: the session of the token, if it is for one.",
                "schema": {"type": "string", "minLength": 1, "maxLength": 200}
            }
        ],
        "requestBody": {"content": {"application/json": {
            "schema": rpc_request(),
            "example": {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        }}},
        "x-max-body-bytes": MAX_MCP_BODY_BYTES,
        "responses": {
            "200": {
                "description": "The answer as JSON, or as an event stream if the client requests \
                                one. In the revisions with a handshake, many errors have this \
                                status, too.",
                "content": {
                    "application/json": {"schema": {"oneOf": [rpc_result(), rpc_error()]}},
                    "text/event-stream": {"schema": {"type": "string"}}
                }
            },
            "202": {"description": "The message asks for no answer."},
            "default": {
                "description": "A refused message gets a JSON-RPC error. A request that is refused \
                                before its message is read gets the error of any other request: \
                                without access, too long, or when the agent is busy.",
                "content": {"application/json": {"schema": {"oneOf": [
                    rpc_error(),
                    {"$ref": "#/components/schemas/Error"}
                ]}}}
            }
        }
    })
}

fn rpc_request() -> Value {
    json!({
        "type": "object",
        "required": ["jsonrpc", "method"],
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer"], "description": "If omitted, the message expects no answer."},
            "method": {"type": "string"},
            "params": {"type": "object", "additionalProperties": true}
        },
        "additionalProperties": false
    })
}

fn rpc_result() -> Value {
    json!({
        "type": "object",
        "required": ["jsonrpc", "id", "result"],
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer"]},
            "result": {"type": "object", "additionalProperties": true}
        },
        "additionalProperties": false
    })
}

fn rpc_error() -> Value {
    json!({
        "type": "object",
        "required": ["jsonrpc", "id", "error"],
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "integer", "null"], "description": "`null`: the message could not be read."},
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {
                    "code": {"type": "integer"},
                    "message": {"type": "string"},
                    "data": {
                        "type": "object",
                        "description": "`code`: a code of this document, with its details.",
                        "additionalProperties": true
                    }
                },
                "additionalProperties": false
            }
        },
        "additionalProperties": false
    })
}

fn refusal() -> Value {
    json!({
        "description": "The error.",
        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}
    })
}

fn error_schema() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
    let mut kinds: Vec<Value> = DETAILS
        .iter()
        .map(|(code, details)| {
            let fields = details
                .iter()
                .map(|detail| (detail.name.to_owned(), json!({ "type": detail.kind })));
            let always = details.iter().filter(|detail| detail.is_always_there);
            let names: Vec<&str> = always.map(|detail| detail.name).collect();
            json!({"properties": {
                "code": {"const": code.name()},
                "details": {
                    "type": "object",
                    "required": names,
                    "properties": fields.collect::<Map<String, Value>>(),
                    "additionalProperties": true
                }
            }})
        })
        .collect();
    let is_detailed = |code: &Code| DETAILS.iter().any(|(detailed, _)| detailed == code);
    let others = Code::ALL.iter().filter(|code| !is_detailed(code));
    let others: Vec<&str> = others.map(|code| code.name()).collect();
    kinds.push(json!({"properties": {"code": {"enum": others}}}));
    json!({
        "type": "object",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["code", "message", "details"],
            "properties": {
                "code": {"type": "string", "enum": codes},
                "message": {"type": "string"},
                "details": {"type": "object", "additionalProperties": true}
            },
            "oneOf": kinds
        }}
    })
}

/// A field of an error's `details`.
struct Detail {
    name: &'static str,
    kind: &'static str,
    is_always_there: bool,
}

const fn detail(name: &'static str, kind: &'static str) -> Detail {
    Detail {
        name,
        kind,
        is_always_there: true,
    }
}

/// The details that a caller can rely on, per error code. An error may have others, too.
const DETAILS: &[(Code, &[Detail])] = &[
    (Code::InvalidRequest, &[detail("field", "string")]),
    (
        Code::PayloadTooLarge,
        &[
            detail("limit", "integer"),
            // Without an announced length, reading stops at the limit.
            Detail {
                is_always_there: false,
                ..detail("actual", "integer")
            },
        ],
    ),
    (
        Code::BlockOverBudget,
        &[detail("tokens", "integer"), detail("maxTokens", "integer")],
    ),
    (Code::RateLimited, &[detail("retryAfter", "integer")]),
    (Code::NotConfigured, &[detail("binding", "string")]),
];

#[test]
fn the_checked_in_document_matches_the_code() {
    let expected = serde_json::to_string_pretty(&document()).unwrap() + "\n";
    if std::env::var_os("UPDATE").is_some() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../generated/openapi.json");
        std::fs::write(file, &expected).unwrap();
        return;
    }
    assert!(
        OPENAPI_JSON == expected,
        "generated/openapi.json differs from the code: `UPDATE=1 cargo test openapi` rewrites it"
    );
}

/// Whether `null` is a value of a schema.
fn admits_null(schema: &Value, document: &Value) -> bool {
    let of = |name: &str| schema.get(name).and_then(Value::as_array);
    let admits = |schema: &Value| admits_null(schema, document);
    let by_type = match schema.get("type") {
        Some(Value::String(name)) => name == "null",
        Some(Value::Array(names)) => names.contains(&json!("null")),
        _ => true,
    };
    by_type
        && schema.get("const").is_none_or(Value::is_null)
        && of("enum").is_none_or(|values| values.contains(&Value::Null))
        && of("anyOf").is_none_or(|schemas| schemas.iter().any(admits))
        && of("oneOf").is_none_or(|schemas| schemas.iter().any(admits))
        && of("allOf").is_none_or(|schemas| schemas.iter().all(admits))
        && schema["$ref"]
            .as_str()
            .is_none_or(|place| admits(document.pointer(&place[1..]).unwrap()))
}

/// The places of defaults that are `null` where `null` is refused.
fn wrong_defaults(value: &Value, document: &Value, place: &str, found: &mut Vec<String>) {
    if value.get("default") == Some(&Value::Null) && !admits_null(value, document) {
        found.push(place.to_owned());
    }
    let entries: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields.iter().map(|(name, of)| (name.clone(), of)).collect(),
        Value::Array(items) => (0..).map(|n: usize| n.to_string()).zip(items).collect(),
        _ => return,
    };
    for (name, of) in entries {
        wrong_defaults(of, document, &format!("{place}/{name}"), found);
    }
}

#[test]
fn no_default_is_null_where_null_is_invalid() {
    let document = document();
    let mut found = Vec::new();
    wrong_defaults(&document, &document, "", &mut found);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn the_alternatives_in_the_document_are_enforced() {
    let samples = json!({
        "query": "tea", "queries": ["tea"], "ids": ["e1"], "url": "https://tools.example/x",
        "service": "TOOLS", "mcp": "https://tools.example/mcp", "r2": "a", "r2Prefix": "a/", "agent": "user:1"
    });
    for rule in shapes::ONE_OF {
        let all: Vec<&str> = rule.fields.to_vec();
        for fields in [vec![], all[..2].to_vec(), all] {
            let named = fields
                .iter()
                .map(|name| ((*name).to_owned(), samples[*name].clone()));
            let named: Map<String, Value> = named.collect();
            let (operation, mut body) = match rule.name {
                "BlockSource" => (
                    "defineBlock",
                    json!({"label": "l", "kind": "loadable", "source": named}),
                ),
                name => (name, Value::from(named)),
            };
            match operation {
                "defineTool" => body["name"] = json!("t"),
                "searchContext" => body["label"] = json!("facts"),
                _ => {}
            }
            let alice = crate::Alice::with_model();
            alice.ok(
                "defineBlock",
                json!({"label": "facts", "kind": "searchable"}),
            );
            let case = format!("{operation} {body}");
            let error = alice.call(operation, body).expect_err(&case);
            assert_eq!(error.code, Code::InvalidRequest, "{case}");
        }
    }
}
