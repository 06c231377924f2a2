//! Retention: deletes what is older than the rules say (`store/retention.rs`). The object's
//! alarm runs it at most once a day, in steps; `applyRetention` takes a step by hand, and
//! its dry run says what would go.
//!
//! A run goes through the agent's own memory and then from session to session. A step is one
//! transaction of bounded size, so requests are served between two steps, and an object that
//! dies in a step goes on where the step began. Without a rule, no row is read.
//!
//! What counts as old:
//!
//! - A session, by its last write. A deletion by retention is not a write: it moves no session to
//!   the top of a list, and keeps no session from being idle.
//! - An event, by the time when it was written here. A caller's `createdAt` is data. The
//!   events of a log are written in the order of their `seq`, so the old ones are found at
//!   its beginning: the search ends at the first event that is young enough.
//! - A version, by the time when another one took its place.

mod by_hand;
mod checkpoints;
mod erase;
mod events;
mod memory;
mod sessions;
mod step;
mod walk;
mod work;

pub use by_hand::{RetentionPlace, kept_until, preview, step_in_session};
pub use step::{Pages, RetentionStep, is_due, step, step_if_due};
