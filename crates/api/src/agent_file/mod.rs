//! Exports and imports a whole agent as one file. The file consists of lines of JSON, like
//! the file of a session: first the agent's own data (its settings, tools, usage and
//! memory), then each of its sessions in the lines of the session's own file.
//!
//! Invariant: the file contains what the agent stores, and nothing about when or from where
//! it was exported. So an agent imported from a file exports the same bytes.

pub mod export;
pub mod import;
mod import_marker;
pub mod lines;
mod own_lines;
mod proposals;
mod settings;
mod tools;

use access::{AccessRule, Effect, Needs};

/// Only the Worker's secret may export a whole agent: the file contains what other
/// operations conceal from tokens, such as the URLs of tools.
pub const EXPORT_RULE: AccessRule = AccessRule {
    operation: "exportAgent",
    needs: Needs::Secret,
    effect: Effect::Nothing,
};

/// Only the Worker's secret may import a whole agent: the file sets which services the
/// agent may call.
pub const IMPORT_RULE: AccessRule = AccessRule {
    operation: "importAgent",
    needs: Needs::Secret,
    effect: Effect::Agent,
};
