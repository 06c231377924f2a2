//! Checks JSON against a schema of openapi.json.
//!
//! This module knows the keywords of JSON Schema that our document uses. It refuses any
//! other keyword when it reads the document, so that no part of a schema is silently
//! ignored. Two rules are stricter than the standard: an object has no field that its
//! schema does not name, unless `additionalProperties` allows such fields, and no field
//! twice.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;

use crate::base::json::{self, RawValue};

/// Schemas by the name that `$ref` gives after `#/components/schemas/`.
pub type Components = HashMap<String, Schema>;

const COMPONENTS: &str = "#/components/schemas/";

#[derive(Debug, Deserialize)]
#[serde(try_from = "Value")]
pub enum Schema {
    /// `true`: any JSON at all. The JSON is not even parsed.
    Anything,
    /// `false`: no JSON at all.
    Nothing,
    Shape(Box<Shape>),
}

impl TryFrom<Value> for Schema {
    type Error = serde_json::Error;

    fn try_from(value: Value) -> serde_json::Result<Self> {
        match value {
            Value::Bool(true) => Ok(Self::Anything),
            Value::Bool(false) => Ok(Self::Nothing),
            value => serde_json::from_value(value).map(Self::Shape),
        }
    }
}

/// The keywords of one schema. Each keyword that is present must hold.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Shape {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "type")]
    types: Option<Types>,
    properties: BTreeMap<String, Schema>,
    required: Vec<String>,
    additional_properties: Option<Schema>,
    items: Option<Schema>,
    any_of: Vec<Schema>,
    one_of: Vec<Schema>,
    r#const: Option<Value>,
    r#enum: Option<Vec<Value>>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    min_items: Option<usize>,
    max_items: Option<usize>,
    min_length: Option<usize>,
    max_length: Option<usize>,
    // These keywords are only for readers of the document.
    #[serde(rename = "description")]
    _description: IgnoredAny,
    #[serde(rename = "format")]
    _format: IgnoredAny,
    #[serde(rename = "default")]
    _default: IgnoredAny,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Types {
    One(Type),
    AnyOf(Vec<Type>),
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Type {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

/// The place in an answer that is wrong, and the schema's demand there.
#[derive(Debug, PartialEq)]
pub struct Mismatch {
    /// Such as `.messages[3].createdAt`; empty for the answer itself.
    pub path: String,
    pub expected: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, expected } = self;
        let path = if path.is_empty() { "the answer" } else { path };
        write!(out, "{path}: {expected}")
    }
}

impl Mismatch {
    fn here(expected: String) -> Self {
        Self {
            path: String::new(),
            expected,
        }
    }

    fn under(mut self, step: &str) -> Self {
        self.path.insert_str(0, step);
        self
    }
}

type Held = Result<(), Mismatch>;

impl Schema {
    /// Checks that this JSON has the shape that the schema describes.
    pub fn hold(&self, json: &RawValue, components: &Components) -> Held {
        self.hold_beside(json, components, &Schema::Nothing)
    }

    /// `unnamed` is the schema for fields that this schema does not name.
    fn hold_beside(&self, json: &RawValue, components: &Components, unnamed: &Schema) -> Held {
        match self {
            Self::Anything => Ok(()),
            Self::Nothing => Err(Mismatch::here("nothing may stand here".to_owned())),
            Self::Shape(shape) => shape.hold(json, components, unnamed),
        }
    }
}

impl Shape {
    fn hold(&self, json: &RawValue, components: &Components, unnamed: &Schema) -> Held {
        self.hold_type(json)?;
        self.hold_value(json)?;
        if let Some(reference) = &self.reference {
            find(reference, components).hold_beside(json, components, unnamed)?;
        }
        self.hold_choices(json, components, unnamed)?;
        match type_of(json) {
            Type::Object => self.hold_fields(json, components, unnamed),
            Type::Array => self.hold_items(json, components),
            Type::String => self.hold_length(json),
            _ => Ok(()),
        }
    }

    fn hold_type(&self, json: &RawValue) -> Held {
        let allowed: &[Type] = match &self.types {
            None => return Ok(()),
            Some(Types::One(one)) => std::slice::from_ref(one),
            Some(Types::AnyOf(types)) => types,
        };
        let actual = type_of(json);
        let is_allowed = allowed.contains(&actual)
            || (actual == Type::Integer && allowed.contains(&Type::Number));
        expect(is_allowed, || {
            format!("expected {allowed:?}, found {}", shown(json))
        })
    }

