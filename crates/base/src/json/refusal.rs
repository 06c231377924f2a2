//! Error messages that explain to people why a reader refuses a text.

use super::cursor::find_fault;
use super::near::find_nearest;
use super::problem::{Problem, ReadError, Refused, join};
use crate::error::{BODY, Error};

impl ReadError {
    /// The error for the sender of the text: it names the field and its requirements, and
    /// never repeats a value.
    pub fn refusal(self, text: &str) -> Error {
        let Refused { path, problem } = *self.0;
        let must = |sentence: String| {
            let field = if path.is_empty() { BODY } else { &path };
            Error::invalid(field, format!("`{field}` {sentence}."))
        };
        match problem {
            Problem::Syntax(read) => syntax(text, read),
            Problem::Unexpected { expected } => must(format!("must be {}", in_words(&expected))),
            Problem::UnknownVariant(known) => {
                must(format!("must be one of `{}`", known.join("`, `")))
            }
            Problem::UnknownField { name, known } => {
                let field = join(&path, &name);
                Error::invalid(&field, unknown_field(&field, &name, known))
            }
            Problem::MissingField(name) => {
                let field = join(&path, name);
                Error::invalid(&field, format!("`{field}` is missing."))
            }
            Problem::FieldGivenTwice(name) => {
                let field = join(&path, name);
                Error::invalid(&field, format!("`{field}` is given twice."))
            }
            Problem::Other(sentence) => match sentence.rsplit_once(", expected ") {
                Some((_, expected)) => must(format!("must be {}", in_words(expected))),
                None => must(sentence),
            },
        }
    }
}

/// `read` is how many bytes were read. It is used if the text is JSON but contains a value
/// that can't be represented, such as a number.
#[inline(never)]
fn syntax(text: &str, read: usize) -> Error {
    let read = match find_fault(text).map(|fault| (fault, text.as_bytes().get(fault))) {
        // At the end of a line or of the text, the position is after the line's last byte.
        Some((fault, None | Some(b'\n'))) => fault,
        Some((fault, Some(_))) => fault + 1,
        None => read,
    };
    let before = text.as_bytes().get(..read).unwrap_or_default();
    let line_start = before.iter().rposition(|byte| *byte == b'\n');
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = read - line_start.map_or(0, |at| at + 1);
    Error::invalid(
        BODY,
        format!("The body is not valid JSON: line {line}, column {column}."),
    )
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

/// Rewrites serde's name of a type in plain words.
fn in_words(expected: &str) -> &str {
    match expected {
        "a string" | "string" => "a string",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "a map" | "a JSON object" => "an object",
        "u8" | "u16" | "u32" | "u64" | "usize" => "an integer of 0 or more",
        "i32" | "i64" => "an integer",
        "f32" | "f64" => "a number",
        other if other.starts_with("struct ") => "an object",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde::de::IgnoredAny;

    use super::*;

    const TEXTS: [&str; 3] = [
        r#"{"a":[1,-2.5e+3,true,null],"b":{"c":"d\n \\"},"e":false}"#,
        "[\n  {\"a\": 0.5},\n  [], {}, \"\", 10\n]\n",
        r#"["x", 0, -0, 1E5 , [[["deep"]]]]"#,
    ];

    /// The text with one byte removed, inserted or replaced.
    fn damaged() -> impl Iterator<Item = String> {
        let marks = [
            "", "x", "\"", "\\", "{", "}", "[", "]", ",", ":", "0", "-", ".", "\n", "e", " ",
        ];
        TEXTS.into_iter().flat_map(move |text| {
            (0..text.len()).flat_map(move |at| {
                let (before, after) = text.split_at(at);
                marks.into_iter().flat_map(move |mark| {
                    [
                        [before, mark, after].concat(),
                        [before, mark, &after[1..]].concat(),
                    ]
                })
            })
        })
    }

    #[test]
    fn the_error_position_matches_serde_json() {
        let mut faults = 0;
        for text in damaged().chain(
            TEXTS
                .into_iter()
                .flat_map(|text| (0..text.len()).map(|end| text[..end].to_owned())),
        ) {
            let fault = match serde_json::from_str::<IgnoredAny>(&text) {
                Ok(_) => None,
                Err(error) => Some((error.line(), error.column())),
            };
            assert_eq!(find_fault(&text).is_some(), fault.is_some(), "{text}");
            // For a keyword cut by a line break, serde_json reports the next line and
            // no column.
            if let Some((line, column)) = fault.filter(|(_, column)| *column > 0) {
                faults += 1;
                let message = syntax(&text, 0).into_message();
                let expected = format!("The body is not valid JSON: line {line}, column {column}.");
                assert_eq!(message, expected, "{text:?}");
            }
        }
        assert!(faults > 1_000);
    }
}
