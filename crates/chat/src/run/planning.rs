//! Plans a chat request without the answers that were refused before. The AI SDK keeps such an answer,
//! and sends it again with the history of every later request. There it is ignored, and its question
//! stays open. Only a wrong answer in the last message is refused.

use crate::request::ChatRequest;
use crate::request::known_messages::{KnownMessage, find_known};
use crate::request::plan::{NamedMessage, RequestPlan, plan};
use crate::run::answer_log::AnswerLog;
use base::error::Result;

/// Plans a request. `stored` are the messages of `known`; calls whose answer is ignored are removed.
pub fn plan_request<'r>(
    answers: &AnswerLog<'_>,
    stored: &mut [NamedMessage],
    known: &[KnownMessage],
    request: &'r ChatRequest,
) -> Result<RequestPlan<'r>> {
    let planned = plan(stored, request)?;
    let mut ignored = Vec::new();
    let earlier = planned.answers.iter();
    for answered in earlier.filter(|answered| !answered.is_in_last_message) {
        let (message_id, answer) = (&answered.message_id, &answered.answer);
        let call_id = answer.tool_call_id.as_str();
        if let Some(known) = find_known(known, message_id)
            && answers.is_wrong(known, answer)?
        {
            let asking = stored.iter_mut().find(|stored| stored.id == *message_id);
            if let Some(asking) = asking {
                asking.open.retain(|open| open.tool_call_id != call_id);
            }
            ignored.push((message_id.clone(), call_id.to_owned()));
        }
    }
    if ignored.is_empty() {
        return Ok(planned);
    }
    let mut planned = plan(stored, request)?;
    // The other calls of its message still wait for this one.
    for (message_id, call_id) in ignored {
        if planned.answered_messages().any(|id| id == message_id) {
            planned.still_open.push(call_id);
        }
    }
    Ok(planned)
}
