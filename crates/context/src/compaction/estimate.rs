//! Estimates the tokens of a path: its messages as they are read, with overlays instead of the
//! messages they cover, and the system prompt and tools before them.

use crate::json_schema::JsonSchema;
use std::collections::HashMap;

use serde::Serialize;

use super::boundary::PathUnit;
use crate::working_context::budget::short_size;
use crate::working_context::build::message_tokens;
use crate::working_context::message::from_row;
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::tokens;
use conversation::log::row::EventRow;
use conversation::log::tip::get_tip;
use conversation::messages::history::{PathItem, WalkStart, walk_items};
use conversation::messages::tree::overlays::EventRange;
use conversation::messages::tree::path::WalkStep;
use conversation::messages::tree::path_sums::PathSums;
use models::message::ContextMessage;
use store::calibration::Calibration;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Estimate {
    pub messages: i64,
    pub system_prompt: i64,
    pub tools: i64,
    pub total: i64,
}

/// The tokens of the system prompt and the tools, as the agent's provider counts them,
/// and the correction for the messages' tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct PromptOverhead {
    pub system_prompt: i64,
    pub tools: i64,
    pub calibration: Calibration,
}

impl PromptOverhead {
    /// The estimate with messages of this many tokens, already corrected.
    pub fn with(self, messages: i64) -> Estimate {
        Estimate {
            messages,
            system_prompt: self.system_prompt,
            tools: self.tools,
            total: messages + self.system_prompt + self.tools,
        }
    }
}

pub fn event_tokens(row: &EventRow) -> Result<i64> {
    Ok(from_row(row)?.iter().map(message_tokens).sum())
}

/// The results whose calls an upward walk has not reached yet: the units with the results, by the
/// calls' ids, the oldest last. A result belongs to the nearest call above it that has its id and
/// no result.
#[derive(Default)]
struct PassedResults {
    units: HashMap<String, Vec<usize>>,
}

impl PassedResults {
    /// Passes an event of this unit. Returns its calls without a result, and the newest unit that
    /// has a result of one of its calls.
    fn pass(&mut self, messages: &[ContextMessage], unit: usize) -> (Vec<String>, usize) {
        let mut open = Vec::new();
        let mut newest = unit;
        for message in messages.iter().rev() {
            if let Some(id) = &message.tool_call_id {
                let results = self.units.entry(id.as_str().to_owned()).or_default();
                results.push(unit);
            }
            for call in message.calls() {
                let id = call.id.as_str();
                match self.units.get_mut(id).and_then(Vec::pop) {
                    Some(result) => newest = newest.min(result),
                    None => open.push(id.to_owned()),
                }
            }
        }
        (open, newest)
    }
}

/// How the messages of a path are counted.
#[derive(Clone, Copy)]
pub enum MessageLength {
    Whole,
    /// As a full window sends older messages.
    Short,
}

impl MessageLength {
    fn tokens(self, messages: &[ContextMessage]) -> i64 {
        let tokens = messages.iter().map(|message| match self {
            Self::Whole => message_tokens(message),
            Self::Short => short_size(message, true).tokens,
        });
        tokens.sum()
    }
}

/// The calls of a message that keep a compaction from covering it.
#[derive(Clone, Copy)]
pub enum OpenCalls {
    /// Those that wait for a result from the client or the user.
    Waiting,
    /// All without a result on the path.
    All,
}

/// The units of the path that ends at `leaf_seq`, oldest first, with corrected tokens.
pub fn load_units(
    db: &dyn Database,
    session_id: &Id,
    leaf_seq: i64,
    calibration: Calibration,
    (length, open_calls): (MessageLength, OpenCalls),
) -> Result<Vec<PathUnit>> {
    let copied_seq = get_tip(db, session_id)?.copied_seq;
    let mut units: Vec<PathUnit> = Vec::new();
    let mut is_within_run = false;
    let mut passed = PassedResults::default();
    walk_items(
        db,
        session_id,
        WalkStart::At(leaf_seq),
        i64::MAX,
        &mut |item| {
            match item {
                PathItem::Event(row) => {
                    let joins = is_within_run && row.is_run_member();
                    is_within_run = row.is_run_member() && !row.splits_run;
                    let messages = from_row(&row)?;
                    let tokens = length.tokens(&messages);
                    // The newest unit is the first, and this event's is the last.
                    let unit = units.len() - usize::from(joins);
                    let (open, newest) = passed.pass(&messages, unit);
                    for between in units.iter_mut().take(unit).skip(newest) {
                        between.is_tied = true;
                    }
                    // Calls that an import or a fork copied as open stay open, and don't prevent
                    // summarizing a message.
                    let is_open = match open_calls {
                        OpenCalls::Waiting => {
                            row.seq > copied_seq && row.open_calls()?.any(|id| open.contains(&id))
                        }
                        OpenCalls::All => !open.is_empty(),
                    };
                    match units.last_mut().filter(|_| joins) {
                        Some(unit) => {
                            unit.tokens += tokens;
                            unit.is_open |= is_open;
                            unit.range.from_seq = row.seq;
                            unit.range.above_seq = row.parent_seq;
                        }
                        None => units.push(PathUnit {
                            range: EventRange {
                                from_seq: row.seq,
                                to_seq: row.seq,
                                above_seq: row.parent_seq,
                            },
                            tokens,
                            summary: None,
                            is_open,
                            is_tied: false,
                        }),
                    }
                }
                PathItem::Summary(overlay) => {
                    is_within_run = false;
                    units.push(PathUnit {
                        range: overlay.range,
                        tokens: tokens::estimate(&overlay.summary),
                        summary: Some(overlay.summary),
                        is_open: false,
                        is_tied: false,
                    });
                }
            }
            Ok(WalkStep::On)
        },
    )?;
    units.reverse();
    for unit in &mut units {
        unit.tokens = calibration.correct(unit.tokens);
    }
    Ok(units)
}

