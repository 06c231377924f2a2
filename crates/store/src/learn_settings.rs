//! The setting `learn`: whether the agent learns facts from its conversations, into which
//! block, when, and which facts need no review. Each type validates its value when it is
//! parsed. The crate `learning` does the work.
//!
//! Settings without `into` turn learning off, even if a default is deployed.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use base::ids::Id;
use base::json::{Limit, List};

/// How long a conversation must have no new message to count as idle.
pub const IDLE_MS: i64 = 600_000;

/// The most bytes of the operator's instructions, which are part of every learning pass.
pub const MAX_LEARN_INSTRUCTIONS_BYTES: usize = 4 << 10;

/// The default daily token budget: about fifty passes.
const DEFAULT_TOKENS_PER_DAY: i64 = 200_000;
const MAX_TOKENS_PER_DAY: i64 = 1_000_000_000_000;

/// The most entries of `trust`: each source once.
const MAX_TRUSTED: usize = 3;

/// The settings of learning from conversations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LearnSettings {
    /// The label of the agent's searchable block for the facts. `{}`, without this or other
    /// fields, turns learning off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<Id>,
    /// The model to use. Default: the agent's model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Id>,
    /// Additional instructions for the model, such as which facts matter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    #[serde(default)]
    pub after: LearnTrigger,
    #[serde(default)]
    pub review: LearnReview,
    /// The token limit for learning per day, which ends at midnight UTC.
    #[serde(default)]
    pub max_tokens_per_day: Limit<DEFAULT_TOKENS_PER_DAY, MAX_TOKENS_PER_DAY>,
    /// With `review: "auto"`, the sources in addition to the user whose facts are applied
    /// without approval.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub trust: List<TrustedSource, 0, MAX_TRUSTED>,
    /// When the block is consolidated automatically.
    #[serde(default, skip_serializing_if = "ConsolidationTrigger::is_manual")]
    pub consolidate: ConsolidationTrigger,
    /// A writable block of the agent that consolidation rewrites from the newest entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Id>,
}

impl LearnSettings {
    /// Whether facts are stored in this block of the agent.
    pub fn is_into(&self, label: &str) -> bool {
        let into = self.into.as_ref().map(|into| into.as_str().to_lowercase());
        into == Some(label.to_lowercase())
    }

    /// Whether the settings turn learning off, whatever default is deployed.
    pub fn is_off(&self) -> bool {
        *self == Self::default()
    }
}

fn is_empty<T, const MIN: usize, const MAX: usize>(list: &List<T, MIN, MAX>) -> bool {
    list.0.is_empty()
}

/// When the agent's learning passes run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LearnTrigger {
    /// After each turn, and soon after an append.
    #[default]
    Turn,
    /// After ten minutes without messages in a conversation.
    Idle,
    /// When `learn` is called.
    Manual,
}

/// When the block of learned facts is consolidated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConsolidationTrigger {
    /// When `consolidate` is called.
    #[default]
    Manual,
    /// Ten minutes after the last change, and at most once a day.
    Idle,
}

impl ConsolidationTrigger {
    fn is_manual(&self) -> bool {
        *self == Self::Manual
    }
}

/// What to do with the changes that a model proposes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum LearnReview {
    /// Changes that the user's own words support are applied immediately. The others need
    /// approval.
    Auto,
    /// Every change waits for `decideProposal`.
    #[default]
    Propose,
}

/// A source that an operator may trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TrustedSource {
    /// The agent's words, and what the model concluded by itself.
    Agent,
    /// Results of tools.
    Tool,
    /// Conversations that came from a file.
    Import,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use base::json;

    #[test]
    fn omitted_settings_default_to_the_cautious_value() {
        let read = |text: &str| json::decode::<LearnSettings>(text);
        let least = read(r#"{"into": "facts"}"#).ok().unwrap();
        assert_eq!(
            serde_json::to_value(&least).unwrap(),
            json!({"into": "facts", "after": "turn", "review": "propose", "maxTokensPerDay": 200_000})
        );
        let off = read("{}").ok().unwrap();
        assert!(off.is_off());
        // In the stored form.
        let stored = serde_json::to_string(&off).unwrap();
        assert!(read(&stored).ok().unwrap().is_off(), "{stored}");
        for wrong in [
            r#"{"into": ""}"#,
            r#"{"into": "facts", "consolidate": "turn"}"#,
            r#"{"into": "facts", "after": "later"}"#,
            r#"{"into": "facts", "review": "never"}"#,
            r#"{"into": "facts", "maxTokensPerDay": 0}"#,
            r#"{"into": "facts", "trust": ["user"]}"#,
            r#"{"into": "facts", "trust": ["tool", "tool", "tool", "tool"]}"#,
            r#"{"into": "facts", "reviews": "auto"}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
