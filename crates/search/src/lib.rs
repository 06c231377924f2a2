//! Search over events by their words. The words are stemmed and stored in an FTS5 index. The index
//! is built from an agent's first search on, and kept exact from then on. The index finds
//! candidates; the ranking reads their texts and decides which are best. Snippets show the words
//! of a hit. The words and the ranking also serve the entries of memory.

pub mod agent_candidates;
pub mod asked;
pub mod build;
pub mod candidates;
pub mod counter;
pub mod document;
pub mod find;
pub mod fuse;
pub mod index;
pub mod indexed;
pub mod json_schema;
pub mod merge;
pub mod order;
mod phrases;
mod plain;
pub mod prefixes;
pub mod progress;
pub mod query;
pub mod rank;
mod read;
pub mod request;
pub mod row_words;
pub mod sentences;
mod session_candidates;
mod session_scan;
mod skim;
pub mod snippet;
mod speaker;
pub mod stem;
mod steps;
pub mod terms;
mod texts;
mod time_words;
pub mod weights;
pub mod words;
