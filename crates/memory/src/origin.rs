//! The source of a text in memory, and the custom data that callers attached to it.
//!
//! Invariant: nobody can claim more trust than they have. The operator's texts have the
//! operator's trust; a caller with a minted token acts for a user; a model's tools write
//! with the model's trust.

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

/// The most source events of a text.
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

    /// Whether models receive even documents of this source as quoted data. Documents of
    /// other sources are skills, which a model may follow.
    pub fn is_quoted(self) -> bool {
        matches!(self, Self::Tool | Self::Import)
    }

    /// The trust rank of a source: 0 is the most trusted.
    pub fn trust_rank(self) -> u8 {
        match self {
            Self::Operator => 0,
            Self::User => 1,
            Self::Agent => 2,
            Self::Import => 3,
            Self::Tool => 4,
        }
    }

    /// The source of a text with parts from both: the less trusted one.
    pub fn or_less_trusted(self, other: Self) -> Self {
        if other.trust_rank() > self.trust_rank() {
            other
        } else {
            self
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

    /// The least trusted source that is quoted in this prompt, or in this result of a
    /// memory tool. Quoted lines and names never count as a source mark (`base/quoted.rs`).
    pub fn find_quoted(text: &str) -> Option<Self> {
        let lines = text.lines().filter(|line| !line.starts_with('>'));
        let found = lines.flat_map(|line| {
            let quoted = [
                (Self::Tool.name(), Self::Tool),
                (Self::Import.name(), Self::Import),
                // A service's text without a source counts as the output of a service.
                ("unknown", Self::Tool),
            ];
            let is_named = |(name, _): &(&str, Self)| line.contains(&format!("(source: {name}"));
            quoted.into_iter().filter(is_named)
        });
        found
            .map(|(_, origin)| origin)
            .max_by_key(|origin| origin.trust_rank())
    }

    /// The source after an import by a sender who doesn't trust the file.
    pub fn imported(self) -> Self {
        match self {
            Self::Tool => Self::Tool,
            Self::User | Self::Agent | Self::Import | Self::Operator => Self::Import,
        }
    }

    /// Checks that this caller may claim this source for a text.
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

/// The text of a block from a tool or a file, as prompts quote it.
pub fn quoted_text(origin: Origin, written_at: Option<i64>, text: &str) -> String {
    format!(
        "{}\n{}",
        origin_line(origin.name(), written_at, &[]),
        quote(Untrusted::BlockText, text)
    )
}

/// The custom data that callers attached to an entry or a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Marks {
    pub metadata: Option<Metadata>,
    pub tags: Tags,
}

/// A change of the custom data. Omitted fields are unchanged.
#[derive(Clone, Debug, Default)]
pub struct MarksChange {
    /// `Some(None)`: the metadata is removed.
    pub metadata: Option<Option<Metadata>>,
    pub tags: Option<Tags>,
}

impl MarksChange {
    /// The change that results in exactly this data.
    pub fn to(marks: Marks) -> Self {
        Self {
            metadata: Some(marks.metadata),
            tags: Some(marks.tags),
        }
    }

    pub fn is_nothing(&self) -> bool {
        self.metadata.is_none() && self.tags.is_none()
    }

    /// The fields of a request to another backend. Unchanged fields are omitted.
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
        let marks = before.cloned().unwrap_or_default();
        Marks {
            metadata: match &self.metadata {
                Some(given) => given.clone().and_then(Metadata::unless_empty),
                None => marks.metadata,
            },
            tags: self.tags.clone().unwrap_or(marks.tags),
        }
    }
}

/// The texts of ids.
pub fn texts_of(ids: &[Id]) -> Vec<String> {
    ids.iter().map(|id| id.as_str().to_owned()).collect()
}
