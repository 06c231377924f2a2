//! Learning, as a caller sees it: a scripted model says what to propose, and the agent does
//! with it what the rules say.

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
