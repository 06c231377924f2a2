//! What a session has used of its models. A call that is reported under an id
//! counts once, however often it is sent.

use crate::base::columns::find_value;
use crate::base::database::{Database, SqlValue};
use crate::base::error::Result;
use crate::base::host::Host;
use crate::base::ids::Id;
use crate::base::json::MAX_INTEGER;

/// Ids that a session knows at least: its newest. Twice as many are kept at most,
/// of 200 characters each: a retry comes within a few calls, not within thousands.
const KNOWN_CALLS: i64 = 1000;

#[derive(Debug, Default, PartialEq)]
pub struct UsageIncrease {
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// Of the input's.
    pub cached_input_tokens: i64,
    pub cost: f64,
}

/// Adds up. Part of a transaction. A sum stops at what JavaScript holds exactly.
pub fn count_usage(
    db: &dyn Database,
    host: &dyn Host,
    id: &Id,
    more: &UsageIncrease,
) -> Result<()> {
    let params: [SqlValue; 7] = [
        id.as_str().into(),
        more.input_tokens.into(),
        more.output_tokens.into(),
        more.cached_input_tokens.into(),
        more.cost.into(),
        host.now_ms().into(),
        MAX_INTEGER.into(),
    ];
    db.run(
        "UPDATE cf_agents_sessions
            SET input_tokens = min(input_tokens + ?2, ?7),
                output_tokens = min(output_tokens + ?3, ?7),
                cached_input_tokens = min(cached_input_tokens + ?4, ?7),
                cost = cost + ?5,
                updated_at = ?6
          WHERE id = ?1",
        &params,
    )
}

/// Whether the session hears of this call for the first time. Part of a
/// transaction, as is what follows from it.
pub fn note_call(db: &dyn Database, id: &Id, call_id: &Id) -> Result<bool> {
    let noted: Option<i64> = find_value(
        db,
        "INSERT INTO cf_agents_usage_calls (session_id, id, number)
         SELECT s.id, ?2, s.usage_calls + 1
           FROM cf_agents_sessions AS s
          WHERE s.id = ?1
             ON CONFLICT (session_id, id) DO NOTHING
      RETURNING number",
        &[id.as_str().into(), call_id.as_str().into()],
    )?;
    let Some(number) = noted else {
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
