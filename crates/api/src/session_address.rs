//! The session that an address names.

use base::error::{Error, Result};
use base::ids::Id;

/// Parses the session id of an address.
pub fn parse_session_id(text: &str) -> Result<Id> {
    Id::parse(text.to_owned())
        .map_err(|reason| Error::invalid("sessionId", format!("`sessionId` {reason}.")))
}
