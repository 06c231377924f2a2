//! Searches entries of searchable blocks by words and by meaning. An entry is written
//! first. Its vector is added after the answer, or by a later search.

use super::embedder::Embedder;
use super::nearest::{
    MAX_EMBEDDED, PendingText, TEXT_CHARS, VectorBatch, VectorCursor, VectorFilter, VectorForm,
    VectorReport, VectorStore, embed_missing, find_nearest,
};
use super::{open_queries, spread};
use base::database::Database;
use base::error::{ErrorKind, Result};
use base::filter::Filter;
use base::json;
use memory::Memory;
use memory::definition::Definition;
use memory::entries::{check_searchable, is_stored_here};
use memory::entry_query::{EntryQuery, Moment};
use memory::entry_search;
use memory::entry_vectors::{self, NewVector, WantedVectors};
use memory::found_entry::{FoundEntry, PastEntry};
use memory::pending_vectors::PendingBatch;
use memory::remote_entry_search::search_remote;
use models::embedding::EmbeddingModel;
use search::merge::merge;

/// How long computing the vectors of a batch of written entries may take.
const WRITE_TIMEOUT_MS: i64 = 5_000;

/// The result of searching blocks.
#[derive(Default)]
pub struct EntryMatches {
    /// Best first.
    pub results: Vec<FoundEntry>,
    /// Entries that match, but are no longer valid.
    pub past: Vec<PastEntry>,
    /// `None`: the search used only words, as intended.
    pub vectors: Option<VectorReport>,
    /// The search ended before it examined all matching entries.
    pub is_cut: bool,
}

/// Computes vectors for some of the written entries. Returns whether more are pending. If
/// the model fails, the queue is cleared: the model may be unavailable for long, and a
/// search computes what is missing. If a principal's limit is exhausted, only the entries
/// of that principal are dropped.
pub async fn follow_writes(memory: &Memory<'_>) -> Result<bool> {
    let pending = memory.pending_vectors;
    let PendingBatch { payer, numbers } = pending.take(MAX_EMBEDDED);
    let Some(model) = EmbeddingModel::find(memory.outbound)? else {
        pending.forget();
        return Ok(false);
    };
    let store = Entries {
        db: memory.db,
        blocks: &[],
        filter: None,
    };
    let missing = entry_vectors::load_missing(memory.db, &numbers, &model.name())?;
    let payer = payer.as_ref();
    let embedder = Embedder {
        memory: &Memory { payer, ..*memory },
        model,
    };
    let (_, outcome) = embed_missing(&embedder, &store, &missing, WRITE_TIMEOUT_MS).await;
    match outcome {
        Ok(()) => Ok(!pending.is_empty()),
        Err(error) if error.kind == Some(ErrorKind::TokenLimited) => {
            pending.forget_of(payer);
            Ok(!pending.is_empty())
        }
        Err(error) => {
            pending.forget();
            Err(error)
        }
    }
}

/// The entries that the queries find in these blocks, best first, wherever the blocks are
/// stored. Blocks in this object share one ranking, as if their entries were in one block.
/// Scores of other backends are not comparable, so their rankings are merged by rank.
pub async fn search(
    memory: &Memory<'_>,
    blocks: &[Definition],
    entry_query: &EntryQuery<'_>,
) -> Result<EntryMatches> {
    for block in blocks {
        check_searchable(block)?;
    }
    let (local, remote): (Vec<Definition>, Vec<Definition>) =
        blocks.iter().cloned().partition(is_stored_here);
    let are_several = blocks.len() > 1;
    let mut rankings = Vec::new();
    if !local.is_empty() {
        let mut found = search_local(memory, &local, entry_query).await?;
        if let (true, [block]) = (are_several, local.as_slice()) {
            found.label(block);
        }
        rankings.push(found);
    }
    for block in &remote {
        let found = search_remote(memory, block, entry_query).await?;
        let mut found = EntryMatches {
            results: found.results,
            past: found.past,
            vectors: found
                .vectors
                .and_then(|report| json::decode(report.get()).ok()),
            is_cut: found.is_cut,
        };
        if are_several {
            found.label(block);
        }
        rankings.push(found);
    }
    match rankings.len() {
        0 | 1 => Ok(rankings.pop().unwrap_or_default()),
        _ => Ok(merge_matches(rankings, entry_query.most())),
    }
}

impl EntryMatches {
    /// Labels all results with this block.
    fn label(&mut self, block: &Definition) {
        for found in &mut self.results {
            found.label = Some(block.label.as_str().to_owned());
        }
        for past in &mut self.past {
            past.label = Some(block.label.as_str().to_owned());
        }
    }
}

