//! The metadata of a version of an entry or a document: its writer, its source, the
//! callers' metadata and tags, and its validity.

use serde::{Deserialize, Serialize};

use super::content::WrittenBy;
use super::origin::{Marks, Origin, texts_of};
use super::validity::Validity;
use super::writer::MemoryWriter;
use base::error::{Error, Result};
use base::json;
use base::tags::{Metadata, Tags};

/// The metadata of an item's newest version, stored in its row next to the text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemNote {
    pub version: i64,
    pub written_by: WrittenBy,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// Whether the text is from a caller who may write only the memory of `session_id`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub narrowed: bool,
    /// The source of the text, unless `written_by` implies it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
    /// The events that the text comes from, unless `event_id` identifies them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub events: Vec<String>,
    /// The custom data of the item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    #[serde(flatten)]
    pub validity: Validity,
}

impl Default for ItemNote {
    /// The note of an item that was written before notes existed.
    fn default() -> Self {
        Self {
            version: 1,
            written_by: WrittenBy::Operation,
            session_id: None,
            turn_id: None,
            event_id: None,
            narrowed: false,
            source: None,
            events: Vec::new(),
            metadata: None,
            tags: Tags::default(),
            validity: Validity::default(),
        }
    }
}

impl ItemNote {
    pub fn new(version: i64, writer: MemoryWriter<'_>, validity: Validity, marks: Marks) -> Self {
        let written_by = if writer.is_tool {
            WrittenBy::Tool
        } else {
            WrittenBy::Operation
        };
        Self {
            version,
            written_by,
            session_id: writer.session_id.map(|id| id.as_str().to_owned()),
            turn_id: writer.turn_id.map(str::to_owned),
            event_id: writer.event_id.map(str::to_owned),
            narrowed: writer.is_narrowed,
            source: Some(writer.origin()).filter(|origin| *origin != written_by.default_origin()),
            events: texts_of(writer.events),
            metadata: marks.metadata,
            tags: marks.tags,
            validity,
        }
    }

    /// The source of the text. A text that was written before this was kept comes from a model if a
    /// tool wrote it, and else from the operator.
    pub fn origin(&self) -> Origin {
        self.source
            .unwrap_or_else(|| self.written_by.default_origin())
    }

    /// The events that the text comes from: those that its writer specified, or the answer
    /// in which a model wrote it.
    pub fn source_events(&self) -> Vec<String> {
        if self.events.is_empty() {
            self.event_id.iter().cloned().collect()
        } else {
            self.events.clone()
        }
    }

    /// This note with another origin.
    pub fn with_origin(self, origin: Origin) -> Self {
        Self {
            source: Some(origin).filter(|origin| *origin != self.written_by.default_origin()),
            ..self
        }
    }

    pub fn marks(&self) -> Marks {
        Marks {
            metadata: self.metadata.clone(),
            tags: self.tags.clone(),
        }
    }

    /// Parses the column `note` of the item `key`.
    pub fn read(column: Option<&str>, key: &str) -> Result<Self> {
        match column {
            Some(text) => json::decode(text).map_err(|_| Error::corrupt_row(key, "note")),
            None => Ok(Self::default()),
        }
    }

    /// The column `note` of an item's row.
    pub fn to_column(&self) -> Result<Option<String>> {
        if *self == Self::default() {
            Ok(None)
        } else {
            self.to_json().map(Some)
        }
    }

    pub fn to_json(&self) -> Result<String> {
        json::encode(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_note_is_version_one_written_by_an_operation() {
        assert_eq!(ItemNote::read(None, "a").unwrap(), ItemNote::default());
        let note = ItemNote::default();
        let json = note.to_json().unwrap();
        assert_eq!(json, r#"{"version":1,"writtenBy":"operation"}"#);
        assert_eq!(ItemNote::read(Some(&json), "a").unwrap(), note);
        assert!(ItemNote::read(Some("{"), "a").is_err());
    }
}
