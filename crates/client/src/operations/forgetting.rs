//! Forgetting.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::Receipt;
use super::shapes::{Erased, ErasedNames, HomeReceipt};
use crate::operation::Operation;

/// Finds all mentions of a text, or everything that comes from events: events, summaries, blocks,
/// entries, documents, their versions, copies and frozen prompts.
///
/// Each request searches a limited part of the agent. Repeat it with the answer's `cursor` until
/// that is `null`; a page may be empty. Texts stored outside this agent, and texts that a running
/// turn has not written yet, are not searched.
///
/// A token for one session sees that session only.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct FindMentions {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// The ids of events. Finds these events in all sessions, the summaries that cover them, and
    /// the memory that models wrote in them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ids: Option<Vec<String>>,
    /// Default: `50`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The exact text, ignoring case. 3 to 200 characters. Set this or `ids`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
}

impl FindMentions {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    FindMentions:
    cursor: impl Into<String>;
    ids: Vec<String>;
    limit: i64;
    query: impl Into<String>;
}

impl Operation for FindMentions {
    type Output = Mentions;
    const NAME: &'static str = "findMentions";
    const READS: bool = true;
}

/// Erases places that `findMentions` found, all in one transaction, with one receipt.
///
/// After this, their text is in no table. An event is erased with the summaries that cover it; an
/// entry and a document with their earlier versions. The newest text of a block, a session's name
/// and metadata, and a block's description are emptied but not removed. Frozen prompts that may
/// show the text are rendered again at their next use.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Erase {
    /// The places, as returned by `findMentions`.
    pub places: Vec<MentionPlace>,
}

impl Erase {
    #[must_use]
    pub fn new(places: Vec<MentionPlace>) -> Self {
        Self { places }
    }
}

impl Operation for Erase {
    type Output = WasErased;
    const NAME: &'static str = "erase";
    const READS: bool = false;
}

/// Checks a receipt: whether this Worker signed it, and whether it is unchanged since. A receipt
/// without a signature can't be verified, because anybody can write one, so it is not valid. A
/// Worker without a secret signs nothing, and can verify no receipt.
///
/// A token for one session sees that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct VerifyReceipt {
    /// The receipt, exactly as the deletion returned it. Other fields of that answer are
    /// ignored.
    pub receipt: Receipt,
}

impl VerifyReceipt {
    #[must_use]
    pub fn new(receipt: Receipt) -> Self {
        Self { receipt }
    }
}

impl Operation for VerifyReceipt {
    type Output = ReceiptCheck;
    const NAME: &'static str = "verifyReceipt";
    const READS: bool = true;
}

/// A place that contains a mention.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct MentionPlace {
    pub kind: PlaceKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The session that the place belongs to. Absent or `null`: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The text around it, as it is stored. `erase` ignores it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snippet: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<i64>,
}

impl MentionPlace {
    #[must_use]
    pub fn new(kind: PlaceKind) -> Self {
        Self {
            kind,
            id: None,
            key: None,
            label: None,
            session_id: None,
            snippet: None,
            version: None,
        }
    }
}

setters! {
    MentionPlace:
    id: impl Into<String>;
    key: impl Into<String>;
    label: impl Into<String>;
    session_id: impl Into<String>;
    snippet: impl Into<String>;
    version: i64;
}

/// What `findMentions` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Mentions {
    pub places: Vec<MentionPlace>,
    /// Where the next request continues, even after an empty page. `null`: everything was
    /// searched.
    pub cursor: Option<String>,
}

words! {
    /// A kind of place.
    pub enum PlaceKind {
        /// An event of a log: `sessionId`, `id`.
        Event = "event",
        /// A summary: `sessionId`, `id`.
        Summary = "summary",
        /// A session's name or metadata: `sessionId`.
        Session = "session",
        /// A block's definition: `label`.
        Definition = "definition",
        /// The text of a block: `label`, `version`.
        Block = "block",
        /// An entry: `label`, `key`.
        Entry = "entry",
        /// A document: `label`, `key`.
        Document = "document",
        /// An earlier version: `label`, `version`, and the `key` of an entry or a document.
        Version = "version",
        /// A document as a session loaded it: `sessionId`, `label`, `key`.
        LoadedDocument = "loadedDocument",
        /// A frozen prompt.
        Prompt = "prompt",
        /// A report that was not delivered to `onTurnEnd` or `onMemoryChange`: `sessionId`, `id`.
        Report = "report",
        /// A proposal to change memory: `id`.
        Proposal = "proposal",
    }
}

/// What `verifyReceipt` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ReceiptCheck {
    /// Whether this Worker signed the receipt, and nobody has changed it since.
    pub valid: bool,
    /// The same as `valid`: only a signed receipt is valid.
    pub signed: bool,
}

/// The receipt that a deletion with `purge` adds to its answer.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct WasErased {
    /// The number of places that existed. An event with several places counts once.
    pub found: i64,
    pub erased: Erased,
    /// The agent's name.
    pub agent: String,
    /// The operation that erased.
    pub operation: String,
    /// Milliseconds since the epoch.
    pub at: i64,
    /// SHA-256, in hex, of the receipt as JSON without `digest` and `signature`: names
    /// sorted, no spaces.
    pub digest: String,
    /// In a receipt for several agents: the name prefix of the destroyed agents, and their
    /// number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<ErasedNames>,
    /// The answer of the block's external source. Absent: the text was stored only in this
    /// agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub home: Option<HomeReceipt>,
    /// HMAC-SHA-256, in hex, of `digest`, with a key derived from the Worker's secret.
    /// Absent: the Worker has no secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}
