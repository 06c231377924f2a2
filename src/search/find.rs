//! Runs a search. The index gives candidates; their texts decide the order.

use crate::base::json;
use crate::base::order::sort_by;
use crate::search::request::{FILTERS, SearchRequest};
use std::collections::{HashMap, HashSet};

use serde::Serialize;

use super::candidates::{IndexMatch, load_candidates};
use super::document::{EventText, MAX_TEXT_BYTES, about, read_text, text_of};
use super::fuse::{Nearest, fuse};
use super::progress::find_number;
use super::query::WordQuery;
use super::rank::{Candidate, QueryTerm, TermCounter, scores};
use super::read::find_event;
use super::snippet::{Highlight, MAX_SCANNED_BYTES, snippet};
use super::stem::stem;
use super::words::WordSplitter;
use crate::base::action::StoredAction;
use crate::base::columns::FromRow;
use crate::base::database::{Database, Row, SqlValue};
use crate::base::error::Result;
use crate::base::ids::Id;

/// The most questions, best first, whose next turn becomes a candidate too.
const MAX_ANSWERED: usize = 10;

/// Events whose texts are in memory at once: 50 × 32 KiB, if a character takes one byte.
const PAGE: usize = 50;

/// Slices of 1 MB that are read of each body to cut a snippet.
const SNIPPET_SLICES: i64 = 1;

/// What the ranking reads of an event.
struct CandidateRow<'r> {
    /// The number of the event's session, and the event's `seq`.
    place: (i64, i64),
    event: EventText<'r>,
}

impl CandidateRow<'_> {
    /// Columns of an event `e` in a session `s`: 8,192 characters of its content, unless
    /// its message has them, and each other body if it has at most 8 KiB.
    const COLUMNS: &'static str = "s.number, e.seq, e.action, e.created_at, s.name,
                CASE WHEN octet_length(e.message) <= 8192 THEN NULL
                     WHEN octet_length(e.content) <= 8192 THEN e.content
                     ELSE substr(e.content, 1, 8192) END,
                iif(octet_length(e.tool) <= 8192, e.tool, NULL),
                iif(octet_length(e.metadata) <= 8192, e.metadata, NULL),
                iif(octet_length(e.message) <= 8192, e.message, NULL)";
}

impl<'r> FromRow<'r> for CandidateRow<'r> {
    fn from_row(row: &'r Row) -> Result<Self> {
        Ok(Self {
            place: (row.integer(0)?, row.integer(1)?),
            event: EventText {
                role: StoredAction::parse(row.text(2)?).role(),
                created_at: row.integer(3)?,
                session_name: row.find_text(4),
                content: row.find_text(5).unwrap_or_default(),
                tool: row.find_text(6),
                metadata: row.find_text(7),
                message: row.find_text(8),
            },
        })
    }
}

/// What a hit says about its event's session.
struct HitRow {
    /// The number of the event's session, and the event's `seq`.
    place: (i64, i64),
    session_id: String,
    session_name: Option<String>,
}

impl HitRow {
    /// Columns of an event `e` in a session `s`.
    const COLUMNS: &str = "s.number, e.seq, s.id, s.name";
}

impl FromRow<'_> for HitRow {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            place: (row.integer(0)?, row.integer(1)?),
            session_id: row.text(2)?.to_owned(),
            session_name: row.find_text(3).map(str::to_owned),
        })
    }
}

#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    pub session_id: String,
    pub session_name: Option<String>,
    pub id: String,
    #[cfg_attr(test, schemars(extend("enum" = crate::base::action::Role::ALL.map(crate::base::action::Role::name))))]
    pub role: String,
    #[cfg_attr(test, schemars(extend("enum" = crate::base::action::Action::ALL.map(crate::base::action::Action::name))))]
    pub action: String,
    pub seq: i64,
    pub created_at: i64,
    /// About 240 characters of the event's text, unchanged except for `…` at a cut.
    pub snippet: String,
    /// Where the found words are in the snippet: the start and end of each word, in
    /// UTF-16 units, as JavaScript counts.
    pub highlights: Vec<Highlight>,
    /// Compares the results of one search. Scores of different searches cannot be
    /// compared.
    pub score: f64,
}

/// Ranks the events that words find together with the events that are nearest by meaning.
pub fn find(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    nearest: &Nearest<(i64, i64)>,
) -> Result<Vec<Hit>> {
    let query = WordQuery::parse(search.query);
    let number = match search.session_id {
        Some(session_id) => find_number(db, session_id.as_str())?,
        None => None,
    };
    if query.is_empty() || (search.session_id.is_some() && number.is_none()) {
        return Ok(Vec::new());
    }
    let offer = load_candidates(db, search, &query, number)?;
    let mut reader = CandidateReader {
        db,
        search,
        query: &query,
        terms: &offer.terms,
        candidates: Vec::new(),
    };
    reader.read(&offer.events)?;
    // An answer may not repeat its question's words, so the turn after a question becomes
    // a candidate too.
    if query.phrases.is_empty() {
        let answers = reader.find_answers();
        reader.read(&answers)?;
    }
    let candidates = reader.candidates;
    let scores = scores(&candidates, &offer.terms);
    let mut ranked: Vec<((i64, i64), f64)> = candidates
        .iter()
        .map(|candidate| (candidate.session, candidate.seq))
        .zip(scores)
        .collect();
    sort_by(&mut ranked, |(a_place, a), (b_place, b)| {
        b.total_cmp(a).then(b_place.cmp(a_place))
    });
    if !nearest.items.is_empty() {
        ranked = fuse(&ranked, nearest);
    }
    to_hits(db, search, &query, &ranked)
}

