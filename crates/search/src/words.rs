//! Splits text into words: in lower case, without accents, separated at every character that is
//! neither a letter nor a digit. Scripts without spaces are split into single characters and pairs
//! of them.

pub use super::fast_path::MAX_WORD_CHARS;
use super::fast_path::{FirstBytes, OnWord, is_between, is_special, skip_fast_path};

/// Every word, in order, in lower case and without accents.
pub fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    each_word(text, &mut |word| words.push(word.to_owned()));
    words
}

/// Like [`words`], but passes on one word at a time.
pub fn each_word(text: &str, take: &mut dyn FnMut(&str)) {
    let mut cutter = WordSplitter::default();
    cutter.read(text, take);
    cutter.end(take);
}

/// Splits a text that arrives in pieces. Buffers one word, however long the text is.
#[derive(Default)]
pub struct WordSplitter {
    word: String,
    length: usize,
    /// The previous character, if its script has no spaces.
    before: Option<char>,
}

impl WordSplitter {
    pub fn read(&mut self, text: &str, take: &mut dyn FnMut(&str)) {
        let mut rest = text;
        loop {
            rest = self.read_fast_path(rest, take);
            let is_word_byte = |byte: u8| byte.is_ascii_alphanumeric();
            let length = rest.bytes().take_while(|byte| is_word_byte(*byte)).count();
            let Some((run, after)) = rest.split_at_checked(length) else {
                return;
            };
            if !run.is_empty() {
                self.read_run(run, after, take);
            }
            let mut chars = after.chars();
            let Some(c) = chars.next() else {
                return;
            };
            self.read_char(c, take);
            rest = chars.as_str();
        }
    }

    /// Like [`read`](Self::read), but skips most of the words that begin with none of
    /// `first_bytes`.
    pub fn skim(&mut self, text: &str, first_bytes: &FirstBytes, take: &mut OnWord<'_>) {
        let mut rest = text;
        let mut is_inside = self.length > 0 || self.before.is_some();
        loop {
            if !is_inside {
                rest = skip_fast_path(rest, first_bytes, take);
            }
            // The rest up to the end of the next special word is read character by character.
            let special = if is_inside {
                Some(0)
            } else {
                rest.bytes().position(is_special)
            };
            let end = special
                .and_then(|at| Some(at + rest.bytes().skip(at).position(is_between)?))
                .unwrap_or(rest.len());
            let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            self.read(word, &mut |word| take(0, word));
            if after.is_empty() {
                return;
            }
            self.end(&mut |word| take(0, word));
            is_inside = false;
            rest = after;
        }
    }

    /// Passes on the words that need no change: lower-case letters and digits of ASCII, between
    /// other characters of ASCII. Most texts consist almost entirely of them. Returns the rest, which
    /// begins with another word.
    fn read_fast_path<'t>(&mut self, text: &'t str, take: &mut dyn FnMut(&str)) -> &'t str {
        if self.length > 0 {
            return text;
        }
        let mut start = 0;
        for (at, byte) in text.bytes().enumerate() {
            match byte {
                b'a'..=b'z' | b'0'..=b'9' => {}
                // Capitals are lowered, an apostrophe joins words, and text beyond ASCII is read by
                // character.
                b'A'..=b'Z' | b'\'' | 128.. => break,
                _ => {
                    if at - start > MAX_WORD_CHARS {
                        break;
                    }
                    if at > start {
                        take(text.get(start..at).unwrap_or_default());
                    }
                    start = at + 1;
                }
            }
        }
        if start > 0 {
            self.before = None;
        }
        text.get(start..).unwrap_or_default()
    }

    /// Reads letters and digits of ASCII. Most of them are words that need no change, which are
    /// passed on without a copy.
    fn read_run(&mut self, run: &str, after: &str, take: &mut dyn FnMut(&str)) {
        self.before = None;
        let ends_here = |next: u8| next.is_ascii() && next != b'\'';
        let is_whole = self.length == 0
            && run.len() <= MAX_WORD_CHARS
            && after.bytes().next().is_some_and(ends_here)
            && !run.bytes().any(|byte| byte.is_ascii_uppercase());
        if is_whole {
            return take(run);
        }
        let capacity = MAX_WORD_CHARS.saturating_sub(self.length).min(run.len());
        let fitting = run.get(..capacity).unwrap_or_default();
        self.word
            .extend(fitting.chars().map(|c| c.to_ascii_lowercase()));
        self.length += run.len();
    }

    fn read_char(&mut self, c: char, take: &mut dyn FnMut(&str)) {
        if is_cjk(c) {
            self.end_word(take);
            take(c.encode_utf8(&mut [0; 4]));
            if let Some(before) = self.before {
                let mut pair = [0; 8];
                let first = before.encode_utf8(&mut pair).len();
                let both = first
                    + c.encode_utf8(pair.get_mut(first..).unwrap_or_default())
                        .len();
                take(str::from_utf8(pair.get(..both).unwrap_or_default()).unwrap_or_default());
            }
            self.before = Some(c);
            return;
        }
        self.before = None;
        if c.is_alphanumeric() {
            if self.length < MAX_WORD_CHARS {
                for c in c.to_lowercase() {
                    self.word.push(without_mark(c));
                }
            }
            self.length += 1;
        } else if matches!(c, '\'' | '\u{2019}') && !self.word.is_empty() {
            // The apostrophe joins: `don't` becomes `dont`, and `Anna's` has the stem
            // `anna`.
        } else if !is_mark(c) {
            self.end_word(take);
        }
    }

    /// Ends the text: passes on the last word.
    pub fn end(&mut self, take: &mut dyn FnMut(&str)) {
        self.end_word(take);
        self.before = None;
    }

    fn end_word(&mut self, take: &mut dyn FnMut(&str)) {
        if !self.word.is_empty() {
            take(&self.word);
            self.word.clear();
        }
        self.length = 0;
    }
}

