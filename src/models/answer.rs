//! An answer as it grows: what any provider says, brought into one order.
//! Calls are begun when their name is known and completed once; usage is said
//! before the end, the end once, and nothing after it.

use super::call_ids::CallIds;
use super::{FinishReason, Part, Usage};

/// Calls of one answer. A model that goes on calling is stuck.
const MAX_CALLS: usize = 128;

/// Bytes of one call's arguments.
const MAX_ARGUMENT_BYTES: usize = 1 << 20;

#[derive(Default)]
pub struct Answer {
    parts: Vec<Part>,
    ids: CallIds,
    calls: Vec<Call>,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    has_said_anything: bool,
    is_over: bool,
    /// Failed because the provider has too much to do.
    is_overload: bool,
}

struct Call {
    /// What the provider counts it by, where it does.
    key: Option<i64>,
    /// As the provider gave it; empty: not at all.
    offered_id: String,
    id: String,
    /// Empty: not known yet.
    name: String,
    arguments: String,
    is_complete: bool,
}

/// Some of a call. What is not known is empty.
#[derive(Default)]
pub struct CallPiece<'a> {
    pub key: Option<i64>,
    pub id: &'a str,
    pub name: &'a str,
    pub arguments: &'a str,
}

impl Answer {
    pub fn new(ids: CallIds) -> Self {
        Self {
            ids,
            ..Self::default()
        }
    }

    pub fn take_parts(&mut self) -> Vec<Part> {
        std::mem::take(&mut self.parts)
    }

    pub fn is_over(&self) -> bool {
        self.is_over
    }

    pub fn is_overload(&self) -> bool {
        self.is_overload
    }

    /// Whether there was a word, a call, or a reason for there being none.
    pub fn has_said_anything(&self) -> bool {
        self.has_said_anything || self.has_finish()
    }

    /// Whether the model said why it stopped.
    pub fn has_finish(&self) -> bool {
        self.finish.is_some()
    }

