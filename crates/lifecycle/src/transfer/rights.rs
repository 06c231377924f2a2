//! The rights that a file requires. To import a line, a caller must be allowed to use the
//! operations that write its data. To export a session, a caller must be allowed to use the
//! operations that show its data.
//!
//! Invariant: a file is data, and can't bypass an operation. No operation writes a frozen prompt or
//! a block's backend. Lines with these are only accepted if the sender has the secret and declares
//! that they trust the file.

use crate::tables::find_readers;
use crate::transfer::rules::{GET_SESSION, LOAD_EVENTS, rule};
use access::{AccessRule, Caller, Effect, needs_secret, permit, permit_role};
use base::action::Action;
use base::database::Database;
use base::error::{Code, Error, Result};
use base::ids::Id;
use conversation::messages::parse::MessageSource;

/// The sender of a file, and the session that is imported.
#[derive(Clone)]
pub struct ImportSender {
    pub session_id: Id,
    pub caller: Caller,
    /// The sender trusts the file: `?allowSources=true`.
    pub allows_sources: bool,
    /// The file is a whole agent's, which only the holder of the secret may import.
    pub is_of_agent: bool,
}

impl ImportSender {
    /// Checks that the sender may use every one of these operations.
    pub fn check(&self, rules: &[AccessRule]) -> Result<()> {
        let session_id = Some(&self.session_id);
        rules
            .iter()
            .try_for_each(|rule| permit(&self.caller, *rule, session_id))
    }

    /// Checks that the sender may use at least one of these operations.
    pub fn check_any(&self, rules: &[AccessRule]) -> Result<()> {
        let mut refused = Ok(());
        for rule in rules {
            refused = self.check(std::slice::from_ref(rule));
            if refused.is_ok() {
                break;
            }
        }
        refused
    }

    /// Checks that the sender may write events with this action.
    pub fn check_action(&self, action: Action) -> Result<()> {
        permit_role(&self.caller, action == Action::UserMessage, "action")
    }

    /// The source that messages are parsed with. A sender who may not write the agent's
    /// messages may not set server metadata either.
    pub fn source(&self) -> MessageSource {
        if self.caller.may_write_agent_messages() {
            MessageSource::Server
        } else {
            MessageSource::Client
        }
    }

    /// Whether lines are accepted that no operation could write: only if the sender has the secret
    /// and trusts the file.
    pub fn accepts_prompts(&self) -> bool {
        self.caller == Caller::Owner && self.allows_sources
    }

    /// Whether the file's origins of texts are kept. A restored agent is identical to the
    /// one that was exported.
    pub fn keeps_origins(&self) -> bool {
        self.accepts_prompts() || (self.caller == Caller::Owner && self.is_of_agent)
    }

    /// Checks that the file may set a block's backend.
    pub fn check_source(&self) -> Result<()> {
        if self.accepts_prompts() {
            return Ok(());
        }
        let message = match self.caller {
            Caller::Owner => {
                "This line defines a block whose content is stored outside this agent. If you \
                 trust the file, import it with `?allowSources=true` at the end of the URL. \
                 Otherwise delete `source` from the line."
            }
            Caller::Scoped(_) => {
                "Only the Worker's secret may define a block with a `source`; a minted token may not. Import this file with the secret and `?allowSources=true`."
            }
        };
        Err(Error::new(Code::Forbidden, message).with_field("source"))
    }

    /// Checks that the file may set retention rules.
    pub fn check_retention(&self, field: &str) -> Result<()> {
        match self.caller {
            Caller::Owner => Ok(()),
            Caller::Scoped(_) => Err(needs_secret(field)),
        }
    }

    /// Limits a time that no operation lets a caller choose. With a token, the time can't
    /// be in the future. Otherwise the session would be listed first until then.
    pub fn time(&self, given_ms: i64, now_ms: i64) -> i64 {
        match self.caller {
            Caller::Owner => given_ms,
            Caller::Scoped(_) => given_ms.min(now_ms),
        }
    }
}

/// Checks that a caller may export the session: that they may read it, all of its events,
/// and its summaries, changes and memory. An export is complete or refused.
pub fn permit_export(db: &dyn Database, caller: &Caller, session_id: &Id) -> Result<()> {
    permit(caller, GET_SESSION, Some(session_id))?;
    permit(caller, LOAD_EVENTS, Some(session_id))?;
    if *caller == Caller::Owner {
        return Ok(());
    }
    for reader in find_readers(db, session_id)? {
        permit(caller, rule(reader, Effect::Nothing), Some(session_id))?;
    }
    Ok(())
}
