//! The speaker, if a text names one itself: `Anna: I moved to Oslo.`

/// The most words and bytes of a name.
const MAX_WORDS: usize = 3;
const MAX_BYTES: usize = 40;

/// The name before the colon at the start of a text. It may be something else, so it only
/// counts if a query contains it.
pub fn named_at_start(text: &str) -> Option<&str> {
    let (name, after) = text.split_once([':', '\u{FF1A}'])?;
    let name = name.trim_matches(['[', ']', '(', ')', '*', ' ']);
    let is_name = name.len() <= MAX_BYTES
        && name.starts_with(char::is_alphabetic)
        && name.split_whitespace().count() <= MAX_WORDS
        && !name.contains(['.', '?', '!', ',', '\n'])
        && !after.starts_with("//");
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speaker_is_the_text_before_the_first_colon() {
        for (text, name) in [
            ("Anna: I moved.", Some("Anna")),
            ("**Anna Berg**: I moved.", Some("Anna Berg")),
            ("[Anna]: at 10:30", Some("Anna")),
            ("安娜：我搬家了", Some("安娜")),
            ("I moved. Anna: no", None),
            ("the four of us went: all", None),
            ("https://example.org", None),
            ("10:30 is fine", None),
            ("no colon", None),
            ("", None),
        ] {
            assert_eq!(named_at_start(text), name, "{text}");
        }
    }
}
