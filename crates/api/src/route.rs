//! Parses a method and a URL into a route. The parser is pure and strict: it rejects any part that
//! it does not know, and names the part.

use crate::table::NamedOperation;
use base::error::{Code, Error, ErrorKind, Result};
use chat::tools::mcp::oauth::begin::State;
use chat::tools::mcp::oauth::finish::Return;
use chat::tools::mcp::oauth::settings::{CALLBACK_PATH, CLIENT_PATH};
use directory::MAX_PAGE;
use directory::list::MAX_NAME_CHARS as MAX_AGENT_CHARS;
use provider_api::calls::{ApiCall, ApiFamily};

/// The agents of a page of the directory, by default.
const DEFAULT_PAGE: usize = 100;

/// The session of a client that names none.
const DEFAULT_SESSION: &str = "default";

const AGENTS: &str = "/agents/session-agent/";

#[derive(Clone, Debug, PartialEq)]
pub enum Route {
    Health,
    /// Describes the Worker as a client of OAuth.
    OAuthClient,
    /// A person's browser returns from an authorization server.
    OAuthReturn {
        /// From the state.
        agent: String,
        returned: Return,
    },
    /// Lists the agents of the directory.
    Agents {
        /// `?prefix=`; left out: all agents.
        prefix: String,
        /// `?limit=`
        limit: usize,
        /// `?cursor=`, from the previous page.
        cursor: String,
    },
    /// One operation of one agent.
    Rpc {
        agent: String,
        operation: NamedOperation,
    },
    /// A session's history, at the address that the stock clients use.
    Messages {
        agent: String,
        /// `?sessionId=`; left out: the session `default`.
        session_id: String,
        /// `?token=`, which the stock client repeats here from its socket's address.
        token: Option<String>,
    },
    /// Exports a session as a file.
    Export {
        agent: String,
        session_id: String,
    },
    /// Imports a session from such a file.
    Import {
        agent: String,
        session_id: String,
        /// `?allowSources=true`: the sender trusts the file's frozen prompt and the
        /// `source` of its blocks.
        allows_sources: bool,
    },
    /// Exports the whole agent as a file.
    ExportAgent {
        agent: String,
        /// `?after=`: the cursor of an interrupted export.
        after: Option<String>,
    },
    /// Imports such a file.
    ImportAgent {
        agent: String,
        /// `?allowSources=true`, as for a session.
        allows_sources: bool,
    },
    /// Begins a turn.
    Chat {
        agent: String,
        /// `?sessionId=`; left out: the session `default`. The body may name another.
        session_id: String,
    },
    /// Follows the running turn.
    Resume {
        agent: String,
        session_id: String,
    },
    /// One message of the Model Context Protocol.
    Mcp {
        agent: String,
        /// `?sessionId=`; left out: only the agent's memory.
        session_id: Option<String>,
    },
    /// A request in the API of a provider.
    Provider {
        agent: String,
        /// The session in the URL.
        session_id: Option<String>,
        call: ApiCall,
    },
    /// Opens a socket, if the request is an upgrade.
    Socket {
        agent: String,
        /// `?sessionId=`; left out: the session `default`.
        session_id: String,
        /// `?token=`
        token: Option<String>,
    },
}

impl Route {
    /// One operation of one agent.
    pub fn operation(agent: &str, operation: NamedOperation) -> Self {
        Self::Rpc {
            agent: agent.to_owned(),
            operation,
        }
    }

    /// The agent that the route addresses, if any.
    pub fn agent(&self) -> Option<&str> {
        match self {
            Route::Rpc { agent, .. }
            | Route::Messages { agent, .. }
            | Route::Export { agent, .. }
            | Route::Import { agent, .. }
            | Route::ExportAgent { agent, .. }
            | Route::ImportAgent { agent, .. }
            | Route::Chat { agent, .. }
            | Route::Resume { agent, .. }
            | Route::Mcp { agent, .. }
            | Route::Provider { agent, .. }
            | Route::Socket { agent, .. }
            | Route::OAuthReturn { agent, .. } => Some(agent),
            Route::Health | Route::OAuthClient | Route::Agents { .. } => None,
        }
    }
}

