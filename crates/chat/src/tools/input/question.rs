//! Reads a tool's questions from its result.

use serde::{Deserialize, Serialize};

use crate::address::tool_address::check_url;
use crate::tools::input::form::{Form, is_name};
use crate::tools::mcp::listing::clean;
use base::json::{self, JsonObject, RawValue};
use base::outbound::Outbound;
use conversation::log::note::{OpenQuestion, Question};

/// The longest result with questions, including the tool's state, in bytes.
const MAX_RESULT_BYTES: usize = 64 << 10;

/// The most questions of one result.
const MAX_REQUESTS: usize = 8;

/// The most times that one call asks.
pub const MAX_ROUNDS: u32 = 8;

/// The most calls of one step that ask, and the most bytes of all their questions. The questions
/// are stored in the row of the event with the calls.
pub const MAX_ASKING_CALLS: usize = 8;
pub const MAX_STEP_BYTES: usize = 128 << 10;

/// The longest message of a question that is shown, in bytes.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

const ELICIT: &str = "elicitation/create";

/// One question as clients see it: a form to fill in, or a page to open.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    mode: Option<PageMode>,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requested_schema: Option<Form>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum PageMode {
    Url,
}

/// A question as a tool sends it.
#[derive(Deserialize)]
struct ReceivedRequest {
    method: String,
    #[serde(default)]
    params: Option<Params>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    mode: Option<String>,
    #[serde(default)]
    message: String,
    url: Option<String>,
    requested_schema: Option<Box<RawValue>>,
}

/// Reads the questions of a result. `open` is what the next call needs, except the tool's state.
/// Fails with the rest of a sentence that names what can't be shown to a user.
pub fn read_question(
    outbound: &dyn Outbound,
    result: &str,
    server: Option<&str>,
    open: OpenQuestion,
) -> Result<Question, String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct InputRequired {
        input_requests: JsonObject,
        request_state: Option<String>,
    }
    if result.len() > MAX_RESULT_BYTES {
        return Err(format!(
            "the questions have more than {MAX_RESULT_BYTES} bytes"
        ));
    }
    let required: InputRequired =
        json::decode(result).map_err(|_| "the result has no `inputRequests`".to_owned())?;
    let listed = json::decode::<RequestList<ReceivedRequest>>(required.input_requests.as_str());
    let listed = listed
        .map_err(|_| "`inputRequests` can't be read".to_owned())?
        .0;
    if !(1..=MAX_REQUESTS).contains(&listed.len()) {
        return Err(format!("1 to {MAX_REQUESTS} questions are allowed"));
    }
    let mut requests = Vec::new();
    for (id, listed) in listed {
        if !is_name(&id) {
            return Err("a question has an unusual name".to_owned());
        }
        requests.push((id, listed.read(outbound)?));
    }
    let unwritten = |_| "the questions can't be written".to_owned();
    let requests = json::encode(&RequestList(requests)).map_err(unwritten)?;
    Ok(Question {
        server: server.map(str::to_owned),
        requests: json::decode(&requests).map_err(|_| "the questions can't be read".to_owned())?,
        open: Some(OpenQuestion {
            state: required.request_state,
            ..open
        }),
    })
}

impl ReceivedRequest {
    fn read(self, outbound: &dyn Outbound) -> Result<Request, String> {
        let refused = |what: &str| Err(what.to_owned());
        if self.method != ELICIT {
            return refused("it asks for something other than a form or a page");
        }
        let Some(params) = self.params else {
            return refused("a question has no `params`");
        };
        let message = clean(params.message.trim(), MAX_MESSAGE_BYTES);
        match (params.mode.as_deref(), params.url, params.requested_schema) {
            (Some("url"), Some(url), _) => {
                if !url.starts_with("https://") || clean(&url, MAX_MESSAGE_BYTES) != url {
                    return refused(
                        "a page must have an `https` address without hidden characters",
                    );
                }
                check_url(outbound, &url, "url").map_err(|error| {
                    let message = error.into_message();
                    format!("a page can't be shown: {}", message.trim_end_matches('.'))
                })?;
                Ok(Request {
                    mode: Some(PageMode::Url),
                    message,
                    url: Some(url),
                    requested_schema: None,
                })
            }
            (None | Some("form"), _, Some(schema)) => {
                let Ok(mut form) = json::decode::<Form>(schema.get()) else {
                    return refused("a form has a field that can't be shown");
                };
                form.clean()?;
                Ok(Request {
                    mode: None,
                    message,
                    url: None,
                    requested_schema: Some(form),
                })
            }
            _ => refused("a question is neither a form nor a page"),
        }
    }
}

