//! The source of a text in memory, and the data that callers wrote on it.
//!
//! The rule this file protects: nobody claims more trust than they have. A text that the operator
//! writes is the operator's; a caller with a minted token speaks for a user; a model's tools write
//! what the model says.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use access::Caller;
use base::action::Role;
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json;
use base::quoted::{Untrusted, origin_line, quote};
use base::tags::{Metadata, Tags};

/// The most events that a text says it comes from.
pub const MAX_SOURCE_EVENTS: usize = 50;

/// The source of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// A user, or a caller with a minted token.
    User,
    /// A model, by its tools.
    Agent,
    /// The result of a tool.
    Tool,
    /// A file, or another system.
    Import,
    /// The holder of the secret.
    Operator,
}

impl Origin {
    pub fn name(self) -> &'static str {
        match self {
            Self::User => Role::User.name(),
            Self::Agent => "agent",
            Self::Tool => "tool",
            Self::Import => "import",
            Self::Operator => "operator",
        }
    }

    /// Whether a model reads even a document of it as quoted data. Documents of the others are
    /// skills, which it may follow.
    pub fn is_quoted(self) -> bool {
        matches!(self, Self::Tool | Self::Import)
    }

    /// How much a source is doubted.
    pub fn doubt(self) -> u8 {
        match self {
            Self::Operator => 0,
            Self::User => 1,
            Self::Agent => 2,
            Self::Import => 3,
            Self::Tool => 4,
        }
    }

    /// The source of a text that has parts from both.
    pub fn or_less_trusted(self, other: Self) -> Self {
        match other.doubt() > self.doubt() {
            true => other,
            false => self,
        }
    }

    pub fn parse(name: &str) -> Option<Self> {
        [
            Self::User,
            Self::Agent,
            Self::Tool,
            Self::Import,
            Self::Operator,
        ]
        .into_iter()
        .find(|origin| origin.name() == name)
    }

    /// The least trusted of the sources whose quotations stand in this prompt, or in this answer
    /// of a tool of the memory. Quoted lines and names of others say no source (`base/quoted.rs`).
    pub fn find_quoted(text: &str) -> Option<Self> {
        let lines = text.lines().filter(|line| !line.starts_with('>'));
        let found = lines.flat_map(|line| {
            let quoted = [
                (Self::Tool.name(), Self::Tool),
                (Self::Import.name(), Self::Import),
                // What a service keeps without a source is the answer of a service.
                ("unknown", Self::Tool),
            ];
            let stands = |(name, _): &(&str, Self)| line.contains(&format!("(source: {name}"));
            quoted.into_iter().filter(stands)
        });
        found
            .map(|(_, origin)| origin)
            .max_by_key(|origin| origin.doubt())
    }

    /// The source after an import whose sender does not trust the file.
    pub fn imported(self) -> Self {
        match self {
            Self::Tool => Self::Tool,
            Self::User | Self::Agent | Self::Import | Self::Operator => Self::Import,
        }
    }

    /// Checks that this caller may say that a text comes from here.
    pub fn permit(self, caller: &Caller) -> Result<()> {
        let may = match self {
            Self::User | Self::Tool | Self::Import => true,
            Self::Agent => caller.may_write_agent_messages(),
            Self::Operator => *caller == Caller::Owner,
        };
        if may {
            return Ok(());
        }
        let message = match self {
            Self::Agent => {
                "This token may not write as the agent: mint it with `allow: {agentMessages: \
                 true}`, or omit `source`."
            }
            _ => "Only the holder of the Worker's secret can write as the operator. Omit `source`.",
        };
        Err(Error::new(Code::Forbidden, message).with_field("source"))
    }
}

/// The text of a block that a tool or a file brought, as prompts show it.
pub fn quoted_text(origin: Origin, written_at: Option<i64>, text: &str) -> String {
    format!(
        "{}\n{}",
        origin_line(origin.name(), written_at, &[]),
        quote(Untrusted::BlockText, text)
    )
}

/// The data that callers wrote on an entry or a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marks {
    pub metadata: Option<Metadata>,
    pub tags: Tags,
}

/// A change of the marks. Fields that are left out stay.
#[derive(Clone, Debug, Default)]
pub struct MarksChange {
    /// `Some(None)`: the metadata is taken away.
    pub metadata: Option<Option<Metadata>>,
    pub tags: Option<Tags>,
}

impl MarksChange {
    /// The change that leaves exactly these marks.
    pub fn to(marks: Marks) -> Self {
        Self {
            metadata: Some(marks.metadata),
            tags: Some(marks.tags),
        }
    }

    pub fn is_nothing(&self) -> bool {
        self.metadata.is_none() && self.tags.is_none()
    }

    /// The fields of a request to another home. A field that stays is left out.
    pub fn fields(&self) -> Vec<(&'static str, Json)> {
        let mut fields = Vec::new();
        if let Some(metadata) = &self.metadata {
            let metadata = metadata.as_ref().map(Metadata::as_str);
            let metadata = metadata.and_then(|text| json::decode_tree(text).ok());
            fields.push(("metadata", metadata.unwrap_or_default()));
        }
        if let Some(tags) = &self.tags {
            fields.push(("tags", tags.iter().collect::<Vec<_>>().into()));
        }
        fields
    }

    pub fn apply(&self, before: Option<&Marks>) -> Marks {
        let kept = before.cloned().unwrap_or_default();
        Marks {
            metadata: match &self.metadata {
                Some(given) => given.clone().and_then(Metadata::unless_empty),
                None => kept.metadata,
            },
            tags: self.tags.clone().unwrap_or(kept.tags),
        }
    }
}

/// The texts of ids.
pub fn texts_of(ids: &[Id]) -> Vec<String> {
    ids.iter().map(|id| id.as_str().to_owned()).collect()
}
