//! The types of the settings for model requests, token prices, and prompt refreshes. Each
//! type validates its value when it is parsed.

use crate::json_schema::JsonSchema;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, de};

use base::error::{Error, Result};
use base::json::bounded;

/// The highest limit of an answer's tokens: more than any model generates.
const MAX_OUTPUT_TOKENS: i64 = 1_000_000;

/// The most models with their own prices.
const MAX_PRICES: usize = 20;

/// The longest name of a model in the prices, including its provider.
const MAX_PRICED_CHARS: usize = 220;

/// How many tokens one answer may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(transparent, inline)]
pub struct OutputLimit(#[schemars(range(min = 1, max = 1_000_000))] pub i64);

impl<'de> Deserialize<'de> for OutputLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bounded(deserializer, 1..=MAX_OUTPUT_TOKENS).map(Self)
    }
}

/// A number from 0 to `MAX`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantity<const MAX: i64>(pub f64);

impl<'de, const MAX: i64> Deserialize<'de> for Quantity<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        if (0.0..=MAX as f64).contains(&value) {
            Ok(Self(value))
        } else {
            Err(de::Error::custom(format!(
                "must be a number from 0 to {MAX}"
            )))
        }
    }
}

#[cfg(feature = "testing")]
impl<const MAX: i64> JsonSchema for Quantity<MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Quantity{MAX}").into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "number", "minimum": 0, "maximum": MAX})
    }
}

pub type Temperature = Quantity<2>;

/// The effort that a model spends on reasoning before it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ReasoningEffort {
    None,
    Minimal,
    Low,
    Medium,
    High,
}

impl ReasoningEffort {
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }
}

/// The time when the frozen prompt is rendered again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PromptRefresh {
    /// When `refreshPrompt` is called.
    #[default]
    Manual,
    /// Also after each compaction, when the provider's cache is invalid anyway.
    Compaction,
    /// Also after each compaction and at the start of each turn.
    Turn,
}

/// The price of a million tokens, in a currency of the caller's choice.
type Price = Quantity<1_000_000>;

/// The prices of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelPrice {
    /// The price of a million input tokens.
    pub input: Price,
    /// The price of a million output tokens.
    pub output: Price,
    /// The price of a million input tokens from the provider's cache. Default: the price of
    /// other input tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<Price>,
}

/// The prices of the agent's models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prices {
    /// The price of a million input tokens.
    input: Price,
    /// The price of a million output tokens.
    output: Price,
    /// The price of a million input tokens from the provider's cache. Default: the price of
    /// other input tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cached_input: Option<Price>,
    /// Models with a price of their own, by their names as `model` takes them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    models: BTreeMap<String, ModelPrice>,
}

impl Prices {
    pub fn check(&self) -> Result<()> {
        let is_short = |name: &String| name.chars().count() <= MAX_PRICED_CHARS;
        if self.models.len() <= MAX_PRICES && self.models.keys().all(is_short) {
            return Ok(());
        }
        Err(Error::invalid(
            "prices.models",
            format!(
                "`prices.models` may have at most {MAX_PRICES} models, whose names have at most {MAX_PRICED_CHARS} characters."
            ),
        ))
    }

    /// The cost of one call. `input_tokens` includes `cached_input_tokens`.
    pub fn cost(
        &self,
        model: &str,
        input_tokens: i64,
        cached_input_tokens: i64,
        output_tokens: i64,
    ) -> f64 {
        let price = self.models.get(model).copied().unwrap_or(ModelPrice {
            input: self.input,
            output: self.output,
            cached_input: self.cached_input,
        });
        let cached = price.cached_input.unwrap_or(price.input);
        let read = input_tokens.saturating_sub(cached_input_tokens).max(0);
        (read as f64 * price.input.0
            + cached_input_tokens as f64 * cached.0
            + output_tokens as f64 * price.output.0)
            / 1_000_000.0
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_costs_its_tokens_times_their_prices() {
        let prices: Prices = serde_json::from_value(json!({
            "input": 3, "output": 15, "cachedInput": 0.3,
            "models": {"openai:small": {"input": 1, "output": 2}}
        }))
        .unwrap();
        let near = |cost: f64, expected: f64| assert!((cost - expected).abs() < 1e-12, "{cost}");
        near(prices.cost("openai:m", 1_000_000, 0, 0), 3.0);
        near(prices.cost("openai:m", 1_000_000, 400_000, 0), 1.92);
        near(prices.cost("openai:m", 0, 0, 2_000), 0.03);
        // Without a price for cached tokens, they cost the full price.
        near(
            prices.cost("openai:small", 1_000_000, 400_000, 500_000),
            2.0,
        );
    }

    #[test]
    fn prices_are_bounded_in_value_and_number() {
        for wrong in [
            json!({"input": -1, "output": 1}),
            json!({"input": 1_000_001, "output": 1}),
            json!({"input": "1", "output": 1}),
            json!({"input": 1}),
            json!({"input": 1, "output": 1, "cached": 1}),
        ] {
            assert!(
                serde_json::from_value::<Prices>(wrong.clone()).is_err(),
                "{wrong}"
            );
        }
        let many = |count: usize| {
            let models: BTreeMap<String, ModelPrice> = (0..count)
                .map(|number| {
                    let price = ModelPrice {
                        input: Quantity(1.0),
                        output: Quantity(1.0),
                        cached_input: None,
                    };
                    (format!("openai:{number}"), price)
                })
                .collect();
            Prices {
                input: Quantity(1.0),
                output: Quantity(1.0),
                cached_input: None,
                models,
            }
        };
        assert!(many(MAX_PRICES).check().is_ok());
        assert_eq!(
            many(MAX_PRICES + 1).check().unwrap_err().details()["field"],
            "prices.models"
        );
    }
}
