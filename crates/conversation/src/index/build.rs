//! Builds the search index backward from the newest event, so that searches find the newest events
//! first. Each batch is one short transaction, which also stores where the next batch starts
//! (`progress.rs`).

use crate::index::IndexWriter;
use crate::index::progress::{
    IndexCursor, NOTHING, SEARCHED_SESSIONS, StoredProgress, WHOLE, find_number, find_own,
    find_state, forget, set_state,
};
use crate::index::read::{find_event, load_newest_below};
use base::columns::{find, find_value};
use base::database::{Database, atomically};
use base::error::Result;
use store::schema::blank::is_blank;

/// The most that a batch indexes: some tens of milliseconds of work. Only the last event
/// may exceed the bytes. Each session that a batch visits counts as an event.
const BATCH_EVENTS: i64 = 1_000;
const BATCH_BYTES: usize = 1 << 20;

/// How many batches a search waits for: 8,000 events, or 8 MiB.
const BATCHES_PER_SEARCH: usize = 8;

/// How many batches run in a row after a search, interleaved with other requests. A pause
/// follows, after which the platform grants a new CPU allowance.
pub const BATCHES_PER_WAKE: usize = 50;

/// The most events that one statement reads, and the most bytes of an event that is read
/// together with others: 1 MiB in total.
const PAGE: i64 = 64;
const INLINE_BYTES: i64 = 16 << 10;

/// How many slices of 1 MB are read per body: as much as is indexed of an event.
const MAX_SLICES: i64 = 9;

/// The sessions that the searching caller may see.
#[derive(Clone, Copy)]
pub enum BuildScope<'a> {
    /// The caller may see every session. `Some` names the session that is searched.
    Anyone(Option<&'a str>),
    /// The caller may see only this session, so no other session is indexed.
    Only(&'a str),
}

/// What remains to be indexed when a search starts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BuildProgress {
    /// Some events that the search covers are not indexed yet.
    pub is_pending: bool,
    /// Some events are not indexed yet, in the searched session or in others.
    /// [`build_batch`] continues with them.
    pub continues: bool,
}

/// Builds a part of the index before a search reads it.
pub fn advance(db: &dyn Database, scope: BuildScope<'_>) -> Result<BuildProgress> {
    let (session_id, is_narrowed) = match scope {
        BuildScope::Anyone(session_id) => (session_id, false),
        BuildScope::Only(session_id) => (Some(session_id), true),
    };
    // Recording that there is nothing to index would create the tables.
    if is_blank(db)? {
        return Ok(BuildProgress::default());
    }
    let Some(mut state) = begin(db, scope)? else {
        return Ok(BuildProgress::default());
    };
    let mut left = BATCHES_PER_SEARCH;
    let mut is_pending = false;
    if let Some(session_id) = session_id {
        is_pending = true;
        while left > 0 && is_pending {
            is_pending = build_batch_of(db, session_id)?;
            left -= 1;
        }
    }
    if !is_narrowed {
        while left > 0 && state != WHOLE {
            state = build_batch_of_all(db)?;
            left -= 1;
        }
        is_pending = match session_id {
            Some(_) => is_pending,
            None => state != WHOLE,
        };
    }
    Ok(BuildProgress {
        is_pending,
        continues: is_pending || (!is_narrowed && state != WHOLE),
    })
}

/// Refills the index after it was emptied. Must run in the transaction that emptied it.
pub fn refill(db: &dyn Database) -> Result<()> {
    db.run("DELETE FROM cf_agents_search_parts", &[])?;
    match find_state(db)? {
        None => Ok(()),
        // Searches in these sessions rebuild it.
        Some(StoredProgress::OfSessions { .. }) => db.run(
            "UPDATE cf_agents_search_progress SET indexed_from = ?1",
            &[NOTHING.into()],
        ),
        Some(StoredProgress::Whole(_) | StoredProgress::Building(_)) => {
            db.run("DELETE FROM cf_agents_search_progress", &[])?;
            let sql = "SELECT coalesce(max(number), 0) FROM cf_agents_sessions";
            let number = find_value(db, sql, &[])?.unwrap_or(0);
            let from = NOTHING;
            set_state(db, StoredProgress::Building(IndexCursor { number, from }))?;
            for _ in 0..BATCHES_PER_SEARCH {
                if build_batch_of_all(db)? == WHOLE {
                    break;
                }
            }
            Ok(())
        }
    }
}

