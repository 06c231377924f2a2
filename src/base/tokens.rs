//! Estimates how many tokens a text will cost a model. The tokenizers of all providers
//! would be larger than the rest of this program, and still not cover every model.

use crate::base::data_url::find_payload;

/// The tokens of one picture or other file. Providers count by the picture's size, from
/// under 100 to about 1,600 tokens; the size is unknown without decoding. The base64,
/// read as text, would count hundreds of times as much.
pub const MEDIA_TOKENS: i64 = 1_000;

/// The tokens of a tool's output, a text or JSON. The output counts as text, except for
/// strings that are `data:` URLs. Each of these counts as one file, unless it is short.
pub fn estimate_output(output: &str) -> i64 {
    // The parts between quotes are strings of JSON, or the text between two strings.
    let (urls, rest): (Vec<&str>, Vec<&str>) = output
        .split('"')
        .partition(|piece| find_payload(piece).is_some());
    if urls.is_empty() {
        return estimate(output);
    }
    let media: i64 = urls.iter().map(|url| estimate(url).min(MEDIA_TOKENS)).sum();
    media + estimate(&rest.join("\""))
}

/// The tokens of a text. Latin text: `ceil(max(utf16 length / 4, words × 1.3))`.
/// Scripts without spaces take about one token per character, and are counted apart.
pub fn estimate(text: &str) -> i64 {
    if text.is_ascii() {
        return of_latin(text.len() as i64, count_ascii_words(text));
    }
    let mut dense = 0_i64;
    let mut units = 0_i64;
    let mut words = 0_i64;
    let mut in_word = false;
    for c in text.chars() {
        if is_dense(c) {
            dense += 1;
            in_word = false;
            continue;
        }
        units += c.len_utf16() as i64;
        let is_space = c.is_whitespace();
        if !is_space && !in_word {
            words += 1;
        }
        in_word = !is_space;
    }
    dense + of_latin(units, words)
}

/// In twentieths, so that the arithmetic is exact: units / 4 against words × 1.3.
fn of_latin(units: i64, words: i64) -> i64 {
    ((units * 5).max(words * 26) + 19) / 20
}

/// Most texts are ASCII, and their bytes are counted several times as fast as `char`s.
fn count_ascii_words(text: &str) -> i64 {
    let mut words = 0;
    let mut in_word = false;
    for byte in text.bytes() {
        let is_space = matches!(byte, b'\t'..=b'\r' | b' ');
        words += i64::from(!is_space && !in_word);
        in_word = !is_space;
    }
    words
}

/// Han, kana and hangul take about one token per character.
fn is_dense(c: char) -> bool {
    matches!(c,
        '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{2FA1F}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latin_text_goes_by_letters_or_words_whichever_is_more() {
        for (text, expected) in [
            ("", 0),
            ("a", 2),                    // 1 word × 1.3
            ("hello world", 3),          // 11 / 4 = 2.75; 2.6
            ("a b c d e f g h i j", 13), // 10 words × 1.3
            ("abcdefghijklmnopqrstuvwxyz", 7),
            ("   ", 1),
        ] {
            assert_eq!(estimate(text), expected, "{text}");
        }
        assert_eq!(estimate(&"x".repeat(4000)), 1000);
        assert_eq!(estimate(&"\u{1F600}".repeat(100)), 50);
    }

    #[test]
    fn every_ascii_character_counts_as_it_does_beside_others() {
        for byte in 0..128_u8 {
            let text = format!("ab{0}cd {0}{0} e", char::from(byte)).repeat(3);
            // The added character is a space, which ends a word and adds one unit.
            let with_space = estimate(&format!("{text}\u{3000}"));
            assert_eq!(estimate(&format!("{text} ")), with_space, "{byte}");
        }
    }

    #[test]
    fn media_in_an_output_counts_as_media_and_not_as_its_letters() {
        let url = format!("data:image/png;base64,{}", "A".repeat(400_000));
        assert_eq!(estimate_output(&url), MEDIA_TOKENS);
        let two = format!(r#"{{"a":"{url}","b":["{url}","x"]}}"#);
        assert!((2 * MEDIA_TOKENS..2 * MEDIA_TOKENS + 10).contains(&estimate_output(&two)));
        // A short one is no more than it says; a word is no URL.
        assert_eq!(estimate_output("data:,abc"), estimate("data:,abc"));
        assert_eq!(estimate_output("data: a, b"), estimate("data: a, b"));
        assert_eq!(estimate_output(""), 0);
    }

    #[test]
    fn dense_scripts_go_by_characters() {
        assert_eq!(estimate("東京都の天気"), 6);
        assert_eq!(estimate("東京 is nice"), 2 + 3);
        assert_eq!(estimate("안녕하세요"), 5);
    }
}
