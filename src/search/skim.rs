//! Reads strings from stored JSON without building a tree: a message of megabytes is
//! skipped in place. The JSON was valid when it was stored. If it has been cut short, the
//! part that is left is read.

use std::borrow::Cow;

/// The fields of an object as they are written. The braces may be missing.
pub fn fields(object: &str) -> impl Iterator<Item = (Cow<'_, str>, &str)> {
    let mut rest = open(object, '{');
    std::iter::from_fn(move || {
        let (name, after) = value(rest)?;
        let (value, after) = value(after.trim_start().strip_prefix(':')?)?;
        rest = after;
        Some((text(name)?, value))
    })
}

/// The items of an array, as they are written.
pub fn items(array: &str) -> impl Iterator<Item = &str> {
    let mut rest = open(array, '[');
    std::iter::from_fn(move || {
        let (item, after) = value(rest)?;
        rest = after;
        Some(item)
    })
}

/// Passes on every string and number in a value, without field names, as they are
/// written. A string comes without quotes but with its escapes. The flag is true for a
/// string.
pub fn scalars<'a>(json: &'a str, tell: &mut dyn FnMut(&'a str, bool)) {
    let mut rest = json;
    while let Some(start) = rest.find(|c: char| !is_between(c) && !matches!(c, '{' | '[')) {
        let Some((scalar, after)) = value(rest.get(start..).unwrap_or_default()) else {
            return;
        };
        rest = after;
        if rest.trim_start().starts_with(':') {
            continue;
        }
        match inside(scalar) {
            Some(string) => tell(string, true),
            None if scalar.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                tell(scalar, false);
            }
            None => {}
        }
    }
}

/// Decodes the text between a string's quotes and passes it on in pieces.
pub fn decode(string: &str, tell: &mut dyn FnMut(&str)) {
    let mut rest = string;
    let mut high = None;
    while let Some((plain, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        if !plain.is_empty() {
            tell(plain);
        }
        let mut letters = escape.chars().skip(1);
        let (meant, length) = match letters.next() {
            Some('u') => {
                let unit = escape
                    .get(2..6)
                    .and_then(|digits| u16::from_str_radix(digits, 16).ok());
                let unit = unit.unwrap_or_default();
                let pair = [high.take().unwrap_or_default(), unit];
                let meant = match pair {
                    [0, unit] if (0xD800..0xDC00).contains(&unit) => {
                        high = Some(unit);
                        None
                    }
                    [0, unit] => char::from_u32(u32::from(unit)),
                    pair => char::decode_utf16(pair).next().and_then(Result::ok),
                };
                (meant, 6)
            }
            Some(letter) => {
                let meant = match letter {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{C}',
                    other => other,
                };
                (Some(meant), 1 + letter.len_utf8())
            }
            None => (None, 1),
        };
        if let Some(meant) = meant {
            tell(meant.encode_utf8(&mut [0; 4]));
        }
        rest = escape.get(length..).unwrap_or_default();
    }
    if !rest.is_empty() {
        tell(rest);
    }
}

/// A string's text; `None` if the value is no string.
pub fn text(value: &str) -> Option<Cow<'_, str>> {
    let string = inside(value)?;
    if !string.contains('\\') {
        return Some(Cow::Borrowed(string));
    }
    let mut text = String::new();
    decode(string, &mut |piece| text.push_str(piece));
    Some(Cow::Owned(text))
}

/// The text between a string's quotes. A string that was cut has no closing quote.
fn inside(value: &str) -> Option<&str> {
    let string = value.strip_prefix('"')?;
    Some(string.strip_suffix('"').unwrap_or(string))
}

fn open(json: &str, bracket: char) -> &str {
    let json = json.trim_start();
    json.strip_prefix(bracket).unwrap_or(json)
}

fn is_between(c: char) -> bool {
    c.is_ascii_whitespace() || matches!(c, ',' | '}' | ']')
}

/// The next value as it is written, and what follows it.
fn value(json: &str) -> Option<(&str, &str)> {
    let json = json.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',');
    let mut depth = 0_usize;
    let mut at = 0;
    let bytes = json.as_bytes();
    loop {
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth == 0 => return None,
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            _ if depth > 0 => at += 1,
            _ => {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || b",]}:".contains(byte);
                let rest = bytes.get(at..)?;
                at += rest.iter().position(is_end).unwrap_or(rest.len()).max(1);
            }
        }
        if depth == 0 || at >= bytes.len() {
            return Some((json.get(..at)?, json.get(at..)?));
        }
    }
}

/// The end of the string that begins at `start`.
fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(json: &str) -> Vec<String> {
        let mut told = Vec::new();
        scalars(json, &mut |scalar, _| told.push(scalar.to_owned()));
        told
    }

    #[test]
    fn fields_and_items_are_as_they_are_written() {
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
    fn strings_and_numbers_are_told_and_names_are_not() {
        assert_eq!(
            told(r#"{"a":"b","c":[1,"d",{"e":"f\n"}],"g":true,"h":null, "i" : -2.5}"#),
            ["b", "1", "d", "f\\n", "-2.5"]
        );
        assert_eq!(told(r#""alone""#), ["alone"]);
        assert_eq!(told("7"), ["7"]);
        assert_eq!(told("{}"), [""; 0]);
    }

    #[test]
    fn what_is_decoded_is_what_serde_reads() {
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
    fn what_was_cut_short_is_read_as_far_as_it_goes() {
        let json = r#""parts":[{"type":"text","text":"one"},{"type":"text","text":"tw\u00e9 "#;
        for end in 0..=json.len() {
            for (_, value) in fields(&json[..end]) {
                for item in items(value) {
                    for (_, value) in fields(item) {
                        text(value);
                        told(value);
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
            told(nonsense);
            decode(nonsense, &mut |_| {});
        }
    }
}
