//! The background work of the object: it recovers interrupted turns and continues building
//! the index. An alarm wakes the object for this, also after an eviction.

use std::rc::Rc;

use super::Object;
use crate::edge::host::Runtime;
use crate::edge::http;
use crate::edge::storage::{Sqlite, wake_at};
use access::Caller;
use api::dispatch::follow_writes;
use api::scheduled_backup;
use base::host::Host as _;
use base::outbound::Outbound as _;
use chat::run::callbacks::CallbackSender;
use chat::run::running_turns::Audience as _;
use chat::run::show_pace::{NextList, ShownChange};
use chat::run::watchers::show_news;
use conversation::index::build::{BATCHES_PER_WAKE, build_batch};
use learning::rounds::{find_due_time, learn_if_due};
use lifecycle::retention;
use store::callbacks::find_next_due;
use store::erased::LeftPages;

/// While a turn runs, an alarm is set this far ahead. If the object is evicted, the alarm
/// finds the interrupted turn.
const LOOK_AFTER_MS: i64 = 10_000;

/// The number of consecutive retention steps after an alarm, with other requests between
/// them. A pause follows, after which the platform grants a new allowance.
const KEEPING_STEPS_PER_WAKE: usize = 50;

/// The pause before the alarm that starts or continues retention.
const KEEPING_PAUSE_MS: i64 = 100;

/// The pause after a failed step.
const KEEPING_RETRY_MS: i64 = 3_600_000;

/// The pause before the alarm that continues building the index.
const INDEX_PAUSE_MS: i64 = 100;

impl Object {
    /// Broadcasts a change of a session to the session's sockets.
    pub(super) fn show(self: &Rc<Self>, change: ShownChange) {
        let planned = self.pace.plan(&change, Runtime.now_ms());
        if planned == NextList::IsPlanned {
            return;
        }
        let session_id = change.session_id;
        let object = Rc::clone(self);
        self.run_later(async move {
            let news = match planned {
                NextList::Now(news) => news,
                NextList::In { ms } => {
                    object.outbound.sleep(ms).await;
                    object.pace.begin(&session_id, Runtime.now_ms())
                }
                NextList::IsPlanned => return,
            };
            if object.is_migrated.get() && object.sockets.is_there(&session_id) {
                if let Some(running) = object.turns.find(&session_id) {
                    running.note_news();
                }
                let db = Sqlite::new(&object.storage);
                show_news(&object.agent(&db, &Caller::Owner, &[]), &session_id, &news);
            }
        });
    }

    /// Makes the callbacks for ended turns and for changes of memory. Sets an alarm for
    /// those that must be retried.
    pub(super) fn begin_calling_back(self: &Rc<Self>) {
        if !self.is_migrated.get() {
            return;
        }
        let object = Rc::clone(self);
        self.run_later(async move {
            let db = Sqlite::new(&object.storage);
            let sender = CallbackSender {
                memory: object.agent(&db, &Caller::Owner, &[]).memory(),
                policy: &object.policy,
                under_way: &object.turns.callbacks,
            };
            match find_next_due(&db) {
                // The alarm finds the callbacks if the object is evicted while it makes
                // them.
                Ok(Some(_)) => object.recover_later().await,
                Ok(None) => return,
                Err(error) => return http::log(&error),
            }
            match sender.call_due().await {
                Ok(Some(due_ms)) => object.wake_by(due_ms).await,
                Ok(None) => {}
                // The alarm retries.
                Err(error) => http::log(&error),
            }
        });
    }

    /// Sets an alarm for a callback that is due at `due_ms`. Callbacks that are already due
    /// are in progress; for them the alarm is only a fallback.
    pub(super) async fn wake_by(&self, due_ms: i64) {
        let now_ms = Runtime.now_ms();
        let at_ms = if due_ms > now_ms {
            due_ms
        } else {
            now_ms + LOOK_AFTER_MS
        };
        self.wake_no_later(now_ms, at_ms).await;
    }

