//! A document as listings show it.

use serde::{Deserialize, Serialize};

/// A document in a listing, without its content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    pub key: String,
    pub description: Option<String>,
    /// Bytes of the content. `null`: unknown.
    pub bytes: Option<i64>,
    pub updated_at: Option<i64>,
}

/// Shortens a text to one line of at most [`MAX_DESCRIPTION_CHARS`].
pub fn clip_description(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default()),
        None => line,
    }
}

/// The most characters of a description in a listing.
pub const MAX_DESCRIPTION_CHARS: usize = 500;
