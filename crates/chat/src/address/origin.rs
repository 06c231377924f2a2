//! The origin of a tool's URL.

/// The longest URL of a tool, in bytes.
const MAX_URL_BYTES: usize = 2_000;

/// The origin as `https://host:port` in lower case, without the default port. `None`: the
/// URL is not allowed for tools.
pub fn origin_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let scheme = scheme.to_ascii_lowercase();
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, after) = rest.split_at_checked(end)?;
    let authority = authority.to_ascii_lowercase();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    if authority.is_empty() || !authority.chars().all(is_plain) {
        return None;
    }
    let is_clean = |c: char| c.is_ascii_graphic() && !matches!(c, '\\' | '#');
    if !after.chars().all(is_clean) || url.len() > MAX_URL_BYTES {
        return None;
    }
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.chars().all(|c| c.is_ascii_digit()) => host,
        _ => &authority,
    };
    let is_here = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
    let default_port = match scheme.as_str() {
        "https" => ":443",
        "http" if is_here => ":80",
        _ => return None,
    };
    let authority = authority.strip_suffix(default_port).unwrap_or(&authority);
    Some(format!("{scheme}://{authority}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_only_a_scheme_a_host_and_a_port() {
        for (url, expected) in [
            ("https://a.example/x?y=1", Some("https://a.example")),
            ("HTTPS://A.Example:443", Some("https://a.example")),
            ("https://a.example:8443/", Some("https://a.example:8443")),
            ("http://127.0.0.1:80/x", Some("http://127.0.0.1")),
            ("http://localhost:3000/x", Some("http://localhost:3000")),
            ("http://a.example/", None),
            ("https://user@a.example/", None),
            ("https://a.example\\@b.example/", None),
            ("https://a.example/#x", None),
            ("https://a.example/ x", None),
            ("https:///x", None),
            ("file:///etc/passwd", None),
            ("a.example", None),
        ] {
            assert_eq!(origin_of(url).as_deref(), expected, "{url}");
        }
    }
}
