//! Searches a block's entries in the block's backend: another agent, a service, or this
//! object.

use std::collections::HashMap;

use super::Memory;
use super::backends::agent::{self, RemoteBlock};
use super::backends::{service, source_error};
use super::definition::Definition;
use super::entry_query::{EntryQuery, Moment};
use super::entry_search::find;
use super::found_entry::{FoundEntry, RemoteEntries};
use super::source::BlockBackend;
use super::validity::Validity;
use base::error::Result;
use base::json::json;
use base::tags::Tags;
use search::merge::merge;
use search::query::WordQuery;
use search::query_words::QueryWords;
use search::snippet::snippet;

/// The entries that a query finds in a block stored elsewhere, best first.
pub async fn search_remote(
    memory: &Memory<'_>,
    block: &Definition,
    entry_query: &EntryQuery<'_>,
) -> Result<RemoteEntries> {
    let EntryQuery {
        queries,
        limit,
        as_of,
        filter,
    } = *entry_query;
    let most = entry_query.most();
    match block.backend() {
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
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
            agent::call(memory, block, backend, "searchContext", input).await
        }
        BlockBackend::Service { binding } => {
            let mut lists = Vec::new();
            for query in queries {
                let found = service::search(memory, block, binding, query, entry_query).await?;
                lists.push(read_results(found, query, most));
            }
            Ok(RemoteEntries {
                results: merge_results(lists, most),
                past: Vec::new(),
                vectors: None,
                is_cut: false,
            })
        }
        BlockBackend::Unresolved { reason } => Err(source_error(reason)),
        BlockBackend::Object | BlockBackend::Bucket { .. } | BlockBackend::BucketPrefix { .. } => {
            let moment = Moment {
                now_ms: memory.host.now_ms(),
                as_of,
            };
            let blocks = std::slice::from_ref(block);
            let found = find(memory.db, blocks, entry_query, &[], moment)?;
            Ok(RemoteEntries {
                results: found.results,
                past: found.past,
                vectors: None,
                is_cut: found.is_cut,
            })
        }
    }
}

fn read_results(answer: service::ServiceResults, query: &str, most: usize) -> Vec<FoundEntry> {
    let query = WordQuery::parse(query);
    let stems = query.terms();
    let mut words = QueryWords::new(stems.iter().map(String::as_str), &query.prefixes);
    let own_words = answer.content.filter(|content| !content.is_empty());
    let own_words = own_words.map(|content| service::ServiceResult {
        key: None,
        title: None,
        content,
        score: None,
    });
    own_words
        .into_iter()
        .chain(answer.results.unwrap_or_default())
        .take(most)
        .map(|result| {
            let snippet = snippet(&result.content, &mut words);
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

/// Merges a service's results for several queries into one ranking. Results with the same
/// key, or without a key and with the same content, count as one.
fn merge_results(mut lists: Vec<Vec<FoundEntry>>, most: usize) -> Vec<FoundEntry> {
    if lists.len() < 2 {
        return lists.pop().unwrap_or_default();
    }
    let mut entries: Vec<FoundEntry> = Vec::new();
    let mut indexes: HashMap<(Option<String>, String), usize> = HashMap::new();
    let mut rankings = Vec::new();
    for results in lists {
        let mut ranking = Vec::new();
        for entry in results {
            let content = match entry.key {
                Some(_) => String::new(),
                None => entry.content.clone(),
            };
            let index = *indexes
                .entry((entry.key.clone(), content))
                .or_insert(entries.len());
            ranking.push((index, entry.score));
            if index == entries.len() {
                entries.push(entry);
            }
        }
        rankings.push(ranking);
    }
    let merged = merge(rankings).into_iter().take(most);
    merged
        .filter_map(|(index, score)| {
            Some(FoundEntry {
                score,
                ..entries.get(index)?.clone()
            })
        })
        .collect()
}
