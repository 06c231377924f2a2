//! Estimates how many tokens a text will cost a model. The tokenizers of all providers
//! would be larger than the rest of this program, and still not cover every model.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::base::data_url::find_payload;
use crate::base::owner::Owner;

/// Counts the tokens of a text, or leaves it to the estimate.
pub type TokenCounter = Rc<dyn Fn(&str) -> Option<i64>>;

/// The number of agents' counters that one isolate remembers. Texts of other agents are
/// estimated.
const MAX_COUNTERS: usize = 1_000;

thread_local! {
    /// The counters of classes that extend this one, by the agents that they are of.
    static COUNTERS: RefCell<Vec<(u64, TokenCounter)>> = const { RefCell::new(Vec::new()) };
    static HAS_COUNTERS: Cell<bool> = const { Cell::new(false) };
}

/// Has an agent's texts counted by this function from now on. It takes the place of the
/// function that the agent had in an earlier life.
pub fn count_with(agent: &str, counter: TokenCounter) {
    let agent = Owner::agent(agent).agent;
    COUNTERS.with_borrow_mut(|counters| {
        counters.retain(|(other, _)| *other != agent);
        if counters.len() < MAX_COUNTERS {
            counters.push((agent, counter));
        }
    });
    HAS_COUNTERS.set(true);
}

/// The count by the running task's agent, if the agent has a counter.
fn counted(text: &str) -> Option<i64> {
    if !HAS_COUNTERS.get() {
        return None;
    }
    let agent = Owner::current().agent;
    let counter = COUNTERS.with_borrow(|counters| {
        let found = counters.iter().find(|(other, _)| *other == agent);
        found.map(|(_, counter)| Rc::clone(counter))
    });
    counter.and_then(|counter| counter(text))
}

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
    if let Some(count) = counted(text) {
        return count;
    }
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

/// Counts the words of an ASCII text, eight bytes at a time.
fn count_ascii_words(text: &str) -> i64 {
    let (chunks, rest) = text.as_bytes().as_chunks::<8>();
    let mut last = [b' '; 8];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    let mut words = 0;
    // The high bit of a byte says whether the byte before is a space.
    let mut after_space = 0x80;
    for chunk in chunks.iter().chain([&last]) {
        let spaces = find_spaces(u64::from_le_bytes(*chunk));
        let starts = !spaces & (spaces << 8 | after_space) & HIGH_BITS;
        words += i64::from(starts.count_ones());
        after_space = spaces >> 56;
    }
    words
}

const HIGH_BITS: u64 = 0x80 * EACH_BYTE;
const EACH_BYTE: u64 = 0x0101_0101_0101_0101;

/// The high bits of those bytes that are spaces. All bytes must be ASCII, so that no
/// addition carries over into the next byte.
fn find_spaces(bytes: u64) -> u64 {
    let at_least = |least: u64| bytes + (0x80 - least) * EACH_BYTE;
    let lines = at_least(u64::from(b'\t')) & !at_least(u64::from(b'\r') + 1);
    let other_than_space = (bytes ^ (u64::from(b' ') * EACH_BYTE)) + 0x7f * EACH_BYTE;
    (lines | !other_than_space) & HIGH_BITS
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
    fn an_agents_own_counter_counts_its_texts_and_no_others() {
        let ten = |text: &str| (!text.is_empty()).then_some(10);
        count_with("counting", Rc::new(ten));
        let of = |agent: &str, text: &'static str| {
            crate::testing::wait_for(Owner::agent(agent).run(async move { estimate(text) }))
        };
        assert_eq!(of("counting", "hello"), 10);
        assert_eq!(of("counting", ""), 0);
        assert_eq!(of("other", "hello"), 2);
        count_with("counting", Rc::new(|_: &str| None));
        assert_eq!(of("counting", "hello"), 2);
    }

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
    fn words_are_counted_wherever_they_stand() {
        for length in 0..40 {
            for bits in 0..1 << 9_u32 {
                // Words and spaces in every order, at every place within eight bytes.
                let mark = |place: u32| match (bits >> (place % 9)) & 1 {
                    0 => ['a', '~', '!'][place as usize % 3],
                    _ => [' ', '\n', '\t', '\r', '\u{b}', '\u{c}'][place as usize % 6],
                };
                let text: String = (0..length).map(mark).collect();
                let words = text.split_whitespace().count() as i64;
                assert_eq!(count_ascii_words(&text), words, "{text:?}");
            }
        }
    }

    #[test]
    fn media_in_an_output_counts_as_media_and_not_as_its_letters() {
        let url = format!("data:image/png;base64,{}", "A".repeat(400_000));
        assert_eq!(estimate_output(&url), MEDIA_TOKENS);
        let two = format!(r#"{{"a":"{url}","b":["{url}","x"]}}"#);
        assert!((2 * MEDIA_TOKENS..2 * MEDIA_TOKENS + 10).contains(&estimate_output(&two)));
        // A short URL counts no more than its letters; a word is not a URL.
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
