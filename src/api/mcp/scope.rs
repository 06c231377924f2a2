//! What the caller of a method may see and do: the rules of the operations behind it.

use serde_json::{Map, Value};

use super::message::{RpcError, method_not_found};
use crate::access::{AccessRule, permit};
use crate::api::operation::Agent;
use crate::api::route::parse_session_id;
use crate::api::table::find_entry;
use crate::base::error::{Code, Error, Result};
use crate::base::ids::Id;
use crate::base::json::{self, json};

/// The operations behind the tools.
pub const TOOLS: &[&str] = &["getTools", "callTool", "search"];

/// The operations behind the resources: the first two show blocks, the others documents.
pub const RESOURCES: &[&str] = &["getBlocks", "getBlock", "listSkills", "loadSkill"];

/// The operation behind the prompts.
pub const PROMPTS: &[&str] = &["renderPrompt"];

/// The agent, and the session whose memory is meant beside the agent's.
pub struct Scope<'a> {
    pub agent: &'a Agent<'a>,
    pub session_id: Option<Id>,
}

impl<'a> Scope<'a> {
    /// A token for one session speaks of this session alone, also where the address names
    /// none.
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

    /// Checks that the caller may run this operation here.
    pub fn permit(&self, operation: &str) -> Result<()> {
        let rule: AccessRule = find_entry(operation)?.rule;
        permit(self.agent.caller, rule, self.session_id())
    }

    pub fn may(&self, operation: &str) -> bool {
        self.permit(operation).is_ok()
    }

    /// Checks that the caller may run one of these operations.
    pub fn permit_one(&self, operations: &[&str]) -> Result<()> {
        let mut refusal = None;
        for operation in operations {
            match self.permit(operation) {
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

    /// What is announced: what the caller may use.
    pub fn capabilities(&self) -> Value {
        let mut offered = Map::new();
        for (name, is_offered) in [
            ("tools", self.permit_tools().is_ok()),
            ("resources", self.permit_one(RESOURCES).is_ok()),
            ("prompts", self.permit_one(PROMPTS).is_ok()),
        ] {
            if is_offered {
                offered.insert(name.to_owned(), json!({}));
            }
        }
        Value::Object(offered)
    }

    /// An operation's input, with the session.
    pub fn input(&self, mut fields: Value) -> Vec<u8> {
        if let (Some(id), Some(fields)) = (&self.session_id, fields.as_object_mut()) {
            fields.insert("sessionId".to_owned(), id.as_str().into());
        }
        json::text(&fields).into_bytes()
    }
}

/// A tool, a prompt or a resource that is not there, or not for this caller.
pub fn unknown(what: &str) -> RpcError {
    let mut error = method_not_found("");
    error.code = super::message::INVALID_PARAMS;
    error.message = format!("There is no such {what}.");
    error
}
