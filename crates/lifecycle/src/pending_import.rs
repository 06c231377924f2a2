//! The rows of a pending import. An import writes the rows piece by piece under the
//! session's id, and the session's own row last. Until then no read sees the rows, because
//! every read starts with the session's row. A row in `cf_agents_imports` names the import
//! that owns the rows, so that the rows of an abandoned import are found and deleted.

use crate::tables;
use base::columns::load_values;
use base::database::{Database, SqlValue, find_row};
use base::error::{Code, Error, Result};
use base::host::Host;
use base::ids::Id;

/// An import that has written nothing for this long is abandoned: a client that is still
/// sending writes every few seconds.
const DEAD_AFTER_MS: i64 = 15 * 60 * 1000;

/// The most abandoned imports that a new import deletes, so that its start is bounded.
const SWEPT_AT_ONCE: i64 = 4;

/// Starts an import into `session_id`. Deletes rows that an earlier import left there, and
/// the rows of a few abandoned imports into other sessions. Must run in a transaction.
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

/// Fails unless this import still owns the session's rows. Must run in the transaction that
/// writes more rows.
pub fn renew(db: &dyn Database, host: &dyn Host, session_id: &Id, token: &str) -> Result<()> {
    let params: [SqlValue; 3] = [
        session_id.as_str().into(),
        token.into(),
        host.now_ms().into(),
    ];
    let pending = find_row(
        db,
        "UPDATE cf_agents_imports
            SET touched_at = ?3
          WHERE session_id = ?1
            AND token = ?2
      RETURNING 1",
        &params,
    )?;
    match pending {
        Some(_) => Ok(()),
        None => Err(Error::new(
            Code::AlreadyExists,
            "Another request started to import or create this session, so this import stopped. \
             Read the session. To replace it, delete it and import again.",
        )
        .with("id", session_id.as_str())),
    }
}

/// Ends an import. Must run in the transaction that writes the session's own row.
pub fn end(db: &dyn Database, session_id: &Id) -> Result<()> {
    db.run(
        "DELETE FROM cf_agents_imports WHERE session_id = ?1",
        &[session_id.as_str().into()],
    )
}

/// Deletes the rows of an unfinished import into `session_id`, which must not have a row of
/// its own. Must run in a transaction.
pub fn forget(db: &dyn Database, session_id: &Id) -> Result<()> {
    let sql = "SELECT 1 FROM cf_agents_imports WHERE session_id = ?1";
    match find_row(db, sql, &[session_id.as_str().into()])? {
        Some(_) => delete_rows(db, session_id.as_str()),
        None => Ok(()),
    }
}

/// Like [`forget`], but only if the import with this `token` still owns the rows.
pub fn abandon(db: &dyn Database, session_id: &Id, token: &str) -> Result<()> {
    let sql = "SELECT 1 FROM cf_agents_imports WHERE session_id = ?1 AND token = ?2";
    match find_row(db, sql, &[session_id.as_str().into(), token.into()])? {
        Some(_) => delete_rows(db, session_id.as_str()),
        None => Ok(()),
    }
}

fn delete_rows(db: &dyn Database, session_id: &str) -> Result<()> {
    tables::delete_pending_import(db, session_id)?;
    db.run(
        "DELETE FROM cf_agents_imports WHERE session_id = ?1",
        &[session_id.into()],
    )
}
