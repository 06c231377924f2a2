//! Finds the texts of a store that are nearest to a query, and computes missing vectors.
//!
//! Three steps: get the queries' vectors from the model, read every vector of the store, and
//! compute a bounded number of missing vectors. No transaction spans an await. A vector is stored
//! only for the text that it was computed from.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::embedder::Embedder;
use super::signs::{self, SignQuery};
use super::vector::{self, QueryVector};
use base::database::{Database, MAX_VALUE_BYTES, atomically};
use base::error::{Code, Error, Result};
use base::outbound::in_time;
use memory::entry_vectors::EntryVectors;
use search::fuse::{NEIGHBOR_SHARE, Nearest, with_neighbors};

/// Bytes of vectors that one search compares: 10,000 vectors of 384 numbers at a byte each, or
/// 80,000 at a bit each.
const MAX_COMPARED_BYTES: usize = 10_000 * 384;

/// Texts that one search compares, however short their vectors are.
const MAX_COMPARED: usize = 80_000;

/// The most vectors that one search converts to bits. An earlier build stored vectors as
/// characters.
const MAX_CONVERTED: usize = 512;

/// The most missing vectors that one search computes.
pub const MAX_EMBEDDED: usize = 64;

/// Bytes of texts in one request to the model; a longer text is sent by itself. A model on a small
/// machine needs a second for that much, so each search computes some vectors.
const MAX_REQUEST_BYTES: usize = 32 * 1024;

/// How long a search waits for its query's vector, and for the missing vectors.
const QUERY_TIMEOUT_MS: i64 = 3_000;
const TEXTS_TIMEOUT_MS: i64 = 5_000;

/// The most vectors that one statement returns, and their most bytes together.
const BATCH: usize = 4_000;
const BATCH_BYTES: usize = MAX_VALUE_BYTES / 2;

/// Characters of a text that its vector is computed from. The usual models read 512 tokens, about
/// as much text. In every script 2,000 characters make fewer than 8,191 tokens, beyond which
/// OpenAI's models reject a text.
pub const TEXT_CHARS: i64 = 2_000;

/// The contribution of vectors to a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VectorReport {
    /// Some texts have no vector yet. The next searches make the missing vectors.
    pub pending: bool,
    /// The reason why vectors took no part in the search, or only some of them did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<ReportedError>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ReportedError {
    pub code: String,
    pub message: String,
}

impl VectorReport {
    pub fn failed(error: Error) -> Self {
        Self {
            pending: false,
            error: Some(ReportedError {
                code: error.code.name().to_owned(),
                message: error.into_message(),
            }),
        }
    }
}

/// A store of texts and their vectors. A number identifies each text.
pub trait VectorStore {
    fn db(&self) -> &dyn Database;

    /// The texts after `cursor`, at most `wanted.batch`.
    fn load_batch(
        &self,
        wanted: &VectorFilter<'_>,
        cursor: Option<&VectorCursor>,
    ) -> Result<VectorBatch>;

    /// How the store's vectors are stored.
    fn form(&self) -> VectorForm;

    /// The numbers of texts without a vector that the batches don't report, at most `most`.
    /// `scanned`: the texts that have one.
    fn load_missing(&self, _scanned: &ScannedTexts<'_>, _most: usize) -> Result<Vec<i64>> {
        Ok(Vec::new())
    }

    /// Converts stored vectors of an earlier form. Each still belongs to the text of its number.
    fn convert(&self, _vectors: &[(i64, Vec<u8>)]) -> Result<()> {
        Ok(())
    }

    /// The texts of these numbers that still exist.
    fn load_texts(&self, numbers: &[i64]) -> Result<Vec<PendingText>>;

    /// How many texts one search compares, at most `most`.
    fn most_compared(&self, most: usize) -> usize {
        most
    }

    /// Whether the texts are turns of conversations: the turns right before and after a text have
    /// the numbers right below and above it.
    fn is_conversation(&self) -> bool;

    /// Stores a vector, if the stored text is still the one that the vector was made of.
    /// Must run in a transaction.
    fn store(&self, text: &PendingText, model: &str, vector: &[u8]) -> Result<()>;
}

/// How a store's vectors are stored.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VectorForm {
    /// A character per number (`vector.rs`).
    Characters,
    /// A bit per number (`signs.rs`).
    Signs,
}

