//! A part of the directory, as its object stores it: one table, and the calls that it answers.

use serde_json::{Value, json};

use super::ask::ask;
use super::{DirectoryCall, DirectoryEntry, DirectoryPage, ListedAgent, MAX_PAGE, ROOT, beginning};
use base::columns::{find_value, load};
use base::database::Database;
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json;
use base::outbound::Outbound;
use base::{row, sql};
use store::schema::make_directory;

/// The row that records that the root knows this part. No agent has an empty name.
const KNOWN: &str = "";

/// How long after its last agent left the part notifies the root, and the pause between retries.
pub const RETRY_MS: i64 = 1_000;

/// A part of the directory.
pub struct DirectoryPart<'a> {
    /// The name of the object.
    pub name: &'a str,
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub outbound: &'a dyn Outbound,
}

row! {
    for ListedAgent {
        name: String = "name",
        created_at: i64 = "created_at",
    }
    Ok(Self {
        name,
        created_at,
    })
}

impl DirectoryPart<'_> {
    /// Answers a call; the answer is JSON.
    pub async fn answer(&self, body: &[u8]) -> Result<String> {
        let unread = |_| Error::invalid("do", "The directory does not support this call.");
        let call = json::decode_bytes(body).map_err(unread)?;
        // Listing a part that nobody has used creates no table.
        if let DirectoryCall::List { .. } = &call
            && !self.is_made()?
        {
            return json::encode(&DirectoryPage::default());
        }
        make_directory(self.db)?;
        match call {
            DirectoryCall::Join(entry) => self.join(entry).await,
            DirectoryCall::Leave(entry) => self.leave(entry),
            DirectoryCall::List {
                prefix,
                after,
                limit,
            } => return json::encode(&self.list(&prefix, &after, limit)?),
        }?;
        json::encode(&json!({}))
    }

    /// Sends the root its pending notification; `true`: it is still pending.
    pub async fn wake(&self) -> Result<bool> {
        if !self.is_made()? {
            return Ok(false);
        }
        match self.report_empty().await {
            Ok(()) => Ok(false),
            Err(_) => Ok(true),
        }
    }

    /// Whether the root has yet to be notified that this part is empty. A part that nobody has used
    /// has nothing to report.
    pub fn has_unreported_change(&self) -> Result<bool> {
        if !self.is_made()? {
            return Ok(false);
        }
        let sql = "SELECT 1 FROM cf_agents_directory WHERE name = ?1 AND gone_at IS NOT NULL";
        let found: Option<i64> = find_value(self.db, sql, &[KNOWN.into()])?;
        Ok(found.is_some())
    }

    fn is_made(&self) -> Result<bool> {
        let sql = "SELECT 1 FROM sqlite_master WHERE name = 'cf_agents_directory'";
        let found: Option<i64> = find_value(self.db, sql, &[])?;
        Ok(found.is_some())
    }

    /// If the root can't be notified of a new part, the agent's call fails and is retried:
    /// otherwise no list of all agents would include the part.
    async fn join(&self, entry: DirectoryEntry) -> Result<()> {
        let begins = beginning(&entry.name).map(str::to_owned);
        self.write(&entry.name, &entry.lifetime)?;
        let Some(name) = begins.filter(|_| self.name != ROOT) else {
            return Ok(());
        };
        let sql = "SELECT 1 FROM cf_agents_directory WHERE name = ?1 AND gone_at IS NULL";
        let known: Option<i64> = find_value(self.db, sql, &[KNOWN.into()])?;
        if known.is_some() {
            return Ok(());
        }
        let lifetime = Id::mint_lifetime(self.host).as_str().to_owned();
        let entry = DirectoryEntry {
            name,
            lifetime: lifetime.clone(),
        };
        let _: Value = ask(self.outbound, ROOT, &DirectoryCall::Join(entry)).await?;
        self.write(KNOWN, &lifetime)
    }

    fn write(&self, name: &str, lifetime: &str) -> Result<()> {
        let sql = "INSERT INTO cf_agents_directory (name, life, created_at)
                   VALUES (?1, ?2, ?3)
                       ON CONFLICT (name) DO UPDATE
                      SET life = excluded.life, created_at = excluded.created_at, gone_at = NULL
                    WHERE life <> excluded.life OR gone_at IS NOT NULL";
        let now_ms = self.host.now_ms();
        self.db
            .run(sql, &[name.into(), lifetime.into(), now_ms.into()])
    }

    fn leave(&self, entry: DirectoryEntry) -> Result<()> {
        self.delete(&entry.name, &entry.lifetime)?;
        if self.name == ROOT || !self.list("", "", 1)?.agents.is_empty() {
            return Ok(());
        }
        // The next agent that joins notifies the root again.
        let sql = "UPDATE cf_agents_directory SET gone_at = ?2 WHERE name = ?1";
        let now_ms = self.host.now_ms();
        // The alarm notifies the root, so that the agent does not wait for it.
        self.db.run(sql, &[KNOWN.into(), now_ms.into()])
    }

    /// Notifies the root that this part is empty, if that is pending.
    async fn report_empty(&self) -> Result<()> {
        let sql = "SELECT life FROM cf_agents_directory WHERE name = ?1 AND gone_at IS NOT NULL";
        let lifetime: Option<String> = find_value(self.db, sql, &[KNOWN.into()])?;
        let (Some(lifetime), Some(name)) = (lifetime, self.name.strip_prefix("part:")) else {
            return Ok(());
        };
        let entry = DirectoryEntry {
            name: name.to_owned(),
            lifetime: lifetime.clone(),
        };
        let _: Value = ask(self.outbound, ROOT, &DirectoryCall::Leave(entry)).await?;
        self.delete(KNOWN, &lifetime)
    }

    fn delete(&self, name: &str, lifetime: &str) -> Result<()> {
        // An empty `lifetime` deletes the agent's entry whatever its lifetime: the entry is outdated.
        let sql = "DELETE FROM cf_agents_directory WHERE name = ?1 AND ?2 IN (life, '')";
        self.db.run(sql, &[name.into(), lifetime.into()])
    }

    /// Reads only the rows that it returns, and one more to learn whether others follow.
    fn list(&self, prefix: &str, after: &str, limit: usize) -> Result<DirectoryPage> {
        let limit = limit.clamp(1, MAX_PAGE);
        // The row of the empty name does not belong to an agent.
        let (sql, from) = if prefix > after {
            (
                sql!(
                    "SELECT ",
                    ListedAgent::COLUMNS,
                    " FROM cf_agents_directory
              WHERE name >= +?1 ORDER BY name LIMIT ?2"
                ),
                prefix,
            )
        } else {
            (
                sql!(
                    "SELECT ",
                    ListedAgent::COLUMNS,
                    " FROM cf_agents_directory
              WHERE name > +?1 ORDER BY name LIMIT ?2"
                ),
                after,
            )
        };
        let rows = i64::try_from(limit).unwrap_or(0) + 1;
        let mut agents: Vec<ListedAgent> = load(self.db, sql, &[from.into(), rows.into()])?;
        agents.retain(|agent| agent.name.starts_with(prefix));
        let more = agents.len() > limit;
        agents.truncate(limit);
        Ok(DirectoryPage { agents, more })
    }
}
