//! Stores a turn in its session's row: the `state` of `conversation/session/last_turns.rs`.

use crate::turn::Turn;
use base::database::Database;
use base::error::{Error, Result};
use base::ids::Id;
use base::json;
use conversation::session::last_turns::{self, NewTurn, find_open_turn};
use conversation::session::open_turns;
pub use conversation::session::open_turns::{count_recovery, load_interrupted_sessions};

/// The most interrupted turns that are recovered at the same time. Each is loaded
/// completely and calls its model immediately; the others follow when these end.
pub const MAX_RESUMED: usize = 4;

/// A turn is stored as one value, and SQLite limits a value to 2 MB here.
const MAX_STATE_BYTES: usize = 1_900_000;

/// Writes a starting turn. `answer_seq` is the `seq` of the session's next event. Must run
/// in the transaction that writes the user's message.
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

/// Stores the turn's current state, if it is still its session's turn.
pub fn save_turn(db: &dyn Database, turn: &mut Turn) -> Result<()> {
    let state = render(turn)?;
    open_turns::write_state(db, &turn.session_id, &turn.id, &state)
}

fn render(turn: &mut Turn) -> Result<String> {
    let json = json::encode(turn)?;
    if json.len() > MAX_STATE_BYTES {
        let what = "The stored state of a running turn";
        return Err(Error::payload_too_large(what, MAX_STATE_BYTES, json.len()));
    }
    turn.stored_bytes = json.len();
    Ok(json)
}

/// Whether the session has a running or an interrupted turn.
pub fn has_turn(db: &dyn Database, session_id: &Id) -> Result<bool> {
    Ok(find_open_turn(db, session_id)?.is_some())
}

pub fn find_turn(db: &dyn Database, session_id: &Id) -> Result<Option<Turn>> {
    let Some(state) = open_turns::find_state(db, session_id)? else {
        return Ok(None);
    };
    let mut turn: Turn =
        json::decode(&state).map_err(|_| Error::corrupt_row(session_id.as_str(), "turn"))?;
    turn.stored_bytes = state.len();
    Ok(Some(turn))
}
