//! Scans the texts of one session for the terms of queries, newest first.
//!
//! A short session is scanned completely, and the index isn't used: the time in which FTS5
//! finds that no text of a session contains a word depends on how many texts of other
//! sessions do. Word prefixes are always found by scanning: FTS5 would build a prefix's
//! list from the words of all sessions.

use std::collections::VecDeque;

use crate::index::progress::NOTHING;
use crate::index::read::{find_event, load_newest_below};
use base::database::Database;
use base::error::Result;
use search::document::{EventText, MAX_TEXT_BYTES, about_column, read_text};
use search::fast_path::FirstBytes;
use search::query::WordQuery;
use search::query_words::QueryWords;
use search::words::WordSplitter;

/// The most events of a session that is scanned completely: about as many texts as the
/// ranking reads.
pub const MAX_READ_WHOLE: i64 = 512;

/// The most events of a session that are scanned for prefixes, newest first, and the most
/// bytes of their texts: as much as a search indexes before it answers.
const MAX_SCANNED: usize = 8_000;
const MAX_SCANNED_BYTES: usize = 8 << 20;

/// The most bytes of a session that is scanned completely: each word is compared with all words of
/// the queries. Scanning only for prefixes takes much less time.
const MAX_WHOLE_BYTES: usize = 1 << 20;

/// How many events one statement reads, and the most bytes of an event that is read
/// together with others.
const PAGE: i64 = 64;
const INLINE_BYTES: i64 = 16 << 10;

/// How many slices of 1 MB are read per body: as much as is indexed.
const MAX_SLICES: i64 = 9;

/// The terms of a search's queries, without duplicates.
#[derive(Debug, Default)]
pub struct QueryTexts {
    stems: Vec<String>,
    prefixes: Vec<String>,
    phrases: Vec<Vec<String>>,
}

/// Calls its argument with each piece of a text.
type TextPieces<'a> = dyn FnMut(&mut dyn FnMut(&str)) + 'a;

impl QueryTexts {
    /// The prefixes, and the other terms if `with_words`.
    pub fn of(queries: &[WordQuery], with_words: bool) -> Self {
        let mut texts = Self::default();
        for query in queries {
            // If a query has phrases, its prefixes only count in events that contain them.
            if query.phrases.is_empty() {
                add_new(&mut texts.prefixes, query.prefixes.clone());
            }
            if with_words {
                add_new(&mut texts.stems, query.terms());
                add_new(&mut texts.phrases, query.phrases.clone());
            }
        }
        texts
    }

    fn is_empty(&self) -> bool {
        self.stems.is_empty() && self.prefixes.is_empty() && self.phrases.is_empty()
    }

    /// Words whose first letters a match may start with.
    fn beginnings(&self) -> Vec<String> {
        let in_phrases = self.phrases.iter().flatten();
        self.prefixes.iter().chain(in_phrases).cloned().collect()
    }
}

fn add_new<T: PartialEq>(known: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !known.contains(&one) {
            known.push(one);
        }
    }
}

/// The terms that an event contains.
pub struct ScannedEvent {
    pub seq: i64,
    stems: Vec<bool>,
    prefixes: Vec<bool>,
    phrases: Vec<bool>,
}

/// The events of a session that contain any of the terms.
#[derive(Default)]
pub struct ScannedSession {
    texts: QueryTexts,
    /// Newest first.
    pub events: Vec<ScannedEvent>,
    /// Not all events were scanned.
    pub is_cut: bool,
}

impl ScannedSession {
    pub fn has_stem(&self, event: &ScannedEvent, stem: &str) -> bool {
        let index = self.texts.stems.iter().position(|text| text == stem);
        index.and_then(|index| event.stems.get(index)) == Some(&true)
    }

    pub fn has_prefix(&self, event: &ScannedEvent, prefix: &str) -> bool {
        let index = self.texts.prefixes.iter().position(|text| text == prefix);
        index.and_then(|index| event.prefixes.get(index)) == Some(&true)
    }

    pub fn has_phrase(&self, event: &ScannedEvent, phrase: &[String]) -> bool {
        let index = self.texts.phrases.iter().position(|text| text == phrase);
        index.and_then(|index| event.phrases.get(index)) == Some(&true)
    }
}

/// Scans the session's texts, unless there are no terms.
pub fn scan_session(
    db: &dyn Database,
    session_id: &str,
    texts: QueryTexts,
) -> Result<ScannedSession> {
    let mut scanned = ScannedSession::default();
    if texts.is_empty() {
        return Ok(scanned);
    }
    let beginnings = texts.beginnings();
    let mut scan = TextScan::new(&texts, &beginnings);
    let (mut below, mut events_left) = (NOTHING, MAX_SCANNED);
    let mut bytes_left = if texts.stems.is_empty() && texts.phrases.is_empty() {
        MAX_SCANNED_BYTES
    } else {
        MAX_WHOLE_BYTES
    };
    'pages: loop {
        let page = load_newest_below(db, session_id, below, PAGE, INLINE_BYTES)?;
        let is_last = (page.len() as i64) < PAGE;
        for (seq, event) in page {
            if events_left == 0 || bytes_left == 0 {
                scanned.is_cut = true;
                break 'pages;
            }
            let event = match event {
                None => find_event(db, session_id, seq, MAX_SLICES)?,
                event => event,
            };
            events_left -= 1;
            below = seq;
            let Some(event) = event else { continue };
            bytes_left = bytes_left.saturating_sub(event.bytes());
            scanned
                .events
                .extend(scan.read_event(seq, &event.as_text()));
        }
        if is_last {
            break;
        }
    }
    drop(scan);
    scanned.texts = texts;
    Ok(scanned)
}

