//! Where a block's content is stored if not in this object. Keys and names are checked here, so
//! that no key can escape its prefix.
//!
//! A source may be a template (`memory/template.rs`), so it identifies a backend only together with
//! the name of the agent that has the block.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::label::Label;
use super::template::{self, expand, has_placeholder};
use crate::kind::BlockKind;
use base::error::{Error, Result};
use base::settings::{Setting, is_own_binding};

/// The most bytes of an object's key in the bucket: half of R2's limit, so that a
/// prefix and a key fit together.
pub const MAX_KEY_BYTES: usize = 512;

const MAX_BINDING_CHARS: usize = 64;

const MAX_AGENT_CHARS: usize = 200;

/// Where a block's content is stored outside this agent: exactly one of `r2`, `r2Prefix`,
/// `agent` and `service`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BlockSource {
    /// The key of an object in the bucket. `{name}` is replaced with this agent's name, and
    /// `{1}`, `{2}` … with the name's parts between colons.
    #[serde(skip_serializing_if = "Option::is_none")]
    r2: Option<String>,
    /// The prefix of documents in the bucket. The rest of a key names the document. With
    /// `{name}`, `{1}` … it ends with `/`.
    #[serde(skip_serializing_if = "Option::is_none")]
    r2_prefix: Option<String>,
    /// The name of another agent, such as `user:42` or `user:{2}`.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// With `agent`: the label of the block there. Default: this block's label.
    #[serde(skip_serializing_if = "Option::is_none")]
    label: Option<Label>,
    /// The name of a service binding.
    #[serde(skip_serializing_if = "Option::is_none")]
    service: Option<String>,
}

/// Where the block's content is stored, for one agent.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockLocation {
    /// In this agent: the block of this label, or without one the block itself.
    Local(Option<Label>),
    Remote(Box<BlockSource>),
    /// The source can't be resolved, for this reason.
    Unresolved(String),
}

/// A [`BlockSource`], parsed.
///
/// Code distinguishes backends by a `match` that names every variant, so that the compiler reports
/// each `match` that a new backend affects. Hence no `PartialEq`.
#[derive(Clone, Copy, Debug)]
pub enum BlockBackend<'a> {
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
    /// The source can't be resolved for this agent.
    Unresolved {
        reason: &'a str,
    },
}

