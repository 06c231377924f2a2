//! The revisions of MCP, identified by their dates, and the names of the fields with which
//! each request of the newest revision describes itself. `api/mcp` serves the same
//! revisions.

/// The newest revision. It has no handshake: each request carries everything that a server
/// needs.
pub const NEWEST: &str = "2026-07-28";

/// The newest revision with a handshake.
pub const NEWEST_HANDSHAKE: &str = "2025-11-25";

/// Older revisions with a handshake. Their tools are listed and called in the same way.
pub const OLDER_HANDSHAKES: [&str; 2] = ["2025-06-18", "2025-03-26"];

pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";

/// The delimiters around a header value that is encoded because it contains characters that
/// a header can't.
pub const ENCODED: (&str, &str) = ("=?base64?", "?=");