/// Scans one text after the other for the terms.
struct TextScan<'a> {
    texts: &'a QueryTexts,
    stems: QueryWords<'a>,
    first_bytes: FirstBytes,
    /// The number of words of the longest phrase.
    longest_phrase: usize,
}

impl<'a> TextScan<'a> {
    fn new(texts: &'a QueryTexts, beginnings: &'a [String]) -> Self {
        let stems = QueryWords::new(texts.stems.iter().map(String::as_str), beginnings);
        Self {
            texts,
            first_bytes: stems.first_bytes,
            stems,
            longest_phrase: texts.phrases.iter().map(Vec::len).max().unwrap_or(0),
        }
    }

    fn read_event(&mut self, seq: i64, event: &EventText<'_>) -> Option<ScannedEvent> {
        let mut found = self.read(seq, &mut |take| read_text(event, MAX_TEXT_BYTES, take));
        if !self.texts.stems.is_empty() {
            for stem in about_column(event).split(' ') {
                let index = self.stems.find_stem(stem);
                set(&mut found.stems, index);
            }
        }
        let flags = [&found.stems, &found.prefixes, &found.phrases];
        let has_any = flags.iter().any(|flags| flags.contains(&true));
        has_any.then_some(found)
    }

    /// `read` passes the pieces of the text on.
    fn read(&mut self, seq: i64, read: &mut TextPieces<'_>) -> ScannedEvent {
        let mut found = ScannedEvent {
            seq,
            stems: vec![false; self.texts.stems.len()],
            prefixes: vec![false; self.texts.prefixes.len()],
            phrases: vec![false; self.texts.phrases.len()],
        };
        let mut splitter = WordSplitter::default();
        let mut newest: VecDeque<String> = VecDeque::new();
        let mut take = |skipped: usize, word: &str| {
            if skipped > 0 {
                newest.clear();
            }
            if word.is_empty() {
                return;
            }
            set(&mut found.stems, self.stems.find(word));
            for (prefix, has) in self.texts.prefixes.iter().zip(&mut found.prefixes) {
                *has = *has || word.starts_with(prefix.as_str());
            }
            if self.longest_phrase == 0 {
                return;
            }
            if newest.len() == self.longest_phrase {
                newest.pop_front();
            }
            newest.push_back(word.to_owned());
            for (phrase, has) in self.texts.phrases.iter().zip(&mut found.phrases) {
                let last = newest.iter().rev().take(phrase.len());
                *has = *has || last.eq(phrase.iter().rev());
            }
        };
        read(&mut |piece| splitter.skim(piece, &self.first_bytes, &mut take));
        splitter.end(&mut |word| take(0, word));
        found
    }
}

fn set(flags: &mut [bool], index: Option<usize>) {
    if let Some(flag) = index.and_then(|index| flags.get_mut(index)) {
        *flag = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use search::stem::stem;
    use search::words::words;

    #[test]
    fn a_scan_matches_the_words_of_a_text() {
        let query = r#"deploying 東 "de ploy it" "caf and the" de* caf* x1* 東京*"#;
        let with_phrases = WordQuery::parse(query);
        let without = WordQuery::parse(&query.replace('"', " "));
        let texts = QueryTexts::of(&[with_phrases, without], true);
        assert_eq!((texts.phrases.len(), texts.prefixes.len()), (2, 4));
        let beginnings = texts.beginnings();
        let mut scan = TextScan::new(&texts, &beginnings);
        for text in [
            "we deploy",
            "Deploying it",
            "undeployed, so de ploy it",
            "de ploy, x, it",
            "the CAFÉ, Caf and the x",
            "X10 and x1",
            "大東京",
            "I de'ploy, o'de Caf' and the caf’s",
            "caf caf caf and the",
            "",
        ] {
            let all = words(text);
            let stems: Vec<String> = all.iter().map(|word| stem(word)).collect();
            for cut in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
                let (before, after) = text.split_at(cut);
                let found = scan.read(1, &mut |take| {
                    take(before);
                    take(after);
                });
                let expected = texts.stems.iter().map(|stem| stems.contains(stem));
                assert_eq!(found.stems, expected.collect::<Vec<_>>(), "{text} {cut}");
                let is_prefix = |prefix: &String| all.iter().any(|word| word.starts_with(prefix));
                let expected = texts.prefixes.iter().map(is_prefix);
                assert_eq!(found.prefixes, expected.collect::<Vec<_>>(), "{text} {cut}");
                let contains_phrase =
                    |phrase: &Vec<String>| all.windows(phrase.len()).any(|row| row == phrase);
                let expected = texts.phrases.iter().map(contains_phrase);
                assert_eq!(found.phrases, expected.collect::<Vec<_>>(), "{text} {cut}");
            }
        }
    }
}
