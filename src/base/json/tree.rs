//! `json!`: a tree of values, as serde_json's macro of this name makes it, in less code.
//! That macro writes the steps of each insertion anew; here they are functions.

use serde::Serialize;
use serde_json::{Map, Value};

/// A value, an array or an object, written as JSON. Keys and values may be expressions.
#[macro_export]
macro_rules! json {
    (@fields $object:ident) => {};
    (@fields $object:ident $key:tt: null $(, $($rest:tt)*)?) => {
        $crate::base::json::tree::put(&mut $object, $key, ::serde_json::Value::Null);
        $crate::base::json::tree::json!(@fields $object $($($rest)*)?);
    };
    (@fields $object:ident $key:tt: { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::base::json::tree::put(&mut $object, $key, $crate::base::json::tree::json!({ $($inner)* }));
        $crate::base::json::tree::json!(@fields $object $($($rest)*)?);
    };
    (@fields $object:ident $key:tt: [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $crate::base::json::tree::put(&mut $object, $key, $crate::base::json::tree::json!([ $($inner)* ]));
        $crate::base::json::tree::json!(@fields $object $($($rest)*)?);
    };
    (@fields $object:ident $key:tt: $value:expr $(, $($rest:tt)*)?) => {
        $crate::base::json::tree::put(&mut $object, $key, $crate::base::json::tree::value_of(&$value));
        $crate::base::json::tree::json!(@fields $object $($($rest)*)?);
    };
    (@items $list:ident) => {};
    (@items $list:ident null $(, $($rest:tt)*)?) => {
        $crate::base::json::tree::add(&mut $list, ::serde_json::Value::Null);
        $crate::base::json::tree::json!(@items $list $($($rest)*)?);
    };
    (@items $list:ident { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::base::json::tree::add(&mut $list, $crate::base::json::tree::json!({ $($inner)* }));
        $crate::base::json::tree::json!(@items $list $($($rest)*)?);
    };
    (@items $list:ident [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $crate::base::json::tree::add(&mut $list, $crate::base::json::tree::json!([ $($inner)* ]));
        $crate::base::json::tree::json!(@items $list $($($rest)*)?);
    };
    (@items $list:ident $value:expr $(, $($rest:tt)*)?) => {
        $crate::base::json::tree::add(&mut $list, $crate::base::json::tree::value_of(&$value));
        $crate::base::json::tree::json!(@items $list $($($rest)*)?);
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
        $crate::base::json::tree::json!(@fields object $($fields)+);
        ::serde_json::Value::Object(object)
    }};
    ([ $($items:tt)+ ]) => {{
        let mut list = ::std::vec::Vec::new();
        $crate::base::json::tree::json!(@items list $($items)+);
        ::serde_json::Value::Array(list)
    }};
    ($value:expr) => {
        $crate::base::json::tree::value_of(&$value)
    };
}
pub use json;

#[inline(never)]
pub fn put(object: &mut Map<String, Value>, key: &str, value: Value) {
    object.insert(key.to_owned(), value);
}

#[inline(never)]
pub fn add(list: &mut Vec<Value>, value: Value) {
    list.push(value);
}

/// The value as a tree. What cannot be one, such as an object whose keys are no texts, is
/// `null`; the types that this code gives always can.
#[inline(never)]
pub fn value_of<T: Serialize + ?Sized>(value: &T) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_tree_is_as_serde_jsons_macro_makes_it() {
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
