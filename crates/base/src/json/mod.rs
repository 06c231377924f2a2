//! Parses JSON from outside, strictly, before SQLite sees the text: SQLite accepts
//! JSON5, stores half a surrogate pair as garbage, and has a depth limit of its own.
//!
//! JSON that the agent need not understand (metadata, a tool's arguments) stays the
//! text that was sent: key order, duplicate keys and the spelling of numbers survive.

#[cfg(test)]
mod agreement;
mod checks;
mod cursor;
mod fields;
mod list;
mod near;
mod pieces;
mod problem;
mod raw;
mod raw_name;
mod reader;
mod refusal;
mod scan;
mod string;
pub mod tree;
mod writer;

use serde::de::{DeserializeOwned, IgnoredAny};

pub use checks::{check_text, check_values};
pub use cursor::MAX_INTEGER;
pub use fields::{Count, JsonObject, Limit, bounded, given, is_zero, nullable};
pub use list::{List, MAX_NAMES, list, optional_list};
pub use near::find_nearest;

use crate::error::{BODY, Error, Result};
#[cfg(test)]
use checks::MAX_DEPTH;
pub use pieces::{JsonPiece, pieces};
pub use problem::ReadError;
pub use raw::{RawValue, raw};
pub use reader::{Reader, count_values, decode, decode_bytes, from_value};
pub use string::{Letters, letters};
pub use tree::{Tree, decode_tree, json};
pub use writer::{encode, encode_within, push_quoted, quoted, text, written_bytes};

/// Parses a request's body. An error names the field and describes a right value; it
/// never repeats a value.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    let text = readable(body)?;
    decode(text).map_err(|error| error.refusal(text))
}

