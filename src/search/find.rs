//! Finding: the index gives candidates, their texts decide the order.

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use serde_json::json;

use super::build::event_text;
use super::document::{EventText, about, role_of, text_of};
use super::fuse::{Nearest, fuse};
use super::query::Query;
use super::rank::{Candidate, full_score, scores};
use super::snippet::{Highlight, snippet};
use super::stem::stem;
use super::terms::load_terms;
use super::words::words;
use crate::database::{Database, Row, Value};
use crate::error::Result;
use crate::ids::Id;
use crate::messages::read::find_event_text;
use crate::numbers::{self, MAX_SEQ};

/// Candidates whose texts are looked at.
const MAX_CANDIDATES: i64 = 300;

/// Candidates that filters are held against, before that.
const MAX_FILTERED: i64 = 5_000;

/// Questions among the best whose answers are looked at too.
const MAX_ANSWERED: usize = 10;

/// What the ranking reads of an event `e` in a session `s`, at most 8 KiB of each
/// body; the index's score follows.
const CANDIDATE_COLUMNS: &str = "s.number, s.id, s.name, e.seq, e.id, e.action, e.created_at,
                substr(e.content, 1, 8192),
                iif(octet_length(e.tool) <= 8192, e.tool, NULL),
                iif(octet_length(e.metadata) <= 8192, e.metadata, NULL),
                iif(octet_length(e.message) <= 8192, e.message, NULL)";

/// Over an event `e`; their values are [`Search::filters`].
pub const FILTERS: &str = "(?2 IS NULL OR e.created_at >= ?2)
            AND (?3 IS NULL OR e.created_at <= ?3)
            AND (?4 IS NULL OR e.action IN (SELECT value FROM json_each(?4)))";

const ACTIONS: [&str; 6] = [
    "user_message",
    "agent_message",
    "tool_call_request",
    "tool_result",
    "system_instruction",
    "compaction",
];

/// What to look for, and where.
pub struct Search<'a> {
    pub query: &'a str,
    pub session_id: Option<&'a Id>,
    pub limit: usize,
    pub roles: Option<&'a [&'static str]>,
    pub since_ms: Option<i64>,
    pub until_ms: Option<i64>,
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    pub session_id: String,
    pub session_name: Option<String>,
    pub id: String,
    /// `user`, `assistant`, `tool` or `system`.
    pub role: String,
    pub action: String,
    pub seq: i64,
    pub created_at: i64,
    /// About 240 characters of its text, as they stand there.
    pub snippet: String,
    /// Where in the snippet the words stand that were found: start and end of each,
    /// in UTF-16 units, as JavaScript counts.
    pub highlights: Vec<Highlight>,
    /// To compare results of one search by, and nothing else.
    pub score: f64,
}

/// What words find, and the events that lie nearest by meaning: one ranking of
/// both. The index must be there.
pub fn find(
    db: &dyn Database,
    search: &Search<'_>,
    nearest: &Nearest<(i64, i64)>,
) -> Result<Vec<Hit>> {
    let query = Query::parse(search.query);
    if query.is_empty() {
        return Ok(Vec::new());
    }
    let mut rows = load_candidates(db, search, &query)?;
    let terms = load_terms(db, "cf_agents_search_words", &query)?;
    let to_candidates = |rows: &[Row]| {
        rows.iter()
            .map(|row| to_candidate(row, &query))
            .collect::<Result<Vec<_>>>()
    };
    let mut candidates = to_candidates(&rows)?;
    // An answer need not repeat its question's words: it has another chance.
    if query.phrases.is_empty() {
        let answers = load_answers(db, search, &candidates, &scores(&candidates, &terms))?;
        candidates.extend(to_candidates(&answers)?);
        rows.extend(answers);
    }
    let scores = scores(&candidates, &terms);
    let mut ranked: Vec<(f64, &Row)> = scores.into_iter().zip(&rows).collect();
    ranked.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let strangers;
    if !nearest.items.is_empty() {
        strangers = load_strangers(db, search, &candidates, nearest)?;
        ranked = fuse_with(&ranked, full_score(&terms), &strangers, nearest)?;
    }
    let stems = query.terms();
    ranked
        .into_iter()
        .take(search.limit)
        .filter_map(|(score, row)| to_hit(db, row, score, &stems, &query.prefixes).transpose())
        .collect()
}

