//! When the agent adds itself to the directory: after its first write, and, if the object
//! is evicted in between, by its alarm.

use std::rc::Rc;

use super::Object;
use crate::edge::host::Runtime;
use crate::edge::storage::Sqlite;
use base::background::Background as _;
use base::host::Host as _;
use base::outbound::{Outbound as _, in_time};
use directory::joining::FIRST_PAUSE_MS;
use directory::membership::{Member, is_bound};

/// The time from the agent's creation to the alarm that ensures its registration.
const RECOVERY_ALARM_MS: i64 = 10_000;

/// The maximum time that the response to an agent's first request is delayed until the agent is in
/// the directory. Afterward the registration continues in the background.
const TIMEOUT_MS: i64 = 2_000;

impl Object {
    /// The tables have just been created. The alarm is set at once: it becomes durable
    /// together with the first write.
    pub(super) fn handle_tables_created(&self) {
        if self.handle_tables_opened() {
            self.wake_within(RECOVERY_ALARM_MS);
        }
    }

    /// The tables exist. `true`: the agent must check whether it is in the directory.
    pub(super) fn handle_tables_opened(&self) -> bool {
        let is_due = is_bound(&self.outbound) && self.name.is_known();
        self.joining.set_due(is_due);
        is_due
    }

    /// Adds the agent to the directory if it still has to check this. Waits a limited time
    /// for it.
    pub(super) async fn join_now(&self) {
        if !self.is_migrated.get() || !self.joining.take_due() {
            return;
        }
        let joined = in_time(self.outbound.sleep(TIMEOUT_MS), self.join()).await;
        if joined.is_none() {
            self.joining.set_due(true);
            self.wake_by(Runtime.now_ms() + FIRST_PAUSE_MS).await;
        }
    }

    /// Like [`Self::join_now`], but does not wait.
    pub(super) fn join_later(self: &Rc<Self>) {
        if self.is_migrated.get() && self.joining.take_due() {
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
                self.joining.succeed();
                return;
            }
            Ok(Some(pause_ms)) => pause_ms,
            // The storage was emptied in the meantime.
            Err(_) if !self.is_migrated.get() => return,
            Err(error) => {
                self.log(&error);
                self.joining.fail()
            }
        };
        self.joining.set_due(true);
        self.wake_by(Runtime.now_ms() + pause_ms).await;
    }
}
