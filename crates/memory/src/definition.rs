//! The definition of a block: its kind, its budget and its backend. Definitions from
//! operations and from the configuration are parsed and checked here.

use crate::json_schema::JsonSchema;
use crate::kind::BlockKind;
use serde::{Deserialize, Deserializer, Serialize};

use super::label::Label;
use super::origin::Origin;
use super::source::{BlockBackend, BlockLocation, BlockSource};
use crate::budget::{check_budget, check_content};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::bounded;
use base::tags::{Metadata, Tags};
use store::retention::BlockRetention;

const MAX_DESCRIPTION_CHARS: usize = 1_000;

/// How a conversation handles a block that changes after the prompt was frozen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum WhenChanged {
    /// The prompt keeps the old content until it is refreshed.
    #[default]
    Wait,
    /// `getReminder` returns the new content.
    Remind,
}

impl WhenChanged {
    /// The default for a definition without this field.
    fn default_of(source: Option<&BlockSource>) -> Self {
        if source.is_some_and(BlockSource::is_agent) {
            Self::Remind
        } else {
            Self::Wait
        }
    }
}

/// The maximum number of tokens of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct TokenBudget(#[schemars(range(min = 1, max = 1_000_000))] pub i64);

impl<'de> Deserialize<'de> for TokenBudget {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bounded(deserializer, 1..=1_000_000).map(Self)
    }
}

/// Defines a block, or changes its definition. A block that exists keeps its
/// content.
///
/// A `source` stores the content outside this agent. Setting one needs the
/// Worker's secret.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DefineBlock {
    /// The session that the block belongs to. Default: the block belongs to the agent.
    pub session_id: Option<Id>,
    pub label: Label,
    pub kind: BlockKind,
    /// One line, which the block's header in the prompt shows.
    pub description: Option<String>,
    pub max_tokens: Option<TokenBudget>,
    /// The text of a readonly or writable block until the block is first written.
    pub default_content: Option<String>,
    pub source: Option<BlockSource>,
    /// How running conversations receive a change. Default: `remind` if another agent
    /// stores the content, since others write it, too; else `wait`.
    pub when_changed: Option<WhenChanged>,
    /// Whether the model may write the block with its tools. Operations always may.
    /// Default: `true` if the content is stored in this agent, or in an agent named by
    /// placeholders of this agent's name; else `false`.
    pub model_writes: Option<bool>,
    /// The block's retention rules. Omitted fields use the rules of the session or the
    /// agent. Setting them requires the Worker's secret.
    pub retention: Option<BlockRetention>,
    /// Custom data of the block, for filtering. At most 4 KiB.
    pub metadata: Option<Metadata>,
    #[serde(default)]
    pub tags: Tags,
}

/// A block's validated definition.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The scope as rows store it: a session's id, or "" for the agent.
    pub scope: String,
    pub label: Label,
    pub kind: BlockKind,
    pub description: Option<String>,
    pub max_tokens: Option<i64>,
    pub default_content: Option<String>,
    pub source: Option<BlockSource>,
    /// The resolved source of this agent's block: see [`Definition::resolve_for`].
    pub location: BlockLocation,
    pub when_changed: WhenChanged,
    /// As the definition sets it. `None`: depends on the backend.
    pub model_writes: Option<bool>,
    pub retention: Option<BlockRetention>,
    pub metadata: Option<Metadata>,
    pub tags: Tags,
    /// The source of the definition, if it was imported by a sender who didn't trust the
    /// file.
    pub origin: Option<Origin>,
    /// `None`: the block comes from the deployed configuration.
    pub defined_at: Option<i64>,
}