impl VectorForm {
    pub fn bytes_of(self, dimensions: usize) -> usize {
        match self {
            Self::Characters => dimensions,
            Self::Signs => signs::bytes_of(dimensions),
        }
    }

    fn pack(self, vector: &[f32]) -> Vec<u8> {
        match self {
            Self::Characters => vector::pack(vector).into_bytes(),
            Self::Signs => signs::pack(vector),
        }
    }
}

/// The texts for which a scan found a vector.
pub struct ScannedTexts<'a> {
    /// Their numbers, the highest first.
    pub numbers: &'a [i64],
    /// There are no more vectors in the store.
    pub is_whole: bool,
}

impl ScannedTexts<'_> {
    /// Whether a text has a vector, or may have one that the scan did not reach.
    pub fn has(&self, number: i64) -> bool {
        let oldest = self.numbers.last();
        let is_beyond = !self.is_whole && oldest.is_some_and(|oldest| number < *oldest);
        is_beyond
            || self
                .numbers
                .binary_search_by(|known| number.cmp(known))
                .is_ok()
    }
}

/// A query's vector, to which a store's vectors are compared.
enum Query {
    Characters(QueryVector),
    Signs(SignQuery),
}

impl Query {
    fn new(form: VectorForm, vector: &[f32]) -> Option<Self> {
        match form {
            VectorForm::Characters => QueryVector::new(vector).map(Self::Characters),
            VectorForm::Signs => SignQuery::new(vector).map(Self::Signs),
        }
    }

    fn dimensions(&self) -> usize {
        match self {
            Self::Characters(query) => query.dimensions(),
            Self::Signs(query) => query.dimensions(),
        }
    }

    fn compare(&self, stored: &[u8]) -> f64 {
        f64::from(match self {
            Self::Characters(query) => query.compare(stored),
            Self::Signs(query) => query.compare(stored),
        })
    }
}

/// A text that needs a vector.
pub struct PendingText {
    pub number: i64,
    /// The first [`TEXT_CHARS`] characters of the stored text.
    pub stored: String,
    /// The speaker of the text, if known: without its speaker, a turn means less.
    pub speaker: Option<String>,
}

impl PendingText {
    fn with_speaker(&self) -> String {
        match &self.speaker {
            Some(speaker) => format!("{speaker}: {}", self.stored),
            None => self.stored.clone(),
        }
    }
}

/// The vectors that can be compared: of this model, of this length.
pub struct VectorFilter<'a> {
    pub model: &'a str,
    pub dimensions: i64,
    /// Bytes of a stored vector.
    pub bytes: i64,
    /// Texts per statement.
    pub batch: i64,
}

/// The position where a batch ended, as its store defines it.
#[derive(Clone, Debug)]
pub enum VectorCursor {
    Number(i64),
    /// The index of a block among those that are searched, and a key in it.
    InBlock(usize, String),
}

/// A part of a store: the numbers of texts that have a vector, their concatenated vectors, and the
/// numbers of texts that have none.
#[derive(Default)]
pub struct VectorBatch {
    pub numbers: Vec<i64>,
    pub vectors: Vec<u8>,
    /// Numbers whose vectors have an earlier form, with the vectors in the current form.
    pub earlier: Vec<(i64, Vec<u8>)>,
    pub missing: Vec<i64>,
    /// Where the next batch begins. `None`: this batch is the last.
    pub next: Option<VectorCursor>,
}

impl VectorBatch {
    /// The batch of some entries of the block at this index. A batch of fewer than `most` is its
    /// block's last.
    pub fn of_entries(found: EntryVectors, block_index: usize, most: i64) -> Self {
        let last = found.end.filter(|_| found.entries >= most);
        let numbers = |list: Option<String>| read_numbers(&list.unwrap_or_default());
        Self {
            numbers: numbers(found.numbers),
            vectors: found.vectors.unwrap_or_default().into_bytes(),
            earlier: Vec::new(),
            missing: numbers(found.missing),
            next: last.map(|key| VectorCursor::InBlock(block_index, key)),
        }
    }
}

/// Parses comma-separated numbers.
pub fn read_numbers(list: &str) -> Vec<i64> {
    list.split(',').filter_map(|n| n.parse().ok()).collect()
}

