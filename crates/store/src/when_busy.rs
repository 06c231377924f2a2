//! How to handle a message that arrives while a turn of its session is running.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhenBusy {
    /// The message is refused with `turn_in_progress`.
    #[default]
    Reject,
    /// The message is queued until the turn ends. At most 16 messages are queued.
    Queue,
    /// The message stops the turn, whose output so far is stored, and is answered next.
    Replace,
}
