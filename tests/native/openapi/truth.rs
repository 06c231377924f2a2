//! What a generated client has to know beside the types: which bodies are needed, what a name may
//! hold, and of which fields there is exactly one.

use log::message_text::MAX_PARTS;
use serde_json::{Map, Value, json};

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
    one_of("searchContext", &["query", "queries"]),
];

/// What a text holds, in the words of JSON Schema: the place of the text, and its pattern.
const PATTERNS: &[(&str, &str)] = &[
    (
        "/components/schemas/Label",
        "^[A-Za-z0-9_.-]([A-Za-z0-9_. -]{0,62}[A-Za-z0-9_.-])?$",
    ),
    (
        "/paths/~1agents~1session-agent~1{agent}~1rpc~1defineTool/post/requestBody/content/application~1json/schema/properties/name",
        "^[A-Za-z0-9_-]{1,64}$",
    ),
];

/// The shape of a message that is sent.
const SENT: &str = "SentMessage";

const OPERATIONS: &str = "/agents/session-agent/{agent}/rpc/";

pub fn complete(document: &mut Value) {
    write_no_booleans(document);
    for (place, pattern) in PATTERNS {
        let schema = document.pointer_mut(place).unwrap();
        schema["pattern"] = json!(pattern);
    }
    for rule in ONE_OF {
        add_rule(schema_of(document, rule.name), one_of_them(rule.fields));
    }
    let shapes = document["components"]["schemas"].as_object_mut().unwrap();
    shapes.insert(SENT.to_owned(), sent_message());
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
        if path.starts_with(OPERATIONS)
            && let Some(message) = schema.pointer_mut("/properties/message")
        {
            add_rule(
                message,
                json!({"$ref": format!("#/components/schemas/{SENT}")}),
            );
        }
        // An empty body is `{}`.
        let is_needed = !path.starts_with(OPERATIONS)
            || schema.get("required").is_some()
            || schema.get("allOf").is_some();
        body["required"] = json!(is_needed);
    }
}

/// The schema of an operation's input, or the shape of this name.
fn schema_of<'a>(document: &'a mut Value, name: &str) -> &'a mut Value {
    let path = format!("{OPERATIONS}{name}").replace('/', "~1");
    let place = match name.starts_with(char::is_uppercase) {
        true => format!("/components/schemas/{name}"),
        false => format!("/paths/{path}/post/requestBody/content/application~1json/schema"),
    };
    document.pointer_mut(&place).unwrap()
}

/// A rule stands beside the types, so that a generator that reads types alone still has them.
fn add_rule(schema: &mut Value, rule: Value) {
    let fields: &mut Map<String, Value> = schema.as_object_mut().unwrap();
    let rules = fields.entry("allOf").or_insert_with(|| json!([]));
    rules.as_array_mut().unwrap().push(rule);
}

fn one_of_them(fields: &[&str]) -> Value {
    let is_there = |field: &&str| json!({"required": [field], "properties": {*field: {"not": {"type": "null"}}}});
    json!({"oneOf": fields.iter().map(is_there).collect::<Vec<_>>()})
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

/// The roles stand as a pattern: a program's own objects have a `role` that its compiler takes
/// for any text.
fn sent_message() -> Value {
    json!({
        "type": "object",
        "description": "A message of the AI SDK as it is sent. The application's own fields are \
                        preserved.",
        "required": ["role", "parts"],
        "properties": {
            "id": {"type": ["string", "null"], "minLength": 1, "maxLength": 200, "description": "If omitted, the agent generates one."},
            "role": {"type": "string", "pattern": "^(user|assistant|system)$"},
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
