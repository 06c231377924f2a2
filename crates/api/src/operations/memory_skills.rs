//! Operations on the documents of loadable blocks.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::body_with_text;
use crate::operation::{Agent, Operation, Reply, RunAtOnce, RunWaiting};
use crate::operations::receipts::{DeletedItem, admit_purge};
use crate::operations::writers::{with_notifications_of, writer_of};
use access::{Effect, Needs};
use base::budget::{AnswerCapacity, MAX_ANSWER_BYTES};
use base::error::Result;
use base::filter::Filter;
use base::ids::Id;
use base::json::{Limit, list, nullable};
use base::tags::{Metadata, Tags};
use base::tokens;
use context::tools::recalled::shown_document;
use memory::BlockScope;
use memory::definitions::get_definition;
use memory::label::Label;
use memory::origin::{MAX_SOURCE_EVENTS, MarksChange, Origin};
use memory::purge::purge_document;
use memory::skills::skill::Skill;
use memory::skills::{self, delete, get_document, loaded, put};
use memory::skills::{MAX_SKILL_BYTES, SkillText};
use memory::view::{get_in_view, read_for_storage};
use memory::writer::StatedOrigin;

/// Writes a document of a loadable block. A document with the same key is replaced.
///
/// Without `description`, lists show the description in the document's front matter.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PutSkill {
    /// The session that the block belongs to. Default: the agent.
    session_id: Option<Id>,
    label: Label,
    key: String,
    content: String,
    description: Option<String>,
    /// Custom data of the document, for filtering: an object of at most 4 KiB. If omitted,
    /// it is unchanged; `null` removes it.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(with = "Option<Metadata>")]
    metadata: Option<Option<Metadata>>,
    /// At most 32 short lines. If omitted, they are unchanged; `[]` removes them.
    tags: Option<Tags>,
    /// The source of the text. Default: `operator`, or `user` with a minted token. A token
    /// can't set `operator`, and can set `agent` only with `allow.agentMessages`.
    source: Option<Origin>,
    /// The ids of the events that the text comes from.
    #[serde(default, deserialize_with = "list::<_, _, 0, MAX_SOURCE_EVENTS>")]
    #[schemars(length(max = MAX_SOURCE_EVENTS))]
    events: Vec<Id>,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    delivery_id: Option<Id>,
}

impl Operation for PutSkill {
    const NAME: &'static str = "putSkill";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    const MAX_BODY_BYTES: usize = body_with_text(MAX_SKILL_BYTES);
    type Output = Skill;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for PutSkill {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let block = get_definition(&memory, scope, &self.label)?;
        let text = SkillText {
            key: &self.key,
            content: &self.content,
            description: self.description.as_deref(),
            marks: MarksChange {
                metadata: self.metadata,
                tags: self.tags,
            },
        };
        let origin = StatedOrigin {
            source: self.source,
            events: &self.events,
        };
        let writer = origin.writer(agent.caller, self.session_id.as_ref())?;
        let writer = with_notifications_of(agent, writer, self.delivery_id.as_ref());
        Reply::json(&put(&memory, &block, &text, writer).await?)
    }
}

/// Deletes a document of a loadable block. Sessions that have loaded it keep it.
///
/// Its texts stay readable as earlier versions: `versionsKept` is their number, and
/// `versionsUntil` the time until which they stay. With `purge` they are erased, too, and
/// the answer is a receipt.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeleteSkill {
    /// The session that the block belongs to. Default: the agent.
    session_id: Option<Id>,
    label: Label,
    key: String,
    #[serde(default)]
    purge: bool,
    /// The `deliveryId` of the call to `onMemoryChange` that this write answers. The write
    /// causes no further call.
    delivery_id: Option<Id>,
}

impl Operation for DeleteSkill {
    const NAME: &'static str = "deleteSkill";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = DeletedItem;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for DeleteSkill {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let block = get_definition(&memory, scope, &self.label)?;
        if self.purge {
            admit_purge(agent, Self::NAME)?;
            let purged = purge_document(&memory, &block, &self.key).await?;
            return DeletedItem::purged(agent, Self::NAME, purged);
        }
        let writer = writer_of(agent, self.session_id.as_ref(), self.delivery_id.as_ref());
        let until = DeletedItem::find_until(&memory, &block)?;
        let item = delete(&memory, &block, &self.key, writer).await?;
        DeletedItem::deleted(item, until)
    }
}

