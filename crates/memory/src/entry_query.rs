//! The query of a search of entries, and the time that it refers to.

use base::filter::Filter;

/// The query of a search of entries.
#[derive(Clone, Copy)]
pub struct EntryQuery<'a> {
    pub queries: &'a [String],
    pub limit: i64,
    /// Searches what was valid at this time. `None`: now.
    pub as_of: Option<i64>,
    /// The filter that an entry must pass.
    pub filter: Option<&'a Filter>,
}

impl EntryQuery<'_> {
    pub fn most(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(0)
    }
}

/// The time that a search refers to.
#[derive(Clone, Copy)]
pub struct Moment {
    pub now_ms: i64,
    /// `None`: now.
    pub as_of: Option<i64>,
}
