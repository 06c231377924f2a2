//! The words of a query, prepared for reading many texts. Most words of a text are not among them,
//! which their first bytes show.

use super::fast_path::FirstBytes;
use super::stem::{may_begin_stem, may_have_stem, stem};

/// The most words whose stems are cached. A query's words have few forms, which occur again and
/// again.
const MAX_KNOWN: usize = 64;

pub struct QueryWords<'a> {
    /// The query's stems, then the marks.
    stems: Vec<&'a str>,
    /// How many of the stems are the query's.
    terms: usize,
    prefixes: &'a [String],
    pub first_bytes: FirstBytes,
    /// Words that were checked before, and the position of the stem that each has.
    known: Vec<(String, Option<usize>)>,
}

impl<'a> QueryWords<'a> {
    /// `stems` and `prefixes` must be in lower case, as the words of a text are.
    pub fn new(stems: impl IntoIterator<Item = &'a str>, prefixes: &'a [String]) -> Self {
        let stems: Vec<&str> = stems.into_iter().collect();
        Self {
            terms: stems.len(),
            first_bytes: first_bytes_of(&stems, prefixes),
            stems,
            prefixes,
            known: Vec::new(),
        }
    }

    /// Adds further stems, whose positions follow those of the query's.
    pub fn with_marks(mut self, marks: &[&'a str]) -> Self {
        if !marks.is_empty() {
            self.stems.extend(marks);
            self.first_bytes = first_bytes_of(&self.stems, self.prefixes);
        }
        self
    }

    /// The numbers of stems and of prefixes in the query.
    pub fn counts(&self) -> (usize, usize) {
        (self.terms, self.prefixes.len())
    }

    /// The position of the stem that a word has.
    pub fn find(&mut self, word: &str) -> Option<usize> {
        if !self.may_begin(word) || !self.stems.iter().any(|stem| may_have_stem(word, stem)) {
            return None;
        }
        if let Some((_, found)) = self.known.iter().find(|(known, _)| known == word) {
            return *found;
        }
        let found = self.find_stem(&stem(word));
        if self.known.len() < MAX_KNOWN {
            self.known.push((word.to_owned(), found));
        }
        found
    }

    pub fn find_stem(&self, stem: &str) -> Option<usize> {
        self.stems.iter().position(|own| *own == stem)
    }

    /// The positions of the prefixes with which a word begins.
    pub fn matching_prefixes(&self, word: &str) -> impl Iterator<Item = usize> {
        let begins = move |prefix: &String| word.starts_with(prefix.as_str());
        self.prefixes
            .iter()
            .enumerate()
            .filter_map(move |(at, prefix)| begins(prefix).then_some(at))
    }

    /// Whether a word has one of the stems or prefixes.
    pub fn asks_for(&mut self, word: &str) -> bool {
        self.may_begin(word)
            && (self.find(word).is_some() || self.matching_prefixes(word).next().is_some())
    }

    fn may_begin(&self, word: &str) -> bool {
        let first = word.bytes().next().unwrap_or_default();
        self.first_bytes.get(usize::from(first)) == Some(&true)
    }
}

fn first_bytes_of(stems: &[&str], prefixes: &[String]) -> FirstBytes {
    let mut first_bytes = [false; 256];
    for (byte, may_begin) in (0..=u8::MAX).zip(&mut first_bytes) {
        let small = byte.to_ascii_lowercase();
        *may_begin = stems.iter().any(|stem| may_begin_stem(small, stem))
            || prefixes
                .iter()
                .any(|prefix| prefix.bytes().next() == Some(small));
    }
    first_bytes
}
