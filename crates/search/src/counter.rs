//! Counts the query's words in a candidate's text.

use super::query_words::QueryWords;
use super::terms::QueryTerm;
use super::words::{WordSplitter, is_cjk};
use base::action::Role;

/// Letters and pairs of letters of a script without spaces that count as one word. A word has
/// one or two letters, and each letter counts with the pair that it ends.
const LETTERS_PER_WORD: f64 = 3.0;

/// An event that may match, reduced to the occurrences of the query's words.
#[derive(Clone, Debug)]
pub struct Candidate {
    pub session: i64,
    pub seq: i64,
    pub role: Role,
    /// How many words the text has, and how often each of the query's words occurs.
    pub length: f64,
    pub counts: Vec<usize>,
    /// Which of the query's words are found in who, where or when.
    pub is_about: Vec<bool>,
    /// Which of the query's words occur next to the query's next word.
    pub is_together: Vec<bool>,
    /// How many of the query's prefixes occur in the text.
    pub other_hits: usize,
    pub is_question: bool,
    pub has_number: bool,
    /// Whether one of the marks occurs in the text.
    pub is_marked: bool,
    /// Whether the query names the speaker.
    pub is_by_named: bool,
    pub created_at: i64,
    /// The index's score. It counts only if the part of the text that was read contains no word of
    /// the query.
    pub index_score: f64,
}

/// Counts the query's words in a candidate's text.
pub struct TermCounter<'q, 'a> {
    wanted: &'q mut QueryWords<'a>,
    splitter: WordSplitter,
    /// The words, and the letters and pairs of letters of scripts without spaces.
    words: usize,
    letters: usize,
    counts: Vec<usize>,
    is_about: Vec<bool>,
    is_together: Vec<bool>,
    /// Which of the prefixes begin one of the words.
    has_match: Vec<bool>,
    is_marked: bool,
    /// The terms that the two previous words matched.
    before: [Option<usize>; 2],
}

/// The query's words and prefixes, prepared for counting. `marks` are stems that don't count: a
/// text that contains one is only marked.
pub fn query_words<'a>(
    terms: &'a [QueryTerm],
    prefixes: &'a [String],
    marks: &'a [&'a str],
) -> QueryWords<'a> {
    let stems = terms.iter().map(|term| term.stem.as_str());
    QueryWords::new(stems, prefixes).with_marks(marks)
}

impl<'q, 'a> TermCounter<'q, 'a> {
    pub fn new(wanted: &'q mut QueryWords<'a>) -> Self {
        let (terms, prefixes) = wanted.counts();
        Self {
            wanted,
            splitter: WordSplitter::default(),
            words: 0,
            letters: 0,
            counts: vec![0; terms],
            is_about: vec![false; terms],
            is_together: vec![false; terms],
            has_match: vec![false; prefixes],
            is_marked: false,
            before: [None; 2],
        }
    }

    /// Reads the next piece of the text.
    pub fn read(&mut self, text: &str) {
        let mut splitter = std::mem::take(&mut self.splitter);
        let first_bytes = self.wanted.first_bytes;
        splitter.skim(text, &first_bytes, &mut |skipped, word| {
            self.count_word(skipped, word);
        });
        self.splitter = splitter;
    }

    /// Processes the text's next words: some that were skipped, then one word, which may be empty.
    fn count_word(&mut self, skipped: usize, word: &str) {
        self.words += skipped;
        match skipped {
            0 => {}
            1 => self.before = [None, self.before[0]],
            _ => self.before = [None; 2],
        }
        if word.is_empty() {
            return;
        }
        if word.chars().next().is_some_and(is_cjk) {
            self.letters += 1;
        } else {
            self.words += 1;
        }
        let found = self.wanted.find(word);
        self.count(found);
        for prefix in self.wanted.matching_prefixes(word) {
            if let Some(has_match) = self.has_match.get_mut(prefix) {
                *has_match = true;
            }
        }
    }

    /// Counts a word, and the term that the word matches.
    fn count(&mut self, found: Option<usize>) {
        if let Some(found) = found {
            match self.counts.get_mut(found) {
                Some(count) => *count += 1,
                None => self.is_marked = true,
            }
            if let Some(first) = found.checked_sub(1)
                && found < self.counts.len()
                && self.before.contains(&Some(first))
                && let Some(is_together) = self.is_together.get_mut(first)
            {
                *is_together = true;
            }
        }
        self.before = [found, self.before[0]];
    }

    /// Counts a word of the text by its stem.
    #[cfg(test)]
    pub fn count_stem(&mut self, stem: &str) {
        self.words += 1;
        let found = self.wanted.find_stem(stem);
        self.count(found);
    }

    /// Marks a stem from who, where or when. Returns whether it is in the query.
    pub fn take_about(&mut self, stem: &str) -> bool {
        let found = self.wanted.find_stem(stem);
        match found.and_then(|found| self.is_about.get_mut(found)) {
            Some(is_about) => {
                *is_about = true;
                true
            }
            None => false,
        }
    }

