//! A block's label: the name that people, models and backends use. Headers, attributes and enums
//! contain labels, so a label can't contain their syntax.

use crate::json_schema::JsonSchema;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

const MAX_LABEL_CHARS: usize = 64;

/// 1 to 64 letters, digits, `_`, `-`, `.` and inner spaces. Two labels that
/// differ only in case name the same block.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct Label(#[schemars(length(min = 1, max = 64))] String);

impl Label {
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let is_bounded = !text.is_empty()
            && text.len() <= MAX_LABEL_CHARS * 4
            && text.chars().count() <= MAX_LABEL_CHARS;
        let is_trimmed = !text.starts_with(' ') && !text.ends_with(' ');
        if is_bounded && is_trimmed && text.chars().all(Self::is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err("must be 1 to 64 letters, digits, `_`, `-`, `.` or spaces between them")
        }
    }

    fn is_plain(c: char) -> bool {
        c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ')
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The label in lower case, by which rows are found.
    pub fn key(&self) -> String {
        self.0.to_lowercase()
    }
}

/// Whether this text can be a row's key, which is a label in lower case. A key need
/// not be a label: `İ` becomes two characters, and the second is not a letter.
pub fn is_key(text: &str) -> bool {
    let is_plain = |c: char| Label::is_plain(c) || c == '\u{307}';
    let is_bounded = !text.is_empty() && text.chars().count() <= MAX_LABEL_CHARS * 2;
    let is_trimmed = !text.starts_with(' ') && !text.ends_with(' ');
    is_bounded && is_trimmed && text.chars().all(is_plain) && text.to_lowercase() == text
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Label {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_plain_words_without_markup() {
        for good in [
            "soul",
            "To do",
            "user.profile",
            "a-b_c",
            "Gedächtnis",
            "記憶",
            "x1",
        ] {
            assert!(Label::parse(good).is_ok(), "{good}");
        }
        let long = "x".repeat(65);
        for bad in [
            "",
            " ",
            " a",
            "a ",
            "a\nb",
            "a\"b",
            "<b>",
            "a&b",
            "a/b",
            "a═",
            "a\u{0}",
            "[x]",
            "a\u{2028}b",
            "a(b)",
            &long,
        ] {
            assert!(Label::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Label::parse(&"é".repeat(64)).is_ok());
    }

    #[test]
    fn labels_and_their_keys_are_validated() {
        let long = "İ".repeat(64);
        for label in ["soul", "To do", "İstanbul", "ΑΣ", "記憶", &long] {
            assert!(is_key(&Label::parse(label).unwrap().key()), "{label}");
        }
        let longer = "x".repeat(129);
        for bad in ["", "Soul", " a", "a\nb", "a/b", "\u{301}", &longer] {
            assert!(!is_key(bad), "{bad:?}");
        }
    }

    #[test]
    fn labels_are_case_insensitive() {
        assert_eq!(
            Label::parse("Soul").unwrap().key(),
            Label::parse("SOUL").unwrap().key()
        );
    }
}
