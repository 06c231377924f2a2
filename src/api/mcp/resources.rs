//! Resources: the blocks of memory, and the documents of loadable blocks.

use serde::Serialize;
use serde_json::Value;

use super::message::{Request, RpcError};
use super::outcome::Outcome;
use super::page::{Listed, cut};
use super::revision::Revision;
use super::scope::{RESOURCES, Scope};
use super::uri::{self, Address};
use crate::base::error::{Code, Error};
use crate::base::json::json;
use crate::memory::block::read as read_block;
use crate::memory::definition::Definition;
use crate::memory::homes::PATIENCE_MS;
use crate::memory::kind::BlockKind;
use crate::memory::label::Label;
use crate::memory::skills::{get_document, list as list_skills};
use crate::memory::view::{get_in_view, load_view};
use crate::memory::{BlockScope, Memory};

/// The operations that show a block.
const BLOCKS: &[&str] = &["getBlock", "getBlocks"];

/// The code for a resource that is not there, in the revisions with a handshake.
const NOT_FOUND: i64 = -32_002;

const TEXT: &str = "text/plain";
const MARKDOWN: &str = "text/markdown";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    uri: String,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    mime_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<i64>,
}

impl Listed for Resource {
    fn place(&self) -> &str {
        &self.uri
    }

    fn bytes(&self) -> usize {
        let description = self.description.as_ref().map_or(0, String::len);
        self.uri.len() + self.name.len() + description
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resources {
    resources: Vec<Resource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// Lists what the caller's operations show.
pub async fn list(scope: &Scope<'_>, request: &Request) -> Result<Outcome, RpcError> {
    scope.permit_one(RESOURCES)?;
    let memory = scope.agent.memory();
    let view = BlockScope::get(scope.agent.db, scope.session_id())?;
    let blocks = load_view(&memory, view)?;
    let mut resources = Vec::new();
    if scope.permit_one(BLOCKS).is_ok() {
        resources.extend(blocks.iter().map(|block| Resource {
            uri: uri::of_block(&block.label),
            name: block.label.as_str().to_owned(),
            description: block.description.clone(),
            mime_type: TEXT,
            size: None,
        }));
    }
    if scope.may("listSkills") {
        let begun_ms = memory.host.now_ms();
        for block in blocks
            .iter()
            .filter(|block| block.kind == BlockKind::Loadable)
        {
            // As for a prompt: homes that are away cost a bounded time together.
            let is_late = memory.host.now_ms() - begun_ms >= 2 * PATIENCE_MS;
            if !is_late || block.home().is_this_object() {
                resources.extend(documents_of(&memory, block).await?);
            }
        }
    }
    let page = cut(resources, request)?;
    Outcome::list(&Resources {
        resources: page.items,
        next_cursor: page.next_cursor,
    })
}

/// The documents of one block. A home that is away lists none.
async fn documents_of(memory: &Memory<'_>, block: &Definition) -> Result<Vec<Resource>, Error> {
    let skills = match list_skills(memory, block).await {
        Ok(listing) => listing.into_skills(),
        Err(error) if matches!(error.code, Code::StorageFailed | Code::CorruptRow) => {
            return Err(error);
        }
        Err(_) => Vec::new(),
    };
    let resource = |skill: crate::memory::skills::skill::Skill| Resource {
        uri: uri::of_skill(&block.label, &skill.key),
        name: skill.key,
        description: skill.description,
        mime_type: MARKDOWN,
        size: skill.bytes,
    };
    Ok(skills.into_iter().map(resource).collect())
}

pub fn list_templates(scope: &Scope<'_>, _: &Request) -> Result<Outcome, RpcError> {
    scope.permit_one(RESOURCES)?;
    let mut templates = Vec::new();
    if scope.permit_one(BLOCKS).is_ok() {
        templates.push(json!({
            "uriTemplate": format!("{}{{label}}", uri::BLOCK),
            "name": "block",
            "description": "A block of memory, by its label.",
            "mimeType": TEXT,
        }));
    }
    if scope.may("loadSkill") {
        templates.push(json!({
            "uriTemplate": format!("{}{{label}}/{{key}}", uri::SKILL),
            "name": "skill",
            "description": "A document of a loadable block, by the block's label and its key.",
            "mimeType": MARKDOWN,
        }));
    }
    Outcome::list(&json!({"resourceTemplates": templates}))
}

pub async fn read(
    scope: &Scope<'_>,
    revision: Revision,
    request: &Request,
) -> Result<Outcome, RpcError> {
    scope.permit_one(RESOURCES)?;
    let asked = request.text("uri")?;
    let found = match Address::parse(asked)? {
        Some(Address::Block(label)) => {
            scope.permit_one(BLOCKS)?;
            find_block(scope, &label).await?
        }
        Some(Address::Skill { label, key }) => {
            scope.permit("loadSkill")?;
            find_skill(scope, &label, &key).await?
        }
        None => None,
    };
    let Some((text, mime_type)) = found else {
        return Err(not_found(revision, asked));
    };
    let contents: Value = json!([{"uri": asked, "mimeType": mime_type, "text": text}]);
    Outcome::list(&json!({"contents": contents}))
}

type Found = Option<(String, &'static str)>;

async fn find_block(scope: &Scope<'_>, label: &Label) -> Result<Found, RpcError> {
    let memory = scope.agent.memory();
    let view = BlockScope::get(scope.agent.db, scope.session_id())?;
    let Some(block) = or_none(get_in_view(&memory, view, label))? else {
        return Ok(None);
    };
    let block = read_block(&memory, &block).await?;
    if let Some(reason) = block.unavailable {
        let message = format!("The block can't be read now: {reason}.");
        return Err(Error::new(Code::NotConfigured, message).into());
    }
    Ok(Some((block.content, TEXT)))
}

/// Shows a document, and loads it into no session's context.
async fn find_skill(scope: &Scope<'_>, label: &Label, key: &str) -> Result<Found, RpcError> {
    let memory = scope.agent.memory();
    let view = BlockScope::get(scope.agent.db, scope.session_id())?;
    let Some(block) = or_none(get_in_view(&memory, view, label))? else {
        return Ok(None);
    };
    let document = or_none(get_document(&memory, &block, key).await)?;
    Ok(document.map(|document| (document.content, MARKDOWN)))
}

/// What was found; `None` if it is not there.
fn or_none<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.code, Code::BlockNotFound | Code::SkillNotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

fn not_found(revision: Revision, asked: &str) -> RpcError {
    let asked: String = asked.chars().take(1_000).collect();
    let mut error = RpcError::params(
        "uri",
        "There is no such resource. `resources/list` lists them.",
    );
    if revision == Revision::Handshake {
        error.code = NOT_FOUND;
    }
    error.data = Some(json!({"uri": asked}));
    error
}
