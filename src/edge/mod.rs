//! Workers: the only part that names the `worker` crate. It carries requests
//! in, answers out, and statements to the object's storage; it decides nothing.

mod host;
mod http;
mod object;
mod outside;
mod router;
mod site;
mod storage;
mod transfer;

use crate::access::Policy;
use worker::Env;

/// How this Worker lets callers in, from its variables and secrets.
fn policy(env: &Env) -> Policy {
    let secret = env
        .secret("SESSION_AGENT_TOKEN")
        .ok()
        .map(|secret| secret.to_string());
    let auth = env.var("AUTH").ok().map(|auth| auth.to_string());
    Policy::new(secret, auth.as_deref())
}
