//! Checks every answer in tests against openapi.json.
//!
//! The entry points in [`super`] call this module for each answer that a test gets, so
//! no test can forget the check. A test fails if a field is not in the document, is
//! missing or has the wrong type, or if an error differs from the document.
//! `tests/workerd/answers.mjs` checks the Worker's answers in the same way.

mod closed;

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock};

use jsonschema::Validator;
use serde::Serialize;
use serde_json::{Value, json};

use super::OPENAPI_JSON;
use super::operation::Reply;
use base::error::{Error, Result};
use base::json;
use closed::{UniqueKeys, close, close_within};

/// The part of openapi.json that describes answers.
struct Document {
    /// The schemas that other schemas refer to.
    schemas: Value,
    /// The answers' schemas by `operationId`.
    answers: HashMap<String, Checked>,
    error: Checked,
}

/// A schema and its validator, which is built when it is first needed: building all of them takes
/// longer than most tests.
struct Checked {
    schema: Value,
    validator: OnceLock<Validator>,
}

impl Checked {
    fn new(schema: &Value) -> Self {
        Self {
            schema: close(schema),
            validator: OnceLock::new(),
        }
    }

    fn validator(&self, schemas: &Value) -> &Validator {
        self.validator.get_or_init(|| {
            let whole = json!({"allOf": [self.schema], "components": {"schemas": schemas}});
            jsonschema::draft202012::new(&whole)
                .unwrap_or_else(|error| panic!("{error}: {}", self.schema))
        })
    }
}

static DOCUMENT: LazyLock<Document> = LazyLock::new(Document::read);

impl Document {
    fn read() -> Self {
        let document: Value = serde_json::from_str(OPENAPI_JSON).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let operations = document["paths"].as_object().unwrap().values();
        let answers = operations
            .flat_map(|path| path.as_object().unwrap().values())
            .filter_map(|operation| {
                let name = operation["operationId"].as_str().unwrap();
                let answer =
                    &operation["responses"]["200"]["content"]["application/json"]["schema"];
                (!answer.is_null()).then(|| (name.to_owned(), Checked::new(answer)))
            });
        Self {
            schemas: schemas
                .iter()
                .map(|(name, schema)| (name.clone(), close_within(schema, false)))
                .collect(),
            answers: answers.collect(),
            error: Checked::new(&json!({"$ref": "#/components/schemas/Error"})),
        }
    }
}

#[track_caller]
fn check(operation: &str, checked: &Checked, text: &str) {
    if let Err(error) = serde_json::from_str::<UniqueKeys>(text) {
        panic!("{operation} returned an invalid JSON object: {error}");
    }
    let value: Value = serde_json::from_str(text).unwrap();
    let wrong: Vec<String> = checked
        .validator(&DOCUMENT.schemas)
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(
        wrong.is_empty(),
        "{operation} returned an answer that openapi.json does not describe. {}\nIf the answer is \
         right, `UPDATE=1 cargo test openapi` updates the document.",
        wrong.join("\n")
    );
}

/// Fails the test if the answer of `operation` differs from openapi.json.
pub fn assert_matches_schema(operation: &str, answer: &Result<Reply>) {
    match answer {
        Ok(reply) => assert_json_matches_schema(operation, &reply.body.copy()),
        Err(error) => assert_error_matches_schema(operation, error),
    }
}

/// As [`assert_matches_schema`], for an answer that is rendered later.
pub fn assert_output_matches_schema(operation: &str, answer: &Result<impl Serialize>) {
    match answer {
        Ok(output) => assert_json_matches_schema(operation, &json::encode(output).unwrap()),
        Err(error) => assert_error_matches_schema(operation, error),
    }
}

/// As [`assert_matches_schema`], for an entry point that answers with a stream: checks only refusals.
pub fn assert_refusal_matches_schema<T>(operation: &str, answer: &Result<T>) {
    if let Err(error) = answer {
        assert_error_matches_schema(operation, error);
    }
}

/// As [`assert_matches_schema`], for the messages of a frame, if it has any.
pub fn assert_frame_matches_schema(frame: &str) {
    let frame: Value = serde_json::from_str(frame).unwrap();
    if let Some(messages) = frame.get("messages") {
        assert_json_matches_schema("getMessages", &messages.to_string());
    } else if frame["type"] == "cf_agent_message_updated" {
        assert_json_matches_schema("getMessages", &format!("[{}]", frame["message"]));
    }
}

/// As [`assert_matches_schema`], for the text of a successful answer.
pub fn assert_json_matches_schema(operation: &str, json: &str) {
    // With `UPDATE`, the document is being generated: the file may be out of date.
    if std::env::var_os("UPDATE").is_some() {
        return;
    }
    match DOCUMENT.answers.get(operation) {
        Some(checked) => check(operation, checked, json),
        None => panic!("openapi.json has no answer of {operation}"),
    }
}

fn assert_error_matches_schema(operation: &str, error: &Error) {
    check(operation, &DOCUMENT.error, &error.body());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::OPERATIONS;
    use base::error::Code;

    #[test]
    fn the_document_describes_the_answer_of_every_operation() {
        for entry in OPERATIONS {
            let Some(checked) = DOCUMENT.answers.get(entry.name) else {
                panic!(
                    "openapi.json has no answer of {}: `UPDATE=1 cargo test openapi` updates it",
                    entry.name
                );
            };
            checked.validator(&DOCUMENT.schemas);
        }
    }

    #[test]
    #[should_panic(expected = "\"length\" is a required property")]
    fn an_answer_that_lacks_a_field_fails_its_test() {
        assert_matches_schema("getPathLength", &Ok(Reply::text("{}".to_owned())));
    }

    #[test]
    #[should_panic(expected = "('size' was unexpected)")]
    fn an_answer_with_an_extra_field_fails_its_test() {
        let answer = r#"{"length":1,"size":1}"#.to_owned();
        assert_matches_schema("getPathLength", &Ok(Reply::text(answer)));
    }

    #[test]
    #[should_panic(expected = "/error")]
    fn an_error_without_a_documented_detail_fails_its_test() {
        let error = Error::new(Code::InvalidRequest, "No.");
        assert_matches_schema("getPathLength", &Err(error));
    }

    #[test]
    fn an_error_may_have_undocumented_details() {
        let error = Error::invalid("a", "No.").with("b", 1);
        assert_matches_schema("getPathLength", &Err(error));
    }

    #[test]
    #[should_panic(expected = "the field `length` appears twice")]
    fn an_answer_with_a_duplicate_field_fails_its_test() {
        let answer = r#"{"length":1,"length":1}"#.to_owned();
        assert_matches_schema("getPathLength", &Ok(Reply::text(answer)));
    }

    #[test]
    #[should_panic(expected = "('x' was unexpected)")]
    fn an_item_with_an_extra_field_fails_its_test() {
        let answer = json!({"tools": [], "servers": [{"x": 1}]});
        assert_json_matches_schema("listTools", &answer.to_string());
    }
}
