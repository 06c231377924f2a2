//! When and how far a conversation is compacted: the agent's settings, and a session's
//! own settings, which override them.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use base::error::{Error, Result};

/// The defaults.
const PROTECT_HEAD: i64 = 3;
const TAIL_TOKEN_BUDGET: i64 = 20_000;
const MIN_TAIL_MESSAGES: i64 = 2;

/// The bounds of the settings: larger than any model's context, and than any
/// conversation's head or tail.
const MAX_TOKENS: i64 = 100_000_000;
const MAX_MESSAGES: i64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CompactionSettings {
    /// The context is compacted automatically when it exceeds this many tokens; `null`:
    /// never.
    pub compact_after: Option<i64>,
    /// The number of first messages that are never summarized.
    pub protect_head: i64,
    /// The newest messages within this many tokens are not summarized.
    pub tail_token_budget: i64,
    /// At least this many of the newest messages are not summarized, regardless of their
    /// tokens.
    pub min_tail_messages: i64,
    /// `compactAfter` was set to `null`, so chat turns don't compact either.
    #[serde(skip)]
    pub is_off: bool,
}

/// The settings that one scope sets itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnSettings {
    /// An inner `None` turns automatic compaction off.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "base::json::nullable"
    )]
    pub compact_after: Option<Option<i64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protect_head: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tail_token_budget: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_tail_messages: Option<i64>,
}

impl OwnSettings {
    /// Checks the numbers against their upper bounds. Their types already exclude
    /// negative numbers.
    pub fn check(&self) -> Result<()> {
        if self.compact_after == Some(Some(0)) {
            return Err(Error::invalid(
                "compactAfter",
                "`compactAfter` must be at least 1, or `null` to turn off automatic compaction.",
            ));
        }
        at_most("compactAfter", self.compact_after.flatten(), MAX_TOKENS)?;
        at_most("protectHead", self.protect_head, MAX_MESSAGES)?;
        at_most("tailTokenBudget", self.tail_token_budget, MAX_TOKENS)?;
        at_most("minTailMessages", self.min_tail_messages, MAX_MESSAGES)
    }

    /// These settings, overridden by those that `newer` sets.
    pub fn with(self, newer: Self) -> Self {
        Self {
            compact_after: newer.compact_after.or(self.compact_after),
            protect_head: newer.protect_head.or(self.protect_head),
            tail_token_budget: newer.tail_token_budget.or(self.tail_token_budget),
            min_tail_messages: newer.min_tail_messages.or(self.min_tail_messages),
        }
    }

    pub fn settings(self) -> CompactionSettings {
        CompactionSettings {
            compact_after: self.compact_after.flatten(),
            is_off: self.compact_after == Some(None),
            protect_head: self.protect_head.unwrap_or(PROTECT_HEAD),
            tail_token_budget: self.tail_token_budget.unwrap_or(TAIL_TOKEN_BUDGET),
            min_tail_messages: self.min_tail_messages.unwrap_or(MIN_TAIL_MESSAGES),
        }
    }
}

fn at_most(field: &str, value: Option<i64>, max: i64) -> Result<()> {
    match value {
        Some(value) if value > max => Err(Error::invalid(
            field,
            format!("`{field}` must be at most {max}."),
        )),
        _ => Ok(()),
    }
}
