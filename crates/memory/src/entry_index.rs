//! The search index of entries: the words and stems of each entry. They work as in the
//! log's index, in another table.

use super::entry::Entry;
use crate::tables::{ENTRIES_SEARCH, ENTRY_VECTORS};
use base::database::{Database, Delete};
use base::error::Result;
use search::document::EVERY_DOCUMENT;
use search::row_words::{KnownStems, RowWords};
use search::stem::stem;
use search::words::{each_word, words};

/// Adds an entry to the index. Must run in the transaction that writes the entry.
pub fn index_entry(db: &dyn Database, number: i64, entry: &Entry) -> Result<()> {
    let text = text_of(entry.title.as_deref(), &entry.content);
    let (mut row, mut known) = (RowWords::default(), KnownStems::default());
    each_word(&text, &mut |word| row.add(word, &mut known));
    let mut about = about(&entry.key, entry.title.as_deref());
    about.push(EVERY_DOCUMENT.to_owned());
    db.run(
        "INSERT INTO cf_agents_entries_search (rowid, stems, words, about)
         VALUES (?1, ?2, ?3, ?4)",
        &[
            number.into(),
            row.stems.into(),
            row.words.into(),
            about.join(" ").into(),
        ],
    )
}

/// Removes an entry and its vector from the index. Must run in the transaction that deletes
/// or changes the entry.
pub fn unindex_entry(db: &dyn Database, number: i64) -> Result<()> {
    Delete::from(ENTRIES_SEARCH, "rowid = ?1", &[number.into()]).run(db)?;
    Delete::from(ENTRY_VECTORS, "number = ?1", &[number.into()]).run(db)?;
    Ok(())
}

pub fn text_of(title: Option<&str>, content: &str) -> String {
    match title {
        Some(title) => format!("{title}\n{content}"),
        None => content.to_owned(),
    }
}

/// Stems of the entry's key and title, which count in addition to its text.
pub fn about(key: &str, title: Option<&str>) -> Vec<String> {
    let mut found = words(key);
    found.extend(words(title.unwrap_or_default()));
    found.iter().map(|word| stem(word)).collect()
}
