//! The spending of a turn: as stored in the event that ends the turn, and as callers see it.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use base::json::is_zero;

/// The spending of a turn. An event that ends a turn contains this as JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnSpending {
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// The part of `input_tokens` that the provider read from its cache.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_input_tokens: i64,
    /// By the agent's `prices` at that time.
    #[serde(default, skip_serializing_if = "is_free")]
    pub cost: f64,
    /// The model that the turn called last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The estimate of `input_tokens`.
    #[serde(default)]
    pub estimated: i64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_failed: bool,
}

/// The spending of a turn, as callers see it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnUsage {
    /// All tokens that models read, from a cache or not.
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// The part of `inputTokens` that the provider read from its cache.
    pub cached_input_tokens: i64,
    /// By the agent's `prices`; 0 without prices.
    pub cost: f64,
}

impl TurnSpending {
    pub fn usage(&self) -> TurnUsage {
        TurnUsage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            cached_input_tokens: self.cached_input_tokens,
            cost: self.cost,
        }
    }
}

/// For fields that are omitted if nothing was paid.
pub fn is_free(cost: &f64) -> bool {
    *cost == 0.0
}
