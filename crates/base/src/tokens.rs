//! Estimates how many tokens a text will cost a model. The tokenizers of all providers
//! would be larger than the rest of this program, and still not cover every model.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::data_url::find_payload;

/// Counts the tokens of a text. `None`: they are estimated.
pub type TokenCounter = Rc<dyn Fn(&str) -> Option<i64>>;

thread_local! {
    /// How the running task's texts are counted. `None`: they are estimated.
    static COUNTER: RefCell<Option<TokenCounter>> = const { RefCell::new(None) };
}

/// A task whose texts are counted by a function of its class.
///
/// The counter belongs to the task, as the task's owner does. Agents of two classes may have the
/// same name in one isolate, so a counter found by the agent's name could be another's.
pub struct CountedTask<F> {
    counter: Option<TokenCounter>,
    task: F,
}

/// `None`: the task's texts are estimated.
pub fn counted_by<F: Future + Unpin>(counter: Option<TokenCounter>, task: F) -> CountedTask<F> {
    CountedTask { counter, task }
}

impl<F: Future + Unpin> Future for CountedTask<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let before = COUNTER.replace(self.counter.clone());
        let outcome = Pin::new(&mut self.task).poll(context);
        COUNTER.set(before);
        outcome
    }
}

/// Whether the running task's texts are counted by a function of its class.
pub fn has_counter() -> bool {
    COUNTER.with_borrow(Option::is_some)
}

/// Runs `task` with its texts estimated, whatever the running task's counter is: for numbers that
/// are stored, and that a later version of the class must be able to read.
pub fn without_counter<T>(task: impl FnOnce() -> T) -> T {
    let before = COUNTER.replace(None);
    let outcome = task();
    COUNTER.set(before);
    outcome
}

/// The count by the running task's counter, if it has one.
fn counted(text: &str) -> Option<i64> {
    let counter = COUNTER.with_borrow(Option::clone)?;
    counter(text)
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
    // The high bit of a byte is set if the byte before is a space.
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
    use crate::owner::Owner;
    use crate::testing::wait_for;

    /// The tokens of a task's text. The task has this counter and the owner `alice`.
    fn estimated(counter: Option<TokenCounter>, text: &'static str) -> i64 {
        let task = Owner::agent("alice").run(async move { estimate(text) });
        wait_for(counted_by(counter, task))
    }

    #[test]
    fn a_tasks_counter_counts_only_its_own_text() {
        let ten: TokenCounter = Rc::new(|text: &str| (!text.is_empty()).then_some(10));
        assert_eq!(estimated(Some(Rc::clone(&ten)), "hello"), 10);
        assert_eq!(estimated(Some(ten), ""), 0);
        // Another class's agent of the same name, in the same isolate.
        assert_eq!(estimated(None, "hello"), 2);
        assert_eq!(estimated(Some(Rc::new(|_: &str| None)), "hello"), 2);
        assert_eq!(estimate("hello"), 2);
    }

    #[test]
    fn every_agent_in_an_isolate_has_its_own_counter() {
        let of = |count: i64| -> TokenCounter { Rc::new(move |_: &str| Some(count)) };
        for count in 0..3_000 {
            assert_eq!(estimated(Some(of(count)), "hello"), count);
        }
    }

    #[test]
    fn ending_a_nested_task_restores_the_outer_counter() {
        let five: TokenCounter = Rc::new(|_: &str| Some(5));
        let outer = Box::pin(async {
            let inner = estimated(Some(Rc::new(|_: &str| Some(7))), "hello");
            (inner, estimate("hello"))
        });
        assert_eq!(wait_for(counted_by(Some(five), outer)), (7, 5));
    }

    #[test]
    fn latin_text_counts_by_letters_or_words_whichever_is_more() {
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
    fn ascii_counts_the_same_alone_and_in_mixed_text() {
        for byte in 0..128_u8 {
            let text = format!("ab{0}cd {0}{0} e", char::from(byte)).repeat(3);
            // The added character is a space, which ends a word and adds one unit.
            let with_space = estimate(&format!("{text}\u{3000}"));
            assert_eq!(estimate(&format!("{text} ")), with_space, "{byte}");
        }
    }

    #[test]
    fn words_are_counted_at_any_position() {
        for length in 0..40 {
            for bits in 0..1 << 9_u32 {
                // Words and spaces in every order, at every offset within eight bytes.
                let mark = |offset: u32| match (bits >> (offset % 9)) & 1 {
                    0 => ['a', '~', '!'][offset as usize % 3],
                    _ => [' ', '\n', '\t', '\r', '\u{b}', '\u{c}'][offset as usize % 6],
                };
                let text: String = (0..length).map(mark).collect();
                let words = text.split_whitespace().count() as i64;
                assert_eq!(count_ascii_words(&text), words, "{text:?}");
            }
        }
    }

    #[test]
    fn media_in_an_output_has_a_fixed_count() {
        let url = format!("data:image/png;base64,{}", "A".repeat(400_000));
        assert_eq!(estimate_output(&url), MEDIA_TOKENS);
        let two = format!(r#"{{"a":"{url}","b":["{url}","x"]}}"#);
        assert!((2 * MEDIA_TOKENS..2 * MEDIA_TOKENS + 10).contains(&estimate_output(&two)));
        // A short URL counts at most its letters; a word is not a URL.
        assert_eq!(estimate_output("data:,abc"), estimate("data:,abc"));
        assert_eq!(estimate_output("data: a, b"), estimate("data: a, b"));
        assert_eq!(estimate_output(""), 0);
    }

    #[test]
    fn dense_scripts_count_by_characters() {
        assert_eq!(estimate("東京都の天気"), 6);
        assert_eq!(estimate("東京 is nice"), 2 + 3);
        assert_eq!(estimate("안녕하세요"), 5);
    }
}
