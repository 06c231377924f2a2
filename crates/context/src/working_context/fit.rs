//! Decides how much of a conversation is sent to a model. Pure: sizes in, positions out.
//!
//! A provider caches the prefix that requests have in common. So the text before the newest
//! message must stay the same while the window has capacity. When the window is full,
//! everything that frees capacity moves at once, and leaves the window [`TARGET_PERCENT`]
//! full, so that the next move is far away.
//!
//! The messages come in groups: a message with tool calls and the results of its calls are
//! one group. A window starts with a group, so no call is separated from its result.

use std::ops::Add;

/// How full the window is after it moved, in percent.
const TARGET_PERCENT: usize = 70;

/// The size of a part of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Size {
    /// Estimated tokens, without the correction.
    pub tokens: i64,
    pub bytes: usize,
    pub events: usize,
}

impl Add for Size {
    type Output = Self;

    fn add(self, more: Self) -> Self {
        Self {
            tokens: self.tokens + more.tokens,
            bytes: self.bytes + more.bytes,
            events: self.events + more.events,
        }
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::default(), Add::add)
    }
}

impl Size {
    /// Whether this fits in `capacity`.
    pub fn fits(self, capacity: Self) -> bool {
        self.tokens <= capacity.tokens
            && self.bytes <= capacity.bytes
            && self.events <= capacity.events
    }
}

/// The capacity for messages, without the fixed parts of every request.
#[derive(Clone, Copy, Debug)]
pub struct ContextCapacity {
    /// The maximum size of the messages.
    pub most: Size,
    /// The maximum size of the messages after the window moved.
    pub target: Size,
}

impl ContextCapacity {
    /// `whole` is the total capacity. `fixed` of its tokens are not for messages.
    pub fn new(whole: Size, fixed: i64) -> Self {
        let percent =
            |number: usize| number / 100 * TARGET_PERCENT + number % 100 * TARGET_PERCENT / 100;
        let left = whole.tokens.saturating_sub(fixed).max(0);
        let target = whole.tokens / 100 * TARGET_PERCENT as i64 - fixed;
        Self {
            most: Size {
                tokens: left,
                ..whole
            },
            target: Size {
                // With a long prompt, the messages get half of the remaining capacity.
                tokens: target.max(left / 2),
                bytes: percent(whole.bytes),
                events: percent(whole.events),
            },
        }
    }
}

/// A group of messages that are never separated.
#[derive(Clone, Copy, Debug, Default)]
pub struct Group {
    /// The first event of the group.
    pub seq: i64,
    pub whole: Size,
    /// The size with long texts truncated, and files replaced by names.
    pub short: Size,
    /// The group starts with a user's message, so the window may start here.
    pub is_users: bool,
}

/// The part of a list of groups that is sent: the groups from `start` on. Those before
/// `short` are truncated.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cut {
    pub start: usize,
    pub short: usize,
}

/// The groups of a path, oldest first, and what is the same for all cuts of them.
pub struct Groups<'a> {
    pub list: &'a [Group],
    /// The indexes of groups that are sent even if later groups are not: the newest
    /// summary, and the newest message of a user.
    pub pinned: Vec<usize>,
    /// The index of the first group that is not truncated.
    pub newest: usize,
}

