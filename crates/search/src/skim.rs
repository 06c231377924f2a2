//! Reads strings from stored JSON without building a tree, so megabytes of a message are
//! skipped in place. The JSON was valid when it was stored. If it was truncated, the
//! remaining part is read.

use std::borrow::Cow;

use base::json::{JsonPiece, Letters, letters, pieces};

/// The fields of an object, as raw JSON. The braces may be missing.
pub fn fields(object: &str) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    let mut rest = open(object, '{');
    std::iter::from_fn(move || {
        let (name, after) = value(rest)?;
        let (value, after) = value(after.trim_start().strip_prefix(':')?)?;
        rest = after;
        Some((text(name)?, value))
    })
}

/// The items of an array, as raw JSON.
pub fn items(array: &str) -> impl Iterator<Item = &str> {
    let mut rest = open(array, '[');
    std::iter::from_fn(move || {
        let (item, after) = value(rest)?;
        rest = after;
        Some(item)
    })
}

/// Calls `emit` with every string and number in a value, except field names, as raw JSON. A
/// string is passed without quotes but with its escapes. The flag is true for a string.
pub fn scalars<'a>(json: &'a str, emit: &mut dyn FnMut(&'a str, bool)) {
    let mut pieces = pieces(json).peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek() == Some(&JsonPiece::Colon) {
            continue;
        }
        match piece {
            JsonPiece::String { inside, .. } => emit(inside, true),
            JsonPiece::Scalar(scalar)
                if scalar.starts_with(|c: char| c == '-' || c.is_ascii_digit()) =>
            {
                emit(scalar, false);
            }
            _ => {}
        }
    }
}

/// Decodes the text between a string's quotes and calls `emit` with its pieces.
pub fn decode(string: &str, emit: &mut dyn FnMut(&str)) {
    for piece in letters(string) {
        match piece {
            Letters::Plain(plain) => emit(plain),
            Letters::Escaped(letter) => emit(letter.encode_utf8(&mut [0; 4])),
            Letters::Half | Letters::Broken => {}
        }
    }
}

/// A string's text; `None` if the value is not a string.
pub fn text(value: &str) -> Option<Cow<'_, str>> {
    let JsonPiece::String { inside, .. } = pieces(value).next()? else {
        return None;
    };
    if !inside.contains('\\') {
        return Some(Cow::Borrowed(inside));
    }
    let mut text = String::new();
    decode(inside, &mut |piece| text.push_str(piece));
    Some(Cow::Owned(text))
}

fn open(json: &str, bracket: char) -> &str {
    let json = json.trim_start();
    json.strip_prefix(bracket).unwrap_or(json)
}

/// The next value as raw JSON, and the rest. `None`: the object or array ends.
fn value(json: &str) -> Option<(&str, &str)> {
    let json = json.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
    let mut pieces = pieces(json);
    let mut piece = Some(pieces.next()?);
    let mut depth = 0_usize;
    while let Some(inner) = piece {
        match inner {
            JsonPiece::Open => depth += 1,
            JsonPiece::Close => depth = depth.checked_sub(1)?,
            _ => {}
        }
        piece = if depth > 0 { pieces.next() } else { None };
    }
    json.split_at_checked(pieces.offset())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scalars_of(json: &str) -> Vec<String> {
        let mut found = Vec::new();
        scalars(json, &mut |scalar, _| found.push(scalar.to_owned()));
        found
    }

    #[test]
    fn fields_and_items_keep_their_order() {
        let inside =
            r#""role":"user", "parts" : [ {"a":[1,{"b":"}]"}]}, "x\"]", -1.5e3 ,true], "n":null"#;
        let found: Vec<(Cow<'_, str>, &str)> = fields(inside).collect();
        assert_eq!(found.len(), 3);
        assert_eq!(found[0], (Cow::from("role"), "\"user\""));
        assert_eq!(found[2], (Cow::from("n"), "null"));
        let parts: Vec<&str> = items(found[1].1).collect();
        assert_eq!(
            parts,
            [r#"{"a":[1,{"b":"}]"}]}"#, r#""x\"]""#, "-1.5e3", "true"]
        );
        assert_eq!(fields(&format!("{{{inside}}}")).count(), 3);
        assert_eq!(
            fields("{}").count() + items("[]").count() + items("").count(),
            0
        );
    }

    #[test]
    fn strings_and_numbers_are_emitted_but_not_keys() {
        assert_eq!(
            scalars_of(r#"{"a":"b","c":[1,"d",{"e":"f\n"}],"g":true,"h":null, "i" : -2.5}"#),
            ["b", "1", "d", "f\\n", "-2.5"]
        );
        assert_eq!(scalars_of(r#""alone""#), ["alone"]);
        assert_eq!(scalars_of("7"), ["7"]);
        assert_eq!(scalars_of("{}"), [""; 0]);
    }

    #[test]
    fn strings_decode_as_in_serde_json() {
        for text in [
            "",
            "plain",
            "a\n\t\"\\/b\u{8}\u{c}\r",
            "\u{1F600} é 東\u{0}",
            "\\u0041",
        ] {
            for json in [
                serde_json::to_string(text).unwrap(),
                format!(
                    "\"{}\"",
                    text.encode_utf16()
                        .map(|unit| format!("\\u{unit:04x}"))
                        .collect::<String>()
                ),
            ] {
                assert_eq!(super::text(&json).unwrap(), text, "{json}");
            }
        }
    }

    #[test]
    fn truncated_json_is_read_up_to_its_end() {
        let json = r#""parts":[{"type":"text","text":"one"},{"type":"text","text":"tw\u00e9 "#;
        for end in 0..=json.len() {
            for (_, value) in fields(&json[..end]) {
                for item in items(value) {
                    for (_, value) in fields(item) {
                        text(value);
                        scalars_of(value);
                    }
                }
            }
        }
        let (_, parts) = fields(json).next().unwrap();
        let last = items(parts).last().unwrap();
        assert_eq!(text(fields(last).last().unwrap().1).unwrap(), "twé ");
        for nonsense in [
            "\\",
            "\"\\",
            ":",
            "]]",
            "{{{{",
            "\"a\":",
            "\"a\" \"b\"",
            "é:é",
        ] {
            fields(nonsense).count();
            items(nonsense).count();
            scalars_of(nonsense);
            decode(nonsense, &mut |_| {});
        }
    }
}
