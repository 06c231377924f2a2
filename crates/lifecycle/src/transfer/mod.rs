//! Exports a session as a file, and imports such a file. The file consists of lines of
//! JSON, which are written and read one at a time, so that memory use doesn't grow with the
//! file.

pub mod compare;
pub mod cpu;
pub mod export;
mod export_rows;
pub mod import;
pub mod line_splitter;
pub mod lines;
pub mod memory;
mod pending;
pub mod rights;
pub mod rules;
pub mod target;
mod writing;

use base::database::Database;
use base::error::Result;
use conversation::log::slices::MAX_EVENT_BYTES;

/// The longest line: the longest message, plus space for the other fields. Escape sequences in a
/// text already counted toward the limit when the text was written.
pub const MAX_LINE_BYTES: usize = MAX_EVENT_BYTES + (2 << 20);

/// The longest file that an import accepts: longer than a Worker's largest request body.
pub const MAX_FILE_BYTES: u64 = 4 << 30;

/// A page ends with the line that makes it this long.
pub const PAGE_BYTES: usize = 1 << 20;

/// Adds the lines of rows until the page is full. `limit`: how many rows the statement could
/// return. `add` adds a row's line, and returns the row's position. Returns the position to
/// continue after; `None`: there are no more rows.
pub fn add_rows<R, P>(
    rows: Vec<R>,
    limit: i64,
    page: &mut String,
    mut add: impl FnMut(R, &mut String) -> Result<P>,
) -> Result<Option<P>> {
    let may_be_more = rows.len() as i64 == limit;
    let mut rows = rows.into_iter();
    let mut last = None;
    for row in rows.by_ref() {
        last = Some(add(row, page)?);
        if page.len() >= PAGE_BYTES {
            break;
        }
    }
    Ok(last.filter(|_| may_be_more || rows.len() > 0))
}

/// A file that is generated one page at a time.
pub trait PagedFile {
    /// The next lines. `None`: there are no more lines.
    fn next_page(&mut self, db: &dyn Database) -> Result<Option<String>>;
}

impl PagedFile for export::Export {
    fn next_page(&mut self, db: &dyn Database) -> Result<Option<String>> {
        export::Export::next_page(self, db)
    }
}
