//! Ids: opaque strings of 1 to 200 characters. A caller may choose an id; otherwise
//! this module mints one.
//!
//! A minted event id starts with the event's `seq` (`e17-…`). So its row is found by the primary
//! key, without an index entry, and an append costs only one row. No code trusts the number: the
//! row at this `seq` must have the very same id.

use crate::schema::JsonSchema;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, de};

use crate::host::Host;

pub const MAX_ID_CHARS: usize = 200;

/// 16 characters of 5 bits each: 80 bits, so that ids do not collide across the
/// sessions, forks and agents that a client may merge.
const RANDOM_CHARS: usize = 16;

/// Crockford's base 32, in lower case: no letter is mistaken for another.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A valid id: not empty, at most 200 characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
#[schemars(transparent)]
pub struct Id(#[schemars(length(min = 1, max = 200))] String);

impl Id {
    pub fn parse(text: String) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("must not be empty");
        }
        // The length in bytes first: characters are counted only if the id could be too
        // long.
        if text.len() > MAX_ID_CHARS && text.chars().count() > MAX_ID_CHARS {
            return Err("must have at most 200 characters");
        }
        Ok(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn mint_session(host: &dyn Host) -> Self {
        Self(format!("s-{}", random_text(host)))
    }

    pub fn mint_approval(host: &dyn Host) -> Self {
        Self(format!("a-{}", random_text(host)))
    }

    /// Mints the id of a callback about a turn's end.
    pub fn mint_delivery(host: &dyn Host) -> Self {
        Self(format!("d-{}", random_text(host)))
    }

    /// Mints the id by which the directory identifies one life of an agent's name.
    pub fn mint_lifetime(host: &dyn Host) -> Self {
        Self(format!("l-{}", random_text(host)))
    }

    /// Mints the id of a token whose turns are counted.
    pub fn mint_token(host: &dyn Host) -> Self {
        Self(format!("k-{}", random_text(host)))
    }

    /// Mints the id of a turn whose client gave none.
    pub fn mint_turn(host: &dyn Host) -> Self {
        Self(format!("t-{}", random_text(host)))
    }

    pub fn mint_compaction(host: &dyn Host) -> Self {
        Self(format!("c-{}", random_text(host)))
    }

    /// Mints the id of the event that will be at `seq`.
    pub fn mint_event(host: &dyn Host, seq: i64) -> Self {
        Self(format!("e{seq}-{}", random_text(host)))
    }

    /// The `seq` in this id, if the id looks like one that was minted here.
    pub fn find_seq(&self) -> Option<i64> {
        let (seq, random) = self.0.strip_prefix('e')?.split_once('-')?;
        let canonical = !seq.starts_with('0') && seq.bytes().all(|byte| byte.is_ascii_digit());
        if !canonical || seq.len() > 15 || random.len() != RANDOM_CHARS {
            return None;
        }
        seq.parse().ok()
    }

    /// Whether the row at `seq` can be found by only the id, so that it needs no index entry.
    pub fn leads_to(&self, seq: i64) -> bool {
        self.find_seq() == Some(seq)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::parse(String::deserialize(deserializer)?).map_err(de::Error::custom)
    }
}

fn random_text(host: &dyn Host) -> String {
    let mut bytes = [0_u8; RANDOM_CHARS];
    host.fill_random(&mut bytes);
    bytes
        .iter()
        .filter_map(|byte| ALPHABET.get(usize::from(byte & 31)))
        .map(|letter| char::from(*letter))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FixedHost;

    fn id(text: &str) -> Id {
        Id::parse(text.to_owned()).unwrap()
    }

    #[test]
    fn an_id_has_1_to_200_characters() {
        assert!(Id::parse(String::new()).is_err());
        assert!(Id::parse("x".repeat(200)).is_ok());
        assert!(Id::parse("x".repeat(201)).is_err());
        // Characters, not bytes.
        assert!(Id::parse("é".repeat(200)).is_ok());
        assert!(Id::parse("é".repeat(201)).is_err());
    }

    #[test]
    fn the_seq_is_read_from_a_minted_event_id() {
        let minted = Id::mint_event(&FixedHost::default(), 100_000);
        assert!(minted.as_str().starts_with("e100000-"));
        assert_eq!(minted.find_seq(), Some(100_000));
        assert!(minted.leads_to(100_000));
        assert!(!minted.leads_to(99_999));
    }

    #[test]
    fn minted_ids_are_unique() {
        let host = FixedHost::default();
        assert_ne!(Id::mint_event(&host, 1), Id::mint_event(&host, 1));
        assert_ne!(Id::mint_session(&host), Id::mint_session(&host));
    }

    #[test]
    fn no_seq_is_read_from_a_callers_id() {
        for text in [
            "e",
            "e-",
            "e1",
            "e1-",
            "e1-short",
            "x1-0123456789abcdef",
            "e01-0123456789abcdef",
            "e+1-0123456789abcdef",
            "e9999999999999999-0123456789abcdef",
            "msg-1",
        ] {
            assert_eq!(id(text).find_seq(), None, "{text}");
        }
    }
}
