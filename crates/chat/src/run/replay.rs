//! Replays a turn: rebuilds its chunks from its stored state. Clients thus receive an
//! interrupted turn completely, and a running turn stores no rows for its chunks. The step
//! that was in progress is not stored and starts again.

use crate::stream::answer_events::AnswerEvent;
use crate::stream::chunk_writer::ChunkWriter;
use crate::stream::chunks::Chunk;
use crate::turn::{CallState, Turn, TurnCall, TurnStep, WholeOutputs};
use base::json;
use conversation::log::note::Question;
use models::AnswerPart;

/// All chunks of the turn so far, including its start, and the writer that continues after
/// them.
pub fn replay(turn: &Turn, whole: &WholeOutputs) -> (ChunkWriter, Vec<Chunk>) {
    let mut writer = ChunkWriter::new(turn.earlier_calls());
    let mut chunks = writer.start(&turn.message_id, None);
    for id in &turn.declined {
        chunks.extend(writer.output_denied(id));
    }
    for step in &turn.steps {
        chunks.extend(replay_step(&mut writer, step, whole));
    }
    (writer, chunks)
}

/// The model's output so far, for listeners that use a provider's API.
pub fn replay_events(turn: &Turn) -> Vec<AnswerEvent> {
    let mut events = Vec::new();
    for step in turn.steps.iter().filter(|step| !step.is_logged) {
        events.push(AnswerEvent::Step { is_native: false });
        events.extend(parts(step).into_iter().map(AnswerEvent::Part));
    }
    events
}

fn replay_step(writer: &mut ChunkWriter, step: &TurnStep, whole: &WholeOutputs) -> Vec<Chunk> {
    let mut chunks = Vec::new();
    if !step.is_logged {
        chunks.extend(writer.start_step());
        for part in parts(step) {
            chunks.extend(writer.write_part(&part));
        }
    }
    for call in &step.calls {
        chunks.extend(emit_state(writer, call, whole.state_of(call)));
    }
    if step.calls.iter().all(TurnCall::is_over) {
        chunks.extend(writer.finish_step());
    }
    chunks
}

fn parts(step: &TurnStep) -> Vec<AnswerPart> {
    let mut parts = Vec::new();
    let provider_data = step.provider_data.as_ref();
    parts
        .extend(provider_data.map(|provider_data| {
            AnswerPart::ProviderData(provider_data.parts.as_str().to_owned())
        }));
    if !step.reasoning.is_empty() {
        parts.push(AnswerPart::Reasoning(step.reasoning.clone()));
    }
    if !step.text.is_empty() {
        parts.push(AnswerPart::Text(step.text.clone()));
    }
    for (index, call) in step.calls.iter().enumerate() {
        let (id, name) = (call.id.as_str().to_owned(), call.name.as_str().to_owned());
        let arguments = match &call.bad_arguments {
            Some(text) => text.clone(),
            None => call.arguments.as_str().to_owned(),
        };
        parts.push(AnswerPart::CallStart {
            index,
            id: id.clone(),
            name: name.clone(),
        });
        parts.push(AnswerPart::Call {
            index,
            id,
            name,
            arguments,
        });
    }
    parts.extend(step.finish_reason.map(AnswerPart::Finish));
    parts
}

/// The chunks for a call that has an outcome, or that waits for the user.
pub fn emit_outcome(writer: &mut ChunkWriter, call: &TurnCall) -> Vec<Chunk> {
    emit_state(writer, call, &call.state)
}

fn emit_state(writer: &mut ChunkWriter, call: &TurnCall, state: &CallState) -> Vec<Chunk> {
    if call.bad_arguments.is_some() {
        // The client received this error with the call.
        return Vec::new();
    }
    let call_id = call.id.as_str();
    let mut chunks = Vec::new();
    if let (true, Some(question)) = (state.is_over(), &call.answered) {
        let closed = Question::clone(question).closed();
        chunks = writer.close_input(closed.to_part(call_id, call.name.as_str()));
    }
    chunks.extend(match state {
        CallState::Done {
            output, is_json, ..
        } => {
            let json = if *is_json {
                output.clone()
            } else {
                json::quoted(output.as_str())
            };
            match json::raw(json) {
                Ok(output) => writer.output(call_id, output),
                Err(_) => writer.output_error(call_id, "The output is not JSON."),
            }
        }
        CallState::Failed { error } => writer.output_error(call_id, error),
        CallState::LeftToUser { approval_id, .. } => writer.ask_approval(approval_id, call_id),
        CallState::AwaitsInput(question) => {
            let name = call.name.as_str();
            let again = call.logged.as_ref();
            let again = again.map(|_| (name, call.arguments.clone().into_raw()));
            writer.ask_input(question.to_part(call_id, name), again)
        }
        CallState::Unsettled { .. }
        | CallState::Waiting
        | CallState::Running
        | CallState::LeftToClient => Vec::new(),
    });
    chunks
}
