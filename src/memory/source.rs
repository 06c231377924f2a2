//! Where a block's content lives, when not in this object. Parsed at the door:
//! a key or a name that has got past here climbs out of nothing.

use serde::{Deserialize, Serialize};

use super::label::Label;
use crate::base::error::{Error, Result};
use crate::base::settings::{Setting, is_own_binding};
use crate::memory::kind::Kind;

/// Bytes of an object's key in the bucket: half of what R2 takes, so that a
/// prefix and a key together fit.
pub const MAX_KEY_BYTES: usize = 512;

const MAX_BINDING_CHARS: usize = 64;

/// A home outside this object, as it is written: one of `r2`, `r2Prefix`,
/// `agent` and `service`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Source {
    /// An object of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    r2: Option<String>,
    /// Documents of the bucket, each named by what follows the prefix.
    #[serde(skip_serializing_if = "Option::is_none")]
    r2_prefix: Option<String>,
    /// Another agent, by its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// With `agent`: the block there. Left out: the one of this label.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Label>,
    /// A service binding.
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
}

/// A [`Source`] that was understood.
///
/// Homes are told apart by a `match` that names each of them, so that the compiler
/// names every place that a new home concerns. Hence no `PartialEq` here.
#[derive(Clone, Copy, Debug)]
pub enum Home<'a> {
    Object,
    Bucket {
        key: &'a str,
    },
    BucketPrefix {
        prefix: &'a str,
    },
    Agent {
        name: &'a str,
        label: Option<&'a Label>,
    },
    Service {
        binding: &'a str,
    },
}

impl Source {
    /// Whether it is one home, and one that a block of this kind can have.
    pub fn check(&self, kind: Kind, own_name: &str) -> Result<()> {
        let Self {
            r2,
            r2_prefix,
            agent,
            label,
            service,
        } = self;
        let named = [r2, r2_prefix, agent, service];
        let count = named.iter().filter(|name| name.is_some()).count();
        if count != 1 || (label.is_some() && agent.is_none()) {
            return Err(refused(
                "`source` must have one of `r2`, `r2Prefix`, `agent` (with or without `label`) and `service`.",
            ));
        }
        if let Some(key) = r2.as_deref().or(r2_prefix.as_deref()) {
            check_key(key)
                .map_err(|reason| refused(&format!("`source` names a key that {reason}.")))?;
        }
        match self.home() {
            Home::Bucket { .. } if !kind.has_content() => Err(refused(
                "`source` with `r2` holds one text: the block must be readonly or writable. `r2Prefix` holds many.",
            )),
            Home::BucketPrefix { .. } if kind != Kind::Loadable => Err(refused(
                "`source` with `r2Prefix` holds documents: the block must be loadable. `r2` holds one text.",
            )),
            Home::Agent { name, .. } if name.is_empty() || name.chars().count() > 200 => Err(
                refused("`source` must name an agent in 1 to 200 characters."),
            ),
            Home::Agent { name, .. } if name == own_name => Err(refused(
                "`source` names this agent itself. Leave `source` out: the block lives here.",
            )),
            Home::Service { binding } if !is_binding(binding) => Err(refused(
                "`source` must name a service binding: letters, digits and `_`, and none of the Worker's own.",
            )),
            Home::Object
            | Home::Bucket { .. }
            | Home::BucketPrefix { .. }
            | Home::Agent { .. }
            | Home::Service { .. } => Ok(()),
        }
    }

    pub fn home(&self) -> Home<'_> {
        let Self {
            r2,
            r2_prefix,
            agent,
            label,
            service,
        } = self;
        if let Some(key) = r2 {
            Home::Bucket { key }
        } else if let Some(prefix) = r2_prefix {
            Home::BucketPrefix { prefix }
        } else if let Some(name) = agent {
            Home::Agent {
                name,
                label: label.as_ref(),
            }
        } else if let Some(binding) = service {
            Home::Service { binding }
        } else {
            Home::Object
        }
    }
}

impl Home<'_> {
    /// Whether what the block holds is in this object's tables.
    pub fn is_this_object(&self) -> bool {
        match self {
            Home::Object => true,
            Home::Bucket { .. }
            | Home::BucketPrefix { .. }
            | Home::Agent { .. }
            | Home::Service { .. } => false,
        }
    }

    /// The binding that it needs.
    pub fn binding(&self) -> Option<&str> {
        match self {
            Home::Object | Home::Agent { .. } => None,
            Home::Bucket { .. } | Home::BucketPrefix { .. } => Some(Setting::SkillsBucket.name()),
            Home::Service { binding } => Some(binding),
        }
    }
}

fn refused(message: &str) -> Error {
    Error::invalid("source", message)
}

fn is_binding(name: &str) -> bool {
    let mut chars = name.chars();
    let begins = chars
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    begins
        && name.len() <= MAX_BINDING_CHARS
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !is_own_binding(name)
}

/// Whether a key stays where it is put: what it must not do, as the end of a
/// sentence.
pub fn check_key(key: &str) -> Result<(), &'static str> {
    if key.is_empty() {
        Err("is empty")
    } else if key.len() > MAX_KEY_BYTES {
        Err("has more than 512 bytes")
    } else if key.starts_with('/') || key.contains('\\') {
        Err("begins with `/` or holds a `\\`")
    } else if key
        .chars()
        .any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
    {
        Err("holds control characters")
    } else if key.split('/').any(|step| step == "." || step == "..") {
        Err("climbs with `.` or `..`")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(json: &str) -> Source {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_key_climbs_out_of_nothing() {
        for good in [
            "a",
            "skills/",
            "a/b/c.md",
            "..a",
            "a..b",
            "über/größe",
            "a b",
        ] {
            assert!(check_key(good).is_ok(), "{good}");
        }
        let long = "x".repeat(513);
        for bad in [
            "", "/a", "..", "../a", "a/../b", "a/..", "./a", "a\\..\\b", "a\nb", "a\u{0}", &long,
        ] {
            assert!(check_key(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_source_is_one_home_that_the_kind_can_have() {
        for (json, kind, is_good) in [
            (r#"{"r2":"soul.md"}"#, Kind::Readonly, true),
            (r#"{"r2":"notes.md"}"#, Kind::Writable, true),
            (r#"{"r2":"notes.md"}"#, Kind::Loadable, false),
            (r#"{"r2":"../secrets"}"#, Kind::Readonly, false),
            (r#"{"r2Prefix":"skills/"}"#, Kind::Loadable, true),
            (r#"{"r2Prefix":"skills/"}"#, Kind::Writable, false),
            (r#"{"r2Prefix":"skills/../"}"#, Kind::Loadable, false),
            (r#"{"agent":"user:42"}"#, Kind::Searchable, true),
            (
                r#"{"agent":"user:42","label":"memory"}"#,
                Kind::Writable,
                true,
            ),
            (r#"{"agent":"alice"}"#, Kind::Writable, false),
            (r#"{"agent":""}"#, Kind::Writable, false),
            (r#"{"service":"NOTES"}"#, Kind::Searchable, true),
            (r#"{"service":"AI"}"#, Kind::Searchable, false),
            (r#"{"service":"a.b/c"}"#, Kind::Searchable, false),
            (r#"{"service":"NOTES","r2":"a"}"#, Kind::Writable, false),
            (r#"{"service":"NOTES","label":"a"}"#, Kind::Writable, false),
            (r#"{}"#, Kind::Writable, false),
        ] {
            assert_eq!(source(json).check(kind, "alice").is_ok(), is_good, "{json}");
        }
    }
}
