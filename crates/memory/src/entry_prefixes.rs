//! Finds word prefixes in the entries of a block by scanning the entries' texts, newest
//! first. The engine would build a prefix's list from the words of all blocks, so its time
//! would reveal to a caller of one session what others store.

use std::collections::HashMap;

use super::counts::count_block;
use super::definition::Definition;
use super::entry_index::text_of;
use super::entry_number::find_ranges;
use super::number_range::NumberRange;
use base::columns::load;
use base::database::Database;
use base::error::Result;
use search::prefixes::PrefixScan;

/// The most bytes of entries that one search scans.
const MAX_SCANNED_BYTES: usize = 8 << 20;

/// How many entries one statement reads: at most 2 MiB.
const PAGE: usize = 32;

/// The most entries per prefix.
const MAX_PREFIX_ENTRIES: usize = 2_000;

/// The entries of a block that contain the prefixes.
#[derive(Default)]
pub struct PrefixEntries {
    /// For each prefix, the entries' numbers, newest first.
    entries: HashMap<String, Vec<i64>>,
    /// Not all entries were scanned.
    pub is_cut: bool,
}

impl PrefixEntries {
    pub fn entries_of(&self, prefix: &str) -> &[i64] {
        self.entries.get(prefix).map_or(&[], Vec::as_slice)
    }
}

/// Scans each of the blocks for the prefixes.
pub fn scan_blocks(
    db: &dyn Database,
    blocks: &[Definition],
    prefixes: &[String],
) -> Result<Vec<PrefixEntries>> {
    if prefixes.is_empty() {
        return Ok(Vec::new());
    }
    let scan = PrefixScan::new(prefixes);
    let mut bytes_left = MAX_SCANNED_BYTES;
    let blocks = blocks.iter();
    blocks
        .map(|block| scan_block(db, block, &scan, &mut bytes_left))
        .collect()
}

/// A block has at most 10,000 entries.
fn scan_block(
    db: &dyn Database,
    block: &Definition,
    scan: &PrefixScan<'_>,
    bytes_left: &mut usize,
) -> Result<PrefixEntries> {
    let (scope, content_key) = (block.scope.as_str(), block.content_key());
    let counts = count_block(db, scope, &content_key)?;
    let sql = format!(
        "SELECT number, title, content
           FROM cf_agents_entries
          WHERE number BETWEEN ?1 AND ?2
            AND +scope = ?3
            AND +block = ?4
          ORDER BY number DESC
          LIMIT {PAGE}"
    );
    let mut found = PrefixEntries::default();
    for NumberRange { first, mut last } in find_ranges(db, &counts)? {
        loop {
            let page: Vec<(i64, Option<String>, String)> = load(
                db,
                &sql,
                &[
                    first.into(),
                    last.into(),
                    scope.into(),
                    content_key.as_str().into(),
                ],
            )?;
            let is_last = page.len() < PAGE;
            for (number, title, content) in page {
                if *bytes_left == 0 {
                    found.is_cut = true;
                    return Ok(found);
                }
                let text = text_of(title.as_deref(), &content);
                *bytes_left = bytes_left.saturating_sub(text.len());
                for prefix in scan.find_in(&text) {
                    let entries = found.entries.entry(prefix.to_owned()).or_default();
                    if entries.len() < MAX_PREFIX_ENTRIES {
                        entries.push(number);
                    } else {
                        found.is_cut = true;
                    }
                }
                last = number - 1;
            }
            if is_last {
                break;
            }
        }
    }
    Ok(found)
}
