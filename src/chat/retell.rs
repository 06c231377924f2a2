//! What a turn has told its clients, told again from what is stored of it: so a
//! turn that was cut off can be heard whole, and what it tells while it runs costs
//! no row. The step that was under way is not stored and begins anew.

use super::chunks::Chunk;
use super::speaker::Speaker;
use super::turn::{Call, CallState, Step, Turn};
use crate::models::Part;

/// All chunks of the turn so far, its beginning included, and the speaker who
/// goes on from there.
pub fn retell(turn: &Turn) -> (Speaker, Vec<Chunk>) {
    let mut speaker = Speaker::new(turn.earlier_calls());
    let mut chunks = speaker.start(&turn.message_id, None);
    for id in &turn.declined {
        chunks.extend(speaker.output_denied(id));
    }
    for step in &turn.steps {
        chunks.extend(retell_step(&mut speaker, step));
    }
    (speaker, chunks)
}

fn retell_step(speaker: &mut Speaker, step: &Step) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    if !step.is_logged {
        chunks.extend(speaker.start_step());
        for part in parts(step) {
            chunks.extend(speaker.say(&part));
        }
    }
    for call in &step.calls {
        chunks.extend(tell_outcome(speaker, call));
    }
    if step.calls.iter().all(Call::is_over) {
        chunks.extend(speaker.finish_step());
    }
    chunks
}

fn parts(step: &Step) -> Vec<Part> {
    let mut parts = Vec::new();
    if !step.reasoning.is_empty() {
        parts.push(Part::Reasoning(step.reasoning.clone()));
    }
    if !step.text.is_empty() {
        parts.push(Part::Text(step.text.clone()));
    }
    for (index, call) in step.calls.iter().enumerate() {
        let (id, name) = (call.id.as_str().to_owned(), call.name.as_str().to_owned());
        let arguments = match &call.bad_arguments {
            Some(text) => text.clone(),
            None => call.arguments.as_str().to_owned(),
        };
        parts.push(Part::CallStart {
            index,
            id: id.clone(),
            name: name.clone(),
        });
        parts.push(Part::Call {
            index,
            id,
            name,
            arguments,
        });
    }
    parts.extend(step.finish_reason.map(Part::Finish));
    parts
}

/// What a client hears of a call that has an outcome, or that the user is asked for.
pub fn tell_outcome(speaker: &mut Speaker, call: &Call) -> Vec<Chunk> {
    if call.bad_arguments.is_some() {
        // It was heard with the call.
        return Vec::new();
    }
    let call_id = call.id.as_str();
    match &call.state {
        CallState::Done { output, is_json } => {
            let json = if *is_json {
                output.clone()
            } else {
                serde_json::Value::from(output.as_str()).to_string()
            };
            match serde_json::value::RawValue::from_string(json) {
                Ok(output) => speaker.output(call_id, output),
                Err(_) => speaker.output_error(call_id, "The output is no JSON."),
            }
        }
        CallState::Failed { error } => speaker.output_error(call_id, error),
        CallState::LeftToUser { approval_id, .. } => speaker.ask_approval(approval_id, call_id),
        CallState::Waiting | CallState::Running | CallState::LeftToClient => Vec::new(),
    }
}
