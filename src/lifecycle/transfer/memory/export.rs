//! Exports a session's memory, a bounded number of rows at a time.
//!
//! Memory that changes during the export appears as it is when its page is read. The
//! file must still be one that can be imported. So a block appears once, and rows that
//! its kind can't hold, or that exceed its limits, are left out.

use std::collections::HashMap;

use serde::Serialize;

use super::super::lines::{LineKind, count, render};
use super::lines::{
    BlockKey, BlockLine, EntryLine, LoadedLine, PromptLine, SkillLine, VersionLine, WrittenBy,
};
use super::{LineCounter, can_hold};
use crate::base::columns::{FromRow, find};
use crate::base::database::{Database, Row, SqlValue};
use crate::base::error::{Error, Result};
use crate::base::ids::Id;
use crate::lifecycle::transfer::PAGE_BYTES;
use crate::memory::definition::TokenBudget;
use crate::memory::definitions::{MAX_BLOCKS, load_sessions_after};
use crate::memory::kind::BlockKind;
use crate::memory::label::Label;

/// Rows per statement: `LONG_BATCH` for texts of up to 1 MiB, and `ENTRIES_BATCH` for
/// entries, which have at most 64 KiB. Both are 8 MiB.
const LONG_BATCH: i64 = 8;
const ENTRIES_BATCH: i64 = 128;

/// The last row read: its block's key and its own key.
#[derive(Default)]
struct LastRow(String, String);

/// The type of rows to write next.
enum MemoryExportStage {
    Blocks { after_number: i64 },
    Versions { block: String, version: i64 },
    Entries(LastRow),
    Skills(LastRow),
    Loaded(LastRow),
    Prompt,
    Done,
}

pub struct MemoryExport {
    at: MemoryExportStage,
    /// The kinds of the exported blocks, by the blocks' keys.
    kinds: HashMap<String, BlockKind>,
    tally: LineCounter,
}

impl Default for MemoryExport {
    fn default() -> Self {
        Self {
            at: MemoryExportStage::Blocks { after_number: 0 },
            kinds: HashMap::new(),
            tally: LineCounter::default(),
        }
    }
}

impl MemoryExport {
    /// Adds the next lines; `false`: there are no more lines.
    pub fn add(&mut self, db: &dyn Database, session_id: &Id, page: &mut String) -> Result<bool> {
        self.at = match std::mem::replace(&mut self.at, MemoryExportStage::Done) {
            MemoryExportStage::Blocks { after_number } => {
                match self.add_blocks(db, session_id, after_number, page)? {
                    Some(after_number) => MemoryExportStage::Blocks { after_number },
                    None => MemoryExportStage::Versions {
                        block: String::new(),
                        version: 0,
                    },
                }
            }
            MemoryExportStage::Versions { block, version } => {
                match self.add_versions(db, session_id, &block, version, page)? {
                    Some((block, version)) => MemoryExportStage::Versions { block, version },
                    None => MemoryExportStage::Entries(LastRow::default()),
                }
            }
            MemoryExportStage::Entries(after) => {
                match self.add_entries(db, session_id, &after, page)? {
                    Some(after) => MemoryExportStage::Entries(after),
                    None => MemoryExportStage::Skills(LastRow::default()),
                }
            }
            MemoryExportStage::Skills(after) => {
                match self.add_skills(db, session_id, &after, page)? {
                    Some(after) => MemoryExportStage::Skills(after),
                    None => MemoryExportStage::Loaded(LastRow::default()),
                }
            }
            MemoryExportStage::Loaded(after) => {
                match self.add_loaded(db, session_id, &after, page)? {
                    Some(after) => MemoryExportStage::Loaded(after),
                    None => MemoryExportStage::Prompt,
                }
            }
            MemoryExportStage::Prompt => {
                add_prompt(db, session_id, page)?;
                MemoryExportStage::Done
            }
            MemoryExportStage::Done => MemoryExportStage::Done,
        };
        Ok(!matches!(self.at, MemoryExportStage::Done))
    }

