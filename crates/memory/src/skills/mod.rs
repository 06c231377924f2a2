//! Skills: documents of loadable blocks. The prompt lists their keys. A model loads a whole
//! document when it needs it, and unloads the document afterward.

pub mod front_matter;
pub mod listing;
pub mod loaded;
pub mod skill;
pub mod stored;

use crate::json_schema::JsonSchema;
use crate::past::ItemDeleted;
use crate::skills::skill::{Skill, clip_description};
use base::json::json;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::front_matter::FrontMatter;
use self::listing::SkillListing;
use super::Memory;
use super::backends::agent::{self, RemoteBlock};
use super::backends::{bucket, service, source_error};
use super::change_events::ChangeEvent;
use super::definition::Definition;
use super::source::{BlockBackend, check_key};
use super::writer::MemoryWriter;
use crate::content::{MAX_TRIES, too_many_conflicts};
use crate::kind::BlockKind;
use crate::origin::{MarksChange, Origin, quoted_text};
use base::database::{Database, atomically};
use base::error::{Code, Error, Result};
use base::filter::Filter;

/// The most bytes of a document: a longer one would crowd out the conversation.
pub const MAX_SKILL_BYTES: usize = 256 << 10;

/// How long a stored listing of the bucket is used.
const LISTING_MS: i64 = 60_000;

/// A document with its content.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SkillDocument {
    pub key: String,
    pub description: Option<String>,
    pub content: String,
    /// The source of the text, and the time when it was written, if its backend reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Origin>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<i64>,
}

/// A page of documents, as another agent returns it.
#[derive(Deserialize)]
struct RemoteSkillPage {
    skills: Vec<Skill>,
}

pub fn check_loadable(block: &Definition) -> Result<()> {
    if block.kind == BlockKind::Loadable {
        return Ok(());
    }
    Err(Error::invalid(
        "label",
        format!(
            "Block `{}` is {}; only a loadable block has documents.",
            block.label,
            block.kind.name()
        ),
    ))
}

fn check_content(content: &str) -> Result<()> {
    if content.len() > MAX_SKILL_BYTES {
        let message = Error::payload_too_large("The document", MAX_SKILL_BYTES, content.len());
        return Err(message.with_field("content"));
    }
    Ok(())
}

/// The checks for every document, whatever its source.
pub fn check_document(document: &SkillDocument) -> Result<()> {
    check_skill_key(&document.key)?;
    check_content(&document.content)
}

pub fn check_skill_key(key: &str) -> Result<()> {
    check_key(key).map_err(|reason| Error::invalid("key", format!("`key` {reason}.")))
}

pub fn skill_not_found(block: &Definition, key: &str) -> Error {
    let key: String = key.chars().take(200).collect();
    Error::new(
        Code::SkillNotFound,
        format!(
            "Block `{}` has no document `{key}`. `listSkills` lists the existing ones.",
            block.label
        ),
    )
    .with("label", block.label.as_str())
    .with("key", key)
}

/// All documents of a block, in the order of their keys.
pub async fn list(memory: &Memory<'_>, block: &Definition) -> Result<SkillListing> {
    list_filtered(memory, block, None).await
}

/// The documents of a block that pass a filter, in the order of their keys. Documents in the
/// bucket or behind a service have neither metadata nor tags.
pub async fn list_filtered(
    memory: &Memory<'_>,
    block: &Definition,
    filter: Option<&Filter>,
) -> Result<SkillListing> {
    check_loadable(block)?;
    let is_external = match block.backend() {
        BlockBackend::BucketPrefix { .. } | BlockBackend::Service { .. } => true,
        BlockBackend::Object
        | BlockBackend::Bucket { .. }
        | BlockBackend::Agent { .. }
        | BlockBackend::Unresolved { .. } => false,
    };
    if is_external && filter.is_some_and(|filter| !filter.passes_unmarked()) {
        return Ok(SkillListing::Skills(Vec::new()));
    }
    let skills = match block.backend() {
        BlockBackend::BucketPrefix { prefix } => list_bucket(memory, block, prefix).await?,
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
            let mut input = json!({"limit": stored::MAX_SKILLS});
            if let (Some(input), Some(filter)) = (input.as_object_mut(), filter) {
                input.insert("where".to_owned(), filter.to_json());
            }
            let page: Result<RemoteSkillPage> =
                agent::call(memory, block, backend, "listSkills", input).await;
            page?.skills
        }
        BlockBackend::Service { binding } => {
            let answer = service::get(memory, block, binding).await?;
            match answer.skills {
                Some(skills) => read_results(skills),
                None => return Ok(SkillListing::Text(answer.content.unwrap_or_default())),
            }
        }
        BlockBackend::Unresolved { reason } => return Err(source_error(reason)),
        BlockBackend::Object | BlockBackend::Bucket { .. } => {
            stored::load_skills(memory.db, block, filter)?
        }
    };
    Ok(SkillListing::Skills(skills))
}

