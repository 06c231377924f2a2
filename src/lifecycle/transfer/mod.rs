//! A session as a file and back: lines of JSON that can be written and read one
//! at a time, so that memory stays flat at any length.

mod compare;
pub mod export;
pub mod import;
mod lines;
pub mod memory;
mod pending;
pub mod rights;
pub mod rules;
pub mod target;
mod writing;

use crate::log::slices::MAX_EVENT_BYTES;

/// The longest line there is: the longest message, and room for the names around
/// it. Text that JSON has to escape was escaped when it came in, too, under the
/// same limit.
pub const MAX_LINE_BYTES: usize = MAX_EVENT_BYTES + (2 << 20);

/// The longest file that is taken: longer than what a Worker can be sent.
pub const MAX_FILE_BYTES: u64 = 4 << 30;

/// A page ends with the line that makes it this long.
pub const PAGE_BYTES: usize = 1 << 20;
