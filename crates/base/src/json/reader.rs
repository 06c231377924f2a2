//! Reads JSON into the types that derive serde's `Deserialize`.
//!
//! The compiler generates a type's visitor once for each reader that the type is read with. So all
//! of the code reads with this one. The reader also reports the path to the value that it rejects:
//! the path is built as an error returns, and costs nothing before.

use std::borrow::Cow;

use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::cursor::Cursor;
use super::problem::{ReadError, ReadResult};
use super::raw_name::RAW_NAME;
use super::scan::skip_common;

/// How deep the types that are read may nest, as in serde_json: reading them recurses.
const MAX_READ_DEPTH: u8 = 127;

/// Reads a text that consists of one value.
pub fn decode<'de, T: de::Deserialize<'de>>(text: &'de str) -> ReadResult<T> {
    let mut reader = Reader::new(text);
    let value = T::deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// The number of comma-separated values in a text. `None`: the text is something else. `common`:
/// see [`skip_common`]. A usual value may contain bytes that are not UTF-8.
pub fn count_values(bytes: &[u8], common: &[&str]) -> Option<usize> {
    let mut text = None;
    let mut at = 0;
    let mut count = 0;
    loop {
        at = match skip_common(bytes, at, common) {
            Some(end) if matches!(bytes.get(end), None | Some(b',')) => end,
            _ => {
                let known = match text {
                    Some(known) => known,
                    None => *text.insert(std::str::from_utf8(bytes).ok()?),
                };
                let mut cursor = Cursor::new(known).at(at);
                cursor.skip_value().ok()?;
                cursor.next_byte();
                cursor.offset()
            }
        };
        count += 1;
        match bytes.get(at) {
            None => return Some(count),
            Some(b',') => at += 1,
            Some(_) => return None,
        }
    }
}

/// As [`decode`], for bytes that should be UTF-8.
pub fn decode_bytes<'de, T: de::Deserialize<'de>>(bytes: &'de [u8]) -> ReadResult<T> {
    match std::str::from_utf8(bytes) {
        Ok(text) => decode(text),
        Err(error) => Err(ReadError::syntax(error.valid_up_to())),
    }
}

/// As [`decode`], for a tree of values. The tree is read as its text: for a reader of trees the
/// compiler would generate each type's visitor once more.
pub fn from_value<T: de::DeserializeOwned>(value: &serde_json::Value) -> ReadResult<T> {
    decode(&super::writer::text(value))
}

pub struct Reader<'de> {
    cursor: Cursor<'de>,
    depth: u8,
    /// Whether an object did not end where its visitor stopped reading.
    is_broken: bool,
}

impl<'de> Reader<'de> {
    pub fn new(text: &'de str) -> Self {
        Self {
            cursor: Cursor::new(text),
            depth: 0,
            is_broken: false,
        }
    }

    /// Rejects anything but whitespace after the value.
    #[inline(never)]
    fn end(&mut self) -> ReadResult<()> {
        if self.is_broken {
            Err(self.cursor.syntax())
        } else {
            self.cursor.end()
        }
    }

    /// Enters an object or an array.
    #[inline(never)]
    fn enter(&mut self, open: u8, expected: &dyn Expected) -> ReadResult<()> {
        if self.cursor.next_byte() != open {
            return Err(self.wrong_type(expected));
        }
        self.cursor.step();
        self.depth += 1;
        if self.depth <= MAX_READ_DEPTH {
            Ok(())
        } else {
            Err(self.cursor.syntax())
        }
    }

    #[inline(never)]
    fn leave(&mut self, close: u8) -> ReadResult<()> {
        self.depth -= 1;
        self.cursor.take(close)
    }

    /// Moves to the next item. `false`: there is none.
    #[inline(never)]
    fn next_item(&mut self, is_first: bool, close: u8) -> ReadResult<bool> {
        match self.cursor.next_byte() {
            byte if byte == close => Ok(false),
            _ if is_first => Ok(true),
            b',' => {
                self.cursor.step();
                Ok(true)
            }
            _ => Err(self.cursor.syntax()),
        }
    }