/// Combining marks. A letter and a separate mark count as one letter.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{0300}'..='\u{036F}')
}

pub fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}'
        | '\u{AC00}'..='\u{D7AF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{2FA1F}')
}

/// Latin letters without their accents: `café` is found by `cafe`.
fn without_mark(c: char) -> char {
    match c {
        'à'..='å' | 'ā' | 'ă' | 'ą' => 'a',
        'ç' | 'ć' | 'č' => 'c',
        'è'..='ë' | 'ē' | 'ė' | 'ę' | 'ě' => 'e',
        'ì'..='ï' | 'ī' | 'į' => 'i',
        'ñ' | 'ń' | 'ň' => 'n',
        'ò'..='ö' | 'ø' | 'ō' | 'ő' => 'o',
        'ù'..='ü' | 'ū' | 'ů' | 'ű' => 'u',
        'ý' | 'ÿ' => 'y',
        'ś' | 'š' | 'ş' => 's',
        'ź' | 'ż' | 'ž' => 'z',
        'ł' => 'l',
        'ř' => 'r',
        'ğ' => 'g',
        'đ' | 'ď' => 'd',
        'ť' | 'ţ' => 't',
        c => c,
    }
}

/// Whether a word is too common to help a search. The index contains such words; a query omits them
/// unless it has no others.
pub fn is_stop_word(word: &str) -> bool {
    STOP_WORDS.binary_search(&word).is_ok()
}

