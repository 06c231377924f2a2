//! The agent's small values in `cf_agents_config`. Each is read and written as a whole.

use serde::Serialize;

use base::columns::find_value;
use base::database::Database;
use base::error::Result;
use base::json;
use base::sql;

/// The start of the statement that writes a value.
pub const INSERT_VALUE: &str = "INSERT INTO cf_agents_config (key, value)";

/// The key of the agent's compaction settings; see `context/compaction/configure.rs`.
pub const COMPACTION: &str = "compaction";

/// The key of the search index's progress; see `conversation/index/progress.rs`.
pub const SEARCH: &str = "search";

/// The key of the agent's name, if the platform doesn't provide it; see
/// `edge/object/name.rs`.
pub const NAME: &str = "name";

/// The key of the agent's registration in the directory of agents; see
/// `directory/membership.rs`.
pub const DIRECTORY: &str = "directory";
/// The key of an import of the whole agent that has not yet written all of the agent's own
/// lines; see `api/agent_file/import.rs`.
pub const RESTORING: &str = "restoring";

/// The key of the deployed tools that the agent removed; see `chat/tools/rows.rs`.
pub const REMOVED_TOOLS: &str = "removedTools";

/// The key of the progress of a block's consolidation; see `learning/consolidate.rs`.
pub const CONSOLIDATION: &str = "consolidation";

/// The key of the time until which events were written without their authority; see
/// `conversation/session/learn_due.rs`.
pub const UNKNOWN_UNTIL: &str = "unknownUntil";

/// The key of the last session outside the window of activity; see `conversation/session/activity.rs`.
pub const ACTIVITY: &str = "activity";

/// The key of the agent's own settings; see `store/config.rs`.
pub const AGENT: &str = "agent";

/// The values that are part of a whole agent's file. The others are progress markers, or
/// are learned again.
pub const IN_AGENT_FILE: [&str; 3] = [AGENT, COMPACTION, REMOVED_TOOLS];

/// SQL: where the value of a key is, which follows. For a column of a statement about something
/// else.
pub const OF_KEY: &str = "FROM cf_agents_config WHERE key = ";

/// SQL: the value of the key `?1`.
pub const VALUE_OF_1: &str = sql!("(SELECT value ", OF_KEY, "?1)");

/// SQL: the value of the key `?2`.
pub const VALUE_OF_2: &str = sql!("(SELECT value ", OF_KEY, "?2)");

/// Deletes a value.
pub fn delete_stored(db: &dyn Database, key: &str) -> Result<()> {
    db.run("DELETE FROM cf_agents_config WHERE key = ?1", &[key.into()])
}

/// Finds the JSON of a value.
pub fn find_stored(db: &dyn Database, key: &str) -> Result<Option<String>> {
    let sql = "SELECT value FROM cf_agents_config WHERE key = ?1";
    find_value(db, sql, &[key.into()])
}

pub fn write_stored(db: &dyn Database, key: &str, value: &impl Serialize) -> Result<()> {
    let json = json::encode(value)?;
    let sql = format!(
        "{INSERT_VALUE}
         VALUES (?1, ?2)
             ON CONFLICT (key) DO UPDATE
            SET value = excluded.value"
    );
    db.run(&sql, &[key.into(), json.into()])
}
