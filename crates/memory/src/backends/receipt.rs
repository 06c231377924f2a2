//! What a block's external source answers to a deletion. The receipt of a purge includes it.

use serde::{Deserialize, Serialize};

use super::agent::{self, RemoteBlock};
use super::service;
use crate::Memory;
use crate::definition::Definition;
use crate::json_schema::JsonSchema;
use base::error::Result;
use base::json::json;
use store::erased::Erased;

/// The answer of a block's external source to a deletion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackendReceipt {
    pub kind: BackendKind,
    /// The agent's name, the service's binding, or the object's key in the bucket.
    pub name: String,
    /// `false`: the source had no such text, or is a service without deletion.
    pub deleted: bool,
    /// The counts of what the other agent erased.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased: Option<Erased>,
    /// The digest of the other agent's receipt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum BackendKind {
    Agent,
    Bucket,
    Service,
}

/// Another agent's answer to a deletion that purges.
#[derive(Deserialize)]
struct RemotePurge {
    deleted: bool,
    erased: Option<Erased>,
    digest: Option<String>,
}

impl BackendReceipt {
    pub fn of(kind: BackendKind, name: &str, deleted: bool) -> Self {
        Self {
            kind,
            name: name.to_owned(),
            deleted,
            erased: None,
            digest: None,
        }
    }
}

/// Deletes an item of a block that is in another agent.
pub async fn ask_agent(
    memory: &Memory<'_>,
    block: &Definition,
    home: RemoteBlock<'_>,
    operation: &str,
    key: &str,
) -> Result<BackendReceipt> {
    let name = home.name;
    let input = json!({"key": key, "purge": true});
    let answer: RemotePurge = agent::call(memory, block, home, operation, input).await?;
    Ok(BackendReceipt {
        erased: answer.erased,
        digest: answer.digest,
        ..BackendReceipt::of(BackendKind::Agent, name, answer.deleted)
    })
}

/// Deletes an item of a block that a service has.
pub async fn ask_service(
    memory: &Memory<'_>,
    block: &Definition,
    binding: &str,
    key: &str,
) -> Result<BackendReceipt> {
    let deleted = service::delete(memory, block, binding, key).await?;
    Ok(BackendReceipt::of(BackendKind::Service, binding, deleted))
}
