//! Finds the message of an event without reading any content: the run of assistant and tool
//! events around the event, identified by the run's first event.

use std::collections::HashMap;

use super::view::MAX_RUN_EVENTS;
use crate::log::row::EventLink;
use crate::messages::tree::path::{WalkStep, walk_path};
use base::database::Database;
use base::error::Result;
use base::ids::Id;

/// An event's position relative to runs.
#[derive(Clone, Debug, PartialEq)]
pub enum RunPosition {
    /// The event is a message by itself.
    Single,
    /// The event is in the run that starts with `RunStart`, whose id is the message's id.
    Run(RunStart),
    /// The event is further from its run's start than the longest message.
    BeyondMessage,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RunStart {
    pub seq: i64,
    pub id: String,
    /// The event's position in the run, from 1.
    depth: usize,
}

/// A cache of positions in a session, so that no run is walked twice.
pub struct RunCache<'a> {
    db: &'a dyn Database,
    session_id: &'a Id,
    known: HashMap<i64, RunPosition>,
    /// How many rows the cache has read.
    pub read: usize,
}

impl<'a> RunCache<'a> {
    pub fn of(db: &'a dyn Database, session_id: &'a Id) -> Self {
        Self {
            db,
            session_id,
            known: HashMap::new(),
            read: 0,
        }
    }

    /// The position of an event whose link is already loaded.
    pub fn position_of(&mut self, event: &EventLink) -> Result<RunPosition> {
        let position = match (event.is_run_member, event.splits_run) {
            (false, _) => RunPosition::Single,
            (true, true) => RunPosition::Single.below(event.seq, &event.id),
            (true, false) => self.find(event.parent_seq)?.below(event.seq, &event.id),
        };
        self.known.insert(event.seq, position.clone());
        Ok(position)
    }

    /// The position of the event at `seq`. `seq` 0 stands for the parent of a root.
    pub fn find(&mut self, seq: i64) -> Result<RunPosition> {
        if seq == 0 {
            return Ok(RunPosition::Single);
        }
        if let Some(position) = self.known.get(&seq) {
            return Ok(position.clone());
        }
        // The events from `seq` up to the first known position, newest first.
        let mut walked: Vec<(i64, String)> = Vec::new();
        let mut above = RunPosition::Single;
        let columns = EventLink::COLUMNS;
        let known = &self.known;
        walk_path(self.db, self.session_id, seq, columns, 2, &mut |_, row| {
            let event: EventLink = row.read()?;
            if let Some(position) = known.get(&event.seq) {
                above = position.clone();
                return Ok(WalkStep::Stop);
            }
            if !event.is_run_member {
                return Ok(WalkStep::Stop);
            }
            if walked.len() >= MAX_RUN_EVENTS {
                above = RunPosition::BeyondMessage;
                return Ok(WalkStep::Stop);
            }
            walked.push((event.seq, event.id));
            Ok(if event.splits_run {
                WalkStep::Stop
            } else {
                WalkStep::On
            })
        })?;
        self.read += walked.len() + 1;
        if walked.is_empty() {
            self.known.insert(seq, above.clone());
            return Ok(above);
        }
        for (seq, id) in walked.into_iter().rev() {
            above = above.below(seq, &id);
            self.known.insert(seq, above.clone());
        }
        Ok(above)
    }
}

impl RunPosition {
    /// The position of a run member whose parent has the position `self`.
    fn below(self, seq: i64, id: &str) -> Self {
        match self {
            RunPosition::Single => RunPosition::Run(RunStart {
                seq,
                id: id.to_owned(),
                depth: 1,
            }),
            RunPosition::Run(start) if start.depth < MAX_RUN_EVENTS => RunPosition::Run(RunStart {
                depth: start.depth + 1,
                ..start
            }),
            RunPosition::Run(_) | RunPosition::BeyondMessage => RunPosition::BeyondMessage,
        }
    }
}
