//! The loop over an object's fields, which all structs share that derive [`FromJson`].
//!
//! [`FromJson`]: session_agent_macros::FromJson

use std::borrow::Cow;
use std::fmt;
use std::mem::ManuallyDrop;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};

/// What a struct expects, in the words of an error.
pub const AN_OBJECT: &str = "an object";

/// The fields of a struct, by their names in JSON.
pub struct FieldNames {
    pub names: &'static [&'static str],
    /// A bit per field that may not be left out, the first field's the lowest.
    pub required: u64,
    /// Whether a field of another name is refused.
    pub denies_others: bool,
}

/// No field has this index.
pub const NO_FIELD: usize = usize::MAX;

/// The fields of one object while they are read.
pub struct ObjectFields {
    of: &'static FieldNames,
    /// A bit per field that was read.
    read: u64,
}

impl ObjectFields {
    pub fn of(names: &'static FieldNames) -> Self {
        Self { of: names, read: 0 }
    }

    /// The index of the next field, whose value has to be read then. [`NO_FIELD`]: there is
    /// no other, and none that is required is missing.
    #[inline(never)]
    pub fn next<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<usize, A::Error> {
        while let Some(found) = map.next_key_seed(FieldName(self.of))? {
            let Some((index, name)) = found else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if self.read & (1 << index) != 0 {
                return Err(A::Error::duplicate_field(name));
            }
            self.read |= 1 << index;
            return Ok(index);
        }
        let missing = (self.of.required & !self.read).trailing_zeros() as usize;
        match self.of.names.get(missing) {
            Some(name) => Err(A::Error::missing_field(name)),
            None => Ok(NO_FIELD),
        }
    }
}

/// Puts a value where none is: a field that is repeated is refused. The compiler does not
/// know this, and would free what stood there.
pub fn put<T>(slot: &mut Option<T>, value: T) {
    let _none = ManuallyDrop::new(slot.replace(value));
}

/// The error that no one sees: [`ObjectFields::next`] has refused an object without a field
/// that is required.
#[cold]
pub fn not_read<E: Error>() -> E {
    E::missing_field("")
}

/// Finds a field by its name. `None`: a field that is ignored.
struct FieldName(&'static FieldNames);

impl<'de> DeserializeSeed<'de> for FieldName {
    type Value = Option<(usize, &'static str)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_identifier(self)
    }
}

impl Visitor<'_> for FieldName {
    type Value = Option<(usize, &'static str)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a field's name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Self::Value, E> {
        let names = self.0.names;
        match names.iter().enumerate().find(|(_, known)| **known == name) {
            Some((index, known)) => Ok(Some((index, known))),
            None if self.0.denies_others => Err(E::unknown_field(name, names)),
            None => Ok(None),
        }
    }
}

/// Reads a text that stays where it is in the JSON, if nothing in it is escaped.
pub struct BorrowedText;

impl<'de> DeserializeSeed<'de> for BorrowedText {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for BorrowedText {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text))
    }
}

#[cfg(test)]
mod tests;