/// Sorted, for the binary search. Without apostrophes, as [`words`] gives them.
const STOP_WORDS: &[&str] = &[
    "a",
    "about",
    "after",
    "again",
    "all",
    "also",
    "am",
    "an",
    "and",
    "any",
    "are",
    "arent",
    "as",
    "at",
    "be",
    "because",
    "been",
    "before",
    "being",
    "between",
    "both",
    "but",
    "by",
    "can",
    "cannot",
    "cant",
    "could",
    "couldnt",
    "did",
    "didnt",
    "do",
    "does",
    "doesnt",
    "doing",
    "dont",
    "during",
    "each",
    "for",
    "from",
    "had",
    "hadnt",
    "has",
    "hasnt",
    "have",
    "havent",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "herself",
    "hes",
    "him",
    "himself",
    "his",
    "how",
    "i",
    "id",
    "if",
    "ill",
    "im",
    "in",
    "into",
    "is",
    "isnt",
    "it",
    "its",
    "itself",
    "ive",
    "just",
    "lets",
    "many",
    "me",
    "might",
    "more",
    "most",
    "much",
    "must",
    "my",
    "myself",
    "no",
    "nor",
    "not",
    "of",
    "off",
    "on",
    "once",
    "only",
    "or",
    "other",
    "our",
    "ours",
    "out",
    "over",
    "own",
    "please",
    "same",
    "shall",
    "she",
    "shed",
    "shes",
    "should",
    "shouldnt",
    "so",
    "some",
    "such",
    "tell",
    "than",
    "that",
    "thats",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "theres",
    "these",
    "they",
    "theyre",
    "this",
    "those",
    "through",
    "to",
    "too",
    "under",
    "until",
    "up",
    "us",
    "very",
    "was",
    "wasnt",
    "we",
    "were",
    "werent",
    "weve",
    "what",
    "whats",
    "when",
    "where",
    "wheres",
    "which",
    "while",
    "who",
    "whom",
    "whos",
    "whose",
    "why",
    "will",
    "with",
    "wont",
    "would",
    "wouldnt",
    "you",
    "youd",
    "youll",
    "your",
    "youre",
    "yours",
    "yourself",
    "youve",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_folded_and_truncated() {
        let table: [(&str, &[&str]); 8] = [
            ("", &[]),
            (
                "Hello, WORLD! x-ray_2",
                &["hello", "world", "x", "ray", "2"],
            ),
            ("Anna's don't l\u{2019}été", &["annas", "dont", "lete"]),
            ("cafe\u{0301} Ångström", &["cafe", "angstrom"]),
            ("東京都 is", &["東", "京", "東京", "都", "京都", "is"]),
            ("a東b京", &["a", "東", "b", "京"]),
            ("'quoted'", &["quoted"]),
            ("\u{0}\u{1F600}", &[]),
        ];
        for (text, expected) in table {
            assert_eq!(words(text), expected, "{text}");
            // The same in pieces of one character.
            let mut cutter = WordSplitter::default();
            let mut found = Vec::new();
            for piece in text.split("") {
                cutter.read(piece, &mut |word| found.push(word.to_owned()));
            }
            cutter.end(&mut |word| found.push(word.to_owned()));
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(words(&"x".repeat(1000))[0].len(), MAX_WORD_CHARS);
    }

    #[test]
    fn the_fast_path_finds_the_same_words() {
        let pieces = [
            "a",
            "word",
            "Z",
            "09",
            "'",
            "\u{2019}",
            " ",
            "  ",
            ".\n",
            "-",
            "_",
            "é",
            "\u{301}",
            "東",
            "京",
            "ﬁ",
            "İ",
            "\u{0}",
            "a67890123456789012345678901234567890123456789012345678901234",
        ];
        let mut state = 7_usize;
        for _ in 0..5_000 {
            let mut text = String::new();
            for _ in 0..12 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                text.push_str(pieces[(state >> 33) % pieces.len()]);
            }
            let mut by_character = Vec::new();
            let mut splitter = WordSplitter::default();
            for c in text.chars() {
                splitter.read(c.encode_utf8(&mut [0; 4]), &mut |word| {
                    by_character.push(word.to_owned());
                });
            }
            splitter.end(&mut |word| by_character.push(word.to_owned()));
            assert_eq!(words(&text), by_character, "{text:?}");
        }
    }

    #[test]
    fn skimming_counts_all_words_and_returns_the_wanted_ones() {
        let pieces = [
            "a",
            "word",
            "Word",
            "bee",
            "Z",
            "09",
            "'",
            "\u{2019}",
            " ",
            "  ",
            ".\n",
            "-",
            "_",
            "é",
            "\u{301}",
            "東",
            "京",
            "İ",
            "\u{0}",
            " the quick brown fox, jumps over. ",
            "a67890123456789012345678901234567890123456789012345678901234",
            "B67890123456789012345678901234567890123456789012345678901234",
        ];
        let mut state = 7_usize;
        let mut roll = |sides: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % sides
        };
        for round in 0..20_000 {
            // Some texts are plain, like most.
            let kinds = if round % 3 == 0 { pieces.len() } else { 3 };
            let texts: Vec<String> = (0..1 + roll(3))
                .map(|_| {
                    let chosen = (0..roll(14)).map(|_| match roll(2) {
                        0 => pieces[roll(kinds)],
                        _ => pieces[7 + roll(kinds.min(6))],
                    });
                    chosen.collect()
                })
                .collect();
            let mut first_bytes = [false; 256];
            for letter in "awbzt0".bytes().filter(|_| roll(2) == 0) {
                first_bytes[usize::from(letter)] = true;
                first_bytes[usize::from(letter.to_ascii_uppercase())] = true;
            }
            let expected = words(&texts.concat());
            let mut found: Vec<Option<String>> = Vec::new();
            let mut take = |skipped: usize, word: &str| {
                found.resize(found.len() + skipped, None);
                if !word.is_empty() {
                    found.push(Some(word.to_owned()));
                }
            };
            let mut splitter = WordSplitter::default();
            for text in &texts {
                splitter.skim(text, &first_bytes, &mut take);
            }
            splitter.end(&mut |word| take(0, word));
            assert_eq!(found.len(), expected.len(), "{texts:?}");
            for (found, expected) in found.iter().zip(&expected) {
                let first = usize::from(expected.as_bytes()[0]);
                match found {
                    Some(found) => assert_eq!(found, expected, "{texts:?}"),
                    None => assert!(!first_bytes[first], "{texts:?} {expected}"),
                }
            }
        }
    }

    #[test]
    fn the_stop_words_are_sorted() {
        assert!(STOP_WORDS.is_sorted());
        assert!(
            is_stop_word("the")
                && is_stop_word("a")
                && is_stop_word("youve")
                && !is_stop_word("oslo")
        );
    }
}
