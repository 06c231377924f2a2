//! Starts the background work that operations request of the object.

use std::rc::Rc;

use super::Object;
use base::ids::Id;
use chat::run::running_turns::Audience as _;
use chat::run::show_pace::ShownChange;
use chat::run::work::{TurnStarter, TurnWork};
use lifecycle::restores::RunningRestore;

impl TurnStarter for Object {
    fn begin(&self, work: TurnWork) {
        if let Some(object) = self.me.upgrade() {
            Object::begin(&object, work);
        }
    }

    fn recover(&self) {
        if let Some(object) = self.me.upgrade() {
            object.recover_once();
        }
    }

    fn call_back(&self) {
        if let Some(object) = self.me.upgrade() {
            object.begin_calling_back();
            // After a memory change, consolidation may be due.
            object.learn_later();
        }
    }

    fn make_vectors(&self) {
        if let Some(object) = self.me.upgrade() {
            object.make_vectors();
        }
    }

    fn wake_soon(&self) {
        if let Some(object) = self.me.upgrade() {
            object.begin_recovery_later();
        }
    }

    fn restart(&self) {
        if let Some(object) = self.me.upgrade() {
            let last = Rc::clone(&object);
            object.run_later(async move { last.end_life().await });
        }
    }

    fn keep_soon(&self) {
        if let Some(object) = self.me.upgrade() {
            let next = Rc::clone(&object);
            object.run_later(async move { next.keep_later(0).await });
        }
    }

    fn stay_for(&self, restore: Rc<RunningRestore>) {
        if let Some(object) = self.me.upgrade() {
            let waiting = Rc::clone(&object);
            object.run_later(async move { restore.wait(&waiting.outbound).await });
        }
    }

    fn show(&self, session_id: &Id) {
        if let Some(object) = self.me.upgrade()
            && object.sockets.is_there(session_id)
        {
            Object::show(&object, ShownChange::of_all(session_id.clone()));
        }
    }
}
