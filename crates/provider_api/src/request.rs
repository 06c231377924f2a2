//! The parsed form of a request in any of the provider APIs: a history of items, and the
//! request's settings.

use std::collections::BTreeMap;

use serde_json::Value;

use base::error::{Error, Result};
use base::ids::Id;
use base::json::{self, JsonObject, RawValue, list};
use base::part::field::{KIND, TEXT};
use base::part::kind;
use chat::request::client_tools::check_name;
use chat::request::path_digest::{PathDigest, PathMessage, digest_of};
use models::ToolDefinition;
use models::caller_fields::{ObjectField, fields_of};
use models::file::File;

/// The most items of a request's history.
pub const MAX_ITEMS: usize = 10_000;

/// The most parts of one message.
pub const MAX_PARTS: usize = 1_000;

/// The most tools of a request: a coding agent with many servers has about two hundred.
const MAX_TOOLS: usize = 256;

/// The most bytes of all tools: 256 of 2 KiB.
const MAX_TOOLS_BYTES: usize = 512 << 10;

/// The most bytes of the fields that are passed through: the schema of an answer is the
/// longest of them.
const MAX_FIELDS_BYTES: usize = 256 << 10;

/// The most bytes of a message that is stored as the caller sent it: the limit of the note,
/// less its other fields.
const MAX_GIVEN_BYTES: usize = conversation::log::note::MAX_PROVIDER_DATA_BYTES - 1_024;

/// One message of a history, or a part of one.
#[derive(Debug)]
pub enum Item {
    User {
        text: String,
        /// The message's parts in the AI SDK's format.
        parts: Vec<Value>,
        /// Digests of its content other than the text.
        others: Vec<String>,
        /// The message or its blocks as the caller sent them, if the parts don't contain
        /// everything.
        given: Option<JsonObject>,
    },
    Assistant {
        text: String,
        calls: Vec<ItemCall>,
        /// The message's items in the Responses format, if its text and calls don't contain
        /// everything.
        items: Option<JsonObject>,
    },
    Result {
        call_id: Id,
        text: String,
        is_error: bool,
        given: Option<JsonObject>,
    },
}

#[derive(Debug)]
pub struct ItemCall {
    pub id: Id,
    pub name: Id,
    pub arguments: JsonObject,
}

impl Item {
    /// The path extended by this item.
    pub fn after(&self, path: &PathDigest) -> PathDigest {
        match self {
            Self::User { text, others, .. } => path.then(&PathMessage::User { text, others }),
            Self::Assistant { text, calls, .. } => {
                let calls: Vec<(&str, &str)> = calls
                    .iter()
                    .map(|call| (call.id.as_str(), call.name.as_str()))
                    .collect();
                path.then(&PathMessage::Assistant {
                    text,
                    calls: &calls,
                })
            }
            Self::Result { call_id, text, .. } => path.then(&PathMessage::Result {
                call_id: call_id.as_str(),
                text,
            }),
        }
    }
}

/// A parsed request.
#[derive(Debug)]
pub struct ParsedRequest {
    /// The model's name, as the caller sent it.
    pub model: String,
    pub is_streamed: bool,
    /// Whether the stream must end with the usage.
    pub wants_usage: bool,
    pub system: Vec<String>,
    /// The blocks of the system prompt, as the caller sent them.
    pub system_blocks: Vec<Box<RawValue>>,
    /// The number of cache markers in the system prompt and the tools.
    pub cache_marks: usize,
    pub items: Vec<Item>,
    pub tools: Vec<ToolDefinition>,
    pub given_tools: BTreeMap<String, Box<RawValue>>,
    /// The caller's tools in their original order, if the model uses Responses.
    pub tool_list: Vec<Box<RawValue>>,
    /// Whether the model may choose freely which tool to call.
    pub is_choice_free: bool,
    /// The fields that are passed through.
    pub fields: JsonObject,
    pub max_tokens: Option<i64>,
    pub temperature: Option<f64>,
}

/// A request's tools: as definitions for models, and as the caller sent them.
pub type GivenTools = (Vec<ToolDefinition>, BTreeMap<String, Box<RawValue>>);

/// The fields of a request's body, or of an object in it. The object is scanned once: a
/// history has megabytes, and a lookup per field would scan all of its texts again.
pub struct RequestFields<'a>(pub Vec<ObjectField<'a>>);

impl<'a> RequestFields<'a> {
    /// Refuses duplicate fields: we might read one, and the provider the other.
    pub fn of(field: &str, object: &'a str) -> Result<Self> {
        let fields = fields_of(object);
        if !object.trim_start().starts_with('{') || has_twice(&fields) {
            return Err(Error::invalid(
                field,
                format!("`{field}` must be a JSON object with the API's fields, each once."),
            ));
        }
        Ok(Self(fields))
    }

    /// The fields of a nested object; empty if the field is omitted.
    pub fn within(&self, field: &str, name: &str) -> Result<Self> {
        match self.find(name) {
            Some(object) => Self::of(&format!("{field}.{name}"), object.get()),
            None => Ok(Self(Vec::new())),
        }
    }

