//! The queue of messages that wait for the end of their session's turn. A message is stored before
//! its sender is notified that it is queued. When the turn is over, one transaction deletes the
//! message here, writes it into the log and begins its turn. So an object that is evicted in
//! between loses no message and answers none twice.

use serde::{Deserialize, Serialize};

use crate::request::{ChatRequest, ClientMessage, Trigger, parse_messages};
use access::{MemoryScope, Principal, PrincipalKind};
use base::budget::MAX_ANSWER_BYTES;
use base::database::{Database, atomically};
use base::error::{Code, Error, Result};
use base::ids::Id;
use base::json::{self, JsonObject};
use base::trace::StoredTrace;
use conversation::log::queued::{NewWaiting, QueueLength, QueuePosition, load_first, load_text};
use models::ToolDefinition;
use store::limits::PrincipalLimits;

/// The most queued requests of one session.
pub const MAX_WAITING: usize = 16;

/// The most bytes of one session's queued requests: the limit of one answer.
const MAX_WAITING_BYTES: usize = MAX_ANSWER_BYTES;

/// A queued request, as it is stored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QueuedRequest {
    /// The user's messages, as the client sent them.
    messages: Vec<JsonObject>,
    client_tools: Vec<ToolDefinition>,
    model: Option<Id>,
    system_instructions: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_run: bool,
    #[serde(rename = "callsNobodyBack", default)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    skips_callbacks: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    asked_by: Option<PrincipalKind>,
    /// The memory that the model may read and write for the caller.
    #[serde(rename = "reach")]
    pub memory_scope: MemoryScope,
    /// The limits of the caller's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<PrincipalLimits>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace: Option<StoredTrace>,
}

impl QueuedRequest {
    /// The part of a request that is queued: the messages that the log does not have.
    pub fn new(request: &ChatRequest, messages: &[&ClientMessage], principal: Principal) -> Self {
        Self {
            messages: messages
                .iter()
                .map(|message| message.text.clone())
                .collect(),
            client_tools: request.client_tools.clone(),
            model: request.model.clone(),
            system_instructions: request.system_instructions.clone(),
            is_run: request.is_run,
            skips_callbacks: request.skips_callbacks,
            asked_by: principal.kind,
            memory_scope: principal.memory_scope,
            limits: principal.limits,
            trace: principal.trace,
        }
    }

    /// The caller that made the request.
    pub fn principal(&self) -> Principal {
        Principal {
            kind: self.asked_by,
            memory_scope: self.memory_scope,
            limits: self.limits.clone(),
            trace: self.trace.clone(),
        }
    }

    /// The request for a turn at the session's leaf.
    pub fn into_request(self) -> Result<ChatRequest> {
        Ok(ChatRequest {
            session_id: None,
            trigger: Trigger::Submit { message_id: None },
            messages: parse_messages(self.messages)?,
            client_tools: self.client_tools,
            tools_field: "tools",
            model: self.model,
            system_instructions: self.system_instructions,
            when_busy: None,
            is_run: self.is_run,
            is_shown: false,
            delivery_id: None,
            skips_callbacks: self.skips_callbacks,
        })
    }
}

/// Stores a request, at the end of the queue or at its head.
pub fn insert(
    db: &dyn Database,
    session_id: &Id,
    turn_id: &str,
    request: &QueuedRequest,
    is_first: bool,
) -> Result<()> {
    let text = json::encode(request)?;
    let sent = parse_messages(request.messages.clone())?;
    let ids: Vec<&Id> = sent
        .iter()
        .filter_map(|message| message.id.as_ref())
        .collect();
    let ids = json::encode(&ids)?;
    atomically(db, || {
        let line = QueueLength::find(db, session_id)?;
        if line.waiting >= MAX_WAITING as i64 {
            return Err(queue_is_full());
        }
        let total = usize::try_from(line.bytes)
            .unwrap_or(usize::MAX)
            .saturating_add(text.len());
        if total > MAX_WAITING_BYTES {
            let what = "The size of the queued messages of the session (send this message again \
                        when the turn has ended)";
            return Err(Error::payload_too_large(what, MAX_WAITING_BYTES, total));
        }
        let new = NewWaiting {
            session_id,
            turn_id,
            message_ids: &ids,
            text: &text,
            is_first,
        };
        new.insert(db, &line)
    })
}

pub fn queue_is_full() -> Error {
    Error::new(
        Code::RateLimited,
        format!(
            "This session already has {MAX_WAITING} queued messages, which is the limit. Send \
                 this message again when some are answered."
        ),
    )
    .with_retry_after(5)
}

/// The queued requests, in the order in which they are answered.
pub fn load_queue(db: &dyn Database, session_id: &Id) -> Result<Vec<QueuePosition>> {
    load_first(db, session_id, MAX_WAITING as i64)
}

/// The request that is answered next.
pub fn find_first(db: &dyn Database, session_id: &Id) -> Result<Option<QueuePosition>> {
    Ok(load_first(db, session_id, 1)?.pop())
}

/// The request that was stored with this message.
pub fn find_of_message(
    db: &dyn Database,
    session_id: &Id,
    message_id: &Id,
) -> Result<Option<QueuePosition>> {
    let line = load_queue(db, session_id)?;
    let is_eligible = |queued: &QueuePosition| {
        queued
            .message_ids
            .iter()
            .any(|id| id == message_id.as_str())
    };
    Ok(line.into_iter().find(is_eligible))
}

/// The content of a request; `None`: it can't be read.
pub fn find_request(
    db: &dyn Database,
    session_id: &Id,
    queued: &QueuePosition,
) -> Result<Option<QueuedRequest>> {
    Ok(json::decode(&load_text(db, session_id, queued)?).ok())
}
