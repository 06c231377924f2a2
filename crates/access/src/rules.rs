//! The rights that an operation requires of its caller, and the check whether a caller may
//! run it.

use super::policy::forbidden;
use super::scope::Caller;
use base::error::{Error, Result};
use base::ids::Id;

/// The rights that an operation requires of its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// The operation reaches beyond the agent, or changes what the agent may reach. The
    /// caller needs the secret.
    Secret,
    /// The operation concerns the whole agent. A token for one session is not sufficient.
    WholeAgent,
    /// The operation concerns one session. A token for one session must be for this
    /// session.
    Session,
    /// The operation lists results, and restricts the list to the caller's session.
    Narrowed,
}

/// The change that an operation makes. The effect decides what a minted token must allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The operation changes nothing that anyone can read.
    Nothing,
    /// The operation creates, changes or deletes a session, or deletes from its log.
    Session,
    /// The operation writes messages. A minted token may write a user's messages; for
    /// any other message the token must allow `agentMessages`. The operation checks
    /// each message.
    Messages,
    /// The operation changes texts in prompts. A minted token must name the operation.
    Prompts,
    /// The operation changes the agent's configuration, or what the agent may reach.
    Agent,
}

/// What is required of a caller who runs an operation, or who gets the operation's effect
/// in another way.
#[derive(Clone, Copy, Debug)]
pub struct AccessRule {
    /// The operation's name.
    pub operation: &'static str,
    pub needs: Needs,
    pub effect: Effect,
}

/// Checks that `caller` may run the operation of `rule` on `session_id` (`None`: the
/// request names no session).
pub fn permit(caller: &Caller, rule: AccessRule, session_id: Option<&Id>) -> Result<()> {
    permit_by_name(caller, rule)?;
    permit_session(caller, rule, session_id)
}

/// As [`permit`], after [`permit_by_name`].
pub fn permit_session(caller: &Caller, rule: AccessRule, session_id: Option<&Id>) -> Result<()> {
    match caller.only_session() {
        Some(only) if rule.needs == Needs::Session && session_id != Some(only) => {
            Err(forbidden("This token is for another session."))
        }
        _ => Ok(()),
    }
}

/// Checks that `caller` may run the operation of `rule` on at least some session. This
/// check needs nothing from the request's body.
pub fn permit_by_name(caller: &Caller, rule: AccessRule) -> Result<()> {
    let AccessRule {
        operation, needs, ..
    } = rule;
    let Caller::Scoped(scope) = caller else {
        return Ok(());
    };
    if needs == Needs::Secret {
        return Err(forbidden(format!(
            "`{operation}` requires the Worker's secret; a minted token is not enough."
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
                "`{operation}` can change prompts. A token can run it only if its `operations` \
                 include it."
            )));
        }
        _ => {}
    }
    if scope.session_id.is_some() && needs == Needs::WholeAgent {
        return Err(forbidden(format!(
            "`{operation}` applies to the whole agent; this token is for one session."
        )));
    }
    Ok(())
}

/// Checks that `caller` may purge with this operation, which it may run. A purge rewrites
/// pages with rows of all callers, so a token must list the operation and allow purging.
pub fn permit_purge(caller: &Caller, operation: &str) -> Result<()> {
    if caller.may_purge_by(operation) {
        Ok(())
    } else {
        Err(forbidden(format!(
            "A purge requires the Worker's secret, or a token that allows `purge` and whose \
         `operations` include `{operation}`. Nothing was erased."
        )))
    }
}

/// Checks that `caller` may query the directory of agents, which is not an operation of one
/// agent.
pub fn permit_directory(caller: &Caller) -> Result<()> {
    match caller {
        Caller::Owner => Ok(()),
        Caller::Scoped(_) => Err(forbidden(
            "The directory requires the Worker's secret; a minted token is not enough.",
        )),
    }
}

/// Checks that `caller` may write a message with this role: a user's, or one of the agent,
/// its tools or the system. `field` is the request field that names the role.
pub fn permit_role(caller: &Caller, is_users: bool, field: &str) -> Result<()> {
    if is_users || caller.may_write_agent_messages() {
        return Ok(());
    }
    Err(forbidden(
        "A minted token can only write user messages. Messages of the agent, its tools or the \
         system require the secret, or a token that allows `agentMessages`.",
    )
    .with_field(field))
}

/// The error for a field that the caller's token does not allow.
pub fn needs_allowance(field: &str, allowance: &str) -> Error {
    forbidden(format!(
        "This token does not allow `{field}`: omit it, or use a token whose `allow.{allowance}` permits it."
    ))
    .with_field(field)
}

/// The error for a field that only the holder of the secret may set.
pub fn needs_secret(field: &str) -> Error {
    forbidden(format!(
        "Only the Worker's secret can set `{field}`; a minted token can't. Omit `{field}`, or send \
         the request with the secret."
    ))
    .with_field(field)
}
