//! Parses an incoming `UIMessage`: validates the fields that the log needs, and keeps the
//! rest as the text that was sent.

use crate::json_schema::JsonSchema;
use std::fmt;

use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::log::event::MessageText;
use crate::log::message_text::{MAX_PARTS, text_of_new_parts};
use crate::log::note::Note;
use base::action::{Action, Role};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, JsonObject, MAX_INTEGER, RawValue, check_values};
use base::part;

/// The sender of a message. A `client` can't set the fields that only a server may set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "MessageSource")]
#[serde(rename_all = "lowercase")]
pub enum MessageSource {
    Client,
    #[default]
    Server,
}

#[derive(Debug)]
pub struct NewMessage {
    pub id: Option<Id>,
    pub action: Action,
    /// The message's text parts, a line per part.
    pub content: String,
    pub created_at: Option<i64>,
    pub text: MessageText,
    /// The note that a chat turn attaches to the message.
    pub note: Option<Note>,
}

/// The most fields of a message. The AI SDK has five; an application may add a few.
const MAX_FIELDS: usize = 1_000;

/// A message's fields in their order, with values as JSON text.
struct MessageFields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for MessageFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = MessageFields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    if fields.len() == MAX_FIELDS {
                        return Err(de::Error::custom("too many fields"));
                    }
                    fields.push(field);
                }
                Ok(MessageFields(fields))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// Parses a message. Errors name the field as `message.…`. `load_reserved_keys` is called only for a
/// client's message with metadata, because it may read the database.
pub fn parse_message<'a>(
    message: &JsonObject,
    source: MessageSource,
    load_reserved_keys: &dyn Fn() -> Result<&'a [Id]>,
) -> Result<NewMessage> {
    check_values("message", message.as_str())?;
    let MessageFields(fields) = json::decode(message.as_str()).map_err(|_| {
        Error::invalid(
            "message",
            format!("`message` must be an object of at most {MAX_FIELDS} fields."),
        )
    })?;
    let find = |name: &str| {
        let mut named = fields.iter().filter(|(key, _)| key == name);
        let found = named.next().map(|(_, value)| value.get());
        match named.next() {
            None => Ok(found),
            Some(_) => Err(wrong(name, "is given twice")),
        }
    };
    let id = match find("id")? {
        None => None,
        Some(id) => Some(
            json::decode::<Id>(id)
                .map_err(|_| wrong("id", "must be a string of 1 to 200 characters"))?,
        ),
    };
    let action = match find("role")? {
        None => return Err(wrong("role", "is missing")),
        Some(role) => Role::find_in_json(role)
            .filter(|role| Role::OF_MESSAGES.contains(role))
            .map(Action::of)
            .ok_or_else(|| wrong("role", "must be one of `user`, `assistant`, `system`"))?,
    };
    let created_at = find("createdAt")?.and_then(whole_number);
    let parts = find("parts")?;
    let content = match (parts, find("content")?) {
        (Some(parts), _) => text_of(parts)?,
        // Older messages have `content` instead of `parts`.
        (None, Some(content)) => json::decode(content).unwrap_or_default(),
        (None, None) => return Err(wrong("parts", "is missing")),
    };
    let is_dated = find("createdAt")?.is_some() && created_at.is_none();
    let has_metadata = fields.iter().any(|(key, _)| key == "metadata");
    let reserved_keys = match source {
        MessageSource::Client if has_metadata => load_reserved_keys()?,
        MessageSource::Client | MessageSource::Server => &[],
    };
    // Write the stored fields directly into the text, so that no field is copied twice.
    let mut written = String::with_capacity(message.as_str().len());
    for (key, value) in &fields {
        if key == "id" || (key == "createdAt" && !is_dated) {
            continue;
        }
        if !written.is_empty() {
            written.push(',');
        }
        json::push_quoted(&mut written, key);
        written.push(':');
        match (source, key.as_str()) {
            (MessageSource::Client, "metadata") => push_without(&mut written, value, &|key| {
                reserved_keys
                    .iter()
                    .any(|reserved| reserved.as_str() == key)
            }),
            (MessageSource::Client, "parts") => push_without_provider_metadata(&mut written, value),
            _ => written.push_str(value.get()),
        }
    }
    if parts.is_none() {
        push_parts(&mut written, &content);
    }
    Ok(NewMessage {
        id,
        action,
        content,
        created_at,
        text: MessageText {
            fields: written,
            is_dated,
        },
        note: None,
    })
}

