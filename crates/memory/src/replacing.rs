//! The entries of a block that replace others. An entry names those that it replaces, and each of
//! them records the one that replaced it. If a replacement is deleted, or no longer names an entry,
//! that entry is valid again, unless another one replaced it, too.

use super::definition::Definition;
use super::entry::find_by_key;
use super::item_note::ItemNote;
use super::past::ItemRef;
use crate::tables::ENTRIES;
use base::columns::find;
use base::database::{Database, SqlValue};
use base::error::{Error, Result};
use base::row;
use store::erasing::{ErasingDatabase, Overwrite};

/// The fields that are read of an entry that is replaced.
struct ReplacedRow {
    number: i64,
    updated_at: i64,
    note: ItemNote,
}

impl ReplacedRow {
    fn write(&self, db: &dyn Database) -> Result<()> {
        db.run(
            "UPDATE cf_agents_entries SET note = ?2 WHERE number = ?1",
            &[self.number.into(), self.note.to_column()?.into()],
        )
    }
}

row! {
    for ReplacedRow {
        number: i64 = "number",
        updated_at: i64 = "updated_at",
        note: Option<&str> = "note",
        key: &str = "key",
    }
    Ok(Self {
        number,
        updated_at,
        note: ItemNote::read(note, key)?,
    })
}

/// Records on the entry `key` that the entry `by` replaced it. Part of a transaction.
pub fn replace(
    db: &dyn Database,
    block: &Definition,
    key: &str,
    by: &str,
    at_ms: i64,
) -> Result<()> {
    let Some(mut row): Option<ReplacedRow> = find_by_key(db, ReplacedRow::COLUMNS, block, key)?
    else {
        let message = format!(
            "`supersedes` contains an entry that block `{}` doesn't have. Nothing was written.",
            block.label
        );
        return Err(Error::invalid("supersedes", message));
    };
    row.note.validity.superseded_by = Some(by.to_owned());
    row.note.validity.superseded_at = Some(at_ms);
    row.write(db)
}

/// Undoes the replacement of the entry `key` by the entry at `by`, of the same block. Part of a
/// transaction, after `by` was deleted or rewritten.
pub fn restore_replaced(db: &dyn Database, by: &ItemRef<'_>, key: &str) -> Result<()> {
    match find_restored(db, by, key)? {
        Some(row) => row.write(db),
        None => Ok(()),
    }
}

/// As [`restore_replaced`], in a purge of the entry at `by`, whose key is in the note of the other.
pub fn restore_replaced_in_purge(
    db: &ErasingDatabase<'_>,
    by: &ItemRef<'_>,
    key: &str,
) -> Result<()> {
    let Some(row) = find_restored(db, by, key)? else {
        return Ok(());
    };
    db.overwrite(&Overwrite {
        table: ENTRIES,
        columns: &["note"],
        condition: "number = ?1",
        params: &[row.number.into()],
    })?;
    row.write(db)
}

/// The entry `key` as it is when the entry at `by` no longer replaces it. `None`: it was not
/// replaced by it.
fn find_restored(db: &dyn Database, by: &ItemRef<'_>, key: &str) -> Result<Option<ReplacedRow>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_entries
          WHERE scope = ?1
            AND block = ?2
            AND key = ?3",
        ReplacedRow::COLUMNS
    );
    let params = [by.scope.into(), by.block.into(), key.into()];
    let Some(mut row): Option<ReplacedRow> = find(db, &sql, &params)? else {
        return Ok(None);
    };
    let validity = &mut row.note.validity;
    if validity.superseded_by.as_deref() != Some(by.key) {
        return Ok(None);
    }
    let other = find_other(db, by, key, row.updated_at)?;
    (validity.superseded_by, validity.superseded_at) = match other {
        Some((by, at_ms)) => (Some(by), Some(at_ms)),
        None => (None, None),
    };
    Ok(Some(row))
}

/// The newest entry that replaces the entry `key`, which was last written at this time, and
/// since when. `except`: an entry of the same block.
fn find_other(
    db: &dyn Database,
    except: &ItemRef<'_>,
    key: &str,
    written_at: i64,
) -> Result<Option<(String, i64)>> {
    find(
        db,
        "SELECT e.key, coalesce(e.note ->> '$.validFrom', e.updated_at)
           FROM cf_agents_replacements AS r
          CROSS JOIN cf_agents_entries AS e
             ON e.scope = r.scope
            AND e.block = r.block
            AND e.key = r.replacer
          WHERE r.scope = ?1
            AND r.block = ?2
            AND r.key = ?3
            AND e.updated_at >= ?4
          ORDER BY e.updated_at DESC, e.number DESC
          LIMIT 1",
        &[
            except.scope.into(),
            except.block.into(),
            key.into(),
            written_at.into(),
        ],
    )
}

/// Records that the entry at `replacer` replaces the entry `key`. Part of a transaction.
pub fn record_replacement(db: &dyn Database, replacer: &ItemRef<'_>, key: &str) -> Result<()> {
    db.run(
        "INSERT INTO cf_agents_replacements (scope, block, key, replacer)
         VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT DO NOTHING",
        &row_key(replacer, key),
    )
}

/// Deletes the record of [`record_replacement`]. Part of a transaction.
pub fn forget_replacement(db: &dyn Database, replacer: &ItemRef<'_>, key: &str) -> Result<()> {
    db.run(
        "DELETE FROM cf_agents_replacements
          WHERE scope = ?1
            AND block = ?2
            AND key = ?3
            AND replacer = ?4",
        &row_key(replacer, key),
    )
}

fn row_key(replacer: &ItemRef<'_>, key: &str) -> [SqlValue; 4] {
    [
        replacer.scope.into(),
        replacer.block.into(),
        key.into(),
        replacer.key.into(),
    ]
}
