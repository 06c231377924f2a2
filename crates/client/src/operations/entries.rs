//! Entries of a searchable block.
//!
//! `node scripts/crate.mjs` writes this file.

use serde::{Deserialize, Serialize};

use super::later_shapes::{Origin, VectorReport};
use super::shapes::{Filter, ItemGone};
use crate::Object;
use crate::operation::Operation;

/// Writes an entry of a searchable block. An entry with the same key is replaced.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct SetEntry {
    pub label: String,
    pub key: String,
    pub content: String,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    /// The ids of the events that the text comes from.
    /// Default: `[]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// Custom data of the entry, for filtering: an object of at most 4 KiB. If omitted, it
    /// is unchanged; `null` removes it.
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
    /// The keys of the entries that this one replaces. A search finds those only in the
    /// past.
    /// Default: `[]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Vec<String>>,
    /// At most 32 short lines. If omitted, they are unchanged; `[]` removes them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// One line, searched with the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The time from which the fact is true. Default: the time of the write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// The time until which the fact is true. Default: until another one replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
}

impl SetEntry {
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
            events: None,
            metadata: None,
            session_id: None,
            source: None,
            supersedes: None,
            tags: None,
            title: None,
            valid_from: None,
            valid_until: None,
        }
    }
}

setters! {
    SetEntry:
    delivery_id: impl Into<String>;
    events: Vec<String>;
    or null metadata: Object;
    session_id: impl Into<String>;
    source: Origin;
    supersedes: Vec<String>;
    tags: Vec<String>;
    title: impl Into<String>;
    valid_from: i64;
    valid_until: i64;
}

impl Operation for SetEntry {
    type Output = Entry;
    const NAME: &'static str = "setEntry";
    const READS: bool = false;
}

/// Deletes an entry of a searchable block. An entry that it replaced becomes valid again, unless
/// another entry also replaced it.
///
/// Its texts stay readable as earlier versions: `versionsKept` is their number, and `versionsUntil`
/// the time until which they stay. With `purge` they are erased, too, and the answer is a receipt.
///
/// A token for one session can run it on that session only. A minted token must name it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DeleteEntry {
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

impl DeleteEntry {
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
    DeleteEntry:
    delivery_id: impl Into<String>;
    purge: bool;
    session_id: impl Into<String>;
}

impl Operation for DeleteEntry {
    type Output = ItemGone;
    const NAME: &'static str = "deleteEntry";
    const READS: bool = false;
}

/// Lists the entries of a searchable block, in the order of their keys.
///
/// `cursor` is where the last page ended; it is `null` on the last page.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct ListEntries {
    pub label: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Default: `50`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// The session that the block belongs to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Only entries with this metadata and these tags. A request reads 1,000 entries: a
    /// page may have fewer than `limit`, or none, and still have a `cursor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#where: Option<Filter>,
}

impl ListEntries {
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
    ListEntries:
    cursor: impl Into<String>;
    limit: i64;
    session_id: impl Into<String>;
    r#where: Filter;
}

impl Operation for ListEntries {
    type Output = EntryPage;
    const NAME: &'static str = "listEntries";
    const READS: bool = true;
}

/// Shows an entry of a searchable block, or `null`.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetEntry {
    pub label: String,
    pub key: String,
    /// The session that the block belongs to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
}

impl GetEntry {
    #[must_use]
    pub fn new(label: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            label: label.into(),
            key: key.into(),
            session_id: None,
        }
    }
}

setters! {
    GetEntry:
    session_id: impl Into<String>;
}

impl Operation for GetEntry {
    type Output = Option<EntryDetails>;
    const NAME: &'static str = "getEntry";
    const READS: bool = true;
}

