//! Runs a search. The index returns candidates; their texts decide the order.

use crate::index::request::SearchRequest;
use crate::json_schema::JsonSchema;
use std::collections::HashMap;

use serde::Serialize;

use crate::index::agent_candidates::of_agent;
use crate::index::candidates::{IndexMatch, IndexMatches};
use crate::index::order::{CandidateSource, order};
use crate::index::read::PageRow;
use crate::index::session_candidates::{SearchedSession, of_session};
use crate::index::texts::{PAGE, read_texts, wanted_events_sql};
use base::columns::load;
use base::database::Database;
use base::error::Result;
use base::row;
use search::counter::{Candidate, TermCounter, query_words};
use search::document::{EventText, MAX_TEXT_BYTES, about, find_speaker, read_text, text_of};
use search::fuse::{Nearest, fuse_found};
use search::merge::merge;
use search::query::WordQuery;
use search::query_words::QueryWords;
use search::snippet::{Highlight, MAX_SCANNED_BYTES, snippet};
use search::speaker::named_at_start;
use search::stem::stem;
use search::time_words::TIME_STEMS;
use search::weights::WEIGHTS;
use search::words::words;

/// Bytes of a hit that is read with the others, for a snippet: 2 MiB for 128 hits.
const INLINE_BYTES: usize = 16 << 10;

/// Bytes at a text's beginning in which the speaker's name may be.
const MAX_BEGINNING: usize = 64;

/// The most hits that one statement reads.
const HITS_PAGE: usize = 128;

/// Slices of 1 MB that are read of each body to cut a snippet.
const SNIPPET_SLICES: i64 = 1;

row! {
    /// A hit's event `e`, and the hit's facts about the event's session `s`.
    struct HitRow() {
        event: PageRow = PageRow::columns(&INLINE_BYTES.to_string()),
        /// The number of the event's session.
        number: i64 = "s.number",
        session_id: String = "s.id",
        session_name: Option<String> = "s.name",
    }
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    pub session_id: String,
    pub session_name: Option<String>,
    pub id: String,
    #[schemars(extend("enum" = base::action::Role::ALL.map(base::action::Role::name)))]
    pub role: String,
    #[schemars(extend("enum" = base::action::Action::ALL.map(base::action::Action::name)))]
    pub action: String,
    pub seq: i64,
    pub created_at: i64,
    /// About 240 characters of the event's text, unchanged except for `…` at a cut.
    pub snippet: String,
    /// The positions of the matching words in the snippet: the start and end of each word,
    /// in UTF-16 units.
    pub highlights: Vec<Highlight>,
    /// Can be used to compare the results of one search. Scores of different searches can't be
    /// compared.
    pub score: f64,
}

/// What a search found.
#[derive(Default)]
pub struct FoundEvents {
    /// Best first.
    pub hits: Vec<SearchHit>,
    /// The search ended before it scanned all events that match.
    pub is_cut: bool,
}

/// With a session, only this session is searched.
fn load_candidates(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    query: &WordQuery,
    session: Option<&SearchedSession>,
) -> Result<IndexMatches> {
    match session {
        None => of_agent(db, search, query),
        Some(session) => of_session(db, search, query, session),
    }
}

/// Ranks the events that words find together with the events that are nearest by meaning: `nearest`
/// has those of each query, or is empty.
pub fn find(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    nearest: &[Nearest<(i64, i64)>],
) -> Result<FoundEvents> {
    let queries = WordQuery::parse_all(search.queries);
    let session = match search.session_id {
        None => None,
        Some(session_id) => {
            let session = SearchedSession::load(db, session_id.as_str(), &queries)?;
            if session.is_none() {
                return Ok(FoundEvents::default());
            }
            session
        }
    };
    let mut stems: Vec<String> = Vec::new();
    let mut rankings = Vec::new();
    let mut is_cut = false;
    for (index, query) in queries.iter().enumerate() {
        if query.is_empty() {
            continue;
        }
        let offer = load_candidates(db, search, query, session.as_ref())?;
        is_cut |= offer.is_cut;
        let mut texts = TextReader::new(db, search, query, &offer);
        let ranked = order(&mut texts, query, &offer, &WEIGHTS, queries.len())?;
        rankings.push(fuse_found(ranked, nearest.get(index)));
        stems.extend(offer.terms.into_iter().map(|term| term.stem));
    }
    let prefixes: Vec<String> = queries
        .into_iter()
        .flat_map(|query| query.prefixes)
        .collect();
    let mut wanted = QueryWords::new(stems.iter().map(String::as_str), &prefixes);
    Ok(FoundEvents {
        hits: to_hits(db, search, &merge(rankings), &mut wanted)?,
        is_cut,
    })
}

/// Reads the candidates' texts, a page at a time. Stores only what each text contains of the query.
pub struct TextReader<'a> {
    db: &'a dyn Database,
    search: &'a SearchRequest<'a>,
    wanted: QueryWords<'a>,
}

