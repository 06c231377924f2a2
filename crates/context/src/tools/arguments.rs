//! A tool's arguments, as a model sent them. Parsing is lenient. The error for a wrong
//! argument names a valid value.

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use base::error::{Error, Result};
use base::filter::Filter;
use base::json::{self, json};
use memory::definition::Definition;
use search::query::MAX_QUERIES;

pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// Parses an object, or an object within a string, which some models send. Ignores
    /// unknown fields.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || mistake("The arguments must be a JSON object.");
        if text.trim().is_empty() {
            return Ok(Self(Map::new()));
        }
        let value = json::decode_tree(text).map_err(|_| wrong())?;
        match value {
            Value::Object(fields) => Ok(Self(fields)),
            Value::Null => Ok(Self(Map::new())),
            Value::String(text) => match json::decode_tree(&text) {
                Ok(Value::Object(fields)) => Ok(Self(fields)),
                _ => Err(wrong()),
            },
            _ => Err(wrong()),
        }
    }

    pub fn get_text(&self, name: &str) -> Result<&str> {
        self.find_text(name)?
            .ok_or_else(|| mistake(format!("`{name}` is missing: it must be a string.")))
    }

    pub fn find_text(&self, name: &str) -> Result<Option<&str>> {
        text_in(&self.0, name, name)
    }

    /// The search queries: `query`, `queries`, or both. At most as many as one search
    /// accepts.
    pub fn get_queries(&self) -> Result<Vec<String>> {
        let more = texts_in(self.0.get("queries"), "queries")?;
        let first = match more {
            Some(_) => self.find_text("query")?,
            None => Some(self.get_text("query")?),
        };
        let first = first.map(str::to_owned).into_iter();
        let mut queries: Vec<String> = Vec::new();
        for query in first.chain(more.unwrap_or_default()) {
            if !queries.contains(&query) && queries.len() < MAX_QUERIES {
                queries.push(query);
            }
        }
        if queries.is_empty() {
            Err(mistake("`query` is missing: it must be a string."))
        } else {
            Ok(queries)
        }
    }

    /// The text field `name` of the object `outer`.
    pub fn find_inner_text(&self, outer: &str, name: &str) -> Result<Option<&str>> {
        match self.0.get(outer) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(fields)) => text_in(fields, name, &format!("{outer}.{name}")),
            Some(_) => Err(mistake(format!("`{outer}` must be an object."))),
        }
    }

    /// The list of texts `name` in the object `outer`. A single text counts as a list.
    pub fn find_inner_texts(&self, outer: &str, name: &str) -> Result<Option<Vec<String>>> {
        let value = self.0.get(outer).and_then(|fields| fields.get(name));
        texts_in(value, &format!("{outer}.{name}"))
    }

    /// The blocks in `label` and `labels`, without duplicates.
    pub fn get_blocks<'b>(&self, blocks: &[&'b Definition]) -> Result<Vec<&'b Definition>> {
        let more = texts_in(self.0.get("labels"), "labels")?.unwrap_or_default();
        let mut named = Vec::new();
        if more.is_empty() || self.0.contains_key("label") || self.0.contains_key("block") {
            named.push(self.get_block(blocks)?);
        }
        for label in more {
            let key = label.trim().to_lowercase();
            let found = blocks.iter().find(|block| block.label.key() == key);
            let block = found.copied().ok_or_else(|| {
                let labels: Vec<&str> = blocks.iter().map(|block| block.label.as_str()).collect();
                mistake(format!("`labels` can contain {}.", labels.join(", ")))
            })?;
            if !named
                .iter()
                .any(|known: &&Definition| known.label == block.label)
            {
                named.push(block);
            }
        }
        Ok(named)
    }

    /// The tags and metadata fields that an entry must have.
    pub fn find_filter(&self) -> Result<Option<Filter>> {
        let tags = texts_in(self.0.get("tags"), "tags")?.filter(|tags| !tags.is_empty());
        let tags = tags.map(|tags| json!({"all": tags}));
        let fields = self.0.get("fields").filter(|fields| !fields.is_null());
        let filter = json!({"tags": tags.unwrap_or_else(|| json!({})), "metadata": fields.cloned().unwrap_or_else(|| json!({}))});
        let filter: Filter = json::parse(json::text(&filter).as_bytes()).map_err(|error| {
            mistake(format!(
                "`tags` must be a list of short lines, and `fields` an object of values. {}",
                error.message
            ))
        })?;
        Ok(filter.unless_empty())
    }

    /// The object or list `name` in the object `outer`, parsed as a `T`.
    pub fn find_inner<T: DeserializeOwned>(&self, outer: &str, name: &str) -> Result<Option<T>> {
        let value = self.0.get(outer).and_then(|fields| fields.get(name));
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return Ok(None);
        };
        json::decode(&json::text(value)).map(Some).map_err(|_| {
            mistake(format!(
                "`{outer}.{name}` is not valid: `tags` must be a list of \
                                          short lines, and `fields` an object of at most 4 KiB."
            ))
        })
    }

    /// The block in `label`, among the blocks that the tool can use. Documentation of
    /// similar tools calls the field `block`, and so do some models.
    pub fn get_block<'b>(&self, blocks: &[&'b Definition]) -> Result<&'b Definition> {
        let right = || {
            let labels: Vec<String> = blocks
                .iter()
                .map(|block| format!("\"{}\"", block.label))
                .collect();
            format!("`label` must be one of {}.", labels.join(", "))
        };
        let named = self.find_text("label").and_then(|label| match label {
            Some(label) => Ok(Some(label)),
            None => self.find_text("block"),
        });
        let label = match named {
            Ok(Some(label)) => label.trim().to_lowercase(),
            Ok(None) => return Err(mistake(format!("`label` is missing. {}", right()))),
            Err(_) => return Err(mistake(right())),
        };
        blocks
            .iter()
            .find(|block| block.label.key() == label)
            .copied()
            .ok_or_else(|| mistake(format!("This tool has no such block. {}", right())))
    }
}

fn text_in<'a>(fields: &'a Map<String, Value>, name: &str, path: &str) -> Result<Option<&'a str>> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(mistake(format!("`{path}` must be a string."))),
    }
}

/// A list of texts. A single text counts as a list.
fn texts_in(value: Option<&Value>, path: &str) -> Result<Option<Vec<String>>> {
    let wrong = || mistake(format!("`{path}` must be a list of strings."));
    let list = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(text)) => return Ok(Some(vec![text.clone()])),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(wrong()),
    };
    let texts = list.iter().map(|item| item.as_str().map(str::to_owned));
    texts.collect::<Option<_>>().map(Some).ok_or_else(wrong)
}

pub fn mistake(message: impl Into<String>) -> Error {
    Error::invalid("arguments", message)
}
