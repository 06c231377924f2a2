//! The trait of all operations.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

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

/// A field that may be left out, and that may be `null`: this tells the two apart.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}
