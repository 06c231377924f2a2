//! Exports the memory of a session or of the agent, a bounded number of rows at a time.
//!
//! Memory that changes during the export appears as it is when its page is read. The file
//! must still be importable. So a block appears once, and rows that its kind can't have, or
//! that exceed its limits, are omitted.

use std::collections::HashMap;

use serde::Serialize;

use super::super::lines::{FileTime, LineKind, count, render};
use super::lines::{
    BlockKey, BlockLine, EntryLine, LoadedLine, PastLine, PromptLine, SkillLine, VersionLine,
};
use super::{LineCounter, can_contain};
use crate::transfer::add_rows;
use base::database::{Database, Row};
use base::error::{Error, Result};
use base::ids::Id;
use base::json;
use base::row;
use memory::content::WrittenBy;
use memory::definition::TokenBudget;
use memory::definitions::{DefinedBlock, MAX_BLOCKS, load_rows_after};
use memory::frozen::{PromptRow, find_row};
use memory::item_note::ItemNote;
use memory::kind::BlockKind;
use memory::label::Label;
use memory::origin::Origin;
use memory::whole_rows::{
    BLOCK_VERSIONS, ENTRIES, ITEM_VERSIONS, LOADED_SKILLS, LastRow, SKILLS, WholeRows,
};

/// Rows per statement: `LONG_BATCH` for texts of up to 1 MiB, and `ENTRIES_BATCH` for
/// entries of at most 64 KiB. Both amount to 8 MiB.
const LONG_BATCH: i64 = 8;
const ENTRIES_BATCH: i64 = 128;

/// The type of rows to write next.
enum MemoryExportStage {
    Blocks {
        after_number: i64,
    },
    /// Rows of the first of these tables, after the last row that was read.
    Rows {
        tables: &'static [ExportedTable],
        after: LastRow,
    },
    Prompt,
    Done,
}

pub struct MemoryExport {
    at: MemoryExportStage,
    /// The kinds of the exported blocks, by block key.
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
    pub fn add(&mut self, db: &dyn Database, scope: &str, page: &mut String) -> Result<bool> {
        self.at = match std::mem::replace(&mut self.at, MemoryExportStage::Done) {
            MemoryExportStage::Blocks { after_number } => {
                match self.add_blocks(db, scope, after_number, page)? {
                    Some(after_number) => MemoryExportStage::Blocks { after_number },
                    None => MemoryExportStage::Rows {
                        tables: TABLES,
                        after: LastRow::start(),
                    },
                }
            }
            MemoryExportStage::Rows { tables, after } => match tables.split_first() {
                Some((table, others)) => match self.add_table(db, scope, table, &after, page)? {
                    Some(after) => MemoryExportStage::Rows { tables, after },
                    None => MemoryExportStage::Rows {
                        tables: others,
                        after: LastRow::start(),
                    },
                },
                None => MemoryExportStage::Prompt,
            },
            MemoryExportStage::Prompt => {
                add_prompt(db, scope, page)?;
                MemoryExportStage::Done
            }
            MemoryExportStage::Done => MemoryExportStage::Done,
        };
        Ok(!matches!(self.at, MemoryExportStage::Done))
    }

    fn add_blocks(
        &mut self,
        db: &dyn Database,
        scope: &str,
        after_number: i64,
        page: &mut String,
    ) -> Result<Option<i64>> {
        let blocks = load_rows_after(db, scope, after_number, LONG_BATCH)?;
        add_rows(blocks, LONG_BATCH, page, |defined, page| {
            let DefinedBlock {
                number,
                block,
                is_removed,
            } = defined;
            let key = block.label.key();
            // A block that was removed and redefined in the meantime has a new number.
            if self.kinds.contains_key(&key) || self.kinds.len() as i64 >= MAX_BLOCKS {
                return Ok(number);
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
                retention: block.retention,
                metadata: block.metadata,
                tags: block.tags,
                origin: block.origin,
                removed: is_removed,
                defined_at: FileTime::of(block.defined_at.unwrap_or(0)),
            })?);
            Ok(number)
        })
    }

    /// Adds rows of a table until the page is full. Returns the row to continue after, or
    /// `None` after the last row.
    fn add_table(
        &mut self,
        db: &dyn Database,
        scope: &str,
        table: &ExportedTable,
        after: &LastRow,
        page: &mut String,
    ) -> Result<Option<LastRow>> {
        let ExportedTable {
            rows: whole,
            columns,
            batch,
            line,
        } = table;
        let rows = whole.load(db, scope, columns, after, *batch)?;
        let last = add_rows(rows, *batch, page, |row, page| {
            page.push_str(&line(self, scope, &row)?.unwrap_or_default());
            Ok(row)
        })?;
        last.map(|last| whole.position_of(&last)).transpose()
    }

    /// The line, or `None` if the block can't have such a row, or has too many.
    fn show(
        &mut self,
        kind: LineKind,
        block: &BlockKey,
        bytes: usize,
        line: &impl Serialize,
    ) -> Result<Option<String>> {
        let holder = self.kinds.get(&block.0);
        let is_shown = holder.is_none_or(|holder| can_contain(*holder, kind))
            && self.tally.fits(kind, &block.0, bytes);
        is_shown.then(|| render(line)).transpose()
    }
}

fn add_prompt(db: &dyn Database, scope: &str, page: &mut String) -> Result<()> {
    let Some(PromptRow { frozen, sections }) = find_row(db, scope)? else {
        return Ok(());
    };
    page.push_str(&render(&PromptLine {
        line: LineKind::Prompt,
        prompt: frozen.prompt,
        sections: json::decode(&sections)
            .map_err(|_| Error::corrupt_row(scope, "frozen prompt"))?,
        frozen_at: FileTime::of(frozen.frozen_at),
    })?);
    Ok(())
}

