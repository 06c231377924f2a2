//! Identifies who sends a request. A pure decision: `mod.rs` reads the values from the
//! request.

use access::{self, Caller, Policy, RequestOrigin, TokenScope};
use api::route::Route;
use base::error::Result;
use base::host::Host;

/// Identifies the caller by the `authorization` header or, where a page can't set headers,
/// by the other ways that a route allows. Checks the request's origin first.
///
/// `header` reads a header, and `url` reads the URL. Each is a call into JavaScript, so
/// they are called only where the policy or the route needs the value.
pub fn identify(
    policy: &Policy,
    host: &dyn Host,
    route: &Route,
    header: &dyn Fn(&str) -> Option<String>,
    url: &dyn Fn() -> String,
) -> Result<Caller> {
    // The browser sends no credential here. The `state` in the URL is a one-time
    // credential.
    if matches!(route, Route::OAuthReturn { .. }) {
        return Ok(Caller::Scoped(TokenScope {
            operations: Some(Vec::new()),
            ..TokenScope::default()
        }));
    }
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
        policy.admit_message(header("origin").as_deref(), &url())?;
    }
    let authorization = policy.secret().and_then(|_| header("authorization"));
    let key = match route {
        Route::Provider { .. } => policy.secret().and_then(|_| header("x-api-key")),
        _ => None,
    };
    // Anthropic's clients send their key in `x-api-key`. If both are sent, `authorization`
    // wins.
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
    use access::{Claims, Secret};
    use api::route;
    use base::testing::FixedHost;
    use std::cell::RefCell;

    const SECRET: &str = "a secret of exactly 32 characters";
    const AT: &str = "https://worker.example/agents/session-agent/alice";

    /// A request with these headers, which records what is read from it.
    #[derive(Default)]
    struct RecordedHeaders {
        headers: Vec<(String, String)>,
        read: RefCell<Vec<String>>,
    }

    fn of(headers: &[(&str, &str)]) -> RecordedHeaders {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        RecordedHeaders {
            headers: headers.iter().map(owned).collect(),
            ..RecordedHeaders::default()
        }
    }

    impl RecordedHeaders {
        fn find(&self, name: &str) -> Option<String> {
            self.read.borrow_mut().push(name.to_owned());
            let found = self.headers.iter().find(|(other, _)| *other == name);
            found.map(|(_, value)| value.clone())
        }

        fn identified(&self, policy: &Policy, method: &str, path: &str) -> Result<Caller> {
            let url = format!("{AT}{path}");
            let route = route::parse(method, &url).unwrap();
            let find = |name: &str| self.find(name);
            identify(policy, &FixedHost::default(), &route, &find, &|| {
                url.clone()
            })
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
    fn the_secret_comes_in_the_standard_header_and_a_providers_key_only_at_its_own_routes() {
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
    fn a_page_brings_its_token_in_the_address_or_in_a_subprotocol_and_never_the_secret() {
        let (mine, others) = (token_of("alice"), token_of("bob"));
        let nothing = of(&[]);
        let messages = |token: &str| format!("/get-messages?token={token}");
        let asked = nothing.identified(&policy(), "GET", &messages(&mine));
        assert!(is_scoped(&asked), "{asked:?}");
        let asked = nothing.identified(&policy(), "GET", &messages(&others));
        assert_eq!(code(asked), "unauthorized");

        let in_protocol = of(&[("sec-websocket-protocol", &mine)]);
        assert!(is_scoped(&in_protocol.identified(&policy(), "GET", "")));
        // The token of the subprotocol takes precedence over the one in the URL.
        let asked = in_protocol.identified(&policy(), "GET", &format!("?token={others}"));
        assert!(is_scoped(&asked), "{asked:?}");
        // Operations accept no token in the URL.
        let asked = nothing.identified(&policy(), "POST", "/rpc/getSession");
        assert_eq!(code(asked), "unauthorized");
    }

    #[test]
    fn only_the_headers_that_the_policy_needs_are_read() {
        let open = Policy::new(None, Some("open"));
        let asked = of(&[]);
        let caller = asked.identified(&open, "POST", "/rpc/getSession");
        assert_eq!(caller.unwrap(), Caller::Owner);
        assert!(asked.read.borrow().is_empty());

        let asked = of(&[]);
        let _ = asked.identified(&policy(), "POST", "/rpc/getSession");
        assert_eq!(*asked.read.borrow(), ["authorization"]);

        let local = Policy::new(None, Some("local"));
        let asked = of(&[("host", "worker.example")]);
        let caller = asked.identified(&local, "POST", "/rpc/getSession");
        assert_eq!(code(caller), "forbidden");
        assert_eq!(*asked.read.borrow(), ["host", "origin", "sec-fetch-site"]);
    }

    #[test]
    fn a_page_of_another_origin_sends_no_message_of_mcp() {
        let bearer = format!("Bearer {SECRET}");
        let from = |origin: &str| {
            let asked = of(&[("authorization", &bearer), ("origin", origin)]);
            asked.identified(&policy(), "POST", "/mcp")
        };
        assert_eq!(from("https://worker.example").unwrap(), Caller::Owner);
        assert_eq!(code(from("https://other.example")), "forbidden");
    }
}
