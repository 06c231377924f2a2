//! Spending limits of turns: the setting `limits` of an agent, and the limits of a minted
//! token. Each type validates its value when it is parsed. `conversation/session/meter.rs`
//! counts.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};

use super::model_settings::Prices;
use base::error::{Error, Result};
use base::json::{bounded, given};

/// The highest limit of turns per minute: that many timestamps are stored.
const MAX_TURNS_PER_MINUTE: i64 = 1_000;

/// The highest limit of tokens per day: more than a whole account can use.
const MAX_TOKENS_PER_DAY: i64 = 1_000_000_000_000;

/// The lowest and the highest limit of a day's cost.
const MIN_COST_PER_DAY: f64 = 0.000001;
const MAX_COST_PER_DAY: i64 = 1_000_000_000;

/// The spending limits of turns. Omitted fields set no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// The maximum number of turns that may start per minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_per_minute: Option<AtMost<MAX_TURNS_PER_MINUTE>>,
    /// The token limit per day, which ends at midnight UTC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<AtMost<MAX_TOKENS_PER_DAY>>,
    /// The cost limit per day, by the agent's `prices`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_per_day: Option<CostLimit>,
    /// Limits were deployed that can't be read. Nobody knows how much they allow, so they
    /// allow nothing.
    #[serde(skip)]
    pub is_unreadable: bool,
}

impl Limits {
    /// The replacement for limits that can't be read.
    pub fn unreadable() -> Self {
        Self {
            is_unreadable: true,
            ..Self::default()
        }
    }

    /// Whether there is a limit per day.
    pub fn has_daily(&self) -> bool {
        self.tokens_per_day.is_some() || self.cost_per_day.is_some()
    }

    /// Checks that what the limits bound can be counted.
    pub fn check_countable(&self, prices: Option<&Prices>, field: &str) -> Result<()> {
        if self.cost_per_day.is_none() || prices.is_some() {
            return Ok(());
        }
        Err(Error::invalid(
            field,
            "`limits.costPerDay` requires `prices`, from which costs are calculated. Set both with \
             `configureAgent`.",
        ))
    }
}

/// The limits that a token is minted with. They must limit something: a field that is
/// `null`, or limits without fields, would allow everything.
#[derive(Clone, Debug, PartialEq)]
pub struct GivenLimits(pub Limits);

/// The fields of [`Limits`], none of which may be `null`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GivenFields {
    #[serde(default, deserialize_with = "given")]
    turns_per_minute: Option<AtMost<MAX_TURNS_PER_MINUTE>>,
    #[serde(default, deserialize_with = "given")]
    tokens_per_day: Option<AtMost<MAX_TOKENS_PER_DAY>>,
    #[serde(default, deserialize_with = "given")]
    cost_per_day: Option<CostLimit>,
}

impl<'de> Deserialize<'de> for GivenLimits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = GivenFields::deserialize(deserializer)?;
        let limits = Limits {
            turns_per_minute: given.turns_per_minute,
            tokens_per_day: given.tokens_per_day,
            cost_per_day: given.cost_per_day,
            is_unreadable: false,
        };
        if limits == Limits::default() {
            Err(de::Error::custom(
                "must set `turnsPerMinute`, `tokensPerDay` or `costPerDay`",
            ))
        } else {
            Ok(Self(limits))
        }
    }
}

/// The limits of a minted token, and the name under which its turns are counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrincipalLimits {
    pub holder: String,
    pub most: Limits,
}

/// A whole number from 1 to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct AtMost<const MAX: i64>(pub i64);

impl<'de, const MAX: i64> Deserialize<'de> for AtMost<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bounded(deserializer, 1..=MAX).map(Self)
    }
}

#[cfg(feature = "testing")]
impl<const MAX: i64> JsonSchema for AtMost<MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("AtMost{MAX}").into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "integer", "minimum": 1, "maximum": MAX})
    }
}

/// A cost above 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostLimit(pub f64);

impl<'de> Deserialize<'de> for CostLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = f64::deserialize(deserializer)?;
        if (MIN_COST_PER_DAY..=MAX_COST_PER_DAY as f64).contains(&value) {
            Ok(Self(value))
        } else {
            Err(de::Error::custom(format!(
                "must be a number from {MIN_COST_PER_DAY} to {MAX_COST_PER_DAY}"
            )))
        }
    }
}

#[cfg(feature = "testing")]
impl JsonSchema for CostLimit {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CostLimit".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "number", "minimum": MIN_COST_PER_DAY, "maximum": MAX_COST_PER_DAY
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use base::json;

    #[test]
    fn limits_are_positive_and_bounded() {
        let read = |text: &str| json::decode::<Limits>(text);
        assert_eq!(read("{}").ok(), Some(Limits::default()));
        let all = json!({"turnsPerMinute": 1000, "tokensPerDay": 1, "costPerDay": 0.01});
        let limits = read(&all.to_string()).ok().unwrap();
        assert_eq!(serde_json::to_value(&limits).unwrap(), all);
        for wrong in [
            "null",
            "5",
            r#"{"turnsPerMinute": 0}"#,
            r#"{"turnsPerMinute": -1}"#,
            r#"{"turnsPerMinute": 1.5}"#,
            r#"{"turnsPerMinute": 1001}"#,
            r#"{"turnsPerMinute": "5"}"#,
            r#"{"tokensPerDay": 0}"#,
            r#"{"tokensPerDay": 1e13}"#,
            r#"{"costPerDay": 0}"#,
            r#"{"costPerDay": -0.5}"#,
            r#"{"costPerDay": 1e999}"#,
            r#"{"costPerDay": NaN}"#,
            r#"{"costPerDay": 1000000001}"#,
            r#"{"turnsPerHour": 5}"#,
            r#"{"isUnreadable": false}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
