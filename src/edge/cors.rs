//! CORS: whether a page of another origin may send a request, and whether it may read
//! the answer.

use worker::web_sys;

use super::http::{self, ResponseResult};
use access::{CorsPolicy, Policy};
use api::route;
use base::error::{Code, Error, Result};

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

/// Whether the page may send a request with this method to this URL.
fn check_preflight(cors: &CorsPolicy, method: &str, url: &str) -> Result<()> {
    route::parse(method, url)?;
    if cors.origin.is_some() {
        return Ok(());
    }
    Err(Error::new(
        Code::Forbidden,
        "Pages of this origin are not allowed. To allow them, add the origin to `ALLOWED_ORIGINS`.",
    ))
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

#[cfg(test)]
mod tests {
    use super::*;

    const AT: &str = "https://worker.example/agents/session-agent/alice";

    fn cors(origin: Option<&str>) -> CorsPolicy {
        CorsPolicy {
            is_on: true,
            origin: origin.map(str::to_owned),
        }
    }

    #[test]
    fn a_preflight_passes_for_a_route_that_exists_and_a_page_that_is_allowed() {
        let allowed = cors(Some("https://app.example"));
        let rpc = format!("{AT}/rpc/getSession");
        let code = |checked: Result<()>| checked.unwrap_err().code;
        assert!(check_preflight(&allowed, "POST", &rpc).is_ok());
        assert_eq!(
            code(check_preflight(&allowed, "PUT", &rpc)),
            Code::MethodNotAllowed
        );
        // The route is checked first: its refusal reveals nothing about the allowed
        // origins.
        assert_eq!(
            code(check_preflight(&cors(None), "PUT", &rpc)),
            Code::MethodNotAllowed
        );
        assert_eq!(
            code(check_preflight(&cors(None), "POST", &rpc)),
            Code::Forbidden
        );
    }
}
