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
/// A token that is narrowed to a session runs it on that session. A minted token runs it only if it
/// names it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct SetEntry {
    pub label: String,
    pub key: String,
    pub content: String,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers: it starts no
    /// further call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    /// The ids of the events that the text comes from.
    /// Default: `[]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// Data that you write on the entry to find it again: an object of at most 4 KiB. Left out: it
    /// stays as it is; `null`: it goes.
    /// `Some(None)` sends `null`.
    #[serde(
        default,
        deserialize_with = "crate::operation::nullable",
        skip_serializing_if = "Option::is_none"
    )]
    pub metadata: Option<Option<Object>>,
    /// The session that the block belongs to. Left out: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The source of the text. Left out: `operator`, or `user` with a minted token. A token may not
    /// say `operator`, and says `agent` only with `allow.agentMessages`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
    /// The keys of the entries that this one replaces. A search finds those only in the
    /// past.
    /// Default: `[]`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<Vec<String>>,
    /// At most 32 short lines. Left out: they stay as they are; `[]`: they go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// One line, searched with the content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Since when the fact holds. Left out: since it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// Until when the fact holds. Left out: until another one replaces it.
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

/// Deletes an entry of a searchable block. An entry that it replaced holds again, unless another
/// entry replaced that one, too.
///
/// Its texts stay readable as earlier versions: `versionsKept` says how many, and `versionsUntil`
/// until when. With `purge` they go, too, and the answer is a receipt.
///
/// A token that is narrowed to a session runs it on that session. A minted token runs it only if it
/// names it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct DeleteEntry {
    pub label: String,
    pub key: String,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers: it starts no
    /// further call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_id: Option<String>,
    /// Default: `false`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub purge: Option<bool>,
    /// The session that the block belongs to. Left out: the agent.
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
/// A token that is narrowed to a session runs it on that session.
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
    /// The session that the block belongs to. Left out: the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Only entries with this metadata and these tags. A request looks at 1,000 entries: a
    /// page may show fewer than `limit`, or none, and have a `cursor`.
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
/// A token that is narrowed to a session runs it on that session.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct GetEntry {
    pub label: String,
    pub key: String,
    /// The session that the block belongs to. Left out: the agent.
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
/// Words, their forms, "phrases" and beginnings* match as they do in `search`. With an
/// `EMBEDDING_MODEL`, entries of similar meaning are found, too. The answer is what holds now, or
/// at the time `asOf`. Several `labels` make one ranking, in which each result names its block.
///
/// A token that is narrowed to a session runs it on that session.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct SearchContext {
    /// A time: what held then is searched. Left out: now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub as_of: Option<i64>,
    /// The block to search. Give this or `labels`, or both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Several blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<Vec<String>>,
    /// Default: `10`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<i64>,
    /// Several questions: each is looked for by itself, and the results make one ranking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<Vec<String>>,
    /// The words to look for. Give this or `queries`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query: Option<String>,
    /// The session that the block belongs to. Left out: the agent.
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

/// The span of time in which a fact holds. Times are in milliseconds since the epoch.
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
    /// The data that callers wrote on the entry.
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
    /// Since when the fact holds, as the writer said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// Until when it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
}

/// An entry, and how much of its past is kept.
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
    /// The data that callers wrote on the entry.
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
    /// Since when the fact holds, as the writer said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// Until when it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
}

/// What `listEntries` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct EntryPage {
    pub entries: Vec<Entry>,
    /// The place where the page ended. `null` on the last page.
    pub cursor: Option<String>,
}

/// What `searchContext` answers.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[non_exhaustive]
#[serde(rename_all = "camelCase")]
pub struct FoundEntries {
    /// Best first.
    pub results: Vec<FoundEntry>,
    /// Facts that match and hold no longer: their time is over, or another entry replaced them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub past: Option<Vec<PastEntry>>,
    /// The search was cut short: the work of one search is bounded, and some entries that match
    /// were not looked at. Rarer words, or fewer of them, find more.
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
    /// Start and end of each found word in the snippet, in UTF-16 units, as
    /// JavaScript counts.
    pub highlights: Vec<[i64; 2]>,
    /// Comparable only with other scores of the same search.
    pub score: f64,
    /// The events that the text comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<Vec<String>>,
    /// The block that the entry is in, if several were searched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The data that callers wrote on the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Object>,
    /// The source of the text. Absent: a service keeps the entry.
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
    /// The time when the text was written. Absent: a service keeps the entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<i64>,
    /// Since when the fact holds, as the writer said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// Until when it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
}

/// A fact that matches the query and holds no longer.
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
    /// Since when the fact holds, as the writer said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<i64>,
    /// Until when it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<i64>,
}
