//! A filter by metadata and tags: `where` of the operations that list and search.
//!
//! Invariant: no caller's text becomes SQL or a JSON path. The statements consist of
//! constants, the filter is one bound value, and keys are compared as text.

use crate::schema::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, de};
use serde_json::Value;

use super::error::Result;
use super::json::{self, JsonObject, List, json};
use super::tags::{MAX_METADATA_BYTES, MAX_TAGS, Tag};

/// The most metadata keys that a filter tests, and the most values of one test. Each is
/// compared with each field of an object of 4 KiB.
pub const MAX_FILTER_KEYS: usize = 16;
pub const MAX_FILTER_VALUES: usize = 32;

/// The most bytes of the metadata tests. It allows each test a value as long as metadata
/// can be.
const MAX_FILTER_BYTES: usize = 4 * MAX_METADATA_BYTES;

/// The data that an item must have to pass the filter.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// A test for each key: the value that it has, or `{in: [values]}`, `{gt: value}`,
    /// `{lt: value}`. All must pass.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<MetadataTests>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<TagTests>,
}

/// Tests of tags. All must pass.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TagTests {
    /// All of these must be present. An empty list matches everything.
    #[serde(
        deserialize_with = "unless_none",
        skip_serializing_if = "Option::is_none"
    )]
    pub all: Option<List<Tag, 0, MAX_TAGS>>,
    /// At least one of these must be present.
    #[serde(deserialize_with = "some", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = MAX_TAGS))]
    pub any: Option<List<Tag, 0, MAX_TAGS>>,
    /// None of these may be present. An empty list matches everything.
    #[serde(
        deserialize_with = "unless_none",
        skip_serializing_if = "Option::is_none"
    )]
    pub none: Option<List<Tag, 0, MAX_TAGS>>,
}

type TagList = Option<List<Tag, 0, MAX_TAGS>>;

/// A list of tags to match. An empty list is the same as no test.
fn unless_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TagList, D::Error> {
    Ok(TagList::deserialize(deserializer)?.filter(|list| !list.0.is_empty()))
}

/// A list with at least one tag. An empty list would match nothing, so it is refused.
fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TagList, D::Error> {
    let list = TagList::deserialize(deserializer)?;
    if list.as_ref().is_some_and(|list| list.0.is_empty()) {
        Err(de::Error::custom("must have at least one"))
    } else {
        Ok(list)
    }
}

/// Metadata tests, as they were sent and parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct MetadataTests {
    sent: JsonObject,
    tests: Vec<MetadataTest>,
}

#[derive(Clone, Debug, PartialEq)]
struct MetadataTest {
    key: String,
    operator: Operator,
    /// Strings, numbers, booleans or `null`.
    values: Vec<Value>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operator {
    In,
    Above,
    Below,
}

impl Operator {
    fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Above => "gt",
            Self::Below => "lt",
        }
    }
}

impl Serialize for MetadataTests {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.sent.serialize(serializer)
    }
}

#[cfg(feature = "testing")]
impl JsonSchema for MetadataTests {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MetadataTests".into()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        JsonObject::json_schema(generator)
    }
}

impl<'de> Deserialize<'de> for MetadataTests {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sent = JsonObject::deserialize(deserializer)?;
        let tests = read_tests(&sent).map_err(de::Error::custom)?;
        Ok(Self { sent, tests })
    }
}

fn read_tests(sent: &JsonObject) -> Result<Vec<MetadataTest>, String> {
    if sent.as_str().len() > MAX_FILTER_BYTES {
        return Err(format!("must have at most {MAX_FILTER_BYTES} bytes"));
    }
    let Ok(Value::Object(fields)) = json::decode_tree(sent.as_str()) else {
        return Err("must be an object".to_owned());
    };
    if fields.len() > MAX_FILTER_KEYS {
        return Err(format!("must have at most {MAX_FILTER_KEYS} keys"));
    }
    let mut tests = Vec::with_capacity(fields.len());
    for (key, value) in fields {
        let Value::Object(operators) = value else {
            tests.push(MetadataTest::new(&key, Operator::In, vec![value])?);
            continue;
        };
        if operators.is_empty() {
            return Err(WRONG_TEST.to_owned());
        }
        for (name, value) in operators {
            let (operator, values) = match (name.as_str(), value) {
                ("in", Value::Array(values)) => (Operator::In, values),
                ("gt", value) => (Operator::Above, vec![value]),
                ("lt", value) => (Operator::Below, vec![value]),
                _ => return Err(WRONG_TEST.to_owned()),
            };
            tests.push(MetadataTest::new(&key, operator, values)?);
        }
    }
    Ok(tests)
}