    /// Whether a stem is in the query.
    pub fn asks_for(&self, stem: &str) -> bool {
        let found = self.wanted.find_stem(stem);
        found.is_some_and(|found| found < self.counts.len())
    }

    pub fn end(mut self, session: i64, seq: i64, created_at: i64, index_score: f64) -> Candidate {
        let mut splitter = std::mem::take(&mut self.splitter);
        splitter.end(&mut |word| self.count_word(0, word));
        Candidate {
            session,
            seq,
            role: Role::default(),
            length: self.words as f64 + self.letters as f64 / LETTERS_PER_WORD,
            counts: self.counts,
            is_about: self.is_about,
            is_together: self.is_together,
            other_hits: self
                .has_match
                .iter()
                .filter(|has_match| **has_match)
                .count(),
            is_question: false,
            has_number: false,
            is_marked: self.is_marked,
            is_by_named: false,
            created_at,
            index_score,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stem::stem;
    use crate::words::words;

    /// The counts of a counter by the simple method: every word is split and stemmed.
    fn counted_plainly(text: &str, terms: &[QueryTerm], prefixes: &[String]) -> String {
        let words = words(text);
        let is_letters = |word: &&String| word.chars().all(is_cjk);
        let letters = words.iter().filter(is_letters).count();
        let length = (words.len() - letters) as f64 + letters as f64 / LETTERS_PER_WORD;
        let stems: Vec<String> = words.iter().map(|word| stem(word)).collect();
        let counts = terms.iter().map(|term| {
            let holds = |stem: &&String| **stem == term.stem;
            stems.iter().filter(holds).count()
        });
        let is_together = terms.iter().enumerate().map(|(at, term)| {
            let next = terms.get(at + 1).map(|next| next.stem.as_str());
            stems.iter().enumerate().any(|(second, stem)| {
                let before = &stems[second.saturating_sub(2)..second];
                Some(stem.as_str()) == next && before.contains(&term.stem)
            })
        });
        let has_match = |prefix: &&String| words.iter().any(|word| word.starts_with(*prefix));
        format!(
            "{} {:?} {:?} {}",
            length,
            counts.collect::<Vec<_>>(),
            is_together.collect::<Vec<_>>(),
            prefixes.iter().filter(has_match).count()
        )
    }

    #[test]
    fn the_counts_match_those_of_each_word() {
        let forms = [
            "deploy",
            "marks",
            "Deploying",
            "deployment",
            "deploys",
            "depot",
            "new",
            "News",
            "newer",
            "knew",
            "all",
            "alley",
            "y",
            "yes",
            "cry",
            "cries",
            "crying",
            "dying",
            "die",
            "Café",
            "caf",
            "東京",
            "don't",
            "x1",
            "was",
            "wash",
            "rate",
            "rating",
            "ratings",
            "ratio",
            "stability",
            "stable",
            "stabling",
            "ability",
            "a",
            "of",
            "the",
            "jumps",
            "42",
            "hop",
            "hoping",
            "hopping",
            "ski",
            "skies",
            "sky",
        ];
        let between = [" ", ", ", ".\n", "-", "  ", " \u{2019} ", "_", "; ", " ' "];
        let mut state = 11_usize;
        let mut roll = |sides: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % sides
        };
        for _ in 0..4_000 {
            let mut terms: Vec<QueryTerm> = Vec::new();
            for _ in 0..1 + roll(4) {
                let stem = words(forms[roll(forms.len())])
                    .iter()
                    .map(|word| stem(word))
                    .next_back();
                let stem = stem.unwrap();
                if terms.iter().all(|term| term.stem != stem) {
                    terms.push(QueryTerm {
                        stem,
                        rarity: 1.0,
                        found: 1,
                        steps: 1,
                    });
                }
            }
            let prefixes: Vec<String> = ["dep", "st", "東", "yes"]
                .iter()
                .filter(|_| roll(4) == 0)
                .map(|prefix| (*prefix).to_owned())
                .collect();
            let mut wanted = query_words(&terms, &prefixes, &["mark"]);
            // One after the other, as a search reads its candidates.
            for _ in 0..3 {
                let pieces: Vec<String> = (0..roll(4))
                    .map(|_| {
                        let words = (0..roll(30)).map(|_| {
                            [forms[roll(forms.len())], between[roll(between.len())]].concat()
                        });
                        words.collect()
                    })
                    .collect();
                let mut counter = TermCounter::new(&mut wanted);
                for piece in &pieces {
                    counter.read(piece);
                }
                let counted = counter.end(1, 1, 0, 0.0);
                let counted = format!(
                    "{} {:?} {:?} {}",
                    counted.length, counted.counts, counted.is_together, counted.other_hits
                );
                let text = pieces.concat();
                assert_eq!(
                    counted,
                    counted_plainly(&text, &terms, &prefixes),
                    "{text:?}"
                );
            }
        }
    }
}
