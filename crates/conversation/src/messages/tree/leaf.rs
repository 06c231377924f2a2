//! The leaf: the end of the branch that a session reads and appends to by default.

use crate::log::find::find_seqs;
use crate::log::tip::{Leaf, LogTip, get_tip};
use crate::session::activity;
use base::database::{Database, SqlValue, atomically};
use base::error::{Code, Error, Result};
use base::host::Host;
use base::ids::Id;

pub fn message_not_found(field: &str, id: &Id) -> Error {
    Error::new(
        Code::MessageNotFound,
        format!("`{field}` doesn't exist in this session."),
    )
    .with_field(field)
    .with("id", id.as_str())
}

/// The `seq` of an event that must exist.
pub fn get_seq(db: &dyn Database, session_id: &Id, field: &str, id: &Id) -> Result<i64> {
    find_seqs(db, session_id, std::iter::once(id))?
        .get(id.as_str())
        .copied()
        .ok_or_else(|| message_not_found(field, id))
}

/// The event that a read starts at: the event that the request names, or the session's
/// leaf. `None`: the session is empty.
pub fn find_leaf(
    db: &dyn Database,
    session_id: &Id,
    field: &str,
    leaf_id: Option<&Id>,
) -> Result<Option<Leaf>> {
    let LogTip { leaf, .. } = get_tip(db, session_id)?;
    let Some(id) = leaf_id else {
        return Ok(leaf);
    };
    let seq = get_seq(db, session_id, field, id)?;
    let id = id.as_str().to_owned();
    Ok(Some(Leaf { seq, id }))
}

/// The `seq` of [`find_leaf`].
pub fn resolve_leaf(
    db: &dyn Database,
    session_id: &Id,
    field: &str,
    leaf_id: Option<&Id>,
) -> Result<Option<i64>> {
    let leaf = find_leaf(db, session_id, field, leaf_id)?;
    Ok(leaf.map(|leaf| leaf.seq))
}

/// Makes the branch that ends with `id` the default, until an append to another branch.
pub fn set_leaf(db: &dyn Database, host: &dyn Host, session_id: &Id, id: &Id) -> Result<()> {
    atomically(db, || {
        let tip = get_tip(db, session_id)?;
        let seq = get_seq(db, session_id, "id", id)?;
        let params: [SqlValue; 4] = [
            session_id.as_str().into(),
            seq.into(),
            tip.newest_seq.into(),
            host.now_ms().into(),
        ];
        db.run(
            "UPDATE cf_agents_sessions
                SET leaf_seq = ?2,
                    leaf_chosen_at = ?3,
                    updated_at = max(updated_at, ?4)
              WHERE id = ?1",
            &params,
        )?;
        activity::record(db, session_id)
    })
}
