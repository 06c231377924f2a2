//! The tokens and the cost of a session's model calls. A call that is reported with an id
//! counts once, however often the report is sent.

use crate::session::activity;
use crate::session::last_turns;
use crate::session::usage_days::{self, DAY_MS, DayUsage};
use base::columns::find_value;
use base::database::{Database, SqlValue};
use base::error::Result;
use base::host::Host;
use base::ids::Id;
use base::json::MAX_INTEGER;

/// The minimum number of call ids that a session stores; at most twice as many are stored,
/// of 200 characters each. A retry comes within a few calls, not thousands.
const KNOWN_CALLS: i64 = 1000;

#[derive(Debug, Default, PartialEq)]
pub struct UsageIncrease {
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// The part of `input_tokens` that came from the provider's cache.
    pub cached_input_tokens: i64,
    pub cost: f64,
    /// The model that was called; `None`: unknown.
    pub model: Option<String>,
    /// The estimate of the input tokens that a caller received. 0: not reported.
    pub context_tokens: i64,
}

/// Adds to the session's sums and to the day, and adjusts the correction of estimates. Must
/// run in a transaction. Token sums are capped at the highest integer that JavaScript
/// represents exactly.
pub fn count_usage(
    db: &dyn Database,
    host: &dyn Host,
    id: &Id,
    more: &UsageIncrease,
) -> Result<()> {
    let now_ms = host.now_ms();
    let days = [DayUsage {
        day: now_ms.div_euclid(DAY_MS),
        model: more.model.clone(),
        turns: 0,
        failed: 0,
        input_tokens: more.input_tokens,
        output_tokens: more.output_tokens,
        cached_input_tokens: more.cached_input_tokens,
        cost: more.cost,
    }];
    let learnt = last_turns::learn(db, id, more.context_tokens, more.input_tokens)?;
    let params: [SqlValue; 9] = [
        id.as_str().into(),
        more.input_tokens.into(),
        more.output_tokens.into(),
        more.cached_input_tokens.into(),
        more.cost.into(),
        now_ms.into(),
        MAX_INTEGER.into(),
        usage_days::encode_with(db, id.as_str(), &days)?.into(),
        learnt.into(),
    ];
    db.run(
        "UPDATE cf_agents_sessions
            SET input_tokens = min(input_tokens + ?2, ?7),
                output_tokens = min(output_tokens + ?3, ?7),
                cached_input_tokens = min(cached_input_tokens + ?4, ?7),
                cost = cost + ?5,
                usage_days = ?8,
                compaction = iif(?9 IS NOT NULL AND json_valid(coalesce(compaction, '{}')),
                                 json_set(coalesce(compaction, '{}'), '$.calibration', json(?9)),
                                 compaction),
                updated_at = max(updated_at, ?6)
          WHERE id = ?1",
        &params,
    )?;
    activity::record(db, id)?;
    usage_days::count_for_agent(db, &days)
}

/// Stores the id of a call. `true`: the id is new. Must run in the transaction that counts
/// the call.
pub fn record_call(db: &dyn Database, id: &Id, call_id: &Id) -> Result<bool> {
    let inserted: Option<i64> = find_value(
        db,
        "INSERT INTO cf_agents_usage_calls (session_id, id, number)
         SELECT s.id, ?2, s.usage_calls + 1
           FROM cf_agents_sessions AS s
          WHERE s.id = ?1
             ON CONFLICT (session_id, id) DO NOTHING
      RETURNING number",
        &[id.as_str().into(), call_id.as_str().into()],
    )?;
    let Some(number) = inserted else {
        return Ok(false);
    };
    db.run(
        "UPDATE cf_agents_sessions SET usage_calls = ?2 WHERE id = ?1",
        &[id.as_str().into(), number.into()],
    )?;
    if number % KNOWN_CALLS == 0 {
        db.run(
            "DELETE FROM cf_agents_usage_calls
              WHERE session_id = ?1
                AND number <= ?2",
            &[id.as_str().into(), (number - KNOWN_CALLS).into()],
        )?;
    }
    Ok(true)
}
