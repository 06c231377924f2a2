//! Micro-compaction: long outputs and texts of older messages are shortened before they
//! are sent to a model. Only copies are shortened; the stored messages stay.
//!
//! Providers cache a prompt's prefix, so the set of shortened messages must not change
//! with every message. The boundary between older and newer messages moves in steps of
//! [`STEP`] events. Between two steps the prefix is the same to the byte. The boundary
//! depends on `seq` and not on the place in the window, since the window slides.

use super::window::PlacedMessage;
use crate::base::action::Role;

/// How many of the newest messages are never shortened.
const KEPT_MESSAGES: usize = 4;

/// How many characters stay of a tool's output, and of any other text.
const MAX_OUTPUT_CHARS: usize = 500;
const MAX_TEXT_CHARS: usize = 10_000;

/// The number of events per move of the boundary.
const STEP: i64 = 8;

pub fn shorten_older(messages: &mut [PlacedMessage]) {
    let Some(newest_older) = messages.len().checked_sub(KEPT_MESSAGES + 1) else {
        return;
    };
    let line = messages
        .get(newest_older)
        .map_or(0, |placed| placed.seq / STEP * STEP);
    for placed in messages.iter_mut().take(newest_older + 1) {
        if placed.seq > line {
            continue;
        }
        let limit = match placed.message.role {
            Role::Tool => MAX_OUTPUT_CHARS,
            Role::User | Role::Assistant | Role::System => MAX_TEXT_CHARS,
        };
        shorten(&mut placed.message.content, limit);
    }
}

fn shorten(text: &mut String, limit: usize) {
    // Compares bytes first, so that only a text that could be too long is counted.
    if text.len() <= limit {
        return;
    }
    let Some((cut, _)) = text.char_indices().nth(limit) else {
        return;
    };
    let dropped = text.get(cut..).map_or(0, |rest| rest.chars().count());
    text.truncate(cut);
    text.push_str(&format!(
        "\n[… {dropped} more characters, left out here and kept in the log]"
    ));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::message::ContextMessage;

    fn placed(seq: i64, role: Role, length: usize) -> PlacedMessage {
        PlacedMessage {
            seq,
            message: ContextMessage::plain(role, "é".repeat(length)),
        }
    }

    fn shortened(count: i64) -> Vec<String> {
        let mut messages: Vec<PlacedMessage> = (1..=count)
            .map(|seq| placed(seq, Role::Tool, 501))
            .collect();
        shorten_older(&mut messages);
        messages
            .into_iter()
            .map(|placed| placed.message.content)
            .collect()
    }

    #[test]
    fn older_outputs_and_texts_are_cut_with_a_note() {
        let mut messages = vec![
            placed(1, Role::Tool, 501),
            placed(2, Role::Tool, 500),
            placed(3, Role::User, 10_001),
            placed(8, Role::User, 10_000),
            placed(9, Role::Tool, 501),
            placed(10, Role::Tool, 501),
            placed(11, Role::Tool, 501),
            placed(12, Role::Tool, 501),
        ];
        shorten_older(&mut messages);
        let ends = |index: usize| {
            messages[index]
                .message
                .content
                .ends_with("kept in the log]")
        };
        assert_eq!(
            (0..8).map(ends).collect::<Vec<_>>(),
            [true, false, true, false, false, false, false, false]
        );
        assert!(messages[0].message.content.contains("[… 1 more characters"));
        assert!(messages[0].message.content.starts_with(&"é".repeat(500)));
    }

    #[test]
    fn the_newest_four_are_whole_and_few_messages_all_are() {
        for count in 0..40 {
            let messages = shortened(count);
            let whole = messages
                .iter()
                .rev()
                .take_while(|content| content.chars().count() == 501)
                .count();
            assert!(whole >= KEPT_MESSAGES.min(messages.len()));
        }
    }

    #[test]
    fn between_two_steps_the_prefix_stays_to_the_byte() {
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
