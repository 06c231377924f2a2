//! The writer to memory, and the source of the text.

use super::origin::Origin;
use access::Caller;
use base::error::Result;
use base::ids::Id;

/// The writer to the memory, with its session and turn.
#[derive(Clone, Copy, Debug, Default)]
pub struct MemoryWriter<'a> {
    /// Whether a model writes, through a tool.
    pub is_tool: bool,
    /// The session in which the write happens.
    pub session_id: Option<&'a Id>,
    pub turn_id: Option<&'a str>,
    /// The first event of the answer in which a model writes.
    pub event_id: Option<&'a str>,
    /// Whether a caller with a minted token writes.
    pub is_scoped: bool,
    /// The source of the text, if the writer says it.
    pub source: Option<Origin>,
    /// The events that the text comes from, where the writer says so.
    pub events: &'a [Id],
    /// Whether it writes because it was told of a change: a callback starts no callback.
    pub tells_nobody: bool,
    /// Whether a proposal writes, that is applied or taken back.
    pub is_proposed: bool,
    /// Whether the words are those of a caller who may write this session's memory alone.
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

    /// As [`Self::of_operation`], for a write that says who the text comes from.
    pub fn of_caller(caller: &Caller, session_id: Option<&'a Id>) -> Self {
        Self {
            is_scoped: *caller != Caller::Owner,
            ..Self::of_operation(session_id)
        }
    }

    /// The fields of a request to another home that say where the text comes from. Of the
    /// operator's own text, there are none.
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

/// The source of a text, as a caller says it.
pub struct SaidOrigin<'a> {
    pub source: Option<Origin>,
    pub events: &'a [Id],
}

impl<'a> SaidOrigin<'a> {
    /// The writer of the text, if the caller may say so.
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