/// A path's tokens, estimated and not corrected, and the tokens of the whole context
/// right after its newest compaction, as corrected at that time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PathMeasure {
    pub tokens: i64,
    pub after_compaction: Option<i64>,
}

/// Measures the path that ends at `leaf_seq` by its totals. `None`: they are not stored, or the
/// class counts tokens itself.
fn measure_by_totals(
    db: &dyn Database,
    session_id: &Id,
    leaf_seq: i64,
) -> Result<Option<PathMeasure>> {
    if tokens::has_counter() {
        return Ok(None);
    }
    let path = PathSums::of(db, session_id, leaf_seq)?;
    let Some(mut tokens) = path.whole()?.tokens else {
        return Ok(None);
    };
    let mut after_compaction = None;
    for overlay in path.load_overlays()? {
        let above = path.up_to(overlay.range.above_seq)?.tokens;
        let below = path.up_to(overlay.range.to_seq)?.tokens;
        let Some((above, below)) = above.zip(below) else {
            return Ok(None);
        };
        tokens += above - below + tokens::estimate(&overlay.summary);
        after_compaction = after_compaction.or(overlay.tokens_after);
    }
    Ok(Some(PathMeasure {
        tokens,
        after_compaction,
    }))
}

/// Up to this many events after a measured one are read, instead of the totals: those need the
/// session's branches and the path's corrections.
const FEW_EVENTS: i64 = 16;

/// Measures the path that ends at `leaf_seq`. `known`: an event of the log that was measured already.
pub fn measure(
    db: &dyn Database,
    session_id: &Id,
    leaf_seq: i64,
    known: Option<(i64, PathMeasure)>,
) -> Result<PathMeasure> {
    let is_near = known.is_some_and(|(known_seq, _)| leaf_seq - known_seq <= FEW_EVENTS);
    if is_near && let Some(measure) = measure_by_walk(db, session_id, leaf_seq, known, FEW_EVENTS)?
    {
        return Ok(measure);
    }
    if let Some(measure) = measure_by_totals(db, session_id, leaf_seq)? {
        return Ok(measure);
    }
    let walked = measure_by_walk(db, session_id, leaf_seq, known, i64::MAX)?;
    Ok(walked.unwrap_or_default())
}

/// Reads the path up to its root or to the known event. `None`: neither is among the newest `max_items`.
fn measure_by_walk(
    db: &dyn Database,
    session_id: &Id,
    leaf_seq: i64,
    known: Option<(i64, PathMeasure)>,
    max_items: i64,
) -> Result<Option<PathMeasure>> {
    let mut left = max_items;
    let mut is_cut = false;
    let mut measure = PathMeasure::default();
    let expected = known.map_or(i64::MAX, |(known_seq, _)| leaf_seq - known_seq + 1);
    walk_items(
        db,
        session_id,
        WalkStart::At(leaf_seq),
        expected,
        &mut |item| {
            match item {
                PathItem::Event(row) => {
                    if let Some((known_seq, before)) = known
                        && row.seq == known_seq
                    {
                        measure.tokens += before.tokens;
                        measure.after_compaction = before.after_compaction;
                        return Ok(WalkStep::Stop);
                    }
                    if left == 0 {
                        is_cut = true;
                        return Ok(WalkStep::Stop);
                    }
                    left -= 1;
                    measure.tokens += event_tokens(&row)?;
                }
                PathItem::Summary(overlay) => {
                    measure.tokens += tokens::estimate(&overlay.summary);
                    measure.after_compaction = measure.after_compaction.or(overlay.tokens_after);
                }
            }
            Ok(WalkStep::On)
        },
    )?;
    Ok((!is_cut).then_some(measure))
}
