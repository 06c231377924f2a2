//! The origin of a request, as the browser reports it, and the CORS headers of the
//! answer. Pages can't forge the headers that a browser sets, so `AUTH = "local"` can
//! keep a machine's agents from the pages that its user visits. Programs can forge them,
//! but a program is on this machine, or it needs a token.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::policy::{Auth, Policy, forbidden};
use base::error::Result;

/// The headers that identify the origin of a request.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestOrigin<'a> {
    /// `Host`. A request through a binding has no `Host` header, and the host of its URL is
    /// arbitrary.
    pub host: Option<&'a str>,
    pub origin: Option<&'a str>,
    /// `Sec-Fetch-Site`.
    pub fetch_site: Option<&'a str>,
}

/// The CORS policy of an answer: whether a page of another origin may read it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CorsPolicy {
    /// Whether this Worker lets pages of any other origin read answers.
    pub is_on: bool,
    /// The page's origin, if this page may read the answer.
    pub origin: Option<String>,
}

/// The headers of an answer that a page of another origin may read.
const EXPOSED: &str = "mcp-session-id, retry-after, traceparent, www-authenticate, x-rows-read, x-rows-written, x-session-id, x-vercel-ai-ui-message-stream";

/// The request headers that standard clients send: MCP clients, tracers, and the official
/// clients of OpenAI and Anthropic. The AI SDK sets `user-agent`, and some browsers require
/// permission for that header.
const HEADERS: &str = "authorization, content-type, user-agent, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, traceparent, tracestate, x-api-key, x-session-id, x-session-history, x-session-memory, idempotency-key, anthropic-version, anthropic-beta, anthropic-dangerous-direct-browser-access, openai-organization, openai-project, openai-beta, x-stainless-arch, x-stainless-helper, x-stainless-helper-method, x-stainless-lang, x-stainless-os, x-stainless-package-version, x-stainless-poll-helper, x-stainless-retry-count, x-stainless-runtime, x-stainless-runtime-version, x-stainless-timeout";

const METHODS: &str = "GET, HEAD, POST, DELETE";

/// How long browsers may cache a preflight answer, in seconds: 2 hours, the longest that
/// browsers accept.
const PREFLIGHT_SECONDS: &str = "7200";

impl CorsPolicy {
    /// The CORS headers of an answer.
    pub fn headers(&self) -> Vec<(&'static str, &str)> {
        let mut headers = Vec::new();
        if self.is_on {
            headers.push(("vary", "Origin"));
        }
        if let Some(origin) = &self.origin {
            headers.push(("access-control-allow-origin", origin.as_str()));
            headers.push(("access-control-expose-headers", EXPOSED));
        }
        headers
    }

    /// The CORS headers of the answer to a preflight request.
    pub fn preflight_headers(&self) -> Vec<(&'static str, &str)> {
        let mut headers = self.headers();
        headers.push(("access-control-allow-methods", METHODS));
        headers.push(("access-control-allow-headers", HEADERS));
        headers.push(("access-control-max-age", PREFLIGHT_SECONDS));
        headers
    }
}

impl Policy {
    /// Whether this policy checks where a request comes from.
    pub fn depends_on_origin(&self) -> bool {
        self.auth == Auth::Local
    }

    /// Whether pages of any other origin may read answers.
    pub fn shares(&self) -> bool {
        self.secret().is_some() && !self.origins.is_empty()
    }

    /// Lets pages of these origins read answers. Returns the positions of entries that are
    /// not origins.
    pub fn share_with(&mut self, origins: &str) -> Vec<usize> {
        let (origins, wrong) = parse_origins(origins);
        self.origins = origins;
        wrong
    }

    /// Under `AUTH = "local"`, refuses requests from pages of other sites. Also refuses
    /// requests under another host name, because DNS rebinding can point any name at this
    /// machine.
    pub fn admit(&self, request_origin: &RequestOrigin<'_>) -> Result<()> {
        if !self.depends_on_origin() {
            return Ok(());
        }
        if request_origin.host.is_some_and(|host| !is_loopback(host)) {
            return Err(forbidden(
                "With `AUTH = \"local\"`, this Worker only accepts this machine's own host names: \
                 localhost, 127.0.0.1 and [::1].",
            ));
        }
        let Some(origin) = request_origin.origin else {
            return check_site(request_origin);
        };
        if self.cors(Some(origin)).origin.is_some() {
            return Ok(());
        }
        // Under a loopback host, the host's own pages are loopback too.
        if !is_loopback_origin(origin) {
            return Err(forbidden(
                "With `AUTH = \"local\"`, pages of other hosts are refused. To allow one, set the \
                 secret and add its origin to `ALLOWED_ORIGINS`.",
            ));
        }
        check_site(request_origin)
    }

