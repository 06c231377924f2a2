//! Rows of a session that isn't there yet. An import writes them piece by piece
//! under the session's id, and the session's own row last: until then no read
//! sees them, since every read begins with that row. A note says whose they are,
//! so that what a dead import left is found and thrown away.

use crate::base::columns::load_values;
use crate::base::database::{Database, SqlValue, find_row};
use crate::base::error::{Code, Error, Result};
use crate::base::host::Host;
use crate::base::ids::Id;
use crate::store::tables;

/// An import that has written nothing for this long is dead: a client that
/// still sends is heard of within seconds.
const DEAD_AFTER_MS: i64 = 15 * 60 * 1000;

/// Dead imports that one that begins sweeps away, so that its start is bounded.
const SWEPT_AT_ONCE: i64 = 4;

/// Notes an import into `session_id`. What an earlier one left there is thrown
/// away, and so are some that died elsewhere. Part of a transaction.
pub fn begin(db: &dyn Database, host: &dyn Host, session_id: &Id, token: &str) -> Result<()> {
    forget(db, session_id)?;
    let now_ms = host.now_ms();
    let dead: Vec<String> = load_values(
        db,
        "SELECT session_id
           FROM cf_agents_imports
          WHERE touched_at < ?1
          ORDER BY touched_at
          LIMIT ?2",
        &[(now_ms - DEAD_AFTER_MS).into(), SWEPT_AT_ONCE.into()],
    )?;
    for session_id in &dead {
        delete_rows(db, session_id)?;
    }
    db.run(
        "INSERT INTO cf_agents_imports (session_id, token, touched_at)
         VALUES (?1, ?2, ?3)",
        &[session_id.as_str().into(), token.into(), now_ms.into()],
    )
}

/// Makes sure that these rows are still this import's to write. Part of the
/// transaction that writes more of them.
pub fn hold(db: &dyn Database, host: &dyn Host, session_id: &Id, token: &str) -> Result<()> {
    let params: [SqlValue; 3] = [
        session_id.as_str().into(),
        token.into(),
        host.now_ms().into(),
    ];
    let held = find_row(
        db,
        "UPDATE cf_agents_imports
            SET touched_at = ?3
          WHERE session_id = ?1
            AND token = ?2
      RETURNING 1",
        &params,
    )?;
    match held {
        Some(_) => Ok(()),
        None => Err(Error::new(
            Code::AlreadyExists,
            "Somebody else has begun to import or to create this session, and this import was given up. Look at what is there now, and import again if it should be replaced.",
        )
        .with("id", session_id.as_str())),
    }
}

/// Ends an import whose session has its row now. Part of the transaction that
/// writes it.
pub fn end(db: &dyn Database, session_id: &Id) -> Result<()> {
    db.run(
        "DELETE FROM cf_agents_imports WHERE session_id = ?1",
        &[session_id.as_str().into()],
    )
}

/// Throws away what an import into `session_id` has written and not ended. Part
/// of a transaction; for a session that has no row.
pub fn forget(db: &dyn Database, session_id: &Id) -> Result<()> {
    let sql = "SELECT 1 FROM cf_agents_imports WHERE session_id = ?1";
    match find_row(db, sql, &[session_id.as_str().into()])? {
        Some(_) => delete_rows(db, session_id.as_str()),
        None => Ok(()),
    }
}

/// The same, if it is still the import of this token that writes there.
pub fn abandon(db: &dyn Database, session_id: &Id, token: &str) -> Result<()> {
    let sql = "SELECT 1 FROM cf_agents_imports WHERE session_id = ?1 AND token = ?2";
    match find_row(db, sql, &[session_id.as_str().into(), token.into()])? {
        Some(_) => delete_rows(db, session_id.as_str()),
        None => Ok(()),
    }
}

fn delete_rows(db: &dyn Database, session_id: &str) -> Result<()> {
    tables::delete_staged(db, session_id)?;
    db.run(
        "DELETE FROM cf_agents_imports WHERE session_id = ?1",
        &[session_id.into()],
    )
}
