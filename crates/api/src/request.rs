//! A parsed request: its route, its caller and its trace.
//!
//! It is made once, where a request enters, and passed by reference from there. An object makes its
//! own, and relies on nothing that the Worker in front has decided: a binding can reach the object
//! directly.

use std::rc::Rc;

use crate::admission::{Admission, admit, find_via};
use crate::operations::tokens::MintToken;
use crate::route::Route;
use crate::tracing::find_parent;
use access::{self, Caller, Policy, RequestOrigin, TokenScope};
use base::error::{Code, Error, Result};
use base::host::Host;
use base::json;
use base::trace::sampler::Sampler;
use base::trace::{TRACEPARENT, TRACESTATE, Trace};
use memory::backends::agent::VIA_HEADER;

/// The head of a request over HTTP. Each read of a header is a call into JavaScript.
pub trait RequestHead {
    fn header(&self, name: &str) -> Option<String>;
    fn url(&self) -> &str;
}

/// What the entry point itself knows.
pub struct EntryPoint<'a> {
    pub policy: &'a Policy,
    pub host: &'a dyn Host,
    /// `None`: no spans are exported, so only a caller that names a trace has one.
    pub sampler: Option<Sampler>,
}

pub struct Request {
    pub route: Route,
    pub caller: Caller,
    /// The agents that forwarded the request.
    pub via: Vec<String>,
    pub trace: Option<Rc<Trace>>,
}

impl Request {
    /// The request of an identified caller. `header` reads what only the holder of the secret may
    /// name.
    pub fn new(
        entry: &EntryPoint<'_>,
        route: Route,
        caller: Caller,
        mut header: impl FnMut(&str) -> Option<String>,
    ) -> Self {
        let is_owner = caller == Caller::Owner;
        let mut owners_header = |name| is_owner.then(|| header(name)).flatten();
        let traceparent = owners_header(TRACEPARENT);
        let tracestate = traceparent.as_ref().and_then(|_| owners_header(TRACESTATE));
        let via = find_via(&caller, owners_header(VIA_HEADER).as_deref());
        let parent = find_parent(&caller, traceparent.as_deref(), tracestate.as_deref());
        Self {
            trace: Trace::of_request(parent, entry.sampler, entry.host).map(Rc::new),
            route,
            caller,
            via,
        }
    }

    /// Checks what the request asks for before its body is read.
    pub fn admit(&self) -> Result<Admission> {
        admit(&self.caller, &self.route)
    }
}

/// Who asks, if a class that extends the object's may decide it.
pub enum Identified {
    Caller(Caller),
    /// The class grants these rights, like those of a minted token.
    Granted(MintToken),
}

/// The class's answer for a request that it refuses.
const NOTHING: &str = "null";

/// The grant of a Worker that binds the class and calls over Workers RPC: the binding is the
/// permission. A class's `authorize` returns an object or `null`, never this.
const ALL: &str = "\"all\"";

/// As [`identify`]. `granted`: what the class allows the request, as JSON with the fields of
/// `mintToken`, or `null`. `None`: the class doesn't decide, and the Worker's own rules apply. If
/// the Worker has a secret, the secret and its tokens are always valid.
pub fn identify_granted(
    entry: &EntryPoint<'_>,
    route: &Route,
    head: &dyn RequestHead,
    granted: Option<&str>,
) -> Result<Identified> {
    let identified = || identify(entry, route, head).map(Identified::Caller);
    // A browser that returns has no rights; the `state` in its URL is checked instead.
    let Some(granted) = granted.filter(|_| !matches!(route, Route::OAuthReturn { .. })) else {
        return identified();
    };
    if granted == ALL {
        return Ok(Identified::Caller(Caller::Owner));
    }
    if entry.policy.secret().is_some()
        && let Ok(caller) = identified()
    {
        return Ok(caller);
    }
    if granted == NOTHING {
        return Err(Error::new(
            Code::Unauthorized,
            "This agent refuses the request.",
        ));
    }
    // Browsers send cookies along with any page's requests.
    let origin = head.header("origin");
    entry.policy.admit_page(origin.as_deref(), head.url())?;
    json::parse(granted.as_bytes()).map(Identified::Granted)
}