impl DefineBlock {
    /// The definition, without its resolved source.
    pub fn into_definition(self) -> Result<Definition> {
        if let Some(description) = &self.description {
            check_description("description", description)?;
        }
        if let Some(source) = &self.source {
            source.check(self.kind)?;
        }
        let max_tokens = self.max_tokens.map(|budget| budget.0);
        if let Some(content) = &self.default_content {
            check_content("defaultContent", content)?;
            check_budget(&self.label, max_tokens, content)?;
        }
        let nothing = |text: &String| !text.is_empty();
        Ok(Definition {
            scope: self
                .session_id
                .map_or_else(String::new, |id| id.as_str().to_owned()),
            label: self.label,
            kind: self.kind,
            description: self.description.filter(nothing),
            max_tokens,
            default_content: self.default_content.filter(nothing),
            location: unresolved(),
            when_changed: self
                .when_changed
                .unwrap_or_else(|| WhenChanged::default_of(self.source.as_ref())),
            source: self.source,
            model_writes: self.model_writes,
            retention: self.retention,
            metadata: self.metadata.and_then(Metadata::unless_empty),
            tags: self.tags,
            origin: None,
            defined_at: None,
        })
    }
}

impl Definition {
    /// Resolves this definition's source for the agent with this name.
    pub fn resolve_for(self, agent_name: &str) -> Self {
        let location = match &self.source {
            Some(source) => source.locate(agent_name, self.is_sessions()),
            None => BlockLocation::Local(None),
        };
        Self { location, ..self }
    }

    pub fn backend(&self) -> BlockBackend<'_> {
        match &self.location {
            BlockLocation::Local(_) => BlockBackend::Object,
            BlockLocation::Remote(source) => source.backend(),
            BlockLocation::Unresolved(reason) => BlockBackend::Unresolved { reason },
        }
    }

    /// The key of the block whose content is used, if it is stored in this agent: the block
    /// itself, or another one that the source names.
    pub fn content_key(&self) -> String {
        match &self.location {
            BlockLocation::Local(Some(label)) => label.key(),
            BlockLocation::Local(None)
            | BlockLocation::Remote(_)
            | BlockLocation::Unresolved(_) => self.label.key(),
        }
    }

    /// Whether the model's tools may write the block. Content outside this agent is shared:
    /// whoever persuades the model to write in one conversation would change what all
    /// others read. So such a definition must allow it explicitly. A template of this
    /// agent's name counts as permission, because it defines who shares the content.
    pub fn model_may_write(&self) -> bool {
        let names_template = || {
            self.source
                .as_ref()
                .is_some_and(BlockSource::is_agent_template)
        };
        self.kind != BlockKind::Readonly
            && self
                .model_writes
                .unwrap_or_else(|| self.backend().is_this_object() || names_template())
    }

    pub fn has_template(&self) -> bool {
        self.source.as_ref().is_some_and(BlockSource::is_template)
    }

    /// Whether the definition was imported by a sender who didn't trust the file.
    pub fn is_imported(&self) -> bool {
        self.origin.is_some_and(Origin::is_quoted)
    }

    pub fn is_sessions(&self) -> bool {
        !self.scope.is_empty()
    }

    pub fn default_content(&self) -> &str {
        self.default_content.as_deref().unwrap_or_default()
    }
}

/// The source of a definition that [`Definition::resolve_for`] has not resolved: no content is
/// read or written there.
pub fn unresolved() -> BlockLocation {
    BlockLocation::Unresolved("its agent is unknown".to_owned())
}

/// Refuses control characters: a description is part of one line in the prompt.
pub fn check_description(field: &str, text: &str) -> Result<()> {
    let is_line = |c: char| !c.is_control() && !matches!(c, '\u{2028}' | '\u{2029}');
    if !text.chars().all(is_line) {
        return Err(Error::invalid(
            field,
            format!("`{field}` must be a single line, without control characters."),
        ));
    }
    if text.chars().count() > MAX_DESCRIPTION_CHARS {
        return Err(Error::invalid(
            field,
            format!("`{field}` must have at most {MAX_DESCRIPTION_CHARS} characters."),
        ));
    }
    Ok(())
}
