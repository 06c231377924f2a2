//! What a model said in a turn, for listeners that speak a provider's API: the provider's own
//! events where they come in the same API, and the parts of the answer.

use models::AnswerPart;

#[derive(Clone, Debug)]
pub enum AnswerEvent {
    /// A request to the model begins. `is_native`: its answer comes in the API that the listener
    /// speaks, so each part follows the event that brought it.
    Step {
        is_native: bool,
    },
    Part(AnswerPart),
}

impl AnswerEvent {
    /// About the bytes that the event takes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Step { .. } => 0,
            Self::Part(part) => match part {
                AnswerPart::Text(text)
                | AnswerPart::Reasoning(text)
                | AnswerPart::CallDelta { text, .. }
                | AnswerPart::Kept(text)
                | AnswerPart::Event(text)
                | AnswerPart::Failed(text) => text.len(),
                AnswerPart::CallStart { id, name, .. } => id.len() + name.len(),
                AnswerPart::Call {
                    id,
                    name,
                    arguments,
                    ..
                } => id.len() + name.len() + arguments.len(),
                AnswerPart::Usage(_) | AnswerPart::Finish(_) => 0,
            },
        }
    }

    /// Whether a listener needs the event. The whole of a call repeats its pieces.
    pub fn is_told(part: &AnswerPart) -> bool {
        !matches!(part, AnswerPart::Kept(_) | AnswerPart::Failed(_))
    }
}