/// Whether [`build_batch`] has work.
pub fn is_unfinished(db: &dyn Database) -> Result<bool> {
    Ok(match find_state(db)? {
        None | Some(StoredProgress::Whole(_)) => false,
        Some(StoredProgress::Building(_)) => true,
        Some(StoredProgress::OfSessions { .. }) => find_unfinished(db, 0)?.is_some(),
    })
}

/// Builds the next batch that searches requested. Returns whether more remains.
pub fn build_batch(db: &dyn Database) -> Result<bool> {
    match find_state(db)? {
        None | Some(StoredProgress::Whole(_)) => Ok(false),
        Some(StoredProgress::Building(_)) => Ok(build_batch_of_all(db)? != WHOLE),
        Some(StoredProgress::OfSessions { .. }) => match find_unfinished(db, 0)? {
            Some(session) => {
                build_batch_of(db, &session.id)?;
                Ok(find_unfinished(db, 0)?.is_some())
            }
            None => Ok(false),
        },
    }
}

/// The state to continue from. `None`: there is nothing to do.
fn begin(db: &dyn Database, scope: BuildScope<'_>) -> Result<Option<StoredProgress>> {
    let state = match (find_state(db)?, scope) {
        (Some(StoredProgress::Whole(_)), _) => return Ok(None),
        // The first search in a session writes the state, even if a search in another
        // session already did: the rows that it writes then reveal nothing about other
        // sessions.
        (None | Some(StoredProgress::OfSessions { .. }), BuildScope::Only(session_id)) => {
            if is_requested(db, session_id)? {
                return Ok(Some(SEARCHED_SESSIONS));
            }
            SEARCHED_SESSIONS
        }
        (None | Some(StoredProgress::OfSessions { .. }), BuildScope::Anyone(_)) => {
            let sql = "SELECT coalesce(max(number), 0) FROM cf_agents_sessions";
            let newest = find_value(db, sql, &[])?;
            StoredProgress::Building(IndexCursor {
                number: newest.unwrap_or(0),
                from: NOTHING,
            })
        }
        (Some(state), _) => return Ok(Some(state)),
    };
    set_state(db, state)?;
    Ok(Some(state))
}

/// Whether a search has requested this session.
fn is_requested(db: &dyn Database, session_id: &str) -> Result<bool> {
    match find_number(db, session_id)? {
        Some(number) => Ok(find_own(db, number)?.is_some()),
        None => Ok(false),
    }
}

/// A session that is being indexed.
struct SessionBuild {
    number: i64,
    id: String,
    /// The session's events from this `seq` on are indexed.
    from: i64,
}

/// Builds one batch of one session. Returns whether more of the session remains.
fn build_batch_of(db: &dyn Database, session_id: &str) -> Result<bool> {
    atomically(db, || {
        let Some(state) = find_state(db)? else {
            return Ok(false);
        };
        let Some(number) = find_number(db, session_id)? else {
            return Ok(false);
        };
        let from = state.find_from(db, number)?;
        if from == 0 {
            return Ok(false);
        }
        let from = IndexBatch::new(db).index(session_id, number, from)?;
        state.keep(db, number, from)?;
        Ok(from > 0)
    })
}

