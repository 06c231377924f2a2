//! Memory tools.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::shapes::ListedTool;
use crate::operation::Operation;

/// Returns the tools for the blocks, in the format of model APIs.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetTools {
    /// The session whose blocks the tools use, besides the agent's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl GetTools {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    GetTools:
    session_id: impl Into<String>;
}

impl Operation for GetTools {
    type Output = ToolList;
    const NAME: &'static str = "getTools";
    const READS: bool = true;
}

/// Runs a tool on behalf of a model.
///
/// Mistakes of the model are returned as `output` with `isError`, for the model to read.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct CallTool {
    pub name: String,
    /// The arguments object, as the model sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// The session of the call. The tool uses its blocks and its context, besides the
    /// agent's blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl CallTool {
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            arguments: None,
            session_id: None,
        }
    }
}

setters! {
    CallTool:
    arguments: Value;
    session_id: impl Into<String>;
}

impl Operation for CallTool {
    type Output = ToolOutcome;
    const NAME: &'static str = "callTool";
    const READS: bool = false;
}

/// What `getTools` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ToolList {
    pub tools: Vec<ListedTool>,
}

/// The result of a tool. A failure is text that the model can read.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ToolOutcome {
    pub output: String,
    pub is_error: bool,
}