    /// Sets the object's single alarm, unless it fires by this time anyway. A failure is
    /// only logged: the next request to the object finds the work.
    async fn wake_no_later(&self, now_ms: i64, at_ms: i64) {
        if (now_ms + 1..=at_ms).contains(&self.wakes_at_ms.get()) {
            return;
        }
        self.wakes_at_ms.set(at_ms);
        if let Err(error) = wake_at(&self.storage, at_ms).await {
            http::log(&error);
        }
    }

    /// Disconnects listeners that stopped reading. An alarm for the index may come sooner
    /// than `LOOK_AFTER_MS`; it must not shorten the listeners' time limit.
    pub(super) fn cut_off_silent(&self) {
        let now_ms = Runtime.now_ms();
        if now_ms - self.looked_at_ms.get() >= LOOK_AFTER_MS {
            self.looked_at_ms.set(now_ms);
            self.turns.cut_off_silent();
        }
    }

    /// Sets an alarm that wakes the object if it is evicted while a turn runs. An alarm
    /// further in the future is for the retry of a callback.
    pub(super) async fn recover_later(&self) {
        let now_ms = Runtime.now_ms();
        self.wake_no_later(now_ms, now_ms + LOOK_AFTER_MS).await;
    }

    pub(super) async fn index_later(&self) {
        let now_ms = Runtime.now_ms();
        self.wake_no_later(now_ms, now_ms + INDEX_PAUSE_MS).await;
    }

    /// Computes the vectors of new entries in batches. If the object is evicted meanwhile,
    /// or the model fails, searches compute the rest.
    pub(super) fn make_vectors(self: &Rc<Self>) {
        let object = Rc::clone(self);
        self.run_later(async move {
            // Lets the response be sent first.
            object.outbound.sleep(0).await;
            let Some(_lease) = object.turns.vectors.begin() else {
                return;
            };
            // The storage may have been emptied meanwhile.
            while object.is_migrated.get() {
                let db = Sqlite::new(&object.storage);
                let agent = object.agent(&db, &Caller::Owner, &[]);
                match follow_writes(&agent).await {
                    Ok(true) => {}
                    Ok(false) => return,
                    Err(error) => return http::log(&error),
                }
            }
        });
    }

    /// Continues the index build that searches have started. Other requests are served
    /// between two batches. An alarm continues the rest.
    pub(super) async fn go_on_indexing(&self) {
        for _ in 0..BATCHES_PER_WAKE {
            // The storage was emptied meanwhile: there are no events and no tables.
            if !self.is_migrated.get() {
                return;
            }
            match build_batch(&Sqlite::new(&self.storage)) {
                Ok(true) => self.outbound.sleep(0).await,
                Ok(false) => return,
                // The next search retries, and reports a failure.
                Err(error) => return http::log(&error),
            }
        }
        self.index_later().await;
    }

    /// Runs a learning pass if the agent learns and a pass is due, and sets an alarm for
    /// the next one. The due times are stored in rows, so a late alarm or an eviction loses
    /// nothing.
    pub(super) fn learn_later(self: &Rc<Self>) {
        if !self.is_migrated.get() {
            return;
        }
        let object = Rc::clone(self);
        self.run_later(async move {
            let db = Sqlite::new(&object.storage);
            let due_at = find_due_time(&object.agent(&db, &Caller::Owner, &[]).memory());
            let round = match due_at {
                Ok(None) => return,
                Ok(Some(due_at)) => {
                    // If the object is evicted meanwhile, the alarm repeats the pass.
                    object.wake_by(due_at).await;
                    if !object.is_migrated.get() {
                        return;
                    }
                    let agent = object.agent(&db, &Caller::Owner, &[]);
                    learn_if_due(&agent.memory(), &object.turns.learning).await
                }
                Err(error) => return http::log(&error),
            };
            // The pass may have written entries.
            if !object.turns.vectors.is_empty() {
                object.make_vectors();
            }
            match round {
                Ok(round) => {
                    if let Some(failure) = &round.failure {
                        http::log(failure);
                    }
                    if let Some(next_at) = round.next_at {
                        object.wake_by(next_at).await;
                    }
                }
                // The storage was emptied meanwhile, or the alarm retries.
                Err(error) => http::log(&error),
            }
        });
    }