impl BlockSource {
    /// Checks that exactly one backend is named, and that this kind of block can have it.
    pub fn check(&self, kind: BlockKind) -> Result<()> {
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
                .map_err(|reason| refused(&format!("`source` has a key that {reason}.")))?;
        }
        let named = [r2, r2_prefix, agent].into_iter().flatten();
        if named.clone().any(|text| !template::is_sound(text)) {
            return Err(refused(
                "`source` contains a `{` or a `}` that is not part of a placeholder. The \
                 placeholders are `{name}`, `{1}`, `{2}` and so on up to `{9}`.",
            ));
        }
        if r2_prefix
            .as_deref()
            .is_some_and(|prefix| has_placeholder(prefix) && !prefix.ends_with('/'))
        {
            return Err(refused(
                "`source` with a placeholder in `r2Prefix` must end with `/`. Otherwise the \
                 documents of `42` would be among those of `4`.",
            ));
        }
        match self.backend() {
            BlockBackend::Bucket { .. } if !kind.has_content() => Err(refused(
                "A `source` with `r2` is one text: the block must be readonly or writable. For \
                 many texts, use `r2Prefix`.",
            )),
            BlockBackend::BucketPrefix { .. } if kind != BlockKind::Loadable => Err(refused(
                "A `source` with `r2Prefix` contains documents: the block must be loadable. For \
                 one text, use `r2`.",
            )),
            BlockBackend::Agent { name, .. } if !is_agent_name(name) => Err(refused(
                "`source` must name an agent in 1 to 200 characters.",
            )),
            BlockBackend::Service { binding } if !is_binding(binding) => Err(refused(
                "`source` must name a service binding: letters, digits and `_`, and none of the Worker's own.",
            )),
            BlockBackend::Object
            | BlockBackend::Bucket { .. }
            | BlockBackend::BucketPrefix { .. }
            | BlockBackend::Agent { .. }
            | BlockBackend::Service { .. }
            | BlockBackend::Unresolved { .. } => Ok(()),
        }
    }

    /// Where the content is stored for the agent of this name. `is_sessions`: the block belongs to
    /// one of its sessions.
    pub fn locate(&self, agent_name: &str, is_sessions: bool) -> BlockLocation {
        match self.filled_in(agent_name) {
            Err(reason) => BlockLocation::Unresolved(reason),
            Ok(source) if source.agent.as_deref() != Some(agent_name) => {
                BlockLocation::Remote(Box::new(source))
            }
            Ok(_) if is_sessions => BlockLocation::Unresolved(
                "a session's block can't be stored in a block of its own agent".to_owned(),
            ),
            Ok(source) => BlockLocation::Local(source.label),
        }
    }

    /// The source with its placeholders filled in, or the reason why they can't be.
    fn filled_in(&self, agent_name: &str) -> Result<Self, String> {
        let fill = |text: &Option<String>| match text {
            Some(text) => expand(text, agent_name).map(Some),
            None => Ok(None),
        };
        let source = Self {
            r2: fill(&self.r2)?,
            r2_prefix: fill(&self.r2_prefix)?,
            agent: fill(&self.agent)?,
            label: self.label.clone(),
            service: self.service.clone(),
        };
        // A source that is not a template was checked when the block was defined.
        if source == *self {
            return Ok(source);
        }
        if let Some(key) = source.r2.as_deref().or(source.r2_prefix.as_deref()) {
            check_key(key)
                .map_err(|wrong| format!("with this agent's name inserted, the key {wrong}"))?;
        }
        if source
            .agent
            .as_deref()
            .is_some_and(|name| !is_agent_name(name))
        {
            return Err(
                "with this agent's name inserted, the other agent's name has more than 200 characters".to_owned(),
            );
        }
        Ok(source)
    }

    pub fn is_template(&self) -> bool {
        let named = [&self.r2, &self.r2_prefix, &self.agent];
        named
            .into_iter()
            .flatten()
            .any(|text| has_placeholder(text))
    }

    /// Whether a template names another agent: then each agent has a backend of its own.
    pub fn is_agent_template(&self) -> bool {
        self.agent.as_deref().is_some_and(has_placeholder)
    }

    /// Whether another agent stores the content.
    pub fn is_agent(&self) -> bool {
        self.agent.is_some()
    }

    pub fn backend(&self) -> BlockBackend<'_> {
        let Self {
            r2,
            r2_prefix,
            agent,
            label,
            service,
        } = self;
        if let Some(key) = r2 {
            BlockBackend::Bucket { key }
        } else if let Some(prefix) = r2_prefix {
            BlockBackend::BucketPrefix { prefix }
        } else if let Some(name) = agent {
            BlockBackend::Agent {
                name,
                label: label.as_ref(),
            }
        } else if let Some(binding) = service {
            BlockBackend::Service { binding }
        } else {
            BlockBackend::Object
        }
    }
}

impl BlockBackend<'_> {
    /// Whether this object's tables store the block's content.
    pub fn is_this_object(&self) -> bool {
        match self {
            BlockBackend::Object => true,
            BlockBackend::Bucket { .. }
            | BlockBackend::BucketPrefix { .. }
            | BlockBackend::Agent { .. }
            | BlockBackend::Service { .. }
            | BlockBackend::Unresolved { .. } => false,
        }
    }

    /// The binding that this backend needs.
    pub fn binding(&self) -> Option<&str> {
        match self {
            BlockBackend::Object | BlockBackend::Agent { .. } | BlockBackend::Unresolved { .. } => {
                None
            }
            BlockBackend::Bucket { .. } | BlockBackend::BucketPrefix { .. } => {
                Some(Setting::SkillsBucket.name())
            }
            BlockBackend::Service { binding } => Some(binding),
        }
    }
}

