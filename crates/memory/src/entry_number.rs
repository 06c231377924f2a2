//! The numbers of entries, which are also their row ids in the full-text index. Each block
//! has its own range of numbers. So a search in one block visits no rows of other blocks,
//! and a block's entries can be counted by number.

use super::counts::{BlockCounts, CountChange};
use super::number_range::{EARLIER, NumberRange, OWN_NUMBERS, RANGE};
use base::columns::find_value;
use base::database::Database;
use base::error::{Error, Result};
use base::hash::hash_names;

/// The bits that distinguish ranges. Together with the bits within a range, a number has 52
/// bits; JavaScript is exact up to 53.
const RANGE_BITS: u32 = 27;

/// The most ranges that are tried to find a free one.
const MAX_TRIED: i64 = 1000;

/// The number of a block's next entry. `counts` are the block's counts. Must run in the
/// transaction that writes the entry.
pub fn reserve_number(
    db: &dyn Database,
    [scope, block]: [&str; 2],
    counts: &BlockCounts,
) -> Result<i64> {
    let Some(range) = counts.range else {
        let first = find_free(db, [scope, block])?;
        let change = CountChange {
            first_number: Some(first),
            ..CountChange::default()
        };
        change.write(db, scope, block)?;
        return Ok(first);
    };
    if counts.newest < range.last {
        return Ok(counts.newest + 1);
    }
    let change = CountChange {
        entries: 1,
        ..CountChange::default()
    };
    change.write(db, scope, block)?;
    range.find_gap(db)
}

/// The first number of a range without entries. A hash of the names determines where the
/// search starts. Occupied ranges are skipped by one statement that returns one row.
fn find_free(db: &dyn Database, names: [&str; 2]) -> Result<i64> {
    let hash = hash_names(&names) >> (u64::BITS - RANGE_BITS);
    let first = OWN_NUMBERS + hash.cast_signed() * RANGE;
    let sql = format!(
        "WITH RECURSIVE tried (first) AS (
            SELECT CAST(?1 AS INTEGER)
             UNION ALL
            SELECT first + {RANGE}
              FROM tried
             WHERE EXISTS (SELECT 1
                             FROM cf_agents_entries
                            WHERE number BETWEEN first AND first + {RANGE} - 1)
             LIMIT {MAX_TRIED})
         SELECT max(first) FROM tried"
    );
    find_value(db, &sql, &[first.into()])?
        .ok_or_else(|| Error::storage("no range is left for entries"))
}

/// The ranges in which a block may have entries: its own, and, in an agent with entries of
/// earlier builds, the shared range of those.
pub fn find_ranges(db: &dyn Database, counts: &BlockCounts) -> Result<Vec<NumberRange>> {
    let mut ranges: Vec<NumberRange> = counts.range.into_iter().collect();
    let oldest: Option<Option<i64>> =
        find_value(db, "SELECT min(number) FROM cf_agents_entries", &[])?;
    if oldest.flatten().is_some_and(|oldest| oldest < OWN_NUMBERS) {
        ranges.push(EARLIER);
    }
    Ok(ranges)
}