    /// Removes a field and returns its value. `null` counts as omitted.
    pub fn take(&mut self, name: &str) -> Option<&'a RawValue> {
        let at = self.0.iter().position(|(given, _)| given == name)?;
        let (_, value) = self.0.remove(at);
        Some(value).filter(|value| value.get() != "null")
    }

    /// The value of a field. `null` counts as omitted.
    pub fn find(&self, name: &str) -> Option<&'a RawValue> {
        let found = self.0.iter().find(|(given, _)| given == name);
        found
            .map(|(_, value)| *value)
            .filter(|value| value.get() != "null")
    }

    /// The value of a string field; empty if it is omitted or not a string.
    pub fn text(&self, name: &str) -> String {
        let text = self.find(name).map(RawValue::get);
        text.and_then(|text| json::decode(text).ok())
            .unwrap_or_default()
    }

    /// The value of a string field, if it is not empty.
    pub fn find_text(&self, name: &str) -> Option<String> {
        Some(self.text(name)).filter(|text| !text.is_empty())
    }

    /// Whether there are fields other than these.
    pub fn has_others(&self, known: &[&str]) -> bool {
        let mut names = self.0.iter().map(|(name, _)| name.as_ref());
        names.any(|name| !known.contains(&name))
    }

    /// The digest of a part other than text. Cache markers are excluded, because clients
    /// move them from request to request.
    pub fn digest(&self) -> String {
        let counted = self.0.iter().filter(|(name, _)| name != "cache_control");
        let pieces: Vec<&[u8]> = counted
            .flat_map(|(name, value)| [name.as_bytes(), value.get().as_bytes()])
            .collect();
        digest_of(&pieces)
    }

    /// Removes and returns the model's name, which is required.
    pub fn take_model(&mut self) -> Result<String> {
        match self.take("model") {
            Some(model) => text_in("model", model),
            None => Err(Error::invalid("model", "`model` is missing.")),
        }
    }

    /// The remaining fields.
    pub fn into_object(self) -> Result<JsonObject> {
        let bytes: usize = self
            .0
            .iter()
            .map(|(name, value)| name.len() + value.get().len())
            .sum();
        if bytes > MAX_FIELDS_BYTES {
            let what = "The size of the fields other than messages and tools";
            return Err(Error::payload_too_large(what, MAX_FIELDS_BYTES, bytes));
        }
        object_of(&self.0)
    }
}

/// Whether a field is duplicated. Most objects have few fields, for which comparing is
/// faster than sorting.
fn has_twice(fields: &[ObjectField<'_>]) -> bool {
    const FEW: usize = 8;
    if fields.len() > FEW {
        let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_ref()).collect();
        names.sort_unstable();
        return names.windows(2).any(|pair| pair.first() == pair.last());
    }
    let mut rest = fields;
    while let Some(((name, _), others)) = rest.split_first() {
        if others.iter().any(|(other, _)| other == name) {
            return true;
        }
        rest = others;
    }
    false
}

/// A JSON object with these fields.
pub fn object_of(fields: &[ObjectField<'_>]) -> Result<JsonObject> {
    let mut object = String::from("{");
    for (name, value) in fields {
        if object.len() > 1 {
            object.push(',');
        }
        json::push_quoted(&mut object, name);
        object.push(':');
        object.push_str(value.get());
    }
    object.push('}');
    json::decode(&object).map_err(|error| Error::storage(error.to_string()))
}

/// The values of a list with at most `MAX` values.
pub fn values<'a, const MAX: usize>(field: &str, value: &'a RawValue) -> Result<Vec<&'a RawValue>> {
    let mut reader = json::Reader::new(value.get());
    list::<_, &RawValue, 0, MAX>(&mut reader).map_err(|_| {
        Error::invalid(
            field,
            format!("`{field}` must be a list of at most {MAX} values."),
        )
    })
}

/// Parses a value as a tree.
pub fn tree(value: &RawValue) -> Result<Value> {
    json::decode_tree(value.get()).map_err(|error| Error::storage(error.to_string()))
}

pub fn text_in(field: &str, value: &RawValue) -> Result<String> {
    json::decode(value.get())
        .map_err(|_| Error::invalid(field, format!("`{field}` must be a string.")))
}

pub fn id_in(field: &str, value: Option<&RawValue>) -> Result<Id> {
    let Some(value) = value else {
        return Err(Error::invalid(field, format!("`{field}` is missing.")));
    };
    json::decode::<Id>(value.get()).map_err(|_| {
        Error::invalid(
            field,
            format!("`{field}` must be a string of 1 to 200 characters."),
        )
    })
}

pub fn flag_in(field: &str, value: Option<&RawValue>) -> Result<bool> {
    match value {
        None => Ok(false),
        Some(value) => json::decode(value.get())
            .map_err(|_| Error::invalid(field, format!("`{field}` must be `true` or `false`."))),
    }
}

