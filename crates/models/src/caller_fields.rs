//! What a request in a provider's own API specifies in addition to the conversation. If the
//! model is from the same provider, the request's fields, tools and system blocks are
//! passed through unchanged.
//!
//! Invariant: the caller's fields take precedence over ours, but never replace the
//! conversation, the model, or the tools that run here.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use crate::choice::Provider;
use base::json::{self, JsonObject, RawValue};

/// A provider's API that clients may use here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProviderApi {
    /// OpenAI's Chat Completions.
    ChatCompletions,
    /// Anthropic's Messages.
    Messages,
    /// OpenAI's Responses. A server that supports only Chat Completions is called in that
    /// API.
    Responses,
}

impl ProviderApi {
    /// The provider of this API.
    pub fn provider(self) -> Provider {
        match self {
            Self::ChatCompletions | Self::Responses => Provider::OpenAi,
            Self::Messages => Provider::Anthropic,
        }
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CallerFields {
    pub api: ProviderApi,
    /// With Responses: whether the model is also called by Responses, and not by Chat
    /// Completions.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_responses: bool,
    /// Whether the caller wants its answer as an event stream.
    pub is_streamed: bool,
    /// The fields that are passed through.
    pub fields: JsonObject,
    /// The caller's tools as it wrote them, by name.
    pub tools: BTreeMap<String, Box<RawValue>>,
    /// With Responses: the caller's tools as it wrote them, in its order. Some of them run
    /// at the provider and have no names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_list: Vec<Box<RawValue>>,
    /// The caller's system prompt in blocks. They replace the last [`Self::system_texts`]
    /// texts of the system prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub system: Vec<Box<RawValue>>,
    #[serde(default)]
    pub system_texts: usize,
    /// The number of cache breakpoints in the caller's system prompt and tools.
    #[serde(default)]
    pub cache_marks: usize,
    /// The maximum tokens of the answer, and the temperature, for a model of another
    /// provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The header `anthropic-beta`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beta: Option<String>,
}

/// The data of a message that was written in a provider's format, stored as
/// [`ProviderData`](conversation::log::note::ProviderData): the message, or its blocks, as the caller wrote
/// them.
#[derive(Deserialize)]
struct Given<'a> {
    #[serde(borrow)]
    given: &'a RawValue,
}

/// The stored form of a message in a provider's format. `json` must be a JSON value.
pub fn to_stored_message(json: &str) -> Option<JsonObject> {
    json::decode(&format!(r#"{{"given":{json}}}"#)).ok()
}

/// What the caller wrote, from the data that is stored with a message.
pub fn find_given(parts: &JsonObject) -> Option<&RawValue> {
    json::decode::<Given<'_>>(parts.as_str())
        .ok()
        .map(|it| it.given)
}

/// The data of messages from Responses: the item of a user or of a result, or the items of
/// the assistant.
#[derive(Deserialize)]
struct StoredItem<'a> {
    #[serde(borrow)]
    item: &'a RawValue,
}

#[derive(Deserialize)]
struct StoredItemList {
    items: Vec<Box<RawValue>>,
}

/// The stored form of an item of Responses. `json` must be a JSON value.
pub fn to_stored_item(json: &str) -> Option<JsonObject> {
    json::decode(&format!(r#"{{"item":{json}}}"#)).ok()
}

/// Like [`to_stored_item`], for the items of an assistant's message. `json` must be a JSON
/// list.
pub fn to_stored_items(json: &str) -> Option<JsonObject> {
    json::decode(&format!(r#"{{"items":{json}}}"#)).ok()
}

pub fn find_item(parts: &JsonObject) -> Option<&RawValue> {
    json::decode::<StoredItem<'_>>(parts.as_str())
        .ok()
        .map(|it| it.item)
}

pub fn find_items(parts: &JsonObject) -> Option<Vec<Box<RawValue>>> {
    json::decode::<StoredItemList>(parts.as_str())
        .ok()
        .map(|it| it.items)
}

/// The maximum number of fields of an object that is read here.
const MAX_FIELDS: usize = 1_000;

/// The fields of an object, in their order.
struct ObjectFields<'a>(Vec<ObjectField<'a>>);

/// A field of an object: its name, and its value as written.
pub type ObjectField<'a> = (Cow<'a, str>, &'a RawValue);

/// A name that is only copied if it contains escapes.
#[derive(Deserialize)]
struct FieldName<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for ObjectFields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = ObjectFields<'de>;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((FieldName(name), value)) = map.next_entry()? {
                    if fields.len() == MAX_FIELDS {
                        return Err(A::Error::custom("too many fields"));
                    }
                    fields.push((name, value));
                }
                Ok(ObjectFields(fields))
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// The fields of an object's text. Empty if it is not an object, or has more than a
/// thousand fields.
pub fn fields_of(object: &str) -> Vec<ObjectField<'_>> {
    json::decode::<ObjectFields<'_>>(object).map_or_else(|_| Vec::new(), |fields| fields.0)
}

/// Our fields that conflict with one of the caller's.
const REPLACED: &[(&str, &[&str])] = &[
    ("max_tokens", &["max_completion_tokens"]),
    ("max_completion_tokens", &["max_tokens"]),
    ("thinking", &["temperature", "output_config"]),
    ("output_config", &["thinking"]),
];

impl CallerFields {
    /// The API by which the model is called, if its provider is the caller's.
    pub fn model_api(&self) -> ProviderApi {
        match self.api {
            ProviderApi::Responses if !self.in_responses => ProviderApi::ChatCompletions,
            api => api,
        }
    }

    /// A request's body in which the caller's fields replace ours. `own_names`: our fields that
    /// already contain the caller's values.
    pub(crate) fn merge_into(&self, body: &str, own_names: &[&str]) -> String {
        let mut given = fields_of(self.fields.as_str());
        given.retain(|(name, _)| !own_names.contains(&name.as_ref()));
        let is_given = |name: &str| given.iter().any(|(given, _)| given == name);
        let is_replaced = |name: &str| {
            is_given(name)
                || REPLACED
                    .iter()
                    .any(|(given_name, replaced)| is_given(given_name) && replaced.contains(&name))
        };
        let own = fields_of(body);
        let own_fields = own.iter().filter(|(name, _)| !is_replaced(name));
        let mut merged = String::with_capacity(body.len() + self.fields.as_str().len() + 2);
        for (name, value) in own_fields.chain(&given) {
            merged.push(if merged.is_empty() { '{' } else { ',' });
            json::push_quoted(&mut merged, name);
            merged.push(':');
            merged.push_str(value.get());
        }
        merged.push('}');
        merged
    }

    /// The tool as the caller wrote it, if it is the caller's.
    pub(crate) fn find_tool(&self, name: &str) -> Option<&RawValue> {
        self.tools.get(name).map(AsRef::as_ref)
    }
}
