//! The one place where retention deletes an entry.

use crate::base::columns::{FromRow, find, load_values};
use crate::base::database::{Database, Row, SqlValue};
use crate::base::error::{Error, Result};
use crate::memory::counts::CountChange;
use crate::memory::definition::Definition;
use crate::memory::entry_search::unindex_entry;
use crate::memory::kind::BlockKind;
use crate::memory::label::Label;
use crate::memory::past::{ItemNote, ItemPlace};
use crate::memory::replacing::{forget_replacement, give_back};
use crate::memory::source::BlockPlace;

/// An entry, without its text.
struct OldEntry {
    number: i64,
    note: ItemNote,
}

impl FromRow<'_> for OldEntry {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            number: row.integer(0)?,
            // A damaged note keeps no text.
            note: ItemNote::read(row.find_text(1), "").unwrap_or_default(),
        })
    }
}

/// Deletes an entry and all its versions. Returns how many versions went. Part of a
/// transaction.
pub fn erase_entry(db: &dyn Database, scope: &str, block: &str, key: &str) -> Result<i64> {
    let params: [SqlValue; 3] = [scope.into(), block.into(), key.into()];
    let sql = "SELECT number, note
                 FROM cf_agents_entries
                WHERE scope = ?1
                  AND block = ?2
                  AND key = ?3";
    let Some(entry) = find::<OldEntry>(db, sql, &params)? else {
        return Ok(0);
    };
    let mut counts = CountChange::without(db, scope, block, entry.number)?;
    unindex_entry(db, entry.number)?;
    db.run(
        "DELETE FROM cf_agents_entries WHERE number = ?1",
        &[entry.number.into()],
    )?;
    let versions: Vec<bool> = load_values(
        db,
        "DELETE FROM cf_agents_item_versions
          WHERE scope = ?1
            AND block = ?2
            AND key = ?3
      RETURNING content IS NULL",
        &params,
    )?;
    let deletions = versions.iter().filter(|is_deletion| **is_deletion).count();
    counts.deleted -= deletions as i64;
    counts.write(db, scope, block)?;
    let item = ItemPlace { scope, block, key };
    let holder = holder(scope, block)?;
    for replaced in &entry.note.validity.supersedes {
        forget_replacement(db, &item, replaced)?;
        give_back(db, &holder, replaced, key)?;
    }
    Ok(versions.len() as i64)
}

/// A block that holds these entries here. The block itself may have been removed: its
/// content stays, and grows old.
fn holder(scope: &str, block: &str) -> Result<Definition> {
    Ok(Definition {
        scope: scope.to_owned(),
        label: Label::parse(block).map_err(|_| Error::corrupt_row(block, "label"))?,
        kind: BlockKind::Searchable,
        description: None,
        max_tokens: None,
        default_content: None,
        source: None,
        place: BlockPlace::Here(None),
        when_changed: Default::default(),
        model_writes: None,
        retention: None,
        defined_at: None,
    })
}
