//! Whether a page of another origin may send a request.

use super::route;
use access::CorsPolicy;
use base::error::{Code, Error, Result};

/// Whether the page may send a request with this method to this URL.
pub fn check_preflight(cors: &CorsPolicy, method: &str, url: &str) -> Result<()> {
    route::parse(method, url)?;
    if cors.origin.is_some() {
        return Ok(());
    }
    Err(Error::new(
        Code::Forbidden,
        "Pages of this origin are not allowed. To allow them, add the origin to `ALLOWED_ORIGINS`.",
    ))
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
    fn a_preflight_needs_an_existing_route_and_an_allowed_origin() {
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
