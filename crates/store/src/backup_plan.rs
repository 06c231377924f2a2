//! Scheduled backups: the setting `backups` of an agent, and their progress. An agent
//! without a schedule has no row for it. `api/jobs/backups.rs` makes the backups.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use super::limits::AtMost;
use super::stored::{delete_stored, find_stored, write_stored};
use base::database::Database;
use base::error::{Error, Result};
use base::json::{self, Limit};

const KEY: &str = "backups";

/// The maximum interval between two backups: a year.
const MAX_HOURS: i64 = 8_760;

/// The maximum number of backups that a schedule retains, and the default.
const MAX_RETAINED: i64 = 1_000;
const DEFAULT_RETAINED: i64 = 7;

/// The agent's backup schedule, and the number of backups to retain.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct BackupPlan {
    /// The interval between backups in hours. Default: no schedule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub every_hours: Option<AtMost<MAX_HOURS>>,
    /// The number of this agent's newest backups to retain in the bucket.
    pub keep: Limit<DEFAULT_RETAINED, MAX_RETAINED>,
}

impl BackupPlan {
    /// Milliseconds between two backups. `None`: there is no schedule.
    pub fn every_ms(&self) -> Option<i64> {
        Some(self.every_hours.as_ref()?.0 * 60 * 60 * 1000)
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BackupProgress {
    /// When the next backup starts; 0: immediately.
    pub next_at: i64,
    /// When the newest backup in the bucket was started.
    pub last_at: Option<i64>,
    /// The reason why no backup has succeeded since, as a sentence.
    pub failure: Option<String>,
}

pub fn find_progress(db: &dyn Database) -> Result<Option<BackupProgress>> {
    match find_stored(db, KEY)? {
        Some(json) => json::decode(&json)
            .map(Some)
            .map_err(|_| Error::corrupt_row(KEY, "configuration")),
        None => Ok(None),
    }
}

pub fn write_progress(db: &dyn Database, progress: &BackupProgress) -> Result<()> {
    write_stored(db, KEY, progress)
}

/// Deletes the progress when the schedule has been removed.
pub fn forget_progress(db: &dyn Database) -> Result<()> {
    delete_stored(db, KEY)
}

/// Schedules the next backup for this time. Must run in a transaction.
pub fn begin_at(db: &dyn Database, next_at: i64) -> Result<()> {
    let progress = find_progress(db)?.unwrap_or_default();
    write_progress(
        db,
        &BackupProgress {
            next_at,
            ..progress
        },
    )
}

/// Schedules an immediate check. Must run in the transaction that sets the schedule.
pub fn ask(db: &dyn Database) -> Result<()> {
    begin_at(db, 0)
}
