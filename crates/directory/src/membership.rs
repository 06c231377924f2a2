//! The agent's side of the directory: it registers itself when it is created, and
//! deregisters when it is destroyed.
//!
//! The agent's registration state is a row (`cf_agents_config`), written before the
//! directory is called. If the object is evicted at any point, its alarm reads the row and
//! repeats the call. So the directory may miss an agent, or list a destroyed one, only
//! until the alarm runs.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ask::{TIMEOUT_MS, ask, check_bound};
use super::{DirectoryCall, DirectoryEntry, beginning, part_of};
use base::database::Database;
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json;
use base::outbound::{Outbound, WriteLock};
use base::settings::Setting;
use store::stored::{self, find_stored, write_stored};

/// How long an agent that is being destroyed doesn't register again: longer than the
/// directory may take to answer.
const LEAVING_MS: i64 = 2 * TIMEOUT_MS;

/// The lock under which an agent makes one directory call at a time.
const LOCK_NAME: &str = "directory";

/// An agent that belongs in the directory.
pub struct Member<'a> {
    pub name: &'a str,
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub outbound: &'a dyn Outbound,
}

#[derive(Serialize, Deserialize)]
struct Membership {
    #[serde(rename = "life")]
    lifetime: String,
    state: MemberState,
    /// When the state was set.
    at: i64,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum MemberState {
    /// The directory may not have received the registration yet.
    Joining,
    Joined,
    /// The agent is being destroyed.
    Leaving,
}

/// Whether this Worker has a directory of its agents.
pub fn is_bound(outbound: &dyn Outbound) -> bool {
    outbound.is_bound(Setting::Directory.name())
}

impl Member<'_> {
    /// Registers the agent, unless it is registered. `Some`: the agent is being destroyed,
    /// or another call is in progress; retry after this many milliseconds.
    pub async fn join(&self) -> Result<Option<i64>> {
        let Some(_lock) = self.lock().await else {
            return Ok(Some(TIMEOUT_MS));
        };
        let now_ms = self.host.now_ms();
        let stored = self.find()?;
        let lifetime = match stored {
            Some(stored) if stored.state == MemberState::Joined => return Ok(None),
            Some(stored)
                if stored.state == MemberState::Leaving && now_ms < stored.at + LEAVING_MS =>
            {
                return Ok(Some(stored.at + LEAVING_MS - now_ms));
            }
            Some(stored) => stored.lifetime,
            None => Id::mint_lifetime(self.host).as_str().to_owned(),
        };
        self.write(&lifetime, MemberState::Joining)?;
        self.notify(DirectoryCall::Join(self.entry(&lifetime)))
            .await?;
        // Nobody else writes the row during the lock, but the storage may have been emptied.
        if self.find()?.is_some() {
            self.write(&lifetime, MemberState::Joined)?;
        }
        Ok(None)
    }

    /// Whether the agent has ever registered.
    pub fn is_known(&self) -> Result<bool> {
        Ok(self.find()?.is_some())
    }

    /// Deregisters the agent. The caller must destroy it immediately, without waiting for
    /// anything.
    pub async fn leave(&self) -> Result<()> {
        if !is_bound(self.outbound) {
            return Ok(());
        }
        let Some(_lock) = self.lock().await else {
            return Err(still_listed("the agent is registering at this moment"));
        };
        let Some(stored) = self.find()? else {
            // The directory may still list an earlier agent of this name that was not
            // deregistered.
            let answer = self.notify(DirectoryCall::Leave(self.entry(""))).await;
            return answer.map_err(|error| still_listed(&error.message));
        };
        self.write(&stored.lifetime, MemberState::Leaving)?;
        let answer = self
            .notify(DirectoryCall::Leave(self.entry(&stored.lifetime)))
            .await;
        if let Err(error) = answer {
            // The directory may or may not have processed the call, so the agent registers
            // again.
            self.write(&stored.lifetime, MemberState::Joining)?;
            return Err(still_listed(&error.message));
        }
        Ok(())
    }

    async fn lock(&self) -> Option<WriteLock<'_>> {
        self.outbound.writers().enter(LOCK_NAME, 0).await.ok()
    }

    fn entry(&self, lifetime: &str) -> DirectoryEntry {
        DirectoryEntry {
            name: self.name.to_owned(),
            lifetime: lifetime.to_owned(),
        }
    }

    async fn notify(&self, call: DirectoryCall) -> Result<()> {
        check_bound(self.outbound)?;
        let part = part_of(beginning(self.name));
        let _: Value = ask(self.outbound, &part, &call).await?;
        Ok(())
    }

    fn find(&self) -> Result<Option<Membership>> {
        let stored = find_stored(self.db, stored::DIRECTORY)?;
        // An unreadable row is rewritten.
        Ok(stored.and_then(|stored| json::decode(&stored).ok()))
    }

    fn write(&self, lifetime: &str, state: MemberState) -> Result<()> {
        let at = self.host.now_ms();
        let membership = Membership {
            lifetime: lifetime.to_owned(),
            state,
            at,
        };
        write_stored(self.db, stored::DIRECTORY, &membership)
    }
}

fn still_listed(reason: &str) -> Error {
    Error::storage(reason).with_message(format!(
        "The directory of agents could not be updated, so nothing was destroyed: {reason} Try \
         again."
    ))
}
