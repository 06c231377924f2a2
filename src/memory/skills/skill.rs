//! A document as it is listed.

use serde::{Deserialize, Serialize};

/// A document, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    pub key: String,
    pub description: Option<String>,
    /// Of its content, where that is known.
    pub bytes: Option<i64>,
    pub updated_at: Option<i64>,
}

/// One line of at most [`MAX_DESCRIPTION_CHARS`].
pub fn clip_description(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_DESCRIPTION_CHARS) {
        Some((cut, _)) => format!("{}…", line.get(..cut).unwrap_or_default()),
        None => line,
    }
}

/// Characters of a description in a listing.
pub const MAX_DESCRIPTION_CHARS: usize = 500;
