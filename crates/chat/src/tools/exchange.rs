//! What a caller of a tool provides and receives in addition to the arguments: the tool's
//! notifications, its questions, and the answers to them.

use serde::Deserialize;
use serde_json::Value;

use crate::turn::CallState;
use base::json;

/// The `resultType` of a result that requests input.
pub const INPUT_REQUIRED: &str = "input_required";

/// What a caller of a tool provides and receives in addition to the arguments.
#[derive(Clone, Copy, Default)]
pub struct ToolExchange<'a> {
    /// The answers to the tool's questions: an object.
    pub responses: Option<&'a Value>,
    /// The state that the tool sent with its questions.
    pub state: Option<&'a str>,
    pub notify: Option<&'a Notify<'a>>,
    /// What the caller's user can be asked.
    pub asks: UserQuestions,
    /// The number of rounds in which the tool has already requested input.
    pub round: u32,
}

/// What a tool may ask the user of its caller.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum UserQuestions {
    #[default]
    Nothing,
    Forms,
    FormsAndPages,
}

impl UserQuestions {
    pub fn are_allowed(self) -> bool {
        self != Self::Nothing
    }
}

/// Receives the method and the parameters of a tool's notification.
pub type Notify<'a> = dyn Fn(&str, &Value) + 'a;

/// Whether a tool's result requests input from its caller.
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
