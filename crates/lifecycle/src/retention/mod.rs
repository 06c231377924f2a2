//! Retention: deletes what is older than the rules allow (`store/retention.rs`). The object's alarm
//! runs it at most once a day, in steps; `applyRetention` runs a step on request, and its dry run
//! returns what would be deleted.
//!
//! A run covers the agent's own memory and then session after session. A step is one transaction of
//! bounded size, so requests are served between two steps, and if the object is evicted in a step,
//! the run continues where that step began. Without a rule, no row is read.
//!
//! What counts as old:
//!
//! - A session, by its last write. A deletion by retention is not a write: it moves no session to
//!   the top of a list, and prevents no session from being idle.
//! - An event, by the time when it was written here. A caller's `createdAt` is data. The
//!   events of a log are written in the order of their `seq`, so the old ones are found at
//!   its beginning: the search ends at the first event that is young enough.
//! - A version, by the time when it was replaced.

mod checkpoints;
mod events;
mod manual;
mod memory;
mod sessions;
mod step;
mod walk;
mod work;

pub use manual::{RetentionTarget, preview, retained_until, step_in_session};
pub use step::{Pages, RetentionStep, find_due, is_due, step, step_if_due};
