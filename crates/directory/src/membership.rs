//! The agent's own side of the directory: it writes itself in when it is made, and out
//! when it is destroyed.
//!
//! The agent keeps its last word to the directory in a row (`cf_agents_config`), written before the
//! directory is asked. After a death at any point, the agent's alarm reads the row and says the
//! same again. So the directory may miss an agent, or name one that is gone, for as long as an
//! alarm takes, and no longer.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ask::{PATIENCE_MS, ask, check_bound};
use super::{DirectoryCall, DirectoryEntry, beginning, part_of};
use base::database::Database;
use base::error::{Error, Result};
use base::host::Host;
use base::ids::Id;
use base::json;
use base::outbound::{Outbound, WriteLock};
use base::settings::Setting;
use store::stored::{self, find_stored, write_stored};

/// For so long an agent that is being destroyed does not write itself in again: longer than
/// the directory may take to answer.
const LEAVING_MS: i64 = 2 * PATIENCE_MS;

/// The lock that lets an agent say one thing to the directory at a time.
const PLACE: &str = "directory";

/// An agent that is to stand in the directory.
pub struct Member<'a> {
    pub name: &'a str,
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub outbound: &'a dyn Outbound,
}

#[derive(Serialize, Deserialize)]
struct Membership {
    life: String,
    state: MemberState,
    /// Since when.
    at: i64,
}

#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum MemberState {
    /// The directory may not have heard of the agent yet.
    Joining,
    Joined,
    /// The agent is being destroyed.
    Leaving,
}

/// Whether agents of this Worker stand in a directory.
pub fn is_there(outbound: &dyn Outbound) -> bool {
    outbound.is_bound(Setting::Directory.name())
}

impl Member<'_> {
    /// Writes the agent in, unless it is. `Some`: the agent is being destroyed, or another call
    /// does it now; look again after so many milliseconds.
    pub async fn join(&self) -> Result<Option<i64>> {
        let Some(_lock) = self.lock().await else {
            return Ok(Some(PATIENCE_MS));
        };
        let now_ms = self.host.now_ms();
        let stored = self.find()?;
        let life = match stored {
            Some(stored) if stored.state == MemberState::Joined => return Ok(None),
            Some(stored)
                if stored.state == MemberState::Leaving && now_ms < stored.at + LEAVING_MS =>
            {
                return Ok(Some(stored.at + LEAVING_MS - now_ms));
            }
            Some(stored) => stored.life,
            None => Id::mint_life(self.host).as_str().to_owned(),
        };
        self.write(&life, MemberState::Joining)?;
        self.say(DirectoryCall::Join(self.entry(&life))).await?;
        // Nobody else writes the row while the lock is held, but the storage may be empty.
        if self.find()?.is_some() {
            self.write(&life, MemberState::Joined)?;
        }
        Ok(None)
    }

    /// Whether the agent has ever said that it is there.
    pub fn is_known(&self) -> Result<bool> {
        Ok(self.find()?.is_some())
    }

    /// Writes the agent out. The caller destroys it at once, without waiting for anything.
    pub async fn leave(&self) -> Result<()> {
        if !is_there(self.outbound) {
            return Ok(());
        }
        let Some(_lock) = self.lock().await else {
            return Err(still_there("the agent is registering at this moment"));
        };
        let Some(stored) = self.find()? else {
            // The directory may know the name from a time when nobody wrote it out.
            let said = self.say(DirectoryCall::Leave(self.entry(""))).await;
            return said.map_err(|error| still_there(&error.message));
        };
        self.write(&stored.life, MemberState::Leaving)?;
        let said = self
            .say(DirectoryCall::Leave(self.entry(&stored.life)))
            .await;
        if let Err(error) = said {
            // Whether the directory has heard it is not known: the agent says that it is there.
            self.write(&stored.life, MemberState::Joining)?;
            return Err(still_there(&error.message));
        }
        Ok(())
    }

    async fn lock(&self) -> Option<WriteLock<'_>> {
        self.outbound.writers().enter(PLACE, 0).await.ok()
    }

    fn entry(&self, life: &str) -> DirectoryEntry {
        DirectoryEntry {
            name: self.name.to_owned(),
            life: life.to_owned(),
        }
    }

    async fn say(&self, call: DirectoryCall) -> Result<()> {
        check_bound(self.outbound)?;
        let part = part_of(beginning(self.name));
        let _: Value = ask(self.outbound, &part, &call).await?;
        Ok(())
    }

    fn find(&self) -> Result<Option<Membership>> {
        let stored = find_stored(self.db, stored::DIRECTORY)?;
        // A row that nobody can read is written anew.
        Ok(stored.and_then(|stored| json::decode(&stored).ok()))
    }

    fn write(&self, life: &str, state: MemberState) -> Result<()> {
        let at = self.host.now_ms();
        let membership = Membership {
            life: life.to_owned(),
            state,
            at,
        };
        write_stored(self.db, stored::DIRECTORY, &membership)
    }
}

fn still_there(reason: &str) -> Error {
    Error::storage(reason).with_message(format!(
        "The directory of agents could not be updated, so nothing was destroyed: {reason} Try \
         again."
    ))
}
