//! Finding by meaning, beside finding by words: where an embedding model is
//! configured, texts have vectors, and what lies near a query's is found though
//! it shares no word with it.
//!
//! The rule it protects: words never wait for meanings. A text is written and
//! found by its words whatever the model does; vectors follow, a bounded number
//! at a time, and a model that fails costs its share of a search and no more.

pub mod entries;
pub mod events;
mod nearest;
mod vector;

pub use nearest::VectorReport;
