//! The headers that the operator configured for a tool, and the secrets in them.
//!
//! Invariant: a secret is only sent to the one origin that `TOOL_SECRETS` assigns to it,
//! and is never stored. Only `secret:NAME` is stored and shown. The secret's value is
//! looked up for each call, and is stripped from the tool's answer. No header can reference
//! a setting of the Worker itself, such as a provider's key.

use std::collections::BTreeMap;

use crate::address::origin::origin_of;
use base::error::{Code, Error, Result};
use base::json;
use base::outbound::Outbound;
use base::settings::{Setting, is_own_setting};

/// The most headers of one tool.
pub const MAX_HEADERS: usize = 16;

/// The longest name of a header, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// The longest value of a header, in bytes.
pub const MAX_VALUE_BYTES: usize = 2_048;

/// The longest value of a secret, in bytes.
const MAX_SECRET_BYTES: usize = 8_192;

/// The shortest secret that is stripped from answers: a shorter one would also match words
/// that are not secrets.
const MIN_STRIPPED_BYTES: usize = 6;

/// The text that replaces a secret in an answer.
const STRIPPED: &str = "[secret]";

/// The prefix of a value that references a secret.
const SECRET_PREFIX: &str = "secret:";

const FIELD: &str = "headers";

const AUTHORIZATION: &str = "authorization";

/// Headers that belong to the connection, to the agent's own protocol or to the
/// network. A tool's definition can't set them.
const RESERVED: &[&str] = &[
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "cookie2",
    "date",
    "expect",
    "forwarded",
    "host",
    "idempotency-key",
    "keep-alive",
    "origin",
    "referer",
    "set-cookie",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
];

/// Prefixes of names that are also reserved.
const RESERVED_BEGINNINGS: &[&str] = &[
    "proxy-",
    "sec-",
    "cf-",
    "x-forwarded-",
    "x-session-agent-",
    "mcp-",
];

/// A tool's headers as defined, by name in lower case.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolHeaders(BTreeMap<String, String>);

/// The headers of one call, including their secrets.
#[derive(Default)]
pub struct ResolvedHeaders {
    pub headers: Vec<(String, String)>,
    secrets: Vec<String>,
}

impl ToolHeaders {
    /// Checks the names and values of a definition.
    pub fn parse(given: BTreeMap<String, String>) -> Result<Self> {
        if given.len() > MAX_HEADERS {
            return Err(refused(format!(
                "A tool has at most {MAX_HEADERS} `headers`."
            )));
        }
        let mut headers = BTreeMap::default();
        for (name, value) in given {
            let name = name.to_ascii_lowercase();
            check_name(&name)?;
            check_value(&name, &value)?;
            if headers.insert(name, value).is_some() {
                return Err(refused("`headers` contains a header twice."));
            }
        }
        Ok(Self(headers))
    }

    /// The names of the headers, which a file contains without their values.
    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Headers whose values a file omits. A call with such a header is refused until the
    /// tool is redefined.
    pub fn without_values(names: Vec<String>) -> Result<Self> {
        // A placeholder, so that the names are checked as `defineTool` checks them.
        let named = names.into_iter().map(|name| (name, "secret:X".to_owned()));
        let Self(mut headers) = Self::parse(named.collect())?;
        for value in headers.values_mut() {
            SECRET_PREFIX.clone_into(value);
        }
        Ok(Self(headers))
    }

    /// Parses the column that [`Self::to_json`] wrote.
    pub fn from_json(text: Option<&str>) -> Option<Self> {
        match text {
            None => Some(Self::default()),
            Some(text) => json::decode(text).ok().map(Self),
        }
    }

    /// The headers' stored form. `None`: there are no headers.
    pub fn to_json(&self) -> Option<String> {
        let has_headers = !self.0.is_empty();
        has_headers.then(|| json::encode(&self.0).unwrap_or_default())
    }

    /// The headers as `listTools` shows them: the names of secrets, never a secret.
    pub fn into_shown(self) -> BTreeMap<String, String> {
        self.0
    }

    /// The headers of a call to this URL, or of a call to a service (`None`). Checks each
    /// secret again, because the settings may have changed since the definition.
    pub fn resolve(&self, outbound: &dyn Outbound, url: Option<&str>) -> Result<ResolvedHeaders> {
        let mut resolved = ResolvedHeaders::default();
        for (name, value) in self.0.iter() {
            let value = match split_secret(value) {
                Some((_, "")) => {
                    return Err(refused(format!(
                        "The header `{name}` has no value, because exported files contain none. \
                         Define the tool again with `defineTool`."
                    )));
                }
                Some((scheme, secret)) => {
                    let secret = find_secret(outbound, secret, url)?;
                    let value = format!("{scheme}{secret}");
                    resolved.secrets.push(secret);
                    value
                }
                None => value.clone(),
            };
            resolved.headers.push((name.clone(), value));
        }
        Ok(resolved)
    }
}

