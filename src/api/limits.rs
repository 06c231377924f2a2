//! How many bytes the body of a request may have.

use crate::base::error::{Error, Result};
use crate::log::slices::MAX_EVENT_BYTES;

/// What most operations may send: their fields are short, and lists of names.
pub const DEFAULT_BODY_BYTES: usize = 1 << 20;

/// What an operation may send that writes events: the largest there may be, and
/// room for what stands around it.
pub const EVENTS_BODY_BYTES: usize = MAX_EVENT_BYTES + DEFAULT_BODY_BYTES;

/// What an operation may send that takes a text of so many bytes. JSON may spell
/// a byte in six (`\u0001`); the rest is for the other fields.
pub const fn body_with_text(bytes: usize) -> usize {
    6 * bytes + (64 << 10)
}

pub fn check_length(limit: usize, actual: usize) -> Result<()> {
    match actual > limit {
        true => Err(Error::payload_too_large("The body", limit, actual)),
        false => Ok(()),
    }
}