    pub fn add_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.add(Part::Text(text.to_owned()));
        }
    }

    pub fn add_reasoning(&mut self, text: &str) {
        if !text.is_empty() {
            self.add(Part::Reasoning(text.to_owned()));
        }
    }

    pub fn add_call(&mut self, piece: &CallPiece<'_>) {
        let Some(index) = self.place(piece) else {
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
            call.id = self.ids.give(&call.offered_id);
        }
        if call.arguments.len() + piece.arguments.len() > MAX_ARGUMENT_BYTES {
            self.fail("The model wrote a tool call that is too long.".to_owned());
            return;
        }
        call.arguments.push_str(piece.arguments);
        let (id, name) = (call.id.clone(), call.name.clone());
        // What came before the name is said with it.
        let text = match is_named_now {
            true => call.arguments.clone(),
            false => piece.arguments.to_owned(),
        };
        let is_named = !name.is_empty();
        if is_named_now {
            self.add(Part::CallStart { index, id, name });
        }
        if is_named && !text.is_empty() {
            self.add(Part::CallDelta { index, text });
        }
    }

    /// The call that a piece belongs to, begun if it is a new one's.
    fn place(&mut self, piece: &CallPiece<'_>) -> Option<usize> {
        let says_nothing = piece.id.is_empty() && piece.name.is_empty();
        // Workers AI closes a call with a piece of nothing at all.
        if says_nothing && piece.arguments.is_empty() {
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
        let is_another = |call: &Call| {
            // Several calls under one number: only their ids tell them apart.
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
        self.calls.push(Call {
            key: piece.key,
            offered_id: piece.id.to_owned(),
            id: String::new(),
            name: String::new(),
            arguments: String::new(),
            is_complete: false,
        });
        Some(self.calls.len() - 1)
    }

    /// The call with this key has all its arguments.
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
            self.fail("The model called a tool without saying which.".to_owned());
            return;
        }
        let arguments = match call.arguments.trim() {
            "" => "{}".to_owned(),
            arguments => arguments.to_owned(),
        };
        let (id, name) = (call.id.clone(), call.name.clone());
        self.add(Part::Call {
            index,
            id,
            name,
            arguments,
        });
    }

    /// The newest numbers hold: providers count up.
    pub fn set_usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }

    pub fn usage(&self) -> Usage {
        self.usage.unwrap_or_default()
    }

    /// The model said why it stopped; usage may still follow.
    pub fn set_finish(&mut self, reason: FinishReason) {
        self.complete_calls();
        self.finish = Some(reason);
    }

    /// Nothing more comes, and that is as it should be.
    pub fn close(&mut self) {
        self.complete_calls();
        let said = self.finish.unwrap_or(FinishReason::Stop);
        // Several servers say `stop` when they call.
        let reason = match said {
            FinishReason::Stop if !self.calls.is_empty() => FinishReason::ToolCalls,
            // Waiting for results of calls that aren't there would be forever.
            FinishReason::ToolCalls if self.calls.is_empty() => FinishReason::Stop,
            reason => reason,
        };
        self.end_with(Part::Finish(reason));
    }

    /// `sentence` is for a person: no payload of anyone's in it.
    pub fn fail(&mut self, sentence: String) {
        self.end_with(Part::Failed(sentence));
    }

    pub fn fail_overloaded(&mut self, sentence: String) {
        self.is_overload = !self.is_over;
        self.fail(sentence);
    }

    fn end_with(&mut self, end: Part) {
        if let Some(usage) = self.usage.filter(|_| !self.is_over) {
            self.add(Part::Usage(usage));
        }
        self.add(end);
        self.is_over = true;
    }

    fn add(&mut self, part: Part) {
        if !self.is_over {
            self.has_said_anything = true;
            self.parts.push(part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece<'a>(
        key: Option<i64>,
        id: &'a str,
        name: &'a str,
        arguments: &'a str,
    ) -> CallPiece<'a> {
        CallPiece {
            key,
            id,
            name,
            arguments,
        }
    }

    /// The complete calls of an answer made from these pieces.
    fn calls(pieces: &[CallPiece<'_>]) -> Vec<(String, String, String)> {
        let mut answer = Answer::default();
        for piece in pieces {
            answer.add_call(piece);
        }
        answer.close();
        let parts = answer.take_parts();
        parts
            .into_iter()
            .filter_map(|part| match part {
                Part::Call {
                    id,
                    name,
                    arguments,
                    ..
                } => Some((id, name, arguments)),
                _ => None,
            })
            .collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn interleaved_pieces_go_to_their_own_calls() {
        let pieces = [
            piece(Some(0), "a", "one", ""),
            piece(Some(1), "b", "two", "{\"x\""),
            piece(Some(0), "", "", "{}"),
            piece(Some(1), "", "", ":1}"),
        ];
        assert_eq!(
            calls(&pieces),
            [call("a", "one", "{}"), call("b", "two", "{\"x\":1}")]
        );
    }

    #[test]
    fn calls_under_the_same_number_are_told_apart_by_their_ids() {
        let pieces = [
            piece(Some(0), "a", "one", "{\"n\":1}"),
            piece(Some(0), "b", "two", "{\"n\":2}"),
        ];
        assert_eq!(
            calls(&pieces),
            [call("a", "one", "{\"n\":1}"), call("b", "two", "{\"n\":2}")]
        );
    }

    #[test]
    fn calls_without_number_begin_with_a_name_or_an_id() {
        let pieces = [
            piece(None, "", "one", "{\"n\""),
            piece(None, "", "", ":1}"),
            piece(None, "", "one", "{}"),
            piece(None, "z", "two", "["),
            piece(None, "z", "", "]"),
        ];
        assert_eq!(
            calls(&pieces),
            [
                call("call_0", "one", "{\"n\":1}"),
                call("call_1", "one", "{}"),
                call("z", "two", "[]")
            ]
        );
    }

    #[test]
    fn a_name_that_is_said_with_every_piece_is_one_name() {
        let pieces = [
            piece(Some(0), "a", "one", "{"),
            piece(Some(0), "a", "one", "}"),
        ];
        assert_eq!(calls(&pieces), [call("a", "one", "{}")]);
    }

    #[test]
    fn a_call_without_arguments_has_none() {
        assert_eq!(
            calls(&[piece(Some(0), "a", "one", " ")]),
            [call("a", "one", "{}")]
        );
    }

    #[test]
    fn arguments_that_come_before_the_name_are_kept() {
        let mut answer = Answer::default();
        answer.add_call(&piece(Some(0), "a", "", "{\"x\""));
        assert_eq!(answer.take_parts(), []);
        answer.add_call(&piece(Some(0), "", "one", ":1}"));
        assert_eq!(
            answer.take_parts(),
            [
                Part::CallStart {
                    index: 0,
                    id: "a".to_owned(),
                    name: "one".to_owned()
                },
                Part::CallDelta {
                    index: 0,
                    text: "{\"x\":1}".to_owned()
                }
            ]
        );
    }

    #[test]
    fn a_call_of_nothing_is_a_failure() {
        let mut answer = Answer::default();
        answer.add_call(&piece(Some(0), "a", "", "{}"));
        answer.close();
        assert!(matches!(answer.take_parts().as_slice(), [Part::Failed(_)]));
    }

    #[test]
    fn too_many_calls_and_too_long_arguments_are_failures() {
        let mut answer = Answer::default();
        for key in 0..=MAX_CALLS as i64 {
            assert!(!answer.is_over());
            answer.add_call(&piece(Some(key), "", "t", ""));
        }
        assert!(answer.is_over());
        let mut answer = Answer::default();
        answer.add_call(&piece(Some(0), "", "t", &"x".repeat(MAX_ARGUMENT_BYTES)));
        assert!(!answer.is_over());
        answer.add_call(&piece(Some(0), "", "", "x"));
        assert!(answer.is_over());
    }

    #[test]
    fn the_reason_to_finish_goes_by_what_was_called() {
        for (said, calls, expected) in [
            (None, false, FinishReason::Stop),
            (None, true, FinishReason::ToolCalls),
            (Some(FinishReason::Stop), true, FinishReason::ToolCalls),
            (Some(FinishReason::ToolCalls), false, FinishReason::Stop),
            (Some(FinishReason::Length), true, FinishReason::Length),
        ] {
            let mut answer = Answer::default();
            if calls {
                answer.add_call(&piece(None, "a", "one", ""));
            }
            if let Some(said) = said {
                answer.set_finish(said);
            }
            answer.close();
            assert_eq!(answer.take_parts().pop(), Some(Part::Finish(expected)));
        }
    }

    #[test]
    fn after_the_end_nothing_is_said() {
        let mut answer = Answer::default();
        answer.set_usage(Usage {
            input_tokens: 1,
            output_tokens: 2,
        });
        answer.add_text("a");
        answer.close();
        answer.add_text("b");
        answer.fail("c".to_owned());
        answer.close();
        assert_eq!(
            answer.take_parts(),
            [
                Part::Text("a".to_owned()),
                Part::Usage(Usage {
                    input_tokens: 1,
                    output_tokens: 2
                }),
                Part::Finish(FinishReason::Stop)
            ]
        );
    }
}
