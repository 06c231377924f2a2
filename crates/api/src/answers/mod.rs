//! Checks every answer in tests against openapi.json.
//!
//! The entry points in [`super`] call this module for each answer that a test gets, so
//! no test can forget the check. A test fails if a field is not in the document, is
//! missing or has the wrong type, or if an error differs from the document.
//! `tests/workerd/answers.mjs` checks the Worker's answers in the same way.

mod closed;

use std::collections::HashMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde::Serialize;
use serde_json::{Value, json};

use super::OPENAPI_JSON;
use super::operation::Reply;
use base::error::{Error, Result};
use base::json;
use closed::{OnceNamed, close, close_within};

/// The part of openapi.json that describes answers.
struct Document {
    /// The answers' validators by `operationId`.
    answers: HashMap<String, Validator>,
    error: Validator,
}

static DOCUMENT: LazyLock<Document> = LazyLock::new(Document::read);

impl Document {
    fn read() -> Self {
        let document: Value = serde_json::from_str(OPENAPI_JSON).unwrap();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let schemas: Value = schemas
            .iter()
            .map(|(name, schema)| (name.clone(), close_within(schema, false)))
            .collect();
        let validator = |schema: &Value| {
            let whole = json!({"allOf": [close(schema)], "components": {"schemas": schemas}});
            jsonschema::draft202012::new(&whole).unwrap_or_else(|error| panic!("{error}: {schema}"))
        };
        let operations = document["paths"].as_object().unwrap().values();
        let answers = operations
            .flat_map(|path| path.as_object().unwrap().values())
            .filter_map(|operation| {
                let name = operation["operationId"].as_str().unwrap();
                let answer =
                    &operation["responses"]["200"]["content"]["application/json"]["schema"];
                (!answer.is_null()).then(|| (name.to_owned(), validator(answer)))
            });
        Self {
            answers: answers.collect(),
            error: validator(&json!({"$ref": "#/components/schemas/Error"})),
        }
    }
}

#[track_caller]
fn check(operation: &str, validator: &Validator, text: &str) {
    if let Err(error) = serde_json::from_str::<OnceNamed>(text) {
        panic!("{operation} returned an invalid JSON object: {error}");
    }
    let value: Value = serde_json::from_str(text).unwrap();
    let wrong: Vec<String> = validator
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
pub fn hold(operation: &str, answer: &Result<Reply>) {
    match answer {
        Ok(reply) => hold_json(operation, &reply.body.copy()),
        Err(error) => hold_error(operation, error),
    }
}

/// As [`hold`], for an answer that is rendered later.
pub fn hold_output(operation: &str, answer: &Result<impl Serialize>) {
    match answer {
        Ok(output) => hold_json(operation, &json::encode(output).unwrap()),
        Err(error) => hold_error(operation, error),
    }
}

/// As [`hold`], for an entry point that answers with a stream: checks only refusals.
pub fn hold_refusal<T>(operation: &str, answer: &Result<T>) {
    if let Err(error) = answer {
        hold_error(operation, error);
    }
}

/// As [`hold`], for the messages of a frame, if it has any.
pub fn hold_frame(frame: &str) {
    let frame: Value = serde_json::from_str(frame).unwrap();
    if let Some(messages) = frame.get("messages") {
        hold_json("getMessages", &messages.to_string());
    } else if frame["type"] == "cf_agent_message_updated" {
        hold_json("getMessages", &format!("[{}]", frame["message"]));
    }
}

/// As [`hold`], for the text of a successful answer.
pub fn hold_json(operation: &str, json: &str) {
    // With `UPDATE`, the document is being generated: the file may be out of date.
    if std::env::var_os("UPDATE").is_some() {
        return;
    }
    match DOCUMENT.answers.get(operation) {
        Some(validator) => check(operation, validator, json),
        None => panic!("openapi.json has no answer of {operation}"),
    }
}

fn hold_error(operation: &str, error: &Error) {
    check(operation, &DOCUMENT.error, &error.body());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::OPERATIONS;
    use base::error::Code;

    #[test]
    fn the_document_has_an_answer_of_every_operation() {
        for entry in OPERATIONS {
            assert!(
                DOCUMENT.answers.contains_key(entry.name),
                "openapi.json has no answer of {}: `UPDATE=1 cargo test openapi` writes it anew",
                entry.name
            );
        }
    }

    #[test]
    #[should_panic(expected = "\"length\" is a required property")]
    fn an_answer_without_a_field_fails_its_test() {
        hold("getPathLength", &Ok(Reply::text("{}".to_owned())));
    }

    #[test]
    #[should_panic(expected = "('size' was unexpected)")]
    fn an_answer_with_a_field_too_many_fails_its_test() {
        let answer = r#"{"length":1,"size":1}"#.to_owned();
        hold("getPathLength", &Ok(Reply::text(answer)));
    }

    #[test]
    #[should_panic(expected = "/error")]
    fn an_error_without_a_documented_detail_fails_its_test() {
        let error = Error::new(Code::InvalidRequest, "No.");
        hold("getPathLength", &Err(error));
    }

    #[test]
    fn an_error_may_say_more_than_is_documented() {
        let error = Error::invalid("a", "No.").with("b", 1);
        hold("getPathLength", &Err(error));
    }

    #[test]
    #[should_panic(expected = "the field `length` appears twice")]
    fn an_answer_with_a_field_twice_fails_its_test() {
        let answer = r#"{"length":1,"length":1}"#.to_owned();
        hold("getPathLength", &Ok(Reply::text(answer)));
    }

    #[test]
    #[should_panic(expected = "('x' was unexpected)")]
    fn a_field_too_many_in_an_item_fails_its_test() {
        let answer = json!({"tools": [], "servers": [{"x": 1}]});
        hold_json("listTools", &answer.to_string());
    }
}
