//! The search index over entries. Words, stems and ranking work as in the log's
//! search, over another table.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::Memory;
use super::definition::Definition;
use super::entry_matches::{LikelyEntries, LikelyEntry, load_matches};
use super::homes::agent::{self, RemoteBlock};
use super::homes::{nowhere, service};
use super::origin::Origin;
use super::past::{ItemNote, PastVersion, SaidThen, find_at, load_said_then, place};
use super::source::BlockHome;
use super::validity::{FactState, Validity};
use crate::base::budget::{AnswerRoom, MAX_ANSWER_BYTES};
use crate::base::columns::{FromRow, load};
use crate::base::database::{Database, Row};
use crate::base::error::Result;
use crate::base::filter::Filter;
use crate::base::json::{self, RawValue, json, written_bytes};
use crate::base::tags::{Metadata, Tags};
use crate::memory::entry::{Entry, find_written_at};
use crate::search::asked::AskedWords;
use crate::search::candidates::most_candidates;
use crate::search::counter::{Candidate, TermCounter, asked};
use crate::search::document::EVERY_DOCUMENT;
use crate::search::fuse::{Nearest, fuse_found};
use crate::search::merge::merge;
use crate::search::query::WordQuery;
use crate::search::rank::Ranking;
use crate::search::snippet::{Highlight, snippet};
use crate::search::stem::{may_have_stem, stem};
use crate::search::terms::QueryTerm;
use crate::search::weights::WEIGHTS;
use crate::search::words::words;

/// An entry that a search found.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FoundEntry {
    /// The block that the entry is in, if several were searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub key: Option<String>,
    pub title: Option<String>,
    pub content: String,
    /// About 240 characters of the content, unchanged.
    pub snippet: String,
    /// Start and end of each found word in the snippet, in UTF-16 units, as
    /// JavaScript counts.
    pub highlights: Vec<Highlight>,
    /// Comparable only with other scores of the same search.
    pub score: f64,
    /// What callers wrote on the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// Who the text comes from. Absent: a service keeps the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
    /// The events that the text comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// When the text was written. Absent: a service keeps the entry.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<i64>,
    #[serde(flatten)]
    pub validity: Validity,
}

/// A fact that matches the query and holds no longer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PastEntry {
    /// The block that the entry is in, if several were searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    pub key: String,
    pub title: Option<String>,
    #[serde(flatten)]
    pub validity: Validity,
}

/// The time that a search asks about.
#[derive(Clone, Copy)]
pub struct Moment {
    pub now_ms: i64,
    /// `None`: now.
    pub as_of: Option<i64>,
}

/// What a search of entries looks for.
#[derive(Clone, Copy)]
pub struct EntryQuery<'a> {
    pub queries: &'a [String],
    pub limit: i64,
    /// A time: what held then is searched. `None`: now.
    pub as_of: Option<i64>,
    /// What an entry must have.
    pub filter: Option<&'a Filter>,
}

impl EntryQuery<'_> {
    pub fn most(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(0)
    }
}

/// The entries that a search in another home found.
#[derive(Debug, Deserialize)]
pub struct FoundElsewhere {
    /// Best first.
    pub results: Vec<FoundEntry>,
    #[serde(default)]
    pub past: Vec<PastEntry>,
    /// How the home's vector search took part, as the home reports it.
    pub vectors: Option<Box<RawValue>>,
}

/// Adds an entry to the index. Part of the transaction that writes the entry.
pub fn index_entry(db: &dyn Database, number: i64, entry: &Entry) -> Result<()> {
    let text = text_of(entry.title.as_deref(), &entry.content);
    let words = words(&text);
    let stems: Vec<String> = words.iter().map(|word| stem(word)).collect();
    let mut about = about(&entry.key, entry.title.as_deref());
    about.push(EVERY_DOCUMENT.to_owned());
    db.run(
        "INSERT INTO cf_agents_entries_search (rowid, stems, words, about)
         VALUES (?1, ?2, ?3, ?4)",
        &[
            number.into(),
            stems.join(" ").into(),
            words.join(" ").into(),
            about.join(" ").into(),
        ],
    )
}

