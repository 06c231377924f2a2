//! What an operation asks of its caller, and whether a caller may run it.

use super::policy::forbidden;
use super::scope::Caller;
use crate::base::error::Result;
use crate::base::ids::Id;

/// What an operation asks of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// It reaches beyond the agent, or changes what the agent may reach: the secret.
    Secret,
    /// It speaks of the whole agent: not for a token that is narrowed to a session.
    WholeAgent,
    /// It speaks of one session, which must be the token's own.
    Session,
    /// It lists what it finds, and narrows itself to the caller's session.
    Narrowed,
}

/// What an operation changes. It decides what of it a minted token must say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing that anybody can read.
    Nothing,
    /// A session: what it is, what was spent on it, what goes and where it goes on.
    Session,
    /// What was said. With a minted token that is what a user says; for more it
    /// must allow `agentMessages`. The operation holds each message against that.
    Messages,
    /// What stands in prompts. A minted token runs it only if it names it.
    Prompts,
    /// What the agent is, or may reach.
    Agent,
}

/// What is asked of who runs an operation, or does by another door what it does.
#[derive(Clone, Copy, Debug)]
pub struct AccessRule {
    /// The operation's name.
    pub operation: &'static str,
    pub needs: Needs,
    pub effect: Effect,
}

/// Whether `caller` may do what `rule` is about to `session_id` (`None`: it names none).
pub fn permit(caller: &Caller, rule: AccessRule, session_id: Option<&Id>) -> Result<()> {
    permit_by_name(caller, rule)?;
    match caller.only_session() {
        Some(only) if rule.needs == Needs::Session && session_id != Some(only) => {
            Err(forbidden("This token is for another session."))
        }
        _ => Ok(()),
    }
}

/// Whether `caller` may do what `rule` is about to any session at all: what can be
/// known before a request is read.
pub fn permit_by_name(caller: &Caller, rule: AccessRule) -> Result<()> {
    let AccessRule {
        operation, needs, ..
    } = rule;
    let Caller::Scoped(scope) = caller else {
        return Ok(());
    };
    if needs == Needs::Secret {
        return Err(forbidden(format!(
            "`{operation}` needs the Worker's secret; a minted token is not enough."
        )));
    }
    match &scope.operations {
        Some(names) if !names.iter().any(|name| name == operation) => {
            return Err(forbidden(format!(
                "This token does not allow `{operation}`."
            )));
        }
        None if rule.effect == Effect::Prompts => {
            return Err(forbidden(format!(
                "`{operation}` changes what stands in prompts: a token runs it only if its `operations` name it."
            )));
        }
        _ => {}
    }
    if scope.session_id.is_some() && needs == Needs::WholeAgent {
        return Err(forbidden(format!(
            "`{operation}` speaks of the whole agent; this token is for one session."
        )));
    }
    Ok(())
}

/// Whether `caller` may write this as it was said: by a user, or by the agent, its
/// tools or the system. `field` says who, in the request.
pub fn permit_voice(caller: &Caller, is_users: bool, field: &str) -> Result<()> {
    if is_users || caller.may_write_agent_messages() {
        return Ok(());
    }
    Err(forbidden(
        "A minted token writes a user's messages only. What the agent, its tools or the system said is written with the secret, or with a token that allows `agentMessages`.",
    )
    .with("field", field))
}
