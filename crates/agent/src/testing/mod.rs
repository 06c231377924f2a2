//! A scripted outside: the answers of models, tools and services. The other native
//! stand-ins are the core's.

pub mod archive;
mod outbound;
pub mod recovery;

pub use outbound::{Onlookers, Said, Script, Trickle, cut_off};
pub use session_agent_core::testing::*;
