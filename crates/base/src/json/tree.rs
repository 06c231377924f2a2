//! Trees of values. They are read here: serde_json's own reader of `Value` would bring all of
//! serde_json's reader into the Wasm.
//!
//! `json!` makes a tree as serde_json's macro of this name does, in less code: that macro repeats
//! the steps of each insertion, and here they are functions.

use std::fmt;

use serde::Serialize;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::problem::ReadResult;
use super::reader::decode;

/// A tree of values, as a field that is read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree(pub Value);

/// Reads a text as a tree of values.
#[inline(never)]
pub fn decode_tree(text: &str) -> ReadResult<Value> {
    decode(text).map(|Tree(value)| value)
}

impl<'de> Deserialize<'de> for Tree {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TreeVisitor).map(Self)
    }
}

struct TreeVisitor;

impl<'de> Visitor<'de> for TreeVisitor {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Tree(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    /// Of two fields with the same name, the later one counts.
    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(name) = fields.next_key()? {
            let Tree(value) = fields.next_value()?;
            object.insert(name, value);
        }
        Ok(Value::Object(object))
    }
}

/// A value, an array or an object, written as JSON. Keys and values may be expressions. Others
/// import it as `json::json`: an exported macro is in its crate's root, where the module has this
/// name.
#[macro_export]
macro_rules! json_value {
    (@fields $object:ident) => {};
    (@fields $object:ident $key:tt: null $(, $($rest:tt)*)?) => {
        $crate::json::tree::put(&mut $object, $key, ::serde_json::Value::Null);
        $crate::json_value!(@fields $object $($($rest)*)?);
    };
    (@fields $object:ident $key:tt: { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::json::tree::put(&mut $object, $key, $crate::json_value!({ $($inner)* }));
        $crate::json_value!(@fields $object $($($rest)*)?);
    };
    (@fields $object:ident $key:tt: [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $crate::json::tree::put(&mut $object, $key, $crate::json_value!([ $($inner)* ]));
        $crate::json_value!(@fields $object $($($rest)*)?);
    };
    (@fields $object:ident $key:tt: $value:expr $(, $($rest:tt)*)?) => {
        $crate::json::tree::put(&mut $object, $key, $crate::json::tree::value_of(&$value));
        $crate::json_value!(@fields $object $($($rest)*)?);
    };
    (@items $list:ident) => {};
    (@items $list:ident null $(, $($rest:tt)*)?) => {
        $crate::json::tree::add(&mut $list, ::serde_json::Value::Null);
        $crate::json_value!(@items $list $($($rest)*)?);
    };
    (@items $list:ident { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::json::tree::add(&mut $list, $crate::json_value!({ $($inner)* }));
        $crate::json_value!(@items $list $($($rest)*)?);
    };
    (@items $list:ident [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $crate::json::tree::add(&mut $list, $crate::json_value!([ $($inner)* ]));
        $crate::json_value!(@items $list $($($rest)*)?);
    };
    (@items $list:ident $value:expr $(, $($rest:tt)*)?) => {
        $crate::json::tree::add(&mut $list, $crate::json::tree::value_of(&$value));
        $crate::json_value!(@items $list $($($rest)*)?);
    };
    (null) => {
        ::serde_json::Value::Null
    };
    ({}) => {
        ::serde_json::Value::Object(::serde_json::Map::new())
    };
    ([]) => {
        ::serde_json::Value::Array(::std::vec::Vec::new())
    };
    ({ $($fields:tt)+ }) => {{
        let mut object = ::serde_json::Map::new();
        $crate::json_value!(@fields object $($fields)+);
        ::serde_json::Value::Object(object)
    }};
    ([ $($items:tt)+ ]) => {{
        let mut list = ::std::vec::Vec::new();
        $crate::json_value!(@items list $($items)+);
        ::serde_json::Value::Array(list)
    }};
    ($value:expr) => {
        $crate::json::tree::value_of(&$value)
    };
}
pub use json_value as json;

#[inline(never)]
pub fn put(object: &mut Map<String, Value>, key: &str, value: Value) {
    object.insert(key.to_owned(), value);
}

#[inline(never)]
pub fn add(list: &mut Vec<Value>, value: Value) {
    list.push(value);
}

/// The value as a tree. A value that cannot be one, such as an object whose keys are not
/// texts, is `null`. The types that this code gives can always be trees.
#[inline(never)]
pub fn value_of<T: Serialize + ?Sized>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_parsed_as_by_serde_json() {
        for text in [
            "null",
            " [true, false, 0, -1, 18446744073709551615, 0.5, -2.5e3, -0] ",
            r#"{"b": {"a": [], "b": {}}, "a": "x\n\u00e9", "b": 2}"#,
            r#"{"$serde_json::private::RawValue": "[1]"}"#,
            "",
            "[1,]",
            r#"{"a":}"#,
            "1 2",
        ] {
            let theirs = serde_json::from_str::<Value>(text).ok();
            let theirs = if text.contains("private") {
                Some(serde_json::json!({"$serde_json::private::RawValue": "[1]"}))
            } else {
                theirs
            };
            assert_eq!(decode_tree(text).ok(), theirs, "{text}");
        }
    }

    #[test]
    fn the_macro_builds_the_same_tree_as_serde_jsons() {
        let (key, some, none) = ("key", Some(1), None::<&str>);
        let list = vec!["a", "b"];
        macro_rules! both {
            ($($tree:tt)+) => {
                assert_eq!(json!($($tree)+), serde_json::json!($($tree)+))
            };
        }
        both!(null);
        both!({});
        both!([]);
        both!(list.len() + 1);
        both!({ "a": 1, "b": { "c": [], "d": {} }, "e": null });
        both!({ key: some, "none": none, "list": list, "sum": 1 + 2, });
        both!([1, "two", null, [3, [list[0]]], { "four": -4 }, some.is_some(),]);
        both!({ "text": format!("{key}!"), "nested": [[{ "x": true }]], "last": list[1].len() });
    }
}
