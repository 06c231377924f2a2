//! Search candidates from one session. The search uses only that session's rows. The
//! engine's own score and word counts are not used: they cover the whole agent, and the
//! texts of other sessions must not influence an answer.
//!
//! A session's rows in the index are one range of row ids, within which its words are
//! counted. The ends of a range are literal integers in the statement: FTS5 ignores the end
//! of a range that is bound as a double, as every bound number is, and then visits every
//! session's rows.

use std::collections::HashSet;

use crate::index::OWN_PARTS;
use crate::index::candidates::{IndexMatches, engine_words, filtered, filters_cut};
use crate::index::progress::find_number;
use crate::index::request::SearchRequest;
use crate::index::session_scan::{
    MAX_READ_WHOLE, QueryTexts, ScannedEvent, ScannedSession, scan_session,
};
use base::columns::{find, find_value};
use base::database::Database;
use base::error::{Error, Result};
use base::json::{self, json};
use base::numbers::{MAX_SEQ, part_row_number, row_number, seq_sql};
use search::query::{WordQuery, find_word};
use search::stem::stem;
use search::steps::steps_of_each;
use search::terms::QueryTerm;

/// The most rows of a session in which a word is counted and searched for, newest first. 48
/// words take at most a hundred thousand steps of the engine. In a longer session, older
/// events are found by their rarer words.
const MAX_COUNTED: i64 = 2_000;

/// The same for a search with filters, which may exclude all but the oldest.
const MAX_COUNTED_FILTERED: i64 = 10_000;

/// How many of the newest additional parts of a session's long texts are searched: 170 MB
/// of text.
const MAX_PARTS_OF_SESSION: i64 = 256;

/// The only session of the search.
pub struct SearchedSession {
    number: i64,
    log: LogEnds,
    scanned: ScannedSession,
    /// All of its texts were scanned, so the index has nothing to add.
    is_read_whole: bool,
}

impl SearchedSession {
    /// `None`: the session doesn't exist.
    pub fn load(
        db: &dyn Database,
        session_id: &str,
        queries: &[WordQuery],
    ) -> Result<Option<Self>> {
        let Some(number) = find_number(db, session_id)? else {
            return Ok(None);
        };
        let log = find_log(db, number)?;
        let mut is_read_whole = log.events() <= MAX_READ_WHOLE;
        let mut scanned = scan_session(db, session_id, QueryTexts::of(queries, is_read_whole))?;
        if is_read_whole && scanned.is_cut {
            is_read_whole = false;
            scanned = scan_session(db, session_id, QueryTexts::of(queries, false))?;
        }
        Ok(Some(Self {
            number,
            log,
            scanned,
            is_read_whole,
        }))
    }
}

/// Ranks the events of a completely scanned session, like [`of_session`].
fn of_texts(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    query: &WordQuery,
    session: &SearchedSession,
) -> Result<IndexMatches> {
    let (scanned, number) = (&session.scanned, session.number);
    let count = |stem: &str| {
        let holding = scanned.events.iter();
        holding
            .filter(|event| scanned.has_stem(event, stem))
            .count() as i64
    };
    let terms: Vec<QueryTerm> = query
        .terms()
        .into_iter()
        .map(|stem| {
            let found = count(&stem);
            QueryTerm::new(stem, found, session.log.events())
        })
        .collect();
    let score = |event: &ScannedEvent| -> f64 {
        if !query.phrases.is_empty() {
            let mut phrases = query.phrases.iter();
            let has_all = phrases.all(|phrase| scanned.has_phrase(event, phrase));
            return f64::from(u8::from(has_all));
        }
        let present = terms
            .iter()
            .filter(|term| scanned.has_stem(event, &term.stem));
        let prefixes = query.prefixes.iter();
        let matching_prefixes = prefixes
            .filter(|prefix| scanned.has_prefix(event, prefix))
            .count();
        present.map(|term| term.rarity).sum::<f64>() + matching_prefixes as f64
    };
    let matching: Vec<(i64, f64)> = scanned
        .events
        .iter()
        .map(|event| (event.seq, score(event)))
        .filter(|(_, score)| *score > 0.0)
        .collect();
    let found = format!(
        "SELECT {number} AS number, value ->> 0 AS seq, value ->> 1 AS score
           FROM json_each(?1)
          ORDER BY score DESC, seq DESC
          LIMIT ?5"
    );
    Ok(IndexMatches {
        events: filtered(db, search, &found, vec![json::encode(&matching)?.into()])?,
        terms,
        is_cut: false,
    })
}

