//! Two rules that are stricter than JSON Schema: an answer has no field that its schema does not
//! name, unless `additionalProperties` allows such fields, and no duplicate field.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// The schema of a value that has no unnamed fields.
pub fn close(schema: &Value) -> Value {
    let mut closed = close_within(schema, false);
    if let Some(keywords) = closed.as_object_mut() {
        keywords.insert("unevaluatedProperties".to_owned(), Value::Bool(false));
    }
    closed
}

/// Closes the values within a schema, but not the value itself: a schema that refers to it may name
/// more fields. `is_open`: the schema only constrains fields that are named next to it, so it
/// closes nothing.
pub fn close_within(schema: &Value, is_open: bool) -> Value {
    let Value::Object(keywords) = schema else {
        return schema.clone();
    };
    let value = |schema: &Value| {
        if is_open {
            close_within(schema, true)
        } else {
            close(schema)
        }
    };
    let names_fields = keywords.contains_key("properties");
    let closed: Map<String, Value> = keywords
        .iter()
        .map(|(keyword, value_of_keyword)| {
            let closed = match (keyword.as_str(), value_of_keyword) {
                ("properties", Value::Object(fields)) => {
                    let fields = fields
                        .iter()
                        .map(|(name, field)| (name.clone(), value(field)));
                    Value::Object(fields.collect())
                }
                ("items" | "additionalProperties", value_of_keyword) => value(value_of_keyword),
                ("anyOf" | "oneOf", Value::Array(choices)) => {
                    let choices = choices.iter();
                    choices
                        .map(|choice| close_within(choice, is_open || names_fields))
                        .collect()
                }
                (_, value_of_keyword) => value_of_keyword.clone(),
            };
            (keyword.clone(), closed)
        })
        .collect();
    Value::Object(closed)
}

/// Fields whose values are callers' own JSON, which is returned as it was sent.
const CALLERS: &[&str] = &[
    "metadata",
    "arguments",
    "parameters",
    "parts",
    "result",
    "toolCalls",
];

/// JSON without duplicate fields, except within what callers sent.
pub struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Walk)
    }
}

struct Walk;

impl<'de> Visitor<'de> for Walk {
    type Value = UniqueKeys;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeys, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = map.next_key::<String>()? {
            if names.contains(&name) {
                return Err(A::Error::custom(format!(
                    "the field `{name}` appears twice"
                )));
            }
            if CALLERS.contains(&name.as_str()) {
                map.next_value::<IgnoredAny>()?;
            } else {
                map.next_value::<UniqueKeys>()?;
            }
            names.insert(name);
        }
        Ok(UniqueKeys)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<UniqueKeys, A::Error> {
        while items.next_element::<UniqueKeys>()?.is_some() {}
        Ok(UniqueKeys)
    }

    fn visit_unit<E>(self) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueKeys, E> {
        Ok(UniqueKeys)
    }
}
