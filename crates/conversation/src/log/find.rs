//! Finds rows by id. A minted id contains its row's number, so the primary key finds the row. The
//! id index contains only the other ids.
//!
//! CROSS JOIN forces SQLite to keep the order of a join: from the short list of ids to the log.
//! Without it, the planner may scan the log.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::totals::{PathEnd, path_end};
use base::action::StoredAction;
use base::columns::{find_value, load};
use base::database::{Database, SqlValue};
use base::error::Result;
use base::ids::Id;
use base::json;

/// The action of the event with this id; `None`: there is no such event.
pub fn find_action(db: &dyn Database, session_id: &Id, id: &Id) -> Result<Option<StoredAction>> {
    let Some(seq) = find_seqs(db, session_id, std::iter::once(id))?.remove(id.as_str()) else {
        return Ok(None);
    };
    find_value(
        db,
        "SELECT action
           FROM cf_agents_events
          WHERE session_id = ?1
            AND seq = ?2",
        &[session_id.as_str().into(), seq.into()],
    )
}

/// The `seq` of each of `ids` that the session has.
pub fn find_seqs<'a>(
    db: &dyn Database,
    session_id: &Id,
    ids: impl Iterator<Item = &'a Id>,
) -> Result<HashMap<String, i64>> {
    find_with(db, session_id, ids, |seqs| {
        lookup(
            db,
            "SELECT e.id, e.seq
               FROM json_each(?2) AS wanted
              CROSS JOIN cf_agents_events AS e
                 ON e.session_id = +?1
                AND e.seq = wanted.value",
            session_id,
            seqs,
        )
    })
}

static LOAD_ENDS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {}, e.id
           FROM json_each(?2) AS wanted
          CROSS JOIN cf_agents_events AS e
             ON e.session_id = +?1
            AND e.seq = wanted.value",
        path_end!("e")
    )
});

/// The `seq` of each of `ids` that the session has, and the ends of paths at those of them whose
/// rows were read anyway.
pub fn find_seqs_and_ends<'a>(
    db: &dyn Database,
    session_id: &Id,
    ids: impl Iterator<Item = &'a Id>,
) -> Result<(HashMap<String, i64>, Vec<PathEnd>)> {
    let mut ends = Vec::new();
    let found = find_with(db, session_id, ids, |seqs| {
        let list = SqlValue::Text(json::encode(seqs)?);
        let mut found = Vec::new();
        let rows: Vec<(PathEnd, String)> =
            load(db, &LOAD_ENDS, &[session_id.as_str().into(), list])?;
        for (end, id) in rows {
            found.push((id, end.seq));
            ends.push(end);
        }
        Ok(found)
    })?;
    Ok((found, ends))
}

/// `find_minted` finds the ids of the rows with these numbers.
fn find_with<'a>(
    db: &dyn Database,
    session_id: &Id,
    ids: impl Iterator<Item = &'a Id>,
    find_minted: impl FnOnce(&[i64]) -> Result<Vec<(String, i64)>>,
) -> Result<HashMap<String, i64>> {
    let (minted, others): (Vec<&Id>, Vec<&Id>) = ids.partition(|id| id.find_seq().is_some());
    let mut found = HashMap::new();
    if !minted.is_empty() {
        let seqs: Vec<i64> = minted.iter().filter_map(|id| id.find_seq()).collect();
        found.extend(find_minted(&seqs)?);
    }
    // A caller may send an id that only looks minted.
    let rest: Vec<&str> = minted
        .iter()
        .filter(|id| !found.contains_key(id.as_str()))
        .chain(&others)
        .map(|id| id.as_str())
        .collect();
    if !rest.is_empty() {
        found.extend(lookup(
            db,
            "SELECT e.id, e.seq
               FROM json_each(?2) AS wanted
              CROSS JOIN cf_agents_events AS e
                 ON e.session_id = +?1
                AND e.id = wanted.value
                AND e.id_indexed = 1",
            session_id,
            &rest,
        )?);
    }
    // The row with a minted id's number may have another id.
    let wanted: std::collections::HashSet<&str> =
        minted.iter().chain(&others).map(|id| id.as_str()).collect();
    found.retain(|id, _| wanted.contains(id.as_str()));
    Ok(found)
}

fn lookup(
    db: &dyn Database,
    sql: &str,
    session_id: &Id,
    wanted: &(impl serde::Serialize + ?Sized),
) -> Result<Vec<(String, i64)>> {
    let wanted = json::encode(wanted)?;
    load(
        db,
        sql,
        &[session_id.as_str().into(), SqlValue::Text(wanted)],
    )
}
