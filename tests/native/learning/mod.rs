//! Learning, from a caller's perspective: a scripted model proposes changes, and the agent applies
//! its rules to them.

mod authority;
mod consolidation;
mod deaths;
mod hidden;
mod idle;
mod passes;
mod poison;
mod proposals;
mod traces;

pub use crate::shared::learner::{adds, user_said};
