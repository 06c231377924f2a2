//! The four kinds of blocks.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BlockKind {
    /// A text that the model reads and can't change.
    Readonly,
    /// A text that the model maintains, always in the prompt.
    Writable,
    /// Entries that the model finds by searching.
    Searchable,
    /// Documents that the model loads by their keys.
    Loadable,
}

impl BlockKind {
    pub fn name(self) -> &'static str {
        match self {
            BlockKind::Readonly => "readonly",
            BlockKind::Writable => "writable",
            BlockKind::Searchable => "searchable",
            BlockKind::Loadable => "loadable",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [
            BlockKind::Readonly,
            BlockKind::Writable,
            BlockKind::Searchable,
            BlockKind::Loadable,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }

    /// Whether a block of this kind has a single text, which the prompt contains.
    pub fn has_content(self) -> bool {
        matches!(self, BlockKind::Readonly | BlockKind::Writable)
    }
}
