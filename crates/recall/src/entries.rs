//! Searches entries of searchable blocks by words and by meaning. An entry is written
//! first. Its vector is added after the answer, or by a later search.

use super::embedder::Embedder;
use super::nearest::{
    BatchRow, MAX_EMBEDDED, PendingText, TEXT_CHARS, VectorBatch, VectorCursor, VectorFilter,
    VectorForm, VectorReport, VectorStore, embed_missing, find_nearest,
};
use super::{open_queries, spread};
use base::columns::{find, load, load_values};
use base::database::{Database, SqlValue};
use base::error::{ErrorKind, Result};
use base::filter::{Filter, FilteredColumns};
use base::json;
use memory::Memory;
use memory::definition::Definition;
use memory::entries::{check_searchable, lives_here};
use memory::entry_query::{EntryQuery, Moment};
use memory::entry_search;
use memory::entry_search_elsewhere::search_elsewhere;
use memory::found_entry::{FoundEntry, PastEntry};
use memory::pending_vectors::PendingBatch;
use models::embedding::EmbeddingModel;
use search::merge::merge;

/// How long computing the vectors of a batch of written entries may take.
const WRITE_PATIENCE_MS: i64 = 5_000;

/// The text that a vector represents: the title, then the entry's content.
const TEXT: &str = "substr(iif(e.title IS NULL, e.content, e.title || char(10) || e.content), 1,";

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
    let missing = store.load_missing_of(&numbers, &model.name())?;
    let payer = payer.as_ref();
    let embedder = Embedder {
        memory: &Memory { payer, ..*memory },
        model,
    };
    let (_, outcome) = embed_missing(&embedder, &store, &missing, WRITE_PATIENCE_MS).await;
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
    asked: &EntryQuery<'_>,
) -> Result<EntryMatches> {
    for block in blocks {
        check_searchable(block)?;
    }
    let (here, elsewhere): (Vec<Definition>, Vec<Definition>) =
        blocks.iter().cloned().partition(lives_here);
    let are_several = blocks.len() > 1;
    let mut rankings = Vec::new();
    if !here.is_empty() {
        let mut found = search_here(memory, &here, asked).await?;
        if let (true, [block]) = (are_several, here.as_slice()) {
            found.label(block);
        }
        rankings.push(found);
    }
    for block in &elsewhere {
        let found = search_elsewhere(memory, block, asked).await?;
        let mut found = EntryMatches {
            results: found.results,
            past: found.past,
            vectors: found.vectors.and_then(|told| json::decode(told.get()).ok()),
            is_cut: found.is_cut,
        };
        if are_several {
            found.label(block);
        }
        rankings.push(found);
    }
    match rankings.len() {
        0 | 1 => Ok(rankings.pop().unwrap_or_default()),
        _ => Ok(merge_matches(rankings, asked.most())),
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
                .map(|(place, entry)| (first + place, entry.score))
                .collect(),
        );
        entries.extend(matches.results.into_iter().map(Some));
        merged.past.extend(matches.past);
        merged.vectors = merged.vectors.or(matches.vectors);
        merged.is_cut |= matches.is_cut;
    }
    merged.past.truncate(most);
    for (place, score) in merge(rankings).into_iter().take(most) {
        if let Some(entry) = entries.get_mut(place).and_then(Option::take) {
            merged.results.push(FoundEntry { score, ..entry });
        }
    }
    merged
}

async fn search_here(
    memory: &Memory<'_>,
    blocks: &[Definition],
    asked: &EntryQuery<'_>,
) -> Result<EntryMatches> {
    let queries = asked.queries;
    let mut nearest = Vec::new();
    let mut report = None;
    let (places, open) = open_queries(queries);
    if !open.is_empty() {
        match EmbeddingModel::find(memory.outbound) {
            Ok(None) => {}
            Ok(Some(model)) => {
                let store = Entries {
                    db: memory.db,
                    blocks,
                    filter: asked.filter,
                };
                let embedder = Embedder { memory, model };
                let found = find_nearest(&embedder, &open, &store).await?;
                nearest = spread(queries.len(), &places, found.nearest);
                report = Some(found.report);
            }
            Err(error) => report = Some(VectorReport::failed(error)),
        }
    }
    let moment = Moment {
        now_ms: memory.host.now_ms(),
        as_of: asked.as_of,
    };
    let found = entry_search::find(memory.db, blocks, asked, &nearest, moment)?;
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

impl Entries<'_> {
    /// The given numbers whose entries have no vector of this model.
    fn load_missing_of(&self, numbers: &[i64], model: &str) -> Result<Vec<i64>> {
        load_values(
            self.db,
            "SELECT e.number
               FROM json_each(?1) AS wanted
              CROSS JOIN cf_agents_entries AS e
                 ON e.number = wanted.value
               LEFT JOIN cf_agents_entry_vectors AS v
                 ON v.number = e.number
                AND v.model = ?2
              WHERE v.number IS NULL",
            &[json::encode(&numbers)?.into(), model.into()],
        )
    }
}

