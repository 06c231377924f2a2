//! A service binding as a backend. Any service, in any language, that answers these POST requests
//! with JSON bodies can store a block.
//!
//! Every request has `agent, sessionId, label, kind`. Per path:
//!
//! - `get` answers `{content, version?}`. For a loadable block, `get` answers
//!   `{skills: [{key, description?}]}` or `{content}`.
//! - `set` also has `content, expectedVersion?`. For an entry or a document, `set` also
//!   has `key, title?, description?, metadata?, tags?, source?, events?`; for an entry,
//!   `validFrom?, validUntil?, supersedes?`. The answer is anything with status 200 to 299,
//!   or status 409 if the text has another version.
//! - `search` also has `query, limit, asOf?, where?`. The answer is
//!   `{results: [{key?, title?, content, score?}]}` or `{content}`.
//! - `load` also has `key`. The answer is `{content, description?}`, or status 404.
//! - `delete` also has `key`. It is sent if an entry or a document is purged. The answer is
//!   anything with status 200 to 299, or status 404 if there is no such text. A service that
//!   deletes nothing answers with status 405 or 501.
//!
//! The service chooses `version`, a string or a number, also for a text that doesn't exist yet. A
//! write that is based on a text sends the text's version back as `expectedVersion`. If a service
//! has no versions, only one of this agent's requests writes at a time, and texts that other
//! writers store in the meantime are lost.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{BackendResponse, LIMITS, ask, begin_write, outcome_unknown, unavailable};
use crate::Memory;
use crate::definition::Definition;
use crate::entry_query::EntryQuery;
use base::error::Result;
use base::ids::Id;
use base::json::{self, Tree, json};
use base::outbound::{Endpoint, OWN_CLASS, WriteLock};

#[derive(Default, Deserialize)]
pub struct ServiceAnswer {
    pub content: Option<String>,
    version: Option<Tree>,
    pub skills: Option<Vec<ServiceSkill>>,
}

impl ServiceAnswer {
    /// Identifies the text for [`replace`]. `None`: the service has no versions.
    fn version(&self) -> Option<&Value> {
        let version = self.version.as_ref().map(|Tree(version)| version);
        version.filter(|version| version.is_string() || version.is_number())
    }
}

#[derive(Deserialize)]
pub struct ServiceSkill {
    pub key: String,
    pub description: Option<String>,
}

#[derive(Default, Deserialize)]
pub struct ServiceResults {
    pub content: Option<String>,
    pub results: Option<Vec<ServiceResult>>,
}

#[derive(Deserialize)]
pub struct ServiceResult {
    pub key: Option<String>,
    pub title: Option<String>,
    pub content: String,
    pub score: Option<f64>,
}

#[derive(Deserialize)]
pub struct ServiceDocument {
    pub content: String,
    pub description: Option<String>,
}

pub async fn get(memory: &Memory<'_>, block: &Definition, binding: &str) -> Result<ServiceAnswer> {
    let received = post(memory, block, binding, "get", &[]).await?;
    read(binding, &received)
}

pub async fn set(
    memory: &Memory<'_>,
    block: &Definition,
    binding: &str,
    fields: &[(&str, Value)],
) -> Result<()> {
    let received = post(memory, block, binding, "set", fields).await;
    check_status(binding, &received.map_err(outcome_unknown)?)
}

/// Begins a write to the block's text: see [`begin_write`].
pub async fn begin_set<'a>(
    memory: &Memory<'a>,
    block: &Definition,
    binding: &str,
    content: &str,
) -> Result<WriteLock<'a>> {
    let text_name = json::text(&json!([binding, block.scope, block.label.key()]));
    begin_write(memory, &name_of(binding), &text_name, content.len()).await
}

