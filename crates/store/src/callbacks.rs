//! The queue of callbacks that notify a service: of a turn's end (`onTurnEnd`) or of a
//! memory change (`onMemoryChange`). A callback is a row, written in the transaction of the
//! event that it reports, so it survives eviction. The row is deleted when the service has
//! answered. A callback that failed `MAX_ATTEMPTS` times is stored as failed.
//!
//! This file manages the rows. `chat/run/callbacks/` sends the calls.

use crate::json_schema::JsonSchema;
use std::cell::Cell;

use serde::{Deserialize, Serialize};

use crate::tables::CALLBACKS;
use base::columns::{find_value, load, load_values};
use base::database::{Database, Delete, atomically};
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json;
use base::outbound::redact_url;
use base::row;

/// How many times a call is attempted.
pub const MAX_ATTEMPTS: usize = 5;

/// The pauses before the second and later attempts: about 13 minutes in total.
const PAUSES_MS: [i64; MAX_ATTEMPTS - 1] = [5_000, 30_000, 120_000, 600_000];

/// The most failed calls that an agent stores. Older ones are deleted.
pub const MAX_FAILED: i64 = 64;

/// The most calls that may wait for a retry. While there are more, a call that fails is not
/// retried.
const MAX_PENDING: i64 = 512;

/// The receiver of a call: either a service binding, or a URL whose origin is in
/// `TOOL_ORIGINS`; `{}`: none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CallbackTarget {
    /// The service binding's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

impl CallbackTarget {
    pub fn is_set(&self) -> bool {
        self.service.is_some() || self.url.is_some()
    }

    /// Conceals the URL for callers without the secret.
    pub fn redact(&mut self) {
        if let Some(url) = &mut self.url {
            *url = redact_url(url);
        }
    }
}

/// Whether this activation of the object wrote a call that the sender has not picked up
/// yet.
#[derive(Default)]
pub struct NewCallbacks(Cell<bool>);

impl NewCallbacks {
    pub fn mark(&self) {
        self.0.set(true);
    }

    /// Whether a call was written since the last check.
    pub fn take(&self) -> bool {
        self.0.replace(false)
    }
}

/// A call to write.
pub struct NewCallback<'a> {
    /// The session that the row is deleted with; "": the agent.
    pub session_id: &'a str,
    /// The last message of the finished turn; "": the call reports a memory change.
    pub message_id: &'a str,
    /// The content of the call, as JSON.
    pub report: String,
}

impl NewCallback<'_> {
    /// Writes the call. Must run in the transaction of what it reports.
    pub fn insert(self, db: &dyn Database, host: &dyn Host) -> Result<()> {
        db.run(
            "INSERT INTO cf_agents_callbacks (id, session_id, message_id, report, due_at)
             VALUES (?1, ?2, ?3, ?4, ?5)",
            &[
                Id::mint_delivery(host).as_str().into(),
                self.session_id.into(),
                self.message_id.into(),
                self.report.into(),
                host.now_ms().into(),
            ],
        )
    }
}

row! {
    /// A call to make.
    pub struct Callback {
        pub number: i64 = "number",
        pub id: String = "id",
    /// "": the agent.
        pub session_id: String = "session_id",
        pub message_id: String = "message_id",
        pub report: String = "report",
        attempts: i64 = "attempts",
    }
}

impl Callback {
    /// Whether it reports a turn's end, not a memory change.
    pub fn reports_turn(&self) -> bool {
        !self.message_id.is_empty()
    }

    /// The calls that are due, longest waiting first, without `in_flight`, the numbers of
    /// calls in progress.
    pub fn load_due(
        db: &dyn Database,
        in_flight: &[i64],
        now_ms: i64,
        limit: i64,
    ) -> Result<Vec<Self>> {
        let sql = format!(
            "SELECT {}
               FROM cf_agents_callbacks
              WHERE failed_at IS NULL
                AND due_at <= ?1
                AND number NOT IN (SELECT value FROM json_each(?2))
              ORDER BY due_at, number
              LIMIT ?3",
            Self::COLUMNS
        );
        let in_flight = json::encode(in_flight)?;
        load(db, &sql, &[now_ms.into(), in_flight.into(), limit.into()])
    }

    /// Deletes the row of a call that was answered.
    pub fn forget(&self, db: &dyn Database) -> Result<()> {
        Delete::from(CALLBACKS, "number = ?1", &[self.number.into()]).run(db)?;
        Ok(())
    }

    /// Records a failed attempt, and schedules the next one.
    pub fn postpone(&self, db: &dyn Database, now_ms: i64, reason: &str) -> Result<()> {
        let attempts = self.attempts + 1;
        let pause_ms = usize::try_from(self.attempts)
            .ok()
            .and_then(|index| PAUSES_MS.get(index).copied());
        atomically(db, || {
            let sql = "SELECT count(*) FROM cf_agents_callbacks WHERE failed_at IS NULL";
            let pending: i64 = find_value(db, sql, &[])?.unwrap_or(0);
            let is_abandoned = pause_ms.is_none() || pending > MAX_PENDING;
            db.run(
                "UPDATE cf_agents_callbacks
                    SET attempts = ?2,
                        due_at = ?3,
                        reason = ?4,
                        failed_at = ?5
                  WHERE number = ?1",
                &[
                    self.number.into(),
                    attempts.into(),
                    (now_ms + pause_ms.unwrap_or(0)).into(),
                    reason.into(),
                    is_abandoned.then_some(now_ms).into(),
                ],
            )?;
            if is_abandoned {
                Delete::from(
                    CALLBACKS,
                    "failed_at IS NOT NULL
                     AND number NOT IN (SELECT number
                                          FROM cf_agents_callbacks
                                         WHERE failed_at IS NOT NULL
                                         ORDER BY failed_at DESC, number DESC
                                         LIMIT ?1)",
                    &[MAX_FAILED.into()],
                )
                .run(db)?;
            }
            Ok(())
        })
    }
}