/// The bytes that a question takes in its row.
pub fn stored_bytes(question: &Question) -> usize {
    json::encode(question).map_or(usize::MAX, |json| json.len())
}

/// Questions by their ids, in the tool's order.
pub struct RequestList<T>(pub Vec<(String, T)>);

impl<T: Serialize> Serialize for RequestList<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = self.0.iter().map(|(id, request)| (id, request));
        serializer.collect_map(entries)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for RequestList<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Ordered<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for Ordered<T> {
            type Value = RequestList<T>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Self::Value, A::Error> {
                let mut list: Vec<(String, T)> = Vec::new();
                while let Some((id, value)) = map.next_entry::<String, T>()? {
                    list.retain(|(known, _)| *known != id);
                    list.push((id, value));
                }
                Ok(RequestList(list))
            }
        }
        deserializer.deserialize_map(Ordered(std::marker::PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::Script;
    use serde_json::{Value, json};

    fn open() -> OpenQuestion {
        OpenQuestion {
            state: None,
            round: 1,
            fingerprint: None,
            skips_approval: false,
            answers: None,
        }
    }

    fn read(requests: &Value) -> Result<Value, String> {
        let outbound = Script::default();
        let origins = ("TOOL_ORIGINS".to_owned(), "https://pay.example".to_owned());
        outbound.settings.borrow_mut().extend([origins]);
        let result =
            json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s"});
        let question = read_question(&outbound, &result.to_string(), Some("gh"), open())?;
        assert_eq!(question.open.unwrap().state.as_deref(), Some("s"));
        Ok(json::decode_tree(question.requests.as_str()).unwrap())
    }

    fn form(schema: &Value) -> Value {
        json!({"who": {"method": ELICIT, "params": {"message": "Who?\u{202e}", "requestedSchema": schema}}})
    }

    #[test]
    fn a_question_is_a_form_or_a_url_stored_without_extra_fields() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "string"}}});
        assert_eq!(
            read(&form(&schema)),
            Ok(json!({"who": {"message": "Who?", "requestedSchema": schema}}))
        );
        let page = |url: &str| json!({"p": {"method": ELICIT, "params": {"mode": "url", "message": "Pay.", "url": url, "elicitationId": "e"}}});
        assert_eq!(
            read(&page("https://pay.example/x?y=1")),
            Ok(
                json!({"p": {"mode": "url", "message": "Pay.", "url": "https://pay.example/x?y=1"}})
            )
        );
        for url in [
            "http://localhost/x",
            "javascript:alert(1)",
            "https://evil.example/",
            "https://pay.example@evil.example/",
            "HTTPS://pay.example/",
        ] {
            assert!(read(&page(url)).is_err(), "{url}");
        }
    }

    #[test]
    fn questions_that_cannot_be_displayed_are_refused() {
        let fields = json!({"type": "object", "properties": {}});
        let many: Value = (0..=MAX_REQUESTS)
            .map(|n| (n.to_string(), form(&fields)["who"].clone()))
            .collect();
        for requests in [
            json!({}),
            json!([]),
            json!({"a": {"method": "sampling/createMessage", "params": {}}}),
            json!({"a": {"method": "roots/list"}}),
            json!({"a": {"method": ELICIT}}),
            json!({"a": {"method": ELICIT, "params": {"message": "?"}}}),
            json!({"a": {"method": ELICIT, "params": {"mode": "url", "message": "?"}}}),
            json!({"a": {"method": ELICIT, "params": {"mode": "x", "requestedSchema": fields}}}),
            json!({"__proto__": form(&fields)["who"]}),
            form(&json!({"type": "array"})),
            form(&json!({"type": "object", "properties": {"a": {"type": "object"}}})),
            form(&json!({"type": "object", "properties": {}, "x": "y".repeat(MAX_RESULT_BYTES)})),
            many,
        ] {
            let shown: String = requests.to_string().chars().take(200).collect();
            assert!(read(&requests).is_err(), "{shown}");
        }
    }
}
