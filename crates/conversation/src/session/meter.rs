//! Meters what limits bound (`store/limits.rs`): the turns that started within a minute,
//! and the tokens and the cost of a day. An agent without limits has no rows here.
//!
//! A model call is counted before it is sent, using an estimate of its input. So a call
//! that is lost to an eviction is still counted, and concurrent calls see each other. When
//! the call is over, its actual usage replaces the estimate.
//!
//! The agent's usage of today is also in the usage tables. These include turns that ended
//! before the limit was set; the counts here include calls that reported no usage. The
//! higher number applies.
//!
//! A day ends at midnight UTC. If the clock is set back, the newest day that was counted
//! continues, and turns that started later than now count as part of this minute. So a
//! wrong clock lifts no limit.

use crate::session::last_turns;
use crate::session::usage_days::{self, DAY_MS};
use base::columns::{find, find_value};
use base::database::{Database, atomically};
use base::error::{Code, Error, ErrorKind, Result};
use base::host::Host;
use base::json::{self, MAX_INTEGER};
use base::row;
use base::settings::Setting;
use store::config::Config;
use store::limits::{Limits, PrincipalLimits};

/// The agent itself, as a principal.
const AGENT: &str = "";

const MINUTE_MS: i64 = 60_000;

/// The most rows of earlier days that are deleted at once.
const MAX_FORGOTTEN: i64 = 100;

/// The limits that apply to a turn or a call.
pub struct Meter<'a> {
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub config: &'a Config,
    /// The limits of the principal that caused the call.
    pub token: Option<&'a PrincipalLimits>,
    /// The budget for the agent's own work that also applies to the call.
    pub budget: Option<&'a PrincipalLimits>,
}

/// A call that was counted with an estimate of its input.
pub struct ReservedCall {
    day: i64,
    pub input_tokens: i64,
    cost: f64,
    model: String,
}

/// The actual usage of a call.
pub struct CallSpending {
    pub input_tokens: i64,
    pub cached_input_tokens: i64,
    pub output_tokens: i64,
}

/// One principal's limits.
struct Bound<'a> {
    payer: Payer,
    holder: &'a str,
    limits: &'a Limits,
}

/// Whose limit it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Payer {
    Agent,
    Token,
    Budget,
}

/// One principal's count on one day.
struct PrincipalCount {
    day: i64,
    tokens: i64,
    cost: f64,
    starts: Vec<i64>,
}

row! {
    for PrincipalCount {
        day: i64 = "day",
        tokens: i64 = "tokens",
        cost: f64 = "cost",
        starts: &str = "starts",
    }
    Ok(Self {
        day,
        tokens,
        cost,
        starts: json::decode(starts)
            .map_err(|_| Error::corrupt_row("starts", "limit"))?,
    })
}

/// Why a turn or a call is refused.
struct LimitRefusal {
    payer: Payer,
    field: &'static str,
    what: &'static str,
    retry_after_s: i64,
}

impl LimitRefusal {
    fn error(&self) -> Error {
        let Self {
            field,
            what,
            retry_after_s,
            ..
        } = self;
        let whose = match self.payer {
            Payer::Agent => "agent",
            Payer::Token | Payer::Budget => "token",
        };
        let error = Error::new(
            Code::RateLimited,
            format!("This {whose} {what} (`{field}`). Try again in {retry_after_s} s."),
        )
        .with_retry_after(*retry_after_s)
        .with_field(*field);
        match self.payer {
            Payer::Agent => error,
            Payer::Token => error.of_kind(ErrorKind::TokenLimited),
            Payer::Budget => error.of_kind(ErrorKind::BudgetLimited),
        }
    }
}

impl<'a> Meter<'a> {
    /// Admits a turn, or refuses it. `is_new`: the turn doesn't continue after a client's
    /// answer, so it counts. Must run in the transaction that writes the turn.
    pub fn admit(&self, is_new: bool) -> Result<()> {
        let now_ms = self.host.now_ms();
        for (bound, mut counted) in self.load(self.bounds(), now_ms, is_new)? {
            if is_new && bound.limits.turns_per_minute.is_some() {
                counted.begin(now_ms);
                self.store(&bound, &counted)?;
            }
        }
        Ok(())
    }

    /// Refuses a new turn that may not start now. Counts nothing.
    pub fn check_turn(&self) -> Result<()> {
        self.load(self.bounds(), self.host.now_ms(), true).map(drop)
    }

    /// Counts a call that is about to be sent, or refuses it. `None`: no limit applies.
    pub fn reserve(&self, model: &str, input_tokens: i64) -> Result<Option<ReservedCall>> {
        let mut bounds = self.bounds();
        bounds.retain(|bound| bound.limits.has_daily() || bound.limits.is_unreadable);
        if bounds.is_empty() {
            return Ok(None);
        }
        let cost = self.cost(model, (input_tokens, 0, 0));
        atomically(self.db, || {
            let mut counted_day = 0;
            for (bound, mut counted) in self.load(bounds, self.host.now_ms(), false)? {
                counted.add(input_tokens, cost);
                self.store(&bound, &counted)?;
                counted_day = counted.day;
            }
            Ok(Some(ReservedCall {
                day: counted_day,
                input_tokens,
                cost,
                model: model.to_owned(),
            }))
        })
    }

