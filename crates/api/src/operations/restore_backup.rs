//! Restores a backup: imports the file in the bucket into this agent, one chunk at a time.

use crate::json_schema::JsonSchema;
use serde::Deserialize;

use super::backups::{failed, find_archive, is_backup};
use crate::agent_file::import::AgentImport;
use crate::agent_file::import::ImportedAgent;
use crate::file_import::FileImport as _;
use crate::jobs::is_backup_due;
use crate::operation::{Agent, Operation, Reply, RunWaiting};
use access::{Effect, Needs};
use base::budget::Reservation;
use base::error::{Error, Result};
use base::json;
use base::outbound::Archive;
use lifecycle::retention::is_due;
use lifecycle::transfer::cpu::CpuAllowance;
use store::restores::RestoreAdmission;

/// The bytes of one read.
const PIECE_BYTES: i64 = 1 << 20;

/// The most bytes of a key: R2's limit is 1,024.
const MAX_KEY_BYTES: usize = 1024;

/// Imports a backup of this agent, or of another one, from the bucket `BACKUP_BUCKET`. The
/// agent must be empty; to empty it, use `destroy`.
///
/// A long restore continues if its caller disconnects. If you repeat the call, it waits for
/// the running restore and returns its answer. If a restore was interrupted, repeat the
/// call: it skips what is already there.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RestoreBackup {
    /// The key in the bucket, from `listBackups`.
    key: String,
    /// As in an import: accept the `source` of blocks, MCP servers and frozen prompts from
    /// the backup.
    #[serde(default)]
    allow_sources: bool,
}

impl Operation for RestoreBackup {
    const NAME: &'static str = "restoreBackup";
    const NEEDS: Needs = Needs::Secret;
    const EFFECT: Effect = Effect::Agent;
    type Output = ImportedAgent;
}

impl RunWaiting for RestoreBackup {
    async fn run(self, agent: &Agent<'_>) -> Result<Reply> {
        let archive = find_archive(agent)?;
        if self.key.len() > MAX_KEY_BYTES || !is_backup(&self.key) {
            return Err(no_backup("`key` must be a key from `listBackups`."));
        }
        loop {
            let restores = &agent.work.restores;
            let running = match restores.begin(&self.key, self.allow_sources)? {
                RestoreAdmission::Begins(lease) => {
                    let running = lease.running();
                    agent
                        .background
                        .keep_alive_until(Box::new(move || running.is_over()));
                    let answer = self.restore(agent, archive).await;
                    lease.end(&answer);
                    return answer.map(Reply::text);
                }
                RestoreAdmission::Runs(running) => running,
            };
            running.wait(agent.outbound).await;
            // An interrupted restore has no answer, and starts again.
            if let Some(answer) = running.answer() {
                return answer.map(Reply::text);
            }
        }
    }
}

impl RestoreBackup {
    async fn restore(&self, agent: &Agent<'_>, archive: &dyn Archive) -> Result<String> {
        let mut import = AgentImport::new(agent, self.allow_sources);
        let mut reservation = Reservation::for_request(0)?;
        let allowance = CpuAllowance::default();
        let (mut offset, mut total) = (0, 1);
        while offset < total {
            let read = archive.read(&self.key, offset, PIECE_BYTES).await;
            let piece = match read {
                Ok(Some(piece)) if !piece.bytes.is_empty() => piece,
                Ok(Some(_)) => break,
                Ok(None) => {
                    import.abandon(agent.db)?;
                    return Err(no_backup("The bucket has no such backup."));
                }
                Err(failure) => {
                    import.abandon(agent.db)?;
                    return Err(failed(failure));
                }
            };
            total = piece.total;
            offset += piece.bytes.len() as i64;
            // The import keeps the incomplete line and the unwritten rows in memory.
            drop(reservation);
            let needed = import.buffered_bytes() + piece.bytes.len();
            reservation = match Reservation::for_request(needed) {
                Ok(reservation) => reservation,
                Err(error) => {
                    import.abandon(agent.db)?;
                    return Err(error);
                }
            };
            import.push(agent.db, agent.host, &piece.bytes)?;
            allowance
                .use_bytes(piece.bytes.len(), agent.outbound, agent.name)
                .await;
        }
        let imported = import.end(agent.db, agent.host)?;
        let has_rules = is_due(&agent.memory())? || is_backup_due(agent)?;
        agent.schedule_retention(has_rules);
        json::encode(&imported)
    }
}

fn no_backup(sentence: &str) -> Error {
    Error::invalid("key", sentence)
}
