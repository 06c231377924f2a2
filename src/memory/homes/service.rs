//! A service binding as a home: whoever answers these four POSTs of JSON keeps
//! a block, in any language.
//!
//! | path | asked with | answers |
//! |---|---|---|
//! | `get` | `agent, sessionId, label, kind` | `{content}`, for a loadable block `{skills: [{key, description?}]}` or `{content}` |
//! | `set` | … and `content`, for an entry or a document `key, title?, description?` | anything with status 200 to 299 |
//! | `search` | … and `query, limit` | `{results: [{key?, title?, content}]}` or `{content}` |
//! | `load` | … and `key` | `{content, description?}`, or status 404 |

use serde::Deserialize;
use serde_json::{Map, Value};

use super::{Heard, ask, unavailable};
use crate::error::Result;
use crate::memory::Memory;
use crate::memory::definition::Definition;
use crate::outside::Place;

#[derive(Default, Deserialize)]
pub struct Told {
    pub content: Option<String>,
    pub skills: Option<Vec<ToldSkill>>,
}

#[derive(Deserialize)]
pub struct ToldSkill {
    pub key: String,
    pub description: Option<String>,
}

#[derive(Default, Deserialize)]
pub struct ToldResults {
    pub content: Option<String>,
    pub results: Option<Vec<ToldResult>>,
}

#[derive(Deserialize)]
pub struct ToldResult {
    pub key: Option<String>,
    pub title: Option<String>,
    pub content: String,
    pub score: Option<f64>,
}

#[derive(Deserialize)]
pub struct ToldDocument {
    pub content: String,
    pub description: Option<String>,
}

pub async fn get(memory: &Memory<'_>, block: &Definition, binding: &str) -> Result<Told> {
    let heard = post(memory, block, binding, "get", &[]).await?;
    read(binding, &heard)
}

pub async fn set(
    memory: &Memory<'_>,
    block: &Definition,
    binding: &str,
    fields: &[(&str, Value)],
) -> Result<()> {
    let heard = post(memory, block, binding, "set", fields).await?;
    check_status(binding, &heard)
}

pub async fn search(
    memory: &Memory<'_>,
    block: &Definition,
    binding: &str,
    query: &str,
    limit: i64,
) -> Result<ToldResults> {
    let fields = [("query", query.into()), ("limit", limit.into())];
    let heard = post(memory, block, binding, "search", &fields).await?;
    read(binding, &heard)
}

/// `None`: it has no such document.
pub async fn load(
    memory: &Memory<'_>,
    block: &Definition,
    binding: &str,
    key: &str,
) -> Result<Option<ToldDocument>> {
    let heard = post(memory, block, binding, "load", &[("key", key.into())]).await?;
    if heard.status == 404 {
        return Ok(None);
    }
    read::<Option<ToldDocument>>(binding, &heard)
}

async fn post(
    memory: &Memory<'_>,
    block: &Definition,
    binding: &str,
    path: &str,
    fields: &[(&str, Value)],
) -> Result<Heard> {
    let session_id = block.is_sessions().then_some(block.scope.as_str());
    let mut body = Map::new();
    body.insert("agent".to_owned(), memory.agent.into());
    body.insert("sessionId".to_owned(), session_id.into());
    body.insert("label".to_owned(), block.label.as_str().into());
    body.insert("kind".to_owned(), block.kind.name().into());
    for (name, value) in fields {
        body.insert((*name).to_owned(), value.clone());
    }
    let place = Place::Service {
        binding: binding.to_owned(),
        path: path.to_owned(),
    };
    ask(
        memory,
        &name_of(binding),
        place,
        Vec::new(),
        Value::from(body).to_string(),
    )
    .await
}

fn name_of(binding: &str) -> String {
    format!("Service `{binding}`")
}

fn check_status(binding: &str, heard: &Heard) -> Result<()> {
    match heard.status {
        200..=299 => Ok(()),
        status => Err(unavailable(
            &name_of(binding),
            &format!("it answered with status {status}"),
        )),
    }
}

fn read<'a, T: Deserialize<'a>>(binding: &str, heard: &'a Heard) -> Result<T> {
    check_status(binding, heard)?;
    serde_json::from_str(&heard.body).map_err(|_| {
        unavailable(
            &name_of(binding),
            "its answer is not the JSON that was asked for",
        )
    })
}
