//! Orders a query's candidates from the index: by words, best first. Reads texts only
//! through a trait, so that a measurement can order the same texts with other weights.

use std::collections::HashSet;

use crate::index::candidates::{IndexMatch, IndexMatches};
use base::error::Result;
use search::counter::Candidate;
use search::query::WordQuery;
use search::rank::Ranking;
use search::weights::Weights;

/// If the query is a question: from how many candidates, best first, neighbors also become
/// candidates, and the maximum distance of a neighbor. At most 80 additional texts are
/// read. Several queries share this limit.
const MAX_SURROUNDED: usize = 20;
const SURROUNDING: i64 = 2;

/// If the query is not a question: from how many candidates that are questions, best first,
/// the next turn also becomes a candidate.
const MAX_ANSWERED: usize = 10;

/// The source of events' texts.
pub trait CandidateSource {
    /// Those of the events that exist and that the search may return, in the same order.
    fn read(&mut self, events: &[IndexMatch]) -> Result<Vec<Candidate>>;
}

/// The position of an event and its score.
pub type Ranked = ((i64, i64), f64);

/// The ranking of one query by words, best first. `queries` is the number of the search's
/// queries.
pub fn order(
    source: &mut dyn CandidateSource,
    query: &WordQuery,
    offer: &IndexMatches,
    weights: &Weights,
    queries: usize,
) -> Result<Vec<Ranked>> {
    let ranking = Ranking {
        weights,
        terms: &offer.terms,
        asks_agent: query.asks_agent,
        asks_when: query.asks_when,
    };
    let mut candidates = source.read(&offer.events)?;
    // An answer to a question, or the rest of a thought, may contain none of its words.
    if query.is_open() {
        let neighbors = find_neighbors(&ranking, &candidates, query.is_question, queries);
        candidates.extend(source.read(&neighbors)?);
    }
    let scores = ranking.scores(&candidates);
    let mut ranked: Vec<Ranked> = candidates
        .iter()
        .map(|candidate| (candidate.session, candidate.seq))
        .zip(scores)
        .collect();
    ranked.sort_by(|(a_position, a), (b_position, b)| {
        b.total_cmp(a).then(b_position.cmp(a_position))
    });
    Ok(ranked)
}

/// The turns around the best candidates that are not candidates yet. If the query is not a
/// question: only the turns directly after candidates that are questions.
fn find_neighbors(
    ranking: &Ranking<'_>,
    candidates: &[Candidate],
    query_asks: bool,
    queries: usize,
) -> Vec<IndexMatch> {
    let scores = ranking.scores(candidates);
    let mut best: Vec<(f64, &Candidate)> = scores
        .into_iter()
        .zip(candidates)
        .filter(|(_, candidate)| query_asks || candidate.is_question)
        .collect();
    best.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let (most, distances): (usize, Vec<i64>) = if query_asks {
        (
            MAX_SURROUNDED,
            (-SURROUNDING..=SURROUNDING)
                .filter(|distance| *distance != 0)
                .collect(),
        )
    } else {
        (MAX_ANSWERED, vec![1])
    };
    let mut known: HashSet<(i64, i64)> = candidates
        .iter()
        .map(|candidate| (candidate.session, candidate.seq))
        .collect();
    let around = |(_, candidate): (f64, &Candidate)| -> Vec<(i64, i64)> {
        let (session, seq) = (candidate.session, candidate.seq);
        distances
            .iter()
            .map(|distance| (session, seq + distance))
            .collect()
    };
    best.into_iter()
        .take((most / queries.max(1)).max(1))
        .flat_map(around)
        .filter(|position| known.insert(*position))
        .map(|position| IndexMatch {
            position,
            score: 0.0,
        })
        .collect()
}
