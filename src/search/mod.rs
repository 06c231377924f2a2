//! Search over what was said: words, stemmed by us, in an FTS5 index that exists
//! once an agent has searched and is kept exact from then on. The index finds
//! candidates; which of them is best is decided here, with their texts at hand.

pub mod build;
pub mod document;
pub mod find;
pub mod fuse;
pub mod index;
pub mod query;
pub mod rank;
pub mod snippet;
pub mod stem;
pub mod terms;
pub mod words;
