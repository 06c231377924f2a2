//! The lines of a session's memory. As in the tables, the lines of a block's contents
//! name the block by its key (its label in lower case). Contents may exist without their
//! block. They are found again when the block is defined again.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de};

use super::super::lines::{FileTime, LineKind};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{Count, MAX_INTEGER};
use base::quoted::ends_line;
use base::tags::{Metadata, Tags};
use base::tokens;
use memory::budget::check_content;
use memory::content::{Version, WrittenBy, check_reason};
use memory::definition::{DefineBlock, Definition, TokenBudget, WhenChanged, check_description};
use memory::entry::Entry;
use memory::entry_text::{MAX_SUPERSEDED, check_entry};
use memory::item_note::ItemNote;
use memory::kind::BlockKind;
use memory::label::{Label, is_key};
use memory::origin::quoted_text;
use memory::origin::{MAX_SOURCE_EVENTS, Origin};
use memory::past::PastVersion;
use memory::skills::loaded::LoadedSkill;
use memory::skills::skill::clip_description;
use memory::skills::{SkillDocument, check_document, check_skill_key};
use memory::source::{BlockSource, check_key};
use store::retention::BlockRetention;

/// The highest version. Each write adds one to a block's version.
const MAX_VERSION: i64 = u32::MAX as i64;

/// How many sections' hashes a frozen prompt stores: more than the blocks of an agent, of its
/// deployed configuration and of a session together.
const MAX_SECTIONS: usize = 300;

/// The length of a SHA-256 in hexadecimal digits.
const HASH_DIGITS: usize = 64;

/// A block's label in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct BlockKey(pub String);

