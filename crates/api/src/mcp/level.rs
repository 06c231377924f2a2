//! The levels of log messages, from the least severe.

use super::message::RpcError;

const NAMES: [&str; 8] = [
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
];

/// The index of a level in [`NAMES`].
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Level(usize);

impl Level {
    /// The default level of a client with a handshake.
    pub const DEFAULT: Self = Self(1);

    pub fn find(name: &str) -> Option<Self> {
        NAMES.iter().position(|other| *other == name).map(Self)
    }

    pub fn parse(name: &str) -> Result<Self, RpcError> {
        Self::find(name).ok_or_else(|| {
            let message = format!("`level` must be one of {}.", NAMES.join(", "));
            RpcError::params("level", message)
        })
    }
}