    /// Sets an alarm that starts or continues retention and backups at this time, or soon.
    pub(super) async fn keep_later(&self, at_ms: i64) {
        let now_ms = Runtime.now_ms();
        let at_ms = at_ms.max(now_ms + KEEPING_PAUSE_MS);
        self.wake_no_later(now_ms, at_ms).await;
    }

    /// Schedules retention or a backup if it is due. Runs once per activation of the
    /// object: a rule may have been deployed, or the object was evicted before it set an
    /// alarm.
    pub(super) fn keep_if_due(self: &Rc<Self>) {
        if !self.is_migrated.get() {
            return;
        }
        let db = Sqlite::new(&self.storage);
        let agent = self.agent(&db, &Caller::Owner, &[]);
        let due = retention::is_due(&agent.memory())
            .and_then(|due| Ok(due || scheduled_backup::is_due(&agent)?));
        match due {
            Ok(true) => {
                let object = Rc::clone(self);
                self.run_later(async move { object.keep_later(0).await });
            }
            Ok(false) => {}
            Err(error) => http::log(&error),
        }
    }

    /// Makes the backup that is due by the agent's schedule, and sets the alarm for the
    /// next one.
    pub(super) async fn go_on_backing_up(self: &Rc<Self>) {
        if !self.is_migrated.get() {
            return;
        }
        let db = Sqlite::new(&self.storage);
        let agent = self.agent(&db, &Caller::Owner, &[]);
        match scheduled_backup::is_due(&agent) {
            // If the object is evicted during the backup, this alarm triggers the retry.
            Ok(true) => self.keep_later(Runtime.now_ms() + KEEPING_RETRY_MS).await,
            Ok(false) => {}
            Err(error) => return http::log(&error),
        }
        match scheduled_backup::back_up_if_due(&agent).await {
            Ok(Some(next_at)) => self.keep_later(next_at).await,
            Ok(None) => {}
            // The storage was emptied meanwhile.
            Err(_) if !self.is_migrated.get() => {}
            Err(error) => http::log(&error),
        }
    }

    /// Continues retention. Other requests are served between two steps. An alarm continues
    /// the rest, and starts the next run.
    pub(super) async fn go_on_keeping(self: &Rc<Self>) {
        let mut pages = retention::Pages::NotCleared;
        for _ in 0..KEEPING_STEPS_PER_WAKE {
            // The storage was emptied meanwhile: there is nothing left to process.
            if !self.is_migrated.get() {
                return;
            }
            let db = Sqlite::new(&self.storage);
            let agent = self.agent(&db, &Caller::Owner, &[]);
            let step = match retention::step_if_due(&agent.memory(), pages) {
                Ok(Some(step)) => step,
                Ok(None) => return,
                Err(error) => {
                    http::log(&error);
                    return self.keep_later(Runtime.now_ms() + KEEPING_RETRY_MS).await;
                }
            };
            if let Some(failure) = &step.failure {
                http::log(failure);
            }
            for session_id in step.changed {
                if self.sockets.is_there(&session_id) {
                    self.show(ShownChange::of_all(session_id));
                }
            }
            pages = retention::Pages::NotCleared;
            if !step.purged.is_empty() {
                // If this fails, the next run or purge clears these pages.
                let left = LeftPages::in_tables(&step.purged);
                self.turns.pages.note(&left);
                if let Err(error) = self.clear_pages(&db, &left).await {
                    http::log(&error);
                }
                pages = retention::Pages::Cleared;
            }
            if !step.has_more {
                if let Some(next_at) = step.next_at {
                    self.keep_later(next_at).await;
                }
                return;
            }
            self.outbound.sleep(0).await;
        }
        self.keep_later(0).await;
    }
}
