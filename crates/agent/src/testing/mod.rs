//! A scripted outside: what models, tools and services answer. The other native stand-ins
//! are the core's.

mod outbound;

pub use outbound::{Onlookers, Said, Script, Trickle, cut_off};
pub use session_agent_core::testing::*;
