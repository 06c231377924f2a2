//! The reasons why a server has no answer that can be used.

use crate::tools::mcp::oauth::challenge::Challenge;
use base::outbound::CallFailure;

#[derive(Clone, Debug, PartialEq)]
pub enum ServerFailure {
    /// There is no answer, or only a part of one.
    NoAnswer(CallFailure),
    /// A status that is not a success, without an error of the protocol.
    Status(u16),
    /// An error of the protocol.
    Refused(ServerRefusal),
    /// The answer is not one of the protocol. The text says what the server did.
    Nonsense(&'static str),
    /// A stream ended without the result.
    Ended,
    /// The server wants a person's authorization, or one that allows more. The request was not
    /// carried out.
    Unauthorized(Challenge),
    /// The person's authorization could not be renewed. The server was not asked.
    NoToken,
    /// The server no longer knows the session. The request was not carried out.
    SessionLost,
}

/// A server's own words for its refusal.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerRefusal {
    pub message: String,
    /// The error names no request: the server refused before it looked for one.
    pub names_no_request: bool,
    /// The revisions that the server supports, if it refused for the revision.
    pub supported: Vec<String>,
}

impl From<CallFailure> for ServerFailure {
    fn from(failure: CallFailure) -> Self {
        Self::NoAnswer(failure)
    }
}

impl ServerFailure {
    /// Whether the server may speak another revision: it answered, and refused.
    pub fn may_be_of_revision(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Status(status) => matches!(status, 400 | 404 | 422),
            Self::NoAnswer(_)
            | Self::Ended
            | Self::Nonsense(_)
            | Self::Unauthorized(_)
            | Self::NoToken
            | Self::SessionLost => false,
        }
    }

    /// Whether a stream broke that may be resumed.
    pub fn breaks_stream(&self) -> bool {
        matches!(
            self,
            Self::Ended | Self::NoAnswer(CallFailure::Unreachable { .. })
        )
    }

    /// The failure, as the end of a sentence whose subject is a colon.
    pub fn reason(&self) -> String {
        match self {
            Self::NoAnswer(failure) => failure.reason(),
            Self::Status(status) if (300..400).contains(status) => {
                format!("it returned status {status}, and redirects are not followed")
            }
            Self::Status(status) => format!("it returned status {status}"),
            Self::Refused(refusal) => format!("it refused: {}", refusal.message),
            Self::Nonsense(what) => format!("it {what}"),
            Self::Ended => "it ended its answer without a result".to_owned(),
            Self::Unauthorized(challenge) if challenge.wants_more_scope() => {
                "it requires an authorization that allows more".to_owned()
            }
            Self::Unauthorized(_) => "it returned status 401".to_owned(),
            Self::NoToken => "its authorization could not be renewed".to_owned(),
            Self::SessionLost => "it did not recognize its own session".to_owned(),
        }
    }
}
