//! Tracks how a turn frees capacity for a request that its model refused because of its
//! length.

use serde::{Deserialize, Serialize};

/// How many times a step frees capacity for its request. After one more refusal, the turn
/// ends.
const MAX_REFUSALS: u32 = 1;

/// How the model reacted to the length of a step's request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LengthFeedback {
    /// The number of times that the model refused this step's request.
    pub refusals: u32,
    /// The conversation must be compacted before the next request.
    pub is_needed: bool,
}

impl LengthFeedback {
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Records a refusal. Returns whether the step is retried.
    pub fn record_refusal(&mut self) -> bool {
        self.refusals += 1;
        self.is_needed = self.refusals <= MAX_REFUSALS;
        self.is_needed
    }

    /// Records that capacity was freed, as far as possible.
    pub fn record_compacted(&mut self) {
        self.is_needed = false;
    }
}
