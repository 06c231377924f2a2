//! Micro-compaction: truncates long outputs and texts of older messages before they are
//! sent to a model. Only copies are truncated; the stored messages don't change.
//!
//! Providers cache a prompt's prefix, so the set of truncated messages must not change with
//! every message. The boundary between older and newer messages therefore moves in steps of
//! [`STEP`] events. Between two steps the prefix is identical. The boundary depends on
//! `seq` and not on the position in the window, because the window slides.

use super::window::NumberedMessage;
use base::action::Role;
use models::message::ContextMessage;

/// How many of the newest messages are never truncated.
pub const UNTRUNCATED_MESSAGES: usize = 4;

/// How many characters remain of a tool's output, and of any other text.
const MAX_OUTPUT_CHARS: usize = 500;
const MAX_TEXT_CHARS: usize = 10_000;

/// How many events the boundary moves per step.
const STEP: i64 = 8;

pub fn shorten_older(messages: &mut [NumberedMessage]) {
    let Some(newest_older) = messages.len().checked_sub(UNTRUNCATED_MESSAGES + 1) else {
        return;
    };
    let line = messages
        .get(newest_older)
        .map_or(0, |numbered| cutoff_of(numbered.seq));
    for numbered in messages.iter_mut().take(newest_older + 1) {
        if numbered.seq > line {
            continue;
        }
        shorten_message(&mut numbered.message);
    }
}

/// The `seq` up to which messages are truncated. `newest_older` is the `seq` of the newest
/// message older than the [`UNTRUNCATED_MESSAGES`].
pub fn cutoff_of(newest_older: i64) -> i64 {
    newest_older / STEP * STEP
}

pub fn shorten_message(message: &mut ContextMessage) {
    if let Some(short) = find_short(message) {
        message.content = short;
        message.forget_given();
    }
}

/// The message's truncated text. `None`: it needs no truncation.
pub fn find_short(message: &ContextMessage) -> Option<String> {
    find_short_text(message.role, &message.content)
}

/// The marker of a truncated text.
const LEFT_OUT: &str = "omitted here and stored in the log";

/// Whether a text has the marker of truncation.
pub fn is_shortened(text: &str) -> bool {
    text.contains(LEFT_OUT)
}

/// The truncated text of this role. `None`: it needs no truncation.
pub fn find_short_text(role: Role, text: &str) -> Option<String> {
    let limit = match role {
        Role::Tool => MAX_OUTPUT_CHARS,
        Role::User | Role::Assistant | Role::System => MAX_TEXT_CHARS,
    };
    let cut = find_cut(text, limit)?;
    let dropped = text.get(cut..).map_or(0, |rest| rest.chars().count());
    let beginning = text.get(..cut).unwrap_or_default();
    Some(format!(
        "{beginning}\n[… {dropped} more characters, {LEFT_OUT}]"
    ))
}

/// The byte offset of character number `limit`. `None`: the text has no more characters.
fn find_cut(text: &str, limit: usize) -> Option<usize> {
    // Compares bytes first, so that only texts that may be too long are counted.
    if text.len() <= limit {
        return None;
    }
    text.char_indices().nth(limit).map(|(cut, _)| cut)
}

/// A text without its middle, if it is longer than `limit` characters. The end of a long
/// message often contains the question, and the end of a long output the outcome.
pub fn cut_middle(text: &str, limit: usize) -> Option<String> {
    find_cut(text, limit)?;
    let count = text.chars().count();
    let (head, tail) = (limit - limit / 4, limit / 4);
    let offset_of = |index: usize| {
        let found = text.char_indices().nth(index);
        found.map_or(text.len(), |(offset, _)| offset)
    };
    Some(format!(
        "{}\n[… {} characters, {LEFT_OUT} …]\n{}",
        text.get(..offset_of(head)).unwrap_or_default(),
        count - limit,
        text.get(offset_of(count - tail)..).unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(seq: i64, role: Role, length: usize) -> NumberedMessage {
        NumberedMessage {
            seq,
            message: ContextMessage::of_text(role, "é".repeat(length)),
        }
    }

    fn shortened(count: i64) -> Vec<String> {
        let mut messages: Vec<NumberedMessage> = (1..=count)
            .map(|seq| numbered(seq, Role::Tool, 501))
            .collect();
        shorten_older(&mut messages);
        messages
            .into_iter()
            .map(|numbered| numbered.message.content)
            .collect()
    }

    #[test]
    fn older_outputs_and_texts_are_truncated_with_a_note() {
        let mut messages = vec![
            numbered(1, Role::Tool, 501),
            numbered(2, Role::Tool, 500),
            numbered(3, Role::User, 10_001),
            numbered(8, Role::User, 10_000),
            numbered(9, Role::Tool, 501),
            numbered(10, Role::Tool, 501),
            numbered(11, Role::Tool, 501),
            numbered(12, Role::Tool, 501),
        ];
        shorten_older(&mut messages);
        let ends = |index: usize| {
            messages[index]
                .message
                .content
                .ends_with("stored in the log]")
        };
        assert_eq!(
            (0..8).map(ends).collect::<Vec<_>>(),
            [true, false, true, false, false, false, false, false]
        );
        assert!(messages[0].message.content.contains("[… 1 more characters"));
        assert!(messages[0].message.content.starts_with(&"é".repeat(500)));
    }

    #[test]
    fn a_truncated_text_keeps_its_start_and_end() {
        let text = format!("BEGIN{}END", "é".repeat(100));
        assert_eq!(cut_middle(&text, 108), None);
        let text = cut_middle(&text, 40).unwrap();
        assert!(text.starts_with("BEGINé") && text.ends_with("éEND"));
        assert!(text.contains("[… 68 characters, omitted here"));
        assert_eq!(text.matches('é').count(), 40 - 8);
    }

    #[test]
    fn the_newest_four_messages_are_whole() {
        for count in 0..40 {
            let messages = shortened(count);
            let whole = messages
                .iter()
                .rev()
                .take_while(|content| content.chars().count() == 501)
                .count();
            assert!(whole >= UNTRUNCATED_MESSAGES.min(messages.len()));
        }
    }

    #[test]
    fn the_prefix_is_identical_between_steps() {
        let mut moves = 0;
        for count in 5..200 {
            let (before, after) = (shortened(count), shortened(count + 1));
            if after[..before.len()] != before {
                moves += 1;
            }
        }
        assert!(moves <= 195 / STEP + 1, "{moves}");
    }
}
