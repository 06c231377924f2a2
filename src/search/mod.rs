//! Search over what was said: words, stemmed by us, in an FTS5 index that is built
//! from an agent's first search on, and kept exact from then on. The index finds
//! candidates; which of them is best is decided here, with their texts at hand.

pub mod build;
mod candidates;
pub mod document;
pub mod find;
pub mod fuse;
pub mod index;
mod progress;
pub mod query;
pub mod rank;
mod read;
pub mod request;
mod skim;
pub mod snippet;
pub mod stem;
pub mod terms;
pub mod words;