const WRONG_TEST: &str =
    "must map each key to a value, or to an object with `in` (a list of values), `gt` or `lt`";

impl MetadataTest {
    fn new(key: &str, operator: Operator, values: Vec<Value>) -> Result<Self, String> {
        if !(1..=MAX_FILTER_VALUES).contains(&values.len()) {
            return Err(format!("must have 1 to {MAX_FILTER_VALUES} values in `in`"));
        }
        let fits = |value: &Value| {
            matches!(
                (operator, value),
                (_, Value::String(_) | Value::Number(_))
                    | (Operator::In, Value::Bool(_) | Value::Null)
            )
        };
        if values.iter().all(fits) {
            Ok(Self {
                key: key.to_owned(),
                operator,
                values,
            })
        } else {
            Err(
            "must compare with a string, a number, a boolean or `null`; `gt` and `lt` only with a string or a number"
                .to_owned(),
        )
        }
    }
}

/// The columns that the filter tests, as SQL arguments of `json_each`.
pub struct FilteredColumns {
    metadata: String,
    tags: String,
}

impl FilteredColumns {
    /// For the note of an entry or document, in this column.
    pub fn of_note(note: &str) -> Self {
        Self {
            metadata: format!("iif(json_valid({note}), {note}, NULL), '$.metadata'"),
            tags: format!("iif(json_valid({note}), {note}, NULL), '$.tags'"),
        }
    }

    /// For a session `s`.
    pub fn of_session() -> Self {
        let column = |name: &str| format!("iif(json_valid(s.{name}), s.{name}, NULL)");
        Self {
            metadata: column("metadata"),
            tags: column("tags"),
        }
    }
}

/// SQL: the type class of a value of `json_each`, so that numbers are compared only with
/// numbers.
fn class(of: &str) -> String {
    format!("iif({of}.type IN ('integer', 'real'), 'number', {of}.type)")
}

impl Filter {
    /// The filter, or `None` if it tests nothing.
    pub fn unless_empty(self) -> Option<Self> {
        let tags = self.tags.as_ref();
        let has_tags = tags.is_some_and(|tags| *tags != TagTests::default());
        (!self.tests().is_empty() || has_tags).then_some(self)
    }

    fn tests(&self) -> &[MetadataTest] {
        self.metadata
            .as_ref()
            .map_or(&[], |metadata| metadata.tests.as_slice())
    }

    /// Whether an item without metadata and tags passes.
    pub fn passes_unmarked(&self) -> bool {
        let asks = |tags: &TagTests| tags.all.is_some() || tags.any.is_some();
        self.tests().is_empty() && !self.tags.as_ref().is_some_and(asks)
    }

    /// The filter as it was sent, for another backend.
    pub fn to_json(&self) -> Value {
        let text = json::encode(self).unwrap_or_default();
        json::decode_tree(&text).unwrap_or_default()
    }

    /// The bound value that [`Self::condition`] reads.
    pub fn param(&self) -> String {
        let tests: Vec<Value> = self
            .tests()
            .iter()
            .map(|test| json!([test.key, test.operator.name(), test.values]))
            .collect();
        let tags = self.tags.clone().unwrap_or_default();
        let texts = |tags: TagList| -> Value {
            match tags {
                Some(List(tags)) => tags
                    .iter()
                    .map(|tag| Value::from(tag.as_str()))
                    .collect::<Vec<_>>()
                    .into(),
                None => Value::Null,
            }
        };
        json::text(&json!({
            "metadata": tests,
            "all": texts(tags.all),
            "any": texts(tags.any),
            "none": texts(tags.none)
        }))
    }

