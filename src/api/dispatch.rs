//! Runs an operation by its name, and what its request leaves to be done.

use super::limits::check_length;
use super::operation::{Agent, OperationRun, Reply};
use super::operations::compaction::after_append;
use super::table::find_entry;
use crate::access::permit_by_name;
use crate::base::error::Result;
use crate::base::ids::Id;

/// Runs one operation. In tests, its answer is held to openapi.json.
pub async fn dispatch(agent: &Agent<'_>, name: &str, body: impl Into<Vec<u8>>) -> Result<Reply> {
    let answer = run(agent, name, body.into()).await;
    #[cfg(test)]
    super::answers::hold(name, &answer);
    answer
}

/// The body is let go as soon as it is parsed.
async fn run(agent: &Agent<'_>, name: &str, body: Vec<u8>) -> Result<Reply> {
    let entry = find_entry(name)?;
    permit_by_name(agent.caller, entry.rule)?;
    check_length(entry.max_body_bytes, body.len())?;
    match entry.run {
        OperationRun::AtOnce(run) => run(agent, body),
        OperationRun::Waiting(run) => run(agent, body).await,
    }
}

/// What a request leaves to be done once it is answered: the conversation grew,
/// and may have to be compacted. What fails here loses nothing; the session
/// remembers it.
pub async fn follow_up(agent: &Agent<'_>, grown: &Id) -> Result<()> {
    after_append(agent, grown).await
}
