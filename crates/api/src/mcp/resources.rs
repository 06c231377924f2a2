//! MCP resources: memory blocks, the documents of loadable blocks, and the resources of a
//! class that extends this one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::exchange::Exchange;
use super::message::{Request, RpcError};
use super::offered::{self, OfferedResource, OfferedTemplate};
use super::outcome::Outcome;
use super::page::{Listed, cut};
use super::revision::Revision;
use super::scope::{RESOURCES, Scope};
use super::uri::{self, Address};
use base::error::{Code, Error};
use base::ids::Id;
use base::json::{self, Tree, json};
use base::quoted::{Untrusted, quote};
use context::tools::recalled::shown_document;
use memory::backends::TIMEOUT_MS;
use memory::kind::BlockKind;
use memory::label::Label;
use memory::origin::Origin;
use memory::origin::quoted_text;
use memory::skills::SkillDocument;
use memory::skills::skill::Skill;

/// The operation that shows a block. A caller that may run it may learn which blocks exist.
const BLOCKS: &[&str] = &["getBlock"];

/// The operation that lists documents.
const LISTS: &[&str] = &["listSkills"];

/// The error code for a missing resource, in the revisions with a handshake.
const NOT_FOUND: i64 = -32_002;

const BLOCK_TEMPLATE: &str = "memory://block/{label}";
const SKILL_TEMPLATE: &str = "memory://skill/{label}/{key}";

const TEXT: &str = "text/plain";
const MARKDOWN: &str = "text/markdown";

impl Listed for OfferedResource {
    fn list_key(&self) -> &str {
        &self.uri
    }

