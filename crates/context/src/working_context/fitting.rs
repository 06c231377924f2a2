//! Builds a context that fits a budget: reads the messages that could be sent, selects
//! those that are sent, and adds a notice about the others.

use super::budget::{Budget, MIN_CAPACITY_TOKENS, WindowPosition};
use super::build::{ContextWindow, WorkingContext, fixed_bytes, message_tokens};
use super::documents::find_documents;
use super::fit::ContextCapacity;
use super::reading::Reading;
use super::squeeze::squeeze;
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::tokens;
use conversation::messages::history::{PathItem, WalkStart, walk_items};
use conversation::messages::tree::overlays::{Overlay, Overlays};
use conversation::messages::tree::path::{PathSegment, WalkStep, is_on_path, load_segments};
use memory::skills::loaded::{LoadedSkill, load_context_documents};
use models::call_ids::make_ids_unique;
use models::message::ContextMessage;

/// The size of the notice about messages that are not shown.
const NOTICE_TOKENS: i64 = 60;

pub struct FittedContext {
    pub context: WorkingContext,
    /// The window, if it moved.
    pub moved: Option<WindowPosition>,
    /// The estimated tokens of everything that was read, with long texts truncated, plus
    /// the part before the messages.
    pub least_tokens: i64,
    /// How many events were read.
    pub events: usize,
    /// The approximate number of messages that are neither sent nor covered by a sent
    /// summary.
    pub hidden: i64,
}

/// Builds the context from the newest events up to a leaf, within a budget.
pub fn build_fitting(
    db: &dyn Database,
    session_id: &Id,
    window: ContextWindow,
    budget: &Budget<'_>,
) -> Result<FittedContext> {
    let documents = load_context_documents(db, session_id)?;
    let prompt = estimates(&window.system_instructions);
    let mut whole = budget.whole();
    let fixed = fixed_bytes(&window.system_instructions, &documents);
    whole.bytes = whole.bytes.saturating_sub(fixed);
    let left = whole.tokens - prompt - budget.tools;
    let has_messages = window.leaf_seq.is_some() || !window.added.is_empty();
    if left < if has_messages { MIN_CAPACITY_TOKENS } else { 0 } {
        return Err(budget.too_small(prompt, 0));
    }
    let shelf = FittedDocuments::new(&documents, left / 2);
    let fixed = prompt + budget.tools + shelf.tokens;
    let capacity = ContextCapacity::new(whole, fixed + notice_tokens(left - shelf.tokens));
    let mut reading = Reading::new(capacity, &documents, budget.steps, window.keep_media);
    let leaf_seq = window.leaf_seq.unwrap_or(0);
    let count = window.added.len() as i64;
    for (message, distance) in window.added.into_iter().rev().zip(0..) {
        reading.add(leaf_seq + count - distance, vec![message]);
    }
    let added = reading.count();
    let leaf_id = read(db, session_id, leaf_seq, window.limit, &mut reading)?;
    let events = reading.count() - added;
    // The path's segments, if a part of the path may not be shown.
    let mut path = Vec::new();
    if reading.above_seq > 0 {
        path = load_segments(db, session_id, leaf_seq)?;
        if reading.summary.is_none()
            && let Some(overlay) = find_summary(db, session_id, reading.above_seq, &path)?
        {
            reading.pin(&overlay);
        }
    }
    let least_tokens = reading.least.tokens + fixed;
    let mut chosen = reading.choose();
    if path.is_empty() && chosen.first_seq.is_some() {
        path = load_segments(db, session_id, leaf_seq)?;
    }
    let hidden = chosen.count_hidden(&path);

    let mut system_instructions = window.system_instructions;
    let mut found = find_documents(&chosen.messages, &documents);
    if let Some(chars) = shelf.chars {
        found.cut(chars);
    }
    system_instructions.append(&mut found.instructions);
    if hidden > 0 {
        system_instructions.push(notice_of(hidden, budget.has_search));
    }
    found.write_to(&mut chosen.messages);
    let numbered = chosen.messages.into_iter();
    let mut messages: Vec<ContextMessage> = numbered.map(|numbered| numbered.message).collect();
    make_ids_unique(&mut messages);
    let instructions = estimates(&system_instructions);
    if !squeeze(&mut messages, whole.tokens - instructions - budget.tools) {
        let least = messages.iter().map(message_tokens).sum();
        return Err(budget.too_small(instructions, least));
    }
    let tokens_estimate = messages.iter().map(message_tokens).sum::<i64>() + instructions;
    Ok(FittedContext {
        context: WorkingContext {
            system_instructions,
            messages,
            leaf_id,
            tokens_estimate,
            model_input: None,
            tools: None,
            reminder: None,
        },
        moved: chosen.moved,
        least_tokens,
        events,
        hidden,
    })
}

