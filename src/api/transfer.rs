//! Export and import: not operations, since neither fits into one body, but
//! allowed to whoever may do the same by operations.

use super::operation::{Agent, Operation};
use super::operations::events::AppendEvents;
use super::operations::sessions::CreateSession;
use super::route::parse_session_id;
use crate::access::permit;
use crate::base::error::Result;
use crate::lifecycle::transfer::export::Export;
use crate::lifecycle::transfer::import::{Import, check_repeat};
use crate::lifecycle::transfer::rights::{ImportSender, permit_export};
use crate::lifecycle::transfer::target::ImportTarget;
use crate::log::sessions::session_exists;

pub fn begin_export(agent: &Agent<'_>, session_id: String) -> Result<Export> {
    let export = permit_and_export(agent, &session_id);
    #[cfg(test)]
    super::answers::hold_refusal("exportSession", &export);
    export
}

fn permit_and_export(agent: &Agent<'_>, session_id: &str) -> Result<Export> {
    let session_id = parse_session_id(session_id)?;
    permit_export(agent.db, agent.caller, &session_id)?;
    Export::begin(agent.db, &session_id)
}

/// For who may create the session and append to it; where it exists, for who may
/// read it, before a line of the file is looked at. What else a line writes is
/// asked for when it comes.
pub fn begin_import(agent: &Agent<'_>, session_id: String, allows_sources: bool) -> Result<Import> {
    let import = permit_and_import(agent, &session_id, allows_sources);
    #[cfg(test)]
    super::answers::hold_refusal("importSession", &import);
    import
}

fn permit_and_import(agent: &Agent<'_>, session_id: &str, allows_sources: bool) -> Result<Import> {
    let session_id = parse_session_id(session_id)?;
    permit(agent.caller, CreateSession::RULE, Some(&session_id))?;
    permit(agent.caller, AppendEvents::RULE, Some(&session_id))?;
    let sender = ImportSender {
        session_id,
        caller: agent.caller.clone(),
        allows_sources,
    };
    if session_exists(agent.db, &sender.session_id)? {
        check_repeat(agent.db, &sender)?;
    }
    Ok(Import::new(ImportTarget {
        sender,
        agent: agent.name.to_owned(),
    }))
}