fn refused(message: &str) -> Error {
    Error::invalid("source", message)
}

fn is_agent_name(name: &str) -> bool {
    !name.is_empty() && name.chars().count() <= MAX_AGENT_CHARS
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

/// Checks that a key stays under its prefix. The error is the end of a sentence that
/// names the fault.
pub fn check_key(key: &str) -> Result<(), &'static str> {
    if key.is_empty() {
        Err("is empty")
    } else if key.len() > MAX_KEY_BYTES {
        Err("has more than 512 bytes")
    } else if key.starts_with('/') || key.contains('\\') {
        Err("begins with `/` or contains a `\\`")
    } else if key
        .chars()
        .any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
    {
        Err("contains control characters")
    } else if key.split('/').any(|step| step == "." || step == "..") {
        Err("contains `.` or `..`")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(json: &str) -> BlockSource {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_key_cannot_escape_its_prefix() {
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
    fn a_source_names_one_backend_that_its_kind_allows() {
        let table = [
            (r#"{"r2":"soul.md"}"#, BlockKind::Readonly, true),
            (r#"{"r2":"notes.md"}"#, BlockKind::Writable, true),
            (r#"{"r2":"notes.md"}"#, BlockKind::Loadable, false),
            (r#"{"r2":"../secrets"}"#, BlockKind::Readonly, false),
            (r#"{"r2Prefix":"skills/"}"#, BlockKind::Loadable, true),
            (r#"{"r2Prefix":"skills/"}"#, BlockKind::Writable, false),
            (r#"{"r2Prefix":"skills/../"}"#, BlockKind::Loadable, false),
            (r#"{"agent":"user:42"}"#, BlockKind::Searchable, true),
            (
                r#"{"agent":"user:42","label":"memory"}"#,
                BlockKind::Writable,
                true,
            ),
            (r#"{"agent":"user:{2}"}"#, BlockKind::Writable, true),
            (r#"{"agent":"user:{0}"}"#, BlockKind::Writable, false),
            (r#"{"agent":"user:{Name}"}"#, BlockKind::Writable, false),
            (r#"{"agent":"user:{2"}"#, BlockKind::Writable, false),
            (r#"{"agent":"user:2}"}"#, BlockKind::Writable, false),
            (r#"{"r2":"notes/{name}.md"}"#, BlockKind::Writable, true),
            (r#"{"r2":"../{name}.md"}"#, BlockKind::Writable, false),
            (r#"{"r2Prefix":"skills/{1}/"}"#, BlockKind::Loadable, true),
            (r#"{"r2Prefix":"skills/{1}"}"#, BlockKind::Loadable, false),
            (r#"{"service":"{1}"}"#, BlockKind::Writable, false),
            (r#"{"agent":""}"#, BlockKind::Writable, false),
            (r#"{"service":"NOTES"}"#, BlockKind::Searchable, true),
            (r#"{"service":"AI"}"#, BlockKind::Searchable, false),
            (r#"{"service":"a.b/c"}"#, BlockKind::Searchable, false),
            (
                r#"{"service":"NOTES","r2":"a"}"#,
                BlockKind::Writable,
                false,
            ),
            (
                r#"{"service":"NOTES","label":"a"}"#,
                BlockKind::Writable,
                false,
            ),
            (r#"{}"#, BlockKind::Writable, false),
        ];
        for (json, kind, is_good) in table {
            assert_eq!(source(json).check(kind).is_ok(), is_good, "{json}");
        }
        let schema = schemars::schema_for!(BlockSource).to_value();
        for field in schema["properties"].as_object().unwrap().keys() {
            let named = format!("\"{field}\"");
            let is_shown = table
                .iter()
                .any(|(json, _, is_good)| *is_good && json.contains(&named));
            assert!(is_shown, "no line shows a block with a `source` of {named}");
        }
    }

    #[test]
    fn a_template_resolves_to_each_agents_own_backend() {
        let there = |json: &str| BlockLocation::Remote(Box::new(source(json)));
        for (json, agent, expected) in [
            (
                r#"{"agent":"user:{2}"}"#,
                "coder:42",
                there(r#"{"agent":"user:42"}"#),
            ),
            (
                r#"{"agent":"user:{2}"}"#,
                "user:42",
                BlockLocation::Local(None),
            ),
            (
                r#"{"agent":"user:42"}"#,
                "user:42",
                BlockLocation::Local(None),
            ),
            (
                r#"{"agent":"user:{2}","label":"profile"}"#,
                "user:42",
                BlockLocation::Local(Label::parse("profile").ok()),
            ),
            (
                r#"{"agent":"of {name}"}"#,
                "a:b",
                there(r#"{"agent":"of a:b"}"#),
            ),
            (
                r#"{"r2":"n/{1}/{1}.md"}"#,
                "x:y",
                there(r#"{"r2":"n/x/x.md"}"#),
            ),
            (
                r#"{"r2Prefix":"s/{name}/"}"#,
                "x",
                there(r#"{"r2Prefix":"s/x/"}"#),
            ),
            (
                r#"{"service":"NOTES"}"#,
                "x",
                there(r#"{"service":"NOTES"}"#),
            ),
        ] {
            assert_eq!(
                source(json).locate(agent, false),
                expected,
                "{json} of {agent}"
            );
        }
    }

    #[test]
    fn no_agent_name_escapes_its_template() {
        let long = format!("a:{}", "x".repeat(MAX_KEY_BYTES));
        for (json, agent) in [
            (r#"{"agent":"user:{2}"}"#, "coder"),
            (r#"{"agent":"user:{2}"}"#, "coder:"),
            (r#"{"agent":"user:{2}"}"#, "coder::42"),
            (r#"{"agent":"user:{2}"}"#, "coder:{name}"),
            (r#"{"agent":"user:{2}"}"#, "coder:{1}"),
            (r#"{"agent":"user:{2}"}"#, "coder:a/b"),
            (r#"{"agent":"user:{2}"}"#, "coder:.."),
            (r#"{"agent":"user:{2}"}"#, &long),
            (r#"{"r2":"n/{name}.md"}"#, "../secrets"),
            (r#"{"r2":"n/{name}/x.md"}"#, ".."),
            (r#"{"r2":"n/{name}/x.md"}"#, "."),
            (r#"{"r2":"n/{1}/x.md"}"#, ".:a"),
            (r#"{"r2":"n/{1}.md"}"#, "a\\..\\b"),
            (r#"{"r2":"n/{1}.md"}"#, "a\nb"),
            (r#"{"r2":"n/{2}.md"}"#, &long),
            (r#"{"r2":"n/{1}{2}/x.md"}"#, "a:."),
            (r#"{"r2Prefix":"s/{1}/"}"#, "a/../b"),
            (r#"{"r2Prefix":"s/{1}/"}"#, ""),
        ] {
            let location = source(json).locate(agent, false);
            assert!(
                matches!(location, BlockLocation::Unresolved(_)),
                "{json} of {agent:?}"
            );
        }
    }

    #[test]
    fn a_session_block_cannot_be_stored_in_its_own_agent() {
        for (json, agent) in [
            (r#"{"agent":"user:{2}"}"#, "user:42"),
            (r#"{"agent":"alice","label":"memory"}"#, "alice"),
        ] {
            let location = source(json).locate(agent, true);
            assert!(matches!(location, BlockLocation::Unresolved(_)), "{json}");
        }
    }
}
