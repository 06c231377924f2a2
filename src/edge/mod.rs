//! The Workers adapter: the only part that uses the `worker` crate. It passes requests in,
//! answers out, and statements to the object's storage. It decides nothing.

mod cors;
mod directory;
mod env;
mod front;
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
mod stub;
mod tasks;
mod text;
mod transfer;

use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};

use access::Policy;
use base::settings::Setting;
use worker::{Env, console_warn};

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
        for index in policy.share_with(&origins) {
            warn_once(index);
        }
    }
    policy
}

/// Logs, once per isolate, that an entry of `ALLOWED_ORIGINS` is ignored.
fn warn_once(index: usize) {
    static HAS_WARNED: AtomicBool = AtomicBool::new(false);
    if !HAS_WARNED.swap(true, Ordering::Relaxed) {
        console_warn!(
            "ALLOWED_ORIGINS: entry {index} is not an origin, and is ignored. An origin is \
             `https://app.example.com`, in lower case and without a path; `*` and `null` are not \
             origins."
        );
    }
}