impl VectorStore for Entries<'_> {
    fn db(&self) -> &dyn Database {
        self.db
    }

    /// Reads block after block, in key order, directly from the index: without a filter,
    /// the entries' rows, and so their texts, are not read.
    fn load_batch(
        &self,
        wanted: &VectorFilter<'_>,
        cursor: Option<&VectorCursor>,
    ) -> Result<VectorBatch> {
        let (place, after) = match cursor {
            Some(VectorCursor::InBlock(place, key)) => (*place, key.as_str()),
            _ => (0, ""),
        };
        let Some(block) = self.blocks.get(place) else {
            return Ok(VectorBatch::default());
        };
        let passes = match self.filter {
            None => "1".to_owned(),
            Some(filter) => filter.condition(&FilteredColumns::of_note("e.note"), "?7"),
        };
        let sql = format!(
            "SELECT {}
               FROM (SELECT e.key, e.number, v.vector, {passes} AS passes
                       FROM cf_agents_entries AS e
                       LEFT JOIN cf_agents_entry_vectors AS v
                         ON v.number = e.number
                        AND v.model = ?4
                        AND octet_length(v.vector) = ?5
                      WHERE e.scope = ?1
                        AND e.block = ?2
                        AND e.key > ?3
                      ORDER BY e.key
                      LIMIT ?6)",
            BatchRow::COLUMNS
        );
        let mut params: Vec<SqlValue> = vec![
            block.scope.as_str().into(),
            block.content_key().into(),
            after.into(),
            wanted.model.into(),
            wanted.bytes.into(),
            wanted.batch.into(),
        ];
        params.extend(self.filter.map(|filter| SqlValue::from(filter.param())));
        let row: Option<BatchRow> = find(self.db, &sql, &params)?;
        let batch = row.map(|row| VectorBatch::from_row(row, wanted.batch));
        let mut batch = batch.unwrap_or_default();
        batch.next = match batch.next {
            Some(VectorCursor::Key(key)) => Some(VectorCursor::InBlock(place, key)),
            _ if place + 1 < self.blocks.len() => {
                Some(VectorCursor::InBlock(place + 1, String::new()))
            }
            _ => None,
        };
        Ok(batch)
    }

    fn is_talk(&self) -> bool {
        false
    }

    /// A block has few entries compared to a log's messages, and each of them matters.
    fn form(&self) -> VectorForm {
        VectorForm::Characters
    }

    fn load_texts(&self, numbers: &[i64]) -> Result<Vec<PendingText>> {
        let sql = format!(
            "SELECT e.number, {TEXT} {TEXT_CHARS})
               FROM json_each(?1) AS wanted
              CROSS JOIN cf_agents_entries AS e
                 ON e.number = wanted.value"
        );
        let texts = load(self.db, &sql, &[json::encode(&numbers)?.into()])?;
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
        let sql = format!(
            "INSERT INTO cf_agents_entry_vectors (number, model, vector)
             SELECT e.number, ?2, ?3
               FROM cf_agents_entries AS e
              WHERE e.number = ?1
                AND {TEXT} {TEXT_CHARS}) = ?4
                 ON CONFLICT (number) DO UPDATE
                SET model = excluded.model,
                    vector = excluded.vector"
        );
        let params = [
            text.number.into(),
            model.into(),
            String::from_utf8_lossy(vector).into_owned().into(),
            text.stored.as_str().into(),
        ];
        self.db.run(&sql, &params)
    }
}