/// The events at these places that words did not find.
fn load_strangers(
    db: &dyn Database,
    search: &Search<'_>,
    candidates: &[Candidate],
    nearest: &Nearest<(i64, i64)>,
) -> Result<Vec<Row>> {
    let known = known(candidates);
    let places = nearest.items.iter().map(|(place, _)| *place);
    let unknown: Vec<(i64, i64)> = places.filter(|place| !known.contains(place)).collect();
    load_places(db, search, &unknown)
}

/// Both rankings as one. A place whose event is gone, or is not asked for, is passed over.
fn fuse_with<'a>(
    ranked: &[(f64, &'a Row)],
    full_score: f64,
    strangers: &'a [Row],
    nearest: &Nearest<(i64, i64)>,
) -> Result<Vec<(f64, &'a Row)>> {
    let mut by_words = Vec::with_capacity(ranked.len());
    let mut rows = HashMap::new();
    for (score, row) in ranked {
        by_words.push((place_of(row)?, *score));
        rows.insert(place_of(row)?, *row);
    }
    for row in strangers {
        rows.insert(place_of(row)?, row);
    }
    Ok(fuse(&by_words, full_score, nearest)
        .into_iter()
        .filter_map(|(place, score)| Some((score, *rows.get(&place)?)))
        .collect())
}

fn place_of(row: &Row) -> Result<(i64, i64)> {
    Ok((row.integer(0)?, row.integer(3)?))
}

fn known(candidates: &[Candidate]) -> HashSet<(i64, i64)> {
    candidates
        .iter()
        .map(|candidate| (candidate.session, candidate.seq))
        .collect()
}

/// The turns right after the best questions, where they are not candidates.
fn load_answers(
    db: &dyn Database,
    search: &Search<'_>,
    candidates: &[Candidate],
    scores: &[f64],
) -> Result<Vec<Row>> {
    let mut questions: Vec<(f64, &Candidate)> = scores
        .iter()
        .copied()
        .zip(candidates)
        .filter(|(_, candidate)| candidate.is_question)
        .collect();
    questions.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let known = known(candidates);
    let wanted: Vec<(i64, i64)> = questions
        .into_iter()
        .take(MAX_ANSWERED)
        .map(|(_, candidate)| (candidate.session, candidate.seq + 1))
        .filter(|place| !known.contains(place))
        .collect();
    load_places(db, search, &wanted)
}

/// The events at these places that a search may give.
fn load_places(db: &dyn Database, search: &Search<'_>, wanted: &[(i64, i64)]) -> Result<Vec<Row>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {CANDIDATE_COLUMNS}, 0.0
           FROM json_each(?1) AS wanted
          CROSS JOIN cf_agents_sessions AS s
             ON s.number = wanted.value ->> 0
          CROSS JOIN cf_agents_events AS e
             ON e.session_id = s.id
            AND e.seq = wanted.value ->> 1
          WHERE {FILTERS}
            AND (?5 IS NULL OR s.id = ?5)"
    );
    let mut params = search.filters();
    params.insert(0, Value::Text(json!(wanted).to_string()));
    params.push(search.session_id.map(Id::as_str).into());
    db.rows(&sql, &params)
}

impl Search<'_> {
    /// The values of [`FILTERS`], from ?2 on.
    pub fn filters(&self) -> Vec<Value> {
        let actions = self.roles.map(|roles| {
            let chosen: Vec<&str> = ACTIONS
                .into_iter()
                .filter(|action| roles.contains(&role_of(action)))
                .collect();
            json!(chosen).to_string()
        });
        vec![self.since_ms.into(), self.until_ms.into(), actions.into()]
    }
}

