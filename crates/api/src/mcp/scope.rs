//! The rights of a method's caller: the rules of the operations behind the method. All that a
//! method returns comes from these operations, by [`Scope::ask`].

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::message::{RpcError, method_not_found};
use crate::dispatch::dispatch;
use crate::operation::Agent;
use crate::session_address::parse_session_id;
use crate::table::find_entry;
use access::{AccessRule, permit};
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json::{self, json};

/// The operations behind the tools.
pub const TOOLS: &[&str] = &["callTool", "search"];

/// The operations behind the resources: the first shows blocks, the others documents.
pub const RESOURCES: &[&str] = &["getBlock", "listSkills", "loadSkill"];

/// The operation behind the prompts.
pub const PROMPTS: &[&str] = &["renderPrompt"];

/// The agent, and the session whose memory is used in addition to the agent's.
pub struct Scope<'a> {
    pub agent: &'a Agent<'a>,
    pub session_id: Option<Id>,
}

impl<'a> Scope<'a> {
    /// A token for one session covers only this session, even if the URL names none.
    pub fn find(agent: &'a Agent<'a>, named: Option<String>) -> Result<Self, RpcError> {
        let named = named.as_deref().map(parse_session_id).transpose()?;
        let only = agent.caller.only_session();
        if let (Some(only), Some(named)) = (only, &named)
            && only != named
        {
            let error = Error::new(Code::Forbidden, "This token is for another session.");
            return Err(error.into());
        }
        Ok(Self {
            agent,
            session_id: named.or_else(|| only.cloned()),
        })
    }

    pub fn session_id(&self) -> Option<&Id> {
        self.session_id.as_ref()
    }

    /// Whether the caller may run this operation here.
    pub fn may(&self, operation: &str) -> bool {
        self.permit_one(&[operation]).is_ok()
    }

    /// Checks that the caller may run one of these operations here.
    pub fn permit_one(&self, operations: &[&str]) -> Result<()> {
        self.permit_one_in(operations, self.session_id())
    }

    /// Checks that the caller may run one of these operations on this session, or on the
    /// agent itself.
    pub fn permit_one_in(&self, operations: &[&str], session_id: Option<&Id>) -> Result<()> {
        let mut refusal = None;
        for operation in operations {
            let rule: AccessRule = find_entry(operation)?.rule;
            match permit(self.agent.caller, rule, session_id) {
                Ok(()) => return Ok(()),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        refusal.map_or(Ok(()), Err)
    }

    /// Whether the caller may have tools at all.
    pub fn permit_tools(&self) -> Result<(), RpcError> {
        if self.agent.caller.may_call_some_tool() {
            return Ok(());
        }
        Ok(self.permit_one(TOOLS)?)
    }

    /// The capabilities that are announced: those that the caller may use.
    pub fn capabilities(&self) -> Value {
        let mut offered = Map::new();
        let has_tools = self.permit_tools().is_ok();
        let has_resources = self.permit_one(RESOURCES).is_ok();
        let has_prompts = self.permit_one(PROMPTS).is_ok();
        for (name, is_offered, how) in [
            ("tools", has_tools, json!({})),
            ("resources", has_resources, json!({"subscribe": true})),
            ("prompts", has_prompts, json!({})),
            ("completions", has_resources || has_prompts, json!({})),
            // The logs are those of registered tools.
            ("logging", has_tools, json!({})),
        ] {
            if is_offered {
                offered.insert(name.to_owned(), how);
            }
        }
        Value::Object(offered)
    }

    /// The scopes of blocks, the agent's first. A token for one session has only that session's.
    pub fn block_scopes(&self) -> impl Iterator<Item = Option<&Id>> {
        let agents = self.agent.caller.only_session().is_none().then_some(None);
        agents.into_iter().chain(self.session_id().map(Some))
    }

    /// Runs an operation for the caller, on this session or on the agent itself.
    pub async fn ask<T: DeserializeOwned>(
        &self,
        operation: &str,
        session_id: Option<&Id>,
        input: Value,
    ) -> Result<T> {
        ask(self.agent, operation, session_id, input).await
    }

    /// Runs an operation that reveals no more than these operations do, for a caller who may run
    /// one of them.
    pub async fn ask_for_one<T: DeserializeOwned>(
        &self,
        rights: &[&str],
        operation: &str,
        session_id: Option<&Id>,
        input: Value,
    ) -> Result<T> {
        self.permit_one_in(rights, session_id)?;
        let caller = self.agent.caller.with_operation(operation);
        let agent = Agent {
            caller: &caller,
            ..*self.agent
        };
        ask(&agent, operation, session_id, input).await
    }
}

async fn ask<T: DeserializeOwned>(
    agent: &Agent<'_>,
    operation: &str,
    session_id: Option<&Id>,
    mut input: Value,
) -> Result<T> {
    if let (Some(id), Some(fields)) = (session_id, input.as_object_mut()) {
        fields.insert("sessionId".to_owned(), id.as_str().into());
    }
    let reply = dispatch(agent, operation, json::text(&input)).await?;
    // The object clears the pages after the message's answer.
    agent.work.pages.mark_left(&reply.purged);
    let answer = json::decode(&reply.body.into_string());
    answer.map_err(|_| Error::storage(format!("an answer of {operation} has another shape")))
}

/// A tool, a prompt or a resource that does not exist, or not for this caller.
pub fn unknown(what: &str) -> RpcError {
    let mut error = method_not_found("");
    error.code = super::message::INVALID_PARAMS;
    error.message = format!("There is no such {what}.");
    error
}