/// Reads the candidates' texts, a page at a time. Keeps only what each text holds of the
/// query.
struct CandidateReader<'a> {
    db: &'a dyn Database,
    search: &'a SearchRequest<'a>,
    query: &'a WordQuery,
    terms: &'a [QueryTerm],
    candidates: Vec<Candidate>,
}

impl CandidateReader<'_> {
    /// Skips events that are gone or that the filters exclude.
    fn read(&mut self, events: &[IndexMatch]) -> Result<()> {
        for page in events.chunks(PAGE) {
            let places: Vec<(i64, i64)> = page.iter().map(|offered| offered.place).collect();
            let scores: HashMap<(i64, i64), f64> = page
                .iter()
                .map(|offered| (offered.place, offered.score))
                .collect();
            for row in load_places(self.db, self.search, CandidateRow::COLUMNS, &places)? {
                let row: CandidateRow = row.read()?;
                let index_score = scores.get(&row.place).copied().unwrap_or(0.0);
                let candidate = to_candidate(&row, self.query, self.terms, index_score);
                self.candidates.push(candidate);
            }
        }
        Ok(())
    }

    /// The turns right after the best questions, unless they are candidates already.
    fn find_answers(&self) -> Vec<IndexMatch> {
        let scores = scores(&self.candidates, self.terms);
        let mut questions: Vec<(f64, &Candidate)> = scores
            .into_iter()
            .zip(&self.candidates)
            .filter(|(_, candidate)| candidate.is_question)
            .collect();
        sort_by(&mut questions, |(a, _), (b, _)| b.total_cmp(a));
        let known: HashSet<(i64, i64)> = self
            .candidates
            .iter()
            .map(|candidate| (candidate.session, candidate.seq))
            .collect();
        questions
            .into_iter()
            .take(MAX_ANSWERED)
            .map(|(_, candidate)| (candidate.session, candidate.seq + 1))
            .filter(|place| !known.contains(place))
            .map(|place| IndexMatch { place, score: 0.0 })
            .collect()
    }
}

/// Turns the best ranked events into hits, up to the search's limit.
fn to_hits(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    query: &WordQuery,
    ranked: &[((i64, i64), f64)],
) -> Result<Vec<Hit>> {
    let stems = query.terms();
    let mut hits = Vec::new();
    for page in ranked.chunks(PAGE) {
        let places: Vec<(i64, i64)> = page.iter().map(|(place, _)| *place).collect();
        let mut rows = HashMap::new();
        for row in load_places(db, search, HitRow::COLUMNS, &places)? {
            let row: HitRow = row.read()?;
            rows.insert(row.place, row);
        }
        for (place, score) in page {
            if hits.len() == search.limit {
                return Ok(hits);
            }
            if let Some(row) = rows.get(place) {
                hits.extend(to_hit(db, row, *score, &stems, &query.prefixes)?);
            }
        }
    }
    Ok(hits)
}

/// Reads `columns` of the `wanted` events that the search may return.
fn load_places(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    columns: &str,
    wanted: &[(i64, i64)],
) -> Result<Vec<Row>> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT {columns}
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
    params.insert(0, SqlValue::Text(json::encode(&wanted)?));
    params.push(search.session_id.map(Id::as_str).into());
    db.rows(&sql, &params)
}

fn to_candidate(
    row: &CandidateRow<'_>,
    query: &WordQuery,
    terms: &[QueryTerm],
    index_score: f64,
) -> Candidate {
    let event = &row.event;
    let mut counter = TermCounter::new(terms, &query.prefixes);
    let mut splitter = WordSplitter::default();
    let mut last_char = None;
    read_text(event, MAX_TEXT_BYTES, &mut |piece| {
        last_char = piece.trim_end().chars().next_back().or(last_char);
        splitter.read(piece, &mut |word| counter.take(word));
    });
    splitter.end(&mut |word| counter.take(word));
    for word in about(event) {
        counter.take_about(&stem(&word));
    }
    let (session, seq) = row.place;
    let mut candidate = counter.end(session, seq, event.created_at, index_score);
    candidate.is_question = last_char == Some('?');
    candidate
}

fn to_hit(
    db: &dyn Database,
    row: &HitRow,
    score: f64,
    stems: &[String],
    prefixes: &[String],
) -> Result<Option<Hit>> {
    let (_, seq) = row.place;
    let Some(event) = find_event(db, &row.session_id, seq, SNIPPET_SLICES)? else {
        return Ok(None);
    };
    let text = text_of(&event.as_text(), MAX_SCANNED_BYTES);
    let snippet = snippet(&text, stems, prefixes);
    Ok(Some(Hit {
        session_id: row.session_id.clone(),
        session_name: row.session_name.clone(),
        role: event.action.role().name().to_owned(),
        snippet: snippet.text,
        highlights: snippet.highlights,
        id: event.id,
        action: event.action.name().to_owned(),
        seq: event.seq,
        created_at: event.created_at,
        score: (score * 10_000.0).round() / 10_000.0,
    }))
}
