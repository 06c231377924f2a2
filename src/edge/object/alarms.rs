//! What the object does later: it looks for turns that were cut off, and it goes on with
//! the index. An alarm wakes the object for this, also after an eviction.

use super::Object;
use crate::base::host::Host as _;
use crate::base::outbound::Outbound as _;
use crate::edge::host::Runtime;
use crate::edge::http;
use crate::edge::storage::{Sqlite, wake_at};
use crate::search::build::{BATCHES_PER_WAKE, build_batch};

/// While a turn runs, an alarm is set this far ahead. If the object is evicted, the
/// alarm finds the turn that was cut off.
const LOOK_AFTER_MS: i64 = 10_000;

/// The pause before the alarm that continues building the index.
const INDEX_PAUSE_MS: i64 = 100;

impl Object {
    /// Cuts off listeners that stopped reading. An alarm for the index may come sooner
    /// than `LOOK_AFTER_MS`; it must not shorten the time that listeners have.
    pub(super) fn cut_off_silent(&self) {
        let now_ms = Runtime.now_ms();
        if now_ms - self.looked_at_ms.get() >= LOOK_AFTER_MS {
            self.looked_at_ms.set(now_ms);
            self.turns.cut_off_silent();
        }
    }

    /// Sets an alarm that wakes the object if it is evicted while a turn runs.
    pub(super) async fn look_later(&self) {
        let now_ms = Runtime.now_ms();
        if self.wakes_at_ms.get() > now_ms {
            return;
        }
        let at_ms = now_ms + LOOK_AFTER_MS;
        self.wakes_at_ms.set(at_ms);
        if let Err(error) = wake_at(&self.storage, at_ms).await {
            // Without the alarm, the session's next request finds the turn.
            http::log(&error);
        }
    }

    pub(super) async fn index_later(&self) {
        let now_ms = Runtime.now_ms();
        let at_ms = now_ms + INDEX_PAUSE_MS;
        if (now_ms + 1..=at_ms).contains(&self.wakes_at_ms.get()) {
            return;
        }
        self.wakes_at_ms.set(at_ms);
        if let Err(error) = wake_at(&self.storage, at_ms).await {
            // Without the alarm, the next search continues the index.
            http::log(&error);
        }
    }

    /// Continues the index that searches have asked for. Other requests are served
    /// between two batches. An alarm continues what is left.
    pub(super) async fn go_on_indexing(&self) {
        for _ in 0..BATCHES_PER_WAKE {
            // The storage was emptied meanwhile: there are no events and no tables.
            if !self.is_migrated.get() {
                return;
            }
            match build_batch(&Sqlite::new(&self.storage)) {
                Ok(true) => self.outbound.sleep(0).await,
                Ok(false) => return,
                // The next search tries again, and reports a failure.
                Err(error) => return http::log(&error),
            }
        }
        self.index_later().await;
    }
}
