//! A session's memory on its way out, a bounded number of rows at a time.
//!
//! What changes while its file is read is shown as it is when its page is read.
//! So that such a file is still one that can be imported, a block is shown once,
//! and nothing under one that can't hold it, or no more of it.

use std::collections::HashMap;

use super::super::lines::{Kind, count, render};
use super::lines::{
    BlockLine, EntryLine, Key, LoadedLine, PromptLine, SkillLine, VersionLine, WrittenBy,
};
use super::{Tally, can_hold};
use crate::base::database::{Database, Row, Value, find_row};
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::lifecycle::transfer::PAGE_BYTES;
use crate::memory::definition::Budget;
use crate::memory::definitions::{MAX_BLOCKS, load_sessions_after};
use crate::memory::kind::Kind as BlockKind;
use crate::memory::label::Label;

/// Rows that one statement reads: of texts up to 1 MiB, and of entries, which
/// have at most 64 KiB. Both are 8 MiB.
const LONG_BITE: i64 = 8;
const ENTRIES_BITE: i64 = 128;

/// The row that was read last: its block's key and its own.
#[derive(Default)]
struct After(String, String);

/// What is to be written next.
enum At {
    Blocks { after_number: i64 },
    Versions { block: String, version: i64 },
    Entries(After),
    Skills(After),
    Loaded(After),
    Prompt,
    Done,
}

pub struct MemoryExport {
    at: At,
    /// The kinds of the blocks that were shown, by their keys.
    kinds: HashMap<String, BlockKind>,
    tally: Tally,
}

impl Default for MemoryExport {
    fn default() -> Self {
        Self {
            at: At::Blocks { after_number: 0 },
            kinds: HashMap::new(),
            tally: Tally::default(),
        }
    }
}

impl MemoryExport {
    /// Adds the next lines; `false`: there are no more.
    pub fn add(&mut self, db: &dyn Database, session_id: &Id, page: &mut String) -> Result<bool> {
        self.at = match std::mem::replace(&mut self.at, At::Done) {
            At::Blocks { after_number } => {
                match self.add_blocks(db, session_id, after_number, page)? {
                    Some(after_number) => At::Blocks { after_number },
                    None => At::Versions {
                        block: String::new(),
                        version: 0,
                    },
                }
            }
            At::Versions { block, version } => {
                match self.add_versions(db, session_id, &block, version, page)? {
                    Some((block, version)) => At::Versions { block, version },
                    None => At::Entries(After::default()),
                }
            }
            At::Entries(after) => match self.add_entries(db, session_id, &after, page)? {
                Some(after) => At::Entries(after),
                None => At::Skills(After::default()),
            },
            At::Skills(after) => match self.add_skills(db, session_id, &after, page)? {
                Some(after) => At::Skills(after),
                None => At::Loaded(After::default()),
            },
            At::Loaded(after) => match self.add_loaded(db, session_id, &after, page)? {
                Some(after) => At::Loaded(after),
                None => At::Prompt,
            },
            At::Prompt => {
                add_prompt(db, session_id, page)?;
                At::Done
            }
            At::Done => At::Done,
        };
        Ok(!matches!(self.at, At::Done))
    }

    fn add_blocks(
        &mut self,
        db: &dyn Database,
        session_id: &Id,
        mut after_number: i64,
        page: &mut String,
    ) -> Result<Option<i64>> {
        let blocks = load_sessions_after(db, session_id, after_number, LONG_BITE)?;
        let is_last = (blocks.len() as i64) < LONG_BITE;
        for (number, block) in blocks {
            after_number = number;
            let key = block.label.key();
            // One that was removed and defined anew meanwhile has a new number.
            if self.kinds.contains_key(&key) || self.kinds.len() as i64 >= MAX_BLOCKS {
                continue;
            }
            self.kinds.insert(key, block.kind);
            page.push_str(&render(&BlockLine {
                line: Kind::Block,
                label: block.label,
                kind: block.kind,
                description: block.description,
                max_tokens: block.max_tokens.map(Budget),
                default_content: block.default_content,
                source: block.source,
                when_changed: block.when_changed,
                model_writes: block.model_writes,
                defined_at: count(block.defined_at.unwrap_or(0)),
            })?);
            if page.len() >= PAGE_BYTES {
                return Ok(Some(after_number));
            }
        }
        Ok(Some(after_number).filter(|_| !is_last))
    }

    fn add_versions(
        &mut self,
        db: &dyn Database,
        session_id: &Id,
        block: &str,
        version: i64,
        page: &mut String,
    ) -> Result<Option<(String, i64)>> {
        let params: [Value; 4] = [
            session_id.as_str().into(),
            block.into(),
            version.into(),
            LONG_BITE.into(),
        ];
        let rows = db.rows(
            "SELECT key, version, content, written_by, session_id, turn_id, reason, written_at
               FROM cf_agents_block_versions
              WHERE scope = ?1
                AND (key, version) > (?2, ?3)
              ORDER BY key, version
              LIMIT ?4",
            &params,
        )?;
        let last = add_rows(&rows, LONG_BITE, page, |row| {
            if !self.can_show(row.text(0)?, Kind::Version, row.text(2)?.len()) {
                return Ok(None);
            }
            render(&VersionLine {
                line: Kind::Version,
                block: Key(row.text(0)?.to_owned()),
                version: count(row.integer(1)?),
                content: row.text(2)?.to_owned(),
                written_by: WrittenBy::parse(row.text(3)?),
                session_id: find_id(row, 4),
                turn_id: find_id(row, 5),
                reason: find_text(row, 6),
                written_at: count(row.integer(7)?),
            })
            .map(Some)
        })?;
        last.map(|row| Ok((row.text(0)?.to_owned(), row.integer(1)?)))
            .transpose()
    }

