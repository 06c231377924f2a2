//! How many messages and estimated tokens a path has, without reading the path.
//!
//! An event's row has the totals of the path that ends with it, as they were when the event was
//! written: `path_messages` and `path_tokens`. A later change of an event above does not update
//! them. Instead, the changed event, or the one that now follows another, has the difference in
//! `more_messages` and `more_tokens`. It counts for this event and all below it. So the totals of
//! a path are those of its last event, and the differences of all its events, which an index lists.
//!
//! Invariant: `path_messages` and `more_messages` of an event are together one more than its
//! parent's `path_messages` if the event starts a message, and otherwise the same. The tokens are
//! together the event's own more than its parent's `path_tokens`. Everything that changes an
//! event's text, kind, parent or `splits_run` must keep this. `verify` compares the messages.
//!
//! Events of builds before these columns have NULL there, and so do all events below them.

use std::sync::LazyLock;

use super::event::is_run_member;
use base::columns::load;
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::json;
use base::row;

/// An event that others may follow, as far as their totals depend on it.
#[derive(Clone, Copy, Debug)]
pub struct PathEnd {
    pub seq: i64,
    is_run_member: bool,
    pub totals: PathTotals,
}

/// The totals of a path; `None`: they are not stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct PathTotals {
    pub messages: Option<i64>,
    pub tokens: Option<i64>,
}

row! {
    /// The columns of the event `event`. `is_run_member`: SQL: whether it is a run member.
    pub for PathEnd(event: &str, is_run_member: &str) {
        seq: i64 = format!("{event}.seq"),
        is_run_member: bool = format!("iif({is_run_member}, 1, 0)"),
        messages: Option<i64> = format!("{event}.path_messages"),
        tokens: Option<i64> = format!("{event}.path_tokens"),
    }
    Ok(Self {
        seq,
        is_run_member,
        totals: PathTotals { messages, tokens },
    })
}

/// SQL: the columns of [`PathEnd`] of the event `$event`. Each append reads two, so the action is
/// compared with each name: SQLite would make a table of a list, which takes a sixth of the statement.
macro_rules! path_end {
    ($event:literal) => {
        $crate::log::totals::PathEnd::columns(
            $event,
            concat!(
                $event,
                ".message IS NULL AND ",
                base::action::has_agents_action!($event)
            ),
        )
    };
}
pub(crate) use path_end;

/// An event of the log, as far as its own share in the totals depends on it.
#[derive(Clone, Copy)]
pub struct OwnShare {
    pub is_run_member: bool,
    pub splits_run: bool,
    pub tokens: i64,
}

impl PathEnd {
    /// The parent of a root.
    pub const NONE: Self = Self {
        seq: 0,
        is_run_member: false,
        totals: PathTotals {
            messages: Some(0),
            tokens: Some(0),
        },
    };

    /// Whether an event that follows this one starts a message.
    pub fn ends_message(&self, is_run_member: bool, splits_run: bool) -> bool {
        splits_run || !(is_run_member && self.is_run_member)
    }

    /// The end of the path to an event that follows this one.
    fn followed_by(&self, seq: i64, own: OwnShare) -> Self {
        let starts = self.ends_message(own.is_run_member, own.splits_run);
        Self {
            seq,
            is_run_member: own.is_run_member,
            totals: PathTotals {
                messages: self.totals.messages.map(|sum| sum + i64::from(starts)),
                tokens: self.totals.tokens.map(|sum| sum + own.tokens),
            },
        }
    }
}

/// The ends of paths that new events follow.
pub struct PathEnds(Vec<PathEnd>);

impl PathEnds {
    /// `known`: those that were read already. The others of `parents` are read by one statement.
    pub fn load(
        db: &dyn Database,
        session_id: &Id,
        known: &[PathEnd],
        parents: impl Iterator<Item = i64>,
    ) -> Result<Self> {
        let mut ends = vec![PathEnd::NONE];
        ends.extend_from_slice(known);
        let is_known = |seq: &i64| ends.iter().any(|end| end.seq == *seq);
        let missing: Vec<i64> = parents.filter(|seq| !is_known(seq)).collect();
        if !missing.is_empty() {
            ends.extend(load_ends(db, session_id, &missing)?);
        }
        Ok(Self(ends))
    }

    pub fn find(&self, seq: i64) -> Option<PathEnd> {
        self.0.iter().rev().find(|end| end.seq == seq).copied()
    }

    /// The totals of the path to a new event. Later events may follow it.
    pub fn follow(&mut self, parent_seq: i64, seq: i64, own: OwnShare) -> PathTotals {
        let end = match self.find(parent_seq) {
            Some(parent) => parent.followed_by(seq, own),
            None => return PathTotals::default(),
        };
        self.0.push(end);
        end.totals
    }
}

static LOAD_ENDS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}
           FROM json_each(?2) AS wanted
          CROSS JOIN cf_agents_events AS e
             ON e.session_id = +?1
            AND e.seq = wanted.value",
        path_end!("e")
    )
});

fn load_ends(db: &dyn Database, session_id: &Id, seqs: &[i64]) -> Result<Vec<PathEnd>> {
    let list = SqlValue::Text(json::encode(&seqs)?);
    load(db, &LOAD_ENDS, &[session_id.as_str().into(), list])
}

/// Counts the events of the former run that follow an event as messages, because the event is no
/// longer in a run. Part of a transaction, after the event was changed.
pub fn begin_messages_below(db: &dyn Database, session_id: &Id, seq: i64) -> Result<()> {
    let sql = concat!(
        "UPDATE cf_agents_events AS e
            SET more_messages = more_messages + 1
          WHERE e.session_id = +?1
            AND e.seq IN (SELECT min(next.seq)
                            FROM cf_agents_events AS next
                           WHERE next.session_id = +?1
                             AND next.seq > +?2
                          UNION ALL
                          SELECT child.seq
                            FROM cf_agents_events AS child INDEXED BY cf_agents_events_by_parent
                           WHERE child.session_id = +?1
                             AND child.parent_seq = +?2
                             AND child.is_branch = 1)
            AND e.parent_seq = +?2
            AND e.splits_run = 0
            AND e.path_messages IS NOT NULL
            AND ",
        is_run_member!("e")
    );
    db.run(sql, &[session_id.as_str().into(), seq.into()])
}
