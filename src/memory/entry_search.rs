//! The search index over entries. Words, stems and ranking work as in the log's
//! search, over another table.

use std::collections::{HashMap, HashSet};

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::Memory;
use super::definition::Definition;
use super::homes::agent::{self, RemoteBlock};
use super::homes::{nowhere, service};
use super::source::BlockHome;
use crate::base::columns::{FromRow, load};
use crate::base::database::{Database, Row, SqlValue};
use crate::base::error::Result;
use crate::base::order::sort_by;
use crate::memory::entry::Entry;
use crate::search::document::EVERY_DOCUMENT;
use crate::search::fuse::{MAX_NEAREST, Nearest, fuse};
use crate::search::query::WordQuery;
use crate::search::rank::{Candidate, QueryTerm, TermCounter, scores};
use crate::search::snippet::{Highlight, snippet};
use crate::search::stem::stem;
use crate::search::terms::load_terms;
use crate::search::words::{each_word, words};

/// The most candidates whose texts one search reads.
const MAX_CANDIDATES: i64 = 200;

/// An entry that a search found.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoundEntry {
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
}

/// What a search in another home found.
#[derive(Debug, Deserialize)]
pub struct FoundElsewhere {
    /// Best first.
    pub results: Vec<FoundEntry>,
    /// How the home's vector search took part, as the home reports it.
    pub vectors: Option<Json>,
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
    query: &str,
    limit: i64,
) -> Result<FoundElsewhere> {
    let most = usize::try_from(limit).unwrap_or(0);
    match block.home() {
        BlockHome::Agent { name, label } => {
            let home = RemoteBlock { name, label };
            let input = json!({"query": query, "limit": limit});
            agent::call(memory, block, home, "searchContext", input).await
        }
        BlockHome::Service { binding } => {
            let told = service::search(memory, block, binding, query, limit).await?;
            Ok(FoundElsewhere {
                results: read_told(told, query, most),
                vectors: None,
            })
        }
        BlockHome::Nowhere { reason } => Err(nowhere(reason)),
        BlockHome::Object | BlockHome::Bucket { .. } | BlockHome::BucketPrefix { .. } => {
            Ok(FoundElsewhere {
                results: find(memory.db, block, query, &Nearest::default(), most)?,
                vectors: None,
            })
        }
    }
}

fn read_told(told: service::ServiceResults, query: &str, most: usize) -> Vec<FoundEntry> {
    let query = WordQuery::parse(query);
    let stems = query.terms();
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
            let snippet = snippet(&result.content, &stems, &query.prefixes);
            FoundEntry {
                key: result.key,
                title: result.title,
                content: result.content,
                snippet: snippet.text,
                highlights: snippet.highlights,
                score: result.score.unwrap_or(0.0),
            }
        })
        .collect()
}

