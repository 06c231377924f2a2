//! Imports a session's memory: checks each line as its operation would, then writes it with others
//! in one transaction.
//!
//! Lines of one type are sorted by key. So the import detects a duplicate key, or one line too
//! many, without reading stored rows.

use std::collections::HashMap;

use serde::de::DeserializeOwned;

use super::super::lines::LineKind;
use super::lines::{
    BlockKey, BlockLine, EntryLine, LoadedLine, PastLine, PromptLine, SkillLine, VersionLine,
};
use super::{LineCounter, SORTS, can_contain, most};
use crate::transfer::rules::CALL_TOOL;
use crate::transfer::target::{ImportTarget, OmittedPart, at_line};
use base::database::{Database, MAX_VALUE_BYTES};
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json;
use memory::BlockScope;
use memory::content::{MAX_VERSIONS_BYTES, Version, WrittenBy, insert_version};
use memory::definition::Definition;
use memory::definitions::{self, MAX_BLOCKS, check_location, check_retention};
use memory::entry::Entry;
use memory::entry_rows;
use memory::frozen;
use memory::item_note::ItemNote;
use memory::kind::BlockKind;
use memory::origin::Origin;
use memory::past::{ItemRef, MAX_ENTRY_VERSIONS, MAX_SKILL_VERSIONS, PastVersion, insert_past};
use memory::skills::SkillDocument;
use memory::skills::loaded::{self, LoadedSkill};
use memory::skills::stored;

/// A parsed line that waits for its batch.
enum PendingMemoryLine {
    Block { block: Definition, is_removed: bool },
    Version(BlockKey, Version),
    Entry(BlockKey, Box<(Entry, ItemNote)>),
    Skill(BlockKey, Box<(SkillDocument, ItemNote)>, i64),
    Past(BlockKey, String, Box<PastVersion>),
    Loaded(LoadedSkill, i64),
    Prompt(PromptLine),
}

/// A line's sort position among the lines of its type.
#[derive(PartialEq, PartialOrd)]
enum LineOrder {
    Version(BlockKey, i64),
    Keyed(BlockKey, String),
    Slot(BlockKey, String, i64),
}

impl LineOrder {
    fn block(&self) -> &BlockKey {
        match self {
            LineOrder::Version(block, _)
            | LineOrder::Keyed(block, _)
            | LineOrder::Slot(block, ..) => block,
        }
    }
}

pub struct MemoryImport {
    target: ImportTarget,
    /// The session whose memory it is; `None`: the agent's.
    session_id: Option<Id>,
    /// The kinds of the blocks, by the blocks' keys.
    kinds: HashMap<String, BlockKind>,
    newest: Option<(LineKind, LineOrder)>,
    tally: LineCounter,
    has_prompt: bool,
    pending: Vec<(u64, PendingMemoryLine)>,
    pending_bytes: usize,
}

impl MemoryImport {
    /// The import of a session's memory.
    pub fn new(target: ImportTarget) -> Self {
        let session_id = Some(target.session_id().clone());
        Self {
            session_id,
            ..Self::of_agent(target)
        }
    }

    /// The import of the agent's own memory. Its sender authenticated with the secret, so the
    /// session of `target` is ignored.
    pub fn of_agent(target: ImportTarget) -> Self {
        Self {
            target,
            session_id: None,
            kinds: HashMap::new(),
            newest: None,
            tally: LineCounter::default(),
            has_prompt: false,
            pending: Vec::new(),
            pending_bytes: 0,
        }
    }

    /// How many lines wait for their batch, and about how many bytes they have.
    pub fn pending(&self) -> (usize, usize) {
        (self.pending.len(), self.pending_bytes)
    }