/// A file part in the AI SDK's format. `kind` is the media type according to the API, used
/// if the URL names none.
pub fn file_part(kind: &str, url: &str, filename: Option<&str>) -> Value {
    let named = url
        .strip_prefix("data:")
        .and_then(|rest| rest.split([';', ',']).next());
    let media_type = named.filter(|named| !named.is_empty()).unwrap_or(kind);
    let file = File {
        media_type: media_type.to_owned(),
        url: url.to_owned(),
        filename: filename.map(str::to_owned),
    };
    file.to_part()
}

/// A text part.
pub fn text_part(text: &str) -> Value {
    json::json!({KIND: kind::TEXT, TEXT: text})
}

/// The tools in the list `tools`.
pub fn tools_of(tools: &RawValue) -> Result<Vec<&RawValue>> {
    if tools.get().len() > MAX_TOOLS_BYTES {
        let actual = tools.get().len();
        return Err(
            Error::payload_too_large("`tools`", MAX_TOOLS_BYTES, actual).with_field("tools")
        );
    }
    values::<MAX_TOOLS>("tools", tools)
}

/// Parses the list `tools`. `read` returns a tool's definition, and the tool in the
/// provider's format.
pub fn parse_tools(
    tools: &RawValue,
    read: impl Fn(&str, &RequestFields<'_>, &RawValue) -> Result<(ToolDefinition, Box<RawValue>)>,
) -> Result<GivenTools> {
    let mut parsed = Vec::new();
    let mut given = BTreeMap::new();
    for (index, tool) in tools_of(tools)?.into_iter().enumerate() {
        let field = format!("tools[{index}]");
        let fields = RequestFields::of(&field, tool.get())?;
        let (definition, as_given) = read(&field, &fields, tool)?;
        given.insert(definition.name.clone(), as_given);
        parsed.push(definition);
    }
    check_tool_names(&parsed)?;
    Ok((parsed, given))
}

/// Parses a tool definition. `field` is where the object is. `schema` is the field with the
/// tool's parameters, and the schema of a tool without any.
pub fn parse_definition(
    field: &str,
    object: &RequestFields<'_>,
    (schema, default_schema): (&str, &str),
) -> Result<ToolDefinition> {
    let name = object.text("name");
    check_name(&format!("{field}.name"), &name)?;
    let parameters = object.find(schema).filter(|it| it.get().starts_with('{'));
    Ok(ToolDefinition {
        description: object.text("description"),
        parameters: match parameters {
            Some(parameters) => parameters.to_owned(),
            None => json::raw(default_schema.to_owned())?,
        },
        name,
    })
}

/// Refuses duplicate tool names, and names of the agent's memory tools.
fn check_tool_names(tools: &[ToolDefinition]) -> Result<()> {
    let mut names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    names.sort_unstable();
    let twice = names.windows(2).find(|pair| pair.first() == pair.last());
    let reserved = tools
        .iter()
        .position(|tool| context::tools::is_ours(&tool.name));
    match (twice.and_then(|pair| pair.first()), reserved) {
        (Some(name), _) => Err(Error::invalid(
            "tools",
            format!("`tools` names `{name}` twice."),
        )),
        (_, Some(index)) => Err(Error::invalid(
            &format!("tools[{index}].name"),
            format!(
                "`tools[{index}].name` is the name of a tool of the agent's memory. Give the tool another name."
            ),
        )),
        (None, None) => Ok(()),
    }
}

/// The number of cache markers in a JSON text.
pub fn count_marks(json: &str) -> usize {
    json.matches(r#""cache_control""#).count()
}

/// Refuses a history that ends with an empty user message. `field` is where that message
/// is.
pub fn check_not_empty(field: &str, items: &[Item]) -> Result<()> {
    match items.last() {
        Some(Item::User { text, others, .. }) if others.is_empty() && text.trim().is_empty() => {
            Err(Error::invalid(
                field,
                format!("`{field}` is empty. Send a message with text, or a file."),
            ))
        }
        _ => Ok(()),
    }
}

/// The data with which a message is stored as the caller sent it. `None`: it is too long.
pub fn stored_message(json: &str) -> Option<JsonObject> {
    if json.len() > MAX_GIVEN_BYTES {
        None
    } else {
        models::caller_fields::to_stored_message(json)
    }
}

/// Like [`stored_message`], for an item of Responses, or for the items of an assistant's
/// message.
pub fn stored_item(json: &str) -> Option<JsonObject> {
    if json.len() > MAX_GIVEN_BYTES {
        None
    } else {
        models::caller_fields::to_stored_item(json)
    }
}

pub fn stored_items(json: &str) -> Option<JsonObject> {
    if json.len() > MAX_GIVEN_BYTES {
        None
    } else {
        models::caller_fields::to_stored_items(json)
    }
}

/// Refuses a message with a part, at `lost`, that only its provider can read, if the
/// message is too long to be stored as the caller sent it.
pub fn check_given(lost: Option<String>, given: Option<&JsonObject>) -> Result<()> {
    let (Some(field), None) = (lost, given) else {
        return Ok(());
    };
    Err(Error::invalid(
        &field,
        format!(
            "`{field}` is too long: content of this type can have at most {MAX_GIVEN_BYTES} bytes."
        ),
    ))
}
