//! Usage per day and model, so that it need not be summed over the log.
//!
//! A turn writes no row for this. The row of a session's last turn contains a short list of
//! days (`conversation/session/last_turns.rs`). When the list grows long, or when the row
//! is deleted, the list is added to two places: the session's row, and the agent's table.
//! Usage of summaries and reported usage are added to these two immediately. So an agent's
//! usage is the sum of its table and of the lists in the rows of last turns, of which there
//! are few.
//!
//! Days start at midnight UTC. Usage that an imported session had elsewhere is only in the
//! session's own sums.

use serde::{Deserialize, Serialize};

use crate::session::spending::{TurnSpending, is_free};
use base::columns::{find_value, load};
use base::database::Database;
use base::error::Result;
use base::ids::Id;
use base::json::{self, MAX_INTEGER, is_zero};
use base::row;

pub const DAY_MS: i64 = 86_400_000;

/// The most days and models in a session's row: about 10 KiB. The oldest are merged.
const MAX_STORED: usize = 100;

/// The usage on one day with one model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DayUsage {
    /// Days since the epoch.
    pub day: i64,
    /// `None`: the model is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub turns: i64,
    /// How many of the turns failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failed: i64,
    pub input_tokens: i64,
    pub output_tokens: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_input_tokens: i64,
    #[serde(default, skip_serializing_if = "is_free")]
    pub cost: f64,
}

impl DayUsage {
    /// The usage of a turn that ended at `at`.
    pub fn of_turn(spent: &TurnSpending, at: i64) -> Self {
        Self {
            day: at.div_euclid(DAY_MS),
            model: spent.model.clone(),
            turns: 1,
            failed: i64::from(spent.has_failed),
            input_tokens: spent.input_tokens,
            output_tokens: spent.output_tokens,
            cached_input_tokens: spent.cached_input_tokens,
            cost: spent.cost,
        }
    }

    pub fn tokens(&self) -> i64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds another entry's numbers.
    pub fn add(&mut self, more: &Self) {
        let sum = |sum: i64, more: i64| sum.saturating_add(more).clamp(0, MAX_INTEGER);
        self.turns = sum(self.turns, more.turns);
        self.failed = sum(self.failed, more.failed);
        self.input_tokens = sum(self.input_tokens, more.input_tokens);
        self.output_tokens = sum(self.output_tokens, more.output_tokens);
        self.cached_input_tokens = sum(self.cached_input_tokens, more.cached_input_tokens);
        self.cost += more.cost;
    }
}

row! {
    for DayUsage {
        day: i64 = "day",
        model: Option<&str> = "model",
        turns: i64 = "turns",
        input_tokens: i64 = "input_tokens",
        output_tokens: i64 = "output_tokens",
        cached_input_tokens: i64 = "cached_input_tokens",
        cost: f64 = "cost",
        failed: i64 = "failed",
    }
    Ok(Self {
        day,
        model: model
            .filter(|model| !model.is_empty())
            .map(str::to_owned),
        turns,
        input_tokens,
        output_tokens,
        cached_input_tokens,
        cost,
        failed,
    })
}

/// Adds to the entry of the same day and model.
pub fn add(days: &mut Vec<DayUsage>, more: DayUsage) {
    let known = days
        .iter_mut()
        .find(|known| known.day == more.day && known.model == more.model);
    match known {
        Some(known) => known.add(&more),
        None => days.push(more),
    }
}

/// Parses a stored list. A damaged list is dropped: the other sums stay valid.
pub fn parse(json: Option<&str>) -> Vec<DayUsage> {
    json.and_then(|json| json::decode(json).ok())
        .unwrap_or_default()
}

/// The list's stored form; `None` if it is empty.
pub fn encode(days: &[DayUsage]) -> Result<Option<String>> {
    if days.is_empty() {
        return Ok(None);
    }
    json::encode(days).map(Some)
}

/// The list in a session's row.
pub fn load_stored(db: &dyn Database, session_id: &str) -> Result<Vec<DayUsage>> {
    let sql = "SELECT usage_days FROM cf_agents_sessions WHERE id = ?1";
    let json: Option<Option<String>> = find_value(db, sql, &[session_id.into()])?;
    Ok(parse(json.flatten().as_deref()))
}

/// The list in a session's row, with these days added. The caller writes it.
pub fn encode_with(
    db: &dyn Database,
    session_id: &str,
    days: &[DayUsage],
) -> Result<Option<String>> {
    let mut stored = load_stored(db, session_id)?;
    for day in days {
        add(&mut stored, day.clone());
    }
    join_oldest(&mut stored);
    encode(&stored)
}