impl Groups<'_> {
    /// The size of each group that is sent.
    fn sent(&self, cut: Cut) -> impl Iterator<Item = Size> {
        let list = self.list.iter().enumerate();
        list.filter(move |(index, _)| *index >= cut.start || self.pinned.contains(index))
            .map(move |(index, group)| {
                if index < cut.short {
                    group.short
                } else {
                    group.whole
                }
            })
    }

    pub fn total(&self, cut: Cut) -> Size {
        self.sent(cut).sum()
    }

    /// The last index at which a window may start.
    fn last(&self) -> usize {
        self.list.len().saturating_sub(1)
    }

    /// A cut that fits in the target, given a cut `before` that is too long.
    pub fn shrink_to_fit(&self, before: Cut, capacity: &ContextCapacity) -> Cut {
        let mut cut = Cut {
            start: before.start,
            short: before.short.max(self.newest),
        };
        if self.total(cut).fits(capacity.target) {
            return cut;
        }
        while cut.start < self.newest && !self.total(cut).fits(capacity.target) {
            cut.start += 1;
        }
        // The newest messages are dropped only if they don't fit.
        while cut.start < self.last() && !self.total(cut).fits(capacity.most) {
            cut.start += 1;
        }
        self.begin_with_a_user(&mut cut);
        cut
    }

    /// The oldest cut that fits, for a reader that can't store where the window starts. The
    /// start is the roundest event number between the first start that fits and the first
    /// that reaches the target. As a conversation grows, the roundest number rarely
    /// changes.
    pub fn fit_round(&self, short: usize, capacity: &ContextCapacity) -> Cut {
        let fits = |start: usize, capacity: Size| self.total(Cut { start, short }).fits(capacity);
        let starts = || 0..self.last();
        let first = starts().find(|start| fits(*start, capacity.most));
        let first = match first {
            Some(0) => return Cut { start: 0, short },
            first => first.unwrap_or(self.last()),
        };
        let end = starts().find(|start| fits(*start, capacity.target));
        let end = end.unwrap_or(self.last()).min(self.newest).max(first);
        let start = (first..=end)
            .max_by_key(|index| {
                let seq = self.list.get(*index).map_or(1, |group| group.seq);
                (seq.trailing_zeros(), *index)
            })
            .unwrap_or(first);
        let mut cut = Cut { start, short };
        self.begin_with_a_user(&mut cut);
        cut
    }

    /// Moves the start to the next message of a user. The templates of many models require
    /// that a user speaks first.
    fn begin_with_a_user(&self, cut: &mut Cut) {
        let mut later = self.list.iter().enumerate().skip(cut.start);
        let next = later.find(|(_, group)| group.is_users);
        cut.start = next.map_or(cut.start, |(index, _)| index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(tokens: i64) -> Size {
        Size {
            tokens,
            bytes: 0,
            events: 1,
        }
    }

    fn capacity(whole: i64, fixed: i64) -> ContextCapacity {
        ContextCapacity::new(
            Size {
                tokens: whole,
                bytes: usize::MAX / 2,
                events: 1_000,
            },
            fixed,
        )
    }

    /// `u10`: a user's 10 tokens; `a10`: the agent's; `a90/5`: 5 when truncated.
    fn groups(script: &str) -> Vec<Group> {
        let group = |(index, word): (usize, &str)| {
            let (who, sizes) = word.split_at(1);
            let (whole, short) = sizes.split_once('/').unwrap_or((sizes, sizes));
            Group {
                seq: index as i64 + 1,
                whole: tokens(whole.parse().unwrap()),
                short: tokens(short.parse().unwrap()),
                is_users: who == "u",
            }
        };
        script.split_whitespace().enumerate().map(group).collect()
    }

    fn groups_of(list: &[Group], pinned: Vec<usize>) -> Groups<'_> {
        Groups {
            list,
            pinned,
            newest: list.len().saturating_sub(2),
        }
    }

    /// The cut of a window of 100 tokens.
    fn fit(script: &str, before: (usize, usize), pinned: Vec<usize>) -> (usize, usize) {
        let list = groups(script);
        let groups = groups_of(&list, pinned);
        let (start, short) = before;
        let cut = step(&groups, Cut { start, short }, &capacity(100, 0));
        (cut.start, cut.short)
    }

    fn step(groups: &Groups<'_>, before: Cut, capacity: &ContextCapacity) -> Cut {
        if groups.total(before).fits(capacity.most) {
            before
        } else {
            groups.shrink_to_fit(before, capacity)
        }
    }

    #[test]
    fn a_full_window_shrinks_to_seventy_percent() {
        for (script, before, expected) in [
            ("u25 u25 u25 u25", (0, 0), (0, 0)),
            // 101 tokens: the oldest are dropped until at most 70 are left.
            ("u25 u25 u25 u26", (0, 0), (2, 2)),
            // They fit again when truncated, so none is dropped.
            ("a90/5 u25 u25 u15", (0, 0), (0, 2)),
            // They still exceed 70 when truncated.
            ("u25 a90/30 u25 u25", (0, 0), (2, 2)),
            ("u25 a90/10 u25 u25 u10", (0, 0), (2, 3)),
            // An earlier decision is kept while there is capacity.
            ("u25 u25 u25 u25 u25", (2, 2), (2, 2)),
            // It starts with a user's message if possible.
            ("u25 u25 a25 a1 u26 u24", (0, 0), (4, 4)),
            ("a50 a30 a30", (0, 0), (1, 1)),
            // The last group is never dropped.
            ("u10 u500", (0, 0), (1, 0)),
        ] {
            assert_eq!(fit(script, before, vec![]), expected, "{script}");
        }
    }

    #[test]
    fn the_summary_and_the_question_are_always_kept() {
        assert_eq!(fit("a20 u25 u25 u25 u25", (0, 0), vec![0]), (3, 3));
        assert_eq!(fit("a20 u20 a30 a30 a20", (0, 0), vec![0, 1]), (3, 3));
        let list = groups("a20 u25 u25");
        let groups = groups_of(&list, vec![0]);
        assert_eq!(groups.total(Cut { start: 2, short: 1 }).tokens, 45);
        assert_eq!(groups.total(Cut { start: 0, short: 1 }).tokens, 70);
    }

    #[test]
    fn the_fixed_part_reduces_the_capacity() {
        let room_with = |whole, fixed| {
            let capacity = capacity(whole, fixed);
            (capacity.most.tokens, capacity.target.tokens)
        };
        assert_eq!(room_with(1_000, 0), (1_000, 700));
        assert_eq!(room_with(1_000, 300), (700, 400));
        assert_eq!(room_with(1_000, 600), (400, 200));
        assert_eq!(room_with(1_000, 2_000), (0, 0));
    }

    #[test]
    fn a_window_is_limited_in_events_as_in_tokens() {
        let list = groups(&"u1 ".repeat(11));
        let groups = groups_of(&list, vec![]);
        let whole = Size {
            tokens: 1_000,
            bytes: 10,
            events: 10,
        };
        let cut = step(&groups, Cut::default(), &ContextCapacity::new(whole, 0));
        assert_eq!(list.len() - cut.start, 7);
    }

    /// Counts how often the start moves while a conversation grows, and checks that every
    /// window fits.
    fn count_moves(next: impl Fn(&Groups<'_>, Cut) -> Cut) -> usize {
        let list = groups(&"u10 ".repeat(400));
        let mut before = Cut::default();
        let mut moves = 0;
        for length in 1..=list.len() {
            let groups = groups_of(&list[..length], vec![]);
            let cut = next(&groups, before);
            let total = groups.total(cut).tokens;
            assert!(total <= 1_000, "{length}: {total}");
            assert!(total >= 690 || length < 70, "{length}: {total}");
            moves += usize::from(cut.start != before.start);
            before = cut;
        }
        moves
    }

    #[test]
    fn a_stored_window_moves_every_thirty_percent() {
        let capacity = capacity(1_000, 0);
        assert_eq!(
            count_moves(|groups, before| step(groups, before, &capacity)),
            10
        );
    }

    #[test]
    fn an_unstored_window_also_moves_rarely() {
        let capacity = capacity(1_000, 0);
        let moves = count_moves(|groups, _| groups.fit_round(0, &capacity));
        assert!((10..=25).contains(&moves), "{moves}");
    }
}
