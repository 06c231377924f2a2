//! A JSON value that keeps its original text: key order, duplicate keys and the spelling of
//! numbers are preserved.
//!
//! This crate's reader and writer recognize the type by its name and pass the text through.
//! Any other reader or writer sees a tree of the values.

use std::borrow::ToOwned;
use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::raw_name::RAW_NAME;
use super::reader::decode;
use super::tree::{Tree, decode_tree};
use super::writer::text;
use crate::error::{Error, Result};

/// The text of one value, without whitespace around it. Always JSON.
#[derive(PartialEq, Eq)]
#[repr(transparent)]
pub struct RawValue(str);

impl RawValue {
    pub fn get(&self) -> &str {
        &self.0
    }

    #[expect(unsafe_code, reason = "only a cast makes a reference to another str")]
    fn of(json: &str) -> &Self {
        // SAFETY: the type is transparent, so both references have the same layout.
        unsafe { &*(std::ptr::from_ref(json) as *const Self) }
    }

    #[expect(unsafe_code, reason = "only a cast makes a box of another str")]
    fn boxed(json: Box<str>) -> Box<Self> {
        // SAFETY: the type is transparent, so both boxes have the same layout.
        unsafe { Box::from_raw(Box::into_raw(json) as *mut Self) }
    }
}

/// Wraps a JSON text unchanged.
#[inline(never)]
pub fn raw(json: String) -> Result<Box<RawValue>> {
    let raw_value: &RawValue =
        decode(&json).map_err(|_| Error::storage("a text that is not JSON"))?;
    if raw_value.get().len() < json.len() {
        return Ok(raw_value.to_owned());
    }
    Ok(RawValue::boxed(json.into()))
}

impl ToOwned for RawValue {
    type Owned = Box<Self>;

    fn to_owned(&self) -> Box<Self> {
        Self::boxed(self.0.into())
    }
}

impl Clone for Box<RawValue> {
    fn clone(&self) -> Self {
        (**self).to_owned()
    }
}

impl Default for Box<RawValue> {
    fn default() -> Self {
        RawValue::boxed("null".into())
    }
}

impl fmt::Debug for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for RawValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for RawValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_newtype_struct(RAW_NAME, &Inside(&self.0))
    }
}

/// The text inside a [`RawValue`], as a writer receives it.
struct Inside<'a>(&'a str);

impl Serialize for Inside<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            serializer.serialize_str(self.0)
        } else {
            decode_tree(self.0)
                .unwrap_or_default()
                .serialize(serializer)
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for &'a RawValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Borrowed;
        impl<'de> Visitor<'de> for Borrowed {
            type Value = &'de RawValue;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_borrowed_str<E: serde::de::Error>(
                self,
                json: &'de str,
            ) -> Result<Self::Value, E> {
                Ok(RawValue::of(json))
            }
        }
        deserializer.deserialize_newtype_struct(RAW_NAME, Borrowed)
    }
}

impl<'de> Deserialize<'de> for Box<RawValue> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Owned;
        impl<'de> Visitor<'de> for Owned {
            type Value = Box<RawValue>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }

            fn visit_borrowed_str<E: serde::de::Error>(
                self,
                json: &'de str,
            ) -> Result<Self::Value, E> {
                Ok(RawValue::of(json).to_owned())
            }

            fn visit_newtype_struct<D: Deserializer<'de>>(
                self,
                other: D,
            ) -> Result<Self::Value, D::Error> {
                let Tree(value) = Tree::deserialize(other)?;
                Ok(RawValue::boxed(text(&value).into()))
            }
        }
        deserializer.deserialize_newtype_struct(RAW_NAME, Owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::encode;

    #[derive(Debug, Deserialize, Serialize)]
    struct Sample {
        kept: Box<RawValue>,
    }

    const TEXT: &str = r#"{"kept":{"b": 1.0,"a":12345678901234567890,"b":-0}}"#;

    #[test]
    fn the_text_is_stored_verbatim() {
        let read: Sample = decode(TEXT).unwrap();
        assert_eq!(read.kept.get(), &TEXT[8..TEXT.len() - 1]);
        assert_eq!(encode(&read).unwrap(), TEXT);
        let kept = raw(" [1, 2]\n".to_owned()).unwrap();
        assert_eq!(kept.get(), "[1, 2]");
        assert_eq!(encode(&[&kept, &Box::default()]).unwrap(), "[[1, 2],null]");
        assert!(raw("[1,]".to_owned()).is_err());
    }

    #[test]
    fn other_serializers_see_a_tree() {
        let tree = serde_json::json!({"kept": {"b": -0.0, "a": 12345678901234567890_u64}});
        let read: Sample = decode(TEXT).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), tree);
        let read: Sample = serde_json::from_value(tree).unwrap();
        assert_eq!(read.kept.get(), r#"{"a":12345678901234567890,"b":-0.0}"#);
    }
}
