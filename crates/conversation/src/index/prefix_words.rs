//! Prefixes of words. In a whole agent, the index lists the words with a prefix. In one session or
//! block, its texts are scanned: the engine lists the words of all sessions, so its duration would
//! reveal to a caller of one session what others contain.

use super::term_counts::{WordCounts, count_words};
use base::columns::load;
use base::database::Database;
use base::error::Result;
use search::query::{find_as_written, find_beginning, is_whole_word};

/// The most words of one prefix that are searched one by one.
const MAX_WORDS: usize = 256;

/// Words that are counted by one statement. It walks through all texts of each.
const WORDS_PAGE: usize = 64;

/// Sorts after every word with the prefix.
const LAST: char = '\u{10FFFF}';

/// What the engine searches instead of a prefix.
#[derive(Default)]
pub struct PrefixWords {
    /// FTS5 queries, any of which may match.
    pub queries: Vec<String>,
    /// Some words are too common to be searched.
    pub is_cut: bool,
    /// A word that was left out, and its counts, if there is nothing rarer.
    pub too_common: Option<(String, WordCounts)>,
}

/// The index's words with these prefixes, until the allowed steps are used up.
pub fn load_prefix_words(
    db: &dyn Database,
    prefixes: &[String],
    steps_left: &mut i64,
) -> Result<PrefixWords> {
    let mut found = PrefixWords::default();
    for prefix in prefixes {
        if *steps_left <= 0 {
            found.is_cut = true;
            break;
        }
        if is_whole_word(prefix) {
            let counts = count_words(db, &[prefix])?;
            let words: Vec<_> = counts.into_iter().collect();
            found.add(prefix, words, true, steps_left);
        } else {
            let (words, is_whole) = load_words(db, prefix, *steps_left)?;
            found.add(prefix, words, is_whole, steps_left);
        }
    }
    Ok(found)
}

impl PrefixWords {
    fn add(
        &mut self,
        prefix: &str,
        words: Vec<(String, WordCounts)>,
        is_whole: bool,
        steps_left: &mut i64,
    ) {
        let all: i64 = words.iter().map(|(_, counts)| counts.steps()).sum();
        if is_whole && all <= *steps_left {
            *steps_left -= all;
            if !words.is_empty() {
                self.queries.push(if is_whole_word(prefix) {
                    find_as_written(prefix)
                } else {
                    find_beginning(prefix)
                });
            }
            return;
        }
        self.is_cut = true;
        for (word, counts) in words.into_iter().take(MAX_WORDS) {
            if counts.steps() <= *steps_left {
                *steps_left -= counts.steps();
                self.queries.push(find_as_written(&word));
            } else if self.too_common.is_none() {
                self.too_common = Some((find_as_written(&word), counts));
            }
        }
    }
}

/// The words with a prefix, in alphabetical order, until the allowed steps are used up, and whether
/// these are all.
fn load_words(
    db: &dyn Database,
    prefix: &str,
    most_steps: i64,
) -> Result<(Vec<(String, WordCounts)>, bool)> {
    let sql = format!(
        "SELECT term, doc, cnt
           FROM cf_agents_search_words
          WHERE term >= ?1
            AND term < ?2
          ORDER BY term
          LIMIT {WORDS_PAGE}"
    );
    let end = format!("{prefix}{LAST}");
    let mut from = prefix.to_owned();
    let mut words: Vec<(String, WordCounts)> = Vec::new();
    let mut steps = 0;
    while steps <= most_steps {
        let page: Vec<(String, i64, i64)> =
            load(db, &sql, &[from.as_str().into(), end.as_str().into()])?;
        let is_last = page.len() < WORDS_PAGE;
        for (word, texts, occurrences) in page {
            let counts = WordCounts { texts, occurrences };
            steps += counts.steps();
            from = format!("{word} ");
            words.push((word, counts));
        }
        if is_last {
            return Ok((words, true));
        }
    }
    Ok((words, false))
}