/// Merges the results of several backends into one ranking.
fn merge_matches(found: Vec<EntryMatches>, most: usize) -> EntryMatches {
    let mut merged = EntryMatches::default();
    let mut entries = Vec::new();
    let mut rankings = Vec::new();
    for matches in found {
        let first = entries.len();
        let scores = matches.results.iter().enumerate();
        rankings.push(
            scores
                .map(|(index, entry)| (first + index, entry.score))
                .collect(),
        );
        entries.extend(matches.results.into_iter().map(Some));
        merged.past.extend(matches.past);
        merged.vectors = merged.vectors.or(matches.vectors);
        merged.is_cut |= matches.is_cut;
    }
    merged.past.truncate(most);
    for (index, score) in merge(rankings).into_iter().take(most) {
        if let Some(entry) = entries.get_mut(index).and_then(Option::take) {
            merged.results.push(FoundEntry { score, ..entry });
        }
    }
    merged
}

async fn search_local(
    memory: &Memory<'_>,
    blocks: &[Definition],
    entry_query: &EntryQuery<'_>,
) -> Result<EntryMatches> {
    let queries = entry_query.queries;
    let mut nearest = Vec::new();
    let mut report = None;
    let (indexes, open) = open_queries(queries);
    if !open.is_empty() {
        match EmbeddingModel::find(memory.outbound) {
            Ok(None) => {}
            Ok(Some(model)) => {
                let store = Entries {
                    db: memory.db,
                    blocks,
                    filter: entry_query.filter,
                };
                let embedder = Embedder { memory, model };
                let found = find_nearest(&embedder, &open, &store).await?;
                nearest = spread(queries.len(), &indexes, found.nearest);
                report = Some(found.report);
            }
            Err(error) => report = Some(VectorReport::failed(error)),
        }
    }
    let moment = Moment {
        now_ms: memory.host.now_ms(),
        as_of: entry_query.as_of,
    };
    let found = entry_search::find(memory.db, blocks, entry_query, &nearest, moment)?;
    Ok(EntryMatches {
        results: found.results,
        past: found.past,
        vectors: report,
        is_cut: found.is_cut,
    })
}

/// The entries of some blocks.
struct Entries<'a> {
    db: &'a dyn Database,
    blocks: &'a [Definition],
    /// The filter that an entry must pass to be compared.
    filter: Option<&'a Filter>,
}

impl VectorStore for Entries<'_> {
    fn db(&self) -> &dyn Database {
        self.db
    }

    /// Block after block, in key order.
    fn load_batch(
        &self,
        wanted: &VectorFilter<'_>,
        cursor: Option<&VectorCursor>,
    ) -> Result<VectorBatch> {
        let (block_index, after) = match cursor {
            Some(VectorCursor::InBlock(block_index, key)) => (*block_index, key.as_str()),
            _ => (0, ""),
        };
        let Some(block) = self.blocks.get(block_index) else {
            return Ok(VectorBatch::default());
        };
        let wanted = WantedVectors {
            filter: self.filter,
            model: wanted.model,
            bytes: wanted.bytes,
            limit: wanted.batch,
        };
        let found = entry_vectors::load_batch(self.db, block, after, &wanted)?;
        let found = found.map(|found| VectorBatch::of_entries(found, block_index, wanted.limit));
        let mut batch = found.unwrap_or_default();
        if batch.next.is_none() && block_index + 1 < self.blocks.len() {
            batch.next = Some(VectorCursor::InBlock(block_index + 1, String::new()));
        }
        Ok(batch)
    }

    fn is_conversation(&self) -> bool {
        false
    }

    /// A block has few entries compared to a log's messages, and each of them matters.
    fn form(&self) -> VectorForm {
        VectorForm::Characters
    }

    fn load_texts(&self, numbers: &[i64]) -> Result<Vec<PendingText>> {
        let texts = entry_vectors::load_texts(self.db, numbers, TEXT_CHARS)?;
        Ok(texts
            .into_iter()
            .map(|(number, stored)| PendingText {
                number,
                stored,
                speaker: None,
            })
            .collect())
    }

    fn store(&self, text: &PendingText, model: &str, vector: &[u8]) -> Result<()> {
        let new = NewVector {
            number: text.number,
            model,
            vector: String::from_utf8_lossy(vector).into_owned(),
            text: &text.stored,
            text_chars: TEXT_CHARS,
        };
        new.store(self.db)
    }
}
