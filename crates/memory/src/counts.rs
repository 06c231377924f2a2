//! How many entries a block has, and how many of its deleted items are recorded, without reading
//! them.
//!
//! A count that is written with each entry would cost a row more per entry. So the count is the sum
//! of a number in the block's row and of the numbers that its range has assigned
//! (`entry_number.rs`): the row is changed when an entry is deleted, and when the range is
//! assigned. The count follows only from the block, so a caller's reads and writes reveal nothing
//! about other sessions' entries.

use super::number_range::{EARLIER, NumberRange, RANGE};
use base::columns::{find, find_value, load};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::{row, sql};

/// The known facts about a block's items.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlockCounts {
    /// How many entries the block has.
    pub entries: i64,
    /// The block's own range of numbers, while it has entries there.
    pub range: Option<NumberRange>,
    /// The highest number in the range.
    pub newest: i64,
}

row! {
    /// The columns of a block's row `c`, if there is one.
    for BlockCounts() {
        added: i64 = "coalesce(c.entries, 0)",
        first: i64 = "coalesce(c.first_number, 0)",
        newest: Option<i64> = format!(
            "(SELECT max(number)
                FROM cf_agents_entries
               WHERE number BETWEEN c.first_number AND c.first_number + {RANGE} - 1)"
        ),
    }
    {
        if first == 0 {
            return Ok(Self {
                entries: added,
                ..Self::default()
            });
        }
        let newest = newest.unwrap_or(first - 1);
        Ok(Self {
            entries: added + newest - first + 1,
            range: Some(NumberRange::from(first)),
            newest,
        })
    }
}

/// Returns one row, whether the block has any item or not.
pub fn count_block(db: &dyn Database, scope: &str, block: &str) -> Result<BlockCounts> {
    let sql = format!(
        "SELECT {}
           FROM (SELECT 1)
           LEFT JOIN cf_agents_item_counts AS c
             ON c.scope = +?1
            AND c.block = +?2",
        BlockCounts::columns()
    );
    let counts = find(db, &sql, &[scope.into(), block.into()])?;
    Ok(counts.unwrap_or_default())
}

/// How many entries the block has.
pub fn count_entries(db: &dyn Database, scope: &str, block: &str) -> Result<i64> {
    Ok(count_block(db, scope, block)?.entries)
}

/// Counts the deleted items that were copied to a session. Part of the fork's transaction;
/// the entries are copied after it.
pub fn count_copies(db: &dyn Database, session_id: &Id) -> Result<()> {
    let sql = sql!(
        "SELECT ",
        DeletedInBlock::COLUMNS,
        " FROM cf_agents_item_versions
          WHERE scope = ?1
            AND content IS NULL
          GROUP BY block"
    );
    for DeletedInBlock { block, deleted } in load(db, sql, &[session_id.as_str().into()])? {
        let change = CountChange {
            deleted,
            ..CountChange::default()
        };
        change.write(db, session_id.as_str(), &block)?;
    }
    Ok(())
}

row! {
    /// How many deleted items of a block are remembered.
    struct DeletedInBlock {
        block: String = "block",
        deleted: i64 = "count(*)",
    }
}

/// The effect of a write on a block's counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CountChange {
    /// Added to the entries that the range's numbers count.
    pub entries: i64,
    /// The change in the number of recorded deleted items.
    pub deleted: i64,
    /// The beginning of the block's range from now on; 0: the block releases its range.
    pub first_number: Option<i64>,
}

impl CountChange {
    /// The change when the entry of this number is deleted. Numbers above the newest remaining
    /// entry are assigned again, so entries that were deleted there before no longer count.
    pub fn without(db: &dyn Database, scope: &str, block: &str, number: i64) -> Result<Self> {
        let counts = count_block(db, scope, block)?;
        let Some(range) = counts.range.filter(|_| number > EARLIER.last) else {
            return Ok(Self::of_entries(-1));
        };
        if number < counts.newest {
            return Ok(Self::of_entries(-1));
        }
        let sql = "SELECT max(number) FROM cf_agents_entries WHERE number BETWEEN ?1 AND ?2 - 1";
        let before: Option<Option<i64>> =
            find_value(db, sql, &[range.first.into(), number.into()])?;
        Ok(match before.flatten() {
            Some(before) => Self::of_entries(number - before - 1),
            None => Self {
                first_number: Some(0),
                ..Self::of_entries(number - range.first)
            },
        })
    }

    fn of_entries(entries: i64) -> Self {
        Self {
            entries,
            ..Self::default()
        }
    }

    /// Writes the block's row, if anything changes. Part of a transaction.
    pub fn write(self, db: &dyn Database, scope: &str, block: &str) -> Result<()> {
        if self == Self::default() {
            return Ok(());
        }
        let sql = "INSERT INTO cf_agents_item_counts (scope, block, entries, deleted, first_number)
                   VALUES (?1, ?2, ?3, ?4, coalesce(?5, 0))
                       ON CONFLICT (scope, block) DO UPDATE
                      SET entries = entries + excluded.entries,
                          deleted = deleted + excluded.deleted,
                          first_number = coalesce(?5, first_number)";
        let params: [SqlValue; 5] = [
            scope.into(),
            block.into(),
            self.entries.into(),
            self.deleted.into(),
            self.first_number.into(),
        ];
        db.run(sql, &params)
    }
}

row! {
    /// A deleted item that is remembered.
    pub struct DeletedItemRow {
        pub key: String = "key",
        pub version: i64 = "version",
    }
}

/// How many deleted items of the block are recorded.
pub fn count_deleted(db: &dyn Database, scope: &str, block: &str) -> Result<i64> {
    let sql = "SELECT deleted
                 FROM cf_agents_item_counts
                WHERE scope = ?1
                  AND block = ?2";
    let count = find_value(db, sql, &[scope.into(), block.into()])?;
    Ok(count.unwrap_or(0))
}

/// The deleted item that was recorded first. The index contains only the deleted items.
pub fn find_oldest_deleted(
    db: &dyn Database,
    scope: &str,
    block: &str,
) -> Result<Option<DeletedItemRow>> {
    find(
        db,
        sql!(
            "SELECT ",
            DeletedItemRow::COLUMNS,
            " FROM cf_agents_item_versions
              WHERE scope = ?1
                AND block = ?2
                AND content IS NULL
              ORDER BY written_at
              LIMIT 1"
        ),
        &[scope.into(), block.into()],
    )
}
