//! Serializes types with serde's `Serialize` as JSON.
//!
//! The output is identical to serde_json's. serde_json's steps are generic, and compiled
//! again for each type; here, each step is compiled once and called.

use std::fmt::Write as _;

use serde::ser::{
    Impossible, Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant,
    SerializeTuple, SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::{Number, Value};

use super::raw_name::RAW_NAME;
use super::scan::count_unescaped;
use crate::error::{Error, Result};

/// The value as JSON. Fails only if a map's key is not a text, and none of our types has
/// such a map.
pub fn encode<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    encode_within(value, 0)
}

/// Like [`encode`], for a text of about this many bytes. Reserves the memory first: a text
/// that grows by doubling takes up to three times its size while it grows.
pub fn encode_within<T: Serialize + ?Sized>(value: &T, bytes: usize) -> Result<String> {
    let mut writer = Writer {
        json: String::with_capacity(bytes),
        is_raw: false,
    };
    match value.serialize(&mut writer) {
        Ok(()) => Ok(writer.json),
        Err(Unwritable) => Err(no_json()),
    }
}

/// A tree of values as JSON.
#[inline(never)]
pub fn text(tree: &Value) -> String {
    encode(tree).unwrap_or_default()
}

#[cold]
fn no_json() -> Error {
    Error::storage("a value that is not JSON")
}

/// A text as a JSON string.
pub fn quoted(text: &str) -> String {
    let mut json = String::new();
    push_quoted(&mut json, text);
    json
}

/// Adds a text as a JSON string.
#[inline(never)]
pub fn push_quoted(json: &mut String, text: &str) {
    json.push('"');
    let mut rest = text;
    loop {
        let (plain, special) = rest
            .split_at_checked(count_unescaped(rest.as_bytes()))
            .unwrap_or((rest, ""));
        json.push_str(plain);
        let mut marks = special.chars();
        match marks.next() {
            None => break,
            Some(mark @ ('"' | '\\')) => json.extend(['\\', mark]),
            Some('\u{8}') => json.push_str("\\b"),
            Some('\t') => json.push_str("\\t"),
            Some('\n') => json.push_str("\\n"),
            Some('\u{c}') => json.push_str("\\f"),
            Some('\r') => json.push_str("\\r"),
            Some(control) => {
                let _ = write!(json, "\\u{:04x}", u32::from(control));
            }
        }
        rest = marks.as_str();
    }
    json.push('"');
}

/// The bytes of a text within a JSON string. The limit of an answer counts these bytes,
/// because an escaped character takes up to six bytes instead of one.
#[inline(never)]
pub fn written_bytes(text: &str) -> usize {
    let mut bytes = text.len();
    let mut rest = text.as_bytes();
    while let Some((mark, after)) = rest
        .get(count_unescaped(rest)..)
        .and_then(<[u8]>::split_first)
    {
        bytes += match mark {
            b'"' | b'\\' | 0x8 | b'\t' | b'\n' | 0xc | b'\r' => 1,
            _ => "u0000".len(),
        };
        rest = after;
    }
    bytes
}

/// A value that JSON can't represent.
#[derive(Debug)]
struct Unwritable;

impl std::fmt::Display for Unwritable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("no JSON")
    }
}

impl std::error::Error for Unwritable {}

impl serde::ser::Error for Unwritable {
    fn custom<T: std::fmt::Display>(_: T) -> Self {
        Self
    }
}

type Written = Result<(), Unwritable>;

struct Writer {
    json: String,
    /// The next text is already JSON.
    is_raw: bool,
}

impl Writer {
    #[inline(never)]
    fn word(&mut self, word: &str) {
        self.json.push_str(word);
    }

    #[inline(never)]
    fn text(&mut self, text: &str) {
        if std::mem::take(&mut self.is_raw) {
            self.json.push_str(text);
        } else {
            push_quoted(&mut self.json, text);
        }
    }