/// Replaces the text that the service returned before. `false`: another writer changed the text
/// since, and nothing was written.
pub async fn replace(
    memory: &Memory<'_>,
    block: &Definition,
    binding: &str,
    answer: &ServiceAnswer,
    content: &str,
) -> Result<bool> {
    let Some(version) = answer.version() else {
        set(memory, block, binding, &[("content", content.into())]).await?;
        return Ok(true);
    };
    let fields = [
        ("content", content.into()),
        ("expectedVersion", version.clone()),
    ];
    let received = post(memory, block, binding, "set", &fields).await;
    let received = received.map_err(outcome_unknown)?;
    if received.status == 409 {
        return Ok(false);
    }
    check_status(binding, &received)?;
    Ok(true)
}

pub async fn search(
    memory: &Memory<'_>,
    block: &Definition,
    binding: &str,
    query: &str,
    entry_query: &EntryQuery<'_>,
) -> Result<ServiceResults> {
    let mut fields = vec![("query", query.into()), ("limit", entry_query.limit.into())];
    if let Some(as_of) = entry_query.as_of {
        fields.push(("asOf", as_of.into()));
    }
    if let Some(filter) = entry_query.filter {
        fields.push(("where", filter.to_json()));
    }
    let received = post(memory, block, binding, "search", &fields).await?;
    read(binding, &received)
}

/// Loads a document; `None`: the service has no such document.
pub async fn load(
    memory: &Memory<'_>,
    block: &Definition,
    binding: &str,
    key: &str,
) -> Result<Option<ServiceDocument>> {
    let received = post(memory, block, binding, "load", &[("key", key.into())]).await?;
    if received.status == 404 {
        return Ok(None);
    }
    read::<Option<ServiceDocument>>(binding, &received)
}

/// Deletes an entry or a document for good; `false`: the service has no such text, or
/// deletes nothing.
pub async fn delete(
    memory: &Memory<'_>,
    block: &Definition,
    binding: &str,
    key: &str,
) -> Result<bool> {
    let received = post(memory, block, binding, "delete", &[("key", key.into())]).await;
    let received = received.map_err(outcome_unknown)?;
    if matches!(received.status, 404 | 405 | 501) {
        return Ok(false);
    }
    check_status(binding, &received)?;
    Ok(true)
}

async fn post(
    memory: &Memory<'_>,
    block: &Definition,
    binding: &str,
    path: &str,
    fields: &[(&str, Value)],
) -> Result<BackendResponse> {
    // A service may store the texts of each `sessionId` separately. A class's blocks are the
    // agent's, but its functions receive the session whose model makes the request.
    let asking = memory.asking.filter(|_| binding == OWN_CLASS);
    let session_id = if block.is_sessions() {
        Some(block.scope.as_str())
    } else {
        asking.map(Id::as_str)
    };
    let mut body = Map::new();
    body.insert("agent".to_owned(), memory.agent.into());
    body.insert("sessionId".to_owned(), session_id.into());
    body.insert("label".to_owned(), block.label.as_str().into());
    body.insert("kind".to_owned(), block.kind.name().into());
    for (name, value) in fields {
        body.insert((*name).to_owned(), value.clone());
    }
    let endpoint = Endpoint::Service {
        binding: binding.to_owned(),
        path: path.to_owned(),
    };
    ask(
        memory,
        &name_of(binding),
        endpoint,
        Vec::new(),
        json::text(&Value::from(body)),
        LIMITS,
    )
    .await
}

fn name_of(binding: &str) -> String {
    format!("Service `{binding}`")
}

fn check_status(binding: &str, received: &BackendResponse) -> Result<()> {
    match received.status {
        200..=299 => Ok(()),
        status => Err(unavailable(
            &name_of(binding),
            &format!("it returned status {status}"),
        )),
    }
}

fn read<'a, T: Deserialize<'a>>(binding: &str, received: &'a BackendResponse) -> Result<T> {
    check_status(binding, received)?;
    json::decode(&received.body)
        .map_err(|_| unavailable(&name_of(binding), "its answer is not the expected JSON"))
}
