//! The whole agent as one file, out and in. The file is lines of JSON, as the file of a
//! session is: first the agent's own (its settings, tools, usage and memory), then each of
//! its sessions in the lines of the session's own file.
//!
//! The rule it protects: the file says what the agent holds, and nothing of when or from
//! where it was taken. So an agent that was made from a file writes the same bytes.

pub mod export;
pub mod import;
pub mod lines;
mod mark;
mod own_lines;
mod proposals;
mod settings;
mod tools;

use access::{AccessRule, Effect, Needs};

/// Only the Worker's secret takes a whole agent out: the file holds what other operations
/// conceal from tokens, such as addresses of tools.
pub const EXPORT_RULE: AccessRule = AccessRule {
    operation: "exportAgent",
    needs: Needs::Secret,
    effect: Effect::Nothing,
};

/// Only the Worker's secret brings a whole agent in: the file sets what the agent may
/// reach.
pub const IMPORT_RULE: AccessRule = AccessRule {
    operation: "importAgent",
    needs: Needs::Secret,
    effect: Effect::Agent,
};