    /// Replaces the estimate of a call with its actual usage.
    pub fn settle(&self, reserved: &ReservedCall, spent: &CallSpending) -> Result<()> {
        let cost = self.cost(
            &reserved.model,
            (
                spent.input_tokens,
                spent.cached_input_tokens,
                spent.output_tokens,
            ),
        ) - reserved.cost;
        let tokens = spent.input_tokens.saturating_add(spent.output_tokens) - reserved.input_tokens;
        if tokens == 0 && cost == 0.0 {
            return Ok(());
        }
        atomically(self.db, || {
            for bound in self.bounds() {
                let counted = self.find_newest(bound.holder, reserved.day)?;
                let counted = counted.filter(|counted| counted.day == reserved.day);
                if let (true, Some(mut counted)) = (bound.limits.has_daily(), counted) {
                    counted.add(tokens, cost);
                    self.store(&bound, &counted)?;
                }
            }
            Ok(())
        })
    }

    fn bounds(&self) -> Vec<Bound<'a>> {
        let agents = self.config.limits.as_ref().map(|limits| Bound {
            payer: Payer::Agent,
            holder: AGENT,
            limits,
        });
        let of = |payer, holder: &'a PrincipalLimits| Bound {
            payer,
            holder: &holder.holder,
            limits: &holder.most,
        };
        let tokens = self.token.map(|token| of(Payer::Token, token));
        let budget = self.budget.map(|budget| of(Payer::Budget, budget));
        agents.into_iter().chain(tokens).chain(budget).collect()
    }

    /// Refuses unreadable limits, and cost limits of an agent without prices.
    fn check(&self, bounds: &[Bound<'_>]) -> Result<()> {
        if bounds.iter().any(|bound| bound.limits.is_unreadable) {
            let message = "The deployed `limits` are not valid, and no turn runs until they are. \
                           `getConfig` lists the errors in `problems`.";
            return Err(Error::new(Code::NotConfigured, message)
                .with("binding", Setting::AgentDefaults.name()));
        }
        let has_cost = |bound: &Bound<'_>| bound.limits.cost_per_day.is_some();
        if self.config.prices.is_none() && bounds.iter().any(has_cost) {
            let message = "`limits.costPerDay` requires the agent's `prices`, and there are none. \
                           No turn runs until you set them with `configureAgent`.";
            return Err(Error::new(Code::NotConfigured, message).with("binding", "prices"));
        }
        Ok(())
    }

    fn cost(&self, model: &str, (input, cached, output): (i64, i64, i64)) -> f64 {
        let prices = self.config.prices.as_ref();
        prices.map_or(0.0, |prices| prices.cost(model, input, cached, output))
    }

    /// The day to count: today, or the newest day that was counted.
    fn today(&self, now_ms: i64) -> Result<i64> {
        let sql = "SELECT max(day) FROM cf_agents_metered";
        let newest: Option<Option<i64>> = find_value(self.db, sql, &[])?;
        let today = now_ms.div_euclid(DAY_MS);
        Ok(newest.flatten().map_or(today, |newest| newest.max(today)))
    }

    /// The counts for these limits, or an error if a limit is reached. The limit of turns
    /// per minute only applies if the turn `is_new`.
    fn load(
        &self,
        bounds: Vec<Bound<'a>>,
        now_ms: i64,
        is_new: bool,
    ) -> Result<Vec<(Bound<'a>, PrincipalCount)>> {
        if bounds.is_empty() {
            return Ok(Vec::new());
        }
        self.check(&bounds)?;
        let day = self.today(now_ms)?;
        let mut counts = Vec::new();
        let mut refusals = Vec::new();
        for bound in bounds {
            let counted = self.load_one(&bound, day)?;
            refusals.extend(bound.find_spent_refusal(&counted, now_ms));
            if is_new {
                refusals.extend(bound.find_rate_refusal(&counted, now_ms));
            }
            counts.push((bound, counted));
        }
        let longest = refusals
            .into_iter()
            .max_by_key(|refusal| refusal.retry_after_s);
        longest.map_or(Ok(counts), |refusal| Err(refusal.error()))
    }

    fn load_one(&self, bound: &Bound<'_>, day: i64) -> Result<PrincipalCount> {
        let mut counted = match self.find_newest(bound.holder, day)? {
            Some(counted) if counted.day == day => counted,
            // The minute may have started before midnight.
            newest => PrincipalCount {
                day,
                tokens: 0,
                cost: 0.0,
                starts: newest.map(|newest| newest.starts).unwrap_or_default(),
            },
        };
        if bound.holder == AGENT && bound.limits.has_daily() {
            let (tokens, cost) = load_usage(self.db, day)?;
            counted.tokens = counted.tokens.max(tokens);
            counted.cost = counted.cost.max(cost);
        }
        Ok(counted)
    }

    /// The newer one of this day's row and the previous day's.
    fn find_newest(&self, holder: &str, day: i64) -> Result<Option<PrincipalCount>> {
        let sql = format!(
            "SELECT {}
               FROM cf_agents_metered
              WHERE day IN (?1, ?1 - 1)
                AND holder = ?2
              ORDER BY day DESC
              LIMIT 1",
            PrincipalCount::COLUMNS
        );
        find(self.db, &sql, &[day.into(), holder.into()])
    }

    fn store(&self, bound: &Bound<'_>, counted: &PrincipalCount) -> Result<()> {
        let starts = json::encode(&counted.starts)?;
        self.db.run(
            "INSERT INTO cf_agents_metered (day, holder, tokens, cost, starts)
             VALUES (?1, ?2, ?3, ?4, ?5)
                 ON CONFLICT (day, holder) DO UPDATE
                SET tokens = excluded.tokens,
                    cost = excluded.cost,
                    starts = excluded.starts",
            &[
                counted.day.into(),
                bound.holder.into(),
                counted.tokens.into(),
                counted.cost.into(),
                starts.into(),
            ],
        )?;
        self.db.run(
            "DELETE FROM cf_agents_metered
              WHERE (day, holder) IN (SELECT day, holder
                                        FROM cf_agents_metered
                                       WHERE day < ?1 - 1
                                       ORDER BY day, holder
                                       LIMIT ?2)",
            &[counted.day.into(), MAX_FORGOTTEN.into()],
        )
    }
}