impl<'de> Deserialize<'de> for BlockKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if is_key(&text) {
            Ok(Self(text))
        } else {
            Err(de::Error::custom("must be a block's label in lower case"))
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlockLine {
    #[serde(rename = "type")]
    pub line: LineKind,
    pub label: Label,
    pub kind: BlockKind,
    pub description: Option<String>,
    pub max_tokens: Option<TokenBudget>,
    pub default_content: Option<String>,
    pub source: Option<BlockSource>,
    pub when_changed: WhenChanged,
    /// Present if the definition sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_writes: Option<bool>,
    /// Present if the definition sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retention: Option<BlockRetention>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// Present if the definition comes from a file that its sender did not trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
    /// `true`: the agent removed the deployed block of this label.
    #[serde(default, skip_serializing_if = "is_false")]
    pub removed: bool,
    pub defined_at: FileTime,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl BlockLine {
    /// Checks the definition as `defineBlock` does.
    pub fn into_definition(self, session_id: Option<&Id>) -> Result<Definition> {
        let defined_at = Some(self.defined_at.0);
        let origin = self.origin;
        let block = DefineBlock {
            session_id: session_id.cloned(),
            label: self.label,
            kind: self.kind,
            description: self.description,
            max_tokens: self.max_tokens,
            default_content: self.default_content,
            source: self.source,
            when_changed: Some(self.when_changed),
            model_writes: self.model_writes,
            retention: self.retention,
            metadata: self.metadata,
            tags: self.tags,
        };
        Ok(Definition {
            defined_at,
            origin,
            ..block.into_definition()?
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct VersionLine {
    #[serde(rename = "type")]
    pub line: LineKind,
    pub block: BlockKey,
    pub version: Count,
    pub content: String,
    pub written_by: WrittenBy,
    pub session_id: Option<Id>,
    pub turn_id: Option<Id>,
    pub reason: Option<String>,
    pub written_at: FileTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Id>,
    /// The source of the text, if `writtenBy` does not imply it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
}

impl VersionLine {
    pub fn into_version(self) -> Result<(BlockKey, Version)> {
        if !(1..=MAX_VERSION).contains(&self.version.0) {
            return Err(Error::invalid(
                "version",
                format!("`version` must be an integer from 1 to {MAX_VERSION}."),
            ));
        }
        check_content("content", &self.content)?;
        check_reason(self.reason.as_deref())?;
        let text = |id: Id| id.as_str().to_owned();
        let version = Version {
            version: self.version.0,
            tokens: tokens::estimate(&self.content),
            content: self.content,
            written_by: self.written_by.name().to_owned(),
            session_id: self.session_id.map(text),
            turn_id: self.turn_id.map(text),
            event_id: self.event_id.map(text),
            reason: self.reason,
            written_at: self.written_at.0,
            source: self.source,
            ..Version::default()
        };
        Ok((self.block, version))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EntryLine {
    #[serde(rename = "type")]
    pub line: LineKind,
    pub block: BlockKey,
    pub key: String,
    pub title: Option<String>,
    pub content: String,
    pub created_at: FileTime,
    pub updated_at: FileTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<ItemNote>,
}

impl EntryLine {
    pub fn into_entry(self) -> Result<(BlockKey, Entry, ItemNote)> {
        check_entry(&self.key, self.title.as_deref(), &self.content)?;
        let note = check_note(self.note)?;
        let entry = Entry {
            key: self.key,
            title: self.title,
            content: self.content,
            created_at: self.created_at.0,
            updated_at: self.updated_at.0,
            metadata: note.metadata.clone(),
            tags: note.tags.clone(),
            source: note.origin(),
            events: note.source_events(),
            validity: note.validity.clone(),
        };
        Ok((self.block, entry, note))
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SkillLine {
    #[serde(rename = "type")]
    pub line: LineKind,
    pub block: BlockKey,
    pub key: String,
    pub description: Option<String>,
    pub content: String,
    pub updated_at: FileTime,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<ItemNote>,
}

impl SkillLine {
    pub fn into_document(self) -> Result<(BlockKey, SkillDocument, ItemNote)> {
        let note = check_note(self.note)?;
        let document = SkillDocument {
            key: self.key,
            description: self.description,
            content: self.content,
            ..SkillDocument::default()
        };
        check_document(&document)?;
        let is_clipped = |text: &String| clip_description(text) == *text;
        if !document.description.as_ref().is_none_or(is_clipped) {
            return Err(Error::invalid(
                "description",
                "`description` must be a single line that is short enough for the prompt's list of documents.",
            ));
        }
        Ok((self.block, document, note))
    }
}

/// An earlier version of an entry or a document.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PastLine {
    #[serde(rename = "type")]
    pub line: LineKind,
    pub block: BlockKey,
    pub key: String,
    pub title: Option<String>,
    /// `null`: the item was deleted.
    pub content: Option<String>,
    pub note: ItemNote,
    pub written_at: FileTime,
}

impl PastLine {
    pub fn into_past(self) -> Result<(BlockKey, String, PastVersion)> {
        check_skill_key(&self.key)?;
        if let Some(title) = &self.title {
            check_description("title", title)?;
        }
        check_content("content", self.content.as_deref().unwrap_or_default())?;
        let note = check_note(Some(self.note))?;
        let past = PastVersion {
            version: note.version,
            title: self.title,
            content: self.content,
            note,
            written_at: self.written_at.0,
        };
        Ok((self.block, self.key, past))
    }
}

/// Checks a note as the operations that write one do.
fn check_note(note: Option<ItemNote>) -> Result<ItemNote> {
    let note = note.unwrap_or_default();
    let wrong = |field: &str, how: &str| {
        let field = format!("note.{field}");
        Error::invalid(&field, format!("`{field}` {how}."))
    };
    if !(1..=MAX_VERSION).contains(&note.version) {
        let how = format!("must be an integer from 1 to {MAX_VERSION}");
        return Err(wrong("version", &how));
    }
    for (name, id) in [
        ("sessionId", &note.session_id),
        ("turnId", &note.turn_id),
        ("eventId", &note.event_id),
    ] {
        if let Some(id) = id {
            Id::parse(id.clone()).map_err(|how| wrong(name, how))?;
        }
    }
    if note.events.len() > MAX_SOURCE_EVENTS
        || !note.events.iter().all(|id| Id::parse(id.clone()).is_ok())
    {
        let how = format!("must have at most {MAX_SOURCE_EVENTS} event ids");
        return Err(wrong("events", &how));
    }
    let validity = &note.validity;
    let by = validity.superseded_by.iter();
    if validity.supersedes.len() > MAX_SUPERSEDED
        || !validity
            .supersedes
            .iter()
            .chain(by)
            .all(|key| check_key(key).is_ok())
    {
        let how =
            format!("must have at most {MAX_SUPERSEDED} entries, and `supersededBy` at most one");
        return Err(wrong("supersedes", &how));
    }
    let times = [
        validity.valid_from,
        validity.valid_until,
        validity.superseded_at,
    ];
    if !times
        .iter()
        .flatten()
        .all(|time| (0..=MAX_INTEGER).contains(time))
    {
        return Err(wrong(
            "validFrom",
            "and the other times must be in milliseconds since the epoch",
        ));
    }
    Ok(note)
}

/// A document in the session's context. Without `content`, it was unloaded.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoadedLine {
    #[serde(rename = "type")]
    pub line: LineKind,
    pub label: Label,
    pub key: String,
    pub content: Option<String>,
    pub loaded_at: FileTime,
}

impl LoadedLine {
    /// The line's document for an import whose sender does not trust the file: quoted, since the
    /// session's context shows it whole.
    pub fn quoted(self) -> Self {
        let loaded_at = self.loaded_at.0;
        Self {
            content: self.content.map(|text| quoted_document(&text, loaded_at)),
            ..self
        }
    }

    /// A document may come from any backend, so it may be longer than one that is stored in this
    /// object.
    pub fn into_loaded(self) -> Result<(BlockKey, LoadedSkill)> {
        check_skill_key(&self.key)?;
        check_content("content", self.content.as_deref().unwrap_or_default())?;
        let block = BlockKey(self.label.key());
        let loaded = LoadedSkill {
            label: self.label.as_str().to_owned(),
            key: self.key,
            content: self.content,
        };
        Ok((block, loaded))
    }
}

/// A document as a quotation of a file's text. An existing quotation stays unchanged.
pub fn quoted_document(text: &str, loaded_at: i64) -> String {
    let is_quoted = match text.split_once('\n') {
        Some((source, quoted)) => {
            Origin::find_quoted(source).is_some()
                && source.starts_with('(')
                && quoted.split(ends_line).all(|line| line.starts_with('>'))
        }
        None => false,
    };
    if is_quoted {
        text.to_owned()
    } else {
        quoted_text(Origin::Import, Some(loaded_at), text)
    }
}

/// The frozen prompt. The import computes its hash from its text.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PromptLine {
    #[serde(rename = "type")]
    pub line: LineKind,
    pub prompt: String,
    /// The hashes of the remind blocks' sections, by the blocks' keys.
    pub sections: BTreeMap<BlockKey, String>,
    pub frozen_at: FileTime,
}

impl PromptLine {
    pub fn check(&self, max_bytes: usize) -> Result<()> {
        if self.prompt.len() > max_bytes {
            let error = Error::payload_too_large("`prompt`", max_bytes, self.prompt.len());
            return Err(error.with_field("prompt"));
        }
        let is_hash = |hash: &String| {
            hash.len() == HASH_DIGITS && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        if self.sections.len() > MAX_SECTIONS || !self.sections.values().all(is_hash) {
            return Err(Error::invalid(
                "sections",
                format!(
                    "`sections` must have at most {MAX_SECTIONS} hashes of {HASH_DIGITS} \
                     hexadecimal digits, by their blocks' labels in lower case."
                ),
            ));
        }
        Ok(())
    }
}
