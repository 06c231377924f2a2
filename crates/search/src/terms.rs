//! The words of a query, weighted by their rarity in an index.

/// A word of the query with its rarity.
#[derive(Clone)]
pub struct QueryTerm {
    pub stem: String,
    pub rarity: f64,
    /// The number of texts that contain it.
    pub found: i64,
    /// The number of steps that finding it takes.
    pub steps: i64,
}

impl QueryTerm {
    /// A word that occurs in `found` of `all` texts.
    pub fn new(stem: String, found: i64, all: i64) -> Self {
        Self {
            stem,
            rarity: rarity(found, all),
            found,
            steps: found,
        }
    }
}

/// The rarity of a word that occurs in `found` of `all` events.
pub fn rarity(found: i64, all: i64) -> f64 {
    let (found, all) = (found as f64, all.max(found) as f64);
    (1.0 + (all - found + 0.5) / (found + 0.5)).ln().sqrt()
}
