//! The target of an import, its sender, and the parts that the import leaves out.

use crate::json_schema::JsonSchema;
use std::rc::Rc;

use crate::transfer::rights::ImportSender;
use base::error::{Code, Error};
use base::ids::Id;
use serde::Serialize;
use store::config::DeployedConfig;

/// The session that an import writes, and the sender.
#[derive(Clone)]
pub struct ImportTarget {
    pub sender: ImportSender,
    pub agent: String,
    pub deployed: Rc<DeployedConfig>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum OmittedPart {
    Prompt,
    /// The servers of tools, in the file of a whole agent.
    Servers,
    /// The changes of memory that models proposed, in the file of a whole agent.
    Proposals,
}

/// Adds the line's number to an error, so that the sender can find the line.
pub fn at_line(number: u64, error: Error) -> Error {
    if error.line.is_some() || error.code == Code::StorageFailed {
        return error;
    }
    let message = error.message.replace("The body", "The line");
    error
        .with_message(format!("Line {number}: {message}"))
        .with_line(number)
}

impl ImportTarget {
    pub fn session_id(&self) -> &Id {
        &self.sender.session_id
    }
}
