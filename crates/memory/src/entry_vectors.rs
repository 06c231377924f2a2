//! The vectors of entries, which searches and writes make (`recall/entries.rs`). A vector is stored
//! under its entry's number, and deleted with the entry's words (`entry_index.rs`).

use super::definition::Definition;
use base::columns::{find, load, load_values};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::filter::{Filter, FilteredColumns};
use base::json;
use base::row;

/// The text that a vector represents: the title, then the entry's content.
const TEXT: &str = "substr(iif(e.title IS NULL, e.content, e.title || char(10) || e.content), 1,";

row! {
    /// A batch as SQLite makes it, of entries that pass a filter.
    pub struct EntryVectors {
        /// The last entry's key.
        pub end: Option<String> = "max(key)",
        /// How many entries it covers.
        pub entries: i64 = "count(*)",
        /// The numbers of entries with a vector, and their vectors.
        pub numbers: Option<String> =
            "group_concat(number) FILTER (WHERE passes AND vector IS NOT NULL)",
        pub vectors: Option<String> = "group_concat(vector, '') FILTER (WHERE passes)",
        /// The numbers of entries without a vector.
        pub missing: Option<String> =
            "group_concat(number) FILTER (WHERE passes AND vector IS NULL)",
    }
}

/// Which vectors to read.
pub struct WantedVectors<'a> {
    pub filter: Option<&'a Filter>,
    pub model: &'a str,
    /// The length of a vector.
    pub bytes: i64,
    /// How many entries to read.
    pub limit: i64,
}

/// Reads the entries of a block after this key, directly from the index: without a filter, the
/// entries' rows, and so their texts, are not read.
pub fn load_batch(
    db: &dyn Database,
    block: &Definition,
    after: &str,
    wanted: &WantedVectors<'_>,
) -> Result<Option<EntryVectors>> {
    let passes = match wanted.filter {
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
        EntryVectors::COLUMNS
    );
    let mut params: Vec<SqlValue> = vec![
        block.scope.as_str().into(),
        block.content_key().into(),
        after.into(),
        wanted.model.into(),
        wanted.bytes.into(),
        wanted.limit.into(),
    ];
    params.extend(wanted.filter.map(|filter| SqlValue::from(filter.param())));
    find(db, &sql, &params)
}

/// The given numbers whose entries have no vector of this model.
pub fn load_missing(db: &dyn Database, numbers: &[i64], model: &str) -> Result<Vec<i64>> {
    load_values(
        db,
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

/// The first `chars` characters of the texts of these entries, by their numbers.
pub fn load_texts(db: &dyn Database, numbers: &[i64], chars: i64) -> Result<Vec<(i64, String)>> {
    let sql = format!(
        "SELECT e.number, {TEXT} {chars})
           FROM json_each(?1) AS wanted
          CROSS JOIN cf_agents_entries AS e
             ON e.number = wanted.value"
    );
    load(db, &sql, &[json::encode(&numbers)?.into()])
}

/// A vector to store.
pub struct NewVector<'a> {
    pub number: i64,
    pub model: &'a str,
    pub vector: String,
    /// The beginning of the text that it represents, and how many characters that may be.
    pub text: &'a str,
    pub text_chars: i64,
}

impl NewVector<'_> {
    /// Stores the vector, unless the entry's text has changed.
    pub fn store(self, db: &dyn Database) -> Result<()> {
        let sql = format!(
            "INSERT INTO cf_agents_entry_vectors (number, model, vector)
             SELECT e.number, ?2, ?3
               FROM cf_agents_entries AS e
              WHERE e.number = ?1
                AND {TEXT} {chars}) = ?4
                 ON CONFLICT (number) DO UPDATE
                SET model = excluded.model,
                    vector = excluded.vector",
            chars = self.text_chars
        );
        let params = [
            self.number.into(),
            self.model.into(),
            self.vector.into(),
            self.text.into(),
        ];
        db.run(&sql, &params)
    }
}