fn load_candidates(db: &dyn Database, search: &Search<'_>, query: &Query) -> Result<Vec<Row>> {
    let is_filtered =
        search.roles.is_some() || search.since_ms.is_some() || search.until_ms.is_some();
    let sql = format!(
        "SELECT {CANDIDATE_COLUMNS}, max(-found.score)
           FROM (SELECT rowid AS id, bm25(cf_agents_search, 1.0, 0.4, 0.7) AS score
                   FROM cf_agents_search
                  WHERE cf_agents_search MATCH ?1
                    AND (?5 IS NULL
                         OR rowid BETWEEN (SELECT {first} FROM cf_agents_sessions WHERE id = ?5)
                                      AND (SELECT {last} FROM cf_agents_sessions WHERE id = ?5)
                         OR rowid IN (SELECT rowid_
                                        FROM cf_agents_search_parts
                                       WHERE number = (SELECT number FROM cf_agents_sessions WHERE id = ?5)))
                  ORDER BY score
                  LIMIT ?6) AS found
           LEFT JOIN cf_agents_search_parts AS part
             ON part.rowid_ = found.id
          CROSS JOIN cf_agents_sessions AS s
             ON s.number = coalesce(part.number, {number})
          CROSS JOIN cf_agents_events AS e
             ON e.session_id = s.id
            AND e.seq = coalesce(part.seq, {seq})
          WHERE {FILTERS}
          GROUP BY s.number, e.seq
          ORDER BY max(-found.score) DESC
          LIMIT {MAX_CANDIDATES}",
        first = numbers::place_sql("number", "0"),
        last = numbers::place_sql("number", &MAX_SEQ.to_string()),
        number = numbers::session_number_sql("found.id"),
        seq = numbers::seq_sql("found.id")
    );
    let mut params = vec![Value::Text(query.to_fts())];
    params.extend(search.filters());
    params.push(search.session_id.map(Id::as_str).into());
    params.push(
        (if is_filtered {
            MAX_FILTERED
        } else {
            MAX_CANDIDATES
        })
        .into(),
    );
    db.rows(&sql, &params)
}

fn to_candidate(row: &Row, query: &Query) -> Result<Candidate> {
    let event = EventText {
        action: row.text(5)?,
        content: row.find_text(7).unwrap_or_default(),
        tool: row.find_text(8),
        metadata: row.find_text(9),
        message: row.find_text(10),
        created_at: row.integer(6)?,
        session_name: row.find_text(2),
    };
    let text = text_of(&event);
    let words = words(&text);
    let prefixes = query
        .prefixes
        .iter()
        .filter(|prefix| words.iter().any(|word| word.starts_with(prefix.as_str())))
        .count();
    Ok(Candidate {
        session: row.integer(0)?,
        seq: row.integer(3)?,
        stems: words.iter().map(|word| stem(word)).collect(),
        about: about(&event).iter().map(|word| stem(word)).collect(),
        other_hits: prefixes,
        is_question: text.trim_end().ends_with('?'),
        created_at: event.created_at,
        index_score: match row.0.get(11) {
            Some(Value::Real(score)) => *score,
            _ => 0.0,
        },
    })
}

fn to_hit(
    db: &dyn Database,
    row: &Row,
    score: f64,
    stems: &[String],
    prefixes: &[String],
) -> Result<Option<Hit>> {
    let Ok(session_id) = Id::parse(row.text(1)?.to_owned()) else {
        return Ok(None);
    };
    let seq = row.integer(3)?;
    let Some(event) = find_event_text(db, &session_id, seq)? else {
        return Ok(None);
    };
    let snippet = snippet(&text_of(&event_text(&event)), stems, prefixes);
    Ok(Some(Hit {
        session_id: session_id.as_str().to_owned(),
        session_name: row.find_text(2).map(str::to_owned),
        role: role_of(&event.action).to_owned(),
        snippet: snippet.text,
        highlights: snippet.highlights,
        id: event.id,
        action: event.action,
        seq,
        created_at: event.created_at,
        score: (score * 10_000.0).round() / 10_000.0,
    }))
}
