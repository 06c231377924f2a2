//! Documents of a loadable block.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::Origin;
use super::shapes::{Filter, ItemGone};
use crate::Object;
use crate::operation::Operation;

/// Writes a document of a loadable block. A document with the same key is replaced.
///
/// Without `description`, lists show the description in the document's front matter.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct PutSkill {
    pub label: String,
    pub key: String,
    pub content: String,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The ids of the events that the text comes from.
    /// Default: `[]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// Custom data of the document, for filtering: an object of at most 4 KiB. If omitted,
    /// it is unchanged; `null` removes it.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub metadata: Option<Option<Object>>,
    /// The session that the block belongs to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The source of the text. Default: `operator`, or `user` with a minted token. A token
    /// can't set `operator`, and can set `agent` only with `allow.agentMessages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
    /// At most 32 short lines. If omitted, they are unchanged; `[]` removes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

impl PutSkill {
    #[must_use]
    pub fn new(
        label: impl Into<String>,
        key: impl Into<String>,
        content: impl Into<String>,
    ) -> Self {
        Self {
            label: label.into(),
            key: key.into(),
            content: content.into(),
            delivery_id: None,
            description: None,
            events: None,
            metadata: None,
            session_id: None,
            source: None,
            tags: None,
        }
    }
}

setters! {
    PutSkill:
    delivery_id: impl Into<String>;
    description: impl Into<String>;
    events: Vec<String>;
    or null metadata: Object;
    session_id: impl Into<String>;
    source: Origin;
    tags: Vec<String>;
}

impl Operation for PutSkill {
    type Output = Skill;
    const NAME: &'static str = "putSkill";
    const READS: bool = false;
}

/// Deletes a document of a loadable block. Sessions that have loaded it keep it.
///
/// Its texts stay readable as earlier versions: `versionsKept` is their number, and `versionsUntil`
/// the time until which they stay. With `purge` they are erased, too, and the answer is a receipt.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DeleteSkill {
    pub label: String,
    pub key: String,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purge: Option<bool>,
    /// The session that the block belongs to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl DeleteSkill {
    #[must_use]
    pub fn new(label: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            key: key.into(),
            delivery_id: None,
            purge: None,
            session_id: None,
        }
    }
}

setters! {
    DeleteSkill:
    delivery_id: impl Into<String>;
    purge: bool;
    session_id: impl Into<String>;
}

impl Operation for DeleteSkill {
    type Output = ItemGone;
    const NAME: &'static str = "deleteSkill";
    const READS: bool = false;
}

/// Lists the documents of a loadable block, in the order of their keys.
///
/// `cursor` is where the last page ended; it is `null` on the last page. A bucket's documents are
/// listed again once a minute.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ListSkills {
    pub label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Default: `100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The session that the block belongs to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Only documents with this metadata and these tags.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#where: Option<Filter>,
}

impl ListSkills {
    #[must_use]
    pub fn new(label: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            cursor: None,
            limit: None,
            session_id: None,
            r#where: None,
        }
    }
}

setters! {
    ListSkills:
    cursor: impl Into<String>;
    limit: i64;
    session_id: impl Into<String>;
    r#where: Filter;
}

impl Operation for ListSkills {
    type Output = SkillPage;
    const NAME: &'static str = "listSkills";
    const READS: bool = true;
}

/// Loads a document into a session's context, until it is unloaded.
///
/// Loading a document again has no further effect. Without `sessionId`, the document is only shown.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LoadSkill {
    /// A block of the session or of the agent.
    pub label: String,
    pub key: String,
    /// Only shows the document, even if `sessionId` is set.
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dry_run: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl LoadSkill {
    #[must_use]
    pub fn new(label: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            key: key.into(),
            dry_run: None,
            session_id: None,
        }
    }
}

setters! {
    LoadSkill:
    dry_run: bool;
    session_id: impl Into<String>;
}

impl Operation for LoadSkill {
    type Output = LoadedDocument;
    const NAME: &'static str = "loadSkill";
    const READS: bool = false;
}

/// Removes a loaded document from a session's context.
///
/// A copy in the log stays there; the working context shows a note in its place.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct UnloadSkill {
    pub session_id: String,
    pub label: String,
    pub key: String,
}

impl UnloadSkill {
    #[must_use]
    pub fn new(
        session_id: impl Into<String>,
        label: impl Into<String>,
        key: impl Into<String>,
    ) -> Self {
        Self {
            session_id: session_id.into(),
            label: label.into(),
            key: key.into(),
        }
    }
}

impl Operation for UnloadSkill {
    type Output = Unloaded;
    const NAME: &'static str = "unloadSkill";
    const READS: bool = false;
}

/// What `loadSkill` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct LoadedDocument {
    pub label: String,
    pub key: String,
    pub description: Option<String>,
    pub content: String,
    /// Estimated tokens of the content.
    pub tokens: i64,
    /// `false`: the document was in the context already, or is only shown.
    pub loaded: bool,
    /// `tool` or `import`, if the text comes from there. It is then quoted as data in a
    /// session's context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
    /// The time when such a text was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<i64>,
}

/// A document in a listing, without its content.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Skill {
    pub key: String,
    pub description: Option<String>,
    /// Bytes of the content. `null`: unknown.
    pub bytes: Option<i64>,
    pub updated_at: Option<i64>,
    /// The custom data of the document, if it is stored in this agent or in another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// The source of the text, if the document is stored in this agent or in another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
}

/// What `listSkills` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct SkillPage {
    pub skills: Vec<Skill>,
    pub cursor: Option<String>,
}

/// What `unloadSkill` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Unloaded {
    /// `false`: the document was not in the context.
    pub unloaded: bool,
}