/// Ranks events by the rarity of the words that each contains; ties go to the later event.
pub fn of_session(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    query: &WordQuery,
    session: &SearchedSession,
) -> Result<IndexMatches> {
    if session.is_read_whole {
        return of_texts(db, search, query, session);
    }
    let (number, log, scanned) = (session.number, &session.log, &session.scanned);
    let (first, last) = (row_number(number, 0), row_number(number, MAX_SEQ));
    let stems = query.terms();
    let most_steps = steps_of_each(search.queries.len(), search.is_filtered());
    let most = if search.is_filtered() {
        MAX_COUNTED_FILTERED
    } else {
        MAX_COUNTED
    };
    // At least one word is searched for.
    let counts = count_in(db, &stems, (first, last), most.min(most_steps))?;
    let terms: Vec<QueryTerm> = stems
        .into_iter()
        .zip(&counts)
        .map(|(stem, count)| QueryTerm {
            steps: count.texts,
            ..QueryTerm::new(stem, log.estimate(count, first), log.events())
        })
        .collect();
    let wanted = engine_words(&terms, most_steps);
    let counted = || terms.iter().zip(&counts);
    // If the query has phrases, prefixes find nothing by themselves.
    let events_of = |prefix: &String| -> Vec<i64> {
        let events = scanned.events.iter();
        let events = events.filter(|event| scanned.has_prefix(event, prefix));
        events.map(|event| event.seq).collect()
    };
    let by_prefix: Vec<Vec<i64>> = if query.phrases.is_empty() {
        query.prefixes.iter().map(events_of).collect()
    } else {
        Vec::new()
    };
    let mut is_cut = scanned.is_cut && !by_prefix.is_empty();
    let mut matches: i64 = by_prefix.iter().map(|events| events.len() as i64).sum();
    let by_word: Vec<serde_json::Value> = if query.phrases.is_empty() {
        is_cut |=
            counted().any(|(term, count)| count.is_cut || !wanted.contains(term.stem.as_str()));
        counted()
            .filter(|(term, _)| wanted.contains(term.stem.as_str()))
            .map(|(term, count)| {
                matches += count.texts;
                json!([find_word(&term.stem), term.rarity, count.least])
            })
            .collect()
    } else {
        // An event with the phrases contains the rarest of their words.
        let in_phrases: HashSet<String> = query
            .phrases
            .iter()
            .flatten()
            .map(|word| stem(word))
            .collect();
        let rarest = counted()
            .filter(|(term, _)| in_phrases.contains(&term.stem))
            .min_by_key(|(term, _)| term.found);
        is_cut = rarest.is_some_and(|(_, count)| count.is_cut);
        matches = rarest.map_or(0, |(_, count)| count.texts);
        let least = rarest.map_or(first, |(_, count)| count.least);
        vec![json!([query.phrases_to_fts(), 1.0, least])]
    };
    let (first_part, last_part) = (part_row_number(number, 0), part_row_number(number, MAX_SEQ));
    let newest_part = "SELECT coalesce(max(rowid_), 0)
                         FROM cf_agents_search_parts
                        WHERE rowid_ BETWEEN ?1 AND ?2";
    let newest_part: i64 =
        find_value(db, newest_part, &[first_part.into(), last_part.into()])?.unwrap_or(0);
    let oldest_part = first_part.max(newest_part - MAX_PARTS_OF_SESSION + 1);
    is_cut |= oldest_part > first_part;
    let found = format!(
        "SELECT {number} AS number, seq, sum(weight) AS score
           FROM (SELECT wanted.key, wanted.value ->> 1 AS weight,
                        {seq} AS seq
                   FROM json_each(?1, '$.words') AS wanted
                  CROSS JOIN cf_agents_search AS found
                  WHERE found.cf_agents_search MATCH wanted.value ->> 0
                    AND found.rowid BETWEEN wanted.value ->> 2 AND {last}
                  UNION
                 SELECT wanted.key, wanted.value ->> 1, part.seq
                   FROM json_each(?1, '$.words') AS wanted
                  CROSS JOIN cf_agents_search AS found
                  CROSS JOIN cf_agents_search_parts AS part
                     ON part.rowid_ = found.rowid
                    AND part.number = {number}
                  WHERE found.cf_agents_search MATCH wanted.value ->> 0
                    AND found.rowid BETWEEN {oldest_part} AND {last_part}
                  UNION
                 SELECT wanted.key, wanted.value ->> 1, part.seq
                   FROM json_each(?1, '$.words') AS wanted
                  CROSS JOIN cf_agents_search_parts AS part
                     ON part.number = {number}
                    AND part.rowid_ < {OWN_PARTS}
                  CROSS JOIN cf_agents_search AS found
                  WHERE found.cf_agents_search MATCH wanted.value ->> 0
                    AND found.rowid = part.rowid_
                  UNION
                 SELECT 'prefix' || prefix.key, 1.0, event.value
                   FROM json_each(?1, '$.prefixes') AS prefix
                  CROSS JOIN json_each(prefix.value) AS event)
          GROUP BY seq
          ORDER BY score DESC, seq DESC
          LIMIT ?5",
        seq = seq_sql("found.rowid"),
    );
    let terms_json = json::encode(&json!({"words": by_word, "prefixes": by_prefix}))?;
    Ok(IndexMatches {
        events: filtered(db, search, &found, vec![terms_json.into()])?,
        terms,
        is_cut: is_cut || filters_cut(search, matches),
    })
}

