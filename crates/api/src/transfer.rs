//! Export and import. They are not operations, because a file doesn't fit in one body. A
//! caller that could do the same with operations may use them. Exporting or importing a
//! whole agent requires the Worker's secret.

use std::rc::Rc;

use super::agent_file::export::AgentExport;
use super::agent_file::import::AgentImport;
use super::agent_file::{EXPORT_RULE, IMPORT_RULE};
use super::operation::{Agent, Operation};
use super::operations::events::AppendEvents;
use super::operations::sessions::CreateSession;
use super::session_address::parse_session_id;
use access::permit;
use base::error::Result;
use conversation::log::sessions::session_exists;
use lifecycle::transfer::export::Export;
use lifecycle::transfer::import::{Import, check_repeat};
use lifecycle::transfer::rights::{ImportSender, permit_export};
use lifecycle::transfer::target::ImportTarget;

pub fn begin_export(agent: &Agent<'_>, session_id: String) -> Result<Export> {
    let export = permit_and_export(agent, &session_id);
    super::answers::assert_refusal_matches_schema("exportSession", &export);
    export
}

fn permit_and_export(agent: &Agent<'_>, session_id: &str) -> Result<Export> {
    let session_id = parse_session_id(session_id)?;
    permit_export(agent.db, agent.caller, &session_id)?;
    Export::begin(agent.db, &session_id)
}

/// Starts an import. Before any line of the file is read, the caller must be allowed to
/// create the session and append to it, and to read the session if it exists. Other rights
/// are checked at the lines that need them.
pub fn begin_import(agent: &Agent<'_>, session_id: String, allows_sources: bool) -> Result<Import> {
    let import = permit_and_import(agent, &session_id, allows_sources);
    super::answers::assert_refusal_matches_schema("importSession", &import);
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
        is_of_agent: false,
    };
    if session_exists(agent.db, &sender.session_id)? {
        check_repeat(agent.db, &sender)?;
    }
    Ok(Import::new(ImportTarget {
        sender,
        agent: agent.name.to_owned(),
        deployed: Rc::clone(&agent.deployed.memory.config),
    }))
}

/// Starts an export of the whole agent. `after` is the cursor of an interrupted export.
pub fn begin_agent_export(agent: &Agent<'_>, after: Option<&str>) -> Result<AgentExport> {
    let export =
        permit(agent.caller, EXPORT_RULE, None).and_then(|()| AgentExport::begin(agent.db, after));
    super::answers::assert_refusal_matches_schema("exportAgent", &export);
    export
}

/// Starts an import of a whole agent.
pub fn begin_agent_import<'a>(
    agent: &'a Agent<'a>,
    allows_sources: bool,
) -> Result<AgentImport<'a>> {
    let import =
        permit(agent.caller, IMPORT_RULE, None).map(|()| AgentImport::new(agent, allows_sources));
    super::answers::assert_refusal_matches_schema("importAgent", &import);
    import
}
