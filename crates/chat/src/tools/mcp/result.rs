//! Converts the result of an MCP server's tool into the result of a call: a text, or JSON.

use serde::Deserialize;
use serde_json::Value;

use crate::address::tool_headers::ResolvedHeaders;
use crate::tools::mcp::listing::clean;
use crate::turn::CallState;
use base::json::{self, RawValue, Tree};

/// The maximum bytes of a name or a URL that is shown instead of a content.
const MAX_SHOWN_BYTES: usize = 500;

/// The type of a completed result.
const COMPLETE: &str = "complete";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ToolResult {
    result_type: String,
    content: Vec<Tree>,
    structured_content: Option<Tree>,
    is_error: bool,
}

impl Default for ToolResult {
    fn default() -> Self {
        Self {
            result_type: COMPLETE.to_owned(),
            content: Vec::new(),
            structured_content: None,
            is_error: false,
        }
    }
}

/// `name` is the tool's name for models. Secrets that were sent are removed from the
/// result.
pub fn read_result(name: &str, result: &RawValue, sent: &ResolvedHeaders) -> CallState {
    let Ok(read) = json::decode::<ToolResult>(result.get()) else {
        return CallState::failed(format!(
            "`{name}` failed: its answer was not a tool result."
        ));
    };
    if read.result_type != COMPLETE {
        return CallState::failed(format!(
            "`{name}` was not carried out: its server asks the user for input, and this turn has \
             nobody to ask. Call the tool in a chat turn, or over the Model Context Protocol."
        ));
    }
    let text: Vec<String> = read
        .content
        .iter()
        .map(|Tree(content)| show_content(content))
        .collect();
    let text = sent.strip_json(text.join("\n"));
    if read.is_error {
        return CallState::failed(if text.trim().is_empty() {
            format!("`{name}` failed without giving a reason.")
        } else {
            text
        });
    }
    let Some(Tree(structured)) = read.structured_content else {
        return done(text, false);
    };
    // The texts next to a structured result are the same JSON, for clients that read only
    // texts, or an explanation of it.
    let is_same = json::decode_tree(&text).is_ok_and(|text| text == structured);
    let structured = sent.strip_json(json::text(&structured));
    if is_same || text.trim().is_empty() {
        done(structured, true)
    } else {
        done(format!("{text}\n{structured}"), false)
    }
}

fn done(output: String, is_json: bool) -> CallState {
    CallState::done(output, is_json)
}

/// A content as text. Other types of content are replaced by a short description.
fn show_content(content: &Value) -> String {
    let text = |value: &Value, name: &str| value[name].as_str().map(str::to_owned);
    let short = |value: &Value, name: &str| {
        let text = value[name].as_str().unwrap_or("unknown");
        clean(text, MAX_SHOWN_BYTES)
    };
    let bytes =
        |value: &Value, name: &str| value[name].as_str().map_or(0, |data| data.len() / 4 * 3);
    match content["type"].as_str() {
        Some("text") => text(content, "text").unwrap_or_default(),
        Some(kind @ ("image" | "audio")) => format!(
            "[{kind}: {}, {} bytes, not shown]",
            short(content, "mimeType"),
            bytes(content, "data")
        ),
        Some("resource") => {
            let resource = &content["resource"];
            let uri = short(resource, "uri");
            match text(resource, "text") {
                Some(text) => format!("[resource: {uri}]\n{text}"),
                None => format!(
                    "[resource: {uri}, {}, {} bytes, not shown]",
                    short(resource, "mimeType"),
                    bytes(resource, "blob")
                ),
            }
        }
        Some("resource_link") => format!(
            "[link: {}, {}]",
            short(content, "name"),
            short(content, "uri")
        ),
        _ => "[content of an unknown kind, not shown]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(result: &Value) -> CallState {
        let raw = json::raw(result.to_string()).unwrap();
        read_result("gh_a", &raw, &ResolvedHeaders::default())
    }

    #[test]
    fn a_result_is_text_or_json_and_other_content_is_named() {
        let text = |text: &str| json!({"type": "text", "text": text});
        for (result, expected) in [
            (
                json!({"content": [text("a"), text("b")]}),
                done("a\nb".to_owned(), false),
            ),
            (json!({"content": []}), done(String::new(), false)),
            (json!({}), done(String::new(), false)),
            (
                json!({"content": [text("{\"n\": 1}")], "structuredContent": {"n": 1}}),
                done("{\"n\":1}".to_owned(), true),
            ),
            (
                json!({"structuredContent": {"n": 1}}),
                done("{\"n\":1}".to_owned(), true),
            ),
            (
                json!({"content": [text("One.")], "structuredContent": {"n": 1}}),
                done("One.\n{\"n\":1}".to_owned(), false),
            ),
            (
                json!({"content": [
                    {"type": "image", "data": "eHh4", "mimeType": "image/png"},
                    {"type": "resource", "resource": {"uri": "a:b", "text": "t"}},
                    {"type": "resource", "resource": {"uri": "a:b", "blob": "eHh4", "mimeType": "x/y"}},
                    {"type": "resource_link", "uri": "a:b", "name": "n"},
                    {"type": "script"}, 7
                ]}),
                done(
                    "[image: image/png, 3 bytes, not shown]\n\
                      [resource: a:b]\n\
                      t\n\
                      [resource: a:b, x/y, 3 bytes, not shown]\n\
                      [link: n, a:b]\n\
                      [content of an unknown kind, not shown]\n\
                      [content of an unknown kind, not shown]"
                        .to_owned(),
                    false,
                ),
            ),
            (
                json!({"content": [text("No.")], "isError": true}),
                CallState::failed("No."),
            ),
            (
                json!({"isError": true}),
                CallState::failed("`gh_a` failed without giving a reason."),
            ),
            (
                json!({"content": "a"}),
                CallState::failed("`gh_a` failed: its answer was not a tool result."),
            ),
            (
                json!({"resultType": "input_required", "inputRequests": {}}),
                CallState::failed(
                    "`gh_a` was not carried out: its server asks the user for input, and this \
                     turn has nobody to ask. Call the tool in a chat turn, or over the Model \
                     Context Protocol.",
                ),
            ),
        ] {
            assert_eq!(read(&result), expected, "{result}");
        }
    }
}
