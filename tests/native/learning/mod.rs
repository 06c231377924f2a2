//! Learning, from a caller's perspective: a scripted model proposes changes, and the agent applies
//! its rules to them.

mod authority;
mod automatic_consolidation;
mod consolidation;
mod faults;
mod hidden_characters;
mod passes;
mod poisoning;
mod proposal_lifecycle;
mod proposals;

pub use crate::shared::learner::{adds, user_event};
