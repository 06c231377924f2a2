//! Workers: the only part that names the `worker` crate. It carries requests
//! in, answers out, and statements to the object's storage; it decides nothing.

mod host;
mod http;
mod object;
mod outside;
mod router;
mod site;
mod sockets;
mod storage;
mod stream;
mod transfer;

use self::host::Runtime;
use crate::access::{self, Caller, Policy};
use crate::api::route::Route;
use crate::error::Result;
use worker::{Env, web_sys};

/// Who asks: by a header, or, where a page can't set one, as it can say it.
fn identify(policy: &Policy, route: &Route, request: &web_sys::Request) -> Result<Caller> {
    let authorization = http::find_header(request, "authorization");
    let bearer = access::find_bearer(authorization.as_deref());
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

/// How this Worker lets callers in, from its variables and secrets.
fn policy(env: &Env) -> Policy {
    let secret = env
        .secret("SESSION_AGENT_TOKEN")
        .ok()
        .map(|secret| secret.to_string());
    let auth = env.var("AUTH").ok().map(|auth| auth.to_string());
    Policy::new(secret, auth.as_deref())
}
