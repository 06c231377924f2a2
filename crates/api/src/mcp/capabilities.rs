//! The kinds of questions that an MCP client declares it can answer.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use base::host::Host;
use base::json::json;

/// A kind of question: its letter, its capability and its method.
const KINDS: [(char, &str, &str); 3] = [
    ('e', "elicitation", "elicitation/create"),
    ('s', "sampling", "sampling/createMessage"),
    ('r', "roots", "roots/list"),
];

/// The letter for questions that send the user to a web page.
const URL: char = 'u';

/// The longest session id that is parsed.
const MAX_SESSION_BYTES: usize = 64;

/// The questions that a client can answer, as letters of [`KINDS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Capabilities(String);

impl Capabilities {
    pub fn read(capabilities: &Value) -> Self {
        let mut letters = String::new();
        for (letter, name, _) in KINDS {
            if capabilities[name].is_object() {
                letters.push(letter);
            }
        }
        if capabilities
            .pointer("/elicitation/url")
            .is_some_and(Value::is_object)
        {
            letters.push(URL);
        }
        Self(letters)
    }

    /// The capabilities of a client after a handshake: its session id starts with them.
    /// They are the client's own claim, so the id needs no signature.
    pub fn of_session(session: Option<&str>) -> Self {
        let session = session.filter(|session| session.len() <= MAX_SESSION_BYTES);
        let letters = session.and_then(|session| session.split_once('.'));
        let letters = letters.map(|(letters, _)| letters).unwrap_or_default();
        Self(letters.to_owned())
    }

    /// An id for the session of a client with these capabilities.
    pub fn to_session(&self, host: &dyn Host) -> String {
        let mut random = [0; 18];
        host.fill_random(&mut random);
        format!("{}.{}", self.0, URL_SAFE_NO_PAD.encode(random))
    }

    /// Whether the client can answer this question.
    pub fn include(&self, method: &str, params: &Value) -> bool {
        let Some((letter, ..)) = KINDS.into_iter().find(|(.., of)| *of == method) else {
            return false;
        };
        let is_page = letter == 'e' && params["mode"] == "url";
        self.0.contains(if is_page { URL } else { letter })
    }

    pub fn accepts_forms(&self) -> bool {
        self.0.contains('e')
    }
}

/// Whether this method is a question at all.
pub fn is_question(method: &str) -> bool {
    KINDS.iter().any(|(.., of)| *of == method)
}

/// The capabilities that these methods need.
pub fn needed_by<'a>(methods: impl Iterator<Item = &'a str>) -> Value {
    let mut needed = Map::new();
    for method in methods {
        if let Some((_, name, _)) = KINDS.iter().find(|(.., of)| *of == method) {
            needed.insert((*name).to_owned(), json!({}));
        }
    }
    Value::Object(needed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::testing::FixedHost;

    #[test]
    fn a_session_id_encodes_the_clients_capabilities() {
        let form = json!({"message": "?"});
        let page = json!({"mode": "url", "url": "https://x.example"});
        for (declared, can_form, can_page, can_sample) in [
            (json!({}), false, false, false),
            (json!({"elicitation": {}}), true, false, false),
            (
                json!({"elicitation": {"url": {}}, "sampling": {}}),
                true,
                true,
                true,
            ),
            (
                json!({"elicitation": true, "sampling": "yes"}),
                false,
                false,
                false,
            ),
            (json!([]), false, false, false),
        ] {
            let read = Capabilities::read(&declared);
            let session = read.to_session(&FixedHost::default());
            let again = Capabilities::of_session(Some(&session));
            assert_eq!(read, again, "{session}");
            assert_eq!(
                again.include("elicitation/create", &form),
                can_form,
                "{declared}"
            );
            assert_eq!(
                again.include("elicitation/create", &page),
                can_page,
                "{declared}"
            );
            let samples = again.include("sampling/createMessage", &json!({}));
            assert_eq!(samples, can_sample, "{declared}");
            assert!(!again.include("tools/call", &json!({})));
        }
        let long = format!("e.{}", "x".repeat(MAX_SESSION_BYTES));
        for other in [None, Some("e"), Some(""), Some("."), Some(long.as_str())] {
            assert!(
                !Capabilities::of_session(other).accepts_forms(),
                "{other:?}"
            );
        }
    }
}
