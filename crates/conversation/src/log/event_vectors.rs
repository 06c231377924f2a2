//! The vectors of events, which searches make (`recall/events.rs`). A vector is stored under its
//! event's row number, and deleted with the event's words (`conversation/index/mod.rs`).

use super::vector_texts;
use crate::index::request::SearchRequest;
use base::database::{Database, SqlValue};
use base::error::{Error, Result};
use base::json;
use base::numbers::split_row_number;

/// Which vectors to read: those of a model whose row numbers are at least `first` and less than
/// `below`, the newest event of the newest session first.
pub struct WantedVectors<'a> {
    pub search: &'a SearchRequest<'a>,
    pub model: &'a str,
    pub first: i64,
    pub below: i64,
    /// The length of a vector that is stored as bytes.
    pub bytes: i64,
    /// The length of one that is stored as characters.
    pub dimensions: i64,
    pub limit: i64,
}

/// A batch as SQLite returns it: where it ends, how many vectors it covers, the numbers of its
/// vectors, the numbers of those that are stored as characters, and the latter's vectors.
pub type StoredBatch = (
    Option<i64>,
    i64,
    Option<String>,
    Option<String>,
    Option<String>,
);

/// Reads only the vectors: a row for each text that is compared. With filters, each vector's event
/// is read as well. Returns the vectors that are stored as bytes.
pub fn load_batch(
    db: &dyn Database,
    wanted: &WantedVectors<'_>,
) -> Result<Option<(Vec<u8>, StoredBatch)>> {
    let search = wanted.search;
    let is_wanted = if !search.is_filtered() {
        "?2 IS NULL AND ?3 IS NULL AND ?4 IS NULL".to_owned()
    } else {
        vector_texts::is_wanted_sql(search, "v.place", "?10")
    };
    let sql = format!(
        "SELECT coalesce(CAST(group_concat(vector, '') FILTER (WHERE is_wanted AND is_blob) AS BLOB), x''),
                json_array(min(place), count(*),
                           group_concat(place) FILTER (WHERE is_wanted AND is_blob),
                           group_concat(place) FILTER (WHERE is_wanted AND NOT is_blob),
                           group_concat(vector, '') FILTER (WHERE is_wanted AND NOT is_blob))
           FROM (SELECT v.place, v.vector,
                        {is_wanted} AS is_wanted,
                        typeof(v.vector) = 'blob' AS is_blob
                   FROM cf_agents_event_vectors AS v
                  WHERE v.place BETWEEN ?5 AND ?1 - 1
                    AND v.model = ?6
                    AND octet_length(v.vector) = iif(typeof(v.vector) = 'blob', ?7, ?8)
                  ORDER BY v.place DESC
                  LIMIT ?9)",
    );
    let mut params: Vec<SqlValue> = vec![wanted.below.into()];
    params.extend(search.filters());
    params.extend([
        wanted.first.into(),
        wanted.model.into(),
        wanted.bytes.into(),
        wanted.dimensions.into(),
        wanted.limit.into(),
    ]);
    params.extend(search.session_param());
    let Some((vectors, row)) = db.find_bytes_and_text(&sql, &params)? else {
        return Ok(None);
    };
    let batch =
        json::decode(&row).map_err(|_| Error::storage("a batch of vectors is not a list"))?;
    Ok(Some((vectors, batch)))
}

/// Stores vectors, in hexadecimal digits, over those that are stored as characters.
pub fn convert(db: &dyn Database, vectors: &[(i64, String)]) -> Result<()> {
    db.run(
        "UPDATE cf_agents_event_vectors AS v
            SET vector = unhex(wanted.value ->> 1)
           FROM json_each(?1) AS wanted
          WHERE v.place = wanted.value ->> 0
            AND typeof(v.vector) = 'text'",
        &[json::encode(&vectors)?.into()],
    )
}

/// A vector to store, in hexadecimal digits.
pub struct NewVector<'a> {
    pub row_number: i64,
    pub model: &'a str,
    pub vector: &'a str,
    /// The beginning of the text that it represents, and how many characters that may be.
    pub text: &'a str,
    pub text_chars: i64,
}

impl NewVector<'_> {
    /// Stores the vector, unless the event's text has changed.
    pub fn store(&self, db: &dyn Database) -> Result<()> {
        let (session, seq) = split_row_number(self.row_number);
        let sql = format!(
            "INSERT INTO cf_agents_event_vectors (place, model, vector)
             SELECT ?1, ?2, unhex(?3)
               {with_text}
                 ON CONFLICT (place) DO UPDATE
                SET model = excluded.model,
                    vector = excluded.vector",
            with_text = vector_texts::with_text_sql("?5", "?6", self.text_chars, "?4")
        );
        let params = [
            self.row_number.into(),
            self.model.into(),
            self.vector.into(),
            self.text.into(),
            session.into(),
            seq.into(),
        ];
        db.run(&sql, &params)
    }
}
