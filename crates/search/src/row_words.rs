//! The words of one row of an index, as written and as stems.
//!
//! A word that is repeated very often in a text is written only a bounded number of times:
//! the engine visits all positions of a word in each text that it ranks, and one message
//! may repeat a word a million times.

use super::stem::stem;

/// The most bytes of one column in one row of the index. Two columns are sent as one JSON
/// value, which stays below the engine's limit for values.
const MAX_COLUMN_BYTES: usize = 700_000;

/// How many times a word is written in one row, approximately. `the` is as frequent in 100
/// KB of English; beyond that, a phrase with it is no longer found in the same row. A
/// word's weight hardly grows beyond ten repeats.
const MAX_REPEATS: u16 = 1_000;

/// Replaces a word that was written often enough, so that the words around it don't become
/// adjacent. No query contains it.
const LEFT_OUT: &str = "\u{E001}";

/// The number of counters. Words that share a counter are omitted slightly earlier.
const COUNTERS: usize = 1 << 16;

/// The text of a row's columns: words separated by spaces.
#[derive(Default)]
pub struct RowWords {
    pub stems: String,
    pub words: String,
    /// The number of words so far, up to [`MAX_REPEATS`]. These are not counted
    /// individually.
    few: u16,
    /// How often each word was written, by hash.
    counts: Vec<u16>,
}

impl RowWords {
    /// Whether the next word might not fit: it has up to 64 characters of 4 bytes, plus a
    /// space.
    pub fn is_full(&self) -> bool {
        self.stems.len().max(self.words.len()) + 257 > MAX_COLUMN_BYTES
    }

    pub fn add(&mut self, word: &str, known: &mut KnownStems) {
        if !self.words.is_empty() {
            self.words.push(' ');
        }
        if !self.count(word) {
            return self.words.push_str(LEFT_OUT);
        }
        self.words.push_str(word);
        if !self.stems.is_empty() {
            self.stems.push(' ');
        }
        known.push_stem(word, &mut self.stems);
    }

    /// Counts the word. Returns whether it should be written.
    fn count(&mut self, word: &str) -> bool {
        if self.few < MAX_REPEATS {
            self.few += 1;
            return true;
        }
        if self.counts.is_empty() {
            self.counts.resize(COUNTERS, 0);
        }
        match self.counts.get_mut(hash(word) as usize % COUNTERS) {
            Some(count) if *count >= MAX_REPEATS => false,
            Some(count) => {
                *count += 1;
                true
            }
            None => true,
        }
    }
}

/// FNV-1a.
fn hash(word: &str) -> u32 {
    word.bytes().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Caches the stems of earlier words, because most words of a long text are repeated. Each
/// word has one slot, which it takes from another word: at most 1,024 slots of 512 bytes.
#[derive(Default)]
pub struct KnownStems {
    /// The number of words so far, up to [`FEW_WORDS`]. Their stems are not cached.
    seen: usize,
    slots: Vec<(String, String)>,
}

const SLOTS: usize = 1024;

/// Indexing a short message takes less time than allocating the slots.
const FEW_WORDS: usize = 200;

impl KnownStems {
    /// Appends the word's stem to `stems`.
    fn push_stem(&mut self, word: &str, stems: &mut String) {
        if self.seen < FEW_WORDS {
            self.seen += 1;
            return stems.push_str(&stem(word));
        }
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, Default::default);
        }
        let Some((known, its_stem)) = self.slots.get_mut(hash(word) as usize % SLOTS) else {
            return;
        };
        if known != word {
            word.clone_into(known);
            *its_stem = stem(word);
        }
        stems.push_str(its_stem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endlessly_repeated_word_is_skipped() {
        let (mut row, mut known) = (RowWords::default(), KnownStems::default());
        for number in 0..5_000 {
            row.add("again", &mut known);
            row.add(&format!("w{number}"), &mut known);
        }
        let of = |column: &str, word: &str| column.split(' ').filter(|one| *one == word).count();
        let written = of(&row.words, "again");
        assert!((1_000..=2_000).contains(&written), "{written}");
        assert_eq!(of(&row.stems, "again"), written);
        assert_eq!(of(&row.words, LEFT_OUT), 5_000 - written);
        assert_eq!(row.words.split(' ').count(), 10_000);
        assert!(row.words.ends_with(&format!("w4998 {LEFT_OUT} w4999")));
        assert!(row.stems.ends_with("w4998 w4999"));
        assert!(crate::words::words(&format!("a {LEFT_OUT} b")) == ["a", "b"]);
    }

    #[test]
    fn a_cached_stem_is_the_words_own() {
        let mut known = KnownStems::default();
        // More words than slots, each repeated.
        for round in 0..5_usize {
            for number in 0..3_000_usize {
                let letters: String = [number % 19, number / 19 % 23, number / 437]
                    .iter()
                    .filter_map(|letter| "deploymnrghtsaiuwckbfvz".chars().nth(*letter))
                    .collect();
                let ending = ["ing", "ed", "s", "ational", ""][(number + round) % 5];
                let word = format!("{letters}{ending}");
                let mut stems = String::new();
                known.push_stem(&word, &mut stems);
                assert_eq!(stems, stem(&word));
            }
        }
        assert_eq!(known.slots.len(), SLOTS);
    }
}