    fn hold_value(&self, json: &RawValue) -> Held {
        let value = || serde_json::from_str::<Value>(json.get()).ok();
        if let Some(only) = &self.r#const {
            expect(value().as_ref() == Some(only), || {
                format!("expected {only}, found {}", shown(json))
            })?;
        }
        if let Some(list) = &self.r#enum {
            expect(value().is_some_and(|value| list.contains(&value)), || {
                let list: Vec<String> = list.iter().map(Value::to_string).collect();
                format!("expected one of {}, found {}", list.join(", "), shown(json))
            })?;
        }
        if !matches!(type_of(json), Type::Integer | Type::Number) {
            return Ok(());
        }
        let number: f64 = json.get().parse().unwrap_or(f64::NAN);
        let within = self.minimum.is_none_or(|least| number >= least)
            && self.maximum.is_none_or(|most| number <= most);
        expect(within, || {
            let (least, most) = (self.minimum, self.maximum);
            format!("expected a number from {least:?} to {most:?}, found {number}")
        })
    }

    fn hold_choices(&self, json: &RawValue, components: &Components, unnamed: &Schema) -> Held {
        // If this schema names the fields itself, a choice may describe only some.
        let unnamed = match self.properties.is_empty() {
            true => unnamed,
            false => &Schema::Anything,
        };
        for (choices, is_one) in [(&self.any_of, false), (&self.one_of, true)] {
            if choices.is_empty() {
                continue;
            }
            let (fit, misfits): (Vec<Held>, Vec<Held>) = choices
                .iter()
                .map(|choice| choice.hold_beside(json, components, unnamed))
                .partition(|held| held.is_ok());
            expect(!is_one || fit.len() < 2, || {
                format!("{} of `oneOf` fit, and only one may", fit.len())
            })?;
            // The choice that fits deepest is the one that was meant.
            if fit.is_empty() {
                let meant = misfits.into_iter().filter_map(Result::err);
                let meant = meant.max_by_key(|misfit| misfit.path.len());
                return meant.map_or(Ok(()), Err);
            }
        }
        Ok(())
    }

    fn hold_fields(&self, json: &RawValue, components: &Components, unnamed: &Schema) -> Held {
        // If this schema names no field, the reference or the choices name them.
        let is_described_elsewhere =
            self.reference.is_some() || !self.any_of.is_empty() || !self.one_of.is_empty();
        let unnamed = match &self.additional_properties {
            Some(schema) => schema,
            None if self.properties.is_empty() && is_described_elsewhere => &Schema::Anything,
            None => unnamed,
        };
        let Fields(fields) = parse(json);
        for (place, (name, _)) in fields.iter().enumerate() {
            let before = fields.get(..place).unwrap_or_default();
            let is_first = !before.iter().any(|(earlier, _)| earlier == name);
            let is_named = self.properties.contains_key(name);
            expect(is_first || !is_named, || "stands there twice".to_owned())
                .map_err(|wrong| wrong.under(&format!(".{name}")))?;
        }
        for name in &self.required {
            let is_there = fields.iter().any(|(field, _)| field == name);
            expect(is_there, || "is required and missing".to_owned())
                .map_err(|wrong| wrong.under(&format!(".{name}")))?;
        }
        for (name, value) in &fields {
            let held = match self.properties.get(name).unwrap_or(unnamed) {
                Schema::Nothing => Err(Mismatch::here("the schema names no such field".to_owned())),
                schema => schema.hold(value, components),
            };
            held.map_err(|wrong| wrong.under(&format!(".{name}")))?;
        }
        Ok(())
    }

    fn hold_items(&self, json: &RawValue, components: &Components) -> Held {
        let is_described =
            self.items.is_some() || self.min_items.is_some() || self.max_items.is_some();
        if !is_described {
            return Ok(());
        }
        let items: Vec<&RawValue> = parse(json);
        let within = self.min_items.is_none_or(|least| items.len() >= least)
            && self.max_items.is_none_or(|most| items.len() <= most);
        expect(within, || {
            let (least, most) = (self.min_items, self.max_items);
            format!(
                "expected {least:?} to {most:?} items, found {}",
                items.len()
            )
        })?;
        let Some(schema) = &self.items else {
            return Ok(());
        };
        for (place, item) in items.iter().enumerate() {
            schema
                .hold(item, components)
                .map_err(|wrong| wrong.under(&format!("[{place}]")))?;
        }
        Ok(())
    }

    fn hold_length(&self, json: &RawValue) -> Held {
        if self.min_length.is_none() && self.max_length.is_none() {
            return Ok(());
        }
        let text: String = parse(json);
        let chars = text.chars().count();
        let within = self.min_length.is_none_or(|least| chars >= least)
            && self.max_length.is_none_or(|most| chars <= most);
        expect(within, || {
            let (least, most) = (self.min_length, self.max_length);
            format!("expected {least:?} to {most:?} characters, found {chars}")
        })
    }
}