impl PrincipalCount {
    fn begin(&mut self, now_ms: i64) {
        self.starts.retain(|start| *start > now_ms - MINUTE_MS);
        self.starts.push(now_ms);
        self.starts.sort();
    }

    fn add(&mut self, tokens: i64, cost: f64) {
        self.tokens = self.tokens.saturating_add(tokens).clamp(0, MAX_INTEGER);
        self.cost = (self.cost + cost).max(0.0);
    }
}

impl Bound<'_> {
    fn find_rate_refusal(&self, counted: &PrincipalCount, now_ms: i64) -> Option<LimitRefusal> {
        let most = usize::try_from(self.limits.turns_per_minute?.0).ok()?;
        let since = now_ms - MINUTE_MS;
        let mut newest_first = counted.starts.iter().rev().filter(|start| **start > since);
        // Another turn may start when this one is a minute old.
        let oldest = newest_first.nth(most - 1)?;
        Some(LimitRefusal {
            payer: self.payer,
            field: "limits.turnsPerMinute",
            what: "has reached its limit of turns per minute",
            retry_after_s: seconds(oldest + MINUTE_MS - now_ms),
        })
    }

    fn find_spent_refusal(&self, counted: &PrincipalCount, now_ms: i64) -> Option<LimitRefusal> {
        let limits = self.limits;
        let tokens = limits.tokens_per_day;
        let (field, what) = if tokens.is_some_and(|most| counted.tokens >= most.0) {
            ("limits.tokensPerDay", "has used its tokens for today")
        } else if limits
            .cost_per_day
            .is_some_and(|most| counted.cost >= most.0)
        {
            ("limits.costPerDay", "has reached its cost limit for today")
        } else {
            return None;
        };
        Some(LimitRefusal {
            payer: self.payer,
            field,
            what,
            retry_after_s: seconds((counted.day + 1) * DAY_MS - now_ms),
        })
    }
}

/// Rounds up to whole seconds, at least one.
fn seconds(ms: i64) -> i64 {
    (ms.max(1) + 999) / 1_000
}

/// The agent's tokens and cost of the day, according to the usage tables.
fn load_usage(db: &dyn Database, day: i64) -> Result<(i64, f64)> {
    let mut days = last_turns::load_days(db, None)?;
    days.extend(usage_days::load_agents_day(db, day)?);
    let mut sum = usage_days::DayUsage::default();
    for one in days.iter().filter(|one| one.day == day) {
        sum.add(one);
    }
    Ok((sum.tokens(), sum.cost))
}

/// Counts usage that a caller reported for a model of its own. Must run in the transaction
/// that stores the report.
pub fn count_reported(db: &dyn Database, tokens: i64, cost: f64) -> Result<()> {
    db.run(
        "UPDATE cf_agents_metered
            SET tokens = min(tokens + ?2, ?4),
                cost = cost + ?3
          WHERE day = (SELECT max(day) FROM cf_agents_metered)
            AND holder = ?1",
        &[AGENT.into(), tokens.into(), cost.into(), MAX_INTEGER.into()],
    )
}
