//! Runs an operation by name, and the work that follows its answer.

use super::limits::check_length;
use super::operation::{Agent, OperationRun, Reply};
use super::operations::compaction::after_append;
use super::table::find_entry;
use super::tracing::note_memory;
use access::permit_by_name;
use base::error::Result;
use base::ids::Id;
use base::owner::work_for;

/// Runs an operation. In tests, the answer is checked against openapi.json.
pub async fn dispatch(agent: &Agent<'_>, name: &str, body: impl Into<Vec<u8>>) -> Result<Reply> {
    let answer = run(agent, name, body.into()).await;
    super::answers::hold(name, &answer);
    answer
}

/// Runs an operation. The body is freed as soon as it is parsed.
async fn run(agent: &Agent<'_>, name: &str, body: Vec<u8>) -> Result<Reply> {
    let entry = find_entry(name)?;
    permit_by_name(agent.caller, entry.rule)?;
    check_length(entry.max_body_bytes, body.len())?;
    note_memory(agent, name, &body);
    let answer = match entry.run {
        OperationRun::AtOnce(run) => run(agent, body),
        OperationRun::Waiting(run) => run(agent, body).await,
    };
    // An operation that failed late may already have changed memory.
    agent.call_back();
    answer
}

/// The work that follows an answer: if the conversation grew, it may need compaction. A
/// failure here loses nothing, and the session records it.
pub async fn follow_up(agent: &Agent<'_>, grown: &Id) -> Result<()> {
    work_for(grown.as_str(), after_append(agent, grown)).await
}

/// Computes vectors for some of the written entries. Returns whether more are pending. A
/// failure here loses nothing: a search computes what is missing.
pub async fn follow_writes(agent: &Agent<'_>) -> Result<bool> {
    recall::entries::follow_writes(&agent.memory()).await
}
