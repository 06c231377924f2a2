//! Memory that forms itself. A look takes the events of a conversation since the last look, and
//! sends them to a model together with the entries that they touch. The model answers changes,
//! each with the events that it comes from, and these become a proposal
//! ([`memory::proposals`]). Consolidation puts the entries of a block in order, in the same way.
//!
//! Three rules hold. Each event is looked at once: the mark, the proposal and what is
//! applied of it are one transaction after the model's answer. The model's answer is a
//! stranger's: it is checked like any request. A change counts by itself only if the words
//! of those who are trusted bear it out (`trust.rs`).

pub mod answer;
pub mod ask;
pub mod consolidate;
pub mod evidence;
pub mod look;
pub mod material;
pub mod naming;
pub mod order_trust;
pub mod prompt;
pub mod retraction;
pub mod room;
pub mod rounds;
pub mod target;
pub mod touched;
pub mod tracker;
pub mod trust;
