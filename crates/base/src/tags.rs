//! Tags and metadata, which callers attach to sessions, blocks, entries and documents to find them
//! again. Each type checks its value when it is parsed.

use crate::schema::JsonSchema;
use std::collections::HashSet;
use std::fmt;

use serde::de::{self, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::error::{Error, Result};
use super::json::{self, JsonObject, List};

/// The most tags of one thing, the most characters of each, and the most bytes of all. A
/// listing shows a thousand things with their tags.
pub const MAX_TAGS: usize = 32;
pub const MAX_TAG_CHARS: usize = 100;
pub const MAX_TAGS_BYTES: usize = 2 << 10;

/// The most bytes of the metadata of an entry, a document or a block.
pub const MAX_METADATA_BYTES: usize = 4 << 10;

/// One tag: a short line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct Tag(#[schemars(length(min = 1, max = MAX_TAG_CHARS))] String);

impl Tag {
    pub fn parse(text: String) -> Result<Self, &'static str> {
        if text.trim().is_empty() {
            return Err("must not be empty");
        }
        if text.chars().any(char::is_control) {
            return Err("must be a single line, without control characters");
        }
        if text.chars().count() > MAX_TAG_CHARS {
            return Err("must have at most 100 characters");
        }
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Tag {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(text).map_err(de::Error::custom)
    }
}

/// Tags in the given order, without duplicates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct Tags(List<Tag, 0, MAX_TAGS>);

impl Tags {
    pub fn new(given: Vec<Tag>) -> Self {
        let mut tags: Vec<Tag> = Vec::with_capacity(given.len());
        for tag in given.into_iter().take(MAX_TAGS) {
            if !tags.contains(&tag) {
                tags.push(tag);
            }
        }
        Self(List(tags))
    }

    pub fn is_empty(&self) -> bool {
        self.0.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.0.iter().map(Tag::as_str)
    }

    /// The length of the tags as JSON.
    pub fn written_bytes(&self) -> usize {
        self.iter().map(|tag| json::written_bytes(tag) + 1).sum()
    }

    /// The column `tags` of a row.
    pub fn to_column(&self) -> Result<Option<String>> {
        if self.is_empty() {
            Ok(None)
        } else {
            json::encode(self).map(Some)
        }
    }

    /// Reads the column `tags` of the row `key`.
    pub fn read(column: Option<&str>, key: &str) -> Result<Self> {
        match column {
            Some(text) => json::decode(text).map_err(|_| Error::corrupt_row(key, "tags")),
            None => Ok(Self::default()),
        }
    }
}

impl<'de> Deserialize<'de> for Tags {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = List::<Tag, 0, MAX_TAGS>::deserialize(deserializer)?;
        let tags = Self::new(given.0);
        if tags.iter().map(str::len).sum::<usize>() <= MAX_TAGS_BYTES {
            Ok(tags)
        } else {
            Err(de::Error::custom(format!(
                "must have at most {MAX_TAGS_BYTES} bytes in total"
            )))
        }
    }
}

/// Metadata of limited length, stored as the text that was sent.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct Metadata(JsonObject);

impl Metadata {
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The length of the metadata where it is shown; 0: there is none.
    pub fn bytes_of(metadata: Option<&Self>) -> usize {
        metadata.map_or(0, |metadata| metadata.as_str().len())
    }

    /// `None` for an object without fields.
    pub fn unless_empty(self) -> Option<Self> {
        let inside = self.as_str().trim_matches(['{', '}']);
        (!inside.trim().is_empty()).then_some(self)
    }

    /// Reads the column `metadata` of the row `key`.
    pub fn read(column: Option<&str>, key: &str) -> Result<Option<Self>> {
        let read = column.map(json::decode::<JsonObject>).transpose();
        let read = read.map_err(|_| Error::corrupt_row(key, "metadata"))?;
        Ok(read.map(Self))
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = JsonObject::deserialize(deserializer)?;
        if object.as_str().len() > MAX_METADATA_BYTES {
            return Err(de::Error::custom(format!(
                "must have at most {MAX_METADATA_BYTES} bytes"
            )));
        }
        match json::decode::<UniqueKeys>(object.as_str()) {
            Ok(UniqueKeys) => Ok(Self(object)),
            Err(_) => Err(de::Error::custom("must contain each key once")),
        }
    }
}

/// An object without duplicate keys. Otherwise a filter could test one value of a key while a
/// reader sees the other.
struct UniqueKeys;

impl<'de> Deserialize<'de> for UniqueKeys {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Keys;

        impl<'de> Visitor<'de> for Keys {
            type Value = UniqueKeys;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<UniqueKeys, A::Error> {
                let mut keys = HashSet::new();
                while let Some(key) = fields.next_key::<String>()? {
                    if !keys.insert(key) {
                        return Err(de::Error::custom("a duplicate key"));
                    }
                    fields.next_value::<IgnoredAny>()?;
                }
                Ok(UniqueKeys)
            }
        }

        deserializer.deserialize_map(Keys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(text: &str) -> Result<Vec<String>, ()> {
        let tags: Tags = json::decode(text).map_err(drop)?;
        Ok(tags.iter().map(str::to_owned).collect())
    }

    #[test]
    fn tags_are_short_and_unique() {
        assert_eq!(tags(r#"["b","a","b"]"#).unwrap(), ["b", "a"]);
        assert_eq!(tags("[]").unwrap(), [] as [&str; 0]);
        let of = |length: usize| format!(r#"["{}"]"#, "é".repeat(length));
        assert!(tags(&of(MAX_TAG_CHARS)).is_ok());
        for wrong in [r#"[""]"#, r#"[" "]"#, r#"["a\nb"]"#, "[1]", r#""a""#, "{}"] {
            assert!(tags(wrong).is_err(), "{wrong}");
        }
        assert!(tags(&of(MAX_TAG_CHARS + 1)).is_err());
        let many = |count: usize| format!("[{}]", vec![r#""a""#; count].join(","));
        assert!(tags(&many(MAX_TAGS)).is_ok());
        assert!(tags(&many(MAX_TAGS + 1)).is_err());
        let long = |count: usize| {
            let long: Vec<String> = (0..count).map(|n| format!("\"{n:064}\"")).collect();
            format!("[{}]", long.join(","))
        };
        assert!(tags(&long(MAX_TAGS_BYTES / 64)).is_ok());
        let wide: Vec<String> = (0..21)
            .map(|n| format!("\"{}{n}\"", "é".repeat(50)))
            .collect();
        assert!(tags(&format!("[{}]", wide.join(","))).is_err());
    }

    #[test]
    fn metadata_is_a_bounded_object_stored_verbatim() {
        let of = |text: &str| json::decode::<Metadata>(text);
        let sent = r#"{"b": 1.0,"a":12345678901234567890}"#;
        assert_eq!(of(sent).unwrap().as_str(), sent);
        let long = |length: usize| format!(r#"{{"a":"{}"}}"#, "x".repeat(length - 8));
        assert!(of(&long(MAX_METADATA_BYTES)).is_ok());
        assert!(of(&long(MAX_METADATA_BYTES + 1)).is_err());
        assert!(of("[]").is_err());
        assert!(of(r#"{"a":{"b":1},"b":[{"b":1}]}"#).is_ok());
        for twice in [r#"{"a":1,"a":2}"#, r#"{"a":1,"b":{},"\u0061":1}"#] {
            assert!(of(twice).is_err(), "{twice}");
        }
        for empty in ["{}", "{ }"] {
            assert_eq!(of(empty).unwrap().unless_empty(), None);
        }
        assert!(of(sent).unwrap().unless_empty().is_some());
    }
}