/// Removes an entry and its vector from the index. Part of the transaction that
/// deletes or changes the entry.
pub fn unindex_entry(db: &dyn Database, number: i64) -> Result<()> {
    db.run(
        "DELETE FROM cf_agents_entries_search WHERE rowid = ?1",
        &[number.into()],
    )?;
    db.run(
        "DELETE FROM cf_agents_entry_vectors WHERE number = ?1",
        &[number.into()],
    )
}

fn text_of(title: Option<&str>, content: &str) -> String {
    match title {
        Some(title) => format!("{title}\n{content}"),
        None => content.to_owned(),
    }
}

/// Stems of the entry's key and title, which count in addition to its text.
fn about(key: &str, title: Option<&str>) -> Vec<String> {
    let mut found = words(key);
    found.extend(words(title.unwrap_or_default()));
    found.iter().map(|word| stem(word)).collect()
}

/// The entries that a query finds in a block that lives elsewhere, best first.
pub async fn search_elsewhere(
    memory: &Memory<'_>,
    block: &Definition,
    asked: &EntryQuery<'_>,
) -> Result<FoundElsewhere> {
    let EntryQuery {
        queries,
        limit,
        as_of,
        filter,
    } = *asked;
    let most = asked.most();
    match block.home() {
        BlockHome::Agent { name, label } => {
            let home = RemoteBlock { name, label };
            let mut input = match queries {
                [query] => json!({"query": query, "limit": limit}),
                _ => json!({"queries": queries, "limit": limit}),
            };
            if let (Some(input), Some(as_of)) = (input.as_object_mut(), as_of) {
                input.insert("asOf".to_owned(), as_of.into());
            }
            if let (Some(input), Some(filter)) = (input.as_object_mut(), filter) {
                input.insert("where".to_owned(), filter.to_json());
            }
            agent::call(memory, block, home, "searchContext", input).await
        }
        BlockHome::Service { binding } => {
            let mut told = Vec::new();
            for query in queries {
                let found = service::search(memory, block, binding, query, asked).await?;
                told.push(read_told(found, query, most));
            }
            Ok(FoundElsewhere {
                results: merge_told(told, most),
                past: Vec::new(),
                vectors: None,
            })
        }
        BlockHome::Nowhere { reason } => Err(nowhere(reason)),
        BlockHome::Object | BlockHome::Bucket { .. } | BlockHome::BucketPrefix { .. } => {
            let moment = Moment {
                now_ms: memory.host.now_ms(),
                as_of,
            };
            let blocks = std::slice::from_ref(block);
            let found = find(memory.db, blocks, asked, &[], moment)?;
            Ok(FoundElsewhere {
                results: found.results,
                past: found.past,
                vectors: None,
            })
        }
    }
}

fn read_told(told: service::ServiceResults, query: &str, most: usize) -> Vec<FoundEntry> {
    let query = WordQuery::parse(query);
    let stems = query.terms();
    let mut asked = AskedWords::new(stems.iter().map(String::as_str), &query.prefixes);
    let own_words = told.content.filter(|content| !content.is_empty());
    let own_words = own_words.map(|content| service::ServiceResult {
        key: None,
        title: None,
        content,
        score: None,
    });
    own_words
        .into_iter()
        .chain(told.results.unwrap_or_default())
        .take(most)
        .map(|result| {
            let snippet = snippet(&result.content, &mut asked);
            FoundEntry {
                label: None,
                key: result.key,
                title: result.title,
                content: result.content,
                snippet: snippet.text,
                highlights: snippet.highlights,
                score: result.score.unwrap_or(0.0),
                metadata: None,
                tags: Tags::default(),
                source: None,
                events: Vec::new(),
                updated_at: None,
                validity: Validity::default(),
            }
        })
        .collect()
}

/// One ranking of what a service told of each query. Results with the same key, or without a
/// key with the same content, are one.
fn merge_told(mut told: Vec<Vec<FoundEntry>>, most: usize) -> Vec<FoundEntry> {
    if told.len() < 2 {
        return told.pop().unwrap_or_default();
    }
    let mut entries: Vec<FoundEntry> = Vec::new();
    let mut places: HashMap<(Option<String>, String), usize> = HashMap::new();
    let mut rankings = Vec::new();
    for results in told {
        let mut ranking = Vec::new();
        for entry in results {
            let content = match entry.key {
                Some(_) => String::new(),
                None => entry.content.clone(),
            };
            let place = *places
                .entry((entry.key.clone(), content))
                .or_insert(entries.len());
            ranking.push((place, entry.score));
            if place == entries.len() {
                entries.push(entry);
            }
        }
        rankings.push(ranking);
    }
    let merged = merge(rankings).into_iter().take(most);
    merged
        .filter_map(|(place, score)| {
            Some(FoundEntry {
                score,
                ..entries.get(place)?.clone()
            })
        })
        .collect()
}

