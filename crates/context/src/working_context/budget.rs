//! The budget of a context, and the stored window of a session.

use serde::{Deserialize, Serialize};

use super::build::message_tokens;
use super::fit::Size;
use super::media::name_file;
use super::truncate::find_short;
use base::error::Error;
use base::json::written_bytes;
use base::tokens::estimate;
use conversation::log::tokens::of_content;
use models::message::ContextMessage;
use store::calibration::Calibration;

/// The minimum number of tokens for the messages. With less, no conversation is possible.
pub const MIN_CAPACITY_TOKENS: i64 = 100;

/// The limits of a context.
pub struct Budget<'a> {
    /// The tokens of the whole request, as the provider counts them.
    pub tokens: i64,
    pub calibration: Calibration,
    /// Estimated tokens of the tools, without the correction.
    pub tools: i64,
    pub bytes: usize,
    pub events: usize,
    pub steps: WindowSteps,
    /// The field or the setting that determines the token limit.
    pub field: &'a str,
    /// Whether the model can search the conversation.
    pub has_search: bool,
}

/// How the window moves while a conversation grows.
#[derive(Clone, Copy)]
pub enum WindowSteps {
    /// The window moves in fixed steps, and nothing is stored between two contexts.
    Round,
    /// The window stays where it is until it is full.
    Positioned(WindowPosition),
}

/// The position of a session's window. It changes only when the window is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WindowPosition {
    /// The first event that is sent; 0: the root of the path.
    pub from_seq: i64,
    /// Long texts are truncated up to this event.
    pub short_seq: i64,
    /// Files are replaced by names up to this event.
    pub media_seq: i64,
    /// Messages are limited to `cut_tokens` up to this event.
    pub cut_seq: i64,
    pub cut_tokens: i64,
}

/// When the window is full, messages that take more than this fraction of it are cut: a
/// quarter.
pub const MAX_SHARE: i64 = 4;

pub fn size_of(message: &ContextMessage) -> Size {
    Size {
        tokens: message_tokens(message),
        bytes: message.bytes(),
        events: 1,
    }
}

/// The size of a truncated message. `names_files`: its files are replaced by names, too.
pub fn short_size(message: &ContextMessage, names_files: bool) -> Size {
    let mut size = size_of(message);
    if let Some(short) = find_short(message) {
        let tokens = |text: &str| of_content(message.role, text);
        size.tokens += tokens(&short) - tokens(&message.content);
        size.bytes = size.bytes + written_bytes(&short) - written_bytes(&message.content);
    }
    if names_files {
        for file in &message.files {
            let name = name_file(file);
            size.tokens += estimate(&name) - file.tokens();
            size.bytes = size.bytes.saturating_sub(file.url.len()) + name.len();
        }
    }
    size
}

impl Budget<'_> {
    /// The limits, in estimated tokens.
    pub fn whole(&self) -> Size {
        Size {
            tokens: self.calibration.uncorrect(self.tokens),
            bytes: self.bytes,
            events: self.events,
        }
    }

    /// The error for a prompt and tools that leave no capacity for messages. `prompt` and
    /// `messages` are their minimum sizes, in estimated tokens.
    pub fn too_small(&self, prompt: i64, messages: i64) -> Error {
        let corrected = |tokens: i64| self.calibration.correct(tokens);
        let (prompt, tools) = (corrected(prompt), corrected(self.tools));
        let messages = corrected(messages.max(MIN_CAPACITY_TOKENS));
        let field = self.field;
        Error::invalid(
            field,
            format!(
                "`{field}` leaves {} tokens for a context. The system prompt and the instructions take {prompt} tokens, the tools {tools}, and the newest message needs at least {messages}. Raise `{field}`, or shorten the prompt, the instructions or the tools.",
                self.tokens
            ),
        )
        .with("limit", self.tokens)
        .with("systemPrompt", prompt)
        .with("tools", tools)
        .with("messages", messages)
    }
}