    pub fn import(&mut self, kind: LineKind, line: &[u8], line_number: u64) -> Result<()> {
        if let Some(sort) = SORTS.iter().find(|sort| sort.kind == kind) {
            self.target.sender.check(sort.written_by)?;
        }
        let item = match kind {
            LineKind::Block => self.import_block(parse(line)?)?,
            LineKind::Version => {
                let line: VersionLine = parse(line)?;
                self.check_writer(line.written_by, line.session_id.as_ref().map(Id::as_str))?;
                let (block, mut version) = line.into_version()?;
                if !self.target.sender.keeps_origins() {
                    version.source = Some(version.origin().imported());
                }
                let bytes = version.content.len();
                let order = LineOrder::Version(block.clone(), version.version);
                self.advance_to(kind, order)?;
                self.check_capacity(kind, &block.0, bytes)?;
                PendingMemoryLine::Version(block, version)
            }
            LineKind::Entry => {
                let (block, mut entry, note) = parse::<EntryLine>(line)?.into_entry()?;
                let note = self.as_imported(note);
                entry.source = note.origin();
                self.check_writer(note.written_by, note.session_id.as_deref())?;
                let order = LineOrder::Keyed(block.clone(), entry.key.clone());
                self.advance_to(kind, order)?;
                self.check_capacity(kind, &block.0, 0)?;
                PendingMemoryLine::Entry(block, Box::new((entry, note)))
            }
            LineKind::Skill => {
                let line: SkillLine = parse(line)?;
                let updated_at = line.updated_at.0;
                let (block, document, note) = line.into_document()?;
                let note = self.as_imported(note);
                self.check_writer(note.written_by, note.session_id.as_deref())?;
                let order = LineOrder::Keyed(block.clone(), document.key.clone());
                self.advance_to(kind, order)?;
                self.check_capacity(kind, &block.0, 0)?;
                PendingMemoryLine::Skill(block, Box::new((document, note)), updated_at)
            }
            LineKind::Past => {
                let (block, key, mut past) = parse::<PastLine>(line)?.into_past()?;
                if past.content.is_some() {
                    past.note = self.as_imported(past.note);
                }
                self.check_writer(past.note.written_by, past.note.session_id.as_deref())?;
                let slot = past.version % self.version_slots(&block);
                let order = LineOrder::Slot(block.clone(), key.clone(), slot);
                self.advance_to(kind, order)?;
                self.check_capacity(kind, &block.0, 0)?;
                PendingMemoryLine::Past(block, key, Box::new(past))
            }
            LineKind::Loaded => {
                let line: LoadedLine = parse(line)?;
                let line = if self.target.sender.keeps_origins() {
                    line
                } else {
                    line.quoted()
                };
                let loaded_at = line.loaded_at.0;
                let (block, loaded) = line.into_loaded()?;
                let order = LineOrder::Keyed(block, loaded.key.clone());
                self.advance_to(kind, order)?;
                if loaded.content.is_some() {
                    self.check_capacity(kind, "", 0)?;
                }
                PendingMemoryLine::Loaded(loaded, loaded_at)
            }
            _ => {
                let prompt = self.import_prompt(parse(line)?)?;
                if !self.target.sender.accepts_prompts() {
                    return Ok(());
                }
                prompt
            }
        };
        self.pending_bytes += line.len();
        self.pending.push((line_number, item));
        Ok(())
    }

    /// Returns the note unchanged if the sender is trusted to name origins. Otherwise marks its
    /// text as imported, whatever the file contains: a file must not give a text more trust than
    /// its sender has.
    fn as_imported(&self, note: ItemNote) -> ItemNote {
        if self.target.sender.keeps_origins() {
            note
        } else {
            let origin = note.origin().imported();
            note.with_origin(origin)
        }
    }

    /// Checks a version's writer. A sender who may not call tools can't claim that a
    /// tool wrote the version. A token for one session can't claim a write in another
    /// session.
    fn check_writer(&self, written_by: WrittenBy, session_id: Option<&str>) -> Result<()> {
        let sender = &self.target.sender;
        if matches!(written_by, WrittenBy::Tool) {
            sender.check(&[CALL_TOOL])?;
        }
        let only = sender.caller.only_session();
        if session_id.is_some_and(|id| only.is_some_and(|only| only.as_str() != id)) {
            return Err(Error::new(
                Code::Forbidden,
                "This token is for one session, so `sessionId` can't be another one.",
            )
            .with_field("sessionId"));
        }
        Ok(())
    }

    /// How many earlier versions of an item this block stores.
    fn version_slots(&self, block: &BlockKey) -> i64 {
        match self.kinds.get(&block.0) {
            Some(BlockKind::Loadable) => MAX_SKILL_VERSIONS,
            Some(_) | None => MAX_ENTRY_VERSIONS,
        }
    }

    /// The parts that the import left out.
    pub fn left_out(&self) -> Vec<OmittedPart> {
        let is_left_out = self.has_prompt && !self.target.sender.accepts_prompts();
        is_left_out
            .then_some(OmittedPart::Prompt)
            .into_iter()
            .collect()
    }

    fn import_block(&mut self, line: BlockLine) -> Result<PendingMemoryLine> {
        if line.source.is_some() {
            self.target.sender.check_source()?;
        }
        let is_removed = line.removed;
        if is_removed && self.session_id.is_some() {
            return Err(Error::invalid(
                "removed",
                "A session has no deployed blocks to remove. Delete `removed` from the line.",
            ));
        }
        let mut block = line.into_definition(self.session_id.as_ref())?;
        if !self.target.sender.keeps_origins() {
            block.origin = Some(Origin::Import);
        }
        let block = block.resolve_for(&self.target.agent);
        check_location(&block)?;
        if block.retention.is_some() {
            self.target.sender.check_retention("retention")?;
        }
        check_retention(&block)?;
        if self.kinds.insert(block.label.key(), block.kind).is_some() {
            return Err(Error::invalid(
                "label",
                "An earlier line already has a block with this `label`.",
            ));
        }
        if self.kinds.len() as i64 > MAX_BLOCKS {
            return Err(too_many("label", MAX_BLOCKS, LineKind::Block));
        }
        Ok(PendingMemoryLine::Block { block, is_removed })
    }

