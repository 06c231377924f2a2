//! Searches entries of searchable blocks by words and by meaning. An entry is written
//! first; its vector follows, or a later search makes it.

use super::nearest::{
    PendingText, TEXT_CHARS, VectorBatch, VectorCursor, VectorFilter, VectorForm, VectorReport,
    VectorStore, embed_missing, find_nearest,
};
use super::{open_queries, spread};
use crate::base::columns::{find_value, load};
use crate::base::database::{Database, find_row};
use crate::base::error::Result;
use crate::base::json;
use crate::memory::definition::Definition;
use crate::memory::entries::{self, check_searchable, lives_here};
use crate::memory::entry::Entry;
use crate::memory::entry_search::{self, FoundEntry, Moment, PastEntry};
use crate::memory::entry_text::EntryText;
use crate::memory::{Memory, MemoryWriter};
use crate::models::embedding::EmbeddingModel;

/// How long a write waits for its entry's vector, once the entry is written.
const WRITE_PATIENCE_MS: i64 = 5_000;

/// What a vector is made of: the title, then the text.
const TEXT: &str = "substr(iif(e.title IS NULL, e.content, e.title || char(10) || e.content), 1,";

/// What a search of a block found.
pub struct EntryMatches {
    /// Best first.
    pub results: Vec<FoundEntry>,
    /// What would have been found, and holds no longer.
    pub past: Vec<PastEntry>,
    /// `None`: the search used words alone, as intended.
    pub vectors: Option<VectorReport>,
}

/// Writes an entry, then its vector. The entry stays written even if the model or the
/// vector fails: a search makes missing vectors.
pub async fn set(
    memory: &Memory<'_>,
    block: &Definition,
    text: &EntryText<'_>,
    writer: MemoryWriter<'_>,
) -> Result<Entry> {
    let entry = entries::set(memory, block, text, writer).await?;
    if lives_here(block)
        && let Ok(Some(model)) = EmbeddingModel::find(memory.outbound)
    {
        let store = Entries {
            db: memory.db,
            block,
        };
        if let Ok(Some(number)) = store.find_missing(text.key, &model.name()) {
            let numbers = [number];
            let outbound = memory.outbound;
            let _ = embed_missing(outbound, &model, &store, &numbers, WRITE_PATIENCE_MS).await;
        }
    }
    Ok(entry)
}

/// The entries that the queries find, best first, wherever the block lives.
pub async fn search(
    memory: &Memory<'_>,
    block: &Definition,
    queries: &[String],
    limit: i64,
    as_of: Option<i64>,
) -> Result<EntryMatches> {
    check_searchable(block)?;
    if !lives_here(block) {
        let found = entry_search::search_elsewhere(memory, block, queries, limit, as_of).await?;
        return Ok(EntryMatches {
            results: found.results,
            past: found.past,
            vectors: found.vectors.and_then(|told| json::decode(told.get()).ok()),
        });
    }
    let mut nearest = Vec::new();
    let mut report = None;
    let (places, open) = open_queries(queries);
    if !open.is_empty() {
        match EmbeddingModel::find(memory.outbound) {
            Ok(None) => {}
            Ok(Some(model)) => {
                let store = Entries {
                    db: memory.db,
                    block,
                };
                let found = find_nearest(memory.outbound, &model, &open, &store).await?;
                nearest = spread(queries.len(), &places, found.nearest);
                report = Some(found.report);
            }
            Err(error) => report = Some(VectorReport::failed(error)),
        }
    }
    let most = usize::try_from(limit).unwrap_or(0);
    let moment = Moment {
        now_ms: memory.host.now_ms(),
        as_of,
    };
    let found = entry_search::find(memory.db, block, queries, &nearest, most, moment)?;
    Ok(EntryMatches {
        results: found.results,
        past: found.past,
        vectors: report,
    })
}

/// The entries of one block.
struct Entries<'a> {
    db: &'a dyn Database,
    block: &'a Definition,
}

impl Entries<'_> {
    /// The number of the key's entry, if the entry has no vector of this model.
    fn find_missing(&self, key: &str, model: &str) -> Result<Option<i64>> {
        find_value(
            self.db,
            "SELECT e.number
               FROM cf_agents_entries AS e
               LEFT JOIN cf_agents_entry_vectors AS v
                 ON v.number = e.number
                AND v.model = ?4
              WHERE e.scope = ?1
                AND e.block = ?2
                AND e.key = ?3
                AND v.number IS NULL",
            &[
                self.block.scope.as_str().into(),
                self.block.content_key().into(),
                key.into(),
                model.into(),
            ],
        )
    }
}

impl VectorStore for Entries<'_> {
    fn db(&self) -> &dyn Database {
        self.db
    }

    /// In the order of the keys, straight from their index: the entries' rows, and so
    /// their texts, are not read.
    fn load_batch(
        &self,
        wanted: &VectorFilter<'_>,
        cursor: Option<&VectorCursor>,
    ) -> Result<VectorBatch> {
        let after = match cursor {
            Some(VectorCursor::Key(key)) => key.as_str(),
            _ => "",
        };
        let row = find_row(
            self.db,
            "SELECT max(key), count(*),
                    group_concat(number) FILTER (WHERE vector IS NOT NULL),
                    group_concat(vector, ''),
                    group_concat(number) FILTER (WHERE vector IS NULL)
               FROM (SELECT e.key, e.number, v.vector
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
            &[
                self.block.scope.as_str().into(),
                self.block.content_key().into(),
                after.into(),
                wanted.model.into(),
                wanted.bytes.into(),
                wanted.batch.into(),
            ],
        )?
        .unwrap_or_default();
        Ok(VectorBatch::from_row(&row, wanted.batch))
    }

    fn is_talk(&self) -> bool {
        false
    }

    /// A block has few entries beside a log's messages, and each of them counts.
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
