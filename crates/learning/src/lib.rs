//! Learning: memory from conversations. Each learning pass covers the events since the
//! previous pass, and sends them to a model with the entries that they concern. The model
//! answers with changes, each with the events that it comes from, and these become a
//! proposal ([`memory::proposals`]). Consolidation tidies the entries of a block in the
//! same way.
//!
//! Three invariants: Each event is covered by one pass, because the position, the proposal
//! and the changes applied from it are written in one transaction after the model's answer.
//! Model output is untrusted, and is checked like any request. A change is applied without
//! review only if the words of trusted sources support it (`trust.rs`).

pub mod answer;
pub mod ask;
pub mod capacity;
pub mod consolidate;
pub mod consolidation_trust;
pub mod evidence;
pub mod material;
pub mod naming;
pub mod pass;
pub mod prompt;
pub mod related_entries;
pub mod retraction;
pub mod rounds;
pub mod target;
pub mod trust;
