//! Finds calls of a tool in a log, and results by the ids of their calls.

use super::tool::CALL_ID_PATH;
use base::action::{Action, agents_actions};
use base::columns::{load, load_values};
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::json;
use base::part::kind_of_tool;
use base::{row, sql};

/// SQL: the `tool` column of an event `e`.
const TOOL_JSON: &str = "iif(json_valid(e.tool), e.tool, '{}')";

/// SQL: the tool calls in the row of an event `e`, from a model's event or from a message's
/// parts.
fn calls_in_row() -> String {
    let message = "'{' || e.message || '}'";
    format!(
        "json_each(iif(e.message IS NULL, {TOOL_JSON}, iif(json_valid({message}), {message}, '{{}}')),
                   iif(e.message IS NULL, '$.toolCalls', '$.parts'))"
    )
}

/// The events that may call the tool, each with the time of the request that it belongs to.
/// A turn writes its calls at its end, when their results may already be old. Events with
/// sliced text are included, since only reading the whole event shows whether it calls the
/// tool.
pub fn load_calling(db: &dyn Database, session_id: &Id, tool: &str) -> Result<Vec<(i64, i64)>> {
    let sql = format!(
        "SELECT e.seq,
                coalesce((SELECT min(asked.created_at, asked.written_at)
                            FROM cf_agents_events AS asked
                           WHERE asked.session_id = e.session_id
                             AND asked.seq < e.seq
                             AND asked.action NOT IN {actions}
                           ORDER BY asked.seq DESC
                           LIMIT 1),
                         min(e.created_at, e.written_at))
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.action IN {actions}
            AND (e.message = ''
                 OR (e.action = ?2
                     AND e.message IS NULL
                     AND e.tool IS NULL)
                 OR EXISTS (SELECT 1
                              FROM {calls} AS call
                             WHERE call.value ->> '$.name' = ?3
                                OR call.value ->> '$.toolName' = ?3
                                OR call.value ->> '$.type' = ?4))
          ORDER BY e.seq",
        actions = agents_actions!(),
        calls = calls_in_row()
    );
    let params = [
        session_id.as_str().into(),
        Action::ToolCallRequest.name().into(),
        tool.into(),
        kind_of_tool(tool).into(),
    ];
    load(db, &sql, &params)
}

row! {
    /// A result, as an event of its own.
    pub struct LoggedResult {
        pub seq: i64 = "e.seq",
        pub call_id: String = sql!(TOOL_JSON, " ->> '", CALL_ID_PATH, "'"),
        /// Whether it is a result of the requested tool.
        pub is_of_tool: bool = sql!(TOOL_JSON, " ->> '$.toolName' IS ?4"),
        /// Whether its content is the requested one.
        pub has_content: bool = "e.content IS ?5",
    }
}

/// The results of the calls with these ids.
pub fn load_results(
    db: &dyn Database,
    session_id: &Id,
    call_ids: &[&str],
    tool: &str,
    content: &str,
) -> Result<Vec<LoggedResult>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.action = ?2
            AND {TOOL_JSON} ->> '{CALL_ID_PATH}' IN (SELECT value FROM json_each(?3))",
        LoggedResult::COLUMNS
    );
    let params = [
        session_id.as_str().into(),
        Action::ToolResult.name().into(),
        json::encode(&call_ids)?.into(),
        tool.into(),
        content.into(),
    ];
    load(db, &sql, &params)
}

/// The events with a call that has one of these ids.
pub fn load_callers(db: &dyn Database, session_id: &Id, call_ids: &[&str]) -> Result<Vec<i64>> {
    let sql = format!(
        "SELECT e.seq
           FROM cf_agents_events AS e
          WHERE e.session_id = ?1
            AND e.action IN {actions}
            AND EXISTS (SELECT 1
                          FROM {calls} AS call
                         WHERE call.value ->> '$.id' IN (SELECT value FROM json_each(?2))
                            OR call.value ->> '{CALL_ID_PATH}' IN (SELECT value FROM json_each(?2)))",
        actions = agents_actions!(),
        calls = calls_in_row()
    );
    let params = [session_id.as_str().into(), json::encode(&call_ids)?.into()];
    load_values(db, &sql, &params)
}