    /// Refuses a request from a page of another origin if cookies may authenticate it:
    /// browsers send cookies along with any page's requests. Pages in `ALLOWED_ORIGINS` are
    /// allowed.
    pub fn admit_page(&self, origin: Option<&str>, url: &str) -> Result<()> {
        let is_admitted = origin.is_none_or(|origin| {
            let rest = url.strip_prefix(origin);
            rest.is_some_and(|path| path.starts_with('/'))
                || self.cors(Some(origin)).origin.is_some()
        });
        if is_admitted {
            return Ok(());
        }
        Err(forbidden(
            "This request comes from a page of another origin. To allow it, add its origin to \
             `ALLOWED_ORIGINS`.",
        ))
    }

    /// Refuses an MCP message from a page of another origin, as the protocol requires, even
    /// if another rule allows the page. Pages of the URL's own origin are allowed.
    pub fn admit_message(&self, origin: Option<&str>, url: &str) -> Result<()> {
        let Some(origin) = origin else {
            return Ok(());
        };
        let is_admitted = match self.auth {
            // The page's host was checked to be this machine.
            Auth::Local => true,
            // A page of the Worker's own origin sends a token, as every request does.
            Auth::Secret | Auth::Open if self.secret().is_some() => {
                let rest = url.strip_prefix(origin);
                rest.is_some_and(|path| path.starts_with('/'))
                    || self.cors(Some(origin)).origin.is_some()
            }
            Auth::Secret | Auth::Open => false,
        };
        if is_admitted {
            return Ok(());
        }
        Err(forbidden(
            "Pages of this origin may not use this protocol here. To allow this origin, set the \
             secret and add the origin to `ALLOWED_ORIGINS`. A Worker that forwards a request must remove the \
             header `Origin`.",
        ))
    }

    /// The CORS policy for a page of this origin.
    pub fn cors(&self, origin: Option<&str>) -> CorsPolicy {
        let is_on = self.shares();
        let allowed =
            origin.filter(|origin| is_on && self.origins.iter().any(|allowed| allowed == origin));
        CorsPolicy {
            is_on,
            origin: allowed.map(str::to_owned),
        }
    }
}

fn check_site(request_origin: &RequestOrigin<'_>) -> Result<()> {
    if request_origin
        .fetch_site
        .is_some_and(|site| site.trim().eq_ignore_ascii_case("cross-site"))
    {
        return Err(forbidden(
            "With `AUTH = \"local\"`, pages of other sites are refused. A browser treats \
             `localhost` and `127.0.0.1` as different sites: use the same name for the page and \
             the Worker.",
        ));
    }
    Ok(())
}

/// Parses the origins of a variable, separated by spaces. Also returns the positions,
/// from 1, of the entries that are not origins.
pub fn parse_origins(text: &str) -> (Vec<String>, Vec<usize>) {
    let mut origins = Vec::new();
    let mut wrong = Vec::new();
    for (index, entry) in text.split_whitespace().enumerate() {
        if is_origin(entry) {
            origins.push(entry.to_owned());
        } else {
            wrong.push(index + 1);
        }
    }
    (origins, wrong)
}

/// Whether this is an origin as browsers write it: a scheme, a host, perhaps a port,
/// all in lower case. A path, `*` and `null` are not origins.
fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else {
        return false;
    };
    let Some((host, port)) = split_port(authority) else {
        return false;
    };
    let is_default = matches!((scheme, port), ("http", Some(80)) | ("https", Some(443)));
    let is_name = !host.is_empty()
        && host
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_'));
    matches!(scheme, "http" | "https") && !is_default && (is_name || ipv6(host).is_some())
}

fn is_loopback_origin(origin: &str) -> bool {
    origin.split_once("://").is_some_and(|(scheme, authority)| {
        matches!(scheme, "http" | "https") && is_loopback(authority)
    })
}

