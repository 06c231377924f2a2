//! Candidates in a whole agent, by the engine's score.

use crate::index::FIRST_PART;
use crate::index::candidates::{IndexMatches, engine_words, filtered, filters_cut};
use crate::index::phrases::{PhraseTexts, find_floor, texts_for};
use crate::index::prefix_words::load_prefix_words;
use crate::index::request::SearchRequest;
use crate::index::term_counts::load_terms;
use base::database::Database;
use base::error::Result;
use base::numbers::{seq_sql, session_number_sql};
use search::query::{WordQuery, find_word};
use search::steps::{MAX_SCORED_STEPS, PREFIX_SHARE, steps_of_each};
use search::terms::QueryTerm;

/// The most further parts of long texts that match: 7 GB of text, at 700 kB each.
const MAX_PARTS: i64 = 10_000;

/// What the engine searches in a whole agent.
struct EngineQuery {
    /// In FTS5's syntax. Empty: no text matches.
    expression: String,
    /// The most texts that are ranked, the newest first.
    newest: i64,
    is_scored: bool,
    /// The lowest numbers of events and of parts that are scanned.
    floors: (i64, i64),
    /// The most texts that can match.
    matches: i64,
    is_cut: bool,
}

impl EngineQuery {
    fn of(expression: String, newest: i64) -> Self {
        Self {
            expression,
            newest,
            is_scored: true,
            floors: (0, FIRST_PART),
            matches: newest,
            is_cut: false,
        }
    }

    fn plan(
        db: &dyn Database,
        search: &SearchRequest<'_>,
        query: &WordQuery,
        terms: &[QueryTerm],
    ) -> Result<Self> {
        let steps = steps_of_each(search.queries.len(), search.is_filtered());
        if query.phrases.is_empty() {
            Self::of_words(db, query, terms, steps)
        } else {
            Self::of_phrases(db, query)
        }
    }

    fn of_words(
        db: &dyn Database,
        query: &WordQuery,
        terms: &[QueryTerm],
        most_steps: i64,
    ) -> Result<Self> {
        // A word that no event contains must not replace one that some contain.
        let present: Vec<QueryTerm> = terms
            .iter()
            .filter(|term| term.found > 0)
            .cloned()
            .collect();
        let wanted = engine_words(&present, most_steps);
        let mut steps_left = PREFIX_SHARE * most_steps;
        let prefix_words = load_prefix_words(db, &query.prefixes, &mut steps_left)?;
        let is_cut = prefix_words.is_cut || wanted.len() < present.len();
        let words = wanted.iter().map(|stem| find_word(stem));
        let expression: Vec<String> = words.chain(prefix_words.queries).collect();
        // At least one word is searched, in its newest texts.
        if expression.is_empty() {
            let rarest = present.iter().min_by_key(|term| term.found);
            let rarest = rarest.map(|term| (find_word(&term.stem), term.found, term.steps));
            let too_common = prefix_words.too_common;
            let too_common = too_common.map(|(word, counts)| (word, counts.texts, counts.steps()));
            if let Some((word, texts, steps)) = rarest.or(too_common) {
                return Ok(Self {
                    is_scored: steps <= MAX_SCORED_STEPS,
                    is_cut,
                    ..Self::of(word, (most_steps * texts / steps.max(1)).max(1))
                });
            }
        }
        let all_steps = (1 + PREFIX_SHARE) * most_steps;
        let of_words = present
            .iter()
            .filter(|term| wanted.contains(term.stem.as_str()));
        let of_words: i64 = of_words.map(|term| term.found).sum();
        Ok(Self {
            matches: of_words + PREFIX_SHARE * most_steps - steps_left,
            is_cut,
            ..Self::of(expression.join(" OR "), all_steps)
        })
    }

    fn of_phrases(db: &dyn Database, query: &WordQuery) -> Result<Self> {
        Ok(match texts_for(db, query)? {
            PhraseTexts::NoTexts => Self::of(String::new(), 0),
            PhraseTexts::All { most } => Self::of(query.phrases_to_fts(), most.max(1)),
            PhraseTexts::Newest { rarest, texts } => {
                let events = format!("rowid < {FIRST_PART}");
                let parts = format!("rowid >= {FIRST_PART}");
                Self {
                    is_scored: false,
                    floors: (
                        find_floor(db, &rarest, &events, texts)?,
                        find_floor(db, &rarest, &parts, texts)?.max(FIRST_PART),
                    ),
                    is_cut: true,
                    ..Self::of(query.phrases_to_fts(), texts)
                }
            }
        })
    }
}

/// Ranks events by the engine's score. The parts of a long text count as one event.
pub fn of_agent(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    query: &WordQuery,
) -> Result<IndexMatches> {
    let terms = load_terms(db, query)?;
    let plan = EngineQuery::plan(db, search, query, &terms)?;
    let is_cut = plan.is_cut || terms.len() < query.terms().len();
    if plan.expression.is_empty() {
        return Ok(IndexMatches {
            events: Vec::new(),
            terms,
            is_cut,
        });
    }
    let score = if plan.is_scored {
        "-bm25(cf_agents_search, 1.0, 0.4, 0.7) AS score"
    } else {
        "0.0 AS score"
    };
    let found = format!(
        "SELECT number, seq, max(score) AS score
           FROM (SELECT *
                   FROM (SELECT {} AS number, {} AS seq, score
                           FROM (SELECT rowid, {score}
                                   FROM cf_agents_search
                                  WHERE cf_agents_search MATCH ?1
                                    AND rowid BETWEEN {first} AND {last}
                                  ORDER BY rowid DESC
                                  LIMIT {newest})
                          ORDER BY score DESC, rowid DESC
                          LIMIT ?5)
                  UNION ALL
                 SELECT *
                   FROM (SELECT part.number, part.seq, max(found.score) AS score
                           FROM (SELECT id, score
                                   FROM (SELECT rowid AS id, {score}
                                           FROM cf_agents_search
                                          WHERE cf_agents_search MATCH ?1
                                            AND rowid >= {first_part}
                                          ORDER BY rowid DESC
                                          LIMIT {newest})
                                  ORDER BY score DESC, id DESC
                                  LIMIT {MAX_PARTS}) AS found
                          CROSS JOIN cf_agents_search_parts AS part
                             ON part.rowid_ = found.id
                          GROUP BY part.number, part.seq
                          ORDER BY 3 DESC
                          LIMIT ?5))
          GROUP BY number, seq",
        session_number_sql("rowid"),
        seq_sql("rowid"),
        last = FIRST_PART - 1,
        newest = plan.newest,
        first = plan.floors.0,
        first_part = plan.floors.1,
    );
    Ok(IndexMatches {
        events: filtered(db, search, &found, vec![plan.expression.into()])?,
        terms,
        is_cut: is_cut || filters_cut(search, plan.matches),
    })
}
