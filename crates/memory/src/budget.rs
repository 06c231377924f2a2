//! How long a block's text may be, in bytes and in tokens.

use crate::label::Label;
use base::error::{Code, Error, Result};
use base::tokens;

pub fn check_content(field: &str, content: &str) -> Result<()> {
    if content.len() > MAX_CONTENT_BYTES {
        return Err(Error::payload_too_large(
            &format!("`{field}`"),
            MAX_CONTENT_BYTES,
            content.len(),
        )
        .with_field(field));
    }
    Ok(())
}

/// Checks a text against its block's budget. Returns the text's tokens.
pub fn check_budget(label: &Label, max_tokens: Option<i64>, content: &str) -> Result<i64> {
    let count = tokens::estimate(content);
    match max_tokens {
        Some(max_tokens) if count > max_tokens => Err(Error::new(
            Code::BlockOverBudget,
            format!(
                "Block `{label}` would have {count} tokens; its budget is {max_tokens}. Nothing \
                 was written: shorten the text and write it again."
            ),
        )
        .with("label", label.as_str())
        .with("tokens", count)
        .with("maxTokens", max_tokens)),
        _ => Ok(count),
    }
}

/// The most bytes of a block's text: every model call sends the text, and it must
/// fit in a row.
pub const MAX_CONTENT_BYTES: usize = 1 << 20;
