//! The texts that entries and documents had at a past time, for a search as of then.

use super::definition::Definition;
use super::past::{ItemRef, PastVersion};
use base::columns::{find, load};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::filter::{Filter, FilteredColumns};
use base::row;

/// SQL: the time since when a version's text has been valid.
const BEGINS: &str = "coalesce(note ->> '$.validFrom', written_at)";

/// The newest version that was valid at this time; `None`: it is not stored, or no version was
/// valid.
///
/// A version that does not pass the filter counts as not stored.
pub fn find_at(
    db: &dyn Database,
    item: &ItemRef<'_>,
    at_ms: i64,
    filter: Option<&Filter>,
) -> Result<Option<PastVersion>> {
    let passes = filter.map_or_else(String::new, |filter| {
        let columns = FilteredColumns::of_note("note");
        format!("WHERE {}", filter.condition(&columns, "?5"))
    });
    let columns = PastVersion::COLUMNS;
    let sql = format!(
        "SELECT {columns}
           FROM (SELECT {columns}
                   FROM cf_agents_item_versions
                  WHERE scope = ?1
                    AND block = ?2
                    AND key = ?3
                    AND {BEGINS} <= ?4
                  ORDER BY version DESC
                  LIMIT 1)
          {passes}"
    );
    let [scope, block, key] = item.params();
    let mut params = vec![scope, block, key, at_ms.into()];
    params.extend(filter.map(|filter| SqlValue::from(filter.param())));
    find(db, &sql, &params)
}

row! {
    /// A text that an item had at some time, and that is not its newest: version `v`.
    pub struct PastText {
        pub past: PastVersion = PastVersion::COLUMNS,
        pub key: String = "v.key",
        /// The number of the entry, if it is still there.
        pub number: Option<i64> = "newest_text.number",
    }
}

/// How many earlier versions of a block's entries a search in the past scans, and how many bytes of
/// their texts it reads in all of its blocks.
const MAX_SEARCHED: i64 = 5_000;
pub const MAX_PAST_BYTES: i64 = 2 << 20;

/// The texts at this time of a block's entries that were deleted since, or have another text now:
/// at most this many bytes of them. The texts that were written last come first.
pub fn load_past_texts(
    db: &dyn Database,
    searched: &Definition,
    at_ms: i64,
    filter: Option<&Filter>,
    most_bytes: i64,
) -> Result<Vec<PastText>> {
    let passes = filter.map_or_else(String::new, |filter| {
        let columns = FilteredColumns::of_note("v.note");
        format!("AND {}", filter.condition(&columns, "?6"))
    });
    let sql = format!(
        "SELECT {}
           FROM (SELECT key, version AS newest, number, sum(bytes) OVER (ORDER BY written_at DESC, key) AS bytes
                   FROM (SELECT p.key, max(p.version) AS version, p.bytes, p.written_at, e.number
                           FROM (SELECT key, version, octet_length(content) AS bytes, written_at
                                   FROM cf_agents_item_versions
                                  WHERE scope = ?1
                                    AND block = ?2
                                    AND {BEGINS} <= ?3
                                  LIMIT ?4) AS p
                           LEFT JOIN cf_agents_entries AS e
                             ON e.scope = ?1
                            AND e.block = ?2
                            AND e.key = p.key
                          WHERE e.number IS NULL
                             OR coalesce(e.note ->> '$.validFrom', e.updated_at) > ?3
                          GROUP BY p.key)
                  WHERE bytes IS NOT NULL) AS newest_text
           JOIN cf_agents_item_versions AS v
             ON v.scope = ?1
            AND v.block = ?2
            AND v.key = newest_text.key
            AND v.version = newest_text.newest
          WHERE newest_text.bytes <= ?5
            {passes}
          ORDER BY v.written_at DESC, v.key",
        PastText::COLUMNS
    );
    let params: [SqlValue; 5] = [
        searched.scope.as_str().into(),
        searched.content_key().into(),
        at_ms.into(),
        MAX_SEARCHED.into(),
        most_bytes.into(),
    ];
    let filter = filter.map(|filter| SqlValue::from(filter.param()));
    let params: Vec<SqlValue> = params.into_iter().chain(filter).collect();
    load(db, &sql, &params)
}
