//! A map for the few entries of a definition or a setting: a list, sorted by its keys.
//!
//! The standard library's map is a tree, whose steps are compiled anew for each type of keys
//! and values and take five kilobytes each time. Here an insertion moves the entries behind
//! it, so a map of very many is built by `collect`, which sorts once.

use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};

use super::order::sort_by;

/// Values by their keys, in the order of the keys.
#[derive(Clone, Debug, PartialEq)]
pub struct SortedMap<K, V>(Vec<(K, V)>);

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Where the key stands, or where it would stand.
    fn find<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.0
            .binary_search_by(|(known, _)| known.borrow().cmp(key))
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let place = self.find(key).ok()?;
        self.0.get(place).map(|(_, value)| value)
    }

    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.find(key).is_ok()
    }

    /// Puts a value in, and gives the value that the key had before.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        match self.find(&key) {
            Ok(place) => {
                let (_, known) = self.0.get_mut(place)?;
                Some(std::mem::replace(known, value))
            }
            Err(place) => {
                self.0.insert(place, (key, value));
                None
            }
        }
    }

    /// Takes a value out.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let place = self.find(key).ok()?;
        Some(self.0.remove(place).1)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.0.iter().map(|(_, value)| value)
    }
}

/// Of two pairs with the same key, the later one counts.
impl<K: Ord, V> FromIterator<(K, V)> for SortedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let mut pairs: Vec<(K, V)> = pairs.into_iter().collect();
        if !pairs.is_sorted_by(|(left, _), (right, _)| left < right) {
            sort_by(&mut pairs, |(left, _), (right, _)| left.cmp(right));
            pairs.dedup_by(|later, earlier| {
                let is_same = later.0 == earlier.0;
                if is_same {
                    std::mem::swap(later, earlier);
                }
                is_same
            });
        }
        Self(pairs)
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<K: Serialize, V: Serialize> Serialize for SortedMap<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Deserialize<'de> for SortedMap<K, V> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MapVisitor(PhantomData))
    }
}

struct MapVisitor<K, V>(PhantomData<(K, V)>);

impl<'de, K: Deserialize<'de> + Ord, V: Deserialize<'de>> Visitor<'de> for MapVisitor<K, V> {
    type Value = SortedMap<K, V>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(pairs.into_iter().collect())
    }
}

#[cfg(test)]
impl<K, V: schemars::JsonSchema> schemars::JsonSchema for SortedMap<K, V> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> std::borrow::Cow<'static, str> {
        std::collections::BTreeMap::<String, V>::schema_name()
    }
    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        std::collections::BTreeMap::<String, V>::json_schema(generator)
    }
}

#[cfg(test)]
impl<K: Borrow<str> + Ord, V> std::ops::Index<&str> for SortedMap<K, V> {
    type Output = V;

    fn index(&self, key: &str) -> &V {
        self.get(key).unwrap()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::base::json;

    /// Keys that look thrown, many of them more than once.
    fn keys(count: u64) -> impl Iterator<Item = String> {
        (0..count).map(|index| format!("k{}", index * 7_919 % 101))
    }

    #[test]
    fn it_holds_what_the_standard_librarys_map_holds() {
        let (mut ours, mut theirs) = (SortedMap::default(), BTreeMap::new());
        for (index, key) in keys(400).enumerate() {
            match index % 5 {
                4 => assert_eq!(ours.remove(key.as_str()), theirs.remove(&key)),
                _ => assert_eq!(ours.insert(key.clone(), index), theirs.insert(key, index)),
            }
            assert_eq!(ours.len(), theirs.len());
            assert!(ours.iter().eq(&theirs));
        }
        for key in keys(101) {
            assert_eq!(ours.get(&key), theirs.get(&key));
            assert_eq!(ours.contains_key(&key), theirs.contains_key(&key));
        }
        assert!(ours.keys().eq(theirs.keys()) && ours.values().eq(theirs.values()));
        assert!(ours.into_iter().eq(theirs));
    }

    #[test]
    fn it_is_built_read_and_written_as_that_map_is() {
        for count in [0, 1, 2, 3, 50, 400] {
            let pairs: Vec<(String, usize)> = keys(count).zip(0..).collect();
            let ours: SortedMap<String, usize> = pairs.iter().cloned().collect();
            let theirs: BTreeMap<String, usize> = pairs.iter().cloned().collect();
            assert!(ours.iter().eq(&theirs));
            let json = json::encode(&theirs).unwrap();
            assert_eq!(json::encode(&ours).unwrap(), json);
            assert_eq!(
                json::decode::<SortedMap<String, usize>>(&json).unwrap(),
                ours
            );
        }
        let twice: SortedMap<String, i64> = json::decode(r#"{"b":1,"a":2,"b":3}"#).unwrap();
        assert_eq!(json::encode(&twice).unwrap(), r#"{"a":2,"b":3}"#);
    }
}