fn find<'a>(reference: &str, components: &'a Components) -> &'a Schema {
    reference
        .strip_prefix(COMPONENTS)
        .and_then(|name| components.get(name))
        .unwrap_or_else(|| panic!("the document has nothing at {reference}"))
}

fn expect(holds: bool, expected: impl FnOnce() -> String) -> Held {
    match holds {
        true => Ok(()),
        false => Err(Mismatch::here(expected())),
    }
}

/// A `RawValue` is well-formed JSON, so that its parts can be parsed, too.
fn parse<'a, T: Deserialize<'a>>(json: &'a RawValue) -> T {
    json::decode(json.get()).unwrap()
}

fn type_of(json: &RawValue) -> Type {
    match json.get().as_bytes().first() {
        Some(b'{') => Type::Object,
        Some(b'[') => Type::Array,
        Some(b'"') => Type::String,
        Some(b't' | b'f') => Type::Boolean,
        Some(b'n') => Type::Null,
        _ if json.get().contains(['.', 'e', 'E']) => Type::Number,
        _ => Type::Integer,
    }
}

/// The beginning of the JSON that was found, for the error message.
fn shown(json: &RawValue) -> String {
    let text = json.get();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// An object's fields in their order, duplicates included.
struct Fields<'a>(Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Reader).map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hold(schema: Value, answer: &str) -> Result<(), String> {
        let components = json!({"Id": {"type": "string", "minLength": 1, "maxLength": 3}});
        let components: Components = serde_json::from_value(components).unwrap();
        let schema: Schema = serde_json::from_value(schema).unwrap();
        let answer: &RawValue = json::decode(answer).unwrap();
        schema
            .hold(answer, &components)
            .map_err(|wrong| wrong.to_string())
    }

    #[track_caller]
    fn fits(schema: Value, answer: &str) {
        assert_eq!(hold(schema, answer), Ok(()), "{answer}");
    }

    #[track_caller]
    fn refused(schema: Value, answer: &str, sentence: &str) {
        assert_eq!(hold(schema, answer), Err(sentence.to_owned()), "{answer}");
    }

    #[test]
    fn a_wrong_type_is_refused() {
        let of = |name: &str| json!({"type": name});
        for (name, answer) in [
            ("null", "null"),
            ("boolean", "true"),
            ("boolean", "false"),
            ("integer", "-5"),
            ("number", "5"),
            ("number", "5.5"),
            ("number", "1e400"),
            ("string", "\"\""),
            ("array", "[1, null]"),
            ("object", "{}"),
        ] {
            fits(of(name), answer);
        }
        for (name, answer) in [
            ("null", "0"),
            ("boolean", "0"),
            ("integer", "5.0"),
            ("integer", "\"5\""),
            ("number", "\"5\""),
            ("string", "null"),
            ("array", "{}"),
            ("object", "[]"),
        ] {
            assert!(hold(of(name), answer).is_err(), "{name} {answer}");
        }
        fits(json!({"type": ["string", "null"]}), "null");
        refused(
            json!({"type": ["string", "null"]}),
            "1",
            "the answer: expected [String, Null], found 1",
        );
    }

    #[test]
    fn a_field_must_be_named_there_once_and_right() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": true}, "required": ["a"]});
        fits(schema.clone(), r#"{"a":1}"#);
        fits(schema.clone(), r#"{"b":{"c":1e999,"c":1},"a":1}"#);
        for (answer, sentence) in [
            (r#"{"b":1}"#, ".a: is required and missing"),
            (r#"{"a":1,"c":1}"#, ".c: the schema names no such field"),
            (r#"{"a":1,"a":2}"#, ".a: stands there twice"),
            (r#"{"a":"1"}"#, ".a: expected [Integer], found \"1\""),
        ] {
            refused(schema.clone(), answer, sentence);
        }
    }

    #[test]
    fn more_fields_stand_only_where_the_schema_says_so() {
        let object = |rest: Value| json!({"type": "object", "additionalProperties": rest});
        fits(object(json!(true)), r#"{"x":1}"#);
        fits(object(json!({"type": "integer"})), r#"{"x":1}"#);
        fits(object(json!(false)), "{}");
        refused(
            object(json!({"type": "integer"})),
            r#"{"x":null}"#,
            ".x: expected [Integer], found null",
        );
        let none = ".x: the schema names no such field";
        refused(object(json!(false)), r#"{"x":1}"#, none);
        refused(json!({"type": "object"}), r#"{"x":1}"#, none);
    }

    #[test]
    fn every_item_of_a_list_is_held() {
        let ids = json!({"type": "array", "items": {"$ref": "#/components/schemas/Id"}, "minItems": 1, "maxItems": 2});
        fits(ids.clone(), r#"["a","äöü"]"#);
        for (answer, sentence) in [
            (
                "[]",
                "the answer: expected Some(1) to Some(2) items, found 0",
            ),
            (
                r#"["a","b","c"]"#,
                "the answer: expected Some(1) to Some(2) items, found 3",
            ),
            (
                r#"["a",""]"#,
                "[1]: expected Some(1) to Some(3) characters, found 0",
            ),
            (
                r#"["a","äöüß"]"#,
                "[1]: expected Some(1) to Some(3) characters, found 4",
            ),
        ] {
            refused(ids.clone(), answer, sentence);
        }
    }

    #[test]
    fn a_choice_needs_one_that_fits_and_tells_of_the_nearest() {
        let choices = json!([
            {"type": "null"},
            {"type": "object", "properties": {"n": {"type": "integer"}}}
        ]);
        let any = json!({ "anyOf": choices });
        fits(any.clone(), "null");
        fits(any.clone(), r#"{"n":1}"#);
        refused(any, r#"{"n":"1"}"#, ".n: expected [Integer], found \"1\"");
        let one = json!({"oneOf": [{"type": "integer"}, {"type": "number"}]});
        fits(one.clone(), "1.5");
        refused(one, "1", "the answer: 2 of `oneOf` fit, and only one may");
    }

    #[test]
    fn a_choice_may_say_more_of_the_fields_beside_it() {
        let error = json!({
            "type": "object",
            "properties": {"code": {"type": "string"}, "details": {"type": "object", "additionalProperties": true}},
            "oneOf": [
                {"properties": {"code": {"const": "a"}, "details": {"properties": {"n": {"type": "integer"}}, "required": ["n"]}}},
                {"properties": {"code": {"enum": ["b", "c"]}}}
            ]
        });
        fits(error.clone(), r#"{"code":"a","details":{"n":1}}"#);
        fits(error.clone(), r#"{"code":"b","details":{"x":1}}"#);
        for (answer, sentence) in [
            (
                r#"{"code":"a","details":{}}"#,
                ".details.n: is required and missing",
            ),
            (
                r#"{"code":"d","details":{}}"#,
                ".code: expected one of \"b\", \"c\", found \"d\"",
            ),
            (
                r#"{"code":"b","more":1}"#,
                ".more: the schema names no such field",
            ),
        ] {
            refused(error.clone(), answer, sentence);
        }
    }

    #[test]
    fn a_value_has_only_the_fields_that_its_reference_names() {
        let components = json!({"A": {"type": "object", "properties": {"n": true}}});
        let components: Components = serde_json::from_value(components).unwrap();
        let nullable = json!({"anyOf": [{"$ref": "#/components/schemas/A"}, {"type": "null"}]});
        let nullable: Schema = serde_json::from_value(nullable).unwrap();
        let hold = |answer: &str| {
            let answer: &RawValue = json::decode(answer).unwrap();
            nullable.hold(answer, &components).is_ok()
        };
        assert!(hold("null") && hold(r#"{"n":[]}"#));
        assert!(!hold(r#"{"m":1}"#));
    }

    #[test]
    fn values_and_bounds_are_held() {
        fits(json!({"const": "a"}), "\"a\"");
        refused(
            json!({"const": "a"}),
            "\"b\"",
            "the answer: expected \"a\", found \"b\"",
        );
        fits(json!({"enum": ["a", null]}), "null");
        refused(
            json!({"enum": ["a", null]}),
            "1",
            "the answer: expected one of \"a\", null, found 1",
        );
        let digit = json!({"type": "integer", "minimum": 0, "maximum": 9});
        fits(digit.clone(), "9");
        for answer in ["-1", "10"] {
            assert!(hold(digit.clone(), answer).is_err(), "{answer}");
        }
    }

    #[test]
    fn a_keyword_that_is_not_listed_is_refused() {
        for schema in [
            json!({"pattern": "^a$"}),
            json!({"properties": {"a": {"items": {"allOf": []}}}}),
            json!({"type": "set"}),
        ] {
            let read = serde_json::from_value::<Schema>(schema.clone());
            assert!(read.is_err(), "{schema}");
        }
    }
}