    /// SQL: whether a row passes. `param` is where [`Self::param`] is bound, such as `?6`.
    pub fn condition(&self, columns: &FilteredColumns, param: &str) -> String {
        let FilteredColumns { metadata, tags } = columns;
        let mut conditions = Vec::new();
        if !self.tests().is_empty() {
            let (asked, field) = (class("asked"), class("field"));
            conditions.push(format!(
                "NOT EXISTS (SELECT 1
                   FROM json_each({param}, '$.metadata') AS test
                  WHERE NOT EXISTS (SELECT 1
                          FROM json_each({metadata}) AS field
                         WHERE field.key = test.value ->> '$[0]'
                           AND EXISTS (SELECT 1
                                 FROM json_each(test.value, '$[2]') AS asked
                                WHERE {asked} = {field}
                                  AND CASE test.value ->> '$[1]'
                                      WHEN 'gt' THEN field.atom > asked.atom
                                      WHEN 'lt' THEN field.atom < asked.atom
                                      ELSE field.atom IS asked.atom
                                      END)))"
            ));
        }
        let condition_of = |list: &str, not: &str| {
            format!(
                "EXISTS (SELECT 1
                   FROM json_each({param}, '$.{list}') AS asked
                  WHERE asked.value {not} IN (SELECT own_tag.value FROM json_each({tags}) AS own_tag))"
            )
        };
        if let Some(tests) = &self.tags {
            if tests.all.is_some() {
                conditions.push(format!("NOT {}", condition_of("all", "NOT")));
            }
            if tests.any.is_some() {
                conditions.push(condition_of("any", ""));
            }
            if tests.none.is_some() {
                conditions.push(format!("NOT {}", condition_of("none", "")));
            }
        }
        if conditions.is_empty() {
            format!("{param} IS NOT NULL")
        } else {
            format!("({})", conditions.join(" AND "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Filter, String> {
        json::parse::<Filter>(text.as_bytes()).map_err(|error| error.into_message())
    }

    #[test]
    fn a_filter_is_parsed_strictly() {
        for right in [
            r#"{"metadata": {"a": 1, "b": null, "c": {"in": ["x", 2, true, null]}, "d": {"gt": 1, "lt": 2.5}}}"#,
            r#"{"tags": {"all": ["a"], "any": ["b"], "none": ["c"]}}"#,
            r#"{"metadata": {"$.a\" OR 1": "'; DROP TABLE x"}}"#,
        ] {
            let filter = read(right).unwrap().unless_empty().unwrap();
            let again = read(&filter.to_json().to_string()).unwrap();
            assert_eq!(again.param(), filter.param());
        }
        for nothing in [
            "{}",
            r#"{"metadata": {}, "tags": {}}"#,
            r#"{"tags": {"all": [], "none": []}}"#,
        ] {
            assert_eq!(read(nothing).unwrap().unless_empty(), None, "{nothing}");
        }
        let keys = |count: usize| {
            let keys: Vec<String> = (0..count).map(|key| format!("\"{key}\":1")).collect();
            format!(r#"{{"metadata":{{{}}}}}"#, keys.join(","))
        };
        let values = |count: usize| {
            let values = vec!["1"; count].join(",");
            format!(r#"{{"metadata":{{"a":{{"in":[{values}]}}}}}}"#)
        };
        assert!(read(&keys(MAX_FILTER_KEYS)).is_ok());
        assert!(read(&values(MAX_FILTER_VALUES)).is_ok());
        let long = format!(
            r#"{{"metadata":{{"a":"{}"}}}}"#,
            "x".repeat(MAX_FILTER_BYTES)
        );
        for wrong in [
            &keys(MAX_FILTER_KEYS + 1),
            &values(MAX_FILTER_VALUES + 1),
            &values(0),
            &long,
            r#"{"metadata": {"a": {}}}"#,
            r#"{"metadata": {"a": []}}"#,
            r#"{"metadata": {"a": {"in": "x"}}}"#,
            r#"{"metadata": {"a": {"in": [{}]}}}"#,
            r#"{"metadata": {"a": {"ne": 1}}}"#,
            r#"{"metadata": {"a": {"gt": null}}}"#,
            r#"{"metadata": {"a": {"lt": true}}}"#,
            r#"{"metadata": []}"#,
            // An empty list matches nothing, so it is a mistake of the caller.
            r#"{"tags": {"any": []}}"#,
            r#"{"tags": {"any": [""]}}"#,
            r#"{"tags": ["a"]}"#,
            r#"{"sources": {}}"#,
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn filter_values_are_bound_not_interpolated() {
        let filter = read(r#"{"metadata": {"needle": {"in": ["needle"]}}, "tags": {"all": ["needle"], "any": ["needle"], "none": ["needle"]}}"#).unwrap();
        let columns = FilteredColumns::of_note("e.note");
        assert!(!filter.condition(&columns, "?1").contains("needle"));
        assert_eq!(filter.param().matches("needle").count(), 5);
    }
}
