//! A turn in its session's row: the `state` that `store/last_turns.rs` keeps.

use crate::turn::Turn;
use base::columns::{find_value, load_values};
use base::database::Database;
use base::error::{Error, Result};
use base::ids::Id;
use base::json;
use store::last_turns::{self, IS_OPEN, NewTurn, find_open_turn};

/// The number of turns that were cut off and are recovered at the same time. Each is read
/// whole and calls its model at once; the others follow as these end.
pub const MAX_TAKEN_UP: usize = 4;

/// A turn is stored as one value, and SQLite limits a value to 2 MB here.
const MAX_STATE_BYTES: usize = 1_900_000;

/// Writes a turn that begins. `answer_seq` is the `seq` of the session's next event. Part
/// of the transaction that writes the user's message.
pub fn insert_turn(db: &dyn Database, turn: &mut Turn, answer_seq: i64) -> Result<()> {
    let (session_id, turn_id) = (turn.session_id.clone(), turn.id.clone());
    let new = NewTurn {
        session_id: &session_id,
        turn_id: &turn_id,
        answer_seq,
    };
    last_turns::begin(db, new, |before| {
        turn.record.before = before;
        render(turn)
    })
}

/// Writes the turn as it stands, if it still is its session's turn.
pub fn save_turn(db: &dyn Database, turn: &Turn) -> Result<()> {
    let sql = format!(
        "UPDATE cf_agents_last_turns AS t
            SET state = ?3
          WHERE t.session_id = ?1
            AND t.turn_id = ?2
            AND {IS_OPEN}"
    );
    let params = [
        turn.session_id.as_str().into(),
        turn.id.as_str().into(),
        render(turn)?.into(),
    ];
    db.run(&sql, &params)
}

/// Bytes that a turn takes when it is stored.
pub fn state_bytes(turn: &Turn) -> usize {
    json::encode(turn).map_or(0, |json| json.len())
}

fn render(turn: &Turn) -> Result<String> {
    let json = json::encode(turn)?;
    if json.len() > MAX_STATE_BYTES {
        let what = "The stored state of a running turn";
        return Err(Error::payload_too_large(what, MAX_STATE_BYTES, json.len()));
    }
    Ok(json)
}

/// Whether the session has a turn: a running one, or one that was cut off.
pub fn has_turn(db: &dyn Database, session_id: &Id) -> Result<bool> {
    Ok(find_open_turn(db, session_id)?.is_some())
}

/// Counts a recovery of the session's turn and returns the new count. `None`: the
/// session has no turn.
pub fn count_recovery(db: &dyn Database, session_id: &Id) -> Result<Option<i64>> {
    let sql = format!(
        "UPDATE cf_agents_last_turns AS t
            SET recoveries = recoveries + 1
          WHERE t.session_id = ?1
            AND {IS_OPEN}
      RETURNING recoveries"
    );
    find_value(db, &sql, &[session_id.as_str().into()])
}

pub fn find_turn(db: &dyn Database, session_id: &Id) -> Result<Option<Turn>> {
    let sql = format!(
        "SELECT t.state
           FROM cf_agents_last_turns AS t
          WHERE t.session_id = ?1
            AND {IS_OPEN}"
    );
    find_value::<String>(db, &sql, &[session_id.as_str().into()])?
        .map(|state| {
            json::decode(&state).map_err(|_| Error::corrupt_row(session_id.as_str(), "turn"))
        })
        .transpose()
}

/// The sessions whose turn was cut off, those with the fewest recoveries first.
/// `running`: the sessions whose turn runs.
pub fn load_sessions_cut_off(
    db: &dyn Database,
    running: &[String],
    limit: usize,
) -> Result<Vec<Id>> {
    let running = json::encode(&running)?;
    let sql = format!(
        "SELECT t.session_id
           FROM cf_agents_last_turns AS t
          WHERE t.session_id NOT IN (SELECT value FROM json_each(?1))
            AND {IS_OPEN}
          ORDER BY t.recoveries, t.session_id
          LIMIT ?2"
    );
    let params = [running.into(), (limit as i64).into()];
    let ids: Vec<String> = load_values(db, &sql, &params)?;
    ids.into_iter()
        .map(|id| Id::parse(id).map_err(Error::storage))
        .collect()
}
