//! Builds the context of a turn from the log.

use crate::json_schema::JsonSchema;
use serde::Serialize;

use super::documents::find_documents;
use super::media::{media_cutoff, name_older_files};
use super::message::{from_overlay, from_row};
use super::truncate::shorten_older;
use super::window::{NumberedMessage, close_pairs};
use base::budget::{AnswerCapacity, MAX_ANSWER_BYTES};
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::json::{JsonObject, written_bytes};
use base::tokens;
use conversation::log::tokens::{of_calls, of_content};
use conversation::messages::history::{PathItem, WalkStart, walk_items};
use conversation::messages::tree::path::WalkStep;
use memory::skills::loaded::{LoadedSkill, load_context_documents};
use models::ToolDefinition;
use models::call_ids::make_ids_unique;
use models::file::File;
use models::message::ContextMessage;

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkingContext {
    /// The agent's instructions, then those of the request, then loaded documents that
    /// no message contains.
    pub system_instructions: Vec<String>,
    /// Oldest first. Each tool call has its result, and each result its call.
    pub messages: Vec<ContextMessage>,
    pub leaf_id: Option<String>,
    pub tokens_estimate: i64,
    /// Only with `format`: the whole context in that provider's shape, complete except
    /// for the model's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_input: Option<JsonObject>,
    /// Only with `memory` and without `format`: the memory's tools, as `getTools` gives
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<ToolDefinition>>,
    /// Only with `memory`, and only if a block with a reminder has changed: the text of
    /// `getReminder`. `modelInput` has this text after the newest user message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reminder: Option<String>,
}

/// The parts that a context is built from.
pub struct ContextWindow {
    /// The event that the context ends with; `None`: there is no event.
    pub leaf_seq: Option<i64>,
    /// The maximum number of events.
    pub limit: usize,
    pub system_instructions: Vec<String>,
    /// Messages that a turn added and that are not in the log yet.
    pub added: Vec<ContextMessage>,
    /// In how many of the newest messages files are sent.
    pub keep_media: usize,
}

impl WorkingContext {
    /// The number of bytes that a model would be sent.
    pub fn bytes(&self) -> usize {
        let messages = self.messages.iter().map(ContextMessage::bytes);
        let instructions = (self.system_instructions.iter()).map(|text| written_bytes(text));
        messages.chain(instructions).sum()
    }
}

/// Bytes of a provider's own data that one request returns to it, from the newest message on.
const MAX_GIVEN_BACK_BYTES: usize = 512 << 10;

impl WorkingContext {
    /// Removes the provider's data that another model produced and, from the newest message on,
    /// what exceeds the capacity: estimates do not count this data, so it takes up to about a
    /// quarter of a window of this size.
    pub fn return_provider_data(&mut self, model: &str, window_tokens: i64) {
        let capacity = usize::try_from(window_tokens).unwrap_or(0);
        let mut left = capacity.min(MAX_GIVEN_BACK_BYTES);
        for message in self.messages.iter_mut().rev() {
            message.provider_data = message.provider_data.take().filter(|provider_data| {
                let bytes = provider_data.parts.as_str().len();
                // Data that a caller wrote in a provider's format is for all of its models.
                let is_of = model == provider_data.by
                    || model
                        .split_once(':')
                        .is_some_and(|(provider, _)| provider == provider_data.by);
                let is_given = is_of && bytes <= left;
                left = if is_given { left - bytes } else { left };
                is_given
            });
        }
    }
}

/// Builds the context from the newest events up to a leaf.
pub fn build_working_context(
    db: &dyn Database,
    session_id: &Id,
    window: ContextWindow,
) -> Result<WorkingContext> {
    let ContextWindow {
        leaf_seq,
        limit,
        mut system_instructions,
        added,
        keep_media,
    } = window;
    let loaded = load_context_documents(db, session_id)?;
    let mut items: Vec<(i64, Vec<ContextMessage>)> = Vec::new();
    let mut leaf_id = None;
    let mut capacity = AnswerCapacity::of(
        MAX_ANSWER_BYTES.saturating_sub(fixed_bytes(&system_instructions, &loaded)),
    );
    if let Some(leaf_seq) = leaf_seq {
        let start = WalkStart::At(leaf_seq);
        walk_items(db, session_id, start, limit as i64, &mut |item| {
            let (stored, seq, messages) = match &item {
                PathItem::Event(row) => (row.body_bytes(), row.seq, from_row(row)?),
                PathItem::Summary(overlay) => {
                    let message = from_overlay(overlay);
                    (overlay.summary.len(), overlay.range.to_seq, vec![message])
                }
            };
            let written: usize = messages.iter().map(ContextMessage::bytes).sum();
            if !capacity.takes(stored.max(written)) {
                return Ok(WalkStep::Stop);
            }
            if leaf_id.is_none() {
                leaf_id = Some(match item {
                    PathItem::Event(row) => row.id,
                    PathItem::Summary(overlay) => overlay.to_id,
                });
            }
            items.push((seq, messages));
            Ok(if items.len() >= limit {
                WalkStep::Stop
            } else {
                WalkStep::On
            })
        })?;
    }
    let mut numbered = Vec::new();
    while let Some((seq, messages)) = items.pop() {
        let messages = messages.into_iter();
        numbered.extend(messages.map(|message| NumberedMessage { seq, message }));
    }
    let next_seq = numbered.last().map_or(1, |numbered| numbered.seq + 1);
    numbered.extend(
        (next_seq..)
            .zip(added)
            .map(|(seq, message)| NumberedMessage { seq, message }),
    );
    let mut numbered = close_pairs(numbered);
    let mut documents = find_documents(&numbered, &loaded);
    system_instructions.append(&mut documents.instructions);
    shorten_older(&mut numbered);
    let line = media_cutoff(numbered.iter().rev(), keep_media);
    name_older_files(&mut numbered, line);
    documents.write_to(&mut numbered);
    let mut messages: Vec<ContextMessage> = numbered
        .into_iter()
        .map(|numbered| numbered.message)
        .collect();
    // The caller may send the context to any model.
    messages
        .iter_mut()
        .for_each(|message| message.provider_data = None);
    make_ids_unique(&mut messages);
    let tokens_estimate = messages.iter().map(message_tokens).sum::<i64>()
        + system_instructions
            .iter()
            .map(|text| tokens::estimate(text))
            .sum::<i64>();
    Ok(WorkingContext {
        system_instructions,
        messages,
        leaf_id,
        tokens_estimate,
        model_input: None,
        tools: None,
        reminder: None,
    })
}

/// The bytes, as they are written, of the part before the messages: the instructions and
/// the loaded documents.
pub fn fixed_bytes(system_instructions: &[String], loaded: &[LoadedSkill]) -> usize {
    let documents = loaded.iter().filter_map(|skill| skill.content.as_ref());
    let fixed = system_instructions.iter().chain(documents);
    fixed.map(|text| written_bytes(text)).sum()
}

/// The estimated tokens of one message.
pub fn message_tokens(message: &ContextMessage) -> i64 {
    let files = message.files.iter().map(File::tokens);
    of_content(message.role, &message.content) + of_calls(message.calls()) + files.sum::<i64>()
}