/// Writes the parts of a message that was sent without them: every reader expects `parts`.
fn push_parts(out: &mut String, content: &str) {
    out.push_str(r#","parts":["#);
    if !content.is_empty() {
        out.push_str(r#"{"type":"text","text":"#);
        json::push_quoted(out, content);
        out.push('}');
    }
    out.push(']');
}

fn wrong(name: &str, how: &str) -> Error {
    let field = format!("message.{name}");
    Error::invalid(&field, format!("`{field}` {how}."))
}

fn whole_number(text: &str) -> Option<i64> {
    text.parse()
        .ok()
        .filter(|ms| (0..=MAX_INTEGER).contains(ms))
}

fn text_of(parts: &str) -> Result<String> {
    text_of_new_parts(parts).ok_or_else(|| {
        wrong(
            "parts",
            &format!(
                "must be an array of at most {MAX_PARTS} objects, each with a `type`; a part of type `text` also needs a `text`"
            ),
        )
    })
}

/// Metadata without the keys that only a server may set.
pub fn without_reserved(metadata: &JsonObject, reserved_keys: &[Id]) -> Option<JsonObject> {
    let text: &RawValue = json::decode(metadata.as_str()).ok()?;
    let mut written = String::new();
    push_without(&mut written, text, &|key| {
        reserved_keys
            .iter()
            .any(|reserved| reserved.as_str() == key)
    });
    json::decode(&written).ok()
}

/// Writes an object without some of its fields. Writes any other value unchanged.
fn push_without(out: &mut String, value: &RawValue, drop: &dyn Fn(&str) -> bool) {
    struct Writer<'a> {
        out: &'a mut String,
        drop: &'a dyn Fn(&str) -> bool,
    }
    impl<'de> Visitor<'de> for Writer<'_> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            self.out.push('{');
            let mut is_first = true;
            while let Some((key, value)) = map.next_entry::<String, &RawValue>()? {
                if (self.drop)(&key) {
                    continue;
                }
                if !is_first {
                    self.out.push(',');
                }
                is_first = false;
                json::push_quoted(self.out, &key);
                self.out.push(':');
                self.out.push_str(value.get());
            }
            self.out.push('}');
            Ok(())
        }
    }
    let start = out.len();
    let mut json = json::Reader::new(value.get());
    if json.deserialize_map(Writer { out, drop }).is_err() {
        out.truncate(start);
        out.push_str(value.get());
    }
}

/// Whether this part asks the user something. Only the agent's own messages do: a page would show a
/// client's part as the question of a tool.
fn is_question(part: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: String,
    }
    let kind = json::decode::<Kind>(part.get());
    kind.is_ok_and(|part| part.kind == part::kind::INPUT_REQUEST)
}

