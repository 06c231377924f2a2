//! The work, other than turns, that this activation of the object started. A cache, as
//! `running_turns.rs` is: the tables store what must survive an eviction.

use crate::run::callbacks::CallbacksInFlight;
use base::exclusive::Exclusive;
use memory::pending_vectors::PendingVectors;
use store::clearing::PageClearing;
use store::restores::RestoreTracker;

#[derive(Default)]
pub struct InFlightWork {
    pub callbacks: CallbacksInFlight,
    /// The learning pass in progress.
    pub learning: Exclusive,
    /// The queue of written entries without vectors.
    pub vectors: PendingVectors,
    /// The database pages in which purges left text.
    pub pages: PageClearing,
    /// The backup restore in progress.
    pub restores: RestoreTracker,
}
