//! Searches events by words and by meaning, for an agent with vectors enabled. An append computes
//! no vectors: a search computes and stores those that the newest events lack.

use super::embedder::Embedder;
use super::nearest::{
    PendingText, ScannedTexts, TEXT_CHARS, VectorBatch, VectorCursor, VectorFilter, VectorForm,
    VectorReport, VectorStore, find_nearest, read_numbers,
};
use super::{open_queries, signs, spread};
use base::database::Database;
use base::error::Result;
use base::numbers::{self, MAX_SEQ, MAX_SESSION_NUMBER, ROW_NUMBERS_END, split_row_number};
use conversation::index::find::{SearchHit, find};
use conversation::index::progress::find_number;
use conversation::index::request::SearchRequest;
use conversation::log::event_vectors::{self, NewVector, WantedVectors};
use conversation::log::vector_texts::{self, VectorScan};
use memory::Memory;
use models::embedding::EmbeddingModel;
use search::fuse::Nearest;
use store::config::load_config;

/// The number of newest events that a search checks for missing vectors. Then it checks as many
/// events that are older than every vector.
const MAX_CHECKED: i64 = 10_000;

/// Vectors that a search reads if it has filters, which also read each vector's event.
const MAX_FILTERED: usize = 10_000;

/// The result of a search.
pub struct EventMatches {
    pub hits: Vec<SearchHit>,
    /// `None`: the search used only words, as intended.
    pub vectors: Option<VectorReport>,
    /// The search ended before it scanned all events that match.
    pub is_cut: bool,
}

/// Requires the index of words.
pub async fn search(memory: &Memory<'_>, search: &SearchRequest<'_>) -> Result<EventMatches> {
    let (db, deployed) = (memory.db, &memory.deployed.config);
    let by_words = |report| -> Result<EventMatches> {
        let found = find(db, search, &[])?;
        Ok(EventMatches {
            hits: found.hits,
            vectors: report,
            is_cut: found.is_cut,
        })
    };
    let model = EmbeddingModel::find(memory.outbound);
    let (indexes, queries) = open_queries(search.queries);
    if model == Ok(None) || !load_config(db, deployed)?.vectors || indexes.is_empty() {
        return by_words(None);
    }
    let model = match model {
        Ok(Some(model)) => model,
        Ok(None) => return by_words(None),
        Err(error) => return by_words(Some(VectorReport::failed(error))),
    };
    let store = Events { db, search };
    let embedder = Embedder { memory, model };
    let by_meaning = find_nearest(&embedder, &queries, &store).await?;
    let nearest = by_meaning.nearest.into_iter().map(|nearest| {
        let items = nearest.items().iter();
        let to_position = |(number, nearness): &(i64, f64)| (split_row_number(*number), *nearness);
        Nearest::new(items.map(to_position).collect())
    });
    let nearest = spread(search.queries.len(), &indexes, nearest.collect());
    let found = find(db, search, &nearest)?;
    Ok(EventMatches {
        hits: found.hits,
        vectors: Some(by_meaning.report),
        is_cut: found.is_cut,
    })
}

/// The events that a search may return.
struct Events<'a> {
    db: &'a dyn Database,
    search: &'a SearchRequest<'a>,
}

fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Events<'_> {
    /// The first and the last number that the search may return. `None`: none.
    fn find_range(&self) -> Result<Option<(i64, i64)>> {
        let Some(session_id) = self.search.session_id else {
            return Ok(Some((0, ROW_NUMBERS_END - 1)));
        };
        let number = find_number(self.db, session_id.as_str())?;
        Ok(number.map(|number| {
            (
                numbers::row_number(number, 0),
                numbers::row_number(number, MAX_SEQ),
            )
        }))
    }

    /// Events below a row number that need a vector and have none, at most `most`, and where the
    /// check ended. `None`: there are no more events.
    ///
    /// Only what people and the agent said gets a vector. The inputs and outputs of tools are
    /// mostly names and numbers, and most of a log: words find these events. A message of megabytes
    /// is also found only by words: no row of the log contains its text.
    fn load_message_texts(
        &self,
        below: i64,
        scanned: &ScannedTexts<'_>,
        most: usize,
    ) -> Result<(Vec<i64>, Option<i64>)> {
        let VectorScan {
            end,
            checked,
            row_numbers,
        } = vector_texts::scan_vector_texts(self.db, self.search, below, MAX_CHECKED)?;
        let numbers = read_numbers(&row_numbers.unwrap_or_default());
        let missing = numbers.into_iter().filter(|number| !scanned.has(*number));
        let is_full = checked >= MAX_CHECKED;
        Ok((missing.take(most).collect(), end.filter(|_| is_full)))
    }
}

