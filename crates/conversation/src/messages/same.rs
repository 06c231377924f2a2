//! Compares two messages by value: a client may send back a message with its fields in
//! another order and its numbers formatted differently. Comparing digests avoids building
//! trees of values, which take many times the text's memory.

use base::json;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::de::{self, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// A digest of a message's fields that doesn't depend on their order.
pub struct MessageDigest {
    /// All fields except `id` and `createdAt`.
    fields: u64,
    created_at: Option<(u64, Option<i64>)>,
}

impl MessageDigest {
    /// `None`: `json` is not an object.
    pub fn read(json: &str) -> Option<Self> {
        json::decode(json).ok()
    }

    /// The message's date, if the date is a number.
    pub fn date(&self) -> Option<i64> {
        self.created_at.and_then(|(_, date)| date)
    }

    pub fn without_date(mut self) -> Self {
        self.created_at = None;
        self
    }

    pub fn is_same(&self, other: &Self) -> bool {
        let date = |digest: &Self| digest.created_at.map(|(digest, _)| digest);
        self.fields == other.fields && date(self) == date(other)
    }
}

impl<'de> Deserialize<'de> for MessageDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = MessageDigest;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MessageDigest, A::Error> {
                let mut digest = MessageDigest {
                    fields: 0,
                    created_at: None,
                };
                while let Some(name) = map.next_key::<String>()? {
                    match name.as_str() {
                        "id" => drop(map.next_value::<IgnoredAny>()?),
                        "createdAt" => {
                            let value = map.next_value::<ValueDigest>()?;
                            digest.created_at = Some((value.digest, value.integer));
                        }
                        _ => {
                            let value = map.next_value::<ValueDigest>()?;
                            digest.fields = digest.fields.wrapping_add(entry(&name, &value));
                        }
                    }
                }
                Ok(digest)
            }
        }
        deserializer.deserialize_map(Reader)
    }
}

/// The digest of any value. Equal values have equal digests.
struct ValueDigest {
    digest: u64,
    integer: Option<i64>,
}

fn digest(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

fn entry(name: &str, value: &ValueDigest) -> u64 {
    digest((name, value.digest))
}

impl<'de> Deserialize<'de> for ValueDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = ValueDigest;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_unit<E: de::Error>(self) -> Result<ValueDigest, E> {
                Ok(ValueDigest::of("null"))
            }
            fn visit_bool<E: de::Error>(self, value: bool) -> Result<ValueDigest, E> {
                Ok(ValueDigest::of(("bool", value)))
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<ValueDigest, E> {
                Ok(ValueDigest {
                    integer: Some(value),
                    ..ValueDigest::of(("integer", i128::from(value)))
                })
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<ValueDigest, E> {
                Ok(ValueDigest {
                    integer: i64::try_from(value).ok(),
                    ..ValueDigest::of(("integer", i128::from(value)))
                })
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<ValueDigest, E> {
                Ok(ValueDigest::of(("float", value.to_bits())))
            }
            fn visit_str<E: de::Error>(self, value: &str) -> Result<ValueDigest, E> {
                Ok(ValueDigest::of(("text", value)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<ValueDigest, A::Error> {
                let mut hasher = DefaultHasher::new();
                let mut count = 0_u64;
                while let Some(item) = items.next_element::<ValueDigest>()? {
                    item.digest.hash(&mut hasher);
                    count += 1;
                }
                Ok(ValueDigest::of(("array", count, hasher.finish())))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<ValueDigest, A::Error> {
                let mut sum = 0_u64;
                while let Some((name, value)) = map.next_entry::<String, ValueDigest>()? {
                    sum = sum.wrapping_add(entry(&name, &value));
                }
                Ok(ValueDigest::of(("object", sum)))
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl ValueDigest {
    fn of(value: impl Hash) -> Self {
        Self {
            digest: digest(value),
            integer: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &str, b: &str) -> bool {
        MessageDigest::read(a)
            .unwrap()
            .is_same(&MessageDigest::read(b).unwrap())
    }

    #[test]
    fn messages_are_equal_regardless_of_key_order_and_id() {
        let message = r#"{"id":"a","role":"user","parts":[{"type":"text","text":"é"},{"n":1.5}]}"#;
        for other in [
            r#"{"parts":[{"text":"\u00e9","type":"text"},{"n":15e-1}],"role":"user"}"#,
            r#" { "role" : "user", "parts" : [{"type":"text","text":"é"}, {"n":1.50}] }"#,
        ] {
            assert!(same(message, other), "{other}");
        }
        for other in [
            r#"{"role":"user","parts":[{"n":1.5},{"type":"text","text":"é"}]}"#,
            r#"{"role":"user","parts":[{"type":"text","text":"é"},{"n":1.6}]}"#,
            r#"{"role":"user","parts":[{"type":"text","text":"é"},{"n":1.5,"m":null}]}"#,
            r#"{"role":"user","parts":[[{"type":"text","text":"é"},{"n":1.5}]]}"#,
            r#"{"role":"user"}"#,
            r#"{"role":"user","createdAt":1,"parts":[{"type":"text","text":"é"},{"n":1.5}]}"#,
        ] {
            assert!(!same(message, other), "{other}");
        }
        assert!(!same(r#"{"a":1}"#, r#"{"a":1.0}"#) && !same(r#"{"a":"1"}"#, r#"{"a":1}"#));
        assert!(!same(r#"{"a":[]}"#, r#"{"a":{}}"#) && !same(r#"{"a":[[],1]}"#, r#"{"a":[[1]]}"#));
    }

    #[test]
    fn messages_with_different_dates_differ() {
        let dated = MessageDigest::read(r#"{"createdAt":5,"role":"user"}"#).unwrap();
        assert_eq!(dated.date(), Some(5));
        assert!(
            dated
                .without_date()
                .is_same(&MessageDigest::read(r#"{"role":"user"}"#).unwrap())
        );
        let text = MessageDigest::read(r#"{"createdAt":"2026","role":"user"}"#).unwrap();
        assert_eq!(text.date(), None);
        assert!(MessageDigest::read("[]").is_none());
    }
}