    #[inline(never)]
    fn next_key(&mut self, is_first: bool) -> ReadResult<Option<(usize, Cow<'de, str>)>> {
        if !self.next_item(is_first, b'}')? {
            return Ok(None);
        }
        self.cursor.next_byte();
        let offset = self.cursor.offset();
        let key = self.cursor.string()?;
        self.cursor.take(b':')?;
        Ok(Some((offset, key)))
    }

    #[inline(never)]
    fn boolean(&mut self, expected: &dyn Expected) -> ReadResult<bool> {
        match self.cursor.next_byte() {
            b't' => self.cursor.word("true").map(|()| true),
            b'f' => self.cursor.word("false").map(|()| false),
            _ => Err(self.wrong_type(expected)),
        }
    }

    #[inline(never)]
    fn null(&mut self, expected: &dyn Expected) -> ReadResult<()> {
        match self.cursor.next_byte() {
            b'n' => self.cursor.word("null"),
            _ => Err(self.wrong_type(expected)),
        }
    }

    /// The error for a value that is well-formed and of another type.
    #[inline(never)]
    fn wrong_type(&mut self, expected: &dyn Expected) -> ReadError {
        let scalar = match self.cursor.next_byte() {
            b'"' => self.cursor.skip_string().map(drop),
            b't' => self.cursor.word("true"),
            b'f' => self.cursor.word("false"),
            b'n' => self.cursor.word("null"),
            b'{' | b'[' => Ok(()),
            _ => self.cursor.number().map(drop),
        };
        match scalar {
            Ok(()) => de::Error::invalid_type(Unexpected::Other("another type"), expected),
            Err(error) => error,
        }
    }
}

