//! The revisions of the protocol, by their dates, and the names that the newest one gives
//! to each request's statements about itself. `api/mcp` serves the same revisions.

/// The newest revision. There is no handshake: each request carries all that a server has
/// to know.
pub const NEWEST: &str = "2026-07-28";

/// The newest revision with a handshake.
pub const NEWEST_HANDSHAKE: &str = "2025-11-25";

/// Older revisions with a handshake. Their tools are listed and called in the same way.
pub const OLDER_HANDSHAKES: [&str; 2] = ["2025-06-18", "2025-03-26"];

pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// The marks around a header's value that is encoded, since it holds other characters
/// than a header may.
pub const ENCODED: (&str, &str) = ("=?base64?", "?=");
