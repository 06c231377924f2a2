//! A tool's answer, in the format of MCP.

use serde_json::{Map, Value};

use base::json::{self, json};
use chat::turn::CallState;

/// The result of a call. A tool may answer in the protocol's own format, an object with a list
/// `content`: such an answer is passed on if it is well-formed. Any other answer is returned as
/// text.
pub fn of_state(state: CallState) -> Value {
    match state {
        CallState::Done {
            output, is_json, ..
        } => {
            let own = is_json.then(|| find_own(&output)).flatten();
            own.unwrap_or_else(|| of_text(&output, false))
        }
        CallState::Failed { error } => of_text(&error, true),
        // A registered tool is called at once, so its call is never left open.
        _ => of_text("The tool was not called.", true),
    }
}

pub fn of_text(text: &str, is_error: bool) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": is_error})
}

fn find_own(output: &str) -> Option<Value> {
    let Value::Object(mut answer) = json::decode_tree(output).ok()? else {
        return None;
    };
    let content = answer.remove("content")?;
    let is_own = content
        .as_array()
        .is_some_and(|items| items.iter().all(is_content));
    if !is_own {
        return None;
    }
    let mut result = Map::new();
    result.insert("content".to_owned(), content);
    if let Some(structured) = answer.remove("structuredContent").filter(Value::is_object) {
        result.insert("structuredContent".to_owned(), structured);
    }
    let is_error = answer.get("isError") == Some(&Value::Bool(true));
    result.insert("isError".to_owned(), is_error.into());
    Some(Value::Object(result))
}

/// Whether this is one of the protocol's kinds of content, with all required fields.
pub fn is_content(item: &Value) -> bool {
    let has = |value: &Value, names: &[&str]| names.iter().all(|name| value[name].is_string());
    match item["type"].as_str() {
        Some("text") => has(item, &["text"]),
        Some("image" | "audio") => has(item, &["data", "mimeType"]),
        Some("resource_link") => has(item, &["uri", "name"]),
        Some("resource") => {
            let resource = &item["resource"];
            has(resource, &["uri"]) && (has(resource, &["text"]) || has(resource, &["blob"]))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_output(output: &str, is_json: bool) -> Value {
        of_state(CallState::done(output.to_owned(), is_json))
    }

    #[test]
    fn a_tool_may_return_content_in_the_protocols_shape() {
        let own = json!({"content": [
            {"type": "text", "text": "a"},
            {"type": "image", "data": "eA==", "mimeType": "image/png"},
            {"type": "resource", "resource": {"uri": "x:y", "text": "t"}},
        ], "isError": true});
        assert_eq!(of_output(&own.to_string(), true), own);
        for other in [
            json!({"content": "a"}),
            json!({"content": [{"type": "text"}]}),
            json!({"content": [{"type": "image", "data": 1, "mimeType": "x"}]}),
            json!({"content": [{"type": "script", "text": "x"}]}),
            json!({"content": [1]}),
            json!([]),
        ] {
            let text = other.to_string();
            assert_eq!(of_output(&text, true), of_text(&text, false));
        }
        assert_eq!(
            of_output(&own.to_string(), false),
            of_text(&own.to_string(), false)
        );
        assert_eq!(of_state(CallState::failed("No.")), of_text("No.", true));
    }
}
