//! Finds the entries that a learning pass shows to the model in addition to the events. The model
//! can't replace or retire an entry that it does not see, so each part of the conversation is
//! searched for, in a bounded number of searches.

use std::collections::BTreeSet;

use crate::capacity::{LINE_BYTES, RequestCapacity};
use crate::material::MaterialEvent;
use crate::target::PassTarget;
use base::error::Result;
use memory::Memory;
use memory::definition::Definition;
use memory::entry::Entry;
use memory::entry_query::{EntryQuery, Moment};
use memory::entry_search;
use memory::found_entry::FoundEntry;
use memory::origin::Origin;
use recall::entries::search;
use search::words::{is_stop_word, words};

/// The most entries that a learning pass shows in addition to the events, and the most bytes of
/// their texts.
const MAX_ENTRIES: usize = 40;
const MAX_ENTRY_BYTES: usize = 16 << 10;

/// The most searches for these entries, and the most different words and bytes of each: a
/// search reads 48 words and 2,000 characters.
const MAX_SEARCHES: usize = 24;
const MAX_QUERY_WORDS: usize = 40;
const MAX_QUERY_BYTES: usize = 1_800;

/// How long the searches of a learning pass use meanings. A search in progress then completes, and
/// the searches after it use only words.
const MEANINGS_MS: i64 = 10_000;

/// The entries that the events are about: the results of searches for the events' words, the best
/// of each search first.
pub async fn find_related(
    memory: &Memory<'_>,
    target: &PassTarget,
    shown: &[MaterialEvent],
    capacity: &RequestCapacity,
) -> Result<Vec<Entry>> {
    let block = &target.block;
    let started_at = memory.host.now_ms();
    let mut asks_meanings = true;
    let mut rankings = Vec::new();
    for query in queries_for(shown) {
        let found = if asks_meanings {
            let entry_query = query_of(std::slice::from_ref(&query));
            let found = search(memory, std::slice::from_ref(block), &entry_query).await?;
            // A model that fails once would fail in each search of this learning pass.
            let has_failed = found.vectors.is_some_and(|vectors| vectors.error.is_some());
            let has_time = memory.host.now_ms() - started_at < MEANINGS_MS;
            asks_meanings = has_time && !has_failed;
            found.results
        } else {
            search_words(memory, block, query)?
        };
        let keys: Vec<String> = found.into_iter().filter_map(|found| found.key).collect();
        rankings.push(keys);
    }
    let mut touched: Vec<Entry> = Vec::new();
    let mut bytes = 0;
    for rank in 0..MAX_ENTRIES {
        for key in rankings.iter().filter_map(|keys| keys.get(rank)) {
            let is_here = touched.iter().any(|entry| entry.key == *key);
            let entry = if is_here {
                None
            } else {
                target.find_entry(memory, key)?
            };
            let Some((entry, _)) = entry else { continue };
            bytes += entry.content.len().min(MAX_ENTRY_BYTES / 4);
            let lines = bytes + (touched.len() + 1) * LINE_BYTES;
            let is_full = bytes > MAX_ENTRY_BYTES || lines > capacity.entries;
            if is_full || touched.len() >= MAX_ENTRIES {
                return Ok(touched);
            }
            touched.push(entry);
        }
    }
    Ok(touched)
}

/// The entries that share words with what is retracted.
pub fn find_alike(memory: &Memory<'_>, target: &PassTarget, subject: &str) -> Result<Vec<Entry>> {
    let found = search_words(memory, &target.block, subject.to_owned())?;
    let mut alike = Vec::new();
    for key in found.into_iter().filter_map(|found| found.key) {
        let entry = target.find_entry(memory, &key)?;
        alike.extend(entry.map(|(entry, _)| entry));
    }
    Ok(alike)
}

fn search_words(memory: &Memory<'_>, block: &Definition, query: String) -> Result<Vec<FoundEntry>> {
    let moment = Moment {
        now_ms: memory.host.now_ms(),
        as_of: None,
    };
    let blocks = std::slice::from_ref(block);
    let found = entry_search::find(memory.db, blocks, &query_of(&[query]), &[], moment)?;
    Ok(found.results)
}

fn query_of(queries: &[String]) -> EntryQuery<'_> {
    EntryQuery {
        queries,
        limit: MAX_ENTRIES as i64,
        as_of: None,
        filter: None,
    }
}

/// The queries: all that users said, split where a search would read no more words.
fn queries_for(shown: &[MaterialEvent]) -> Vec<String> {
    let messages = shown
        .iter()
        .rev()
        .filter(|event| matches!(event.speaker, Origin::User | Origin::Import));
    let mut queries: Vec<String> = Vec::new();
    let mut query = String::new();
    let mut stems = BTreeSet::new();
    for event in messages {
        // A quotation mark would start a phrase, and a star would make a prefix.
        let text = event.text.replace(['"', '\u{201C}', '\u{201D}', '*'], " ");
        for word in text.split_whitespace() {
            stems.extend(words(word).into_iter().filter(|word| !is_stop_word(word)));
            if stems.len() > MAX_QUERY_WORDS || query.len() + word.len() > MAX_QUERY_BYTES {
                queries.push(std::mem::take(&mut query));
                stems = words(word)
                    .into_iter()
                    .filter(|word| !is_stop_word(word))
                    .collect();
            }
            query.push_str(word);
            query.push(' ');
        }
    }
    queries.push(query);
    queries.retain(|query| !words(query).is_empty());
    queries.truncate(MAX_SEARCHES);
    queries
}