/// The text of a body that contains an object. An empty body counts as an empty object.
fn readable(body: &[u8]) -> Result<&str> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Error::invalid(BODY, "The body is not valid UTF-8."))?;
    if text.trim_ascii().is_empty() {
        return Ok("{}");
    }
    if !text.trim_ascii_start().starts_with('{') {
        // Distinguishes broken JSON from JSON of the wrong kind.
        decode::<IgnoredAny>(text).map_err(|error| error.refusal(text))?;
        return Err(Error::invalid(BODY, "The body must be a JSON object."));
    }
    check_text(text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[test]
    fn values_are_counted_if_the_text_is_all_values() {
        for (text, count) in [
            ("1", Some(1)),
            (r#"{"a":[1,2]},{"b":"},{"}"#, Some(2)),
            (r#" "\"" , null ,[] "#, Some(3)),
            ("", None),
            (",", None),
            ("1,", None),
            ("1 2", None),
            (r#"{"a":1}}"#, None),
            (r#"{"a":1},{"b":"#, None),
            (r#"{"a":1},{b:2}"#, None),
            ("\"\u{1}\"", None),
            ("1]", None),
        ] {
            assert_eq!(count_values(text.as_bytes(), &[]), count, "{text}");
            let pieces = [r#"{"a":"#, ","];
            assert_eq!(count_values(text.as_bytes(), &pieces), count, "{text}");
        }
        let pieces = [r#"{"id":"#, r#","of":[{"x":"#, r#"}],"at":"#];
        for (text, count) in [
            (r#"{"id":"1","of":[{"x":"\n\""}],"at":0}"#, Some(1)),
            (r#"{"id":"1","of":[{"x":"\u00e9 é"}],"at":10}"#, Some(1)),
            (
                r#"{"id":"1","of":[{"x":"2"}], "at" : [3] },{"id":"1"}"#,
                Some(2),
            ),
            (
                r#"{"id":"1","of":[{"x":"2"},3]},{"id":"1","of":[{"x":"2"}],"at":34}"#,
                Some(2),
            ),
            (r#"{"id":"1","of":[{"x":"2"}],"at":3.5,"y":{}}"#, Some(1)),
            (r#"{"id":"1","of":[{"x":"2"}],"at":3},"#, None),
            (r#"{"id":"1","of":[{"x":"2"}],"at":3,}"#, None),
            (r#"{"id":"1","of":[{"x":"2"}],"at":3"#, None),
            (r#"{"id":"1","of":[{"x":"2"}],"at":3]"#, None),
            (r#"{"id":"1","of":[{"x":"2"}],"at":03}"#, None),
            (r#"{"id":"1","of":[{"x":"2"}],"at":}"#, None),
            (r#"{"id":"1","of":[{"x":"\q"}],"at":3}"#, None),
            (r#"{"id":"1","of":[{"x":"\u00e"}],"at":3}"#, None),
            (r#"{"id":"1","of":[{"x":"2}],"at":3}"#, None),
        ] {
            assert_eq!(count_values(text.as_bytes(), &pieces), count, "{text}");
        }
    }

    #[test]
    fn a_text_with_many_special_values_is_scanned_once() {
        // If each value scanned the whole text, this test would take hours.
        let text = r#"{"é":1},"#.repeat(1 << 20);
        let text = text.trim_end_matches(',');
        assert_eq!(count_values(text.as_bytes(), &["{}"]), Some(1 << 20));
    }

    #[test]
    fn corrupted_texts_are_counted_as_by_a_second_reader() {
        let pieces = [r#"{"id":"#, r#","x":"#, r#","at":"#];
        let original = r#"{"id":"1","x":"a\n","at":10},{"id":"2","x":"é","at":7},{"id":"\u0033","x":{},"at":0}"#;
        let mut state = 7_u64;
        let mut roll = |sides: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize % sides
        };
        let mut valid = 0;
        for _ in 0..20_000 {
            let mut bytes = original.as_bytes().to_vec();
            for _ in 0..1 + roll(2) {
                let at = roll(bytes.len());
                match roll(3) {
                    0 => drop(bytes.remove(at)),
                    1 => bytes.insert(at, br#""\{}[],:0 1a"#[roll(12)]),
                    _ => bytes[at] = br#""\{}[],:0 1a"#[roll(12)],
                }
            }
            let Ok(text) = String::from_utf8(bytes) else {
                continue;
            };
            let read: Option<Vec<serde_json::Value>> =
                serde_json::from_str(&format!("[{text}]")).ok();
            let expected = read.map(|values| values.len()).filter(|count| *count > 0);
            let counted = count_values(text.as_bytes(), &pieces);
            valid += usize::from(expected.is_some());
            // Only texts that serde_json accepts may be counted. It refuses more: deep
            // nesting.
            assert_eq!(counted, expected, "{text}");
        }
        assert!(valid > 500, "{valid}");
    }

    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[expect(dead_code, reason = "parsed, and not read")]
    struct Sample {
        session_id: String,
        #[serde(default)]
        limit: Limit<50, 500>,
        at: Option<Count>,
        flag: Option<bool>,
        metadata: Option<JsonObject>,
        #[serde(default)]
        items: Vec<Item>,
    }

    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    #[expect(dead_code, reason = "parsed, and not read")]
    struct Item {
        kind: Kind,
    }

    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "snake_case")]
    enum Kind {
        One,
        Two,
    }

    fn refused(body: &str) -> (String, String) {
        let error = parse::<Sample>(body.as_bytes()).unwrap_err();
        assert_eq!(error.code.name(), "invalid_request");
        (
            error.details()["field"].as_str().unwrap().to_owned(),
            error.into_message(),
        )
    }

    #[test]
    fn each_error_names_its_field() {
        let table = [
            ("{}", "sessionId", "`sessionId` is missing."),
            (
                r#"{"sessionId":1}"#,
                "sessionId",
                "`sessionId` must be a string.",
            ),
            (
                r#"{"sesionId":"a"}"#,
                "sesionId",
                "`sesionId` is not a field here. Did you mean `sessionId`?",
            ),
            (
                r#"{"sessionId":"a","zzz":1}"#,
                "zzz",
                "`zzz` is not a field here. The fields are: sessionId, limit, at, flag, metadata, items.",
            ),
            (
                r#"{"sessionId":"a","sessionId":"b"}"#,
                "sessionId",
                "`sessionId` is given twice.",
            ),
            (
                r#"{"sessionId":"a","limit":0}"#,
                "limit",
                "`limit` must be an integer from 1 to 500.",
            ),
            (
                r#"{"sessionId":"a","limit":501}"#,
                "limit",
                "`limit` must be an integer from 1 to 500.",
            ),
            (
                r#"{"sessionId":"a","limit":"5"}"#,
                "limit",
                "`limit` must be an integer from 1 to 500.",
            ),
            (
                r#"{"sessionId":"a","limit":5.5}"#,
                "limit",
                "`limit` must be an integer from 1 to 500.",
            ),
            (
                r#"{"sessionId":"a","at":9007199254740993}"#,
                "at",
                "`at` must be an integer from 0 to 9007199254740991.",
            ),
            (
                r#"{"sessionId":"a","at":-1}"#,
                "at",
                "`at` must be an integer from 0 to 9007199254740991.",
            ),
            (
                r#"{"sessionId":"a","at":1e999}"#,
                "body",
                "The body is not valid JSON: line 1, column 27.",
            ),
            (
                r#"{"sessionId":"a","flag":"yes"}"#,
                "flag",
                "`flag` must be true or false.",
            ),
            (
                r#"{"sessionId":"a","metadata":[1]}"#,
                "metadata",
                "`metadata` must be an object.",
            ),
            (
                r#"{"sessionId":"a","items":{}}"#,
                "items",
                "`items` must be an array.",
            ),
            (
                r#"{"sessionId":"a","items":[{"kind":"one"},{"kind":"three"}]}"#,
                "items[1].kind",
                "`items[1].kind` must be one of `one`, `two`.",
            ),
            (
                r#"{"sessionId":"a","items":[{}]}"#,
                "items[0].kind",
                "`items[0].kind` is missing.",
            ),
            (
                r#"{"sessionId":"a","items":[{"kind":"one","kimd":1}]}"#,
                "items[0].kimd",
                "`items[0].kimd` is not a field here. Did you mean `kind`?",
            ),
            (
                r#"{"sessionId":"a""#,
                "body",
                "The body is not valid JSON: line 1, column 16.",
            ),
            (
                r#"{"sessionId":"a"} x"#,
                "body",
                "The body is not valid JSON: line 1, column 19.",
            ),
            (
                r#"{sessionId:"a"}"#,
                "body",
                "The body is not valid JSON: line 1, column 2.",
            ),
            ("[1]", "body", "The body must be a JSON object."),
            (
                "nonsense",
                "body",
                "The body is not valid JSON: line 1, column 2.",
            ),
        ];
        for (body, field, message) in table {
            assert_eq!(
                refused(body),
                (field.to_owned(), message.to_owned()),
                "{body}"
            );
        }
    }

    #[test]
    fn no_error_repeats_a_value() {
        for body in [
            r#"{"sessionId":["hunter2"]}"#,
            r#"{"sessionId":"a","limit":"hunter2"}"#,
            r#"{"sessionId":"a","items":[{"kind":"hunter2"}]}"#,
            r#"{"sessionId":"a","metadata":"hunter2"}"#,
        ] {
            assert!(!refused(body).1.contains("hunter2"), "{body}");
        }
    }

    #[test]
    fn an_empty_body_is_an_empty_object() {
        #[derive(Deserialize)]
        struct Nothing {}
        assert!(parse::<Nothing>(b"").is_ok());
        assert!(parse::<Nothing>(b" \n").is_ok());
    }

    #[test]
    fn invalid_utf8_is_refused() {
        assert_eq!(
            parse::<Sample>(b"{\"sessionId\":\"\xff\"}")
                .unwrap_err()
                .details()["field"],
            "body"
        );
        for (body, field) in [
            (r#"{"sessionId":"\ud800"}"#, "sessionId"),
            (r#"{"sessionId":"a","metadata":{"x":"\udc00"}}"#, "metadata"),
            (
                r#"{"sessionId":"a","metadata":{"x":"\ud800\ud800"}}"#,
                "metadata",
            ),
            (
                r#"{"sessionId":"a","metadata":{"x":"\ud800x\udc00"}}"#,
                "metadata",
            ),
            (
                r#"{"sessionId":"a","metadata":{"x":"\uD83D\n"}}"#,
                "metadata",
            ),
        ] {
            assert_eq!(refused(body).0, field, "{body}");
        }
        assert!(parse::<Sample>(br#"{"sessionId":"\ud83d\ude00 \\ud800"}"#).is_ok());
    }

    #[test]
    fn nesting_is_bounded_even_in_raw_text() {
        let nested = |depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            format!(r#"{{"sessionId":"a","metadata":{{"x":{open}{close}}}}}"#)
        };
        assert!(parse::<Sample>(nested(MAX_DEPTH - 2).as_bytes()).is_ok());
        assert_eq!(refused(&nested(MAX_DEPTH - 1)).0, "metadata");
        assert_eq!(refused(&nested(200_000)).0, "metadata");
    }

    #[test]
    fn raw_values_are_stored_verbatim() {
        let text = r#"{"b":12345678901234567890,"a":1.0,"b":-0.0}"#;
        let body = format!(r#"{{"sessionId":"a","metadata":{text}}}"#);
        let sample: Sample = parse(body.as_bytes()).unwrap();
        assert_eq!(sample.metadata.unwrap().as_str(), text);
    }
}
