//! Binds the background work to the runtime: tasks that outlast a request, and the object's single
//! alarm. `api/jobs/` decides what runs, and when.

use std::rc::Rc;

use super::Object;
use crate::edge::host::Runtime;
use crate::edge::http;
use crate::edge::storage::{Sqlite, wake_at};
use api::jobs;
use base::background::{Background, JobKind};
use base::error::Error;
use base::host::Host as _;
use base::ids::Id;
use base::outbound::{LocalBoxFuture, Outbound as _};
use chat::run::broadcast_throttle::{MessageChange, NextBroadcast};
use chat::run::running_turns::Audience as _;
use chat::run::watchers::send_broadcast;
use chat::run::work::{TurnStarter, TurnWork};

/// How often work in progress is checked that keeps the object active.
const CHECK_EVERY_MS: i64 = 500;

impl TurnStarter for Object {
    fn begin(&self, work: TurnWork) {
        if let Some(object) = self.me.upgrade() {
            Object::begin(&object, work);
        }
    }

    fn recover(&self) {
        self.recover_once();
    }
}

impl Background for Object {
    fn has_tables(&self) -> bool {
        self.is_migrated.get()
    }

    fn start(&self, job: JobKind) {
        self.run_shared(async move |object: Rc<Self>| {
            let db = Sqlite::new(&object.storage);
            jobs::run(&object.own_agent(&db), job).await;
        });
    }

    fn wake_by(&self, at_ms: i64) -> LocalBoxFuture<'_, ()> {
        Box::pin(self.set_alarm(at_ms))
    }

    fn fires_by(&self, at_ms: i64, now_ms: i64) -> bool {
        self.alarm.fires_by(at_ms, now_ms)
    }

    fn wake_within(&self, ms: i64) {
        let now_ms = Runtime.now_ms();
        let at_ms = now_ms + ms;
        if self.fires_by(at_ms, now_ms) {
            return;
        }
        self.run_shared(async move |object: Rc<Self>| object.set_alarm(at_ms).await);
    }

    fn keep_alive_until(&self, is_over: Box<dyn Fn() -> bool>) {
        self.run_shared(async move |object: Rc<Self>| {
            while !is_over() {
                object.outbound.sleep(CHECK_EVERY_MS).await;
            }
        });
    }

    fn restart(&self) {
        self.run_shared(async move |object: Rc<Self>| object.end_activation().await);
    }

    fn show(&self, session_id: &Id) {
        if let Some(object) = self.me.upgrade()
            && object.sockets.is_watching(session_id)
        {
            Object::show(&object, MessageChange::of_all(session_id.clone()));
        }
    }

    fn log(&self, failure: &Error) {
        http::log_of(self.name.get(), failure);
    }
}

impl Object {
    /// As [`Object::run_later`], for work that needs the object.
    fn run_shared<F: Future<Output = ()> + 'static>(&self, work: impl FnOnce(Rc<Self>) -> F) {
        if let Some(object) = self.me.upgrade() {
            self.run_later(work(object));
        }
    }

    /// Broadcasts a change of a session to the session's sockets.
    pub(super) fn show(self: &Rc<Self>, change: MessageChange) {
        let planned = self.throttle.plan(&change, Runtime.now_ms());
        if planned == NextBroadcast::IsPlanned {
            return;
        }
        let session_id = change.session_id;
        let object = Rc::clone(self);
        self.run_later(async move {
            let broadcast = match planned {
                NextBroadcast::Now(broadcast) => broadcast,
                NextBroadcast::In { ms } => {
                    object.outbound.sleep(ms).await;
                    object.throttle.begin(&session_id, Runtime.now_ms())
                }
                NextBroadcast::IsPlanned => return,
            };
            if object.is_migrated.get() && object.sockets.is_watching(&session_id) {
                if let Some(running) = object.turns.find(&session_id) {
                    running.record_broadcast();
                }
                let db = Sqlite::new(&object.storage);
                send_broadcast(&object.own_agent(&db), &session_id, &broadcast);
            }
        });
    }

    /// Sets the object's single alarm, unless it fires by this time anyway. A failure is
    /// only logged: the next request to the object finds the work.
    async fn set_alarm(&self, at_ms: i64) {
        if self.fires_by(at_ms, Runtime.now_ms()) {
            return;
        }
        self.alarm.set(at_ms);
        if let Err(error) = wake_at(&self.storage, at_ms).await {
            self.alarm.clear();
            self.log(&error);
        }
    }
}