/// Searches the entries of searchable blocks, best first.
///
/// Words, their forms, "phrases" and prefixes* match as in `search`. With an `EMBEDDING_MODEL`,
/// entries of similar meaning are found, too. The results are what is true now, or at the time
/// `asOf`. With several `labels`, the results are merged into one ranking, and each result has its
/// block.
///
/// A token for one session can run it on that session only.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct SearchContext {
    /// Searches what was true at this time. Default: now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<i64>,
    /// The block to search. Set this, `labels`, or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Several blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// Default: `10`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Several queries: each is searched separately, and the results are merged into one
    /// ranking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<Vec<String>>,
    /// The words to search for. Set this or `queries`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The session that the block belongs to. Default: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Only entries with this metadata and these tags, at the time that is searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r#where: Option<Filter>,
}

impl SearchContext {
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    SearchContext:
    as_of: i64;
    label: impl Into<String>;
    labels: Vec<String>;
    limit: i64;
    queries: Vec<String>;
    query: impl Into<String>;
    session_id: impl Into<String>;
    r#where: Filter;
}

impl Operation for SearchContext {
    type Output = FoundEntries;
    const NAME: &'static str = "searchContext";
    const READS: bool = true;
}

/// The time range in which a fact is true. Times are in milliseconds since the epoch.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub key: String,
    pub title: Option<String>,
    pub content: String,
    pub created_at: i64,
    pub updated_at: i64,
    /// The source of the text.
    pub source: Origin,
    /// The ids of the events that the text comes from.
    /// Default: `[]`.
    pub events: Vec<String>,
    /// The custom data of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_at: Option<i64>,
    /// The key of the fact that replaced this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// The keys of the facts that this one replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The time from which the fact is true, as given by the writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// The time until which it is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
}

/// An entry, and how much of its past is stored.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct EntryDetails {
    pub key: String,
    pub title: Option<String>,
    pub content: String,
    pub created_at: i64,
    pub updated_at: i64,
    /// The source of the text.
    pub source: Origin,
    /// The ids of the events that the text comes from.
    /// Default: `[]`.
    pub events: Vec<String>,
    /// Counts the entry's texts, the first being 1.
    pub version: i64,
    /// The number of its earlier texts that `getBlockVersions` shows.
    pub versions_kept: i64,
    /// The custom data of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_at: Option<i64>,
    /// The key of the fact that replaced this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// The keys of the facts that this one replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The time from which the fact is true, as given by the writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// The time until which it is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
}

/// What `listEntries` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct EntryPage {
    pub entries: Vec<Entry>,
    /// Where the page ended. `null` on the last page.
    pub cursor: Option<String>,
}

/// What `searchContext` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct FoundEntries {
    /// Best first.
    pub results: Vec<FoundEntry>,
    /// Matching facts that are no longer true: they have expired, or another entry replaced
    /// them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub past: Option<Vec<PastEntry>>,
    /// The search was cut short: it reached its limit before reading all matching entries.
    /// To find more, use rarer or fewer words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncated: Option<bool>,
    /// The contribution of vectors to the search, if there is an embedding model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vectors: Option<VectorReport>,
}

/// An entry that a search found.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct FoundEntry {
    pub key: Option<String>,
    pub title: Option<String>,
    pub content: String,
    /// About 240 characters of the content, unchanged.
    pub snippet: String,
    /// Start and end of each matching word in the snippet, in UTF-16 units.
    pub highlights: Vec<[i64; 2]>,
    /// Comparable only with other scores of the same search.
    pub score: f64,
    /// The events that the text comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// The block that the entry is in, if several were searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The custom data of the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// The source of the text. Absent if a service stores the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_at: Option<i64>,
    /// The key of the fact that replaced this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// The keys of the facts that this one replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The time when the text was written. Absent if a service stores the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<i64>,
    /// The time from which the fact is true, as given by the writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// The time until which it is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
}

/// A fact that matches the query and is no longer true.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct PastEntry {
    pub key: String,
    pub title: Option<String>,
    /// The block that the entry is in, if several were searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_at: Option<i64>,
    /// The key of the fact that replaced this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// The keys of the facts that this one replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Vec<String>>,
    /// The time from which the fact is true, as given by the writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// The time until which it is true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
}
