//! Limits for the length of a request's body.

use base::error::{Code, Error, Result};
use conversation::log::slices::MAX_EVENT_BYTES;

/// The maximum length of the body of most operations, whose fields are short texts and
/// lists of names.
pub const DEFAULT_BODY_BYTES: usize = 1 << 20;

/// The maximum length of the body of an operation that writes events: the largest event
/// plus the other fields.
pub const EVENTS_BODY_BYTES: usize = MAX_EVENT_BYTES + DEFAULT_BODY_BYTES;

/// The maximum length of the body of an operation that takes a text of `bytes` bytes. JSON
/// may need six bytes for one (`\u0001`); the rest is for the other fields.
pub const fn body_with_text(bytes: usize) -> usize {
    6 * bytes + (64 << 10)
}

pub fn check_length(limit: usize, actual: usize) -> Result<()> {
    if actual > limit {
        Err(Error::payload_too_large("The body", limit, actual))
    } else {
        Ok(())
    }
}

/// Refuses a compressed body, because the limits count the bytes as sent. `encoding`: the header
/// `content-encoding`.
pub fn check_encoding(encoding: Option<&str>) -> Result<()> {
    if matches!(encoding.unwrap_or_default().trim(), "" | "identity") {
        return Ok(());
    }
    Err(Error::new(
        Code::UnsupportedMediaType,
        "The body is compressed. Send it as it is, without `content-encoding`.",
    )
    .with("header", "content-encoding"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_body_is_refused() {
        for plain in [None, Some(""), Some(" identity ")] {
            assert!(check_encoding(plain).is_ok(), "{plain:?}");
        }
        for packed in ["gzip", "br", "identity, gzip"] {
            let code = check_encoding(Some(packed)).unwrap_err().code;
            assert_eq!(code, Code::UnsupportedMediaType, "{packed}");
        }
    }
}
