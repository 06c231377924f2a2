//! Which message an event belongs to, without reading what either says: the run
//! of assistant and tool events that it is in, by the run's first event.

use std::collections::HashMap;

use super::view::MAX_RUN_EVENTS;
use crate::base::database::Database;
use crate::base::error::Result;
use crate::base::ids::Id;
use crate::log::row::EventLink;
use crate::messages::tree::path::{WalkStep, walk_path};

/// Where an event stands among runs.
#[derive(Clone, Debug, PartialEq)]
pub enum RunPosition {
    /// It is a message by itself.
    Alone,
    /// In the run that begins with this event, which the message's id is of.
    Run(RunStart),
    /// Further from its run's beginning than a message reaches.
    BeyondItsMessage,
}

#[derive(Clone, Debug, PartialEq)]
pub struct RunStart {
    pub seq: i64,
    pub id: String,
    /// The event's place in the run, from 1.
    depth: usize,
}

/// What was found out of a session's runs so far, so that none is walked twice.
pub struct RunCache<'a> {
    db: &'a dyn Database,
    session_id: &'a Id,
    known: HashMap<i64, RunPosition>,
    /// Rows that were read.
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

    /// The place of an event that is read already; `parent_seq` 0: it is a root.
    pub fn place(
        &mut self,
        seq: i64,
        id: &str,
        parent_seq: i64,
        is_run_member: bool,
    ) -> Result<RunPosition> {
        let place = match is_run_member {
            false => RunPosition::Alone,
            true => self.find(parent_seq)?.below(seq, id),
        };
        self.known.insert(seq, place.clone());
        Ok(place)
    }

    /// The place of the event at `seq`; 0 stands for what is above a root.
    pub fn find(&mut self, seq: i64) -> Result<RunPosition> {
        if seq == 0 {
            return Ok(RunPosition::Alone);
        }
        if let Some(place) = self.known.get(&seq) {
            return Ok(place.clone());
        }
        // Up to the first event whose place is known, newest first.
        let mut walked: Vec<(i64, String)> = Vec::new();
        let mut above = RunPosition::Alone;
        let columns = EventLink::columns();
        let known = &self.known;
        walk_path(self.db, self.session_id, seq, &columns, 2, &mut |_, row| {
            let event: EventLink = row.read()?;
            if let Some(place) = known.get(&event.seq) {
                above = place.clone();
                return Ok(WalkStep::Stop);
            }
            if !event.is_run_member {
                return Ok(WalkStep::Stop);
            }
            if walked.len() >= MAX_RUN_EVENTS {
                above = RunPosition::BeyondItsMessage;
                return Ok(WalkStep::Stop);
            }
            walked.push((event.seq, event.id));
            Ok(WalkStep::On)
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
    /// The place of a run's event right below one of this place.
    fn below(self, seq: i64, id: &str) -> Self {
        match self {
            RunPosition::Alone => RunPosition::Run(RunStart {
                seq,
                id: id.to_owned(),
                depth: 1,
            }),
            RunPosition::Run(start) if start.depth < MAX_RUN_EVENTS => RunPosition::Run(RunStart {
                depth: start.depth + 1,
                ..start
            }),
            RunPosition::Run(_) | RunPosition::BeyondItsMessage => RunPosition::BeyondItsMessage,
        }
    }
}
