//! What a turn says of itself when it is over: why it ended, how often it asked the
//! model, and what it used. The event that ends the turn holds the report, if somebody
//! may ask for it later.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::turn::{Turn, TurnEnding};
use crate::base::columns::find_value;
use crate::base::database::Database;
use crate::base::error::{Code, Error, Result};
use crate::base::ids::Id;
use crate::base::json::{self, FromJson, json};
use crate::models::FinishReason;
use crate::store::config::Config;
use crate::store::spending::TurnSpending;

/// What the turn spent, for the message's metadata. Only an agent with prices sends it.
pub fn usage_metadata(config: Result<Config>, report: &TurnReport) -> Option<Box<RawValue>> {
    config.ok()?.prices?;
    let usage = report.spent.usage();
    json::raw(json::text(&json!({ "usage": usage }))).ok()
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TurnFinish {
    /// The model was done.
    Stop,
    /// The model reached its output limit.
    Length,
    ContentFilter,
    /// A call waits for the client's output or the user's approval: the message's parts
    /// say which.
    ToolCalls,
    /// The turn was stopped by `cancelTurn`, by its page or by a later message.
    Cancelled,
    /// The turn failed.
    Error,
    #[default]
    Other,
}

impl From<FinishReason> for TurnFinish {
    fn from(reason: FinishReason) -> Self {
        match reason {
            FinishReason::Stop => Self::Stop,
            FinishReason::Length => Self::Length,
            FinishReason::ContentFilter => Self::ContentFilter,
            FinishReason::ToolCalls => Self::ToolCalls,
            FinishReason::Error => Self::Error,
            FinishReason::Other => Self::Other,
        }
    }
}

/// Why a turn failed, for a caller who asks later.
#[derive(Clone, Debug, PartialEq, Serialize, FromJson)]
#[serde(rename_all = "camelCase")]
pub struct ReportedFailure {
    code: String,
    message: String,
    /// In how many seconds another try may succeed, if the failure says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<i64>,
}

/// What a turn may fail with. Any other failure is told as `model_failed`.
const FAILURES: [Code; 8] = [
    Code::StepLimitReached,
    Code::ModelOverloaded,
    Code::PayloadTooLarge,
    Code::NotConfigured,
    Code::MessageNotFound,
    Code::RateLimited,
    Code::StorageFailed,
    Code::InvalidRequest,
];

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnReport {
    #[serde(flatten)]
    pub spent: TurnSpending,
    #[serde(default)]
    pub finish_reason: TurnFinish,
    /// How often the model was asked.
    #[serde(default)]
    pub steps: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<ReportedFailure>,
}

impl TurnReport {
    fn new(turn: &Turn, finish_reason: TurnFinish) -> Self {
        Self {
            spent: TurnSpending {
                has_failed: finish_reason == TurnFinish::Error,
                ..turn.spent()
            },
            finish_reason,
            steps: turn.asked(),
            failure: None,
        }
    }

    /// The report of a turn that came to its end.
    pub fn of_ending(turn: &Turn, ending: &TurnEnding) -> Self {
        match ending {
            TurnEnding::Said(reason) => Self::new(turn, (*reason).into()),
            TurnEnding::LeftToClient => Self::new(turn, TurnFinish::ToolCalls),
            TurnEnding::StepLimit => Self::of_failure(turn, &step_limit_reached(turn)),
        }
    }

    pub fn of_cancelled(turn: &Turn) -> Self {
        Self::new(turn, TurnFinish::Cancelled)
    }

    pub fn of_failure(turn: &Turn, error: &Error) -> Self {
        Self {
            failure: Some(ReportedFailure {
                code: error.code.name().to_owned(),
                message: error.message.clone(),
                retry_after: error.details.get("retryAfter").and_then(Value::as_i64),
            }),
            ..Self::new(turn, TurnFinish::Error)
        }
    }

    /// The turn's failure, if it failed.
    pub fn check(&self) -> Result<()> {
        let Some(failure) = &self.failure else {
            return Ok(());
        };
        let is_meant = |code: &Code| code.name() == failure.code;
        let code = FAILURES.into_iter().find(is_meant);
        let code = code.unwrap_or(Code::ModelFailed);
        let error = Error::new(code, failure.message.clone());
        Err(match failure.retry_after {
            Some(seconds) => error.with("retryAfter", seconds),
            None => error,
        })
    }
}

/// The report in an event that ended a turn. If the event says nothing of a turn, since
/// it was edited, the report is empty.
pub fn find_report(db: &dyn Database, session_id: &Id, seq: i64) -> Result<TurnReport> {
    let ends_turn: Option<Option<String>> = find_value(
        db,
        "SELECT ends_turn
           FROM cf_agents_events
          WHERE session_id = ?1
            AND seq = ?2",
        &[session_id.as_str().into(), seq.into()],
    )?;
    let report = ends_turn.flatten().map(|json| json::decode(&json).ok());
    Ok(report.flatten().unwrap_or_default())
}

pub fn step_limit_reached(turn: &Turn) -> Error {
    let steps = turn.max_steps;
    Error::new(
        Code::StepLimitReached,
        format!("The turn was stopped after {steps} steps, which is its limit (`maxSteps`)."),
    )
}
