//! A range of entries' numbers. Each block has one to itself.

use base::columns::find_value;
use base::database::Database;
use base::error::{Error, Result};

/// Entries that an earlier build wrote have lower numbers, those of all blocks in one
/// range.
pub const OWN_NUMBERS: i64 = 1 << 32;

/// The numbers of a range. A block has at most 10,000 entries at once, and the newest one's number
/// is assigned again when it is deleted.
pub const RANGE: i64 = 1 << 24;

/// Numbers from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NumberRange {
    pub first: i64,
    pub last: i64,
}

/// The entries of earlier builds.
pub const EARLIER: NumberRange = NumberRange {
    first: 0,
    last: OWN_NUMBERS - 1,
};

impl NumberRange {
    pub fn from(first: i64) -> Self {
        Self {
            first,
            last: first + RANGE - 1,
        }
    }

    /// The lowest number that is free above one in use. Reads the range: it is called only after
    /// millions of numbers were assigned.
    pub fn find_gap(self, db: &dyn Database) -> Result<i64> {
        let Self { first, last } = self;
        let sql = "SELECT e.number + 1
                     FROM cf_agents_entries AS e
                    WHERE e.number BETWEEN ?1 AND ?2 - 1
                      AND NOT EXISTS (SELECT 1
                                        FROM cf_agents_entries AS next
                                       WHERE next.number = e.number + 1)
                    ORDER BY e.number
                    LIMIT 1";
        find_value(db, sql, &[first.into(), last.into()])?
            .ok_or_else(|| Error::storage("no number is left for an entry"))
    }
}
