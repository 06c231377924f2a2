//! Work that outlasts the request which caused it: an interface to the object. `api/jobs/` decides
//! which job is due; the object only runs it, and wakes at the time that it is given.

use crate::error::Error;
use crate::ids::Id;
use crate::outbound::LocalBoxFuture;

/// When the object checks again after work that may be cut off: a turn, or a call to others.
pub const CHECK_AFTER_MS: i64 = 10_000;

/// The pause before an alarm that starts or continues work. The platform grants a new CPU
/// allowance to an alarm.
pub const SHORT_DELAY_MS: i64 = 100;

/// A background job. `api/jobs/` decides when each is due, and runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobKind {
    /// Resumes interrupted turns, and what waits behind turns.
    Turns,
    /// Notifies services of turns' ends and of changes of memory.
    Callbacks,
    /// Learns from conversations, and consolidates what was learned.
    Learning,
    /// Computes the vectors of entries that this activation has written.
    Vectors,
    /// Builds the search index.
    Index,
    /// Deletes what is older than the rules allow.
    Retention,
    /// Writes scheduled backups.
    Backups,
}

/// The object, as its background work sees it.
pub trait Background {
    /// Whether the storage has tables. It may be emptied while work waits.
    fn has_tables(&self) -> bool;

    /// Runs a job in the background, after the code that runs now.
    fn start(&self, job: JobKind);

    /// Sets the alarm, unless it fires by this time anyway. Once the future ends, the alarm
    /// survives an eviction.
    fn wake_by(&self, at_ms: i64) -> LocalBoxFuture<'_, ()>;

    /// Whether the alarm is known to fire by this time, and not before now.
    fn fires_by(&self, at_ms: i64, now_ms: i64) -> bool;

    /// As [`Self::wake_by`], after this many milliseconds, without waiting for it.
    fn wake_within(&self, ms: i64);

    /// Keeps the object active until this work is over, even if its caller disconnects.
    fn keep_alive_until(&self, is_over: Box<dyn Fn() -> bool>);

    /// Restarts the object soon after the answer.
    fn restart(&self);

    /// Notifies a session's sockets that its messages changed.
    fn show(&self, session_id: &Id);

    /// Logs a failure that no caller receives.
    fn log(&self, failure: &Error);
}
