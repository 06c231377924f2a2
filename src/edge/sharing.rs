//! What the browser of a page elsewhere is told: whether the page may ask, and
//! whether it may read the answer.

use wasm_bindgen::prelude::*;
use worker::web_sys;

use super::http;
use crate::access::{Policy, Sharing};
use crate::api::route;
use crate::base::error::{Code, Error};

type Built = Result<web_sys::Response, JsValue>;

/// What is told to the page that a request comes from.
pub fn find(policy: &Policy, request: &web_sys::Request) -> Sharing {
    if !policy.shares() {
        return Sharing::default();
    }
    policy.sharing(http::find_header(request, "origin").as_deref())
}

/// The answer to a browser that asks before it sends. It needs no token: what it is
/// told is only whether its page may try.
pub fn answer_preflight(sharing: &Sharing, request: &web_sys::Request) -> Option<Built> {
    if !sharing.is_on || request.method() != "OPTIONS" {
        return None;
    }
    let method = http::find_header(request, "access-control-request-method")?;
    let refused = match route::parse(&method, &request.url()) {
        Err(error) => error,
        Ok(_) if sharing.origin.is_some() => {
            return Some(http::nothing_but(&sharing.preflight_headers()));
        }
        Ok(_) => Error::new(
            Code::Forbidden,
            "Pages of this origin are not let in: `ALLOWED_ORIGINS` doesn't name it.",
        ),
    };
    Some(http::refuse(&refused, None).and_then(|response| mark(response, sharing)))
}

/// An answer of ours, its errors included, so that the page can read it.
pub fn mark(response: web_sys::Response, sharing: &Sharing) -> Built {
    // What opens a socket is read by nobody.
    if response.status() != 101 {
        for (name, value) in sharing.headers() {
            response.headers().set(name, value)?;
        }
    }
    Ok(response)
}
