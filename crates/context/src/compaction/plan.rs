//! Plans a compaction: reads as much of the path as the decision depends on.

use std::ops;

use super::boundary::{PathUnit, find_middle, parts};
use super::estimate::{MessageLength, OpenCalls, PromptOverhead, load_units};
use super::settings::CompactionSettings;
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::tokens;
use conversation::log::totals::PathTotals;
use conversation::messages::tree::overlays::EventRange;
use conversation::messages::tree::path_sums::PathSums;

/// Tokens of the conversation per summary request, and requests per compaction, at most. If the
/// middle is longer, the next compaction continues where this one ended.
const PART_TOKENS: i64 = 8_000;
const MAX_PARTS: usize = 16;

/// In a small window, a part takes half of the capacity, and a summary an eighth.
const PART_SHARE: i64 = 2;
pub const SUMMARY_SHARE: i64 = 8;
const MIN_PART_TOKENS: i64 = 500;

/// Before a chat turn, the newest messages take a quarter of the capacity, and the first messages
/// an eighth. A compaction that would cover less than a tenth is not worth its request.
const TAIL_SHARE: i64 = 4;
const HEAD_SHARE: i64 = 8;
const GAIN_SHARE: i64 = 10;

/// The newest messages that stay before a chat turn. A turn is sent 1,000 events at most.
const MAX_TAIL_UNITS: usize = 250;

/// What to compact, and how far.
pub struct CompactionTask<'a> {
    pub session_id: &'a Id,
    pub leaf_seq: i64,
    pub settings: CompactionSettings,
    pub fixed: PromptOverhead,
    pub is_auto: bool,
    pub dry_run: bool,
    /// The tokens that a chat turn has for messages, if the compaction is for one. `None`: only the
    /// settings determine how far to compact.
    pub capacity: Option<i64>,
}

/// What a compaction may cover, and what it covers.
pub struct PlannedUnits {
    pub units: Vec<PathUnit>,
    pub plan: Option<CompactionPlan>,
    /// The tokens of all messages of the path, corrected.
    pub messages: i64,
}

/// The decisions before the first request to the model.
pub struct CompactionPlan {
    pub parts: Vec<ops::Range<usize>>,
    pub range: EventRange,
    pub previous: Option<String>,
    pub covered_tokens: i64,
    pub covered_units: usize,
    pub has_more: bool,
}

/// Decides what a compaction covers.
pub fn plan_units(db: &dyn Database, task: &CompactionTask<'_>) -> Result<PlannedUnits> {
    match plan_oldest(db, task)? {
        Some(planned) => Ok(planned),
        None => plan_all(db, task),
    }
}

/// Reads all units of the path and decides.
fn plan_all(db: &dyn Database, task: &CompactionTask<'_>) -> Result<PlannedUnits> {
    let length = match task.capacity {
        Some(_) => MessageLength::Short,
        None => MessageLength::Whole,
    };
    let units = load_units(
        db,
        task.session_id,
        task.leaf_seq,
        task.fixed.calibration,
        (length, OpenCalls::Waiting),
    )?;
    let plan = match task.capacity {
        Some(capacity) => plan_for_capacity(&units, &task.settings, capacity),
        None => plan(&units, &task.settings, PART_TOKENS),
    };
    let messages = units.iter().map(|unit| unit.tokens).sum();
    Ok(PlannedUnits {
        units,
        plan,
        messages,
    })
}

