//! Change feed.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use crate::operation::Operation;

/// Reads a session's changes, in order.
///
/// A client that stores the last `cursor` and continues from there sees every change once. A client
/// that starts late reaches the same state. An `append` or an `update` identifies a message that
/// has changed: read the message by its id, and drop it if the answer is `null`. At a `clear`, drop
/// your copy. If `since` is from before the session was deleted and created again, the answer
/// starts with a `clear`, followed by every change from the beginning.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetChanges {
    pub session_id: String,
    /// Default: `100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The `cursor` of an earlier page. Default: 0, the beginning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<i64>,
}

impl GetChanges {
    #[must_use]
    pub fn new(session_id: impl Into<String>) -> Self {
        Self {
            session_id: session_id.into(),
            limit: None,
            since: None,
        }
    }
}

setters! {
    GetChanges:
    limit: i64;
    since: i64;
}

impl Operation for GetChanges {
    type Output = Changes;
    const NAME: &'static str = "getChanges";
    const READS: bool = true;
}

/// A part of `Changes`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Change {
    pub cursor: i64,
    pub r#type: ChangeType,
    pub id: Option<String>,
}

words! {
    /// The words of this field.
    pub enum ChangeType {
        Append = "append",
        Update = "update",
        Delete = "delete",
        Clear = "clear",
        Compaction = "compaction",
    }
}

/// What `getChanges` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    pub changes: Vec<Change>,
    /// The next call's `since`.
    pub cursor: i64,
}
