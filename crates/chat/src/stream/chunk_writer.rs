//! Converts a model's output, and the outcomes of its calls, into chunks in an order that the stock
//! client accepts. A block of text or reasoning is opened before it is filled, and closed before
//! anything else begins. A call comes before its outcome, and nothing follows the end.
//!
//! This module depends on neither the log nor the model; it only ensures the order.

use crate::stream::chunks::Chunk;
use base::json::{self, JsonObject, RawValue};
use base::part::InputRequest;
use models::{AnswerPart, FinishReason};

/// The text that the client and the model read if the arguments are not a JSON object.
pub const BAD_ARGUMENTS: &str = "The arguments are not a JSON object, so the tool was not called.";

#[derive(Clone, Copy, PartialEq)]
enum TextBlockKind {
    Text,
    Reasoning,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum StreamPosition {
    BeforeStart,
    BetweenSteps,
    InStep,
    Ended,
}

/// Writes the chunks of one assistant message, or of its continuation.
pub struct ChunkWriter {
    position: StreamPosition,
    /// The open block.
    open: Option<(TextBlockKind, String)>,
    /// The number of blocks so far: block ids must not repeat within a message.
    blocks: usize,
    /// The ids of the calls that the client has received.
    known: Vec<String>,
    /// The calls of this step whose arguments still stream, by the model's index.
    streaming: Vec<(usize, String)>,
    /// Whether a call of this step has an outcome.
    has_outcome: bool,
    /// Whether this step is still empty.
    is_bare: bool,
}

impl ChunkWriter {
    /// `earlier_calls`: the calls of the message that is continued, if any.
    pub fn new(earlier_calls: Vec<String>) -> Self {
        Self {
            position: StreamPosition::BeforeStart,
            open: None,
            blocks: 0,
            known: earlier_calls,
            streaming: Vec::new(),
            has_outcome: false,
            is_bare: true,
        }
    }

    /// Begins the message with its id in the log.
    pub fn start(&mut self, message_id: &str, metadata: Option<Box<RawValue>>) -> Vec<Chunk> {
        if self.position != StreamPosition::BeforeStart {
            return Vec::new();
        }
        self.position = StreamPosition::BetweenSteps;
        vec![Chunk::Start {
            message_id: Some(message_id.to_owned()),
            message_metadata: metadata,
        }]
    }

    /// Whether a step has started and has not ended.
    pub fn is_in_step(&self) -> bool {
        self.position == StreamPosition::InStep
    }

    /// Begins a step: one model call.
    pub fn start_step(&mut self) -> Vec<Chunk> {
        let mut out = Vec::new();
        if self.position == StreamPosition::InStep {
            out = self.finish_step();
        }
        self.enter_step(&mut out);
        out
    }

    /// Writes a part of the model's answer. [`AnswerPart::Failed`] only closes the open block: the
    /// turn reports the failure through [`ChunkWriter::fail`].
    pub fn write_part(&mut self, part: &AnswerPart) -> Vec<Chunk> {
        let mut out = Vec::new();
        match part {
            AnswerPart::Text(text) => self.fill(TextBlockKind::Text, text, &mut out),
            AnswerPart::Reasoning(text) => self.fill(TextBlockKind::Reasoning, text, &mut out),
            AnswerPart::CallStart { index, id, name } => {
                self.start_call(*index, id, name, &mut out);
            }
            AnswerPart::CallDelta { index, text } => self.fill_call(*index, text, &mut out),
            AnswerPart::Call {
                index,
                id,
                name,
                arguments,
            } => self.finish_call(*index, id, name, arguments, &mut out),
            AnswerPart::Finish(_) | AnswerPart::Failed(_) => self.close(&mut out),
            AnswerPart::Usage(_) | AnswerPart::ProviderData(_) | AnswerPart::Event(_) => {}
        }
        out
    }

    /// Requests the user's approval of the call.
    pub fn ask_approval(&mut self, approval_id: &str, tool_call_id: &str) -> Vec<Chunk> {
        self.of_call(
            tool_call_id,
            Chunk::ToolApprovalRequest {
                approval_id: approval_id.to_owned(),
                tool_call_id: tool_call_id.to_owned(),
            },
        )
    }

