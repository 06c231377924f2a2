//! Search by words and by meaning.

pub mod bounds;
pub mod search_index;
pub mod vectors;
pub mod words;
