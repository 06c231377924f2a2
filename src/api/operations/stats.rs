//! How much there is of an agent, and how much of its isolate's memory is taken.

use serde::{Deserialize, Serialize};

use crate::access::{Effect, Needs};
use crate::api::limits::{DEFAULT_BODY_BYTES, EVENTS_BODY_BYTES};
use crate::api::operation::{Agent, Operation, Reply, RunAtOnce};
use crate::base::allocator::usage;
use crate::base::budget::{ByteBudget, MAX_ANSWER_BYTES, REQUESTS, TURNS};
use crate::base::columns::{find_value, load_values};
use crate::base::database::Database;
use crate::base::error::Result;
use crate::base::json::MAX_INTEGER;
use crate::chat::running_turns::MAX_TURNS;
use crate::log::slices::MAX_EVENT_BYTES;
use crate::search::index::{IndexState, find_index_state};

/// Rows that are counted of one table: all tables together cost at most some
/// 40,000 rows read, at any length.
const MAX_COUNTED_ROWS: i64 = 1_000;

/// Tables that are told. There are about forty, the index's own among them.
const MAX_TABLES: i64 = 100;

/// Shows how large the agent is, how much memory is taken, and what runs.
///
/// Its cost doesn't grow with the agent: of a long table only the first 1,000 rows
/// are counted. Memory and budgets are those of the isolate, which objects share.
#[derive(Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetStats {}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// Of the agent's database, free pages included.
    database_bytes: i64,
    tables: Vec<Table>,
    /// At most so many events there are, deleted ones included: the newest `seq` of
    /// each session added up, of up to 1,000 sessions.
    events_at_most: i64,
    memory: MemoryStats,
    /// What running turns hold.
    turns: Turns,
    /// What bodies and answers hold that are large enough to be counted.
    requests: ReservedBytes,
    search_index: IndexState,
    limits: LimitStats,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Table {
    name: String,
    rows: i64,
    /// There are more than `rows`; no more were counted.
    is_at_least: bool,
}

/// Of wasm. JavaScript's strings and the engine's own memory come on top.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct MemoryStats {
    /// How large the memory is, which is as large as it ever was: it never shrinks.
    wasm_bytes: usize,
    in_use_bytes: usize,
    in_use_peak_bytes: usize,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct Turns {
    /// Of this agent.
    running: usize,
    held_bytes: usize,
    max_bytes: usize,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct ReservedBytes {
    held_bytes: usize,
    max_bytes: usize,
}

/// The limits in force, in bytes where nothing else is said.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
struct LimitStats {
    event_bytes: usize,
    answer_bytes: usize,
    /// Of most operations; openapi.json says each one's.
    body_bytes: usize,
    /// Of the operations that write events, and of a chat's.
    events_body_bytes: usize,
    /// How many turns of one agent run at once.
    running_turns: usize,
}

impl Operation for GetStats {
    const NAME: &'static str = "getStats";
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Nothing;
    #[cfg(test)]
    type Output = Stats;
}

impl RunAtOnce for GetStats {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let usage = usage();
        let turns = held(&TURNS);
        Reply::json(&Stats {
            database_bytes: agent.db.size_bytes()?,
            tables: count_tables(agent.db)?,
            events_at_most: count_events_at_most(agent.db)?,
            memory: MemoryStats {
                wasm_bytes: usage.memory_bytes,
                in_use_bytes: usage.in_use_bytes,
                in_use_peak_bytes: usage.in_use_peak_bytes,
            },
            turns: Turns {
                running: agent.turns.running(),
                held_bytes: turns.held_bytes,
                max_bytes: turns.max_bytes,
            },
            requests: held(&REQUESTS),
            search_index: find_index_state(agent.db)?,
            limits: LimitStats {
                event_bytes: MAX_EVENT_BYTES,
                answer_bytes: MAX_ANSWER_BYTES,
                body_bytes: DEFAULT_BODY_BYTES,
                events_body_bytes: EVENTS_BODY_BYTES,
                running_turns: MAX_TURNS,
            },
        })
    }
}

fn held(budget: &'static std::thread::LocalKey<ByteBudget>) -> ReservedBytes {
    budget.with(|budget| ReservedBytes {
        held_bytes: budget.held_bytes(),
        max_bytes: budget.max_bytes(),
    })
}

/// All tables that hold rows; a virtual one shows what others hold.
fn count_tables(db: &dyn Database) -> Result<Vec<Table>> {
    let sql = "SELECT name
                 FROM sqlite_master
                WHERE type = 'table'
                  AND name GLOB 'cf_agents_*'
                  AND sql NOT LIKE 'CREATE VIRTUAL%'
                ORDER BY name
                LIMIT ?1";
    let mut tables = Vec::new();
    for name in load_values::<String>(db, sql, &[MAX_TABLES.into()])? {
        // Ours are; a name is no value that could be bound.
        if name
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        {
            let rows = count_up_to(db, &name)?;
            tables.push(Table {
                name,
                rows: rows.min(MAX_COUNTED_ROWS),
                is_at_least: rows > MAX_COUNTED_ROWS,
            });
        }
    }
    Ok(tables)
}

fn count_up_to(db: &dyn Database, table: &str) -> Result<i64> {
    let sql = format!("SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT ?1)");
    let rows = find_value(db, &sql, &[(MAX_COUNTED_ROWS + 1).into()])?;
    Ok(rows.unwrap_or(0))
}

fn count_events_at_most(db: &dyn Database) -> Result<i64> {
    let sql = "SELECT coalesce(sum((SELECT max(e.seq)
                                      FROM cf_agents_events AS e
                                     WHERE e.session_id = s.id)), 0)
                 FROM (SELECT id
                         FROM cf_agents_sessions
                        LIMIT ?1) AS s";
    let sum = find_value::<Option<i64>>(db, sql, &[MAX_COUNTED_ROWS.into()])?;
    let sum = sum.flatten().unwrap_or(0);
    Ok(sum.min(MAX_INTEGER))
}
