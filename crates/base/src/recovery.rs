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
