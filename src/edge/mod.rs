//! Workers: the only part that names the `worker` crate. It carries requests
//! in, answers out, and statements to the object's storage; it decides nothing.

mod cors;
mod directory;
mod env;
mod health;
mod host;
mod http;
mod mcp;
mod object;
mod outbound;
mod request_log;
mod router;
mod rpc;
mod sockets;
mod storage;
mod stream;
mod tasks;
mod text;
mod transfer;

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use self::host::Runtime;
use access::{self, Caller, Policy, RequestOrigin};
use api::route::Route;
use base::error::Result;
use base::settings::Setting;
use worker::{Env, console_warn, web_sys};

/// Identifies the caller by the `authorization` header or, where a page can't set
/// headers, by the other ways that a route allows. Checks the request's origin first.
fn identify(policy: &Policy, route: &Route, request: &web_sys::Request) -> Result<Caller> {
    let header = |name| http::find_header(request, name);
    // The headers are read only where the policy needs them.
    if policy.asks_whence() {
        let (host, origin, fetch_site) =
            (header("host"), header("origin"), header("sec-fetch-site"));
        policy.admit(&RequestOrigin {
            host: host.as_deref(),
            origin: origin.as_deref(),
            fetch_site: fetch_site.as_deref(),
        })?;
    }
    if matches!(route, Route::Mcp { .. }) {
        policy.admit_message(header("origin").as_deref(), &request.url())?;
    }
    let authorization = policy.secret().and_then(|_| header("authorization"));
    let key = match route {
        Route::Provider { .. } => policy.secret().and_then(|_| header("x-api-key")),
        _ => None,
    };
    // Clients of Anthropic send their key so. If both come, the usual header counts.
    let bearer = access::find_bearer(authorization.as_deref()).or(key.as_deref());
    match route {
        Route::Messages { agent, token, .. } => {
            access::identify_page(policy, &Runtime, agent, bearer, token.as_deref())
        }
        Route::Socket { agent, token, .. } => {
            let offered = http::find_header(request, "sec-websocket-protocol");
            let (named, _) = access::find_subprotocol(offered.as_deref());
            let token = named.or(token.as_deref());
            access::identify_page(policy, &Runtime, agent, bearer, token)
        }
        _ => access::identify(policy, &Runtime, route.agent(), bearer),
    }
}

/// The Worker's access policy. It is read once: an isolate has one environment.
fn policy(env: &Env) -> Rc<Policy> {
    thread_local! {
        static POLICY: OnceCell<Rc<Policy>> = const { OnceCell::new() };
    }
    POLICY.with(|policy| Rc::clone(policy.get_or_init(|| Rc::new(read_policy(env)))))
}

/// Reads the policy from variables and secrets.
fn read_policy(env: &Env) -> Policy {
    let find = |setting| env::find_text(env, setting);
    let mut policy = Policy::new(
        find(Setting::SessionAgentToken),
        find(Setting::Auth).as_deref(),
    )
    .with_previous(find(Setting::SessionAgentTokenPrevious));
    if let Some(origins) = find(Setting::AllowedOrigins) {
        for place in policy.share_with(&origins) {
            warn_once(place);
        }
    }
    policy
}

/// Logs, once per isolate, that an entry of `ALLOWED_ORIGINS` is ignored.
fn warn_once(place: usize) {
    static HAS_WARNED: AtomicBool = AtomicBool::new(false);
    if !HAS_WARNED.swap(true, Ordering::Relaxed) {
        console_warn!(
            "ALLOWED_ORIGINS: entry {place} is not an origin, and is ignored. An origin is \
             `https://app.example.com`, in lower case and without a path; `*` and `null` are not \
             origins."
        );
    }
}