    fn bytes(&self) -> usize {
        json::encode(self).map_or(0, |text| text.len())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Resources {
    resources: Vec<OfferedResource>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

impl Listed for OfferedTemplate {
    fn list_key(&self) -> &str {
        &self.uri_template
    }

    fn bytes(&self) -> usize {
        json::encode(self).map_or(0, |text| text.len())
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Templates {
    resource_templates: Vec<OfferedTemplate>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A block in the form of `getBlocks` and `getBlock`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownBlock {
    label: Label,
    kind: BlockKind,
    description: Option<String>,
    content: String,
    unavailable: Option<String>,
    #[serde(default)]
    text_source: Option<Origin>,
    #[serde(default)]
    updated_at: Option<i64>,
    /// Whether the definition was imported by a sender who didn't trust the file.
    #[serde(default)]
    imported: bool,
    /// The block's external source; `null`: it is stored in this object.
    source: Tree,
}

/// Lists the resources that the caller's operations can show.
pub async fn list(scope: &Scope<'_>, request: &Request) -> Result<Outcome, RpcError> {
    scope.permit_one(RESOURCES)?;
    let blocks = load_blocks(scope).await?;
    let mut resources = Vec::new();
    for (session_id, block) in &blocks {
        if scope.permit_one_in(BLOCKS, *session_id).is_ok() {
            resources.push(OfferedResource {
                uri: uri::of_block(&block.label),
                name: block.label.as_str().to_owned(),
                title: None,
                description: described(block),
                mime_type: Some(TEXT.to_owned()),
                size: None,
            });
        }
    }
    let host = scope.agent.host;
    let started_ms = host.now_ms();
    for (session_id, block) in blocks {
        let is_late = host.now_ms() - started_ms >= 2 * TIMEOUT_MS;
        if block.kind == BlockKind::Loadable
            && scope.permit_one_in(LISTS, session_id).is_ok()
            // As for a prompt, unavailable backends may cost only a bounded total time.
            && (!is_late || block.source.0.is_null())
        {
            resources.extend(documents_of(scope, session_id, &block.label).await?);
        }
    }
    let (offered, _) = offered::list_resources(scope).await?;
    resources.extend(offered);
    let page = cut(resources, request)?;
    Outcome::list(&Resources {
        resources: page.items,
        next_cursor: page.next_cursor,
    })
}

/// The blocks of which the caller may list something, without their contents, each with its
/// session. A session's block hides the agent's block with the same label.
async fn load_blocks<'a>(
    scope: &'a Scope<'_>,
) -> Result<Vec<(Option<&'a Id>, ShownBlock)>, RpcError> {
    let mut blocks: Vec<(Option<&Id>, ShownBlock)> = Vec::new();
    for session_id in scope.block_scopes() {
        let input = json!({"contents": false});
        let rights = [BLOCKS, LISTS].concat();
        let own: Vec<ShownBlock> = match scope.permit_one_in(&rights, session_id) {
            Ok(()) => {
                scope
                    .ask_for_one(&rights, "getBlocks", session_id, input)
                    .await?
            }
            Err(_) => continue,
        };
        let mut own = own;
        own.retain(|own| {
            let is_same = |(_, block): &(_, ShownBlock)| block.label.key() == own.label.key();
            !own.imported || !blocks.iter().any(is_same)
        });
        blocks.retain(|(_, block)| !own.iter().any(|own| own.label.key() == block.label.key()));
        blocks.extend(own.into_iter().map(|block| (session_id, block)));
    }
    Ok(blocks)
}

#[derive(Deserialize)]
struct DocumentPage {
    skills: Vec<Skill>,
    cursor: Option<String>,
}

/// The documents of one block. An unavailable backend lists none.
async fn documents_of(
    scope: &Scope<'_>,
    session_id: Option<&Id>,
    label: &Label,
) -> Result<Vec<OfferedResource>, Error> {
    let mut documents = Vec::new();
    let mut cursor: Option<String> = None;
    loop {
        let input = json!({"label": label.as_str(), "limit": 1000, "cursor": cursor});
        let page: DocumentPage = match scope.ask("listSkills", session_id, input).await {
            Ok(page) => page,
            Err(error) if matches!(error.code, Code::StorageFailed | Code::CorruptRow) => {
                return Err(error);
            }
            Err(_) => return Ok(Vec::new()),
        };
        documents.extend(page.skills.into_iter().map(|skill| {
            OfferedResource {
                uri: uri::of_skill(label, &skill.key),
                name: skill.key,
                title: None,
                description: (skill.description.as_deref())
                    .map(|description| quote(Untrusted::DocumentDescription, description)),
                mime_type: Some(MARKDOWN.to_owned()),
                size: skill.bytes,
            }
        }));
        cursor = page.cursor;
        if cursor.is_none() {
            return Ok(documents);
        }
    }
}

/// The values of a template variable, the same as in [`list`]. `label` is the block whose
/// documents are requested. `None`: it is not one of these templates.
pub async fn values_of(
    scope: &Scope<'_>,
    template: &str,
    variable: &str,
    label: Option<&str>,
) -> Result<Option<Vec<String>>, RpcError> {
    let is_document = match template {
        BLOCK_TEMPLATE => false,
        SKILL_TEMPLATE => true,
        _ => return Ok(None),
    };
    let may_list =
        |session_id| scope.permit_one_in(if is_document { LISTS } else { BLOCKS }, session_id);
    let mut blocks = load_blocks(scope).await?;
    blocks.retain(|(session_id, block)| {
        may_list(*session_id).is_ok() && (!is_document || block.kind == BlockKind::Loadable)
    });
    let values = match (variable, label) {
        ("label", _) => blocks
            .into_iter()
            .map(|(_, block)| block.label.as_str().to_owned())
            .collect(),
        ("key", Some(label)) if is_document => {
            let of = blocks
                .into_iter()
                .find(|(_, block)| block.label.as_str() == label);
            match of {
                Some((session_id, block)) => {
                    let documents = documents_of(scope, session_id, &block.label).await?;
                    documents.into_iter().map(|found| found.name).collect()
                }
                None => Vec::new(),
            }
        }
        _ => Vec::new(),
    };
    Ok(Some(values))
}

pub async fn list_templates(scope: &Scope<'_>, request: &Request) -> Result<Outcome, RpcError> {
    scope.permit_one(RESOURCES)?;
    let template =
        |address: &str, name: &str, description: &str, mime_type: &str| OfferedTemplate {
            uri_template: address.to_owned(),
            name: name.to_owned(),
            title: None,
            description: Some(description.to_owned()),
            mime_type: Some(mime_type.to_owned()),
        };
    let mut templates = Vec::new();
    if scope.permit_one(BLOCKS).is_ok() {
        let description = "A block of memory, by its label.";
        templates.push(template(BLOCK_TEMPLATE, "block", description, TEXT));
    }
    if scope.may("loadSkill") {
        let description = "A document of a loadable block, by the block's label and its key.";
        templates.push(template(SKILL_TEMPLATE, "skill", description, MARKDOWN));
    }
    let (_, offered) = offered::list_resources(scope).await?;
    templates.extend(offered);
    let page = cut(templates, request)?;
    Outcome::list(&Templates {
        resource_templates: page.items,
        next_cursor: page.next_cursor,
    })
}

pub async fn read(
    scope: &Scope<'_>,
    exchange: &Exchange<'_>,
    request: &Request,
) -> Result<Outcome, RpcError> {
    scope.permit_one(RESOURCES)?;
    let uri = request.text("uri")?;
    if let Some((text, mime_type)) = find(scope, uri).await? {
        let contents: Value = json!([{"uri": uri, "mimeType": mime_type, "text": text}]);
        return Outcome::list(&json!({"contents": contents}));
    }
    let Some(offered) = offered::read(scope, exchange, request, uri).await? else {
        return Err(not_found(exchange.revision, uri));
    };
    Ok(Outcome {
        is_list: !offered.is_question,
        ..offered
    })
}

/// A fingerprint that changes when the resource with this URI changes. `Ok(None)`: there is
/// no such resource.
pub async fn find_fingerprint(
    scope: &Scope<'_>,
    address: &str,
) -> Result<Option<String>, RpcError> {
    match find(scope, address).await? {
        Some((text, _)) => Ok(Some(offered::fingerprint_of(&text))),
        None => offered::find_fingerprint(scope, address).await,
    }
}

/// Finds one of the agent's own resources.
async fn find(scope: &Scope<'_>, address: &str) -> Result<Found, RpcError> {
    match Address::parse(address)? {
        Some(Address::Block(label)) => find_block(scope, &label).await,
        Some(Address::Skill { label, key }) => find_skill(scope, &label, &key).await,
        None => Ok(None),
    }
}

type Found = Option<(String, &'static str)>;

/// The session's block with this label, or else the agent's.
async fn find_block(scope: &Scope<'_>, label: &Label) -> Result<Found, RpcError> {
    let mut found: Option<ShownBlock> = None;
    for session_id in scope.block_scopes().collect::<Vec<_>>().into_iter().rev() {
        let input = json!({"label": label.as_str()});
        let shown: Option<ShownBlock> = scope.ask("getBlock", session_id, input).await?;
        let Some(shown) = shown else {
            continue;
        };
        // An imported block doesn't hide the agent's own.
        let is_over = !shown.imported;
        found = Some(shown);
        if is_over {
            break;
        }
    }
    let Some(block) = found else {
        return Ok(None);
    };
    if let Some(reason) = block.unavailable {
        let message = format!("The block can't be read now: {reason}.");
        return Err(Error::new(Code::NotConfigured, message).into());
    }
    let text = match block.text_source.filter(|source| source.is_quoted()) {
        Some(source) => quoted_text(source, block.updated_at, &block.content),
        None => block.content,
    };
    Ok(Some((text, TEXT)))
}

/// The description, unless it was imported from an untrusted file.
fn described(block: &ShownBlock) -> Option<String> {
    let description = block.description.as_ref().filter(|_| !block.imported);
    description.map(|description| quote(Untrusted::BlockDescription, description))
}

/// Shows a document without loading it into a session's context.
async fn find_skill(scope: &Scope<'_>, label: &Label, key: &str) -> Result<Found, RpcError> {
    let input = json!({"label": label.as_str(), "key": key, "dryRun": true});
    let shown = scope.ask("loadSkill", scope.session_id(), input).await;
    let document: Option<SkillDocument> = or_none(shown)?;
    Ok(document.map(|document| (shown_document(&document), MARKDOWN)))
}

/// The resource, or `None` if it doesn't exist.
fn or_none<T>(found: Result<T, Error>) -> Result<Option<T>, Error> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.code, Code::BlockNotFound | Code::SkillNotFound) => Ok(None),
        Err(error) => Err(error),
    }
}

pub fn not_found(revision: Revision, uri: &str) -> RpcError {
    let uri: String = uri.chars().take(1_000).collect();
    let mut error = RpcError::params(
        "uri",
        "There is no such resource. `resources/list` lists them.",
    );
    if revision == Revision::Handshake {
        error.code = NOT_FOUND;
    }
    error.data = Some(json!({"uri": uri}));
    error
}