impl ResolvedHeaders {
    /// The headers with a person's token, which replaces another credential.
    pub fn with_token(mut self, token: &str) -> Self {
        self.headers.retain(|(name, _)| name != AUTHORIZATION);
        let value = format!("Bearer {token}");
        self.headers.push((AUTHORIZATION.to_owned(), value));
        self.secrets.push(token.to_owned());
        self
    }

    /// Whether the operator configured a credential for the tool.
    pub fn has_credential(&self) -> bool {
        self.headers.iter().any(|(name, _)| name == AUTHORIZATION)
    }

    /// Removes the call's secrets from the tool's answer.
    pub fn strip(&self, text: String) -> String {
        strip_all(&self.secrets, &text).unwrap_or(text)
    }

    /// Like [`Self::strip`], for JSON, in which a secret may be written with escapes.
    pub fn strip_json(&self, text: String) -> String {
        let text = self.strip(text);
        if self.secrets.is_empty() {
            return text;
        }
        let Ok(value) = json::decode_tree(&text) else {
            return text;
        };
        // After rendering again, each character is escaped in only one way.
        let escaped: Vec<String> = self.secrets.iter().map(|secret| escape(secret)).collect();
        strip_all(&escaped, &json::text(&value)).unwrap_or(text)
    }
}

/// The text without these secrets. `None`: it contains none of them.
fn strip_all(secrets: &[String], text: &str) -> Option<String> {
    let is_in_text =
        |secret: &&String| secret.len() >= MIN_STRIPPED_BYTES && text.contains(*secret);
    let mut found = secrets.iter().filter(is_in_text).peekable();
    found.peek()?;
    let strip = |text: String, secret: &String| text.replace(secret, STRIPPED);
    Some(found.fold(text.to_owned(), strip))
}

/// A text in the form that it has within the quotes of JSON.
fn escape(text: &str) -> String {
    let quoted = json::quoted(text);
    let inner = quoted.get(1..quoted.len() - 1);
    inner.unwrap_or_default().to_owned()
}

/// The scheme and the name of a secret in `secret:NAME` or `Bearer secret:NAME`.
fn split_secret(value: &str) -> Option<(&str, &str)> {
    let at = value.find(SECRET_PREFIX)?;
    let (scheme, rest) = value.split_at_checked(at)?;
    let is_scheme = scheme.is_empty()
        || scheme.strip_suffix(' ').is_some_and(|scheme| {
            !scheme.is_empty() && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
    is_scheme.then_some((scheme, rest.strip_prefix(SECRET_PREFIX)?))
}

fn check_name(name: &str) -> Result<()> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.bytes().all(is_token) {
        return Err(refused(format!(
            "A name in `headers` must have 1 to {MAX_NAME_BYTES} letters, digits or `-`."
        )));
    }
    let is_reserved = RESERVED.contains(&name)
        || RESERVED_BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning));
    if is_reserved {
        return Err(refused(format!(
            "A tool can't set the header `{name}`: the agent or the connection sets it."
        )));
    }
    Ok(())
}

fn check_value(name: &str, value: &str) -> Result<()> {
    let is_text = |byte: u8| matches!(byte, b' ' | b'\t' | 0x21..=0x7E);
    let is_trimmed = value.trim_ascii() == value;
    if value.len() > MAX_VALUE_BYTES || !is_trimmed || !value.bytes().all(is_text) {
        return Err(refused(format!(
            "The value of the header `{name}` must be ASCII text of at most {MAX_VALUE_BYTES} bytes, without line breaks and without spaces at either end."
        )));
    }
    match split_secret(value) {
        Some((_, secret)) if is_own_setting(secret) => Err(own(secret)),
        Some((_, secret)) if !is_secret_name(secret) => Err(refused(format!(
            "The value of the header `{name}` must name its secret as `secret:NAME`."
        ))),
        Some(_) => Ok(()),
        None if name == AUTHORIZATION => Err(refused(
            "`authorization` must be `secret:NAME` or `Bearer secret:NAME`. Store the credential as a secret of the Worker, and assign it to an origin in `TOOL_SECRETS`.",
        )),
        None => Ok(()),
    }
}

fn is_secret_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.len() <= MAX_NAME_BYTES && name.bytes().all(is_plain)
}