/// As [`plan_all`], but reads only the oldest units of the path, as many as one
/// compaction covers. `None`: the decision depends on more.
fn plan_oldest(db: &dyn Database, task: &CompactionTask<'_>) -> Result<Option<PlannedUnits>> {
    if task.capacity.is_some() || tokens::has_counter() {
        return Ok(None);
    }
    let path = PathSums::of(db, task.session_id, task.leaf_seq)?;
    let whole = path.whole()?;
    let (Some(messages), Some(tokens)) = (whole.messages, whole.tokens) else {
        return Ok(None);
    };
    let calibration = task.fixed.calibration;
    let mut most = calibration.uncorrect(PART_TOKENS * MAX_PARTS as i64);
    if tokens <= most || !path.load_overlays()?.is_empty() {
        return Ok(None);
    }
    let protected = task.settings.protect_head;
    let is_after_head =
        |totals: PathTotals| totals.messages.is_some_and(|messages| messages > protected);
    let Some(head_end) = path.find_first(&is_after_head)? else {
        return Ok(None);
    };
    let head = path.up_to(head_end)?.tokens.unwrap_or(0);
    // If messages are longer than a part, parts are, too, and one compaction covers more.
    for _ in 0..2 {
        let is_enough =
            |totals: PathTotals| totals.tokens.is_some_and(|tokens| tokens >= head + most);
        let Some(last_seq) = path.find_first(&is_enough)? else {
            return Ok(None);
        };
        let read = path.up_to(last_seq)?;
        let (Some(read_messages), Some(read_tokens)) = (read.messages, read.tokens) else {
            return Ok(None);
        };
        // Each message's tokens are rounded, so all together may be fewer by one each.
        let rest = messages - read_messages;
        let rest_tokens = calibration.correct(tokens - read_tokens) - rest;
        let is_before_tail =
            rest > task.settings.min_tail_messages && rest_tokens > task.settings.tail_token_budget;
        if !is_before_tail {
            return Ok(None);
        }
        let units = load_units(
            db,
            task.session_id,
            last_seq,
            calibration,
            (MessageLength::Whole, OpenCalls::All),
        )?;
        let settings = CompactionSettings {
            // No unit that was read is of the tail, not even one of no tokens.
            tail_token_budget: -1,
            min_tail_messages: 0,
            ..task.settings
        };
        let plan = plan(&units, &settings, PART_TOKENS).filter(|plan| plan.has_more);
        if plan.is_some() {
            return Ok(Some(PlannedUnits {
                units,
                plan,
                messages: calibration.correct(tokens),
            }));
        }
        most *= 2;
    }
    Ok(None)
}

pub fn part_tokens(capacity: i64) -> i64 {
    (capacity / PART_SHARE).clamp(MIN_PART_TOKENS, PART_TOKENS)
}

/// As [`plan`], for a chat turn with this capacity for messages. The settings apply as far as the
/// capacity allows.
fn plan_for_capacity(
    units: &[PathUnit],
    settings: &CompactionSettings,
    capacity: i64,
) -> Option<CompactionPlan> {
    let tokens = |unit: &PathUnit| unit.tokens;
    let newest: i64 = units.iter().rev().take(MAX_TAIL_UNITS).map(tokens).sum();
    let mut head = 0;
    let fitting = units.iter().take_while(|unit| {
        head += unit.tokens;
        head <= capacity / HEAD_SHARE
    });
    let settings = CompactionSettings {
        protect_head: settings.protect_head.min(fitting.count() as i64),
        tail_token_budget: settings
            .tail_token_budget
            .min(capacity / TAIL_SHARE)
            .min(newest),
        ..*settings
    };
    let middle = find_middle(units, &settings)?;
    let new_units = units
        .get(middle)?
        .iter()
        .filter(|unit| unit.summary.is_none());
    let gain: i64 = new_units.map(tokens).sum();
    let plan = plan(units, &settings, part_tokens(capacity));
    plan.filter(|plan| gain > capacity / GAIN_SHARE || plan.covered_units > MAX_TAIL_UNITS)
}

fn plan(
    units: &[PathUnit],
    settings: &CompactionSettings,
    part_tokens: i64,
) -> Option<CompactionPlan> {
    let middle = find_middle(units, settings)?;
    let parts = parts(units, middle.clone(), part_tokens, MAX_PARTS);
    let end = parts.last()?.end;
    let covered = units.get(middle.start..end)?;
    let (first, last) = (covered.first()?, covered.last()?);
    Some(CompactionPlan {
        parts,
        range: EventRange {
            from_seq: first.range.from_seq,
            to_seq: last.range.to_seq,
            above_seq: first.range.above_seq,
        },
        previous: first.summary.clone(),
        covered_tokens: covered.iter().map(|unit| unit.tokens).sum(),
        covered_units: covered.len(),
        has_more: end < middle.end,
    })
}
