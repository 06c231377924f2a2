//! Branches.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::UiMessage;
use crate::operation::Operation;

/// Reads the messages that directly follow a message: its branches.
///
/// If the branches have more than 4 MiB in total, the call is refused. Then read them one by one
/// with `getMessage`.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetBranches {
    pub session_id: String,
    pub message_id: String,
}

impl GetBranches {
    #[must_use]
    pub fn new(session_id: impl Into<String>, message_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            message_id: message_id.into(),
        }
    }
}

impl Operation for GetBranches {
    type Output = MessageList;
    const NAME: &'static str = "getBranches";
    const READS: bool = true;
}

/// Chooses the branch that reads and appends follow by default.
///
/// An append to another branch makes that branch the default.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct SetLeaf {
    pub session_id: String,
    pub id: String,
}

impl SetLeaf {
    #[must_use]
    pub fn new(session_id: impl Into<String>, id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            id: id.into(),
        }
    }
}

impl Operation for SetLeaf {
    type Output = ChosenLeaf;
    const NAME: &'static str = "setLeaf";
    const READS: bool = false;
}

/// Shows the last message of the session's default branch; `null` if there is none.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetLatestLeaf {
    pub session_id: String,
}

impl GetLatestLeaf {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
        }
    }
}

impl Operation for GetLatestLeaf {
    type Output = Option<UiMessage>;
    const NAME: &'static str = "getLatestLeaf";
    const READS: bool = true;
}

/// Counts the messages of a branch.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetPathLength {
    pub session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaf_id: Option<String>,
}

impl GetPathLength {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            leaf_id: None,
        }
    }
}

setters! {
    GetPathLength:
    leaf_id: impl Into<String>;
}

impl Operation for GetPathLength {
    type Output = PathLength;
    const NAME: &'static str = "getPathLength";
    const READS: bool = true;
}

/// What `setLeaf` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ChosenLeaf {
    pub leaf_id: String,
}

/// What `getBranches` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct MessageList {
    pub messages: Vec<UiMessage>,
}

/// What `getPathLength` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct PathLength {
    pub length: i64,
}
