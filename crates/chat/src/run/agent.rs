//! The agent that receives a request, and everything that is needed to run its turns.

use crate::run::context::TurnContext;
use crate::run::deployed::Deployed;
use crate::run::in_flight_work::InFlightWork;
use crate::run::running_turns::{Audience, RunningTurns};
use crate::run::work::{TurnStarter, TurnWork};
use crate::turn::Turn;
use access::{AccessRule, Caller, Effect, Needs, Policy};
use base::background::{Background, JobKind, SHORT_DELAY_MS};
use base::budget::Reservation;
use base::database::Database;
use base::host::Host;
use base::outbound::Outbound;
use base::recovery::Recovery;
use context::compaction::auto::CompactionTracker;
use conversation::log::sessions::ForgetImport;
use memory::Memory;
use models::embedding::EmbeddingModel;

/// The operation name by which a token allows chat turns.
pub const CHAT: &str = "chat";

/// The rights that a caller needs to start or follow a turn.
pub const CHAT_RULE: AccessRule = AccessRule {
    operation: CHAT,
    needs: Needs::Session,
    effect: Effect::Messages,
};

/// The rights that a caller needs to stop a turn, with `cancelTurn` or with a message that
/// replaces the turn.
pub const CANCEL_RULE: AccessRule = AccessRule {
    operation: "cancelTurn",
    needs: Needs::Session,
    effect: Effect::Session,
};

/// The agent that receives a request, and the request's caller.
pub struct Agent<'a> {
    /// The operations that a token's scope may list, and the rights that each requires.
    pub operations: &'static [AccessRule],
    /// For the session that a turn creates.
    pub forget_import: ForgetImport,
    pub name: &'a str,
    pub db: &'a dyn Database,
    pub host: &'a dyn Host,
    pub policy: &'a Policy,
    pub caller: &'a Caller,
    pub outbound: &'a dyn Outbound,
    pub deployed: &'a Deployed,
    pub compactions: &'a CompactionTracker,
    pub turns: &'a RunningTurns,
    /// The work that runs in addition to turns.
    pub work: &'a InFlightWork,
    pub audience: &'a dyn Audience,
    pub starter: &'a dyn TurnStarter,
    pub background: &'a dyn Background,
    /// The platform's point-in-time recovery of the object.
    pub recovery: &'a dyn Recovery,
    /// The agents that forwarded the request, because this agent stores one of their
    /// blocks.
    pub via: &'a [String],
    /// The memory reservation of the request's body, for an operation that waits for long.
    pub body: Option<&'a Reservation>,
}

impl<'a> Agent<'a> {
    pub fn memory(&self) -> Memory<'a> {
        Memory {
            agent: self.name,
            db: self.db,
            host: self.host,
            outbound: self.outbound,
            deployed: &self.deployed.memory,
            new_callbacks: &self.work.callbacks.new,
            pending_vectors: &self.work.vectors,
            pages: &self.work.pages,
            payer: self.caller.limits(),
            asking: None,
            via: self.via,
        }
    }

    /// Releases the memory reservation of the request's body. The operation must have
    /// dropped all values that it parsed from the body.
    pub fn release_body(&self) {
        if let Some(body) = self.body {
            body.resize(0);
        }
    }
    pub fn turn_context(&self) -> TurnContext<'a> {
        TurnContext {
            memory: self.memory(),
            deployed: self.deployed,
            turns: self.turns,
            audience: self.audience,
            compactions: self.compactions,
        }
    }

    /// Registers a turn that is already stored.
    pub fn begin(&self, turn: Turn, reservation: Reservation) -> TurnWork {
        TurnWork::Begin(self.turns.begin(&turn, reservation, false), Box::new(turn))
    }

    /// Schedules retention and backups to start or continue soon, if there is work for
    /// them.
    pub fn schedule_retention(&self, has_work: bool) {
        if has_work {
            self.background.wake_within(SHORT_DELAY_MS);
        }
    }

    /// Sends the callbacks of turns and memory changes, and computes the vectors of written
    /// entries, if there are any.
    pub fn call_back(&self) {
        let work = self.work;
        if work.callbacks.new.take() {
            self.background.start(JobKind::Callbacks);
            // After a change of memory, consolidation may be due.
            self.background.start(JobKind::Learning);
        }
        if work.vectors.is_empty() {
            return;
        }
        match EmbeddingModel::find(self.outbound) {
            Ok(Some(_)) => self.background.start(JobKind::Vectors),
            Ok(None) | Err(_) => work.vectors.forget(),
        }
    }
}
