//! Finds sessions by their numbers, by their positions in the order of activity, and by the prefix
//! of an id.

use super::sessions::ACTIVE_AT;
use crate::session::activity::SessionPosition;
use base::columns::{FromRow, find, find_value, load, load_values};
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::json;

/// Up to `most` sessions whose ids begin with this one.
pub fn load_namesakes(db: &dyn Database, beginning: &Id, most: i64) -> Result<Vec<Id>> {
    let sql = "SELECT id
                 FROM cf_agents_sessions
                WHERE id >= ?1
                  AND id < ?1 || char(1114111)
                ORDER BY id
                LIMIT ?2";
    let ids: Vec<String> = load_values(db, sql, &[beginning.as_str().into(), most.into()])?;
    Ok(ids
        .into_iter()
        .filter_map(|id| Id::parse(id).ok())
        .collect())
}

/// The sessions at these positions, in the same order: when each was written to last, its number
/// and its id.
pub fn load_at(
    db: &dyn Database,
    positions: &[SessionPosition],
) -> Result<Vec<(i64, i64, String)>> {
    let sql = "SELECT wanted.value ->> 0, s.number, s.id
                 FROM json_each(?1) AS wanted
                CROSS JOIN cf_agents_sessions AS s
                   ON s.number = wanted.value ->> 1
                ORDER BY wanted.key";
    let positions = positions
        .iter()
        .map(|position| [position.active_at, position.number]);
    let positions: Vec<[i64; 2]> = positions.collect();
    load(db, sql, &[json::encode(&positions)?.into()])
}

/// The id of the session with this number.
pub fn find_id_of(db: &dyn Database, number: i64) -> Result<Option<Id>> {
    let sql = "SELECT id FROM cf_agents_sessions WHERE number = ?1";
    let id: Option<String> = find_value(db, sql, &[number.into()])?;
    Ok(id.and_then(|id| Id::parse(id).ok()))
}

/// Reads columns of the session `s` with this number.
pub fn find_by_number<T>(db: &dyn Database, columns: &str, number: i64) -> Result<Option<T>>
where
    T: for<'r> FromRow<'r>,
{
    let sql = format!(
        "SELECT {columns}
           FROM cf_agents_sessions AS s
          WHERE s.number = ?1"
    );
    find(db, &sql, &[number.into()])
}

/// The number of the next session after this number. If it must have retention rules of its own,
/// the index finds it, and no other row is read.
pub fn find_next(db: &dyn Database, after: i64, has_rules: bool) -> Result<Option<i64>> {
    let sql = if has_rules {
        "SELECT number
           FROM cf_agents_sessions INDEXED BY cf_agents_sessions_by_retention
          WHERE retention IS NOT NULL
            AND number > +?1
          ORDER BY number
          LIMIT 1"
    } else {
        "SELECT number
           FROM cf_agents_sessions
          WHERE number > +?1
          ORDER BY number
          LIMIT 1"
    };
    find_value(db, sql, &[after.into()])
}

/// When the session with this number was last written to; 0: there is no such session.
pub fn find_active_at(db: &dyn Database, number: i64) -> Result<i64> {
    let sql = format!("SELECT {ACTIVE_AT} FROM cf_agents_sessions AS s WHERE s.number = ?1");
    Ok(find_value(db, &sql, &[number.into()])?.unwrap_or(0))
}

/// Whether a session has an id from `from` on and before `to`.
pub fn has_between(db: &dyn Database, from: &str, to: &str) -> Result<bool> {
    let sql = "SELECT 1
                 FROM cf_agents_sessions
                WHERE id >= ?1
                  AND id < ?2
                LIMIT 1";
    let found: Option<i64> = find_value(db, sql, &[from.into(), to.into()])?;
    Ok(found.is_some())
}