impl VectorStore for Events<'_> {
    fn db(&self) -> &dyn Database {
        self.db
    }

    /// The newest event of the newest session first.
    fn load_batch(
        &self,
        wanted: &VectorFilter<'_>,
        cursor: Option<&VectorCursor>,
    ) -> Result<VectorBatch> {
        let Some((first, last)) = self.find_range()? else {
            return Ok(VectorBatch::default());
        };
        let below = match cursor {
            Some(VectorCursor::Number(row_number)) => *row_number,
            _ => last + 1,
        };
        let found = event_vectors::load_batch(
            self.db,
            &WantedVectors {
                search: self.search,
                model: wanted.model,
                first,
                below,
                bytes: wanted.bytes,
                dimensions: wanted.dimensions,
                limit: wanted.batch,
            },
        )?;
        let Some((vectors, (last, count, numbers, earlier, characters))) = found else {
            return Ok(VectorBatch::default());
        };
        let dimensions = usize::try_from(wanted.dimensions).unwrap_or(0).max(1);
        let earlier = read_numbers(&earlier.unwrap_or_default());
        let characters = characters.unwrap_or_default();
        let characters = characters.as_bytes().chunks_exact(dimensions);
        Ok(VectorBatch {
            numbers: read_numbers(&numbers.unwrap_or_default()),
            vectors,
            earlier: earlier
                .into_iter()
                .zip(characters.map(signs::of_characters))
                .collect(),
            missing: Vec::new(),
            next: last
                .map(VectorCursor::Number)
                .filter(|_| count >= wanted.batch),
        })
    }

    fn most_compared(&self, most: usize) -> usize {
        if self.search.is_filtered() {
            most.min(MAX_FILTERED)
        } else {
            most
        }
    }

    /// The newest events first. Then those that are older than every vector: an agent that enables
    /// vectors late gets them from the newest message backward.
    fn load_missing(&self, scanned: &ScannedTexts<'_>, most: usize) -> Result<Vec<i64>> {
        let newest = numbers::row_number(MAX_SESSION_NUMBER, MAX_SEQ) + 1;
        let (mut missing, end) = self.load_message_texts(newest, scanned, most)?;
        let oldest = scanned.numbers.last().filter(|_| scanned.is_whole);
        if let (Some(end), Some(oldest)) = (end, oldest)
            && missing.len() < most
        {
            let capacity = most - missing.len();
            missing.extend(
                self.load_message_texts(end.min(*oldest), scanned, capacity)?
                    .0,
            );
        }
        Ok(missing)
    }

    fn is_conversation(&self) -> bool {
        true
    }

    fn form(&self) -> VectorForm {
        VectorForm::Signs
    }

    fn convert(&self, vectors: &[(i64, Vec<u8>)]) -> Result<()> {
        let vectors: Vec<(i64, String)> = vectors
            .iter()
            .map(|(row_number, vector)| (*row_number, to_hex(vector)))
            .collect();
        event_vectors::convert(self.db, &vectors)
    }

    fn load_texts(&self, numbers: &[i64]) -> Result<Vec<PendingText>> {
        let texts = vector_texts::load_texts(self.db, numbers, TEXT_CHARS)?;
        let texts = texts.into_iter().map(|text| PendingText {
            number: text.row_number,
            stored: text.text,
            speaker: text.speaker,
        });
        Ok(texts.collect())
    }

    fn store(&self, text: &PendingText, model: &str, vector: &[u8]) -> Result<()> {
        let vector = to_hex(vector);
        let new = NewVector {
            row_number: text.number,
            model,
            vector: &vector,
            text: &text.stored,
            text_chars: TEXT_CHARS,
        };
        new.store(self.db)
    }
}
