//! Room that a turn makes for a request, because its model refused the length.

use serde::{Deserialize, Serialize};

/// The number of times that a step makes room for its request. After one more refusal the
/// turn ends.
const MAX_REFUSALS: u32 = 1;

/// The way that the model took the length of a step's request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnRoom {
    /// The number of times that the model refused this step's request.
    pub refusals: u32,
    /// The conversation has to be compacted before the model is asked again.
    pub is_needed: bool,
}

impl TurnRoom {
    pub fn is_unasked(&self) -> bool {
        *self == Self::default()
    }

    /// Takes a refusal. Says whether the step is tried once more.
    pub fn take_refusal(&mut self) -> bool {
        self.refusals += 1;
        self.is_needed = self.refusals <= MAX_REFUSALS;
        self.is_needed
    }

    /// Room was made, as far as that was possible.
    pub fn take_room(&mut self) {
        self.is_needed = false;
    }
}