/// Parses a method and a URL. `url` may be absolute or a path; its host is ignored.
pub fn parse(method: &str, url: &str) -> Result<Route> {
    let path = path(url);
    match path {
        "/health" => allow(method, &["GET", "HEAD"], Route::Health),
        // The platform serves the Worker's files, so such a request never arrives here.
        "/openapi.json" | "/" => Err(Error::new(
            Code::UnknownOperation,
            "This address is a static file of the Worker. Objects don't serve files: send the \
             request to the Worker.",
        )),
        CLIENT_PATH => allow(method, &["GET", "HEAD"], Route::OAuthClient),
        CALLBACK_PATH => allow(method, &["GET"], parse_return(url)?),
        "/agents/session-agent" => allow(method, &["GET", "HEAD"], parse_list(url)?),
        _ => match path.strip_prefix(AGENTS) {
            Some(rest) => parse_agent(method, rest, url),
            None => Err(no_such_route()),
        },
    }
}

fn parse_list(url: &str) -> Result<Route> {
    let limit = match find_parameter(url, "limit")? {
        None => DEFAULT_PAGE,
        Some(limit) => limit
            .parse()
            .ok()
            .filter(|limit| (1..=MAX_PAGE).contains(limit))
            .ok_or_else(|| {
                let message = format!("`limit` in the URL must be a number from 1 to {MAX_PAGE}.");
                Error::invalid("limit", message)
            })?,
    };
    Ok(Route::Agents {
        prefix: find_parameter(url, "prefix")?.unwrap_or_default(),
        limit,
        cursor: find_parameter(url, "cursor")?.unwrap_or_default(),
    })
}

/// Parses the address to which an authorization server sends a browser back.
/// The refusal of a state that no agent created.
pub fn unknown_state() -> Error {
    Error::invalid(
        "state",
        "`state` is missing, or is not one of this Worker's.",
    )
}

fn parse_return(url: &str) -> Result<Route> {
    let find = |name| find_parameter(url, name);
    let state = find("state")?.as_deref().and_then(State::read);
    let state = state.ok_or_else(unknown_state)?;
    Ok(Route::OAuthReturn {
        agent: check_agent_name(state.agent)?,
        returned: Return {
            server: state.server,
            nonce: state.nonce,
            code: find("code")?,
            issuer: find("iss")?,
            error: find("error")?,
        },
    })
}

fn parse_agent(method: &str, rest: &str, url: &str) -> Result<Route> {
    let (agent, rest) = rest.split_once('/').unwrap_or((rest, ""));
    let agent = agent_name(agent)?;
    let named_session = || -> Result<String> {
        let named = find_parameter(url, "sessionId")?;
        Ok(named.unwrap_or_else(|| DEFAULT_SESSION.to_owned()))
    };
    if rest == "get-messages" {
        let session_id = named_session()?;
        let token = find_parameter(url, "token")?;
        let route = Route::Messages {
            agent,
            session_id,
            token,
        };
        return allow(method, &["GET", "HEAD"], route);
    }
    if rest == "chat" {
        let session_id = named_session()?;
        return allow(method, &["POST"], Route::Chat { agent, session_id });
    }
    if rest == "export" {
        let after = find_parameter(url, "after")?;
        return allow(method, &["GET"], Route::ExportAgent { agent, after });
    }
    if rest == "import" {
        let allows_sources = find_flag(url, "allowSources")?;
        let route = Route::ImportAgent {
            agent,
            allows_sources,
        };
        return allow(method, &["POST"], route);
    }
    if rest == "mcp" {
        let session_id = find_parameter(url, "sessionId")?;
        // Without sessions there is no stream to open, and no session to end.
        return allow(method, &["POST"], Route::Mcp { agent, session_id });
    }
    if rest.is_empty() && method == "GET" {
        return Ok(Route::Socket {
            agent,
            session_id: named_session()?,
            token: find_parameter(url, "token")?,
        });
    }
    match rest.split_once('/') {
        Some(("rpc", operation)) if !operation.is_empty() && !operation.contains('/') => {
            let operation = NamedOperation::find(decode("operation", operation)?);
            allow(method, &["POST"], Route::Rpc { agent, operation })
        }
        Some(("chat", rest)) => match rest.split_once('/') {
            Some((session_id, "stream")) => {
                let session_id = decode("sessionId", session_id)?;
                allow(method, &["GET"], Route::Resume { agent, session_id })
            }
            _ => Err(no_such_route()),
        },
        Some((family @ ("openai" | "anthropic"), rest)) => {
            parse_provider(method, agent, None, (family, rest))
        }
        Some(("sessions", rest)) => {
            let (session_id, what) = rest.split_once('/').ok_or_else(no_such_route)?;
            let session_id = decode("sessionId", session_id)?;
            if let Some((family @ ("openai" | "anthropic"), rest)) = what.split_once('/') {
                return parse_provider(method, agent, Some(session_id), (family, rest));
            }
            match what {
                "export" => allow(method, &["GET"], Route::Export { agent, session_id }),
                "import" => {
                    let route = Route::Import {
                        agent,
                        session_id,
                        allows_sources: find_flag(url, "allowSources")?,
                    };
                    allow(method, &["POST"], route)
                }
                _ => Err(no_such_route()),
            }
        }
        _ => Err(no_such_route()),
    }
}

