//! Decides which messages a compaction covers. A pure function.
//!
//! The first few messages are kept, because they state what the conversation is for. The
//! newest messages are kept, because they are its current subject. A message includes its
//! tool calls and their results. If a result came only after another message, no boundary
//! lies between it and its call.

use std::ops;

use super::settings::CompactionSettings;
use conversation::messages::tree::overlays::EventRange;

/// A message or an overlay on a path, with the facts that the decision needs.
#[derive(Debug, PartialEq)]
pub struct PathUnit {
    pub range: EventRange,
    pub tokens: i64,
    /// The overlay's summary; `None` for a message.
    pub summary: Option<String>,
    /// A call of the message still waits for a result from the client or the user.
    pub is_open: bool,
    /// A call above has its result here or below, so no boundary may lie directly above.
    pub is_tied: bool,
}

/// The units to cover, oldest first. `None`: compacting would gain nothing.
///
/// If there is a summary in the protected head or directly after it, the new summary starts
/// where the old one does and replaces it.
pub fn find_middle(units: &[PathUnit], settings: &CompactionSettings) -> Option<ops::Range<usize>> {
    let protected = usize::try_from(settings.protect_head).unwrap_or(usize::MAX);
    let first_summary = units.iter().position(|unit| unit.summary.is_some());
    let start = protected.min(first_summary.unwrap_or(usize::MAX));
    let first_open = units.iter().position(|unit| unit.is_open);
    let end = tail_start(units, settings).min(first_open.unwrap_or(usize::MAX));
    let is_tied = |index: usize| units.get(index).is_some_and(|unit| unit.is_tied);
    let start = (start..end).find(|index| !is_tied(*index))?;
    let end = (start..=end).rev().find(|index| !is_tied(*index))?;
    let middle = units.get(start..end)?;
    let has_new_messages = middle.iter().any(|unit| unit.summary.is_none());
    has_new_messages.then_some(start..end)
}

/// The index where the tail starts. The tail contains as many of the newest units as fit in
/// the token budget, and at least `min_tail_messages`.
fn tail_start(units: &[PathUnit], settings: &CompactionSettings) -> usize {
    let at_least = usize::try_from(settings.min_tail_messages).unwrap_or(usize::MAX);
    let mut start = units.len();
    let mut tokens = 0;
    while let Some(unit) = start.checked_sub(1).and_then(|before| units.get(before)) {
        tokens += unit.tokens;
        let tail_len = units.len() - start;
        if tail_len >= at_least && tokens > settings.tail_token_budget {
            break;
        }
        start -= 1;
    }
    start
}

/// Splits the middle into at most `max_parts` parts that each fit one model request. A unit
/// larger than `part_tokens` becomes its own part. The parts exclude the overlay that the
/// new summary replaces.
pub fn parts(
    units: &[PathUnit],
    middle: ops::Range<usize>,
    part_tokens: i64,
    max_parts: usize,
) -> Vec<ops::Range<usize>> {
    let starts_with_summary = units
        .get(middle.start)
        .is_some_and(|unit| unit.summary.is_some());
    let mut parts = Vec::new();
    let first = middle.start + usize::from(starts_with_summary);
    let mut start = first;
    let mut tokens = 0;
    for index in first..middle.end {
        let more = units.get(index).map_or(0, |unit| unit.tokens);
        if tokens + more > part_tokens && index > start {
            parts.push(start..index);
            start = index;
            tokens = 0;
        }
        tokens += more;
    }
    if start < middle.end {
        parts.push(start..middle.end);
    }
    parts.truncate(max_parts);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `10`: a message of 10 tokens; `s10`: a summary; `10?`: with a pending call; `10^`: a
    /// call above has its result here or below.
    fn units(script: &str) -> Vec<PathUnit> {
        let unit = |(index, token): (usize, &str)| {
            let seq = index as i64 + 1;
            let summary = token.strip_prefix('s');
            PathUnit {
                range: EventRange {
                    from_seq: seq,
                    to_seq: seq,
                    above_seq: seq - 1,
                },
                tokens: summary
                    .unwrap_or(token.trim_end_matches(['?', '^']))
                    .parse()
                    .unwrap(),
                summary: summary.map(str::to_owned),
                is_open: token.ends_with('?'),
                is_tied: token.ends_with('^'),
            }
        };
        script.split_whitespace().enumerate().map(unit).collect()
    }

    fn settings(
        protect_head: i64,
        tail_token_budget: i64,
        min_tail_messages: i64,
    ) -> CompactionSettings {
        CompactionSettings {
            compact_after: None,
            is_off: false,
            protect_head,
            tail_token_budget,
            min_tail_messages,
        }
    }

    #[test]
    fn the_head_and_the_tail_are_kept() {
        for (script, head, budget, at_least, expected) in [
            ("5 5 5 5 5 5 5 5", 3, 10, 2, Some(3..6)),
            ("5 5 5 5 5 5 5 5", 0, 0, 0, Some(0..8)),
            // The budget is smaller than the messages that are never covered.
            ("5 5 5 5 50 50", 1, 10, 2, Some(1..4)),
            // The tail overlaps the head.
            ("5 5 5 5", 3, 100, 2, None),
            ("5 5 5", 3, 0, 0, None),
            ("5 5 5 5", 3, 0, 2, None),
            ("", 3, 10, 2, None),
            ("5 5", i64::MAX, 0, 0, None),
            ("5 5", 0, 0, i64::MAX, None),
        ] {
            let settings = settings(head, budget, at_least);
            assert_eq!(find_middle(&units(script), &settings), expected, "{script}");
        }
    }

    #[test]
    fn a_message_with_an_open_call_and_later_ones_are_kept() {
        let settings = settings(1, 0, 0);
        let units = units("5 5 5 5? 5 5");
        assert_eq!(find_middle(&units, &settings), Some(1..3));
    }

    #[test]
    fn a_late_result_stays_with_its_call() {
        let settings = settings(1, 0, 2);
        for (script, expected) in [
            ("5 5 5 5 5^ 5", Some(1..3)),
            ("5 5 5^ 5^ 5^ 5", None),
            ("5 5^ 5^ 5 5 5", Some(3..4)),
            ("5 5 5^ 5 5 5", Some(1..4)),
        ] {
            assert_eq!(find_middle(&units(script), &settings), expected, "{script}");
        }
    }

    #[test]
    fn a_summary_is_merged_but_never_summarized_alone() {
        let settings = settings(3, 10, 2);
        for (script, expected) in [
            ("5 5 5 s5 5 5 5 5", Some(3..6)),
            ("5 5 5 s5 5 5", None),
            // A summary of part of the head, or all of it.
            ("5 s5 5 5 5 5", Some(1..4)),
            ("s5 5 5 5", Some(0..2)),
            ("s5 5 5", None),
        ] {
            assert_eq!(find_middle(&units(script), &settings), expected, "{script}");
        }
    }

    #[test]
    fn a_long_middle_is_summarized_in_parts() {
        let all = |script: &str, max| {
            let units = units(script);
            let count = units.len();
            parts(&units, 0..count, 10, max)
        };
        assert_eq!(all("4 4 4 4", 9), [0..2, 2..4]);
        assert_eq!(all("4 40 4", 9), [0..1, 1..2, 2..3]);
        assert_eq!(all("s4 4 4 4", 9), [1..3, 3..4]);
        assert_eq!(all("9 9 9 9", 2), [0..1, 1..2]);
        assert!(all("s4", 9).is_empty());
    }
}
