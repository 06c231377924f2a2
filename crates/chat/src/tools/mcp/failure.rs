//! The reasons why a tool server has no usable answer.

use crate::tools::mcp::oauth::challenge::Challenge;
use base::outbound::CallFailure;

#[derive(Clone, Debug, PartialEq)]
pub enum ServerFailure {
    /// There is no answer, or only a part of one.
    NoAnswer(CallFailure),
    /// A status that is not a success, without a protocol error.
    Status(u16),
    /// A protocol error.
    Refused(ServerRefusal),
    /// The answer violates the protocol. The text describes what the server did.
    InvalidResponse(&'static str),
    /// A stream ended without the result.
    Ended,
    /// The server requires a person's authorization, or a wider one. The request was not
    /// carried out.
    Unauthorized(Challenge),
    /// The person's authorization could not be renewed. No request was sent.
    NoToken,
    /// The server's session expired. The request was not carried out.
    SessionLost,
}

/// A server's own explanation of its refusal.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerRefusal {
    pub message: String,
    /// The error names no request: the server refused before it parsed one.
    pub names_no_request: bool,
    /// The revisions that the server supports, if it refused the revision.
    pub supported: Vec<String>,
}

impl From<CallFailure> for ServerFailure {
    fn from(failure: CallFailure) -> Self {
        Self::NoAnswer(failure)
    }
}

impl ServerFailure {
    /// Whether the server may use another revision of the protocol: it answered with a
    /// refusal.
    pub fn may_be_of_revision(&self) -> bool {
        match self {
            Self::Refused(_) => true,
            Self::Status(status) => matches!(status, 400 | 404 | 422),
            Self::NoAnswer(_)
            | Self::Ended
            | Self::InvalidResponse(_)
            | Self::Unauthorized(_)
            | Self::NoToken
            | Self::SessionLost => false,
        }
    }

    /// Whether a stream was interrupted and may be resumed.
    pub fn breaks_stream(&self) -> bool {
        matches!(
            self,
            Self::Ended | Self::NoAnswer(CallFailure::Unreachable { .. })
        )
    }

    /// The failure, as the part of a sentence that follows a colon.
    pub fn reason(&self) -> String {
        match self {
            Self::NoAnswer(failure) => failure.reason(),
            Self::Status(status) if (300..400).contains(status) => {
                format!("it returned status {status}, and redirects are not followed")
            }
            Self::Status(status) => format!("it returned status {status}"),
            Self::Refused(refusal) => format!("it refused: {}", refusal.message),
            Self::InvalidResponse(what) => format!("it {what}"),
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