/// The documents of a block that this object stores.
pub fn list_here(db: &dyn Database, block: &Definition) -> Result<SkillListing> {
    stored::load_skills(db, block, None).map(SkillListing::Skills)
}

fn read_results(skills: Vec<service::ServiceSkill>) -> Vec<Skill> {
    let mut skills: Vec<Skill> = skills
        .into_iter()
        .filter(|skill| check_key(&skill.key).is_ok())
        .map(|skill| Skill {
            key: skill.key,
            description: skill.description.as_deref().map(clip_description),
            ..Skill::default()
        })
        .take(stored::MAX_SKILLS)
        .collect();
    skills.sort_by(|a, b| a.key.cmp(&b.key));
    skills
}

async fn list_bucket(memory: &Memory<'_>, block: &Definition, prefix: &str) -> Result<Vec<Skill>> {
    let now_ms = memory.host.now_ms();
    if let Some(skills) = stored::find_listing(memory.db, block, prefix, now_ms - LISTING_MS)? {
        return Ok(skills);
    }
    let purges = memory.pages.all_purges();
    let skills = bucket::list_documents(memory, prefix).await?;
    // A listing that was requested before a purge may contain deleted documents.
    if memory.pages.all_purges() == purges {
        stored::write_listing(memory.db, block, prefix, &skills, now_ms)?;
    }
    Ok(skills)
}

/// Reads a document with its content.
pub async fn get_document(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
) -> Result<SkillDocument> {
    check_loadable(block)?;
    check_skill_key(key)?;
    let of_unknown = |(content, description)| SkillDocument {
        description,
        content,
        ..SkillDocument::default()
    };
    let found = match block.backend() {
        BlockBackend::BucketPrefix { prefix } => bucket::find_document(memory, prefix, key)
            .await?
            .map(|found| of_unknown((found.content, found.description))),
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
            let input = json!({"key": key});
            Some(agent::call(memory, block, backend, "loadSkill", input).await?)
        }
        BlockBackend::Service { binding } => service::load(memory, block, binding, key)
            .await?
            .map(|document| of_unknown((document.content, document.description))),
        BlockBackend::Unresolved { reason } => return Err(source_error(reason)),
        BlockBackend::Object | BlockBackend::Bucket { .. } => {
            stored::find_skill(memory.db, block, key)?
        }
    };
    let found = found.ok_or_else(|| skill_not_found(block, key))?;
    check_content(&found.content)?;
    let own = || FrontMatter::read(&found.content).description;
    let description = found.description.clone().or_else(own);
    Ok(SkillDocument {
        key: key.to_owned(),
        description: description.as_deref().map(clip_description),
        ..found
    })
}

/// A document to write.
#[derive(Clone, Default)]
pub struct SkillText<'a> {
    pub key: &'a str,
    pub content: &'a str,
    /// Default: the description in the front matter.
    pub description: Option<&'a str>,
    pub marks: MarksChange,
}

