//! The way to handle a message that comes while a turn of its session runs.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "testing", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum WhenBusy {
    /// The message is refused with `turn_in_progress`.
    #[default]
    Reject,
    /// The message waits until the turn is over. At most 16 messages wait.
    Queue,
    /// The message stops the turn, which keeps what it said, and is answered next.
    Replace,
}