/// The texts nearest to each query, by their numbers.
#[derive(Default)]
pub struct NearestMatches {
    pub nearest: Vec<Nearest<i64>>,
    pub report: VectorReport,
}

/// Finds the texts nearest to each of the queries in the store. If the model fails, or its vectors
/// can't be stored, the report has the error. Only a failed read fails the search.
pub async fn find_nearest(
    embedder: &Embedder<'_>,
    queries: &[String],
    store: &dyn VectorStore,
) -> Result<NearestMatches> {
    let queries = match embed_queries(embedder, queries, store.form()).await {
        Ok(queries) => queries,
        Err(error) => {
            return Ok(NearestMatches {
                report: VectorReport::failed(error),
                ..NearestMatches::default()
            });
        }
    };
    let name = embedder.model.name();
    let ScanResult {
        mut found,
        mut missing,
        earlier,
    } = scan(store, &name, &queries)?;
    let mut report = VectorReport {
        pending: missing.len() > MAX_EMBEDDED,
        error: None,
    };
    if !earlier.is_empty()
        && let Err(error) = store.convert(&earlier)
    {
        report = VectorReport {
            pending: true,
            ..VectorReport::failed(error)
        };
    }
    if !missing.is_empty() {
        missing.truncate(MAX_EMBEDDED);
        let (made, outcome) = embed_missing(embedder, store, &missing, TEXTS_TIMEOUT_MS).await;
        for (query, found) in queries.iter().zip(&mut found) {
            let of_same_length = made
                .iter()
                .filter(|made| made.dimensions == query.dimensions());
            found.extend(of_same_length.map(|made| (made.number, query.compare(&made.vector))));
        }
        if let Err(error) = outcome {
            report = VectorReport {
                pending: true,
                ..VectorReport::failed(error)
            };
        }
    }
    let nearest = found.into_iter().map(|found| {
        Nearest::new(if store.is_conversation() {
            with_neighbors(found, NEIGHBOR_SHARE)
        } else {
            found
        })
    });
    Ok(NearestMatches {
        nearest: nearest.collect(),
        report,
    })
}

/// The vectors of the queries, all of one length, from one request.
async fn embed_queries(
    embedder: &Embedder<'_>,
    texts: &[String],
    form: VectorForm,
) -> Result<Vec<Query>> {
    let vectors = embed_in_time(embedder, texts, QUERY_TIMEOUT_MS).await?;
    let queries: Option<Vec<Query>> = vectors
        .iter()
        .map(|vector| Query::new(form, vector))
        .collect();
    let queries = queries.ok_or_else(|| {
        Error::new(
            Code::ModelFailed,
            "The embedding model sent only zeros. Check `EMBEDDING_MODEL`.",
        )
    })?;
    let dimensions = queries.first().map(Query::dimensions);
    if queries
        .iter()
        .any(|query| Some(query.dimensions()) != dimensions)
    {
        return Err(Error::new(
            Code::ModelFailed,
            "The embedding model sent vectors of different lengths. Check `EMBEDDING_MODEL`.",
        ));
    }
    Ok(queries)
}

async fn embed_in_time(
    embedder: &Embedder<'_>,
    texts: &[String],
    wait_ms: i64,
) -> Result<Vec<Vec<f32>>> {
    let pause = embedder.memory.outbound.sleep(wait_ms);
    let outcome = in_time(pause, embedder.embed(texts)).await;
    outcome.unwrap_or_else(|| Err(too_slow(wait_ms)))
}

fn too_slow(wait_ms: i64) -> Error {
    Error::new(
        Code::ModelFailed,
        format!(
            "The embedding model took longer than {} s. The search used the vectors that it had by then.",
            wait_ms / 1000
        ),
    )
}

struct ScanResult {
    /// For each query, how near each compared text is.
    found: Vec<Vec<(i64, f64)>>,
    /// At most [`MAX_EMBEDDED`] + 1 numbers.
    missing: Vec<i64>,
    /// Vectors to convert, at most [`MAX_CONVERTED`].
    earlier: Vec<(i64, Vec<u8>)>,
}