/// One ranking of the entries that match the queries' words and of the nearest entries by
/// meaning. `nearest` holds the numbers of the latter, for each query, or nothing.
pub fn find(
    db: &dyn Database,
    blocks: &[Definition],
    asked: &EntryQuery<'_>,
    nearest: &[Nearest<i64>],
    moment: Moment,
) -> Result<FoundHere> {
    let (most, filter) = (asked.most(), asked.filter);
    let queries = WordQuery::parse_all(asked.queries);
    let mut rows: HashMap<i64, FoundRow> = HashMap::new();
    let mut stems: Vec<String> = Vec::new();
    let mut rankings = Vec::new();
    for (place, query) in queries.iter().enumerate() {
        if query.is_empty() {
            continue;
        }
        let LikelyEntries { entries, terms } =
            load_matches(db, blocks, query, filter, most_candidates(queries.len()))?;
        let mut matching = load_ranked(db, blocks, &entries)?;
        if let Some(at_ms) = moment.as_of {
            // An entry that was written later was not there then.
            matching.retain(|row| row.begins() <= at_ms);
            for place in 0..blocks.len() {
                matching.extend(load_then(db, blocks, place, query, filter, at_ms)?);
            }
        }
        let ranked = rank(&matching, query, &terms);
        rankings.push(fuse_found(ranked, nearest.get(place)));
        rows.extend(matching.into_iter().map(|row| (row.number, row)));
        stems.extend(terms.into_iter().map(|term| term.stem));
    }
    let ranked = merge(rankings);
    // Those that meaning alone found.
    let unknown: Vec<i64> = ranked
        .iter()
        .map(|(number, _)| *number)
        .filter(|number| !rows.contains_key(number))
        .collect();
    for place in 0..blocks.len() {
        let strangers = load_entries(db, blocks, place, &unknown)?;
        rows.extend(strangers.into_iter().map(|row| (row.number, row)));
    }
    let prefixes: Vec<String> = queries
        .into_iter()
        .flat_map(|query| query.prefixes)
        .collect();
    let has_many = blocks.len() > 1;
    let mut asked = AskedWords::new(stems.iter().map(String::as_str), &prefixes);
    let mut found = FoundHere::default();
    let mut room = AnswerRoom::of(MAX_ANSWER_BYTES);
    for (number, score) in ranked {
        if found.results.len() >= most {
            break;
        }
        // An entry that is deleted meanwhile has no row.
        let Some(row) = rows.get(&number) else {
            continue;
        };
        let Some(block) = blocks.get(row.block) else {
            continue;
        };
        let label = has_many.then(|| block.label.as_str().to_owned());
        let Some(FactText {
            title,
            content,
            note,
            written_at,
        }) = row.said_at(db, block, moment, filter)?
        else {
            if found.past.len() < most && row.is_over(db, block, moment)? {
                found.past.push(row.to_past(label));
            }
            continue;
        };
        let marks = note.tags.written_bytes() + Metadata::bytes_of(note.metadata.as_ref());
        if !room.takes(written_bytes(&content) + marks) {
            break;
        }
        let snippet = snippet(&content, &mut asked);
        found.results.push(FoundEntry {
            label,
            key: Some(row.key.clone()),
            title,
            content,
            snippet: snippet.text,
            highlights: snippet.highlights,
            score: (score * 10_000.0).round() / 10_000.0,
            source: Some(note.origin()),
            events: note.source_events(),
            metadata: note.metadata,
            tags: note.tags,
            updated_at: Some(written_at),
            validity: note.validity,
        });
    }
    Ok(found)
}

/// The numbers of the entries, best first, as a query's words rank them.
fn rank(rows: &[FoundRow], query: &WordQuery, terms: &[QueryTerm]) -> Vec<(i64, f64)> {
    let mut asked = asked(terms, &query.prefixes);
    let candidates: Vec<Candidate> = rows
        .iter()
        .map(|row| to_candidate(row, &mut asked))
        .collect();
    let ranking = Ranking {
        weights: &WEIGHTS,
        terms,
        asks_agent: false,
    };
    let scores = ranking.scores(&candidates);
    let mut ranked: Vec<(i64, f64)> = rows.iter().map(|row| row.number).zip(scores).collect();
    ranked.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    ranked
}

