//! Finds sessions by their places in the order of activity, and by the beginning of an id.

use base::columns::{find_value, load, load_values};
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::json;
use store::activity::SessionPlace;

/// Up to `most` sessions whose ids begin with this.
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

/// The sessions at these places, in the same order: when each was written to last, its number
/// and its id.
pub fn load_at(db: &dyn Database, places: &[SessionPlace]) -> Result<Vec<(i64, i64, String)>> {
    let sql = "SELECT wanted.value ->> 0, s.number, s.id
                 FROM json_each(?1) AS wanted
                CROSS JOIN cf_agents_sessions AS s
                   ON s.number = wanted.value ->> 1
                ORDER BY wanted.key";
    let places = places.iter().map(|place| [place.active_at, place.number]);
    let places: Vec<[i64; 2]> = places.collect();
    load(db, sql, &[json::encode(&places)?.into()])
}

/// The id of the session with this number.
pub fn find_id_of(db: &dyn Database, number: i64) -> Result<Option<Id>> {
    let sql = "SELECT id FROM cf_agents_sessions WHERE number = ?1";
    let id: Option<String> = find_value(db, sql, &[number.into()])?;
    Ok(id.and_then(|id| Id::parse(id).ok()))
}
