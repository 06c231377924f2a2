//! The change feed as a client reads it. Appends come from the log; all other changes
//! have rows (`changes.rs`).
//!
//! An append that joins a run changes the run's message. Such an update has no row.
//! The feed adds an update with the message's id before the last of the neighboring
//! appends that join the run. An append that begins a branch inside a run splits the run
//! into two messages. The feed adds an update of both before it, and none for joining: the
//! first of the two is the message that a late result joins. No two changes have one cursor.

use std::borrow::Cow;
use std::collections::HashMap;

use super::runs::{RunCache, RunPosition};
use crate::log::row::EventLink;
use crate::messages::tree::children::load_oldest_links;
use crate::session::changes::{
    ChangeType, FeedChange, find_lifetime, find_position, load_recorded,
};
use base::columns::load;
use base::database::Database;
use base::error::{Error, Result};
use base::ids::Id;
use base::json;
use base::numbers::CURSORS_A_SEQ;

/// About how many rows a page reads to find where runs begin. After that many rows,
/// the page ends early, and the next page continues.
const MAX_READ: usize = 10_000;

/// Up to `limit` changes after the cursor `since`, oldest first, as JSON.
pub fn load_page(db: &dyn Database, session_id: &Id, since: i64, limit: i64) -> Result<String> {
    let lifetime = find_lifetime(db, session_id)?
        .ok_or_else(|| Error::session_not_found(session_id.as_str()))?;
    // A copy from an earlier lifetime of the session is dropped. The page begins with a `clear`, at the
    // cursor before all others, and continues with the first change.
    let found = find_position(&lifetime, since);
    let position = found.unwrap_or(0);
    let (mut changes, complete_up_to) = load_appended(db, session_id, position, limit)?;
    let recorded = load_recorded(db, session_id, position, limit)?;
    changes.extend(
        recorded
            .into_iter()
            .take_while(|change| change.cursor <= complete_up_to),
    );
    if found.is_none() {
        changes.push(FeedChange {
            cursor: 0,
            kind: Cow::Borrowed(ChangeType::Clear.name()),
            id: None,
        });
    }
    changes.sort_by_key(|change| change.cursor);
    changes.truncate(usize::try_from(limit).unwrap_or(0));
    for change in &mut changes {
        change.cursor += lifetime.base;
    }
    let cursor = changes.last().map_or(since, |change| change.cursor);
    let changes = json::encode(&changes)?;
    Ok(format!(r#"{{"changes":{changes},"cursor":{cursor}}}"#))
}

/// The appends after `position`, the updates of the messages that they join, and the
/// cursor up to which these changes are complete.
fn load_appended(
    db: &dyn Database,
    session_id: &Id,
    position: i64,
    limit: i64,
) -> Result<(Vec<FeedChange>, i64)> {
    // Load one more append, to see whether it continues the run of the last append.
    let appends = load_appends(db, session_id, position, limit + 1)?;
    let shown = usize::try_from(limit).unwrap_or(0);
    let mut runs = RunCache::of(db, session_id);
    let mut families = HashMap::new();
    let mut changes = Vec::new();
    for (index, append) in appends.iter().enumerate().take(shown) {
        let cursor = append.seq * CURSORS_A_SEQ;
        let id = &append.id;
        let position_in_run = runs.position_of(append)?;
        let continues = appends.get(index + 1).is_some_and(|next| {
            next.is_run_member && !next.splits_run && next.parent_seq == append.seq
        });
        let updated = match (
            find_split(db, session_id, append, &mut families, &mut runs)?,
            position_in_run,
        ) {
            (Some([first, second]), _) => [Some(first), Some(second)],
            (None, RunPosition::Run(start)) if start.seq != append.seq && !continues => {
                [None, Some(start.id)]
            }
            (None, _) => [None, None],
        };
        let updates = updated.into_iter().zip([cursor - 2, cursor - 1]);
        changes.extend(
            updates
                .filter(|(_, cursor)| *cursor > position)
                .filter_map(|(id, cursor)| Some(feed_change("update", id?, cursor))),
        );
        changes.push(feed_change("append", id.clone(), cursor));
        if runs.read > MAX_READ {
            return Ok((changes, cursor));
        }
    }
    let up_to = if appends.len() > shown {
        changes.last().map_or(position, |change| change.cursor)
    } else {
        i64::MAX
    };
    Ok((changes, up_to))
}

/// The oldest children of an event. A page loads them once, so that many branches of one event cost
/// no more than as many branches of many.
#[derive(Default)]
struct OldestChildren {
    /// The two oldest.
    all: Vec<EventLink>,
    /// The two oldest that are members of runs, once they were needed.
    members: Option<Vec<EventLink>>,
}

/// The only one of these that is older than an event.
fn only_older<'f>(links: &'f [EventLink], append: &EventLink) -> Option<&'f EventLink> {
    let mut older = links.iter().filter(|link| link.seq < append.seq);
    match (older.next(), older.next()) {
        (Some(only), None) => Some(only),
        (None | Some(_), _) => None,
    }
}

/// The two messages into which one message may have been split when this event was appended. The
/// other follower may be in no run any more: it was updated since.
fn find_split(
    db: &dyn Database,
    session_id: &Id,
    append: &EventLink,
    families: &mut HashMap<i64, OldestChildren>,
    runs: &mut RunCache<'_>,
) -> Result<Option<[String; 2]>> {
    if !append.is_branch {
        return Ok(None);
    }
    let parent_seq = append.parent_seq;
    let family = families.entry(parent_seq).or_default();
    if family.all.is_empty() {
        family.all = load_oldest_links(db, session_id, parent_seq, false)?;
    }
    let are_several = family.all.iter().all(|link| link.seq < append.seq) && family.all.len() > 1;
    let other = if are_several && append.is_run_member {
        let members = match family.members.take() {
            Some(members) => members,
            None => load_oldest_links(db, session_id, parent_seq, true)?,
        };
        only_older(family.members.insert(members), append)
    } else {
        only_older(&family.all, append)
    };
    let Some(other) = other else {
        return Ok(None);
    };
    Ok(match runs.find(parent_seq)? {
        RunPosition::Run(start) => Some([start.id, other.id.clone()]),
        RunPosition::Single | RunPosition::BeyondMessage => None,
    })
}

fn feed_change(kind: &'static str, id: String, cursor: i64) -> FeedChange {
    FeedChange {
        cursor,
        kind: Cow::Borrowed(kind),
        id: Some(id),
    }
}

fn load_appends(
    db: &dyn Database,
    session_id: &Id,
    position: i64,
    limit: i64,
) -> Result<Vec<EventLink>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_events AS e
          WHERE e.session_id = +?1
            AND e.seq > +?2
          ORDER BY e.seq
          LIMIT ?3 + 0",
        EventLink::COLUMNS
    );
    let after_seq = position / CURSORS_A_SEQ;
    load(
        db,
        &sql,
        &[session_id.as_str().into(), after_seq.into(), limit.into()],
    )
}
