//! What a generated client needs to know in addition to the types: which bodies are required,
//! exclusive fields, and the shapes of messages. The other rules are in `rules.rs`.

use conversation::log::message_text::MAX_PARTS;
use serde_json::{Map, Value, json};

use super::rules::{TOOL_NAME, readable, rules};

/// Fields of which a request has exactly one. Other values of them are `null`.
pub struct OneOf {
    /// The operation, or the shape.
    pub name: &'static str,
    pub fields: &'static [&'static str],
}

const fn one_of(name: &'static str, fields: &'static [&'static str]) -> OneOf {
    OneOf { name, fields }
}

pub const ONE_OF: &[OneOf] = &[
    one_of("BlockSource", &["r2", "r2Prefix", "agent", "service"]),
    one_of("defineTool", &["service", "url", "mcp"]),
    one_of("findMentions", &["query", "ids"]),
    one_of("search", &["query", "queries"]),
    one_of("searchAgents", &["query", "queries"]),
    one_of("searchContext", &["query", "queries"]),
];

/// The shape of a message that is sent.
const SENT: &str = "SentMessage";

const OPERATIONS: &str = "/agents/session-agent/{agent}/rpc/";

pub fn complete(document: &mut Value) {
    write_no_booleans(document);
    for (place, keywords) in rules() {
        apply(find(document, place), keywords);
    }
    for rule in ONE_OF {
        add_rule(schema_of(document, rule.name), one_of_them(rule.fields));
    }
    let shapes = document["components"]["schemas"].as_object_mut().unwrap();
    shapes.insert(SENT.to_owned(), sent_message());
    shapes.insert("SentUserMessage".to_owned(), sent_user_message());
    shapes.insert("ClientTool".to_owned(), client_tool());
    let paths = document["paths"].as_object_mut().unwrap();
    for (path, methods) in paths {
        let Some(body) = methods.pointer_mut("/post/requestBody") else {
            continue;
        };
        let schema = body.pointer_mut("/content/application~1json/schema");
        let Some(schema) = schema else {
            // A file.
            body["required"] = json!(true);
            continue;
        };
        // An empty body is `{}`.
        let is_needed = !path.starts_with(OPERATIONS)
            || schema.get("required").is_some()
            || schema.get("$ref").is_some()
            || schema
                .get("allOf")
                .is_some_and(|rules| !takes_nothing(rules));
        body["required"] = json!(is_needed);
    }
}

/// Whether a rule has a case without required fields, so that an empty body follows it.
fn takes_nothing(rules: &Value) -> bool {
    let rules = rules.as_array().into_iter().flatten();
    rules.into_iter().all(|rule| {
        let cases = ["oneOf", "anyOf"]
            .iter()
            .filter_map(|key| rule[key].as_array());
        cases.flatten().any(|case| case.get("required").is_none())
    })
}

/// The schema that a place of [`rules`] names.
fn find<'a>(document: &'a mut Value, place: &str) -> &'a mut Value {
    let mut steps = place.split('.');
    let mut schema = schema_of(document, steps.next().unwrap());
    for step in steps {
        let name = step.trim_end_matches("[]");
        schema = &mut schema["properties"][name];
        if step.ends_with("[]") {
            schema = &mut schema["items"];
        }
    }
    assert!(schema.is_object(), "there is no {place}");
    schema
}

fn apply(schema: &mut Value, keywords: Value) {
    let Value::Object(keywords) = keywords else {
        return;
    };
    for (keyword, value) in keywords {
        match (keyword.as_str(), value) {
            ("allOf", Value::Array(rules)) => {
                for rule in rules {
                    add_rule(schema, rule);
                }
            }
            (_, value) => schema[keyword] = value,
        }
    }
}

/// The schema of an operation's input, or the shape of this name.
fn schema_of<'a>(document: &'a mut Value, name: &str) -> &'a mut Value {
    let path = format!("{OPERATIONS}{name}").replace('/', "~1");
    let place = if name.starts_with(char::is_uppercase) {
        format!("/components/schemas/{name}")
    } else {
        format!("/paths/{path}/post/requestBody/content/application~1json/schema")
    };
    document.pointer_mut(&place).unwrap()
}

/// A rule is given in addition to the types, so that a generator that reads only types still has
/// them.
fn add_rule(schema: &mut Value, rule: Value) {
    let fields: &mut Map<String, Value> = schema.as_object_mut().unwrap();
    let rules = fields.entry("allOf").or_insert_with(|| json!([]));
    rules.as_array_mut().unwrap().push(rule);
}

fn one_of_them(fields: &[&str]) -> Value {
    let is_present = |field: &&str| json!({"required": [field], "properties": {*field: {"not": {"type": "null"}}}});
    json!({"oneOf": fields.iter().map(is_present).collect::<Vec<_>>()})
}

/// Any value.
fn any() -> Value {
    json!({"additionalProperties": true})
}

/// `true` as a schema is valid, and many generators read objects alone.
fn write_no_booleans(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                let holds_schemas = matches!(key.as_str(), "properties" | "$defs");
                if key == "items" && *field == json!(true) {
                    *field = any();
                }
                if let (true, Some(named)) = (holds_schemas, field.as_object_mut()) {
                    for schema in named.values_mut().filter(|schema| **schema == json!(true)) {
                        *schema = any();
                    }
                }
                write_no_booleans(field);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(write_no_booleans),
        _ => {}
    }
}

/// A message as it is sent. `roles` is a pattern, because in a program's own objects the compiler
/// types `role` as any string.
fn message(description: &str, roles: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
        "required": ["role", "parts"],
        "properties": {
            "id": {"type": "string", "minLength": 1, "maxLength": 200, "description": "If omitted, the agent generates one."},
            "role": {"type": "string", "pattern": roles},
            "parts": {
                "type": "array",
                "maxItems": MAX_PARTS,
                "items": {
                    "type": "object",
                    "required": ["type"],
                    "properties": {
                        "type": {"type": "string", "description": "`text`, `reasoning`, `file`, `tool-…`, `step-start`, `source-url`, `data-…`."},
                        "text": {"type": "string"}
                    },
                    "additionalProperties": true
                }
            },
            "metadata": any()
        },
        "additionalProperties": true
    })
}

fn sent_message() -> Value {
    message(
        "A message of the AI SDK as it is sent. The application's own fields are preserved.",
        "^(user|assistant|system)$",
    )
}

/// A message that a turn answers. Its `contains` says what a model can read.
fn sent_user_message() -> Value {
    let mut message = message(
        "A user's message of the AI SDK, with a part that a model can read: a text that is not blank, or a file.",
        "^user$",
    );
    message["properties"]["parts"]["contains"] = readable();
    message
}

fn client_tool() -> Value {
    json!({
        "type": "object",
        "description": "A tool that the client runs.",
        "required": ["name"],
        "properties": {
            "name": {"type": "string", "pattern": TOOL_NAME},
            "description": {"type": ["string", "null"]},
            "parameters": {"type": ["object", "null"], "additionalProperties": true, "description": "JSON Schema of an object. Default: any object."},
            "inputSchema": {"type": ["object", "null"], "additionalProperties": true, "description": "Another name of `parameters`."}
        },
        "additionalProperties": true
    })
}
