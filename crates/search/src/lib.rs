//! Words, their stems, and the ranking of texts by them. No I/O: callers pass the texts and the
//! counts of the words. The ranking is used for events, with the index in `conversation`, and for
//! the entries of memory. Snippets show the words of a hit.

pub mod counter;
pub mod document;
pub mod fast_path;
pub mod fuse;
pub mod merge;
pub mod prefixes;
pub mod query;
pub mod query_words;
pub mod rank;
pub mod row_words;
pub mod sentences;
mod skim;
pub mod snippet;
pub mod speaker;
pub mod stem;
pub mod steps;
pub mod terms;
pub mod time_words;
pub mod weights;
pub mod words;
