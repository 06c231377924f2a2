//! A turn's report at its end: why it ended, how often it called the model, and how much it used.
//! The event that ends the turn contains the report, if somebody may request it later.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::RecordedFailure;
pub use crate::record::TurnFinish;
use crate::record::ended::EndedRecord;
use crate::turn::{Turn, TurnEnding};
use base::database::Database;
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json::{self, RawValue, json};
use conversation::log::event_facts::find_ends_turn;
use conversation::session::spending::TurnSpending;
use store::config::Config;

/// The turn's spending, for the message's metadata. Only an agent with prices sends it.
pub fn usage_metadata(config: Result<Config>, report: &TurnReport) -> Option<Box<RawValue>> {
    config.ok()?.prices?;
    let usage = report.spent.usage();
    json::raw(json::text(&json!({ "usage": usage }))).ok()
}

/// The reason why a turn failed, for a caller who requests it later.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportedFailure {
    code: String,
    message: String,
    /// The error's details, as JSON of an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    details: Option<Box<RawValue>>,
    /// The part of the details that older builds stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_after: Option<i64>,
}

/// The most bytes of an error's details in a report. Details are names and numbers; longer ones are
/// left out, so that the report fits its row.
const MAX_DETAILS_BYTES: usize = 4 << 10;

impl ReportedFailure {
    fn of(error: &Error) -> Self {
        Self {
            code: error.code.name().to_owned(),
            message: error.message.clone(),
            details: details_of(error),
            retry_after: None,
        }
    }
}

/// An error's details as they are stored; `None`: there are none.
fn details_of(error: &Error) -> Option<Box<RawValue>> {
    let details = Some(error.details()).filter(|details| !details.is_empty())?;
    let json = json::text(&Value::Object(details));
    json::raw(json)
        .ok()
        .filter(|json| json.get().len() <= MAX_DETAILS_BYTES)
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnReport {
    #[serde(flatten)]
    pub spent: TurnSpending,
    #[serde(default)]
    pub finish_reason: TurnFinish,
    /// The number of requests to the model.
    #[serde(default)]
    pub steps: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failure: Option<ReportedFailure>,
}

impl TurnReport {
    /// The turn's record at its end. `message_id`: the message that it wrote or continued.
    pub fn record(&self, turn: &Turn, ended_at: i64, message_id: Option<&str>) -> EndedRecord {
        let failure = self.failure.as_ref().map(|failure| RecordedFailure {
            code: failure.code.clone(),
            message: failure.message.clone(),
        });
        let mut record = turn.record.clone();
        record.fit();
        EndedRecord {
            request_id: turn.id.clone(),
            ended_at,
            finish_reason: self.finish_reason,
            failure: failure.map(RecordedFailure::shortened),
            message_id: message_id.map(str::to_owned),
            turn: record,
        }
    }

    fn new(turn: &Turn, finish_reason: TurnFinish) -> Self {
        Self {
            spent: TurnSpending {
                has_failed: finish_reason == TurnFinish::Error,
                ..turn.spent()
            },
            finish_reason,
            steps: turn.answer_count(),
            failure: None,
        }
    }

    /// The report of a turn that ended by itself.
    pub fn of_ending(turn: &Turn, ending: &TurnEnding) -> Self {
        match ending {
            TurnEnding::Answered(reason) => Self::new(turn, (*reason).into()),
            TurnEnding::LeftToClient => Self::new(turn, TurnFinish::ToolCalls),
            TurnEnding::StepLimit => Self::of_failure(turn, &step_limit_reached(turn)),
        }
    }

    pub fn of_cancelled(turn: &Turn) -> Self {
        Self::new(turn, TurnFinish::Cancelled)
    }

    pub fn of_failure(turn: &Turn, error: &Error) -> Self {
        Self {
            failure: Some(ReportedFailure::of(error)),
            ..Self::new(turn, TurnFinish::Error)
        }
    }

    /// The turn's failure, if it failed.
    pub fn check(&self) -> Result<()> {
        let Some(failure) = &self.failure else {
            return Ok(());
        };
        // An unknown code of a later build is read as the most likely code.
        let code = Code::find(&failure.code).unwrap_or(Code::ModelFailed);
        let mut error = Error::new(code, failure.message.clone());
        let details = failure.details.as_ref().map(|json| json.get());
        if let Some(Ok(Value::Object(details))) = details.map(json::decode_tree) {
            error = error.with_details(details);
        }
        Err(match failure.retry_after {
            Some(seconds) => error.with_retry_after(seconds),
            None => error,
        })
    }
}

/// The report in an event that ended a turn. If the event contains nothing about a turn, since it
/// was edited, the report is empty.
pub fn find_report(db: &dyn Database, session_id: &Id, seq: i64) -> Result<TurnReport> {
    let ends_turn = find_ends_turn(db, session_id, seq)?;
    let report = ends_turn.and_then(|json| json::decode(&json).ok());
    Ok(report.unwrap_or_default())
}

pub fn step_limit_reached(turn: &Turn) -> Error {
    let steps = turn.max_steps;
    Error::new(
        Code::StepLimitReached,
        format!("The turn was stopped after {steps} steps, the limit set by `maxSteps`."),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a failed turn, restored from the report in its event.
    fn restored(error: &Error) -> Error {
        let report = TurnReport {
            failure: Some(ReportedFailure::of(error)),
            ..TurnReport::default()
        };
        let stored = json::encode(&report).unwrap();
        let read: TurnReport = json::decode(&stored).unwrap();
        read.check().unwrap_err()
    }

    #[test]
    fn stored_failures_round_trip() {
        for code in Code::ALL {
            let plain = Error::new(*code, format!("It is {}.", code.name()));
            let detailed = plain.clone().with("id", "e-1").with_retry_after(7);
            let nested = plain
                .clone()
                .with("fields", json!({"a": [1, "\u{1}", null]}));
            for error in [plain, detailed, nested] {
                assert_eq!(restored(&error), error);
            }
        }
        let long = Error::new(Code::ModelFailed, "x").with("long", "x".repeat(MAX_DETAILS_BYTES));
        assert!(restored(&long).details().is_empty());
    }

    #[test]
    fn details_stored_by_older_builds_are_still_reported() {
        let stored = r#"{"inputTokens":1,"outputTokens":0,"failure":{"code":"rate_limited","message":"Later.","retryAfter":9}}"#;
        let report: TurnReport = json::decode(stored).unwrap();
        let error = Error::new(Code::RateLimited, "Later.").with_retry_after(9);
        assert_eq!(report.check(), Err(error));
    }
}
