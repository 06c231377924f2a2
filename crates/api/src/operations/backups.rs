//! Backups: the file of the whole agent in a bucket of the operator's.
//!
//! The rule this file protects: a backup is in the bucket whole, or not at all. An interrupted
//! backup leaves parts that are invisible, and the bucket drops them.

use crate::json_schema::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::agent_file::export::AgentExport;
use crate::operation::{Agent, Operation, Reply, RunWaiting};
use access::{Effect, Needs};
use base::budget::Reservation;
use base::error::{Code, Error, Result};
use base::json::Limit;
use base::outbound::CallFailure;
use base::outbound::{Archive, ArchiveUpload};
use base::settings::Setting;
use lifecycle::transfer::cpu::CpuAllowance;
use lifecycle::transfer::{PAGE_BYTES, PagedFile as _};
use store::backup_plan::{BackupPlan, BackupProgress, find_progress};
use store::config::load_config;

/// The bytes of a part. R2 accepts parts of 5 MiB and more, at most 10,000 of them: 50 GB, more
/// than an object stores.
const PART_BYTES: usize = 5 << 20;

/// The memory of a backup: the part that is being sent, the one that is being filled, and a page.
const BACKUP_MEMORY_BYTES: usize = 2 * PART_BYTES + PAGE_BYTES;

/// The most backups of an agent that are listed. R2 lists at most this many at once.
const MAX_LISTED: u32 = 1000;

/// The most pages of keys that are scanned to find the newest backups, and the oldest: a backup
/// each hour for more than two years.
const MAX_KEY_PAGES: usize = 20;

/// The digits of the time in a key, so that keys are in the order of their times.
const TIME_DIGITS: usize = 15;

const SUFFIX: &str = ".ndjson";

/// Where to write a backup.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum BackupTarget {
    #[default]
    R2,
}

/// Writes the whole agent as a file to the bucket `BACKUP_BUCKET`, and returns when the
/// file is complete. To restore it, import it into an empty agent.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Backup {
    /// Only `r2`.
    #[serde(default)]
    to: BackupTarget,
    /// The number of this agent's newest backups to retain in the bucket. If omitted: all.
    keep: Option<Limit<7, 1000>>,
}

/// A backup that is in the bucket.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WrittenBackup {
    /// The key in the bucket. It begins with the agent's name, `%`-encoded.
    key: String,
    bytes: i64,
    sessions: i64,
    /// The time when the backup began.
    pub at: i64,
    /// The number of older backups that were deleted.
    deleted: i64,
}

impl Operation for Backup {
    const NAME: &'static str = "backup";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    type Output = WrittenBackup;
}

impl RunWaiting for Backup {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let BackupTarget::R2 = self.to;
        Reply::json(&back_up(agent, self.keep.map(|keep| keep.0)).await?)
    }
}

/// Writes a backup, and deletes the oldest ones so that `keep` stay.
pub async fn back_up(agent: &Agent<'_>, keep: Option<i64>) -> Result<WrittenBackup> {
    let archive = find_archive(agent)?;
    let at = agent.host.now_ms();
    let prefix = prefix_of(agent.name);
    let key = format!("{prefix}{at:0TIME_DIGITS$}{SUFFIX}");
    let _room = Reservation::for_request(BACKUP_MEMORY_BYTES)?;
    let mut upload = archive.begin(&key).await.map_err(failed)?;
    let written = match write(agent, upload.as_mut()).await {
        Ok(written) => upload.complete().await.map(|()| written).map_err(failed),
        Err(error) => Err(error),
    };
    let (bytes, sessions) = match written {
        Ok(written) => written,
        Err(error) => {
            // If this fails too, the bucket drops the parts after a week.
            let _ = upload.abort().await;
            return Err(error);
        }
    };
    let deleted = match keep {
        Some(keep) => rotate(archive, &prefix, keep).await?,
        None => 0,
    };
    Ok(WrittenBackup {
        key,
        bytes,
        sessions,
        at,
        deleted,
    })
}

/// Sends the file in parts. Returns its bytes, and how many sessions it has.
async fn write(agent: &Agent<'_>, upload: &mut dyn ArchiveUpload) -> Result<(i64, i64)> {
    let mut export = AgentExport::begin(agent.db, None)?;
    let mut part = Vec::new();
    let mut bytes = 0;
    let allowance = CpuAllowance::default();
    while let Some(page) = export.next_page(agent.db)? {
        bytes += page.len() as i64;
        let mut rest = page.as_bytes();
        while let Some((head, tail)) = rest.split_at_checked(PART_BYTES - part.len()) {
            part.extend_from_slice(head);
            rest = tail;
            upload
                .put(std::mem::take(&mut part))
                .await
                .map_err(failed)?;
        }
        part.extend_from_slice(rest);
        allowance
            .use_bytes(page.len(), agent.outbound, agent.name)
            .await;
    }
    if !part.is_empty() {
        upload.put(part).await.map_err(failed)?;
    }
    Ok((bytes, export.sessions()))
}

