//! Parses JSON from outside, strictly, before SQLite sees the text: SQLite accepts
//! JSON5, stores half a surrogate pair as garbage, and has a depth limit of its own.
//!
//! JSON that the agent need not understand (metadata, a tool's arguments) stays the
//! text that was sent: key order, duplicate keys and the spelling of numbers survive.

mod fields;
mod list;
mod scan;

use crate::base::json::scan::MAX_QUOTED_CHARS;
use serde::de::{self, DeserializeOwned};

pub use fields::{Count, JsonObject, Limit, MAX_INTEGER, bounded, nullable};
pub use list::{MAX_NAMES, list, nullable_list, optional_list};

use crate::base::error::{Error, Result};
#[cfg(test)]
use scan::MAX_DEPTH;
pub use scan::{check_text, check_values};

/// Parses a request's body. An error names the field and what would be right;
/// it never repeats a value.
pub fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    let text = std::str::from_utf8(body)
        .map_err(|_| Error::invalid("body", "The body is not valid UTF-8."))?;
    let text = if text.trim_ascii().is_empty() {
        "{}"
    } else {
        text
    };
    if !text.trim_ascii_start().starts_with('{') {
        // Broken JSON is told apart from JSON of the wrong kind.
        serde_json::from_str::<de::IgnoredAny>(text).map_err(|error| syntax(&error))?;
        return Err(Error::invalid("body", "The body must be a JSON object."));
    }
    check_text(text)?;
    let mut json = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        refusal(&path, &error.into_inner())
    })?;
    json.end().map_err(|error| syntax(&error))?;
    Ok(value)
}

fn syntax(error: &serde_json::Error) -> Error {
    Error::invalid(
        "body",
        format!(
            "The body is not valid JSON: line {}, column {}.",
            error.line(),
            error.column()
        ),
    )
}

/// From serde's words to ours: which field, and what it must be.
fn refusal(path: &str, error: &serde_json::Error) -> Error {
    if !error.is_data() {
        return syntax(error);
    }
    let path = if path == "." { "" } else { path };
    let text = error.to_string();
    // serde_json ends with " at line 1 column 9".
    let text = text
        .rsplit_once(" at line ")
        .map_or(text.as_str(), |(head, _)| head);
    let quoted = |text: &str| text.split('`').nth(1).unwrap_or_default().to_owned();

    if text.starts_with("missing field") {
        let field = join(path, &quoted(text));
        return Error::invalid(&field, format!("`{field}` is missing."));
    }
    if text.starts_with("duplicate field") {
        let field = join(path, &quoted(text));
        return Error::invalid(&field, format!("`{field}` is given twice."));
    }
    if text.starts_with("unknown field") {
        let (name, known) = text.split_once(", ").unwrap_or((text, ""));
        let name: String = quoted(name).chars().take(MAX_QUOTED_CHARS).collect();
        // The path may end with the unknown key itself.
        let parent = path
            .strip_suffix(name.as_str())
            .map_or(path, |head| head.trim_end_matches('.'));
        let field = join(parent, &name);
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        return Error::invalid(&field, unknown_field(&field, &name, &known));
    }
    let field = if path.is_empty() { "body" } else { path };
    let must = if text.starts_with("unknown variant") {
        let (_, known) = text.rsplit_once(", expected ").unwrap_or((text, ""));
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        format!("must be one of `{}`", known.join("`, `"))
    } else if let Some((_, expected)) = text.rsplit_once(", expected ") {
        format!("must be {}", plain(expected))
    } else {
        text.to_owned()
    };
    Error::invalid(field, format!("`{field}` {must}."))
}

fn unknown_field(field: &str, name: &str, known: &[&str]) -> String {
    match find_nearest(name, known.iter().copied()) {
        Some(candidate) => format!("`{field}` is not a field here. Did you mean `{candidate}`?"),
        None if known.is_empty() => format!("`{field}` is not a field here: there are no fields."),
        None => format!(
            "`{field}` is not a field here. The fields are: {}.",
            known.join(", ")
        ),
    }
}

/// The candidate that a misspelt name is near to, if one is.
pub fn find_nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (distance(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(3) / 3)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edits between two names, letter case aside. Both are short: a field's name,
/// cut at [`MAX_QUOTED_CHARS`], and one of ours.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.to_ascii_lowercase().chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left
        .to_ascii_lowercase()
        .chars()
        .take(MAX_QUOTED_CHARS)
        .enumerate()
    {
        let mut diagonal = i;
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
        for (j, b) in right.iter().enumerate() {
            let above = row.get(j + 1).copied().unwrap_or(0);
            let before = row.get(j).copied().unwrap_or(0);
            let cost = (above + 1)
                .min(before + 1)
                .min(diagonal + usize::from(a != *b));
            diagonal = above;
            if let Some(cell) = row.get_mut(j + 1) {
                *cell = cost;
            }
        }
    }
    row.last().copied().unwrap_or(0)
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

/// serde's name for a type, as a person would say it.
fn plain(expected: &str) -> String {
    match expected {
        "a string" | "string" => "a string".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" => "an array".to_owned(),
        "a map" | "a JSON object" => "an object".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" => "an integer of 0 or more".to_owned(),
        "i32" | "i64" => "an integer".to_owned(),
        "f32" | "f64" => "a number".to_owned(),
        other if other.starts_with("struct ") => "an object".to_owned(),
        other => other.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, Debug)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
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
            error.details["field"].as_str().unwrap().to_owned(),
            error.into_message(),
        )
    }

    #[test]
    fn each_mistake_names_its_field() {
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
    fn no_message_repeats_a_value() {
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
    fn nothing_at_all_is_an_empty_object() {
        #[derive(Deserialize)]
        struct Nothing {}
        assert!(parse::<Nothing>(b"").is_ok());
        assert!(parse::<Nothing>(b" \n").is_ok());
    }

    #[test]
    fn text_that_is_no_text_is_refused() {
        assert_eq!(
            parse::<Sample>(b"{\"sessionId\":\"\xff\"}")
                .unwrap_err()
                .details["field"],
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
    fn depth_is_bounded_also_in_what_is_kept_as_text() {
        let nested = |depth: usize| {
            let (open, close) = ("[".repeat(depth), "]".repeat(depth));
            format!(r#"{{"sessionId":"a","metadata":{{"x":{open}{close}}}}}"#)
        };
        assert!(parse::<Sample>(nested(MAX_DEPTH - 2).as_bytes()).is_ok());
        assert_eq!(refused(&nested(MAX_DEPTH - 1)).0, "metadata");
        assert_eq!(refused(&nested(200_000)).0, "metadata");
    }

    #[test]
    fn what_is_kept_as_text_is_kept_to_the_letter() {
        let kept = r#"{"b":12345678901234567890,"a":1.0,"b":-0.0}"#;
        let body = format!(r#"{{"sessionId":"a","metadata":{kept}}}"#);
        let sample: Sample = parse(body.as_bytes()).unwrap();
        assert_eq!(sample.metadata.unwrap().as_str(), kept);
    }
}
