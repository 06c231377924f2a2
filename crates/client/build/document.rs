//! The parts of the API's document from which the crate's types are made.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

#[derive(Deserialize)]
pub struct Document {
    paths: BTreeMap<String, BTreeMap<String, Call>>,
    components: Components,
}

#[derive(Deserialize)]
struct Components {
    schemas: BTreeMap<String, Schema>,
}

impl Document {
    pub fn schemas(&self) -> &BTreeMap<String, Schema> {
        &self.components.schemas
    }

    /// The operations, each a path of its own.
    pub fn operations(&self) -> impl Iterator<Item = &Call> {
        let paths = self.paths.iter();
        paths
            .filter(|(path, _)| path.contains("/rpc/"))
            .filter_map(|(_, methods)| methods.get("post"))
    }

    /// A call with a path of its own that is not an operation, such as an import.
    pub fn find_call(&self, id: &str) -> Option<&Call> {
        let mut calls = self.paths.values().flat_map(BTreeMap::values);
        calls.find(|call| call.operation_id == id)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Call {
    pub operation_id: String,
    pub summary: Option<String>,
    pub description: Option<String>,
    #[serde(default, rename = "x-presets")]
    presets: Vec<String>,
    request_body: Option<Body>,
    responses: BTreeMap<String, Body>,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    content: BTreeMap<String, Media>,
}

#[derive(Deserialize)]
struct Media {
    #[serde(default)]
    schema: Schema,
}

impl Body {
    fn schema(&self) -> Option<&Schema> {
        self.content.get("application/json").map(|of| &of.schema)
    }
}

impl Call {
    pub fn reads(&self) -> bool {
        self.presets.iter().any(|preset| preset == "read")
    }

    pub fn input(&self) -> Result<&Schema, String> {
        let input = self.request_body.as_ref().and_then(Body::schema);
        input.ok_or_else(|| format!("`{}` has no input in JSON", self.operation_id))
    }

    pub fn output(&self) -> Result<&Schema, String> {
        let output = self.responses.get("200").and_then(Body::schema);
        output.ok_or_else(|| format!("`{}` has no output in JSON", self.operation_id))
    }
}

/// A JSON Schema. If it is `true`, or has no field that is read here, it accepts any value.
#[derive(Default)]
pub struct Schema {
    /// Whether the schema is `true` or `false`.
    pub is_allowed: Option<bool>,
    pub rules: Rules,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rules {
    #[serde(rename = "$ref")]
    reference: Option<String>,
    #[serde(rename = "type", deserialize_with = "one_or_many")]
    pub types: Vec<String>,
    pub description: Option<String>,
    /// `null` is a default, too.
    #[serde(deserialize_with = "even_null")]
    pub default: Option<Value>,
    pub properties: Option<BTreeMap<String, Schema>>,
    pub required: Vec<String>,
    pub additional_properties: Option<Box<Schema>>,
    pub items: Option<Box<Schema>>,
    pub min_items: Option<u64>,
    pub max_items: Option<u64>,
    pub any_of: Vec<Schema>,
    pub one_of: Vec<Schema>,
    pub all_of: Vec<Schema>,
    #[serde(rename = "enum")]
    values: Vec<String>,
    #[serde(rename = "const")]
    value: Value,
}

impl Schema {
    /// The name of the schema that this one refers to.
    pub fn name(&self) -> Option<&str> {
        self.rules.reference.as_deref()?.rsplit('/').next()
    }

    pub fn field(&self, name: &str) -> Option<&Self> {
        self.rules.properties.as_ref()?.get(name)
    }

    pub fn is_null(&self) -> bool {
        self.rules.types == ["null"]
    }

    /// Whether the schema takes `null` in addition to something else.
    pub fn accepts_null(&self) -> bool {
        let types = &self.rules.types;
        types.iter().any(|of| of == "null") || self.rules.any_of.iter().any(Self::is_null)
    }

    pub fn is_array(&self) -> bool {
        self.rules.types.iter().any(|of| of == "array")
    }

    /// Whether the schema is a list of words.
    pub fn is_words(&self) -> bool {
        !self.rules.values.is_empty() || self.rules.one_of.iter().any(|one| !one.words().is_empty())
    }

    /// The words of an enum, each with its description.
    pub fn described_words(&self) -> Vec<(&str, Option<&str>)> {
        let described = self.rules.one_of.iter().flat_map(|one| {
            let words = one.words().into_iter();
            words.map(|word| (word, one.rules.description.as_deref()))
        });
        let plain = self.rules.values.iter().map(|word| (word.as_str(), None));
        described.chain(plain).collect()
    }

    fn words(&self) -> Vec<&str> {
        match self.rules.value.as_str() {
            Some(word) => vec![word],
            None => self.rules.values.iter().map(String::as_str).collect(),
        }
    }

    /// The schemas that this one names, at any depth.
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.name().into_iter().collect();
        names.extend(self.parts().flat_map(Self::names));
        names
    }

    fn parts(&self) -> impl Iterator<Item = &Self> {
        let rules = &self.rules;
        let listed = [&rules.any_of, &rules.one_of, &rules.all_of];
        let alone = [&rules.items, &rules.additional_properties];
        let fields = rules.properties.iter().flat_map(BTreeMap::values);
        let alone = alone.into_iter().flatten().map(Box::as_ref);
        fields.chain(alone).chain(listed.into_iter().flatten())
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Allowed(bool),
            Rules(Box<Rules>),
        }
        Ok(match Form::deserialize(deserializer)? {
            Form::Allowed(is_allowed) => Self {
                is_allowed: Some(is_allowed),
                rules: Rules::default(),
            },
            Form::Rules(rules) => Self {
                is_allowed: None,
                rules: *rules,
            },
        })
    }
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Types {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Types::deserialize(deserializer)? {
        Types::One(of) => vec![of],
        Types::Many(types) => types,
    })
}

fn even_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}