/// Reads the store's vectors once, whatever the number of queries.
fn scan(store: &dyn VectorStore, model: &str, queries: &[Query]) -> Result<ScanResult> {
    let dimensions = queries.first().map_or(0, Query::dimensions);
    let bytes = store.form().bytes_of(dimensions).max(1);
    // A vector of an earlier form takes a byte per number.
    let batch = BATCH.min(BATCH_BYTES / dimensions.max(1)).max(1);
    let wanted = VectorFilter {
        model,
        dimensions: dimensions as i64,
        bytes: bytes as i64,
        batch: batch as i64,
    };
    let mut scanned = ScanResult {
        found: queries.iter().map(|_| Vec::new()).collect(),
        missing: Vec::new(),
        earlier: Vec::new(),
    };
    let mut numbers = Vec::new();
    let mut cursor = None;
    let mut left = store.most_compared(MAX_COMPARED.min(MAX_COMPARED_BYTES / bytes));
    let mut is_whole = false;
    while left > 0 {
        let batch = store.load_batch(&wanted, cursor.as_ref())?;
        for (query, found) in queries.iter().zip(&mut scanned.found) {
            let vectors = batch.vectors.chunks_exact(bytes);
            let compared = batch.numbers.iter().zip(vectors);
            found.extend(compared.map(|(number, vector)| (*number, query.compare(vector))));
            let earlier = batch.earlier.iter();
            found.extend(earlier.map(|(number, vector)| (*number, query.compare(vector))));
        }
        let capacity = (MAX_EMBEDDED + 1).saturating_sub(scanned.missing.len());
        scanned.missing.extend(batch.missing.iter().take(capacity));
        numbers.extend(batch.numbers);
        numbers.extend(batch.earlier.iter().map(|(number, _)| *number));
        let capacity = MAX_CONVERTED.saturating_sub(scanned.earlier.len());
        scanned
            .earlier
            .extend(batch.earlier.into_iter().take(capacity));
        cursor = batch.next;
        if cursor.is_none() {
            is_whole = true;
            break;
        }
        left = left.saturating_sub(wanted.batch as usize);
    }
    let capacity = (MAX_EMBEDDED + 1).saturating_sub(scanned.missing.len());
    numbers.sort_unstable_by(|a, b| b.cmp(a));
    let texts = ScannedTexts {
        numbers: &numbers,
        is_whole,
    };
    scanned
        .missing
        .extend(store.load_missing(&texts, capacity)?);
    Ok(scanned)
}

/// A vector that was computed and stored.
pub struct MadeVector {
    pub number: i64,
    pub dimensions: usize,
    pub vector: Vec<u8>,
}

/// Gets the texts' vectors from the model, a few at a time, and stores them. Returns the vectors
/// made so far, even if a later request failed or took too long.
pub async fn embed_missing(
    embedder: &Embedder<'_>,
    store: &dyn VectorStore,
    numbers: &[i64],
    wait_ms: i64,
) -> (Vec<MadeVector>, Result<()>) {
    let mut made = Vec::new();
    let work = embed_in_requests(embedder, store, numbers, &mut made);
    let outcome = in_time(embedder.memory.outbound.sleep(wait_ms), work).await;
    let outcome = outcome.unwrap_or_else(|| Err(too_slow(wait_ms)));
    (made, outcome)
}

async fn embed_in_requests(
    embedder: &Embedder<'_>,
    store: &dyn VectorStore,
    numbers: &[i64],
    made: &mut Vec<MadeVector>,
) -> Result<()> {
    let name = embedder.model.name();
    let mut texts = store.load_texts(numbers)?.into_iter().peekable();
    while texts.peek().is_some() {
        let mut bytes = 0;
        let mut batch = Vec::new();
        while let Some(text) = texts.next_if(|text| {
            bytes += text.stored.len();
            batch.is_empty() || bytes <= MAX_REQUEST_BYTES
        }) {
            batch.push(text);
        }
        let contents: Vec<String> = batch.iter().map(PendingText::with_speaker).collect();
        let vectors = embedder.embed(&contents).await?;
        made.extend(atomically(store.db(), || {
            let mut stored = Vec::with_capacity(batch.len());
            for (text, vector) in batch.iter().zip(&vectors) {
                let packed = store.form().pack(vector);
                store.store(text, &name, &packed)?;
                stored.push(MadeVector {
                    number: text.number,
                    dimensions: vector.len(),
                    vector: packed,
                });
            }
            Ok(stored)
        })?);
    }
    Ok(())
}
