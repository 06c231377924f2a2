//! The operations: what a caller can ask of an agent. A request that got here
//! has been routed and its caller identified; it leaves as JSON or as an error.

mod agent;
pub mod chat;
mod chat_tools;
mod compaction;
mod door;
mod events;
mod memory_blocks;
mod memory_entries;
mod memory_prompt;
mod memory_skills;
mod memory_tools;
mod messages;
mod operation;
pub mod route;
mod search;
mod sessions;
pub mod socket;
mod stats;
mod table;
mod tokens;
mod transfer;
mod tree;
mod working_context;

#[cfg(test)]
mod answers;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod tests;

#[cfg(target_arch = "wasm32")]
pub use door::{admit, check_room, may_be_repeated};
use operation::Run;
pub use operation::{Agent, Reply};
#[cfg(any(test, target_arch = "wasm32"))]
pub use transfer::{begin_export, begin_import};

use crate::access::permit_by_name;
use crate::error::{Code, Error, Result};
use crate::ids::Id;
use crate::json;

/// The API document, generated from the table of operations and held to it by a test.
pub const OPENAPI_JSON: &str = include_str!("openapi.json");

/// Runs one operation. In tests, its answer is held to openapi.json.
pub async fn dispatch(agent: &Agent<'_>, name: &str, body: impl Into<Vec<u8>>) -> Result<Reply> {
    let answer = run(agent, name, body.into()).await;
    #[cfg(test)]
    answers::hold(name, &answer);
    answer
}

/// The body is let go as soon as it is parsed.
async fn run(agent: &Agent<'_>, name: &str, body: Vec<u8>) -> Result<Reply> {
    let entry = door::find_entry(name)?;
    permit_by_name(agent.caller, entry.rule)?;
    door::check_length(entry.max_body_bytes, body.len())?;
    match entry.run {
        Run::AtOnce(run) => run(agent, body),
        Run::Waiting(run) => run(agent, body).await,
    }
}

/// A session's newest messages as a JSON array, as `get-messages` answers; a
/// session that isn't there has none yet.
pub fn get_messages(agent: &Agent<'_>, session_id: String) -> Result<Reply> {
    let answer = messages::get_messages(agent, session_id);
    #[cfg(test)]
    answers::hold_refusal("getMessages", &answer);
    answer
}

/// Whether a token may be minted for what goes by this name.
pub fn is_operation(name: &str) -> bool {
    name == chat::CHAT || table::OPERATIONS.iter().any(|entry| entry.name == name)
}

/// The session that an address names.
fn parse_session_id(text: &str) -> Result<Id> {
    Id::parse(text.to_owned())
        .map_err(|reason| Error::invalid("sessionId", format!("`sessionId` {reason}.")))
}

fn unknown_operation(name: &str) -> Error {
    let names = table::OPERATIONS.iter().map(|entry| entry.name);
    let message = match json::find_nearest(name, names) {
        Some(near) => format!("There is no such operation. Did you mean `{near}`?"),
        None => "There is no such operation. `GET /openapi.json` lists those there are.".to_owned(),
    };
    Error::new(Code::UnknownOperation, message)
}

/// What a request leaves to be done once it is answered: the conversation grew,
/// and may have to be compacted. What fails here loses nothing; the session
/// remembers it.
pub async fn follow_up(agent: &Agent<'_>, grown: &Id) -> Result<()> {
    compaction::after_append(agent, grown).await
}
