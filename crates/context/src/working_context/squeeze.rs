//! Truncates messages that exceed the remaining capacity. The newest messages are never left out,
//! so this is how they fit.

use super::budget::MAX_SHARE;
use super::build::message_tokens;
use super::media::name_files;
use super::truncate::cut_middle;
use base::json::{self, JsonObject};
use conversation::log::tokens::of_content;
use models::message::ContextMessage;

/// No message is truncated below this many tokens.
const MIN_TOKENS: i64 = 16;

/// Arguments of a call that are longer than this are left out as the last resort.
const MAX_ARGUMENT_BYTES: usize = 200;

/// Truncates the message's text to this many tokens.
pub fn cut_to(message: &mut ContextMessage, tokens: i64) {
    let role = message.role;
    let takes = |text: &str| of_content(role, text);
    if takes(&message.content) <= tokens {
        return;
    }
    // Latin text has about four characters per token; other text has fewer.
    let mut chars = usize::try_from(tokens * 4).unwrap_or(0);
    while chars > 0 {
        let cut = cut_middle(&message.content, chars);
        if let Some(cut) = cut
            && (takes(&cut) <= tokens || chars < 8)
        {
            message.content = cut;
            message.forget_given();
            return;
        }
        chars = chars * 3 / 4;
    }
}

/// Truncates the longest messages until all take at most `most` tokens. Returns whether they do.
pub fn squeeze(messages: &mut [ContextMessage], most: i64) -> bool {
    let total = |messages: &[ContextMessage]| messages.iter().map(message_tokens).sum::<i64>();
    if total(messages) <= most {
        return true;
    }
    let mut share = most / MAX_SHARE;
    while share > MIN_TOKENS {
        let cut = |message: &ContextMessage| {
            let content = of_content(message.role, &message.content);
            message_tokens(message) - content + content.min(share)
        };
        if messages.iter().map(cut).sum::<i64>() <= most {
            break;
        }
        share = share * 3 / 4;
    }
    for message in messages.iter_mut() {
        cut_to(message, share.max(MIN_TOKENS));
    }
    if total(messages) <= most {
        return true;
    }
    for message in messages.iter_mut() {
        leave_out_arguments(message);
        name_files(message);
        cut_to(message, share.max(MIN_TOKENS));
    }
    total(messages) <= most
}

fn leave_out_arguments(message: &mut ContextMessage) {
    for call in message.tool_calls.iter_mut().flatten() {
        let bytes = call.arguments.as_str().len();
        if bytes <= MAX_ARGUMENT_BYTES {
            continue;
        }
        let note = format!(r#"{{"note":"{bytes} bytes, omitted here and stored in the log"}}"#);
        if let Ok(note) = json::decode::<JsonObject>(&note) {
            call.arguments = note;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::action::Role;

    fn message(text: &str) -> ContextMessage {
        ContextMessage::of_text(Role::User, text.to_owned())
    }

    fn tokens(messages: &[ContextMessage]) -> i64 {
        messages.iter().map(message_tokens).sum()
    }

    #[test]
    fn a_conversation_that_fits_is_unchanged() {
        let mut messages = [message("one two"), message("three")];
        assert!(squeeze(&mut messages, 100));
        assert_eq!(messages[0].content, "one two");
    }

    #[test]
    fn the_longest_texts_are_truncated_first() {
        for letter in ["a ", "x", "語", "é"] {
            let mut messages = [message(&letter.repeat(50_000)), message("What is it?")];
            assert!(squeeze(&mut messages, 500), "{letter}");
            assert!((60..=500).contains(&tokens(&messages)), "{letter}");
            assert_eq!(messages[1].content, "What is it?");
            assert!(messages[0].content.contains("omitted here"));
        }
    }

    #[test]
    fn arguments_and_files_are_dropped_last() {
        let arguments = format!(r#"{{"text":"{}"}}"#, "word ".repeat(2_000));
        let mut messages: Vec<ContextMessage> = serde_json::from_str(&format!(
            r#"[{{"role":"user","content":"See.","files":[{{"mediaType":"image/png","url":"data:image/png;base64,AAAA"}}]}},
                {{"role":"assistant","content":"","toolCalls":[{{"id":"c","name":"write","arguments":{arguments}}}]}}]"#
        ))
        .unwrap();
        assert!(squeeze(&mut messages, 200));
        assert!(messages[0].files.is_empty());
        assert!(
            messages[1].calls()[0]
                .arguments
                .as_str()
                .contains("omitted here")
        );
    }

    #[test]
    fn squeezing_too_many_messages_terminates() {
        let mut messages: Vec<_> = (0..100).map(|_| message("one two three")).collect();
        assert!(!squeeze(&mut messages, 100));
    }
}
