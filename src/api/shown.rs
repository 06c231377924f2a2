//! The messages that a client shows when it opens a session.

use crate::base::database::{Database, SqlText};
use crate::base::error::Result;
use crate::base::ids::Id;
use crate::log::sessions::session_exists;
use crate::messages::history::{DEFAULT_MAX_BYTES, WalkStart, load_page};
use crate::messages::tree::leaf::resolve_leaf;

/// The most messages that `get-messages` answers.
const MAX_SHOWN_MESSAGES: usize = 1000;

/// A session's newest messages as a JSON array, for a client that opens the session.
pub fn load_shown(db: &dyn Database, session_id: &Id) -> Result<SqlText> {
    let leaf = match session_exists(db, session_id)? {
        true => resolve_leaf(db, session_id, "leafId", None)?,
        false => None,
    };
    let Some(leaf) = leaf else {
        return Ok("[]".into());
    };
    let page = load_page(
        db,
        session_id,
        WalkStart::At(leaf),
        MAX_SHOWN_MESSAGES,
        DEFAULT_MAX_BYTES as usize,
    )?;
    let messages = page.into_list();
    #[cfg(test)]
    super::answers::hold_json("getMessages", &messages.0);
    Ok(messages)
}
