//! Searches events by words and by meaning, for an agent that switched vectors on. An
//! append makes no vectors: a search makes and stores those that the newest events lack.

use super::nearest::{
    PendingText, TEXT_CHARS, VectorBatch, VectorCursor, VectorFilter, VectorReport, VectorStore,
    find_nearest,
};
use super::{open_queries, spread};
use crate::base::action::SAID_ACTIONS;
use crate::base::columns::{FromRow, load};
use crate::base::database::{Database, Row, SqlValue, find_row};
use crate::base::error::Result;
use crate::base::json;
use crate::base::numbers::{self, MAX_SEQ, MAX_SESSION_NUMBER, split_place};
use crate::base::outbound::Outbound;
use crate::models::embedding::EmbeddingModel;
use crate::search::document::find_speaker;
use crate::search::find::{Hit, find};
use crate::search::fuse::Nearest;
use crate::search::request::SearchRequest;
use crate::store::config::{DeployedConfig, load_config};

/// What a search found.
pub struct EventMatches {
    pub hits: Vec<Hit>,
    /// `None`: the search used words alone, as intended.
    pub vectors: Option<VectorReport>,
}

/// Needs the index of words.
pub async fn search(
    db: &dyn Database,
    outbound: &dyn Outbound,
    deployed: &DeployedConfig,
    search: &SearchRequest<'_>,
) -> Result<EventMatches> {
    let by_words = |report| -> Result<EventMatches> {
        Ok(EventMatches {
            hits: find(db, search, &[])?,
            vectors: report,
        })
    };
    let model = EmbeddingModel::find(outbound);
    let (places, queries) = open_queries(search.queries);
    if model == Ok(None) || !load_config(db, deployed)?.vectors || places.is_empty() {
        return by_words(None);
    }
    let model = match model {
        Ok(Some(model)) => model,
        Ok(None) => return by_words(None),
        Err(error) => return by_words(Some(VectorReport::failed(error))),
    };
    let store = Events { db, search };
    let found = find_nearest(outbound, &model, &queries, &store).await?;
    let nearest = found.nearest.into_iter().map(|nearest| {
        let items = nearest.items.into_iter();
        Nearest {
            items: items
                .map(|(number, nearness)| (split_place(number), nearness))
                .collect(),
        }
    });
    let nearest = spread(search.queries.len(), &places, nearest.collect());
    Ok(EventMatches {
        hits: find(db, search, &nearest)?,
        vectors: Some(found.report),
    })
}

/// The events that a search may return.
struct Events<'a> {
    db: &'a dyn Database,
    search: &'a SearchRequest<'a>,
}

/// The text of an event, to make a vector of.
struct SaidRow(PendingText);

impl SaidRow {
    /// Columns of an event `e` in a session `s`.
    fn columns() -> String {
        format!(
            "s.number, e.seq, substr(e.content, 1, {TEXT_CHARS}),
             iif(octet_length(e.metadata) <= 8192, e.metadata, NULL),
             iif(octet_length(e.message) <= 8192, e.message, NULL)"
        )
    }
}

impl FromRow<'_> for SaidRow {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self(PendingText {
            number: numbers::place(row.integer(0)?, row.integer(1)?),
            stored: row.text(2)?.to_owned(),
            speaker: find_speaker(row.find_text(3), row.find_text(4)),
        }))
    }
}

impl VectorStore for Events<'_> {
    fn db(&self) -> &dyn Database {
        self.db
    }

    /// Only what people and the agent said gets a vector. What tools were given and
    /// returned is mostly names and numbers, and most of a log: words find these events.
    ///
    /// Goes backwards from the newest event of the newest session. A batch counts every
    /// event, whoever spoke. A message of megabytes is found by words alone: no row of
    /// the log holds its text.
    fn load_batch(
        &self,
        wanted: &VectorFilter<'_>,
        cursor: Option<&VectorCursor>,
    ) -> Result<VectorBatch> {
        let (number, seq) = match cursor {
            Some(VectorCursor::Number(place)) => split_place(*place),
            _ => (MAX_SESSION_NUMBER, MAX_SEQ + 1),
        };
        let only = match self.search.session_id {
            Some(_) => "s.id = ?1",
            None => "?1 IS NULL",
        };
        let sql = format!(
            "SELECT min(place), count(*),
                    group_concat(place) FILTER (WHERE vector IS NOT NULL),
                    group_concat(vector, ''),
                    group_concat(place) FILTER (WHERE is_wanted AND vector IS NULL)
               FROM (SELECT e.place, e.is_wanted, v.vector
                       FROM (SELECT {place} AS place,
                                    e.action IN {SAID_ACTIONS}
                                    AND octet_length(e.content) > 0
                                    AND {filters} {session} AS is_wanted
                               FROM cf_agents_sessions AS s
                              CROSS JOIN cf_agents_events AS e
                                 ON e.session_id = s.id
                                AND e.seq < iif(s.number = ?5, ?6, {MAX_SEQ} + 1)
                              WHERE s.number <= ?5
                                AND {only}
                              ORDER BY s.number DESC, e.seq DESC
                              LIMIT ?7) AS e
                       LEFT JOIN cf_agents_event_vectors AS v
                         ON e.is_wanted
                        AND v.place = e.place
                        AND v.model = ?8
                        AND octet_length(v.vector) = ?9)",
            place = numbers::place_sql("s.number", "e.seq"),
            filters = crate::search::request::FILTERS,
            session = self.search.session_condition("?10")
        );
        let mut params: Vec<SqlValue> = vec![self.search.session_id.map(|id| id.as_str()).into()];
        params.extend(self.search.filters());
        params.extend([
            number.into(),
            seq.into(),
            wanted.batch.into(),
            wanted.model.into(),
            wanted.dimensions.into(),
        ]);
        params.extend(self.search.session_param());
        let row = find_row(self.db, &sql, &params)?.unwrap_or_default();
        Ok(VectorBatch::from_row(&row, wanted.batch))
    }

    fn is_talk(&self) -> bool {
        true
    }

    fn load_texts(&self, numbers: &[i64]) -> Result<Vec<PendingText>> {
        let sql = format!(
            "SELECT {columns}
               FROM json_each(?1) AS wanted
              CROSS JOIN cf_agents_sessions AS s
                 ON s.number = {number}
              CROSS JOIN cf_agents_events AS e
                 ON e.session_id = s.id
                AND e.seq = {seq}
              WHERE e.content IS NOT NULL",
            columns = SaidRow::columns(),
            number = numbers::session_number_sql("wanted.value"),
            seq = numbers::seq_sql("wanted.value")
        );
        let said: Vec<SaidRow> = load(self.db, &sql, &[json::encode(&numbers)?.into()])?;
        Ok(said.into_iter().map(|SaidRow(text)| text).collect())
    }

    fn store(&self, text: &PendingText, model: &str, vector: &str) -> Result<()> {
        let (session, seq) = split_place(text.number);
        let sql = format!(
            "INSERT INTO cf_agents_event_vectors (place, model, vector)
             SELECT ?1, ?2, ?3
               FROM cf_agents_sessions AS s
              CROSS JOIN cf_agents_events AS e
                 ON e.session_id = s.id
                AND e.seq = ?6
              WHERE s.number = ?5
                AND substr(e.content, 1, {TEXT_CHARS}) = ?4
                 ON CONFLICT (place) DO UPDATE
                SET model = excluded.model,
                    vector = excluded.vector"
        );
        let params = [
            text.number.into(),
            model.into(),
            vector.into(),
            text.stored.as_str().into(),
            session.into(),
            seq.into(),
        ];
        self.db.run(&sql, &params)
    }
}
