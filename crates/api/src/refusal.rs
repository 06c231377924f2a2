//! How a refusal is sent over HTTP.

use std::borrow::Cow;

use base::error::{Code, Error, ErrorKind};

/// The header that the status of a refusal calls for.
pub fn find_extra(error: &Error) -> Option<(&'static str, Cow<'_, str>)> {
    match (error.code, &error.kind) {
        (Code::Unauthorized, _) => Some(("www-authenticate", "Bearer".into())),
        (_, Some(ErrorKind::Allows(methods))) => Some(("allow", methods.as_str().into())),
        _ => error
            .retry_after_s
            .map(|seconds| ("retry-after", seconds.to_string().into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::route;

    #[test]
    fn an_error_response_has_the_headers_of_its_status() {
        let unauthorized = Error::new(Code::Unauthorized, "no");
        assert_eq!(
            find_extra(&unauthorized),
            Some(("www-authenticate", "Bearer".into()))
        );
        let wrong_method = route::parse("PUT", "/health").unwrap_err();
        assert_eq!(
            find_extra(&wrong_method),
            Some(("allow", "GET, HEAD".into()))
        );
        let busy = Error::new(Code::RateLimited, "later").with_retry_after(5);
        assert_eq!(find_extra(&busy), Some(("retry-after", "5".into())));
        assert_eq!(find_extra(&Error::invalid("a", "b")), None);
    }
}
