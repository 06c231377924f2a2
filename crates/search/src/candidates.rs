//! The candidates that the index offers for a query: the places of the likeliest events, and how
//! rare each of the query's words is among the searched events.
//!
//! A search within one session uses that session's rows alone. The engine's own score and
//! word counts are not used there: they cover the whole agent, and what other sessions
//! say must not change an answer. A session's rows are one range of numbers, in which its
//! words are counted. The ends of a range are integers in the statement: FTS5 ignores the
//! end of a range that is bound as a double, as every bound number is, and then visits
//! every session's rows.

use std::collections::{HashMap, HashSet};

use super::index::{FIRST_PART, OWN_PARTS};
use super::query::{WordQuery, find_word};
use super::terms::{QueryTerm, load_terms};
use crate::request::{FILTERS, SearchRequest};
use base::columns::{find, find_value, load};
use base::database::{Database, SqlValue};
use base::error::{Error, Result};
use base::json::{self, json};
use base::numbers::{MAX_SEQ, part_place, place, seq_sql, session_number_sql};

/// The most candidates whose texts are read. Several queries share them, and each has at least
/// [`LEAST_CANDIDATES`]: 480 for eight queries.
const MAX_CANDIDATES: usize = 200;
const LEAST_CANDIDATES: usize = 60;

/// The most candidates of each of so many queries.
pub fn most_candidates(queries: usize) -> usize {
    (MAX_CANDIDATES / queries.max(1)).max(LEAST_CANDIDATES)
}

/// The most candidates that the filters check, before [`most_candidates`] applies.
const MAX_FILTERED: i64 = 5_000;

/// The most events that the engine ranks, the newest first, in a search without filters: with
/// a million events, common words are in more.
const MAX_MATCHED: i64 = 15_000;

/// The most further parts of long texts that match: 7 GB of text, at 700 kB each.
const MAX_PARTS: i64 = 10_000;

/// The most rows of a session in which a word is counted and looked for, newest first. 48
/// words take half a million steps of the engine at most. In a longer session, older
/// events are found by the rarer words.
const MAX_COUNTED: i64 = 10_000;

/// An event that the index offers.
pub struct IndexMatch {
    /// The number of the event's session, and the event's `seq`.
    pub place: (i64, i64),
    pub score: f64,
}

/// The events, best first, and the query's words with their rarity.
pub struct IndexMatches {
    pub events: Vec<IndexMatch>,
    pub terms: Vec<QueryTerm>,
}

/// With `number`, only this session is searched.
pub fn load_candidates(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    query: &WordQuery,
    number: Option<i64>,
) -> Result<IndexMatches> {
    match number {
        None => {
            let terms = load_terms(db, query)?;
            Ok(IndexMatches {
                events: of_agent(db, search, query, &terms)?,
                terms,
            })
        }
        Some(number) => of_session(db, search, query, number),
    }
}

/// The words that the engine looks for: the rarest, as long as at most [`MAX_MATCHED`] events
/// hold them, and one in any case. The others are too common to say where to look, and count
/// in the texts that are read.
fn looked_for(terms: &[QueryTerm]) -> HashSet<&str> {
    let mut rarest: Vec<&QueryTerm> = terms.iter().collect();
    rarest.sort_by_key(|term| term.found);
    let mut matched = 0;
    rarest
        .into_iter()
        .enumerate()
        .take_while(|(place, term)| {
            matched += term.found;
            *place == 0 || matched <= MAX_MATCHED
        })
        .map(|(_, term)| term.stem.as_str())
        .collect()
}

