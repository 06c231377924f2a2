//! The call that reports a change of memory (`onMemoryChange`).

use serde::Serialize;

use super::message::CallbackMessage;
use super::target::{MEMORY_CHANGE, endpoint_of};
use crate::request::delivery::Delivery;
use access::Policy;
use base::error::{Error, Result};
use base::json;
use memory::Memory;
use memory::change_events::{ChangeEvent, ChangeKind};
use memory::content::{self, Version};
use memory::definitions::find_in;
use memory::entry_rows;
use memory::label::Label;
use memory::skills::stored;
use store::callbacks::Callback;
use store::config::load_config;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MemoryChangeBody<'a> {
    delivery_id: &'a str,
    agent: &'a str,
    /// The session that the block belongs to; `null`: the block is the agent's.
    session_id: Option<&'a str>,
    kind: ChangeKind,
    label: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    /// Only for a proposal; `getProposals` shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<&'a str>,
    deleted: bool,
    /// The version that was written. `null`: it is no longer stored, or another backend stores the
    /// text.
    version: Option<Version>,
}

/// The content of the call.
pub fn render(memory: &Memory<'_>, policy: &Policy, call: &Callback) -> Result<CallbackMessage> {
    let config = load_config(memory.db, &memory.deployed.config)?;
    let target = config.on_memory_change.as_ref();
    let endpoint = endpoint_of(memory.outbound, MEMORY_CHANGE, target)?;
    let delivery_id = Delivery::of_memory(policy, memory.agent).seal(&call.id);
    let change: ChangeEvent =
        json::decode(&call.report).map_err(|_| Error::corrupt_row(&call.id, "report"))?;
    let body = json::encode(&MemoryChangeBody {
        delivery_id: &delivery_id,
        agent: memory.agent,
        session_id: Some(call.session_id.as_str()).filter(|id| !id.is_empty()),
        kind: change.kind,
        label: &change.label,
        key: change.key.as_deref(),
        id: change.id.as_deref(),
        status: change.status.as_deref(),
        deleted: change.deleted,
        version: find_version(memory, &call.session_id, &change)?,
    })?;
    Ok(CallbackMessage {
        endpoint,
        delivery_id,
        body,
    })
}

/// The version that the change wrote, if this agent still stores it.
fn find_version(memory: &Memory<'_>, scope: &str, change: &ChangeEvent) -> Result<Option<Version>> {
    let (Some(version), Ok(label)) = (change.version, Label::parse(&change.label)) else {
        return Ok(None);
    };
    let Some(block) = find_in(memory, scope, &label)? else {
        return Ok(None);
    };
    let db = memory.db;
    match (change.kind, &change.key) {
        (ChangeKind::Entry, Some(key)) => entry_rows::find_version(db, &block, key, version),
        (ChangeKind::Document, Some(key)) => stored::find_version(db, &block, key, version),
        (ChangeKind::Block | ChangeKind::Entry | ChangeKind::Document, _) => {
            content::find_version(db, &block, version)
        }
        (ChangeKind::Proposal, _) => Ok(None),
    }
}
