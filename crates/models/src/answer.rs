//! Builds an answer from any provider's pieces, as parts in one order. A call begins when its name
//! is known and is completed once. Usage comes before the end, the end comes once, and nothing
//! follows it.

use serde_json::Value;

use super::call_ids::CallIds;
use super::{AnswerPart, FinishReason, TokenUsage};
use base::json;
use conversation::log::note::MAX_PROVIDER_DATA_BYTES;

/// The most calls of one answer. A model that makes more is stuck.
pub const MAX_CALLS: usize = 128;

/// The most bytes of one call's arguments.
pub const MAX_ARGUMENT_BYTES: usize = 1 << 20;

#[derive(Default)]
pub struct AnswerBuilder {
    parts: Vec<AnswerPart>,
    ids: CallIds,
    calls: Vec<PartialCall>,
    usage: Option<TokenUsage>,
    finish: Option<FinishReason>,
    /// The data that the provider expects back with this answer: an object.
    provider_data: Option<Value>,
    has_output: bool,
    is_over: bool,
    /// Failed because the provider is overloaded.
    is_overload: bool,
}

struct PartialCall {
    /// The provider's number for the call, if it gives one.
    key: Option<i64>,
    /// The provider's id for the call. Empty: it gave none.
    offered_id: String,
    id: String,
    /// Empty: not known yet.
    name: String,
    arguments: String,
    is_complete: bool,
}

/// A piece of a call. Unknown fields are empty.
#[derive(Default)]
pub struct CallPiece<'a> {
    pub key: Option<i64>,
    pub id: &'a str,
    pub name: &'a str,
    pub arguments: &'a str,
}

impl AnswerBuilder {
    pub fn new(ids: CallIds) -> Self {
        Self {
            ids,
            ..Self::default()
        }
    }

