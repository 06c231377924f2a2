//! Reports how large an agent is, and how much of its isolate's memory is used.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::limits::{DEFAULT_BODY_BYTES, EVENTS_BODY_BYTES};
use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use access::{Caller, Effect, Needs};
use base::allocator::allocated;
use base::budget::{ByteBudget, MAX_ANSWER_BYTES, REQUESTS, TURNS};
use base::columns::{find_value, load_values};
use base::database::Database;
use base::error::Result;
use base::json::{self, MAX_INTEGER};
use chat::request::delivery::Delivery;
use chat::run::running_turns::MAX_TURNS;
use conversation::index::{IndexState, find_index_state};
use conversation::log::event_facts::count_at_most;
use conversation::log::learning_watermarks::{count_waiting, load_failures};
use conversation::log::slices::MAX_EVENT_BYTES;
use store::callbacks::{FailedCallback, load_failed};
use store::consolidation::find_consolidation;
use store::learn_failure::LearnFailure;

/// The most rows that are counted per table. All tables together cost at most some
/// 40,000 rows read, however long they are.
const MAX_COUNTED_ROWS: i64 = 1_000;

/// The most tables that are shown. There are about forty, including those of the index.
const MAX_TABLES: i64 = 100;

/// The most failed learning passes that are shown.
const MAX_FAILED_PASSES: i64 = 20;

/// Shows how large the agent is, how much memory is used, and what runs.
///
/// The cost of the call doesn't grow with the agent: of a long table only the first
/// 1,000 rows are counted. Memory and limits are the isolate's, which agents may share.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetStats {}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Stats {
    /// The size of the agent's database, free pages included.
    database_bytes: i64,
    tables: Vec<TableStats>,
    /// An upper bound for the number of events, deleted events included: the sum of the
    /// newest `seq` of each session, of up to 1,000 sessions.
    events_at_most: i64,
    memory: MemoryStats,
    /// Memory used by running turns.
    turns: Turns,
    /// Memory of large request bodies and answers.
    requests: ReservedBytes,
    search_index: IndexState,
    /// Calls after turns and memory changes (`onTurnEnd`, `onMemoryChange`).
    callbacks: CallbackStats,
    /// The pending learning, and its failures. `getProposals` shows what was learned.
    learning: LearningStats,
    limits: LimitStats,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LearningStats {
    /// The number of sessions waiting for a learning pass, counted up to 1,000.
    waiting: i64,
    /// The failed learning passes that will be retried, newest first, at most 20.
    failures: Vec<FailedLearningPass>,
    /// The time of the next automatic step of consolidation. `null`: no step is due.
    consolidation_due_at: Option<i64>,
    /// The reason why the last automatic step of consolidation failed. `null`: it did not
    /// fail.
    consolidation_error: Option<LearnError>,
}

/// A failed learning pass.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FailedLearningPass {
    session_id: String,
    #[serde(flatten)]
    error: LearnError,
}

/// The reason why learning failed.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LearnError {
    code: String,
    message: String,
    at: i64,
    /// The number of attempts that have failed in a row.
    attempts: u32,
}

impl From<LearnFailure> for LearnError {
    fn from(failure: LearnFailure) -> Self {
        Self {
            code: failure.code,
            message: failure.message,
            at: failure.at,
            attempts: failure.attempts,
        }
    }
}