    /// Asks the user the questions of a call's tool. `again`: the name and the input of a call that
    /// the client has in another state, because it was approved or answered before.
    pub fn ask_input(
        &mut self,
        request: InputRequest,
        again: Option<(&str, Box<RawValue>)>,
    ) -> Vec<Chunk> {
        let id = request.tool_call_id.clone();
        let mut out = Vec::new();
        if let Some((tool_name, input)) = again {
            out = self.of_call(
                &id,
                Chunk::ToolInputAvailable {
                    tool_call_id: id.clone(),
                    tool_name: tool_name.to_owned(),
                    input,
                },
            );
        }
        out.extend(self.of_call(
            &request.tool_call_id.clone(),
            Chunk::DataInputRequest { id, data: request },
        ));
        out
    }

    /// The questions of a call that ends. They accept no answer any more.
    pub fn close_input(&mut self, request: InputRequest) -> Vec<Chunk> {
        self.ask_input(request, None)
    }

    /// The output of a tool.
    pub fn output(&mut self, tool_call_id: &str, output: Box<RawValue>) -> Vec<Chunk> {
        self.outcome(
            tool_call_id,
            Chunk::ToolOutputAvailable {
                tool_call_id: tool_call_id.to_owned(),
                output,
            },
        )
    }

    pub fn output_error(&mut self, tool_call_id: &str, error_text: &str) -> Vec<Chunk> {
        self.outcome(
            tool_call_id,
            Chunk::ToolOutputError {
                tool_call_id: tool_call_id.to_owned(),
                error_text: error_text.to_owned(),
            },
        )
    }

    /// The user declined the call.
    pub fn output_denied(&mut self, tool_call_id: &str) -> Vec<Chunk> {
        self.outcome(
            tool_call_id,
            Chunk::ToolOutputDenied {
                tool_call_id: tool_call_id.to_owned(),
            },
        )
    }

    pub fn finish_step(&mut self) -> Vec<Chunk> {
        let mut out = Vec::new();
        if self.position == StreamPosition::InStep {
            self.close(&mut out);
            self.position = StreamPosition::BetweenSteps;
            out.push(Chunk::FinishStep);
        }
        out
    }

    /// Ends a turn that succeeded.
    pub fn finish(&mut self, reason: FinishReason, metadata: Option<Box<RawValue>>) -> Vec<Chunk> {
        let mut out = self.finish_step();
        self.end(
            Chunk::Finish {
                finish_reason: reason,
                message_metadata: metadata,
            },
            &mut out,
        );
        out
    }

    /// Ends a canceled turn, inside a step that has no finished call. Otherwise a client that
    /// resends once all calls of the last step have their outcome would restart the turn at once.
    /// The client detects a step only by its first part, so an empty text is written into a step
    /// that has no part.
    pub fn abort(&mut self, reason: Option<&str>) -> Vec<Chunk> {
        let mut out = Vec::new();
        if self.is_open() && !self.known.is_empty() {
            if self.has_outcome || self.position == StreamPosition::BetweenSteps {
                out = self.start_step();
            }
            if self.is_bare {
                self.open(TextBlockKind::Text, &mut out);
            }
        }
        self.close(&mut out);
        self.end(
            Chunk::Abort {
                reason: reason.map(str::to_owned),
            },
            &mut out,
        );
        out
    }

    /// Ends a failed turn; `error_text` is for people.
    pub fn fail(&mut self, error_text: &str) -> Vec<Chunk> {
        let mut out = Vec::new();
        self.close(&mut out);
        self.end(
            Chunk::Error {
                error_text: error_text.to_owned(),
            },
            &mut out,
        );
        out
    }

    #[cfg(test)]
    pub fn has_ended(&self) -> bool {
        self.position == StreamPosition::Ended
    }

    fn is_open(&self) -> bool {
        matches!(
            self.position,
            StreamPosition::BetweenSteps | StreamPosition::InStep
        )
    }

    /// Makes sure that a step is open. `false`: the message has not started, or has
    /// ended.
    fn enter_step(&mut self, out: &mut Vec<Chunk>) -> bool {
        if self.position == StreamPosition::BetweenSteps {
            self.position = StreamPosition::InStep;
            self.has_outcome = false;
            self.is_bare = true;
            self.streaming.clear();
            out.push(Chunk::StartStep);
        }
        self.position == StreamPosition::InStep
    }

    fn end(&mut self, last: Chunk, out: &mut Vec<Chunk>) {
        if self.position != StreamPosition::Ended {
            out.push(last);
        }
        self.position = StreamPosition::Ended;
    }

