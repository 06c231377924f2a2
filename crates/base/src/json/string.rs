//! Decodes the escapes in a JSON string.

/// A piece of a string's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Letters<'a> {
    /// A stretch without escapes.
    Plain(&'a str),
    /// The character that an escape encodes.
    Escaped(char),
    /// An escape that is an unpaired surrogate.
    Half,
    /// A backslash that begins no valid escape: a truncated string may end in one.
    Broken,
}

/// The text between a string's quotes, piece by piece.
pub fn letters(inside: &str) -> impl Iterator<Item = Letters<'_>> {
    let mut rest = inside;
    std::iter::from_fn(move || {
        if let Some(escape) = rest.strip_prefix('\\') {
            let (decoded, after) = read_escape(escape);
            rest = after;
            return Some(decoded);
        }
        let plain = rest.split('\\').next().filter(|plain| !plain.is_empty())?;
        rest = rest.get(plain.len()..)?;
        Some(Letters::Plain(plain))
    })
}

/// The meaning of an escape, without its backslash, and the text after it.
fn read_escape(escape: &str) -> (Letters<'_>, &str) {
    let mut chars = escape.chars();
    let decoded = match chars.next() {
        Some('b') => Letters::Escaped('\u{8}'),
        Some('f') => Letters::Escaped('\u{c}'),
        Some('n') => Letters::Escaped('\n'),
        Some('r') => Letters::Escaped('\r'),
        Some('t') => Letters::Escaped('\t'),
        Some('u') => return read_units(chars.as_str()),
        Some(mark @ ('"' | '\\' | '/')) => Letters::Escaped(mark),
        _ => Letters::Broken,
    };
    (decoded, chars.as_str())
}

/// The character of one code unit or two, as four digits each.
fn read_units(text: &str) -> (Letters<'_>, &str) {
    let Some((unit, after)) = code_unit(text) else {
        return (Letters::Broken, text);
    };
    let second = after.strip_prefix("\\u").and_then(code_unit);
    let (decoded, after) = match (unit, second) {
        (0xD800..0xDC00, Some((low @ 0xDC00..0xE000, after))) => {
            let number = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
            (char::from_u32(number), after)
        }
        // The second escape is read by itself.
        _ => (char::from_u32(unit), after),
    };
    (decoded.map_or(Letters::Half, Letters::Escaped), after)
}

fn code_unit(text: &str) -> Option<(u32, &str)> {
    let (digits, rest) = text.split_at_checked(4)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    Some((u32::from_str_radix(digits, 16).ok()?, rest))
}

/// A string's text with its escapes decoded. `None`: an escape is broken or unpaired.
pub fn unescape(inside: &str) -> Option<String> {
    let mut text = String::with_capacity(inside.len());
    for piece in letters(inside) {
        match piece {
            Letters::Plain(plain) => text.push_str(plain),
            Letters::Escaped(letter) => text.push(letter),
            Letters::Half | Letters::Broken => return None,
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_decode_as_in_serde_json() {
        for inside in [
            "",
            "plain",
            r#"a\n\t\"\\\/b\b\f\r"#,
            r"\u0041\u00e9\ud83d\ude00\uD83D\uDE00é漢",
            r"\\ud800",
            r"\ud800",
            r"\udc00",
            r"\ud800\ud800",
            r"\ud800\ud83d\ude00",
            r"\ud800x\udc00",
            r"\ud800\n",
        ] {
            let theirs = serde_json::from_str::<String>(&format!("\"{inside}\"")).ok();
            assert_eq!(unescape(inside), theirs, "{inside}");
        }
    }

    #[test]
    fn the_text_after_a_broken_escape_is_still_read() {
        for (inside, decoded, wrong) in [
            (r"a\", "a", 1),
            (r"a\u00", "a00", 1),
            (r"a\u+041b", "a+041b", 1),
            (r"\ud83d\u0041", "A", 1),
            (r"\ude00\q!", "!", 2),
            (r"\é", "", 1),
        ] {
            let (mut text, mut errors) = (String::new(), 0);
            for piece in letters(inside) {
                match piece {
                    Letters::Plain(plain) => text.push_str(plain),
                    Letters::Escaped(letter) => text.push(letter),
                    Letters::Half | Letters::Broken => errors += 1,
                }
            }
            assert_eq!((text.as_str(), errors), (decoded, wrong), "{inside}");
        }
    }
}