macro_rules! numbers {
    ($visit:ident: $($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
            match self.cursor.next_byte() {
                b'-' | b'0'..=b'9' => self.cursor.number()?.$visit(visitor),
                _ => Err(self.wrong_type(&visitor)),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for &mut Reader<'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
        match self.cursor.next_byte() {
            b'"' => self.deserialize_str(visitor),
            b'{' => self.deserialize_map(visitor),
            b'[' => self.deserialize_seq(visitor),
            b't' | b'f' => self.deserialize_bool(visitor),
            b'n' => self.deserialize_unit(visitor),
            _ => self.cursor.number()?.visit(visitor),
        }
    }

    numbers! { visit_integer:
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    }

    numbers! { visit: deserialize_f32 deserialize_f64 }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
        let value = self.boolean(&visitor)?;
        visitor.visit_bool(value)
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
        self.null(&visitor)?;
        visitor.visit_unit()
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
        if self.cursor.next_byte() != b'"' {
            return Err(self.wrong_type(&visitor));
        }
        match self.cursor.string()? {
            Cow::Borrowed(text) => visitor.visit_borrowed_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
        if self.cursor.next_byte() == b'n' {
            self.cursor.word("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> ReadResult<V::Value> {
        match name {
            RAW_NAME => visitor.visit_borrowed_str(self.cursor.skip_value()?),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
        self.enter(b'[', &visitor)?;
        let value = visitor.visit_seq(Items {
            reader: self,
            index: 0,
        })?;
        self.leave(b']')?;
        Ok(value)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
        self.enter(b'{', &visitor)?;
        let mut fields = Fields {
            reader: self,
            key: None,
            is_at_value: false,
        };
        let mut read = visitor.visit_map(&mut fields);
        fields.end(read.as_mut().err());
        read
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> ReadResult<V::Value> {
        self.deserialize_map(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> ReadResult<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> ReadResult<V::Value> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> ReadResult<V::Value> {
        match self.cursor.next_byte() {
            b'"' => {
                let name = self.cursor.string()?;
                visitor.visit_enum(IntoDeserializer::<ReadError>::into_deserializer(name))
            }
            b'{' => {
                self.enter(b'{', &visitor)?;
                let value = visitor.visit_enum(Variant { reader: self })?;
                self.leave(b'}')?;
                Ok(value)
            }
            _ => Err(match self.wrong_type(&visitor) {
                error if error.is_syntax() => error,
                _ => de::Error::unknown_variant("", variants),
            }),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
        self.cursor.skip_value()?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        <V: Visitor<'de>>
        char bytes byte_buf unit_struct string identifier
    }
}

/// The items of an array.
struct Items<'a, 'de> {
    reader: &'a mut Reader<'de>,
    index: usize,
}

impl<'de> SeqAccess<'de> for Items<'_, 'de> {
    type Error = ReadError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> ReadResult<Option<T::Value>> {
        if !self.reader.next_item(self.index == 0, b']')? {
            return Ok(None);
        }
        self.index += 1;
        match seed.deserialize(&mut *self.reader) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(error.at_index(self.index - 1)),
        }
    }
}

/// The fields of an object.
struct Fields<'a, 'de> {
    reader: &'a mut Reader<'de>,
    /// The position of the name of the field that was read last.
    key: Option<usize>,
    /// Whether that field's value is being read, or was rejected.
    is_at_value: bool,
}

impl Fields<'_, '_> {
    /// Leaves the object, or adds the current field's name to the error. Each field
    /// has its own reading code; the name is added here, once for all of them. An object
    /// that can't be left is reported at the text's end: if it were reported here, each type's code
    /// would have to free what it has read.
    #[inline(never)]
    fn end(&mut self, error: Option<&mut ReadError>) {
        match (error, self.key) {
            (None, _) => self.reader.is_broken |= self.reader.leave(b'}').is_err(),
            (Some(error), Some(offset)) if self.is_at_value => {
                if let Ok(key) = self.reader.cursor.at(offset).string() {
                    error.put_field(&key);
                }
            }
            _ => {}
        }
    }
}

impl<'de> MapAccess<'de> for Fields<'_, 'de> {
    type Error = ReadError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> ReadResult<Option<K::Value>> {
        let Some((offset, key)) = self.reader.next_key(self.key.is_none())? else {
            return Ok(None);
        };
        self.key = Some(offset);
        seed.deserialize(Key(&key)).map(Some)
    }

    /// Compiled once for each type of values, and not for each field.
    #[inline(never)]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> ReadResult<V::Value> {
        self.is_at_value = true;
        let value = seed.deserialize(&mut *self.reader);
        self.is_at_value = value.is_err();
        value
    }
}

/// The name of a field.
struct Key<'a, 'de>(&'a Cow<'de, str>);

impl<'de> Deserializer<'de> for Key<'_, 'de> {
    type Error = ReadError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> ReadResult<V::Value> {
        match self.0 {
            Cow::Borrowed(name) => visitor.visit_borrowed_str(name),
            Cow::Owned(name) => visitor.visit_str(name),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> ReadResult<V::Value> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> ReadResult<V::Value> {
        visitor.visit_enum(IntoDeserializer::<ReadError>::into_deserializer(&**self.0))
    }

    forward_to_deserialize_any! {
        <V: Visitor<'de>>
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// A variant with content: `{"name": …}`.
struct Variant<'a, 'de> {
    reader: &'a mut Reader<'de>,
}

impl<'de> EnumAccess<'de> for Variant<'_, 'de> {
    type Error = ReadError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> ReadResult<(V::Value, Self)> {
        let Some((_, name)) = self.reader.next_key(true)? else {
            return Err(self.reader.cursor.syntax());
        };
        Ok((seed.deserialize(Key(&name))?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'_, 'de> {
    type Error = ReadError;

    fn unit_variant(self) -> ReadResult<()> {
        de::Deserialize::deserialize(self.reader)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> ReadResult<T::Value> {
        seed.deserialize(self.reader)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> ReadResult<V::Value> {
        self.reader.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> ReadResult<V::Value> {
        self.reader.deserialize_map(visitor)
    }
}

#[cfg(test)]
mod tests;
