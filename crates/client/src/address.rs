//! URLs: the path of an operation and of a session's file. No name leads to the URL of another.

use crate::error::{Error, Result};

/// A binding leads to Session Agent whatever the host is.
const HOST: &str = "https://session-agent";

/// The base URL of an agent.
pub fn of_agent(name: &str) -> Result<String> {
    Ok(format!(
        "{HOST}/agents/session-agent/{}",
        segment("an agent's name", name)?
    ))
}

/// The path of an operation, under its agent's address.
pub fn of_operation(operation: &str) -> Result<String> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if operation.is_empty() || !operation.bytes().all(is_name) {
        return Err(Error::invalid(format!(
            "an operation's name must consist of letters and digits, as in `loadEvents`: {operation:?}"
        )));
    }
    Ok(format!("/rpc/{operation}"))
}

/// The path of a session's file: `what` is `export` or `import`.
pub fn of_file(session_id: &str, what: &str) -> Result<String> {
    let session = segment("a session's id in an address", session_id)?;
    Ok(format!("/sessions/{session}/{what}"))
}

/// A text as one segment of a path. `.` and `..` have a meaning of their own, even when encoded, so
/// no URL can contain them as names.
fn segment(what: &str, text: &str) -> Result<String> {
    if matches!(text, "" | "." | "..") {
        return Err(Error::invalid(format!(
            "{what} must be a non-empty string other than `.` and `..`"
        )));
    }
    Ok(text.bytes().fold(String::new(), |mut encoded, byte| {
        match byte {
            b'-' | b'_' | b'.' | b'~' => encoded.push(byte.into()),
            _ if byte.is_ascii_alphanumeric() => encoded.push(byte.into()),
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
        encoded
    }))
}

#[cfg(test)]
mod tests {
    use super::{of_agent, of_file, of_operation};

    #[test]
    fn a_name_is_one_path_segment() {
        for (name, step) in [
            ("alice", "alice"),
            ("user:42/../bob", "user%3A42%2F..%2Fbob"),
            ("../bob", "..%2Fbob"),
            ("%2e%2e", "%252e%252e"),
            ("a?b#c", "a%3Fb%23c"),
            ("a\\b", "a%5Cb"),
            ("...", "..."),
            ("é~", "%C3%A9~"),
        ] {
            let expected = format!("https://session-agent/agents/session-agent/{step}");
            assert_eq!(of_agent(name).ok(), Some(expected), "{name}");
        }
    }

    #[test]
    fn names_that_no_url_can_express_are_refused() {
        for name in ["", ".", ".."] {
            assert!(of_agent(name).is_err(), "{name:?}");
            assert!(of_file(name, "export").is_err(), "{name:?}");
        }
    }

    #[test]
    fn an_operation_name_has_only_letters_and_digits() {
        assert_eq!(
            of_operation("getSession").ok().as_deref(),
            Some("/rpc/getSession")
        );
        for operation in [
            "",
            ".",
            "..",
            "../../bob/rpc/listSessions",
            "a?b",
            "a#b",
            "%2e",
            "a b",
            "é",
        ] {
            assert!(of_operation(operation).is_err(), "{operation}");
        }
    }
}
