//! What a caller of a tool gives and takes beside the arguments: the tool's notifications, its
//! questions, and the answers to them.

use serde::Deserialize;
use serde_json::Value;

use crate::turn::CallState;
use base::json;

/// The `resultType` of an answer that asks for input.
pub const INPUT_REQUIRED: &str = "input_required";

/// What a caller of a tool gives and takes beside the arguments.
#[derive(Clone, Copy, Default)]
pub struct ToolExchange<'a> {
    /// The answers to the tool's questions: an object.
    pub responses: Option<&'a Value>,
    /// The state that the tool gave with its questions.
    pub state: Option<&'a str>,
    pub notify: Option<&'a Notify<'a>>,
    /// Whether the caller's user can be asked.
    pub can_elicit: bool,
    /// How many times the tool has asked before.
    pub round: u32,
}

/// Takes the method and the parameters of a tool's notification.
pub type Notify<'a> = dyn Fn(&str, &Value) + 'a;

/// Whether a tool's answer asks its caller for input.
pub fn asks_for_input(state: &CallState) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed {
        result_type: String,
    }
    let CallState::Done {
        output,
        is_json: true,
        ..
    } = state
    else {
        return false;
    };
    output.contains(INPUT_REQUIRED)
        && json::decode::<Typed>(output).is_ok_and(|typed| typed.result_type == INPUT_REQUIRED)
}