/// Parses an address of a provider's API: `openai/v1/…`.
fn parse_provider(
    method: &str,
    agent: String,
    session_id: Option<String>,
    (family, rest): (&str, &str),
) -> Result<Route> {
    let rest = rest.strip_prefix("v1/").ok_or_else(no_such_route)?;
    let rest = decode("model", rest)?;
    if let Some(missing) = ApiCall::find_missing(family, &rest) {
        return Err(missing);
    }
    let (call, takes) = ApiCall::find(method, family, &rest).ok_or_else(no_such_route)?;
    let route = Route::Provider {
        agent,
        session_id,
        call,
    };
    allow(method, takes, route)
}

/// The API that the client of this URL uses, even if nothing is there.
pub fn find_family(url: &str) -> Option<ApiFamily> {
    let rest = path(url).strip_prefix(AGENTS)?;
    let (_, rest) = rest.split_once('/')?;
    let below = match rest.strip_prefix("sessions/") {
        Some(rest) => rest.split_once('/')?.1,
        None => rest,
    };
    match below.split_once('/')? {
        ("openai", _) => Some(ApiFamily::OpenAi),
        ("anthropic", _) => Some(ApiFamily::Anthropic),
        _ => None,
    }
}

fn agent_name(text: &str) -> Result<String> {
    check_agent_name(decode("agent", text)?)
}

/// Checks an agent's name, in an address or in a call.
pub fn check_agent_name(name: String) -> Result<String> {
    if name.is_empty() || name.chars().count() > MAX_AGENT_CHARS {
        return Err(Error::invalid(
            "agent",
            format!("The agent's name must have 1 to {MAX_AGENT_CHARS} characters."),
        ));
    }
    if name.chars().any(char::is_control) {
        return Err(Error::invalid(
            "agent",
            "The agent's name must not contain control characters.",
        ));
    }
    Ok(name)
}

fn path(url: &str) -> &str {
    let after_scheme = match url.split_once("://") {
        // A path may contain `://`, too; a scheme can't contain a slash.
        Some((scheme, rest)) if !scheme.contains('/') => rest
            .find('/')
            .and_then(|slash| rest.get(slash..))
            .unwrap_or("/"),
        _ => url,
    };
    after_scheme.split(['?', '#']).next().unwrap_or("/")
}

/// A parameter of the query, decoded.
fn find_parameter(url: &str, name: &str) -> Result<Option<String>> {
    let query = url.split('#').next().and_then(|url| url.split_once('?'));
    let Some((_, query)) = query else {
        return Ok(None);
    };
    query
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .find(|(key, _)| *key == name)
        .map(|(_, value)| decode(name, &value.replace('+', " ")))
        .transpose()
}

/// A `true` or `false` parameter; left out: `false`.
fn find_flag(url: &str, name: &str) -> Result<bool> {
    match find_parameter(url, name)?.as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Error::invalid(
            name,
            format!("`{name}` in the URL must be `true` or `false`."),
        )),
    }
}

