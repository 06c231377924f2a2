//! An operation is a struct: its fields are the input, its doc comment is the
//! documentation.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::limits::DEFAULT_BODY_BYTES;
use access::{self, AccessRule, Effect, Needs};
use base::database::SqlText;
use base::error::Result;
use base::ids::Id;
use base::json;
use base::outbound::LocalBoxFuture;
use base::owner::work_for;
pub use chat::run::agent::Agent;
use chat::run::agent::CHAT;
use chat::run::broadcast_throttle::MessageChange;
use store::erased::LeftPages;

/// The answer of an operation.
pub struct Reply {
    pub body: SqlText,
    /// The tables were dropped: the caller must also empty the storage before the answer is
    /// sent.
    pub empties_storage: bool,
    /// Text was purged: the caller must clear its remains in database pages before the
    /// answer is sent (`store/clearing.rs`).
    pub purged: LeftPages,
    /// The session whose conversation grew; see `dispatch::follow_up`.
    pub grown: Option<Id>,
    /// The change that the operation made, which is broadcast to the session's sockets.
    pub changed: Option<MessageChange>,
    /// The message that the operation changed, if it changed only one.
    pub changed_message: Option<Id>,
    /// A search needs an index that is not complete yet; see
    /// [`conversation::index::build::build_batch`].
    pub indexing_continues: bool,
}

impl Reply {
    pub fn text(body: impl Into<SqlText>) -> Self {
        Self {
            body: body.into(),
            empties_storage: false,
            purged: LeftPages::default(),
            grown: None,
            changed: None,
            changed_message: None,
            indexing_continues: false,
        }
    }

    pub fn grown(mut self, session_id: &Id) -> Self {
        self.grown = Some(session_id.clone());
        self
    }

    /// `watched`: the session, if sockets are connected to it.
    fn shown_in(mut self, watched: Option<Id>) -> Self {
        let message_id = self.changed_message.take();
        self.changed = watched.map(|session_id| MessageChange {
            session_id,
            message_id,
        });
        self
    }

    pub fn purged(mut self, left: LeftPages) -> Self {
        self.purged = left;
        self
    }

    pub fn json(output: &impl Serialize) -> Result<Self> {
        json::encode(output).map(Self::text)
    }
}

/// An input or output type with a schema for openapi.json.
#[cfg(feature = "testing")]
pub trait Described: crate::json_schema::JsonSchema {}
#[cfg(feature = "testing")]
impl<T: crate::json_schema::JsonSchema> Described for T {}
#[cfg(not(feature = "testing"))]
pub trait Described {}
#[cfg(not(feature = "testing"))]
impl<T> Described for T {}

/// The static description of an operation. [`RunAtOnce`] or [`RunWaiting`] runs it.
pub trait Operation: DeserializeOwned + Described {
    const NAME: &'static str;
    const NEEDS: Needs;
    const EFFECT: Effect;
    const RULE: AccessRule = AccessRule {
        operation: Self::NAME,
        needs: Self::NEEDS,
        effect: Self::EFFECT,
    };
    /// Whether the answer may be megabytes. If so, the request is refused unless enough
    /// memory is free.
    const IS_LONG: bool = false;

    /// The longest body that the operation accepts.
    const MAX_BODY_BYTES: usize = DEFAULT_BODY_BYTES;

    /// The type of the answer. If SQLite builds the answer, this type only documents it,
    /// and a test compares the two.
    type Output: Described;

    /// The session that the input names, checked for [`Needs::Session`].
    fn session_id(&self) -> Option<&Id> {
        None
    }
}

/// A synchronous operation: no other request runs between its reads and writes.
pub trait RunAtOnce: Operation {
    fn run(self, agent: &Agent<'_>) -> Result<Reply>;
}

/// An asynchronous operation, which waits for calls outside the object. Other requests run
/// in the meantime, so rows that it read before a call may have changed after it.
pub trait RunWaiting: Operation {
    fn run(self, agent: &Agent<'_>) -> impl Future<Output = Result<Reply>>;
}

pub enum OperationRun {
    AtOnce(fn(&Agent<'_>, Vec<u8>) -> Result<Reply>),
    Waiting(for<'a> fn(&'a Agent<'_>, Vec<u8>) -> LocalBoxFuture<'a, Result<Reply>>),
}

/// One entry of the operation table.
pub struct OperationEntry {
    pub name: &'static str,
    pub run: OperationRun,
    pub rule: AccessRule,
    pub max_body_bytes: usize,
    pub is_long: bool,
    #[cfg(feature = "testing")]
    pub input: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
    #[cfg(feature = "testing")]
    pub output: fn(&mut schemars::SchemaGenerator) -> schemars::Schema,
}

/// The entry of a synchronous operation.
pub const fn at_once<O: RunAtOnce>() -> OperationEntry {
    entry::<O>(OperationRun::AtOnce(|agent, body| {
        let operation = admit::<O>(agent, body)?;
        let session_id = find_watched(agent, O::RULE, operation.session_id());
        Ok(operation.run(agent)?.shown_in(session_id))
    }))
}

/// The entry of an asynchronous operation.
pub const fn waiting<O: RunWaiting>() -> OperationEntry {
    entry::<O>(OperationRun::Waiting(|agent, body| {
        Box::pin(async move {
            let operation = admit::<O>(agent, body)?;
            let session_id = find_watched(agent, O::RULE, operation.session_id());
            let owner = operation
                .session_id()
                .or_else(|| agent.caller.only_session());
            let reply = match owner.cloned() {
                Some(owner) => work_for(owner.as_str(), operation.run(agent)).await?,
                None => operation.run(agent).await?,
            };
            Ok(reply.shown_in(session_id))
        })
    }))
}

const fn entry<O: Operation>(run: OperationRun) -> OperationEntry {
    OperationEntry {
        name: O::NAME,
        run,
        rule: O::RULE,
        max_body_bytes: O::MAX_BODY_BYTES,
        is_long: O::IS_LONG,
        #[cfg(feature = "testing")]
        input: |schemas| schemas.root_schema_for::<O>(),
        #[cfg(feature = "testing")]
        output: |schemas| schemas.subschema_for::<O::Output>(),
    }
}

/// The session that an operation writes to, if sockets are connected to it.
fn find_watched(agent: &Agent<'_>, rule: AccessRule, session_id: Option<&Id>) -> Option<Id> {
    let writes = rule.effect != Effect::Nothing;
    let watched = session_id.filter(|id| writes && agent.audience.is_watching(id));
    watched.cloned()
}

/// Parses an admitted operation, and checks that the caller may run it in the session that it names.
fn admit<O: Operation>(agent: &Agent<'_>, body: Vec<u8>) -> Result<O> {
    let operation: O = json::parse(&body)?;
    drop(body);
    access::permit_session(agent.caller, O::RULE, operation.session_id())?;
    Ok(operation)
}

/// Whether a token's scope may list this operation.
pub fn names_one(rules: &[AccessRule], name: &str) -> bool {
    name == CHAT || rules.iter().any(|rule| rule.operation == name)
}