fn push_without_provider_metadata(out: &mut String, parts: &RawValue) {
    struct Writer<'a>(&'a mut String);
    impl<'de> Visitor<'de> for Writer<'_> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<(), A::Error> {
            self.0.push('[');
            let mut is_first = true;
            while let Some(part) = parts.next_element::<&RawValue>()? {
                if is_question(part) {
                    continue;
                }
                if !is_first {
                    self.0.push(',');
                }
                is_first = false;
                push_without(self.0, part, &|key| part::PROVIDER_FIELDS.contains(&key));
            }
            self.0.push(']');
            Ok(())
        }
    }
    let start = out.len();
    let mut json = json::Reader::new(parts.get());
    if json.deserialize_seq(Writer(out)).is_err() {
        out.truncate(start);
        out.push_str(parts.get());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, source: MessageSource) -> Result<NewMessage> {
        let message: JsonObject = json::decode(text).unwrap();
        let reserved = [Id::parse("internal".to_owned()).unwrap()];
        parse_message(&message, source, &|| Ok(&reserved))
    }

    #[test]
    fn a_client_cannot_claim_a_tools_question() {
        let sent = r#"{"role":"user","parts":[{"type":"text","text":"hi"},{"type":"data-input\u002drequest","data":{}},{"type":"data-other"}]}"#;
        let fields = |source| parse(sent, source).unwrap().text.fields;
        let client = fields(MessageSource::Client);
        assert!(
            client.contains("data-other") && !client.contains("request"),
            "{client}"
        );
        assert!(fields(MessageSource::Server).contains("request"));
    }

    #[test]
    fn a_message_is_stored_as_text_without_its_columns() {
        let message = parse(
            r#"{"id":"m","role":"user","createdAt":5,"parts":[{"type":"text","text":"a\nb"},{"type":"file","n":1.0},{"type":"text","text":"c"}],"x":12345678901234567890}"#,
            MessageSource::Server,
        )
        .unwrap();
        assert_eq!(message.id.unwrap().as_str(), "m");
        assert_eq!(message.action, Action::UserMessage);
        assert_eq!(message.content, "a\nb\nc");
        assert_eq!(message.created_at, Some(5));
        assert_eq!(
            message.text.fields,
            r#""role":"user","parts":[{"type":"text","text":"a\nb"},{"type":"file","n":1.0},{"type":"text","text":"c"}],"x":12345678901234567890"#
        );
    }

    #[test]
    fn content_without_parts_becomes_a_text_part() {
        for (content, text, parts) in [
            (r#""a\nb""#, "a\nb", r#"[{"type":"text","text":"a\nb"}]"#),
            (r#""""#, "", "[]"),
            (r#"[{"type":"text","text":"a"}]"#, "", "[]"),
        ] {
            let sent = format!(r#"{{"role":"assistant","content":{content},"x":1}}"#);
            let message = parse(&sent, MessageSource::Server).unwrap();
            assert_eq!(message.content, text);
            assert_eq!(
                message.text.fields,
                format!(r#""role":"assistant","content":{content},"x":1,"parts":{parts}"#)
            );
        }
    }

    #[test]
    fn a_date_in_another_format_stays_in_the_text() {
        let message = parse(
            r#"{"role":"user","parts":[],"createdAt":"2026-01-01"}"#,
            MessageSource::Server,
        )
        .unwrap();
        assert!(message.text.is_dated);
        assert!(message.text.fields.contains(r#""createdAt":"2026-01-01""#));
        assert_eq!(message.created_at, None);
    }

    #[test]
    fn fields_that_only_the_server_sets_are_removed() {
        let sent = r#"{"role":"user","metadata":{"internal":1,"mine":2},"parts":[{"type":"text","text":"a","providerMetadata":{"p":1}},{"type":"tool-x","callProviderMetadata":{},"input":{"providerMetadata":3}}]}"#;
        let message = parse(sent, MessageSource::Client).unwrap();
        assert_eq!(
            message.text.fields,
            r#""role":"user","metadata":{"mine":2},"parts":[{"type":"text","text":"a"},{"type":"tool-x","input":{"providerMetadata":3}}]"#
        );
        let message = parse(sent, MessageSource::Server).unwrap();
        assert!(
            message.text.fields.contains("internal")
                && message.text.fields.contains("callProviderMetadata")
        );
    }

    #[test]
    fn an_invalid_message_is_refused_by_field() {
        for (text, field) in [
            (r#"{"parts":[]}"#, "message.role"),
            (r#"{"role":"tool","parts":[]}"#, "message.role"),
            (r#"{"role":"user"}"#, "message.parts"),
            (r#"{"role":"user","parts":{}}"#, "message.parts"),
            (r#"{"role":"user","parts":["a"]}"#, "message.parts"),
            (r#"{"role":"user","parts":[{"text":"a"}]}"#, "message.parts"),
            (
                r#"{"role":"user","parts":[{"type":"text"}]}"#,
                "message.parts",
            ),
            (r#"{"id":5,"role":"user","parts":[]}"#, "message.id"),
            (r#"{"id":"","role":"user","parts":[]}"#, "message.id"),
            (
                r#"{"role":"user","role":"user","parts":[]}"#,
                "message.role",
            ),
        ] {
            assert_eq!(
                parse(text, MessageSource::Server).unwrap_err().details()["field"],
                field,
                "{text}"
            );
        }
    }
}
