//! What a file asks of who sends it and of who takes it: for each line the
//! operations that write as much, for all of it those that show as much.
//!
//! The rule it protects: a file is data, and no way around an operation. Where no
//! operation writes what a line says (a frozen prompt, where a block lives), it
//! counts only for the secret's holder who says that they trust the file.

use crate::access::{AccessRule, Caller, Effect, permit, permit_voice};
use crate::base::action::Action;
use crate::base::database::Database;
use crate::base::error::{Code, Error, Result};
use crate::base::ids::Id;
use crate::lifecycle::transfer::rules::{GET_SESSION, LOAD_EVENTS, rule};
use crate::messages::parse::MessageSource;
use crate::store::tables::find_readers;

/// On whose behalf a file is taken, and into which session.
#[derive(Clone)]
pub struct ImportSender {
    pub session_id: Id,
    pub caller: Caller,
    /// They said that they trust the file: `?allowSources=true`.
    pub allows_sources: bool,
}

impl ImportSender {
    /// Whether they may do what every one of these operations does.
    pub fn check(&self, rules: &[AccessRule]) -> Result<()> {
        let session_id = Some(&self.session_id);
        rules
            .iter()
            .try_for_each(|rule| permit(&self.caller, *rule, session_id))
    }

    /// Whether they may do what one of these operations does.
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

    /// Whether they may write what this event says.
    pub fn check_action(&self, action: Action) -> Result<()> {
        permit_voice(&self.caller, action == Action::UserMessage, "action")
    }

    /// As whom messages are read: who may not say what the agent said may not say
    /// what only a server knows either.
    pub fn source(&self) -> MessageSource {
        match self.caller.may_write_agent_messages() {
            true => MessageSource::Server,
            false => MessageSource::Client,
        }
    }

    /// Whether what no operation writes counts: only with the secret, and if they
    /// trust the file.
    pub fn takes_prompts(&self) -> bool {
        self.caller == Caller::Owner && self.allows_sources
    }

    /// Whether the file may say where a block lives.
    pub fn check_source(&self) -> Result<()> {
        if self.takes_prompts() {
            return Ok(());
        }
        let message = match self.caller {
            Caller::Owner => {
                "This line says that a block lives outside this agent. If you trust who wrote the file, import it with `?allowSources=true` at the end of the address; else take `source` out of the line."
            }
            Caller::Scoped(_) => {
                "Where a block lives is said with the Worker's secret; a minted token is not enough. Import this file with the secret and `?allowSources=true`."
            }
        };
        Err(Error::new(Code::Forbidden, message).with("field", "source"))
    }

    /// A time that no operation lets a caller choose: with a token, none to come,
    /// else a session would stand above all others for as long as its file says.
    pub fn time(&self, given_ms: i64, now_ms: i64) -> i64 {
        match self.caller {
            Caller::Owner => given_ms,
            Caller::Scoped(_) => given_ms.min(now_ms),
        }
    }
}

/// Whether a caller may have the session as a file: who may read it, all of its
/// events, and what it has of summaries, changes and memory. A file is whole, or it
/// is none.
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