/// One ranking of the entries that match the query's words and of the nearest entries
/// by meaning. `nearest` holds the numbers of the latter.
pub fn find(
    db: &dyn Database,
    block: &Definition,
    query: &str,
    nearest: &Nearest<i64>,
    most: usize,
) -> Result<Vec<FoundEntry>> {
    let query = WordQuery::parse(query);
    if query.is_empty() {
        return Ok(Vec::new());
    }
    let params: [SqlValue; 4] = [
        query.to_fts().into(),
        block.scope.as_str().into(),
        block.content_key().into(),
        MAX_CANDIDATES.into(),
    ];
    let sql = format!(
        "SELECT {},
                -bm25(cf_agents_entries_search, 1.0, 0.4, 0.7)
           FROM cf_agents_entries_search AS found
          CROSS JOIN cf_agents_entries AS e
             ON e.number = found.rowid
          WHERE cf_agents_entries_search MATCH ?1
            AND e.scope = ?2
            AND e.block = ?3
          ORDER BY 6 DESC
          LIMIT ?4",
        FoundRow::COLUMNS
    );
    let rows: Vec<FoundRow> = load(db, &sql, &params)?;
    let terms = load_terms(db, "cf_agents_entries_search_words", &query)?;
    let candidates = rows
        .iter()
        .map(|row| to_candidate(row, &query, &terms))
        .collect::<Vec<_>>();
    let scores = scores(&candidates, &terms);
    let mut ranked: Vec<(f64, &FoundRow)> = scores.into_iter().zip(&rows).collect();
    sort_by(&mut ranked, |(a, _), (b, _)| b.total_cmp(a));
    let strangers;
    if !nearest.items.is_empty() {
        let by_words = ranked
            .iter()
            .map(|(score, row)| (row.number, *score))
            .collect::<Vec<_>>();
        let known: HashSet<i64> = by_words.iter().map(|(number, _)| *number).collect();
        let numbers = nearest
            .items
            .iter()
            .take(MAX_NEAREST)
            .map(|(number, _)| *number);
        let unknown: Vec<i64> = numbers.filter(|number| !known.contains(number)).collect();
        strangers = load_entries(db, block, &unknown)?;
        let fused = fuse(&by_words, nearest);
        ranked = with_rows(&fused, &ranked, &strangers);
    }
    let stems = query.terms();
    let found = ranked.into_iter().take(most).map(|(score, row)| {
        let snippet = snippet(&row.content, &stems, &query.prefixes);
        FoundEntry {
            key: Some(row.key.clone()),
            title: row.title.clone(),
            content: row.content.clone(),
            snippet: snippet.text,
            highlights: snippet.highlights,
            score: (score * 10_000.0).round() / 10_000.0,
        }
    });
    Ok(found.collect())
}

/// An entry that matches by words or by meaning.
struct FoundRow {
    number: i64,
    key: String,
    title: Option<String>,
    content: String,
    updated_at: i64,
    score: f64,
}

impl FoundRow {
    /// Columns of an entry `e`. The score follows them.
    const COLUMNS: &str = "e.number, e.key, e.title, e.content, e.updated_at";
}

impl FromRow<'_> for FoundRow {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            number: row.integer(0)?,
            key: row.text(1)?.to_owned(),
            title: row.find_text(2).map(str::to_owned),
            content: row.text(3)?.to_owned(),
            updated_at: row.integer(4)?,
            score: match row.0.get(5) {
                Some(SqlValue::Real(score)) => *score,
                _ => 0.0,
            },
        })
    }
}

/// The block's entries with these numbers.
fn load_entries(db: &dyn Database, block: &Definition, numbers: &[i64]) -> Result<Vec<FoundRow>> {
    let sql = format!(
        "SELECT {}, 0.0
           FROM json_each(?1) AS wanted
          CROSS JOIN cf_agents_entries AS e
             ON e.number = wanted.value
          WHERE e.scope = ?2
            AND e.block = ?3",
        FoundRow::COLUMNS
    );
    load(
        db,
        &sql,
        &[
            Json::from(numbers).to_string().into(),
            block.scope.as_str().into(),
            block.content_key().into(),
        ],
    )
}

/// Pairs ranked numbers with their rows; skips a number whose entry is deleted.
fn with_rows<'a>(
    fused: &[(i64, f64)],
    ranked: &[(f64, &'a FoundRow)],
    strangers: &'a [FoundRow],
) -> Vec<(f64, &'a FoundRow)> {
    let rows: HashMap<i64, &FoundRow> = ranked
        .iter()
        .map(|(_, row)| *row)
        .chain(strangers)
        .map(|row| (row.number, row))
        .collect();
    fused
        .iter()
        .filter_map(|(number, score)| Some((*score, *rows.get(number)?)))
        .collect()
}

fn to_candidate(row: &FoundRow, query: &WordQuery, terms: &[QueryTerm]) -> Candidate {
    let title = row.title.as_deref();
    let mut counter = TermCounter::new(terms, &query.prefixes);
    each_word(&text_of(title, &row.content), &mut |word| {
        counter.take(word);
    });
    for stem in about(&row.key, title) {
        counter.take_about(&stem);
    }
    // Entries are no dialogue: an entry's neighbours don't affect its score.
    counter.end(row.number, 0, row.updated_at, row.score)
}
