//! Parses the header `www-authenticate`: what a server requires after it has refused a
//! client.

use serde::{Deserialize, Serialize};

/// The maximum length of the header.
const MAX_HEADER_BYTES: usize = 8 << 10;

/// The error for a token without the required scope.
const INSUFFICIENT_SCOPE: &str = "insufficient_scope";

/// The parameters that concern OAuth.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Challenge {
    /// The URL of the server's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<String>,
    /// The scopes that the request needs, separated by spaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl Challenge {
    pub fn wants_more_scope(&self) -> bool {
        self.error.as_deref() == Some(INSUFFICIENT_SCOPE)
    }

    /// Parses the header. Unreadable parameters are skipped.
    pub fn read(header: &str) -> Self {
        let mut challenge = Self::default();
        let header = header.get(..MAX_HEADER_BYTES).unwrap_or(header);
        for (name, value) in read_parameters(header) {
            let field = match name.as_str() {
                "resource_metadata" => &mut challenge.metadata,
                "scope" => &mut challenge.scope,
                "error" => &mut challenge.error,
                _ => continue,
            };
            // The first parameter of a name is used.
            field.get_or_insert(value);
        }
        challenge
    }
}

/// The parameters of all challenges in the header, in their order.
fn read_parameters(header: &str) -> Vec<(String, String)> {
    let mut parameters = Vec::new();
    let mut rest = header;
    while let Some((before, after)) = rest.split_once('=') {
        let name = before.rsplit([' ', ',', '\t']).next().unwrap_or_default();
        let after = after.trim_start();
        let value;
        (value, rest) = match after.strip_prefix('"') {
            Some(quoted) => read_quoted(quoted),
            None => {
                let end = after.find([',', ' ']).unwrap_or(after.len());
                let (value, rest) = after.split_at_checked(end).unwrap_or((after, ""));
                (value.to_owned(), rest)
            }
        };
        parameters.push((name.to_ascii_lowercase(), value));
    }
    parameters
}

/// The value of a quoted string, and the text after it.
fn read_quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return (value, text.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(letters.next().map(|(_, escaped)| escaped)),
            _ => value.push(letter),
        }
    }
    (value, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_is_parsed_in_any_parameter_order() {
        let of = |metadata: Option<&str>, scope: Option<&str>, error: Option<&str>| Challenge {
            metadata: metadata.map(str::to_owned),
            scope: scope.map(str::to_owned),
            error: error.map(str::to_owned),
        };
        for (header, expected) in [
            ("", of(None, None, None)),
            ("Bearer", of(None, None, None)),
            (
                r#"Bearer scope="a b", resource_metadata="https://x/y?z=1""#,
                of(Some("https://x/y?z=1"), Some("a b"), None),
            ),
            (
                r#"Basic realm="a, b=\"c\"", Bearer error=insufficient_scope, SCOPE = "w""#,
                of(None, None, Some("insufficient_scope")),
            ),
            (r#"Bearer scope="a", scope="b""#, of(None, Some("a"), None)),
            (r#"Bearer scope="open"#, of(None, Some("open"), None)),
        ] {
            assert_eq!(Challenge::read(header), expected, "{header}");
        }
        let more = Challenge::read(r#"Bearer error="insufficient_scope", scope="w""#);
        assert!(more.wants_more_scope());
    }
}
