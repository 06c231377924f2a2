//! Checks a request before its body is read: the operation exists, the caller may run it in some
//! session, and its body is not too long.

use std::fmt;

use super::agent_file::{EXPORT_RULE, IMPORT_RULE};
use super::operation::{Operation as _, OperationEntry};
use super::operations::memory_tools::CallTool;
use super::route::{Route, no_such_route};
use access::{Caller, Effect, permit_by_name};
use base::budget::{MAX_ANSWER_BYTES, Reservation};
use base::error::Result;
use chat::request::MAX_CHAT_BODY_BYTES;
use chat::run::agent::CHAT_RULE;
use memory::backends::agent::parse_via;
use provider_api::calls::ApiCall;

/// The longest message of the Model Context Protocol: a call of a memory tool.
pub const MAX_MCP_BODY_BYTES: usize = CallTool::MAX_BODY_BYTES;

/// What the entry point has decided about a request.
#[derive(Clone, Copy, Debug)]
pub struct Admission {
    /// The longest body that the request may have.
    pub max_body_bytes: usize,
    /// Whether the answer may be megabytes.
    is_long: bool,
    /// Whether the request changes nothing, so that its answer may be withheld and the client may
    /// repeat the request.
    pub may_be_repeated: bool,
    operation: Option<AdmittedOperation>,
}

/// An operation that its caller may run in some session.
#[derive(Clone, Copy)]
pub struct AdmittedOperation(&'static OperationEntry);

impl fmt::Debug for AdmittedOperation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.name.fmt(formatter)
    }
}

impl AdmittedOperation {
    pub fn of(caller: &Caller, entry: &'static OperationEntry) -> Result<Self> {
        permit_by_name(caller, entry.rule)?;
        Ok(Self(entry))
    }

    pub fn entry(self) -> &'static OperationEntry {
        self.0
    }
}

impl Admission {
    const fn of_body(max_body_bytes: usize) -> Self {
        Self {
            max_body_bytes,
            is_long: false,
            may_be_repeated: false,
            operation: None,
        }
    }

    /// The operation that the request names.
    pub fn operation(self) -> Result<AdmittedOperation> {
        self.operation.ok_or_else(no_such_route)
    }

    /// Rejects a request whose answer may be long while other such answers fill the memory. An
    /// answer that is built but can't be sent would leave garbage behind.
    pub fn check_capacity(self) -> Result<()> {
        if self.is_long {
            Reservation::check_capacity(2 * MAX_ANSWER_BYTES)
        } else {
            Ok(())
        }
    }
}

/// Rejects a caller that may not run the operation in any session. The session is checked once the
/// body is parsed.
pub fn admit(caller: &Caller, route: &Route) -> Result<Admission> {
    Ok(match route {
        Route::Rpc { operation, .. } => {
            let entry = operation.get()?;
            let admitted = AdmittedOperation::of(caller, entry)?;
            Admission {
                max_body_bytes: entry.max_body_bytes,
                is_long: entry.is_long,
                may_be_repeated: entry.rule.effect == Effect::Nothing,
                operation: Some(admitted),
            }
        }
        Route::Chat { .. } => {
            permit_by_name(caller, CHAT_RULE)?;
            Admission::of_body(MAX_CHAT_BODY_BYTES)
        }
        Route::Provider { call, .. } => {
            permit_by_name(caller, CHAT_RULE)?;
            Admission::of_body(match call {
                ApiCall::Turn(_) | ApiCall::CountTokens => MAX_CHAT_BODY_BYTES,
                ApiCall::Models(..) | ApiCall::Response(_) | ApiCall::DeleteResponse(_) => 0,
            })
        }
        // Each method of the protocol checks its own rights, once the body is parsed.
        Route::Mcp { .. } => Admission {
            is_long: true,
            ..Admission::of_body(MAX_MCP_BODY_BYTES)
        },
        Route::Messages { .. } => Admission {
            is_long: true,
            may_be_repeated: true,
            ..Admission::of_body(0)
        },
        Route::ExportAgent { .. } => {
            permit_by_name(caller, EXPORT_RULE)?;
            Admission::of_body(0)
        }
        Route::ImportAgent { .. } => {
            permit_by_name(caller, IMPORT_RULE)?;
            Admission::of_body(0)
        }
        // Other routes have no body, or read it line by line.
        _ => Admission::of_body(0),
    })
}

/// The agents that a request passed through, from the header that this Worker's own objects send
/// together with the secret. The holder of a token could send any path, and so make a block appear
/// to refer back to its own origin.
pub fn find_via(caller: &Caller, header: Option<&str>) -> Vec<String> {
    match caller {
        Caller::Owner => parse_via(header),
        Caller::Scoped(_) => Vec::new(),
    }
}