/// The value of a secret that may be sent to this URL.
pub fn find_secret(outbound: &dyn Outbound, name: &str, url: Option<&str>) -> Result<String> {
    if is_own_setting(name) || !is_secret_name(name) {
        return Err(own(name));
    }
    let setting = outbound
        .find_setting(Setting::ToolSecrets)
        .unwrap_or_default();
    let Some(allowed) = find_origin(&setting, name) else {
        return Err(forbidden(format!(
            "No tool may use the secret `{name}`: the variable `{}` doesn't assign it to an origin.",
            Setting::ToolSecrets.name()
        )));
    };
    if url.and_then(origin_of).as_ref() != Some(&allowed) {
        return Err(forbidden(format!(
            "The secret `{name}` is only sent to {allowed}, and this tool is at another origin."
        )));
    }
    let secret = outbound.find_secret(name).filter(|secret| {
        let is_text = |byte: u8| matches!(byte, b' ' | 0x21..=0x7E);
        secret.len() <= MAX_SECRET_BYTES && secret.bytes().all(is_text)
    });
    secret.ok_or_else(|| {
        Error::new(
            Code::NotConfigured,
            format!("The secret `{name}` is not set, or it can't be sent in a header. Set it with `npx wrangler secret put {name}`."),
        )
        .with("binding", name)
    })
}

/// The origin of this secret in `TOOL_SECRETS`: a JSON object, or pairs
/// `NAME=https://origin` separated by commas, spaces or lines.
fn find_origin(setting: &str, name: &str) -> Option<String> {
    if setting.trim_start().starts_with('{') {
        let origins: BTreeMap<String, String> = json::decode(setting).ok()?;
        return origins.get(name).and_then(|origin| origin_of(origin));
    }
    let pairs = setting.split([',', ' ', '\n', '\r', '\t']);
    let mut named = pairs.filter_map(|pair| pair.split_once('='));
    let (_, origin) = named.find(|(named, _)| *named == name)?;
    origin_of(origin)
}

fn refused(message: impl Into<String>) -> Error {
    Error::invalid(FIELD, message)
}

fn forbidden(message: String) -> Error {
    Error::new(Code::Forbidden, message).with_field(FIELD)
}

