//! Search by meaning, beside search by words. If an embedding model is configured, texts
//! get vectors. A search then also finds texts whose vectors are near the query's, even
//! if they share no word with it.
//!
//! The rule it protects: words never wait for meanings. A text is written and found by
//! its words whatever the model does. Vectors follow, a bounded number at a time. If the
//! model fails, a search still finds everything that words find.

pub mod entries;
pub mod events;
mod nearest;
mod vector;

pub use nearest::VectorReport;
