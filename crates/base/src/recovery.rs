//! The platform's point-in-time recovery of one object's storage: an interface to the
//! runtime. A bookmark names a state of the whole database within the last 30 days.

use super::error::{Code, Error};
use super::outbound::LocalBoxFuture;

/// Why the platform returns no bookmark.
#[derive(Debug)]
pub enum RecoveryFailure {
    /// The platform has no point-in-time recovery here, as on a developer's machine.
    Absent,
    /// The platform refused. The text is for the log.
    Refused { cause: String },
}

impl RecoveryFailure {
    /// The failure of a platform that threw an error. One without recovery throws that it does not
    /// implement the function.
    pub fn thrown(cause: String) -> Self {
        if cause.contains("not implement") || cause.contains("not a function") {
            Self::Absent
        } else {
            Self::Refused { cause }
        }
    }
}

/// Checks a bookmark that the platform returned. Local storage returns one of zeros.
pub fn check_bookmark(bookmark: String) -> Result<String, RecoveryFailure> {
    if bookmark.bytes().all(|byte| matches!(byte, b'0' | b'-')) {
        Err(RecoveryFailure::Absent)
    } else {
        Ok(bookmark)
    }
}

pub trait Recovery {
    /// The bookmark of that time; `None`: of now.
    fn find_bookmark(
        &self,
        at_ms: Option<i64>,
    ) -> LocalBoxFuture<'_, Result<String, RecoveryFailure>>;

    /// Makes the object's next activation begin with the state of the bookmark. Returns the
    /// bookmark of the state before that, which undoes it.
    fn restore_next<'a>(
        &'a self,
        bookmark: &'a str,
    ) -> LocalBoxFuture<'a, Result<String, RecoveryFailure>>;
}

impl From<RecoveryFailure> for Error {
    fn from(failure: RecoveryFailure) -> Self {
        match failure {
            RecoveryFailure::Absent => Self::new(
                Code::NotConfigured,
                "There is no point-in-time recovery here: it is available in deployed Workers, not \
                 in local development. `backup` and exports work everywhere.",
            )
            .with("binding", "point-in-time recovery"),
            RecoveryFailure::Refused { cause } => Self::invalid(
                "bookmark",
                "Cloudflare did not accept this bookmark or time. It can restore states of the \
                 last 30 days, not earlier than the first write. Nothing was changed.",
            )
            .with_cause(Some(cause)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_runtime_has_no_point_in_time_recovery() {
        let zeros = "00000000-00000000-00000000-00000000000000000000000000000000";
        for bookmark in ["", zeros] {
            let checked = check_bookmark(bookmark.to_owned());
            assert!(
                matches!(checked, Err(RecoveryFailure::Absent)),
                "{bookmark}"
            );
        }
        let real = "0000007b-0000b26e-00001538-0c3e87bb37b3db5cc52eedb93cd3b96b";
        assert_eq!(check_bookmark(real.to_owned()).unwrap(), real);
        for cause in [
            "This Durable Object's storage does not implement it.",
            "x is not a function",
        ] {
            let failure = RecoveryFailure::thrown(cause.to_owned());
            assert!(matches!(failure, RecoveryFailure::Absent), "{cause}");
        }
        let failure = RecoveryFailure::thrown("The bookmark is too old.".to_owned());
        assert!(matches!(failure, RecoveryFailure::Refused { .. }));
    }
}
