//! Checks whether what an object stores is consistent: each row of each table against the rows that
//! it names. It writes nothing. A request reads a bounded part of the tables, and its cursor names
//! the row where the next request continues.
//!
//! A check reads one row and the rows related to it in one statement. So a write between two
//! requests causes no finding.

mod check;
mod deeper;
mod finding;

use crate::json_schema::JsonSchema;
pub use base::checks::FindingCode;
use check::TableCheck;
pub use finding::Finding;
use serde::Serialize;

use super::table_pages::{PageBudget, PageCursor};
use base::checks::Check;
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use conversation::index::indexed::indexed_from_sql;

/// The most rows, and the most bytes of text, that one request checks. A row is checked with up to
/// ten lookups.
const MAX_ROWS: i64 = 5_000;
const MAX_BYTES: i64 = 8 << 20;

/// A request with this many findings ends after the page of the last of them. A page has up to
/// [`PAGE_ROWS`](base::checks::PAGE_ROWS) rows, so an answer has at most about 700 damaged rows.
const ENOUGH_FINDINGS: usize = 200;

#[derive(Serialize, JsonSchema)]
pub struct Verified {
    /// The faults among the rows that this request checked. Empty: there are none.
    pub findings: Vec<Finding>,
    /// The number of rows that this request checked.
    pub checked: i64,
    /// Where the next request continues. `null`: everything was checked.
    pub cursor: Option<String>,
}

/// All checks, in the order in which they are run.
fn checks() -> impl Iterator<Item = &'static Check> {
    [
        conversation::checks::CHECKS,
        memory::checks::CHECKS,
        store::checks::CHECKS,
        chat::checks::CHECKS,
    ]
    .into_iter()
    .flatten()
}

/// Checks the rows after the cursor. `only`: only this session's rows.
pub fn verify(db: &dyn Database, only: Option<&Id>, cursor: Option<&str>) -> Result<Verified> {
    let key_columns = |table: usize| Some(checks().nth(table)?.key.len());
    let mut at = PageCursor::read(cursor, key_columns)?;
    let mut verified = Verified {
        findings: Vec::new(),
        checked: 0,
        cursor: None,
    };
    let mut capacity = PageBudget {
        rows: MAX_ROWS,
        bytes: MAX_BYTES,
    };
    let indexed_from = indexed_from_sql(db)?;
    while let Some(check) = checks().nth(at.table) {
        if capacity.is_full() || verified.findings.len() >= ENOUGH_FINDINGS {
            verified.cursor = Some(at.encode());
            break;
        }
        match TableCheck(check).page(db, only, &indexed_from, &at.after, &mut capacity)? {
            Some(mut page) => {
                verified.findings.append(&mut page.findings);
                at.after = page.last;
            }
            None => at.leave_table(),
        }
    }
    verified.checked = MAX_ROWS - capacity.rows;
    Ok(verified)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::tables;
    use base::tables::RowOwner;

    /// Whether a check covers the table, or the table in which the virtual table stores its rows.
    fn is_of(checked: &str, table: &str) -> bool {
        checked == table || checked.strip_suffix("_docsize") == Some(table)
    }

    #[test]
    fn every_table_is_checked() {
        let unchecked: Vec<&str> = tables()
            .filter(|table| !checks().any(|check| is_of(check.table, table.name)))
            .filter(|table| table.owner != RowOwner::View)
            .map(|table| table.name)
            .collect();
        // The first two have only numbers, the third only names.
        let numbers = [
            "cf_agents_usage_days",
            "cf_agents_metered",
            "cf_agents_migrations",
            // A row represents a session that does not exist yet.
            "cf_agents_imports",
            // Encrypted text. A server whose row can't be decrypted requires authorization again.
            "cf_agents_tool_authorizations",
        ];
        assert_eq!(unchecked, numbers);
    }
}