/// Lists the documents of a loadable block, in the order of their keys.
///
/// `cursor` is where the last page ended; it is `null` on the last page. A bucket's
/// documents are listed again once a minute.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListSkills {
    /// The session that the block belongs to. Default: the agent.
    session_id: Option<Id>,
    label: Label,
    #[serde(default)]
    limit: Limit<100, 1000>,
    cursor: Option<String>,
    /// Only documents with this metadata and these tags.
    #[serde(rename = "where")]
    filter: Option<Filter>,
}

#[derive(Serialize, JsonSchema)]
pub struct SkillPage {
    skills: Vec<Skill>,
    cursor: Option<String>,
}

impl Operation for ListSkills {
    const NAME: &'static str = "listSkills";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    const IS_LONG: bool = true;
    type Output = SkillPage;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for ListSkills {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
        let memory = agent.memory();
        let block = get_definition(&memory, scope, &self.label)?;
        let filter = self.filter.and_then(Filter::unless_empty);
        let listing = skills::list_filtered(&memory, &block, filter.as_ref()).await?;
        let mut skills = listing.into_skills();
        if let Some(cursor) = &self.cursor {
            skills.retain(|skill| skill.key > *cursor);
        }
        let limit = usize::try_from(self.limit.0).unwrap_or(0);
        let mut capacity = AnswerCapacity::of(MAX_ANSWER_BYTES);
        let fitting = skills.iter().take(limit);
        let fitting = fitting.take_while(|skill| capacity.takes(skill.written_bytes()));
        let count = fitting.count();
        let has_more = skills.len() > count;
        skills.truncate(count);
        let cursor = skills.last().filter(|_| has_more);
        let cursor = cursor.map(|last| last.key.clone());
        Reply::json(&SkillPage { skills, cursor })
    }
}

/// Loads a document into a session's context, until it is unloaded.
///
/// Loading a document again has no further effect. Without `sessionId`, the document is
/// only shown.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LoadSkill {
    session_id: Option<Id>,
    /// A block of the session or of the agent.
    label: Label,
    key: String,
    /// Only shows the document, even if `sessionId` is set.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoadedDocument {
    label: String,
    key: String,
    description: Option<String>,
    content: String,
    /// Estimated tokens of the content.
    tokens: i64,
    /// `false`: the document was in the context already, or is only shown.
    loaded: bool,
    /// `tool` or `import`, if the text comes from there. It is then quoted as data in a
    /// session's context.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<Origin>,
    /// The time when such a text was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_at: Option<i64>,
}

impl Operation for LoadSkill {
    const NAME: &'static str = "loadSkill";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = LoadedDocument;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunWaiting for LoadSkill {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let memory = agent.memory();
        let read = async || {
            let scope = BlockScope::get(agent.db, self.session_id.as_ref())?;
            let block = get_in_view(&memory, scope, &self.label)?;
            let document = get_document(&memory, &block, &self.key).await;
            document.map(|document| (block, document))
        };
        let (block, document) = read_for_storage(&memory, read).await?;
        let loaded = match self.session_id.as_ref().filter(|_| !self.dry_run) {
            Some(id) => loaded::load(
                agent.db,
                agent.host,
                id,
                &block.label,
                &document.key,
                &shown_document(&document),
            )?,
            None => false,
        };
        let source = document.source.filter(|source| source.is_quoted());
        Reply::json(&LoadedDocument {
            label: block.label.as_str().to_owned(),
            tokens: tokens::estimate(&document.content),
            key: document.key,
            description: document.description,
            content: document.content,
            loaded,
            updated_at: document.updated_at.filter(|_| source.is_some()),
            source,
        })
    }
}

/// Removes a loaded document from a session's context.
///
/// A copy in the log stays there; the working context shows a note in its place.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UnloadSkill {
    session_id: Id,
    label: Label,
    key: String,
}

#[derive(Serialize, JsonSchema)]
pub struct Unloaded {
    /// `false`: the document was not in the context.
    unloaded: bool,
}

impl Operation for UnloadSkill {
    const NAME: &'static str = "unloadSkill";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Prompts;
    type Output = Unloaded;

    fn session_id(&self) -> Option<&Id> {
        Some(&self.session_id)
    }
}

impl RunAtOnce for UnloadSkill {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        BlockScope::get(agent.db, Some(&self.session_id))?;
        let unloaded = loaded::unload(agent.db, &self.session_id, &self.label, &self.key)?;
        Reply::json(&Unloaded { unloaded })
    }
}