/// Writes a document.
pub async fn put(
    memory: &Memory<'_>,
    block: &Definition,
    text: &SkillText<'_>,
    writer: MemoryWriter<'_>,
) -> Result<Skill> {
    let SkillText {
        key,
        content,
        description,
        marks,
    } = text;
    check_loadable(block)?;
    check_skill_key(key)?;
    check_content(content)?;
    let own = FrontMatter::read(content).description;
    let description = description.map(clip_description);
    let skill = Skill {
        key: (*key).to_owned(),
        description: description
            .clone()
            .or_else(|| own.as_deref().map(clip_description)),
        bytes: Some(content.len() as i64),
        updated_at: Some(memory.host.now_ms()),
        ..Skill::default()
    };
    match block.backend() {
        BlockBackend::BucketPrefix { prefix } => {
            check_unmarked(block, marks)?;
            let content = carried(memory, content, writer);
            let found = bucket::find_object_key(memory, prefix, key).await?;
            let object_key = found.unwrap_or_else(|| format!("{prefix}{key}"));
            bucket::put_text(memory, &object_key, &content, description.as_deref()).await?;
            record_accepted_change(
                memory,
                &ChangeEvent::of_item(block, key, None),
                block,
                writer,
            )?;
        }
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
            let fields = [
                ("key", (*key).into()),
                ("content", (*content).into()),
                ("description", description.into()),
            ];
            let mut input = Map::new();
            for (name, value) in fields
                .into_iter()
                .chain(marks.fields())
                .chain(writer.fields())
            {
                input.insert(name.to_owned(), value);
            }
            return agent::call(memory, block, backend, "putSkill", input.into()).await;
        }
        BlockBackend::Service { binding } => {
            let content = carried(memory, content, writer);
            let fields: [(&str, Value); 3] = [
                ("key", (*key).into()),
                ("content", content.into()),
                ("description", description.into()),
            ];
            let fields = [fields.to_vec(), marks.fields(), writer.fields()].concat();
            service::set(memory, block, binding, &fields).await?;
            ChangeEvent::of_item(block, key, None).notify(memory, writer)?;
        }
        BlockBackend::Unresolved { reason } => return Err(source_error(reason)),
        BlockBackend::Object | BlockBackend::Bucket { .. } => {
            return stored::write_skill(memory, block, skill, content, marks, writer);
        }
    }
    Ok(skill)
}

/// The text that a model writes to a backend which stores no source: if the text comes from a tool
/// or a file, it is quoted.
fn carried(memory: &Memory<'_>, content: &str, writer: MemoryWriter<'_>) -> String {
    let origin = writer.origin();
    if writer.is_tool && origin.is_quoted() {
        quoted_text(origin, Some(memory.host.now_ms()), content)
    } else {
        content.to_owned()
    }
}

/// Rejects metadata and tags of a document in the bucket, which can't store them.
fn check_unmarked(block: &Definition, marks: &MarksChange) -> Result<()> {
    let marks = marks.apply(None);
    let field = match (&marks.metadata, marks.tags.is_empty()) {
        (Some(_), _) => "metadata",
        (None, false) => "tags",
        (None, true) => return Ok(()),
    };
    Err(Error::invalid(
        field,
        format!(
            "The documents of `{}` are stored in a bucket, which can't store `{field}`. Write it in \
             the document's text.",
            block.label
        ),
    ))
}

/// A text to append to a document.
pub struct Addition<'a> {
    pub key: &'a str,
    /// Begins on a new line.
    pub content: &'a str,
    /// Replaces the document's description.
    pub description: Option<&'a str>,
    /// The description if there is no other.
    pub title: Option<&'a str>,
    pub marks: MarksChange,
}

impl Addition<'_> {
    /// The document's text and description after adding to `before`.
    fn after(&self, before: Option<(&str, Option<&str>)>) -> (String, Option<String>) {
        let (text, described) = match before {
            Some((text, described)) => {
                let own = || FrontMatter::read(text).description;
                (text, described.map(str::to_owned).or_else(own))
            }
            None => ("", None),
        };
        let content = match text {
            "" => self.content.to_owned(),
            text => format!("{text}\n{}", self.content),
        };
        let given = self.description.map(str::to_owned);
        let description = given.or(described).or(self.title.map(str::to_owned));
        (content, description.as_deref().map(clip_description))
    }
}

