//! The settings that were deployed for every agent, parsed once per isolate. Each crate
//! receives its own part.

use crate::tools::registered::DeployedTools;
use context::compaction::settings::OwnSettings;
use memory::deployed::DeployedMemory;

#[derive(Default)]
pub struct Deployed {
    pub memory: DeployedMemory,
    pub compaction: OwnSettings,
    pub tools: DeployedTools,
}
