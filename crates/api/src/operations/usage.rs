//! The spending of agents: by turn, by day or by model.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Agent, Operation, Reply, RunAtOnce};
use access::{Effect, Needs};
use base::error::{Error, Result};
use base::ids::Id;
use base::json::{Count, Limit, MAX_INTEGER};
use conversation::log::ended_turns::{EventPosition, load_ended_turns};
use conversation::log::sessions::session_exists;
use conversation::session::last_turns::load_days;
use conversation::session::usage_days::{DAY_MS, DayUsage, add, load_agents_days, load_stored};

/// The most days and models that one request reads of the agent: four years of three
/// models.
const MAX_READ: usize = 5_000;

/// The grouping of usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum UsageGrouping {
    /// Each turn that ended with an answer, newest first.
    Turn,
    /// Each day with usage, newest first. Days begin at midnight UTC.
    Day,
    /// Each model, the one with the most tokens first.
    Model,
}

/// Shows usage by turn, by day or by model; of a session, or of the whole agent.
///
/// The usage of summaries and reported usage are included by day and by model, but not by turn. If
/// the request has no session,
/// turns are listed session by session. A page reads at most 1,000 events, so it may be
/// empty and still have a `cursor`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct GetUsage {
    session_id: Option<Id>,
    /// Only usage at this time or later. A day is included as a whole.
    since: Option<Count>,
    by: UsageGrouping,
    #[serde(default)]
    limit: Limit<100, 1000>,
    /// The `cursor` of the previous page. Models have one page.
    cursor: Option<String>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsagePage {
    usage: Vec<UsageEntry>,
    /// `null` at the end.
    cursor: Option<String>,
}

/// One turn, day or model.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UsageEntry {
    /// The turn's session.
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<String>,
    /// The first event of the turn's answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_id: Option<String>,
    /// The time when the turn ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended_at: Option<i64>,
    /// The time when the day began.
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<i64>,
    /// The model, by turn and by model; `null`: unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<Option<String>>,
    /// The number of turns that ended, by day and by model.
    #[serde(skip_serializing_if = "Option::is_none")]
    turns: Option<i64>,
    /// The number of these turns that failed, by day and by model.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed_turns: Option<i64>,
    /// Whether the turn failed, by turn. A turn that failed before any output has no entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    has_failed: Option<bool>,
    input_tokens: i64,
    output_tokens: i64,
    /// The part of `inputTokens` that providers read from their caches.
    cached_input_tokens: i64,
    /// By the agent's `prices`, and as reported.
    cost: f64,
}

impl UsageEntry {
    fn new(sum: &DayUsage) -> Self {
        Self {
            turns: Some(sum.turns),
            failed_turns: Some(sum.failed),
            input_tokens: sum.input_tokens,
            output_tokens: sum.output_tokens,
            cached_input_tokens: sum.cached_input_tokens,
            cost: sum.cost,
            ..Self::default()
        }
    }
}

impl Operation for GetUsage {
    const NAME: &'static str = "getUsage";
    const NEEDS: Needs = Needs::Session;
    const EFFECT: Effect = Effect::Nothing;
    type Output = UsagePage;

    fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }
}

impl RunAtOnce for GetUsage {
    fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        if let Some(id) = &self.session_id
            && !session_exists(agent.db, id)?
        {
            return Err(Error::session_not_found(id.as_str()));
        }
        let page = match self.by {
            UsageGrouping::Turn => self.turns(agent)?,
            UsageGrouping::Day => self.days(agent)?,
            UsageGrouping::Model => self.models(agent)?,
        };
        Reply::json(&page)
    }
}

impl GetUsage {
    fn limit(&self) -> usize {
        usize::try_from(self.limit.0).unwrap_or(0)
    }

    fn since(&self) -> i64 {
        self.since.map_or(0, |since| since.0)
    }

    fn turns(&self, agent: &Agent<'_>) -> Result<UsagePage> {
        let before = self.cursor.as_deref().map(parse_position).transpose()?;
        let page = load_ended_turns(
            agent.db,
            self.session_id.as_ref(),
            before.as_ref(),
            self.since(),
            self.limit(),
        )?;
        let usage = page.turns.into_iter().map(|turn| UsageEntry {
            session_id: Some(turn.position.session_id),
            event_id: Some(turn.event_id),
            ended_at: Some(turn.at),
            input_tokens: turn.spent.input_tokens,
            output_tokens: turn.spent.output_tokens,
            cached_input_tokens: turn.spent.cached_input_tokens,
            cost: turn.spent.cost,
            has_failed: Some(turn.spent.has_failed),
            model: Some(turn.spent.model),
            ..UsageEntry::default()
        });
        Ok(UsagePage {
            usage: usage.collect(),
            cursor: page
                .next
                .map(|position| format!("{}:{}", position.seq, position.session_id)),
        })
    }

    fn days(&self, agent: &Agent<'_>) -> Result<UsagePage> {
        let before = match self.cursor.as_deref() {
            Some(cursor) => cursor.parse().map_err(|_| bad_cursor())?,
            None => i64::MAX,
        };
        let mut days = self.sums(agent, &|one| one.model = None)?;
        days.retain(|one| one.day < before);
        days.sort_by_key(|one| std::cmp::Reverse(one.day));
        let is_more = days.len() > self.limit();
        days.truncate(self.limit());
        Ok(UsagePage {
            cursor: days
                .last()
                .filter(|_| is_more)
                .map(|last| last.day.to_string()),
            usage: days
                .iter()
                .map(|one| UsageEntry {
                    day: Some(one.day.saturating_mul(DAY_MS)),
                    ..UsageEntry::new(one)
                })
                .collect(),
        })
    }

    fn models(&self, agent: &Agent<'_>) -> Result<UsagePage> {
        if self.cursor.is_some() {
            return Err(bad_cursor());
        }
        let mut models = self.sums(agent, &|one| one.day = 0)?;
        models.sort_by_key(|one| std::cmp::Reverse(one.tokens()));
        models.truncate(self.limit());
        let usage = models.into_iter().map(|one| UsageEntry {
            model: Some(one.model.clone()),
            ..UsageEntry::new(&one)
        });
        Ok(UsagePage {
            usage: usage.collect(),
            cursor: None,
        })
    }

    /// The usage, grouped by the days and the models that remain after `join`.
    fn sums(&self, agent: &Agent<'_>, join: &dyn Fn(&mut DayUsage)) -> Result<Vec<DayUsage>> {
        let since_day = self.since().div_euclid(DAY_MS);
        let mut all = match &self.session_id {
            Some(id) => load_stored(agent.db, id.as_str())?,
            None => load_agents_days(agent.db, since_day, MAX_READ)?,
        };
        all.extend(load_days(agent.db, self.session_id.as_ref())?);
        let mut sums = Vec::new();
        for mut one in all {
            if one.day >= since_day {
                join(&mut one);
                add(&mut sums, one);
            }
        }
        Ok(sums)
    }
}

fn parse_position(cursor: &str) -> Result<EventPosition> {
    let (seq, session_id) = cursor.split_once(':').ok_or_else(bad_cursor)?;
    let seq: i64 = seq.parse().map_err(|_| bad_cursor())?;
    Ok(EventPosition {
        session_id: session_id.to_owned(),
        seq: seq.clamp(0, MAX_INTEGER),
    })
}

fn bad_cursor() -> Error {
    Error::invalid(
        "cursor",
        "`cursor` must be the `cursor` of an earlier page with the same `by`.",
    )
}
