//! Notifies services of turns' ends and of changes of memory (`chat/run/callbacks/`).

use super::job::{Job, JobTiming, Step};
use base::background::{CHECK_AFTER_MS, JobKind};
use chat::run::callbacks::CallbackSender;
use store::callbacks::find_next_due;

pub const JOB: Job = Job {
    kind: JobKind::Callbacks,
    find_due: |agent| find_next_due(agent.db),
    step: |agent, _| {
        Box::pin(async move {
            let sender = CallbackSender {
                memory: agent.memory(),
                policy: agent.policy,
                in_flight: &agent.work.callbacks,
            };
            Ok(sender.call_due().await?.map_or(Step::Done, Step::At))
        })
    },
    timing: JobTiming::Background,
    max_steps: 1,
    pause_ms: CHECK_AFTER_MS,
    guard_ms: Some(CHECK_AFTER_MS),
    retry_ms: None,
};
