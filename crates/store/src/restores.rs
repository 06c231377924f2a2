//! Tracks the backup restore that runs in this activation of the object. A restore
//! continues if its caller disconnects. A repeated identical request waits for the running
//! restore. Otherwise the second restore would take over the session that the first one
//! writes, and a long restore would never finish.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use base::error::{Code, Error, Result};
use base::outbound::Outbound;

/// How often a waiting request checks whether the restore is over.
const POLL_MS: i64 = 500;

#[derive(Default)]
pub struct RestoreTracker {
    current: RefCell<Option<Rc<RunningRestore>>>,
}

/// A running restore, shared with the requests that wait for it.
pub struct RunningRestore {
    key: String,
    allows_sources: bool,
    is_over: Cell<bool>,
    /// The answer. `None`: the restore still runs, or was interrupted.
    answer: RefCell<Option<Result<String>>>,
}

/// Whether a restore may start.
pub enum RestoreAdmission<'a> {
    Begins(RestoreLease<'a>),
    /// The same restore is already running.
    Runs(Rc<RunningRestore>),
}

/// Marks the restore as running until it is dropped.
pub struct RestoreLease<'a> {
    of: &'a RestoreTracker,
    running: Rc<RunningRestore>,
}

impl RestoreTracker {
    /// Refuses if a different restore is running.
    pub fn begin(&self, key: &str, allows_sources: bool) -> Result<RestoreAdmission<'_>> {
        if let Some(running) = self.current.borrow().as_ref() {
            if running.key == key && running.allows_sources == allows_sources {
                return Ok(RestoreAdmission::Runs(Rc::clone(running)));
            }
            return Err(Error::new(
                Code::AlreadyExists,
                "Another restore into this agent is running. Try again when it has ended.",
            ));
        }
        let running = Rc::new(RunningRestore {
            key: key.to_owned(),
            allows_sources,
            is_over: Cell::new(false),
            answer: RefCell::default(),
        });
        *self.current.borrow_mut() = Some(Rc::clone(&running));
        Ok(RestoreAdmission::Begins(RestoreLease { of: self, running }))
    }
}

impl RunningRestore {
    pub fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Waits until the restore is over.
    pub async fn wait(&self, outbound: &dyn Outbound) {
        while !self.is_over() {
            outbound.sleep(POLL_MS).await;
        }
    }

    pub fn answer(&self) -> Option<Result<String>> {
        self.answer.borrow().clone()
    }
}

impl RestoreLease<'_> {
    pub fn running(&self) -> Rc<RunningRestore> {
        Rc::clone(&self.running)
    }

    pub fn end(self, answer: &Result<String>) {
        *self.running.answer.borrow_mut() = Some(answer.clone());
    }
}

impl Drop for RestoreLease<'_> {
    fn drop(&mut self) {
        self.running.is_over.set(true);
        self.of.current.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(tracker: &RestoreTracker) -> RestoreLease<'_> {
        match tracker.begin("a", false) {
            Ok(RestoreAdmission::Begins(lease)) => lease,
            Ok(RestoreAdmission::Runs(_)) | Err(_) => panic!("it should begin"),
        }
    }

    #[test]
    fn a_repeated_restore_waits_and_another_is_refused() {
        let tracker = RestoreTracker::default();
        let first = lease(&tracker);
        let Ok(RestoreAdmission::Runs(running)) = tracker.begin("a", false) else {
            panic!("it should wait");
        };
        for (key, allows_sources) in [("b", false), ("a", true)] {
            let refused = tracker.begin(key, allows_sources).err();
            assert_eq!(refused.map(|error| error.code), Some(Code::AlreadyExists));
        }
        assert!(!running.is_over());
        first.end(&Ok("{}".to_owned()));
        assert!(running.is_over());
        assert_eq!(running.answer().and_then(Result::ok).as_deref(), Some("{}"));
        drop(lease(&tracker));
    }

    #[test]
    fn an_interrupted_restore_has_no_answer_and_restarts() {
        let tracker = RestoreTracker::default();
        let first = lease(&tracker);
        let Ok(RestoreAdmission::Runs(running)) = tracker.begin("a", false) else {
            panic!("it should wait");
        };
        drop(first);
        assert!(running.is_over() && running.answer().is_none());
        drop(lease(&tracker));
    }
}
