//! The messages that a client shows when it opens a session.

use crate::base::database::{Database, SqlText};
use crate::base::error::{Code, Result};
use crate::base::ids::Id;
use crate::messages::history::{DEFAULT_MAX_BYTES, load_newest};
use crate::messages::page::{PageAsk, PageForm};

/// The most messages that `get-messages` answers.
const MAX_SHOWN_MESSAGES: usize = 1000;

/// A session's newest messages as a JSON array, for a client that opens the session.
pub fn load_shown(db: &dyn Database, session_id: &Id) -> Result<SqlText> {
    let ask = PageAsk {
        limit: MAX_SHOWN_MESSAGES,
        max_bytes: DEFAULT_MAX_BYTES as usize,
        form: PageForm::List,
    };
    let page = match load_newest(db, session_id, ask) {
        Err(error) if error.code == Code::SessionNotFound => None,
        page => page?,
    };
    let Some(page) = page else {
        return Ok("[]".into());
    };
    let messages = page.into_json();
    #[cfg(test)]
    super::answers::hold_json("getMessages", &messages.copy());
    Ok(messages)
}