/// Deletes the oldest backups of this agent, so that `keep` stay.
async fn rotate(archive: &dyn Archive, prefix: &str, keep: i64) -> Result<i64> {
    let keys = load_keys(archive, prefix).await?;
    let most = usize::try_from(keep).unwrap_or(usize::MAX);
    let old = keys.len().saturating_sub(most);
    for (key, _) in keys.iter().take(old) {
        archive.delete(key).await.map_err(failed)?;
    }
    Ok(old as i64)
}

/// The keys of this agent's backups with their bytes, the oldest first. Other objects under the
/// agent's name are ignored.
async fn load_keys(archive: &dyn Archive, prefix: &str) -> Result<Vec<(String, i64)>> {
    let mut keys = Vec::new();
    let mut cursor = None;
    for _ in 0..MAX_KEY_PAGES {
        let page = archive.list(prefix, cursor.as_deref(), MAX_LISTED).await;
        let page = page.map_err(failed)?;
        let objects = page.objects.into_iter();
        let ours = objects.filter(|object| time_of(&object.key, prefix).is_some());
        keys.extend(ours.map(|object| (object.key, object.bytes)));
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    Ok(keys)
}

/// When a backup began, by its key. `None`: the key is not of a backup of this agent.
fn time_of(key: &str, prefix: &str) -> Option<i64> {
    let digits = key.strip_prefix(prefix)?.strip_suffix(SUFFIX)?;
    let is_time = digits.len() == TIME_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_time)
}

/// Whether a key is that of a backup of some agent. Other objects of the bucket are ignored.
pub fn is_backup(key: &str) -> bool {
    let slash = key.rfind('/').filter(|slash| *slash > 0);
    let parts = slash.and_then(|slash| key.split_at_checked(slash + 1));
    parts.is_some_and(|(prefix, _)| {
        !prefix.trim_end_matches('/').contains('/') && time_of(key, prefix).is_some()
    })
}

/// The prefix of the keys of an agent's backups: its name, in which all but letters, digits and
/// hyphens is `%`-encoded, and a slash. So no name is the prefix of another's.
fn prefix_of(agent: &str) -> String {
    let mut prefix = String::new();
    for byte in agent.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => prefix.push(char::from(byte)),
            _ => prefix.push_str(&format!("%{byte:02X}")),
        }
    }
    prefix.push('/');
    prefix
}

pub fn find_archive<'a>(agent: &Agent<'a>) -> Result<&'a dyn Archive> {
    let missing = || CallFailure::not_configured(Setting::BackupBucket.name());
    agent.outbound.archive().ok_or_else(missing)
}

pub fn failed(failure: CallFailure) -> Error {
    match failure {
        CallFailure::NotConfigured { binding } => CallFailure::not_configured(&binding),
        failure => Error::new(
            Code::StorageFailed,
            format!(
                "The backup bucket failed: {}. Incomplete backups are ignored. Try again.",
                failure.reason()
            ),
        ),
    }
}

/// The schedule's progress. `None`: the agent has no schedule.
fn find_schedule(agent: &Agent<'_>) -> Result<Option<BackupProgress>> {
    Ok(match load_plan(agent)?.every_ms() {
        Some(_) => Some(find_progress(agent.db)?.unwrap_or_default()),
        None => None,
    })
}

/// The schedule that applies.
pub fn load_plan(agent: &Agent<'_>) -> Result<BackupPlan> {
    let config = load_config(agent.db, &agent.deployed.memory.config)?;
    Ok(config.backups.unwrap_or_default())
}

/// Lists the backups of this agent in the bucket `BACKUP_BUCKET`, newest first, at most a
/// thousand, and the time of the next scheduled one.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ListBackups {}

#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BackupList {
    backups: Vec<ListedBackup>,
    /// The time when the next scheduled backup begins; `null`: the agent has no schedule.
    next_at: Option<i64>,
    /// The reason why the last scheduled backup failed, as a sentence. Absent: it did not fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default)]
    failure: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub struct ListedBackup {
    key: String,
    bytes: i64,
    /// The time when the backup began.
    at: i64,
}

impl Operation for ListBackups {
    const NAME: &'static str = "listBackups";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    type Output = BackupList;
}

impl RunWaiting for ListBackups {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let prefix = prefix_of(agent.name);
        let keys = load_keys(find_archive(agent)?, &prefix).await?;
        let newest = keys.into_iter().rev().take(MAX_LISTED as usize);
        let backups = newest.filter_map(|(key, bytes)| {
            let at = time_of(&key, &prefix)?;
            Some(ListedBackup { key, bytes, at })
        });
        let schedule = find_schedule(agent)?;
        Reply::json(&BackupList {
            backups: backups.collect(),
            next_at: schedule.as_ref().map(|schedule| schedule.next_at),
            failure: schedule.and_then(|schedule| schedule.failure),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_agents_backup_prefix_begins_anothers() {
        assert_eq!(prefix_of("user:42/a b"), "user%3A42%2Fa%20b/");
        assert_eq!(prefix_of(".."), "%2E%2E/");
        assert_eq!(
            time_of("a/001700000000000.ndjson", "a/"),
            Some(1_700_000_000_000)
        );
        for other in [
            "a/x.ndjson",
            "a/1.ndjson",
            "b/001700000000000.ndjson",
            "a/+01700000000000.ndjson",
        ] {
            assert_eq!(time_of(other, "a/"), None, "{other}");
        }
    }
}