impl<'a> TextReader<'a> {
    pub fn new(
        db: &'a dyn Database,
        search: &'a SearchRequest<'a>,
        query: &'a WordQuery,
        offer: &'a IndexMatches,
    ) -> Self {
        let marks = if query.asks_when { TIME_STEMS } else { &[] };
        Self {
            db,
            search,
            wanted: query_words(&offer.terms, &query.prefixes, marks),
        }
    }
}

impl CandidateSource for TextReader<'_> {
    /// Skips events that were deleted or that the filters exclude.
    fn read(&mut self, events: &[IndexMatch]) -> Result<Vec<Candidate>> {
        let offered: HashMap<(i64, i64), (usize, f64)> = (0..)
            .zip(events)
            .map(|(index, offered)| (offered.position, (index, offered.score)))
            .collect();
        let mut positions: Vec<(i64, i64)> =
            events.iter().map(|offered| offered.position).collect();
        // Neighbors are read together.
        positions.sort();
        let mut read = Vec::new();
        for page in positions.chunks(PAGE) {
            read_texts(self.db, self.search, page, &mut |position, event| {
                let (index, score) = offered.get(&position).copied().unwrap_or_default();
                read.push((
                    index,
                    to_candidate(position, event, &mut self.wanted, score),
                ));
            })?;
        }
        read.sort_by_key(|(a, _)| *a);
        Ok(read.into_iter().map(|(_, candidate)| candidate).collect())
    }
}

/// Turns the best ranked events into hits, up to the search's limit.
fn to_hits(
    db: &dyn Database,
    search: &SearchRequest<'_>,
    ranked: &[((i64, i64), f64)],
    wanted: &mut QueryWords<'_>,
) -> Result<Vec<SearchHit>> {
    let mut hits = Vec::new();
    let mut left = ranked;
    // Events that were deleted, or that the filters exclude, are replaced by the next ones.
    while hits.len() < search.limit && !left.is_empty() {
        let most = (search.limit - hits.len()).min(HITS_PAGE);
        let Some((page, rest)) = left.split_at_checked(most.min(left.len())) else {
            break;
        };
        left = rest;
        let positions: Vec<(i64, i64)> = page.iter().map(|(position, _)| *position).collect();
        let (events, params) = wanted_events_sql(search, &positions)?;
        let sql = format!("SELECT {} {events}", HitRow::columns());
        let rows: Vec<HitRow> = load(db, &sql, &params)?;
        let mut rows: HashMap<(i64, i64), HitRow> = rows
            .into_iter()
            .map(|row| ((row.number, row.event.seq()), row))
            .collect();
        for (position, score) in page {
            if let Some(row) = rows.remove(position) {
                hits.extend(to_hit(db, row, *score, wanted)?);
            }
        }
    }
    Ok(hits)
}

fn to_candidate(
    (session, seq): (i64, i64),
    event: &EventText<'_>,
    wanted: &mut QueryWords<'_>,
    index_score: f64,
) -> Candidate {
    let mut counter = TermCounter::new(wanted);
    let mut last_char = None;
    let mut has_number = false;
    let mut beginning = String::new();
    read_text(event, MAX_TEXT_BYTES, &mut |piece| {
        if beginning.len() < MAX_BEGINNING {
            beginning.push_str(
                piece
                    .get(..piece.floor_char_boundary(MAX_BEGINNING))
                    .unwrap_or_default(),
            );
        }
        last_char = piece.trim_end().chars().next_back().or(last_char);
        has_number |= piece.bytes().any(|byte| byte.is_ascii_digit());
        counter.read(piece);
    });
    for word in about(event) {
        counter.take_about(&stem(&word));
    }
    let mut is_by_named = false;
    for word in find_speaker(event.metadata, event.message)
        .iter()
        .flat_map(|name| words(name))
    {
        is_by_named |= counter.take_about(&stem(&word));
    }
    // In a log of several people, some write the speaker's name before the text.
    for word in named_at_start(&beginning).into_iter().flat_map(words) {
        is_by_named |= counter.asks_for(&stem(&word));
    }
    let mut candidate = counter.end(session, seq, event.created_at, index_score);
    candidate.role = event.role;
    candidate.is_question = matches!(last_char, Some('?' | '？'));
    candidate.has_number = has_number;
    candidate.is_by_named = is_by_named;
    candidate
}

fn to_hit(
    db: &dyn Database,
    row: HitRow,
    score: f64,
    wanted: &mut QueryWords<'_>,
) -> Result<Option<SearchHit>> {
    let session_id = row.session_id;
    let Some(event) = row.event.find_event(db, &session_id, SNIPPET_SLICES)? else {
        return Ok(None);
    };
    let text = text_of(&event.as_text(), MAX_SCANNED_BYTES);
    let snippet = snippet(&text, wanted);
    Ok(Some(SearchHit {
        session_id,
        session_name: row.session_name,
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