/// Whether a host, with or without a port, always is this machine. Browsers resolve
/// `localhost` and names that end in `.localhost` by themselves.
fn is_loopback(authority: &str) -> bool {
    let Some((host, _)) = split_port(authority) else {
        return false;
    };
    let host = host.to_ascii_lowercase();
    host == "localhost"
        || host.ends_with(".localhost")
        || host
            .parse::<Ipv4Addr>()
            .is_ok_and(|address| address.is_loopback())
        || ipv6(&host).is_some_and(|address| address.is_loopback())
}

/// The host and the port of `host[:port]`.
fn split_port(authority: &str) -> Option<(&str, Option<u16>)> {
    let end = match authority.strip_prefix('[') {
        // The brackets of an IPv6 address contain colons, too.
        Some(rest) => rest.find(']')? + 2,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at_checked(end)?;
    match port.strip_prefix(':') {
        None if port.is_empty() => Some((host, None)),
        Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some((host, Some(port.parse().ok()?)))
        }
        _ => None,
    }
}

fn ipv6(host: &str) -> Option<Ipv6Addr> {
    host.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "a secret of this test's, of forty characters";

    fn local() -> Policy {
        Policy::new(None, Some("local"))
    }

    fn is_admitted(policy: &Policy, request_origin: &RequestOrigin<'_>) -> bool {
        match policy.admit(request_origin) {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error.code.name(), "forbidden");
                false
            }
        }
    }

    #[test]
    fn mcp_messages_are_accepted_from_allowed_origins_only() {
        let url = "https://memory.example/agents/session-agent/a/mcp";
        let mut secret = Policy::new(Some("a secret of exactly 32 characters".to_owned()), None);
        secret.share_with("https://app.example");
        let open = Policy::new(None, Some("open"));
        for (origin, by_secret, by_open) in [
            (None, true, true),
            (Some("https://app.example"), true, false),
            (Some("https://memory.example"), true, false),
            (Some("https://memory.example.evil"), false, false),
            (Some("https://memory"), false, false),
            (Some("https://evil.example"), false, false),
            (Some("null"), false, false),
            (Some(""), false, false),
        ] {
            let is_admitted = |policy: &Policy| policy.admit_message(origin, url).is_ok();
            assert_eq!(is_admitted(&secret), by_secret, "{origin:?}");
            assert_eq!(is_admitted(&open), by_open, "{origin:?}");
        }
        // `admit` has already checked the origin.
        let page = Some("http://localhost:5173");
        assert!(local().admit_message(page, url).is_ok());
    }

    #[test]
    fn a_local_worker_accepts_only_local_host_names() {
        for (host, admitted) in [
            ("localhost", true),
            ("LOCALHOST:8787", true),
            ("app.localhost:8787", true),
            ("127.0.0.1:8787", true),
            ("127.1.2.3", true),
            ("[::1]:8787", true),
            ("[::1]", true),
            ("memory.example.com", false),
            ("localhost.example.com", false),
            ("notlocalhost", false),
            ("127.0.0.1.example.com:8787", false),
            ("0.0.0.0:8787", false),
            ("127.1", false),
            ("2130706433", false),
            ("[::]:8787", false),
            ("[::ffff:1.2.3.4]", false),
            ("[::1", false),
            ("[::1]x", false),
            ("localhost:8787:1", false),
            ("localhost:port", false),
            ("localhost/", false),
            ("user@localhost", false),
            ("192.168.1.2:8787", false),
            ("", false),
        ] {
            let request_origin = RequestOrigin {
                host: Some(host),
                ..RequestOrigin::default()
            };
            assert_eq!(is_admitted(&local(), &request_origin), admitted, "{host}");
        }
        // A request through a binding has no host to check.
        assert!(is_admitted(&local(), &RequestOrigin::default()));
    }

    #[test]
    fn a_local_worker_rejects_pages_of_other_hosts() {
        for (origin, admitted) in [
            ("http://localhost:5173", true),
            ("http://127.0.0.1:8787", true),
            ("https://[::1]:1", true),
            ("http://app.localhost", true),
            ("null", false),
            ("", false),
            ("https://evil.example", false),
            ("http://localhost.evil.example", false),
            ("http://localhost@evil.example", false),
            ("http://evil.example:80 http://localhost", false),
            ("file://", false),
            ("file://localhost", false),
            ("chrome-extension://localhost", false),
            ("localhost", false),
        ] {
            for host in [None, Some("127.0.0.1:8787")] {
                let request_origin = RequestOrigin {
                    host,
                    origin: Some(origin),
                    fetch_site: None,
                };
                assert_eq!(is_admitted(&local(), &request_origin), admitted, "{origin}");
            }
        }
    }

    #[test]
    fn a_local_worker_rejects_cross_site_requests() {
        for (fetch_site, admitted) in [
            ("none", true),
            ("same-origin", true),
            ("same-site", true),
            ("cross-site", false),
            ("Cross-Site", false),
        ] {
            for origin in [None, Some("http://localhost:5173")] {
                let request_origin = RequestOrigin {
                    host: Some("127.0.0.1:8787"),
                    origin,
                    fetch_site: Some(fetch_site),
                };
                assert_eq!(
                    is_admitted(&local(), &request_origin),
                    admitted,
                    "{fetch_site}"
                );
            }
        }
    }

    #[test]
    fn a_deployed_worker_does_not_check_the_origin_of_a_request() {
        let request_origin = RequestOrigin {
            host: Some("memory.example.com"),
            origin: Some("https://evil.example"),
            fetch_site: Some("cross-site"),
        };
        for policy in [
            Policy::new(None, None),
            Policy::new(None, Some("open")),
            Policy::new(Some(SECRET.to_owned()), None),
        ] {
            assert!(is_admitted(&policy, &request_origin));
        }
        // Setting a secret as well doesn't weaken the local checks.
        let both = Policy::new(Some(SECRET.to_owned()), Some("local"));
        assert!(!is_admitted(&both, &request_origin));
    }

    #[test]
    fn origins_match_exactly_and_invalid_ones_are_ignored() {
        let (origins, wrong) = parse_origins(
            " https://app.example http://localhost:5173\n* null https://app.example/ https://*.example app.example ftp://app.example https://App.example https://app.example:443 http://[::1]:3000 https:// https://a:b https://u@app.example https://app.example:99999",
        );
        assert_eq!(
            origins,
            [
                "https://app.example",
                "http://localhost:5173",
                "http://[::1]:3000"
            ]
        );
        assert_eq!(wrong, [3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15]);
        assert_eq!(parse_origins(""), (Vec::new(), Vec::new()));
    }

    #[test]
    fn an_allowed_origin_gets_cors_headers_only_with_a_secret() {
        let named = |mut policy: Policy| {
            assert!(policy.share_with("https://app.example").is_empty());
            policy
        };
        let shared = named(Policy::new(Some(SECRET.to_owned()), None));
        let cors = shared.cors(Some("https://app.example"));
        assert_eq!(
            cors.headers(),
            [
                ("vary", "Origin"),
                ("access-control-allow-origin", "https://app.example"),
                ("access-control-expose-headers", EXPOSED)
            ]
        );
        for other in [
            None,
            Some("https://app.example.evil.example"),
            Some("http://app.example"),
            Some("https://app.example:8443"),
            Some("null"),
            Some("*"),
        ] {
            assert_eq!(
                shared.cors(other).headers(),
                [("vary", "Origin")],
                "{other:?}"
            );
        }
        for policy in [
            Policy::new(None, None),
            Policy::new(None, Some("open")),
            Policy::new(None, Some("local")),
            Policy::new(Some("short".to_owned()), Some("open")),
        ] {
            assert_eq!(
                named(policy).cors(Some("https://app.example")),
                CorsPolicy::default()
            );
        }
        // The same applies under `AUTH = "local"`, for any `Sec-Fetch-Site`.
        let local = named(Policy::new(Some(SECRET.to_owned()), Some("local")));
        let request_origin = |host, origin| RequestOrigin {
            host: Some(host),
            origin: Some(origin),
            fetch_site: Some("cross-site"),
        };
        assert!(is_admitted(
            &local,
            &request_origin("localhost", "https://app.example")
        ));
        assert!(!is_admitted(
            &local,
            &request_origin("localhost", "https://other.example")
        ));
        assert!(!is_admitted(
            &local,
            &request_origin("rebound.example", "https://app.example")
        ));
    }
}
