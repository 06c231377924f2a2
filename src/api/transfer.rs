//! Export and import: not operations, since neither fits into one body, but
//! allowed to whoever may do the same by operations.

use super::events::{AppendEvents, LoadEvents};
use super::operation::{Agent, Operation};
use super::parse_session_id;
use super::sessions::{CreateSession, GetSession};
use crate::access::{Caller, Needs, Rule, Touches, permit};
use crate::error::Result;
use crate::ids::Id;
use crate::transfer::export::Export;
use crate::transfer::import::{Import, Target};
use crate::transfer::memory::find_readers;

/// For who may read the session, all of its events and what it has of memory:
/// a file is whole, or it is none.
pub fn begin_export(agent: &Agent<'_>, session_id: String) -> Result<Export> {
    let session_id = parse_session_id(&session_id)?;
    allow::<GetSession>(agent, &session_id)?;
    allow::<LoadEvents>(agent, &session_id)?;
    if *agent.caller != Caller::Owner {
        for reader in find_readers(agent.db, &session_id)? {
            let rule = Rule {
                operation: reader,
                needs: Needs::Session,
                touches: Touches::Nothing,
            };
            permit(agent.caller, rule, Some(&session_id))?;
        }
    }
    Export::begin(agent.db, &session_id)
}

/// For who may create the session and append to it. What else a line writes is
/// asked for when it comes.
pub fn begin_import(agent: &Agent<'_>, session_id: String) -> Result<Import> {
    let session_id = parse_session_id(&session_id)?;
    allow::<CreateSession>(agent, &session_id)?;
    allow::<AppendEvents>(agent, &session_id)?;
    Ok(Import::new(Target {
        session_id,
        agent: agent.name.to_owned(),
        caller: agent.caller.clone(),
    }))
}

fn allow<O: Operation>(agent: &Agent<'_>, session_id: &Id) -> Result<()> {
    permit(agent.caller, O::RULE, Some(session_id))
}
