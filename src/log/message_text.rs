//! The text of a message: its text parts, a line each. What an event's
//! `content` says of a message, and what search reads of it.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// The text of a `parts` array; `None` if it is no array of parts, or holds a
/// text part without a text.
pub fn text_of_parts(parts: &str) -> Option<String> {
    let parts: Vec<Part<'_>> = serde_json::from_str(parts).ok()?;
    let mut lines = Vec::new();
    for part in parts {
        if part.kind == "text" {
            lines.push(serde_json::from_str::<String>(part.text?.get()).ok()?);
        }
    }
    Some(lines.join("\n"))
}

/// The text of a message as it is stored: the inside of its JSON object.
pub fn text_of_fields(fields: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        parts: Option<&'a RawValue>,
        content: Option<String>,
    }
    let message = format!("{{{fields}}}");
    let message: Message<'_> = serde_json::from_str(&message).ok()?;
    match message.parts {
        Some(parts) => text_of_parts(parts.get()),
        None => message.content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_parts_are_lines_and_other_parts_say_nothing() {
        let parts = r#"[{"type":"text","text":"a\n"},{"type":"file","text":5},{"type":"text","text":"\u00e9"}]"#;
        // A part that is no text may carry anything under `text`.
        assert_eq!(text_of_parts(parts), Some("a\n\n\u{e9}".to_owned()));
        assert_eq!(text_of_parts("[]"), Some(String::new()));
        for none in ["{}", "[1]", r#"[{"text":"a"}]"#, r#"[{"type":"text"}]"#] {
            assert_eq!(text_of_parts(none), None, "{none}");
        }
        assert_eq!(
            text_of_fields(r#""role":"user","content":"old""#),
            Some("old".to_owned())
        );
    }
}
