//! Export and import: not operations, since neither fits into one body, but
//! allowed to whoever may do the same by operations.

use super::events::{AppendEvents, LoadEvents};
use super::operation::{Agent, Operation};
use super::sessions::{CreateSession, GetSession};
use crate::access::permit;
use crate::error::{Error, Result};
use crate::ids::Id;
use crate::transfer::export::Export;
use crate::transfer::import::{Import, Target};

/// For who may read the session and all of its events.
pub fn begin_export(agent: &Agent<'_>, session_id: String) -> Result<Export> {
    let session_id = parse_id(session_id)?;
    allow::<GetSession>(agent, &session_id)?;
    allow::<LoadEvents>(agent, &session_id)?;
    Export::begin(agent.db, &session_id)
}

/// For who may create the session and append to it.
pub fn begin_import(agent: &Agent<'_>, session_id: String) -> Result<Import> {
    let session_id = parse_id(session_id)?;
    allow::<CreateSession>(agent, &session_id)?;
    allow::<AppendEvents>(agent, &session_id)?;
    Ok(Import::new(Target {
        session_id,
        agent: agent.name.to_owned(),
        caller: agent.caller.clone(),
    }))
}

fn allow<O: Operation>(agent: &Agent<'_>, session_id: &Id) -> Result<()> {
    permit(agent.caller, O::NAME, O::NEEDS, Some(session_id))
}

fn parse_id(session_id: String) -> Result<Id> {
    Id::parse(session_id)
        .map_err(|reason| Error::invalid("sessionId", format!("`sessionId` {reason}.")))
}
