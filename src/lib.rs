//! Session Agent: durable memory for AI agents, one Durable Object per agent.
//!
//! ARCHITECTURE.md is the map. In short: `edge` receives a request and passes it to `api`,
//! which finds the operation. The operation decides, and reads or writes through the crates
//! below it. Only this crate depends on the Workers runtime.

mod edge;
