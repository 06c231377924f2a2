//! One background job, as a value.

use crate::operation::Agent;
use base::background::JobKind;
use base::error::Result;
use base::outbound::LocalBoxFuture;

/// The pause after a failure, for jobs that must not be retried immediately.
pub const RETRY_MS: i64 = 3_600_000;

pub struct Job {
    pub kind: JobKind,
    /// When the job is due. `None`: it has no work.
    pub(super) find_due: fn(&Agent<'_>) -> Result<Option<i64>>,
    pub(super) step: for<'a> fn(&'a Agent<'_>, &'a mut Run) -> LocalBoxFuture<'a, Result<Step>>,
    pub timing: JobTiming,
    /// How many steps run in a row, with other requests between them.
    pub(super) max_steps: usize,
    /// The shortest time until the alarm that continues the job.
    pub(super) pause_ms: i64,
    /// When the alarm fires if the object is evicted while the job runs. `None`: the job runs in an
    /// alarm, which the platform repeats.
    pub(super) guard_ms: Option<i64>,
    /// When a failed job is tried again. `None`: by the alarm of `guard_ms`, or by the next
    /// request.
    pub(super) retry_ms: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobTiming {
    /// First, before anything waits.
    Immediate,
    /// In the background: the job waits for others, and the next alarm must not wait for it.
    Background,
    /// In the alarm, which has a CPU allowance of its own.
    Alarm,
}

/// The state of one run, from step to step.
#[derive(Default)]
pub struct Run {
    pub(super) has_cleared_pages: bool,
}

/// The outcome of a step.
pub enum Step {
    /// More work is due now.
    More,
    /// The job is due again at this time.
    At(i64),
    Done,
}
