//! The writer of a text in memory, and the source of the text.

use super::origin::Origin;
use access::Caller;
use base::error::Result;
use base::ids::Id;

/// A writer to memory, with the session and turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryWriter<'a> {
    /// Whether a model writes, through a tool.
    pub is_tool: bool,
    /// The session in which the write happens.
    pub session_id: Option<&'a Id>,
    pub turn_id: Option<&'a str>,
    /// The first event of the answer in which a model writes.
    pub event_id: Option<&'a str>,
    /// Whether the writer is a caller with a minted token.
    pub is_scoped: bool,
    /// The source of the text, if the writer specified it.
    pub source: Option<Origin>,
    /// The events that the text comes from, if the writer specified them.
    pub events: &'a [Id],
    /// Whether the write reacts to a callback: then it triggers no further callback.
    pub is_silent: bool,
    /// Whether the write applies or reverts a proposal.
    pub is_proposed: bool,
    /// Whether the text comes from a caller who may only write this session's memory.
    pub is_narrowed: bool,
}

impl<'a> MemoryWriter<'a> {
    /// A caller of an operation on a block of this session, or of the agent.
    pub fn of_operation(session_id: Option<&'a Id>) -> Self {
        Self {
            session_id,
            ..Self::default()
        }
    }

    /// Like [`Self::of_operation`], for a write that records the source of its text.
    pub fn of_caller(caller: &Caller, session_id: Option<&'a Id>) -> Self {
        Self {
            is_scoped: *caller != Caller::Owner,
            ..Self::of_operation(session_id)
        }
    }

    /// The fields of a request to another backend that specify the source of the text.
    /// Empty for the operator's own text.
    pub fn fields(&self) -> Vec<(&'static str, serde_json::Value)> {
        let mut fields = Vec::new();
        if self.origin() != Origin::Operator {
            fields.push(("source", self.origin().name().into()));
        }
        let events: Vec<&str> = match (self.events, self.event_id) {
            ([], answer) => answer.into_iter().collect(),
            (events, _) => events.iter().map(Id::as_str).collect(),
        };
        if !events.is_empty() {
            fields.push(("events", events.into()));
        }
        fields
    }

    /// The source of the text.
    pub fn origin(&self) -> Origin {
        match (self.source, self.is_tool, self.is_scoped) {
            (Some(source), ..) => source,
            (None, true, _) => Origin::Agent,
            (None, false, true) => Origin::User,
            (None, false, false) => Origin::Operator,
        }
    }
}

/// The source of a text, as specified by a caller.
pub struct StatedOrigin<'a> {
    pub source: Option<Origin>,
    pub events: &'a [Id],
}

impl<'a> StatedOrigin<'a> {
    /// The writer of the text, if the caller may specify this source.
    pub fn writer(self, caller: &Caller, session_id: Option<&'a Id>) -> Result<MemoryWriter<'a>> {
        if let Some(source) = self.source {
            source.permit(caller)?;
        }
        Ok(MemoryWriter {
            source: self.source,
            events: self.events,
            ..MemoryWriter::of_caller(caller, session_id)
        })
    }
}
