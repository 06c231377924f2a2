//! What the crate's build makes of a document.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a test may panic"
)]

#[path = "../build/document.rs"]
mod document;
#[path = "../build/names.rs"]
mod names;
#[path = "../build/render.rs"]
mod render;
#[path = "../build/shapes.rs"]
mod shapes;

use document::Document;
use serde_json::{Value, json};

fn render_document(document: Value) -> Result<String, String> {
    let document: Document = serde_json::from_value(document).unwrap();
    render::operations(&document)
}

/// The code generated for one operation with this `input` and `output`.
fn render_operation(input: Value, output: Value, mut schemas: Value) -> Result<String, String> {
    let content = |schema| json!({"content": {"application/json": {"schema": schema}}});
    let code = json!({"enum": ["leaf_moved"]});
    let error = json!({"properties": {"error": {"properties": {"code": code}}}});
    schemas
        .as_object_mut()
        .unwrap()
        .insert("Error".to_owned(), error);
    let post = json!({
        "operationId": "askThem",
        "summary": "Asks.",
        "requestBody": content(input),
        "responses": {"200": content(output)},
    });
    render_document(json!({
        "paths": {"/agents/session-agent/{agent}/rpc/askThem": {"post": post}},
        "components": {"schemas": schemas},
    }))
}

fn render_input(input: Value) -> Result<String, String> {
    render_operation(input, json!({"type": "string"}), json!({}))
}

fn render_fields(properties: Value) -> Result<String, String> {
    render_input(json!({"type": "object", "properties": properties}))
}

#[track_caller]
fn assert_has(text: &str, part: &str) {
    assert!(text.contains(part), "{text}");
}

#[track_caller]
fn assert_refused(made: Result<String, String>, why: &str) {
    assert_eq!(made.unwrap_err(), why);
}

#[test]
fn every_operation_has_a_struct_with_all_its_fields() {
    let api = std::fs::read("openapi.json").unwrap();
    let api: Document = serde_json::from_slice(&api).unwrap();
    let text = render::operations(&api).unwrap();
    let each = render::each(&api);
    assert!(api.operations().count() > 60);
    for operation in api.operations() {
        let name = names::pascal(&operation.operation_id);
        let id = &operation.operation_id;
        assert_has(&text, &format!("const NAME: &'static str = \"{id}\";"));
        assert_has(&each, &format!(" {name} "));
        let head = format!("\npub struct {name} {{");
        let (_, after) = text.split_once(&head).unwrap();
        let (fields, _) = after.split_once("\n}\n").unwrap();
        let lines = fields
            .lines()
            .filter_map(|line| line.strip_prefix("    pub "));
        let written = lines.map(|line| line.split(':').next().unwrap().to_owned());
        let mut written: Vec<String> = written.collect();
        let input = operation.input().unwrap();
        let input = input.name().map_or(input, |name| &api.schemas()[name]);
        let expected = input.rules.properties.iter().flat_map(|of| of.keys());
        let mut expected: Vec<String> = expected.filter_map(|of| names::rust_name(of)).collect();
        written.sort();
        expected.sort();
        assert_eq!(written, expected, "{id}");
    }
}

#[test]
fn required_fields_are_arguments_and_others_are_methods() {
    let properties = json!({
        "maxBytes": {"type": "integer"},
        "name": {"type": "string"},
        "at": {"type": ["string", "null"]},
    });
    let input = json!({"type": "object", "properties": properties, "required": ["name"]});
    let text = render_input(input).unwrap();
    assert_has(&text, "    pub fn new(name: impl Into<String>) -> Self {\n");
    assert_has(&text, "    pub max_bytes: Option<i64>,\n");
    let setters = "setters! {\n    AskThem:\n    at: impl Into<String>;\n    max_bytes: i64;\n}\n";
    assert_has(&text, setters);
}

#[test]
fn null_differs_from_an_omitted_field_where_it_has_a_meaning() {
    let properties = json!({
        "leafId": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
        "since": {"type": ["integer", "null"]},
    });
    let text = render_fields(properties).unwrap();
    assert_has(&text, "    /// `Some(None)` sends `null`.\n");
    assert_has(&text, "    pub leaf_id: Option<Option<String>>,\n");
    assert_has(&text, "    or null leaf_id: impl Into<String>;\n");
    assert_has(&text, "    pub since: Option<i64>,\n");
}

#[test]
fn an_unknown_shape_is_refused() {
    let ask = |field: Value| render_fields(json!({"field": field}));
    let field = "`AskThemField` is";
    assert_refused(
        ask(json!({"type": "object", "properties": {"a": {"type": "integer"}}})),
        &format!("{field} of the type object, without a name"),
    );
    assert_refused(
        ask(json!({"type": ["string", "integer"]})),
        &format!("{field} one of several types"),
    );
    assert_refused(
        ask(json!({"anyOf": [{"type": "string"}, {"type": "integer"}]})),
        &format!("{field} one of several things"),
    );
    assert_refused(
        ask(json!({"$ref": "#/components/schemas/Gone"})),
        "the API's document has no shape `Gone`",
    );
}

#[test]
fn a_name_that_serde_would_change_is_refused() {
    assert_refused(
        render_fields(json!({"max_bytes": {"type": "integer"}})),
        "`AskThem.max_bytes` has no name in Rust that leads back to it",
    );
    let text = render_fields(json!({"where": {"type": "string"}})).unwrap();
    assert_has(&text, "    pub r#where: Option<String>,\n");
}

#[test]
fn a_shape_named_like_an_operation_is_refused() {
    let schemas = json!({"AskThem": {"properties": {"n": {"type": "integer"}}}});
    let output = json!({"$ref": "#/components/schemas/AskThem"});
    assert_refused(
        render_operation(json!({"type": "object"}), output, schemas),
        "`AskThem` is a shape and an operation: rename the shape",
    );
}

#[test]
fn an_enum_values_description_is_its_documentation() {
    let mood = json!({"oneOf": [
        {"const": "very-good", "type": "string", "description": "The best, see [`Mood`] and [`a`](b)."},
        {"const": "bad", "type": "string"},
    ]});
    let output = json!({"$ref": "#/components/schemas/Mood"});
    let text = render_operation(json!({"type": "object"}), output, json!({"Mood": mood})).unwrap();
    assert_has(
        &text,
        "words! {
    /// What `askThem` answers.
    pub enum Mood {
        /// The best, see `Mood` and [`a`](b).
        VeryGood = \"very-good\",
        Bad = \"bad\",
    }
}
",
    );
    assert_has(
        &text,
        "    pub enum Code {\n        LeafMoved = \"leaf_moved\",\n    }\n",
    );
}

#[test]
fn unnamed_enums_are_named_after_their_field() {
    let text = render_fields(json!({"mood": {"enum": ["good", "bad"]}})).unwrap();
    assert_has(&text, "    pub mood: Option<AskThemMood>,\n");
    assert_has(
        &text,
        "    pub enum AskThemMood {\n        Good = \"good\",\n",
    );
}