/// A table of memory, as the export reads it.
struct ExportedTable {
    rows: WholeRows,
    /// All columns. The keys come first.
    columns: &'static str,
    /// Rows per statement.
    batch: i64,
    /// The line of a row; `None`: the row is omitted.
    line: fn(&mut MemoryExport, &str, &Row) -> Result<Option<String>>,
}

/// The tables, in the order of the file.
const TABLES: &[ExportedTable] = &[
    ExportedTable {
        rows: BLOCK_VERSIONS,
        columns: VersionLine::COLUMNS,
        batch: LONG_BATCH,
        line: |export, _, row| {
            let line: VersionLine = row.read()?;
            export.show(line.line, &line.block, line.content.len(), &line)
        },
    },
    ExportedTable {
        rows: ENTRIES,
        columns: EntryLine::COLUMNS,
        batch: ENTRIES_BATCH,
        line: |export, _, row| {
            let line: EntryLine = row.read()?;
            export.show(line.line, &line.block, 0, &line)
        },
    },
    ExportedTable {
        rows: SKILLS,
        columns: SkillLine::COLUMNS,
        batch: LONG_BATCH,
        line: |export, _, row| {
            let line: SkillLine = row.read()?;
            export.show(line.line, &line.block, 0, &line)
        },
    },
    ExportedTable {
        rows: ITEM_VERSIONS,
        columns: PastLine::COLUMNS,
        batch: LONG_BATCH,
        line: |export, _, row| {
            let line: PastLine = row.read()?;
            export.show(line.line, &line.block, 0, &line)
        },
    },
    ExportedTable {
        rows: LOADED_SKILLS,
        columns: ExportedDocument::COLUMNS,
        batch: LONG_BATCH,
        line: |export, scope, row| {
            let document: ExportedDocument = row.read()?;
            if document.content.is_some() && !export.tally.fits(LineKind::Loaded, "", 0) {
                return Ok(None);
            }
            document.render(scope).map(Some)
        },
    },
];

row! {
    for VersionLine {
        block: String = "key",
        version: i64 = "version",
        content: String = "content",
        written_by: &str = "written_by",
        session_id: Option<String> = "session_id",
        turn_id: Option<String> = "turn_id",
        reason: Option<String> = "reason",
        written_at: i64 = "written_at",
        event_id: Option<String> = "event_id",
        source: Option<&str> = "source",
    }
    {
        let id = |id: Option<String>| Id::parse(id?).ok();
        Ok(Self {
            line: LineKind::Version,
            block: BlockKey(block),
            version: count(version),
            content,
            written_by: WrittenBy::parse(written_by),
            session_id: id(session_id),
            turn_id: id(turn_id),
            reason,
            written_at: FileTime::of(written_at),
            event_id: id(event_id),
            source: source.and_then(Origin::parse),
        })
    }
}

/// The note of an entry or a document that has one.
fn read_note(note: Option<&str>, key: &str) -> Result<Option<ItemNote>> {
    note.map(|note| ItemNote::read(Some(note), key)).transpose()
}

row! {
    for EntryLine {
        block: String = "block",
        key: String = "key",
        title: Option<String> = "title",
        content: String = "content",
        created_at: i64 = "created_at",
        updated_at: i64 = "updated_at",
        note: Option<&str> = "note",
    }
    {
        let note = read_note(note, &key)?;
        Ok(Self {
            line: LineKind::Entry,
            block: BlockKey(block),
            key,
            title,
            content,
            created_at: FileTime::of(created_at),
            updated_at: FileTime::of(updated_at),
            note,
        })
    }
}

row! {
    for SkillLine {
        block: String = "block",
        key: String = "key",
        description: Option<String> = "description",
        content: String = "content",
        updated_at: i64 = "updated_at",
        note: Option<&str> = "note",
    }
    {
        let note = read_note(note, &key)?;
        Ok(Self {
            line: LineKind::Skill,
            block: BlockKey(block),
            key,
            description,
            content,
            updated_at: FileTime::of(updated_at),
            note,
        })
    }
}

row! {
    for PastLine {
        block: String = "block",
        key: String = "key",
        _slot: i64 = "slot",
        title: Option<String> = "title",
        content: Option<String> = "content",
        note: Option<&str> = "note",
        written_at: i64 = "written_at",
    }
    {
        let note = ItemNote::read(note, &key)?;
        Ok(Self {
            line: LineKind::Past,
            block: BlockKey(block),
            key,
            title,
            content,
            note,
            written_at: FileTime::of(written_at),
        })
    }
}

/// A document loaded into the session's context.
struct ExportedDocument {
    key: String,
    label: String,
    content: Option<String>,
    loaded_at: i64,
}

impl ExportedDocument {
    fn render(self, scope: &str) -> Result<String> {
        let damaged = |_| Error::corrupt_row(scope, "loaded documents");
        render(&LoadedLine {
            line: LineKind::Loaded,
            label: Label::parse(&self.label).map_err(damaged)?,
            key: self.key,
            content: self.content,
            loaded_at: FileTime::of(self.loaded_at),
        })
    }
}

row! {
    for ExportedDocument {
        _block: &str = "block",
        key: String = "key",
        label: String = "label",
        content: Option<String> = "content",
        loaded_at: i64 = "loaded_at",
    }
    Ok(Self {
        key,
        label,
        content,
        loaded_at,
    })
}