fn join_oldest(days: &mut Vec<DayUsage>) {
    days.sort_by_key(|one| one.day);
    while days.len() > MAX_STORED {
        let oldest = days.remove(0);
        if let Some(next) = days.first_mut() {
            next.add(&oldest);
            next.model = None;
        }
    }
}

/// Adds the days to the session's row and to the agent's table. Must run in a transaction.
pub fn store(db: &dyn Database, session_id: &Id, days: &[DayUsage]) -> Result<()> {
    if days.is_empty() {
        return Ok(());
    }
    let json = encode_with(db, session_id.as_str(), days)?;
    db.run(
        "UPDATE cf_agents_sessions SET usage_days = ?2 WHERE id = ?1",
        &[session_id.as_str().into(), json.into()],
    )?;
    count_for_agent(db, days)
}

/// Adds the days to the agent's table. Must run in a transaction.
pub fn count_for_agent(db: &dyn Database, days: &[DayUsage]) -> Result<()> {
    let Some(json) = encode(days)? else {
        return Ok(());
    };
    db.run(
        "INSERT INTO cf_agents_usage_days
                (day, model, turns, input_tokens, output_tokens, cached_input_tokens, cost, failed)
         SELECT value ->> 'day', coalesce(value ->> 'model', ''), coalesce(value ->> 'turns', 0),
                value ->> 'inputTokens', value ->> 'outputTokens',
                coalesce(value ->> 'cachedInputTokens', 0), coalesce(value ->> 'cost', 0.0),
                coalesce(value ->> 'failed', 0)
           FROM json_each(?1)
          WHERE true
             ON CONFLICT (day, model) DO UPDATE
            SET turns = min(turns + excluded.turns, ?2),
                failed = min(failed + excluded.failed, ?2),
                input_tokens = min(input_tokens + excluded.input_tokens, ?2),
                output_tokens = min(output_tokens + excluded.output_tokens, ?2),
                cached_input_tokens = min(cached_input_tokens + excluded.cached_input_tokens, ?2),
                cost = cost + excluded.cost",
        &[json.into(), MAX_INTEGER.into()],
    )
}

/// The rows of one day in the agent's table: one per model.
pub fn load_agents_day(db: &dyn Database, day: i64) -> Result<Vec<DayUsage>> {
    let sql = format!(
        "SELECT {} FROM cf_agents_usage_days WHERE day = ?1",
        DayUsage::COLUMNS
    );
    load(db, &sql, &[day.into()])
}

/// The newest rows of the agent's table, starting with a day.
pub fn load_agents_days(db: &dyn Database, since_day: i64, limit: usize) -> Result<Vec<DayUsage>> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_usage_days
          WHERE day >= ?1
          ORDER BY day DESC, model
          LIMIT ?2",
        DayUsage::COLUMNS
    );
    load(db, &sql, &[since_day.into(), (limit as i64).into()])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spent(day: i64, model: &str, tokens: i64) -> DayUsage {
        DayUsage {
            day,
            model: Some(model.to_owned()),
            turns: 1,
            input_tokens: tokens,
            ..DayUsage::default()
        }
    }

    #[test]
    fn each_day_and_model_has_one_entry() {
        let mut days = Vec::new();
        for one in [
            spent(1, "a", 1),
            spent(1, "b", 2),
            spent(1, "a", 3),
            spent(2, "a", 4),
        ] {
            add(&mut days, one);
        }
        let sums: Vec<(i64, i64)> = days
            .iter()
            .map(|day| (day.turns, day.input_tokens))
            .collect();
        assert_eq!(sums, [(2, 4), (1, 2), (1, 4)]);
        assert_eq!(parse(encode(&days).unwrap().as_deref()), days);
        assert_eq!(encode(&[]).unwrap(), None);
        assert_eq!(parse(Some("{")), []);
    }

    #[test]
    fn the_oldest_days_are_merged_without_loss() {
        let mut days: Vec<DayUsage> = (0..MAX_STORED as i64 + 5)
            .rev()
            .map(|day| spent(day, "a", 1))
            .collect();
        join_oldest(&mut days);
        assert_eq!(days.len(), MAX_STORED);
        assert_eq!(
            (days[0].day, days[0].input_tokens, &days[0].model),
            (5, 6, &None)
        );
        assert_eq!(
            days.iter().map(|one| one.turns).sum::<i64>(),
            MAX_STORED as i64 + 5
        );
    }
}
