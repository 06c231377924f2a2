//! The revisions of MCP, and the headers that each requires of a request.
//!
//! Up to 2025-11-25, a client starts with `initialize`. Since 2026-07-28 there is no
//! handshake: each request carries everything that a server needs, in its headers and in
//! `_meta`. Both are served without sessions: no request depends on an earlier one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::message::{INVALID_PARAMS, Request, RpcError};
use super::outcome::Form;
use base::json::json;
use chat::tools::exchange::INPUT_REQUIRED;
use chat::tools::mcp::revision::{
    CAPABILITIES, ENCODED, NEWEST, NEWEST_HANDSHAKE, OLDER_HANDSHAKES, VERSION,
};

/// The supported revisions, newest first.
pub const SUPPORTED: [&str; 3] = [NEWEST, NEWEST_HANDSHAKE, "2025-06-18"];

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

const HEADER_MISMATCH: i64 = -32_020;
const UNSUPPORTED_VERSION: i64 = -32_022;
const METHOD_NOT_FOUND: i64 = -32_601;

/// How a request specifies its revision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Revision {
    /// 2025-06-18 and 2025-11-25.
    Handshake,
    /// 2026-07-28.
    Stateless,
}

/// The headers that the protocol defines.
#[derive(Clone, Copy, Debug, Default)]
pub struct McpHeaders<'a> {
    pub accept: Option<&'a str>,
    pub content_type: Option<&'a str>,
    pub version: Option<&'a str>,
    pub method: Option<&'a str>,
    pub name: Option<&'a str>,
    pub session: Option<&'a str>,
}

pub fn server_info() -> Value {
    json!({"name": "session-agent", "version": env!("CARGO_PKG_VERSION")})
}

/// The revision that a handshake agrees on.
pub fn choose(requested: &str) -> &str {
    let is_served = |served: &&str| *served != NEWEST && *served == requested;
    SUPPORTED
        .into_iter()
        .find(is_served)
        .unwrap_or(NEWEST_HANDSHAKE)
}

impl McpHeaders<'_> {
    /// The format of the answer that the client accepts. `None`: it accepts no supported
    /// format.
    pub fn form(&self) -> Option<Form> {
        let accept = self.accept.unwrap_or_default().to_ascii_lowercase();
        let kinds = accept
            .split(',')
            .map(|kind| kind.split(';').next().unwrap_or_default().trim());
        let kinds: Vec<&str> = kinds.filter(|kind| !kind.is_empty()).collect();
        let takes = |names: [&str; 2]| kinds.iter().any(|kind| names.contains(kind));
        if kinds.is_empty()
            || kinds.contains(&"*/*")
            || takes(["application/json", "application/*"])
        {
            Some(Form::Json)
        } else if takes(["text/event-stream", "text/*"]) {
            Some(Form::Events)
        } else {
            None
        }
    }

    /// Whether the body is declared as JSON. A page of another origin can send such a body
    /// only with this Worker's permission.
    pub fn is_json(&self) -> bool {
        let kind = self.content_type.unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        kind.eq_ignore_ascii_case("application/json")
    }

    /// The revision of a request. Refuses a request whose headers differ from its body.
    pub fn check(&self, request: &Request) -> Result<Revision, RpcError> {
        let header = self.version.map(str::trim);
        let declared = request.meta(VERSION);
        if header != Some(NEWEST) && declared.is_none() {
            return match header {
                Some(version)
                    if !SUPPORTED.contains(&version) && !OLDER_HANDSHAKES.contains(&version) =>
                {
                    Err(unsupported(version))
                }
                _ => Ok(Revision::Handshake),
            };
        }
        let missing =
            |name: &str| RpcError::params("_meta", format!("`_meta` must have `{name}`."));
        let Some(Value::String(declared)) = declared else {
            return Err(missing(VERSION));
        };
        if header != Some(declared.as_str()) {
            return Err(mismatch("mcp-protocol-version", VERSION));
        }
        if declared != NEWEST {
            return Err(unsupported(declared));
        }
        if !request.meta(CAPABILITIES).is_some_and(Value::is_object) {
            return Err(missing(CAPABILITIES));
        }
        if self.method.map(str::trim) != Some(request.method.as_str()) {
            return Err(mismatch("mcp-method", "method"));
        }
        let name = match request.method.as_str() {
            "tools/call" | "prompts/get" => "name",
            "resources/read" => "uri",
            _ => return Ok(Revision::Stateless),
        };
        if self.name.and_then(read_value).as_deref() == Some(request.text(name)?) {
            return Ok(Revision::Stateless);
        }
        Err(mismatch("mcp-name", name))
    }
}