    fn import_prompt(&mut self, line: PromptLine) -> Result<PendingMemoryLine> {
        line.check(MAX_VALUE_BYTES)?;
        if std::mem::replace(&mut self.has_prompt, true) {
            return Err(Error::invalid(
                "type",
                "A session has one frozen prompt, so it can have only one `prompt` line.",
            ));
        }
        Ok(PendingMemoryLine::Prompt(line))
    }

    fn advance_to(&mut self, kind: LineKind, order: LineOrder) -> Result<()> {
        let block = order.block();
        if let Some(holder) = self.kinds.get(&block.0)
            && !can_contain(*holder, kind)
        {
            let message = format!(
                "Block `{}` of an earlier line is {}, so it can't have this line.",
                block.0,
                holder.name()
            );
            return Err(Error::invalid("block", message));
        }
        let before = self.newest.take().filter(|(before, _)| *before == kind);
        if before.as_ref().is_some_and(|(_, before)| *before >= order) {
            let key = match order {
                LineOrder::Version(..) => "version",
                LineOrder::Keyed(..) => "key",
                LineOrder::Slot(..) => "slot",
            };
            return Err(Error::invalid(
                key,
                format!(
                    "`{}` lines must be sorted by block and then by `{key}`, without \
                     duplicates.",
                    kind.name()
                ),
            ));
        }
        self.newest = Some((kind, order));
        Ok(())
    }

    fn check_capacity(&mut self, kind: LineKind, block: &str, bytes: usize) -> Result<()> {
        if self.tally.fits(kind, block, bytes) {
            Ok(())
        } else {
            Err(too_many("block", most(kind), kind))
        }
    }

    /// Writes the waiting lines. Part of a transaction.
    pub fn write(&self, db: &dyn Database) -> Result<()> {
        for (line_number, item) in &self.pending {
            self.write_item(db, item)
                .map_err(|error| at_line(*line_number, error))?;
        }
        Ok(())
    }

    /// Drops the lines that were written.
    pub fn written(&mut self) {
        self.pending.clear();
        self.pending_bytes = 0;
    }

    fn write_item(&self, db: &dyn Database, item: &PendingMemoryLine) -> Result<()> {
        let session_id = self.session_id.as_ref();
        let scope = session_id.map_or(BlockScope::Agent, BlockScope::Session);
        match item {
            PendingMemoryLine::Block { block, is_removed } => {
                definitions::write(db, block)?;
                if *is_removed {
                    definitions::hide(db, &block.scope, &block.label)?;
                }
                Ok(())
            }
            PendingMemoryLine::Version(block, version) => {
                insert_version(db, scope.column(), &block.0, version)
            }
            PendingMemoryLine::Entry(block, item) => {
                let (entry, note) = item.as_ref();
                entry_rows::restore(db, scope.column(), &block.0, entry, note)
            }
            PendingMemoryLine::Skill(block, item, updated_at) => {
                let (document, note) = item.as_ref();
                let block_key = [scope.column(), block.0.as_str()];
                stored::restore(db, block_key, document, *updated_at, note)
            }
            PendingMemoryLine::Past(block, key, past) => {
                let item = ItemRef {
                    scope: scope.column(),
                    block: &block.0,
                    key,
                };
                insert_past(db, &item, self.version_slots(block), past)
            }
            PendingMemoryLine::Loaded(loaded, loaded_at) => match session_id {
                Some(session_id) => loaded::restore(db, session_id, loaded, *loaded_at),
                None => Err(Error::invalid(
                    "type",
                    "Only a session can have `loaded` lines: documents are loaded in sessions, not in the agent.",
                )),
            },
            PendingMemoryLine::Prompt(line) => {
                let sections = line.sections.iter();
                let sections = sections.map(|(key, hash)| (key.0.clone(), hash.clone()));
                let frozen_at = line.frozen_at.0;
                frozen::write(
                    db,
                    scope,
                    line.prompt.clone(),
                    &sections.collect(),
                    frozen_at,
                )
                .map(drop)
            }
        }
    }
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T> {
    json::parse(line)
}

fn too_many(field: &str, most: i64, kind: LineKind) -> Error {
    let name = kind.name();
    let message = match kind {
        LineKind::Version => {
            format!(
                "A block can have at most {most} versions, with {MAX_VERSIONS_BYTES} bytes in \
                     total."
            )
        }
        LineKind::Block | LineKind::Loaded => {
            format!("A session can have at most {most} `{name}` lines.")
        }
        _ => format!("A block can have at most {most} `{name}` lines."),
    };
    Error::invalid(field, format!("{message} An export never writes more."))
}
