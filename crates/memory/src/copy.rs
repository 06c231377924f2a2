//! Copies a session's memory for a fork of the session, so that the conversation
//! continues with its knowledge. Part of the fork's transaction.

use super::counts::count_copies;
use super::entry_rows;
use super::tables;
use base::database::Database;
use base::error::Result;
use base::ids::Id;

pub fn copy_session(db: &dyn Database, from: &Id, to: &Id) -> Result<()> {
    tables::copy_session(db, from, to)?;
    count_copies(db, to)?;
    entry_rows::copy_session(db, from.as_str(), to.as_str())
}