    fn fill(&mut self, kind: TextBlockKind, text: &str, out: &mut Vec<Chunk>) {
        if text.is_empty() || !self.enter_step(out) {
            return;
        }
        if self.open.as_ref().is_some_and(|(open, _)| *open != kind) {
            self.close(out);
        }
        let id = match &self.open {
            Some((_, id)) => id.clone(),
            None => self.open(kind, out),
        };
        let delta = text.to_owned();
        out.push(match kind {
            TextBlockKind::Text => Chunk::TextDelta { id, delta },
            TextBlockKind::Reasoning => Chunk::ReasoningDelta { id, delta },
        });
    }

    fn open(&mut self, kind: TextBlockKind, out: &mut Vec<Chunk>) -> String {
        let id = format!("p{}", self.blocks);
        self.blocks += 1;
        self.is_bare = false;
        self.open = Some((kind, id.clone()));
        out.push(match kind {
            TextBlockKind::Text => Chunk::TextStart { id: id.clone() },
            TextBlockKind::Reasoning => Chunk::ReasoningStart { id: id.clone() },
        });
        id
    }

    fn close(&mut self, out: &mut Vec<Chunk>) {
        out.extend(self.open.take().map(|(kind, id)| match kind {
            TextBlockKind::Text => Chunk::TextEnd { id },
            TextBlockKind::Reasoning => Chunk::ReasoningEnd { id },
        }));
    }

    fn start_call(&mut self, index: usize, id: &str, name: &str, out: &mut Vec<Chunk>) {
        let is_new = !self.streaming.iter().any(|(known, _)| *known == index);
        if !is_new || !self.enter_step(out) {
            return;
        }
        self.close(out);
        self.streaming.push((index, id.to_owned()));
        self.learn(id);
        out.push(Chunk::ToolInputStart {
            tool_call_id: id.to_owned(),
            tool_name: name.to_owned(),
        });
    }

    fn fill_call(&mut self, index: usize, text: &str, out: &mut Vec<Chunk>) {
        let call = self.streaming.iter().find(|(known, _)| *known == index);
        if let Some((_, id)) =
            call.filter(|_| !text.is_empty() && self.position == StreamPosition::InStep)
        {
            out.push(Chunk::ToolInputDelta {
                tool_call_id: id.clone(),
                input_text_delta: text.to_owned(),
            });
        }
    }

    fn finish_call(
        &mut self,
        index: usize,
        id: &str,
        name: &str,
        arguments: &str,
        out: &mut Vec<Chunk>,
    ) {
        if !self.enter_step(out) {
            return;
        }
        self.close(out);
        self.streaming.retain(|(known, _)| *known != index);
        self.learn(id);
        let (tool_call_id, tool_name) = (id.to_owned(), name.to_owned());
        out.push(match parse_arguments(arguments) {
            Some(input) => Chunk::ToolInputAvailable {
                tool_call_id,
                tool_name,
                input: input.into_raw(),
            },
            None => {
                self.has_outcome = true;
                Chunk::ToolInputError {
                    tool_call_id,
                    tool_name,
                    input: arguments.to_owned(),
                    error_text: BAD_ARGUMENTS.to_owned(),
                }
            }
        });
    }

    fn learn(&mut self, id: &str) {
        self.is_bare = false;
        if !self.known.iter().any(|known| known == id) {
            self.known.push(id.to_owned());
        }
    }

    fn outcome(&mut self, tool_call_id: &str, chunk: Chunk) -> Vec<Chunk> {
        let out = self.of_call(tool_call_id, chunk);
        self.has_outcome |= !out.is_empty();
        out
    }

    /// Drops a chunk about a call that the client has not received: it would break the stream.
    fn of_call(&mut self, tool_call_id: &str, chunk: Chunk) -> Vec<Chunk> {
        let mut out = Vec::new();
        if self.is_open() && self.known.iter().any(|id| id == tool_call_id) {
            self.close(&mut out);
            out.push(chunk);
        }
        out
    }
}

/// A call's arguments as an object; `None`: they are not a JSON object.
pub fn parse_arguments(text: &str) -> Option<JsonObject> {
    json::parse::<JsonObject>(text.as_bytes()).ok()
}

#[cfg(test)]
mod random_play;
#[cfg(test)]
mod tests;