    pub fn take_parts(&mut self) -> Vec<AnswerPart> {
        std::mem::take(&mut self.parts)
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub fn is_overload(&self) -> bool {
        self.is_overload
    }

    /// Whether the answer has any part, or a reason for its end.
    pub fn has_output(&self) -> bool {
        self.has_output || self.has_finish()
    }

    /// Whether the model gave a reason for its end.
    pub fn has_finish(&self) -> bool {
        self.finish.is_some()
    }

    /// An event as the provider sent it. It is not part of the answer's content.
    pub fn add_event(&mut self, json: String) {
        if !self.is_over {
            self.parts.push(AnswerPart::Event(json));
        }
    }

    pub fn add_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.add(AnswerPart::Text(text.to_owned()));
        }
    }

    pub fn add_reasoning(&mut self, text: &str) {
        if !text.is_empty() {
            self.add(AnswerPart::Reasoning(text.to_owned()));
        }
    }

    /// Whether a call with this key was started.
    pub fn has_call(&self, key: Option<i64>) -> bool {
        self.calls.iter().any(|call| call.key == key)
    }

    pub fn add_call(&mut self, piece: &CallPiece<'_>) {
        let Some(index) = self.find_or_add_call(piece) else {
            return;
        };
        let Some(call) = self.calls.get_mut(index) else {
            return;
        };
        if call.offered_id.is_empty() {
            piece.id.clone_into(&mut call.offered_id);
        }
        let is_named_now = call.name.is_empty() && !piece.name.is_empty();
        if is_named_now {
            piece.name.clone_into(&mut call.name);
            call.id = self.ids.assign(&call.offered_id);
        }
        if call.arguments.len() + piece.arguments.len() > MAX_ARGUMENT_BYTES {
            self.fail("The model wrote a tool call that is too long.".to_owned());
            return;
        }
        call.arguments.push_str(piece.arguments);
        let (id, name) = (call.id.clone(), call.name.clone());
        // Arguments that came before the name are sent with it.
        let text = if is_named_now {
            call.arguments.clone()
        } else {
            piece.arguments.to_owned()
        };
        let is_named = !name.is_empty();
        if is_named_now {
            self.add(AnswerPart::CallStart { index, id, name });
        }
        if is_named && !text.is_empty() {
            self.add(AnswerPart::CallDelta { index, text });
        }
    }

    /// The index of the call that a piece belongs to. Adds the call if it is new.
    fn find_or_add_call(&mut self, piece: &CallPiece<'_>) -> Option<usize> {
        let is_empty = piece.id.is_empty() && piece.name.is_empty();
        // Workers AI ends a call with an empty piece.
        if is_empty && piece.arguments.is_empty() {
            return None;
        }
        let found = match piece.key {
            Some(key) => self.calls.iter().rposition(|call| call.key == Some(key)),
            None if !piece.id.is_empty() => self
                .calls
                .iter()
                .rposition(|call| call.offered_id == piece.id),
            None if !piece.name.is_empty() => None,
            None => self.calls.len().checked_sub(1),
        };
        let is_another = |call: &PartialCall| {
            // Several calls may come under one number: only their ids differ.
            !piece.id.is_empty() && !call.offered_id.is_empty() && call.offered_id != piece.id
        };
        let found = found.filter(|index| {
            let call = self.calls.get(*index);
            call.is_some_and(|call| !call.is_complete && !is_another(call))
        });
        if found.is_some() {
            return found;
        }
        if self.calls.len() >= MAX_CALLS {
            self.fail(format!(
                "The model called more than {MAX_CALLS} tools at once."
            ));
            return None;
        }
        self.calls.push(PartialCall {
            key: piece.key,
            offered_id: piece.id.to_owned(),
            id: String::new(),
            name: String::new(),
            arguments: String::new(),
            is_complete: false,
        });
        Some(self.calls.len() - 1)
    }

    /// Completes the call with this key: all its arguments have arrived.
    pub fn complete_call(&mut self, key: i64) {
        let index = self.calls.iter().rposition(|call| call.key == Some(key));
        if let Some(index) = index {
            self.complete(index);
        }
    }

    fn complete_calls(&mut self) {
        for index in 0..self.calls.len() {
            self.complete(index);
        }
    }

    fn complete(&mut self, index: usize) {
        let Some(call) = self.calls.get_mut(index).filter(|call| !call.is_complete) else {
            return;
        };
        call.is_complete = true;
        if call.name.is_empty() {
            self.fail("The model called a tool without a name.".to_owned());
            return;
        }
        let arguments = match call.arguments.trim() {
            "" => "{}".to_owned(),
            arguments => arguments.to_owned(),
        };
        let (id, name) = (call.id.clone(), call.name.clone());
        self.add(AnswerPart::Call {
            index,
            id,
            name,
            arguments,
        });
    }

    /// Replaces the usage: providers send running totals.
    pub fn set_usage(&mut self, usage: TokenUsage) {
        self.usage = Some(usage.bounded());
    }

    pub fn usage(&self) -> TokenUsage {
        self.usage.unwrap_or_default()
    }

    /// Records why the model stopped; usage may still follow.
    pub fn set_finish(&mut self, reason: FinishReason) {
        self.complete_calls();
        self.finish = Some(reason);
    }

    /// The number of calls that were started.
    pub fn count_calls(&self) -> usize {
        self.calls.len()
    }

    /// The data that the provider expects back with this answer, so far.
    pub fn provider_data(&mut self) -> &mut Option<Value> {
        &mut self.provider_data
    }

    /// Ends the answer normally.
    pub fn close(&mut self) {
        self.complete_calls();
        let provider_data = self.provider_data.take().filter(Value::is_object);
        let provider_data = provider_data.map(|provider_data| json::text(&provider_data));
        if let Some(provider_data) =
            provider_data.filter(|provider_data| provider_data.len() <= MAX_PROVIDER_DATA_BYTES)
        {
            self.add(AnswerPart::ProviderData(provider_data));
        }
        let reported = self.finish.unwrap_or(FinishReason::Stop);
        // Several servers send `stop` when the model calls tools.
        let reason = match reported {
            FinishReason::Stop if !self.calls.is_empty() => FinishReason::ToolCalls,
            // Without calls, there are no results to wait for.
            FinishReason::ToolCalls if self.calls.is_empty() => FinishReason::Stop,
            reason => reason,
        };
        self.end_with(AnswerPart::Finish(reason));
    }

    /// `sentence` is for a person and must not contain anybody's payload.
    pub fn fail(&mut self, sentence: String) {
        self.end_with(AnswerPart::Failed(sentence));
    }

    pub fn fail_overloaded(&mut self, sentence: String) {
        self.is_overload = !self.is_over;
        self.fail(sentence);
    }

    fn end_with(&mut self, end: AnswerPart) {
        if let Some(usage) = self.usage.filter(|_| !self.is_over) {
            self.add(AnswerPart::Usage(usage));
        }
        self.add(end);
        self.is_over = true;
    }

    fn add(&mut self, part: AnswerPart) {
        if !self.is_over {
            self.has_output = true;
            self.parts.push(part);
        }
    }
}
