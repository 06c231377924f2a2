//! Session Agent: durable memory for AI agents, one Durable Object per agent.
//!
//! ARCHITECTURE.md is the map. In one line: `edge` receives a request and hands it to the
//! `api`, which finds the operation; the operation decides, and reads or writes through the
//! districts below it. Only this crate names the runtime.

mod edge;
