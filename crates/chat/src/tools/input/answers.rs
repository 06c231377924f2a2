//! Checks a user's answers against the questions of a tool.

use serde_json::{Map, Value};

use crate::request::answers::ClientOutcome;
use crate::tools::input::form::Form;
use crate::tools::input::question::{Request, RequestList};
use base::error::{Error, Result};
use base::json::{self, JsonObject, json};
use conversation::log::note::Question;

/// The most bytes of the answers to one call's questions. They are stored next to the questions
/// until the call is repeated.
const MAX_ANSWER_BYTES: usize = 16 << 10;

/// What to send, for callers who sent something else.
const SHAPE: &str = "Send `{\"responses\": {…}}` as the call's output, with an `action` for each question: `accept`, `decline` or `cancel`.";

/// Reads the answers to a call's questions. `outcome` is what a client sent as the call's output.
pub fn read_answers(question: &Question, outcome: &ClientOutcome) -> Result<JsonObject> {
    let requests: RequestList<Request> = json::decode(question.requests.as_str())
        .map_err(|_| Error::storage("a stored question can't be read"))?;
    let given = match outcome {
        ClientOutcome::Output(given) => given,
        // The client could not ask its user.
        ClientOutcome::Error(_) => {
            let cancelled = requests
                .0
                .into_iter()
                .map(|(id, _)| (id, json!({"action": "cancel"})));
            return to_object(cancelled.collect());
        }
    };
    if given.get().len() > MAX_ANSWER_BYTES {
        let what = "The answers to a tool's questions";
        let bytes = given.get().len();
        return Err(Error::payload_too_large(what, MAX_ANSWER_BYTES, bytes));
    }
    let given = json::decode_tree(given.get()).unwrap_or_default();
    let Some(Value::Object(responses)) = given.get("responses") else {
        let message = format!("`responses` must be an object. The tool asks the user. {SHAPE}");
        return Err(Error::invalid("responses", message));
    };
    let known = |id: &str| requests.0.iter().any(|(known, _)| known == id);
    if let Some(id) = responses.keys().find(|id| !known(id)) {
        let message = format!("The tool did not ask `{id}`. {SHAPE}");
        return Err(Error::invalid(&format!("responses.{id}"), message));
    }
    let mut answers = Map::new();
    for (id, request) in &requests.0 {
        let path = format!("responses.{id}");
        let Some(response) = responses.get(id) else {
            let message = format!("`{path}` is missing. {SHAPE}");
            return Err(Error::invalid(&path, message));
        };
        answers.insert(id.clone(), read_response(&path, request, response)?);
    }
    to_object(answers)
}

fn to_object(answers: Map<String, Value>) -> Result<JsonObject> {
    let text = json::text(&Value::Object(answers));
    json::decode(&text).map_err(|_| Error::storage("answers that were checked can't be read"))
}

fn read_response(path: &str, request: &Request, response: &Value) -> Result<Value> {
    match response["action"].as_str() {
        Some(action @ ("decline" | "cancel")) => return Ok(json!({ "action": action })),
        Some("accept") => {}
        _ => {
            let field = format!("{path}.action");
            let message = format!("`{field}` must be `accept`, `decline` or `cancel`.");
            return Err(Error::invalid(&field, message));
        }
    }
    let Some(form) = &request.requested_schema else {
        return Ok(json!({"action": "accept"}));
    };
    let path = format!("{path}.content");
    let content = read_content(&path, form, &response["content"])?;
    Ok(json!({"action": "accept", "content": content}))
}

fn read_content(path: &str, form: &Form, content: &Value) -> Result<Value> {
    let refused =
        |field: &str, what: &str| Err(Error::invalid(field, format!("`{field}` {what}.")));
    let Value::Object(given) = content else {
        return refused(path, "must be an object with the form's fields");
    };
    for (name, value) in given {
        let field = format!("{path}.{name}");
        match form
            .properties
            .find(name)
            .map(|property| property.check(value))
        {
            Some(Ok(())) => {}
            Some(Err(what)) => return refused(&field, &what),
            None => return refused(&field, "is not a field of the form"),
        }
    }
    if let Some(missing) = form.required.iter().find(|name| !given.contains_key(*name)) {
        return refused(&format!("{path}.{missing}"), "is missing");
    }
    Ok(content.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Question {
        let requests = json!({
            "who": {"message": "Who?", "requestedSchema": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string", "minLength": 1},
                "age": {"type": "integer"},
            }}},
            "pay": {"mode": "url", "message": "Pay.", "url": "https://pay.example/"},
        });
        Question {
            server: None,
            requests: json::decode(&json::text(&requests)).unwrap(),
            open: None,
        }
    }

    fn read(output: &Value) -> Result<Value> {
        let output = json::raw(json::text(output)).unwrap();
        let answers = read_answers(&question(), &ClientOutcome::Output(output))?;
        Ok(json::decode_tree(answers.as_str()).unwrap())
    }

    fn both(who: &Value) -> Value {
        json!({"responses": {"who": who, "pay": {"action": "accept", "content": {"x": 1}}}})
    }

    #[test]
    fn valid_answers_are_forwarded_without_extra_fields() {
        let accepted = json!({"action": "accept", "content": {"name": "Ann", "age": 3}});
        assert_eq!(
            read(&both(&accepted)).unwrap(),
            json!({"who": accepted, "pay": {"action": "accept"}})
        );
        for action in ["decline", "cancel"] {
            assert_eq!(
                read(&both(&json!({"action": action, "content": {"name": 5}}))).unwrap(),
                json!({"who": {"action": action}, "pay": {"action": "accept"}})
            );
        }
        let failed = read_answers(&question(), &ClientOutcome::error(None)).unwrap();
        let cancel = json!({"action": "cancel"});
        assert_eq!(
            json::decode_tree(failed.as_str()).unwrap(),
            json!({"who": cancel, "pay": cancel})
        );
    }

    #[test]
    fn wrong_answers_are_refused_with_their_field() {
        let accept = |content: Value| both(&json!({"action": "accept", "content": content}));
        for (output, field) in [
            (json!(null), "responses"),
            (json!("Ann"), "responses"),
            (json!({"responses": []}), "responses"),
            (
                json!({"responses": {"pay": {"action": "accept"}}}),
                "responses.who",
            ),
            (
                json!({"responses": {"who": {"action": "cancel"}, "pay": {"action": "cancel"}, "x": {}}}),
                "responses.x",
            ),
            (both(&json!({})), "responses.who.action"),
            (both(&json!({"action": "maybe"})), "responses.who.action"),
            (both(&json!({"action": "accept"})), "responses.who.content"),
            (accept(json!({"name": ""})), "responses.who.content.name"),
            (accept(json!({"age": 3})), "responses.who.content.name"),
            (
                accept(json!({"name": "Ann", "age": "3"})),
                "responses.who.content.age",
            ),
            (
                accept(json!({"name": "Ann", "b": 1})),
                "responses.who.content.b",
            ),
        ] {
            let error = read(&output).unwrap_err();
            assert_eq!(error.details()["field"], field, "{output}");
        }
        let long = accept(json!({"name": "x".repeat(MAX_ANSWER_BYTES)}));
        assert!(read(&long).is_err());
    }
}
