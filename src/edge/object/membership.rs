//! When the agent writes itself into the directory: after its first write, and after a
//! death in between, by its alarm.

use std::rc::Rc;

use super::Object;
use crate::edge::host::Runtime;
use crate::edge::http;
use crate::edge::storage::{Sqlite, wake_at};
use crate::edge::tasks;
use base::host::Host as _;
use base::outbound::{Outbound as _, in_time};
use directory::membership::{Member, is_there};

/// The alarm that makes sure of it comes so long after the agent was made.
const LOOK_AFTER_MS: i64 = 10_000;

/// The pause after a failure, which doubles with each further one, up to an hour.
const FIRST_PAUSE_MS: i64 = 10_000;
const MAX_PAUSE_MS: i64 = 3_600_000;

/// How long the answer to an agent's first request waits until the agent stands in the
/// directory. Then the agent goes on by itself.
const PATIENCE_MS: i64 = 2_000;

impl Object {
    /// The tables have just been made. The alarm is set at once: it becomes durable together
    /// with the first write.
    pub(super) fn note_made(&self) {
        if !self.note_opened() {
            return;
        }
        let Some(object) = self.me.upgrade() else {
            return;
        };
        let at_ms = Runtime.now_ms() + LOOK_AFTER_MS;
        self.wakes_at_ms.set(at_ms);
        tasks::spawn(async move {
            if let Err(error) = wake_at(&object.storage, at_ms).await {
                http::log(&error);
            }
        });
    }

    /// The tables are there; `true`: the agent has to look whether it stands in the directory.
    pub(super) fn note_opened(&self) -> bool {
        let is_due = is_there(&self.outbound) && self.name.is_known();
        self.is_joining_due.set(is_due);
        is_due
    }

    /// Writes the agent in, if it has yet to look. Waits for it for a while.
    pub(super) async fn join_now(&self) {
        if !self.is_migrated.get() || !self.is_joining_due.replace(false) {
            return;
        }
        let joined = in_time(self.outbound.sleep(PATIENCE_MS), self.join()).await;
        if joined.is_none() {
            self.is_joining_due.set(true);
            self.wake_by(Runtime.now_ms() + FIRST_PAUSE_MS).await;
        }
    }

    /// As [`Self::join_now`], but waits for nothing.
    pub(super) fn join_later(self: &Rc<Self>) {
        if self.is_migrated.get() && self.is_joining_due.replace(false) {
            let object = Rc::clone(self);
            self.run_later(async move { object.join().await });
        }
    }

    async fn join(&self) {
        let db = Sqlite::new(&self.storage);
        let member = Member {
            name: self.name.get(),
            db: &db,
            host: &Runtime,
            outbound: &self.outbound,
        };
        let pause_ms = match member.join().await {
            Ok(None) => {
                self.joining_pause_ms.set(FIRST_PAUSE_MS);
                return;
            }
            Ok(Some(pause_ms)) => pause_ms,
            // The storage was emptied meanwhile.
            Err(_) if !self.is_migrated.get() => return,
            Err(error) => {
                http::log(&error);
                let pause_ms = self.joining_pause_ms.get().max(FIRST_PAUSE_MS);
                self.joining_pause_ms.set((pause_ms * 2).min(MAX_PAUSE_MS));
                pause_ms
            }
        };
        self.is_joining_due.set(true);
        self.wake_by(Runtime.now_ms() + pause_ms).await;
    }
}