    fn add_blocks(
        &mut self,
        db: &dyn Database,
        session_id: &Id,
        mut after_number: i64,
        page: &mut String,
    ) -> Result<Option<i64>> {
        let blocks = load_sessions_after(db, session_id, after_number, LONG_BATCH)?;
        let is_last = (blocks.len() as i64) < LONG_BATCH;
        for (number, block) in blocks {
            after_number = number;
            let key = block.label.key();
            // A block that was removed and defined again meanwhile has a new number.
            if self.kinds.contains_key(&key) || self.kinds.len() as i64 >= MAX_BLOCKS {
                continue;
            }
            self.kinds.insert(key, block.kind);
            page.push_str(&render(&BlockLine {
                line: LineKind::Block,
                label: block.label,
                kind: block.kind,
                description: block.description,
                max_tokens: block.max_tokens.map(TokenBudget),
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
        let params: [SqlValue; 4] = [
            session_id.as_str().into(),
            block.into(),
            version.into(),
            LONG_BATCH.into(),
        ];
        let sql = format!(
            "SELECT {}
               FROM cf_agents_block_versions
              WHERE scope = ?1
                AND (key, version) > (?2, ?3)
              ORDER BY key, version
              LIMIT ?4",
            ExportedVersion::COLUMNS
        );
        let rows = db.rows(&sql, &params)?;
        add_rows(
            &rows,
            LONG_BATCH,
            page,
            |ExportedVersion { line, after }| {
                let bytes = line.content.len();
                let is_shown = self.can_show(&line.block.0, LineKind::Version, bytes);
                Ok((shown(is_shown, &line)?, after))
            },
        )
    }

    fn add_entries(
        &mut self,
        db: &dyn Database,
        session_id: &Id,
        after: &LastRow,
        page: &mut String,
    ) -> Result<Option<LastRow>> {
        let sql = format!(
            "SELECT {}
               FROM cf_agents_entries
              WHERE scope = ?1
                AND (block, key) > (?2, ?3)
              ORDER BY block, key
              LIMIT ?4",
            ExportedEntry::COLUMNS
        );
        let rows = db.rows(&sql, &place(session_id, after, ENTRIES_BATCH))?;
        add_rows(
            &rows,
            ENTRIES_BATCH,
            page,
            |ExportedEntry { line, after }| {
                let is_shown = self.can_show(&line.block.0, LineKind::Entry, 0);
                Ok((shown(is_shown, &line)?, after))
            },
        )
    }

    fn add_skills(
        &mut self,
        db: &dyn Database,
        session_id: &Id,
        after: &LastRow,
        page: &mut String,
    ) -> Result<Option<LastRow>> {
        let sql = format!(
            "SELECT {}
               FROM cf_agents_skills
              WHERE scope = ?1
                AND (block, key) > (?2, ?3)
              ORDER BY block, key
              LIMIT ?4",
            ExportedSkill::COLUMNS
        );
        let rows = db.rows(&sql, &place(session_id, after, LONG_BATCH))?;
        add_rows(&rows, LONG_BATCH, page, |ExportedSkill { line, after }| {
            let is_shown = self.can_show(&line.block.0, LineKind::Skill, 0);
            Ok((shown(is_shown, &line)?, after))
        })
    }

    fn add_loaded(
        &mut self,
        db: &dyn Database,
        session_id: &Id,
        after: &LastRow,
        page: &mut String,
    ) -> Result<Option<LastRow>> {
        let sql = format!(
            "SELECT {}
               FROM cf_agents_loaded_skills
              WHERE session_id = ?1
                AND (block, key) > (?2, ?3)
              ORDER BY block, key
              LIMIT ?4",
            ExportedDocument::COLUMNS
        );
        let rows = db.rows(&sql, &place(session_id, after, LONG_BATCH))?;
        add_rows(&rows, LONG_BATCH, page, |row: ExportedDocument| {
            if row.content.is_some() && !self.tally.fits(LineKind::Loaded, "", 0) {
                return Ok((None, row.after));
            }
            let damaged = |_| Error::corrupt_row(session_id.as_str(), "loaded documents");
            let line = LoadedLine {
                line: LineKind::Loaded,
                label: Label::parse(&row.label).map_err(damaged)?,
                key: row.after.1.clone(),
                content: row.content,
                loaded_at: count(row.loaded_at),
            };
            Ok((Some(render(&line)?), row.after))
        })
    }

    fn can_show(&mut self, block: &str, kind: LineKind, bytes: usize) -> bool {
        let holder = self.kinds.get(block);
        holder.is_none_or(|holder| can_hold(*holder, kind)) && self.tally.fits(kind, block, bytes)
    }
}

fn add_prompt(db: &dyn Database, session_id: &Id, page: &mut String) -> Result<()> {
    let sql = "SELECT prompt, sections, frozen_at
                 FROM cf_agents_prompts
                WHERE scope = ?1";
    let row: Option<(String, String, i64)> = find(db, sql, &[session_id.as_str().into()])?;
    let Some((prompt, sections, frozen_at)) = row else {
        return Ok(());
    };
    page.push_str(&render(&PromptLine {
        line: LineKind::Prompt,
        prompt,
        sections: serde_json::from_str(&sections)
            .map_err(|_| Error::corrupt_row(session_id.as_str(), "frozen prompt"))?,
        frozen_at: count(frozen_at),
    })?);
    Ok(())
}

struct ExportedVersion {
    line: VersionLine,
    after: (String, i64),
}

impl ExportedVersion {
    const COLUMNS: &str =
        "key, version, content, written_by, session_id, turn_id, reason, written_at";
}

impl FromRow<'_> for ExportedVersion {
    fn from_row(row: &Row) -> Result<Self> {
        let id = |column| Id::parse(row.find_text(column)?.to_owned()).ok();
        let (block, version) = (row.text(0)?.to_owned(), row.integer(1)?);
        Ok(Self {
            after: (block.clone(), version),
            line: VersionLine {
                line: LineKind::Version,
                block: BlockKey(block),
                version: count(version),
                content: row.text(2)?.to_owned(),
                written_by: WrittenBy::parse(row.text(3)?),
                session_id: id(4),
                turn_id: id(5),
                reason: row.find_text(6).map(str::to_owned),
                written_at: count(row.integer(7)?),
            },
        })
    }
}

struct ExportedEntry {
    line: EntryLine,
    after: LastRow,
}

impl ExportedEntry {
    const COLUMNS: &str = "block, key, title, content, created_at, updated_at";
}

impl FromRow<'_> for ExportedEntry {
    fn from_row(row: &Row) -> Result<Self> {
        let after: LastRow = row.read()?;
        Ok(Self {
            line: EntryLine {
                line: LineKind::Entry,
                block: BlockKey(after.0.clone()),
                key: after.1.clone(),
                title: row.find_text(2).map(str::to_owned),
                content: row.text(3)?.to_owned(),
                created_at: count(row.integer(4)?),
                updated_at: count(row.integer(5)?),
            },
            after,
        })
    }
}

struct ExportedSkill {
    line: SkillLine,
    after: LastRow,
}

impl ExportedSkill {
    const COLUMNS: &str = "block, key, description, content, updated_at";
}

impl FromRow<'_> for ExportedSkill {
    fn from_row(row: &Row) -> Result<Self> {
        let after: LastRow = row.read()?;
        Ok(Self {
            line: SkillLine {
                line: LineKind::Skill,
                block: BlockKey(after.0.clone()),
                key: after.1.clone(),
                description: row.find_text(2).map(str::to_owned),
                content: row.text(3)?.to_owned(),
                updated_at: count(row.integer(4)?),
            },
            after,
        })
    }
}

struct ExportedDocument {
    after: LastRow,
    label: String,
    content: Option<String>,
    loaded_at: i64,
}

impl ExportedDocument {
    const COLUMNS: &str = "block, key, label, content, loaded_at";
}

impl FromRow<'_> for ExportedDocument {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self {
            after: row.read()?,
            label: row.text(2)?.to_owned(),
            content: row.find_text(3).map(str::to_owned),
            loaded_at: row.integer(4)?,
        })
    }
}

