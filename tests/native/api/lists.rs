//! Every list of every input in openapi.json has a limit, and a request with one more item is
//! rejected with the list's name. The tests find new lists automatically.

use serde_json::{Map, Value, json};

use crate::Alice;
use api::OPENAPI_JSON;

/// A list in an input: its operation and path, its limit, and a body that contains a list of a
/// given length.
struct Found {
    operation: String,
    field: String,
    max: usize,
    body: Box<dyn Fn(usize) -> Value>,
}

struct Document(Value);

/// Builds a value with a list of this many items.
type OfLength = Box<dyn Fn(usize) -> Value>;

impl Document {
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        if let Some(pointer) = schema["$ref"].as_str() {
            return self.resolve(self.0.pointer(&pointer[1..]).unwrap());
        }
        // Other options are rules about a shape and do not concern lists.
        let is_shape = |option: &&Value| {
            let keys = ["$ref", "type", "const", "enum"];
            option["type"] != "null" && keys.iter().any(|key| option.get(key).is_some())
        };
        for key in ["anyOf", "oneOf", "allOf"] {
            let mut options = schema[key].as_array().into_iter().flatten();
            if let Some(option) = options.find(is_shape) {
                return self.resolve(option);
            }
        }
        schema
    }

    fn is(&self, schema: &Value, kind: &str) -> bool {
        let declared = &self.resolve(schema)["type"];
        declared == kind
            || declared
                .as_array()
                .is_some_and(|kinds| kinds.iter().any(|one| one == kind))
    }

    /// The smallest value that the schema allows.
    fn least(&self, schema: &Value) -> Value {
        let schema = self.resolve(schema);
        if let Some(names) = schema["enum"].as_array() {
            return names[0].clone();
        }
        if schema.get("const").is_some() {
            return schema["const"].clone();
        }
        if self.is(schema, "array") {
            let least = schema["minItems"].as_u64().unwrap_or(0) as usize;
            return vec![self.least(&schema["items"]); least].into();
        }
        if self.is(schema, "object") {
            let required = schema["required"].as_array().into_iter().flatten();
            let fields: Map<String, Value> = required
                .map(|name| name.as_str().unwrap())
                .map(|name| (name.to_owned(), self.least(&schema["properties"][name])))
                .collect();
            return fields.into();
        }
        if self.is(schema, "integer") || self.is(schema, "number") {
            return schema["minimum"].as_i64().unwrap_or(1).into();
        }
        if self.is(schema, "boolean") {
            return true.into();
        }
        "x".into()
    }

    /// The lists within a schema, each with its path, its limit and a function that builds a value
    /// with that many items.
    fn lists(&self, schema: &Value) -> Vec<(String, Option<usize>, OfLength)> {
        let schema = self.resolve(schema);
        let mut found: Vec<(String, Option<usize>, OfLength)> = Vec::new();
        if self.is(schema, "array") {
            let item = self.least(&schema["items"]);
            let max = schema["maxItems"].as_u64().map(|max| max as usize);
            found.push((
                String::new(),
                max,
                Box::new(move |count| vec![item.clone(); count].into()),
            ));
            for (path, max, value) in self.lists(&schema["items"]) {
                let within = Box::new(move |count| json!([value(count)]));
                let dot = if path.is_empty() { "" } else { "." };
                found.push((format!("[0]{dot}{path}"), max, within));
            }
        }
        let least = self.least(schema);
        for (name, inner) in schema["properties"].as_object().into_iter().flatten() {
            for (path, max, value) in self.lists(inner) {
                let (name, least) = (name.clone(), least.clone());
                let dot = if path.is_empty() || path.starts_with('[') {
                    ""
                } else {
                    "."
                };
                let path = format!("{name}{dot}{path}");
                let within = Box::new(move |count| {
                    let mut body = least.clone();
                    body[&name] = value(count);
                    body
                });
                found.push((path, max, within));
            }
        }
        found
    }
}

fn lists_of_inputs() -> Vec<Found> {
    let document = Document(serde_json::from_str(OPENAPI_JSON).unwrap());
    let mut found = Vec::new();
    for (address, path) in document.0["paths"].as_object().unwrap() {
        // `request::tests` covers a chat's lists.
        if !address.contains("/rpc/") {
            continue;
        }
        let post = &path["post"];
        let input = &post["requestBody"]["content"]["application/json"]["schema"];
        if input.is_null() {
            continue;
        }
        let operation = post["operationId"].as_str().unwrap();
        // The parts of a message are tested where messages are parsed.
        let is_parts = |field: &str| matches!(field, "message.parts" | "messages[0].parts");
        let lists = document.lists(input).into_iter();
        for (field, max, body) in lists.filter(|(field, ..)| !is_parts(field)) {
            found.push(Found {
                max: max.unwrap_or_else(|| panic!("{operation}: `{field}` has no maxItems")),
                operation: operation.to_owned(),
                field,
                body,
            });
        }
    }
    found
}

#[test]
fn every_list_is_limited_and_documented() {
    let alice = Alice::with_session();
    let found = lists_of_inputs();
    assert!(found.len() > 12, "only {} lists", found.len());
    for list in found {
        let Found {
            operation, field, ..
        } = &list;
        let error = alice
            .call(operation, (list.body)(list.max + 1))
            .expect_err(operation);
        assert_eq!(error.code.name(), "invalid_request", "{operation}: {field}");
        assert_eq!(error.details()["field"], *field, "{operation}: {field}");
        assert!(
            error.message.contains(&list.max.to_string()),
            "{operation}: {}",
            error.message
        );
        // A list at its limit is never refused for its length.
        if let Err(error) = alice.call(operation, (list.body)(list.max)) {
            assert!(
                !error.message.contains("items"),
                "{operation}: {}",
                error.message
            );
        }
    }
}
