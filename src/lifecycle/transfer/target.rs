//! Where an import goes, on whose behalf, and what it leaves out.

use crate::base::error::{Code, Error};
use crate::base::ids::Id;
use crate::lifecycle::transfer::rights::ImportSender;
use serde::Serialize;

/// Where an import goes, and on whose behalf.
#[derive(Clone)]
pub struct ImportTarget {
    pub sender: ImportSender,
    pub agent: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum LeftOut {
    Prompt,
}

/// The error of a line, which the file's sender can find by its number.
pub fn at_line(number: u64, error: Error) -> Error {
    if error.details.contains_key("line") || error.code == Code::StorageFailed {
        return error;
    }
    let message = error.message.replace("The body", "The line");
    Error {
        message: format!("Line {number}: {message}"),
        ..error
    }
    .with("line", number)
}

impl ImportTarget {
    pub fn session_id(&self) -> &Id {
        &self.sender.session_id
    }
}
