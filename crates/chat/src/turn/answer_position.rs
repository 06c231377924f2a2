//! The position of a turn's answer. The answer follows the message that it answers, and
//! everything that was appended behind that message while the turn ran. Otherwise the
//! answer would be a sibling of the appended messages, and no later context would show
//! them.
//!
//! The turn's own branch is the message that it answers with everything new below it. The
//! answer follows
//!
//! - the session's leaf, if the leaf is in that branch;
//! - else the newest event of the branch. Somebody chose another leaf (`setLeaf`), or the appended
//!   events follow an older answer, next to which this turn makes a new one.
//!
//! The result of a call that an earlier turn made belongs into the message with the call. Such a
//! turn stays where it began.

use crate::turn::Turn;
use base::database::Database;
use base::error::{Code, Error, Result};
use base::ids::Id;
use conversation::log::event_facts::load_parents;
use conversation::log::find::find_seqs;
use conversation::log::tip::get_tip;
use conversation::messages::run::get_run_event;

/// Rows that one statement reads. Each has two numbers.
const PAGE: i64 = 512;

/// The event that a turn's answer follows.
#[derive(Debug)]
pub struct AnswerPosition {
    /// `None`: the answer is a root.
    pub seq: Option<i64>,
    /// Whether something was appended after the message that is answered.
    pub has_moved: bool,
}

/// The current position of the answer. Fails if the message to be answered was deleted.
pub fn find_answer_position(db: &dyn Database, turn: &Turn) -> Result<AnswerPosition> {
    let Some(id) = &turn.parent_id else {
        return Ok(AnswerPosition {
            seq: None,
            has_moved: false,
        });
    };
    let found = find_seqs(db, &turn.session_id, std::iter::once(id))?;
    let parent = *found.get(id.as_str()).ok_or_else(question_deleted)?;
    let stays = turn.answer_seq == 0 || turn.steps.iter().any(|step| step.is_logged);
    let end = if stays {
        parent
    } else {
        find_end(db, &turn.session_id, parent, turn.answer_seq)?
    };
    Ok(AnswerPosition {
        seq: Some(end),
        has_moved: end != parent,
    })
}

impl AnswerPosition {
    pub fn find_id(&self, db: &dyn Database, session_id: &Id) -> Result<Option<Id>> {
        let Some(seq) = self.seq else {
            return Ok(None);
        };
        let event = get_run_event(db, session_id, seq)?;
        Id::parse(event.id).map(Some).map_err(Error::storage)
    }
}

/// The end of the branch of the event `parent`. `new_from`: the first `seq` that a later
/// event could get when the turn began.
fn find_end(db: &dyn Database, session_id: &Id, parent: i64, new_from: i64) -> Result<i64> {
    let tip = get_tip(db, session_id)?;
    if tip.newest_seq < new_from {
        return Ok(parent);
    }
    let mut branch = Branch::of(parent);
    let mut from = new_from;
    loop {
        let events = load_parents(db, session_id, from, PAGE)?;
        for event in &events {
            branch.add(event.seq, event.parent_seq);
        }
        match events.last() {
            Some(last) if events.len() as i64 == PAGE => from = last.seq + 1,
            _ => break,
        }
    }
    let leaf = tip.leaf.map(|leaf| leaf.seq);
    let leaf = leaf.filter(|leaf| branch.has(*leaf));
    Ok(leaf.unwrap_or_else(|| branch.newest()))
}

/// An event and everything below it, as runs of consecutive events, by `seq`. The first run is the
/// event.
struct Branch {
    runs: Vec<(i64, i64)>,
}

impl Branch {
    fn of(seq: i64) -> Self {
        Self {
            runs: vec![(seq, seq)],
        }
    }

    /// Adds an event, if it is below the first one. Events must come in order of `seq`.
    fn add(&mut self, seq: i64, parent_seq: i64) {
        if !self.has(parent_seq) {
            return;
        }
        match self.runs.last_mut() {
            Some((_, to)) if *to + 1 == seq => *to = seq,
            _ => self.runs.push((seq, seq)),
        }
    }

    fn has(&self, seq: i64) -> bool {
        let after = self.runs.partition_point(|(from, _)| *from <= seq);
        let run = after.checked_sub(1).and_then(|index| self.runs.get(index));
        run.is_some_and(|(_, to)| seq <= *to)
    }

    fn newest(&self) -> i64 {
        self.runs.last().map_or(0, |(_, to)| *to)
    }
}

/// The failure of a turn whose question was deleted.
pub fn question_deleted() -> Error {
    Error::new(
        Code::MessageNotFound,
        "The message was deleted before its answer was finished.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_contains_an_event_and_its_descendants() {
        let mut branch = Branch::of(2);
        // 5 and 6 follow 2, 7 follows another branch, 8 follows 6, 9 follows 5.
        for (seq, parent_seq) in [(5, 2), (6, 5), (7, 4), (8, 6), (9, 5), (10, 7)] {
            branch.add(seq, parent_seq);
        }
        let has: Vec<i64> = (0..12).filter(|seq| branch.has(*seq)).collect();
        assert_eq!(has, [2, 5, 6, 8, 9]);
        assert_eq!(branch.newest(), 9);
    }
}
