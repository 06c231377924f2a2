//! A model's output in a turn, for listeners that use a provider's API: the provider's own
//! events if they use the same API, and the parts of the answer.

use models::AnswerPart;

#[derive(Clone, Debug)]
pub enum AnswerEvent {
    /// A model request starts. `is_native`: its answer uses the listener's API, so each
    /// part follows the event that it came from.
    Step {
        is_native: bool,
    },
    Part(AnswerPart),
}

impl AnswerEvent {
    /// The approximate bytes of the event.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Step { .. } => 0,
            Self::Part(part) => match part {
                AnswerPart::Text(text)
                | AnswerPart::Reasoning(text)
                | AnswerPart::CallDelta { text, .. }
                | AnswerPart::ProviderData(text)
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

    /// Whether listeners need the event. A complete call repeats its pieces.
    pub fn is_for_listeners(part: &AnswerPart) -> bool {
        !matches!(part, AnswerPart::ProviderData(_) | AnswerPart::Failed(_))
    }
}