/// Ranks events by the engine's score. The parts of a long text count as one event.
fn of_agent(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    query: &WordQuery,
    terms: &[QueryTerm],
) -> Result<Vec<IndexMatch>> {
    // The events that filters leave over may be rare and old, so every match is ranked then.
    let (asked, newest) = match search.is_filtered() {
        true => (query.to_fts(), String::new()),
        false => {
            // A word that no event holds must not take the place of one that some hold.
            let held: Vec<QueryTerm> = terms
                .iter()
                .filter(|term| term.found > 0)
                .cloned()
                .collect();
            let wanted = looked_for(&held);
            let is_wanted = |stem: &str| wanted.is_empty() || wanted.contains(stem);
            (
                query.to_fts_of(&is_wanted),
                format!("ORDER BY rowid DESC LIMIT {MAX_MATCHED}"),
            )
        }
    };
    let score = "-bm25(cf_agents_search, 1.0, 0.4, 0.7) AS score";
    let found = format!(
        "SELECT number, seq, max(score) AS score
           FROM (SELECT *
                   FROM (SELECT {} AS number, {} AS seq, score
                           FROM (SELECT rowid, {score}
                                   FROM cf_agents_search
                                  WHERE cf_agents_search MATCH ?1
                                    AND rowid < {FIRST_PART}
                                  {newest})
                          ORDER BY score DESC
                          LIMIT ?5)
                  UNION ALL
                 SELECT *
                   FROM (SELECT part.number, part.seq, max(found.score) AS score
                           FROM (SELECT rowid AS id, {score}
                                   FROM cf_agents_search
                                  WHERE cf_agents_search MATCH ?1
                                    AND rowid >= {FIRST_PART}
                                  ORDER BY score DESC
                                  LIMIT {MAX_PARTS}) AS found
                          CROSS JOIN cf_agents_search_parts AS part
                             ON part.rowid_ = found.id
                          GROUP BY part.number, part.seq
                          ORDER BY 3 DESC
                          LIMIT ?5))
          GROUP BY number, seq",
        session_number_sql("rowid"),
        seq_sql("rowid"),
    );
    filtered(db, search, &found, vec![asked.into()])
}

/// Ranks events by the rarity of the words that each holds; among equals the later is
/// first.
fn of_session(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    query: &WordQuery,
    number: i64,
) -> Result<IndexMatches> {
    let (first, last) = (place(number, 0), place(number, MAX_SEQ));
    let terms = query.terms();
    let wanted: Vec<String> = terms.iter().map(|term| find_word(term)).collect();
    let counts = count_in(db, &wanted, first, last)?;
    let all = count_events(db, number)?;
    let terms: Vec<QueryTerm> = terms
        .into_iter()
        .zip(&counts)
        .map(|(stem, (count, _))| QueryTerm::new(stem, *count, all))
        .collect();
    let asked: Vec<serde_json::Value> = if query.phrases.is_empty() {
        let by_stem: HashMap<&str, (&QueryTerm, i64)> = terms
            .iter()
            .zip(&counts)
            .map(|(term, (_, least))| (term.stem.as_str(), (term, *least)))
            .collect();
        let stems = query.stems.iter().filter_map(|stem| {
            let (term, least) = by_stem.get(stem.as_str())?;
            Some(json!([find_word(stem), term.rarity, least]))
        });
        let prefixes = query
            .prefixes_to_fts()
            .map(|asked| json!([asked, 1.0, first]));
        stems.chain(prefixes).collect()
    } else {
        vec![json!([query.to_fts(), 1.0, first])]
    };
    let found = format!(
        "SELECT {number} AS number, seq, sum(weight) AS score
           FROM (SELECT wanted.key, wanted.value ->> 1 AS weight,
                        {seq} AS seq
                   FROM json_each(?1) AS wanted
                  CROSS JOIN cf_agents_search AS found
                  WHERE found.cf_agents_search MATCH wanted.value ->> 0
                    AND found.rowid BETWEEN wanted.value ->> 2 AND {last}
                  UNION
                 SELECT wanted.key, wanted.value ->> 1, part.seq
                   FROM json_each(?1) AS wanted
                  CROSS JOIN cf_agents_search AS found
                  CROSS JOIN cf_agents_search_parts AS part
                     ON part.rowid_ = found.rowid
                    AND part.number = {number}
                  WHERE found.cf_agents_search MATCH wanted.value ->> 0
                    AND found.rowid BETWEEN {first_part} AND {last_part}
                  UNION
                 SELECT wanted.key, wanted.value ->> 1, part.seq
                   FROM json_each(?1) AS wanted
                  CROSS JOIN cf_agents_search_parts AS part
                     ON part.number = {number}
                    AND part.rowid_ < {OWN_PARTS}
                  CROSS JOIN cf_agents_search AS found
                  WHERE found.cf_agents_search MATCH wanted.value ->> 0
                    AND found.rowid = part.rowid_)
          GROUP BY seq
          ORDER BY score DESC, seq DESC
          LIMIT ?5",
        seq = seq_sql("found.rowid"),
        first_part = part_place(number, 0),
        last_part = part_place(number, MAX_SEQ),
    );
    let asked = json::encode(&asked)?;
    let events = filtered(db, search, &found, vec![asked.into()])?;
    Ok(IndexMatches { events, terms })
}