/// Appends to a document, or creates it, in this object or in the bucket. Other backends accept
/// only whole documents. Nothing that other writers store in the meantime is lost.
pub async fn append(
    memory: &Memory<'_>,
    block: &Definition,
    added: &Addition<'_>,
    writer: MemoryWriter<'_>,
) -> Result<()> {
    check_loadable(block)?;
    check_skill_key(added.key)?;
    match block.backend() {
        BlockBackend::BucketPrefix { prefix } => {
            check_unmarked(block, &added.marks)?;
            let content = carried(memory, added.content, writer);
            let added = Addition {
                content: &content,
                marks: added.marks.clone(),
                ..*added
            };
            append_in_bucket(memory, block, prefix, &added, writer).await
        }
        BlockBackend::Object | BlockBackend::Bucket { .. } => atomically(memory.db, || {
            let before = stored::find_skill(memory.db, block, added.key)?;
            let text = before.as_ref().map(|document| {
                let described = document.description.as_deref();
                (document.content.as_str(), described)
            });
            let (content, description) = added.after(text);
            // An addition does not make somebody else's text the writer's.
            let source_before = before.and_then(|document| document.source);
            let writer = MemoryWriter {
                source: match source_before.filter(|source_before| source_before.is_quoted()) {
                    Some(source_before) => Some(source_before.or_less_trusted(writer.origin())),
                    None => writer.source,
                },
                ..writer
            };
            check_content(&content)?;
            let skill = Skill {
                key: added.key.to_owned(),
                description,
                bytes: Some(content.len() as i64),
                updated_at: Some(memory.host.now_ms()),
                ..Skill::default()
            };
            stored::write_skill(memory, block, skill, &content, &added.marks, writer).map(drop)
        }),
        BlockBackend::Unresolved { reason } => Err(source_error(reason)),
        BlockBackend::Agent { .. } | BlockBackend::Service { .. } => Err(Error::invalid(
            "label",
            format!(
                "The documents of `{}` are stored elsewhere and can't be appended to: write the \
                 whole text.",
                block.label
            ),
        )),
    }
}

async fn append_in_bucket(
    memory: &Memory<'_>,
    block: &Definition,
    prefix: &str,
    added: &Addition<'_>,
    writer: MemoryWriter<'_>,
) -> Result<()> {
    let whole_key = format!("{prefix}{}", added.key);
    let _writing = bucket::begin_put(memory, &whole_key, added.content).await?;
    for _ in 0..MAX_TRIES {
        let found = bucket::find_document(memory, prefix, added.key).await?;
        let before = found.as_ref();
        let (content, description) =
            added.after(before.map(|found| (found.content.as_str(), found.description.as_deref())));
        check_content(&content)?;
        let object_key = before.map_or(whole_key.as_str(), |found| found.object_key.as_str());
        let etag = before.map(|found| found.etag.as_str());
        let description = description.as_deref();
        if bucket::replace_text(memory, object_key, etag, &content, description).await? {
            let change = ChangeEvent::of_item(block, added.key, None);
            return record_accepted_change(memory, &change, block, writer);
        }
    }
    Err(too_many_conflicts(block))
}

/// Records a change that the bucket has accepted.
fn record_accepted_change(
    memory: &Memory<'_>,
    change: &ChangeEvent,
    block: &Definition,
    writer: MemoryWriter<'_>,
) -> Result<()> {
    atomically(memory.db, || {
        stored::forget_listing(memory.db, block)?;
        change.notify(memory, writer)
    })
}

/// Deletes a document.
pub async fn delete(
    memory: &Memory<'_>,
    block: &Definition,
    key: &str,
    writer: MemoryWriter<'_>,
) -> Result<ItemDeleted> {
    check_loadable(block)?;
    check_skill_key(key)?;
    match block.backend() {
        BlockBackend::BucketPrefix { prefix } => {
            let Some(found) = bucket::find_document(memory, prefix, key).await? else {
                return Ok(ItemDeleted::default());
            };
            bucket::delete_document(memory, &found.object_key).await?;
            let change = ChangeEvent::of_deletion(block, key, None);
            record_accepted_change(memory, &change, block, writer)?;
            Ok(ItemDeleted::WITHOUT_TRACE)
        }
        BlockBackend::Agent { name, label } => {
            let backend = RemoteBlock { name, label };
            agent::delete(memory, block, backend, "deleteSkill", key).await
        }
        BlockBackend::Service { binding } => Err(Error::invalid(
            "label",
            format!(
                "The documents of `{}` are stored by the service `{binding}`: delete them there.",
                block.label
            ),
        )),
        BlockBackend::Unresolved { reason } => Err(source_error(reason)),
        BlockBackend::Object | BlockBackend::Bucket { .. } => {
            stored::delete_skill(memory, block, key, writer)
        }
    }
}
