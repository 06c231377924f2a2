//! The candidates that the index returns for a query: the positions of the likeliest events, and
//! how rare each of the query's words is among the searched events.

use std::collections::HashSet;

use crate::index::request::{FILTERS, SearchRequest};
use base::columns::load;
use base::database::{Database, SqlValue};
use base::error::Result;
use search::terms::QueryTerm;

/// The most candidates whose texts are read. Several queries share them, and each has at least
/// [`LEAST_CANDIDATES`]: 480 for eight queries.
const MAX_CANDIDATES: usize = 200;
const LEAST_CANDIDATES: usize = 60;

/// The most candidates of each query, if there are this many queries.
pub fn most_candidates(queries: usize) -> usize {
    (MAX_CANDIDATES / queries.max(1)).max(LEAST_CANDIDATES)
}

/// The most candidates that the filters check, before [`most_candidates`] applies.
const MAX_FILTERED: i64 = 5_000;

/// An event that the index returns.
pub struct IndexMatch {
    /// The number of the event's session, and the event's `seq`.
    pub position: (i64, i64),
    pub score: f64,
}

/// The events, best first, and the query's words with their rarity.
pub struct IndexMatches {
    pub events: Vec<IndexMatch>,
    pub terms: Vec<QueryTerm>,
    /// Some events that match were not scanned.
    pub is_cut: bool,
}

/// The words that the engine searches: the rarest, as long as they take at most this many steps.
/// The others are too common to select texts, and count in the texts that are read.
pub fn engine_words(terms: &[QueryTerm], most_steps: i64) -> HashSet<&str> {
    let mut rarest: Vec<&QueryTerm> = terms.iter().collect();
    rarest.sort_by_key(|term| term.found);
    let mut steps = 0;
    rarest
        .into_iter()
        .take_while(|term| {
            steps += term.steps;
            steps <= most_steps
        })
        .map(|term| term.stem.as_str())
        .collect()
}

/// Whether more events match than the filters check. `matches`: the most that can match.
pub fn filters_cut(search: &SearchRequest<'_>, matches: i64) -> bool {
    search.is_filtered() && matches > MAX_FILTERED
}

/// The found events that pass the filters. `found` is SQL that returns number, seq and score. ?1 is
/// its own value, ?2 to ?4 are the filters', ?5 is the limit.
pub fn filtered(
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
            position: (number, seq),
            score: score.unwrap_or(0.0),
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rarest_words_are_searched_within_the_step_limit() {
        for (found, expected) in [
            (vec![5, 100, 7], vec!["w0", "w1", "w2"]),
            (vec![14_000, 1_001, 3], vec!["w1", "w2"]),
            (vec![30_000, 40_000], vec![]),
            (vec![], vec![]),
        ] {
            let terms: Vec<QueryTerm> = (0..)
                .zip(&found)
                .map(|(index, found)| QueryTerm::new(format!("w{index}"), *found, 1_000_000))
                .collect();
            let mut wanted: Vec<&str> = engine_words(&terms, 15_000).into_iter().collect();
            wanted.sort_unstable();
            assert_eq!(wanted, expected, "{found:?}");
        }
    }
}
