//! A block as it is shown: its definition and what it holds, fetched from
//! wherever it lives.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Memory;
use super::content::find_newest;
use super::definition::{Definition, WhenChanged};
use super::homes::agent::{self, Elsewhere};
use super::homes::{bucket, find_unavailable, service, why_away};
use super::source::{Home, Source};
use super::{entries, skills};
use crate::base::error::{Error, Result};
use crate::base::tokens;
use crate::memory::kind::Kind;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Block {
    pub label: String,
    pub kind: Kind,
    pub description: Option<String>,
    pub max_tokens: Option<i64>,
    /// What stands in the prompt: of a searchable block how many entries it has,
    /// of a loadable one the listing of its documents.
    pub content: String,
    /// Of the content, estimated.
    pub tokens: i64,
    /// Counts the writes of its text; 0: never written.
    pub version: i64,
    #[cfg_attr(test, schemars(extend("enum" = ["agent", "session"])))]
    pub scope: String,
    /// `null`: it lives in this agent.
    pub source: Option<Source>,
    pub when_changed: WhenChanged,
    /// Whether the model may write it with its tools.
    #[serde(default)]
    pub model_writes: bool,
    /// `null`: it is deployed with the Worker and was never written.
    pub updated_at: Option<i64>,
    /// Why there is no content: its home gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
}

/// What a block holds.
pub struct Held {
    pub content: String,
    pub version: i64,
    pub updated_at: Option<i64>,
    pub unavailable: Option<String>,
}

impl Held {
    fn text(content: String) -> Self {
        Self {
            content,
            version: 0,
            updated_at: None,
            unavailable: None,
        }
    }

    pub fn away(reason: String) -> Self {
        Self {
            unavailable: Some(reason),
            ..Self::text(String::new())
        }
    }
}

impl Block {
    pub fn new(definition: &Definition, held: Held) -> Self {
        Self {
            label: definition.label.as_str().to_owned(),
            kind: definition.kind,
            description: definition.description.clone(),
            max_tokens: definition.max_tokens,
            tokens: tokens::estimate(&held.content),
            content: held.content,
            version: held.version,
            scope: if definition.is_sessions() {
                "session"
            } else {
                "agent"
            }
            .to_owned(),
            source: definition.source.clone(),
            when_changed: definition.when_changed,
            model_writes: definition.model_may_write(),
            updated_at: held.updated_at.max(definition.defined_at),
            unavailable: held.unavailable,
        }
    }
}

/// The block. A home that is away is said so in it; one that isn't configured
/// is an error.
pub async fn read(memory: &Memory<'_>, block: &Definition) -> Result<Block> {
    let held = match hold(memory, block).await {
        Err(error) => match find_unavailable(&error) {
            Some(reason) => Held::away(reason.to_owned()),
            None => return Err(error),
        },
        held => held?,
    };
    Ok(Block::new(block, held))
}

/// As [`read`], where no home may fail the whole: only this object's storage can.
pub async fn read_or_omit(memory: &Memory<'_>, block: &Definition) -> Result<Block> {
    let held = match hold(memory, block).await {
        Err(error) => Held::away(why_omitted(error)?),
        held => held?,
    };
    Ok(Block::new(block, held))
}

fn why_omitted(error: Error) -> Result<String> {
    match why_away(&error) {
        Some(reason) => Ok(reason),
        None if error.code.status() < 500 => Ok(error.message),
        None => Err(error),
    }
}

async fn hold(memory: &Memory<'_>, block: &Definition) -> Result<Held> {
    match block.home() {
        Home::Object => hold_here(memory, block),
        Home::Agent { name, label } => {
            let home = Elsewhere { name, label };
            hold_elsewhere(memory, block, home).await
        }
        Home::Bucket { key } => {
            let content = match bucket::get_text(memory, key).await? {
                Some(stored) => stored.content,
                None => block.default_content().to_owned(),
            };
            Ok(Held {
                content,
                ..newest_of(memory, block)?
            })
        }
        Home::Service { binding } if block.kind != Kind::Loadable => {
            let told = service::get(memory, block, binding).await?;
            let content = told
                .content
                .unwrap_or_else(|| block.default_content().to_owned());
            Ok(Held {
                content,
                ..newest_of(memory, block)?
            })
        }
        Home::Service { .. } | Home::BucketPrefix { .. } => {
            let listing = skills::list(memory, block).await?;
            Ok(Held::text(introduced(block, &listing.render())))
        }
    }
}

/// What a block holds that lives in this object.
pub fn hold_here(memory: &Memory<'_>, block: &Definition) -> Result<Held> {
    match block.kind {
        Kind::Readonly | Kind::Writable => newest_of(memory, block),
        Kind::Searchable => {
            let count = entries::count(memory.db, block)?;
            let noun = if count == 1 { "entry" } else { "entries" };
            let summary = format!("{count} {noun} indexed.");
            Ok(Held::text(introduced(block, &summary)))
        }
        Kind::Loadable => {
            let listing = skills::list_here(memory.db, block)?;
            Ok(Held::text(introduced(block, &listing.render())))
        }
    }
}

/// A summary of what a block holds, after what its definition says of it.
fn introduced(block: &Definition, summary: &str) -> String {
    match block.default_content() {
        "" => summary.to_owned(),
        introduction => format!("{introduction}\n{summary}"),
    }
}

/// The newest version that was written here, or the default content.
pub fn newest_of(memory: &Memory<'_>, block: &Definition) -> Result<Held> {
    Ok(match find_newest(memory.db, block)? {
        Some(newest) => Held {
            content: newest.content,
            version: newest.version,
            updated_at: Some(newest.written_at),
            unavailable: None,
        },
        None => Held::text(block.default_content().to_owned()),
    })
}

async fn hold_elsewhere(
    memory: &Memory<'_>,
    block: &Definition,
    home: Elsewhere<'_>,
) -> Result<Held> {
    let found: Option<Block> = agent::call(memory, block, home, "getBlock", json!({})).await?;
    let Some(found) = found else {
        // It is made there by the first write.
        return Ok(match block.kind {
            Kind::Readonly | Kind::Writable => Held::text(block.default_content().to_owned()),
            Kind::Searchable => Held::text("0 entries indexed.".to_owned()),
            Kind::Loadable => Held::text(skills::Listing::Skills(Vec::new()).render()),
        });
    };
    Ok(Held {
        content: found.content,
        version: found.version,
        updated_at: found.updated_at,
        unavailable: found
            .unavailable
            .map(|reason| format!("Agent `{}`: {reason}", home.name)),
    })
}