impl LearningStats {
    fn load(agent: &Agent<'_>) -> Result<Self> {
        let failed = load_failures(agent.db, MAX_COUNTED_ROWS, MAX_FAILED_PASSES)?;
        let failures = failed.into_iter().filter_map(|(session_id, failure)| {
            let failure: LearnFailure = json::decode(&failure).ok()?;
            Some(FailedLearningPass {
                session_id,
                error: failure.into(),
            })
        });
        let consolidation = find_consolidation(agent.db)?;
        Ok(Self {
            waiting: count_waiting(agent.db, MAX_COUNTED_ROWS)?,
            failures: failures.collect(),
            consolidation_due_at: consolidation.due_at,
            consolidation_error: consolidation.failure.map(LearnError::from),
        })
    }
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TableStats {
    name: String,
    rows: i64,
    /// The table has more than `rows` rows; counting stopped there.
    is_at_least: bool,
}

/// The memory of wasm. JavaScript's strings and the engine's memory are not included.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MemoryStats {
    /// The size of the wasm memory, which never shrinks.
    wasm_bytes: usize,
    in_use_bytes: usize,
    in_use_peak_bytes: usize,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Turns {
    /// Running turns of this agent.
    running: usize,
    held_bytes: usize,
    max_bytes: usize,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ReservedBytes {
    held_bytes: usize,
    max_bytes: usize,
}

/// The limits in force, in bytes unless stated otherwise.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct LimitStats {
    event_bytes: usize,
    answer_bytes: usize,
    /// The longest body of most operations; openapi.json gives each operation's limit.
    body_bytes: usize,
    /// The longest body of chats and of operations that write events.
    events_body_bytes: usize,
    /// The maximum number of concurrent turns of one agent.
    running_turns: usize,
}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CallbackStats {
    /// Calls in progress or waiting for a retry.
    waiting: i64,
    /// Calls that failed permanently, newest first. An agent stores 64 of them.
    failed: Vec<FailedCallback>,
}

impl CallbackStats {
    fn load(agent: &Agent<'_>) -> Result<Self> {
        let (mut failed, waiting) = load_failed(agent.db)?;
        if *agent.caller == Caller::Owner {
            for callback in &mut failed {
                let delivery = match (&callback.session_id, callback.reports_turn) {
                    (Some(session_id), true) => Delivery::of(agent.policy, agent.name, session_id),
                    _ => Delivery::of_memory(agent.policy, agent.name),
                };
                callback.id = delivery.seal(&callback.id);
            }
        }
        Ok(Self { waiting, failed })
    }
}

impl Operation for GetStats {
    const NAME: &'static str = "getStats";
    const NEEDS: Needs = Needs::WholeAgent;
    const EFFECT: Effect = Effect::Nothing;
    type Output = Stats;
}

impl RunAtOnce for GetStats {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let allocated = allocated();
        let turns = reserved_bytes(&TURNS);
        Reply::json(&Stats {
            database_bytes: agent.db.size_bytes()?,
            tables: count_tables(agent.db)?,
            events_at_most: count_events_at_most(agent.db)?,
            memory: MemoryStats {
                wasm_bytes: agent.host.memory_bytes(),
                in_use_bytes: allocated.in_use_bytes,
                in_use_peak_bytes: allocated.in_use_peak_bytes,
            },
            turns: Turns {
                running: agent.turns.running(),
                held_bytes: turns.held_bytes,
                max_bytes: turns.max_bytes,
            },
            requests: reserved_bytes(&REQUESTS),
            search_index: find_index_state(agent.db)?,
            callbacks: CallbackStats::load(agent)?,
            learning: LearningStats::load(agent)?,
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

fn reserved_bytes(budget: &'static std::thread::LocalKey<ByteBudget>) -> ReservedBytes {
    budget.with(|budget| ReservedBytes {
        held_bytes: budget.reserved_bytes(),
        max_bytes: budget.max_bytes(),
    })
}

/// Counts the tables that store rows. A virtual table only shows the rows of others.
fn count_tables(db: &dyn Database) -> Result<Vec<TableStats>> {
    let sql = "SELECT name
                 FROM sqlite_master
                WHERE type = 'table'
                  AND name GLOB 'cf_agents_*'
                  AND sql NOT LIKE 'CREATE VIRTUAL%'
                ORDER BY name
                LIMIT ?1";
    let mut tables = Vec::new();
    for name in load_values::<String>(db, sql, &[MAX_TABLES.into()])? {
        // Our names pass this check. SQL can't bind a table's name as a value.
        if name
            .bytes()
            .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
        {
            let rows = count_up_to(db, &name)?;
            tables.push(TableStats {
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
    Ok(count_at_most(db, MAX_COUNTED_ROWS)?.min(MAX_INTEGER))
}
