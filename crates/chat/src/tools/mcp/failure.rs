//! The reasons why a server has no answer that can be used.

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
    /// The server no longer knows the session. The request was not carried out.
    SessionLost,
}

/// A server's own words for its refusal.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerRefusal {
    pub message: String,
    /// The error names no request: the server refused before it looked for one.
    pub names_no_request: bool,
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
            Self::NoAnswer(_) | Self::Nonsense(_) | Self::SessionLost => false,
        }
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
            Self::SessionLost => "it did not recognize its own session".to_owned(),
        }
    }
}
