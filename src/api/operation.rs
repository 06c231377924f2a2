//! What an operation is: a struct whose fields are its input and whose doc
//! comment is its documentation.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::limits::DEFAULT_BODY_BYTES;
use crate::access::{self, AccessRule, Caller, Effect, Needs, Policy};
use crate::base::database::{Database, SqlText};
use crate::base::error::{Error, Result};
use crate::base::host::Host;
use crate::base::ids::Id;
use crate::base::json;
use crate::base::outbound::{LocalBoxFuture, Outbound};
use crate::chat::running_turns::{Audience, RunningTurns};
use crate::context::compaction::auto::CompactionTracker;
use crate::memory::Memory;

/// The agent that a request reached, and on whose behalf it came.
pub struct Agent<'a> {
    /// The table of operations: what minted tokens may name.
    pub operations: &'static [OperationEntry],
    pub name: &'a str,
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub policy: &'a Policy,
    pub caller: &'a Caller,
    pub outbound: &'a dyn Outbound,
    pub compactions: &'a CompactionTracker,
    pub turns: &'a RunningTurns,
    pub audience: &'a dyn Audience,
    /// The agents that the request came through, where a block of theirs lives here.
    pub via: &'a [String],
}

impl<'a> Agent<'a> {
    pub fn memory(&self) -> Memory<'a> {
        Memory {
            agent: self.name,
            db: self.db,
            host: self.host,
            outbound: self.outbound,
            via: self.via,
        }
    }
}

/// What an operation answers.
pub struct Reply {
    pub body: SqlText,
    /// The tables are gone: the storage under them is to be emptied too, before
    /// the answer is sent.
    pub empties_storage: bool,
    /// The session whose conversation grew: see `dispatch::follow_up`.
    pub grown: Option<Id>,
    /// Searches have asked for an index that is not whole yet: see
    /// [`crate::search::build::build_batch`].
    pub indexing_goes_on: bool,
}

impl Reply {
    pub fn text(body: impl Into<SqlText>) -> Self {
        Self {
            body: body.into(),
            empties_storage: false,
            grown: None,
            indexing_goes_on: false,
        }
    }

    pub fn grown(mut self, session_id: &Id) -> Self {
        self.grown = Some(session_id.clone());
        self
    }

    pub fn json(output: &impl Serialize) -> Result<Self> {
        serde_json::to_string(output)
            .map(Self::text)
            .map_err(|error| Error::storage(error.to_string()))
    }
}

/// In tests, an input or an output that can describe itself for openapi.json.
#[cfg(test)]
pub trait Described: schemars::JsonSchema {}
#[cfg(test)]
impl<T: schemars::JsonSchema> Described for T {}
#[cfg(not(test))]
pub trait Described {}
#[cfg(not(test))]
impl<T> Described for T {}

/// What an operation is to everybody but itself. [`RunAtOnce`] or [`RunWaiting`] says
/// what it does.
pub trait Operation: DeserializeOwned + Described {
    const NAME: &'static str;
    const NEEDS: Needs;
    const EFFECT: Effect;
    const RULE: AccessRule = AccessRule {
        operation: Self::NAME,
        needs: Self::NEEDS,
        effect: Self::EFFECT,
    };
    /// Whether its answer may be megabytes: then there is to be room for it first.
    const IS_LONG: bool = false;

    /// The longest body that it takes.
    const MAX_BODY_BYTES: usize = DEFAULT_BODY_BYTES;

    /// The shape of the answer. Where SQLite writes the answer itself this type
    /// only documents it, and a test holds the two together.
    #[cfg(test)]
    type Output: Described;

    /// The session it speaks of, for [`Needs::Session`].
    fn session_id(&self) -> Option<&Id> {
        None
    }
}

/// An operation that reads and writes in one go: no other request runs meanwhile.
pub trait RunAtOnce: Operation {
    fn run(self, agent: &Agent<'_>) -> Result<Reply>;
}

/// An operation that has to ask outside and waits for the answer. Other requests
/// run meanwhile: what it read before may have changed after.
pub trait RunWaiting: Operation {
    fn run(self, agent: &Agent<'_>) -> impl Future<Output = Result<Reply>>;
}

pub enum OperationRun {
    AtOnce(fn(&Agent<'_>, Vec<u8>) -> Result<Reply>),
    Waiting(for<'a> fn(&'a Agent<'_>, Vec<u8>) -> LocalBoxFuture<'a, Result<Reply>>),
}

/// One line of the table of operations.
pub struct OperationEntry {
    pub name: &'static str,
    pub run: OperationRun,
    pub rule: AccessRule,
    pub max_body_bytes: usize,
    pub is_long: bool,
    #[cfg(test)]
    pub input: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    #[cfg(test)]
    pub output: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
}

/// The line of an operation that runs at once.
pub const fn at_once<O: RunAtOnce>() -> OperationEntry {
    entry::<O>(OperationRun::AtOnce(|agent, body| {
        admit::<O>(agent, body)?.run(agent)
    }))
}

/// The line of an operation that waits.
pub const fn waiting<O: RunWaiting>() -> OperationEntry {
    entry::<O>(OperationRun::Waiting(|agent, body| {
        Box::pin(async move { admit::<O>(agent, body)?.run(agent).await })
    }))
}

const fn entry<O: Operation>(run: OperationRun) -> OperationEntry {
    OperationEntry {
        name: O::NAME,
        run,
        rule: O::RULE,
        max_body_bytes: O::MAX_BODY_BYTES,
        is_long: O::IS_LONG,
        #[cfg(test)]
        input: |schemas| schemas.root_schema_for::<O>(),
        #[cfg(test)]
        output: |schemas| schemas.subschema_for::<O::Output>(),
    }
}

/// Parses an operation, and asks whether its caller may run it.
fn admit<O: Operation>(agent: &Agent<'_>, body: Vec<u8>) -> Result<O> {
    let operation: O = json::parse(&body)?;
    drop(body);
    access::permit(agent.caller, O::RULE, operation.session_id())?;
    Ok(operation)
}

/// The name by which a token allows chat turns.
pub const CHAT: &str = "chat";

/// Whether a token may be minted for what goes by this name.
pub fn names_one(table: &[OperationEntry], name: &str) -> bool {
    name == CHAT || table.iter().any(|entry| entry.name == name)
}