fn own(name: &str) -> Error {
    forbidden(format!(
        "`{name}` belongs to the Worker itself, and no tool may use it."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::Script;

    fn headers(name: &str, value: &str) -> Result<ToolHeaders> {
        ToolHeaders::parse(BTreeMap::from_iter([(name.to_owned(), value.to_owned())]))
    }

    fn outside() -> Script {
        let outside = Script::default();
        let settings = [
            (
                "TOOL_SECRETS",
                "KEY=https://a.example, OTHER=https://b.example OPENAI_API_KEY=https://a.example",
            ),
            ("KEY", "hunter2-hunter2"),
            ("OPENAI_API_KEY", "sk-own"),
        ];
        for (name, value) in settings {
            let mut there = outside.settings.borrow_mut();
            there.insert(name.to_owned(), value.to_owned());
        }
        outside
    }

    fn resolve(outside: &Script, value: &str, url: Option<&str>) -> Result<String> {
        let resolved = headers("x-key", value)?.resolve(outside, url)?;
        Ok(resolved.headers[0].1.clone())
    }

    #[test]
    fn a_secret_is_sent_only_to_its_origin() {
        let outside = outside();
        let there = Some("https://a.example/tool?x=1");
        for (value, url, expected) in [
            ("secret:KEY", there, Ok("hunter2-hunter2")),
            ("Bearer secret:KEY", there, Ok("Bearer hunter2-hunter2")),
            ("plain", there, Ok("plain")),
            ("plain", None, Ok("plain")),
            ("a:secret:KEY", there, Ok("a:secret:KEY")),
            (
                "secret:KEY",
                Some("https://a.example:8443/"),
                Err("forbidden"),
            ),
            ("secret:KEY", Some("https://b.example/"), Err("forbidden")),
            ("secret:KEY", None, Err("forbidden")),
            ("secret:NOPE", there, Err("forbidden")),
            (
                "secret:OTHER",
                Some("https://b.example/"),
                Err("not_configured"),
            ),
            ("secret:OPENAI_API_KEY", there, Err("forbidden")),
            ("secret:SESSION_AGENT_TOKEN", there, Err("forbidden")),
            ("secret:ANTHROPIC_API_KEY", there, Err("forbidden")),
            ("secret:", there, Err("invalid_request")),
            ("secret:K Y", there, Err("invalid_request")),
        ] {
            let outcome = resolve(&outside, value, url);
            let outcome = outcome.as_deref().map_err(|error| error.code.name());
            assert_eq!(outcome, expected, "{value} {url:?}");
        }
        // The operator removed the origin after the tool was defined.
        outside.settings.borrow_mut().remove("TOOL_SECRETS");
        let error = resolve(&outside, "secret:KEY", there).unwrap_err();
        assert_eq!(error.code, Code::Forbidden);
        assert!(!error.message.contains("hunter2"));
        // The setting may also be a JSON object.
        let setting = r#"{"KEY": "https://A.example:443"}"#.to_owned();
        let mut settings = outside.settings.borrow_mut();
        settings.insert("TOOL_SECRETS".to_owned(), setting);
        drop(settings);
        assert!(resolve(&outside, "secret:KEY", there).is_ok());
        assert!(resolve(&outside, "secret:OTHER", there).is_err());
    }

    #[test]
    fn connection_headers_and_line_breaks_are_refused() {
        for (name, value, is_taken) in [
            ("x-key", "1", true),
            ("X-Key", "1", true),
            ("authorization", "secret:KEY", true),
            ("Authorization", "Bearer secret:KEY", true),
            ("authorization", "Bearer abc", false),
            ("Host", "a", false),
            ("content-length", "1", false),
            ("Cookie", "a", false),
            ("Transfer-Encoding", "chunked", false),
            ("Sec-Fetch-Site", "none", false),
            ("CF-Connecting-IP", "1", false),
            ("x-forwarded-for", "1", false),
            ("mcp-session-id", "1", false),
            ("idempotency-key", "1", false),
            ("", "1", false),
            ("a b", "1", false),
            ("a\r\nb", "1", false),
            ("a:", "1", false),
            ("x", "a\r\nhost: b", false),
            ("x", " a", false),
            ("x", "é", false),
            ("x", "", true),
        ] {
            let outcome = headers(name, value);
            assert_eq!(outcome.is_ok(), is_taken, "{name}: {value}");
            if let Err(error) = outcome {
                assert_eq!(error.details()["field"], "headers", "{name}");
            }
        }
    }

    #[test]
    fn their_names_values_and_number_are_bounded() {
        assert!(headers(&"x".repeat(MAX_NAME_BYTES), "").is_ok());
        assert!(headers(&"x".repeat(MAX_NAME_BYTES + 1), "").is_err());
        assert!(headers("x", &"v".repeat(MAX_VALUE_BYTES)).is_ok());
        assert!(headers("x", &"v".repeat(MAX_VALUE_BYTES + 1)).is_err());
        let many = |count: usize| {
            let names = (0..count).map(|index| (format!("x-{index}"), String::new()));
            ToolHeaders::parse(names.collect())
        };
        assert!(many(MAX_HEADERS).is_ok());
        assert!(many(MAX_HEADERS + 1).is_err());
        let twice = ["x-a", "X-A"].map(|name| (name.to_owned(), "1".to_owned()));
        assert!(ToolHeaders::parse(twice.into_iter().collect()).is_err());
    }

    #[test]
    fn a_secret_is_removed_from_an_answer_that_repeats_it() {
        let outside = outside();
        let url = Some("https://a.example/");
        let resolved = headers("x-key", "secret:KEY").unwrap();
        let resolved = resolved.resolve(&outside, url).unwrap();
        let text = "No such key: hunter2-hunter2. (hunter2-hunter2)".to_owned();
        assert_eq!(resolved.strip(text), "No such key: [secret]. ([secret])");
        assert_eq!(resolved.strip("hunter2".to_owned()), "hunter2");
    }

    #[test]
    fn a_secret_is_found_in_json_in_any_escaping() {
        let outside = outside();
        let mut settings = outside.settings.borrow_mut();
        settings.insert("KEY".to_owned(), r#"ab/cd"e\f"#.to_owned());
        drop(settings);
        let resolved = headers("x-key", "secret:KEY").unwrap();
        let resolved = resolved.resolve(&outside, Some("https://a.example/"));
        let resolved = resolved.unwrap();
        for (text, expected) in [
            (
                r#"{"b": "ab\/cd\"e\\f", "a": 1.0}"#,
                r#"{"a":1.0,"b":"[secret]"}"#,
            ),
            (r#"["\u0061b/cd\"e\\f!"]"#, r#"["[secret]!"]"#),
            (r#"{ "b": 1.00 }"#, r#"{ "b": 1.00 }"#),
            (r#"no ab/cd"e\f"#, "no [secret]"),
        ] {
            assert_eq!(resolved.strip_json(text.to_owned()), expected);
        }
    }
}
