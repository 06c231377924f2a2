//! What each operation is.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// One operation with its input. [`operations`](crate::operations) has them all.
pub trait Operation: Serialize {
    type Output: DeserializeOwned;

    /// As the API calls it.
    const NAME: &'static str;

    /// Whether it changes nothing.
    const READS: bool;

    /// Whether running it twice is as good as once.
    fn is_repeatable(&self) -> bool {
        Self::READS
    }
}
