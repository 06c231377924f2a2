//! Counts the words of queries in the index.

use std::collections::HashMap;

use base::columns::{find_value, load};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::json;
use search::document::EVERY_DOCUMENT;
use search::query::WordQuery;
use search::steps::{most_counted, steps_of};
use search::terms::QueryTerm;

/// How many texts contain a word, and its total number of occurrences.
#[derive(Clone, Copy, Default)]
pub struct WordCounts {
    pub texts: i64,
    pub occurrences: i64,
}

impl WordCounts {
    pub fn steps(self) -> i64 {
        steps_of(self.texts, self.occurrences)
    }
}

/// The counts of those words that are in the index.
pub fn count_words(db: &dyn Database, words: &[&str]) -> Result<HashMap<String, WordCounts>> {
    let sql = "SELECT wanted.value, found.doc, found.cnt
                 FROM json_each(?1) AS wanted
                CROSS JOIN cf_agents_search_words AS found
                   ON found.term = wanted.value";
    let rows: Vec<(String, i64, i64)> = load(db, sql, &[SqlValue::Text(json::encode(&words)?)])?;
    let counts = rows.into_iter();
    Ok(counts
        .map(|(word, texts, occurrences)| (word, WordCounts { texts, occurrences }))
        .collect())
}

/// Up to this many texts, the total is counted through a token that every text contains:
/// the engine visits all of them, 25 ms for a million. With more texts, the engine's own
/// count is used, in which some versions of the engine still include deleted texts.
const MAX_WALKED_TEXTS: i64 = 50_000;

/// A query's terms, each with its rarity in the index. Words beyond those that can be
/// counted are omitted.
pub fn load_terms(db: &dyn Database, query: &WordQuery) -> Result<Vec<QueryTerm>> {
    let engine_count = engine_count(db)?;
    let mut stems = query.terms();
    stems.truncate(most_counted(engine_count.unwrap_or(0)));
    let mut wanted: Vec<&str> = stems.iter().map(String::as_str).collect();
    let many = engine_count.filter(|many| *many > MAX_WALKED_TEXTS);
    if many.is_none() {
        wanted.push(EVERY_DOCUMENT);
    }
    let counts = count_words(db, &wanted)?;
    let count = |stem: &str| counts.get(stem).copied().unwrap_or_default();
    let all = many.unwrap_or_else(|| count(EVERY_DOCUMENT).texts);
    let terms = stems.into_iter();
    Ok(terms
        .map(|stem| {
            let counts = count(&stem);
            QueryTerm {
                steps: counts.steps(),
                ..QueryTerm::new(stem, counts.texts, all)
            }
        })
        .collect())
}

/// The number of texts in the index, as FTS5 stores it: the first number of the record
/// "averages", in which each byte has seven bits of the number, and the eighth bit means
/// that more follow. `None`: there is no such record.
fn engine_count(db: &dyn Database) -> Result<Option<i64>> {
    let sql = "SELECT hex(substr(block, 1, 8)) FROM cf_agents_search_data WHERE id = 1";
    let block: Option<String> = find_value(db, sql, &[])?;
    Ok(block.as_deref().and_then(first_number))
}

fn first_number(hex: &str) -> Option<i64> {
    let mut number = 0;
    for at in (0..hex.len()).step_by(2) {
        let byte = i64::from_str_radix(hex.get(at..at + 2)?, 16).ok()?;
        number = number << 7 | (byte & 0x7f);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::EVENTS_SEARCH;
    use base::database::Delete;
    use store::testing::migrated;

    #[test]
    fn the_number_of_indexed_texts_comes_from_the_engine() {
        let db = migrated();
        let add = "INSERT INTO cf_agents_search (rowid, stems, words, about)
                   SELECT value, 'rain', 'rain', 'user' FROM json_each(?1)";
        let rowids: Vec<i64> = (1..=300).collect();
        db.run(add, &[SqlValue::Text(json::encode(&rowids).unwrap())])
            .unwrap();
        assert_eq!(engine_count(&db).unwrap(), Some(300));
        Delete::from(EVENTS_SEARCH, "rowid > 200", &[])
            .run(&db)
            .unwrap();
        let count = engine_count(&db).unwrap().unwrap();
        assert!((200..=300).contains(&count), "{count}");
        assert_eq!(engine_count(&migrated()).unwrap().unwrap_or(0), 0);
    }

    #[test]
    fn the_first_varint_of_a_record_is_decoded() {
        for (hex, expected) in [
            ("BD844085DCB600", Some(1_000_000)),
            ("0000", Some(0)),
            ("7F", Some(127)),
            ("8100", Some(128)),
            ("8181", None),
            ("", None),
            ("x", None),
        ] {
            assert_eq!(first_number(hex), expected, "{hex}");
        }
    }
}
