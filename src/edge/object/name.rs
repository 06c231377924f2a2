//! The agent's name, as its object knows it.
//!
//! The platform gives an object its name if the object was found by its name. A proxy may find it
//! by its id only, as between two instances of `wrangler dev`. Such an object adopts the name that
//! its caller gives if the object's id is derived from that name, and stores it: alarms and callers
//! over Workers RPC contain no name.

use std::cell::{Cell, OnceCell};

use wasm_bindgen::JsValue;
use worker::Env;
use worker::worker_sys::DurableObjectId;

use crate::edge::storage::Sqlite;
use base::error::{Error, Result};
use base::json;
use base::settings::Setting;
use store::stored::{self, find_stored, write_stored};

pub(super) struct AgentName {
    name: OnceCell<String>,
    /// The name of an object that has no other name.
    id: String,
    env: Env,
    /// Whether the name must still be written.
    is_new: Cell<bool>,
}

impl AgentName {
    pub(super) fn new(id: &DurableObjectId, env: &Env, db: &Sqlite<'_>) -> Result<Self, JsValue> {
        let name = Self {
            name: OnceCell::new(),
            id: id.to_string()?,
            env: env.clone(),
            is_new: Cell::new(false),
        };
        // An object that was never used has no table that could contain a name.
        let known = id.name().or_else(|| {
            let stored = find_stored(db, stored::NAME).ok().flatten()?;
            json::decode(&stored).ok()
        });
        if let Some(known) = known {
            // The cell is empty.
            let _ = name.name.set(known);
        }
        Ok(name)
    }

    pub(super) fn get(&self) -> &str {
        self.name.get().unwrap_or(&self.id)
    }

    /// Whether the object has a name by which others can find it.
    pub(super) fn is_known(&self) -> bool {
        self.name.get().is_some()
    }

    /// Rejects a caller that addresses another agent.
    pub(super) fn check(&self, agent: &str) -> Result<()> {
        if agent == self.get() {
            return Ok(());
        }
        if self.name.get().is_none() && self.makes_this_id(agent) {
            self.is_new.set(self.name.set(agent.to_owned()).is_ok());
            return Ok(());
        }
        Err(Error::invalid(
            "agent",
            "The path names a different agent than the one that this object stores.",
        ))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a namespace makes ids, and has its name in `base/settings.rs`"
    )]
    fn makes_this_id(&self, agent: &str) -> bool {
        let made = self
            .env
            .durable_object(Setting::SessionAgent.name())
            .and_then(|agents| Ok(agents.id_from_name(agent)?.to_string()));
        made.is_ok_and(|id| id == self.id)
    }

    /// Whether nothing must be written.
    pub(super) fn is_stored(&self) -> bool {
        !self.is_new.get()
    }

    /// Writes the name, if it must still be written. The tables must exist.
    pub(super) fn keep(&self, db: &Sqlite<'_>) -> Result<()> {
        match self.name.get().filter(|_| self.is_new.get()) {
            Some(name) => {
                write_stored(db, stored::NAME, name)?;
                self.is_new.set(false);
                Ok(())
            }
            None => Ok(()),
        }
    }
}
