//! The four kinds of blocks.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The model reads it and can't change it.
    Readonly,
    /// A scratchpad that the model keeps, always in the prompt.
    Writable,
    /// Entries that the model finds by searching.
    Searchable,
    /// Documents that the model loads whole, by their keys.
    Loadable,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Readonly => "readonly",
            Kind::Writable => "writable",
            Kind::Searchable => "searchable",
            Kind::Loadable => "loadable",
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [
            Kind::Readonly,
            Kind::Writable,
            Kind::Searchable,
            Kind::Loadable,
        ]
        .into_iter()
        .find(|kind| kind.name() == name)
    }

    /// Whether it holds one text, which stands in the prompt.
    pub fn has_content(self) -> bool {
        matches!(self, Kind::Readonly | Kind::Writable)
    }
}
