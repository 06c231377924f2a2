//! Writes the settings of an agent's file. The file may set whatever the operations allow.

use super::import_marker::check_restoring;
use super::lines::SettingsIn;
use crate::operation::Agent;
use crate::operations::agent::check_change;
use base::database::{Database, atomically};
use base::error::{Error, Result};
use base::json;
use chat::request::client_tools::check_name;
use chat::run::callbacks::check_targets;
use chat::tools::registered::MAX_TOOLS;
use context::compaction::configure::change_settings;
use store::backup_plan;
use store::config::{ConfigureAgent, change_config};
use store::stored::{REMOVED_TOOLS, write_stored};

/// Writes the line of an agent's settings. `mark` is what the import has written under
/// [`store::stored::RESTORING`].
pub fn write_settings(
    agent: &Agent<'_>,
    mark: Option<&str>,
    db: &dyn Database,
    line: &[u8],
) -> Result<()> {
    let settings: SettingsIn = json::parse(line)?;
    let change = match &settings.config {
        Some(config) => {
            let change: ConfigureAgent = json::parse(config.as_str().as_bytes())?;
            check_change(&change)?;
            check_targets(agent.outbound, &change)?;
            Some(change)
        }
        None => None,
    };
    let compaction = settings
        .compaction
        .map(|part| part.settings())
        .transpose()?;
    if settings.removed_tools.len() > MAX_TOOLS as usize {
        return Err(Error::invalid(
            "removedTools",
            format!("`removedTools` can have at most {MAX_TOOLS} tools."),
        ));
    }
    for name in &settings.removed_tools {
        check_name("removedTools", name)?;
    }
    atomically(db, || {
        check_restoring(db, mark)?;
        if let Some(change) = change {
            let plan = change.backups.given().cloned().flatten();
            change_config(db, &agent.deployed.memory.config, change)?;
            // A backup of half an import would replace a good one.
            if let Some(every_ms) = plan.and_then(|plan| plan.every_ms()) {
                backup_plan::begin_at(db, agent.host.now_ms() + every_ms)?;
            }
        }
        if let Some(own) = compaction {
            change_settings(db, &agent.deployed.compaction, None, own)?;
        }
        if settings.removed_tools.is_empty() {
            Ok(())
        } else {
            write_stored(db, REMOVED_TOOLS, &settings.removed_tools)
        }
    })
}
