//! Repairs JSON with lone surrogates. A proxy that splits JavaScript strings anywhere sends one
//! half of an emoji as `\ud83d`: formally valid JSON, but not text. One wrong character is better
//! than a lost answer.

/// The same JSON with each lone surrogate replaced by the replacement character.
pub fn repair(json: &str) -> String {
    let mut repaired = String::with_capacity(json.len());
    let mut rest = json;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        repaired.push_str(before);
        let (replacement, length) = match (unit(escape), unit(escape.get(6..).unwrap_or_default()))
        {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => (escape.get(..12), 12),
            (Some(0xD800..=0xDFFF), _) => (Some("\\ufffd"), 6),
            // The escaped character may be a backslash, so both are skipped.
            _ => {
                let length = escape.chars().take(2).map(char::len_utf8).sum();
                (escape.get(..length), length)
            }
        };
        repaired.push_str(replacement.unwrap_or_default());
        rest = escape.get(length..).unwrap_or_default();
    }
    repaired.push_str(rest);
    repaired
}

/// The number in the `\uXXXX` at the beginning of the text.
fn unit(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_surrogate_is_replaced_and_the_rest_kept() {
        for (json, expected) in [
            (r#"{"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
            (r#"{"a":"\ude00!"}"#, r#"{"a":"\ufffd!"}"#),
            (
                r#"{"a":"\ud83d\ud83d\ude00"}"#,
                r#"{"a":"\ufffd\ud83d\ude00"}"#,
            ),
            (r#"{"a":"\ud83dx"}"#, r#"{"a":"\ufffdx"}"#),
            (r#"{"a":"\\ud83d"}"#, r#"{"a":"\\ud83d"}"#),
            (r#"{"a":"\\\ud83d"}"#, r#"{"a":"\\\ufffd"}"#),
            (r#"{"a":"\n\u00e9 é"}"#, r#"{"a":"\n\u00e9 é"}"#),
            (r#"{"a":"\ud8"#, r#"{"a":"\ud8"#),
            ("\\", "\\"),
            ("\\é", "\\é"),
            ("", ""),
        ] {
            assert_eq!(repair(json), expected);
        }
    }
}
