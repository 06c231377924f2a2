//! Searches the entries that are stored in this object. Words, stems and ranking work as in the
//! log's search, over another table.

use std::collections::HashMap;

use super::definition::Definition;
use super::entry::find_written_at;
use super::entry_index::{about, text_of};
use super::entry_matches::{CandidateEntries, CandidateEntry, load_matches};
use super::entry_prefixes::scan_blocks;
use super::entry_query::{EntryQuery, Moment};
use super::found_entry::{FoundEntry, PastEntry};
use super::item_note::ItemNote;
use super::past::{PastVersion, item_ref};
use super::past_search::{MAX_PAST_BYTES, PastText, find_at, load_past_texts};
use super::validity::FactState;
use base::budget::{AnswerCapacity, MAX_ANSWER_BYTES};
use base::columns::load;
use base::database::Database;
use base::error::Result;
use base::filter::Filter;
use base::json::{self, written_bytes};
use base::row;
use base::tags::Metadata;
use search::counter::{Candidate, TermCounter, query_words};
use search::fuse::{Nearest, fuse_found};
use search::merge::merge;
use search::query::WordQuery;
use search::query_words::QueryWords;
use search::rank::Ranking;
use search::snippet::snippet;
use search::stem::{may_have_stem, stem};
use search::terms::QueryTerm;
use search::weights::WEIGHTS;
use search::words::words;

