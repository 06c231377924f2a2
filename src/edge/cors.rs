//! CORS: whether a page of another origin may send a request, and whether it may read
//! the answer.

use worker::web_sys;

use super::http::{self, ResponseResult};
use access::{CorsPolicy, Policy};
use api::preflight::check_preflight;

/// The CORS policy for the page that sent this request.
pub fn find(policy: &Policy, request: &web_sys::Request) -> CorsPolicy {
    if !policy.shares() {
        return CorsPolicy::default();
    }
    policy.cors(http::find_header(request, "origin").as_deref())
}

/// Answers a preflight request. A preflight needs no token: the answer only states whether
/// the page may send the request.
pub fn answer_preflight(cors: &CorsPolicy, request: &web_sys::Request) -> Option<ResponseResult> {
    if !cors.is_on || request.method() != "OPTIONS" {
        return None;
    }
    let method = http::find_header(request, "access-control-request-method")?;
    Some(match check_preflight(cors, &method, &request.url()) {
        Ok(()) => http::nothing_but(&cors.preflight_headers()),
        Err(refused) => http::refuse(&refused, None).and_then(|response| mark(response, cors)),
    })
}

/// Adds the CORS headers to an answer, errors included, so that the page can read it.
pub fn mark(response: web_sys::Response, cors: &CorsPolicy) -> ResponseResult {
    // No page reads the answer that opens a socket.
    if response.status() != 101 {
        for (name, value) in cors.headers() {
            response.headers().set(name, value)?;
        }
    }
    Ok(response)
}