/// Decodes a header's value. `None`: the value is encoded incorrectly.
fn read_value(value: &str) -> Option<String> {
    let value = value.trim();
    let encoded = value
        .strip_prefix(ENCODED.0)
        .and_then(|rest| rest.strip_suffix(ENCODED.1));
    match encoded {
        None => Some(value.to_owned()),
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
    }
}

fn mismatch(header: &str, field: &str) -> RpcError {
    RpcError::new(
        HEADER_MISMATCH,
        format!("The header `{header}` must equal `{field}` in the body."),
    )
}

fn unsupported(version: &str) -> RpcError {
    let version: String = version.chars().take(64).collect();
    RpcError {
        data: Some(json!({"supported": SUPPORTED, "requested": version})),
        ..RpcError::new(
            UNSUPPORTED_VERSION,
            format!(
                "This revision of the protocol is not supported. Supported revisions: {}.",
                SUPPORTED.join(", ")
            ),
        )
    }
}

impl Revision {
    /// A method's result, with the fields that this revision adds to every result.
    pub fn finish(self, result: &str, is_list: bool, is_question: bool) -> String {
        if self == Revision::Handshake {
            return result.to_owned();
        }
        let kind = if is_question {
            INPUT_REQUIRED
        } else {
            "complete"
        };
        let info = server_info();
        let caching = if is_list {
            // The answer is specific to the caller, and may change at any time.
            r#""ttlMs":0,"cacheScope":"private","#
        } else {
            ""
        };
        let head =
            format!(r#"{{"resultType":"{kind}","_meta":{{"{SERVER_INFO}":{info}}},{caching}"#);
        let fields = result.strip_prefix('{').unwrap_or("}");
        match fields {
            "}" => format!("{}{fields}", head.trim_end_matches(',')),
            _ => format!("{head}{fields}"),
        }
    }

    /// The HTTP status of an error.
    pub fn status_of(self, error: &RpcError) -> u16 {
        match (self, error.status, error.code) {
            (_, Some(status), _) => status,
            (Revision::Stateless, None, METHOD_NOT_FOUND) => 404,
            (Revision::Stateless, None, INVALID_PARAMS) => 400,
            _ => 200,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(accept: &str) -> McpHeaders<'_> {
        McpHeaders {
            accept: Some(accept),
            ..McpHeaders::default()
        }
    }

    #[test]
    fn a_response_is_json_or_a_stream_as_accepted() {
        assert_eq!(McpHeaders::default().form(), Some(Form::Json));
        for (accept, form) in [
            ("application/json, text/event-stream", Some(Form::Json)),
            ("Application/JSON;q=0.5", Some(Form::Json)),
            ("*/*", Some(Form::Json)),
            ("", Some(Form::Json)),
            ("text/event-stream", Some(Form::Events)),
            ("text/html", None),
        ] {
            assert_eq!(headers(accept).form(), form, "{accept}");
        }
    }

    #[test]
    fn initialize_negotiates_a_common_revision() {
        for (requested, chosen) in [
            ("2025-11-25", "2025-11-25"),
            ("2025-06-18", "2025-06-18"),
            ("2026-07-28", "2025-11-25"),
            ("2024-11-05", "2025-11-25"),
            ("x", "2025-11-25"),
        ] {
            assert_eq!(choose(requested), chosen, "{requested}");
        }
    }

    #[test]
    fn an_encoded_header_is_decoded() {
        for (value, text) in [
            ("  a tool ", Some("a tool")),
            ("=?base64?SGVsbG8=?=", Some("Hello")),
            ("=?base64?SGVsbG8?=", None),
            ("=?base64?SGVs!!!bG8=?=", None),
            ("=?base64?/w==?=", None),
            ("=?base64?SGVsbG8=", Some("=?base64?SGVsbG8=")),
        ] {
            assert_eq!(read_value(value).as_deref(), text, "{value}");
        }
    }

    #[test]
    fn a_result_has_the_fields_of_its_revision() {
        let finish = |result: &str| Revision::Stateless.finish(result, true, false);
        for result in ["{}", r#"{"tools":[]}"#] {
            let mut finished: Value = serde_json::from_str(&finish(result)).unwrap();
            assert_eq!(finished["resultType"], "complete");
            assert_eq!(finished["_meta"][SERVER_INFO]["name"], "session-agent");
            assert_eq!(
                (&finished["ttlMs"], &finished["cacheScope"]),
                (&json!(0), &json!("private"))
            );
            let added = ["resultType", "_meta", "ttlMs", "cacheScope"];
            for name in added {
                finished.as_object_mut().unwrap().remove(name);
            }
            assert_eq!(finished.to_string(), result);
        }
        assert_eq!(Revision::Handshake.finish("{}", true, false), "{}");
    }
}