/// One ranking of the entries that match the queries' words and of the nearest entries by meaning.
/// `nearest` has the numbers of the latter, for each query, or is empty.
pub fn find(
    db: &dyn Database,
    blocks: &[Definition],
    entry_query: &EntryQuery<'_>,
    nearest: &[Nearest<i64>],
    moment: Moment,
) -> Result<LocalMatches> {
    let (most, filter) = (entry_query.most(), entry_query.filter);
    let queries = WordQuery::parse_all(entry_query.queries);
    let prefixes: Vec<String> = queries.iter().flat_map(WordQuery::prefixes_alone).collect();
    let prefix_entries = scan_blocks(db, blocks, &prefixes)?;
    let past_text = match moment.as_of {
        Some(at_ms) => load_then(db, blocks, filter, at_ms)?,
        None => Vec::new(),
    };
    let mut is_cut = false;
    let mut rows: HashMap<i64, FoundRow> = HashMap::new();
    let mut stems: Vec<String> = Vec::new();
    let mut rankings = Vec::new();
    for (index, query) in queries.iter().enumerate() {
        if query.is_empty() {
            continue;
        }
        let CandidateEntries {
            entries,
            terms,
            is_cut: is_part,
        } = load_matches(db, blocks, query, &prefix_entries, filter, queries.len())?;
        is_cut |= is_part;
        let mut matching = load_ranked(db, blocks, &entries)?;
        if let Some(at_ms) = moment.as_of {
            // An entry that was written later did not exist then.
            matching.retain(|row| row.begins() <= at_ms);
            let past_text = past_text.iter().filter(|past| past.matches(query));
            matching.extend(past_text.map(|past| past.row.clone()));
        }
        let ranked = rank(&matching, query, &terms);
        rankings.push(fuse_found(ranked, nearest.get(index)));
        rows.extend(matching.into_iter().map(|row| (row.number, row)));
        stems.extend(terms.into_iter().map(|term| term.stem));
    }
    let ranked = merge(rankings);
    // The entries that only meaning found.
    let unknown: Vec<i64> = ranked
        .iter()
        .map(|(number, _)| *number)
        .filter(|number| !rows.contains_key(number))
        .collect();
    for block_index in 0..blocks.len() {
        let missing = load_entries(db, blocks, block_index, &unknown)?;
        rows.extend(missing.into_iter().map(|row| (row.number, row)));
    }
    let prefixes: Vec<String> = queries
        .into_iter()
        .flat_map(|query| query.prefixes)
        .collect();
    let has_many = blocks.len() > 1;
    let mut words = QueryWords::new(stems.iter().map(String::as_str), &prefixes);
    let mut found = LocalMatches {
        is_cut,
        ..LocalMatches::default()
    };
    let mut capacity = AnswerCapacity::of(MAX_ANSWER_BYTES);
    for (number, score) in ranked {
        if found.results.len() >= most {
            break;
        }
        // An entry that was deleted in the meantime has no row.
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
        }) = row.text_at(db, block, moment, filter)?
        else {
            if found.past.len() < most && row.is_over(db, block, moment)? {
                found.past.push(row.to_past(label));
            }
            continue;
        };
        let marks = note.tags.written_bytes() + Metadata::bytes_of(note.metadata.as_ref());
        if !capacity.takes(written_bytes(&content) + marks) {
            break;
        }
        let snippet = snippet(&content, &mut words);
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
    let mut words = query_words(terms, &query.prefixes, &[]);
    let candidates: Vec<Candidate> = rows
        .iter()
        .map(|row| to_candidate(row, &mut words))
        .collect();
    let ranking = Ranking {
        weights: &WEIGHTS,
        terms,
        asks_agent: false,
        asks_when: false,
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
    ranked: &[CandidateEntry],
) -> Result<Vec<FoundRow>> {
    let mut rows: HashMap<i64, FoundRow> = HashMap::new();
    for block_index in 0..blocks.len() {
        let of_block = ranked.iter().filter(|one| one.block == block_index);
        let numbers: Vec<i64> = of_block.map(|one| one.number).collect();
        if !numbers.is_empty() {
            let loaded = load_entries(db, blocks, block_index, &numbers)?;
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
pub struct LocalMatches {
    /// Best first.
    pub results: Vec<FoundEntry>,
    /// The entries that match and are no longer valid. Empty for a search in the past.
    pub past: Vec<PastEntry>,
    /// Some entries that match were not scanned.
    pub is_cut: bool,
}

/// The text of an entry at the time of a search.
struct FactText {
    title: Option<String>,
    content: String,
    note: ItemNote,
    written_at: i64,
}

/// An entry that matches by words or by meaning.
#[derive(Clone)]
struct FoundRow {
    number: i64,
    key: String,
    title: Option<String>,
    content: String,
    updated_at: i64,
    created_at: i64,
    note: ItemNote,
    score: f64,
    /// The index of the entry's block among those that are searched.
    block: usize,
}

row! {
    /// Columns of an entry `e`.
    for FoundRow {
        number: i64 = "e.number",
        key: &str = "e.key",
        title: Option<String> = "e.title",
        content: String = "e.content",
        updated_at: i64 = "e.updated_at",
        created_at: i64 = "e.created_at",
        note: Option<&str> = "e.note",
    }
    Ok(Self {
        number,
        key: key.to_owned(),
        title,
        content,
        updated_at,
        created_at,
        note: ItemNote::read(note, key)?,
        score: 0.0,
        block: 0,
    })
}

impl FoundRow {
    /// The text of the entry at this moment; `None`: the entry was not valid then, or did not pass
    /// the filter then.
    fn text_at(
        &self,
        db: &dyn Database,
        block: &Definition,
        moment: Moment,
        filter: Option<&Filter>,
    ) -> Result<Option<FactText>> {
        let validity = &self.note.validity;
        let known_since = moment.as_of.map(|_| self.created_at);
        let at_ms = moment.as_of.unwrap_or(moment.now_ms);
        // The text was written later, and has no earlier `validFrom`.
        if moment.as_of.is_some() && self.begins() > at_ms {
            let content_key = block.content_key();
            let past = find_at(db, &item_ref(block, &content_key, &self.key), at_ms, filter)?;
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

    /// The current time for this entry: not before the times at which the entry, and the one that
    /// replaced it, were written. So a clock that went back does not change its state.
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

/// A text that an entry had at some time, and its words.
struct EntryTextRow {
    row: FoundRow,
    words: Vec<String>,
}

impl EntryTextRow {
    fn new(row: FoundRow) -> Self {
        Self {
            words: words(&text_of(row.title.as_deref(), &row.content)),
            row,
        }
    }

    /// Whether the text matches, by the rules of the index.
    fn matches(&self, query: &WordQuery) -> bool {
        let words = &self.words;
        let holds = |phrase: &Vec<String>| words.windows(phrase.len()).any(|row| row == phrase);
        if !query.phrases.is_empty() {
            return query.phrases.iter().all(holds);
        }
        let begins = |prefix: &String| words.iter().any(|word| word.starts_with(prefix));
        let about = about(&self.row.key, self.row.title.as_deref());
        let has_stem = |wanted: &String| {
            about.contains(wanted)
                || words
                    .iter()
                    .any(|word| may_have_stem(word, wanted) && stem(word) == *wanted)
        };
        query.stems.iter().any(has_stem) || query.prefixes.iter().any(begins)
    }
}

/// The texts at this time of entries that were deleted since, or have another text now.
fn load_then(
    db: &dyn Database,
    blocks: &[Definition],
    filter: Option<&Filter>,
    at_ms: i64,
) -> Result<Vec<EntryTextRow>> {
    let mut rows = Vec::new();
    for (block, searched) in blocks.iter().enumerate() {
        let most_bytes = MAX_PAST_BYTES / blocks.len() as i64;
        let texts = load_past_texts(db, searched, at_ms, filter, most_bytes)?;
        // Each block has a range of numbers of its own, larger than the number of scanned texts.
        let first = 1 + ((block as i64) << 32);
        let texts = (first..).zip(texts);
        rows.extend(texts.map(|(text_number, PastText { key, past, number })| {
            EntryTextRow::new(FoundRow {
                // A deleted entry has no number.
                number: number.unwrap_or(-text_number),
                key,
                title: past.title,
                content: past.content.unwrap_or_default(),
                updated_at: past.written_at,
                created_at: past.written_at,
                note: past.note,
                score: 0.0,
                block,
            })
        }));
    }
    Ok(rows)
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

fn to_candidate(row: &FoundRow, words: &mut QueryWords<'_>) -> Candidate {
    let title = row.title.as_deref();
    let mut counter = TermCounter::new(words);
    counter.read(&text_of(title, &row.content));
    for stem in about(&row.key, title) {
        counter.take_about(&stem);
    }
    // Entries are not a dialogue: an entry's neighbors don't affect its score.
    counter.end(row.number, 0, row.updated_at, row.score)
}