/// Builds one batch across all sessions, newest first.
fn build_batch_of_all(db: &dyn Database) -> Result<StoredProgress> {
    atomically(db, || {
        let mut cursor = match find_state(db)? {
            Some(StoredProgress::Building(cursor)) => cursor,
            Some(state) => return Ok(state),
            None => return Ok(WHOLE),
        };
        let mut batch = IndexBatch::new(db);
        while batch.has_capacity() {
            // A session above the cursor is new and was too long for one batch.
            if let Some(session) = find_unfinished(db, cursor.number)? {
                let from = batch.index(&session.id, session.number, session.from)?;
                StoredProgress::Building(cursor).keep(db, session.number, from)?;
                continue;
            }
            let Some(session) = find_next(db, cursor)? else {
                set_state(db, WHOLE)?;
                return Ok(WHOLE);
            };
            cursor.number = session.number;
            cursor.from = batch.index(&session.id, session.number, session.from)?;
            forget(db, session.number)?;
            if cursor.from == 0 {
                cursor = IndexCursor {
                    number: session.number - 1,
                    from: NOTHING,
                };
            }
        }
        let state = StoredProgress::Building(cursor);
        set_state(db, state)?;
        Ok(state)
    })
}

/// The newest incomplete session above `number` that has its own progress row.
fn find_unfinished(db: &dyn Database, number: i64) -> Result<Option<SessionBuild>> {
    let sql = "SELECT s.number, s.id, p.indexed_from
                 FROM cf_agents_search_progress AS p
                CROSS JOIN cf_agents_sessions AS s
                   ON s.number = p.number
                WHERE p.number > ?1
                  AND p.indexed_from > 0
                ORDER BY p.number DESC
                LIMIT 1";
    Ok(
        find(db, sql, &[number.into()])?.map(|(number, id, from)| SessionBuild {
            number,
            id,
            from,
        }),
    )
}

/// The session at the cursor, or the next one below.
fn find_next(db: &dyn Database, cursor: IndexCursor) -> Result<Option<SessionBuild>> {
    let sql = "SELECT number, id
                 FROM cf_agents_sessions
                WHERE number <= ?1
                ORDER BY number DESC
                LIMIT 1";
    let Some((number, id)) = find(db, sql, &[cursor.number.into()])? else {
        return Ok(None);
    };
    let own = find_own(db, number)?;
    Ok(Some(SessionBuild {
        number,
        id,
        from: own.unwrap_or_else(|| StoredProgress::Building(cursor).default_from(number)),
    }))
}

/// The events that one transaction may still index.
struct IndexBatch<'a> {
    db: &'a dyn Database,
    events_left: i64,
    bytes_left: usize,
}

impl<'a> IndexBatch<'a> {
    fn new(db: &'a dyn Database) -> Self {
        Self {
            db,
            events_left: BATCH_EVENTS,
            bytes_left: BATCH_BYTES,
        }
    }

    fn has_capacity(&self) -> bool {
        self.events_left > 0 && self.bytes_left > 0
    }

    /// Indexes as many of the session's events below `from` as fit. Returns the `seq` from
    /// which the session is then indexed.
    fn index(&mut self, session_id: &str, number: i64, mut from: i64) -> Result<i64> {
        self.events_left -= 1;
        let mut writer = IndexWriter::new(self.db);
        let mut is_whole = from == 0;
        while self.has_capacity() && !is_whole {
            let events = load_newest_below(self.db, session_id, from, PAGE, INLINE_BYTES)?;
            is_whole = (events.len() as i64) < PAGE;
            for (seq, event) in events {
                if !self.has_capacity() {
                    is_whole = false;
                    break;
                }
                let event = match event {
                    None => find_event(self.db, session_id, seq, MAX_SLICES)?,
                    event => event,
                };
                if let Some(event) = event {
                    writer.add(number, seq, &event.as_text())?;
                    self.bytes_left = self.bytes_left.saturating_sub(event.bytes());
                }
                self.events_left -= 1;
                from = seq;
            }
        }
        writer.flush()?;
        Ok(if is_whole { 0 } else { from })
    }
}

/// Indexes one batch of a new session's events, because a copied or imported session starts
/// with events. Later searches index the rest. Must run in the transaction that creates the
/// session.
pub fn add_session(db: &dyn Database, session_id: &str) -> Result<()> {
    let state = match find_state(db)? {
        None | Some(StoredProgress::OfSessions { .. }) => return Ok(()),
        Some(state) => state,
    };
    let Some(number) = find_number(db, session_id)? else {
        return Ok(());
    };
    let from = IndexBatch::new(db).index(session_id, number, NOTHING)?;
    state.keep(db, number, from)
}
