//! The marker of an import that writes the agent's own rows ([`RESTORING`]). It exists
//! until the last of these rows is written, and it identifies the import: a concurrent
//! import replaces it with its own, and the earlier one stops.

use base::database::{Database, atomically};
use base::error::{Code, Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json::json;
use conversation::session::numbers::{has_more_sessions, has_sessions};
use lifecycle::agents_own::delete_agents_own;
use lifecycle::agents_own::has_no_own;
use lifecycle::transfer::memory::import::MemoryImport;
use store::stored::{RESTORING, delete_stored, find_stored, write_stored};

/// Sets the marker if the agent is empty, or if an earlier import was interrupted. `None`:
/// the agent has data.
pub fn begin(db: &dyn Database, host: &dyn Host) -> Result<Option<String>> {
    atomically(db, || {
        let is_restoring = find_stored(db, RESTORING)?.is_some();
        if !is_restoring && (!has_no_own(db)? || has_sessions(db)?) {
            return Ok(None);
        }
        // Sessions are imported after the agent's own rows, so these sessions were written
        // since then.
        if is_restoring && has_more_sessions(db, 0)? {
            return Err(Error::new(
                Code::AlreadyExists,
                "An import into this agent was interrupted, and sessions have been written since. \
                 Import the file into an agent with another name, or `destroy` this one first.",
            ));
        }
        delete_agents_own(db)?;
        let id = Id::mint_lifetime(host);
        let mark = json!({"since": host.now_ms(), "id": id.as_str()});
        write_stored(db, RESTORING, &mark)?;
        find_stored(db, RESTORING)
    })
}

/// Deletes the agent's own rows that the import with this marker has written.
pub fn delete_written_rows(db: &dyn Database, mark: &str) -> Result<()> {
    atomically(db, || {
        if find_stored(db, RESTORING)?.as_deref() == Some(mark) {
            delete_agents_own(db)?;
            delete_stored(db, RESTORING)?;
        }
        Ok(())
    })
}

pub fn write_memory(
    db: &dyn Database,
    memory: &mut MemoryImport,
    mark: Option<&str>,
) -> Result<()> {
    atomically(db, || {
        check_restoring(db, mark)?;
        memory.write(db)
    })?;
    memory.written();
    Ok(())
}

/// Fails if another import has started or finished in the meantime. Must run in a
/// transaction.
pub fn check_restoring(db: &dyn Database, mark: Option<&str>) -> Result<()> {
    match find_stored(db, RESTORING)? {
        Some(stored) if Some(stored.as_str()) == mark => Ok(()),
        _ => Err(Error::new(
            Code::AlreadyExists,
            "Another request imported into or emptied this agent during the import, so this import \
             stopped. Check the agent, and repeat the import if necessary.",
        )),
    }
}
