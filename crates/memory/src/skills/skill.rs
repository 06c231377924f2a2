//! A document as it appears in listings.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::item_note::ItemNote;
use crate::origin::Origin;
use base::json::written_bytes;
use base::tags::{Metadata, Tags};

/// The bytes of a listed document besides its texts: names, numbers and commas.
const AROUND_BYTES: usize = 150;

/// A document in a listing, without its content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    pub key: String,
    pub description: Option<String>,
    /// Bytes of the content. `null`: unknown.
    pub bytes: Option<i64>,
    pub updated_at: Option<i64>,
    /// The custom data of the document, if it is stored in this agent or in another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    #[serde(default, skip_serializing_if = "Tags::is_empty")]
    pub tags: Tags,
    /// The source of the text, if the document is stored in this agent or in another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
}

impl Skill {
    /// The approximate size of the document in an answer.
    pub fn written_bytes(&self) -> usize {
        let description = self.description.as_deref().map_or(0, written_bytes);
        let marks = self.tags.written_bytes() + Metadata::bytes_of(self.metadata.as_ref());
        written_bytes(&self.key) + description + marks + AROUND_BYTES
    }

    /// Adds the metadata, tags and origin from the document's note.
    pub fn with_note(self, note: &ItemNote) -> Self {
        Self {
            metadata: note.metadata.clone(),
            tags: note.tags.clone(),
            source: Some(note.origin()),
            ..self
        }
    }
}

/// Shortens a text to one line of at most [`MAX_DESCRIPTION_CHARS`] characters.
pub fn clip_description(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default()),
        None => line,
    }
}

/// The most characters of a description in a listing.
pub const MAX_DESCRIPTION_CHARS: usize = 500;