    /// Starts an item: adds a comma, unless an array or object was just opened.
    #[inline(never)]
    fn item(&mut self) {
        if !matches!(self.json.as_bytes().last(), None | Some(b'[' | b'{')) {
            self.json.push(',');
        }
    }

    /// Starts a field.
    #[inline(never)]
    fn key(&mut self, name: &str) {
        self.item();
        push_quoted(&mut self.json, name);
        self.json.push(':');
    }

    #[inline(never)]
    fn natural(&mut self, number: u64) {
        let _ = write!(self.json, "{number}");
    }

    #[inline(never)]
    fn integer(&mut self, number: i64) {
        let _ = write!(self.json, "{number}");
    }

    #[inline(never)]
    fn real(&mut self, number: f64) {
        match Number::from_f64(number) {
            Some(number) => {
                let _ = write!(self.json, "{number}");
            }
            None => self.word("null"),
        }
    }

    /// Opens the contents of an enum's variant.
    #[inline(never)]
    fn variant(&mut self, name: &str, open: &str) {
        self.word("{");
        self.key(name);
        self.word(open);
    }
}

macro_rules! numbers {
    ($($method:ident $of:ty: $step:ident as $as:ty),*) => {$(
        fn $method(self, number: $of) -> Written {
            self.$step(<$as>::from(number));
            Ok(())
        }
    )*};
}

impl<'a> Serializer for &'a mut Writer {
    type Ok = ();
    type Error = Unwritable;
    type SerializeSeq = Open<'a>;
    type SerializeTuple = Open<'a>;
    type SerializeTupleStruct = Open<'a>;
    type SerializeTupleVariant = Open<'a>;
    type SerializeMap = Open<'a>;
    type SerializeStruct = Open<'a>;
    type SerializeStructVariant = Open<'a>;

    numbers! {
        serialize_i8 i8: integer as i64, serialize_i16 i16: integer as i64,
        serialize_i32 i32: integer as i64, serialize_i64 i64: integer as i64,
        serialize_u8 u8: natural as u64, serialize_u16 u16: natural as u64,
        serialize_u32 u32: natural as u64, serialize_u64 u64: natural as u64,
        serialize_f64 f64: real as f64
    }

    /// An `f32` needs fewer digits than an `f64` to be unambiguous.
    fn serialize_f32(self, number: f32) -> Written {
        self.word(&serde_json::to_string(&number).unwrap_or_default());
        Ok(())
    }

    fn serialize_bool(self, value: bool) -> Written {
        self.word(if value { "true" } else { "false" });
        Ok(())
    }

    fn serialize_char(self, value: char) -> Written {
        self.text(value.encode_utf8(&mut [0; 4]));
        Ok(())
    }