/// Identifies the caller by the `authorization` header or, where a page can't set headers, by the
/// other ways that a route allows. Checks the request's origin first.
pub fn identify(entry: &EntryPoint<'_>, route: &Route, head: &dyn RequestHead) -> Result<Caller> {
    // The browser sends no credential here. The `state` in the URL is a one-time credential.
    if matches!(route, Route::OAuthReturn { .. }) {
        return Ok(Caller::Scoped(TokenScope {
            operations: Some(Vec::new()),
            ..TokenScope::default()
        }));
    }
    let (policy, host) = (entry.policy, entry.host);
    let header = |name| head.header(name);
    if policy.depends_on_origin() {
        let (host, origin, fetch_site) =
            (header("host"), header("origin"), header("sec-fetch-site"));
        policy.admit(&RequestOrigin {
            host: host.as_deref(),
            origin: origin.as_deref(),
            fetch_site: fetch_site.as_deref(),
        })?;
    }
    if matches!(route, Route::Mcp { .. }) {
        policy.admit_message(header("origin").as_deref(), head.url())?;
    }
    let authorization = policy.secret().and_then(|_| header("authorization"));
    let key = match route {
        Route::Provider { .. } => policy.secret().and_then(|_| header("x-api-key")),
        _ => None,
    };
    // Anthropic's clients send their key in `x-api-key`. If both are sent, `authorization` wins.
    let bearer = access::find_bearer(authorization.as_deref()).or(key.as_deref());
    match route {
        Route::Messages { agent, token, .. } => {
            access::identify_page(policy, host, agent, bearer, token.as_deref())
        }
        Route::Socket { agent, token, .. } => {
            let offered = header("sec-websocket-protocol");
            let (named, _) = access::find_subprotocol(offered.as_deref());
            let token = named.or(token.as_deref());
            access::identify_page(policy, host, agent, bearer, token)
        }
        _ => access::identify(policy, host, route.agent(), bearer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    use crate::route;
    use access::{Claims, Secret};
    use base::testing::FixedHost;
    use base::trace::header::render_hex;

    const SECRET: &str = "a secret of exactly 32 characters";
    const AT: &str = "https://worker.example/agents/session-agent/alice";

    /// A request with these headers, which records what is read from it.
    #[derive(Default)]
    struct RecordedHeaders {
        headers: Vec<(String, String)>,
        url: String,
        read: RefCell<Vec<String>>,
    }

    impl RequestHead for RecordedHeaders {
        fn header(&self, name: &str) -> Option<String> {
            self.read.borrow_mut().push(name.to_owned());
            let found = self.headers.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| value.clone())
        }

        fn url(&self) -> &str {
            &self.url
        }
    }

    fn of(headers: &[(&str, &str)]) -> RecordedHeaders {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        RecordedHeaders {
            headers: headers.iter().map(owned).collect(),
            ..RecordedHeaders::default()
        }
    }

    impl RecordedHeaders {
        fn at(&self, path: &str) -> Self {
            Self {
                headers: self.headers.clone(),
                url: format!("{AT}{path}"),
                read: RefCell::default(),
            }
        }

        fn identified(&self, policy: &Policy, method: &str, path: &str) -> Result<Caller> {
            let head = self.at(path);
            let route = route::parse(method, &head.url).unwrap();
            let caller = identify(&entry(policy, &FixedHost::default()), &route, &head);
            self.read.replace(head.read.take());
            caller
        }

        fn granted(&self, policy: &Policy, granted: &str) -> Result<Identified> {
            let head = self.at("/rpc/getSession");
            let route = route::parse("POST", &head.url).unwrap();
            let host = FixedHost::default();
            identify_granted(&entry(policy, &host), &route, &head, Some(granted))
        }
    }

    fn entry<'a>(policy: &'a Policy, host: &'a FixedHost) -> EntryPoint<'a> {
        EntryPoint {
            policy,
            host,
            sampler: None,
        }
    }

    fn policy() -> Policy {
        Policy::new(Some(SECRET.to_owned()), None)
    }

    fn token_of(agent: &str) -> String {
        Secret::new(SECRET.to_owned()).unwrap().mint(&Claims {
            agent: agent.to_owned(),
            scope: TokenScope {
                expires_at: i64::MAX,
                ..TokenScope::default()
            },
        })
    }

    fn is_scoped(caller: &Result<Caller>) -> bool {
        matches!(caller, Ok(Caller::Scoped(_)))
    }

    fn code(caller: Result<Caller>) -> &'static str {
        caller.unwrap_err().code.name()
    }

    #[test]
    fn the_secret_is_read_from_authorization_and_provider_headers() {
        let bearer = format!("Bearer {SECRET}");
        let usual = of(&[("authorization", &bearer)]);
        let path = "/rpc/getSession";
        assert_eq!(
            usual.identified(&policy(), "POST", path).unwrap(),
            Caller::Owner
        );
        let key = of(&[("x-api-key", SECRET)]);
        assert_eq!(
            code(key.identified(&policy(), "POST", path)),
            "unauthorized"
        );
        let provider = "/anthropic/v1/messages";
        assert_eq!(
            key.identified(&policy(), "POST", provider).unwrap(),
            Caller::Owner
        );
        // If both are sent, `authorization` wins.
        let both = of(&[("authorization", "Bearer wrong"), ("x-api-key", SECRET)]);
        assert_eq!(
            code(both.identified(&policy(), "POST", provider)),
            "unauthorized"
        );
    }

    #[test]
    fn a_page_sends_a_token_by_url_or_subprotocol_never_the_secret() {
        let (mine, others) = (token_of("alice"), token_of("bob"));
        let nothing = of(&[]);
        let messages = |token: &str| format!("/get-messages?token={token}");
        let caller = nothing.identified(&policy(), "GET", &messages(&mine));
        assert!(is_scoped(&caller), "{caller:?}");
        let caller = nothing.identified(&policy(), "GET", &messages(&others));
        assert_eq!(code(caller), "unauthorized");

        let in_protocol = of(&[("sec-websocket-protocol", &mine)]);
        assert!(is_scoped(&in_protocol.identified(&policy(), "GET", "")));
        // The token of the subprotocol takes precedence over the one in the URL.
        let caller = in_protocol.identified(&policy(), "GET", &format!("?token={others}"));
        assert!(is_scoped(&caller), "{caller:?}");
        // Operations accept no token in the URL.
        let caller = nothing.identified(&policy(), "POST", "/rpc/getSession");
        assert_eq!(code(caller), "unauthorized");
    }

    #[test]
    fn only_the_headers_that_the_policy_needs_are_read() {
        let open = Policy::new(None, Some("open"));
        let request = of(&[]);
        let caller = request.identified(&open, "POST", "/rpc/getSession");
        assert_eq!(caller.unwrap(), Caller::Owner);
        assert!(request.read.borrow().is_empty());

        let request = of(&[]);
        let _ = request.identified(&policy(), "POST", "/rpc/getSession");
        assert_eq!(*request.read.borrow(), ["authorization"]);

        let local = Policy::new(None, Some("local"));
        let request = of(&[("host", "worker.example")]);
        let caller = request.identified(&local, "POST", "/rpc/getSession");
        assert_eq!(code(caller), "forbidden");
        assert_eq!(*request.read.borrow(), ["host", "origin", "sec-fetch-site"]);
    }

    #[test]
    fn an_mcp_message_from_another_origin_is_refused() {
        let bearer = format!("Bearer {SECRET}");
        let from = |origin: &str| {
            let request = of(&[("authorization", &bearer), ("origin", origin)]);
            request.identified(&policy(), "POST", "/mcp")
        };
        assert_eq!(from("https://worker.example").unwrap(), Caller::Owner);
        assert_eq!(code(from("https://other.example")), "forbidden");
    }

    #[test]
    fn the_secret_stays_valid_when_a_class_grants_rights() {
        let open = Policy::new(None, Some("open"));
        let bearer = format!("Bearer {SECRET}");
        let (nobody, owner) = (of(&[]), of(&[("authorization", &bearer)]));
        let is_owner = |identified: Result<Identified>| {
            matches!(identified, Ok(Identified::Caller(Caller::Owner)))
        };
        let refused = |identified: Result<Identified>| identified.err().unwrap().code.name();
        assert!(is_owner(nobody.granted(&open, ALL)));
        assert!(is_owner(owner.granted(&policy(), NOTHING)));
        assert_eq!(refused(nobody.granted(&policy(), NOTHING)), "unauthorized");
        // Without a secret, only the class decides.
        assert_eq!(refused(nobody.granted(&open, NOTHING)), "unauthorized");
        let rights = r#"{"sessionId": "s", "expiresIn": 60}"#;
        let granted = nobody.granted(&policy(), rights);
        assert!(matches!(granted, Ok(Identified::Granted(_))));
        // A page of another origin would send the class's cookies along.
        let page = of(&[("origin", "https://other.example")]);
        assert_eq!(refused(page.granted(&policy(), rights)), "forbidden");
        assert_eq!(refused(nobody.granted(&policy(), "{")), "invalid_request");
    }

    #[test]
    fn only_the_secret_sets_a_trace_and_the_call_path() {
        const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let (policy, host) = (policy(), FixedHost::default());
        let sent = of(&[(TRACEPARENT, PARENT), (VIA_HEADER, "WyJhbGljZSJd")]);
        let request = |caller| {
            let route = route::parse("POST", &format!("{AT}/rpc/getSession")).unwrap();
            Request::new(&entry(&policy, &host), route, caller, |name| {
                sent.header(name)
            })
        };
        let owners = request(Caller::Owner);
        let trace = owners.trace.map(|trace| render_hex(&trace.id.0));
        assert_eq!(trace.as_deref(), Some("0af7651916cd43dd8448eb211c80319c"));
        assert_eq!(owners.via, ["alice"]);
        sent.read.take();
        let scoped = request(Caller::Scoped(TokenScope::default()));
        assert!(scoped.trace.is_none() && scoped.via.is_empty());
        assert!(sent.read.borrow().is_empty());
    }
}
