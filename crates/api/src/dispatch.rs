//! Runs an operation by name, and the work that follows its answer.

use super::admission::AdmittedOperation;
use super::limits::check_length;
use super::operation::{Agent, OperationRun, Reply};
use super::operations::compaction::after_append;
use super::table::find_entry;
use super::tracing::record_memory;
use base::error::Result;
use base::ids::Id;
use base::owner::work_for;
use lifecycle::page_clearing::ClearedObject;
use store::erased::LeftPages;

/// Runs an operation that a text names. In tests, the answer is checked against openapi.json.
pub async fn dispatch(agent: &Agent<'_>, name: &str, body: impl Into<Vec<u8>>) -> Result<Reply> {
    let body = body.into();
    let admitted = find_entry(name).and_then(|entry| {
        let admitted = AdmittedOperation::of(agent.caller, entry)?;
        check_length(entry.max_body_bytes, body.len())?;
        Ok(admitted)
    });
    match admitted {
        Ok(operation) => run(agent, operation, body).await,
        Err(error) => {
            let answer = Err(error);
            super::answers::assert_matches_schema(name, &answer);
            answer
        }
    }
}

/// Runs an operation that was admitted for the agent's caller, with a body of an admitted length.
/// The operation checks the session that the body names. The body is freed as soon as it is parsed.
pub async fn run(agent: &Agent<'_>, operation: AdmittedOperation, body: Vec<u8>) -> Result<Reply> {
    let entry = operation.entry();
    record_memory(agent, entry.name, &body);
    let answer = match entry.run {
        OperationRun::AtOnce(run) => run(agent, body),
        OperationRun::Waiting(run) => run(agent, body).await,
    };
    // An operation that failed late may already have changed memory.
    agent.call_back();
    super::answers::assert_matches_schema(entry.name, &answer);
    answer
}

/// The work that follows an answer: if the conversation grew, it may need compaction. A
/// failure here loses nothing, and the session records it.
pub async fn follow_up(agent: &Agent<'_>, grown: &Id) -> Result<()> {
    work_for(grown.as_str(), after_append(agent, grown)).await
}

/// Clears the pages in which purges left text. A receipt is true only once this has succeeded.
pub async fn clear_pages(agent: &Agent<'_>, left: &LeftPages) -> Result<()> {
    let object = ClearedObject {
        pages: &agent.work.pages,
        db: agent.db,
        host: agent.host,
        outbound: agent.outbound,
        has_tables: &|| agent.background.has_tables(),
    };
    object.clear_after(left).await
}