    fn add_entries(
        &mut self,
        db: &dyn Database,
        session_id: &Id,
        after: &After,
        page: &mut String,
    ) -> Result<Option<After>> {
        let rows = db.rows(
            "SELECT block, key, title, content, created_at, updated_at
               FROM cf_agents_entries
              WHERE scope = ?1
                AND (block, key) > (?2, ?3)
              ORDER BY block, key
              LIMIT ?4",
            &place(session_id, after, ENTRIES_BITE),
        )?;
        let last = add_rows(&rows, ENTRIES_BITE, page, |row| {
            if !self.can_show(row.text(0)?, Kind::Entry, 0) {
                return Ok(None);
            }
            render(&EntryLine {
                line: Kind::Entry,
                block: Key(row.text(0)?.to_owned()),
                key: row.text(1)?.to_owned(),
                title: find_text(row, 2),
                content: row.text(3)?.to_owned(),
                created_at: count(row.integer(4)?),
                updated_at: count(row.integer(5)?),
            })
            .map(Some)
        })?;
        last.map(to_after).transpose()
    }

    fn add_skills(
        &mut self,
        db: &dyn Database,
        session_id: &Id,
        after: &After,
        page: &mut String,
    ) -> Result<Option<After>> {
        let rows = db.rows(
            "SELECT block, key, description, content, updated_at
               FROM cf_agents_skills
              WHERE scope = ?1
                AND (block, key) > (?2, ?3)
              ORDER BY block, key
              LIMIT ?4",
            &place(session_id, after, LONG_BITE),
        )?;
        let last = add_rows(&rows, LONG_BITE, page, |row| {
            if !self.can_show(row.text(0)?, Kind::Skill, 0) {
                return Ok(None);
            }
            render(&SkillLine {
                line: Kind::Skill,
                block: Key(row.text(0)?.to_owned()),
                key: row.text(1)?.to_owned(),
                description: find_text(row, 2),
                content: row.text(3)?.to_owned(),
                updated_at: count(row.integer(4)?),
            })
            .map(Some)
        })?;
        last.map(to_after).transpose()
    }

    fn add_loaded(
        &mut self,
        db: &dyn Database,
        session_id: &Id,
        after: &After,
        page: &mut String,
    ) -> Result<Option<After>> {
        let rows = db.rows(
            "SELECT block, key, label, content, loaded_at
               FROM cf_agents_loaded_skills
              WHERE session_id = ?1
                AND (block, key) > (?2, ?3)
              ORDER BY block, key
              LIMIT ?4",
            &place(session_id, after, LONG_BITE),
        )?;
        let last = add_rows(&rows, LONG_BITE, page, |row| {
            if row.find_text(3).is_some() && !self.tally.fits(Kind::Loaded, "", 0) {
                return Ok(None);
            }
            let damaged = |_| Error::corrupt_row(session_id.as_str(), "loaded documents");
            render(&LoadedLine {
                line: Kind::Loaded,
                label: Label::parse(row.text(2)?).map_err(damaged)?,
                key: row.text(1)?.to_owned(),
                content: find_text(row, 3),
                loaded_at: count(row.integer(4)?),
            })
            .map(Some)
        })?;
        last.map(to_after).transpose()
    }

    fn can_show(&mut self, block: &str, kind: Kind, bytes: usize) -> bool {
        let holder = self.kinds.get(block);
        holder.is_none_or(|holder| can_hold(*holder, kind)) && self.tally.fits(kind, block, bytes)
    }
}

fn add_prompt(db: &dyn Database, session_id: &Id, page: &mut String) -> Result<()> {
    let sql = "SELECT prompt, sections, frozen_at
                 FROM cf_agents_prompts
                WHERE scope = ?1";
    let Some(row) = find_row(db, sql, &[session_id.as_str().into()])? else {
        return Ok(());
    };
    page.push_str(&render(&PromptLine {
        line: Kind::Prompt,
        prompt: row.text(0)?.to_owned(),
        sections: serde_json::from_str(row.text(1)?)
            .map_err(|_| Error::corrupt_row(session_id.as_str(), "frozen prompt"))?,
        frozen_at: count(row.integer(2)?),
    })?);
    Ok(())
}

/// Adds lines until the page is full; gives the row to go on after. `None`: these
/// were the last.
fn add_rows<'a>(
    rows: &'a [Row],
    bite: i64,
    page: &mut String,
    mut line: impl FnMut(&Row) -> Result<Option<String>>,
) -> Result<Option<&'a Row>> {
    let mut added = 0;
    for row in rows {
        if let Some(line) = line(row)? {
            page.push_str(&line);
        }
        added += 1;
        if page.len() >= PAGE_BYTES {
            break;
        }
    }
    let has_more = added < rows.len() || rows.len() as i64 == bite;
    Ok(rows
        .get(added.saturating_sub(1))
        .filter(|_| has_more && added > 0))
}

fn place(session_id: &Id, after: &After, bite: i64) -> [Value; 4] {
    let After(block, key) = after;
    [
        session_id.as_str().into(),
        block.as_str().into(),
        key.as_str().into(),
        bite.into(),
    ]
}

fn to_after(row: &Row) -> Result<After> {
    Ok(After(row.text(0)?.to_owned(), row.text(1)?.to_owned()))
}

fn find_text(row: &Row, column: usize) -> Option<String> {
    row.find_text(column).map(str::to_owned)
}

fn find_id(row: &Row, column: usize) -> Option<Id> {
    Id::parse(find_text(row, column)?).ok()
}