/// The first and the last `seq` of a session's events.
#[derive(Default)]
struct LogEnds {
    first: i64,
    last: i64,
}

impl LogEnds {
    /// The approximate number of the session's events.
    fn events(&self) -> i64 {
        match self.last {
            0 => 0,
            last => last - self.first + 1,
        }
    }

    /// Estimates how many of the session's events contain a word, assuming that it is as
    /// frequent in older events as in those that were counted. `first` is the session's
    /// first row id.
    fn estimate(&self, count: &RangeCount, first: i64) -> i64 {
        let scanned = self.last - (count.least - first) + 1;
        if count.is_cut && scanned > 0 {
            (count.texts * self.events() / scanned).max(count.texts)
        } else {
            count.texts
        }
    }
}

/// Two seeks, however long the session is.
fn find_log(db: &dyn Database, number: i64) -> Result<LogEnds> {
    let end = |order: &str| {
        format!(
            "(SELECT e.seq
                FROM cf_agents_events AS e
               WHERE e.session_id = s.id
               ORDER BY e.seq {order}
               LIMIT 1)"
        )
    };
    let sql = format!(
        "SELECT coalesce({}, 0), coalesce({}, 0)
           FROM cf_agents_sessions AS s
          WHERE s.number = ?1",
        end("ASC"),
        end("DESC"),
    );
    let (first, last) =
        find(db, &sql, &[number.into()])?.ok_or_else(|| Error::storage("a session is missing"))?;
    Ok(LogEnds { first, last })
}

/// The number of rows in a range that contain a word.
struct RangeCount {
    texts: i64,
    /// The id of the oldest row that was counted, or the range's first id.
    least: i64,
    /// Older rows were not counted.
    is_cut: bool,
}

/// For each word, counts the rows of a range that contain it, from the newest row on, up to
/// `most` rows.
fn count_in(
    db: &dyn Database,
    stems: &[String],
    (first, last): (i64, i64),
    most: i64,
) -> Result<Vec<RangeCount>> {
    let sql = format!(
        "SELECT count(*), coalesce(min(id), {first})
           FROM (SELECT rowid AS id
                   FROM cf_agents_search
                  WHERE cf_agents_search MATCH ?1
                    AND rowid BETWEEN {first} AND {last}
                  ORDER BY rowid DESC
                  LIMIT {most})"
    );
    stems
        .iter()
        .map(|stem| {
            let (texts, least): (i64, i64) = find(db, &sql, &[find_word(stem).into()])?
                .ok_or_else(|| Error::storage("a count is missing"))?;
            let is_cut = texts >= most;
            Ok(RangeCount {
                texts,
                // If every row was counted, the whole range may be searched.
                least: if is_cut { least } else { first },
                is_cut,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_common_word_is_counted_in_the_newest_events_of_a_session() {
        let log = LogEnds {
            first: 11,
            last: 10_010,
        };
        let count = |texts: i64, least: i64, is_cut: bool| RangeCount {
            texts,
            least: 1_000_000 + least,
            is_cut,
        };
        for (counted, expected) in [
            (count(1_999, 0, false), 1_999),
            (count(2_000, 8_011, true), 10_000),
            (count(2_000, 6_011, true), 5_000),
            (count(2_000, 11, true), 2_000),
        ] {
            assert_eq!(log.estimate(&counted, 1_000_000), expected);
        }
        assert_eq!(LogEnds::default().events(), 0);
    }
}
