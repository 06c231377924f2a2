//! The types of fields in the operations' inputs.

use crate::schema::JsonSchema;
use std::ops::RangeInclusive;

use super::cursor::MAX_INTEGER;
use super::raw::RawValue;
use serde::{Deserialize, Deserializer, Serialize, de};

/// For `skip_serializing_if`: a count of 0 is omitted.
pub fn is_zero(count: &i64) -> bool {
    *count == 0
}

/// A JSON object kept as the text that was sent.
#[derive(Clone, Debug)]
pub struct JsonObject(Box<RawValue>);

impl JsonObject {
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    pub fn into_raw(self) -> Box<RawValue> {
        self.0
    }
}

/// Objects are equal if their texts are.
impl PartialEq for JsonObject {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Serialize for JsonObject {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('{') {
            Ok(Self(raw))
        } else {
            Err(de::Error::custom("must be an object"))
        }
    }
}

#[cfg(feature = "testing")]
impl JsonSchema for JsonObject {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "JsonObject".into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "object", "additionalProperties": true})
    }
}

/// For a field where `null` differs from a missing field: `Some(None)` against `None`. Use with
/// `#[serde(default, deserialize_with)]`.
pub fn nullable<'de, D, T>(deserializer: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::<T>::deserialize(deserializer).map(Some)
}

/// For an optional field that is never `null`. Use with `#[serde(default, deserialize_with)]`, and
/// name the type in `#[schemars(with)]`.
pub fn given<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

/// Parses an integer within bounds.
pub fn bounded<'de, D: Deserializer<'de>>(
    deserializer: D,
    bounds: RangeInclusive<i64>,
) -> Result<i64, D::Error> {
    struct Bounded(RangeInclusive<i64>);
    impl Bounded {
        fn take<E: de::Error>(&self, value: Option<i64>) -> Result<i64, E> {
            value.filter(|value| self.0.contains(value)).ok_or_else(|| {
                E::custom(format!(
                    "must be an integer from {} to {}",
                    self.0.start(),
                    self.0.end()
                ))
            })
        }
    }
    impl de::Visitor<'_> for Bounded {
        type Value = i64;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "an integer from {} to {}", self.0.start(), self.0.end())
        }
        fn visit_i64<E: de::Error>(self, value: i64) -> Result<i64, E> {
            self.take(Some(value))
        }
        fn visit_u64<E: de::Error>(self, value: u64) -> Result<i64, E> {
            self.take(i64::try_from(value).ok())
        }
        // `5.0` and `5e0` are the integer 5 in JSON; `5.5` is not an integer.
        fn visit_f64<E: de::Error>(self, value: f64) -> Result<i64, E> {
            let whole = value.fract() == 0.0 && value.abs() <= MAX_INTEGER as f64;
            self.take(whole.then_some(value as i64))
        }
    }
    deserializer.deserialize_any(Bounded(bounds))
}

/// An integer of 0 or more that JavaScript represents exactly: a time, a `seq`, a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct Count(#[schemars(range(min = 0, max = 9_007_199_254_740_991_i64))] pub i64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bounded(deserializer, 0..=MAX_INTEGER).map(Self)
    }
}

/// How many rows a page may have: 1 to `MAX`, `DEFAULT` when not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Limit<const DEFAULT: i64, const MAX: i64>(pub i64);

impl<const DEFAULT: i64, const MAX: i64> Default for Limit<DEFAULT, MAX> {
    fn default() -> Self {
        Self(DEFAULT)
    }
}

impl<'de, const DEFAULT: i64, const MAX: i64> Deserialize<'de> for Limit<DEFAULT, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        bounded(deserializer, 1..=MAX).map(Self)
    }
}

#[cfg(feature = "testing")]
impl<const DEFAULT: i64, const MAX: i64> JsonSchema for Limit<DEFAULT, MAX> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Limit{MAX}").into()
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "integer", "minimum": 1, "maximum": MAX, "default": DEFAULT
        })
    }
}
