//! Lists whose parsing stops at the limit. A list that is counted only after parsing is
//! already in memory, and a list of very short items takes many times the bytes that were
//! sent.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{self, IgnoredAny, SeqAccess};
use serde::{Deserialize, Deserializer, Serialize};

/// The most items of a list that selects from a few names: enough to repeat each name.
pub const MAX_NAMES: usize = 100;

/// Parses a list of `MIN` to `MAX` items. Use this with `#[serde(deserialize_with)]`, and
/// specify the same bounds in `#[schemars(length(…))]`; a test compares them.
pub fn list<'de, D, T, const MIN: usize, const MAX: usize>(
    deserializer: D,
) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    List::<T, MIN, MAX>::deserialize(deserializer).map(|list| list.0)
}

/// Like [`list`], for a field that may be absent or `null`. Add `#[serde(default)]`.
pub fn optional_list<'de, D, T, const MIN: usize, const MAX: usize>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let given = Option::<List<T, MIN, MAX>>::deserialize(deserializer)?;
    Ok(given.map(|list| list.0))
}

/// A list of `MIN` to `MAX` items.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct List<T, const MIN: usize, const MAX: usize>(pub Vec<T>);

impl<T, const MAX: usize> Default for List<T, 0, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'a, T, const MIN: usize, const MAX: usize> IntoIterator for &'a List<T, MIN, MAX> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(feature = "testing")]
impl<T, const MIN: usize, const MAX: usize> schemars::JsonSchema for List<T, MIN, MAX>
where
    T: schemars::JsonSchema,
{
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        Vec::<T>::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut schema = Vec::<T>::json_schema(generator);
        if MIN > 0 {
            schema.insert("minItems".to_owned(), MIN.into());
        }
        schema.insert("maxItems".to_owned(), MAX.into());
        schema
    }
}

impl<'de, T, const MIN: usize, const MAX: usize> Deserialize<'de> for List<T, MIN, MAX>
where
    T: Deserialize<'de>,
{
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor::<T, MIN, MAX>(PhantomData))
    }
}

struct ListVisitor<T, const MIN: usize, const MAX: usize>(PhantomData<T>);

impl<'de, T, const MIN: usize, const MAX: usize> de::Visitor<'de> for ListVisitor<T, MIN, MAX>
where
    T: Deserialize<'de>,
{
    type Value = List<T, MIN, MAX>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while list.len() < MAX {
            match items.next_element()? {
                Some(item) => list.push(item),
                None if list.len() < MIN => return Err(wrong_length::<_, MIN, MAX>()),
                None => return Ok(List(list)),
            }
        }
        match items.next_element::<IgnoredAny>()? {
            Some(_) => Err(wrong_length::<_, MIN, MAX>()),
            None => Ok(List(list)),
        }
    }
}

fn wrong_length<E: de::Error, const MIN: usize, const MAX: usize>() -> E {
    E::custom(match MIN {
        0 => format!("must have at most {MAX} items"),
        _ => format!("must have {MIN} to {MAX} items"),
    })
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static PARSED: Cell<usize> = const { Cell::new(0) };
    }

    #[derive(Debug)]
    struct Counted;

    impl<'de> Deserialize<'de> for Counted {
        fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            PARSED.set(PARSED.get() + 1);
            IgnoredAny::deserialize(deserializer).map(|_| Self)
        }
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "parsed, and not read")]
    struct Sample {
        #[serde(default, deserialize_with = "optional_list::<_, _, 0, 2>")]
        open: Option<Vec<u8>>,
        #[serde(deserialize_with = "list::<_, _, 1, 3>")]
        items: Vec<Counted>,
    }

    fn parse(body: &str) -> Result<Sample, (String, String)> {
        crate::json::parse::<Sample>(body.as_bytes()).map_err(|error| {
            let field = error.details()["field"].as_str().unwrap().to_owned();
            (field, error.into_message())
        })
    }

    #[test]
    fn a_list_is_bounded_by_its_limits() {
        for (body, items) in [
            (r#"{"items":[1]}"#, 1),
            (r#"{"items":[1,2,3]}"#, 3),
            (r#"{"items":[1],"open":null}"#, 1),
            (r#"{"items":[1],"open":[]}"#, 1),
            (r#"{"items":[1],"open":[1,2]}"#, 1),
        ] {
            assert_eq!(parse(body).unwrap().items.len(), items, "{body}");
        }
        for (body, field, message) in [
            (
                r#"{"items":[]}"#,
                "items",
                "`items` must have 1 to 3 items.",
            ),
            (
                r#"{"items":[1,2,3,4]}"#,
                "items",
                "`items` must have 1 to 3 items.",
            ),
            (r#"{"items":{}}"#, "items", "`items` must be an array."),
            (
                r#"{"items":[1],"open":[1,2,3]}"#,
                "open",
                "`open` must have at most 2 items.",
            ),
        ] {
            let refused = parse(body).unwrap_err();
            assert_eq!(refused, (field.to_owned(), message.to_owned()), "{body}");
        }
    }

    #[test]
    fn items_beyond_the_limit_are_never_parsed() {
        PARSED.set(0);
        let body = format!(r#"{{"items":[{}1]}}"#, "1,".repeat(10_000));
        assert!(parse(&body).is_err());
        assert_eq!(PARSED.get(), 3);
    }
}