/// The tokens that are reserved for the notice about messages that are not shown. In a
/// small window, the reservation is smaller, because the notice may not be needed.
fn notice_tokens(left: i64) -> i64 {
    NOTICE_TOKENS.min(left / 8)
}

/// The most tokens of a conversation that can be sent unchanged, if no document is loaded.
/// `None`: no conversation is possible.
pub fn capacity_for_all(system_instructions: &[String], budget: &Budget<'_>) -> Option<i64> {
    let left = budget.whole().tokens - estimates(system_instructions) - budget.tools;
    (left >= MIN_CAPACITY_TOKENS).then(|| left - notice_tokens(left))
}

/// Reads up the path from its leaf. Returns the leaf's id.
fn read(
    db: &dyn Database,
    session_id: &Id,
    leaf_seq: i64,
    limit: usize,
    reading: &mut Reading<'_>,
) -> Result<Option<String>> {
    let mut leaf_id = None;
    if leaf_seq == 0 || limit == 0 {
        return Ok(leaf_id);
    }
    let start = WalkStart::At(leaf_seq);
    let mut left = limit;
    walk_items(db, session_id, start, limit as i64, &mut |item| {
        if leaf_id.is_none() {
            leaf_id = Some(match &item {
                PathItem::Event(row) => row.id.clone(),
                PathItem::Summary(overlay) => overlay.to_id.clone(),
            });
        }
        reading.add_item(item)?;
        left -= 1;
        let is_over = left == 0 || reading.is_over();
        Ok(if is_over {
            WalkStep::Stop
        } else {
            WalkStep::On
        })
    })?;
    Ok(leaf_id)
}

/// The newest summary of a path, at `seq` or above it.
fn find_summary(
    db: &dyn Database,
    session_id: &Id,
    seq: i64,
    path: &[PathSegment],
) -> Result<Option<Overlay>> {
    let mut overlays = Overlays::below(db, session_id, seq)?;
    while overlays.next_to_seq() > 0 {
        let to_seq = overlays.next_to_seq();
        if is_on_path(path, to_seq) {
            return overlays.take_ending_at(to_seq);
        }
        overlays = Overlays::below(db, session_id, to_seq - 1)?;
    }
    Ok(None)
}

pub fn estimates(texts: &[String]) -> i64 {
    texts.iter().map(|text| tokens::estimate(text)).sum()
}

fn notice_of(hidden: i64, has_search: bool) -> String {
    let where_they_are = if has_search {
        "They are stored, and `session_search` finds them."
    } else {
        "They are stored in the log."
    };
    format!(
        "About {hidden} earlier messages of this conversation are not shown here, because they don't fit. {where_they_are}"
    )
}

/// The documents that a session has loaded, within their part of the capacity.
struct FittedDocuments {
    tokens: i64,
    /// How many characters each document may have; `None`: they fit unchanged.
    chars: Option<usize>,
}

impl FittedDocuments {
    fn new(documents: &[LoadedSkill], capacity: i64) -> Self {
        let loaded = documents
            .iter()
            .filter_map(|document| document.content.as_ref());
        let estimates: Vec<i64> = loaded.map(|text| tokens::estimate(text)).collect();
        let tokens: i64 = estimates.iter().sum();
        if tokens <= capacity {
            return Self {
                tokens,
                chars: None,
            };
        }
        // A character is at most about one token.
        let share = capacity / estimates.len().max(1) as i64;
        Self {
            tokens: capacity,
            chars: usize::try_from(share).ok(),
        }
    }
}
