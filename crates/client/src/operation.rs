//! The trait of all operations.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

/// One operation with its input. [`operations`](crate::operations) has them all.
pub trait Operation: Serialize {
    type Output: DeserializeOwned;

    /// Its name in the API.
    const NAME: &'static str;

    /// Whether it changes nothing.
    const READS: bool;

    /// Whether running it twice has the same effect as running it once.
    fn is_repeatable(&self) -> bool {
        Self::READS
    }
}

/// For an optional field that may be `null`: distinguishes `null` from a missing field.
pub(crate) fn nullable<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(deserializer).map(Some)
}
