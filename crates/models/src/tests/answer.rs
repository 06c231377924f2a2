//! Building an answer from its pieces.

use crate::answer::{AnswerBuilder, CallPiece, MAX_ARGUMENT_BYTES, MAX_CALLS};
use crate::{AnswerPart, FinishReason, TokenUsage};

fn piece<'a>(key: Option<i64>, id: &'a str, name: &'a str, arguments: &'a str) -> CallPiece<'a> {
    CallPiece {
        key,
        id,
        name,
        arguments,
    }
}

/// The complete calls of an answer with these deltas.
fn calls(pieces: &[CallPiece<'_>]) -> Vec<(String, String, String)> {
    let mut answer = AnswerBuilder::default();
    for piece in pieces {
        answer.add_call(piece);
    }
    answer.close();
    let parts = answer.take_parts();
    parts
        .into_iter()
        .filter_map(|part| match part {
            AnswerPart::Call {
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
fn interleaved_deltas_are_assigned_to_their_calls() {
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
fn calls_that_share_an_index_are_distinguished_by_id() {
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
fn a_call_without_an_index_starts_with_a_name_or_id() {
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
fn a_name_repeated_in_every_delta_is_one_name() {
    let pieces = [
        piece(Some(0), "a", "one", "{"),
        piece(Some(0), "a", "one", "}"),
    ];
    assert_eq!(calls(&pieces), [call("a", "one", "{}")]);
}

#[test]
fn a_call_may_have_no_arguments() {
    assert_eq!(
        calls(&[piece(Some(0), "a", "one", " ")]),
        [call("a", "one", "{}")]
    );
}

#[test]
fn arguments_before_the_name_are_buffered() {
    let mut answer = AnswerBuilder::default();
    answer.add_call(&piece(Some(0), "a", "", "{\"x\""));
    assert_eq!(answer.take_parts(), []);
    answer.add_call(&piece(Some(0), "", "one", ":1}"));
    assert_eq!(
        answer.take_parts(),
        [
            AnswerPart::CallStart {
                index: 0,
                id: "a".to_owned(),
                name: "one".to_owned()
            },
            AnswerPart::CallDelta {
                index: 0,
                text: "{\"x\":1}".to_owned()
            }
        ]
    );
}

#[test]
fn a_call_without_a_name_is_an_error() {
    let mut answer = AnswerBuilder::default();
    answer.add_call(&piece(Some(0), "a", "", "{}"));
    answer.close();
    assert!(matches!(
        answer.take_parts().as_slice(),
        [AnswerPart::Failed(_)]
    ));
}

#[test]
fn too_many_calls_and_too_long_arguments_are_errors() {
    let mut answer = AnswerBuilder::default();
    for key in 0..=MAX_CALLS as i64 {
        assert!(!answer.is_over());
        answer.add_call(&piece(Some(key), "", "t", ""));
    }
    assert!(answer.is_over());
    let mut answer = AnswerBuilder::default();
    answer.add_call(&piece(Some(0), "", "t", &"x".repeat(MAX_ARGUMENT_BYTES)));
    assert!(!answer.is_over());
    answer.add_call(&piece(Some(0), "", "", "x"));
    assert!(answer.is_over());
}

#[test]
fn the_finish_reason_depends_on_the_calls_made() {
    for (reported, calls, expected) in [
        (None, false, FinishReason::Stop),
        (None, true, FinishReason::ToolCalls),
        (Some(FinishReason::Stop), true, FinishReason::ToolCalls),
        (Some(FinishReason::ToolCalls), false, FinishReason::Stop),
        (Some(FinishReason::Length), true, FinishReason::Length),
    ] {
        let mut answer = AnswerBuilder::default();
        if calls {
            answer.add_call(&piece(None, "a", "one", ""));
        }
        if let Some(reported) = reported {
            answer.set_finish(reported);
        }
        answer.close();
        assert_eq!(
            answer.take_parts().pop(),
            Some(AnswerPart::Finish(expected))
        );
    }
}

#[test]
fn nothing_is_emitted_after_the_end() {
    let mut answer = AnswerBuilder::default();
    answer.set_usage(TokenUsage {
        input_tokens: 1,
        output_tokens: 2,
        cached_input_tokens: 0,
    });
    answer.add_text("a");
    answer.close();
    answer.add_text("b");
    answer.fail("c".to_owned());
    answer.close();
    assert_eq!(
        answer.take_parts(),
        [
            AnswerPart::Text("a".to_owned()),
            AnswerPart::Usage(TokenUsage {
                input_tokens: 1,
                output_tokens: 2,
                cached_input_tokens: 0,
            }),
            AnswerPart::Finish(FinishReason::Stop)
        ]
    );
}