    fn serialize_str(self, text: &str) -> Written {
        self.text(text);
        Ok(())
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Written {
        self.collect_seq(bytes)
    }

    fn serialize_none(self) -> Written {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Written {
        self.word("null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Written {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Written {
        self.serialize_str(name)
    }

    /// Signals a [`super::RawValue`] that its text is written unchanged.
    fn is_human_readable(&self) -> bool {
        !self.is_raw
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Written {
        self.is_raw = name == RAW_NAME;
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        value: &T,
    ) -> Written {
        self.variant(name, "");
        value.serialize(&mut *self)?;
        self.word("}");
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Open<'a>, Unwritable> {
        Ok(Open::of(self, "[", "]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Open<'a>, Unwritable> {
        Ok(Open::of(self, "[", "]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Open<'a>, Unwritable> {
        Ok(Open::of(self, "[", "]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Open<'a>, Unwritable> {
        self.variant(name, "[");
        Ok(Open::of(self, "", "]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Open<'a>, Unwritable> {
        Ok(Open::of(self, "{", "}"))
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Open<'a>, Unwritable> {
        Ok(Open::of(self, "{", "}"))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        name: &'static str,
        _: usize,
    ) -> Result<Open<'a>, Unwritable> {
        self.variant(name, "{");
        Ok(Open::of(self, "", "}}"))
    }
}

/// An array or object that is being written, and its closing bracket.
struct Open<'a> {
    writer: &'a mut Writer,
    close: &'static str,
}

impl<'a> Open<'a> {
    fn of(writer: &'a mut Writer, open: &str, close: &'static str) -> Self {
        writer.word(open);
        Self { writer, close }
    }

    fn add<T: Serialize + ?Sized>(&mut self, item: &T) -> Written {
        self.writer.item();
        item.serialize(&mut *self.writer)
    }

    fn put<T: Serialize + ?Sized>(&mut self, key: &str, value: &T) -> Written {
        self.writer.key(key);
        value.serialize(&mut *self.writer)
    }

    fn close(self) -> Written {
        self.writer.word(self.close);
        Ok(())
    }
}

macro_rules! arrays {
    ($($of:ident: $add:ident),*) => {$(
        impl $of for Open<'_> {
            type Ok = ();
            type Error = Unwritable;

            fn $add<T: Serialize + ?Sized>(&mut self, item: &T) -> Written {
                self.add(item)
            }

            fn end(self) -> Written {
                self.close()
            }
        }
    )*};
}
arrays!(
    SerializeSeq: serialize_element, SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field, SerializeTupleVariant: serialize_field
);

macro_rules! objects {
    ($($of:ident),*) => {$(
        impl $of for Open<'_> {
            type Ok = ();
            type Error = Unwritable;

            fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Written {
                self.put(key, value)
            }

            fn end(self) -> Written {
                self.close()
            }
        }
    )*};
}
objects!(SerializeStruct, SerializeStructVariant);

impl SerializeMap for Open<'_> {
    type Ok = ();
    type Error = Unwritable;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Written {
        key.serialize(KeyWriter(self.writer))
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        value.serialize(&mut *self.writer)
    }

    fn end(self) -> Written {
        self.close()
    }
}

/// Writes a map's key: a text, a name, or an integer.
struct KeyWriter<'a>(&'a mut Writer);

impl KeyWriter<'_> {
    fn number(self, number: i64) {
        self.0.key(&number.to_string());
    }
}

macro_rules! no_key {
    ($($method:ident($($of:ty),*) -> $gives:ty;)*) => {$(
        fn $method(self, $(_: $of),*) -> Result<$gives, Unwritable> {
            Err(Unwritable)
        }
    )*};
}

impl Serializer for KeyWriter<'_> {
    type Ok = ();
    type Error = Unwritable;
    type SerializeSeq = Impossible<(), Unwritable>;
    type SerializeTuple = Impossible<(), Unwritable>;
    type SerializeTupleStruct = Impossible<(), Unwritable>;
    type SerializeTupleVariant = Impossible<(), Unwritable>;
    type SerializeMap = Impossible<(), Unwritable>;
    type SerializeStruct = Impossible<(), Unwritable>;
    type SerializeStructVariant = Impossible<(), Unwritable>;

    fn serialize_str(self, key: &str) -> Written {
        self.0.key(key);
        Ok(())
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, name: &'static str) -> Written {
        self.serialize_str(name)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, key: &T) -> Written {
        key.serialize(self)
    }

    numbers! {
        serialize_i8 i8: number as i64, serialize_i16 i16: number as i64,
        serialize_i32 i32: number as i64, serialize_i64 i64: number as i64,
        serialize_u8 u8: number as i64, serialize_u16 u16: number as i64,
        serialize_u32 u32: number as i64
    }

    no_key! {
        serialize_u64(u64) -> ();
        serialize_bool(bool) -> ();
        serialize_f32(f32) -> ();
        serialize_f64(f64) -> ();
        serialize_char(char) -> ();
        serialize_bytes(&[u8]) -> ();
        serialize_none() -> ();
        serialize_unit() -> ();
        serialize_unit_struct(&'static str) -> ();
        serialize_seq(Option<usize>) -> Self::SerializeSeq;
        serialize_tuple(usize) -> Self::SerializeTuple;
        serialize_tuple_struct(&'static str, usize) -> Self::SerializeTupleStruct;
        serialize_tuple_variant(&'static str, u32, &'static str, usize) -> Self::SerializeTupleVariant;
        serialize_map(Option<usize>) -> Self::SerializeMap;
        serialize_struct(&'static str, usize) -> Self::SerializeStruct;
        serialize_struct_variant(&'static str, u32, &'static str, usize) -> Self::SerializeStructVariant;
    }

    fn serialize_some<T: Serialize + ?Sized>(self, _: &T) -> Written {
        Err(Unwritable)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Written {
        Err(Unwritable)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::json::RawValue;
    use serde::Serialize;

    use super::*;

    #[derive(Serialize)]
    enum Shape {
        Unit,
        Newtype(i64),
        Tuple(u8, bool),
        Struct { a: char, b: () },
    }

    #[derive(Serialize)]
    #[serde(tag = "type")]
    enum Tagged {
        One {
            raw: Box<RawValue>,
            #[serde(skip_serializing_if = "Option::is_none")]
            left_out: Option<i64>,
        },
    }

    #[derive(Serialize)]
    struct Outer {
        #[serde(flatten)]
        tagged: Tagged,
        none: Option<u8>,
        some: Option<&'static str>,
        #[serde(flatten)]
        rest: BTreeMap<String, Value>,
    }

    #[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
    struct Named(&'static str);

    fn same(value: &impl Serialize) {
        assert_eq!(
            encode(value).unwrap(),
            serde_json::to_string(value).unwrap()
        );
    }

    #[test]
    fn the_output_matches_serde_json() {
        let every: String = (0..0x100)
            .filter_map(char::from_u32)
            .chain("é😀\u{2028}".chars())
            .collect();
        same(&every);
        same(&["", "\"", "\\", "a\nb", "\u{0}"]);
        same(&[i64::MIN, -1, 0, 7, i64::MAX]);
        same(&[u64::MAX, 1 << 53]);
        same(&[
            0.0,
            -0.0,
            1.0,
            0.1,
            1e21,
            1e-7,
            5e-324,
            f64::MAX,
            f64::NAN,
            f64::INFINITY,
        ]);
        same(&[0.1_f32, 16_777_216.0, f32::NAN]);
        same(&(1_i8, 2_u16, true, false, 'x', ()));
        same(&[Shape::Unit, Shape::Newtype(-3), Shape::Tuple(1, true)]);
        same(&Shape::Struct { a: '"', b: () });
        same(&Vec::<i64>::new());
        same(&BTreeMap::<String, i64>::new());
        same(&BTreeMap::from([("a\"", vec![Some(1), None])]));
        same(&BTreeMap::from([(-7_i64, Named("x"))]));
        same(&BTreeMap::from([(Named("k"), [[0; 0]; 2])]));
        same(&serde_json::json!({"a": [1, 2.5, null, {"b": {}}], "c": [[], "d"]}));
        let raw = |json: &str| crate::json::raw(json.to_owned()).unwrap();
        same(&[raw("[1,{\"a\":2}]"), raw("null"), raw("\"x\"")]);
        same(&Outer {
            tagged: Tagged::One {
                raw: raw("{\"kept\":1.0}"),
                left_out: None,
            },
            none: None,
            some: Some("text"),
            rest: BTreeMap::from([("more".to_owned(), Value::from(1))]),
        });
    }

    #[test]
    fn a_map_with_non_string_keys_is_refused() {
        assert!(encode(&BTreeMap::from([((), 1)])).is_err());
        assert!(encode(&BTreeMap::from([(Some(1), 1)])).is_err());
    }
}