impl FromRow<'_> for LastRow {
    fn from_row(row: &Row) -> Result<Self> {
        Ok(Self(row.text(0)?.to_owned(), row.text(1)?.to_owned()))
    }
}

fn shown(is_shown: bool, line: &impl Serialize) -> Result<Option<String>> {
    is_shown.then(|| render(line)).transpose()
}

/// Adds lines until the page is full. Returns the row to go on after; `None`: there are
/// no more rows. `line` returns a row's line, or `None` for a row to leave out, and the
/// row's place.
fn add_rows<'r, T: FromRow<'r>, P>(
    rows: &'r [Row],
    bite: i64,
    page: &mut String,
    mut line: impl FnMut(T) -> Result<(Option<String>, P)>,
) -> Result<Option<P>> {
    let mut added = 0;
    let mut last = None;
    for row in rows {
        let (line, place) = line(row.read()?)?;
        page.push_str(&line.unwrap_or_default());
        last = Some(place);
        added += 1;
        if page.len() >= PAGE_BYTES {
            break;
        }
    }
    let has_more = added < rows.len() || rows.len() as i64 == bite;
    Ok(last.filter(|_| has_more))
}

fn place(session_id: &Id, after: &LastRow, bite: i64) -> [SqlValue; 4] {
    let LastRow(block, key) = after;
    [
        session_id.as_str().into(),
        block.as_str().into(),
        key.as_str().into(),
        bite.into(),
    ]
}
