//! Checks every answer in tests against openapi.json.
//!
//! The entry points in [`super`] call this module for each answer that a test gets, so
//! no test can forget the check. A test fails if a field is not in the document, is
//! missing or has the wrong type, or if an error differs from the document.
//! `tests/workerd/answers.mjs` checks the Worker's answers in the same way.

mod shape;

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::OPENAPI_JSON;
use super::operation::Reply;
use crate::base::error::{Error, Result};
use crate::base::json::{self, RawValue};
use shape::{Components, Schema};

/// The part of openapi.json that describes answers.
struct Document {
    components: Components,
    /// The answer's schema per `operationId`.
    answers: HashMap<String, Schema>,
}

impl Document {
    fn read() -> Self {
        let mut document: Value = serde_json::from_str(OPENAPI_JSON).unwrap();
        let components = document["components"]["schemas"].take();
        let components = Components::deserialize(components)
            .unwrap_or_else(|error| panic!("a schema of openapi.json: {error}"));
        let mut answers = HashMap::new();
        for path in document["paths"].as_object().unwrap().values() {
            for operation in path.as_object().unwrap().values() {
                let name = operation["operationId"].as_str().unwrap();
                let answer =
                    &operation["responses"]["200"]["content"]["application/json"]["schema"];
                if !answer.is_null() {
                    let answer = Schema::deserialize(answer)
                        .unwrap_or_else(|error| panic!("the answer of {name}: {error}"));
                    answers.insert(name.to_owned(), answer);
                }
            }
        }
        Self {
            components,
            answers,
        }
    }

    #[track_caller]
    fn hold(&self, operation: &str, schema: &Schema, json: &str) {
        let json: &RawValue = json::decode(json)
            .unwrap_or_else(|error| panic!("{operation} did not answer JSON: {error}"));
        if let Err(wrong) = schema.hold(json, &self.components) {
            panic!(
                "{operation} answered what openapi.json does not say. {wrong}\nIf the answer is right, `UPDATE=1 cargo test openapi` writes the document anew."
            );
        }
    }
}

thread_local! {
    static DOCUMENT: Document = Document::read();
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
    DOCUMENT.with(|document| match document.answers.get(operation) {
        Some(schema) => document.hold(operation, schema, json),
        None => panic!("openapi.json has no answer of {operation}"),
    });
}

fn hold_error(operation: &str, error: &Error) {
    DOCUMENT.with(|document| {
        let schema = &document.components["Error"];
        document.hold(operation, schema, &error.body());
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::table::OPERATIONS;
    use crate::base::error::Code;

    #[test]
    fn the_document_has_an_answer_of_every_operation() {
        DOCUMENT.with(|document| {
            for entry in OPERATIONS {
                assert!(
                    document.answers.contains_key(entry.name),
                    "openapi.json has no answer of {}: `UPDATE=1 cargo test openapi` writes it anew",
                    entry.name
                );
            }
        });
    }

    #[test]
    #[should_panic(
        expected = "getPathLength answered what openapi.json does not say. .length: is required and missing"
    )]
    fn an_answer_without_a_field_fails_its_test() {
        hold("getPathLength", &Ok(Reply::text("{}".to_owned())));
    }

    #[test]
    #[should_panic(expected = ".size: the schema names no such field")]
    fn an_answer_with_a_field_too_many_fails_its_test() {
        let answer = r#"{"length":1,"size":1}"#.to_owned();
        hold("getPathLength", &Ok(Reply::text(answer)));
    }

    #[test]
    #[should_panic(expected = ".error.details.field: is required and missing")]
    fn an_error_without_a_documented_detail_fails_its_test() {
        let error = Error::new(Code::InvalidRequest, "No.");
        hold("getPathLength", &Err(error));
    }

    #[test]
    fn an_error_may_say_more_than_is_documented() {
        let error = Error::invalid("a", "No.").with("b", 1);
        hold("getPathLength", &Err(error));
    }
}