/// The rows of ranked entries, in their order.
fn load_ranked(
    db: &dyn Database,
    blocks: &[Definition],
    ranked: &[LikelyEntry],
) -> Result<Vec<FoundRow>> {
    let mut rows: HashMap<i64, FoundRow> = HashMap::new();
    for place in 0..blocks.len() {
        let of_block = ranked.iter().filter(|one| one.block == place);
        let numbers: Vec<i64> = of_block.map(|one| one.number).collect();
        if !numbers.is_empty() {
            let loaded = load_entries(db, blocks, place, &numbers)?;
            rows.extend(loaded.into_iter().map(|row| (row.number, row)));
        }
    }
    let found = ranked.iter().filter_map(|one| {
        let row = rows.remove(&one.number)?;
        Some(FoundRow {
            score: one.score,
            ..row
        })
    });
    Ok(found.collect())
}

/// The entries that a search found here.
#[derive(Default)]
pub struct FoundHere {
    /// Best first.
    pub results: Vec<FoundEntry>,
    /// The entries that match and hold no longer. Empty for a search in the past.
    pub past: Vec<PastEntry>,
}

/// The text of an entry at the time of a search.
struct FactText {
    title: Option<String>,
    content: String,
    note: ItemNote,
    written_at: i64,
}

/// An entry that matches by words or by meaning.
struct FoundRow {
    number: i64,
    key: String,
    title: Option<String>,
    content: String,
    updated_at: i64,
    created_at: i64,
    note: ItemNote,
    score: f64,
    /// The place of the entry's block among those that are searched.
    block: usize,
}

impl FoundRow {
    /// Columns of an entry `e`.
    const COLUMNS: &str = "e.number, e.key, e.title, e.content, e.updated_at, e.created_at, e.note";
}

impl FromRow<'_> for FoundRow {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            number: row.integer(0)?,
            key: row.text(1)?.to_owned(),
            title: row.find_text(2).map(str::to_owned),
            content: row.text(3)?.to_owned(),
            updated_at: row.integer(4)?,
            created_at: row.integer(5)?,
            note: ItemNote::read(row.find_text(6), row.text(1)?)?,
            score: 0.0,
            block: 0,
        })
    }
}

impl FoundRow {
    /// The text of the entry at this moment; `None`: the entry did not hold then, or did not
    /// pass the filter then.
    fn said_at(
        &self,
        db: &dyn Database,
        block: &Definition,
        moment: Moment,
        filter: Option<&Filter>,
    ) -> Result<Option<FactText>> {
        let validity = &self.note.validity;
        let known_since = moment.as_of.map(|_| self.created_at);
        let at_ms = moment.as_of.unwrap_or(moment.now_ms);
        // The text was written later, and nobody said that it holds since before.
        if moment.as_of.is_some() && self.begins() > at_ms {
            let content_key = block.content_key();
            let past = find_at(db, &place(block, &content_key, &self.key), at_ms, filter)?;
            let holds = |past: &PastVersion| {
                let state = past.note.validity.state(at_ms, None);
                state == FactState::Holds
            };
            return Ok(past.filter(holds).and_then(|past| {
                Some(FactText {
                    title: past.title,
                    content: past.content?,
                    note: past.note,
                    written_at: past.written_at,
                })
            }));
        }
        let at_ms = match moment.as_of {
            Some(at_ms) => at_ms,
            None => self.present(db, block, moment.now_ms)?,
        };
        if validity.state(at_ms, known_since) != FactState::Holds {
            return Ok(None);
        }
        Ok(Some(FactText {
            title: self.title.clone(),
            content: self.content.clone(),
            note: self.note.clone(),
            written_at: self.updated_at,
        }))
    }