/// Decodes the `%xx` of one path segment.
pub fn decode(field: &str, segment: &str) -> Result<String> {
    let refused = || {
        Error::invalid(
            field,
            format!("The {field} in the URL is not a valid `%`-encoding of UTF-8."),
        )
    };
    if !segment.contains('%') {
        return Ok(segment.to_owned());
    }
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else {
            return Err(refused());
        };
        bytes.push((high * 16 + low) as u8);
    }
    String::from_utf8(bytes).map_err(|_| refused())
}

fn allow(method: &str, allowed: &[&str], route: Route) -> Result<Route> {
    if allowed.contains(&method) {
        return Ok(route);
    }
    let allowed = allowed.join(", ");
    Err(Error::new(
        Code::MethodNotAllowed,
        format!("This address supports {allowed}."),
    )
    .with("allow", allowed.as_str())
    .of_kind(ErrorKind::Allows(allowed)))
}

pub fn no_such_route() -> Error {
    Error::new(
        Code::UnknownOperation,
        "There is nothing at this address. Operations are at `POST /agents/session-agent/{agent}/rpc/{operation}`.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rpc(agent: &str, operation: &str) -> Route {
        Route::Rpc {
            agent: agent.to_owned(),
            operation: NamedOperation::find(operation.to_owned()),
        }
    }

    #[test]
    fn the_host_does_not_matter() {
        for url in [
            "/agents/session-agent/a/rpc/op",
            "https://example.com/agents/session-agent/a/rpc/op",
            "http://x/agents/session-agent/a/rpc/op?q=1#f",
            "http://[::1]:8787/agents/session-agent/a/rpc/op",
        ] {
            assert_eq!(parse("POST", url), Ok(rpc("a", "op")), "{url}");
        }
        assert_eq!(parse("GET", "http://x/health?x"), Ok(Route::Health));
    }

    #[test]
    fn path_segments_are_decoded_once() {
        assert_eq!(
            parse(
                "POST",
                "/agents/session-agent/user%3A42%2Fa%20b%C3%A9/rpc/op"
            ),
            Ok(rpc("user:42/a bé", "op"))
        );
        assert_eq!(
            parse("POST", "/agents/session-agent/a%2541/rpc/op"),
            Ok(rpc("a%41", "op"))
        );
    }

    #[test]
    fn an_invalid_session_name_is_refused_as_an_agent_name_is() {
        for name in [
            "%", "%4", "%zz", "%C3", "%FF", "%+1", "a%00b", "%0A", "%7F", "", "%C2%85",
        ] {
            let error = parse("POST", &format!("/agents/session-agent/{name}/rpc/op")).unwrap_err();
            assert_eq!(error.code, Code::InvalidRequest, "{name}");
            assert_eq!(error.details()["field"], "agent", "{name}");
        }
        let long = "x".repeat(201);
        assert!(parse("POST", &format!("/agents/session-agent/{long}/rpc/op")).is_err());
        assert!(
            parse(
                "POST",
                &format!("/agents/session-agent/{}/rpc/op", &long[1..])
            )
            .is_ok()
        );
    }

    #[test]
    fn get_messages_reads_the_named_or_default_session() {
        let messages = |session_id: &str| Route::Messages {
            agent: "a".to_owned(),
            session_id: session_id.to_owned(),
            token: None,
        };
        let url = "/agents/session-agent/a/get-messages";
        for (query, session_id) in [
            ("", "default"),
            ("?", "default"),
            ("?x=1", "default"),
            ("?sessionId=s%20%26+t&x=1", "s & t"),
            ("?x=1&sessionId=s#f", "s"),
        ] {
            assert_eq!(
                parse("GET", &format!("{url}{query}")),
                Ok(messages(session_id))
            );
        }
        let error = parse("GET", &format!("{url}?sessionId=%zz")).unwrap_err();
        assert_eq!(error.details()["field"], "sessionId");
        assert_eq!(parse("POST", url).unwrap_err().code, Code::MethodNotAllowed);
    }

    #[test]
    fn the_agent_list_takes_a_name_prefix() {
        let listed = |prefix: &str, limit, cursor: &str| {
            Ok(Route::Agents {
                prefix: prefix.to_owned(),
                limit,
                cursor: cursor.to_owned(),
            })
        };
        let url = "http://x/agents/session-agent";
        assert_eq!(parse("GET", url), listed("", 100, ""));
        let named = format!("{url}?prefix=user%3A42%3A&limit=7&cursor=user:42:b");
        assert_eq!(parse("GET", &named), listed("user:42:", 7, "user:42:b"));
        for limit in ["0", "1001", "x", "-1"] {
            let error = parse("GET", &format!("{url}?limit={limit}")).unwrap_err();
            assert_eq!(error.details()["field"], "limit", "{limit}");
        }
        assert_eq!(parse("POST", url).unwrap_err().code, Code::MethodNotAllowed);
    }

    #[test]
    fn the_mcp_url_accepts_post_only() {
        let url = "/agents/session-agent/a/mcp";
        let mcp = |session_id: Option<&str>| Route::Mcp {
            agent: "a".to_owned(),
            session_id: session_id.map(str::to_owned),
        };
        assert_eq!(parse("POST", url), Ok(mcp(None)));
        let named = format!("{url}?sessionId=s%20t");
        assert_eq!(parse("POST", &named), Ok(mcp(Some("s t"))));
        for method in ["GET", "DELETE", "PUT"] {
            let error = parse(method, url).unwrap_err();
            assert_eq!(error.code, Code::MethodNotAllowed, "{method}");
            assert_eq!(error.details()["allow"], "POST");
        }
        let more = parse("POST", &format!("{url}/more")).unwrap_err();
        assert_eq!(more.code, Code::UnknownOperation);
    }

    #[test]
    fn export_and_import_routes_name_the_session() {
        let url = "/agents/session-agent/a/sessions/s%2F1";
        let (agent, session_id) = ("a".to_owned(), "s/1".to_owned());
        assert_eq!(
            parse("GET", &format!("{url}/export?x")),
            Ok(Route::Export {
                agent: agent.clone(),
                session_id: session_id.clone()
            })
        );
        assert_eq!(
            parse("POST", &format!("{url}/import")),
            Ok(Route::Import {
                agent,
                session_id,
                allows_sources: false
            })
        );
        for (method, end, code) in [
            ("POST", "/export", Code::MethodNotAllowed),
            ("GET", "/import", Code::MethodNotAllowed),
            ("GET", "", Code::UnknownOperation),
            ("GET", "/", Code::UnknownOperation),
            ("GET", "/other", Code::UnknownOperation),
            ("GET", "/export/more", Code::UnknownOperation),
            ("GET", "%zz/export", Code::InvalidRequest),
        ] {
            assert_eq!(
                parse(method, &format!("{url}{end}")).unwrap_err().code,
                code,
                "{method} {end}"
            );
        }
    }

    #[test]
    fn a_static_file_is_not_routed_to_an_object() {
        for url in ["http://x", "http://x/", "/openapi.json?x"] {
            let error = parse("GET", url).unwrap_err();
            assert_eq!(error.code, Code::UnknownOperation, "{url}");
            assert!(
                error.message.contains("send the request to the Worker"),
                "{url}"
            );
        }
    }

    #[test]
    fn a_wrong_method_is_refused_with_the_allowed_one() {
        let error = parse("GET", "/agents/session-agent/a/rpc/op").unwrap_err();
        assert_eq!(error.code, Code::MethodNotAllowed);
        assert_eq!(error.details()["allow"], "POST");
        assert_eq!(
            parse("POST", "/health").unwrap_err().code,
            Code::MethodNotAllowed
        );
    }

    #[test]
    fn other_paths_are_unknown() {
        for url in [
            "/nothing",
            "/agents",
            "/agents/session-agent/a",
            "/agents/session-agent/a/rpc",
            "/agents/session-agent/a/rpc/",
            "/agents/session-agent/a/rpc/b/c",
            "/agents/other/a/rpc/op",
        ] {
            assert_eq!(
                parse("POST", url).unwrap_err().code,
                Code::UnknownOperation,
                "{url}"
            );
        }
    }
}
