//! Phrases in a whole agent: which of the texts the engine scans.

use crate::index::term_counts::count_words;
use base::columns::find_value;
use base::database::Database;
use base::error::Result;
use search::query::{WordQuery, find_as_written};
use search::steps::MAX_PHRASE_STEPS;

/// The fewest texts that are scanned, however common the phrases' words are.
const LEAST_TEXTS: i64 = 200;

/// The texts that are scanned for phrases.
pub enum PhraseTexts {
    /// A word of the phrases is in no text.
    NoTexts,
    All {
        /// The most texts that can match.
        most: i64,
    },
    /// The newest texts that contain the rarest of the phrases' words.
    Newest { rarest: String, texts: i64 },
}

/// Compares the steps that the phrases' words take with those that a search may take.
pub fn texts_for(db: &dyn Database, query: &WordQuery) -> Result<PhraseTexts> {
    let words: Vec<&str> = query.phrases.iter().flatten().map(String::as_str).collect();
    let counts = count_words(db, &words)?;
    let counts: Option<Vec<_>> = words
        .iter()
        .map(|word| counts.get(*word).map(|counts| (*word, *counts)))
        .collect();
    let Some(counts) = counts else {
        return Ok(PhraseTexts::NoTexts);
    };
    let steps: i64 = counts.iter().map(|(_, counts)| counts.steps()).sum();
    let Some((word, rarest)) = counts.iter().min_by_key(|(_, counts)| counts.texts) else {
        return Ok(PhraseTexts::NoTexts);
    };
    // All of its texts may contain all of the words, so each word counts with all of its steps.
    let texts = (MAX_PHRASE_STEPS * rarest.texts / steps.max(1)).max(LEAST_TEXTS);
    if texts >= rarest.texts {
        return Ok(PhraseTexts::All { most: rarest.texts });
    }
    Ok(PhraseTexts::Newest {
        rarest: find_as_written(word),
        texts,
    })
}

/// The lowest number among the newest `texts` matching texts. `range`: SQL that restricts the
/// numbers.
pub fn find_floor(db: &dyn Database, matching: &str, range: &str, texts: i64) -> Result<i64> {
    let sql = format!(
        "SELECT coalesce(min(id), 0)
           FROM (SELECT rowid AS id
                   FROM cf_agents_search
                  WHERE cf_agents_search MATCH ?1
                    AND {range}
                  ORDER BY rowid DESC
                  LIMIT {texts})"
    );
    Ok(find_value(db, &sql, &[matching.into()])?.unwrap_or(0))
}
