//! The text of a message: its text parts, a line per part. Events show it as
//! `content`, and search indexes it.

use std::borrow::Cow;
use std::fmt;

use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use base::json::{self, RawValue};
use base::part::PartKind;

/// Parts of one message: a turn of many steps has some hundred.
pub const MAX_PARTS: usize = 10_000;

#[derive(Deserialize)]
struct TextPart<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

/// The text of a `parts` array; `None` if `parts` is not an array of parts, or if a text
/// part has no text.
pub fn text_of_parts(parts: &str) -> Option<String> {
    json::decode::<Lines>(parts).ok().map(|lines| lines.text)
}

/// Like [`text_of_parts`], for new parts: rejects more than [`MAX_PARTS`].
pub fn text_of_new_parts(parts: &str) -> Option<String> {
    let lines = json::decode::<Lines>(parts).ok()?;
    (lines.parts <= MAX_PARTS).then_some(lines.text)
}

/// Parsed part by part, so that neither the parts nor their texts are copied.
struct Lines {
    text: String,
    parts: usize,
}

impl<'de> Deserialize<'de> for Lines {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Lines;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array of parts")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Lines, A::Error> {
                let mut lines: Option<String> = None;
                let mut count = 0;
                while let Some(part) = parts.next_element::<TextPart<'de>>()? {
                    count += 1;
                    if PartKind::parse(&part.kind) != PartKind::Text {
                        continue;
                    }
                    let text = part.text.map(|text| json::decode::<String>(text.get()));
                    let Some(Ok(text)) = text else {
                        return Err(de::Error::custom("a text part without its text"));
                    };
                    match &mut lines {
                        // Most messages have a single text part, whose text is moved.
                        None => lines = Some(text),
                        Some(lines) => {
                            lines.push('\n');
                            lines.push_str(&text);
                        }
                    }
                }
                Ok(Lines {
                    text: lines.unwrap_or_default(),
                    parts: count,
                })
            }
        }
        deserializer.deserialize_seq(Reader)
    }
}

/// The text of a message as it is stored: the inside of its JSON object.
pub fn text_of_fields(fields: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Message<'a> {
        #[serde(borrow)]
        parts: Option<&'a RawValue>,
        content: Option<String>,
    }
    let message = ["{", fields, "}"].concat();
    let message: Message<'_> = json::decode(&message).ok()?;
    match message.parts {
        Some(parts) => text_of_parts(parts.get()),
        None => message.content,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_parts_become_lines_and_others_are_skipped() {
        let parts = r#"[{"type":"text","text":"a\n"},{"type":"file","text":5},{"type":"text","text":"\u00e9"}]"#;
        // A part that is not text may have any value under `text`.
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