/// About how many events a session has, from its first and last `seq`. Two seeks, however
/// long the session is.
fn count_events(db: &dyn Database, number: i64) -> Result<i64> {
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
        "SELECT coalesce({} - {} + 1, 0)
           FROM cf_agents_sessions AS s
          WHERE s.number = ?1",
        end("DESC"),
        end("ASC"),
    );
    find_value(db, &sql, &[number.into()])?.ok_or_else(|| Error::storage("a session is missing"))
}

/// For each word, how many rows of a range hold it, and the number of the oldest counted
/// row. Counts from the newest row, up to [`MAX_COUNTED`] rows.
fn count_in(
    db: &dyn Database,
    wanted: &[String],
    first: i64,
    last: i64,
) -> Result<Vec<(i64, i64)>> {
    let sql = format!(
        "SELECT count(*), coalesce(min(id), {first})
           FROM (SELECT rowid AS id
                   FROM cf_agents_search
                  WHERE cf_agents_search MATCH ?1
                    AND rowid BETWEEN {first} AND {last}
                  ORDER BY rowid DESC
                  LIMIT {MAX_COUNTED})"
    );
    wanted
        .iter()
        .map(|word| {
            let (count, least) = find(db, &sql, &[word.as_str().into()])?
                .ok_or_else(|| Error::storage("a count is missing"))?;
            // If every row was counted, the whole range may be searched.
            Ok((count, if count < MAX_COUNTED { first } else { least }))
        })
        .collect()
}

/// The found events that the filters let through. `found` is SQL that gives number, seq
/// and score. ?1 is its own value, ?2 to ?4 are the filters', ?5 is the limit.
fn filtered(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    found: &str,
    mut params: Vec<SqlValue>,
) -> Result<Vec<IndexMatch>> {
    let is_filtered = search.is_filtered();
    let most = most_candidates(search.queries.len()) as i64;
    // An event's row is read only if there is a filter.
    let filters = if is_filtered {
        format!(
            "CROSS JOIN cf_agents_sessions AS s
                ON s.number = found.number
             CROSS JOIN cf_agents_events AS e
                ON e.session_id = s.id
               AND e.seq = found.seq
             WHERE {FILTERS} {}",
            search.session_condition("?6")
        )
    } else {
        "WHERE ?2 IS NULL AND ?3 IS NULL AND ?4 IS NULL".to_owned()
    };
    let sql = format!(
        "SELECT found.number, found.seq, found.score
           FROM ({found}) AS found
          {filters}
          ORDER BY found.score DESC, found.number DESC, found.seq DESC
          LIMIT {most}"
    );
    params.extend(search.filters());
    let limit = if is_filtered { MAX_FILTERED } else { most };
    params.push(limit.into());
    params.extend(search.session_param());
    let offered = load::<(i64, i64, Option<f64>)>(db, &sql, &params)?;
    Ok(offered
        .into_iter()
        .map(|(number, seq, score)| IndexMatch {
            place: (number, seq),
            score: score.unwrap_or(0.0),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rarest_words_are_looked_for_and_at_least_one() {
        for (found, expected) in [
            (vec![5, 100, 7], vec!["w0", "w1", "w2"]),
            (vec![14_000, 1_001, 3], vec!["w1", "w2"]),
            (vec![30_000, 40_000], vec!["w0"]),
            (vec![], vec![]),
        ] {
            let terms: Vec<QueryTerm> = (0..)
                .zip(&found)
                .map(|(place, found)| QueryTerm::new(format!("w{place}"), *found, 1_000_000))
                .collect();
            let mut wanted: Vec<&str> = looked_for(&terms).into_iter().collect();
            wanted.sort_unstable();
            assert_eq!(wanted, expected, "{found:?}");
        }
    }
}
