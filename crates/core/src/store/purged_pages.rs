//! The tables whose pages a purge has yet to clear. A purge is committed before its pages are
//! cleared, so an object may die in between. The note is written with the purge and deleted
//! when the pages are clear. Until then, the next purge clears these pages, too: a purge that
//! is repeated because its answer was lost finds no rows any more, and still finds this note.

use std::collections::BTreeSet;

use super::schema::free_space::filled_bytes;
use super::stored::{PURGED, find_stored, write_stored};
use super::tables::TABLES;
use crate::base::database::Database;
use crate::base::error::Result;
use crate::base::json;
use serde::{Deserialize, Serialize};

#[derive(Default, Serialize, Deserialize)]
struct Note {
    /// Counts up with each purge, so that no two notes are the same.
    purges: i64,
    /// How often the clearing was begun. Only an object that died did not end it.
    #[serde(default)]
    clearings: i64,
    tables: Vec<String>,
}

/// The pages to clear now.
pub struct PagesToClear {
    pub tables: Vec<&'static str>,
    /// How many bytes of zeros write over the write-ahead log.
    pub filled_bytes: i64,
    /// The stored note that names them.
    note: Option<String>,
}

/// Notes that pages of these tables are to be cleared. Returns them, with those that a purge
/// before left behind. A purge that erased nothing writes nothing. Part of the purge's
/// transaction.
pub fn note(db: &dyn Database, tables: BTreeSet<&'static str>) -> Result<BTreeSet<&'static str>> {
    let before = find_stored(db, PURGED)?;
    let is_new = !tables.is_empty();
    let tables = joined(before.as_deref(), tables);
    if !is_new {
        return Ok(tables);
    }
    let Note {
        purges, clearings, ..
    } = read(before.as_deref());
    let note = Note {
        purges: purges + 1,
        clearings,
        tables: tables.iter().map(|&table| table.to_owned()).collect(),
    };
    write_stored(db, PURGED, &note)?;
    Ok(tables)
}

/// Begins to clear the pages of these tables, and of those that purges noted.
pub fn begin(db: &dyn Database, tables: &[&'static str]) -> Result<PagesToClear> {
    let mut note = find_stored(db, PURGED)?;
    let mut clearings = 1;
    if note.is_some() {
        let mut begun = read(note.as_deref());
        begun.clearings += 1;
        clearings = begun.clearings;
        write_stored(db, PURGED, &begun)?;
        note = find_stored(db, PURGED)?;
    }
    Ok(PagesToClear {
        filled_bytes: filled_bytes(clearings),
        tables: joined(note.as_deref(), tables.iter().copied().collect())
            .into_iter()
            .collect(),
        note,
    })
}

/// Forgets the note after the pages were cleared. A purge that came meanwhile keeps its own.
pub fn forget(db: &dyn Database, cleared: &PagesToClear) -> Result<()> {
    match &cleared.note {
        None => Ok(()),
        Some(note) => db.run(
            "DELETE FROM cf_agents_config WHERE key = ?1 AND value = ?2",
            &[PURGED.into(), note.as_str().into()],
        ),
    }
}

fn joined(note: Option<&str>, mut tables: BTreeSet<&'static str>) -> BTreeSet<&'static str> {
    let noted = read(note).tables;
    let known = TABLES.iter().map(|table| table.name);
    tables.extend(known.filter(|name| noted.iter().any(|noted| noted == name)));
    tables
}

/// A damaged note must not keep a text from being erased.
fn read(note: Option<&str>) -> Note {
    note.and_then(|note| json::decode(note).ok())
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::migrated;

    const EVENTS: &str = "cf_agents_events";
    const ENTRIES: &str = "cf_agents_entries";

    #[test]
    fn a_purge_finds_what_a_purge_before_it_left_behind() {
        let db = migrated();
        let before = db.dump();
        assert!(note(&db, BTreeSet::new()).unwrap().is_empty());
        assert_eq!(db.dump(), before);
        let events = BTreeSet::from([EVENTS]);
        assert_eq!(note(&db, events.clone()).unwrap(), events);
        // The object died, and the purge that is repeated deletes nothing.
        assert_eq!(note(&db, BTreeSet::new()).unwrap(), events);
        let both = BTreeSet::from([ENTRIES, EVENTS]);
        assert_eq!(note(&db, BTreeSet::from([ENTRIES])).unwrap(), both);
        let pages = begin(&db, &[]).unwrap();
        assert_eq!(pages.tables, [ENTRIES, EVENTS]);
        forget(&db, &pages).unwrap();
        assert_eq!(db.dump(), before);
    }

    #[test]
    fn a_purge_that_comes_while_pages_are_cleared_keeps_its_note() {
        let db = migrated();
        note(&db, BTreeSet::from([EVENTS])).unwrap();
        let pages = begin(&db, &[EVENTS]).unwrap();
        note(&db, BTreeSet::from([EVENTS])).unwrap();
        forget(&db, &pages).unwrap();
        assert_eq!(begin(&db, &[]).unwrap().tables, [EVENTS]);
    }

    #[test]
    fn each_clearing_that_died_has_the_next_one_fill_more() {
        let db = migrated();
        let least = begin(&db, &[EVENTS]).unwrap().filled_bytes;
        note(&db, BTreeSet::from([EVENTS])).unwrap();
        assert_eq!(begin(&db, &[]).unwrap().filled_bytes, least);
        let second = begin(&db, &[]).unwrap();
        assert!(second.filled_bytes > 2 * least);
        forget(&db, &second).unwrap();
        assert_eq!(begin(&db, &[]).unwrap().filled_bytes, least);
    }
}