/// When the next call is due.
pub fn find_next_due(db: &dyn Database) -> Result<Option<i64>> {
    let sql = "SELECT min(due_at) FROM cf_agents_callbacks WHERE failed_at IS NULL";
    find_value::<Option<i64>>(db, sql, &[]).map(Option::flatten)
}

/// Deletes a call of a session, or of the agent; `false`: there is no such call.
pub fn delete_of_session(db: &dyn Database, session_id: &str, id: &Id) -> Result<bool> {
    let key = [session_id.into(), id.as_str().into()];
    Ok(Delete::from(CALLBACKS, "session_id = ?1 AND id = ?2", &key).run(db)? > 0)
}

/// Whether a session has calls to make.
pub fn has_session_any(db: &dyn Database, session_id: &Id) -> Result<bool> {
    let sql = "SELECT 1 FROM cf_agents_callbacks WHERE session_id = ?1 LIMIT 1";
    Ok(find_value::<i64>(db, sql, &[session_id.as_str().into()])?.is_some())
}

/// Deletes the calls that report turns which ended with one of these messages. Part of a
/// transaction.
pub fn delete_of_messages(db: &dyn Database, session_id: &Id, ids: &[String]) -> Result<()> {
    Delete::from(
        CALLBACKS,
        "session_id = ?1
         AND message_id IN (SELECT value FROM json_each(?2))",
        &[session_id.as_str().into(), json::encode(&ids)?.into()],
    )
    .run(db)?;
    Ok(())
}

/// The calls about changes of a block, or of one of its items. Omitted fields match
/// everything.
#[derive(Default)]
pub struct ReportsOfBlock<'a> {
    /// The session that owns the block; "": the agent.
    pub scope: &'a str,
    /// The block's label in lower case.
    pub block: &'a str,
    pub key: Option<&'a str>,
    pub versions: Option<&'a [i64]>,
    pub up_to_version: Option<i64>,
}

impl ReportsOfBlock<'_> {
    /// Deletes the calls. Part of a transaction.
    pub fn delete(&self, db: &dyn Database) -> Result<()> {
        let sql = "SELECT number
                     FROM cf_agents_callbacks
                    WHERE session_id = ?1
                      AND message_id = ''
                      AND report ->> '$.block' = ?2
                      AND (?3 IS NULL OR report ->> '$.key' = ?3)
                      AND (?4 IS NULL
                           OR report ->> '$.version' IN (SELECT value FROM json_each(?4)))
                      AND (?5 IS NULL OR report ->> '$.version' <= ?5)";
        let versions = self.versions.map(|versions| json::encode(&versions));
        let params = [
            self.scope.into(),
            self.block.into(),
            self.key.into(),
            versions.transpose()?.into(),
            self.up_to_version.into(),
        ];
        let numbers: Vec<i64> = load_values(db, sql, &params)?;
        if numbers.is_empty() {
            return Ok(());
        }
        // By their numbers: a purge overwrites the reports before it deletes the rows.
        Delete::from(
            CALLBACKS,
            "number IN (SELECT value FROM json_each(?1))",
            &[json::encode(&numbers)?.into()],
        )
        .run(db)?;
        Ok(())
    }
}

/// A call that failed permanently, as `getStats` shows it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedCallback {
    /// The delivery's id, the same for every attempt. A caller without the secret is shown only its
    /// beginning, which no request can use.
    pub id: String,
    /// The session of the turn or the block. Absent: a block of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Id>,
    attempts: i64,
    failed_at: i64,
    /// The reason why the last try failed.
    reason: String,
    /// Whether it reports a turn's end, not a change of memory.
    #[serde(skip)]
    pub reports_turn: bool,
}

row! {
    for FailedCallback {
        id: String = "id",
        session_id: Option<&str> = "nullif(session_id, '')",
        attempts: i64 = "attempts",
        failed_at: i64 = "failed_at",
        reason: String = "coalesce(reason, '')",
        reports_turn: i64 = "message_id <> ''",
    }
    {
        let session_id = session_id.map(str::to_owned);
        let session_id = session_id.map(Id::parse).transpose();
        Ok(Self {
            id,
            session_id: session_id.map_err(Error::storage)?,
            attempts,
            failed_at,
            reason,
            reports_turn: reports_turn != 0,
        })
    }
}

/// The calls that failed permanently, newest first, and the number of pending calls.
pub fn load_failed(db: &dyn Database) -> Result<(Vec<FailedCallback>, i64)> {
    let sql = format!(
        "SELECT {}
           FROM cf_agents_callbacks
          WHERE failed_at IS NOT NULL
          ORDER BY failed_at DESC, number DESC
          LIMIT ?1",
        FailedCallback::COLUMNS
    );
    let failed = load(db, &sql, &[MAX_FAILED.into()])?;
    let sql = "SELECT count(*)
                 FROM (SELECT 1
                         FROM cf_agents_callbacks
                        WHERE failed_at IS NULL
                        LIMIT ?1)";
    let waiting = find_value(db, sql, &[(2 * MAX_PENDING).into()])?;
    Ok((failed, waiting.unwrap_or(0)))
}