    /// Whether the text matches, as the index would say.
    fn matches(&self, query: &WordQuery) -> bool {
        let title = self.title.as_deref();
        let words = words(&text_of(title, &self.content));
        let holds = |phrase: &Vec<String>| words.windows(phrase.len()).any(|row| row == phrase);
        if !query.phrases.is_empty() {
            return query.phrases.iter().all(holds);
        }
        let begins = |prefix: &String| words.iter().any(|word| word.starts_with(prefix));
        let about = about(&self.key, title);
        let is_there = |wanted: &String| {
            about.contains(wanted)
                || words
                    .iter()
                    .any(|word| may_have_stem(word, wanted) && stem(word) == *wanted)
        };
        query.stems.iter().any(is_there) || query.prefixes.iter().any(begins)
    }

    /// The time since when the entry has had its present text.
    fn begins(&self) -> i64 {
        self.note.validity.valid_from.unwrap_or(self.updated_at)
    }

    fn is_over(&self, db: &dyn Database, block: &Definition, moment: Moment) -> Result<bool> {
        if moment.as_of.is_some() {
            return Ok(false);
        }
        let now_ms = self.present(db, block, moment.now_ms)?;
        Ok(self.note.validity.state(now_ms, None) == FactState::Over)
    }

    /// The present as far as the entry is concerned: not before the times at which the
    /// entry, and the one that replaced it, were written. A clock that went back does not
    /// change that.
    fn present(&self, db: &dyn Database, block: &Definition, now_ms: i64) -> Result<i64> {
        let validity = &self.note.validity;
        let now_ms = now_ms.max(self.updated_at);
        match (&validity.superseded_by, validity.superseded_at) {
            (Some(by), Some(at_ms)) if at_ms > now_ms => {
                Ok(now_ms.max(find_written_at(db, block, by)?))
            }
            _ => Ok(now_ms),
        }
    }

    fn to_past(&self, label: Option<String>) -> PastEntry {
        PastEntry {
            label,
            key: self.key.clone(),
            title: self.title.clone(),
            validity: self.note.validity.clone(),
        }
    }
}

/// The texts at this time of entries that are deleted by now, or have another text. Only
/// texts that match the query are loaded.
fn load_then(
    db: &dyn Database,
    blocks: &[Definition],
    block: usize,
    query: &WordQuery,
    filter: Option<&Filter>,
    at_ms: i64,
) -> Result<Vec<FoundRow>> {
    let Some(searched) = blocks.get(block) else {
        return Ok(Vec::new());
    };
    let content_key = searched.content_key();
    let said = load_said_then(db, &searched.scope, &content_key, at_ms, filter)?;
    // Each block has numbers of its own, and more of them than texts are looked at.
    let first = 1 + ((block as i64) << 32);
    let rows = (first..)
        .zip(said)
        .map(|(place, SaidThen { key, past, number })| FoundRow {
            // An entry that is deleted has no number any more.
            number: number.unwrap_or(-place),
            key,
            title: past.title,
            content: past.content.unwrap_or_default(),
            updated_at: past.written_at,
            created_at: past.written_at,
            note: past.note,
            score: 0.0,
            block,
        });
    Ok(rows.filter(|row| row.matches(query)).collect())
}

/// The entries of one of the blocks with these numbers.
fn load_entries(
    db: &dyn Database,
    blocks: &[Definition],
    block: usize,
    numbers: &[i64],
) -> Result<Vec<FoundRow>> {
    let Some(searched) = blocks.get(block) else {
        return Ok(Vec::new());
    };
    let sql = format!(
        "SELECT {}
           FROM json_each(?1) AS wanted
          CROSS JOIN cf_agents_entries AS e
             ON e.number = wanted.value
          WHERE e.scope = ?2
            AND e.block = ?3",
        FoundRow::COLUMNS
    );
    let params = [
        json::encode(&numbers)?.into(),
        searched.scope.as_str().into(),
        searched.content_key().into(),
    ];
    let rows: Vec<FoundRow> = load(db, &sql, &params)?;
    let rows = rows.into_iter().map(|row| FoundRow { block, ..row });
    Ok(rows.collect())
}

fn to_candidate(row: &FoundRow, asked: &mut AskedWords<'_>) -> Candidate {
    let title = row.title.as_deref();
    let mut counter = TermCounter::new(asked);
    counter.read(&text_of(title, &row.content));
    for stem in about(&row.key, title) {
        counter.take_about(&stem);
    }
    // Entries are not a dialogue: an entry's neighbours don't affect its score.
    counter.end(row.number, 0, row.updated_at, row.score)
}
