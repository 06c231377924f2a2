//! Searches messages and entries by words and by meaning, and merges both into one ranking.
//! If an embedding model is configured, texts get vectors. A search then also finds texts
//! whose vectors are near the query's, even if they share no word with it.
//!
//! Invariant: word search never waits for embeddings. A text is written and found by its
//! words whatever the model does. Vectors are added later, a bounded number at a time. If
//! the model fails, a search still finds everything that words find.

mod embedder;
pub mod entries;
pub mod events;
pub mod json_schema;
mod nearest;
pub mod questions;
mod signs;
mod vector;

pub use nearest::VectorReport;

use std::hash::Hash;

use search::fuse::Nearest;
use search::query::WordQuery;

/// The queries that are searched by meaning: all except those with phrases or word
/// prefixes. Returns their indexes and texts.
fn open_queries(queries: &[String]) -> (Vec<usize>, Vec<String>) {
    let parsed = WordQuery::parse_all(queries);
    let open = (0..).zip(queries).zip(&parsed);
    open.filter(|(_, parsed)| parsed.is_open())
        .map(|((index, query), _)| (index, query.clone()))
        .unzip()
}

/// Places the nearest results of the open queries at their indexes among all queries.
fn spread<T: Copy + Eq + Hash>(
    queries: usize,
    indexes: &[usize],
    nearest: Vec<Nearest<T>>,
) -> Vec<Nearest<T>> {
    let mut all: Vec<Nearest<T>> = (0..queries).map(|_| Nearest::default()).collect();
    for (index, nearest) in indexes.iter().zip(nearest) {
        if let Some(slot) = all.get_mut(*index) {
            *slot = nearest;
        }
    }
    all
}
